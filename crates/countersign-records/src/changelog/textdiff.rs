//! The lines that `git diff` adds and deletes, as the CI gate reads them.
//!
//! The gate reads the diff as text: it decodes it as UTF-8, turns every kind of line end into a newline, takes what
//! begins with one plus sign as added and what begins with one minus sign as deleted, and takes three of either for a
//! file header. So an added line that begins with `++` is lost, a lone carriage return cuts a line, and a file with a
//! NUL byte has no lines at all. All of that is reproduced here (domain guide 7.2 A, 7.4).

use std::ops::Range;

use imara_diff::{Algorithm, Diff, InternedInput, Token, sources::byte_lines};

use super::slide::{best_end, indent};

/// Lines of context around a change, git's default.
const CONTEXT: usize = 3;
/// How far git looks for a NUL byte to call a file binary.
const BINARY_WINDOW: usize = 8000;

/// What a textual diff shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextChange {
    /// The added lines, joined by newlines.
    pub added: String,
    /// Line in the head of each added line, from 1.
    pub added_at: Vec<usize>,
    /// Deleted lines with content: line in the base, from 1, and text.
    pub deleted: Vec<(usize, String)>,
    /// Line in the head near which the diff is not UTF-8.
    pub not_utf8: Option<usize>,
}

/// The added and deleted lines between two versions of a file.
#[must_use]
pub fn added_lines(base: &[u8], head: &[u8]) -> TextChange {
    let mut out = TextChange::default();
    let binary = |bytes: &[u8]| bytes.iter().take(BINARY_WINDOW).any(|b| *b == 0);
    if base == head || binary(base) || binary(head) {
        return out;
    }
    let input = InternedInput::new(byte_lines(base), byte_lines(head));
    let mut diff = Diff::compute(Algorithm::Myers, &input);
    let indents: Vec<Option<i64>> = (0..input.interner.num_tokens())
        .map(|t| indent(input.interner[Token::from(t)]))
        .collect();
    diff.postprocess_with_heuristic(&input, |tokens: &[Token], hunk: Range<u32>, earliest: u32| {
        let indent_of = |line: usize| {
            tokens
                .get(line)
                .and_then(|t| indents.get(t.0 as usize).copied().flatten())
        };
        let end = best_end(&wide(&hunk), earliest as usize, tokens.len(), &indent_of);
        u32::try_from(end).unwrap_or(hunk.end)
    });
    let old: Vec<&[u8]> = byte_lines(base).collect();
    let new: Vec<&[u8]> = byte_lines(head).collect();
    let mut printed = 0;
    let mut added: Vec<String> = Vec::new();
    for hunk in diff.hunks() {
        let (before, after) = (wide(&hunk.before), wide(&hunk.after));
        // Context is printed once even where two changes are near each other.
        let context = after.start.saturating_sub(CONTEXT).max(printed)..after.start;
        emit(' ', &new, context, &mut out, &mut added);
        emit('-', &old, before, &mut out, &mut added);
        emit('+', &new, after.clone(), &mut out, &mut added);
        let tail = after.end..(after.end + CONTEXT).min(new.len());
        let next = tail.end;
        // What belongs to the next change must not be printed as context of this one.
        let tail = tail.start..clip(&diff, tail);
        printed = tail.end.min(next);
        emit(' ', &new, tail, &mut out, &mut added);
    }
    out.added = added.join("\n");
    out
}

fn wide(range: &Range<u32>) -> Range<usize> {
    range.start as usize..range.end as usize
}

/// End of the run of unchanged lines at the start of `range`.
fn clip(diff: &Diff, range: Range<usize>) -> usize {
    let end = range.end;
    range
        .clone()
        .find(|i| u32::try_from(*i).is_ok_and(|i| diff.is_added(i)))
        .unwrap_or(end)
}

fn emit(sign: char, lines: &[&[u8]], range: Range<usize>, out: &mut TextChange, added: &mut Vec<String>) {
    for index in range {
        let Some(raw) = lines.get(index) else { continue };
        let raw = raw.strip_suffix(b"\n").unwrap_or(raw);
        let Ok(text) = std::str::from_utf8(raw) else {
            out.not_utf8.get_or_insert(index + 1);
            continue;
        };
        let printed = format!("{sign}{text}").replace("\r\n", "\n").replace('\r', "\n");
        // A carriage return at the very end belongs to the line end.
        let printed = if text.ends_with('\r') {
            printed.strip_suffix('\n').unwrap_or(&printed)
        } else {
            &printed
        };
        for line in printed.split('\n') {
            if line.starts_with('-') && !line.starts_with("---") {
                let gone = &line[1..];
                if !python_blank(gone) {
                    out.deleted.push((index + 1, gone.to_owned()));
                }
            } else if line.starts_with('+') && !line.starts_with("+++") {
                added.push(line[1..].to_owned());
                out.added_at.push(index + 1);
            }
        }
    }
}

/// Whether Python's `strip` would leave nothing.
pub(super) fn python_blank(text: &str) -> bool {
    text.chars()
        .all(|c| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c))
}
