//! Shell patterns against values that may be partly unknown: yes, no, or it depends.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::value::{PieceKind, Unknown, Value};

/// One element of a pattern.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token {
    Char(char),
    /// `?`
    One,
    /// `*`
    Star,
    /// `[…]`: negated, ranges.
    Class(bool, Vec<(char, char)>),
    /// `@(a|b)` and kin: operator and alternatives.
    Ext(char, Vec<Vec<Token>>),
    Unknown(Arc<Unknown>),
}

/// A pattern as tokens.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pattern {
    pub(crate) tokens: Vec<Token>,
}

/// Nesting of `@(…)` lists; deeper ones are taken as text.
const MAX_NESTING: usize = 16;

/// Cells of the table for partly unknown matches; above it the answer is "it depends".
const MAX_CELLS: usize = 1 << 20;

impl Pattern {
    /// Add text that stands in quotes or otherwise means only itself.
    pub(crate) fn push_literal(&mut self, text: &str) {
        self.tokens.extend(text.chars().map(Token::Char));
    }

    /// Add unquoted text: its special characters mean what they mean.
    pub(crate) fn push_pattern(&mut self, text: &str) {
        let chars: Vec<char> = text.chars().collect();
        let mut at = 0;
        parse(&chars, &mut at, &mut self.tokens, 0, false);
    }

    pub(crate) fn push_unknown(&mut self, unknown: Arc<Unknown>) {
        self.tokens.push(Token::Unknown(unknown));
    }

    /// The text when the pattern means exactly one known text.
    pub(crate) fn literal(&self) -> Option<String> {
        self.tokens
            .iter()
            .map(|t| match t {
                Token::Char(c) => Some(*c),
                _ => None,
            })
            .collect()
    }

    pub(crate) fn has_unknown(&self) -> bool {
        self.tokens.iter().any(|t| matches!(t, Token::Unknown(_)))
    }

    fn has_ext(&self) -> bool {
        self.tokens.iter().any(|t| matches!(t, Token::Ext(..)))
    }

    /// Whether a known text matches as a whole; None when the pattern is unknown or too costly.
    pub(crate) fn matches(&self, text: &str) -> Option<bool> {
        if self.has_unknown() {
            return None;
        }
        if self.has_ext() {
            let regex = regex::RegexBuilder::new(&format!("^(?s:{})$", to_regex(&self.tokens)?));
            return Some(bounded(regex)?.is_match(text));
        }
        let subject: Vec<char> = text.chars().collect();
        Some(glob(&self.tokens, &subject))
    }

    /// Whether a value matches as a whole; None when it depends on an unknown.
    pub(crate) fn matches_value(&self, value: &Value) -> Option<bool> {
        if let Some(text) = value.known()
            && !self.has_unknown()
        {
            return self.matches(&text);
        }
        if self.tokens.is_empty() {
            return value.emptiness();
        }
        if self.has_ext() {
            return None;
        }
        if !self.has_unknown()
            && let Some(texts) = value.possible_texts()
        {
            let mut answers = texts.iter().map(|t| self.matches(t));
            let first = answers.next()??;
            return answers.all(|a| a == Some(first)).then_some(first);
        }
        let mut subject: Vec<Result<char, Arc<Unknown>>> = Vec::new();
        for piece in value.pieces() {
            match &piece.kind {
                PieceKind::Text(text) => subject.extend(text.chars().map(Ok)),
                PieceKind::Unknown(unknown) => subject.push(Err(unknown.clone())),
            }
        }
        if (subject.len() + 1).saturating_mul(self.tokens.len() + 1) > MAX_CELLS {
            return None;
        }
        if self.table(&subject, false) {
            return Some(true);
        }
        if self.table(&subject, true) { None } else { Some(false) }
    }

