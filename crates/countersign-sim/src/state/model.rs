//! What the simulated GitHub holds: repositories, pull requests, comments, runs, tokens.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use crate::world::pulls::ChangeSpec;
use crate::world::repo::{CodeownersErrorSpec, EarlierSpec, RoleSpec};

pub(crate) type Time = DateTime<Utc>;

#[derive(Debug)]
pub(crate) struct Repo {
    pub(crate) id: u64,
    /// `owner/name`.
    pub(crate) name: String,
    pub(crate) private: bool,
    pub(crate) description: Option<String>,
    pub(crate) default_branch: String,
    pub(crate) created_at: Time,
    pub(crate) fork_of: Option<String>,
    pub(crate) store: usize,
    pub(crate) has_git: bool,
    pub(crate) branches: BTreeMap<String, String>,
    pub(crate) pulls: BTreeMap<u64, Pull>,
    pub(crate) pulls_known: bool,
    pub(crate) comments: BTreeMap<u64, Comment>,
    pub(crate) reviews: BTreeMap<u64, Review>,
    pub(crate) review_comments: BTreeMap<u64, ReviewComment>,
    pub(crate) workflows: BTreeMap<u64, Workflow>,
    pub(crate) runs: BTreeMap<u64, Run>,
    pub(crate) runs_known: bool,
    pub(crate) checks: BTreeMap<u64, Check>,
    pub(crate) checks_known: bool,
    pub(crate) statuses: Vec<Status>,
    pub(crate) collaborators: Option<BTreeMap<String, RoleSpec>>,
    pub(crate) codeowners_errors: Option<Vec<CodeownersErrorSpec>>,
    pub(crate) earlier: BTreeMap<String, EarlierSpec>,
    pub(crate) labels: BTreeSet<String>,
    pub(crate) installation: Option<u64>,
}

impl Repo {
    pub(crate) fn owner(&self) -> &str {
        self.name.split('/').next().unwrap_or("")
    }

