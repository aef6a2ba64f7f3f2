//! The tree: values with the place where each of them, and each key, is written.

use std::fmt::Write as _;

/// Where something is written. Lines and columns count from 1, columns in characters; `start..end` are byte offsets
/// into the text. A node that an alias copied keeps the span of the anchored original.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// A value and its place.
#[derive(Debug, Clone)]
pub struct Node {
    /// Where the value is written.
    pub span: Span,
    /// The value.
    pub value: Value,
}

/// What PyYAML's `safe_load` would make of it.
#[derive(Debug, Clone)]
pub enum Value {
    /// `~`, `null`, or nothing.
    Null,
    /// `true`, `yes`, `on` and their opposites.
    Bool(bool),
    /// An integer that fits 64 bits, in any of YAML 1.1's notations.
    Int(i64),
    /// A float, also `.inf` and `.nan`.
    Float(f64),
    /// Text.
    Str(String),
    /// A value for which the reference builds an object that has no counterpart here; its text as written.
    Opaque(OpaqueKind, String),
    /// A sequence.
    Seq(Vec<Node>),
    /// A mapping.
    Map(Map),
}

/// The kinds of [`Value::Opaque`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OpaqueKind {
    /// A date or a date with time.
    Timestamp,
    /// An integer beyond 64 bits; the text is its decimal or original notation.
    BigInt,
}

/// A mapping, in the order a Python `dict` would have: merged keys first, then the keys of the mapping as first
/// written, each with the last value written for it.
#[derive(Debug, Clone, Default)]
pub struct Map {
    /// Keys and values, no two keys equal.
    pub entries: Vec<Entry>,
}

/// One key and its value.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The key, always a scalar. Its span is that of the occurrence whose value is kept.
    pub key: Node,
    /// The value.
    pub value: Node,
}

/// A key that is written twice in one mapping. The reference keeps the last value silently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuplicateKey {
    /// The key as text.
    pub key: String,
    /// Line of the later occurrence, from 1.
    pub line: u32,
    /// Column of the later occurrence, from 1.
    pub column: u32,
    /// Line of the occurrence before it, whose value is lost.
    pub first_line: u32,
    /// Column of the occurrence before it.
    pub first_column: u32,
}

/// One document of a text.
#[derive(Debug, Clone)]
pub struct Document {
    /// The tree; `Null` for an empty document.
    pub root: Node,
    /// Every repeated key, in the order of the text.
    pub duplicate_keys: Vec<DuplicateKey>,
    /// Whether anything has an anchor, used or not.
    pub anchors: bool,
}

/// One step of a path into a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segment<'a> {
    /// A mapping's key.
    Key(&'a str),
    /// A sequence's index.
    Index(usize),
}

impl<'a> From<&'a str> for Segment<'a> {
    fn from(key: &'a str) -> Self {
        Segment::Key(key)
    }
}

impl From<usize> for Segment<'_> {
    fn from(index: usize) -> Self {
        Segment::Index(index)
    }
}

impl Node {
    /// The text, if it is a string.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The integer, if it is one of 64 bits. Booleans are not integers.
    #[must_use]
    pub fn as_int(&self) -> Option<i64> {
        match self.value {
            Value::Int(number) => Some(number),
            _ => None,
        }
    }

