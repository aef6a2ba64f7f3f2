//! Path patterns: how one is read and which paths it matches.
//!
//! The language is gitignore's without negation and character ranges, with GitHub's own twist
//! for a last segment that is a lone `*`. A pattern is turned into a list of path segments and
//! matched segment by segment, remembering only the latest wildcard, so the work is bounded by
//! the product of the two lengths and there is no recursion.
//!
//! Why not a glob library underneath: translating each rule to `globset` gives the same answers
//! (tests/globset_oracle.rs holds both against each other), but costs about 8 kB and 40 µs a
//! rule, which a hostile file of 3 MB turns into gigabytes; its combined set did not build
//! from 20,000 wildcard rules, and its single matcher panics on a pattern of a megabyte. Parsing
//! must never fail.

use serde::Serialize;

/// Longest pattern accepted, in bytes. No path in a repository is longer.
pub const MAX_PATTERN_BYTES: usize = 4096;

/// Why a pattern cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PatternProblem {
    /// Begins with `!`.
    #[error("`!` does not negate a pattern in CODEOWNERS")]
    Negation,
    /// Has an unescaped `[` or `]`.
    #[error("`[` and `]` define no character range in CODEOWNERS")]
    CharacterRange,
    /// Ends in a backslash that escapes nothing.
    #[error("the backslash at the end of the pattern escapes nothing")]
    DanglingEscape,
    /// Has three or more asterisks in a row.
    #[error("the pattern has three asterisks in a row")]
    TripleAsterisk,
    /// Cannot match any path of a repository: `/`, an empty segment, a `.` or `..` segment.
    #[error("the pattern can never match a path in a repository")]
    NeverMatches,
    /// Has a control character or a blank other than space and tab, such as U+00A0.
    #[error("the pattern contains a control character or a blank that is neither space nor tab")]
    InvisibleCharacter,
    /// Longer than [`MAX_PATTERN_BYTES`].
    #[error("the pattern is longer than {MAX_PATTERN_BYTES} bytes")]
    TooLong,
}

impl PatternProblem {
    pub(crate) fn remedy(self) -> &'static str {
        match self {
            Self::Negation => {
                "Write the exception as a later rule for the same path, with its own owners or with none."
            }
            Self::CharacterRange => "Escape brackets that are in the path (`\\[` and `\\]`), or use `?` or `*`.",
            Self::DanglingEscape => "Remove the backslash, or write `\\ ` for a space in the path.",
            Self::TripleAsterisk => "Write `**` for any number of directories, or `*` inside one name.",
            Self::NeverMatches => {
                "Write the path from the repository's root with single slashes, or `*` for every file."
            }
            Self::InvisibleCharacter => "Retype the line with plain spaces.",
            Self::TooLong => "Shorten the pattern with wildcards.",
        }
    }
}

/// One character's worth of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Char(char),
    /// `?`: exactly one character.
    One,
    /// `*`: any number of characters.
    Star,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// `**`: any number of whole segments, also none.
    AnyDirs,
    /// A segment without wildcards.
    Literal(Box<str>),
    /// A segment with wildcards.
    Glob(Box<[Token]>),
}

/// What may follow the parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tail {
    /// Nothing: `dir/*` does not reach into subdirectories.
    Nothing,
    /// Nothing, or anything below: `name` is a file, or a directory with all its content.
    OrBelow,
    /// At least one segment: `dir/` and `dir/**` are the content of a directory.
    Below,
}

/// A compiled pattern.
///
/// Two patterns are equal when they are compiled to the same thing, however they are spelled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    parts: Box<[Part]>,
    tail: Tail,
}

