//! Reads a revision beside another one that has been read: two revisions of a config of thousands of lines most often differ
//! in one entry, and the others need not be read again.
//!
//! The answer is that of [`Configs::read`], but for byte offsets inside of entries. Whatever is unusual (keys twice, anchors,
//! several documents, keys that are not at the start of their line) is read as a whole. An entry that has a problem is read
//! anew each time.

use std::collections::HashMap;
use std::sync::Arc;

use countersign_yaml::{Entry as Pair, Limits, Node, Piece, Root, Span, Strict, Value, pieces};

use crate::entry::{Entry, Problem};
use crate::files::Files;
use crate::read::{Configs, Masters, of_entry, read_masters, read_runners};
use crate::read_entry::{Reader, Words};
use crate::rules::{Layout, MatrixRules};

/// A revision that has been read.
#[derive(Clone, Copy)]
pub struct Near<'n> {
    /// What was read.
    pub configs: &'n Configs,
    /// The texts of its master configs, in the layout's order, then that of its runners file; `None` for a missing one.
    pub texts: &'n [Option<Arc<str>>],
    /// Whether it was read by the same rules. By others its entries are judged anew, but their YAML need not be read again.
    pub same_rules: bool,
}

impl Configs {
    /// Reads a revision as [`Configs::read`] does, with the help of one that resembles it.
    #[must_use]
    pub fn read_beside(files: &dyn Files, layout: &Layout, rules: &MatrixRules, near: Near<'_>) -> Self {
        Self {
            masters: masters(files, layout, rules, near).unwrap_or_else(|| read_masters(files, layout, rules)),
            runners: match near.texts.last() {
                Some(Some(old)) if files.read(&layout.runners).is_some_and(|new| new == *old) => {
                    near.configs.runners.clone()
                }
                _ => Arc::new(read_runners(files, layout)),
            },
        }
    }
}

fn masters(files: &dyn Files, layout: &Layout, rules: &MatrixRules, near: Near<'_>) -> Option<Masters> {
    let known = &near.configs.masters;
    if !known.duplicates.is_empty() || known.anchors || near.texts.len() != layout.masters.len() + 1 {
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
        let file = Arc::from(path.as_str());
        let sound = known.problems.iter().all(|problem| problem.file != file);
        if **old == *new && sound && near.same_rules {
            for entry in own {
                if !masters.take(Arc::clone(entry)) {
                    return None;
                }
            }
            continue;
        }
        for found in of_file(&file, old, &new, &own, rules, near.same_rules)? {
            let new = match found {
                Found::Entry(entry) => masters.take(entry),
                Found::Broken(name, problems) => masters.refuse(name, problems),
            };
            if !new {
                return None;
            }
        }
    }
    Some(masters)
}

/// What is written under one key.
enum Found {
    Entry(Arc<Entry>),
    Broken(Arc<str>, Vec<Problem>),
}

/// What is written in one file.
fn of_file(
    path: &Arc<str>,
    old: &str,
    new: &str,
    own: &[&Arc<Entry>],
    rules: &MatrixRules,
    same_rules: bool,
) -> Option<Vec<Found>> {
    let limits = Limits::default();
    let known = pieces(old, Root::Map, &limits)?;
    let new = pieces(new, Root::Map, &limits).filter(|new| !new.is_empty())?;
    // An entry is its piece where the next piece is an entry too; what stands between may belong to a text of several lines.
    let begins: HashMap<u32, &Arc<Entry>> = own
        .iter()
        .filter(|entry| entry.head.span.column == 1)
        .map(|entry| (entry.head.span.line, *entry))
        .collect();
    let entry = |index: usize| begins.get(&known.get(index)?.line).copied();
    let whole = |index: &usize| index + 1 == known.len() || entry(index + 1).is_some();
    let entry = |index: usize| entry(index).filter(|entry| whole(&index) && !entry.raw.ends_empty());
    let common = known.iter().zip(&new).take_while(|(old, new)| old.text == new.text);
    let common = common.count();
    let rest = (common..known.len()).filter_map(|index| Some((known.get(index)?.text, entry(index)?)));
    let elsewhere: HashMap<&str, &Arc<Entry>> = rest.collect();
    let mut words = Words::default();
    let take = |(index, piece): (usize, &Piece<'_>)| {
        let found = if index < common {
            entry(index)
        } else {
            elsewhere.get(piece.text).copied()
        };
        match found {
            Some(entry) if same_rules => Some(Found::Entry(entry.at(piece.line))),
            Some(entry) => again(path, entry, piece.line, rules, &mut words),
            None => alone(path, piece, rules, &mut words),
        }
    };
    new.iter().enumerate().map(take).collect()
}

/// The entry of a piece, or what is wrong with it; nothing where that may depend on the rest of the file.
fn alone(path: &Arc<str>, piece: &Piece<'_>, rules: &MatrixRules, words: &mut Words) -> Option<Found> {
    let document = piece.read(&Limits::default())?;
    let Value::Map(map) = document.root.value else {
        return None;
    };
    let Pair { key, value } = map.entries.into_iter().next()?;
    let name: Arc<str> = Arc::from(key.as_str()?);
    if !document.duplicate_keys.is_empty() || name.contains(['*', '?']) || key.span.column != 1 {
        return None;
    }
    judged(path, &name, (key.span, value), piece.line, rules, words)
}

/// An entry of other rules by these.
fn again(path: &Arc<str>, entry: &Entry, line: u32, rules: &MatrixRules, words: &mut Words) -> Option<Found> {
    let (span, raw) = entry.as_read();
    judged(path, &entry.head.key, (span, raw.clone()), line, rules, words)
}

/// What an entry is by some rules, where its key stands on a line of the file.
fn judged(
    path: &Arc<str>,
    name: &Arc<str>,
    (span, raw): (Span, Node),
    line: u32,
    rules: &MatrixRules,
    words: &mut Words,
) -> Option<Found> {
    let mut reader = Reader {
        strict: Strict::new(),
        rules,
        words,
    };
    let entry = reader.entry(name, path, span, raw);
    if reader.strict.problems.is_empty() {
        return entry.map(|entry| Found::Entry(Arc::new(entry).at(line)));
    }
    let mut problems = of_entry(path, name, reader.strict.problems);
    for problem in problems.iter_mut().filter(|problem| problem.line > 0) {
        problem.line = (problem.line + line).saturating_sub(span.line);
    }
    Some(Found::Broken(name.clone(), problems))
}
