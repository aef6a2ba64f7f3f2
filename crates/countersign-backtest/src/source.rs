//! Files of commits for one worker: trees and contents by object id, with what was read lately kept.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use countersign_core::evidence::{BlobSource, ChangeStatus, ChangedFile, EntryMode, TreeEntry};
use countersign_core::{BlobId, CauseKind, Observed};

use crate::BacktestError;
use crate::git::{Git, Kind, Object, Objects};

/// Contents that are kept, in bytes: two generations of half of it each, a half for the files of one judgement.
const KEPT_BYTES: usize = 8 << 20;

/// Folders that are kept.
const KEPT_FOLDERS: usize = 800;

/// Whole listings that are kept.
const KEPT_LISTINGS: usize = 4;

/// Largest folder that is read, in bytes.
const FOLDER_BYTES: u64 = 4 << 20;

/// Deepest folder that is read.
const DEEPEST: usize = 64;

/// Files by path.
pub(crate) type Listing = Arc<BTreeMap<String, TreeEntry>>;

/// One entry of a folder.
struct Item {
    name: String,
    id: String,
    is: Option<EntryMode>,
}

type Folder = Arc<Vec<Item>>;

thread_local! {
    static READING: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// What reading contents has taken this thread so far. Evidence asks for them when they are needed, so a part of it is
/// taken while checks run; elsewhere contents are there before judging begins.
pub(crate) fn reading() -> Duration {
    READING.get()
}

/// See the module.
pub(crate) struct Source {
    state: Mutex<State>,
    largest: u64,
}

struct State {
    objects: Objects,
    new: HashMap<String, Observed<Arc<str>>>,
    old: HashMap<String, Observed<Arc<str>>>,
    bytes: usize,
    folders: HashMap<String, Folder>,
    listings: Vec<(String, Listing)>,
}

impl Source {
    /// Over a clone; contents over the bound are unavailable.
    pub(crate) fn open(git: &Git, largest: u64) -> Result<Self, BacktestError> {
        Ok(Self {
            state: Mutex::new(State {
                objects: git.objects()?,
                new: HashMap::new(),
                old: HashMap::new(),
                bytes: 0,
                folders: HashMap::new(),
                listings: Vec::new(),
            }),
            largest,
        })
    }

    /// The files of a tree that a listing covers; prefixes ending in `/`, or whole paths.
    pub(crate) fn listing(&self, tree: &str, covers: &[String]) -> Result<Listing, BacktestError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = state.listings.iter().position(|(known, _)| known == tree) {
            let found = state.listings.remove(at);
            let listing = found.1.clone();
            state.listings.insert(0, found);
            return Ok(listing);
        }
        let mut files = BTreeMap::new();
        state.collect(tree, "", covers, 0, &mut files)?;
        let listing = Arc::new(files);
        state.listings.truncate(KEPT_LISTINGS - 1);
        state.listings.insert(0, (tree.to_owned(), listing.clone()));
        Ok(listing)
    }

    /// Reads the contents of a listing, as they are there elsewhere before judging begins.
    pub(crate) fn read_ahead(&self, listing: &Listing) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let files = listing.values().filter(|entry| entry.mode != EntryMode::Submodule);
        for entry in files {
            let _kept = state.blob(entry.id.as_str(), self.largest);
        }
    }

    /// What differs between two trees, by path; a file that only moved is a rename.
    pub(crate) fn changes(&self, before: &str, after: &str) -> Result<Vec<ChangedFile>, BacktestError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = Changes::default();
        state.differ(Some(before), Some(after), "", 0, &mut found)?;
        Ok(found.list())
    }
}

impl BlobSource for Source {
    fn blob(&self, id: &BlobId) -> Observed<Arc<str>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.blob(id.as_str(), self.largest)
    }
}

/// Whether anything under a folder is covered.
fn leads(covers: &[String], folder: &str) -> bool {
    covers.is_empty()
        || covers
            .iter()
            .any(|cover| cover.starts_with(folder) || (cover.ends_with('/') && folder.starts_with(cover.as_str())))
}

