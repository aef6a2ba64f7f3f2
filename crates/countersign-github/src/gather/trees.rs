//! Trees: the listing of a commit from git's own data, contents by object id from memory, from one tarball, or one by one.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use countersign_core::evidence::{EntryMode, MemoryBlobs, Tree, TreeEntry};
use countersign_core::{BlobId, Cause, CauseKind, CommitSha, Observed};
use countersign_policy::EvidencePaths;
use futures::future::BoxFuture;

use super::archive::{self, blob_id, content};
use crate::calls::call::RAW;
use crate::calls::{Call, at_once};
use crate::client::RepoClient;
use crate::error::GitHubError;
use crate::store::{Content, Listed, Listing, Paths};
use crate::wire;

/// From so many missing contents on, a tarball is cheaper than single calls,
const TARBALL_FROM: usize = 4;
/// and from so many where it unpacks to much.
const LARGE_TARBALL_FROM: usize = 40;
/// Which is more than so many bytes.
const LARGE: u64 = 64 << 20;
/// Contents read one by one at most.
const SINGLE: usize = 400;
/// Of which so many at once.
const AT_ONCE: usize = 12;

/// Reads trees for one gathering.
pub(crate) struct Trees<'a> {
    pub(crate) repo: &'a RepoClient,
    pub(crate) paths: &'a EvidencePaths,
}

/// The trees and contents of one gathering, as they grow.
#[derive(Default)]
pub(crate) struct Grown {
    pub(crate) trees: BTreeMap<CommitSha, Observed<Tree>>,
    pub(crate) blobs: MemoryBlobs,
    /// Contents that are known to be no text.
    other: BTreeSet<BlobId>,
}

/// Which part of a commit's tree is evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// As the source of rules.
    pub trusted: bool,
    /// As what is judged.
    pub judged: bool,
}

/// What the tree of a commit covers. Empty = everything.
#[must_use]
pub fn covers(paths: &EvidencePaths, part: Part) -> Vec<String> {
    let lists = [(part.trusted, &paths.trusted), (part.judged, &paths.judged)];
    let lists = lists.into_iter().filter(|(wanted, _)| *wanted).map(|(_, list)| list);
    if lists.clone().any(Vec::is_empty) {
        return Vec::new();
    }
    let mut covers: Vec<String> = lists.flatten().cloned().collect();
    covers.sort_unstable();
    covers.dedup();
    covers
}

