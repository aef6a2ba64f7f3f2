//! What the evaluator does with values that differ between the points that are evaluated together ([`crate::lanes`]).

use std::sync::Arc;

use super::programs::Computed;
use super::{Answer, Answers, Evaluator};
use crate::arith::Num;
use crate::lanes::{each_of, each_value, is_plain, passed_on};
use crate::output::{Command, Word};
use crate::value::{PieceKind, Span, Unknown, Value};
use crate::world::{Source, Status, World};

impl Evaluator<'_> {
    /// The status of an arithmetic command whose number differs between points.
    pub(super) fn zero_in_lanes(&mut self, numbers: &[i64]) -> Status {
        let zero: Vec<bool> = numbers.iter().map(|n| *n == 0).collect();
        Status::Known(i32::from(self.lanes.agree(&zero).unwrap_or_default()))
    }

    /// A status that is the same for all points: those with another one than the first are left out.
    pub(super) fn same_status(&mut self, status: &Status) -> Status {
        match status {
            Status::Each(codes) => Status::Known(self.lanes.agree(codes).unwrap_or_default()),
            status => status.clone(),
        }
    }

    /// A status that is zero for all points or for none: those of which the other holds than of the first are left out.
    pub(super) fn same_success(&mut self, status: &Status) -> Status {
        match status {
            Status::Each(codes) => {
                let fails: Vec<bool> = codes.iter().map(|code| *code != 0).collect();
                Status::Known(i32::from(self.lanes.agree(&fails).unwrap_or_default()))
            }
            status => status.clone(),
        }
    }

    /// The number that a value is for each point. Inside `None`: it is none for the first.
    pub(super) fn lane_numbers(&mut self, value: &Value) -> Option<Option<Num>> {
        let lanes = value.unknowns().find_map(|unknown| unknown.each.as_ref())?.len();
        let texts: Vec<_> = (0..lanes).map(|lane| value.in_lane(lane)).collect::<Option<_>>()?;
        let numbers: Vec<Option<i64>> = texts.iter().map(|text| text.trim().parse().ok()).collect();
        let is_one: Vec<bool> = numbers.iter().map(Option::is_some).collect();
        self.lanes.agree(&is_one);
        let first = *numbers.first()?;
        Some(first.map(|first| {
            let all = numbers.into_iter().map(|number| number.unwrap_or(first)).collect();
            self.lanes.number(all)
        }))
    }

    /// What the caller knows about a command; it has to know the same for all points.
    pub(super) fn answered(&self, answers: &dyn Answers, name: &str, command: &Command) -> Option<Answer> {
        if !answers.knows(name) || !command.argv.iter().any(|word| word.value.varies()) {
            return answers.answer(command);
        }
        let own = |lane: usize| {
            let word = |word: &Word| {
                let value = word.value.of_lane(lane)?;
                Some(Word { value, ..word.clone() })
            };
            let argv = command.argv.iter().map(word).collect::<Option<Vec<Word>>>()?;
            let command = Command {
                argv: Arc::new(argv),
                ..command.clone()
            };
            Some(answers.answer(&command))
        };
        let all: Option<Vec<Option<Answer>>> = self.lanes.held().into_iter().map(own).collect();
        let mut all = all.unwrap_or_default().into_iter();
        let first = all.next();
        if first.is_none() || all.any(|other| Some(other) != first) {
            self.lanes.void();
        }
        first.flatten()
    }

    /// What a program that only turns text into text gives: for each point on its own. Nothing where that cannot be said as
    /// one value.
    pub(super) fn computed_in_lanes(
        &mut self,
        world: &mut World,
        base: &str,
        argv: &[Word],
        at: Span,
    ) -> Option<Computed> {
        let (notes, commands) = (self.notes.len(), self.out.commands.len());
        let many = self.lanes.many();
        let mut all: Vec<Computed> = Vec::new();
        let mut after = None;
        for lane in 0..many {
            let word = |word: &Word| {
                Some(Word {
                    value: word.value.of_lane(lane)?,
                    ..word.clone()
                })
            };
            let argv: Vec<Word> = argv.iter().map(word).collect::<Option<_>>()?;
            let mut own = world.clone();
            if let Source::Lines(lines, taken) = &world.input {
                let mut apart = Vec::new();
                for line in lines.iter().skip(*taken) {
                    let own = line.of_lane(lane)?;
                    if line.differs() {
                        // It was passed on as one, whatever lines it is.
                        apart.extend(own.lines());
                    } else {
                        apart.push(own);
                    }
                }
                own.input = Source::Lines(Arc::new(apart), 0);
            }
            all.push(self.compute(&mut own, base, &argv, at)?);
            // It wrote something after all (`sed -i`).
            if !own.files.same_by(&world.files, Arc::ptr_eq) || !own.vars.same_by(&world.vars, Arc::ptr_eq) {
                return None;
            }
            match &own.input {
                Source::Lines(lines, taken) if *taken < lines.len() => return None,
                input => after = Some(input.clone()),
            }
        }
        // A remark could be one about a single point.
        if self.notes.len() != notes || self.out.commands.len() != commands {
            return None;
        }
        let first = all.first()?;
        let codes: Vec<Option<i32>> = all
            .iter()
            .map(|computed| match &computed.status {
                Status::Known(code) => Some(*code),
                Status::Each(_) | Status::Unknown(..) | Status::Ran(..) => None,
            })
            .collect();
        if codes.contains(&None) && !all.iter().all(|computed| computed.status.same(&first.status)) {
            return None;
        }
        let status = first.status.clone();
        self.lanes.agree(&codes);
        let outputs: Vec<&Value> = all.iter().map(|computed| &computed.output).collect();
        let output = match together(&outputs) {
            Some(output) => output,
            None if outputs.iter().all(|output| output.is_known())
                && outputs.iter().any(|output| has_lines(output)) =>
            {
                passed_on(outputs.into_iter().cloned().collect(), at)
            }
            None => {
                let same: Vec<bool> = outputs.iter().map(|output| identical(output, outputs[0])).collect();
                self.lanes.agree(&same);
                first.output.clone()
            }
        };
        world.input = after?;
        Some(Computed { output, status })
    }

    /// A value that is used: one that is only passed on is what it is for the first point, and points for which it is another
    /// are left out.
    pub(super) fn settled(&mut self, value: Value) -> Value {
        if !value.is_passed_on() {
            return value;
        }
        let own = |lane| value.of_lane(lane);
        let all: Option<Vec<Value>> = (0..self.lanes.many()).map(own).collect();
        let Some(first) = all.as_ref().and_then(|all| all.first()) else {
            self.lanes.void();
            return value;
        };
        let same: Vec<bool> = all.iter().flatten().map(|other| identical(other, first)).collect();
        self.lanes.agree(&same);
        first.clone()
    }

    /// A value as `printf %q` writes it, where that is not what it is for all points.
    pub(super) fn quoted_in_lanes(&self, value: &Value) -> Option<Value> {
        let at = value.pieces().first()?.at;
        let mut same = true;
        let own = |lane| {
            let (text, value) = (value.in_lane(lane)?, value.of_lane(lane)?);
            let quoted = crate::text::quote(&text);
            same &= quoted == *text;
            let at = value.pieces().first().map_or(at, |piece| piece.at);
            Some(Value::text(quoted, at))
        };
        let quoted: Vec<Value> = (0..self.lanes.many()).map(own).collect::<Option<_>>()?;
        (!same).then(|| passed_on(quoted, at))
    }

    /// What differs between points is never split: it is one word for each of them.
    pub(super) fn whole_lanes(&self, value: &Value, separators: &str) {
        let split = |text: &Arc<str>| text.contains(|c| separators.contains(c));
        if value
            .unknowns()
            .any(|u| u.each.iter().flat_map(|each| each.iter()).any(split))
        {
            self.lanes.void();
        }
    }
}

