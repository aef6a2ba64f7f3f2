//! What links to other projects lead to.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::ids::{CommitSha, RepoName};

/// Where a pull request of another project stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PullState {
    /// Open, not a draft.
    Open,
    /// Open as a draft.
    Draft,
    /// Closed without a merge.
    Closed,
    /// Merged.
    Merged,
}

/// A pull request of another project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpstreamPull {
    /// Its repository.
    pub repository: RepoName,
    /// Its number.
    pub number: u64,
    /// Where it stands.
    pub state: PullState,
    /// When it was merged.
    pub merged_at: Option<DateTime<Utc>>,
    /// The commit that its merge made.
    pub merge_commit: Option<CommitSha>,
    /// Changed documents: path → text after the change, as far as the policy asked for them.
    pub documents: BTreeMap<String, String>,
}

/// A published page or file of another project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// Where its source was read, e.g. `owner/repo:path`, or the address itself.
    pub source: String,
    /// The commit of the source, where it comes from a repository.
    pub commit: Option<CommitSha>,
    /// Documents by name: the page, and snippets that it includes.
    pub documents: BTreeMap<String, String>,
}

/// What a link leads to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Upstream {
    /// A pull request.
    Pull(UpstreamPull),
    /// A published page.
    Page(Page),
}
