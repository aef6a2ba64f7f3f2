//! Differences between two trees, as GitHub lists them: with renames, counts and patches.

use std::collections::HashMap;
use std::sync::Arc;

use similar::{ChangeTag, TextDiff};

use super::GitError;
use super::object::{Entry, Kind, Mode};
use super::store::Store;

/// A patch longer than this is left out, as GitHub does for a single file.
const MAX_PATCH: usize = 500_000;
/// Above this many candidate pairs only exact renames are found.
const MAX_PAIRS: usize = 40_000;

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

struct Change {
    path: String,
    old: Option<Entry>,
    new: Option<Entry>,
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

    /// Added → removed, by index: exact copies first, then the most similar one that shares half of its lines.
    fn renames(&mut self, changes: &[Change]) -> Result<HashMap<usize, usize>, GitError> {
        let added: Vec<usize> = (0..changes.len()).filter(|i| changes[*i].old.is_none()).collect();
        let mut removed: Vec<usize> = (0..changes.len()).filter(|i| changes[*i].new.is_none()).collect();
        let mut pairs = HashMap::new();
        for a in &added {
            let wanted = changes[*a].new.as_ref().map(|e| &e.sha);
            if let Some(at) = removed
                .iter()
                .position(|r| changes[*r].old.as_ref().map(|e| &e.sha) == wanted)
            {
                pairs.insert(*a, removed.remove(at));
            }
        }
        if added.len().saturating_mul(removed.len()) > MAX_PAIRS {
            return Ok(pairs);
        }
        let mut scored = Vec::new();
        let mut lines: HashMap<usize, HashMap<Vec<u8>, usize>> = HashMap::new();
        for i in added.iter().filter(|a| !pairs.contains_key(a)).chain(&removed) {
            let entry = changes[*i].new.as_ref().or(changes[*i].old.as_ref());
            let data = entry.map(|e| self.blob(&e.sha)).transpose()?.unwrap_or_default();
            let mut counts: HashMap<Vec<u8>, usize> = HashMap::new();
            for line in data.split_inclusive(|b| *b == b'\n') {
                *counts.entry(line.to_vec()).or_default() += line.len();
            }
            lines.insert(*i, counts);
        }
        for a in added.iter().filter(|a| !pairs.contains_key(a)) {
            for r in &removed {
                let (Some(x), Some(y)) = (lines.get(a), lines.get(r)) else {
                    continue;
                };
                let shared: usize = x.iter().map(|(line, n)| y.get(line).map_or(0, |m| (*m).min(*n))).sum();
                let largest = x.values().sum::<usize>().max(y.values().sum::<usize>());
                if shared > 0 && shared * 2 >= largest {
                    scored.push((shared * 1_000 / largest.max(1), *a, *r));
                }
            }
        }
        scored.sort_by(|x, y| y.0.cmp(&x.0).then(x.1.cmp(&y.1)).then(x.2.cmp(&y.2)));
        for (_, a, r) in scored {
            if !pairs.contains_key(&a) && !pairs.values().any(|v| *v == r) {
                pairs.insert(a, r);
            }
        }
        Ok(pairs)
    }

    fn blob(&mut self, sha: &str) -> Result<Vec<u8>, GitError> {
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
    let diff = TextDiff::from_lines(before, after);
    let (mut additions, mut deletions) = (0, 0);
    for change in diff.iter_all_changes() {
        match change.tag() {
            ChangeTag::Insert => additions += 1,
            ChangeTag::Delete => deletions += 1,
            ChangeTag::Equal => {}
        }
    }
    let text = diff.unified_diff().context_radius(3).to_string();
    let text = text.trim_end_matches('\n').to_owned();
    (
        additions,
        deletions,
        (!text.is_empty() && text.len() <= MAX_PATCH).then_some(text),
    )
}
