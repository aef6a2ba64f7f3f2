//! One data tree for everything that nests: JSON flag values, YAML recipes and options files, JavaScript literals.
//!
//! Scalars keep their spelling and may be partly unknown; mappings keep order, and the last of two equal keys wins on
//! look-up, as the engines' own readers do (crate survey, section 2).

use crate::value::{Piece, Text};

/// How deep a tree may nest before the rest is left out.
pub(crate) const MAX_DEPTH: usize = 48;
/// How many nodes one tree may have before the rest is left out.
pub(crate) const MAX_NODES: usize = 60_000;

/// A value with its line.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    /// The value.
    pub node: Node,
    /// One-based line in its file, 0 if it has none.
    pub line: u32,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// Nothing, or an explicit null.
    Null,
    /// A scalar as spelled; booleans are `true` and `false`.
    Scalar(Text),
    /// A list.
    Seq(Vec<Tree>),
    /// A mapping in order of appearance.
    Map(Vec<(String, Tree)>),
}

impl Tree {
    /// A known scalar.
    pub fn scalar(text: impl Into<String>, line: u32) -> Self {
        Tree {
            node: Node::Scalar(Text::known(text)),
            line,
        }
    }

    /// An empty mapping.
    pub fn empty_map(line: u32) -> Self {
        Tree {
            node: Node::Map(Vec::new()),
            line,
        }
    }

    /// The member `key` of a mapping; the last one of equal keys.
    pub fn get(&self, key: &str) -> Option<&Tree> {
        match &self.node {
            Node::Map(entries) => entries.iter().rev().find(|(k, _)| k == key).map(|(_, v)| v),
            _ => None,
        }
    }

    /// The member at the end of a path of keys.
    pub fn at(&self, path: &[&str]) -> Option<&Tree> {
        path.iter().try_fold(self, |tree, key| tree.get(key))
    }

