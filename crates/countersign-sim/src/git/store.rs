//! The object store of one repository network: inline objects over those of a clone.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::clone::Clone as GitClone;
use super::diff::FileDiff;
use super::object::{self, Commit, Entry, Kind, Mode, Person};
use super::{GitError, walk};

/// An object's kind and bytes.
pub(crate) type Object = (Kind, Arc<Vec<u8>>);

/// Objects, and the names that commits have in the world.
#[derive(Debug, Default)]
pub(crate) struct Store {
    objects: HashMap<String, Object>,
    clone: Option<GitClone>,
    commits: HashMap<String, Arc<Commit>>,
    trees: HashMap<String, Arc<Vec<Entry>>>,
    pub(super) diffs: HashMap<(String, String), Arc<Vec<FileDiff>>>,
    /// Names of inline commits.
    pub(crate) names: BTreeMap<String, String>,
    /// Commits that the world only tells of: their SHA is taken at its word.
    pub(crate) told: BTreeMap<String, Told>,
}

/// What is known of a commit whose SHA is taken at its word.
#[derive(Debug, Clone, Default)]
pub(crate) struct Told {
    /// The part of its tree that is here: prefixes and whole paths. None where no file is.
    pub(crate) covers: Option<Vec<String>>,
    /// How many parents it has, where not all are named.
    pub(crate) parents: Option<u32>,
}

/// A commit to be made.
#[derive(Debug, Clone, Default)]
pub(crate) struct NewCommit {
    pub(crate) parents: Vec<String>,
    pub(crate) author: Person,
    pub(crate) message: String,
    /// Path → content; none deletes it.
    pub(crate) files: BTreeMap<String, Option<NewFile>>,
    /// The SHA and what is here of it, for a commit that is only told of.
    pub(crate) told: Option<(String, Told)>,
}

/// A file of a commit to be made.
#[derive(Debug, Clone)]
pub(crate) enum NewFile {
    /// With its content.
    Content(ModeBits, Vec<u8>),
    /// By its object id; the content is not here.
    Id(Mode, String),
}

/// The mode of a file that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModeBits {
    File,
    Executable,
    Symlink,
}

impl ModeBits {
    /// The mode of a file that is there.
    pub(crate) fn of(mode: Mode) -> Self {
        match mode {
            Mode::Executable => ModeBits::Executable,
            Mode::Symlink => ModeBits::Symlink,
            Mode::File | Mode::Tree | Mode::Submodule => ModeBits::File,
        }
    }
}

impl From<ModeBits> for Mode {
    fn from(bits: ModeBits) -> Mode {
        match bits {
            ModeBits::File => Mode::File,
            ModeBits::Executable => Mode::Executable,
            ModeBits::Symlink => Mode::Symlink,
        }
    }
}

impl Store {
    pub(crate) fn open_clone(&mut self, path: &str) -> Result<(), GitError> {
        self.clone = Some(GitClone::open(path)?);
        Ok(())
    }

    pub(crate) fn head_branch(&self) -> Option<String> {
        self.clone.as_ref().and_then(GitClone::head_branch)
    }

    pub(crate) fn put(&mut self, kind: Kind, data: Vec<u8>) -> String {
        let sha = object::hash(kind, &data);
        self.objects
            .entry(sha.clone())
            .or_insert_with(|| (kind, Arc::new(data)));
        sha
    }

    /// An object by its full SHA.
    pub(crate) fn read(&mut self, sha: &str) -> Result<Option<Object>, GitError> {
        if let Some((kind, data)) = self.objects.get(sha) {
            return Ok(Some((*kind, data.clone())));
        }
        if !is_sha(sha) {
            return Ok(None);
        }
        let Some(clone) = &mut self.clone else { return Ok(None) };
        Ok(clone.read(sha)?.map(|(_, kind, data)| (kind, Arc::new(data))))
    }

    /// The size of an object by its full SHA.
    pub(crate) fn size(&mut self, sha: &str) -> Result<Option<usize>, GitError> {
        if let Some((_, data)) = self.objects.get(sha) {
            return Ok(Some(data.len()));
        }
        match &mut self.clone {
            Some(clone) if is_sha(sha) => clone.size(sha),
            _ => Ok(None),
        }
    }