impl Trees<'_> {
    /// Everything that any commit's listing may be asked for; listings are kept for all of it, so that one serves both parts.
    /// Empty = the whole tree.
    fn all(&self) -> Vec<&str> {
        if self.paths.trusted.is_empty() || self.paths.judged.is_empty() {
            return Vec::new();
        }
        let mut all: Vec<&str> = self
            .paths
            .trusted
            .iter()
            .chain(&self.paths.judged)
            .map(String::as_str)
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    fn covers(&self, part: Part) -> Vec<String> {
        covers(self.paths, part)
    }

    /// The listing of a commit.
    pub(crate) async fn listing(&self, sha: &CommitSha) -> Result<Listing, Cause> {
        let all = self.all();
        let mut hasher = DefaultHasher::new();
        all.hash(&mut hasher);
        let covers = hasher.finish();
        let stores = &self.repo.hub.stores;
        let name = self.repo.name();
        if let Some(kept) = stores.listing(name, sha, covers) {
            return Ok(kept);
        }
        let what = files_of(sha);
        let call = Call::get(self.repo.path(["git", "trees", sha.as_str()]), &what)
            .query("recursive", 1)
            .passing();
        let answer: wire::TreeAnswer = self.repo.read(&call).await.map_err(|error| error.cause(&what))?;
        if answer.truncated {
            return Err(Cause::new(
                CauseKind::TooLarge,
                what,
                "GitHub lists only a part of them",
            ));
        }
        let bytes = answer.tree.iter().filter_map(|item| item.size).sum();
        let entries = answer.tree.into_iter().filter_map(|item| listed(item, &all)).collect();
        let listing: Listing = Arc::new(Paths { entries, bytes });
        stores.keep_listing(name, sha, covers, Arc::clone(&listing));
        Ok(listing)
    }

    /// Fetches the contents that listings name, into the store and into `grown`; what several of them name once. Returns
    /// what failed, by commit: a tree of which a content could not be read is not shown in part.
    pub(crate) async fn fetch(
        &self,
        listings: &[(&CommitSha, &Listing)],
        grown: &mut Grown,
    ) -> BTreeMap<CommitSha, Cause> {
        let mut failed = BTreeMap::new();
        let mut missing: Vec<(&CommitSha, BTreeSet<BlobId>, usize)> = listings
            .iter()
            .map(|(sha, listing)| {
                let from = if listing.bytes > LARGE {
                    LARGE_TARBALL_FROM
                } else {
                    TARBALL_FROM
                };
                (*sha, self.missing(listing, grown), from)
            })
            .collect();
        missing.sort_by_key(|(_, ids, _)| std::cmp::Reverse(ids.len()));
        for (sha, ids, from) in &mut missing {
            // One archive may have brought what the next commit lacked.
            ids.retain(|id| !grown.has(id));
            if ids.len() < *from {
                continue;
            }
            let call = Call::get(
                self.repo.path(["tarball", sha.as_str()]),
                format!("the archive of commit {}", sha.short()),
            );
            match archive::contents(self.repo, &call, ids, self.paths.max_file_bytes).await {
                Ok(found) => {
                    for (id, content) in found {
                        self.keep(id, content, grown);
                    }
                    ids.retain(|id| !grown.has(id));
                }
                Err(error) => {
                    failed.insert((*sha).clone(), error.cause(files_of(sha)));
                }
            }
            if ids.len() > SINGLE && !failed.contains_key(*sha) {
                let why = format!(
                    "{} files are not in the commit's archive, and more than {SINGLE} are not read one by one",
                    ids.len()
                );
                failed.insert((*sha).clone(), Cause::new(CauseKind::TooLarge, files_of(sha), why));
            }
        }
        missing.retain(|(sha, _, _)| !failed.contains_key(*sha));
        let single: BTreeSet<&BlobId> = missing
            .iter()
            .flat_map(|(_, ids, _)| ids)
            .filter(|id| !grown.has(id))
            .collect();
        let mut work: Vec<BoxFuture<'_, _>> = Vec::new();
        for id in single {
            work.push(Box::pin(async move { (id, self.single(id).await) }));
        }
        for (id, read) in at_once(AT_ONCE, work).await {
            match read {
                Ok(content) => self.keep(id.clone(), content, grown),
                Err(error) => {
                    for (sha, _, _) in missing.iter().filter(|(_, ids, _)| ids.contains(id)) {
                        failed.insert((*sha).clone(), error.cause(files_of(sha)));
                    }
                }
            }
        }
        failed
    }

    /// Reads trees of commits, with their contents.
    pub(crate) async fn read(&self, commits: &[(CommitSha, Part)], grown: &mut Grown) {
        let mut work: Vec<BoxFuture<'_, _>> = Vec::new();
        for (sha, _) in commits {
            work.push(Box::pin(self.listing(sha)));
        }
        let listings = at_once(AT_ONCE, work).await;
        let known: Vec<(&CommitSha, &Listing)> = commits
            .iter()
            .zip(&listings)
            .filter_map(|((sha, _), listing)| Some((sha, listing.as_ref().ok()?)))
            .collect();
        let mut failed = self.fetch(&known, grown).await;
        for ((sha, part), listing) in commits.iter().zip(listings) {
            let tree = match (listing, failed.remove(sha)) {
                (Ok(listing), None) => Observed::Present(self.tree(sha, &listing, *part)),
                (Err(cause), _) | (_, Some(cause)) => Observed::Unavailable(cause),
            };
            grown.trees.insert(sha.clone(), tree);
        }
    }

    /// The text of one file of a listing; `None` where it is no text.
    pub(crate) async fn text(&self, entry: &Listed) -> Result<Option<Arc<str>>, GitHubError> {
        let stores = &self.repo.hub.stores;
        let content = match stores.blob(self.repo.name(), &entry.id) {
            Some(kept) => kept,
            None => {
                let read = self.single(&entry.id).await?;
                stores.keep_blob(self.repo.name(), &entry.id, read.clone());
                read
            }
        };
        Ok(match content {
            Content::Text(text) => Some(text),
            Content::NotText => None,
        })
    }

    async fn single(&self, id: &BlobId) -> Result<Content, GitHubError> {
        let cap = usize::try_from(self.paths.max_file_bytes)
            .unwrap_or(usize::MAX)
            .saturating_add(1);
        let call = Call::get(
            self.repo.path(["git", "blobs", id.as_str()]),
            format!("file content {}", &id.as_str()[..8]),
        )
        .accept(RAW)
        .cap(cap)
        .passing();
        let bytes = self.repo.send(&call).await?.body;
        if blob_id(&bytes).as_ref() != Some(id) {
            return Err(GitHubError::Decode {
                what: call.what,
                path: String::new(),
                why: "the content has another object id".into(),
            });
        }
        Ok(content(bytes.to_vec()))
    }

    fn keep(&self, id: BlobId, content: Content, grown: &mut Grown) {
        self.repo.hub.stores.keep_blob(self.repo.name(), &id, content.clone());
        grown.take(id, content);
    }

    /// The ids whose contents are wanted and neither here nor in the store.
    fn missing(&self, listing: &Listing, grown: &mut Grown) -> BTreeSet<BlobId> {
        let mut missing = BTreeSet::new();
        for id in self.wanted(listing) {
            if grown.has(id) {
                continue;
            }
            match self.repo.hub.stores.blob(self.repo.name(), id) {
                Some(content) => grown.take(id.clone(), content),
                None => {
                    missing.insert(id.clone());
                }
            }
        }
        missing
    }

    /// Contents within the limits. Where all of them together are too large, the largest are left out: a pull request that
    /// adds bulk then hides its bulk, not the small files beside it.
    fn wanted<'l>(&self, listing: &'l Listing) -> Vec<&'l BlobId> {
        let mut files: Vec<(u64, &BlobId)> = listing
            .entries
            .values()
            .filter(|entry| entry.mode != EntryMode::Submodule && entry.size <= self.paths.max_file_bytes)
            .map(|entry| (entry.size, &entry.id))
            .collect();
        files.sort_unstable();
        files.dedup();
        let mut left = self.paths.max_tree_bytes;
        files
            .into_iter()
            .map_while(|(size, id)| {
                left = left.checked_sub(size)?;
                Some(id)
            })
            .collect()
    }

    /// The tree as evidence shows it.
    fn tree(&self, sha: &CommitSha, listing: &Listing, part: Part) -> Tree {
        let mut tree = Tree {
            commit: sha.clone(),
            covers: self.covers(part),
            entries: Arc::default(),
        };
        let entries = listing
            .entries
            .iter()
            .filter(|(path, _)| tree.covers(path))
            .map(|(path, entry)| {
                (
                    path.clone(),
                    TreeEntry {
                        mode: entry.mode,
                        id: entry.id.clone(),
                    },
                )
            })
            .collect();
        tree.entries = Arc::new(entries);
        tree
    }
}