    /// The number, if it is an integer or a float.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn as_float(&self) -> Option<f64> {
        match self.value {
            Value::Int(number) => Some(number as f64),
            Value::Float(number) => Some(number),
            _ => None,
        }
    }

    /// The boolean, if it is one.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self.value {
            Value::Bool(flag) => Some(flag),
            _ => None,
        }
    }

    /// The elements, if it is a sequence.
    #[must_use]
    pub fn as_seq(&self) -> Option<&[Node]> {
        match &self.value {
            Value::Seq(items) => Some(items),
            _ => None,
        }
    }

    /// The mapping, if it is one.
    #[must_use]
    pub fn as_map(&self) -> Option<&Map> {
        match &self.value {
            Value::Map(map) => Some(map),
            _ => None,
        }
    }

    /// True for `Null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    /// The value of a string key, if this is a mapping that has it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.as_map()?.get(key)
    }

    /// Follows a path of keys and indexes.
    #[must_use]
    pub fn at<'a>(&self, path: impl IntoIterator<Item = Segment<'a>>) -> Option<&Node> {
        let mut node = self;
        for segment in path {
            node = match segment {
                Segment::Key(key) => node.get(key)?,
                Segment::Index(index) => node.as_seq()?.get(index)?,
            };
        }
        Some(node)
    }

    /// The word for the value's type, for messages.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match &self.value {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Int(_) => "an integer",
            Value::Opaque(OpaqueKind::BigInt, _) => "an integer beyond 64 bits",
            Value::Float(_) => "a float",
            Value::Str(_) => "a string",
            Value::Opaque(OpaqueKind::Timestamp, _) => "a date",
            Value::Seq(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }

    /// A scalar as text for messages and for JSON keys; collections give their type name.
    #[must_use]
    pub fn scalar_text(&self) -> String {
        match &self.value {
            Value::Null => "null".to_owned(),
            Value::Bool(flag) => flag.to_string(),
            Value::Int(number) => number.to_string(),
            Value::Float(number) => float_text(*number),
            Value::Str(text) | Value::Opaque(_, text) => text.clone(),
            Value::Seq(_) | Value::Map(_) => self.type_name().to_owned(),
        }
    }

    /// Equality of parsed values: spans, comments, styles and the order of keys do not count; the order of sequences
    /// does. An integer and a float are never equal here, nor are a boolean and an integer; two `.nan` are.
    #[must_use]
    pub fn same_value(&self, other: &Node) -> bool {
        if std::ptr::eq(self, other) {
            return true;
        }
        match (&self.value, &other.value) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Int(a), Value::Int(b)) => a == b,
            (Value::Float(a), Value::Float(b)) => a == b || (a.is_nan() && b.is_nan()),
            (Value::Str(a), Value::Str(b)) => a == b,
            (Value::Opaque(ka, a), Value::Opaque(kb, b)) => ka == kb && a == b,
            (Value::Seq(a), Value::Seq(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same_value(b)),
            (Value::Map(a), Value::Map(b)) => a.same_value(b),
            _ => false,
        }
    }

    /// The tree as JSON. Keys become text; a float that JSON cannot hold, a date and a large integer become text.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match &self.value {
            Value::Null => Json::Null,
            Value::Bool(flag) => Json::Bool(*flag),
            Value::Int(number) => Json::from(*number),
            Value::Float(number) => {
                serde_json::Number::from_f64(*number).map_or_else(|| Json::String(float_text(*number)), Json::Number)
            }
            Value::Str(text) | Value::Opaque(_, text) => Json::String(text.clone()),
            Value::Seq(items) => Json::Array(items.iter().map(Node::to_json).collect()),
            Value::Map(map) => Json::Object(
                map.entries
                    .iter()
                    .map(|e| (e.key.scalar_text(), e.value.to_json()))
                    .collect(),
            ),
        }
    }
}

impl Map {
    /// The value of a string key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// The entry of a string key.
    #[must_use]
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key.as_str() == Some(key))
    }

    /// Keys and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Node, &Node)> {
        self.entries.iter().map(|entry| (&entry.key, &entry.value))
    }

    /// How many keys there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True when there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn same_value(&self, other: &Map) -> bool {
        if self.len() != other.len() {
            return false;
        }
        // In files that are compared the order is nearly always the same, so look at the same place first; sort only
        // when it is not, to stay below quadratic time.
        if self
            .iter()
            .zip(other.iter())
            .all(|((ka, va), (kb, vb))| ka.same_value(kb) && va.same_value(vb))
        {
            return true;
        }
        let sorted = |map: &Map| {
            let mut order: Vec<usize> = (0..map.entries.len()).collect();
            order.sort_by_cached_key(|&i| sort_key(&map.entries[i].key));
            order
        };
        sorted(self).into_iter().zip(sorted(other)).all(|(a, b)| {
            let (a, b) = (&self.entries[a], &other.entries[b]);
            a.key.same_value(&b.key) && a.value.same_value(&b.value)
        })
    }
}

fn sort_key(key: &Node) -> (&'static str, String) {
    (key.type_name(), key.scalar_text())
}

/// A float as Python's `repr` would show the usual ones: with a fraction, so that `3.0` does not look like an integer.
fn float_text(number: f64) -> String {
    let mut text = String::new();
    if number.is_nan() {
        text.push_str(".nan");
    } else if number.is_infinite() {
        text.push_str(if number > 0.0 { ".inf" } else { "-.inf" });
    } else {
        let _ = write!(text, "{number:?}");
    }
    text
}