    /// A commit by its full SHA.
    pub(crate) fn commit(&mut self, sha: &str) -> Result<Option<Arc<Commit>>, GitError> {
        if let Some(commit) = self.commits.get(sha) {
            return Ok(Some(commit.clone()));
        }
        let Some((Kind::Commit, data)) = self.read(sha)? else {
            return Ok(None);
        };
        let commit = Arc::new(object::read_commit(sha, &data)?);
        self.commits.insert(sha.to_owned(), commit.clone());
        Ok(Some(commit))
    }

    /// A tree's entries by its full SHA.
    pub(crate) fn tree(&mut self, sha: &str) -> Result<Option<Arc<Vec<Entry>>>, GitError> {
        if let Some(tree) = self.trees.get(sha) {
            return Ok(Some(tree.clone()));
        }
        let Some((Kind::Tree, data)) = self.read(sha)? else {
            return Ok(None);
        };
        let tree = Arc::new(object::read_tree(sha, &data)?);
        self.trees.insert(sha.to_owned(), tree.clone());
        Ok(Some(tree))
    }

    /// The commit that a text names: an inline commit's name, a full SHA, a revision of the clone, or `<revision>@<time>`:
    /// the newest first-parent ancestor not younger than that.
    pub(crate) fn revision(&mut self, text: &str) -> Result<Option<String>, GitError> {
        if let Some(sha) = self.names.get(text) {
            return Ok(Some(sha.clone()));
        }
        if is_sha(text) && self.commit(text)?.is_some() {
            return Ok(Some(text.to_owned()));
        }
        if let Some((rev, day)) = text
            .split_once('@')
            .filter(|(_, d)| d.starts_with(|c: char| c.is_ascii_digit()))
        {
            let Some(limit) = moment(day) else { return Ok(None) };
            let mut at = self.revision(rev)?;
            while let Some(sha) = at {
                let Some(commit) = self.commit(&sha)? else {
                    return Ok(None);
                };
                if commit.committer.time <= limit {
                    return Ok(Some(sha));
                }
                at = commit.parents.first().cloned();
            }
            return Ok(None);
        }
        let Some(clone) = &mut self.clone else { return Ok(None) };
        // `^{commit}` peels a tag.
        Ok(match clone.read(&format!("{text}^{{commit}}"))? {
            Some((sha, Kind::Commit, _)) => Some(sha),
            _ => None,
        })
    }

    /// The entry at a path of a tree; the root for an empty path.
    pub(crate) fn lookup(&mut self, tree: &str, path: &str) -> Result<Option<Entry>, GitError> {
        let mut at = Entry {
            mode: Mode::Tree,
            name: String::new(),
            sha: tree.to_owned(),
        };
        for part in path.split('/').filter(|p| !p.is_empty()) {
            if at.mode != Mode::Tree {
                return Ok(None);
            }
            let Some(entries) = self.tree(&at.sha)? else {
                return Ok(None);
            };
            let Some(entry) = entries.iter().find(|e| e.name == part) else {
                return Ok(None);
            };
            at = entry.clone();
        }
        Ok(Some(at))
    }

    /// Makes a commit; its tree is the first parent's with the files changed.
    pub(crate) fn make(&mut self, new: NewCommit) -> Result<String, GitError> {
        let base = match new.parents.first() {
            Some(parent) => {
                let malformed = || GitError::Malformed {
                    sha: parent.clone(),
                    expected: "commit",
                };
                Some(self.commit(parent)?.ok_or_else(malformed)?.tree.clone())
            }
            None => None,
        };
        let mut edits = BTreeMap::new();
        for (path, content) in new.files {
            let edit = content.map(|file| match file {
                NewFile::Content(mode, data) => (Mode::from(mode), self.put(Kind::Blob, data)),
                NewFile::Id(mode, id) => (mode, id),
            });
            edits.insert(path.trim_matches('/').to_owned(), edit);
        }
        let tree = match self.edit_tree(base.as_deref(), &edits)? {
            Some(tree) => tree,
            None => self.put(Kind::Tree, Vec::new()),
        };
        let commit = Commit {
            tree,
            parents: new.parents,
            author: new.author.clone(),
            committer: new.author,
            message: new.message,
        };
        let data = object::write_commit(&commit);
        let Some((sha, told)) = new.told else {
            return Ok(self.put(Kind::Commit, data));
        };
        self.objects.insert(sha.clone(), (Kind::Commit, Arc::new(data)));
        self.told.insert(sha.clone(), told);
        Ok(sha)
    }

