//! A text in pieces, one for each element of its root, that can be read each by itself: of two revisions of a long file most
//! pieces are the same, and those need not be read again.
//!
//! A piece reaches from the line at which an element begins, in the first column, to the line before the next one. Read in
//! its place or alone it gives the same, where none of these is about: anchors, directives, several documents, tabs and
//! carriage returns, anything but comments in front of the first element. A quoted text or a bracket that is still open at
//! the end of a piece is an error when the piece is read alone, and so never goes unseen. The place of an empty text at the
//! end is that of whatever follows it (see [`Node::ends_empty`]).

use crate::node::{Document, Node, Value};
use crate::{Limits, compose, source};

/// What the elements of the root are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    /// The root is a sequence; each element begins with a dash.
    Seq,
    /// The root is a mapping; each element begins with a key.
    Map,
}

impl Root {
    fn begins(self, line: &str) -> bool {
        match self {
            Root::Seq => dash(line),
            Root::Map => line.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '"' | '\'')),
        }
    }

    /// Whether a root has one element.
    fn has_one(self, value: &Value) -> bool {
        match (self, value) {
            (Root::Seq, Value::Seq(items)) => items.len() == 1,
            (Root::Map, Value::Map(map)) => map.len() == 1,
            _ => false,
        }
    }
}

fn dash(line: &str) -> bool {
    line.starts_with("- ") || line.trim_end_matches('\n') == "-"
}

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece<'t> {
    /// What stands in it, with its line ends.
    pub text: &'t str,
    /// The line of the whole text at which it begins, from 1.
    pub line: u32,
    /// The byte of the whole text at which it begins.
    pub start: usize,
    root: Root,
}

impl Piece<'_> {
    /// Reads the piece by itself: a document whose root has one element, with the piece's own lines and bytes. `None` where
    /// what it says may depend on the rest of the text, or is not YAML: then the whole text must be read.
    #[must_use]
    pub fn read(&self, limits: &Limits) -> Option<Document> {
        let document = compose::parse(self.text, limits).ok()?;
        let alone = !document.anchors && self.root.has_one(&document.root.value) && !document.root.ends_empty();
        alone.then_some(document)
    }
}

/// Cuts a text where an element of its root may begin. Whether one does is known when the piece, or the whole text, has been
/// read. `None` where reading piece by piece might not give what reading the whole gives, or not refuse what that refuses.
#[must_use]
pub fn pieces<'t>(text: &'t str, root: Root, limits: &Limits) -> Option<Vec<Piece<'t>>> {
    if !within(text, limits) || text.as_bytes().contains(&b'\t') || text.as_bytes().contains(&b'\r') {
        return None;
    }
    let mut begins: Vec<(usize, u32)> = Vec::new();
    let (mut at, mut number) = (0, 0);
    for line in text.split_inclusive('\n') {
        number += 1;
        match line.as_bytes().first() {
            Some(b' ' | b'\n' | b'#') if !begins.is_empty() => {}
            Some(b' ' | b'\n' | b'#') => {
                let inside = line.trim_start();
                if !inside.is_empty() && !inside.starts_with('#') {
                    return None;
                }
            }
            _ if line.starts_with("---") || line.starts_with("...") || line.starts_with('%') => return None,
            _ if root.begins(line) => begins.push((at, number)),
            // A sequence may stand in the column of the key that it belongs to.
            _ if root == Root::Map && dash(line) && !begins.is_empty() => {}
            _ => return None,
        }
        at += line.len();
    }
    let first = begins.first().map_or(text.len(), |(at, _)| *at);
    source::check(&text[..first], limits.max_bytes).ok()?;
    let ends = begins.iter().skip(1).map(|(at, _)| *at).chain([text.len()]);
    Some(
        begins
            .iter()
            .zip(ends)
            .map(|(&(at, line), end)| Piece {
                text: &text[at..end],
                line,
                start: at,
                root,
            })
            .collect(),
    )
}

impl Node {
    /// Whether the last thing in it is an empty text, or nothing but blank lines: its place may be that of what follows in the file.
    #[must_use]
    pub fn ends_empty(&self) -> bool {
        match &self.value {
            Value::Str(text) => text.trim().is_empty(),
            Value::Seq(items) => items.last().is_some_and(Node::ends_empty),
            Value::Map(map) => map.entries.last().is_some_and(|entry| entry.value.ends_empty()),
            _ => false,
        }
    }
}

/// Whether the whole text is within the limits, however it reads: a value needs an indicator or a parent that has one, a
/// mark makes three values at most (a mapping, a key and a value), and an escape makes at most twice its own bytes.
fn within(text: &str, limits: &Limits) -> bool {
    // Counted in small numbers, which is several times as fast.
    let few = |bytes: &[u8]| {
        let mark = |byte: &u8| u8::from(matches!(*byte, b':' | b'?' | b'-' | b',' | b'[' | b'{'));
        usize::from(bytes.iter().map(mark).sum::<u8>())
    };
    let marks: usize = text.as_bytes().chunks(255).map(few).sum();
    text.len() <= limits.max_bytes
        && text.len().saturating_mul(2) <= limits.max_scalar_bytes
        && marks.saturating_mul(3) < limits.max_nodes
}

