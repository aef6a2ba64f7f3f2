//! Files of a tree as a derivation sees them, with a memory of what it asked for.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use countersign_matrix::Files;

use super::tree::TreeFiles;
use crate::share::locked;

/// Files of a tree, remembering which were asked for, and which of them the tree does not speak about.
pub(super) struct Gathered<'f, 'e> {
    files: &'f TreeFiles<'e>,
    asked: Mutex<BTreeSet<String>>,
    listed: Mutex<BTreeSet<String>>,
    outside: Mutex<BTreeSet<String>>,
}

impl<'f, 'e> Gathered<'f, 'e> {
    pub(super) fn new(files: &'f TreeFiles<'e>) -> Self {
        Self {
            files,
            asked: Mutex::default(),
            listed: Mutex::default(),
            outside: Mutex::default(),
        }
    }

    /// Files that were asked for and lie outside of what the tree speaks about.
    pub(super) fn outside(&self) -> BTreeSet<String> {
        locked(&self.outside).clone()
    }

    /// Whether another tree would have answered alike all that was asked of this one.
    pub(super) fn answers_alike(&self, other: &TreeFiles<'_>) -> bool {
        locked(&self.asked)
            .iter()
            .all(|path| self.files.id(path) == other.id(path))
            && locked(&self.listed).iter().all(|prefix| {
                let (ours, theirs) = (self.files.list(prefix), other.list(prefix));
                ours == theirs && ours.iter().all(|path| self.files.id(path) == other.id(path))
            })
    }
}

impl Files for Gathered<'_, '_> {
    fn read(&self, path: &str) -> Option<Arc<str>> {
        locked(&self.asked).insert(path.to_owned());
        if !self.files.covers(path) {
            locked(&self.outside).insert(path.to_owned());
            return None;
        }
        self.files.read(path)
    }

    fn list(&self, prefix: &str) -> Vec<String> {
        locked(&self.listed).insert(prefix.to_owned());
        self.files.list(prefix)
    }

    fn exists(&self, path: &str) -> bool {
        locked(&self.asked).insert(path.to_owned());
        self.files.exists(path)
    }
}