fn covered(covers: &[String], path: &str) -> bool {
    covers.is_empty()
        || covers.iter().any(|cover| {
            if cover.ends_with('/') {
                path.starts_with(cover.as_str())
            } else {
                path == cover
            }
        })
}

fn broken(why: impl Into<String>) -> BacktestError {
    BacktestError::Git {
        command: "cat-file".into(),
        why: why.into(),
    }
}

impl State {
    fn blob(&mut self, id: &str, largest: u64) -> Observed<Arc<str>> {
        if let Some(known) = self.new.get(id) {
            return known.clone();
        }
        let found = match self.old.remove(id) {
            Some(known) => known,
            None => match self.read(id, largest) {
                Ok(Object::Here(Kind::Blob, content)) => match String::from_utf8(content) {
                    Ok(text) => Observed::Present(Arc::from(text)),
                    Err(_) => Observed::unavailable(CauseKind::Malformed, id, "it is not UTF-8"),
                },
                Ok(Object::TooLarge(size)) => {
                    Observed::unavailable(CauseKind::TooLarge, id, format!("it has {size} bytes"))
                }
                Ok(Object::Here(..) | Object::Missing) => Observed::Absent,
                Err(error) => return Observed::unavailable(CauseKind::Transient, id, error.to_string()),
            },
        };
        self.bytes += found.present().map_or(0, |text| text.len()) + 100;
        if self.bytes > KEPT_BYTES / 2 {
            self.old = std::mem::take(&mut self.new);
            self.bytes = 0;
        }
        self.new.insert(id.to_owned(), found.clone());
        found
    }

    fn read(&mut self, id: &str, largest: u64) -> std::io::Result<Object> {
        let begun = Instant::now();
        let found = self.objects.get(id, largest);
        READING.set(READING.get() + begun.elapsed());
        found
    }

    fn folder(&mut self, id: &str) -> Result<Folder, BacktestError> {
        if let Some(known) = self.folders.get(id) {
            return Ok(known.clone());
        }
        let content = match self.objects.get(id, FOLDER_BYTES) {
            Ok(Object::Here(Kind::Tree, content)) => content,
            Ok(Object::TooLarge(size)) => return Err(broken(format!("the folder {id} has {size} bytes"))),
            Ok(_) => return Err(broken(format!("the clone lacks the folder {id}; it is incomplete"))),
            Err(error) => return Err(broken(error.to_string())),
        };
        let folder: Folder = Arc::new(parse_tree(&content).ok_or_else(|| broken(format!("{id} is no folder")))?);
        if self.folders.len() >= KEPT_FOLDERS {
            self.folders.clear();
        }
        self.folders.insert(id.to_owned(), folder.clone());
        Ok(folder)
    }

