//! What the caller knows about one repository's sign-offs: words, headings, markers, hosts, command names.
//!
//! Plain data, made to be part of a policy file: every field is named, unknown fields are errors, and
//! [`Rules::problems`] says what cannot work. Phrases of words (`anchors`, `topics`, ...) are compared after
//! [`crate::text::tokens`], so case, punctuation and a plural `s` do not matter; `a b` means these words in a row,
//! `a b + c` means both anywhere.

use serde::{Deserialize, Serialize};

/// How sign-offs of one repository look (product page, section 4; domain guide, section 16).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// The text a line must start with, case-sensitive; runs of blanks count as one.
    pub phrase: String,
    /// HTML-comment markers (prefixes) of reminder comments; a body that has one at a line's start is no sign-off.
    #[serde(default)]
    pub reminder_markers: Vec<String>,
    /// Prefixes of a verdict's first line when that is an HTML comment.
    #[serde(default)]
    pub verdict_markers: Vec<String>,
    /// Prefixes of a verdict's first line when it has no marker: the headlines.
    #[serde(default)]
    pub verdict_headlines: Vec<String>,
    /// Logins that never sign, although GitHub says they are users (automation with a personal account).
    #[serde(default)]
    pub ignored_logins: Vec<String>,
    /// Texts of the heading under which the template file keeps the template.
    #[serde(default = "default_template_headings")]
    pub template_headings: Vec<String>,
    /// Texts that open the detail section, as a heading, a bold line or a plain line.
    #[serde(default)]
    pub detail_headings: Vec<String>,
    /// Texts that stand for "nothing filled in yet" in the detail section.
    #[serde(default)]
    pub placeholders: Vec<String>,
    /// Words before the colon of the signature line.
    #[serde(default = "default_signature_labels")]
    pub signature_labels: Vec<String>,
    /// Names that stand for "not signed yet".
    #[serde(default)]
    pub signature_placeholders: Vec<String>,
    /// Phrases of words by which a conditional item is known: one that may stay open.
    #[serde(default)]
    pub conditional_item_words: Vec<String>,
    /// Phrases of words that make a sentence look like a reason ("not applicable", "pending").
    #[serde(default = "default_cues")]
    pub explanation_cues: Vec<String>,
    /// What is known about single items. Items without a rule are compared by their words alone.
    #[serde(default)]
    pub items: Vec<ItemRule>,
    /// How links are told apart.
    #[serde(default)]
    pub links: LinkRules,
}

/// What is known about one item of the checklist, across its wordings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ItemRule {
    /// Stable name, such as `evals`.
    pub id: String,
    /// Short name for people, such as `evals pass`; the id where empty.
    #[serde(default)]
    pub title: String,
    /// Phrases of words, any of which marks the item in a template and in a sign-off. In a template the item where
    /// a phrase comes earliest has the rule.
    pub anchors: Vec<String>,
    /// Phrases of words, one of which an item must have to answer this one: for an item whose meaning changed, so
    /// that a tick on the old wording does not count as a tick on the new one. Empty: no such demand.
    #[serde(default)]
    pub must: Vec<String>,
    /// Phrases of words by which free text talks about this item; `anchors` count too.
    #[serde(default)]
    pub topics: Vec<String>,
}

/// How links are told apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LinkRules {
    /// Hosts of the forge itself, whose paths mean owner, repository, pull request, workflow run. No alias and no
    /// proxy of such a host is trusted.
    #[serde(default = "default_forge_hosts")]
    pub forge_hosts: Vec<String>,
    /// Kinds, first match wins.
    #[serde(default)]
    pub kinds: Vec<LinkKindRule>,
    /// Pages that show a workflow run named in their query.
    #[serde(default)]
    pub dashboards: Vec<DashboardRule>,
}

/// One kind of link, by host and path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LinkKindRule {
    /// Name given to links that match.
    pub kind: String,
    /// The host, compared whole and without case.
    pub host: String,
    /// The path, by segments: a literal, `*` (any one), `{number}` (digits), or `**` (any rest, at the end only).
    /// Literals compare without case, as GitHub does with owners and repositories.
    pub path: String,
}

/// A page whose query names a workflow run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DashboardRule {
    /// The host, compared whole and without case.
    pub host: String,
    /// The query parameter that holds the run id.
    pub param: String,
}

/// Which commands exist (product page, section 4; domain guide, section 6.1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CommandRules {
    /// Commands that authorise the reuse of a workflow run.
    #[serde(default)]
    pub reuse: Vec<ReuseRule>,
    /// The word that starts our own commands, with its slash.
    #[serde(default = "default_app_word")]
    pub app: String,
}

/// One reuse command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReuseRule {
    /// The command with its slash.
    pub name: String,
    /// Whether it counts only with a run id.
    #[serde(default)]
    pub run_required: bool,
}

/// Something in the rules that cannot work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RulesProblem {
    /// Where, as a path of field names.
    pub at: String,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub remedy: String,
}

fn default_template_headings() -> Vec<String> {
    vec!["Template".into()]
}

fn default_signature_labels() -> Vec<String> {
    vec!["Signed".into()]
}

