//! Several points in one evaluation. Points of one entry often differ in nothing but a few numbers, such as the
//! concurrency. Such a variable holds one text for each point (a lane); arithmetic is done for all of them, and where a
//! script asks, the evaluation goes on with the points whose answer is that of the first. The others are left out and
//! have to be evaluated again. What cannot be done lane by lane makes the whole evaluation void: it holds for none.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::arith::Num;
use crate::value::{PieceKind, Shape, Span, Unknown, Value, Why};
use crate::world::id_of;

/// What everything depends on that differs between lanes. No name of a variable looks like it.
pub(crate) const MARK: &str = "\u{1}";

/// The same as a character, which is found faster.
const MARKED: char = '\u{1}';

/// Between the texts of the lanes in a name.
const BETWEEN: char = '\u{2}';

/// Which points an evaluation holds for.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Lanes {
    alive: Vec<bool>,
    /// Points that this evaluation is of; all others are taken for the same as the first of these.
    own: Vec<bool>,
    void: Cell<bool>,
    /// How often points were left out.
    lost: Cell<usize>,
}

impl Lanes {
    pub(crate) fn new(many: usize) -> Lanes {
        Lanes {
            alive: vec![true; many],
            own: vec![true; many],
            void: Cell::new(false),
            lost: Cell::new(0),
        }
    }

    /// Of some points only.
    pub(crate) fn of(own: Vec<bool>) -> Lanes {
        Lanes {
            own: own.clone(),
            ..Lanes::new(own.len())
        }
    }

    /// How many points are evaluated together, with those that were left out.
    pub(crate) fn many(&self) -> usize {
        self.alive.len()
    }

    /// How often points were left out.
    pub(crate) fn lost(&self) -> usize {
        self.lost.get()
    }

    /// Whether there are several points that it holds for.
    pub(crate) fn several(&self) -> bool {
        !self.is_void() && (0..self.many()).filter(|lane| self.is_alive(*lane)).nth(1).is_some()
    }

    /// Whether values may stand for several points, also where all of these but one were left out.
    pub(crate) fn are_shared(&self) -> bool {
        !self.is_void() && self.many() > 1
    }

    /// Whether it holds for none.
    pub(crate) fn is_void(&self) -> bool {
        self.void.get()
    }

    /// Whether the evaluation is of a point, and it is not left out.
    pub(crate) fn is_alive(&self, lane: usize) -> bool {
        self.alive.get(lane) == Some(&true) && self.own[lane]
    }

    /// The points that it holds for; the first is among them if any is.
    pub(crate) fn held(&self) -> Vec<usize> {
        if self.void.get() {
            return Vec::new();
        }
        (0..self.many()).filter(|lane| self.is_alive(*lane)).collect()
    }

    /// Something was met that cannot be done for several points at once.
    pub(crate) fn void(&self) {
        self.void.set(true);
        self.lost.set(self.lost.get() + 1);
    }

    /// The same, where something is not known only since it differs.
    pub(crate) fn check(&self, from: &BTreeSet<Arc<str>>) {
        // The mark sorts in front of every name.
        if from.first().is_some_and(|name| &**name == MARK) {
            self.void();
        }
    }

    /// Goes on with the points that answer as the first does.
    pub(crate) fn agree<T: PartialEq + Copy>(&mut self, answers: &[T]) -> Option<T> {
        let first = *answers.first()?;
        for (alive, answer) in self.alive.iter_mut().zip(answers) {
            if *alive && *answer != first {
                *alive = false;
                self.lost.set(self.lost.get() + 1);
            }
        }
        Some(first)
    }

    /// Numbers by lane as one number where they are all the same.
    pub(crate) fn number(&self, numbers: Vec<i64>) -> Num {
        let first = numbers.first().copied().unwrap_or_default();
        let same = numbers.iter().zip(&self.alive).all(|(n, alive)| !alive || *n == first);
        if same {
            return Num::Known(first);
        }
        // A point that is left out has no number of its own.
        let settled = numbers
            .iter()
            .zip(&self.alive)
            .map(|(n, alive)| if *alive { *n } else { first });
        Num::Each(settled.collect())
    }

    /// The same, where a value differs between points at all.
    pub(crate) fn void_for(&self, value: &Value) {
        if value.is_laned() {
            self.void();
        }
    }

    /// The same, where what stands as one line may be several.
    pub(crate) fn void_for_several(&self, line: &Value) {
        if line.is_passed_on() {
            self.void();
        }
    }

