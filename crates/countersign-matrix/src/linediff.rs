//! Which lines a text adds to another, as `git diff` shows them. The repository's tool selects what to sweep from the
//! added lines of the changelog's textual diff (domain guide 4.1, 7.2 A), so an inserted block must come out with the
//! same first line as git would give it, not rotated into its neighbours.

/// What changed, in lines of the two texts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LineDiff {
    /// Indexes of lines of the old text that are gone.
    pub deleted: Vec<usize>,
    /// Indexes of lines of the new text that are new.
    pub added: Vec<usize>,
}

/// The largest difference that is looked for, in lines deleted plus lines added between the first and the last changed
/// line. Work and memory grow with its square.
const MOST_EDITS: usize = 2_000;

/// Compares two texts, given as lines with their line ends; `None` where they differ in so much that the smallest difference is not worth finding.
#[must_use]
pub fn line_diff(old: &[&str], new: &[&str]) -> Option<LineDiff> {
    let prefix = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (&old[prefix..], &new[prefix..]);
    let suffix = old_rest
        .iter()
        .rev()
        .zip(new_rest.iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let (old_middle, new_middle) = (
        &old_rest[..old_rest.len() - suffix],
        &new_rest[..new_rest.len() - suffix],
    );
    let (kept_old, kept_new) = common(old_middle, new_middle)?;
    let mark = |total: usize, middle: usize, kept: &[bool]| {
        let mut changed = vec![false; total];
        for (at, kept) in kept.iter().enumerate().take(middle) {
            changed[prefix + at] = !kept;
        }
        changed
    };
    let mut deleted = mark(old.len(), old_middle.len(), &kept_old);
    let mut added = mark(new.len(), new_middle.len(), &kept_new);
    slide(old, &mut deleted, &added);
    slide(new, &mut added, &deleted);
    let indexes = |flags: &[bool]| {
        flags
            .iter()
            .enumerate()
            .filter(|(_, flag)| **flag)
            .map(|(at, _)| at)
            .collect()
    };
    Some(LineDiff {
        deleted: indexes(&deleted),
        added: indexes(&added),
    })
}

/// Which lines of either side belong to a longest common subsequence (the greedy algorithm of Myers, 1986).
fn common(old: &[&str], new: &[&str]) -> Option<(Vec<bool>, Vec<bool>)> {
    let (mut kept_old, mut kept_new) = (vec![false; old.len()], vec![false; new.len()]);
    if old.is_empty() || new.is_empty() {
        return Some((kept_old, kept_new));
    }
    // Where the other side differs so much in length alone, nothing needs to be tried.
    if old.len().abs_diff(new.len()) > MOST_EDITS {
        return None;
    }
    let at =
        |diagonal: isize, edits: usize| usize::try_from(diagonal + isize::try_from(edits).unwrap_or(0)).unwrap_or(0);
    // For each number of edits the furthest old line reached on each diagonal (old minus new), from -edits to edits.
    let mut history: Vec<Vec<usize>> = Vec::new();
    let mut found = None;
    'edits: for edits in 0..=MOST_EDITS.min(old.len() + new.len()) {
        let mut reach = vec![0_usize; 2 * edits + 1];
        let span = isize::try_from(edits).ok()?;
        for diagonal in (-span..=span).step_by(2) {
            let mut x = match history.last() {
                None => 0,
                Some(before) => {
                    let get = |diagonal: isize| before.get(at(diagonal, edits - 1)).copied().unwrap_or(0);
                    if diagonal == -span || (diagonal != span && get(diagonal - 1) < get(diagonal + 1)) {
                        get(diagonal + 1)
                    } else {
                        get(diagonal - 1) + 1
                    }
                }
            };
            let mut y = usize::try_from(isize::try_from(x).ok()? - diagonal).unwrap_or(usize::MAX);
            while x < old.len() && y < new.len() && old[x] == new[y] {
                x += 1;
                y += 1;
            }
            reach[at(diagonal, edits)] = x;
            if x >= old.len() && y >= new.len() {
                found = Some(diagonal);
                history.push(reach);
                break 'edits;
            }
        }
        history.push(reach);
    }
    let mut diagonal = found?;
    let mut x = old.len();
    for edits in (0..history.len()).rev() {
        let span = isize::try_from(edits).ok()?;
        let (from_x, from_diagonal) = match edits.checked_sub(1).and_then(|before| history.get(before)) {
            None => (0, 0),
            Some(before) => {
                let get = |diagonal: isize| before.get(at(diagonal, edits - 1)).copied().unwrap_or(0);
                if diagonal == -span || (diagonal != span && get(diagonal - 1) < get(diagonal + 1)) {
                    (get(diagonal + 1), diagonal + 1)
                } else {
                    (get(diagonal - 1), diagonal - 1)
                }
            }
        };
        // After the edit itself the path runs along equal lines.
        let after_edit = match edits {
            0 => 0,
            _ if from_diagonal > diagonal => from_x,
            _ => from_x + 1,
        };
        for line in after_edit..x {
            let other = usize::try_from(isize::try_from(line).ok()? - diagonal).ok()?;
            if let (Some(old), Some(new)) = (kept_old.get_mut(line), kept_new.get_mut(other)) {
                (*old, *new) = (true, true);
            }
        }
        (x, diagonal) = (from_x, from_diagonal);
    }
    Some((kept_old, kept_new))
}

