//! Finding words, dates and phrases in the plain text of a cell or a paragraph.
//!
//! Everything works on byte offsets of the text and of its ASCII-lowered copy, which has the same offsets.

use std::ops::Range;

use chrono::NaiveDate;

use super::rules::ModelsRules;

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const WEEKDAYS: [&str; 7] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];

/// A day found beside a phrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// The last day on which it is allowed.
    Last(NaiveDate),
    /// The first day of a state that the context names.
    From(NaiveDate),
    /// The first day on which it is gone.
    Gone(NaiveDate),
}

/// What one piece of text says, in the vocabulary of the rules.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    pub(super) scenarios: Vec<String>,
    pub(super) precisions: Vec<String>,
    /// A spec word that is not negated.
    pub(super) spec: bool,
    /// A negated spec word.
    pub(super) non_spec: bool,
    pub(super) only: bool,
    pub(super) not_enacted: bool,
    pub(super) day_zero: bool,
    pub(super) nothing: bool,
    /// A date is followed by the phrase for the last day.
    pub(super) last_day: bool,
    pub(super) marks: Vec<Mark>,
    /// Words that no rule explains.
    pub(super) leftover: String,
}

/// First occurrence of `needle` as a whole word at or after `from`; both lower-case.
pub(super) fn find_word(hay: &str, needle: &str, from: usize) -> Option<Range<usize>> {
    if needle.is_empty() {
        return None;
    }
    let edge = |c: Option<char>, inner: Option<char>| {
        !(c.is_some_and(char::is_alphanumeric) && inner.is_some_and(char::is_alphanumeric))
    };
    let mut at = from;
    while let Some(hit) = hay.get(at..).and_then(|rest| rest.find(needle)) {
        let (start, end) = (at + hit, at + hit + needle.len());
        let before = edge(hay[..start].chars().next_back(), needle.chars().next());
        let after = edge(hay[end..].chars().next(), needle.chars().next_back());
        if before && after {
            return Some(start..end);
        }
        at = start + needle.chars().next().map_or(1, char::len_utf8);
    }
    None
}

fn all_words(hay: &str, needle: &str) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(range) = find_word(hay, needle, at) {
        at = range.end;
        out.push(range);
    }
    out
}

/// Whether any of the phrases occurs; `lower` is lower-case already.
pub(super) fn has_any(lower: &str, phrases: &[String]) -> bool {
    phrases
        .iter()
        .any(|p| find_word(lower, &p.to_ascii_lowercase(), 0).is_some())
}

fn digits(text: &str, at: usize, most: usize) -> Option<(u32, usize)> {
    let run: &str = text.get(at..)?;
    let len = run.bytes().take(most).take_while(u8::is_ascii_digit).count();
    (len > 0)
        .then(|| run[..len].parse().ok().map(|n| (n, at + len)))
        .flatten()
}

fn date_at(lower: &str, at: usize) -> Option<(NaiveDate, usize)> {
    let rest = lower.get(at..)?;
    if rest.as_bytes().first().is_some_and(u8::is_ascii_digit) {
        let (year, end) = digits(lower, at, 4).filter(|(_, end)| end - at == 4)?;
        let end = lower[end..].strip_prefix('-').map(|_| end + 1)?;
        let (month, after) = digits(lower, end, 2).filter(|(_, e)| e - end == 2)?;
        let after = lower[after..].strip_prefix('-').map(|_| after + 1)?;
        let (day, done) = digits(lower, after, 2).filter(|(_, e)| e - after == 2)?;
        let clear = lower[done..].chars().next().is_none_or(|c| !c.is_alphanumeric());
        return NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)
            .filter(|_| clear)
            .map(|d| (d, done));
    }
    let index = MONTHS.iter().position(|m| rest.starts_with(m))?;
    let mut pos = at + MONTHS[index].len();
    pos += spaces(lower, pos)?;
    let (day, after) = digits(lower, pos, 2)?;
    let comma = lower[after..].strip_prefix(',').map(|_| after + 1)?;
    let year_at = comma + spaces(lower, comma)?;
    let (year, done) = digits(lower, year_at, 4).filter(|(_, e)| e - year_at == 4)?;
    NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, u32::try_from(index).ok()? + 1, day).map(|d| (d, done))
}

