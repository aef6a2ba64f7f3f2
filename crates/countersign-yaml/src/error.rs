//! The one error of this crate: what is wrong, where, and what to do about it.

use crate::node::Span;

/// What kind of refusal it is; for counting and for choosing a remedy, not for display.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum YamlErrorKind {
    /// Not YAML: indentation, quoting, brackets, unknown anchors.
    Syntax,
    /// A character that PyYAML does not read.
    Character,
    /// A tag that a safe reader has no meaning for.
    Tag,
    /// A scalar that looks like a number or a date and is none.
    Scalar,
    /// `<<` with something other than a mapping or a list of mappings.
    Merge,
    /// A sequence or a mapping as a key.
    Key,
    /// An alias to a collection that contains it.
    Alias,
    /// More than one document where one was expected.
    Documents,
    /// One of the limits was reached.
    Limit,
    /// The YAML is fine and the value is not of the type that was asked for (see [`crate::from_node`]).
    Shape,
}

/// A text that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct YamlError {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// What is wrong, one sentence without a full stop.
    pub message: String,
    /// What to do about it, one sentence without a full stop.
    pub remedy: String,
    /// The class of the refusal.
    pub kind: YamlErrorKind,
}

impl YamlError {
    pub(crate) fn new(kind: YamlErrorKind, span: Span, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            line: span.line,
            column: span.column,
            message: message.into(),
            remedy: remedy.into(),
            kind,
        }
    }
}
