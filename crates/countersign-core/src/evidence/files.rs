//! Files of a commit: a listing by path, and contents shared by git object id.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{BlobId, CommitSha};
use crate::observed::{CauseKind, Observed};

/// What a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryMode {
    /// A file.
    File,
    /// An executable file.
    Executable,
    /// A symbolic link; its content is the target's name and is never followed.
    Symlink,
    /// A submodule, without content.
    Submodule,
}

/// One path of a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeEntry {
    /// What it is.
    pub mode: EntryMode,
    /// The content's git object id.
    pub id: BlobId,
}

/// The files of one commit, as far as the policy asked for them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tree {
    /// The commit.
    pub commit: CommitSha,
    /// Paths that the listing covers: prefixes ending in `/`, or whole paths. Empty = everything.
    ///
    /// A path outside of it is unavailable, never absent.
    #[serde(default)]
    pub covers: Vec<String>,
    /// Entries by path.
    pub entries: Arc<BTreeMap<String, TreeEntry>>,
}

impl Tree {
    /// Whether the listing speaks about a path at all.
    #[must_use]
    pub fn covers(&self, path: &str) -> bool {
        self.covers.is_empty()
            || self.covers.iter().any(|cover| {
                if cover.ends_with('/') {
                    path.starts_with(cover.as_str())
                } else {
                    path == cover
                }
            })
    }

    /// Paths that start with a prefix, in order.
    pub fn paths<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a str> + 'a {
        self.entries
            .range(prefix.to_owned()..)
            .map(|(path, _)| path.as_str())
            .take_while(move |path| path.starts_with(prefix))
    }
}

/// Where contents come from. The answer depends on the id alone, so judging stays a pure function of the evidence:
/// a server hands in memory, a backtest hands in a clone's object store.
pub trait BlobSource: Send + Sync {
    /// The content of a blob: absent if unknown to the source, unavailable if it is too large or not UTF-8.
    fn blob(&self, id: &BlobId) -> Observed<Arc<str>>;
}

/// Contents in memory.
#[derive(Debug, Default, Clone)]
pub struct MemoryBlobs(pub BTreeMap<BlobId, Arc<str>>);

impl BlobSource for MemoryBlobs {
    fn blob(&self, id: &BlobId) -> Observed<Arc<str>> {
        self.0
            .get(id)
            .map_or(Observed::Absent, |text| Observed::Present(Arc::clone(text)))
    }
}

/// A shared [`BlobSource`].
#[derive(Clone)]
pub struct Blobs(Arc<dyn BlobSource>);

impl Default for Blobs {
    fn default() -> Self {
        Self(Arc::new(MemoryBlobs::default()))
    }
}

impl fmt::Debug for Blobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Blobs")
    }
}

impl Blobs {
    /// Wraps a source.
    pub fn new(source: impl BlobSource + 'static) -> Self {
        Self(Arc::new(source))
    }

    /// A blob's content.
    #[must_use]
    pub fn get(&self, id: &BlobId) -> Observed<Arc<str>> {
        self.0.blob(id)
    }

    /// The content of a path of a tree.
    #[must_use]
    pub fn file(&self, tree: &Tree, path: &str) -> Observed<Arc<str>> {
        let what = || format!("{path} at {}", tree.commit.short());
        if !tree.covers(path) {
            return Observed::unavailable(
                CauseKind::NotRecorded,
                what(),
                "the policy's evidence paths do not include it",
            );
        }
        let Some(entry) = tree.entries.get(path) else {
            return Observed::Absent;
        };
        if matches!(entry.mode, EntryMode::Submodule) {
            return Observed::unavailable(CauseKind::Malformed, what(), "it is a submodule, not a file");
        }
        match self.get(&entry.id) {
            // The tree lists it, so a source that does not have it has lost it or left it out.
            Observed::Absent => Observed::unavailable(
                CauseKind::NotRecorded,
                what(),
                "its content was not gathered (binary, not UTF-8, or over the size limit)",
            ),
            Observed::Unavailable(cause) => Observed::unavailable(cause.kind, what(), cause.why),
            present => present,
        }
    }
}
