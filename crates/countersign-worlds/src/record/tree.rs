//! Commits with the files that were gathered of them: the merge base whole, all others as changes to it.

use std::collections::BTreeMap;

use countersign_core::evidence::{EntryMode, Tree, TreeEntry};
use countersign_core::{CommitSha, Evidence, Observed};
use countersign_sim::world::GapSpec;
use countersign_sim::world::repo::CommitSpec;
use countersign_sim::world::spell::{FileSpec, Files, FullFile};

use super::gap;

/// The commits of a world.
pub(super) fn commits(evidence: &Evidence, gaps: &mut BTreeMap<String, GapSpec>) -> Vec<CommitSpec> {
    let base = evidence.merge_base.present();
    let base_tree = base.and_then(|sha| evidence.trees.get(sha)).and_then(Observed::present);
    let mut out: Vec<CommitSpec> = Vec::new();
    // The parent has to come first.
    let first = base.into_iter().filter(|sha| evidence.trees.contains_key(*sha));
    let rest = evidence.trees.keys().filter(|sha| Some(*sha) != base);
    for sha in first.chain(rest) {
        let parent = base.filter(|base| *base != sha && evidence.trees.contains_key(*base));
        let mut spec = told(evidence, sha);
        spec.parent = parent.map(ToString::to_string);
        match evidence.trees.get(sha) {
            Some(Observed::Present(tree)) => {
                spec.covers = Some(tree.covers.clone());
                spec.files = files(evidence, tree, base_tree.filter(|_| parent.is_some()));
            }
            Some(Observed::Unavailable(cause)) => gap(gaps, &format!("the files of commit {}", sha.short()), cause),
            Some(Observed::Absent) | None => {}
        }
        out.push(spec);
    }
    for commit in evidence.commits.present().into_iter().flatten() {
        if !evidence.trees.contains_key(&commit.sha) {
            out.push(told(evidence, &commit.sha));
        }
    }
    out
}

/// What is known of a commit beside its files.
fn told(evidence: &Evidence, sha: &CommitSha) -> CommitSpec {
    let known = evidence
        .commits
        .present()
        .into_iter()
        .flatten()
        .find(|commit| commit.sha == *sha);
    CommitSpec {
        sha: Some(sha.to_string()),
        message: known.map(|commit| commit.headline.clone()),
        date: known.and_then(|commit| commit.committed_at),
        parent_count: known.map(|commit| commit.parents),
        ..CommitSpec::default()
    }
}

/// The files of a tree, or what differs from the base's.
fn files(evidence: &Evidence, tree: &Tree, base: Option<&Tree>) -> Files {
    let mut out = Files::new();
    for (path, entry) in tree.entries.iter() {
        if base.is_some_and(|base| base.entries.get(path) == Some(entry)) {
            continue;
        }
        out.insert(path.clone(), file(evidence, entry));
    }
    if let Some(base) = base {
        let gone = base
            .entries
            .keys()
            .filter(|path| tree.covers(path) && !tree.entries.contains_key(*path));
        out.extend(gone.map(|path| (path.clone(), FileSpec::Deleted)));
    }
    out
}

fn file(evidence: &Evidence, entry: &TreeEntry) -> FileSpec {
    let id = entry.id.to_string();
    let text = match evidence.blobs.get(&entry.id) {
        Observed::Present(text) => Some(text.to_string()),
        Observed::Absent | Observed::Unavailable(_) => None,
    };
    match (entry.mode, text) {
        (EntryMode::Submodule, _) => FileSpec::Full(FullFile {
            submodule: Some(id),
            ..FullFile::default()
        }),
        (EntryMode::File, Some(text)) => FileSpec::Text(text),
        (EntryMode::Executable, Some(text)) => FileSpec::Full(FullFile {
            text: Some(text),
            executable: true,
            ..FullFile::default()
        }),
        (EntryMode::Symlink, Some(target)) => FileSpec::Full(FullFile {
            symlink: Some(target),
            ..FullFile::default()
        }),
        (mode, None) => FileSpec::Full(FullFile {
            id: Some(id),
            executable: mode == EntryMode::Executable,
            ..FullFile::default()
        }),
    }
}
