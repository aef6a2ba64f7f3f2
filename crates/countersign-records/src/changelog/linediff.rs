//! Which lines `git diff` calls deleted and added.
//!
//! The CI gate reads git's diff as text, and where several shortest diffs exist the choice decides what is read. No
//! diff crate makes git's choices throughout, so they are made here: Myers' search from both ends with git's order of
//! diagonals, its limits on cost, its removal of lines that match too often, and (in `slide`) its placing of runs.

use std::collections::HashMap;
use std::ops::Range;

use super::slide::{best_end, indent};

/// A line that occurs this often in the other file, or as often as the root of the file's length, may be left out.
const MOST_EQUAL: usize = 1024;
/// How far around such a line is looked.
const WINDOW: usize = 100;
/// Lines that match too often are left out where less than one in this many around them does.
const SHARE: usize = 4;
/// A run of equal lines of this length is worth following.
const GOOD_RUN: i64 = 20;
/// Cost from which on a good run is taken although it may not be on a shortest path.
const PATIENCE: i64 = 256;
/// Least cost at which the search gives up.
const LEAST_LIMIT: i64 = 256;
/// How much longer than its cost a path must be to count as good.
const GAIN: i64 = 4;
/// Further than any place.
const BEYOND: i64 = i64::MAX / 4;

/// Changed lines of both files.
pub(super) struct Changed {
    pub(super) deleted: Vec<bool>,
    pub(super) added: Vec<bool>,
}

impl Changed {
    /// Changes in the order of the file: the deleted lines and the added ones at the same place.
    pub(super) fn hunks(&self) -> Vec<(Range<usize>, Range<usize>)> {
        let run = |flags: &[bool], from: usize| flags[from..].iter().take_while(|f| **f).count() + from;
        let (mut out, mut a, mut b) = (Vec::new(), 0, 0);
        while a < self.deleted.len() || b < self.added.len() {
            let (a_end, b_end) = (run(&self.deleted, a), run(&self.added, b));
            if a_end > a || b_end > b {
                out.push((a..a_end, b..b_end));
            }
            (a, b) = ((a_end + 1).min(self.deleted.len()), (b_end + 1).min(self.added.len()));
        }
        out
    }
}

/// A power of two near the square root.
fn root(mut n: usize) -> usize {
    let mut out = 1;
    while n > 0 {
        out <<= 1;
        n >>= 2;
    }
    out
}

/// Compares two files by lines; each line keeps its newline.
pub(super) fn changed(old: &[&[u8]], new: &[&[u8]]) -> Changed {
    let mut classes: HashMap<&[u8], usize> = HashMap::new();
    let mut class = |line| {
        let next = classes.len();
        *classes.entry(line).or_insert(next)
    };
    let a: Vec<usize> = old.iter().map(|l| class(*l)).collect();
    let b: Vec<usize> = new.iter().map(|l| class(*l)).collect();
    let mut counts = vec![[0usize; 2]; classes.len()];
    a.iter().for_each(|c| counts[*c][0] += 1);
    b.iter().for_each(|c| counts[*c][1] += 1);

    let head = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let rest = a.len().min(b.len()) - head;
    let tail = a
        .iter()
        .rev()
        .zip(b.iter().rev())
        .take(rest)
        .take_while(|(x, y)| x == y)
        .count();

    let mut left = Side::new(&a, head..a.len() - tail, |class| counts[class][1]);
    let mut right = Side::new(&b, head..b.len() - tail, |class| counts[class][0]);
    Search::new(&mut left, &mut right).run();

    let mut out = Changed {
        deleted: left.changed,
        added: right.changed,
    };
    let indents = |lines: &[&[u8]]| lines.iter().map(|l| indent(l)).collect::<Vec<_>>();
    settle(&a, &mut out.deleted, &mut out.added, &indents(old));
    settle(&b, &mut out.added, &mut out.deleted, &indents(new));
    out
}

/// One file: which lines are changed, and those that take part in the search.
struct Side {
    changed: Vec<bool>,
    /// Class of each line that takes part, and its place in the file.
    class: Vec<usize>,
    place: Vec<usize>,
}

impl Side {
    /// Lines without a match, and lines with too many in the middle of such, are changed from the start.
    fn new(lines: &[usize], range: Range<usize>, matches: impl Fn(usize) -> usize) -> Self {
        let many = root(lines.len()).min(MOST_EQUAL);
        let kind: Vec<Matches> = lines[range.clone()]
            .iter()
            .map(|class| match matches(*class) {
                0 => Matches::None,
                n if n >= many => Matches::Many,
                _ => Matches::Some,
            })
            .collect();
        let mut out = Side {
            changed: vec![false; lines.len()],
            class: Vec::new(),
            place: Vec::new(),
        };
        for (index, line) in range.enumerate() {
            let part = match kind[index] {
                Matches::Some => true,
                Matches::Many => !lost(&kind, index),
                Matches::None => false,
            };
            if part {
                out.class.push(lines[line]);
                out.place.push(line);
            } else {
                out.changed[line] = true;
            }
        }
        out
    }

