//! From configs to rows, as the repository's generator expands them (domain guide 4.2).

use std::sync::Arc;

use crate::entry::{AgenticBlock, ConcList, Entry, FixedBlock, Problem, SearchRow, Shape, Worker};
use crate::evals;
use crate::memory;
use crate::read::Configs;
use crate::row::{Conc, Row, RowShape, Work};
use crate::rules::{MatrixRules, ScenarioType, fill};

/// Which rows to generate, as the generator's two modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Everything in the master configs.
    FullSweep,
    /// Named entries, as for a changelog. Differs from the full sweep only where a fixed-length row writes an empty
    /// `conc-list` beside a range: here the empty list counts.
    TestConfig,
}

/// What to do about evaluation, as the generator's options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvalMode {
    /// Rows as they are expanded, nothing marked.
    Unmarked,
    /// Throughput rows, with those marked that would also be evaluated.
    Marked,
    /// Only the evaluation rows.
    EvalsOnly,
    /// Only evaluation rows, for every row that can be evaluated.
    AllEvals,
}

/// A set of scenario types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scenarios {
    /// Fixed lengths.
    pub fixed: bool,
    /// Trace replay.
    pub agentic: bool,
}

impl Scenarios {
    /// Both types.
    pub const ALL: Scenarios = Scenarios {
        fixed: true,
        agentic: true,
    };

    /// Whether the set has this type.
    #[must_use]
    pub fn has(self, scenario: ScenarioType) -> bool {
        match scenario {
            ScenarioType::Fixed => self.fixed,
            ScenarioType::Agentic => self.agentic,
        }
    }

    /// Whether the set has no type.
    #[must_use]
    pub fn is_empty(self) -> bool {
        !self.fixed && !self.agentic
    }
}

/// Everything in the master configs.
///
/// # Errors
/// Every problem for which the generator refuses the revision.
pub fn full_sweep(configs: &Configs, rules: &MatrixRules, evals: EvalMode) -> Result<Vec<Row>, Vec<Problem>> {
    let entries: Vec<&Arc<Entry>> = configs.masters.entries.iter().collect();
    generate(configs, rules, &entries, Mode::FullSweep, Scenarios::ALL, evals)
}

/// The rows of some entries.
///
/// # Errors
/// Every problem for which the generator refuses the revision, or one of these entries.
pub fn generate(
    configs: &Configs,
    rules: &MatrixRules,
    entries: &[&Arc<Entry>],
    mode: Mode,
    scenarios: Scenarios,
    evals: EvalMode,
) -> Result<Vec<Row>, Vec<Problem>> {
    let problems = configs.problems();
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut expansion = Expansion {
        configs,
        rules,
        mode,
        rows: Vec::new(),
        problems: Vec::new(),
    };
    for entry in entries {
        expansion.entry(entry, scenarios);
        if expansion.rows.len() > rules.max_rows {
            expansion.problems.push(problem(
                entry,
                None,
                "",
                format!("more than {} rows are generated up to this entry", rules.max_rows),
                "reduce the search spaces",
            ));
            break;
        }
    }
    if !expansion.problems.is_empty() {
        return Err(expansion.problems);
    }
    let rows = expansion.rows;
    Ok(match evals {
        EvalMode::Unmarked => rows,
        EvalMode::Marked => evals::mark(rows, rules, false),
        EvalMode::EvalsOnly => evals::only(evals::mark(rows, rules, true)),
        EvalMode::AllEvals => evals::only(evals::mark_all(evals::mark(rows, rules, true), rules)),
    })
}

/// The rows of one entry, whatever is wrong elsewhere; unmarked.
///
/// # Errors
/// Every problem of this entry's expansion.
pub fn entry_rows(configs: &Configs, rules: &MatrixRules, entry: &Arc<Entry>) -> Result<Vec<Row>, Vec<Problem>> {
    let mut expansion = Expansion {
        configs,
        rules,
        mode: Mode::TestConfig,
        rows: Vec::new(),
        problems: Vec::new(),
    };
    expansion.entry(entry, Scenarios::ALL);
    if expansion.problems.is_empty() {
        Ok(expansion.rows)
    } else {
        Err(expansion.problems)
    }
}

fn problem(
    entry: &Entry,
    row: Option<&SearchRow>,
    path: &str,
    message: impl Into<String>,
    remedy: impl Into<String>,
) -> Problem {
    let span = row.map_or(entry.head.span, |row| row.span);
    Problem {
        file: entry.head.file.clone(),
        line: span.line,
        column: span.column,
        entry: Some(entry.head.key.clone()),
        path: path.to_owned(),
        message: message.into(),
        remedy: remedy.into(),
    }
}

