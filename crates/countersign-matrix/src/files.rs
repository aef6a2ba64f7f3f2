//! The one way to read a revision: callers give a tree, whatever it lies in.

use std::collections::BTreeMap;
use std::sync::Arc;

/// The files of one revision. Paths are relative to the root, with `/`.
pub trait Files: Sync {
    /// The text of a regular file; `None` where there is none, or where it is no UTF-8 text.
    fn read(&self, path: &str) -> Option<Arc<str>>;

    /// Every path that begins with `prefix`, in order.
    fn list(&self, prefix: &str) -> Vec<String>;

    /// Whether there is such a file. The default looks in the listing, so that nothing needs to be read.
    fn exists(&self, path: &str) -> bool {
        self.list(path).iter().any(|found| found == path)
    }
}

/// A tree in memory.
#[derive(Debug, Clone, Default)]
pub struct MapFiles {
    files: BTreeMap<String, Arc<str>>,
}

impl MapFiles {
    /// An empty tree.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces a file.
    #[must_use]
    pub fn with(mut self, path: &str, text: impl Into<Arc<str>>) -> Self {
        self.files.insert(path.to_owned(), text.into());
        self
    }

    /// Takes out every file whose path begins with a prefix.
    #[must_use]
    pub fn without(mut self, prefix: &str) -> Self {
        self.files.retain(|path, _| !path.starts_with(prefix));
        self
    }
}

impl Files for MapFiles {
    fn read(&self, path: &str) -> Option<Arc<str>> {
        self.files.get(path).cloned()
    }

    fn list(&self, prefix: &str) -> Vec<String> {
        self.files
            .range(prefix.to_owned()..)
            .take_while(|(path, _)| path.starts_with(prefix))
            .map(|(path, _)| path.clone())
            .collect()
    }

    fn exists(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }
}
