//! The difference of two matrices: points added, points removed, and points changed with what changed in each.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value as Json;

use crate::point::Point;
use crate::row::Row;

/// The difference of two matrices. Rows that are equal in every field do not occur; their order never counts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MatrixDiff {
    /// Rows of the head without a counterpart.
    pub added: Vec<Row>,
    /// Rows of the base without a counterpart.
    pub removed: Vec<Row>,
    /// Rows with a counterpart that differs.
    pub changed: Vec<ChangedRow>,
}

impl MatrixDiff {
    /// Whether the two matrices are equal.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }

    /// The keys of the entries that occur, sorted.
    #[must_use]
    pub fn entries(&self) -> Vec<&str> {
        let rows = self
            .added
            .iter()
            .chain(&self.removed)
            .chain(self.changed.iter().map(|changed| &changed.after));
        let mut keys: Vec<&str> = rows.map(|row| &*row.head.key).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}

/// One point in both revisions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedRow {
    /// What they have in common.
    pub point: Point,
    /// The row of the base.
    pub before: Row,
    /// The row of the head.
    pub after: Row,
    /// What differs, by field.
    pub fields: Vec<FieldChange>,
}

/// One field that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldChange {
    /// The field, for example `image` or `prefill.additional-settings`.
    pub field: String,
    /// The value of the base; `None` where the field is not there.
    pub before: Option<Json>,
    /// The value of the head; `None` where the field is not there.
    pub after: Option<Json>,
}

/// Compares two matrices.
#[must_use]
pub fn diff(base: &[Row], head: &[Row]) -> MatrixDiff {
    let mut groups: BTreeMap<Point, (Vec<&Row>, Vec<&Row>)> = BTreeMap::new();
    for row in base {
        groups.entry(row.point()).or_default().0.push(row);
    }
    for row in head {
        groups.entry(row.point()).or_default().1.push(row);
    }
    let mut out = MatrixDiff::default();
    for (point, (before, after)) in groups {
        let (before, after) = without_equal(before, after);
        pair(&point, before, after, &mut out);
    }
    out
}

type Contents<'r> = Vec<(&'r Row, Json)>;

/// Takes away rows that are equal in every field, one against one.
fn without_equal<'r>(before: Vec<&'r Row>, after: Vec<&'r Row>) -> (Contents<'r>, Contents<'r>) {
    let with_json = |rows: Vec<&'r Row>| {
        rows.into_iter()
            .map(|row| (row, row.to_json()))
            .collect::<Contents<'r>>()
    };
    let mut before = with_json(before);
    // A multiset difference by text: quadratic time would let a hostile config with many equal points take long.
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (_, json) in &before {
        *counts.entry(json.to_string()).or_default() += 1;
    }
    let mut after = with_json(after);
    let mut equal: BTreeMap<String, usize> = BTreeMap::new();
    after.retain(|(_, json)| {
        let text = json.to_string();
        match counts.get_mut(&text) {
            Some(count) if *count > 0 => {
                *count -= 1;
                *equal.entry(text).or_default() += 1;
                false
            }
            _ => true,
        }
    });
    before.retain(|(_, json)| match equal.get_mut(&json.to_string()) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    });
    (before, after)
}

/// Beyond this many rows of one identity, rows are paired in order and not by likeness.
const MOST_TO_MATCH: usize = 12;

/// Pairs what is left of one identity: always the two rows that differ least.
fn pair(point: &Point, mut before: Contents<'_>, mut after: Contents<'_>, out: &mut MatrixDiff) {
    let mut pairs = Vec::new();
    if before.len().max(after.len()) > MOST_TO_MATCH {
        let both = before.len().min(after.len());
        pairs.extend(before.drain(..both).zip(after.drain(..both)));
    }
    while !before.is_empty() && !after.is_empty() {
        let (i, j) = nearest(&before, &after);
        pairs.push((before.remove(i), after.remove(j)));
    }
    out.changed
        .extend(pairs.into_iter().map(|((old, old_json), (new, new_json))| ChangedRow {
            point: point.clone(),
            before: old.clone(),
            after: new.clone(),
            fields: field_changes(&old_json, &new_json),
        }));
    out.removed.extend(before.into_iter().map(|(row, _)| row.clone()));
    out.added.extend(after.into_iter().map(|(row, _)| row.clone()));
}

fn nearest(before: &Contents<'_>, after: &Contents<'_>) -> (usize, usize) {
    let mut best = (usize::MAX, 0, 0);
    for (i, (_, old)) in before.iter().enumerate() {
        for (j, (_, new)) in after.iter().enumerate() {
            let distance = field_changes(old, new).len();
            if distance < best.0 {
                best = (distance, i, j);
            }
        }
    }
    (best.1, best.2)
}

/// The fields that differ, sorted; the fields of `prefill`, `decode` and of components are looked at one by one.
fn field_changes(before: &Json, after: &Json) -> Vec<FieldChange> {
    fn flat<'j>(prefix: &str, json: &'j Json, out: &mut BTreeMap<String, &'j Json>) {
        let Json::Object(map) = json else { return };
        for (key, value) in map {
            let path = if prefix.is_empty() {
                key.clone()
            } else {
                format!("{prefix}.{key}")
            };
            match value {
                Json::Object(_) => flat(&path, value, out),
                _ => {
                    out.insert(path, value);
                }
            }
        }
    }
    let (mut old, mut new) = (BTreeMap::new(), BTreeMap::new());
    flat("", before, &mut old);
    flat("", after, &mut new);
    let mut fields: Vec<&String> = old.keys().chain(new.keys()).collect();
    fields.sort_unstable();
    fields.dedup();
    fields
        .into_iter()
        .filter(|field| old.get(*field) != new.get(*field))
        .map(|field| FieldChange {
            field: field.clone(),
            before: old.get(field).map(|value| (*value).clone()),
            after: new.get(field).map(|value| (*value).clone()),
        })
        .collect()
}
