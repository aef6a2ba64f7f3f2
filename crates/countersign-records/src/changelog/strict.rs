//! The merge-time rules, on the bytes of both versions (domain guide 7.2 B).

use countersign_yaml::Node;

use super::suggest::{self, Suggestion};
use super::version::{self, Placed, Version};
use super::{ChangelogRules, Item, Kind, Links, Side, Violation, line_at, shown};

/// How an item's first line begins.
pub(super) const FIRST_KEY: &str = "- config-keys:";
/// How the line of an item's link begins.
pub(super) const LINK_KEY: &str = "  pr-link:";

/// The answer of the merge-time rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// Everything that is wrong, in the order of the file; empty when the rules hold.
    pub violations: Vec<Violation>,
    /// The items that the head adds, where both versions could be read.
    pub additions: Vec<Item>,
    /// How many links of old items the head corrects.
    pub corrections: usize,
    /// What to append instead, where the rules do not hold and it can be derived.
    pub suggestion: Option<Suggestion>,
}

impl Checked {
    /// Whether the rules hold.
    #[must_use]
    pub fn passes(&self) -> bool {
        self.violations.is_empty()
    }
}

/// The target branch's file, read once for however many heads.
pub struct History {
    base: Vec<u8>,
    version: Version,
}

impl History {
    /// Reads the file of the target branch's tip.
    #[must_use]
    pub fn read(base: &[u8], rules: &ChangelogRules) -> History {
        History {
            base: base.to_vec(),
            version: version::read(base, Side::Base, rules, None),
        }
    }

    /// Reads another tip, as [`History::read`] does; items that are in this one too are not read again.
    #[must_use]
    pub fn read_younger(&self, base: &[u8], rules: &ChangelogRules) -> History {
        History {
            base: base.to_vec(),
            version: version::read(base, Side::Base, rules, Some(self)),
        }
    }

    /// Judges a head by the merge-time rules.
    #[must_use]
    pub fn check(&self, head: &[u8], links: Links, rules: &ChangelogRules) -> Checked {
        let (mut out, version) = self.judge(head, links, rules);
        if !out.violations.is_empty() && self.version.violations.is_empty() {
            out.suggestion = suggest::suggest(self, head, version, links, rules);
        }
        out
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.base
    }

    pub(super) fn version(&self) -> &Version {
        &self.version
    }

    /// [`History::check`] without a suggestion, and the head as it was read.
    pub(super) fn judge(&self, head: &[u8], links: Links, rules: &ChangelogRules) -> (Checked, Version) {
        let mut out = Checked {
            violations: self.version.violations.clone(),
            additions: Vec::new(),
            corrections: 0,
            suggestion: None,
        };
        if self.base == head {
            return (out, Version::default());
        }
        let after = version::read(head, Side::Head, rules, Some(self));
        out.violations.extend(after.violations.iter().cloned());
        if out.violations.is_empty() {
            compare(&self.version, &after, &self.base, head, links, rules, &mut out);
        }
        (out, after)
    }
}

/// Judges a change of the changelog by the merge-time rules. `base` is the target branch's tip; for several heads on
/// one base see [`History`].
#[must_use]
pub fn check(base: &[u8], head: &[u8], links: Links, rules: &ChangelogRules) -> Checked {
    History::read(base, rules).check(head, links, rules)
}

/// Whether two items are equal but for their links.
pub(super) fn same_but_link(a: &Node, b: &Node) -> bool {
    let (Some(a), Some(b)) = (a.as_map(), b.as_map()) else {
        return a.same_value(b);
    };
    let strip = |map: &countersign_yaml::Map| {
        let mut map = map.clone();
        map.entries.retain(|e| e.key.as_str() != Some("pr-link"));
        Node {
            span: countersign_yaml::Span::default(),
            value: countersign_yaml::Value::Map(map),
        }
    };
    strip(a).same_value(&strip(b))
}

/// The link under its own name; the other spelling does not count here.
fn written_link(node: &Node) -> &str {
    node.get("pr-link").and_then(Node::as_str).unwrap_or_default()
}

fn compare(
    before: &Version,
    after: &Version,
    base: &[u8],
    head: &[u8],
    links: Links,
    rules: &ChangelogRules,
    out: &mut Checked,
) {
    let old = before.items.len();
    if after.items.len() < old {
        let what = format!("{} items of the target branch are missing", old - after.items.len());
        let fix = "restore the file from the target branch and append only";
        out.violations.push(Violation::new(
            Kind::ItemsDeleted,
            Side::Head,
            line_at(head, head.len()),
            what,
            fix,
        ));
        return;
    }
    let mut corrected = Vec::new();
    for (index, (was, is)) in before.items.iter().zip(&after.items).enumerate() {
        if was.node().same_value(is.node()) {
            continue;
        }
        let line = is.line();
        if !same_but_link(was.node(), is.node()) {
            let what = format!("item {} is not the one of the target branch", index + 1);
            let fix = "restore the file from the target branch and append new items at its end";
            out.violations
                .push(Violation::new(Kind::ItemChanged, Side::Head, line, what, fix));
            // Whatever follows is shifted by the same mistake.
            return;
        }
        let link = written_link(is.node());
        if !rules.is_canonical(link) {
            let line = is.item().map_or(line, |item| item.link_line);
            let what = format!("the corrected link {} is not canonical", shown(link));
            let fix = format!("write {}<number>, or leave the old link", rules.link_prefix);
            out.violations
                .push(Violation::new(Kind::Correction, Side::Head, line, what, fix));
        }
        corrected.push(line);
    }
    out.corrections = corrected.len();
    let added = after.items.get(old..).unwrap_or_default();
    out.additions = added.iter().filter_map(Placed::item).collect();
    if let (Some(line), false) = (corrected.first(), out.additions.is_empty()) {
        let what = "links of old items are corrected in the same change that adds items";
        let fix = "correct old links in a pull request of their own";
        out.violations
            .push(Violation::new(Kind::MixedCorrection, Side::Head, *line, what, fix));
    }
    for (node, item) in added.iter().map(Placed::node).zip(&out.additions) {
        new_link(written_link(node), item, links, rules, &mut out.violations);
    }
    if !out.violations.is_empty() && !out.additions.is_empty() && corrected.is_empty() {
        // Links do not hide the layout: report both.
        layout(base, head, &out.additions, &mut out.violations);
    } else if out.violations.is_empty() {
        if !out.additions.is_empty() {
            layout(base, head, &out.additions, &mut out.violations);
        } else if !corrected.is_empty() {
            correction_lines(base, head, corrected.len(), &mut out.violations);
        } else {
            let line = first_difference(base, head);
            let what = "nothing is added or corrected, but bytes differ from the target branch";
            let fix = "restore the file from the target branch";
            out.violations
                .push(Violation::new(Kind::HistoryChanged, Side::Head, line, what, fix));
        }
    }
    out.violations.sort_by_key(|v| v.line);
}

