//! What a changelog selects: the jobs that a pull request's sweep runs (domain guide 4.1, 4.5), in the order and with the
//! de-duplication of the repository's tool.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::Serialize;

use crate::append_only;
use crate::entry::{Entry, Problem};
use crate::expand::{EvalMode, Mode, Scenarios, generate};
use crate::items::{Item, item_problem};
use crate::read::{Configs, Masters};
use crate::row::{Conc, Row, RowShape};
use crate::rules::{MatrixRules, NodeKind};

/// What labels and workflow inputs ask for beside the changelog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SelectOptions {
    /// Each curve is trimmed to its lowest concurrency.
    pub trim: bool,
    /// Every item's evaluations are extended to all rows.
    pub all_evals: bool,
    /// No throughput.
    pub evals_only: bool,
}

/// What is run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    /// Throughput rows, each with its recipe fingerprint.
    pub throughput: Vec<Row>,
    /// Evaluation rows.
    pub evals: Vec<Row>,
    /// Which entries each item selected, in the order of the items.
    pub entries: Vec<SelectedEntry>,
    /// Whether the sweep only appends points to existing curves.
    pub append_only: bool,
}

impl Selection {
    /// All rows: throughput, then evaluations.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.throughput.iter().chain(&self.evals)
    }
}

/// An entry that an item selects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SelectedEntry {
    /// The entry's key.
    pub key: Arc<str>,
    /// The index of the item among the added ones.
    pub item: usize,
    /// The line of the item in the changelog.
    pub line: u32,
}

/// A bound on the work for hostile items, not a rule of any repository.
const MOST_PATTERNS: usize = 2_000;

/// The keys that an item's patterns select, in order and without repetition; only `*` is a wildcard.
///
/// # Errors
/// The patterns and keys that select nothing.
pub fn resolve_keys(patterns: &[String], masters: &Masters) -> Result<Vec<Arc<str>>, Vec<String>> {
    let mut keys: Vec<Arc<str>> = Vec::new();
    let mut missing = Vec::new();
    for pattern in patterns {
        if !pattern.contains('*') {
            match masters.get(pattern) {
                Some(entry) if keys.contains(&entry.head.key) => {}
                Some(entry) => keys.push(entry.head.key.clone()),
                None => missing.push(pattern.clone()),
            }
            continue;
        }
        let before = keys.len();
        let mut found = false;
        for entry in &masters.entries {
            let key = &entry.head.key;
            if wildcard(pattern, key) {
                found = true;
                if !keys[..before].contains(key) {
                    keys.push(key.clone());
                }
            }
        }
        if !found {
            missing.push(pattern.clone());
        }
    }
    if missing.is_empty() { Ok(keys) } else { Err(missing) }
}

