//! Which rows are evaluated (domain guide 4.3). The order of rows decides ties, as in the generator.

use std::collections::HashMap;

use crate::row::{Conc, Row, RowShape};
use crate::rules::{MatrixRules, NodeKind, ScenarioType};

/// Marks the rows that the usual policy evaluates; sets `run-eval` on every row.
pub(crate) fn mark(mut rows: Vec<Row>, rules: &MatrixRules, include_agentic: bool) -> Vec<Row> {
    let mut chosen = vec![false; rows.len()];
    let mut chosen_conc: HashMap<usize, i64> = HashMap::new();
    single_node_fixed(&rows, rules, &mut chosen);
    highest_of_topology(&rows, rules, ScenarioType::Fixed, &mut chosen, &mut chosen_conc);
    if include_agentic && rules.eval.agentic_single_node {
        single_node_agentic(&rows, &mut chosen);
    }
    if include_agentic && rules.eval.agentic_multi_node {
        highest_of_topology(&rows, rules, ScenarioType::Agentic, &mut chosen, &mut chosen_conc);
    }
    for (index, row) in rows.iter_mut().enumerate() {
        row.run_eval = Some(chosen[index]);
        if let Some(conc) = chosen_conc.get(&index) {
            row.eval_conc = Some(*conc);
        }
    }
    rows
}

/// Keeps the marked rows and makes them evaluation-only.
pub(crate) fn only(rows: Vec<Row>) -> Vec<Row> {
    rows.into_iter()
        .filter(|row| row.run_eval == Some(true))
        .map(|row| Row {
            eval_only: Some(true),
            ..row
        })
        .collect()
}

fn at_eval_lengths(row: &Row, rules: &MatrixRules) -> bool {
    let target = rules
        .sequences
        .get(&rules.eval.sequence)
        .map(|sequence| (sequence.isl, sequence.osl));
    row.lengths().is_some() && row.lengths() == target
}

fn highest_eligible(row: &Row, rules: &MatrixRules) -> Option<i64> {
    row.conc
        .values()
        .iter()
        .copied()
        .filter(|conc| *conc >= rules.eval.min_concurrency)
        .max()
}

/// Fixed lengths on one machine: all parallelisms at the highest and at the upper-median concurrency of their group.
fn single_node_fixed(rows: &[Row], rules: &MatrixRules, chosen: &mut [bool]) {
    type Key<'r> = (&'r str, &'r str, &'r str, &'r str, &'r str, bool);
    let mut groups: HashMap<Key<'_>, Vec<(usize, i64)>> = HashMap::new();
    for (index, row) in rows.iter().enumerate() {
        let (RowShape::Single(shape), Some(conc)) = (&row.shape, highest_eligible(row, rules)) else {
            continue;
        };
        if at_eval_lengths(row, rules) {
            let head = &row.head;
            let key: Key<'_> = (
                &head.model,
                &head.runner,
                &head.framework,
                &head.precision,
                &row.spec_decoding,
                shape.dp_attention,
            );
            groups.entry(key).or_default().push((index, conc));
        }
    }
    for group in groups.into_values() {
        let mut concs: Vec<i64> = group.iter().map(|(_, conc)| *conc).collect();
        concs.sort_unstable();
        concs.dedup();
        let (Some(highest), Some(median)) = (concs.last(), concs.get(concs.len() / 2)) else {
            continue;
        };
        for (index, conc) in &group {
            chosen[*index] |= conc == highest || conc == median;
        }
    }
}

/// Several machines: each topology once, at its highest concurrency that is high enough.
fn highest_of_topology(
    rows: &[Row],
    rules: &MatrixRules,
    scenario: ScenarioType,
    chosen: &mut [bool],
    chosen_conc: &mut HashMap<usize, i64>,
) {
    let mut best: HashMap<String, (usize, i64)> = HashMap::new();
    for (index, row) in rows.iter().enumerate() {
        let fits = row.nodes() == NodeKind::Multi
            && row.scenario() == scenario
            && (scenario == ScenarioType::Agentic || at_eval_lengths(row, rules));
        let Some(conc) = highest_eligible(row, rules).filter(|_| fits) else {
            continue;
        };
        let slot = best.entry(row.topology_key()).or_insert((index, conc));
        if conc > slot.1 {
            *slot = (index, conc);
        }
    }
    for (index, conc) in best.into_values() {
        chosen[index] = true;
        chosen_conc.insert(index, conc);
    }
}

/// Trace replay on one machine: one row per model, runner, framework and precision, at the highest concurrency.
fn single_node_agentic(rows: &[Row], chosen: &mut [bool]) {
    let mut best: HashMap<(&str, &str, &str, &str), (usize, i64)> = HashMap::new();
    for (index, row) in rows.iter().enumerate() {
        if row.scenario() != ScenarioType::Agentic || row.nodes() != NodeKind::Single {
            continue;
        }
        let Some(conc) = row.conc.values().iter().copied().max() else {
            continue;
        };
        let head = &row.head;
        let slot = best
            .entry((&head.model, &head.runner, &head.framework, &head.precision))
            .or_insert((index, conc));
        if conc > slot.1 {
            *slot = (index, conc);
        }
    }
    for (index, _) in best.into_values() {
        chosen[index] = true;
    }
}

/// Extends the selection to every row that can be evaluated. Multi-node rows of one topology become one row.
pub(crate) fn mark_all(rows: Vec<Row>, rules: &MatrixRules) -> Vec<Row> {
    let mut out: Vec<Row> = Vec::with_capacity(rows.len());
    let mut merged: HashMap<String, usize> = HashMap::new();
    for mut row in rows {
        let agentic = row.scenario() == ScenarioType::Agentic;
        match row.nodes() {
            NodeKind::Single => {
                let evaluated = if agentic {
                    rules.eval.agentic_single_node
                } else {
                    at_eval_lengths(&row, rules)
                };
                if evaluated {
                    row.run_eval = Some(true);
                }
                out.push(row);
            }
            NodeKind::Multi => {
                let evaluated = if agentic {
                    rules.eval.agentic_multi_node
                } else {
                    at_eval_lengths(&row, rules)
                };
                if !evaluated {
                    out.push(row);
                    continue;
                }
                // Fixed and agentic rows can never have the same key: their fields differ.
                let key = row.topology_key();
                if let Some(existing) = merged.get(&key).and_then(|index| out.get_mut(*index)) {
                    let all = existing
                        .conc
                        .values()
                        .iter()
                        .chain(row.conc.values())
                        .copied()
                        .collect();
                    existing.conc = sorted(all);
                    if agentic {
                        existing.eval_conc = existing.conc.values().last().copied();
                    }
                    continue;
                }
                row.conc = sorted(row.conc.values().to_vec());
                row.run_eval = Some(true);
                if agentic {
                    row.eval_conc = row.conc.values().last().copied();
                } else {
                    row.eval_all_concs = Some(true);
                    row.eval_conc = None;
                }
                merged.insert(key, out.len());
                out.push(row);
            }
        }
    }
    out
}

fn sorted(mut values: Vec<i64>) -> Conc {
    values.sort_unstable();
    values.dedup();
    Conc::Many(values)
}
