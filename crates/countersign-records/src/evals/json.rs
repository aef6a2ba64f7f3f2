//! JSON as Python writes it: with bare `NaN`, `Infinity` and `-Infinity`.

use serde::Serialize;
use serde_json::Value;

use super::MAX_BYTES;

/// Why a result file could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// Larger than is read.
    #[error("the file has {0} bytes, more than the {MAX_BYTES} that are read")]
    TooLarge(usize),
    /// Not UTF-8.
    #[error("the file is not UTF-8")]
    NotUtf8,
    /// Not JSON.
    #[error("line {line}, column {column}: not JSON: {what}")]
    Syntax {
        /// Line, from 1.
        line: usize,
        /// Column, from 1, near the error.
        column: usize,
        /// The parser's words.
        what: String,
    },
    /// Another shape than expected.
    #[error("expected {expected}, found {found}")]
    Shape {
        /// What was expected.
        expected: &'static str,
        /// What was found.
        found: &'static str,
    },
}

/// Begins the string that stands for a bare non-finite word. A file that holds such a string itself gains nothing: the
/// value is invalid either way.
const MARK: char = '\u{0}';
const WORDS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];

/// A number as a result file has it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Number {
    /// A finite number.
    Finite(f64),
    /// A bare non-finite word.
    NotFinite(String),
    /// Something that is no number.
    Other(&'static str),
}

impl Number {
    /// Reads a value; `None` for null.
    #[must_use]
    pub fn read(value: &Value) -> Option<Number> {
        match value {
            Value::Null => None,
            Value::Number(n) => Some(match n.as_f64().filter(|f| f.is_finite()) {
                Some(f) => Number::Finite(f),
                None => Number::NotFinite(n.to_string()),
            }),
            Value::String(s) => Some(match s.strip_prefix(MARK) {
                Some(word) => Number::NotFinite(word.chars().take(16).collect()),
                None => Number::Other("a string"),
            }),
            other => Some(Number::Other(type_name(other))),
        }
    }

    /// The number, if it is finite.
    #[must_use]
    pub fn finite(&self) -> Option<f64> {
        match self {
            Number::Finite(f) => Some(*f),
            _ => None,
        }
    }
}

/// The word for a value's type.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Reads JSON in which bare non-finite words may stand for numbers.
///
/// # Errors
/// When it is too large, not UTF-8, or not JSON otherwise. Nesting beyond 128 levels is refused.
pub fn parse(bytes: &[u8]) -> Result<Value, JsonError> {
    if bytes.len() > MAX_BYTES {
        return Err(JsonError::TooLarge(bytes.len()));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| JsonError::NotUtf8)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let marked = mark_words(text);
    serde_json::from_str(marked.as_deref().unwrap_or(text)).map_err(|error| JsonError::Syntax {
        line: error.line(),
        column: error.column(),
        what: error.to_string().chars().take(200).collect(),
    })
}

/// The text with every bare word outside strings turned into a marked string; `None` where there is none.
fn mark_words(text: &str) -> Option<String> {
    if !WORDS.iter().any(|w| text.contains(w)) {
        return None;
    }
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len() + 64);
    let (mut at, mut copied, mut quoted) = (0, 0, false);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if quoted => at += 2,
            b'"' => {
                quoted = !quoted;
                at += 1;
            }
            b'-' | b'I' | b'N' if !quoted => {
                let word = WORDS.iter().find(|w| bytes[at..].starts_with(w.as_bytes()));
                let bare = |b: Option<&u8>| b.is_none_or(|b| !b.is_ascii_alphanumeric() && *b != b'_' && *b != b'.');
                let clear =
                    |w: &&&str| bare(at.checked_sub(1).and_then(|p| bytes.get(p))) && bare(bytes.get(at + w.len()));
                if let Some(word) = word.filter(clear) {
                    out.push_str(&text[copied..at]);
                    out.push_str("\"\\u0000");
                    out.push_str(word);
                    out.push('"');
                    at += word.len();
                    copied = at;
                } else {
                    at += 1;
                }
            }
            _ => at += 1,
        }
    }
    out.push_str(&text[copied..]);
    Some(out)
}
