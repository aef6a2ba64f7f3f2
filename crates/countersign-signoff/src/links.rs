//! Links: what a URL points to, decided by host and path and by rules of the caller, never by its label.
//!
//! A link is trusted for what it says only on a host that the rules name. A proxy or look-alike of such a host, a
//! port, or a user name in front of the host leave the target unknown.

use serde::Serialize;
use url::Url;

use crate::rules::{LinkKindRule, LinkRules};

/// The longest URL that is looked at, in bytes.
const MAX_URL: usize = 2_048;

/// How a link was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkSource {
    /// `https://…` in the text.
    Bare,
    /// `[label](https://…)`, or by reference, or an HTML anchor.
    Markdown,
    /// `<https://…>`.
    Autolink,
    /// `owner/repository#123`.
    Shorthand,
}

/// A link to a workflow run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunLink {
    /// Owner and repository as written; none for a dashboard, which does not say.
    pub repository: Option<String>,
    /// The run's id.
    pub run_id: u64,
    /// The attempt, where the link names one.
    pub attempt: Option<u32>,
    /// The job, where the link names one.
    pub job: Option<u64>,
}

/// What a link points to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A workflow run, its page or a dashboard's.
    Run(RunLink),
    /// A pull request.
    Pull {
        /// `owner/repository` as written.
        repository: String,
        /// Its number.
        number: u64,
    },
    /// An issue, or a shorthand that may be an issue or a pull request.
    IssueOrPull {
        /// `owner/repository` as written.
        repository: String,
        /// Its number.
        number: u64,
    },
    /// Another page.
    Page,
    /// Nothing that can be said: a host with a port or a user name, or no host at all.
    Unknown,
}

/// A link found in a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Link {
    /// The URL, with scheme and host in lower case and dots in the path resolved.
    pub url: String,
    /// Its host in lower case; empty where there is none.
    pub host: String,
    /// The line it is on, from 1.
    pub line: u32,
    /// The label, where it has one of its own.
    pub label: Option<String>,
    /// How it was written.
    pub source: LinkSource,
    /// What it points to.
    pub target: Target,
    /// The kind that the rules give it; none where no rule matches, which is what an unknown host gets.
    pub kind: Option<String>,
}

/// Why something that looks like a link is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WhyIgnored {
    /// It stands in code.
    Code,
    /// It stands in a quote.
    Quote,
    /// It is struck out.
    Struck,
    /// It has no scheme, so GitHub shows plain text. Only for hosts that the rules name.
    NoScheme,
}

/// Something that looks like a link and does not count as one; for hints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IgnoredLink {
    /// The link it would be.
    pub link: Link,
    /// Why it is none.
    pub why: WhyIgnored,
}

impl RunLink {
    /// Whether the run belongs to `owner/repository`, without case. A dashboard's run may belong to any.
    pub fn is_in(&self, repository: &str) -> bool {
        self.repository
            .as_ref()
            .is_none_or(|r| r.eq_ignore_ascii_case(repository))
    }
}

impl Link {
    /// The run it points to, if any.
    pub fn run(&self) -> Option<&RunLink> {
        match &self.target {
            Target::Run(run) => Some(run),
            _ => None,
        }
    }

    /// Whether both lead to the same place: same URL but for a slash at the end, the fragment and, on the path, case.
    pub fn same_place(&self, other: &Link) -> bool {
        fn key(url: &str) -> &str {
            url.split('#').next().unwrap_or(url).trim_end_matches('/')
        }
        key(&self.url).eq_ignore_ascii_case(key(&other.url))
    }
}

/// Reads a URL. `None` where it is no web address at all.
pub fn read(written: &str, line: u32, label: Option<String>, source: LinkSource, rules: &LinkRules) -> Option<Link> {
    if written.len() > MAX_URL {
        return None;
    }
    let url = Url::parse(written.trim()).ok()?;
    if !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    let host = url.host_str().unwrap_or_default().to_ascii_lowercase();
    let plain = url.username().is_empty() && url.password().is_none() && url.port().is_none() && !host.is_empty();
    let (target, kind) = if plain {
        (target_of(&url, &host, rules), kind_of(&url, &host, &rules.kinds))
    } else {
        (Target::Unknown, None)
    };
    Some(Link {
        url: url.to_string(),
        host,
        line,
        label,
        source,
        target,
        kind,
    })
}