    /// Whether it matches whatever the unknowns are (`may` false), or for some (`may` true).
    fn table(&self, subject: &[Result<char, Arc<Unknown>>], may: bool) -> bool {
        let (n, m) = (subject.len(), self.tokens.len());
        let mut next = vec![false; m + 1];
        for i in (0..=n).rev() {
            let mut row = vec![false; m + 1];
            for j in (0..=m).rev() {
                let unknown_here = subject.get(i).is_some_and(Result::is_err);
                row[j] = match self.tokens.get(j) {
                    None => i == n || (may && unknown_here && next[j]),
                    Some(Token::Star) => row[j + 1] || (i < n && next[j]),
                    Some(Token::Unknown(p)) => {
                        let same = matches!(subject.get(i), Some(Err(s)) if s.id == p.id);
                        (same && next[j + 1]) || (may && (row[j + 1] || (i < n && next[j])))
                    }
                    Some(token) => match subject.get(i) {
                        None => false,
                        Some(Err(_)) => may && (next[j] || row[j + 1]),
                        Some(Ok(c)) => one(token, *c) && next[j + 1],
                    },
                };
            }
            next = row;
        }
        next[0]
    }
}

fn one(token: &Token, c: char) -> bool {
    match token {
        Token::Char(want) => *want == c,
        Token::One => true,
        Token::Class(negated, ranges) => ranges.iter().any(|(a, b)| (*a..=*b).contains(&c)) != *negated,
        _ => false,
    }
}

/// Plain glob match, backtracking to the last star only.
fn glob(tokens: &[Token], subject: &[char]) -> bool {
    let (mut i, mut j) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while i < subject.len() {
        match tokens.get(j) {
            Some(Token::Star) => {
                star = Some((i, j));
                j += 1;
            }
            Some(token) if one(token, subject[i]) => {
                i += 1;
                j += 1;
            }
            _ => match star {
                Some((at, star_at)) => {
                    star = Some((at + 1, star_at));
                    i = at + 1;
                    j = star_at + 1;
                }
                None => return false,
            },
        }
    }
    tokens[j..].iter().all(|t| *t == Token::Star)
}

fn parse(chars: &[char], at: &mut usize, out: &mut Vec<Token>, depth: usize, inside: bool) {
    while let Some(&c) = chars.get(*at) {
        if inside && matches!(c, '|' | ')') {
            return;
        }
        *at += 1;
        if matches!(c, '@' | '?' | '*' | '+' | '!') && chars.get(*at) == Some(&'(') && depth < MAX_NESTING {
            let before = *at;
            *at += 1;
            let mut alternatives = Vec::new();
            let closed = loop {
                let mut alternative = Vec::new();
                parse(chars, at, &mut alternative, depth + 1, true);
                alternatives.push(alternative);
                match chars.get(*at) {
                    Some('|') => *at += 1,
                    Some(_) => {
                        *at += 1;
                        break true;
                    }
                    None => break false,
                }
            };
            if closed {
                out.push(Token::Ext(c, alternatives));
                continue;
            }
            *at = before;
        }
        match c {
            '*' => {
                if out.last() != Some(&Token::Star) {
                    out.push(Token::Star);
                }
            }
            '?' => out.push(Token::One),
            '[' => match class(chars, *at) {
                Some((token, end)) => {
                    out.push(token);
                    *at = end;
                }
                None => out.push(Token::Char('[')),
            },
            '\\' => {
                out.push(Token::Char(chars.get(*at).copied().unwrap_or('\\')));
                *at += 1;
            }
            c => out.push(Token::Char(c)),
        }
    }
}

fn class(chars: &[char], from: usize) -> Option<(Token, usize)> {
    let mut at = from;
    let negated = matches!(chars.get(at), Some('!' | '^'));
    at += usize::from(negated);
    let mut ranges = Vec::new();
    let first = at;
    loop {
        let c = *chars.get(at)?;
        if c == ']' && at > first {
            return Some((Token::Class(negated, ranges), at + 1));
        }
        if c == '[' && chars.get(at + 1) == Some(&':') {
            let rest = &chars[at + 2..];
            let end = rest.iter().take(12).position(|c| *c == ':')?;
            let name: String = rest[..end].iter().collect();
            ranges.extend_from_slice(named_class(&name)?);
            at += 2 + end + 2;
            continue;
        }
        let low = if c == '\\' {
            at += 1;
            *chars.get(at)?
        } else {
            c
        };
        if chars.get(at + 1) == Some(&'-') && chars.get(at + 2).is_some_and(|c| *c != ']') {
            ranges.push((low, chars[at + 2]));
            at += 3;
        } else {
            ranges.push((low, low));
            at += 1;
        }
    }
}