#[cfg(test)]
mod tests {
    use super::{Root, pieces};
    use crate::node::{Node, Value};
    use crate::{Limits, parse};
    use proptest::prelude::*;

    fn limits() -> Limits {
        Limits::default()
    }

    /// Values and their lines and columns.
    fn shown(node: &Node, moved: u32) -> String {
        let inner = match &node.value {
            Value::Seq(items) => items.iter().map(|item| shown(item, moved)).collect(),
            Value::Map(map) => map
                .iter()
                .map(|(key, value)| format!("{} = {}, ", shown(key, moved), shown(value, moved)))
                .collect(),
            other => format!("{other:?}"),
        };
        format!("{}:{} ({inner})", node.span.line + moved, node.span.column)
    }

    /// What reading piece by piece gives, where it gives anything.
    fn apart(text: &str, root: Root) -> Option<Vec<String>> {
        let mut out = Vec::new();
        for piece in pieces(text, root, &limits())? {
            let document = piece.read(&limits())?;
            if !document.duplicate_keys.is_empty() {
                return None;
            }
            match document.root.value {
                Value::Seq(items) => out.extend(items.iter().map(|item| shown(item, piece.line - 1))),
                Value::Map(map) => out.extend(
                    map.iter()
                        .map(|(key, value)| shown(key, piece.line - 1) + &shown(value, piece.line - 1)),
                ),
                _ => return None,
            }
        }
        Some(out)
    }

    /// What reading the whole gives.
    fn whole(text: &str) -> Result<Vec<String>, String> {
        let document = parse(text, &limits()).map_err(|error| error.to_string())?;
        Ok(match &document.root.value {
            Value::Seq(items) => items.iter().map(|item| shown(item, 0)).collect(),
            Value::Map(map) => map
                .iter()
                .map(|(key, value)| shown(key, 0) + &shown(value, 0))
                .collect(),
            Value::Null => Vec::new(),
            other => vec![format!("{other:?}")],
        })
    }

    #[test]
    fn pieces_are_cut_at_the_elements_of_the_root() {
        let text = "# a note\n\none:\n  - a\n# another\ntwo: |\n  text\n\n  more\n";
        let cut = pieces(text, Root::Map, &limits()).unwrap_or_default();
        let cut: Vec<_> = cut.iter().map(|piece| (piece.line, piece.text)).collect();
        assert_eq!(
            cut,
            [(3, "one:\n  - a\n# another\n"), (6, "two: |\n  text\n\n  more\n")]
        );
        assert_eq!(apart(text, Root::Map), whole(text).ok());
        assert_eq!(pieces("", Root::Map, &limits()), Some(Vec::new()));
    }

    #[test]
    fn what_reaches_beyond_its_piece_is_not_read_in_pieces() {
        for text in [
            "a: \"x\nb: y\"\n",
            "a: [1,\nb, 2]\n",
            "a: &n 1\nb: *n\n",
            "a: &n 1\nb: &n 2\n",
            "%YAML 1.1\n---\na: 1\n",
            "a: 1\n---\nb: 1\n",
            "a: 1\n...\n",
            "x\na: 1\n",
            "  a: 1\n",
            "a: 1\n? b\n: 2\n",
            "# \u{1}\na: 1\n",
            "a: 1\tx\n",
            "a: 1\r\nb: 2\r\n",
            "\u{feff}a: 1\n",
        ] {
            assert_eq!(apart(text, Root::Map), None, "{text:?}");
        }
        for text in ["[\n- a\n]\n", "- \"a\n- b\"\n", "- a\nb: 1\n"] {
            assert_eq!(apart(text, Root::Seq), None, "{text:?}");
        }
        let few = Limits {
            max_nodes: 10,
            ..limits()
        };
        assert_eq!(pieces("a: 1\nb: 2\nc: 3\nd: 4\n", Root::Map, &few), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

        /// Any lines: what is read in pieces is what the whole gives.
        #[test]
        fn pieces_give_what_the_whole_gives(picked in prop::collection::vec(0usize..42, 1..9), end in any::<bool>(), map in any::<bool>()) {
            const LINES: &[&str] = &[
                "a: 1", "b:", "c: |", "d: >-", "e: |+", "f: \"x", "g: x", "\"h\": [1,", "i: {a: b}", "j: - x", "- a", "- b: 1", "- |", "-",
                "- - x", "- \"y", "- {a: 1,", "- x # c", "  k: 2", "  - c", "  text", "    deep: x", " one", "  m: &n 1", "  o: *n", "  x\"",
                "  y]", "  z}", "]", "\"", "", "", "# note", "  # note", "'", "? q", ": r", "<<: {a: 1}", "  <<: {a: 1}", "  ", "!!str s: 1", "-x: 1",
            ];
            let mut text = picked.iter().map(|at| LINES[*at]).collect::<Vec<_>>().join("\n");
            if end {
                text.push('\n');
            }
            let root = if map { Root::Map } else { Root::Seq };
            if let Some(apart) = apart(&text, root) {
                let keys_differ = |text: &str| parse(text, &limits()).is_ok_and(|document| document.duplicate_keys.is_empty());
                if map && !keys_differ(&text) && whole(&text).is_ok() {
                    // Equal keys in two pieces: that is for the caller to see.
                    return Ok(());
                }
                prop_assert_eq!(Ok(apart), whole(&text), "{}", text);
            }
        }
    }
}