/// Whether a pattern matches a whole text; `*` stands for anything but a line break. Never backtracks further than to
/// the last `*`.
pub(crate) fn wildcard(pattern: &str, text: &str) -> bool {
    if !pattern.contains('*') {
        return pattern == text;
    }
    if text.contains('\n') {
        return false;
    }
    let mut pieces = pattern.split('*');
    let (first, last) = (
        pieces.next().unwrap_or_default(),
        pattern.rsplit('*').next().unwrap_or_default(),
    );
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let middle: Vec<&str> = pieces.collect();
    for piece in &middle[..middle.len().saturating_sub(1)] {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.len() >= last.len() && rest.ends_with(last)
}

/// What the added items select.
///
/// `base` is needed only for items that append to existing curves.
///
/// # Errors
/// Everything for which the repository's tool refuses to start a sweep.
pub fn select(
    changelog: &str,
    items: &[Item],
    head: &Configs,
    base: Option<&Configs>,
    rules: &MatrixRules,
    options: SelectOptions,
) -> Result<Selection, Vec<Problem>> {
    let file: Arc<str> = Arc::from(changelog);
    let append_only = items.iter().any(|item| item.append_only);
    let mut problems = Vec::new();
    if append_only {
        for item in items.iter().filter(|item| !item.append_only) {
            problems.push(item_problem(
                &file,
                item,
                "append-only",
                "items that only append cannot share a sweep with others",
                "put the two kinds into separate pull requests",
            ));
        }
        if let (true, Some(item)) = (options.all_evals || options.evals_only, items.first()) {
            problems.push(item_problem(
                &file,
                item,
                "append-only",
                "an append-only sweep has no evaluations to extend or to run alone",
                "remove the labels that ask for them",
            ));
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let unreadable = head.problems();
    if !unreadable.is_empty() {
        return Err(unreadable);
    }
    let patterns: usize = items.iter().map(|item| item.config_keys.len()).sum();
    if let (true, Some(item)) = (patterns > MOST_PATTERNS, items.first()) {
        let message = format!("{patterns} config keys are named, more than the {MOST_PATTERNS} that are read");
        return Err(vec![item_problem(
            &file,
            item,
            "config-keys",
            message,
            "name fewer, or use a wildcard",
        )]);
    }
    let mut resolved: Vec<(usize, Vec<&Arc<Entry>>)> = Vec::new();
    let mut entries = Vec::new();
    for (index, item) in items.iter().enumerate() {
        match resolve_keys(&item.config_keys, &head.masters) {
            Ok(keys) => {
                entries.extend(keys.iter().map(|key| SelectedEntry {
                    key: key.clone(),
                    item: index,
                    line: item.line,
                }));
                resolved.push((index, keys.iter().filter_map(|key| head.masters.get(key)).collect()));
            }
            Err(missing) => problems.extend(missing.into_iter().map(|key| {
                item_problem(
                    &file,
                    item,
                    "config-keys",
                    format!("`{key}` matches no entry of the master configs"),
                    "correct the key, or add the entry",
                )
            })),
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let base = if append_only {
        Some(append_only::check_scope(&file, items, &resolved, head, base)?)
    } else {
        None
    };
    // Items that ask for all evaluations come first, so that their broader choice holds for an entry named twice.
    resolved.sort_by_key(|(index, _)| !items[*index].all_evals);
    let mut selection = Selection {
        entries,
        append_only,
        ..Selection::default()
    };
    let mut seen = Seen::default();
    for (index, configs) in &resolved {
        let item = &items[*index];
        if !(options.evals_only || item.evals_only || item.all_evals) {
            for (scenarios, group) in seen.throughput(configs, item.scenarios()) {
                let rows = generate(head, rules, &group, Mode::TestConfig, scenarios, EvalMode::Unmarked)?;
                selection.throughput.extend(match base {
                    Some(base) => append_only::delta(&file, item, base, rules, &group, scenarios, rows)?,
                    None => rows,
                });
            }
        }
        if item.append_only {
            continue;
        }
        let mode = if options.all_evals || item.all_evals {
            EvalMode::AllEvals
        } else {
            EvalMode::EvalsOnly
        };
        for (scenarios, group) in seen.evals(configs, item.scenarios()) {
            let rows = generate(head, rules, &group, Mode::TestConfig, scenarios, mode)?;
            selection
                .evals
                .extend(rows.into_iter().filter(|row| at_least(row, item.eval_min_prefill_ep)));
        }
    }
    if options.trim {
        selection.throughput = trim(selection.throughput);
    }
    for row in &mut selection.throughput {
        row.recipe_fingerprint = Some(row.fingerprint());
    }
    Ok(selection)
}

fn at_least(row: &Row, min_prefill_ep: Option<i64>) -> bool {
    match (&row.shape, min_prefill_ep) {
        (RowShape::Multi { prefill, .. }, Some(least)) => prefill.ep >= least,
        _ => true,
    }
}

/// Which scenarios of which entries earlier items have covered.
#[derive(Default)]
struct Seen {
    throughput: BTreeMap<Arc<str>, Scenarios>,
    evals: BTreeMap<Arc<str>, Scenarios>,
}

type Groups<'e> = Vec<(Scenarios, Vec<&'e Arc<Entry>>)>;

impl Seen {
    fn throughput<'e>(&mut self, entries: &[&'e Arc<Entry>], wanted: Scenarios) -> Groups<'e> {
        groups(&mut self.throughput, entries, wanted)
    }

    fn evals<'e>(&mut self, entries: &[&'e Arc<Entry>], wanted: Scenarios) -> Groups<'e> {
        groups(&mut self.evals, entries, wanted)
    }
}

/// Entries by the scenarios that are still to do for them; groups in the order in which they first occur.
fn groups<'e>(seen: &mut BTreeMap<Arc<str>, Scenarios>, entries: &[&'e Arc<Entry>], wanted: Scenarios) -> Groups<'e> {
    let mut groups: Groups<'e> = Vec::new();
    for entry in entries {
        let none = Scenarios {
            fixed: false,
            agentic: false,
        };
        let done = seen.entry(entry.head.key.clone()).or_insert(none);
        let open = Scenarios {
            fixed: wanted.fixed && !done.fixed,
            agentic: wanted.agentic && !done.agentic,
        };
        if open.is_empty() {
            continue;
        }
        *done = Scenarios {
            fixed: done.fixed || open.fixed,
            agentic: done.agentic || open.agentic,
        };
        match groups.iter_mut().find(|(scenarios, _)| *scenarios == open) {
            Some((_, group)) => group.push(entry),
            None => groups.push((open, vec![entry])),
        }
    }
    groups
}

/// Leaves the lowest concurrency of each curve (domain guide 4.2).
fn trim(rows: Vec<Row>) -> Vec<Row> {
    let mut lowest: HashMap<String, (usize, i64)> = HashMap::new();
    for (index, row) in rows.iter().enumerate() {
        if let (NodeKind::Single, Conc::One(conc)) = (row.nodes(), &row.conc) {
            let slot = lowest.entry(row.curve_key()).or_insert((index, *conc));
            if *conc < slot.1 {
                *slot = (index, *conc);
            }
        }
    }
    let mut out = Vec::with_capacity(rows.len());
    for (index, mut row) in rows.into_iter().enumerate() {
        match row.nodes() {
            NodeKind::Single => {
                if lowest.get(&row.curve_key()).is_some_and(|(kept, _)| *kept == index) {
                    out.push(row);
                }
            }
            NodeKind::Multi => {
                if row.conc.values().len() > 1
                    && let Some(least) = row.conc.values().iter().min()
                {
                    row.conc = Conc::Many(vec![*least]);
                }
                out.push(row);
            }
        }
    }
    out
}
