//! Which added file is a removed one under a new path: the rules of `git diff -M`, which GitHub shows. Identical files come first,
//! then files whose name is unique on both sides and that are very much alike, then the most similar of all pairs.

use std::collections::HashMap;

use super::GitError;
use super::diff::Change;
use super::object::Mode;
use super::store::Store;

/// Similarity is counted in these parts.
const FULL: u64 = 60_000;
/// From here on a pair is a rename: half.
const HALF: u64 = FULL / 2;
/// From here on a pair of unique names is one without looking further.
const UNIQUE_NAME: u64 = HALF + (FULL - HALF) / 2;
/// Only so many sources are remembered for each added file.
const CANDIDATES: usize = 4;
/// Above this many pairs only the first two rules are used.
const MAX_PAIRS: usize = 1_000_000;
/// Lines are compared in pieces of at most this length.
const PIECE: usize = 64;

/// A file's size, and how many bytes of it are each piece.
struct Pieces {
    size: u64,
    counts: HashMap<Vec<u8>, u64>,
}

#[derive(Debug, Clone, Copy)]
struct Candidate {
    added: usize,
    removed: usize,
    score: u64,
    same_name: bool,
}

impl Candidate {
    fn key(&self) -> (u64, bool) {
        (self.score, self.same_name)
    }
}

impl Store {
    /// Added → removed, by index into the changes, which are in path order.
    pub(super) fn renames(&mut self, changes: &[Change]) -> Result<HashMap<usize, usize>, GitError> {
        let added: Vec<usize> = (0..changes.len()).filter(|i| changes[*i].old.is_none()).collect();
        let removed: Vec<usize> = (0..changes.len()).filter(|i| changes[*i].new.is_none()).collect();
        let mut pairs: HashMap<usize, usize> = HashMap::new();
        let mut used = vec![false; changes.len()];
        for a in &added {
            let same = removed
                .iter()
                .filter(|r| !used[**r] && identical(&changes[*a], &changes[**r]));
            // The first of those with the same name, else the first.
            let mut best: Option<usize> = None;
            for r in same {
                let named = name(&changes[*r].path) == name(&changes[*a].path);
                if best.is_none() || (named && best.is_some_and(|b| name(&changes[b].path) != name(&changes[*a].path)))
                {
                    best = Some(*r);
                }
            }
            if let Some(r) = best {
                used[r] = true;
                pairs.insert(*a, r);
            }
        }
        let mut pieces: HashMap<usize, Pieces> = HashMap::new();
        let left = |list: &[usize], taken: &dyn Fn(usize) -> bool| -> Vec<usize> {
            list.iter().copied().filter(|i| !taken(*i)).collect()
        };
        let free_added = left(&added, &|i| pairs.contains_key(&i));
        let free_removed = left(&removed, &|i| used[i]);
        let (from, to) = (unique(changes, &free_removed), unique(changes, &free_added));
        for r in &free_removed {
            let base = name(&changes[*r].path);
            let (Some(Some(_)), Some(Some(a))) = (from.get(base), to.get(base)) else {
                continue;
            };
            if self.similarity(changes, *a, *r, &mut pieces)? >= UNIQUE_NAME {
                used[*r] = true;
                pairs.insert(*a, *r);
            }
        }
        let free_added = left(&added, &|i| pairs.contains_key(&i));
        let free_removed = left(&removed, &|i| used[i]);
        if free_added.len().saturating_mul(free_removed.len()) > MAX_PAIRS {
            return Ok(pairs);
        }
        let mut all: Vec<Candidate> = Vec::new();
        for a in &free_added {
            let mut kept: Vec<Candidate> = Vec::new();
            for r in &free_removed {
                let score = self.similarity(changes, *a, *r, &mut pieces)?;
                let same_name = name(&changes[*r].path) == name(&changes[*a].path);
                let candidate = Candidate {
                    added: *a,
                    removed: *r,
                    score,
                    same_name,
                };
                if kept.len() < CANDIDATES {
                    kept.push(candidate);
                } else if let Some(worst) = kept.iter_mut().min_by_key(|c| c.key())
                    && worst.key() < candidate.key()
                {
                    *worst = candidate;
                }
            }
            all.append(&mut kept);
        }
        all.sort_by_key(|y| std::cmp::Reverse(y.key()));
        for c in all.into_iter().take_while(|c| c.score >= HALF) {
            if !pairs.contains_key(&c.added) && !used[c.removed] {
                used[c.removed] = true;
                pairs.insert(c.added, c.removed);
            }
        }
        Ok(pairs)
    }

    /// How much of the larger file the two have in common, in parts of [`FULL`].
    fn similarity(
        &mut self,
        changes: &[Change],
        added: usize,
        removed: usize,
        pieces: &mut HashMap<usize, Pieces>,
    ) -> Result<u64, GitError> {
        for i in [added, removed] {
            let Some(entry) = changes[i].new.as_ref().or(changes[i].old.as_ref()) else {
                return Ok(0);
            };
            if !matches!(entry.mode, Mode::File | Mode::Executable) {
                return Ok(0);
            }
            if let std::collections::hash_map::Entry::Vacant(vacant) = pieces.entry(i) {
                let data = self.blob(&entry.sha)?;
                vacant.insert(cut(&data));
            }
        }
        let (Some(x), Some(y)) = (pieces.get(&added), pieces.get(&removed)) else {
            return Ok(0);
        };
        let (larger, smaller) = (x.size.max(y.size), x.size.min(y.size));
        if larger == 0 || larger * (FULL - HALF) < (larger - smaller) * FULL {
            return Ok(0);
        }
        let shared: u64 = x
            .counts
            .iter()
            .map(|(piece, n)| y.counts.get(piece).map_or(0, |m| (*m).min(*n)))
            .sum();
        Ok(shared * FULL / larger)
    }
}

fn identical(added: &Change, removed: &Change) -> bool {
    let (Some(new), Some(old)) = (&added.new, &removed.old) else {
        return false;
    };
    let plain = |mode: Mode| matches!(mode, Mode::File | Mode::Executable);
    new.sha == old.sha && (new.mode == old.mode || (plain(new.mode) && plain(old.mode)))
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Name → index; none for a name that occurs twice.
fn unique<'a>(changes: &'a [Change], list: &[usize]) -> HashMap<&'a str, Option<usize>> {
    let mut out: HashMap<&str, Option<usize>> = HashMap::new();
    for i in list {
        out.entry(name(&changes[*i].path))
            .and_modify(|slot| *slot = None)
            .or_insert(Some(*i));
    }
    out
}

/// Cuts a file into lines, and long lines into pieces. In text, the carriage return before a newline does not count.
fn cut(data: &[u8]) -> Pieces {
    let text = !data[..data.len().min(8_000)].contains(&0);
    let mut counts: HashMap<Vec<u8>, u64> = HashMap::new();
    let mut piece = Vec::new();
    let mut put = |piece: &mut Vec<u8>| {
        let length = piece.len() as u64;
        *counts.entry(std::mem::take(piece)).or_default() += length;
    };
    for (i, byte) in data.iter().enumerate() {
        if text && *byte == b'\r' && data.get(i + 1) == Some(&b'\n') {
            continue;
        }
        piece.push(*byte);
        if piece.len() == PIECE || *byte == b'\n' {
            put(&mut piece);
        }
    }
    if !piece.is_empty() {
        put(&mut piece);
    }
    Pieces {
        size: data.len() as u64,
        counts,
    }
}
