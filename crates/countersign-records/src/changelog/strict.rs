//! The merge-time rules, on the bytes of both versions (domain guide 7.2 B).

use std::sync::Arc;

use countersign_yaml::{Limits, Node, Value, YamlErrorKind, parse};

use super::suggest::{self, Suggestion};
use super::{ChangelogRules, Item, Kind, Links, MAX_BYTES, Side, Violation, line_at, shown};

/// How an item's first line begins.
pub(super) const FIRST_KEY: &str = "- config-keys:";
/// How the line of an item's link begins.
pub(super) const LINK_KEY: &str = "  pr-link:";
/// Most violations of one kind that are listed; one more line then says how many there are.
const LISTED: usize = 20;

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

/// One version of the file.
pub(super) struct Version {
    pub(super) nodes: Vec<Arc<Node>>,
    pub(super) items: Vec<Item>,
    pub(super) violations: Vec<Violation>,
}

/// The target branch's file, read once for however many heads.
pub struct History {
    base: Vec<u8>,
    version: Version,
    lines: usize,
    /// What is appended can be read by itself: one document, whose root is a list in block style.
    appendable: bool,
}

impl History {
    /// Reads the file of the target branch's tip.
    #[must_use]
    pub fn read(base: &[u8], rules: &ChangelogRules) -> History {
        let version = read(base, Side::Base, rules);
        let appendable = version.violations.is_empty() && !version.nodes.is_empty() && plain(base);
        History {
            base: base.to_vec(),
            version,
            lines: line_at(base, base.len()) - 1,
            appendable,
        }
    }

    /// Reads the file of a younger tip, as [`History::read`] does; what only appends to this one is not read again.
    #[must_use]
    pub fn read_younger(&self, base: &[u8], rules: &ChangelogRules) -> History {
        let Some(tail) = self.appended(base, rules) else {
            return History::read(base, rules);
        };
        let (mut nodes, mut items) = (self.version.nodes.clone(), self.version.items.clone());
        nodes.extend(tail.nodes);
        items.extend(tail.items);
        History {
            base: base.to_vec(),
            version: Version {
                nodes,
                items,
                violations: Vec::new(),
            },
            lines: line_at(base, base.len()) - 1,
            appendable: plain(&base[self.base.len()..]),
        }
    }

    /// Judges a head by the merge-time rules.
    #[must_use]
    pub fn check(&self, head: &[u8], links: Links, rules: &ChangelogRules) -> Checked {
        let mut out = self.judge(head, links, rules);
        if !out.violations.is_empty() && self.version.violations.is_empty() {
            out.suggestion = suggest::suggest(self, head, links, rules);
        }
        out
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.base
    }

    pub(super) fn nodes(&self) -> &[Arc<Node>] {
        &self.version.nodes
    }

    /// [`History::check`] without a suggestion.
    pub(super) fn judge(&self, head: &[u8], links: Links, rules: &ChangelogRules) -> Checked {
        let mut out = Checked {
            violations: self.version.violations.clone(),
            additions: Vec::new(),
            corrections: 0,
            suggestion: None,
        };
        if self.base == head {
            return out;
        }
        if let Some(tail) = self.appended(head, rules) {
            out.additions = tail.items;
            for (node, item) in tail.nodes.iter().zip(&out.additions) {
                new_link(written_link(node), item, links, rules, &mut out.violations);
            }
            layout(&self.base, head, &out.additions, &mut out.violations);
            out.violations.sort_by_key(|v| v.line);
            return out;
        }
        let after = read(head, Side::Head, rules);
        out.violations.extend(after.violations.iter().cloned());
        if out.violations.is_empty() {
            compare(&self.version, &after, &self.base, head, links, rules, &mut out);
        }
        out
    }

    /// The items of a head that only appends: the history need not be read again. Anything unusual is `None`.
    fn appended(&self, head: &[u8], rules: &ChangelogRules) -> Option<Version> {
        let tail = head
            .strip_prefix(self.base.as_slice())
            .filter(|_| self.appendable && head.len() <= MAX_BYTES)?;
        tail.strip_prefix(b"\n")
            .unwrap_or(tail)
            .strip_prefix(FIRST_KEY.as_bytes())?;
        let mut tail = read(tail, Side::Head, rules);
        for item in &mut tail.items {
            item.line += self.lines;
            item.link_line += self.lines;
        }
        tail.violations.is_empty().then_some(tail)
    }
}