    /// The text of the first point; points with another one are left out. `None` for what is not known for any.
    pub(crate) fn text<'v>(&mut self, value: &'v Value) -> Option<Cow<'v, str>> {
        if !value.is_laned() {
            return value.known();
        }
        let texts: Vec<Cow<'_, str>> = (0..self.alive.len())
            .map(|lane| value.in_lane(lane))
            .collect::<Option<_>>()?;
        let first = texts.first()?.clone();
        let same: Vec<bool> = texts.iter().map(|text| *text == first).collect();
        self.agree(&same);
        Some(first)
    }

    /// The number of the first point; points with another one are left out.
    pub(crate) fn one(&mut self, number: Num) -> Num {
        match number {
            Num::Each(numbers) => Num::Known(self.agree(&numbers).unwrap_or_default()),
            number => number,
        }
    }

    /// Whether something holds of a value that is known lane by lane; `None` for any other value.
    pub(crate) fn ask(&mut self, value: &Value, holds: impl Fn(&str) -> Option<bool>) -> Option<bool> {
        if !value.is_laned() {
            return None;
        }
        let answers: Option<Vec<bool>> = (0..self.alive.len()).map(|lane| holds(&value.in_lane(lane)?)).collect();
        self.agree(&answers?)
    }
}

impl Value {
    /// The text for one of the points that are evaluated together, when all of it is known for that point.
    pub fn in_lane(&self, lane: usize) -> Option<Cow<'_, str>> {
        if let Some(text) = self.known() {
            return Some(text);
        }
        let mut out = String::new();
        for piece in self.pieces() {
            match &piece.kind {
                PieceKind::Text(text) => out.push_str(text),
                PieceKind::Unknown(unknown) => match (&unknown.each, &unknown.written) {
                    (Some(each), _) => out.push_str(each.get(lane)?),
                    (None, Some(written)) => out.push_str(&written.get(lane)?.known()?),
                    (None, None) => return None,
                },
            }
        }
        Some(Cow::Owned(out))
    }

    /// The value that it is for one of the points that are evaluated together; nothing where that is not known only since it
    /// differs between them.
    pub fn of_lane(&self, lane: usize) -> Option<Value> {
        let mut out = Value::default();
        for piece in self.pieces() {
            match &piece.kind {
                PieceKind::Unknown(unknown) => match (&unknown.written, &unknown.each) {
                    (Some(written), _) => out.append(written.get(lane)?),
                    (None, Some(each)) => out.push_text(each.get(lane)?.clone(), piece.at),
                    (None, None) if unknown.differs() => return None,
                    (None, None) => out.push_piece(piece),
                },
                PieceKind::Text(_) => out.push_piece(piece),
            }
        }
        Some(out)
    }

    /// The value that it is for the points that are marked, taking all others for the same as one of these.
    pub(crate) fn among(&self, marked: &[bool], lead: usize) -> Option<Value> {
        let own = |lane: usize| if marked[lane] { lane } else { lead };
        let mut out = Value::default();
        for piece in self.pieces() {
            let PieceKind::Unknown(unknown) = &piece.kind else {
                out.push_piece(piece);
                continue;
            };
            if let Some(written) = &unknown.written {
                let values: Vec<Value> = (0..marked.len())
                    .map(|lane| written.get(own(lane)).cloned())
                    .collect::<Option<_>>()?;
                if values.iter().all(|value| crate::eval::identical(value, &values[lead])) {
                    out.append(&values[lead]);
                    continue;
                }
                let value = match &unknown.each {
                    Some(_) => each_of(values)?,
                    None => passed_on(values, piece.at),
                };
                out.push_unknown(value.single_unknown()?.clone(), piece.at);
            } else if let Some(each) = &unknown.each {
                let texts: Vec<Arc<str>> = (0..marked.len())
                    .map(|lane| each.get(own(lane)).cloned())
                    .collect::<Option<_>>()?;
                if texts.iter().all(|text| *text == texts[lead]) {
                    out.push_text(texts[lead].clone(), piece.at);
                } else {
                    out.append(&each_value(texts, piece.at));
                }
            } else {
                out.push_piece(piece);
            }
        }
        Some(out)
    }

    /// Whether something of it is known, but differs between the points that are evaluated together and is not plain.
    pub(crate) fn is_passed_on(&self) -> bool {
        self.unknowns()
            .any(|unknown| unknown.each.is_none() && unknown.written.is_some())
    }

    /// Whether something of it is another text for each of the points that are evaluated together.
    pub fn is_laned(&self) -> bool {
        self.unknowns().any(|u| u.each.is_some())
    }

    /// Whether it is not the same for all of the points that are evaluated together.
    pub fn varies(&self) -> bool {
        self.is_laned() || self.differs()
    }

    /// Whether something of it is not known only since it differs between the points that are evaluated together.
    pub fn differs(&self) -> bool {
        self.unknowns().any(|unknown| unknown.differs())
    }
}

impl Unknown {
    /// Whether it is not known, or only passed on, since it differs between the points that are evaluated together.
    fn differs(&self) -> bool {
        self.each.is_none() && self.depends_on.first().is_some_and(|name| &**name == MARK)
    }
}

/// The value that differs between lanes; a known one where it does not.
pub(crate) fn each_value(texts: Vec<Arc<str>>, at: Span) -> Value {
    let number = |text: &Arc<str>| text.parse::<i64>().is_ok();
    let shape = if texts.iter().all(number) {
        Shape::Number
    } else {
        Shape::NonEmpty
    };
    let name = joined(texts.iter().map(|text| &**text));
    let unknown = Unknown {
        id: id_of(Why::Lane, &name, Span::NOWHERE),
        name: name.into(),
        why: Why::Lane,
        depends_on: [Arc::from(MARK)].into(),
        shape,
        choices: Vec::new(),
        stable: true,
        each: Some(texts.into()),
        written: None,
    };
    Value::unknown(Arc::new(unknown), at)
}