impl Grown {
    fn take(&mut self, id: BlobId, content: Content) {
        match content {
            Content::Text(text) => {
                self.blobs.0.insert(id, text);
            }
            Content::NotText => {
                self.other.insert(id);
            }
        }
    }

    fn has(&self, id: &BlobId) -> bool {
        self.blobs.0.contains_key(id) || self.other.contains(id)
    }
}

fn files_of(sha: &CommitSha) -> String {
    format!("the files of commit {}", sha.short())
}

fn listed(item: wire::TreeItem, all: &[&str]) -> Option<(String, Listed)> {
    let mode = match item.mode.as_str() {
        "100755" => EntryMode::Executable,
        "120000" => EntryMode::Symlink,
        "160000" => EntryMode::Submodule,
        "040000" => return None,
        _ => EntryMode::File,
    };
    let covered = all.is_empty()
        || all.iter().any(|cover| {
            if cover.ends_with('/') {
                item.path.starts_with(cover)
            } else {
                item.path == *cover
            }
        });
    // No size: more than GitHub would say, so it is not read.
    let size = item
        .size
        .unwrap_or(if mode == EntryMode::Submodule { 0 } else { u64::MAX });
    covered.then_some((
        item.path,
        Listed {
            mode,
            id: item.sha,
            size,
        },
    ))
}
