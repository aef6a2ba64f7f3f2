//! Helpers for strict readers: every expectation that a node does not meet becomes a [`Problem`] with its place, and
//! reading goes on, so that one pass reports everything that is wrong.

use crate::node::{Map, Node, Segment, Span, Value};

/// One thing wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// Path of keys and indexes to the value, for example `entry.scenarios.fixed-seq-len[0].isl`.
    pub path: String,
    /// What is wrong, one sentence without a full stop.
    pub message: String,
    /// What to do about it, one sentence without a full stop.
    pub remedy: String,
}

/// Collects problems. Each `expect_*` gives the value, or records a problem and gives `None`.
#[derive(Debug, Default)]
pub struct Strict {
    /// What has been found so far, in the order of reading.
    pub problems: Vec<Problem>,
    /// Where the reader is; put before the `path` that each method is given. Kept as steps, so that a path is only
    /// written out when there is a problem to report.
    inside: Vec<Segment<'static>>,
}

impl Strict {
    /// An empty collection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Goes into a field or an element; every path that follows is below it until [`Strict::leave`].
    pub fn enter(&mut self, step: impl Into<Segment<'static>>) {
        self.inside.push(step.into());
    }

    /// Comes back out of what was entered last.
    pub fn leave(&mut self) {
        self.inside.pop();
    }

    fn full_path(&self, path: &str) -> String {
        let mut full = String::new();
        for step in &self.inside {
            match step {
                Segment::Key(key) if full.is_empty() => full.push_str(key),
                Segment::Key(key) => {
                    full.push('.');
                    full.push_str(key);
                }
                Segment::Index(index) => full.push_str(&format!("[{index}]")),
            }
        }
        if !full.is_empty() && !path.is_empty() && !path.starts_with('[') {
            full.push('.');
        }
        full.push_str(path);
        full
    }

    /// Records a problem.
    pub fn problem(&mut self, span: Span, path: &str, message: impl Into<String>, remedy: impl Into<String>) {
        self.problems.push(Problem {
            line: span.line,
            column: span.column,
            path: self.full_path(path),
            message: message.into(),
            remedy: remedy.into(),
        });
    }

    fn wrong_type(&mut self, node: &Node, path: &str, wanted: &str) {
        self.problem(
            node.span,
            path,
            format!("expected {wanted}, found {}", node.type_name()),
            format!("write {wanted} here"),
        );
    }

    /// A mapping, whatever its keys.
    pub fn expect_any_map<'n>(&mut self, node: &'n Node, path: &str) -> Option<&'n Map> {
        if let Value::Map(map) = &node.value {
            return Some(map);
        }
        self.wrong_type(node, path, "a mapping");
        None
    }

    /// A mapping whose keys are all among `known`; every other key is a problem at the key's own place.
    pub fn expect_map<'n>(&mut self, node: &'n Node, path: &str, known: &[&str]) -> Option<&'n Map> {
        let map = self.expect_any_map(node, path)?;
        for entry in &map.entries {
            let name = entry.key.scalar_text();
            if entry.key.as_str().is_none_or(|key| !known.contains(&key)) {
                let remedy = match nearest(&name, known) {
                    Some(near) => format!("did you mean `{near}`? Otherwise remove it"),
                    None => format!("remove it; the fields here are {}", known.join(", ")),
                };
                self.problem(
                    entry.key.span,
                    path,
                    format!("unknown field `{}`", crate::resolve::clip(&name)),
                    remedy,
                );
            }
        }
        Some(map)
    }

    /// A field that must be there. `at` is where the mapping is written.
    pub fn required<'n>(&mut self, map: &'n Map, at: Span, path: &str, field: &str) -> Option<&'n Node> {
        let found = map.get(field);
        if found.is_none() {
            self.problem(at, path, format!("missing field `{field}`"), format!("add `{field}:`"));
        }
        found
    }

    /// A string.
    pub fn expect_str<'n>(&mut self, node: &'n Node, path: &str) -> Option<&'n str> {
        let found = node.as_str();
        if found.is_none() {
            self.wrong_type(node, path, "a string");
        }
        found
    }

    /// A 64-bit integer.
    pub fn expect_int(&mut self, node: &Node, path: &str) -> Option<i64> {
        let found = node.as_int();
        if found.is_none() {
            self.wrong_type(node, path, "an integer");
        }
        found
    }

    /// An integer or a float.
    pub fn expect_number(&mut self, node: &Node, path: &str) -> Option<f64> {
        let found = node.as_float();
        if found.is_none() {
            self.wrong_type(node, path, "a number");
        }
        found
    }

    /// A boolean.
    pub fn expect_bool(&mut self, node: &Node, path: &str) -> Option<bool> {
        let found = node.as_bool();
        if found.is_none() {
            self.wrong_type(node, path, "true or false");
        }
        found
    }

    /// A list.
    pub fn expect_seq<'n>(&mut self, node: &'n Node, path: &str) -> Option<&'n [Node]> {
        let found = node.as_seq();
        if found.is_none() {
            self.wrong_type(node, path, "a list");
        }
        found
    }

    /// A list of strings; `None` if it is no list or one element is no string (each is recorded).
    pub fn expect_str_list<'n>(&mut self, node: &'n Node, path: &str) -> Option<Vec<&'n str>> {
        let items = self.expect_seq(node, path)?;
        let found: Vec<&str> = items
            .iter()
            .enumerate()
            .filter_map(|(index, item)| self.expect_str(item, &format!("{path}[{index}]")))
            .collect();
        (found.len() == items.len()).then_some(found)
    }
}

/// The known name that differs least, if it differs little enough to be a slip.
fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    if name.len() > 60 {
        return None;
    }
    let plain = |text: &str| text.replace(['_', ' '], "-").to_ascii_lowercase();
    let name = plain(name);
    known
        .iter()
        .map(|candidate| (distance(&name, &plain(candidate)), *candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 6)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let changed = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
