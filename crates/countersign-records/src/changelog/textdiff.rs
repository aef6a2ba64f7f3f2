//! The lines that `git diff` adds and deletes, as the CI gate reads them.
//!
//! The gate reads the diff as text: it decodes it as UTF-8, turns every kind of line end into a newline, takes what
//! begins with one plus sign as added and what begins with one minus sign as deleted, and takes three of either for a
//! file header. So an added line that begins with `++` is lost, a lone carriage return cuts a line, and a file with a
//! NUL byte has no lines at all. All of that is reproduced here (domain guide 7.2 A, 7.4).

use std::ops::Range;

use super::linediff::changed;

/// Lines of context around a change, git's default.
const CONTEXT: usize = 3;
/// How far git looks for a NUL byte to call a file binary.
const BINARY_WINDOW: usize = 8000;
/// Most lines of a version; fifteen times what the real file has.
pub const MAX_LINES: usize = 100_000;

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
    /// A version has more than [`MAX_LINES`] lines: nothing was compared.
    pub too_long: bool,
}

/// The added and deleted lines between two versions of a file.
#[must_use]
pub fn added_lines(base: &[u8], head: &[u8]) -> TextChange {
    let mut out = TextChange::default();
    let binary = |bytes: &[u8]| bytes.iter().take(BINARY_WINDOW).any(|b| *b == 0);
    if base == head || binary(base) || binary(head) {
        return out;
    }
    let lines = |bytes: &[u8]| bytes.split_inclusive(|b| *b == b'\n').count();
    if lines(base).max(lines(head)) > MAX_LINES {
        out.too_long = true;
        return out;
    }
    let old: Vec<&[u8]> = base.split_inclusive(|b| *b == b'\n').collect();
    let new: Vec<&[u8]> = head.split_inclusive(|b| *b == b'\n').collect();
    let mut printed = 0;
    let mut added: Vec<String> = Vec::new();
    let hunks = changed(&old, &new).hunks();
    for (index, (before, after)) in hunks.iter().enumerate() {
        // Context is printed once even where two changes are near each other.
        let context = after.start.saturating_sub(CONTEXT).max(printed)..after.start;
        emit(' ', &new, context, &mut out, &mut added);
        emit('-', &old, before.clone(), &mut out, &mut added);
        emit('+', &new, after.clone(), &mut out, &mut added);
        // What belongs to the next change must not be printed as context of this one.
        let next = hunks.get(index + 1).map_or(new.len(), |(_, after)| after.start);
        printed = (after.end + CONTEXT).min(next);
        emit(' ', &new, after.end..printed, &mut out, &mut added);
    }
    out.added = added.join("\n");
    out
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
