//! Brace expansion: `a{b,c}d` and `{1..8}`, on unquoted text, before any other expansion.

use super::ast::{Part, PartKind, Word};

/// Words that one word may become; above it the braces stay as they are.
const MAX_WORDS: usize = 2048;

/// Whether a word may hold a brace expression.
pub(super) fn may_expand(word: &Word) -> bool {
    let opens = |part: &Part| matches!(&part.kind, PartKind::Lit(text) if !part.quoted && text.contains('{'));
    word.parts.iter().any(opens)
}

/// The words a word becomes; itself when it holds no brace expression.
pub(super) fn expand(word: Word) -> Vec<Word> {
    let mut done = Vec::new();
    let mut todo = vec![word];
    while let Some(word) = todo.pop() {
        if done.len() + todo.len() > MAX_WORDS {
            done.push(word);
            continue;
        }
        match split(&word) {
            Some(mut words) => {
                words.reverse();
                todo.append(&mut words);
            }
            None => done.push(word),
        }
    }
    done
}

/// Place of one unquoted character: part and byte in it.
type Place = (usize, usize);

fn split(word: &Word) -> Option<Vec<Word>> {
    let unquoted = |part: &Part| match &part.kind {
        PartKind::Lit(text) if !part.quoted => Some(text.clone()),
        _ => None,
    };
    if !may_expand(word) {
        return None;
    }
    let mut chars: Vec<(Place, u8)> = Vec::new();
    for (index, part) in word.parts.iter().enumerate() {
        if let Some(text) = unquoted(part) {
            chars.extend(
                text.bytes()
                    .enumerate()
                    .filter(|(_, b)| b"{},.".contains(b))
                    .map(|(i, b)| ((index, i), b)),
            );
        }
    }
    let mut from = 0;
    while let Some(offset) = chars[from..].iter().position(|(_, b)| *b == b'{') {
        let open = from + offset;
        if let Some(words) = split_at(word, &chars, open) {
            return Some(words);
        }
        from = open + 1;
    }
    None
}

fn split_at(word: &Word, chars: &[(Place, u8)], open: usize) -> Option<Vec<Word>> {
    let mut depth = 0usize;
    let mut commas = Vec::new();
    let mut close = None;
    for (index, (_, byte)) in chars.iter().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    close = Some(index);
                    break;
                }
            }
            b',' if depth == 1 => commas.push(index),
            _ => {}
        }
    }
    let close = close?;
    let (open_place, close_place) = (chars[open].0, chars[close].0);
    let after = |place: Place| (place.0, place.1 + 1);
    let head = slice(word, (0, 0), open_place);
    let tail = slice(word, after(close_place), (word.parts.len(), 0));
    let middles: Vec<Vec<Part>> = if commas.is_empty() {
        let inside = slice(word, after(open_place), close_place);
        let [
            Part {
                kind: PartKind::Lit(text),
                at,
                ..
            },
        ] = inside.as_slice()
        else {
            return None;
        };
        let numbers = sequence(text)?;
        let lit = |text: String| {
            vec![Part {
                at: *at,
                quoted: false,
                kind: PartKind::Lit(text.into()),
            }]
        };
        numbers.into_iter().map(lit).collect()
    } else {
        let mut bounds = vec![after(open_place)];
        let mut middles = Vec::new();
        for comma in commas {
            let place = chars[comma].0;
            middles.push(slice(word, bounds[bounds.len() - 1], place));
            bounds.push(after(place));
        }
        middles.push(slice(word, bounds[bounds.len() - 1], close_place));
        middles
    };
    let build = |middle: Vec<Part>| Word {
        at: word.at,
        parts: [head.clone(), middle, tail.clone()].concat(),
    };
    Some(middles.into_iter().map(build).collect())
}

/// The parts between two places.
fn slice(word: &Word, from: Place, to: Place) -> Vec<Part> {
    let mut out = Vec::new();
    for (index, part) in word.parts.iter().enumerate() {
        if index < from.0 || index > to.0 || (index == to.0 && to.1 == 0) {
            continue;
        }
        let start = if index == from.0 { from.1 } else { 0 };
        match &part.kind {
            PartKind::Lit(text) => {
                let end = if index == to.0 { to.1 } else { text.len() };
                let piece = text.get(start..end).unwrap_or("");
                if !piece.is_empty() || (part.quoted && text.is_empty()) {
                    let mut at = part.at;
                    at.col += start as u32;
                    out.push(Part {
                        at,
                        quoted: part.quoted,
                        kind: PartKind::Lit(piece.into()),
                    });
                }
            }
            _ => out.push(part.clone()),
        }
    }
    out
}

fn sequence(text: &str) -> Option<Vec<String>> {
    let mut ends = text.split("..");
    let (first, last) = (ends.next()?, ends.next()?);
    let step = ends.next();
    if ends.next().is_some() {
        return None;
    }
    if let (Ok(a), Ok(b)) = (first.parse::<i64>(), last.parse::<i64>()) {
        let step = step.map_or(Some(1), |s| s.parse::<i64>().ok())?.unsigned_abs().max(1);
        let count = a.abs_diff(b) / step + 1;
        if count > MAX_WORDS as u64 {
            return None;
        }
        let width = if [first, last]
            .iter()
            .any(|t| t.trim_start_matches('-').starts_with('0') && t.len() > 1)
        {
            first.len().max(last.len())
        } else {
            0
        };
        let number = |i: u64| {
            let offset = i.checked_mul(step).and_then(|o| i64::try_from(o).ok()).unwrap_or(0);
            let n = if a <= b {
                a.saturating_add(offset)
            } else {
                a.saturating_sub(offset)
            };
            format!("{n:0width$}")
        };
        return Some((0..count).map(number).collect());
    }
    let (a, b) = (single(first)?, single(last)?);
    let letters: Vec<String> = if a <= b {
        (a..=b).map(|c| (c as char).to_string()).collect()
    } else {
        (b..=a).rev().map(|c| (c as char).to_string()).collect()
    };
    Some(letters)
}

fn single(text: &str) -> Option<u8> {
    match text.as_bytes() {
        [byte] if byte.is_ascii_alphabetic() => Some(*byte),
        _ => None,
    }
}