/// Length of a non-empty run of blanks at `at`.
fn spaces(text: &str, at: usize) -> Option<usize> {
    let len = text
        .get(at..)?
        .bytes()
        .take_while(|b| matches!(b, b' ' | b'\n'))
        .count();
    (len > 0).then_some(len)
}

/// Every date in the text: `2026-08-03` or `[Monday, ]August 3, 2026`. The range covers the weekday.
pub(super) fn dates(lower: &str) -> Vec<(NaiveDate, Range<usize>)> {
    let mut out = Vec::new();
    let mut at = 0;
    let mut previous: Option<char> = None;
    while let Some(c) = lower[at..].chars().next() {
        let boundary = previous.is_none_or(|p| !p.is_alphanumeric() && p != '-');
        if boundary
            && c.is_ascii_alphanumeric()
            && let Some((date, end)) = date_at(lower, at)
        {
            let head = lower[..at].trim_end();
            let head = head.strip_suffix(',').unwrap_or(head);
            let start = WEEKDAYS
                .iter()
                .find(|d| head.ends_with(*d))
                .map_or(at, |d| head.len() - d.len());
            out.push((date, start..end));
            previous = lower[..end].chars().next_back();
            at = end;
            continue;
        }
        previous = Some(c);
        at += c.len_utf8();
    }
    out
}

fn ends_with_phrase(head: &str, phrases: &[String]) -> Option<usize> {
    phrases.iter().find_map(|phrase| {
        let phrase = phrase.to_ascii_lowercase();
        let cut = head.strip_suffix(phrase.as_str()).filter(|_| !phrase.is_empty())?;
        cut.chars()
            .next_back()
            .is_none_or(|c| !c.is_alphanumeric())
            .then_some(cut.len())
    })
}

/// Splits at separators that stand outside parentheses and outside dates. Empty pieces are kept.
pub(super) fn split_top<'t>(text: &'t str, separators: &[&str]) -> Vec<&'t str> {
    let lower = text.to_ascii_lowercase();
    let dates = mask(lower.len(), dates(&lower).into_iter().map(|(_, range)| range));
    let (mut out, mut depth, mut start, mut at) = (Vec::new(), 0usize, 0usize, 0usize);
    while let Some(c) = text[at..].chars().next() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        let free = depth == 0 && !dates[at];
        let hit = separators.iter().find(|s| free && text[at..].starts_with(**s));
        if let Some(separator) = hit {
            out.push(text[start..at].trim());
            at += separator.len();
            start = at;
        } else {
            at += c.len_utf8();
        }
    }
    out.push(text[start..].trim());
    out
}

/// The clauses of running text.
pub(super) fn clauses(text: &str) -> Vec<&str> {
    split_top(text, &[";", ". ", " — "])
        .into_iter()
        .filter(|c| !c.is_empty())
        .collect()
}

/// The text outside parentheses, and the text of each outermost parenthesis.
pub(super) fn parentheses(text: &str) -> (String, Vec<&str>) {
    let (mut outside, mut inside, mut depth, mut open) = (String::new(), Vec::new(), 0usize, 0usize);
    for (at, c) in text.char_indices() {
        match c {
            '(' => {
                depth += 1;
                if depth == 1 {
                    open = at + 1;
                    outside.push(' ');
                }
            }
            ')' if depth > 0 => {
                depth -= 1;
                if depth == 0 {
                    inside.push(text[open..at].trim());
                }
            }
            _ if depth == 0 => outside.push(c),
            _ => {}
        }
    }
    if depth > 0 {
        inside.push(text[open..].trim());
    }
    (outside.trim().to_owned(), inside)
}