    fn mark(&mut self, range: Range<i64>) {
        for index in range {
            if let Some(place) = usize::try_from(index).ok().and_then(|i| self.place.get(i)) {
                self.changed[*place] = true;
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Matches {
    None,
    Some,
    Many,
}

/// Whether a line that matches too often stands among lines without a match, on both sides.
fn lost(kind: &[Matches], at: usize) -> bool {
    let count = |lines: &mut dyn Iterator<Item = &Matches>| {
        let (mut none, mut many) = (0, 1);
        for kind in lines.take(WINDOW).take_while(|k| **k != Matches::Some) {
            match kind {
                Matches::None => none += 1,
                _ => many += 1,
            }
        }
        (none, many)
    };
    let (none_before, many_before) = count(&mut kind[..at].iter().rev());
    if none_before == 0 {
        return false;
    }
    let (none_after, many_after) = count(&mut kind[at + 1..].iter());
    let (none, many) = (none_before + none_after, many_before + many_after);
    none_after > 0 && many * SHARE < many + none
}

/// Furthest places reached on each diagonal, from one end.
struct Front {
    reach: Vec<i64>,
    low: i64,
    high: i64,
}

/// A rectangle of the edit graph: `x` in the old file, `y` in the new one.
#[derive(Clone)]
struct Area {
    x: Range<i64>,
    y: Range<i64>,
    /// No shortcuts.
    exact: bool,
}

/// Where a rectangle is cut, and whether each part must be searched exactly.
struct Cut {
    x: i64,
    y: i64,
    exact: (bool, bool),
}

struct Search<'s> {
    left: &'s mut Side,
    right: &'s mut Side,
    forward: Front,
    backward: Front,
    /// Index of the diagonal 0.
    zero: i64,
    limit: i64,
}

fn length(list: &[usize]) -> i64 {
    i64::try_from(list.len()).unwrap_or(i64::MAX)
}

impl<'s> Search<'s> {
    fn new(left: &'s mut Side, right: &'s mut Side) -> Self {
        let diagonals = left.class.len() + right.class.len() + 3;
        let front = || Front {
            reach: vec![0; diagonals],
            low: 0,
            high: 0,
        };
        let zero = length(&right.class) + 1;
        let limit = i64::try_from(root(diagonals)).unwrap_or(i64::MAX).max(LEAST_LIMIT);
        Search {
            left,
            right,
            forward: front(),
            backward: front(),
            zero,
            limit,
        }
    }

    fn run(&mut self) {
        let whole = Area {
            x: 0..length(&self.left.class),
            y: 0..length(&self.right.class),
            exact: false,
        };
        let mut todo = vec![whole];
        while let Some(mut area) = todo.pop() {
            while area.x.start < area.x.end && area.y.start < area.y.end && self.equal(area.x.start, area.y.start) {
                area.x.start += 1;
                area.y.start += 1;
            }
            while area.x.start < area.x.end && area.y.start < area.y.end && self.equal(area.x.end - 1, area.y.end - 1) {
                area.x.end -= 1;
                area.y.end -= 1;
            }
            if area.x.is_empty() {
                self.right.mark(area.y);
            } else if area.y.is_empty() {
                self.left.mark(area.x);
            } else {
                let cut = self.cut(&area);
                todo.push(Area {
                    x: cut.x..area.x.end,
                    y: cut.y..area.y.end,
                    exact: cut.exact.1,
                });
                todo.push(Area {
                    x: area.x.start..cut.x,
                    y: area.y.start..cut.y,
                    exact: cut.exact.0,
                });
            }
        }
    }

    fn equal(&self, x: i64, y: i64) -> bool {
        let class = |side: &Side, at: i64| usize::try_from(at).ok().and_then(|i| side.class.get(i)).copied();
        class(self.left, x).is_some_and(|c| class(self.right, y) == Some(c))
    }

    fn at(&self, diagonal: i64) -> usize {
        usize::try_from(diagonal + self.zero)
            .unwrap_or(0)
            .min(self.forward.reach.len().saturating_sub(1))
    }

    /// Searches from both ends until the two meet or the limit is reached.
    fn cut(&mut self, area: &Area) -> Cut {
        let (least, most) = (area.x.start - area.y.end, area.x.end - area.y.start);
        let (first, last) = (area.x.start - area.y.start, area.x.end - area.y.end);
        let odd = (first - last) % 2 != 0;
        (self.forward.low, self.forward.high) = (first, first);
        (self.backward.low, self.backward.high) = (last, last);
        let (f, b) = (self.at(first), self.at(last));
        self.forward.reach[f] = area.x.start;
        self.backward.reach[b] = area.x.end;
        let mut cost = 1;
        loop {
            let mut run = false;
            self.widen(least, most, true);
            let mut diagonal = self.forward.high;
            while diagonal >= self.forward.low {
                let (below, above) = (
                    self.forward.reach[self.at(diagonal - 1)],
                    self.forward.reach[self.at(diagonal + 1)],
                );
                let start = if below >= above { below + 1 } else { above };
                let mut x = start;
                while x < area.x.end && x - diagonal < area.y.end && self.equal(x, x - diagonal) {
                    x += 1;
                }
                run |= x - start > GOOD_RUN;
                let index = self.at(diagonal);
                self.forward.reach[index] = x;
                let met = odd && self.backward.low <= diagonal && diagonal <= self.backward.high;
                if met && self.backward.reach[index] <= x {
                    return Cut {
                        x,
                        y: x - diagonal,
                        exact: (true, true),
                    };
                }
                diagonal -= 2;
            }
            self.widen(least, most, false);
            let mut diagonal = self.backward.high;
            while diagonal >= self.backward.low {
                let (below, above) = (
                    self.backward.reach[self.at(diagonal - 1)],
                    self.backward.reach[self.at(diagonal + 1)],
                );
                let start = if below < above { below } else { above - 1 };
                let mut x = start;
                while x > area.x.start && x - diagonal > area.y.start && self.equal(x - 1, x - diagonal - 1) {
                    x -= 1;
                }
                run |= start - x > GOOD_RUN;
                let index = self.at(diagonal);
                self.backward.reach[index] = x;
                let met = !odd && self.forward.low <= diagonal && diagonal <= self.forward.high;
                if met && x <= self.forward.reach[index] {
                    return Cut {
                        x,
                        y: x - diagonal,
                        exact: (true, true),
                    };
                }
                diagonal -= 2;
            }
            if !area.exact {
                if run && cost > PATIENCE {
                    if let Some((x, y)) = self.good_run(area, first, cost, true) {
                        return Cut {
                            x,
                            y,
                            exact: (true, false),
                        };
                    }
                    if let Some((x, y)) = self.good_run(area, last, cost, false) {
                        return Cut {
                            x,
                            y,
                            exact: (false, true),
                        };
                    }
                }
                if cost >= self.limit {
                    return self.give_up(area);
                }
            }
            cost += 1;
        }
    }

    /// One diagonal more on either side, or one less where the rectangle ends. What is beyond counts as unreached.
    fn widen(&mut self, least: i64, most: i64, forward: bool) {
        let (low, high) = if forward {
            (self.forward.low, self.forward.high)
        } else {
            (self.backward.low, self.backward.high)
        };
        let unreached = if forward { -1 } else { BEYOND };
        let (mut new_low, mut new_high) = (low + 1, high - 1);
        let mut open = Vec::with_capacity(2);
        if low > least {
            new_low = low - 1;
            open.push(new_low - 1);
        }
        if high < most {
            new_high = high + 1;
            open.push(new_high + 1);
        }
        for diagonal in open {
            let index = self.at(diagonal);
            let front = if forward { &mut self.forward } else { &mut self.backward };
            front.reach[index] = unreached;
        }
        let front = if forward { &mut self.forward } else { &mut self.backward };
        (front.low, front.high) = (new_low, new_high);
    }

    /// The end of the best path that got far for its cost and ends in a good run.
    fn good_run(&self, area: &Area, middle: i64, cost: i64, forward: bool) -> Option<(i64, i64)> {
        let front = if forward { &self.forward } else { &self.backward };
        let (mut best, mut found) = (0, None);
        let mut diagonal = front.high;
        while diagonal >= front.low {
            let x = front.reach[self.at(diagonal)];
            let y = x - diagonal;
            let drift = (diagonal - middle).abs();
            let (gain, inside) = if forward {
                let gain = (x - area.x.start) + (y - area.y.start) - drift;
                let inside =
                    area.x.start + GOOD_RUN <= x && x < area.x.end && area.y.start + GOOD_RUN <= y && y < area.y.end;
                (gain, inside)
            } else {
                let gain = (area.x.end - x) + (area.y.end - y) - drift;
                let inside =
                    area.x.start < x && x <= area.x.end - GOOD_RUN && area.y.start < y && y <= area.y.end - GOOD_RUN;
                (gain, inside)
            };
            let good = |k: i64| {
                if forward {
                    self.equal(x - 1 - k, y - 1 - k)
                } else {
                    self.equal(x + k, y + k)
                }
            };
            if gain > GAIN * cost && gain > best && inside && (0..GOOD_RUN).all(good) {
                best = gain;
                found = Some((x, y));
            }
            diagonal -= 2;
        }
        found
    }

    /// The furthest place reached from either end.
    fn give_up(&self, area: &Area) -> Cut {
        let (mut forward, mut forward_x) = (-1, -1);
        let mut diagonal = self.forward.high;
        while diagonal >= self.forward.low {
            let mut x = self.forward.reach[self.at(diagonal)].min(area.x.end);
            if x - diagonal > area.y.end {
                x = area.y.end + diagonal;
            }
            if forward < 2 * x - diagonal {
                (forward, forward_x) = (2 * x - diagonal, x);
            }
            diagonal -= 2;
        }
        let (mut backward, mut backward_x) = (BEYOND, BEYOND);
        let mut diagonal = self.backward.high;
        while diagonal >= self.backward.low {
            let mut x = self.backward.reach[self.at(diagonal)].max(area.x.start);
            if x - diagonal < area.y.start {
                x = area.y.start + diagonal;
            }
            if 2 * x - diagonal < backward {
                (backward, backward_x) = (2 * x - diagonal, x);
            }
            diagonal -= 2;
        }
        if (area.x.end + area.y.end) - backward < forward - (area.x.start + area.y.start) {
            Cut {
                x: forward_x,
                y: forward - forward_x,
                exact: (true, false),
            }
        } else {
            Cut {
                x: backward_x,
                y: backward - backward_x,
                exact: (false, true),
            }
        }
    }
}

/// A run of changed lines, possibly empty, that ends before an unchanged line or at the end of the file.
struct Run<'c> {
    changed: &'c mut [bool],
    start: usize,
    end: usize,
}

impl<'c> Run<'c> {
    fn first(changed: &'c mut [bool]) -> Self {
        let mut out = Run {
            changed,
            start: 0,
            end: 0,
        };
        out.end = out.after(0);
        out
    }

    fn after(&self, from: usize) -> usize {
        (from..self.changed.len())
            .find(|i| !self.changed[*i])
            .unwrap_or(self.changed.len())
    }

    fn before(&self, end: usize) -> usize {
        (0..end).rev().find(|i| !self.changed[*i]).map_or(0, |i| i + 1)
    }

    fn is_empty(&self) -> bool {
        self.start == self.end
    }

    fn next(&mut self) -> bool {
        if self.end == self.changed.len() {
            return false;
        }
        self.start = self.end + 1;
        self.end = self.after(self.start);
        true
    }

    fn previous(&mut self) -> bool {
        if self.start == 0 {
            return false;
        }
        self.end = self.start - 1;
        self.start = self.before(self.end);
        true
    }

    /// Moves down by one line, swallowing a run that follows.
    fn down(&mut self, lines: &[usize]) -> bool {
        let fits = self.end < self.changed.len() && lines[self.start] == lines[self.end];
        if fits {
            self.changed[self.start] = false;
            self.changed[self.end] = true;
            self.start += 1;
            self.end = self.after(self.end + 1);
        }
        fits
    }

    /// Moves up by one line, swallowing a run that precedes.
    fn up(&mut self, lines: &[usize]) -> bool {
        let fits = self.start > 0 && lines[self.start - 1] == lines[self.end - 1];
        if fits {
            self.start -= 1;
            self.end -= 1;
            self.changed[self.start] = true;
            self.changed[self.end] = false;
            self.start = self.before(self.start);
        }
        fits
    }
}

/// Moves every run of one file to where git shows it; the other file's runs say what it can line up with.
fn settle(lines: &[usize], mine: &mut [bool], theirs: &mut [bool], indents: &[Option<i64>]) {
    let count = lines.len();
    let indent_of = |line: usize| indents.get(line).copied().flatten();
    let mut run = Run::first(mine);
    let mut other = Run::first(theirs);
    loop {
        if !run.is_empty() {
            let (mut highest, mut aligned, mut size);
            loop {
                size = run.end - run.start;
                while run.up(lines) {
                    other.previous();
                }
                highest = run.end;
                aligned = !other.is_empty();
                while run.down(lines) {
                    other.next();
                    aligned |= !other.is_empty();
                }
                if size == run.end - run.start {
                    break;
                }
            }
            if run.end != highest {
                let goal = if aligned {
                    None
                } else {
                    Some(best_end(&(run.start..run.end), highest, count, &indent_of))
                };
                while goal.map_or(other.is_empty(), |goal| run.end > goal) && run.up(lines) {
                    other.previous();
                }
            }
        }
        if !run.next() {
            return;
        }
        other.next();
    }
}
