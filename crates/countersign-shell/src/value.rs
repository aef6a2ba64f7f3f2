//! Values that may be partly unknown. A value is a row of pieces: text whose writing place is known, or an
//! unknown that says what it is and which unknowns it depends on. Nothing unknown is ever dropped.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;

use crate::pieces::Pieces;
pub use crate::span::Span;

/// Why something is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// A variable of the environment that was declared unknown.
    Environment,
    /// A variable of the shell or the host (`$RANDOM`, `$HOSTNAME`, `$SECONDS`).
    Host,
    /// Output of a command that is not run.
    Output,
    /// Exit status of a command that is not run.
    Status,
    /// Id of a process that is not started.
    Process,
    /// Arithmetic over an unknown, or an error in it.
    Arithmetic,
    /// An expansion or text filter applied to an unknown.
    Transform,
    /// A default expansion whose condition is unknown: one of the choices.
    Default,
    /// Different in branches that were joined; the choices are the branches' values.
    Joined,
    /// Changed in a loop whose number of rounds is unknown.
    Loop,
    /// Read from an input that is not known.
    Input,
    /// Possibly set by text that is evaluated but not known, or by a file outside the tree.
    Foreign,
    /// Contents of a file that is not known.
    File,
    /// Beyond a bound.
    Limit,
    /// A construct this reader does not evaluate.
    Unsupported,
    /// Different for the points that are evaluated together.
    Lane,
}

/// What is known about the text of an unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// Nothing.
    Any,
    /// Not empty.
    NonEmpty,
    /// A number: not empty, one word.
    Number,
}

/// An unknown.
#[derive(Debug, Clone)]
pub struct Unknown {
    /// Identity: the same unknown at the same place has the same id.
    pub id: u64,
    /// How it is written, e.g. `$SLURM_JOB_ID` or `$(hostname)`.
    pub name: Arc<str>,
    /// Why it is unknown.
    pub why: Why,
    /// Names of the unknowns it comes from (its own name for a root).
    pub depends_on: BTreeSet<Arc<str>>,
    /// What is known about its text.
    pub shape: Shape,
    /// The values it can take, when they are known to be these.
    pub choices: Vec<Value>,
    /// The same wherever it is read in one evaluation (environment variables).
    pub stable: bool,
    /// Its text for each of the points that are evaluated together; then it is known, only not the same for all.
    pub each: Option<Arc<[Arc<str>]>>,
    /// The same with the places where each was written; nothing where that is the place of the piece for all.
    pub(crate) written: Option<Arc<[Value]>>,
}

impl PartialEq for Unknown {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Unknown {}

/// A piece of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PieceKind {
    /// Known text.
    Text(Arc<str>),
    /// Unknown text.
    Unknown(Arc<Unknown>),
}

/// A piece and the place where it was written.
#[derive(Debug, Clone)]
pub struct Piece {
    /// The piece.
    pub kind: PieceKind,
    /// Where it was written.
    pub at: Span,
}

impl Piece {
    /// Whether both are texts of one line.
    fn goes_on_in(&self, next: &Piece) -> bool {
        matches!((&self.kind, &next.kind), (PieceKind::Text(_), PieceKind::Text(_)))
            && self.at.file == next.at.file
            && self.at.line == next.at.line
    }
}

/// A value: pieces in order. The empty value is the known empty text.
#[derive(Debug, Clone, Default)]
pub struct Value {
    pieces: Pieces,
}

/// Pieces kept apart by line in one value; above it neighbouring texts are put together.
pub(crate) const MAX_PIECES: usize = 2048;

impl Value {
    /// The empty text.
    pub fn empty() -> Value {
        Value::default()
    }

    /// Known text.
    pub fn text(text: impl Into<Arc<str>>, at: Span) -> Value {
        let mut value = Value::default();
        value.push_text(text.into(), at);
        value
    }

    /// One unknown.
    pub fn unknown(unknown: Arc<Unknown>, at: Span) -> Value {
        Value {
            pieces: Pieces::One([Piece {
                kind: PieceKind::Unknown(unknown),
                at,
            }]),
        }
    }