fn new_link(link: &str, item: &Item, links: Links, rules: &ChangelogRules, list: &mut Vec<Violation>) {
    let (fine, expected) = match links {
        Links::PullRequest(number) => {
            let own = rules.link(number);
            (link == own || rules.is_placeholder(link), own)
        }
        Links::DefaultBranch => (rules.is_canonical(link), format!("{}<number>", rules.link_prefix)),
    };
    if !fine {
        let what = format!("the link of the new item is {}", shown(link));
        let fix = format!("write `pr-link: {expected}`");
        list.push(Violation::new(Kind::Link, Side::Head, item.link_line, what, fix));
    }
}

/// Line of the head at which the versions part.
fn first_difference(base: &[u8], head: &[u8]) -> usize {
    let same = base.iter().zip(head).take_while(|(a, b)| a == b).count();
    line_at(head, same)
}

/// Where items begin: byte offset, and line from 1.
pub(super) fn item_starts(text: &str) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    let mut at = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if line.starts_with(FIRST_KEY) && line.ends_with('\n') {
            out.push((at, index + 1));
        }
        at += line.len();
    }
    out
}

fn layout(base: &[u8], head: &[u8], additions: &[Item], list: &mut Vec<Violation>) {
    let say = |list: &mut Vec<Violation>, kind, line, what: &str, fix: &str| {
        list.push(Violation::new(kind, Side::Head, line, what, fix));
    };
    let Some(suffix) = head.strip_prefix(base) else {
        let line = first_difference(base, head);
        let fix = "restore the history byte for byte from the target branch and append at its end";
        say(
            list,
            Kind::HistoryChanged,
            line,
            "bytes of the history differ from the target branch",
            fix,
        );
        return;
    };
    let end = line_at(head, base.len());
    let (wanted, fix) = if base.ends_with(b"\n\n") {
        (
            FIRST_KEY.to_owned(),
            "begin the new item right there: the history ends with a blank line already",
        )
    } else {
        (
            format!("\n{FIRST_KEY}"),
            "put exactly one blank line between the history and the new item",
        )
    };
    if !suffix.starts_with(wanted.as_bytes()) {
        say(
            list,
            Kind::Separator,
            end,
            "the new item is not separated from the history by one blank line",
            fix,
        );
    }
    let starts = item_starts(std::str::from_utf8(head).unwrap_or_default());
    let appended = starts.len().saturating_sub(additions.len());
    for (start, line) in starts.iter().skip(appended + 1) {
        let prefix = &head[..*start];
        if !prefix.ends_with(b"\n\n") || prefix.ends_with(b"\n\n\n") {
            let what = "new items are not separated by exactly one blank line";
            say(
                list,
                Kind::BetweenItems,
                *line,
                what,
                "put exactly one empty line before this item",
            );
        }
    }
    if head.ends_with(b"\n\n") {
        let fix = "end the file with exactly one newline";
        say(
            list,
            Kind::TrailingBlank,
            line_at(head, head.len() - 1),
            "blank lines follow the last item",
            fix,
        );
    }
}

fn correction_lines(base: &[u8], head: &[u8], corrections: usize, list: &mut Vec<Violation>) {
    let old: Vec<&[u8]> = base.split_inclusive(|b| *b == b'\n').collect();
    let new: Vec<&[u8]> = head.split_inclusive(|b| *b == b'\n').collect();
    let fix = "restore the file from the target branch and change nothing but the links";
    if old.len() != new.len() {
        let line = first_difference(base, head);
        let what = "lines are added or deleted beside corrected links";
        list.push(Violation::new(Kind::HistoryChanged, Side::Head, line, what, fix));
        return;
    }
    let mut changed = 0;
    for (index, (was, is)) in old.iter().zip(&new).enumerate().filter(|(_, (a, b))| a != b) {
        changed += 1;
        let fine = |l: &[u8]| l.starts_with(LINK_KEY.as_bytes()) && l.ends_with(b"\n");
        if !fine(was) || !fine(is) {
            let what = "a line other than a link is changed";
            list.push(Violation::new(Kind::HistoryChanged, Side::Head, index + 1, what, fix));
        }
    }
    if changed != corrections && list.is_empty() {
        let what = format!("{corrections} links are corrected, but {changed} lines are changed");
        list.push(Violation::new(
            Kind::HistoryChanged,
            Side::Head,
            first_difference(base, head),
            what,
            fix,
        ));
    }
}
