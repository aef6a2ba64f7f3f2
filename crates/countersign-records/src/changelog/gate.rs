//! The CI gate: the rules that turn a pull request red (domain guide 7.2 A), but for the generated matrix, which
//! another crate expands.

use std::collections::BTreeSet;

use countersign_yaml::{Limits, Value, parse};

use super::textdiff::python_blank;
use super::{ChangelogRules, Item, Kind, Side, TextChange, Violation, added_lines, shown};

/// Modifiers that the sweep was asked to run with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GateModes {
    /// Every eval row.
    pub all_evals: bool,
    /// Evals only.
    pub evals_only: bool,
}

/// The answer of the gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    /// Everything that is wrong; empty when the gate passes.
    pub violations: Vec<Violation>,
    /// The added items, where they could be read. Lines are those of the head.
    pub items: Vec<Item>,
    /// The config keys that each item selects, in order, without repetition.
    pub selected: Vec<Vec<String>>,
    /// The textual change.
    pub change: TextChange,
}

/// Judges a change of the changelog as the CI gate does. `known` are the keys of the active configs at the head.
#[must_use]
pub fn gate(base: &[u8], head: &[u8], known: &BTreeSet<String>, modes: GateModes, rules: &ChangelogRules) -> Gate {
    let mut out = Gate {
        violations: Vec::new(),
        items: Vec::new(),
        selected: Vec::new(),
        change: TextChange::default(),
    };
    let last_line = super::line_at(head, head.len().saturating_sub(1));
    let mut say = |kind, side, line, what: String, fix: &str| {
        out.violations.push(Violation::new(kind, side, line, what, fix));
    };
    if head.len().max(base.len()) > super::MAX_BYTES {
        say(
            Kind::TooLarge,
            Side::Head,
            1,
            "the changelog is larger than is read".into(),
            "make it smaller",
        );
        return out;
    }
    if !head.ends_with(b"\n") {
        let what = "the file does not end with a newline".into();
        say(
            Kind::NoFinalNewline,
            Side::Head,
            last_line,
            what,
            "end the last line with a newline",
        );
    }
    let change = added_lines(base, head);
    if change.too_long {
        let what = format!("the changelog has more than {} lines", super::textdiff::MAX_LINES);
        say(Kind::TooLarge, Side::Head, 1, what, "make it smaller");
        return out;
    }
    if let Some(line) = change.not_utf8 {
        say(
            Kind::NotUtf8,
            Side::Head,
            line,
            "bytes that are not UTF-8".into(),
            "save the file as UTF-8",
        );
    }
    for (line, text) in &change.deleted {
        let what = format!("the line {} is deleted", shown(text));
        let fix = "restore the history from the target branch (merge it into yours if it has moved on) and append only";
        say(Kind::DeletedLine, Side::Base, *line, what, fix);
    }
    if change.not_utf8.is_none() && change.deleted.is_empty() {
        if python_blank(&change.added) {
            let fix = "append an item that names the config keys to benchmark";
            say(
                Kind::NothingAdded,
                Side::Head,
                last_line,
                "no line with content is added".into(),
                fix,
            );
        } else {
            let (items, violations) = read_added(&change, rules);
            out.items = items;
            out.violations.extend(violations);
        }
    }
    select(&mut out, known, modes);
    out.change = change;
    out
}