struct Expansion<'c> {
    configs: &'c Configs,
    rules: &'c MatrixRules,
    mode: Mode,
    rows: Vec<Row>,
    problems: Vec<Problem>,
}

impl Expansion<'_> {
    fn entry(&mut self, entry: &Arc<Entry>, scenarios: Scenarios) {
        if scenarios.fixed {
            for block in &entry.fixed {
                self.fixed(entry, block);
            }
        }
        if scenarios.agentic {
            for block in &entry.agentic {
                for row in &block.rows {
                    self.agentic(entry, block, row);
                }
            }
        }
    }

    fn fixed(&mut self, entry: &Arc<Entry>, block: &FixedBlock) {
        let (isl, osl) = (block.isl, block.osl);
        let sequence = match self.rules.sequence_name(isl, osl) {
            Some(name) => name.to_owned(),
            None => fill(
                &self.rules.exp_name.unnamed_sequence,
                &[("isl", &isl.to_string()), ("osl", &osl.to_string())],
            ),
        };
        let names = [("prefix", &*entry.head.model_prefix), ("sequence", sequence.as_str())];
        let exp_name = fill(&self.rules.exp_name.fixed, &names);
        let length = isl
            .checked_add(osl)
            .and_then(|sum| sum.checked_add(self.rules.context_margin));
        for search in &block.rows {
            let Some(max_model_len) = length else {
                self.problems.push(problem(
                    entry,
                    Some(search),
                    "isl",
                    "the lengths are too large",
                    "correct them",
                ));
                return;
            };
            let Some(conc) = self.fixed_concurrencies(entry, search) else {
                continue;
            };
            let row = |conc: Conc, shape: RowShape| Row {
                head: entry.head.clone(),
                place: search.span,
                work: Work::Fixed {
                    isl,
                    osl,
                    max_model_len,
                },
                shape,
                spec_decoding: search.spec_decoding.clone(),
                conc,
                exp_name: exp_name.clone(),
                router: search.router.or(entry.router.as_ref()),
                kv_p2p_transfer: search.kv_p2p_transfer.or(entry.kv_p2p_transfer.as_ref()),
                run_eval: Some(false),
                eval_only: None,
                eval_conc: None,
                eval_all_concs: None,
                recipe_fingerprint: None,
            };
            match &search.shape {
                Shape::Single(shape) => {
                    self.rows.extend(
                        conc.into_iter()
                            .map(|conc| row(Conc::One(conc), RowShape::Single(*shape))),
                    );
                }
                Shape::Multi { prefill, decode } => {
                    let shape = RowShape::Multi {
                        prefill: prefill.clone(),
                        decode: decode.clone(),
                    };
                    let row = row(Conc::Many(conc), shape);
                    if self.transfer_is_there(entry, search, &row) {
                        self.rows.push(row);
                    }
                }
            }
        }
    }

    /// A row that writes `kv-p2p-transfer: null` hides the entry's, which a disaggregated row needs.
    fn transfer_is_there(&mut self, entry: &Entry, search: &SearchRow, row: &Row) -> bool {
        let fine = !entry.head.disagg || !self.rules.components || row.kv_p2p_transfer.is_some();
        if !fine {
            self.problems.push(problem(
                entry,
                Some(search),
                "kv-p2p-transfer",
                "this row takes away the transfer that a disaggregated row needs",
                "remove the null",
            ));
        }
        fine
    }

    fn fixed_concurrencies(&mut self, entry: &Entry, search: &SearchRow) -> Option<Vec<i64>> {
        match &search.conc_list {
            ConcList::Values(values) if self.mode == Mode::TestConfig || !values.is_empty() => Some(values.clone()),
            ConcList::Null if self.mode == Mode::TestConfig => {
                self.problems.push(problem(
                    entry,
                    Some(search),
                    "conc-list",
                    "the list of concurrencies is written as null",
                    "remove it",
                ));
                None
            }
            _ => search
                .conc_range
                .map(|(start, end)| range(start, end, self.rules.range_factor)),
        }
    }

    fn agentic(&mut self, entry: &Arc<Entry>, block: &AgenticBlock, search: &SearchRow) {
        let none = &self.rules.kv_offloading.none;
        let kv_offloading = search.kv_offloading.clone().unwrap_or_else(|| Arc::from(none.as_str()));
        let budgeted = !entry.head.multi_node || self.rules.agentic.multi_node_memory_budget;
        let mut memory_gb = None;
        if budgeted {
            match memory::budget_gb(self.configs, self.rules, entry, block, search) {
                Ok(budget) => memory_gb = Some(budget),
                Err((message, remedy)) => {
                    self.problems.push(problem(entry, Some(search), "", message, remedy));
                    return;
                }
            }
        }
        let conc = match &search.conc_list {
            ConcList::Values(values) if !values.is_empty() => values.clone(),
            _ => match search.conc_range {
                Some((start, end)) => range(start, end, self.rules.range_factor),
                None => return,
            },
        };
        let offloads = *kv_offloading != **none;
        let row = |conc: Conc, shape: RowShape, exp_name: String| Row {
            head: entry.head.clone(),
            place: search.span,
            work: Work::Agentic {
                kv_offloading: kv_offloading.clone(),
                backend: search.kv_offload_backend.clone(),
                memory_gb,
                duration: self.rules.agentic.duration_seconds,
            },
            shape,
            spec_decoding: search.spec_decoding.clone(),
            conc,
            exp_name,
            router: search.router.or(entry.router.as_ref()),
            kv_p2p_transfer: search.kv_p2p_transfer.or(entry.kv_p2p_transfer.as_ref()),
            run_eval: None,
            eval_only: None,
            eval_conc: None,
            eval_all_concs: None,
            recipe_fingerprint: None,
        };
        let words = &self.rules.exp_name;
        let offload = if offloads {
            let backend = search.kv_offload_backend.as_ref().map_or("", |backend| &*backend.name);
            fill(&words.offload, &[("kind", &kv_offloading), ("backend", backend)])
        } else {
            words.offload_none.clone()
        };
        let prefix = &*entry.head.model_prefix;
        match &search.shape {
            Shape::Single(shape) => {
                let spec = if *search.spec_decoding == *self.rules.spec_decoding.none {
                    String::new()
                } else {
                    fill(&words.spec, &[("value", &search.spec_decoding)])
                };
                let tp = shape.tp.to_string();
                for conc in conc {
                    let exp_name = fill(
                        &words.agentic_single_node,
                        &[
                            ("prefix", prefix),
                            ("tp", &tp),
                            ("conc", &conc.to_string()),
                            ("offload", &offload),
                            ("spec", &spec),
                        ],
                    );
                    self.rows.push(row(Conc::One(conc), RowShape::Single(*shape), exp_name));
                }
            }
            Shape::Multi { prefill, decode } => {
                let tail = if offloads {
                    format!("{}{offload}", words.multi_node_offload_separator)
                } else {
                    String::new()
                };
                let (prefill_tag, decode_tag) = (
                    self.worker_tag(&words.prefill, prefill),
                    self.worker_tag(&words.decode, decode),
                );
                let mut rows = Vec::new();
                for batch in conc.chunks(self.rules.agentic.multi_node_concurrencies_per_job.max(1)) {
                    let exp_name = fill(
                        &words.agentic_multi_node,
                        &[
                            ("prefix", prefix),
                            ("prefill", &prefill_tag),
                            ("decode", &decode_tag),
                            ("conc", &joined(batch, &words.conc_separator)),
                            ("offload", &tail),
                        ],
                    );
                    let shape = RowShape::Multi {
                        prefill: prefill.clone(),
                        decode: decode.clone(),
                    };
                    rows.push(row(Conc::Many(batch.to_vec()), shape, exp_name));
                }
                let fine = match rows.first() {
                    Some(first) => self.transfer_is_there(entry, search, first),
                    None => true,
                };
                if fine {
                    self.rows.extend(rows);
                }
            }
        }
    }

    fn worker_tag(&self, template: &str, worker: &Worker) -> String {
        let words = &self.rules.exp_name;
        let expert = if worker.ep == 1 {
            String::new()
        } else {
            fill(&words.expert, &[("ep", &worker.ep.to_string())])
        };
        let dp_attention = if worker.dp_attention {
            words.dp_attention.as_str()
        } else {
            ""
        };
        fill(
            template,
            &[
                ("workers", &worker.count.to_string()),
                ("tp", &worker.tp.to_string()),
                ("expert", &expert),
                ("dp_attention", dp_attention),
            ],
        )
    }
}

pub(crate) fn joined(values: &[i64], separator: &str) -> String {
    values.iter().map(i64::to_string).collect::<Vec<_>>().join(separator)
}

/// From start to end by a factor; a value past the end becomes the end (domain guide 4.2).
fn range(start: i64, end: i64, factor: i64) -> Vec<i64> {
    let factor = factor.max(2);
    let mut values = Vec::new();
    let mut value = start;
    while value > 0 && value < end {
        values.push(value);
        value = value.saturating_mul(factor);
    }
    if start <= end {
        values.push(end);
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_double_and_end_exactly_at_their_end() {
        assert_eq!(range(1, 12, 2), [1, 2, 4, 8, 12]);
        assert_eq!(range(4, 64, 2), [4, 8, 16, 32, 64]);
        assert_eq!(range(7, 7, 2), [7]);
        assert_eq!(range(3, 4, 2), [3, 4]);
        assert_eq!(range(1, i64::MAX, 2).len(), 64);
    }
}