/// Reads `owner/repository#123`.
pub fn shorthand(repository: &str, number: &str, line: u32, rules: &LinkRules) -> Option<Link> {
    let forge = rules.forge_hosts.first()?;
    let number: u64 = number.parse().ok()?;
    let url = format!("https://{forge}/{repository}/pull/{number}");
    let mut link = read(&url, line, None, LinkSource::Shorthand, rules)?;
    // GitHub leads both kinds of number to the right page, so the text does not say which it is.
    link.target = Target::IssueOrPull {
        repository: repository.to_owned(),
        number,
    };
    Some(link)
}

/// Whether the rules name `host`.
pub(crate) fn known_host(host: &str, rules: &LinkRules) -> bool {
    let same = |h: &String| h.eq_ignore_ascii_case(host);
    rules.forge_hosts.iter().any(same) || rules.kinds.iter().any(|k| same(&k.host))
}

fn segments(url: &Url) -> Vec<&str> {
    url.path().split('/').filter(|s| !s.is_empty()).take(64).collect()
}

fn target_of(url: &Url, host: &str, rules: &LinkRules) -> Target {
    if rules.forge_hosts.iter().any(|h| h.eq_ignore_ascii_case(host)) {
        let parts = segments(url);
        if let [owner, repo, rest @ ..] = parts.as_slice() {
            let repository = format!("{owner}/{repo}");
            match rest {
                ["actions", "runs", id, more @ ..] => {
                    if let Some(run_id) = positive(id) {
                        let (attempt, job) = match more {
                            ["attempts", n, ..] => (n.parse().ok(), None),
                            ["job", n, ..] => (None, positive(n)),
                            _ => (None, None),
                        };
                        return Target::Run(RunLink {
                            repository: Some(repository),
                            run_id,
                            attempt,
                            job,
                        });
                    }
                }
                ["pull", n, ..] => {
                    if let Some(number) = positive(n) {
                        return Target::Pull { repository, number };
                    }
                }
                ["issues", n, ..] => {
                    if let Some(number) = positive(n) {
                        return Target::IssueOrPull { repository, number };
                    }
                }
                _ => {}
            }
        }
        return Target::Page;
    }
    for board in rules.dashboards.iter().filter(|d| d.host.eq_ignore_ascii_case(host)) {
        let ids = url.query_pairs().filter(|(k, _)| *k == board.param.as_str());
        if let Some(run_id) = ids.filter_map(|(_, v)| positive(&v)).next() {
            return Target::Run(RunLink {
                repository: None,
                run_id,
                attempt: None,
                job: None,
            });
        }
    }
    Target::Page
}

/// A number above zero in plain digits.
pub(crate) fn positive(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.len() <= 20 && text.bytes().all(|b| b.is_ascii_digit());
    if digits {
        text.parse().ok().filter(|n| *n > 0)
    } else {
        None
    }
}

fn kind_of(url: &Url, host: &str, kinds: &[LinkKindRule]) -> Option<String> {
    let parts = segments(url);
    kinds
        .iter()
        .find(|k| k.host.eq_ignore_ascii_case(host) && path_matches(&k.path, &parts))
        .map(|k| k.kind.clone())
}