fn read_added(change: &TextChange, rules: &ChangelogRules) -> (Vec<Item>, Vec<Violation>) {
    // Lines of the added text are reported as lines of the head.
    let at = |line: usize| change.added_at.get(line.saturating_sub(1)).copied().unwrap_or(line);
    let limits = Limits {
        max_bytes: super::MAX_BYTES,
        ..Limits::default()
    };
    let document = match parse(&change.added, &limits) {
        Ok(document) => document,
        Err(error) => {
            let what = format!("the added lines are not YAML: {}", error.message);
            return (
                Vec::new(),
                vec![Violation::new(
                    Kind::Yaml,
                    Side::Head,
                    at(error.line as usize),
                    what,
                    error.remedy,
                )],
            );
        }
    };
    let list = match &document.root.value {
        Value::Seq(list) if !list.is_empty() => list,
        Value::Null => {
            let what = "only comments are added";
            let fix = "append an item that names the config keys to benchmark";
            return (
                Vec::new(),
                vec![Violation::new(Kind::NothingAdded, Side::Head, at(1), what, fix)],
            );
        }
        _ => {
            let what = format!("the added lines are {}, not a list of items", document.root.type_name());
            let fix = "begin each item with `- config-keys:` in the first column";
            return (
                Vec::new(),
                vec![Violation::new(Kind::NotAList, Side::Head, at(1), what, fix)],
            );
        }
    };
    let (mut items, mut violations) = (Vec::new(), Vec::new());
    for node in list {
        match Item::read(node, rules) {
            Ok(mut item) => {
                item.line = at(item.line);
                item.link_line = at(item.link_line);
                items.push(item);
            }
            Err(problems) => violations.extend(
                problems
                    .into_iter()
                    .map(|p| Violation::new(Kind::Schema, Side::Head, at(p.line), p.what, p.fix)),
            ),
        }
    }
    (items, violations)
}

fn select(out: &mut Gate, known: &BTreeSet<String>, modes: GateModes) {
    if let Some(first) = out.items.iter().find(|i| i.append_only) {
        let line = first.line;
        if let Some(other) = out.items.iter().find(|i| !i.append_only) {
            let what = "an append-only item stands beside one that is not";
            let fix = "put them into separate pull requests";
            out.violations
                .push(Violation::new(Kind::AppendOnly, Side::Head, other.line, what, fix));
        }
        if modes.all_evals || modes.evals_only {
            let what = "an append-only item cannot run with a modifier for evals";
            let fix = "remove the label that asks for evals";
            out.violations
                .push(Violation::new(Kind::AppendOnly, Side::Head, line, what, fix));
        }
    }
    for item in &out.items {
        let (keys, missing) = resolve_keys(&item.config_keys, known);
        for key in missing {
            let what = if key.contains('*') {
                format!("no config key matches the pattern {}", shown(&key))
            } else {
                format!("no active config has the key {}", shown(&key))
            };
            let fix = "name a key of the active configs, spelled as there";
            out.violations
                .push(Violation::new(Kind::UnknownKey, Side::Head, item.line, what, fix));
        }
        out.selected.push(keys);
    }
}

/// The known keys that the written ones select, without repetition, and the written ones that select nothing. Only `*`
/// is a wildcard. Patterns give their matches in the order of `known`.
#[must_use]
pub fn resolve_keys(written: &[String], known: &BTreeSet<String>) -> (Vec<String>, Vec<String>) {
    let (mut keys, mut seen, mut missing) = (Vec::new(), BTreeSet::new(), Vec::new());
    for key in written {
        let matched: Vec<&String> = if key.contains('*') {
            known.iter().filter(|k| glob(key.as_bytes(), k.as_bytes())).collect()
        } else {
            known.get(key).into_iter().collect()
        };
        if matched.is_empty() {
            missing.push(key.clone());
        }
        for found in matched {
            if seen.insert(found.clone()) {
                keys.push(found.clone());
            }
        }
    }
    (keys, missing)
}

/// Whether `text` matches a pattern in which `*` stands for any run of characters but a newline. Time is the product
/// of the lengths at most.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        if p < pattern.len() && pattern[p] == b'*' {
            retry = Some((p + 1, t));
            p += 1;
        } else if p < pattern.len() && pattern[p] == text[t] {
            p += 1;
            t += 1;
        } else if let Some((after, from)) = retry.filter(|(_, from)| text[*from] != b'\n') {
            retry = Some((after, from + 1));
            p = after;
            t = from + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|b| *b == b'*')
}
