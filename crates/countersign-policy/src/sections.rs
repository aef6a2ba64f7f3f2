//! The sections of a policy, as plain data.

use std::collections::BTreeMap;

use countersign_core::Level;
use countersign_core::evidence::{Association, Role};
use countersign_core::render::CommentOptions;
use countersign_launch::compare::MajorRules;
use countersign_records::images::NamespaceRule;
use countersign_signoff::CommandRules;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When a sign-off is needed at all (reference guide, section 2.2).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Scope {
    /// Target branches whose pull requests are judged; only the repository's default branch where none is named. Name only
    /// branches that are protected: a status belongs to a commit, so who may choose what a target branch says about owners
    /// and bars would choose the verdict for every pull request with that commit.
    pub target_branches: Vec<String>,
    /// Owners (as written in CODEOWNERS, with `@`) whose paths need no sign-off. A pull request whose changed paths have
    /// no other owner is exempt. Empty = every pull request needs one.
    pub exempt_owners: Vec<String>,
}

/// Commands and who may give them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Commands {
    /// Which commands exist.
    pub words: CommandRules,
    /// Who may give them.
    pub authority: Authority,
}

/// Who may give commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Authority {
    /// Author associations that may authorise the reuse of a run (domain guide, section 6.1).
    pub reuse_associations: Vec<Association>,
    /// The least repository role that may answer a check's question.
    pub confirm_role: Role,
    /// The least repository role that may lift a FAIL.
    pub override_role: Role,
    /// Checks whose FAIL nobody may lift, by slug.
    #[serde(default)]
    pub never_override: Vec<String>,
}

/// Files that checks read, from the repository's root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Paths {
    /// Where CODEOWNERS may be; the first that exists counts, as on GitHub.
    pub codeowners: Vec<String>,
    /// The checklist template.
    pub template: String,
    /// Where accuracy bars may be; the first that exists counts.
    pub thresholds: Vec<String>,
    /// Active and deprecated models.
    pub models: String,
    /// Folder of golden acceptance curves, ending in `/`.
    pub golden: String,
    /// Folder of waivers, ending in `/`.
    pub waivers: String,
}

/// Which files belong to the evidence: prefixes ending in `/`, or whole paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvidencePaths {
    /// Of the target branch's tip.
    pub trusted: Vec<String>,
    /// Of head, merge base and the commits of runs.
    pub judged: Vec<String>,
    /// Largest file that is kept, in bytes. A larger one is unavailable, never absent.
    pub max_file_bytes: u64,
    /// Largest sum of kept files of one tree, in bytes.
    pub max_tree_bytes: u64,
}

/// Workflow, lanes, artifacts and labels (domain guide, sections 4 to 6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ci {
    /// Path of the one workflow whose runs count.
    pub workflow: String,
    /// The one event whose runs count.
    pub event: String,
    /// Uploaded results.
    pub artifacts: Artifacts,
    /// Labels that choose a sweep.
    pub labels: Labels,
    /// How many of the newest runs are looked at.
    #[serde(default = "ten")]
    pub runs_considered: u32,
}

fn ten() -> u32 {
    10
}

/// Names of uploaded results (domain guide, section 5.3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Artifacts {
    /// The artifact that holds all eval rows.
    pub evals: String,
    /// The file inside of it.
    pub evals_file: String,
    /// The artifact that holds all throughput rows.
    pub throughput: String,
    /// The file inside of it.
    pub throughput_file: String,
    /// Prefix of artifacts that hold one agentic throughput row each.
    pub agentic_prefix: String,
    /// Names that make a run reusable.
    pub reusable: Vec<String>,
    /// Prefixes of names that make a run reusable.
    pub reusable_prefixes: Vec<String>,
    /// Largest packed artifact that is read, in bytes.
    pub max_bytes: u64,
}

/// Labels that choose a sweep (domain guide, section 4.5).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Labels {
    /// Labels that start a full sweep.
    pub full: Vec<String>,
    /// Labels that start a trimmed sweep.
    pub trimmed: Vec<String>,
    /// Labels whose results cannot be reused.
    pub not_reusable: Vec<String>,
}

