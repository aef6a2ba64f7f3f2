//! The files of one revision of a clone: never checked out, nothing of it run.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use countersign_backtest::git::{self, Kind, Object, Objects};
use countersign_matrix::Files;

/// Largest file that is read, in bytes; the policy's own bound for evidence may be smaller.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// A clone, with one process for all reads.
pub(crate) struct Git {
    git: git::Git,
    objects: Mutex<Reader>,
}

struct Reader {
    objects: Objects,
    /// The first failure to read. Readers of files know only "there" and "not there", so it is asked for at the end.
    fault: Option<String>,
}

impl Git {
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        let git = git::Git::new(folder);
        let objects = git.objects()?;
        Ok(Self {
            git,
            objects: Mutex::new(Reader { objects, fault: None }),
        })
    }

    pub(crate) fn fault(&self) -> Option<String> {
        self.objects
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .fault
            .clone()
    }

    /// A file's content; nothing for what is missing or no text.
    fn text(&self, path: &str, id: &str) -> Option<Arc<str>> {
        let mut reader = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        let fault = match reader.objects.get(id, MAX_FILE_BYTES) {
            Ok(Object::Here(Kind::Blob, content)) => return String::from_utf8(content).ok().map(Arc::from),
            Ok(Object::Here(..)) => return None,
            Ok(Object::TooLarge(size)) => format!("{path} has {size} bytes, more than are read"),
            Ok(Object::Missing) => format!("{path}: the clone does not have its content (fetch it whole)"),
            Err(error) => format!("{path}: {error}"),
        };
        reader.fault.get_or_insert(fault);
        None
    }
}

/// The files of a revision.
pub(crate) struct Revision<'g> {
    git: &'g Git,
    /// Ids of the contents.
    files: BTreeMap<String, String>,
}

impl<'g> Revision<'g> {
    pub(crate) fn at(git: &'g Git, name: &str) -> Result<Self> {
        let wanted = format!("{name}^{{commit}}");
        let commit = git
            .git
            .output(&["rev-parse", "--verify", "--end-of-options", &wanted])?;
        let listing = git.git.output(&["ls-tree", "-r", "-z", commit.trim()])?;
        // Mode, kind and id, then a tab and the path.
        let file = |line: &str| {
            let (head, path) = line.split_once('\t')?;
            let mut words = head.split(' ');
            let (kind, id) = (words.nth(1)?, words.next()?);
            (kind == "blob").then(|| (path.to_owned(), id.to_owned()))
        };
        Ok(Self {
            git,
            files: listing.split('\0').filter_map(file).collect(),
        })
    }
}

impl Files for Revision<'_> {
    fn read(&self, path: &str) -> Option<Arc<str>> {
        self.git.text(path, self.files.get(path)?)
    }

    fn list(&self, prefix: &str) -> Vec<String> {
        self.files
            .range(prefix.to_owned()..)
            .map(|(path, _)| path)
            .take_while(|path| path.starts_with(prefix))
            .cloned()
            .collect()
    }

    fn exists(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }
}