fn path_matches(pattern: &str, parts: &[&str]) -> bool {
    let mut rest = parts;
    for want in pattern.split('/').filter(|s| !s.is_empty()) {
        if want == "**" {
            return true;
        }
        let Some((first, others)) = rest.split_first() else {
            return false;
        };
        let fits = match want {
            "*" => true,
            "{number}" => positive(first).is_some(),
            literal => literal.eq_ignore_ascii_case(first),
        };
        if !fits {
            return false;
        }
        rest = others;
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::DashboardRule;

    fn rules() -> LinkRules {
        let kind = |kind: &str, host: &str, path: &str| LinkKindRule {
            kind: kind.into(),
            host: host.into(),
            path: path.into(),
        };
        LinkRules {
            forge_hosts: vec!["github.com".into()],
            kinds: vec![
                kind("recipe-pull", "github.com", "/acme/recipes/pull/{number}/**"),
                kind("recipe-page", "recipes.example.org", "/**"),
                kind("cookbook", "docs.example.org", "/cookbook/**"),
                kind("waiver", "github.com", "/acme/bench/blob/*/docs/waiver/*"),
            ],
            dashboards: vec![DashboardRule {
                host: "board.example.org".into(),
                param: "unofficialRun".into(),
            }],
        }
    }

    fn link(url: &str) -> Link {
        read(url, 1, None, LinkSource::Bare, &rules()).unwrap_or_else(|| panic!("{url} is a link"))
    }

    #[test]
    fn runs_are_read_from_every_shape() {
        let run = |url: &str| link(url).run().cloned();
        let plain = RunLink {
            repository: Some("Acme/Bench".into()),
            run_id: 77,
            attempt: None,
            job: None,
        };
        for url in [
            "https://github.com/Acme/Bench/actions/runs/77",
            "http://GitHub.com/Acme/Bench/actions/runs/77/",
            "https://github.com/Acme/Bench/actions/runs/77?pr=3#summary",
            "https://github.com/Acme/Bench/actions/runs/77/workflow",
            "https://github.com:443/Acme/Bench/actions/runs/77",
        ] {
            assert_eq!(run(url), Some(plain.clone()), "{url}");
        }
        assert_eq!(
            run("https://github.com/a/b/actions/runs/77/attempts/2").and_then(|r| r.attempt),
            Some(2)
        );
        assert_eq!(
            run("https://github.com/a/b/actions/runs/77/job/9").and_then(|r| r.job),
            Some(9)
        );
        assert!(plain.is_in("acme/bench") && !plain.is_in("acme/other"));
        let board = run("https://board.example.org/evaluation?x=1&unofficialRun=77").unwrap_or_else(|| panic!("a run"));
        assert_eq!((board.repository.as_deref(), board.run_id), (None, 77));
        for url in [
            "https://github.proxy.example.dev/Acme/Bench/actions/runs/77",
            "https://github.com@evil.example/Acme/Bench/actions/runs/77",
            "https://user@github.com/Acme/Bench/actions/runs/77",
            "https://github.com:8443/Acme/Bench/actions/runs/77",
            "https://github.com./Acme/Bench/actions/runs/77",
            "https://xgithub.com/Acme/Bench/actions/runs/77",
            "https://g\u{456}thub.com/Acme/Bench/actions/runs/77",
            "https://github.com/Acme/Bench/actions/runs/0",
            "https://github.com/Acme/Bench/actions/runs/99999999999999999999999",
            "https://github.com/Acme/Bench/actions/workflows/x.yml",
            "https://github.com/Acme/Bench/runs/77",
            "https://other.example.org/?unofficialRun=77",
        ] {
            assert_eq!(run(url), None, "{url}");
        }
    }

    #[test]
    fn kinds_follow_host_and_path() {
        let cases = [
            ("https://github.com/acme/recipes/pull/12", Some("recipe-pull")),
            (
                "https://github.com/Acme/Recipes/pull/12/files#diff",
                Some("recipe-pull"),
            ),
            ("https://github.com/acme/recipes/pull/x", None),
            ("https://github.com/acme/recipes/tree/main", None),
            ("https://github.com/acme/recipes/../../evil/recipes/pull/12", None),
            (
                "https://github.com/evil/x/../../acme/recipes/pull/12",
                Some("recipe-pull"),
            ),
            ("https://recipes.example.org/", Some("recipe-page")),
            ("https://recipes.example.org/Org/Model", Some("recipe-page")),
            ("https://recipes.example.org.evil.example/Org/Model", None),
            ("https://docs.example.org/cookbook/a/b", Some("cookbook")),
            ("https://docs.example.org/other/cookbook/a", None),
            (
                "https://github.com/acme/bench/blob/main/docs/waiver/7.md",
                Some("waiver"),
            ),
        ];
        for (url, kind) in cases {
            assert_eq!(link(url).kind.as_deref(), kind, "{url}");
        }
        assert_eq!(
            link("https://github.com/a/b/pull/4").target,
            Target::Pull {
                repository: "a/b".into(),
                number: 4
            }
        );
        for no in ["javascript:alert(1)", "mailto:a@b.example", "/relative", "", "https://"] {
            assert_eq!(read(no, 1, None, LinkSource::Bare, &rules()), None, "{no}");
        }
    }

    #[test]
    fn shorthands_are_links() {
        let found = shorthand("acme/recipes", "12", 3, &rules()).unwrap_or_else(|| panic!("a link"));
        assert_eq!(found.kind.as_deref(), Some("recipe-pull"));
        assert_eq!(
            found.target,
            Target::IssueOrPull {
                repository: "acme/recipes".into(),
                number: 12
            }
        );
        assert!(found.same_place(&link("https://github.com/Acme/recipes/pull/12/#x")));
    }
}
