//! Values that are put together from many pieces.

use crate::value::{MAX_PIECES, Piece, PieceKind, Span, Value};

/// A value that is put together from many pieces: as [`Value::append`] does, without copying what is there for each.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    value: Value,
    /// The text at the end, which may grow.
    open: Option<(String, Span)>,
}

impl Builder {
    pub(crate) fn push_text(&mut self, text: &str, at: Span) {
        if text.is_empty() {
            return;
        }
        let many = self.value.pieces().len() + usize::from(self.open.is_some()) >= MAX_PIECES;
        if let Some((open, last)) = &mut self.open
            && (many || (last.file == at.file && last.line == at.line))
        {
            open.push_str(text);
            return;
        }
        self.close();
        self.open = Some((text.to_owned(), at));
    }

    pub(crate) fn append(&mut self, value: &Value) {
        for piece in value.pieces() {
            match &piece.kind {
                PieceKind::Text(text) => self.push_text(text, piece.at),
                PieceKind::Unknown(_) => {
                    self.close();
                    self.value.push_apart(piece.clone());
                }
            }
        }
    }

    fn close(&mut self) {
        if let Some((text, at)) = self.open.take() {
            let kind = PieceKind::Text(text.into());
            self.value.push_apart(Piece { kind, at });
        }
    }

    pub(crate) fn finish(mut self) -> Value {
        self.close();
        self.value
    }
}

/// Lines with their ends.
pub(crate) fn joined_lines(lines: &[Value]) -> Value {
    let mut out = Builder::default();
    for line in lines {
        out.append(line);
        let at = line.pieces().last().map_or(Span::NOWHERE, |p| p.at);
        out.push_text("\n", at);
    }
    out.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_builder_cuts_as_appending_does() {
        let at = |line| Span { file: 0, line, col: 1 };
        let mut lines: Vec<Value> = Vec::new();
        for line in 0..3000 {
            let mut value = Value::text(format!("a{line}"), at(line / 3));
            value.push_text("b".into(), at(line / 2));
            lines.push(value);
        }
        lines.push(Value::empty());
        for many in [0, 1, 7, lines.len()] {
            let mut slow = Value::empty();
            for line in &lines[..many] {
                slow.append(line);
                slow.push_text("\n".into(), line.pieces().last().map_or(Span::NOWHERE, |p| p.at));
            }
            let quick = joined_lines(&lines[..many]);
            let cut = |value: &Value| -> Vec<(PieceKind, Span)> {
                value.pieces().iter().map(|p| (p.kind.clone(), p.at)).collect()
            };
            assert_eq!(cut(&quick), cut(&slow), "{many}");
        }
    }
}