/// Judges a change of the changelog by the merge-time rules. `base` is the target branch's tip; for several heads on
/// one base see [`History`].
#[must_use]
pub fn check(base: &[u8], head: &[u8], links: Links, rules: &ChangelogRules) -> Checked {
    History::read(base, rules).check(head, links, rules)
}

/// The file-level rules and the schema of every item.
pub(super) fn read(raw: &[u8], side: Side, rules: &ChangelogRules) -> Version {
    let mut out = Version {
        nodes: Vec::new(),
        items: Vec::new(),
        violations: Vec::new(),
    };
    let say = |list: &mut Vec<Violation>, kind, line, what: &str, fix: &str| {
        list.push(Violation::new(kind, side, line, what, fix));
    };
    let list = &mut out.violations;
    if raw.len() > MAX_BYTES {
        say(
            list,
            Kind::TooLarge,
            1,
            "the changelog is larger than is read",
            "make it smaller",
        );
        return out;
    }
    if !raw.ends_with(b"\n") {
        let line = line_at(raw, raw.len());
        say(
            list,
            Kind::NoFinalNewline,
            line,
            "the file does not end with a newline",
            "end the last line with a newline",
        );
    }
    let bytes: [(u8, Kind, &str, &str); 3] = [
        (
            b'\r',
            Kind::CarriageReturn,
            "a carriage return",
            "save the file with plain newlines (LF)",
        ),
        (b'\t', Kind::Tab, "a tab", "write spaces instead"),
        (0, Kind::Nul, "a NUL byte", "remove it"),
    ];
    for (byte, kind, what, fix) in bytes {
        let hits: Vec<usize> = memchr_all(raw, byte);
        for offset in hits.iter().take(LISTED) {
            say(list, kind, line_at(raw, *offset), what, fix);
        }
        if hits.len() > LISTED {
            let more = format!("{what}, {} more times", hits.len() - LISTED);
            say(list, kind, line_at(raw, hits[LISTED]), &more, fix);
        }
    }
    let text = match std::str::from_utf8(raw) {
        Ok(text) => text,
        Err(error) => {
            let line = line_at(raw, error.valid_up_to());
            say(
                list,
                Kind::NotUtf8,
                line,
                "bytes that are not UTF-8",
                "save the file as UTF-8",
            );
            return out;
        }
    };
    if list.iter().any(|v| v.kind != Kind::NoFinalNewline) {
        // The reference stops here too; what the YAML reader would say is a consequence.
        return out;
    }
    let limits = Limits {
        max_bytes: MAX_BYTES,
        ..Limits::default()
    };
    let document = match parse(text, &limits) {
        Ok(document) => document,
        Err(error) => {
            let kind = if error.kind == YamlErrorKind::Limit {
                Kind::TooLarge
            } else {
                Kind::Yaml
            };
            say(
                list,
                kind,
                error.line as usize,
                &format!("not valid YAML: {}", error.message),
                &error.remedy,
            );
            return out;
        }
    };
    for twice in &document.duplicate_keys {
        let what = format!(
            "the key {} occurs twice, first on line {}",
            shown(&twice.key),
            twice.first_line
        );
        say(
            list,
            Kind::DuplicateKey,
            twice.line as usize,
            &what,
            "keep one of the two",
        );
    }
    for (index, line) in text.split('\n').enumerate().filter(|(_, l)| merges(l)) {
        let what = format!("the merge key in {} is not accepted", shown(line.trim()));
        say(list, Kind::MergeKey, index + 1, &what, "write the fields out");
    }
    let kind = document.root.type_name();
    let Value::Seq(nodes) = document.root.value else {
        let what = format!("the file is {kind}, not a list");
        say(
            list,
            Kind::NotAList,
            1,
            &what,
            "keep the file a list of items that begin with `- config-keys:`",
        );
        return out;
    };
    let starts = text.split('\n').filter(|l| l.starts_with(FIRST_KEY)).count();
    if starts != nodes.len() {
        first_keys(text, &nodes, starts, list, side);
    }
    for node in &nodes {
        match Item::read(node, rules) {
            Ok(item) => out.items.push(item),
            Err(problems) => list.extend(
                problems
                    .into_iter()
                    .map(|p| Violation::new(Kind::Schema, side, p.line, p.what, p.fix)),
            ),
        }
    }
    out.nodes = nodes.into_iter().map(Arc::new).collect();
    out
}

