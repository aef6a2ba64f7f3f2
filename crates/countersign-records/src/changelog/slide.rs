//! Where a run of added lines is shown when it could stand in several places: the choice that git makes.
//!
//! A run can slide where the line after it equals its first line. Git scores every position by the indentation and the
//! blank lines at both ends and takes the best one, the lowest of equals. The diff library has this too, but scores the
//! end of the file differently, and the gate reads the added lines in the order shown, so it has to be git's.

use std::ops::Range;

/// Widest indentation that is told apart.
const MAX_INDENT: i64 = 200;
/// Most blank lines that are counted.
const MAX_BLANKS: i64 = 20;
/// Furthest that a run is moved.
const MAX_SLIDING: usize = 100;
/// Weight of the sum of indentations against the penalties below.
const INDENT_WEIGHT: i64 = 60;

/// Indentation of a line in columns; `None` for a blank one.
pub(super) fn indent(line: &[u8]) -> Option<i64> {
    let mut columns = 0;
    for byte in line {
        match byte {
            b' ' => columns += 1,
            b'\t' => columns += 8 - columns % 8,
            b'\n' | b'\r' | 0x0b | 0x0c => {}
            _ => return Some(columns),
        }
        if columns >= MAX_INDENT {
            return Some(MAX_INDENT);
        }
    }
    None
}

/// The first line with content among `lines`, and the blank ones before it.
fn look(lines: impl Iterator<Item = usize>, indents: &dyn Fn(usize) -> Option<i64>) -> (Option<i64>, i64) {
    let mut blanks = 0;
    for line in lines {
        if let Some(columns) = indents(line) {
            return (Some(columns), blanks);
        }
        blanks += 1;
        if blanks == MAX_BLANKS {
            return (Some(0), blanks);
        }
    }
    (None, blanks)
}

/// Indentation and penalty of a split before the line `at`.
fn score(at: usize, count: usize, indents: &dyn Fn(usize) -> Option<i64>) -> (i64, i64) {
    let own = if at < count { indents(at) } else { None };
    let (before, blanks_before) = look((0..at.min(count)).rev(), indents);
    let (after, blanks_after) = look((at + 1).min(count)..count, indents);
    let mut penalty = 0;
    if before.is_none() && blanks_before == 0 {
        penalty += 1;
    }
    if at >= count {
        penalty += 21;
    }
    let trailing = if own.is_none() { 1 + blanks_after } else { 0 };
    let blanks = blanks_before + trailing;
    penalty += -30 * blanks + 6 * trailing;
    let effective = own.or(after);
    if let (Some(here), Some(before)) = (effective, before) {
        let blank = blanks != 0;
        penalty += match here.cmp(&before) {
            std::cmp::Ordering::Greater => {
                if blank {
                    10
                } else {
                    -4
                }
            }
            std::cmp::Ordering::Equal => 0,
            // The start of a block that is indented less than what precedes it, or the end of one.
            std::cmp::Ordering::Less if after.is_some_and(|a| a > here) => {
                if blank {
                    17
                } else {
                    24
                }
            }
            std::cmp::Ordering::Less => {
                if blank {
                    17
                } else {
                    23
                }
            }
        };
    }
    (effective.unwrap_or(-1), penalty)
}

/// The end at which the run `range` is shown; it may end anywhere from `earliest` to `range.end`.
pub(super) fn best_end(
    range: &Range<usize>,
    earliest: usize,
    count: usize,
    indents: &dyn Fn(usize) -> Option<i64>,
) -> usize {
    let size = range.end - range.start;
    let first = earliest
        .max(range.start.saturating_sub(1))
        .max(range.end.saturating_sub(MAX_SLIDING));
    let mut best: Option<(usize, i64, i64)> = None;
    for end in first.max(size)..=range.end {
        let (low, high) = (score(end, count, indents), score(end - size, count, indents));
        let (columns, penalty) = (low.0 + high.0, low.1 + high.1);
        let better = best.is_none_or(|(_, c, p)| INDENT_WEIGHT * (columns - c).signum() + penalty - p <= 0);
        if better {
            best = Some((end, columns, penalty));
        }
    }
    best.map_or(range.end, |(end, ..)| end)
}
