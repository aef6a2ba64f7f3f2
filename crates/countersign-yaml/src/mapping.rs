//! One mapping: merge keys flattened in PyYAML's order, the last of equal keys kept, every repetition reported.

use std::collections::HashMap;
use std::collections::hash_map::Entry as HashEntry;

use crate::error::{YamlError, YamlErrorKind};
use crate::node::{DuplicateKey, Entry, Map, Node, Span, Value};
use crate::resolve::clip;

/// Python's notion of equal keys: `1`, `1.0` and `true` are one key; `nan` equals nothing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum KeyId {
    Null,
    Int(i64),
    Float(u64),
    Text(String),
    Opaque(String),
}

#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
fn key_id(key: &Node) -> Option<KeyId> {
    Some(match &key.value {
        Value::Null => KeyId::Null,
        Value::Bool(flag) => KeyId::Int(i64::from(*flag)),
        Value::Int(number) => KeyId::Int(*number),
        Value::Float(number) if number.is_nan() => return None,
        // Exact below 2^63: a float that is whole and in range has exactly one integer.
        Value::Float(number) if number.fract() == 0.0 && number.abs() < 9.2e18 => KeyId::Int(*number as i64),
        Value::Float(number) => KeyId::Float(number.to_bits()),
        Value::Str(text) => KeyId::Text(text.clone()),
        Value::Opaque(_, text) => KeyId::Opaque(text.clone()),
        Value::Seq(_) | Value::Map(_) => return None,
    })
}

/// Collects the pairs of one mapping; order and precedence are settled at the end, as PyYAML does.
#[derive(Default)]
pub(crate) struct MapBuilder {
    merged: Vec<Entry>,
    own: Vec<Entry>,
}

impl MapBuilder {
    pub(crate) fn insert(&mut self, key: Node, value: Node) {
        self.own.push(Entry { key, value });
    }

    pub(crate) fn merge(&mut self, value: Node, at: Span) -> Result<(), YamlError> {
        let wrong = |span: Span, found: &Node| {
            YamlError::new(
                YamlErrorKind::Merge,
                span,
                format!(
                    "`<<` needs a mapping or a list of mappings, and this is {}",
                    found.type_name()
                ),
                "refer to a mapping, or write the keys out",
            )
        };
        match value.value {
            Value::Map(map) => self.merged.extend(map.entries),
            Value::Seq(items) => {
                let mut seen: HashMap<KeyId, Node> = HashMap::new();
                for item in items {
                    let Value::Map(map) = item.value else {
                        return Err(wrong(item.span, &item));
                    };
                    for entry in map.entries {
                        if let Some(id) = key_id(&entry.key) {
                            match seen.entry(id) {
                                HashEntry::Vacant(slot) => {
                                    slot.insert(entry.value.clone());
                                }
                                HashEntry::Occupied(slot) if slot.get().same_value(&entry.value) => {}
                                // The YAML 1.1 text and PyYAML up to 6.0.3 let the first mapping win, PyYAML 6.0.4 the
                                // last one. Whoever relies on either is refused, not guessed at.
                                HashEntry::Occupied(_) => {
                                    return Err(YamlError::new(
                                        YamlErrorKind::Merge,
                                        at,
                                        format!(
                                            "the merged mappings disagree about `{}`, and readers differ in which wins",
                                            clip(&entry.key.scalar_text())
                                        ),
                                        "write that key out in this mapping's sources only once",
                                    ));
                                }
                            }
                        }
                        self.merged.push(entry);
                    }
                }
            }
            _ => return Err(wrong(value.span, &value)),
        }
        Ok(())
    }

    pub(crate) fn finish(self, duplicates: &mut Vec<DuplicateKey>) -> Map {
        if self.merged.is_empty() && few_and_distinct(&self.own) {
            return Map { entries: self.own };
        }
        let total = self.merged.len() + self.own.len();
        let mut entries: Vec<Entry> = Vec::with_capacity(total);
        let mut index: HashMap<KeyId, (usize, bool)> = HashMap::with_capacity(total);
        let pairs = self
            .merged
            .into_iter()
            .map(|entry| (entry, false))
            .chain(self.own.into_iter().map(|e| (e, true)));
        for (entry, own) in pairs {
            let Some(id) = key_id(&entry.key) else {
                entries.push(entry);
                continue;
            };
            match index.entry(id) {
                HashEntry::Vacant(slot) => {
                    slot.insert((entries.len(), own));
                    entries.push(entry);
                }
                HashEntry::Occupied(mut slot) => {
                    let (at, earlier_own) = *slot.get();
                    if own && earlier_own {
                        let (key, first) = (&entry.key, entries[at].key.span);
                        duplicates.push(DuplicateKey {
                            key: clip(&key.scalar_text()).to_owned(),
                            line: key.span.line,
                            column: key.span.column,
                            first_line: first.line,
                            first_column: first.column,
                        });
                    }
                    *slot.get_mut() = (at, own || earlier_own);
                    // Python keeps the first key object and the last value; the spans follow the value.
                    let first_key = std::mem::replace(&mut entries[at], entry).key;
                    let kept = &mut entries[at].key;
                    kept.value = first_key.value;
                }
            }
        }
        Map { entries }
    }
}

/// The usual mapping: a few text keys, no two equal. Telling so is much cheaper than an index.
fn few_and_distinct(entries: &[Entry]) -> bool {
    entries.len() <= 16
        && entries.iter().enumerate().all(|(at, entry)| {
            entry
                .key
                .as_str()
                .is_some_and(|key| entries[..at].iter().all(|before| before.key.as_str() != Some(key)))
        })
}