/// Code spans of the text (`` `word` ``), in order.
pub(super) fn codes(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).filter(|c| !c.is_empty()).collect()
}

/// Reads one piece of text.
pub(super) fn parse(text: &str, rules: &ModelsRules) -> Parsed {
    let lower = text.to_ascii_lowercase();
    let mut out = Parsed::default();
    let mut known: Vec<Range<usize>> = Vec::new();
    for scenario in &rules.scenarios {
        let before = known.len();
        for word in &scenario.words {
            known.extend(all_words(&lower, &word.to_ascii_lowercase()));
        }
        if known.len() > before {
            out.scenarios.push(scenario.id.clone());
        }
    }
    for precision in &rules.precisions {
        let hits = all_words(&lower, &precision.to_ascii_lowercase());
        if !hits.is_empty() {
            out.precisions.push(precision.clone());
            known.extend(hits);
        }
    }
    let negation = rules.negation.to_ascii_lowercase();
    for word in &rules.spec_words {
        for hit in all_words(&lower, &word.to_ascii_lowercase()) {
            let negated = !negation.is_empty() && lower[..hit.start].ends_with(&negation);
            if negated {
                out.non_spec = true;
                known.push(hit.start - negation.len()..hit.end);
            } else {
                out.spec = true;
                known.push(hit);
            }
        }
    }
    let phrases = &rules.phrases;
    let mut flag = |list: &[String]| {
        let hits: Vec<_> = list
            .iter()
            .flat_map(|p| all_words(&lower, &p.to_ascii_lowercase()))
            .collect();
        let any = !hits.is_empty();
        known.extend(hits);
        any
    };
    out.only = flag(&phrases.only);
    out.not_enacted = flag(&phrases.not_enacted);
    out.day_zero = flag(&phrases.day_zero);
    flag(&phrases.filler);
    flag(&phrases.ended);
    flag(&phrases.deprecated);
    for (date, range) in dates(&lower) {
        let head = lower[..range.start].trim_end();
        let head = head.strip_suffix(" on").unwrap_or(head);
        let tail = lower[range.end..].trim_start();
        let opens = |p: &String| tail.starts_with(&p.to_ascii_lowercase());
        let mut from = range.start;
        if phrases.last_day.iter().any(opens) {
            out.last_day = true;
            out.marks.push(Mark::Last(date));
        } else if let Some(at) = ends_with_phrase(head, &phrases.until) {
            from = at;
            out.marks.push(Mark::Last(date));
        } else if let Some(at) = ends_with_phrase(head, &phrases.ended) {
            from = at;
            out.marks.push(Mark::Gone(date));
        } else if let Some(at) = ends_with_phrase(head, &phrases.since) {
            from = at;
            out.marks.push(Mark::From(date));
        }
        known.push(from..range.end);
    }
    let bare = lower.trim();
    out.nothing = bare.is_empty() || phrases.nothing.iter().any(|p| bare == p.to_ascii_lowercase());
    out.leftover = if out.nothing {
        String::new()
    } else {
        leftover(&lower, &known)
    };
    out
}

fn mask(len: usize, ranges: impl Iterator<Item = Range<usize>>) -> Vec<bool> {
    let mut out = vec![false; len];
    for range in ranges {
        out[range].fill(true);
    }
    out
}

/// Words outside the known ranges, without punctuation and without issue references (`#123`).
fn leftover(lower: &str, known: &[Range<usize>]) -> String {
    let known = mask(lower.len(), known.iter().cloned());
    let kept: String = lower
        .char_indices()
        .map(|(at, c)| if known[at] { ' ' } else { c })
        .collect();
    kept.split_whitespace()
        .map(|w| w.trim_matches(|c: char| !c.is_alphanumeric() && c != '#'))
        .filter(|w| {
            !w.is_empty()
                && !w
                    .strip_prefix('#')
                    .is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
        })
        .collect::<Vec<_>>()
        .join(" ")
}
