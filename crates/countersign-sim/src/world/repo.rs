//! Repositories of a world: history (from a clone or inline), branches, who may do what.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::actions::{CheckSpec, RunSpec, StatusSpec, WorkflowSpec};
use super::pulls::PullSpec;
use super::spell::{Files, text_or_map};

/// One repository. Everything has a default; a list that is left out is empty in a full world and unknown in a partial one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RepoSpec {
    /// The repository's id; made from the name when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// Whether anonymous and foreign tokens may not read it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
    /// The description on its page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The default branch; `main`, or what a clone's HEAD says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_branch: Option<String>,
    /// When it was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    /// A git directory whose history this repository has; `${NAME}` stands for an environment variable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clone: Option<String>,
    /// `owner/name` of the repository that this is a fork of; it shares that one's objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fork_of: Option<String>,
    /// Inline commits, on top of each other or of the clone's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commits: Vec<CommitSpec>,
    /// Branches by name → commit. What a clone has and this does not name is served too.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub branches: BTreeMap<String, String>,
    /// Short form of one root commit on the default branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<Files>,
    /// Pull requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pulls: Vec<PullSpec>,
    /// Workflows; those that runs name are added by themselves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workflows: Vec<WorkflowSpec>,
    /// Workflow runs, with their jobs and artifacts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<Vec<RunSpec>>,
    /// Check runs that belong to no workflow run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks: Option<Vec<CheckSpec>>,
    /// Commit statuses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub statuses: Vec<StatusSpec>,
    /// Permission by login: `admin`, `maintain`, `write`, `triage`, `read`, or a mapping with `permission` and `role_name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collaborators: Option<BTreeMap<String, RoleSpec>>,
    /// What the endpoint of CODEOWNERS errors answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub codeowners_errors: Option<Vec<CodeownersErrorSpec>>,
    /// Earlier versions of files, by path, where the history here does not reach back to them: what a file was before a
    /// change that a sign-off is older than.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub earlier: BTreeMap<String, EarlierSpec>,
}

/// A file as it once was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EarlierSpec {
    /// The last commit that had it: a full SHA.
    pub commit: String,
    /// When the commit after it replaced it.
    pub replaced_at: DateTime<Utc>,
    /// Its text.
    pub text: String,
}

/// One inline commit. Its SHA-1 is computed as git does, so it is the same wherever the world is loaded.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CommitSpec {
    /// A name by which the rest of the world refers to it; it is not part of the commit. May be left out beside `sha`.
    pub id: String,
    /// The SHA, taken at its word: for a commit of which only a part is here, as of recorded pull requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha: Option<String>,
    /// Beside `sha`: the part of its tree that is here, as prefixes that end in `/` and whole paths; empty for all of it. No
    /// file is here when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub covers: Option<Vec<String>>,
    /// Beside `sha`: how many parents it has, where not all of them are named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_count: Option<u32>,
    /// The parent: a name, a branch, or a revision of the clone. None for a root commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// All parents of a merge, the first one giving the tree that `files` changes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<String>,
    /// The message; `Change <id>` when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The author's login; the first user of the world when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Author and commit date; the world's clock when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<DateTime<Utc>>,
    /// Changed files: text, `null` for a deletion, or a mapping (see `FullFile`).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub files: Files,
}

/// What a collaborator may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(untagged)]
#[serde(untagged)]
pub enum RoleSpec {
    /// A named role.
    Named(String),
    /// Both fields of GitHub's answer.
    Full(FullRole),
}

/// Both fields of the collaborator permission answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FullRole {
    /// `admin`, `write`, `read` or `none`.
    pub permission: String,
    /// The role's own name, which custom roles have too.
    pub role_name: String,
}

impl From<FullRole> for RoleSpec {
    fn from(full: FullRole) -> Self {
        RoleSpec::Full(full)
    }
}

text_or_map!(
    RoleSpec,
    FullRole,
    "a role name, or a mapping with permission and role_name",
    |text| match text {
        "admin" | "maintain" | "write" | "triage" | "read" | "none" =>
            Ok::<_, String>(RoleSpec::Named(text.to_owned())),
        other => Err(format!(
            "unknown role `{other}`: admin, maintain, write, triage, read or none"
        )),
    }
);

impl RoleSpec {
    /// `permission` of the answer; maintain counts as write and triage as read there.
    pub fn permission(&self) -> &str {
        match self {
            RoleSpec::Full(full) => &full.permission,
            RoleSpec::Named(name) => match name.as_str() {
                "maintain" => "write",
                "triage" => "read",
                other => other,
            },
        }
    }

    /// `role_name` of the answer.
    pub fn role_name(&self) -> &str {
        match self {
            RoleSpec::Full(full) => &full.role_name,
            RoleSpec::Named(name) => name,
        }
    }
}

/// One error that GitHub reports for the CODEOWNERS file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CodeownersErrorSpec {
    /// 1-based line.
    pub line: u64,
    /// 1-based column.
    #[serde(default = "one")]
    pub column: u64,
    /// Such as `Unknown owner`.
    pub kind: String,
    /// The line's text.
    #[serde(default)]
    pub source: String,
    /// GitHub's hint, if any.
    #[serde(default)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    /// The full message.
    #[serde(default)]
    pub message: String,
    /// The file's path.
    #[serde(default = "codeowners_path")]
    pub path: String,
}

fn one() -> u64 {
    1
}

fn codeowners_path() -> String {
    ".github/CODEOWNERS".to_owned()
}