fn memchr_all(raw: &[u8], byte: u8) -> Vec<usize> {
    raw.iter()
        .enumerate()
        .filter(|(_, b)| **b == byte)
        .map(|(i, _)| i)
        .collect()
}

/// Whether what follows this text can be read by itself.
fn plain(text: &[u8]) -> bool {
    let marker = |l: &[u8]| l.starts_with(b"---") || l.starts_with(b"...") || l.starts_with(b"%");
    // A block scalar that keeps trailing blank lines would take the separator into its value.
    let keeps = |w: &[u8]| matches!(w[0], b'|' | b'>') && (w[1] == b'+' || (w[1].is_ascii_digit() && w[2] == b'+'));
    !text.split(|b| *b == b'\n').any(marker) && !text.windows(3).any(keeps)
}

/// Whether a line of an item is a merge key.
fn merges(line: &str) -> bool {
    let body = line
        .strip_prefix("  ")
        .or_else(|| line.strip_prefix("- "))
        .unwrap_or(line);
    let body = body.strip_prefix("? ").map_or(body, str::trim_start);
    body.strip_prefix("<<")
        .is_some_and(|rest| rest.trim_start().is_empty() || rest.trim_start().starts_with(':'))
}

/// Every item whose line does not begin as it must.
fn first_keys(text: &str, nodes: &[Node], starts: usize, list: &mut Vec<Violation>, side: Side) {
    let lines: Vec<&str> = text.split('\n').collect();
    let mut named = false;
    for node in nodes {
        let line = node
            .as_map()
            .and_then(|m| m.entries.first())
            .map_or(node.span.line, |e| e.key.span.line) as usize;
        let written = lines.get(line.saturating_sub(1)).copied().unwrap_or_default();
        if !written.starts_with(FIRST_KEY) {
            named = true;
            let what = format!(
                "the item begins with {}, not with `{FIRST_KEY}`",
                shown(written.trim_end())
            );
            let fix = "make config-keys the first key, with the dash in the first column";
            list.push(Violation::new(Kind::FirstKey, side, line, what, fix));
        }
    }
    if !named {
        let what = format!(
            "{starts} lines begin with `{FIRST_KEY}`, but the file has {} items",
            nodes.len()
        );
        let fix = "begin each item, and nothing else, with `- config-keys:` in the first column";
        list.push(Violation::new(Kind::FirstKey, side, 1, what, fix));
    }
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
    let old = before.nodes.len();
    if after.nodes.len() < old {
        let what = format!("{} items of the target branch are missing", old - after.nodes.len());
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
    for (index, (was, is)) in before.nodes.iter().zip(&after.nodes).enumerate() {
        if was.same_value(is) {
            continue;
        }
        let line = after.items.get(index).map_or(1, |i| i.line);
        if !same_but_link(was, is) {
            let what = format!("item {} is not the one of the target branch", index + 1);
            let fix = "restore the file from the target branch and append new items at its end";
            out.violations
                .push(Violation::new(Kind::ItemChanged, Side::Head, line, what, fix));
            // Whatever follows is shifted by the same mistake.
            return;
        }
        let link = written_link(is);
        if !rules.is_canonical(link) {
            let line = after.items.get(index).map_or(line, |i| i.link_line);
            let what = format!("the corrected link {} is not canonical", shown(link));
            let fix = format!("write {}<number>, or leave the old link", rules.link_prefix);
            out.violations
                .push(Violation::new(Kind::Correction, Side::Head, line, what, fix));
        }
        corrected.push(line);
    }
    out.corrections = corrected.len();
    out.additions = after.items.get(old..).unwrap_or_default().to_vec();
    if let (Some(line), false) = (corrected.first(), out.additions.is_empty()) {
        let what = "links of old items are corrected in the same change that adds items";
        let fix = "correct old links in a pull request of their own";
        out.violations
            .push(Violation::new(Kind::MixedCorrection, Side::Head, *line, what, fix));
    }
    for (node, item) in after.nodes.iter().skip(old).zip(&out.additions) {
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
pub(super) fn item_starts(raw: &[u8]) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    let mut at = 0;
    for (index, line) in raw.split_inclusive(|b| *b == b'\n').enumerate() {
        if line.starts_with(FIRST_KEY.as_bytes()) && line.ends_with(b"\n") {
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
    let starts = item_starts(head);
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