/// Known text that differs between lanes and is not plain: it is only passed on.
pub(crate) fn passed_on(values: Vec<Value>, at: Span) -> Value {
    let texts: Vec<String> = values.iter().map(Value::display).collect();
    let name = joined(texts.iter().map(String::as_str));
    let unknown = Unknown {
        id: id_of(Why::Lane, &name, Span::NOWHERE),
        name: name.into(),
        why: Why::Lane,
        depends_on: [Arc::from(MARK)].into(),
        shape: Shape::NonEmpty,
        choices: Vec::new(),
        stable: true,
        each: None,
        written: Some(values.into()),
    };
    Value::unknown(Arc::new(unknown), at)
}

/// The value that is another one for each lane, where each is a known plain text. `None` where one is not.
pub(crate) fn each_of(values: Vec<Value>) -> Option<Value> {
    let text = |value: &Value| {
        let text = value.known()?;
        is_plain(&text).then(|| Arc::from(&*text))
    };
    let texts: Vec<Arc<str>> = values.iter().map(text).collect::<Option<_>>()?;
    let at = values.first()?.pieces().first()?.at;
    let value = each_value(texts, at);
    let mut unknown = (**value.single_unknown()?).clone();
    unknown.written = Some(values.into());
    Some(Value::unknown(Arc::new(unknown), at))
}

/// Whether a text can be the value of one of several points ([`crate::Environment::each`]).
pub fn can_differ(text: &str) -> bool {
    !text.is_empty() && text.len() <= 64 << 10 && !text.contains(char::is_control)
}

/// Whether nothing in a text is split, matched or computed, wherever it stands: what holds such texts can be used for all
/// points at once. What holds others is only handed on; where it is used, the points part.
pub(crate) fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && text.len() <= 64 << 10
        && text
            .bytes()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'.' | b'/' | b','))
}

/// Texts by lane as one name, for messages.
fn joined<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    let mut out = String::from(MARK);
    for (lane, text) in texts.enumerate() {
        if lane > 0 {
            out.push(BETWEEN);
        }
        out.push_str(text);
    }
    out.push_str(MARK);
    out
}

/// A message as it is for one point: names that differ between points are written as they are for this one.
pub fn in_lane(text: &str, lane: usize) -> Cow<'_, str> {
    if !text.contains(MARKED) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for (index, part) in text.split(MARKED).enumerate() {
        match part.split(BETWEEN).nth(lane) {
            Some(own) if index % 2 == 1 => out.push_str(own),
            _ => out.push_str(part),
        }
    }
    Cow::Owned(out)
}

/// The first characters of a text, with an ending where something is cut off: of each point's text.
pub(crate) fn cut(text: &str, most: usize, ending: &str) -> String {
    let own = |text: &str| match text.char_indices().nth(most).filter(|_| text.len() > most) {
        Some((end, _)) => [&text[..end], ending].concat(),
        None => text.to_owned(),
    };
    let Some(list) = text.split(MARKED).nth(1) else {
        return own(text);
    };
    let all: Vec<String> = (0..list.split(BETWEEN).count())
        .map(|lane| own(&in_lane(text, lane)))
        .collect();
    match all.first() {
        Some(first) if all.iter().all(|other| other == first) => first.clone(),
        _ => joined(all.iter().map(String::as_str)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_read_as_they_are_for_one_point() {
        let value = each_value(vec!["8".into(), "1024".into()], Span::NOWHERE);
        let text = format!("run --conc {} fast", value.display());
        assert_eq!(in_lane(&text, 0), "run --conc 8 fast");
        assert_eq!(in_lane(&text, 1), "run --conc 1024 fast");
        let short = cut(&text, 13, "…");
        assert_eq!(in_lane(&short, 0), "run --conc 8 …");
        assert_eq!(in_lane(&short, 1), "run --conc 10…");
        assert_eq!(cut(&text, 11, ""), "run --conc ");
        assert_eq!(cut("plain", 3, "…"), "pla…");
    }

    #[test]
    fn points_that_answer_otherwise_are_left_out() {
        let mut lanes = Lanes::new(3);
        assert_eq!(lanes.number(vec![2, 2, 2]), Num::Known(2));
        let Num::Each(numbers) = lanes.number(vec![4, 8, 4]) else {
            panic!()
        };
        assert_eq!(lanes.one(Num::Each(numbers)), Num::Known(4));
        assert_eq!(lanes.held(), [0, 2]);
        assert_eq!(lanes.number(vec![1, 7, 1]), Num::Known(1));
        lanes.check(&[Arc::from("CONC")].into());
        assert_eq!(lanes.held(), [0, 2]);
        lanes.check(&[Arc::from("CONC"), Arc::from(MARK)].into());
        assert_eq!(lanes.held(), [0_usize; 0]);
    }
}