impl Pattern {
    /// Compiles a pattern (one field of a CODEOWNERS line, escapes included).
    ///
    /// - A slash at the beginning or in the middle anchors the pattern at the root; otherwise it
    ///   matches at every level.
    /// - A slash at the end: only what is below such a directory.
    /// - Otherwise the pattern matches a file, or a directory with everything below, except that
    ///   a last segment that is exactly `*` matches one level only (`docs/*`, `/*`).
    /// - `*` and `?` never match a slash; `**` as a whole segment matches any number of
    ///   directories, none included; elsewhere two asterisks are one.
    /// - A backslash makes the next character literal. Braces, parentheses and the like are
    ///   literal anyway.
    ///
    /// # Errors
    /// [`PatternProblem`] for a pattern that GitHub refuses or that cannot match anything.
    pub fn parse(pattern: &str) -> Result<Self, PatternProblem> {
        if pattern.len() > MAX_PATTERN_BYTES {
            return Err(PatternProblem::TooLong);
        }
        if pattern.starts_with('!') {
            return Err(PatternProblem::Negation);
        }
        let segments = split(pattern)?;
        let [first, .., last] = segments.as_slice() else {
            // No slash at all: the name at every level.
            return match segments.as_slice() {
                [only] if !only.is_empty() => Self::build(false, &segments, false),
                _ => Err(PatternProblem::NeverMatches),
            };
        };
        let leading = first.is_empty();
        let trailing = last.is_empty();
        let inner = &segments[usize::from(leading)..segments.len() - usize::from(trailing)];
        if inner.is_empty() || inner.iter().any(Vec::is_empty) {
            return Err(PatternProblem::NeverMatches);
        }
        Self::build(leading || inner.len() > 1, inner, trailing)
    }

    fn build(anchored: bool, segments: &[Vec<Token>], directory: bool) -> Result<Self, PatternProblem> {
        let mut parts = Vec::with_capacity(segments.len() + 1);
        if !anchored {
            parts.push(Part::AnyDirs);
        }
        for segment in segments {
            let part = part(segment)?;
            // `**/**` says no more than `**`.
            if part != Part::AnyDirs || parts.last() != Some(&Part::AnyDirs) {
                parts.push(part);
            }
        }
        let tail = if directory {
            Tail::Below
        } else {
            match segments.last().map(Vec::as_slice) {
                Some([Token::Star]) => Tail::Nothing,
                // `dir/**` is the content of the directory: the same as `dir/` (anchored).
                Some([Token::Star, Token::Star]) => {
                    parts.pop();
                    Tail::Below
                }
                _ => Tail::OrBelow,
            }
        };
        Ok(Self {
            parts: parts.into(),
            tail,
        })
    }

    /// Whether the pattern matches the path.
    ///
    /// The path is a file's path as git spells it: relative to the root, `/` between segments,
    /// no slash at either end. Comparison is case-sensitive and by code point. The empty path
    /// never matches.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        if path.is_empty() {
            return false;
        }
        let mut rest = Some(path);
        let mut part = 0;
        // The part after the latest `**`, and where that `**` gives up next.
        let mut retry: Option<(usize, &str)> = None;
        loop {
            let fits = match self.parts.get(part) {
                Some(Part::AnyDirs) => {
                    part += 1;
                    retry = rest.map(|from| (part, from));
                    continue;
                }
                Some(wanted) => match rest.map(take_segment) {
                    Some((segment, after)) if wanted.fits(segment) => {
                        rest = after;
                        part += 1;
                        continue;
                    }
                    _ => false,
                },
                None => match self.tail {
                    Tail::Nothing => rest.is_none(),
                    Tail::OrBelow => true,
                    Tail::Below => rest.is_some(),
                },
            };
            if fits {
                return true;
            }
            // Let the latest `**` swallow one segment more. An earlier one need not be asked:
            // it left the later parts as much of the path as possible.
            let Some((after_any, from)) = retry else { return false };
            let (_, Some(further)) = take_segment(from) else {
                return false;
            };
            part = after_any;
            rest = Some(further);
            retry = Some((after_any, further));
        }
    }

    /// Whether the pattern matches every path, judged by meaning, not by spelling: `*`, `**`,
    /// `/**`, `**/*` and the like do; `/*` does not, since it stays in the root directory.
    #[must_use]
    pub fn is_catch_all(&self) -> bool {
        // If some segment must have a particular form, a path without any such segment is not
        // matched. If none must, only the number of segments counts.
        let named = self.parts.iter().filter(|p| **p != Part::AnyDirs);
        let least = named.clone().count() + usize::from(self.tail == Tail::Below);
        let unbounded = self.tail != Tail::Nothing || self.parts.contains(&Part::AnyDirs);
        least <= 1 && unbounded && named.into_iter().all(Part::fits_any_segment)
    }
}

