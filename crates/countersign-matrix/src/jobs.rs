//! Lanes and job names (domain guide 4.4), and back from a check-run's name to what it says.

use std::fmt::Write as _;

use crate::entry::{SingleShape, Worker};
use crate::expand::joined;
use crate::row::{Conc, Row, RowShape, Work};
use crate::rules::{JobNameRules, Lane, MatrixRules, NodeKind, Purpose};

/// The lane that runs a row. `None` for a fixed-length row at lengths that no lane takes: such a row never runs.
#[must_use]
pub fn lane<'r>(row: &Row, rules: &'r MatrixRules) -> Option<&'r Lane> {
    let sequence = row.lengths().map(|(isl, osl)| rules.sequence_name(isl, osl));
    rules.lanes.iter().find(|lane| {
        lane.nodes == row.nodes()
            && lane.scenario == row.scenario()
            && lane.purpose == row.purpose()
            && match (&lane.sequence, &sequence) {
                (None, _) => true,
                (Some(wanted), Some(found)) => *found == Some(wanted.as_str()),
                (Some(_), None) => false,
            }
    })
}

/// The index of the row that the canary takes: the lowest concurrency among single-node throughput rows of its
/// sequences, the first of several. `None` where there is no such row, and then no canary runs.
#[must_use]
pub fn canary(throughput: &[Row], rules: &MatrixRules) -> Option<usize> {
    let canary = rules.canary.as_ref()?;
    let mut best: Option<(i64, usize)> = None;
    for sequence in &canary.sequences {
        for (index, row) in throughput.iter().enumerate() {
            let fits = row.nodes() == NodeKind::Single
                && row.purpose() == Purpose::Throughput
                && row.run_eval != Some(true)
                && row.lengths().and_then(|(isl, osl)| rules.sequence_name(isl, osl)) == Some(sequence.as_str());
            if let (true, Conc::One(conc)) = (fits, &row.conc)
                && best.is_none_or(|(least, _)| *conc < least)
            {
                best = Some((*conc, index));
            }
        }
    }
    best.map(|(_, index)| index)
}

/// The job's name without the priority, blanks collapsed.
#[must_use]
pub fn job_name(row: &Row, rules: &MatrixRules) -> String {
    let words = &rules.job_name;
    let head = &row.head;
    let framework = words
        .framework_words
        .get(&*head.framework)
        .map_or(&*head.framework, String::as_str);
    let mut parts: Vec<String> = vec![
        head.model_prefix.to_string(),
        head.precision.to_string(),
        head.runner.to_string(),
        framework.to_owned(),
        shape_name(row, words),
    ];
    if *row.spec_decoding != *rules.spec_decoding.none {
        parts.push(row.spec_decoding.to_string());
    }
    if let Work::Agentic {
        kv_offloading, backend, ..
    } = &row.work
    {
        if **kv_offloading != *rules.kv_offloading.none {
            parts.push(format!("{kv_offloading} {}", words.offload));
        }
        if let Some(backend) = backend
            && !words.hidden_backends.iter().any(|hidden| **hidden == *backend.name)
        {
            parts.push(backend.name.to_string());
        }
    }
    parts.push(format!(
        "{}{}",
        words.concurrency,
        joined(row.conc.values(), &words.concurrency_separator)
    ));
    if row.eval_only == Some(true) {
        parts.push(words.eval_only.clone());
    } else if row.run_eval == Some(true) {
        parts.push(words.with_eval.clone());
    }
    collapse(&parts.join(" "))
}

/// The parallelism as the job name shows it.
#[must_use]
pub fn shape_name(row: &Row, words: &JobNameRules) -> String {
    match &row.shape {
        RowShape::Single(shape) => single_name(shape, words),
        RowShape::Multi { prefill, decode } if row.head.disagg => format!(
            "{}{} ({}) {} {}{} ({})",
            prefill.count,
            words.prefill,
            worker_name(prefill, words),
            words.times,
            decode.count,
            words.decode,
            worker_name(decode, words)
        ),
        RowShape::Multi { prefill, .. } => format!("({})", worker_name(prefill, words)),
    }
}

fn single_name(shape: &SingleShape, words: &JobNameRules) -> String {
    degrees(
        shape.tp,
        [shape.pp, shape.dcp, shape.pcp, shape.ep],
        shape.dp_attention,
        words,
    )
}

fn worker_name(worker: &Worker, words: &JobNameRules) -> String {
    degrees(
        worker.tp,
        [worker.pp, worker.dcp, worker.pcp, worker.ep],
        worker.dp_attention,
        words,
    )
}

fn degrees(tp: i64, others: [i64; 4], dp_attention: bool, words: &JobNameRules) -> String {
    let mut out = format!("{}{tp}", words.tensor);
    let names = [
        &words.pipeline,
        &words.decode_context,
        &words.prefill_context,
        &words.expert,
    ];
    for (name, degree) in names.into_iter().zip(others) {
        if degree != 1 {
            let _ = write!(out, "/{name}{degree}");
        }
    }
    if dp_attention {
        let _ = write!(out, "/{}", words.dp_attention);
    }
    out
}

/// A check-run's name taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckRunName {
    /// The caller: a lane, the canary, or any other job. Without its closing slash.
    pub caller: String,
    /// The job's name without the priority, blanks collapsed; `None` for a lane that was skipped as a whole.
    pub job: Option<String>,
    /// The priority, where the name has one, as written.
    pub priority: Option<String>,
}

/// Takes a check-run's name apart. The caller is everything before the first separator, exactly: one lane's name may be
/// the beginning or the end of another's.
#[must_use]
pub fn check_run_name(name: &str, rules: &MatrixRules) -> CheckRunName {
    let words = &rules.job_name;
    let separator = words.caller_separator.trim();
    let name = collapse(name);
    let (caller, rest) = match name.split_once(separator) {
        Some((caller, rest)) if !separator.is_empty() => (caller.trim(), rest.trim()),
        _ => (name.as_str(), ""),
    };
    // The callers end in a slash themselves, and another one joins them to the job.
    let rest = rest.strip_prefix(separator).unwrap_or(rest).trim();
    let mut priority = None;
    let mut job = rest;
    if let Some((first, after)) = rest.split_once(words.priority_separator.trim()) {
        let number = first.trim().strip_prefix(words.priority_prefix.as_str());
        if number.is_some_and(|number| !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || c == '.')) {
            priority = number.map(str::to_owned);
            job = after.trim();
        }
    }
    CheckRunName {
        caller: caller.to_owned(),
        job: (!job.is_empty()).then(|| job.to_owned()),
        priority,
    }
}

/// Empty parts of a name leave runs of blanks.
fn collapse(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