fn named_class(name: &str) -> Option<&'static [(char, char)]> {
    Some(match name {
        "alpha" => &[('a', 'z'), ('A', 'Z')],
        "digit" => &[('0', '9')],
        "alnum" => &[('a', 'z'), ('A', 'Z'), ('0', '9')],
        "upper" => &[('A', 'Z')],
        "lower" => &[('a', 'z')],
        "space" => &[(' ', ' '), ('\t', '\r')],
        "blank" => &[(' ', ' '), ('\t', '\t')],
        "xdigit" => &[('0', '9'), ('a', 'f'), ('A', 'F')],
        "punct" => &[('!', '/'), (':', '@'), ('[', '`'), ('{', '~')],
        "print" => &[(' ', '~')],
        "graph" => &[('!', '~')],
        "cntrl" => &[('\0', '\u{1f}'), ('\u{7f}', '\u{7f}')],
        _ => return None,
    })
}

fn to_regex(tokens: &[Token]) -> Option<String> {
    let mut out = String::new();
    for token in tokens {
        match token {
            Token::Char(c) => out.push_str(&regex::escape(&c.to_string())),
            Token::One => out.push('.'),
            Token::Star => out.push_str(".*"),
            Token::Class(negated, ranges) => {
                out.push_str(if *negated { "[^" } else { "[" });
                for (a, b) in ranges {
                    let _ = write!(out, "\\x{{{:x}}}-\\x{{{:x}}}", *a as u32, (*b).max(*a) as u32);
                }
                out.push(']');
            }
            Token::Ext(op, alternatives) => {
                // "anything but" has no linear form.
                if *op == '!' {
                    return None;
                }
                let list: Option<Vec<String>> = alternatives.iter().map(|a| to_regex(a)).collect();
                let _ = write!(out, "(?:{})", list?.join("|"));
                match op {
                    '?' => out.push('?'),
                    '*' => out.push('*'),
                    '+' => out.push('+'),
                    _ => {}
                }
            }
            Token::Unknown(_) => return None,
        }
    }
    Some(out)
}

/// Build a regex within bounds; None when the text is not one or is too large.
pub(crate) fn bounded(mut builder: regex::RegexBuilder) -> Option<regex::Regex> {
    builder
        .size_limit(1 << 20)
        .dfa_size_limit(1 << 20)
        .nest_limit(64)
        .build()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Shape, Span, Why};

    fn pattern(text: &str) -> Pattern {
        let mut p = Pattern::default();
        p.push_pattern(text);
        p
    }

    #[test]
    fn known_texts() {
        for (p, text, expected) in [
            ("*", "", true),
            ("*.yaml", "a/b.yaml", true),
            ("*.yaml", "a.yml", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("[0-9]*", "9x", true),
            ("[!0-9]", "5", false),
            ("[[:space:]]", "\t", true),
            ("*[[:space:]]*", "ab", false),
            ("@(a|bc)", "bc", true),
            ("@(a|bc)d", "abcd", false),
            ("+([0-9])", "123", true),
            ("+([0-9])", "12a", false),
            ("a\\*", "a*", true),
            ("a\\*", "ab", false),
            ("[", "[", true),
            ("*/agentic/*", "x/agentic/y.sh", true),
            ("[]a]", "]", true),
        ] {
            assert_eq!(pattern(p).matches(text), Some(expected), "{p} against {text}");
        }
        assert_eq!(pattern("!(a)").matches("b"), None);
    }

    #[test]
    fn partly_unknown_values() {
        let unknown = Arc::new(Unknown {
            id: 7,
            name: "$X".into(),
            why: Why::Environment,
            depends_on: ["X".into()].into(),
            shape: Shape::Any,
            choices: vec![],
            stable: true,
            each: None,
            written: None,
        });
        let mut value = Value::text("pre-", Span::NOWHERE);
        value.push_unknown(unknown.clone(), Span::NOWHERE);
        value.push_text(".sh".into(), Span::NOWHERE);
        for (p, expected) in [
            ("pre-*", Some(true)),
            ("*.sh", Some(true)),
            ("*.yaml", Some(false)),
            ("pre-a*", None),
            ("pre-.sh", None),
            ("x*", Some(false)),
            ("*", Some(true)),
        ] {
            assert_eq!(pattern(p).matches_value(&value), expected, "{p}");
        }
        let mut same = Pattern::default();
        same.push_literal("pre-");
        same.push_unknown(unknown);
        same.push_literal(".sh");
        assert_eq!(same.matches_value(&value), Some(true));
    }
}