    fn collect(
        &mut self,
        tree: &str,
        at: &str,
        covers: &[String],
        depth: usize,
        out: &mut BTreeMap<String, TreeEntry>,
    ) -> Result<(), BacktestError> {
        if depth > DEEPEST {
            return Err(broken("folders are nested too deeply"));
        }
        for item in self.folder(tree)?.iter() {
            let path = format!("{at}{}", item.name);
            match item.is {
                None => {
                    let inside = format!("{path}/");
                    if leads(covers, &inside) {
                        self.collect(&item.id, &inside, covers, depth + 1, out)?;
                    }
                }
                Some(mode) if covered(covers, &path) => {
                    if let Ok(id) = item.id.parse() {
                        out.insert(path, TreeEntry { mode, id });
                    }
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    fn differ(
        &mut self,
        before: Option<&str>,
        after: Option<&str>,
        at: &str,
        depth: usize,
        out: &mut Changes,
    ) -> Result<(), BacktestError> {
        if before == after {
            return Ok(());
        }
        if depth > DEEPEST {
            return Err(broken("folders are nested too deeply"));
        }
        let mut read = |tree: Option<&str>| tree.map_or_else(|| Ok(Folder::default()), |id| self.folder(id));
        let (old, new) = (read(before)?, read(after)?);
        let mut names: BTreeMap<&str, (Option<&Item>, Option<&Item>)> = BTreeMap::new();
        for item in old.iter() {
            names.entry(&item.name).or_default().0 = Some(item);
        }
        for item in new.iter() {
            names.entry(&item.name).or_default().1 = Some(item);
        }
        for (name, (old, new)) in names {
            let path = format!("{at}{name}");
            let folder = |item: Option<&Item>| item.filter(|item| item.is.is_none()).map(|item| item.id.clone());
            let file = |item: Option<&Item>| {
                item.filter(|item| item.is.is_some())
                    .map(|item| (item.is, item.id.clone()))
            };
            let (old_file, new_file) = (file(old), file(new));
            match (old_file, new_file) {
                (None, Some((_, id))) => out.added.push((path.clone(), id)),
                (Some((_, id)), None) => out.removed.push((path.clone(), id)),
                (Some(old), Some(new)) if old != new => out.modified.push(path.clone()),
                _ => {}
            }
            self.differ(
                folder(old).as_deref(),
                folder(new).as_deref(),
                &format!("{path}/"),
                depth + 1,
                out,
            )?;
        }
        Ok(())
    }
}

/// Paths with the ids of their contents.
#[derive(Default)]
struct Changes {
    added: Vec<(String, String)>,
    removed: Vec<(String, String)>,
    modified: Vec<String>,
}

impl Changes {
    fn list(mut self) -> Vec<ChangedFile> {
        let change = |path: String, previous_path: Option<String>, status| ChangedFile {
            path,
            previous_path,
            status,
        };
        let mut out: Vec<ChangedFile> = Vec::new();
        for (path, id) in self.added {
            match self.removed.iter().position(|(_, gone)| *gone == id) {
                Some(at) => out.push(change(path, Some(self.removed.remove(at).0), ChangeStatus::Renamed)),
                None => out.push(change(path, None, ChangeStatus::Added)),
            }
        }
        out.extend(
            self.removed
                .into_iter()
                .map(|(path, _)| change(path, None, ChangeStatus::Removed)),
        );
        out.extend(
            self.modified
                .into_iter()
                .map(|path| change(path, None, ChangeStatus::Modified)),
        );
        out.sort_by(|left, right| left.path.cmp(&right.path));
        out
    }
}

/// A tree object: mode, space, name, zero, twenty bytes of id (thirty-two in a repository with SHA-256).
fn parse_tree(content: &[u8]) -> Option<Vec<Item>> {
    let hash = [20, 32]
        .into_iter()
        .find(|length| walk_tree(content, *length).is_some())?;
    walk_tree(content, hash)
}

fn walk_tree(mut rest: &[u8], hash: usize) -> Option<Vec<Item>> {
    let mut out = Vec::new();
    while !rest.is_empty() {
        let space = rest.iter().position(|byte| *byte == b' ')?;
        let zero = rest.iter().position(|byte| *byte == 0)?;
        let (mode, name) = (rest.get(..space)?, rest.get(space + 1..zero)?);
        let id = rest.get(zero + 1..zero + 1 + hash)?;
        let is = match mode {
            b"40000" => None,
            b"120000" => Some(EntryMode::Symlink),
            b"160000" => Some(EntryMode::Submodule),
            b"100755" => Some(EntryMode::Executable),
            _ if mode.iter().all(u8::is_ascii_digit) => Some(EntryMode::File),
            _ => return None,
        };
        out.push(Item {
            name: String::from_utf8_lossy(name).into_owned(),
            id: hex(id),
            is,
        });
        rest = rest.get(zero + 1 + hash..)?;
    }
    Some(out)
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]])
        .map(char::from)
        .collect()
}
