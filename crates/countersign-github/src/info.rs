//! What smaller reads give: pull requests, conversations, deliveries, grants.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use countersign_core::evidence::Association;
use countersign_core::{CommitSha, Login, PrNumber, RepoName, SignoffKey};

/// Who the App is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The App's id.
    pub id: u64,
    /// Its slug.
    pub slug: String,
    /// The login under which it writes: `<slug>[bot]`.
    pub bot: Login,
}

/// What the App may do and hears of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants {
    /// Permission → `read` or `write`.
    pub permissions: BTreeMap<String, String>,
    /// Events that are delivered.
    pub events: Vec<String>,
    /// Why nothing works: the installation is suspended.
    pub suspended: bool,
}

/// The difference between GitHub's clock and ours, as of the last answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skew {
    /// GitHub's time less ours; exact to a second or two.
    pub ahead: TimeDelta,
}

/// A pull request, briefly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullInfo {
    /// Number.
    pub number: PrNumber,
    /// Head commit.
    pub head_sha: CommitSha,
    /// Head branch, untrusted.
    pub head_ref: String,
    /// Repository of the head; absent when deleted.
    pub head_repository: Option<RepoName>,
    /// Target branch.
    pub base_ref: String,
    /// The default branch of the repository, where GitHub named it.
    pub default_branch: Option<String>,
    /// Commit of the target branch that GitHub recorded; not its tip.
    pub base_sha: CommitSha,
    /// Whether it is a draft.
    pub draft: bool,
    /// Whether it is open.
    pub open: bool,
    /// Whether it was merged.
    pub merged: bool,
    /// Who opened it.
    pub author: Option<Login>,
    /// Title, untrusted.
    pub title: String,
    /// Label names.
    pub labels: Vec<String>,
    /// How many files GitHub says are changed; not in lists.
    pub changed_files: Option<u64>,
    /// When it was opened.
    pub created_at: DateTime<Utc>,
    /// When anything about it changed last.
    pub updated_at: DateTime<Utc>,
    /// Address for readers.
    pub url: String,
}

/// One text of a conversation: a comment, a review's summary, or an inline comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadItem {
    /// Which text; its place is one of the three of sign-offs.
    pub key: SignoffKey,
    /// Global id, for GraphQL.
    pub node_id: String,
    /// Who wrote it; absent for deleted accounts.
    pub author: Option<Login>,
    /// Whether the author is an App or bot.
    pub is_bot: bool,
    /// The author's relation to the repository.
    pub association: Association,
    /// The text, untrusted.
    pub body: String,
    /// When it was written. A review that is not yet submitted is left out of threads.
    pub created_at: DateTime<Utc>,
    /// When it was changed. GitHub does not say it for reviews: then as written.
    pub updated_at: DateTime<Utc>,
    /// Address for readers.
    pub url: String,
    /// The App that wrote it, where one did.
    pub app_id: Option<u64>,
}

/// A webhook delivery that never got through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedDelivery {
    /// Id of its newest attempt; what [`crate::App::redeliver`] takes.
    pub id: u64,
    /// The GUID, the same for all attempts.
    pub guid: String,
    /// Event name.
    pub event: String,
    /// Action, where the event has one.
    pub action: Option<String>,
    /// When the newest attempt was made.
    pub delivered_at: DateTime<Utc>,
    /// What our server answered; 0 = nothing.
    pub status_code: u16,
    /// Attempts so far, as far as looked back.
    pub attempts: u32,
    /// The installation.
    pub installation_id: Option<u64>,
    /// The repository.
    pub repository_id: Option<u64>,
}