    /// The entries of a mapping; empty for anything else.
    pub fn entries(&self) -> &[(String, Tree)] {
        match &self.node {
            Node::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The items of a list; empty for anything else.
    pub fn items(&self) -> &[Tree] {
        match &self.node {
            Node::Seq(items) => items,
            _ => &[],
        }
    }

    /// The scalar, known or not.
    pub fn text(&self) -> Option<&Text> {
        match &self.node {
            Node::Scalar(text) => Some(text),
            _ => None,
        }
    }

    /// The scalar, if fully known.
    pub fn as_str(&self) -> Option<&str> {
        self.text().and_then(Text::as_known)
    }

    /// The scalar as a boolean in YAML or Python spelling.
    pub fn as_bool(&self) -> Option<bool> {
        self.as_str().and_then(parse_bool)
    }

    /// The scalar as a whole number.
    pub fn as_u32(&self) -> Option<u32> {
        self.as_str().and_then(|s| s.trim().parse().ok())
    }

    /// Merges `over` onto `self` as srt-slurm merges an override onto its base: mappings join key by key, anything
    /// else replaces.
    pub fn merge(&mut self, over: &Tree) {
        merge_at(self, over, 0);
    }

    /// The known text of all leaves written as JSON, for lists of scalars shown in one flag value.
    pub fn to_text(&self) -> Text {
        let mut out = Text::default();
        write_json(self, &mut out, 0);
        out
    }
}

/// `true`/`false` in YAML, JSON or Python spelling.
pub(crate) fn parse_bool(text: &str) -> Option<bool> {
    match text.trim() {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

fn merge_at(base: &mut Tree, over: &Tree, depth: usize) {
    if depth < MAX_DEPTH
        && let (Node::Map(have), Node::Map(more)) = (&mut base.node, &over.node)
    {
        for (key, value) in more {
            match have.iter_mut().rev().find(|(k, _)| k == key) {
                Some((_, old)) => merge_at(old, value, depth + 1),
                None => have.push((key.clone(), value.clone())),
            }
        }
        return;
    }
    *base = over.clone();
}

fn write_json(tree: &Tree, out: &mut Text, depth: usize) {
    match &tree.node {
        Node::Null => out.push_known("null"),
        Node::Scalar(text) => out.push(text),
        Node::Seq(items) => {
            out.push_known("[");
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push_known(",");
                }
                if depth < MAX_DEPTH {
                    write_json(item, out, depth + 1);
                }
            }
            out.push_known("]");
        }
        Node::Map(entries) => {
            out.push_known("{");
            for (i, (key, value)) in entries.iter().enumerate() {
                if i > 0 {
                    out.push_known(",");
                }
                out.push_known(key);
                out.push_known(":");
                if depth < MAX_DEPTH {
                    write_json(value, out, depth + 1);
                }
            }
            out.push_known("}");
        }
    }
}

/// A text in which every unknown is a word of its own, so that an ordinary reader can parse it; [`Masked::restore`]
/// puts the unknowns back into the scalars that were read.
pub(crate) struct Masked {
    /// The text to parse.
    pub(crate) text: String,
    tag: String,
    names: Vec<String>,
}

impl Masked {
    /// Replaces the unknowns of `text` by words that occur nowhere else in it.
    pub(crate) fn new(text: &Text) -> Self {
        let known: String = text
            .pieces()
            .iter()
            .filter_map(|p| {
                if let Piece::Known(t) = p {
                    Some(t.as_str())
                } else {
                    None
                }
            })
            .collect();
        let mut n = 0u32;
        let tag = loop {
            let tag = format!("zqu{n}x");
            if !known.contains(&tag) {
                break tag;
            }
            n += 1;
        };
        let mut out = String::new();
        let mut names = Vec::new();
        for piece in text.pieces() {
            match piece {
                Piece::Known(t) => out.push_str(t),
                Piece::Unknown(name) => {
                    out.push_str(&format!("{tag}{}q", names.len()));
                    names.push(name.clone());
                }
            }
        }
        Masked { text: out, tag, names }
    }

    /// The scalar with its unknowns restored.
    pub(crate) fn restore(&self, scalar: &str) -> Text {
        let mut out = Text::default();
        let mut rest = scalar;
        while let Some(pos) = rest.find(&self.tag) {
            out.push_known(&rest[..pos]);
            let after = &rest[pos + self.tag.len()..];
            let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            match after[..digits].parse::<usize>().ok().and_then(|i| self.names.get(i)) {
                Some(name) if after[digits..].starts_with('q') => {
                    out.push_unknown(name.clone());
                    rest = &after[digits + 1..];
                }
                _ => {
                    out.push_known(&self.tag);
                    rest = after;
                }
            }
        }
        out.push_known(rest);
        out
    }

    /// The tree with its unknowns restored everywhere.
    pub(crate) fn restore_tree(&self, tree: Tree) -> Tree {
        if self.names.is_empty() {
            return tree;
        }
        let line = tree.line;
        let node = match tree.node {
            Node::Scalar(t) => Node::Scalar(match t.as_known() {
                Some(s) => self.restore(s),
                None => t,
            }),
            Node::Seq(items) => Node::Seq(items.into_iter().map(|t| self.restore_tree(t)).collect()),
            Node::Map(entries) => Node::Map(
                entries
                    .into_iter()
                    .map(|(k, v)| (self.restore(&k).to_string(), self.restore_tree(v)))
                    .collect(),
            ),
            Node::Null => Node::Null,
        };
        Tree { node, line }
    }
}

/// Reads a JSON object or list out of a flag value, as argument parsers of the engines would: Python spellings of the
/// constants and single quotes are tolerated, an unknown may stand anywhere. `None` if it is neither.
pub(crate) fn from_json(text: &Text, line: u32) -> Option<Tree> {
    let trimmed = text.known_prefix().trim_start();
    if !trimmed.starts_with('{') && !trimmed.starts_with('[') {
        return None;
    }
    let masked = Masked::new(text);
    let mut reader = Json {
        src: masked.text.as_bytes(),
        text: &masked.text,
        pos: 0,
        nodes: 0,
        line,
    };
    let tree = reader.value(0)?;
    reader.blanks();
    (reader.pos == reader.src.len()).then(|| masked.restore_tree(tree))
}

struct Json<'a> {
    src: &'a [u8],
    text: &'a str,
    pos: usize,
    nodes: usize,
    line: u32,
}

impl Json<'_> {
    fn blanks(&mut self) {
        while self.src.get(self.pos).is_some_and(|b| b.is_ascii_whitespace()) {
            self.pos += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Option<Tree> {
        self.nodes += 1;
        if depth > MAX_DEPTH || self.nodes > MAX_NODES {
            return None;
        }
        self.blanks();
        let line = self.line;
        match self.src.get(self.pos)? {
            b'{' => {
                self.pos += 1;
                let mut entries = Vec::new();
                loop {
                    self.blanks();
                    if self.eat(b'}') {
                        return Some(Tree {
                            node: Node::Map(entries),
                            line,
                        });
                    }
                    let key = self.scalar()?;
                    self.blanks();
                    if !self.eat(b':') {
                        return None;
                    }
                    entries.push((key, self.value(depth + 1)?));
                    self.blanks();
                    if !self.eat(b',') && self.src.get(self.pos) != Some(&b'}') {
                        return None;
                    }
                }
            }
            b'[' => {
                self.pos += 1;
                let mut items = Vec::new();
                loop {
                    self.blanks();
                    if self.eat(b']') {
                        return Some(Tree {
                            node: Node::Seq(items),
                            line,
                        });
                    }
                    items.push(self.value(depth + 1)?);
                    self.blanks();
                    if !self.eat(b',') && self.src.get(self.pos) != Some(&b']') {
                        return None;
                    }
                }
            }
            b'"' | b'\'' => self.scalar().map(|s| Tree::scalar(s, line)),
            _ => {
                let word = self.scalar()?;
                Some(match word.as_str() {
                    "null" | "None" => Tree { node: Node::Null, line },
                    _ => match parse_bool(&word) {
                        Some(b) => Tree::scalar(b.to_string(), line),
                        None => Tree::scalar(word, line),
                    },
                })
            }
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        let hit = self.src.get(self.pos) == Some(&byte);
        if hit {
            self.pos += 1;
        }
        hit
    }

    fn scalar(&mut self) -> Option<String> {
        match *self.src.get(self.pos)? {
            quote @ (b'"' | b'\'') => {
                self.pos += 1;
                let mut out = String::new();
                let mut start = self.pos;
                loop {
                    let byte = *self.src.get(self.pos)?;
                    if byte == quote {
                        out.push_str(&self.text[start..self.pos]);
                        self.pos += 1;
                        return Some(out);
                    }
                    if byte == b'\\' {
                        out.push_str(&self.text[start..self.pos]);
                        let next = self.text[self.pos + 1..].chars().next()?;
                        self.pos += 1 + next.len_utf8();
                        match next {
                            'n' => out.push('\n'),
                            't' => out.push('\t'),
                            'r' => out.push('\r'),
                            'u' => {
                                let hex = self.text.get(self.pos..self.pos + 4)?;
                                out.push(
                                    u32::from_str_radix(hex, 16)
                                        .ok()
                                        .and_then(char::from_u32)
                                        .unwrap_or('\u{fffd}'),
                                );
                                self.pos += 4;
                            }
                            other => out.push(other),
                        }
                        start = self.pos;
                    } else {
                        self.pos += 1;
                    }
                }
            }
            _ => {
                let start = self.pos;
                while self
                    .src
                    .get(self.pos)
                    .is_some_and(|b| !b.is_ascii_whitespace() && !matches!(b, b',' | b':' | b'{' | b'}' | b'[' | b']'))
                {
                    self.pos += 1;
                }
                (self.pos > start).then(|| self.text[start..self.pos].to_owned())
            }
        }
    }
}

/// Calls `visit` for every leaf with its dotted name; an empty mapping or list is a leaf, and so is a list that holds
/// only scalars (written as one text).
pub(crate) fn leaves(prefix: &str, tree: &Tree, visit: &mut dyn FnMut(String, Text, u32)) {
    leaves_at(prefix, tree, 0, visit);
}

fn leaves_at(prefix: &str, tree: &Tree, depth: usize, visit: &mut dyn FnMut(String, Text, u32)) {
    if depth > MAX_DEPTH {
        return;
    }
    match &tree.node {
        Node::Null => visit(prefix.to_owned(), Text::known("null"), tree.line),
        Node::Scalar(text) => visit(prefix.to_owned(), text.clone(), tree.line),
        Node::Map(entries) if !entries.is_empty() => {
            for (key, value) in entries {
                leaves_at(&format!("{prefix}.{key}"), value, depth + 1, visit);
            }
        }
        Node::Seq(items) if items.iter().any(|i| matches!(i.node, Node::Map(_) | Node::Seq(_))) => {
            for (i, value) in items.iter().enumerate() {
                leaves_at(&format!("{prefix}.{i}"), value, depth + 1, visit);
            }
        }
        Node::Map(_) | Node::Seq(_) => visit(prefix.to_owned(), tree.to_text(), tree.line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat(text: &Text) -> Vec<(String, String)> {
        let tree = from_json(text, 7).unwrap();
        let mut out = Vec::new();
        leaves("x", &tree, &mut |k, v, _| out.push((k, v.to_string())));
        out
    }

    #[test]
    fn json_with_unknowns_in_and_out_of_quotes() {
        let mut t = Text::known(r#"{"method":"mtp","num_speculative_tokens":"#);
        t.push_unknown("K");
        t.push_known(r#","synthetic_acceptance_length":2.50,"d":["a", 1],"n":{"m":True,"path":"/x/"#);
        t.push_unknown("HOME");
        t.push_known(r#""},"e":{},"l":[{"k":null}]}"#);
        let want = [
            ("x.method", "mtp"),
            ("x.num_speculative_tokens", "${K}"),
            ("x.synthetic_acceptance_length", "2.50"),
            ("x.d", "[a,1]"),
            ("x.n.m", "true"),
            ("x.n.path", "/x/${HOME}"),
            ("x.e", "{}"),
            ("x.l.0.k", "null"),
        ];
        assert_eq!(flat(&t), want.map(|(a, b)| (a.to_owned(), b.to_owned())));
    }

    #[test]
    fn not_json_is_none_and_depth_is_bounded() {
        for bad in [
            "plain",
            "{",
            "{\"a\"}",
            "{\"a\":1}x",
            "[1,,2]",
            "{\"a\":\"\\",
            "{\"a\" \"b\"}",
        ] {
            assert!(from_json(&Text::known(bad), 1).is_none(), "{bad}");
        }
        assert!(from_json(&Text::known("[".repeat(10_000)), 1).is_none());
        assert!(from_json(&Text::known(format!("{}1{}", "[".repeat(40), "]".repeat(40))), 1).is_some());
    }

    #[test]
    fn masks_never_collide() {
        let mut t = Text::known("zqu0x0q ");
        t.push_unknown("A");
        let m = Masked::new(&t);
        assert_eq!(m.restore(&m.text), t);
    }

    #[test]
    fn merge_joins_maps_and_replaces_the_rest() {
        let mut a = from_json(&Text::known(r#"{"a":{"x":1,"y":[1]},"b":2}"#), 1).unwrap();
        let b = from_json(&Text::known(r#"{"a":{"y":[2,3],"z":4},"b":{"c":1}}"#), 2).unwrap();
        a.merge(&b);
        assert_eq!(a.to_text().to_string(), "{a:{x:1,y:[2,3],z:4},b:{c:1}}");
    }
}