    /// The pieces.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// True for the known empty text.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// True when no piece is unknown.
    pub fn is_known(&self) -> bool {
        self.pieces.iter().all(|p| matches!(p.kind, PieceKind::Text(_)))
    }

    /// The text when all of it is known.
    pub fn known(&self) -> Option<Cow<'_, str>> {
        match &*self.pieces {
            [] => Some(Cow::Borrowed("")),
            [
                Piece {
                    kind: PieceKind::Text(text),
                    ..
                },
            ] => Some(Cow::Borrowed(text)),
            pieces => {
                let mut out = String::new();
                for piece in pieces {
                    match &piece.kind {
                        PieceKind::Text(text) => out.push_str(text),
                        PieceKind::Unknown(_) => return None,
                    }
                }
                Some(Cow::Owned(out))
            }
        }
    }

    /// The text with the unknowns written by name, for people.
    pub fn display(&self) -> String {
        let mut out = String::new();
        for piece in self.pieces.iter() {
            match &piece.kind {
                PieceKind::Text(text) => out.push_str(text),
                PieceKind::Unknown(unknown) => out.push_str(&unknown.name),
            }
        }
        out
    }

    /// Bytes of the known pieces plus a fixed cost for each unknown.
    pub fn size(&self) -> usize {
        let size = |p: &Piece| match &p.kind {
            PieceKind::Text(text) => text.len(),
            PieceKind::Unknown(unknown) => match &unknown.each {
                Some(each) => each.iter().map(|text| text.len()).max().unwrap_or_default(),
                None => 16,
            },
        };
        self.pieces.iter().map(size).sum()
    }

    /// The unknowns in it, in order.
    pub fn unknowns(&self) -> impl Iterator<Item = &Arc<Unknown>> {
        self.pieces.iter().filter_map(|p| match &p.kind {
            PieceKind::Unknown(unknown) => Some(unknown),
            PieceKind::Text(_) => None,
        })
    }

    /// Names of all unknowns this value depends on.
    pub fn depends_on(&self) -> BTreeSet<Arc<str>> {
        self.unknowns().flat_map(|u| u.depends_on.iter().cloned()).collect()
    }

    /// Places where its pieces were written, in order, each once: where a flag's value comes from.
    pub fn sources(&self) -> Vec<Span> {
        let mut out: Vec<Span> = Vec::new();
        for piece in self.pieces.iter() {
            if piece.at.line > 0 && !out.iter().any(|s| s.file == piece.at.file && s.line == piece.at.line) {
                out.push(piece.at);
            }
        }
        out
    }

    /// The single unknown that the whole value is.
    pub fn single_unknown(&self) -> Option<&Arc<Unknown>> {
        match &*self.pieces {
            [
                Piece {
                    kind: PieceKind::Unknown(unknown),
                    ..
                },
            ] => Some(unknown),
            _ => None,
        }
    }

    /// Every text the value can be, when that is a known and short list (one for a known value).
    pub fn possible_texts(&self) -> Option<Vec<String>> {
        let mut all = vec![String::new()];
        for piece in self.pieces.iter() {
            match &piece.kind {
                PieceKind::Text(text) => all.iter_mut().for_each(|t| t.push_str(text)),
                PieceKind::Unknown(unknown) => {
                    if unknown.choices.is_empty() {
                        return None;
                    }
                    let mut choices = Vec::new();
                    for choice in &unknown.choices {
                        choices.extend(choice.possible_texts()?);
                    }
                    if all.len() * choices.len() > 64 {
                        return None;
                    }
                    all = all
                        .iter()
                        .flat_map(|head| choices.iter().map(move |tail| format!("{head}{tail}")))
                        .collect();
                }
            }
        }
        let mut seen = BTreeSet::new();
        all.retain(|t| seen.insert(t.clone()));
        Some(all)
    }

    /// Append known text; text of the same line is put together with what is there.
    pub fn push_text(&mut self, text: Arc<str>, at: Span) {
        if text.is_empty() {
            return;
        }
        let many = self.pieces.len() >= MAX_PIECES;
        let piece = Piece {
            kind: PieceKind::Text(text),
            at,
        };
        // Asked first: who may change a shared list has to copy it.
        let joins = |last: &Piece| many && matches!(last.kind, PieceKind::Text(_)) || last.goes_on_in(&piece);
        if self.pieces.last().is_some_and(joins)
            && let Some(Piece {
                kind: PieceKind::Text(last),
                ..
            }) = self.pieces.last_mut()
            && let PieceKind::Text(text) = &piece.kind
        {
            *last = [&**last, &**text].concat().into();
            return;
        }
        self.pieces.push(piece);
    }

    /// Append an unknown.
    pub fn push_unknown(&mut self, unknown: Arc<Unknown>, at: Span) {
        self.pieces.push(Piece {
            kind: PieceKind::Unknown(unknown),
            at,
        });
    }

    /// Append a piece.
    pub fn push_piece(&mut self, piece: &Piece) {
        match &piece.kind {
            PieceKind::Text(text) => self.push_text(text.clone(), piece.at),
            PieceKind::Unknown(_) => self.pieces.push(piece.clone()),
        }
    }

    /// Append a piece as it is.
    pub(crate) fn push_apart(&mut self, piece: Piece) {
        self.pieces.push(piece);
    }

    /// Append a value.
    pub fn append(&mut self, other: &Value) {
        if self.is_empty() && other.is_put_together() {
            self.pieces = other.pieces.clone();
            return;
        }
        for piece in other.pieces.iter() {
            self.push_piece(piece);
        }
    }

    /// Whether appending it piece by piece to nothing would give the same pieces.
    fn is_put_together(&self) -> bool {
        let empty = |piece: &Piece| matches!(&piece.kind, PieceKind::Text(text) if text.is_empty());
        self.pieces.len() <= MAX_PIECES
            && !self.pieces.iter().any(empty)
            && self.pieces.windows(2).all(|pair| !pair[0].goes_on_in(&pair[1]))
    }

    /// Whether both are the same text and the same unknowns, wherever they were written and however it is cut into pieces.
    /// Asked for every pair of worlds: it makes no copies.
    pub fn same(&self, other: &Value) -> bool {
        let (mut ours, mut theirs) = (self.pieces.iter(), other.pieces.iter());
        // What is left of the text piece that each side is in.
        let (mut x, mut y): (&[u8], &[u8]) = (&[], &[]);
        loop {
            let common = x.len().min(y.len());
            if x[..common] != y[..common] {
                return false;
            }
            (x, y) = (&x[common..], &y[common..]);
            match (x.is_empty(), y.is_empty()) {
                (true, true) => match (next_filled(&mut ours), next_filled(&mut theirs)) {
                    (None, None) => return true,
                    (Some(PieceKind::Text(a)), Some(PieceKind::Text(b))) => {
                        if !Arc::ptr_eq(a, b) {
                            (x, y) = (a.as_bytes(), b.as_bytes());
                        }
                    }
                    (Some(PieceKind::Unknown(a)), Some(PieceKind::Unknown(b))) if a.id == b.id => {}
                    _ => return false,
                },
                (false, _) => match next_filled(&mut theirs) {
                    Some(PieceKind::Text(text)) => y = text.as_bytes(),
                    _ => return false,
                },
                (true, false) => match next_filled(&mut ours) {
                    Some(PieceKind::Text(text)) => x = text.as_bytes(),
                    _ => return false,
                },
            }
        }
    }

    /// Whether it is empty: known, or unknown (None).
    pub fn emptiness(&self) -> Option<bool> {
        let mut maybe = false;
        for piece in self.pieces.iter() {
            match &piece.kind {
                PieceKind::Text(_) => return Some(false),
                PieceKind::Unknown(unknown) => match unknown.emptiness() {
                    Some(false) => return Some(false),
                    Some(true) => {}
                    None => maybe = true,
                },
            }
        }
        if maybe { None } else { Some(true) }
    }

    /// The value without trailing newlines, as command substitution gives it.
    pub(crate) fn trim_newlines(mut self) -> Value {
        let ends = |piece: &Piece| matches!(&piece.kind, PieceKind::Text(text) if text.ends_with('\n'));
        while self.pieces.last().is_some_and(ends)
            && let Some(Piece {
                kind: PieceKind::Text(text),
                ..
            }) = self.pieces.last_mut()
        {
            let trimmed = text.trim_end_matches('\n');
            if trimmed.is_empty() {
                self.pieces.pop();
            } else {
                *text = trimmed.into();
                break;
            }
        }
        self
    }

    /// The lines of a value; an unknown piece stays in the line it stands in.
    pub(crate) fn lines(&self) -> Vec<Value> {
        let mut out = vec![Value::default()];
        for piece in self.pieces.iter() {
            match &piece.kind {
                PieceKind::Text(text) => {
                    let mut at = piece.at;
                    for (index, line) in text.split('\n').enumerate() {
                        if index > 0 {
                            out.push(Value::default());
                            at.line += u32::from(at.line > 0);
                            at.col = 1;
                        }
                        if let Some(last) = out.last_mut() {
                            last.push_text(line.into(), at);
                        }
                    }
                }
                PieceKind::Unknown(_) => {
                    if let Some(last) = out.last_mut() {
                        last.push_piece(piece);
                    }
                }
            }
        }
        if out.last().is_some_and(Value::is_empty) {
            out.pop();
        }
        out
    }

    /// Replace an unknown by a value everywhere in it.
    pub(crate) fn substitute(&self, id: u64, with: &Value) -> Option<Value> {
        if !self.unknowns().any(|u| u.id == id) {
            return None;
        }
        let mut out = Value::default();
        for piece in self.pieces.iter() {
            match &piece.kind {
                PieceKind::Unknown(unknown) if unknown.id == id => out.append(with),
                _ => out.push_piece(piece),
            }
        }
        Some(out)
    }
}

