//! What people wrote and changed.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::Association;
use crate::ids::{CommitSha, Login, SignoffKey};

/// The text of the sign-off that is judged, as it stood when it was gathered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignoffText {
    /// Which one.
    pub key: SignoffKey,
    /// Who wrote it.
    pub author: Login,
    /// Whether the author's account is an App or bot.
    pub author_is_bot: bool,
    /// The author's relation to the repository.
    pub association: Association,
    /// The text, untrusted.
    pub body: String,
    /// When it was written.
    pub created_at: DateTime<Utc>,
    /// When it was last changed.
    pub updated_at: DateTime<Utc>,
    /// Who changed it last, if anybody else than the author did; such a text no longer counts.
    pub edited_by_other: Option<Login>,
    /// Address for readers.
    pub url: String,
}

/// A comment of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comment {
    /// GitHub's id.
    pub id: u64,
    /// Who wrote it; absent for deleted accounts.
    pub author: Option<Login>,
    /// Whether the author is an App or bot.
    pub author_is_bot: bool,
    /// The author's relation to the repository.
    pub association: Association,
    /// The text, untrusted.
    pub body: String,
    /// When it was written.
    pub created_at: DateTime<Utc>,
    /// When it was last changed.
    pub updated_at: DateTime<Utc>,
    /// Address for readers.
    pub url: String,
}

/// How a path changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeStatus {
    /// New at head.
    Added,
    /// Gone at head.
    Removed,
    /// Other content.
    Modified,
    /// Other path, maybe other content.
    Renamed,
    /// A copy of another path.
    Copied,
    /// Other mode or kind.
    Changed,
    /// Listed without a change.
    Unchanged,
}

/// A changed path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedFile {
    /// The path at head (for removed files, the path that was removed).
    pub path: String,
    /// The path before a rename.
    pub previous_path: Option<String>,
    /// What happened.
    pub status: ChangeStatus,
}

impl ChangedFile {
    /// Both paths of a rename, else the one path. A copy does not touch its source.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        let old = self
            .previous_path
            .as_deref()
            .filter(|_| matches!(self.status, ChangeStatus::Renamed));
        std::iter::once(self.path.as_str()).chain(old)
    }
}

/// A commit of the pull request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// Id.
    pub sha: CommitSha,
    /// First line of the message, untrusted.
    pub headline: String,
    /// When it was committed, as the committer says.
    pub committed_at: Option<DateTime<Utc>>,
    /// How many parents it has; two or more is a merge.
    pub parents: u32,
}

/// A file as it once was, and when it was replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileVersion {
    /// The last commit that had it.
    pub commit: CommitSha,
    /// When the commit after it replaced it.
    pub replaced_at: DateTime<Utc>,
    /// Its text.
    pub text: String,
}
