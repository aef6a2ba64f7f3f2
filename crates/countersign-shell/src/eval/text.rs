//! Text that a script has evaluated.

use std::sync::Arc;

use super::flow::short;
use super::{Evaluator, MAX_DEPTH};
use crate::output::Note;
use crate::syntax::Script;
use crate::value::{PieceKind, Span, Unknown, Value};
use crate::world::{Status, World};

impl Evaluator<'_> {
    /// `eval`, `bash -c`, traps: a text as statements in this world. Unknown pieces of it stay unknown pieces of
    /// its words.
    pub(super) fn eval_text(&mut self, world: World, text: &Value, at: Span) -> Vec<World> {
        if text.is_empty() {
            return vec![World {
                status: Status::Known(0),
                ..world
            }];
        }
        let mut holes: Vec<Value> = Vec::new();
        let known_at = text.pieces().iter().map(|p| p.at).find(|a| a.line > 0).unwrap_or(at);
        // Words are placed where the text was written when it starts in this file, else at the `eval`.
        let place = if known_at.file == self.file { known_at } else { at };
        let mut foreign = false;
        let mut rendered = String::new();
        let mut any_text = false;
        for (index, piece) in text.pieces().iter().enumerate() {
            match &piece.kind {
                PieceKind::Text(known) => {
                    any_text |= !known.trim().is_empty();
                    // The marker must mean only what is put here.
                    rendered.push_str(&known.replace(crate::syntax::HOLE, "?"));
                }
                PieceKind::Unknown(unknown) => {
                    let next = text.pieces().get(index + 1).map(|p| &p.kind);
                    let alone = stands_alone(&rendered, next);
                    rendered.push_str(&format!(
                        "{}{}{}",
                        crate::syntax::HOLE,
                        holes.len(),
                        crate::syntax::HOLE_END
                    ));
                    let mut at = piece.at;
                    if unknown.each.is_some() {
                        // Read as the text that it is for each point: where that would stand.
                        let lines = rendered.bytes().filter(|b| *b == b'\n').count();
                        at = Span {
                            file: self.file,
                            line: place.line.max(1) + lines as u32,
                            col: 1,
                        };
                        any_text = true;
                    }
                    foreign |= unknown.each.is_none();
                    if unknown.each.is_some() && !alone {
                        self.lanes.void();
                    }
                    let written_apart = unknown.written.is_some();
                    let own = match written_apart {
                        true => Arc::new(Unknown {
                            written: None,
                            ..(**unknown).clone()
                        }),
                        false => unknown.clone(),
                    };
                    if written_apart && piece.at == known_at {
                        self.lanes.void();
                    }
                    holes.push(Value::unknown(own, at));
                }
            }
        }
        if !any_text {
            let shown = short(&text.display());
            self.note(
                Note::ForeignCode,
                at,
                format!("text that is not known is evaluated: {shown}"),
            );
            return self.foreign(vec![world], &format!("eval of {shown}"), at);
        }
        if foreign {
            let shown = short(&text.display());
            self.note(
                Note::ForeignCode,
                at,
                format!("text that is partly unknown is evaluated: {shown}"),
            );
        }
        if self.calls_open >= self.limits.call_depth || self.depth + 8 >= MAX_DEPTH {
            self.note(Note::Bound, at, "evaluated text nested too deeply; not followed".into());
            return self.foreign(vec![world], "eval", at);
        }
        self.count_bytes(at, rendered.len());
        self.steps += rendered.len() / 16;
        let start = crate::syntax::Pos {
            line: place.line.max(1),
            col: place.col.max(1),
        };
        let path = self.script.path.clone();
        let script = Arc::new(Script::parse_with(&path, &rendered, &self.limits, start, holes));
        for issue in script.issues() {
            let span = Span {
                file: self.file,
                line: issue.at.line,
                col: issue.at.col,
            };
            self.note(
                Note::Syntax(issue.kind),
                span,
                format!("in evaluated text: {}", issue.message),
            );
        }
        let saved = std::mem::replace(&mut self.script, script.clone());
        self.calls_open += 1;
        let after = self.block(&script.body, vec![world]);
        self.calls_open -= 1;
        self.script = saved;
        after
    }
}

/// Whether a text between what is in front of it and what follows could only be read as text.
fn stands_alone(before: &str, after: Option<&PieceKind>) -> bool {
    let plain = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '/' | ':');
    let follows = match after {
        None => true,
        Some(PieceKind::Text(text)) => text.starts_with(|c| plain(c) || c == ';'),
        Some(PieceKind::Unknown(_)) => false,
    };
    follows && before.ends_with(|c| plain(c) || c == '=')
}
