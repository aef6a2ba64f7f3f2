//! One version of the file, item by item. A changelog has hundreds of items, and two versions differ in a few: what one
//! has is taken over into the other, wherever it stands.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use countersign_yaml::{Limits, Node, Piece, Root, Value, YamlErrorKind, parse, pieces};

use super::item::ItemProblem;
use super::strict::{FIRST_KEY, History};
use super::{ChangelogRules, Item, Kind, MAX_BYTES, Side, Violation, line_at, shown};

/// Most violations of one kind that are listed; one more line then says how many there are.
const LISTED: usize = 20;

/// One version of the file.
#[derive(Default)]
pub(super) struct Version {
    /// The items in order; all of them can be read where there are no violations.
    pub(super) items: Vec<Placed>,
    pub(super) violations: Vec<Violation>,
    /// The items can be taken over: the text of each is all that it says.
    cut: bool,
}

impl Version {
    /// The items, where each was read by itself or could have been.
    pub(super) fn in_pieces(self) -> Option<Vec<Placed>> {
        self.cut.then_some(self.items)
    }

    /// The texts of the items, where they can be taken over.
    fn pieces<'v>(&'v self, raw: &'v [u8]) -> Option<Vec<(&'v [u8], &'v Placed)>> {
        let ends = self.items.iter().skip(1).map(|next| next.start).chain([raw.len()]);
        let texts = self.items.iter().zip(ends);
        self.cut.then(|| {
            texts
                .map(|(item, end)| Some((raw.get(item.start..end)?, item)))
                .collect()
        })?
    }
}

/// An item as it was read once.
struct Read {
    node: Node,
    item: Result<Item, Vec<ItemProblem>>,
    /// The line at which it stood then.
    line: usize,
    /// Something in it is not accepted that its values do not show: a key that occurs twice, a merge key.
    odd: bool,
    /// Its end does not show its place, see [`Node::ends_empty`].
    ends_empty: bool,
    signature: OnceLock<String>,
}

/// An item at its place in a version.
#[derive(Clone)]
pub(super) struct Placed {
    read: Arc<Read>,
    /// The line at which it stands, and the byte.
    line: usize,
    start: usize,
}

impl Placed {
    fn new(node: Node, (line, start): (usize, usize), odd: bool, rules: &ChangelogRules) -> Self {
        let read = Read {
            item: Item::read(&node, rules),
            ends_empty: node.ends_empty(),
            node,
            line,
            odd,
            signature: OnceLock::new(),
        };
        Self {
            read: Arc::new(read),
            line,
            start,
        }
    }

    /// An item that is read by itself.
    fn alone(piece: &Piece<'_>, rules: &ChangelogRules) -> Option<Self> {
        let document = piece.read(&limits())?;
        let odd = !document.duplicate_keys.is_empty() || piece.text.split('\n').any(merges);
        let Value::Seq(nodes) = document.root.value else {
            return None;
        };
        let read = Self::new(nodes.into_iter().next()?, (1, 0), odd, rules);
        Some(read.at(piece))
    }

    /// The same item where a piece begins.
    fn at(&self, piece: &Piece<'_>) -> Self {
        Self {
            read: self.read.clone(),
            line: piece.line as usize,
            start: piece.start,
        }
    }

    /// Whether the two were read once: then they say the same.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.read, &other.read)
    }

    /// Its values; their lines are those of where it was read.
    pub(super) fn node(&self) -> &Node {
        &self.read.node
    }

    /// The line of its first key, from 1.
    pub(super) fn line(&self) -> usize {
        let node = &self.read.node;
        let first = node.as_map().and_then(|map| map.entries.first());
        self.moved(first.map_or(node.span.line, |entry| entry.key.span.line) as usize)
    }

    /// The item with the lines of its place, if it keeps the schema.
    pub(super) fn item(&self) -> Option<Item> {
        let item = self.read.item.as_ref().ok()?;
        Some(Item {
            line: self.moved(item.line),
            link_line: self.moved(item.link_line),
            ..item.clone()
        })
    }

    /// Its values but the link, in a form that can be compared.
    pub(super) fn signature(&self) -> &str {
        self.read.signature.get_or_init(|| signature(&self.read.node))
    }

    fn moved(&self, line: usize) -> usize {
        (line + self.line).saturating_sub(self.read.line)
    }
}

fn limits() -> Limits {
    Limits {
        max_bytes: MAX_BYTES,
        ..Limits::default()
    }
}