/// Which container images are upstream's (domain guide, section 14).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImageRules {
    /// Namespaces that the images of an entry must come from, by the entry's framework. Other frameworks are free.
    #[schemars(with = "BTreeMap<String, Vec<serde_json::Value>>")]
    pub namespaces: BTreeMap<String, Vec<NamespaceRule>>,
    /// Hardware words (see `layout.sku_words`) for which the rules on images and on the order of engines bind.
    pub skus: Vec<String>,
    /// Names of worker settings whose values are further images.
    #[serde(default)]
    pub settings: Vec<String>,
}

/// Where upstream documentation may live. Nothing else is ever fetched (section 10).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UpstreamRules {
    /// By the link kind given in `signoff.links.kinds`.
    pub sources: BTreeMap<String, UpstreamSource>,
    /// How what they lead to is read.
    #[serde(default)]
    pub reading: UpstreamReading,
    /// Arguments of servers that a recipe has to document, and values that mean the same (domain guide, section 16).
    #[serde(default)]
    pub major: MajorRules,
}

/// How upstream documents are read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpstreamReading {
    /// Hardware products by identifier, each with further spellings that pages use.
    pub hardware: BTreeMap<String, Vec<String>>,
    /// Families of hardware: what is documented for one member holds for the others, where nothing else is said for them.
    #[serde(default)]
    pub families: Vec<Vec<String>>,
    /// Beginnings of paths that document nothing, such as the code of the site itself.
    #[serde(default)]
    pub ignore: Vec<String>,
    /// Arguments for which a command that does not say them leaves the choice to the engine: that it chooses what runs here
    /// cannot be told from text.
    #[serde(default)]
    pub chosen_by_engine: Vec<String>,
    /// Spellings of an argument in running text, without dashes in front; its own name where nothing is given.
    #[serde(default)]
    pub spellings: BTreeMap<String, Vec<String>>,
    /// The file of a recipe repository that describes hardware.
    #[serde(default)]
    pub taxonomy: Option<String>,
    /// The folder of a recipe repository with the files of named strategies, ending in `/`.
    #[serde(default)]
    pub strategies: Option<String>,
}

/// What a kind of upstream link means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case", tag = "is")]
pub enum UpstreamSource {
    /// A pull request of a repository; documents are those under one of the prefixes.
    Pull {
        /// Path prefixes that count as documentation.
        documents: Vec<String>,
        /// Files that the documents lean on, by whole path: they are read too, changed or not.
        #[serde(default)]
        context: Vec<String>,
    },
    /// A published page whose source lies in a repository.
    Page {
        /// `owner/name` of the source.
        repository: String,
        /// The branch that is published.
        branch: String,
        /// Prefixes under which the page's path may lie, in order of preference.
        roots: Vec<String>,
        /// Endings to try.
        endings: Vec<String>,
        /// The part of the address's path that is dropped.
        #[serde(default)]
        strip: String,
        /// Folders whose files the page may include.
        #[serde(default)]
        snippets: Vec<String>,
    },
}

/// What is published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Publish {
    /// Context of the commit status.
    pub status_context: String,
    /// The comment.
    pub comment: CommentOptions,
    /// Name of a check run that shows the whole table of a decided verdict, with a note at each line that is at fault and GitHub's own
    /// button to judge again. Left out: none is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check_run: Option<String>,
}

/// How long things are waited for. All in minutes unless named otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Timing {
    /// After this time of unavailable evidence the status says that it cannot be judged.
    pub cannot_judge_after: u32,
    /// Seconds between an event and its evaluation, so that several events are answered once.
    pub settle_seconds: u32,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            cannot_judge_after: 60,
            settle_seconds: 2,
        }
    }
}

/// One check as the policy lists it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckEntry {
    /// Number in the row.
    pub number: u32,
    /// Name in the row.
    pub name: String,
    /// Which check of the program; `a+b` joins two checks into one row.
    pub slug: String,
    /// Weight.
    pub level: Level,
    /// Parameters; each check knows its own. With joined checks: one mapping a slug.
    #[serde(default)]
    pub params: serde_json::Value,
}

impl CheckEntry {
    /// The checks of the row: one, or several joined.
    pub fn slugs(&self) -> impl Iterator<Item = &str> {
        self.slug.split('+')
    }
}