/// A run of changed lines, possibly empty, between two unchanged ones.
#[derive(Clone, Copy)]
struct Group {
    start: usize,
    end: usize,
}

impl Group {
    fn first(changed: &[bool]) -> Self {
        Group {
            start: 0,
            end: changed.iter().take_while(|flag| **flag).count(),
        }
    }

    fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// The group after the next unchanged line.
    fn next(self, changed: &[bool]) -> Option<Self> {
        let start = self.end + 1;
        let rest = changed.get(start..)?;
        Some(Group {
            start,
            end: start + rest.iter().take_while(|flag| **flag).count(),
        })
    }

    /// The group before the unchanged line before this one.
    fn previous(self, changed: &[bool]) -> Option<Self> {
        let end = self.start.checked_sub(1)?;
        let size = changed[..end].iter().rev().take_while(|flag| **flag).count();
        Some(Group { start: end - size, end })
    }

    /// Moves up by one line, if the line above equals the last one; joins a group that it meets.
    fn up(&mut self, lines: &[&str], changed: &mut [bool]) -> bool {
        if self.start == 0 || self.is_empty() || lines[self.start - 1] != lines[self.end - 1] {
            return false;
        }
        self.start -= 1;
        self.end -= 1;
        changed[self.start] = true;
        changed[self.end] = false;
        self.start -= changed[..self.start].iter().rev().take_while(|flag| **flag).count();
        true
    }

    /// Moves down by one line, if the line below equals the first one; joins a group that it meets.
    fn down(&mut self, lines: &[&str], changed: &mut [bool]) -> bool {
        if self.end >= lines.len() || self.is_empty() || lines[self.start] != lines[self.end] {
            return false;
        }
        changed[self.start] = false;
        changed[self.end] = true;
        self.start += 1;
        self.end += 1;
        self.end += changed[self.end..].iter().take_while(|flag| **flag).count();
        true
    }
}

/// Moves each group of changed lines, where it can be moved, to where git puts it: beside a change of the other text if
/// it can reach one, else to the split with the least indentation, preferring blank lines around it (git's indent
/// heuristic, on by default since 2.14).
fn slide(lines: &[&str], changed: &mut [bool], other_changed: &[bool]) {
    let (mut group, mut other) = (Group::first(changed), Group::first(other_changed));
    loop {
        if !group.is_empty() {
            settle(lines, changed, other_changed, &mut group, &mut other);
        }
        // Both texts have the same unchanged lines, so both run out of groups together.
        match (group.next(changed), other.next(other_changed)) {
            (Some(next), Some(other_next)) => (group, other) = (next, other_next),
            _ => break,
        }
    }
}