fn signature(node: &Node) -> String {
    match &node.value {
        Value::Map(map) => {
            let fields: BTreeMap<String, String> = map
                .iter()
                .filter(|(key, _)| key.as_str() != Some("pr-link"))
                .map(|(key, value)| (key.scalar_text(), value.to_json().to_string()))
                .collect();
            format!("{fields:?}")
        }
        _ => node.to_json().to_string(),
    }
}

/// The file-level rules and the schema of every item. What `near` has is taken from there: it must have been read by the
/// same rules.
pub(super) fn read(raw: &[u8], side: Side, rules: &ChangelogRules, near: Option<&History>) -> Version {
    let mut out = Version::default();
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
    if let Some(items) = near.and_then(|near| in_pieces(text, near, rules))
        && !items.iter().any(|item| item.read.odd)
    {
        out.items = items;
        out.cut = true;
        // Whatever begins as an item must is a piece of its own.
        let starts = |item: &&Placed| text.get(item.start..).is_some_and(|text| text.starts_with(FIRST_KEY));
        let starts = out.items.iter().filter(starts).count();
        say_of_items(&mut out, text, starts, side);
        return out;
    }
    let document = match parse(text, &limits()) {
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
    let cut = pieces(text, Root::Seq, &limits()).filter(|cut| cut.len() == nodes.len());
    let place = |index: usize| {
        let piece = cut.as_ref().and_then(|cut| cut.get(index));
        piece.map_or((1, 0), |piece| (piece.line as usize, piece.start))
    };
    let placed = nodes.into_iter().enumerate();
    out.items = placed
        .map(|(index, node)| Placed::new(node, place(index), false, rules))
        .collect();
    let starts = text.split('\n').filter(|l| l.starts_with(FIRST_KEY)).count();
    say_of_items(&mut out, text, starts, side);
    out.cut = cut.is_some() && out.violations.is_empty() && !document.anchors;
    out
}

/// What is wrong with single items; `starts` lines begin as an item must.
fn say_of_items(out: &mut Version, text: &str, starts: usize, side: Side) {
    if starts != out.items.len() {
        first_keys(text, &out.items, starts, &mut out.violations, side);
    }
    for placed in &out.items {
        for problem in placed.read.item.as_ref().err().into_iter().flatten() {
            let line = placed.moved(problem.line);
            let (what, fix) = (problem.what.clone(), problem.fix.clone());
            out.violations.push(Violation::new(Kind::Schema, side, line, what, fix));
        }
    }
}

/// The items of a text that need not keep the rules; `None` where it is not a list.
pub(super) fn whole(text: &str, rules: &ChangelogRules) -> Option<Vec<Placed>> {
    let Value::Seq(nodes) = parse(text, &limits()).ok()?.root.value else {
        return None;
    };
    let placed = nodes.into_iter().map(|node| Placed::new(node, (1, 0), false, rules));
    Some(placed.collect())
}

/// The items of a text piece by piece; those that `near` has too are taken from there. `None` where the whole must be read.
pub(super) fn in_pieces(text: &str, near: &History, rules: &ChangelogRules) -> Option<Vec<Placed>> {
    let known = near.version().pieces(near.bytes())?;
    let pieces = pieces(text, Root::Seq, &limits()).filter(|pieces| !pieces.is_empty())?;
    let common = pieces
        .iter()
        .zip(&known)
        .take_while(|(piece, (text, _))| piece.text.as_bytes() == *text);
    let common = common.count();
    let elsewhere: HashMap<&[u8], &Placed> = known[common..].iter().copied().collect();
    let take = |(index, piece): (usize, &Piece<'_>)| {
        let found = match known.get(index).filter(|_| index < common) {
            Some((_, placed)) => Some(*placed),
            None => elsewhere.get(piece.text.as_bytes()).copied(),
        };
        match found.filter(|placed| !placed.read.ends_empty) {
            Some(placed) => Some(placed.at(piece)),
            None => Placed::alone(piece, rules),
        }
    };
    pieces.iter().enumerate().map(take).collect()
}

fn memchr_all(raw: &[u8], byte: u8) -> Vec<usize> {
    if !raw.contains(&byte) {
        return Vec::new();
    }
    raw.iter()
        .enumerate()
        .filter(|(_, b)| **b == byte)
        .map(|(i, _)| i)
        .collect()
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
fn first_keys(text: &str, items: &[Placed], starts: usize, list: &mut Vec<Violation>, side: Side) {
    let lines: Vec<&str> = text.split('\n').collect();
    let mut named = false;
    for placed in items {
        let line = placed.line();
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
            items.len()
        );
        let fix = "begin each item, and nothing else, with `- config-keys:` in the first column";
        list.push(Violation::new(Kind::FirstKey, side, 1, what, fix));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::super::Links;
    use super::*;

    fn rules() -> ChangelogRules {
        ChangelogRules {
            link_prefix: "https://git.example/pull/".into(),
            placeholders: vec!["XXX".into()],
            scenario_types: vec!["fixed".into()],
        }
    }

    fn item(name: &str) -> String {
        format!("- config-keys:\n    - {name}\n  description:\n    - \"made faster\"\n    - again\n  pr-link: XXX\n")
    }

    /// Five items, two of them with the same text, and remarks.
    fn long() -> String {
        let names = ["one", "two", "three", "two", "four"];
        format!("# notes\n\n{}", names.map(item).join("\n# a remark\n\n"))
    }

    /// Everything that a version says.
    fn shown(version: &Version) -> String {
        let items: Vec<_> = version
            .items
            .iter()
            .map(|item| (item.line(), item.item(), item.node().to_json()))
            .collect();
        let items = if version.violations.is_empty() {
            items
        } else {
            Vec::new()
        };
        format!("{items:?} {:?}", version.violations)
    }

    /// Lines taken out, doubled or put in.
    fn edited(text: &str, edits: &[(usize, usize)]) -> String {
        const PUT: &[&str] = &[
            "- config-keys:",
            "- description:",
            "-",
            "    - five",
            "  pr-link: XXX",
            "  pr-link: |",
            "  pr-link: \"\"",
            "  <<: {a: 1}",
            "    - \"open",
            "    - 'shut'",
            "    - &a x",
            "    - *a",
            "---",
            "...",
            "%YAML 1.1",
            "",
            "# more",
            "text",
            "\tx",
            "  evals-only: true",
            "- {config-keys: [a], description: [b], pr-link: XXX}",
            "  config-keys: [x]",
            "    - |+",
        ];
        let mut lines: Vec<&str> = text.lines().collect();
        for (at, what) in edits {
            let at = at % lines.len().max(1);
            match what {
                0 if !lines.is_empty() => drop(lines.remove(at)),
                1 if !lines.is_empty() => lines.insert(at, lines[at]),
                other => lines.insert(at, PUT[other % PUT.len()]),
            }
        }
        format!("{}\n", lines.join("\n"))
    }

    #[test]
    fn items_are_taken_over_wherever_they_stand() {
        let near = History::read(long().as_bytes(), &rules());
        let moved = format!(
            "{}\n{}",
            item("new"),
            long().replace("# notes\n\n", "").replace("three", "six")
        );
        let version = read(moved.as_bytes(), Side::Head, &rules(), Some(&near));
        assert_eq!(
            shown(&version),
            shown(&read(moved.as_bytes(), Side::Head, &rules(), None))
        );
        assert!(version.cut);
        let same = |at: usize, old: usize| version.items[at].is(&near.version().items[old]);
        assert!(same(1, 0) && same(5, 4) && (same(2, 1) || same(2, 3)) && !same(3, 2));
        assert_eq!(version.items[5].line(), version.items[5].item().unwrap().line);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

        /// With the help of another version the same is read as without.
        #[test]
        fn the_help_of_another_version_changes_nothing(
            before in prop::collection::vec((0usize..60, 0usize..23), 0..3),
            after in prop::collection::vec((0usize..60, 0usize..23), 0..4),
            cut in 0usize..40,
        ) {
            let old = edited(&long(), &before);
            let new = edited(&old, &after);
            let new = &new[..new.len() - if cut < 3 { cut } else { 0 }];
            let near = History::read(old.as_bytes(), &rules());
            let (beside, alone) = (read(new.as_bytes(), Side::Head, &rules(), Some(&near)), read(new.as_bytes(), Side::Head, &rules(), None));
            prop_assert_eq!(shown(&beside), shown(&alone), "{} then {}", old, new);
            // And what is asked of the two is answered in the same way, from one reading to the next.
            let younger = near.read_younger(new.as_bytes(), &rules());
            let again = format!("{new}\n{}", item("five"));
            let answers = [&younger, &History::read(new.as_bytes(), &rules())].map(|tip| {
                [&again, &old].map(|head| tip.check(head.as_bytes(), Links::PullRequest(1), &rules()))
            });
            prop_assert_eq!(&answers[0], &answers[1], "{} then {}", old, new);
        }
    }
}
