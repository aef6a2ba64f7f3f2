//! Differences between two trees, as GitHub lists them: with renames, counts and patches.

use std::sync::Arc;

use imara_diff::{Algorithm, Diff, Hunk, InternedInput};

use super::GitError;
use super::object::{Entry, Kind, Mode};
use super::store::Store;

/// A patch longer than this is left out, as GitHub does for a single file.
const MAX_PATCH: usize = 500_000;
/// Lines around a change.
const CONTEXT: usize = 3;

/// One changed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileDiff {
    pub(crate) path: String,
    pub(crate) previous: Option<String>,
    pub(crate) status: &'static str,
    /// The blob at head, or at base for a removed file.
    pub(crate) sha: String,
    pub(crate) additions: u64,
    pub(crate) deletions: u64,
    pub(crate) patch: Option<String>,
}

pub(super) struct Change {
    pub(super) path: String,
    pub(super) old: Option<Entry>,
    pub(super) new: Option<Entry>,
}

impl Store {
    /// The changed files between two trees, in path order, with renames at the new path.
    pub(crate) fn diff(&mut self, old: &str, new: &str) -> Result<Arc<Vec<FileDiff>>, GitError> {
        let key = (old.to_owned(), new.to_owned());
        if let Some(done) = self.diffs.get(&key) {
            return Ok(done.clone());
        }
        let mut changes = Vec::new();
        self.tree_changes("", Some(old), Some(new), &mut changes)?;
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        let pairs = self.renames(&changes)?;
        let mut out = Vec::new();
        for (i, change) in changes.iter().enumerate() {
            // The removed half of a rename is told with the added one.
            if pairs.values().any(|from| *from == i) {
                continue;
            }
            let from = pairs.get(&i).map(|from| &changes[*from]);
            out.push(self.file_diff(change, from)?);
        }
        out.sort_by(|a, b| a.path.cmp(&b.path));
        let out = Arc::new(out);
        self.diffs.insert(key, out.clone());
        Ok(out)
    }

    fn tree_changes(
        &mut self,
        prefix: &str,
        old: Option<&str>,
        new: Option<&str>,
        out: &mut Vec<Change>,
    ) -> Result<(), GitError> {
        if old == new {
            return Ok(());
        }
        let mut sides: std::collections::BTreeMap<String, (Option<Entry>, Option<Entry>)> =
            std::collections::BTreeMap::new();
        if let Some(old) = old
            && let Some(tree) = self.tree(old)?
        {
            for e in tree.iter() {
                sides.entry(e.name.clone()).or_default().0 = Some(e.clone());
            }
        }
        if let Some(new) = new
            && let Some(tree) = self.tree(new)?
        {
            for e in tree.iter() {
                sides.entry(e.name.clone()).or_default().1 = Some(e.clone());
            }
        }
        for (name, (old, new)) in sides {
            if old == new {
                continue;
            }
            let path = format!("{prefix}{name}");
            let (old_tree, old_file) = split(old);
            let (new_tree, new_file) = split(new);
            if old_tree.is_some() || new_tree.is_some() {
                self.tree_changes(&format!("{path}/"), old_tree.as_deref(), new_tree.as_deref(), out)?;
            }
            if old_file.is_some() || new_file.is_some() {
                out.push(Change {
                    path,
                    old: old_file,
                    new: new_file,
                });
            }
        }
        Ok(())
    }

    pub(super) fn blob(&mut self, sha: &str) -> Result<Vec<u8>, GitError> {
        Ok(match self.read(sha)? {
            Some((Kind::Blob, data)) => data.to_vec(),
            _ => Vec::new(),
        })
    }

