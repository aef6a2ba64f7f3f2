//! Which entries a change touches, and how: by their own text, through the files they run, or because a changelog item
//! names them. Values are compared as parsed: comments, order and style never count.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use countersign_yaml::{Node, Value};
use serde::Serialize;

use crate::files::Files;
use crate::read::{Configs, Hardware};
use crate::resolve::{FileRole, Resolution, UsedFile, resolve_both};
use crate::rules::{Layout, MatrixRules};
use crate::select::SelectedEntry;

/// Why an entry is affected.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case", tag = "reason")]
pub enum Reason {
    /// Only the head has it.
    Added,
    /// Only the base has it.
    Removed,
    /// Its parsed value differs.
    Changed {
        /// The fields that differ, for example `image` or `scenarios.fixed-seq-len`.
        fields: Vec<String>,
    },
    /// The facts about its runner's machines differ.
    Hardware,
    /// A file that it uses is among the changed ones.
    File {
        /// As what.
        role: FileRole,
        /// Which.
        path: String,
    },
    /// The change deletes its script, and no other takes its place: nothing can start it any more.
    ScriptGone {
        /// Which.
        path: String,
    },
    /// A new changelog item selects it.
    Changelog {
        /// The line of the item.
        line: u32,
    },
}

/// An affected entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AffectedEntry {
    /// The entry's key.
    pub key: Arc<str>,
    /// Why, sorted.
    pub reasons: Vec<Reason>,
}

/// One revision, for [`affected`].
#[derive(Clone, Copy)]
pub struct Revision<'r> {
    /// What the generator reads of it.
    pub configs: &'r Configs,
    /// Its files.
    pub files: &'r dyn Files,
}

/// Every entry that a change touches, sorted by key.
///
/// `changed` are the paths that differ between the two revisions; a rename gives both paths. `selected` are the entries
/// that new changelog items select, see [`crate::select`].
#[must_use]
pub fn affected(
    base: Revision<'_>,
    head: Revision<'_>,
    changed: &[String],
    selected: &[SelectedEntry],
    layout: &Layout,
    rules: &MatrixRules,
) -> Vec<AffectedEntry> {
    let mut reasons: BTreeMap<Arc<str>, Vec<Reason>> = BTreeMap::new();
    for entry in &head.configs.masters.entries {
        let key = &entry.head.key;
        match base.configs.masters.get(key) {
            Some(old) if old.raw.same_value(&entry.raw) => {}
            Some(old) => {
                let fields = changed_fields(&old.raw, &entry.raw);
                reasons.entry(key.clone()).or_default().push(Reason::Changed { fields });
            }
            // An entry that the base has but that cannot be read there is changed in a way that cannot be told.
            None if base.configs.masters.has_key(key) => {
                reasons
                    .entry(key.clone())
                    .or_default()
                    .push(Reason::Changed { fields: Vec::new() });
            }
            None => reasons.entry(key.clone()).or_default().push(Reason::Added),
        }
        let facts = |configs: &Configs| configs.runners.hardware.get(&*entry.head.runner).copied();
        let (before, after): (Option<Hardware>, Option<Hardware>) = (facts(base.configs), facts(head.configs));
        if before != after {
            reasons.entry(key.clone()).or_default().push(Reason::Hardware);
        }
    }
    for entry in &base.configs.masters.entries {
        if !head.configs.masters.has_key(&entry.head.key) {
            reasons.entry(entry.head.key.clone()).or_default().push(Reason::Removed);
        }
    }
    if !changed.is_empty() {
        let [before, after] = resolve_both((base.configs, base.files), (head.configs, head.files), layout, rules);
        let later: BTreeMap<&str, &Arc<Resolution>> = keys(head.configs).zip(&after).collect();
        let dead: BTreeSet<&str> = keys(base.configs)
            .zip(&before)
            .filter(|(key, then)| {
                let now = later.get(key).filter(|now| !Arc::ptr_eq(then, now));
                now.is_some_and(|now| nothing_instead(then, now))
            })
            .map(|(key, _)| key)
            .collect();
        // A script that the change deletes is found from the base, one that it adds from the head.
        let changed: BTreeSet<&str> = changed.iter().map(String::as_str).collect();
        for (revision, resolutions) in [(base, &before), (head, &after)] {
            for (entry, resolution) in revision.configs.masters.entries.iter().zip(resolutions) {
                for (path, role) in resolution.uses_of(&changed) {
                    let gone = role == FileRole::Script && dead.contains(&*entry.head.key) && !head.files.exists(path);
                    let path = path.to_owned();
                    let reason = if gone {
                        Reason::ScriptGone { path }
                    } else {
                        Reason::File { role, path }
                    };
                    reasons.entry(entry.head.key.clone()).or_default().push(reason);
                }
            }
        }
    }
    for selected in selected {
        reasons
            .entry(selected.key.clone())
            .or_default()
            .push(Reason::Changelog { line: selected.line });
    }
    reasons
        .into_iter()
        .map(|(key, mut reasons)| {
            reasons.sort();
            reasons.dedup();
            AffectedEntry { key, reasons }
        })
        .collect()
}

fn keys(configs: &Configs) -> impl Iterator<Item = &str> {
    configs.masters.entries.iter().map(|entry| &*entry.head.key)
}

/// Whether no script came in for one that was deleted: one more is missing, and none is there that was not before.
fn nothing_instead(before: &Resolution, after: &Resolution) -> bool {
    let there = |found: &Resolution| -> BTreeSet<UsedFile> {
        let scripts = found.scripts.iter().filter(|script| script.exists);
        scripts.cloned().collect()
    };
    after
        .scripts
        .iter()
        .any(|script| !script.exists && !before.scripts.contains(script))
        && there(after).is_subset(&there(before))
}

/// The fields of an entry that differ; scenarios are told apart.
#[must_use]
pub fn changed_fields(old: &Node, new: &Node) -> Vec<String> {
    fn collect(prefix: &str, old: &Node, new: &Node, out: &mut Vec<String>) {
        let (Value::Map(old_map), Value::Map(new_map)) = (&old.value, &new.value) else {
            out.push(prefix.to_owned());
            return;
        };
        let mut keys: Vec<String> = old_map
            .iter()
            .chain(new_map.iter())
            .map(|(key, _)| key.scalar_text())
            .collect();
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            let path = if prefix.is_empty() {
                key.clone()
            } else {
                format!("{prefix}.{key}")
            };
            match (old_map.get(&key), new_map.get(&key)) {
                (Some(before), Some(after)) if before.same_value(after) => {}
                (Some(before), Some(after)) if before.as_map().is_some() && after.as_map().is_some() => {
                    collect(&path, before, after, out);
                }
                (None, None) => {}
                _ => out.push(path),
            }
        }
    }
    let mut out = Vec::new();
    collect("", old, new, &mut out);
    out
}