/// The next piece that is not an empty text.
fn next_filled<'p>(pieces: &mut std::slice::Iter<'p, Piece>) -> Option<&'p PieceKind> {
    pieces
        .map(|piece| &piece.kind)
        .find(|kind| !matches!(kind, PieceKind::Text(text) if text.is_empty()))
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.same(other)
    }
}

impl Eq for Value {}

impl Unknown {
    fn emptiness(&self) -> Option<bool> {
        if self.shape != Shape::Any {
            return Some(false);
        }
        let mut answers = self.choices.iter().map(Value::emptiness);
        let first = answers.next()??;
        answers.all(|a| a == Some(first)).then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sameness_does_not_see_how_a_text_is_cut() {
        let unknown = |id| {
            Arc::new(Unknown {
                id,
                name: "$X".into(),
                why: Why::Environment,
                depends_on: BTreeSet::new(),
                shape: Shape::Any,
                choices: Vec::new(),
                stable: true,
                each: None,
                written: None,
            })
        };
        let value = |parts: &[Result<&str, u64>]| {
            let mut out = Value::empty();
            for (line, part) in parts.iter().enumerate() {
                let at = Span {
                    file: 0,
                    line: line as u32,
                    col: 1,
                };
                match part {
                    Ok(text) => out.append(&Value::text(*text, at)),
                    Err(id) => out.append(&Value::unknown(unknown(*id), at)),
                }
            }
            out
        };
        let same: [[&[Result<&str, u64>]; 2]; 4] = [
            [&[], &[Ok("")]],
            [&[Ok("aß"), Ok("c")], &[Ok("a"), Ok("ßc")]],
            [&[Ok("a"), Err(1), Ok("b")], &[Ok("a"), Ok(""), Err(1), Ok("b")]],
            [&[Err(1), Err(2)], &[Err(1), Ok(""), Err(2)]],
        ];
        for [a, b] in same {
            assert!(value(a).same(&value(b)) && value(b).same(&value(a)), "{a:?} {b:?}");
        }
        let different: [[&[Result<&str, u64>]; 2]; 6] = [
            [&[Ok("a")], &[]],
            [&[Ok("a")], &[Ok("ab")]],
            [&[Ok("a"), Ok("b")], &[Ok("a"), Ok("c")]],
            [&[Err(1)], &[Err(2)]],
            [&[Err(1), Ok("a")], &[Ok("a"), Err(1)]],
            [&[Ok("a"), Err(1)], &[Ok("a")]],
        ];
        for [a, b] in different {
            assert!(!value(a).same(&value(b)) && !value(b).same(&value(a)), "{a:?} {b:?}");
        }
    }
}
