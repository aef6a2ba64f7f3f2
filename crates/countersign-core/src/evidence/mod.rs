//! Everything a verdict may rest on, frozen: gathered once, then only read.
//!
//! Two kinds of content are kept apart (product page, section 2). *Trusted* content decides what is allowed and comes
//! from the target branch's tip; *judged* content comes from the pull request's head, pinned when the sign-off is taken.

mod ci;
mod files;
mod people;
mod thread;
mod upstream;

pub use ci::{Artifact, Conclusion, Job, RunStatus, WorkflowRun};
pub use files::{BlobSource, Blobs, EntryMode, MemoryBlobs, Tree, TreeEntry};
pub use people::{Association, People, Permission, Role};
pub use thread::{ChangeStatus, ChangedFile, Comment, Commit, FileVersion, SignoffText};
pub use upstream::{Page, PullState, Upstream, UpstreamPull};

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::ids::{CommitSha, Login, PrNumber, RepoName};
use crate::observed::Observed;

/// The version of the evidence's form; raised when an old record could be misread.
pub const EVIDENCE_FORMAT: u32 = 1;

/// The pull request itself, as read at the start of gathering.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequest {
    /// Number.
    pub number: PrNumber,
    /// Title, untrusted.
    pub title: String,
    /// Description, untrusted.
    pub body: String,
    /// Who opened it, where the account still exists.
    pub author: Option<Login>,
    /// Whether it is a draft.
    pub draft: bool,
    /// Whether it is open.
    pub open: bool,
    /// Whether it was merged.
    pub merged: bool,
    /// The branch it asks to be merged into.
    pub base_ref: String,
    /// The head, pinned.
    pub head_sha: CommitSha,
    /// The head's branch name, untrusted.
    pub head_ref: String,
    /// The head's repository; absent when it was deleted.
    pub head_repository: Option<RepoName>,
    /// Label names.
    pub labels: Vec<String>,
    /// Address for readers.
    pub url: String,
}

impl PullRequest {
    /// Whether the head lives in another repository.
    #[must_use]
    pub fn is_fork(&self, repository: &RepoName) -> bool {
        self.head_repository.as_ref().is_none_or(|head| !head.same(repository))
    }
}

/// The frozen facts; see the module.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Evidence {
    /// [`EVIDENCE_FORMAT`] of the writer.
    pub format: u32,
    /// The time that counts as now. Judging reads no other clock.
    pub now: DateTime<Utc>,
    /// When this head was first seen at the pull request; confirmations must be younger.
    pub head_seen_at: DateTime<Utc>,
    /// The repository that is judged.
    pub repository: RepoName,
    /// The pull request.
    pub pull_request: PullRequest,
    /// The sign-off that is judged.
    pub signoff: SignoffText,
    /// Tip of the target branch: the commit of all trusted content.
    pub trusted_sha: CommitSha,
    /// Where head and target branch parted: what "changed" is measured from.
    pub merge_base: Observed<CommitSha>,
    /// All changed files, complete or unavailable.
    pub changed_files: Observed<Vec<ChangedFile>>,
    /// All commits of the pull request, complete or unavailable; oldest first.
    pub commits: Observed<Vec<Commit>>,
    /// All comments of the conversation, oldest first.
    pub comments: Observed<Vec<Comment>>,
    /// What is known of people.
    pub people: People,
    /// The checklist template as it was when the sign-off was written, where the trusted one is younger than the
    /// sign-off; absent where it is not.
    pub previous_template: Observed<FileVersion>,
    /// Trees by commit. Which files they hold is the policy's choice.
    pub trees: BTreeMap<CommitSha, Observed<Tree>>,
    /// Runs on commits of the pull request.
    pub runs: Observed<Vec<WorkflowRun>>,
    /// What upstream links lead to, by address as written.
    pub upstream: BTreeMap<String, Observed<Upstream>>,
    /// Contents of files by git object id. Stored beside the evidence, not inside.
    #[serde(skip)]
    pub blobs: Blobs,
}

impl Evidence {
    /// A file's text at a commit. Absent only if the tree was read and does not have it.
    #[must_use]
    pub fn file(&self, commit: &CommitSha, path: &str) -> Observed<std::sync::Arc<str>> {
        match self.trees.get(commit) {
            None => Observed::unavailable(
                crate::CauseKind::NotRecorded,
                format!("{path} at {}", commit.short()),
                "the tree of that commit was not gathered",
            ),
            Some(Observed::Absent) => Observed::Absent,
            Some(Observed::Unavailable(cause)) => Observed::Unavailable(cause.clone()),
            Some(Observed::Present(tree)) => self.blobs.file(tree, path),
        }
    }

    /// A file's text at the target branch's tip.
    #[must_use]
    pub fn trusted_file(&self, path: &str) -> Observed<std::sync::Arc<str>> {
        self.file(&self.trusted_sha, path)
    }

    /// A file's text at the pull request's head.
    #[must_use]
    pub fn head_file(&self, path: &str) -> Observed<std::sync::Arc<str>> {
        self.file(&self.pull_request.head_sha, path)
    }

    /// A file's text where the pull request parted from its target.
    #[must_use]
    pub fn base_file(&self, path: &str) -> Observed<std::sync::Arc<str>> {
        match &self.merge_base {
            Observed::Present(sha) => self.file(sha, path),
            Observed::Absent => Observed::Absent,
            Observed::Unavailable(cause) => Observed::Unavailable(cause.clone()),
        }
    }

    /// Address of a file at a commit, for a reader.
    #[must_use]
    pub fn file_url(&self, commit: &CommitSha, path: &str, line: Option<u64>) -> String {
        let host = self.pull_request.url.split("/pull/").next().unwrap_or_default();
        let path: String = path
            .bytes()
            .map(|b| {
                if b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'/') {
                    char::from(b).to_string()
                } else {
                    format!("%{b:02X}")
                }
            })
            .collect();
        line.map_or_else(
            || format!("{host}/blob/{commit}/{path}"),
            |line| format!("{host}/blob/{commit}/{path}#L{line}"),
        )
    }
}