fn default_forge_hosts() -> Vec<String> {
    vec!["github.com".into()]
}

fn default_app_word() -> String {
    "/countersign".into()
}

fn default_cues() -> Vec<String> {
    [
        "n/a",
        "na",
        "not",
        "no",
        "none",
        "without",
        "isnt",
        "doesnt",
        "dont",
        "cannot",
        "cant",
        "unchecked",
        "unticked",
        "left open",
        "skip",
        "skipped",
        "exempt",
        "because",
        "since",
        "only",
        "pending",
        "instead",
        "intentionally",
        "by design",
        "waived",
        "unable",
        "out of scope",
        "exception",
        "不适用",
    ]
    .map(String::from)
    .to_vec()
}

impl Default for LinkRules {
    fn default() -> Self {
        Self {
            forge_hosts: default_forge_hosts(),
            kinds: Vec::new(),
            dashboards: Vec::new(),
        }
    }
}

impl Default for CommandRules {
    fn default() -> Self {
        Self {
            reuse: Vec::new(),
            app: default_app_word(),
        }
    }
}

impl Rules {
    /// Rules that know the phrase and nothing else.
    pub fn with_phrase(phrase: impl Into<String>) -> Self {
        Self {
            phrase: phrase.into(),
            reminder_markers: Vec::new(),
            verdict_markers: Vec::new(),
            verdict_headlines: Vec::new(),
            ignored_logins: Vec::new(),
            template_headings: default_template_headings(),
            detail_headings: Vec::new(),
            placeholders: Vec::new(),
            signature_labels: default_signature_labels(),
            signature_placeholders: Vec::new(),
            conditional_item_words: Vec::new(),
            explanation_cues: default_cues(),
            items: Vec::new(),
            links: LinkRules::default(),
        }
    }

    /// Everything in these rules that cannot work, in the order of the fields. Empty for usable rules.
    pub fn problems(&self) -> Vec<RulesProblem> {
        let mut out = Vec::new();
        if self.phrase.trim().is_empty() {
            out.push(problem(
                "phrase",
                "the phrase is empty, so every line would start with it",
                "write the phrase",
            ));
        }
        let markers = [
            ("reminder_markers", &self.reminder_markers),
            ("verdict_markers", &self.verdict_markers),
            ("verdict_headlines", &self.verdict_headlines),
        ];
        for (name, list) in markers {
            if list.iter().any(|m| m.trim().is_empty()) {
                out.push(problem(
                    name,
                    "an empty marker matches every comment",
                    "remove the empty entry",
                ));
            }
        }
        let mut ids = std::collections::BTreeSet::new();
        for (i, item) in self.items.iter().enumerate() {
            if item.id.is_empty() || !ids.insert(item.id.as_str()) {
                let message = format!("the id {:?} is empty or used twice", item.id);
                out.push(problem(
                    &format!("items[{i}].id"),
                    &message,
                    "give each item an id of its own",
                ));
            }
            let lists = [
                ("anchors", &item.anchors),
                ("must", &item.must),
                ("topics", &item.topics),
            ];
            for (name, list) in lists {
                if list.iter().any(|p| crate::text::Phrase::new(p).is_empty()) || (name == "anchors" && list.is_empty())
                {
                    let at = format!("items[{i}].{name}");
                    out.push(problem(
                        &at,
                        "a phrase without words can never be found",
                        "write at least one word",
                    ));
                }
            }
        }
        for (i, kind) in self.links.kinds.iter().enumerate() {
            let at = format!("links.kinds[{i}].path");
            let segments: Vec<&str> = kind.path.trim_matches('/').split('/').collect();
            if segments.iter().rev().skip(1).any(|s| *s == "**") {
                out.push(problem(
                    &at,
                    "`**` may stand only at the end",
                    "use `*` for one segment",
                ));
            }
            if kind.host.is_empty() || kind.host.contains('/') {
                let at = format!("links.kinds[{i}].host");
                out.push(problem(
                    &at,
                    "a host is a name without scheme and path",
                    "write it as in `example.org`",
                ));
            }
        }
        out
    }
}

impl CommandRules {
    /// Everything in these rules that cannot work.
    pub fn problems(&self) -> Vec<RulesProblem> {
        let mut out = Vec::new();
        let names = self
            .reuse
            .iter()
            .map(|r| r.name.as_str())
            .chain(std::iter::once(self.app.as_str()));
        let mut seen = std::collections::BTreeSet::new();
        for name in names {
            if name.len() < 2 || !name.starts_with('/') || name.contains(char::is_whitespace) {
                let message = format!("{name:?} is no command name");
                out.push(problem("name", &message, "write a slash and one word, as in `/use`"));
            }
            if !seen.insert(name) {
                out.push(problem(
                    "name",
                    &format!("{name:?} is there twice"),
                    "remove one of them",
                ));
            }
        }
        out
    }
}

impl ItemRule {
    /// The short name for people.
    pub fn shown(&self) -> &str {
        if self.title.is_empty() { &self.id } else { &self.title }
    }
}

fn problem(at: &str, message: &str, remedy: &str) -> RulesProblem {
    RulesProblem {
        at: at.into(),
        message: message.into(),
        remedy: remedy.into(),
    }
}
