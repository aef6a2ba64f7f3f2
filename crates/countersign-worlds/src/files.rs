//! Trees of commits, and earlier versions of a file.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use countersign_core::evidence::{EntryMode, FileVersion, Tree, TreeEntry};
use countersign_core::{CauseKind, CommitSha, Observed};
use countersign_github::gather::wanted::{Part, covers};
use countersign_policy::EvidencePaths;
use countersign_sim::still::{Still, StillMode};

use crate::WorldsError;
use crate::gaps::Gaps;

/// Changes of a file that are looked back at.
const CHANGES: usize = 50;
/// Commits that are looked back at.
const COMMITS: usize = 20_000;

pub(crate) fn tree(
    still: &mut Still,
    gaps: &Gaps<'_>,
    repository: &str,
    sha: &CommitSha,
    part: Part,
    paths: &EvidencePaths,
) -> Result<Observed<Tree>, WorldsError> {
    let mut tree = Tree {
        commit: sha.clone(),
        covers: covers(paths, part),
        entries: Arc::default(),
    };
    if let Some(recorded) = still.covers(repository, sha.as_str()) {
        tree.covers = recorded;
    }
    let enter = |folder: &str| {
        tree.covers.is_empty()
            || tree
                .covers
                .iter()
                .any(|cover| cover.starts_with(folder) || folder.starts_with(cover.as_str()))
    };
    let found = still.tree(repository, sha.as_str(), &|path| tree.covers(path), &enter)?;
    let Some(found) = found else {
        return Ok(gaps.missing(&format!("the files of commit {}", sha.short())));
    };
    let mut entries = BTreeMap::new();
    for (path, mode, id) in found {
        let mode = match mode {
            StillMode::File => EntryMode::File,
            StillMode::Executable => EntryMode::Executable,
            StillMode::Symlink => EntryMode::Symlink,
            StillMode::Submodule => EntryMode::Submodule,
        };
        let id = id.parse().map_err(|_| WorldsError::Form {
            at: path.clone(),
            why: "its object has no git id".to_owned(),
        })?;
        entries.insert(path, TreeEntry { mode, id });
    }
    tree.entries = Arc::new(entries);
    Ok(Observed::Present(tree))
}

/// The text of a file before the first change that is younger than `since`; absent where there was no such change, or no
/// text before. As the gatherer for GitHub asks.
pub(crate) fn previous(
    still: &mut Still,
    gaps: &Gaps<'_>,
    repository: &str,
    path: &str,
    trusted: &CommitSha,
    since: DateTime<Utc>,
    largest: u64,
) -> Result<Observed<FileVersion>, WorldsError> {
    if let Some(earlier) = still.earlier(repository, path) {
        let commit = earlier.commit.parse().map_err(|_| WorldsError::Form {
            at: format!("earlier.{path}.commit"),
            why: "not a full SHA".to_owned(),
        })?;
        return Ok(Observed::Present(FileVersion {
            commit,
            replaced_at: earlier.replaced_at,
            text: earlier.text.clone(),
        }));
    }
    if still.is_told(repository, trusted.as_str()) {
        // Recorded, and nothing was there.
        return Ok(gaps
            .known(&format!("earlier versions of {path}"))
            .unwrap_or(Observed::Absent));
    }
    let mut at = still.commit(repository, trusted.as_str())?;
    let mut younger: Option<(DateTime<Utc>, String)> = None;
    let mut changes = 0;
    for _ in 0..COMMITS {
        let Some(commit) = at else { break };
        let Some(date) = commit.committed_at.filter(|date| *date > since) else {
            break;
        };
        let Some(parent) = commit.parents.first() else { break };
        if still.blob_at(repository, &commit.sha, path)? != still.blob_at(repository, parent, path)? {
            younger = Some((date, parent.clone()));
            changes += 1;
            if changes == CHANGES {
                break;
            }
        }
        at = still.commit(repository, parent)?;
    }
    let Some((replaced_at, parent)) = younger else {
        return Ok(Observed::Absent);
    };
    let what = format!("earlier versions of {path}");
    let Some(blob) = still.blob_at(repository, &parent, path)? else {
        return Ok(Observed::Absent);
    };
    let bytes = still.blob(repository, &blob)?.unwrap_or_default();
    if bytes.len() as u64 > largest {
        return Ok(Observed::unavailable(
            CauseKind::TooLarge,
            what,
            "it is larger than is kept",
        ));
    }
    let commit = parent.parse().map_err(|_| WorldsError::Form {
        at: what.clone(),
        why: "its commit has no git id".to_owned(),
    })?;
    Ok(match String::from_utf8(bytes.to_vec()) {
        Ok(text) => Observed::Present(FileVersion {
            commit,
            replaced_at,
            text,
        }),
        Err(_) => Observed::unavailable(CauseKind::Malformed, what, "the text is not UTF-8"),
    })
}
