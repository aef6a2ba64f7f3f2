//! What a world that stands still shows.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

/// An answer of a world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact<T> {
    /// It says so.
    Known(T),
    /// It says that there is none.
    Nothing,
    /// It does not say; in words for a reader, which fact that is.
    Unsaid(String),
    /// It says that GitHub refuses to tell, with this status.
    Refused(u16),
}

/// What kind of text something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TextPlace {
    /// A comment of the conversation.
    Comment,
    /// The summary of a review.
    Review,
    /// A comment on a line.
    ReviewComment,
}

/// A text that somebody wrote on a pull request.
#[derive(Debug, Clone)]
pub struct StillText {
    /// Where.
    pub place: TextPlace,
    /// Its id.
    pub id: u64,
    /// Who wrote it; empty for an account that is gone.
    pub author: String,
    /// Whether that is an App.
    pub is_bot: bool,
    /// The author's association, in GitHub's words.
    pub association: String,
    /// The text.
    pub body: String,
    /// When it was written.
    pub created_at: DateTime<Utc>,
    /// When GitHub says it was last changed.
    pub updated_at: DateTime<Utc>,
    /// When it was last edited, and by whom.
    pub edited: Option<(DateTime<Utc>, String)>,
    /// Address for readers.
    pub url: String,
}

/// A pull request.
#[derive(Debug, Clone)]
pub struct StillPull {
    /// Title.
    pub title: String,
    /// Description.
    pub body: String,
    /// Who opened it; empty for an account that is gone.
    pub author: String,
    /// Whether it is a draft.
    pub draft: bool,
    /// Whether it is open.
    pub open: bool,
    /// When it was merged.
    pub merged_at: Option<DateTime<Utc>>,
    /// The commit of its merge.
    pub merge_commit: Option<String>,
    /// The target branch.
    pub base_ref: String,
    /// The head.
    pub head_sha: String,
    /// The head's branch.
    pub head_ref: String,
    /// The head's repository.
    pub head_repo: String,
    /// Its labels.
    pub labels: Fact<Vec<String>>,
    /// Address for readers.
    pub url: String,
}

/// A changed path: path, path before, GitHub's word.
pub type StillChange = (String, Option<String>, &'static str);

/// A commit.
#[derive(Debug, Clone)]
pub struct StillCommit {
    /// Its id.
    pub sha: String,
    /// The first line of its message.
    pub headline: String,
    /// When it was committed.
    pub committed_at: Option<DateTime<Utc>>,
    /// Its parents, as far as they are named.
    pub parents: Vec<String>,
    /// How many it has.
    pub parent_count: u32,
}

/// A path of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StillMode {
    /// A file.
    File,
    /// An executable file.
    Executable,
    /// A symbolic link.
    Symlink,
    /// A submodule.
    Submodule,
}

/// An artifact.
#[derive(Debug, Clone)]
pub struct StillArtifact {
    /// Its id.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Whether its content is gone.
    pub expired: bool,
    /// Packed size, in bytes.
    pub size: u64,
    /// When it was uploaded.
    pub created_at: DateTime<Utc>,
    /// Its files; none for a zip on disk.
    pub files: Option<BTreeMap<String, Vec<u8>>>,
}

/// A job.
#[derive(Debug, Clone)]
pub struct StillJob {
    /// Its id.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// The attempt it ran in.
    pub attempt: u64,
    /// GitHub's word for where it stands.
    pub status: String,
    /// GitHub's word for how it ended.
    pub conclusion: Option<String>,
}

/// A workflow run.
#[derive(Debug, Clone)]
pub struct StillRun {
    /// Its id.
    pub id: u64,
    /// The newest attempt.
    pub attempt: u64,
    /// The workflow's path.
    pub workflow_path: String,
    /// The event that started it.
    pub event: String,
    /// The commit it is of.
    pub head_sha: String,
    /// The branch it is of.
    pub branch: String,
    /// GitHub's word for where it stands.
    pub status: String,
    /// GitHub's word for how it ended.
    pub conclusion: Option<String>,
    /// When it was started.
    pub created_at: DateTime<Utc>,
    /// Address for readers.
    pub url: String,
    /// Jobs of the newest attempt.
    pub jobs: Fact<Vec<StillJob>>,
    /// Artifacts.
    pub artifacts: Fact<Vec<StillArtifact>>,
}