/// Whether a builtin does something with the text of its words, other than to pass it on or to ask it.
pub(super) fn looks_at_text(name: &str) -> bool {
    matches!(
        name,
        "cd" | "pushd"
            | "unset"
            | "shift"
            | "exit"
            | "return"
            | "break"
            | "continue"
            | "read"
            | "mapfile"
            | "readarray"
            | "getopts"
            | "type"
            | "hash"
            | "set"
    )
}

/// Whether a text has several lines.
fn has_lines(value: &Value) -> bool {
    value
        .known()
        .is_some_and(|text| text.trim_end_matches('\n').contains('\n'))
}

/// Whether two values are the same, written at the same places.
pub(crate) fn identical(a: &Value, b: &Value) -> bool {
    let (a, b) = (a.pieces(), b.pieces());
    a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x.at == y.at && x.kind == y.kind)
}

/// The values of all points as one, where they differ in plain texts only.
pub(super) fn together(values: &[&Value]) -> Option<Value> {
    let first = values.first()?;
    if values.iter().all(|value| identical(value, first)) {
        return Some((*first).clone());
    }
    piece_by_piece(first, values).or_else(|| each_of(values.iter().map(|value| (*value).clone()).collect()))
}

fn piece_by_piece(first: &Value, values: &[&Value]) -> Option<Value> {
    if values.iter().any(|value| value.pieces().len() != first.pieces().len()) {
        return None;
    }
    let mut out = Value::empty();
    for (index, piece) in first.pieces().iter().enumerate() {
        let own = |value: &&Value| {
            let other = value.pieces().get(index).filter(|other| other.at == piece.at)?;
            Some(other.kind.clone())
        };
        let kinds: Vec<PieceKind> = values.iter().map(own).collect::<Option<_>>()?;
        if kinds.iter().all(|kind| *kind == piece.kind) {
            out.push_piece(piece);
            continue;
        }
        // The output of a program ends with a line's end.
        let ends = |kind: &PieceKind| matches!(kind, PieceKind::Text(text) if text.ends_with('\n'));
        let ended = kinds.iter().all(ends);
        let plain = |kind: PieceKind| match kind {
            PieceKind::Text(text) if ended => text.strip_suffix('\n').filter(|text| is_plain(text)).map(Arc::from),
            PieceKind::Text(text) if is_plain(&text) => Some(text),
            _ => None,
        };
        let texts: Vec<Arc<str>> = kinds.into_iter().map(plain).collect::<Option<_>>()?;
        out.append(&each_value(texts, piece.at));
        if ended {
            out.push_text("\n".into(), piece.at);
        }
    }
    Some(out)
}

/// The same value as if it were written at a place.
pub(super) fn placed(value: &Value, at: Span) -> Value {
    let mut out = Value::empty();
    for piece in value.pieces() {
        match &piece.kind {
            PieceKind::Text(text) => out.push_text(text.clone(), at),
            PieceKind::Unknown(unknown) if unknown.written.is_some() => {
                let unknown = Unknown {
                    written: None,
                    ..(**unknown).clone()
                };
                out.push_unknown(Arc::new(unknown), at);
            }
            PieceKind::Unknown(unknown) => out.push_unknown(unknown.clone(), at),
        }
    }
    out
}
