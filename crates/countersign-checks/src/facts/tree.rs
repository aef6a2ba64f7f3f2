//! A tree of the evidence as the other readers want to see it, without losing what could not be read.

use std::sync::{Arc, Mutex};

use countersign_core::evidence::Tree;
use countersign_core::{Cause, CauseKind, CommitSha, Evidence, Observed};
use countersign_matrix::Files;

use crate::share::locked;

/// Files of one commit. Readers that know only "there" and "not there" are given "not there" for what could not be read;
/// the cause is kept, and whoever used the reader has to ask for it afterwards.
pub struct TreeFiles<'e> {
    evidence: &'e Evidence,
    tree: &'e Tree,
    unread: Mutex<Option<Cause>>,
}

impl<'e> TreeFiles<'e> {
    /// The files of a commit.
    ///
    /// # Errors
    /// Why the tree is not known.
    pub fn new(evidence: &'e Evidence, commit: &CommitSha) -> Result<Self, Cause> {
        let what = || format!("files at {}", commit.short());
        match evidence.trees.get(commit) {
            Some(Observed::Present(tree)) => Ok(Self {
                evidence,
                tree,
                unread: Mutex::new(None),
            }),
            Some(Observed::Unavailable(cause)) => Err(cause.clone()),
            Some(Observed::Absent) | None => Err(Cause::new(CauseKind::NotRecorded, what(), "they were not gathered")),
        }
    }

    /// The first file that could not be read, if there was one.
    pub fn unread(&self) -> Option<Cause> {
        locked(&self.unread).clone()
    }

    /// Whether the tree was listed where a path lies.
    pub fn covers(&self, path: &str) -> bool {
        self.tree.covers(path)
    }

    /// The git object id of a path.
    pub fn id(&self, path: &str) -> Option<&str> {
        self.tree.entries.get(path).map(|entry| entry.id.as_str())
    }
}

impl Files for TreeFiles<'_> {
    fn read(&self, path: &str) -> Option<Arc<str>> {
        match self.evidence.blobs.file(self.tree, path) {
            Observed::Present(text) => Some(text),
            Observed::Absent => None,
            Observed::Unavailable(cause) => {
                locked(&self.unread).get_or_insert(cause);
                None
            }
        }
    }

    fn list(&self, prefix: &str) -> Vec<String> {
        self.tree.paths(prefix).map(str::to_owned).collect()
    }

    fn exists(&self, path: &str) -> bool {
        self.tree.entries.contains_key(path)
    }
}
