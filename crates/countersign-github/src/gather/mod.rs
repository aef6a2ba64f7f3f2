//! From GitHub to evidence. Everything is read by pinned commit; the pull request and the sign-off are read again at the end.

mod archive;
mod artifact;
mod history;
mod links;
mod people;
mod pull;
mod runs;
mod signoff;
mod trees;
mod upstream;
mod work;

/// What a gathering asks for, as pure functions: for whoever finds the same facts elsewhere, such as in a world file.
pub mod wanted {
    pub use super::links::{runs as named_runs, signoff};
    pub use super::people::{answerers, named_teams, role, teams_matter};
    pub use super::runs::{COMMITS, NO_EVIDENCE, can_be_evidence, executed};
    pub use super::trees::{Part, covers};
    pub use super::upstream::{DEPTH, DOCUMENTS, LINKS, followed_links, includes, page_path, page_source};
}

use chrono::{DateTime, Utc};
use countersign_core::{CommitSha, Evidence, PrNumber, SignoffKey};
use countersign_policy::LoadedPolicy;
use futures::future::BoxFuture;

use crate::client::RepoClient;
use crate::error::{GitHubError, Retry};

/// What to gather.
#[derive(Debug, Clone)]
pub struct GatherRequest<'p> {
    /// The pull request.
    pub pull_request: PrNumber,
    /// The sign-off that is judged.
    pub signoff: SignoffKey,
    /// Which files, runs and sources belong to the evidence.
    pub policy: &'p LoadedPolicy,
    /// The time that counts as now.
    pub now: DateTime<Utc>,
    /// When this head was first seen. Without it: the first workflow run on it, else `now`.
    pub head_seen_at: Option<DateTime<Utc>>,
}

/// What a gathering cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GatherStats {
    /// API calls answered with content; what counts against the rate limit.
    pub calls: u64,
    /// API calls answered with "not modified".
    pub not_modified: u64,
    /// Archives and artifacts, from GitHub's storage hosts.
    pub downloads: u64,
}

/// What came of it.
#[derive(Debug)]
pub enum Gathered {
    /// The frozen facts.
    Evidence {
        /// The facts.
        evidence: Box<Evidence>,
        /// What they cost.
        stats: GatherStats,
    },
    /// The head moved meanwhile: gather again.
    HeadMoved {
        /// The head at the start.
        from: CommitSha,
        /// The head at the end.
        to: CommitSha,
    },
    /// The pull request's target, its draft or its open state changed meanwhile: gather again.
    PullRequestChanged,
    /// The sign-off does not exist (any more), or belongs to another pull request.
    SignoffGone,
    /// The sign-off was edited meanwhile: gather again.
    SignoffChanged,
}

/// Why nothing could be gathered. Facts that are missing are no reason: they are unavailable in the evidence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GatherError {
    /// The pull request itself, the target branch, or the sign-off could not be read.
    #[error("{what}: {source}")]
    GitHub {
        /// What was read.
        what: String,
        /// Why it failed.
        source: GitHubError,
    },
    /// GitHub named something in a form that is none.
    #[error("GitHub's answer is unusable: {0}")]
    Answer(String),
}

impl GatherError {
    /// Whether, and when, to try again.
    #[must_use]
    pub fn retry(&self) -> Retry {
        match self {
            Self::GitHub { source, .. } => source.retry(),
            Self::Answer(_) => Retry::No,
        }
    }
}

/// Gathers the evidence for one sign-off.
///
/// # Errors
/// [`GatherError`].
pub async fn gather(repo: &RepoClient, request: &GatherRequest<'_>) -> Result<Gathered, GatherError> {
    // Boxed here, so that a future that may not move between threads is found by the compiler in this crate.
    let work: BoxFuture<'_, _> = Box::pin(work::gather(repo, request));
    work.await
}