    pub(crate) fn short(&self) -> &str {
        self.name.split('/').nth(1).unwrap_or("")
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Pull {
    pub(crate) number: u64,
    pub(crate) id: u64,
    pub(crate) title: String,
    pub(crate) body: Option<String>,
    pub(crate) author: String,
    pub(crate) association: Option<String>,
    pub(crate) head_sha: String,
    pub(crate) head_ref: String,
    /// `owner/name` where the head is; the repository itself unless it comes from a fork.
    pub(crate) head_repo: String,
    pub(crate) base_ref: String,
    pub(crate) base_sha: String,
    pub(crate) draft: bool,
    pub(crate) open: bool,
    pub(crate) merged_at: Option<Time>,
    pub(crate) merged_by: Option<String>,
    pub(crate) merge_commit: Option<String>,
    pub(crate) mergeable: Option<bool>,
    pub(crate) labels: Vec<String>,
    pub(crate) created_at: Time,
    pub(crate) updated_at: Time,
    pub(crate) closed_at: Option<Time>,
    pub(crate) files: Option<Vec<ChangeSpec>>,
    pub(crate) commits: Option<Vec<String>>,
    pub(crate) known: Known,
}

/// Which lists of a pull request the world has given.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    pub(crate) labels: bool,
    pub(crate) comments: bool,
    pub(crate) reviews: bool,
    pub(crate) review_comments: bool,
}

/// An edit of a text.
#[derive(Debug, Clone)]
pub(crate) struct Edited {
    pub(crate) at: Time,
    pub(crate) by: String,
}

#[derive(Debug, Clone)]
pub(crate) struct Comment {
    pub(crate) id: u64,
    pub(crate) pull: u64,
    pub(crate) author: String,
    pub(crate) association: Option<String>,
    pub(crate) body: String,
    pub(crate) created_at: Time,
    pub(crate) updated_at: Time,
    pub(crate) edited: Option<Edited>,
    pub(crate) minimized: Option<String>,
    pub(crate) reactions: Vec<Reaction>,
    /// Whether an app wrote it with its own token.
    pub(crate) by_app: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Reaction {
    pub(crate) id: u64,
    pub(crate) by: String,
    pub(crate) content: String,
    pub(crate) at: Time,
}

#[derive(Debug, Clone)]
pub(crate) struct Review {
    pub(crate) id: u64,
    pub(crate) pull: u64,
    pub(crate) author: String,
    pub(crate) association: Option<String>,
    /// Lower case, as webhooks have it; the API shows it in upper case.
    pub(crate) state: String,
    pub(crate) body: String,
    pub(crate) submitted_at: Time,
    pub(crate) commit: String,
    pub(crate) edited: Option<Edited>,
    pub(crate) minimized: Option<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct ReviewComment {
    pub(crate) id: u64,
    pub(crate) pull: u64,
    pub(crate) review: Option<u64>,
    pub(crate) author: String,
    pub(crate) association: Option<String>,
    pub(crate) body: String,
    pub(crate) path: String,
    pub(crate) line: Option<u64>,
    pub(crate) commit: String,
    pub(crate) in_reply_to: Option<u64>,
    pub(crate) created_at: Time,
    pub(crate) updated_at: Time,
    pub(crate) edited: Option<Edited>,
    pub(crate) minimized: Option<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct Workflow {
    pub(crate) id: u64,
    /// Such as `.github/workflows/ci.yml`.
    pub(crate) path: String,
    pub(crate) name: String,
}

#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) id: u64,
    pub(crate) suite: u64,
    pub(crate) number: u64,
    pub(crate) workflow: u64,
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) head_sha: String,
    pub(crate) head_repo: String,
    pub(crate) branch: String,
    pub(crate) event: String,
    pub(crate) actor: String,
    pub(crate) pulls: Vec<u64>,
    pub(crate) created_at: Time,
    /// Earlier attempts first; the last one is the present one.
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) artifacts: Vec<Artifact>,
    pub(crate) artifacts_known: bool,
}

impl Run {
    /// The present attempt.
    pub(crate) fn latest(&self) -> &Attempt {
        // A run is made with one attempt at least.
        &self.attempts[self.attempts.len() - 1]
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    pub(crate) attempt: u64,
    pub(crate) status: String,
    pub(crate) conclusion: Option<String>,
    pub(crate) started_at: Time,
    pub(crate) updated_at: Time,
    pub(crate) jobs: Vec<Job>,
    pub(crate) jobs_known: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) status: String,
    pub(crate) conclusion: Option<String>,
    pub(crate) attempt: u64,
    pub(crate) started_at: Time,
    pub(crate) completed_at: Option<Time>,
    pub(crate) labels: Vec<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct Artifact {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) size: Option<u64>,
    pub(crate) expired: bool,
    pub(crate) created_at: Time,
    pub(crate) expires_at: Time,
    pub(crate) content: Content,
}

#[derive(Debug, Clone)]
pub(crate) enum Content {
    /// Files by path, zipped when asked for.
    Files(BTreeMap<String, Vec<u8>>),
    /// A zip file on disk.
    Zip(String),
}

/// A check run that belongs to no workflow run.
#[derive(Debug, Clone)]
pub(crate) struct Check {
    pub(crate) id: u64,
    pub(crate) suite: u64,
    pub(crate) name: String,
    pub(crate) head_sha: String,
    pub(crate) app: String,
    pub(crate) status: String,
    pub(crate) conclusion: Option<String>,
    pub(crate) external_id: Option<String>,
    pub(crate) details_url: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) summary: Option<String>,
    pub(crate) text: Option<String>,
    pub(crate) annotations: Vec<serde_json::Value>,
    pub(crate) actions: Vec<serde_json::Value>,
    pub(crate) started_at: Option<Time>,
    pub(crate) completed_at: Option<Time>,
    /// How often it was written: to see that nothing is written twice.
    pub(crate) writes: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Status {
    pub(crate) id: u64,
    pub(crate) sha: String,
    pub(crate) context: String,
    pub(crate) state: String,
    pub(crate) description: Option<String>,
    pub(crate) target_url: Option<String>,
    pub(crate) by: String,
    pub(crate) at: Time,
}

#[derive(Debug, Clone)]
pub(crate) struct Installation {
    pub(crate) id: u64,
    pub(crate) account: String,
    /// `owner/name`, lower case; none for all of the account's.
    pub(crate) repositories: Option<BTreeSet<String>>,
    pub(crate) suspended: bool,
    pub(crate) deleted: bool,
    pub(crate) permissions: BTreeMap<String, String>,
    pub(crate) created_at: Time,
}

/// Who a token belongs to.
#[derive(Debug, Clone)]
pub(crate) enum Token {
    /// An installation's, until a moment of the machine's clock.
    Installation {
        installation: u64,
        expires_at: Time,
        repositories: Option<BTreeSet<String>>,
    },
    /// A person's.
    Person { login: String },
}