/// Splits at slashes and resolves escapes.
fn split(pattern: &str) -> Result<Vec<Vec<Token>>, PatternProblem> {
    let mut segments = Vec::new();
    let mut segment = Vec::new();
    let mut stars = 0;
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        stars = if c == '*' { stars + 1 } else { 0 };
        let token = match c {
            '\\' => match chars.next() {
                None => return Err(PatternProblem::DanglingEscape),
                // An escaped slash is a slash.
                Some('/') => {
                    segments.push(std::mem::take(&mut segment));
                    continue;
                }
                Some(c) => literal(c)?,
            },
            '/' => {
                segments.push(std::mem::take(&mut segment));
                continue;
            }
            '*' if stars > 2 => return Err(PatternProblem::TripleAsterisk),
            '*' => Token::Star,
            '?' => Token::One,
            '[' | ']' => return Err(PatternProblem::CharacterRange),
            c => literal(c)?,
        };
        segment.push(token);
    }
    segments.push(segment);
    Ok(segments)
}

fn literal(c: char) -> Result<Token, PatternProblem> {
    // A space or tab can only be here escaped, and then it is meant.
    let plain_blank = c == ' ' || c == '\t';
    let invisible =
        c.is_control() || c.is_whitespace() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}');
    if invisible && !plain_blank {
        Err(PatternProblem::InvisibleCharacter)
    } else {
        Ok(Token::Char(c))
    }
}

fn part(segment: &[Token]) -> Result<Part, PatternProblem> {
    if segment == [Token::Star, Token::Star] {
        return Ok(Part::AnyDirs);
    }
    let mut text = String::new();
    for token in segment {
        let Token::Char(c) = token else {
            let mut tokens = segment.to_vec();
            // Elsewhere than alone in a segment, two asterisks are one.
            tokens.dedup_by(|a, b| *a == Token::Star && *b == Token::Star);
            return Ok(Part::Glob(tokens.into()));
        };
        text.push(*c);
    }
    // git has no such segments.
    if text == "." || text == ".." {
        Err(PatternProblem::NeverMatches)
    } else {
        Ok(Part::Literal(text.into()))
    }
}

fn take_segment(path: &str) -> (&str, Option<&str>) {
    match path.split_once('/') {
        Some((segment, rest)) => (segment, Some(rest)),
        None => (path, None),
    }
}

impl Part {
    fn fits(&self, segment: &str) -> bool {
        match self {
            Self::AnyDirs => true,
            Self::Literal(text) => **text == *segment,
            Self::Glob(tokens) => glob_fits(tokens, segment),
        }
    }

    /// Segments are never empty, so one `?` among asterisks refuses nothing.
    fn fits_any_segment(&self) -> bool {
        let Self::Glob(tokens) = self else { return false };
        let stars = tokens.iter().filter(|t| **t == Token::Star).count();
        let ones = tokens.iter().filter(|t| **t == Token::One).count();
        stars > 0 && ones <= 1 && stars + ones == tokens.len()
    }
}

fn glob_fits(tokens: &[Token], segment: &str) -> bool {
    let mut rest = segment.chars();
    let mut next = 0;
    let mut retry = None;
    loop {
        let mut ahead = rest.clone();
        match (tokens.get(next), ahead.next()) {
            (Some(Token::Star), _) => {
                next += 1;
                retry = Some((next, rest.clone()));
            }
            (Some(Token::One), Some(_)) => {
                next += 1;
                rest = ahead;
            }
            (Some(Token::Char(wanted)), Some(found)) if *wanted == found => {
                next += 1;
                rest = ahead;
            }
            (None, None) => return true,
            _ => {
                let Some((after_star, from)) = &mut retry else {
                    return false;
                };
                if from.next().is_none() {
                    return false;
                }
                next = *after_star;
                rest = from.clone();
            }
        }
    }
}
