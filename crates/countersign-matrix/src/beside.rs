//! Reads a revision beside another one that has been read: two revisions of a config of thousands of lines most often differ
//! in one entry, and the others need not be read again.
//!
//! The answer is that of [`Configs::read`], but for byte offsets inside of entries that are taken over. Whatever is unusual
//! (problems, anchors, several documents, keys that are not at the start of their line) is read as a whole.

use std::sync::Arc;

use countersign_yaml::{Entry as Pair, Limits, Strict, Value, parse};

use crate::entry::Entry;
use crate::files::Files;
use crate::read::{Configs, Masters, read_masters, read_runners};
use crate::read_entry::{Reader, Words};
use crate::rules::{Layout, MatrixRules};

/// A revision that has been read.
#[derive(Clone, Copy)]
pub struct Near<'n> {
    /// What was read.
    pub configs: &'n Configs,
    /// The texts of its master configs, in the layout's order; `None` for a missing one.
    pub texts: &'n [Option<Arc<str>>],
}

impl Configs {
    /// Reads a revision as [`Configs::read`] does, with the help of one that resembles it.
    #[must_use]
    pub fn read_beside(files: &dyn Files, layout: &Layout, rules: &MatrixRules, near: Near<'_>) -> Self {
        Self {
            masters: masters(files, layout, rules, near).unwrap_or_else(|| read_masters(files, layout, rules)),
            runners: read_runners(files, layout),
        }
    }
}

fn masters(files: &dyn Files, layout: &Layout, rules: &MatrixRules, near: Near<'_>) -> Option<Masters> {
    let known = &near.configs.masters;
    if !known.problems.is_empty() || !known.duplicates.is_empty() || near.texts.len() != layout.masters.len() {
        return None;
    }
    let mut masters = Masters::default();
    for (path, old) in layout.masters.iter().zip(near.texts) {
        let (old, new) = (old.as_ref()?, files.read(path)?);
        let own: Vec<&Arc<Entry>> = known
            .entries
            .iter()
            .filter(|entry| *entry.head.file == **path)
            .collect();
        for entry in file(&Arc::from(path.as_str()), old, &new, &own, rules)? {
            if !masters.take(entry) {
                return None;
            }
        }
    }
    Some(masters)
}

/// The entries of one file.
fn file(path: &Arc<str>, old: &str, new: &str, own: &[&Arc<Entry>], rules: &MatrixRules) -> Option<Vec<Arc<Entry>>> {
    if old == new {
        return Some(own.iter().map(|entry| Arc::clone(entry)).collect());
    }
    if new.len() > Limits::default().max_bytes || new.contains('\r') || old.contains('\r') {
        return None;
    }
    let line = |entry: &Arc<Entry>| entry.head.span.line as usize;
    // Keys in block style, one below the other.
    if own.iter().any(|entry| entry.head.span.column != 1) {
        return None;
    }
    let same = old
        .bytes()
        .zip(new.bytes())
        .take_while(|(left, right)| left == right)
        .count();
    let common = breaks(&old.as_bytes()[..same]);
    // The last entry that begins in the common part may differ further down; those before it do not.
    let kept = own.partition_point(|entry| line(entry) <= common).saturating_sub(1);
    let from = own.get(kept).filter(|_| kept > 0).map_or(1, |entry| line(entry));
    let (tail, to) = tail(old, new, same, own, kept);
    if from == 1 && to.is_none() {
        return None;
    }
    let lines: Vec<&str> = new.split_inclusive('\n').collect();
    let (first, last) = (from - 1, to.map_or(lines.len(), |to| to - 1));
    let rest = lines.get(first..last)?;
    let begins = |at: usize| lines.get(at).is_some_and(|line| plain_start(line));
    if (kept > 0 && !begins(first)) || (to.is_some() && !begins(last)) || rest.iter().any(|line| unusual(line)) {
        return None;
    }
    // Blank lines in front, so that every place is that of the whole file.
    let mut text = "\n".repeat(first);
    text.extend(rest.iter().copied());
    let mut out: Vec<Arc<Entry>> = own[..kept].iter().map(|entry| Arc::clone(entry)).collect();
    out.extend(entries(path, &text, rules)?);
    out.extend(own[tail..].iter().map(|entry| Arc::clone(entry)));
    Some(out)
}

/// From which entry on the end of the file is common, and on which line that one begins. Only where lines keep their numbers.
fn tail(old: &str, new: &str, same: usize, own: &[&Arc<Entry>], kept: usize) -> (usize, Option<usize>) {
    let all = breaks(old.as_bytes());
    let none = (own.len(), None);
    if all != breaks(new.as_bytes()) || !old.ends_with('\n') || !new.ends_with('\n') {
        return none;
    }
    let pairs = old.as_bytes()[same..]
        .iter()
        .rev()
        .zip(new.as_bytes()[same..].iter().rev());
    let shared = pairs.take_while(|(left, right)| left == right).count();
    let lines = breaks(&old.as_bytes()[old.len() - shared..]);
    // The first of them may begin in the part that differs.
    let first = all + 2 - lines.max(1);
    let at = own
        .partition_point(|entry| (entry.head.span.line as usize) < first)
        .max(kept + 1);
    own.get(at)
        .map_or(none, |entry| (at, Some(entry.head.span.line as usize)))
}

fn breaks(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

/// Whether a line begins with an ordinary key.
fn plain_start(line: &str) -> bool {
    line.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '"' | '\''))
}

/// Whether a line may reach beyond its own part of the file: anchors, aliases, documents, directives.
fn unusual(line: &str) -> bool {
    if line.starts_with("---") || line.starts_with("...") || line.starts_with('%') {
        return true;
    }
    let inside = line.trim_start();
    if inside.starts_with('#') {
        return false;
    }
    let bytes = inside.as_bytes();
    bytes.iter().enumerate().any(|(at, byte)| {
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        let after = bytes.get(at + 1);
        matches!(byte, b'&' | b'*')
            && before.is_none_or(|byte| matches!(byte, b' ' | b'\t' | b',' | b'[' | b'{' | b':' | b'-' | b'?'))
            && after.is_some_and(|byte| !byte.is_ascii_whitespace())
    })
}

/// The entries of a part of a file; nothing where there is anything to say about it.
fn entries(path: &Arc<str>, text: &str, rules: &MatrixRules) -> Option<Vec<Arc<Entry>>> {
    let document = parse(text, &Limits::default()).ok()?;
    if !document.duplicate_keys.is_empty() {
        return None;
    }
    if document.root.is_null() {
        return Some(Vec::new());
    }
    let Value::Map(map) = document.root.value else {
        return None;
    };
    let mut words = Words::default();
    let mut out = Vec::new();
    for Pair { key, value } in map.entries {
        let name: Arc<str> = Arc::from(key.as_str()?);
        if name.contains(['*', '?']) || key.span.column != 1 {
            return None;
        }
        let mut reader = Reader {
            strict: Strict::new(),
            rules,
            words: &mut words,
        };
        let entry = reader.entry(&name, path, key.span, value)?;
        if !reader.strict.problems.is_empty() {
            return None;
        }
        out.push(Arc::new(entry));
    }
    Some(out)
}
