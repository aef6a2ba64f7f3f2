//! Sweeps that only append points to existing curves (domain guide 4.6): what may change, and which points are new.
//! The base is expanded with the same rules as the head; the repository's tool runs the base revision's own generator.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use countersign_yaml::Node;

use crate::entry::{Entry, Problem};
use crate::expand::{EvalMode, Mode, Scenarios, generate};
use crate::items::{Item, item_problem};
use crate::read::Configs;
use crate::row::{Conc, Row, RowShape, Work};
use crate::rules::{MatrixRules, NodeKind, ScenarioType};

/// Checks that nothing outside the selected entries and scenarios changed; gives the base back for [`delta`].
pub(crate) fn check_scope<'b>(
    file: &Arc<str>,
    items: &[Item],
    resolved: &[(usize, Vec<&Arc<Entry>>)],
    head: &Configs,
    base: Option<&'b Configs>,
) -> Result<&'b Configs, Vec<Problem>> {
    let Some(first) = items.first() else {
        return Err(Vec::new());
    };
    let refuse = |message: String, remedy: &str| item_problem(file, first, "append-only", message, remedy);
    let Some(base) = base else {
        return Err(vec![refuse(
            "the base revision is not known".to_owned(),
            "compare with a base revision",
        )]);
    };
    let unreadable = base.problems();
    if !unreadable.is_empty() {
        return Err(unreadable);
    }
    let mut problems = Vec::new();
    let mut allowed: BTreeMap<&str, Scenarios> = BTreeMap::new();
    for (index, entries) in resolved {
        let wanted = items[*index].scenarios();
        for entry in entries {
            let slot = allowed.entry(&entry.head.key).or_insert(Scenarios {
                fixed: false,
                agentic: false,
            });
            *slot = Scenarios {
                fixed: slot.fixed || wanted.fixed,
                agentic: slot.agentic || wanted.agentic,
            };
        }
    }
    let both = head.masters.entries.iter().chain(&base.masters.entries);
    let keys: BTreeSet<&str> = both.map(|entry| &*entry.head.key).collect();
    for key in keys {
        let (old, new) = (base.masters.get(key), head.masters.get(key));
        let Some(scenarios) = allowed.get(key) else {
            let same = match (old, new) {
                (Some(old), Some(new)) => old.raw.same_value(&new.raw),
                _ => false,
            };
            if !same {
                problems.push(refuse(
                    format!("the entry `{key}` changed and is not selected"),
                    "undo the change, or make it in another pull request",
                ));
            }
            continue;
        };
        match (old, new) {
            (Some(old), Some(new)) => {
                problems.extend(
                    scope_of_entry(old, new, *scenarios)
                        .into_iter()
                        .map(|message| refuse(format!("`{key}`: {message}"), "undo that change")),
                );
            }
            _ => problems.push(refuse(
                format!("the entry `{key}` is not in the base revision"),
                "append-only items can name only entries that exist already",
            )),
        }
    }
    if problems.is_empty() { Ok(base) } else { Err(problems) }
}

fn scope_of_entry(old: &Entry, new: &Entry, allowed: Scenarios) -> Vec<String> {
    let mut messages = Vec::new();
    let scenario =
        |entry: &Entry, which: ScenarioType| entry.raw.get("scenarios").and_then(|s| s.get(which.name())).cloned();
    let types = [ScenarioType::Fixed, ScenarioType::Agentic];
    for which in types {
        match (scenario(old, which), scenario(new, which)) {
            (Some(before), Some(after)) => {
                if !allowed.has(which) && !before.same_value(&after) {
                    messages.push(format!("the scenario `{}` changed and is not selected", which.name()));
                }
            }
            (None, None) => {}
            _ => messages.push(format!("the scenario `{}` was added or removed", which.name())),
        }
    }
    let unselected = types
        .iter()
        .any(|which| scenario(old, *which).is_some() && !allowed.has(*which));
    if unselected && !same_outside_scenarios(&old.raw, &new.raw) {
        messages.push("a field of the whole entry changed, and one of its scenarios is not selected".to_owned());
    }
    messages
}

fn same_outside_scenarios(old: &Node, new: &Node) -> bool {
    let fields = |node: &Node| -> BTreeMap<String, Node> {
        let map = node.as_map().map(|map| map.entries.as_slice()).unwrap_or_default();
        map.iter()
            .filter(|entry| entry.key.as_str() != Some("scenarios"))
            .map(|entry| (entry.key.scalar_text(), entry.value.clone()))
            .collect()
    };
    let (old, new) = (fields(old), fields(new));
    old.len() == new.len()
        && old
            .iter()
            .all(|(key, value)| new.get(key).is_some_and(|other| other.same_value(value)))
}