    /// A tree with some paths changed; none where nothing is left in it.
    fn edit_tree(
        &mut self,
        base: Option<&str>,
        edits: &BTreeMap<String, Option<(Mode, String)>>,
    ) -> Result<Option<String>, GitError> {
        let mut entries: BTreeMap<String, Entry> = BTreeMap::new();
        if let Some(base) = base
            && let Some(tree) = self.tree(base)?
        {
            entries.extend(tree.iter().map(|e| (e.name.clone(), e.clone())));
        }
        let mut deeper: BTreeMap<String, BTreeMap<String, Option<(Mode, String)>>> = BTreeMap::new();
        for (path, edit) in edits {
            match (path.split_once('/'), edit) {
                (Some((folder, rest)), edit) => {
                    deeper
                        .entry(folder.to_owned())
                        .or_default()
                        .insert(rest.to_owned(), edit.clone());
                }
                (None, Some((mode, sha))) => {
                    entries.insert(
                        path.clone(),
                        Entry {
                            mode: *mode,
                            name: path.clone(),
                            sha: sha.clone(),
                        },
                    );
                }
                (None, None) => {
                    entries.remove(path);
                }
            }
        }
        for (folder, edits) in deeper {
            let base = entries
                .get(&folder)
                .filter(|e| e.mode == Mode::Tree)
                .map(|e| e.sha.clone());
            match self.edit_tree(base.as_deref(), &edits)? {
                Some(sha) => entries.insert(
                    folder.clone(),
                    Entry {
                        mode: Mode::Tree,
                        name: folder,
                        sha,
                    },
                ),
                None => entries.remove(&folder),
            };
        }
        if entries.is_empty() {
            return Ok(None);
        }
        let entries: Vec<Entry> = entries.into_values().collect();
        Ok(Some(self.put(Kind::Tree, object::write_tree(&entries))))
    }

    /// All entries of a tree with their full paths, folders too, in git's order.
    pub(crate) fn flatten(&mut self, tree: &str, limit: usize) -> Result<Vec<(String, Entry)>, GitError> {
        let mut out = Vec::new();
        let mut stack = vec![(String::new(), tree.to_owned(), 0)];
        while let Some((prefix, sha, next)) = stack.pop() {
            let Some(entries) = self.tree(&sha)? else { continue };
            for (i, entry) in entries.iter().enumerate().skip(next) {
                if out.len() >= limit {
                    return Ok(out);
                }
                let path = format!("{prefix}{}", entry.name);
                out.push((path.clone(), entry.clone()));
                if entry.mode == Mode::Tree {
                    stack.push((prefix.clone(), sha.clone(), i + 1));
                    stack.push((format!("{path}/"), entry.sha.clone(), 0));
                    break;
                }
            }
        }
        Ok(out)
    }

    /// The best common ancestor of two commits.
    pub(crate) fn merge_base(&mut self, a: &str, b: &str) -> Result<Option<String>, GitError> {
        walk::merge_base(self, a, b)
    }

    /// The commits that `head` has and `base` has not, parents before children.
    pub(crate) fn between(&mut self, base: &str, head: &str) -> Result<Vec<String>, GitError> {
        walk::between(self, base, head)
    }
}

pub(crate) fn is_sha(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Seconds since the epoch of a time, or of the end of a day.
fn moment(text: &str) -> Option<i64> {
    if let Ok(t) = chrono::DateTime::parse_from_rfc3339(text) {
        return Some(t.timestamp());
    }
    let day = chrono::NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
    Some(day.and_hms_opt(23, 59, 59)?.and_utc().timestamp())
}