fn settle(lines: &[&str], changed: &mut [bool], other_changed: &[bool], group: &mut Group, other: &mut Group) {
    let mut earliest_end;
    let mut beside_other;
    loop {
        let size = group.end - group.start;
        while group.up(lines, changed) {
            *other = other.previous(other_changed).unwrap_or(*other);
        }
        earliest_end = group.end;
        beside_other = !other.is_empty();
        while group.down(lines, changed) {
            *other = other.next(other_changed).unwrap_or(*other);
            beside_other |= !other.is_empty();
        }
        if size == group.end - group.start {
            break;
        }
    }
    if group.end == earliest_end {
        return;
    }
    let back_to = if beside_other {
        None
    } else {
        Some(best_end(lines, *group, earliest_end))
    };
    loop {
        let there = match back_to {
            None => !other.is_empty(),
            Some(end) => group.end <= end,
        };
        if there || !group.up(lines, changed) {
            break;
        }
        *other = other.previous(other_changed).unwrap_or(*other);
    }
}

/// The most positions that are tried, as in git.
const MOST_SLIDING: usize = 100;

fn best_end(lines: &[&str], group: Group, earliest_end: usize) -> usize {
    let (size, end) = (group.end - group.start, group.end);
    let lowest = earliest_end
        .max(end.saturating_sub(size + 1))
        .max(end.saturating_sub(MOST_SLIDING));
    let mut best: Option<(Score, usize)> = None;
    for shift in lowest..=end {
        let mut score = Score::default();
        score.add(&split_at(lines, shift));
        score.add(&split_at(lines, shift - size));
        if best.as_ref().is_none_or(|(least, _)| score.against(least) <= 0) {
            best = Some((score, shift));
        }
    }
    best.map_or(end, |(_, shift)| shift)
}

/// The surroundings of a split between two lines.
struct Split {
    at_end: bool,
    indent: Option<i64>,
    blank_before: i64,
    indent_before: Option<i64>,
    blank_after: i64,
    indent_after: Option<i64>,
}

const MOST_BLANKS: i64 = 20;

fn split_at(lines: &[&str], split: usize) -> Split {
    let look = |lines: &mut dyn Iterator<Item = &&str>| {
        let mut blanks = 0;
        for line in lines {
            if let Some(indent) = indent_of(line) {
                return (blanks, Some(indent));
            }
            blanks += 1;
            if blanks == MOST_BLANKS {
                return (blanks, Some(0));
            }
        }
        (blanks, None)
    };
    let (blank_before, indent_before) = look(&mut lines[..split].iter().rev());
    let (blank_after, indent_after) = look(&mut lines.iter().skip(split + 1));
    Split {
        at_end: split >= lines.len(),
        indent: lines.get(split).and_then(|line| indent_of(line)),
        blank_before,
        indent_before,
        blank_after,
        indent_after,
    }
}

/// Columns of white space before the first other character; `None` for a blank line.
fn indent_of(line: &str) -> Option<i64> {
    let mut indent = 0;
    for byte in line.bytes() {
        match byte {
            b' ' => indent += 1,
            b'\t' => indent += 8 - indent % 8,
            b'\n' | b'\r' | 0x0b | 0x0c => {}
            _ => return Some(indent),
        }
        if indent >= 200 {
            return Some(200);
        }
    }
    None
}

/// How bad a position is: first by indentation, then by penalties. The weights are git's.
#[derive(Default)]
struct Score {
    indent: i64,
    penalty: i64,
}

impl Score {
    fn add(&mut self, split: &Split) {
        if split.indent_before.is_none() && split.blank_before == 0 {
            self.penalty += 1;
        }
        if split.at_end {
            self.penalty += 21;
        }
        let blank_after = if split.indent.is_none() {
            1 + split.blank_after
        } else {
            0
        };
        let blanks = split.blank_before + blank_after;
        self.penalty += 6 * blank_after - 30 * blanks;
        let any = blanks != 0;
        let indent = split.indent.or(split.indent_after);
        self.indent += indent.unwrap_or(-1);
        let (Some(indent), Some(before)) = (indent, split.indent_before) else {
            return;
        };
        if indent > before {
            self.penalty += if any { 10 } else { -4 };
        } else if indent < before {
            let outdent = split.indent_after.is_some_and(|after| after > indent);
            self.penalty += match (outdent, any) {
                (true, true) | (false, true) => 17,
                (true, false) => 24,
                (false, false) => 23,
            };
        }
    }

