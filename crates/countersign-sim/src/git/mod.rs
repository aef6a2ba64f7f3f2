//! Git history without a working tree: objects made here (with the SHA-1s that git would give them) over the objects of a
//! clone, read through one `git cat-file --batch` process. Walks, merge bases and diffs are computed on both alike.

mod clone;
mod diff;
mod object;
mod rename;
mod store;
mod walk;

pub(crate) use diff::FileDiff;
pub(crate) use object::{Commit, Entry, Kind, Mode, Person};
pub(crate) use store::{ModeBits, NewCommit, NewFile, Store, Told, is_sha};

/// What can go wrong with a clone.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// The `git` program cannot be started, or ended.
    #[error("git in {path}: {message}")]
    Process {
        /// The git directory.
        path: String,
        /// The reason.
        message: String,
    },
    /// An object that is not what it should be.
    #[error("object {sha} is not a readable {expected}")]
    Malformed {
        /// The object.
        sha: String,
        /// What it was read as.
        expected: &'static str,
    },
}
