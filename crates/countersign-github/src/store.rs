//! What is kept between gatherings: listings of commits, contents of files, contents of artifacts. All of it is named by
//! something that never changes its content, and all of it is bounded by bytes.
//!
//! The repository's name is part of every key: what one repository holds is never shown for another.

use std::collections::BTreeMap;
use std::sync::Arc;

use countersign_core::evidence::EntryMode;
use countersign_core::{BlobId, CommitSha, Observed, RepoName};
use moka::sync::Cache;

use crate::config::Limits;

/// A path of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) mode: EntryMode,
    pub(crate) id: BlobId,
    pub(crate) size: u64,
}

/// The paths of a commit below some prefixes.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    pub(crate) entries: BTreeMap<String, Listed>,
    /// Bytes of all files of the commit, also of those that are not listed here: what its archive unpacks to.
    pub(crate) bytes: u64,
}

/// Shared [`Paths`].
pub(crate) type Listing = Arc<Paths>;

/// A file's content, or that it is no text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    Text(Arc<str>),
    NotText,
}

/// Texts of an artifact by path, or why there are none.
pub(crate) type ArtifactFiles = Observed<BTreeMap<String, String>>;

pub(crate) struct Stores {
    listings: Cache<(String, CommitSha, u64), Listing>,
    blobs: Cache<(String, BlobId), Content>,
    artifacts: Cache<(String, u64), Arc<ArtifactFiles>>,
}

fn repository(name: &RepoName) -> String {
    name.as_str().to_ascii_lowercase()
}

fn bounded(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

impl Stores {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            listings: Cache::builder()
                .max_capacity(limits.tree_cache_bytes / 4)
                .weigher(|_, listing: &Listing| bounded(listing.entries.keys().map(|path| path.len() + 160).sum()))
                .build(),
            blobs: Cache::builder()
                .max_capacity(limits.tree_cache_bytes / 4 * 3)
                .weigher(|_, content: &Content| match content {
                    Content::Text(text) => bounded(text.len() + 160),
                    Content::NotText => 160,
                })
                .build(),
            artifacts: Cache::builder()
                .max_capacity(limits.artifact_cache_bytes)
                .weigher(|_, files: &Arc<ArtifactFiles>| match files.as_ref() {
                    Observed::Present(files) => {
                        bounded(files.iter().map(|(path, text)| path.len() + text.len() + 100).sum())
                    }
                    _ => 200,
                })
                .build(),
        }
    }

    pub(crate) fn listing(&self, name: &RepoName, sha: &CommitSha, covers: u64) -> Option<Listing> {
        self.listings.get(&(repository(name), sha.clone(), covers))
    }

    pub(crate) fn keep_listing(&self, name: &RepoName, sha: &CommitSha, covers: u64, listing: Listing) {
        self.listings.insert((repository(name), sha.clone(), covers), listing);
    }

    pub(crate) fn blob(&self, name: &RepoName, id: &BlobId) -> Option<Content> {
        self.blobs.get(&(repository(name), id.clone()))
    }

    pub(crate) fn keep_blob(&self, name: &RepoName, id: &BlobId, content: Content) {
        self.blobs.insert((repository(name), id.clone()), content);
    }

    pub(crate) fn artifact(&self, name: &RepoName, id: u64) -> Option<Arc<ArtifactFiles>> {
        self.artifacts.get(&(repository(name), id))
    }

    pub(crate) fn keep_artifact(&self, name: &RepoName, id: u64, files: Arc<ArtifactFiles>) {
        self.artifacts.insert((repository(name), id), files);
    }
}