    fn against(&self, other: &Score) -> i64 {
        60 * (self.indent - other.indent).signum() + self.penalty - other.penalty
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(old: &str, new: &str) -> String {
        let (old, new): (Vec<&str>, Vec<&str>) =
            (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
        let diff = line_diff(&old, &new).expect("small");
        diff.added.iter().map(|at| new[*at]).collect()
    }

    #[test]
    fn an_inserted_item_is_not_rotated_into_the_next_one() {
        let old = "- config-keys:\n    - a\n  pr-link: 1\n\n- config-keys:\n    - b\n  pr-link: 2\n";
        let new = "- config-keys:\n    - a\n  pr-link: 1\n\n- config-keys:\n    - c\n  pr-link: 3\n\n- config-keys:\n    - b\n  pr-link: 2\n";
        assert_eq!(added(old, new), "- config-keys:\n    - c\n  pr-link: 3\n\n");
    }

    #[test]
    fn an_appended_item_that_ends_like_the_last_one_stays_whole() {
        let old = "- config-keys:\n    - a\n  pr-link: X\n";
        let new = "- config-keys:\n    - a\n  pr-link: X\n\n- config-keys:\n    - b\n  pr-link: X\n";
        assert_eq!(added(old, new), "\n- config-keys:\n    - b\n  pr-link: X\n");
    }

    #[test]
    fn a_block_inserted_before_the_last_item_stays_whole_beside_a_lost_blank_line() {
        let last = "- config-keys:\n    - b\n  description:\n    - \"x\"\n  pr-link: 2\n";
        let old = format!("- config-keys:\n    - a\n  pr-link: 1\n\n{last}  \n");
        let block = "- config-keys:\n    - c\n  description:\n    - \"y\"\n  pr-link: 3\n\n";
        let new = format!("- config-keys:\n    - a\n  pr-link: 1\n\n{block}{last}");
        assert_eq!(added(&old, &new), block);
    }

    #[test]
    fn the_lines_that_stay_are_the_same_on_both_sides_and_as_many_as_possible() {
        // A slow and obvious longest common subsequence to compare with.
        fn longest(old: &[&str], new: &[&str]) -> usize {
            let mut row = vec![0; new.len() + 1];
            for a in old {
                let mut diagonal = 0;
                for (j, b) in new.iter().enumerate() {
                    let above = row[j + 1];
                    row[j + 1] = if a == b { diagonal + 1 } else { above.max(row[j]) };
                    diagonal = above;
                }
            }
            row[new.len()]
        }
        let mut state = 7_u64;
        let mut next = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..2_000 {
            let mut text = |most: u64| -> Vec<&str> {
                (0..next(most))
                    .map(|_| ["a\n", "b\n", "\n"][usize::try_from(next(3)).expect("small")])
                    .collect()
            };
            let (old, new) = (text(12), text(12));
            let diff = line_diff(&old, &new).expect("small");
            let rest = |lines: &[&'static str], gone: &[usize]| -> Vec<&'static str> {
                lines
                    .iter()
                    .enumerate()
                    .filter(|(at, _)| !gone.contains(at))
                    .map(|(_, line)| *line)
                    .collect()
            };
            let stays = rest(&old, &diff.deleted);
            assert_eq!(stays, rest(&new, &diff.added), "{old:?} {new:?}");
            assert_eq!(stays.len(), longest(&old, &new), "{old:?} {new:?}");
        }
    }

    #[test]
    fn texts_that_have_little_in_common_are_given_up_in_bounded_time() {
        let old: Vec<String> = (0..200_000).map(|i| format!("{i}\n")).collect();
        let new: Vec<String> = (0..200_000).map(|i| format!("{}\n", i * 7 + 3)).collect();
        let (old, new): (Vec<&str>, Vec<&str>) = (
            old.iter().map(String::as_str).collect(),
            new.iter().map(String::as_str).collect(),
        );
        assert_eq!(line_diff(&old, &new), None);
    }

    #[test]
    fn deletions_are_found_even_where_lines_are_added() {
        let old = ["a\n", "b\n", "c\n"];
        let new = ["a\n", "x\n", "c\n", "d\n"];
        let diff = line_diff(&old, &new).expect("small");
        assert_eq!((diff.deleted, diff.added), (vec![1], vec![1, 3]));
    }
}