/// The rows with only their new points; every existing point must still be there, unchanged.
pub(crate) fn delta(
    file: &Arc<str>,
    item: &Item,
    base: &Configs,
    rules: &MatrixRules,
    group: &[&Arc<Entry>],
    scenarios: Scenarios,
    head_rows: Vec<Row>,
) -> Result<Vec<Row>, Vec<Problem>> {
    let refuse = |message: String, remedy: &str| Err(vec![item_problem(file, item, "append-only", message, remedy)]);
    let old_entries: Vec<&Arc<Entry>> = group
        .iter()
        .filter_map(|entry| base.masters.get(&entry.head.key))
        .collect();
    let base_rows = generate(
        base,
        rules,
        &old_entries,
        Mode::TestConfig,
        scenarios,
        EvalMode::Unmarked,
    )?;
    if base_rows.is_empty() {
        return refuse(
            "there is no curve in the base revision to append to".to_owned(),
            "select an entry that has one",
        );
    }
    let points = |rows: &[Row]| {
        let mut curves: HashMap<String, BTreeSet<i64>> = HashMap::new();
        for row in rows {
            curves.entry(row.curve_key()).or_default().extend(row.conc.values());
        }
        curves
    };
    let (old, new) = (points(&base_rows), points(&head_rows));
    for row in &base_rows {
        let key = row.curve_key();
        let Some(now) = new.get(&key) else {
            return refuse(
                format!(
                    "a recipe of `{}` was removed or changed: {}",
                    row.head.key, row.exp_name
                ),
                "leave every existing row as it is, apart from added concurrencies",
            );
        };
        let gone: Vec<String> = old
            .get(&key)
            .into_iter()
            .flatten()
            .filter(|conc| !now.contains(conc))
            .map(i64::to_string)
            .collect();
        if !gone.is_empty() {
            return refuse(
                format!(
                    "existing concurrencies of `{}` were removed: {}",
                    row.head.key,
                    gone.join(", ")
                ),
                "put them back",
            );
        }
    }
    let mut emitted: HashSet<(String, i64)> = HashSet::new();
    let mut delta = Vec::new();
    for mut row in head_rows {
        let key = row.curve_key();
        let before = old.get(&key);
        let fresh: Vec<i64> = row
            .conc
            .values()
            .iter()
            .copied()
            .filter(|conc| before.is_none_or(|before| !before.contains(conc)))
            .filter(|conc| emitted.insert((key.clone(), *conc)))
            .collect();
        if fresh.is_empty() {
            continue;
        }
        if row.nodes() == NodeKind::Multi {
            row.conc = Conc::Many(fresh);
        }
        delta.push(row);
    }
    if delta.is_empty() {
        return refuse(
            "no point is added".to_owned(),
            "add a concurrency or a row, or remove `append-only`",
        );
    }
    let mut images: HashMap<Vec<String>, BTreeSet<&str>> = HashMap::new();
    for row in &base_rows {
        images
            .entry(visual_series(row, rules))
            .or_default()
            .insert(&row.head.image);
    }
    for row in &delta {
        let before = images.get(&visual_series(row, rules));
        if before.is_none_or(|before| before.len() != 1 || !before.contains(&*row.head.image)) {
            return refuse(
                format!(
                    "a new point of `{}` does not lie on a shown curve with the same single image",
                    row.head.key
                ),
                "keep the image, and append only to curves that are shown already",
            );
        }
    }
    Ok(delta)
}

/// What the application shows as one curve (domain guide 4.6).
fn visual_series(row: &Row, rules: &MatrixRules) -> Vec<String> {
    let head = &row.head;
    let mut key: Vec<String> = [
        &head.model,
        &head.model_prefix,
        &head.precision,
        &head.framework,
        &head.runner,
    ]
    .into_iter()
    .map(|text| text.to_string())
    .collect();
    key.push(row.disagg().unwrap_or(false).to_string());
    match &row.work {
        Work::Fixed { isl, osl, .. } => key.extend([
            "fixed".to_owned(),
            isl.to_string(),
            osl.to_string(),
            "off".to_owned(),
            row.spec_decoding.to_string(),
        ]),
        Work::Agentic { kv_offloading, .. } => {
            let off = **kv_offloading == *rules.kv_offloading.none;
            key.extend(["agentic".to_owned(), if off { "off" } else { "on" }.to_owned()]);
        }
    }
    let hardware = match &row.shape {
        RowShape::Multi { prefill, decode } => [prefill.hardware(), decode.hardware()],
        RowShape::Single(_) => [None, None],
    };
    key.extend(hardware.map(|hardware| hardware.unwrap_or_default().to_owned()));
    key
}
