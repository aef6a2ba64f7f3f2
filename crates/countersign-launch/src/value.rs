//! The small vocabulary shared by every reader: where something was said, what is known of it, and what it depends on.
//!
//! Nothing here is ever silently dropped: a word that cannot be known keeps the name of the unknown it depends on
//! (product page, section 6: "what it cannot know stays symbolic, is reported as such, and never as absent").

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

/// A place in a file of the judged tree, or in a page.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Source {
    /// Path or address, as the caller named it.
    pub file: Arc<str>,
    /// One-based line; 0 where the value has no line (a policy parameter, a default).
    pub line: u32,
}

impl Source {
    /// A place in `file`.
    pub fn new(file: impl Into<Arc<str>>, line: u32) -> Self {
        Source {
            file: file.into(),
            line,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            write!(f, "{}", self.file)
        } else {
            write!(f, "{}:{}", self.file, self.line)
        }
    }
}

/// One part of a word: text that is known, or the name of what it depends on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Piece {
    /// Known text.
    Known(String),
    /// The name of an unknown, such as a host variable or a command's output.
    Unknown(String),
}

/// A word that is known, partly known, or unknown. Adjacent known parts are always joined.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Text {
    pieces: Vec<Piece>,
}

impl Text {
    /// A fully known word.
    pub fn known(text: impl Into<String>) -> Self {
        let mut out = Text::default();
        out.push_known(&text.into());
        out
    }

    /// A word of which nothing but its cause is known.
    pub fn unknown(name: impl Into<String>) -> Self {
        Text {
            pieces: vec![Piece::Unknown(name.into())],
        }
    }

    /// Appends known text.
    pub fn push_known(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if let Some(Piece::Known(last)) = self.pieces.last_mut() {
            last.push_str(text);
        } else {
            self.pieces.push(Piece::Known(text.to_owned()));
        }
    }

    /// Appends something that depends on `name`.
    pub fn push_unknown(&mut self, name: impl Into<String>) {
        self.pieces.push(Piece::Unknown(name.into()));
    }

    /// Appends another word.
    pub fn push(&mut self, other: &Text) {
        for piece in &other.pieces {
            match piece {
                Piece::Known(text) => self.push_known(text),
                Piece::Unknown(name) => self.push_unknown(name.clone()),
            }
        }
    }

    /// The parts, in order.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The text, if all of it is known.
    pub fn as_known(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [] => Some(""),
            [Piece::Known(text)] => Some(text),
            _ => None,
        }
    }

    /// The text known at the start, empty if the word begins with an unknown.
    pub fn known_prefix(&self) -> &str {
        match self.pieces.first() {
            Some(Piece::Known(text)) => text,
            _ => "",
        }
    }

    /// Whether the word is nothing but unknowns.
    pub fn is_opaque(&self) -> bool {
        !self.pieces.is_empty() && self.pieces.iter().all(|p| matches!(p, Piece::Unknown(_)))
    }

    /// Whether the word is the empty string.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The names of the unknowns that this word depends on, sorted, each once.
    pub fn unknowns(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .pieces
            .iter()
            .filter_map(|p| match p {
                Piece::Unknown(name) => Some(name.clone()),
                Piece::Known(_) => None,
            })
            .collect();
        names.sort();
        names.dedup();
        names
    }

    /// Splits at the first `sep` found in known text: what is before it, and what is after it.
    pub fn split_once(&self, sep: char) -> Option<(Text, Text)> {
        let mut before = Text::default();
        for (i, piece) in self.pieces.iter().enumerate() {
            match piece {
                Piece::Known(text) => {
                    if let Some((a, b)) = text.split_once(sep) {
                        before.push_known(a);
                        let mut after = Text::known(b);
                        for rest in &self.pieces[i + 1..] {
                            match rest {
                                Piece::Known(t) => after.push_known(t),
                                Piece::Unknown(n) => after.push_unknown(n.clone()),
                            }
                        }
                        return Some((before, after));
                    }
                    before.push_known(text);
                }
                Piece::Unknown(name) => before.push_unknown(name.clone()),
            }
        }
        None
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for piece in &self.pieces {
            match piece {
                Piece::Known(text) => f.write_str(text)?,
                Piece::Unknown(name) => write!(f, "${{{name}}}")?,
            }
        }
        Ok(())
    }
}

/// What is known of one property of a launch.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fact<T> {
    /// Stated.
    Known(T),
    /// Not stated, and the engine then takes this value.
    Default(T),
    /// Stated, or possibly stated, through these unknowns.
    Symbolic(Vec<String>),
    /// Not stated, and without a default that text alone can tell.
    Absent,
}

impl<T> Fact<T> {
    /// The value, stated or default.
    pub fn value(&self) -> Option<&T> {
        match self {
            Fact::Known(v) | Fact::Default(v) => Some(v),
            _ => None,
        }
    }

    /// Whether it was stated or is a known default.
    pub fn is_known(&self) -> bool {
        self.value().is_some()
    }

    /// Whether it depends on an unknown.
    pub fn is_symbolic(&self) -> bool {
        matches!(self, Fact::Symbolic(_))
    }

    /// The same fact about a value computed from this one.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Fact::Known(v) => Fact::Known(f(v)),
            Fact::Default(v) => Fact::Default(f(v)),
            Fact::Symbolic(n) => Fact::Symbolic(n),
            Fact::Absent => Fact::Absent,
        }
    }
}

impl<T: fmt::Display> fmt::Display for Fact<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fact::Known(v) => write!(f, "{v}"),
            Fact::Default(v) => write!(f, "{v} (default)"),
            Fact::Symbolic(names) => write!(f, "symbolic({})", names.join(", ")),
            Fact::Absent => f.write_str("-"),
        }
    }
}

/// One word of a command with its place: what the front ends read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Arg {
    /// The word after expansion and quote removal.
    pub text: Text,
    /// Where the word stands.
    pub source: Source,
}

impl Arg {
    /// A word at a place.
    pub fn new(text: Text, source: Source) -> Self {
        Arg { text, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_parts_join_and_unknowns_stay() {
        let mut t = Text::known("a=");
        t.push_known("b");
        t.push_unknown("X");
        t.push_known("");
        assert_eq!(t.pieces().len(), 2);
        assert_eq!(t.to_string(), "a=b${X}");
        assert_eq!(t.unknowns(), vec!["X"]);
        let (a, b) = t.split_once('=').unwrap();
        assert_eq!(a.as_known(), Some("a"));
        assert_eq!(b.to_string(), "b${X}");
        assert!(b.as_known().is_none());
        assert_eq!(Text::default().as_known(), Some(""));
    }
}