    fn file_diff(&mut self, change: &Change, from: Option<&Change>) -> Result<FileDiff, GitError> {
        let old = from.and_then(|f| f.old.as_ref()).or(change.old.as_ref());
        let new = change.new.as_ref();
        let before = old.map(|e| self.blob(&e.sha)).transpose()?.unwrap_or_default();
        let after = new.map(|e| self.blob(&e.sha)).transpose()?.unwrap_or_default();
        let status = match (old, new) {
            _ if from.is_some() => "renamed",
            (None, _) => "added",
            (_, None) => "removed",
            (Some(o), Some(n)) if o.sha == n.sha => "changed",
            _ => "modified",
        };
        let (additions, deletions, patch) = patch(&before, &after);
        let sha = new.or(old).map(|e| e.sha.clone()).unwrap_or_default();
        Ok(FileDiff {
            path: change.path.clone(),
            previous: from.map(|f| f.path.clone()),
            status,
            sha,
            additions,
            deletions,
            patch,
        })
    }
}

fn split(entry: Option<Entry>) -> (Option<String>, Option<Entry>) {
    match entry {
        Some(e) if e.mode == Mode::Tree => (Some(e.sha), None),
        other => (None, other),
    }
}

/// Added and removed lines, and the patch without its two header lines; no patch for binary or very large changes.
fn patch(before: &[u8], after: &[u8]) -> (u64, u64, Option<String>) {
    if before == after {
        return (0, 0, None);
    }
    let (Ok(before), Ok(after)) = (std::str::from_utf8(before), std::str::from_utf8(after)) else {
        return (0, 0, None);
    };
    if before.contains('\0') || after.contains('\0') {
        return (0, 0, None);
    }
    let input = InternedInput::new(before, after);
    let mut diff = Diff::compute(Algorithm::Myers, &input);
    // Moves runs of changed lines to where git shows them.
    diff.postprocess_lines(&input);
    let hunks: Vec<Hunk> = diff.hunks().collect();
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    let text = unified(&hunks, &old, &new);
    let patch = (!text.is_empty() && text.len() <= MAX_PATCH).then_some(text);
    (
        u64::from(diff.count_additions()),
        u64::from(diff.count_removals()),
        patch,
    )
}

/// The hunks as git prints them, without a newline at the end.
fn unified(hunks: &[Hunk], old: &[&str], new: &[&str]) -> String {
    let mut out = String::new();
    let mut at = 0;
    while at < hunks.len() {
        // Hunks whose context would touch are printed as one.
        let mut last = at;
        while last + 1 < hunks.len() && (hunks[last + 1].before.start - hunks[last].before.end) as usize <= 2 * CONTEXT
        {
            last += 1;
        }
        let group = &hunks[at..=last];
        let lead = CONTEXT.min(group[0].before.start as usize);
        let (old_start, new_start) = (
            group[0].before.start as usize - lead,
            group[0].after.start as usize - lead,
        );
        let (old_last, new_last) = (hunks[last].before.end as usize, hunks[last].after.end as usize);
        let trail = CONTEXT.min(old.len() - old_last);
        let range = |start: usize, end: usize| match end - start {
            // An empty side is said to lie after the line before it.
            0 => format!("{start},0"),
            1 => format!("{}", start + 1),
            len => format!("{},{len}", start + 1),
        };
        let (before, after) = (range(old_start, old_last + trail), range(new_start, new_last + trail));
        out.push_str(&format!("@@ -{before} +{after} @@\n"));
        let mut pos = old_start;
        for hunk in group {
            let (from, to) = (hunk.before.start as usize, hunk.before.end as usize);
            lines(&mut out, ' ', &old[pos..from]);
            lines(&mut out, '-', &old[from..to]);
            lines(&mut out, '+', &new[hunk.after.start as usize..hunk.after.end as usize]);
            pos = to;
        }
        lines(&mut out, ' ', &old[pos..old_last + trail]);
        at = last + 1;
    }
    out.truncate(out.trim_end_matches('\n').len());
    out
}

fn lines(out: &mut String, sign: char, lines: &[&str]) {
    for line in lines {
        out.push(sign);
        out.push_str(line);
        if !line.ends_with('\n') {
            out.push_str("\n\\ No newline at end of file\n");
        }
    }
}
