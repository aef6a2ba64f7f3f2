//! Text operators of parameter expansion on values that may be partly unknown. None: the result depends on an
//! unknown in a way that is not followed.

use std::sync::Arc;

use crate::arith::Num;
use crate::pattern::{Pattern, Token};
use crate::syntax::ast::ReplaceWhere;
use crate::value::{Piece, PieceKind, Value};

pub(super) fn remove_prefix(value: &Value, pattern: &Pattern, long: bool) -> Option<Value> {
    if let Some(text) = value.known() {
        let mut cuts: Vec<usize> = text.char_indices().map(|(i, _)| i).chain([text.len()]).collect();
        if long {
            cuts.reverse();
        }
        for cut in cuts {
            if pattern.matches(&text[..cut])? {
                return Some(tail(value, cut));
            }
        }
        return Some(value.clone());
    }
    match pattern.tokens.as_slice() {
        // `##*/`: up to the last of a known character, when what follows it is known.
        [Token::Star, Token::Char(c)] if long => {
            let (head, text) = last_text(value)?;
            let at = text.rfind(*c)?;
            Some(tail(value, head + at + c.len_utf8()))
        }
        // `#*/` and plain text: inside a known beginning.
        [Token::Star, Token::Char(c)] => {
            let text = first_text(value)?;
            let at = text.find(*c)?;
            Some(tail(value, at + c.len_utf8()))
        }
        _ => {
            let literal = pattern.literal()?;
            let text = first_text(value)?;
            if text.starts_with(&literal) {
                Some(tail(value, literal.len()))
            } else if text.len() >= literal.len() || !literal.starts_with(&*text) {
                Some(value.clone())
            } else {
                None
            }
        }
    }
}

pub(super) fn remove_suffix(value: &Value, pattern: &Pattern, long: bool) -> Option<Value> {
    if let Some(text) = value.known() {
        let mut cuts: Vec<usize> = text.char_indices().map(|(i, _)| i).chain([text.len()]).collect();
        if !long {
            cuts.reverse();
        }
        for cut in cuts {
            if pattern.matches(&text[cut..])? {
                return Some(head(value, cut));
            }
        }
        return Some(value.clone());
    }
    match pattern.tokens.as_slice() {
        [Token::Char(c), Token::Star] if !long => {
            let (before, text) = last_text(value)?;
            let at = text.rfind(*c)?;
            Some(head(value, before + at))
        }
        [Token::Char(c), Token::Star] => {
            let text = first_text(value)?;
            let at = text.find(*c)?;
            Some(head(value, at))
        }
        _ => {
            let literal = pattern.literal()?;
            let (before, text) = last_text(value)?;
            if text.ends_with(&literal) {
                Some(head(value, before + text.len() - literal.len()))
            } else if text.len() >= literal.len() || !literal.ends_with(text) {
                Some(value.clone())
            } else {
                None
            }
        }
    }
}

/// Bytes in front of the last piece (unknowns count as one) and its text, when it is known.
fn last_text(value: &Value) -> Option<(usize, &str)> {
    let (last, before) = value.pieces().split_last()?;
    match &last.kind {
        PieceKind::Text(text) => Some((before.iter().map(width).sum(), text)),
        PieceKind::Unknown(_) => None,
    }
}

fn first_text(value: &Value) -> Option<Arc<str>> {
    match &value.pieces().first()?.kind {
        PieceKind::Text(text) => Some(text.clone()),
        PieceKind::Unknown(_) => None,
    }
}

fn width(piece: &Piece) -> usize {
    match &piece.kind {
        PieceKind::Text(text) => text.len(),
        PieceKind::Unknown(_) => 1,
    }
}

/// The value from a byte on; pieces keep their places.
fn tail(value: &Value, from: usize) -> Value {
    let mut out = Value::empty();
    let mut at = 0;
    for piece in value.pieces() {
        let end = at + width(piece);
        if at >= from {
            out.push_piece(piece);
        } else if end > from
            && let PieceKind::Text(text) = &piece.kind
        {
            out.push_text(text[from - at..].into(), piece.at);
        }
        at = end;
    }
    out
}

/// The value up to a byte.
fn head(value: &Value, to: usize) -> Value {
    let mut out = Value::empty();
    let mut at = 0;
    for piece in value.pieces() {
        let end = at + width(piece);
        if end <= to {
            out.push_piece(piece);
        } else if at < to
            && let PieceKind::Text(text) = &piece.kind
        {
            out.push_text(text[..to - at].into(), piece.at);
        }
        at = end;
    }
    out
}

pub(super) fn replace(value: &Value, pattern: &Pattern, with: &Value, place: ReplaceWhere) -> Option<Value> {
    if pattern.tokens.is_empty() {
        return Some(value.clone());
    }
    let Some(text) = value.known() else {
        // A single known character replaced everywhere it is known leaves the unknowns unknown.
        return None;
    };
    if let Some(literal) = pattern.literal() {
        let spots: Vec<usize> = match place {
            ReplaceWhere::First => text.find(&literal).into_iter().collect(),
            ReplaceWhere::All => text.match_indices(&literal).map(|(i, _)| i).collect(),
            ReplaceWhere::Prefix => text.starts_with(&literal).then_some(0).into_iter().collect(),
            ReplaceWhere::Suffix => text
                .ends_with(&literal)
                .then(|| text.len() - literal.len())
                .into_iter()
                .collect(),
        };
        return Some(put_in(
            value,
            &spots.into_iter().map(|s| (s, s + literal.len())).collect::<Vec<_>>(),
            with,
        ));
    }
    let bounds: Vec<usize> = text.char_indices().map(|(i, _)| i).chain([text.len()]).collect();
    if bounds.len() > 600 {
        return None;
    }
    let mut spots = Vec::new();
    let mut from = 0;
    'search: while from < bounds.len() {
        for to in (from..bounds.len()).rev() {
            if to == from && text.len() > bounds[from] {
                continue;
            }
            let fits = match place {
                ReplaceWhere::Prefix => from == 0,
                ReplaceWhere::Suffix => to == bounds.len() - 1,
                _ => true,
            };
            if fits && to > from && pattern.matches(&text[bounds[from]..bounds[to]])? {
                spots.push((bounds[from], bounds[to]));
                if place != ReplaceWhere::All {
                    break 'search;
                }
                from = to;
                continue 'search;
            }
        }
        from += 1;
    }
    Some(put_in(value, &spots, with))
}

fn put_in(value: &Value, spots: &[(usize, usize)], with: &Value) -> Value {
    let mut out = Value::empty();
    let mut at = 0;
    for (from, to) in spots {
        out.append(&tail(&head(value, *from), at));
        out.append(with);
        at = *to;
    }
    out.append(&tail(value, at));
    out
}

pub(super) fn substring(value: &Value, first: &Num, count: Option<&Num>) -> Option<Value> {
    let Num::Known(first) = first else { return None };
    let text = match value.known() {
        Some(text) => text.into_owned(),
        // A cut inside a known beginning needs no more than that.
        None => {
            let text = first_text(value)?;
            match count {
                Some(Num::Known(n))
                    if *first >= 0 && *n >= 0 && first.saturating_add(*n) <= text.chars().count() as i64 =>
                {
                    text.to_string()
                }
                _ => return None,
            }
        }
    };
    let bounds: Vec<usize> = text.char_indices().map(|(i, _)| i).chain([text.len()]).collect();
    let len = bounds.len() as i64 - 1;
    let start = if *first < 0 { len + first } else { *first };
    if start < 0 || start > len {
        return Some(Value::empty());
    }
    let end = match count {
        None => len,
        Some(Num::Known(n)) if *n < 0 => len + n,
        Some(Num::Known(n)) => start.saturating_add(*n).min(len),
        Some(Num::Unknown(_) | Num::Each(_)) => return None,
    };
    if end <= start {
        return Some(Value::empty());
    }
    let (from, to) = (*bounds.get(start as usize)?, *bounds.get(end as usize)?);
    Some(tail(&head(value, to), from))
}

pub(super) fn change_case(value: &Value, upper: bool, all: bool, pattern: Option<&Pattern>) -> Option<Value> {
    let mut out = Value::empty();
    let mut first = true;
    for piece in value.pieces() {
        let PieceKind::Text(text) = &piece.kind else {
            return None;
        };
        let mut changed = String::with_capacity(text.len());
        for c in text.chars() {
            let wanted = (all || first) && pattern.is_none_or(|p| p.matches(&c.to_string()) == Some(true));
            first = false;
            if !wanted {
                changed.push(c);
            } else if upper {
                changed.extend(c.to_uppercase());
            } else {
                changed.extend(c.to_lowercase());
            }
        }
        out.push_text(changed.into(), piece.at);
    }
    Some(out)
}
