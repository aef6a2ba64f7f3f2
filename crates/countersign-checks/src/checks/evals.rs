//! The evaluations of that sweep reach the bar
//!
//! ## What it checks
//! The results that the sweep's run uploaded: a row for every evaluation row that the points generate, every metric of
//! every row at or above the bar of the target branch, from full runs, and on the image that the configs name.
//!
//! ## Why
//! A fast wrong answer is no benchmark result. The bar of the pull request itself is not trusted: it could be lowered there.
//!
//! ## Passes when
//! All expected rows are there and reach the bar.
//!
//! ## Fails when
//! Results are missing, expired, unreadable, from a smoke run, or below the bar.
//!
//! ## Not applicable when
//! The points generate no evaluation row, as some do by design.
//!
//! ## How to fix
//! Re-run the evaluation jobs, or fix the accuracy.
//!
//! Source: domain guide, section 5; product page, section 5.

use countersign_core::evidence::{Artifact, WorkflowRun};
use countersign_core::outcome::{CheckReport, Finding, Findings, Outcome, OutcomeKind};
use countersign_core::text::{Part, code, link};
use countersign_core::{Cause, CauseKind, Observed, Text, text};
use countersign_matrix::{Conc, Row, RowShape, job_name};
use countersign_records::evals::{EvalRow, EvalRows, Judged, Samples};
use countersign_records::thresholds::{Origin, Thresholds};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::check::TypedCheck;
use crate::context::Context;
use crate::facts::points::Points;

pub(crate) struct Evals;

/// Parameters of `evals`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    /// The bar for a task that the bars file does not name.
    fallback_bar: f64,
}

impl TypedCheck for Evals {
    type Params = Params;
    const SLUG: &'static str = "evals";
    const OUTCOMES: &'static [OutcomeKind] = &[OutcomeKind::Pass, OutcomeKind::Fail, OutcomeKind::NotApplicable, OutcomeKind::Unavailable];

    fn run(cx: &Context<'_>, params: &Params) -> CheckReport {
        let selected = match cx.points() {
            Err(cause) => return CheckReport::unavailable(cause),
            Ok(Points::Selected(selected)) => selected,
            Ok(Points::Nothing | Points::Refused(_)) => return CheckReport::fail(nothing_measured()),
        };
        if selected.selection.evals.is_empty() {
            return CheckReport::not_applicable("no evaluation row is generated for these points");
        }
        let run = match cx.sweep() {
            Err(cause) => return CheckReport::unavailable(cause),
            Ok(sweep) => match sweep.and_then(|sweep| sweep.best.as_ref().map(|best| best.run).ok_or(sweep.unread.as_ref()).transpose_none()) {
                Some(Ok(run)) => run,
                Some(Err(cause)) => return CheckReport::unavailable(cause),
                None => return CheckReport::fail(nothing_measured()),
            },
        };
        match results(cx, run) {
            Err(report) => *report,
            Ok(rows) => match bars(cx) {
                Err(cause) => CheckReport::unavailable(&cause),
                Ok((path, bars)) => judge(cx, params, run, &selected.selection.evals, &rows, &path, &bars),
            },
        }
    }
}

/// `Result<run, Option<cause>>` as "a run, a cause, or nothing".
trait TransposeNone<T, E> {
    fn transpose_none(self) -> Option<Result<T, E>>;
}

impl<T, E> TransposeNone<T, E> for Result<T, Option<E>> {
    fn transpose_none(self) -> Option<Result<T, E>> {
        match self {
            Ok(value) => Some(Ok(value)),
            Err(Some(error)) => Some(Err(error)),
            Err(None) => None,
        }
    }
}

fn nothing_measured() -> Finding {
    Finding::new("no-run", "no evaluation was run for this pull request", "Run a full sweep on this head; its evaluation lanes upload the scores.")
}

fn run_link(run: &WorkflowRun) -> Part {
    link(format!("run {}", run.id), &run.url)
}

/// The aggregated rows of a run.
fn results(cx: &Context<'_>, run: &WorkflowRun) -> Result<EvalRows, Box<CheckReport>> {
    let names = &cx.policy().ci.artifacts;
    let fail = |finding| Box::new(CheckReport::fail(finding));
    let artifacts = match &run.artifacts {
        Observed::Present(artifacts) => artifacts.as_slice(),
        Observed::Absent => &[],
        Observed::Unavailable(cause) => return Err(Box::new(CheckReport::unavailable(cause))),
    };
    // Of several uploads of one name the newest counts.
    let newest = artifacts.iter().filter(|artifact| artifact.name == names.evals).max_by_key(|artifact| (artifact.created_at, artifact.id));
    let Some(artifact) = newest else {
        return Err(fail(Finding::new(
            "no-results",
            text![run_link(run), " uploaded no ", code(&names.evals)],
            "Re-run the evaluation jobs and the job that collects them.",
        )));
    };
    if artifact.expired {
        return Err(fail(Finding::new(
            "expired",
            text!["the evaluation results of ", run_link(run), " have expired"],
            "Run a full sweep again: GitHub has deleted these results.",
        )));
    }
    let text = match file_of(artifact, &names.evals_file) {
        Ok(Some(text)) => text,
        Ok(None) => {
            return Err(fail(Finding::new(
                "no-results",
                text![code(&names.evals), " of ", run_link(run), " holds no ", code(&names.evals_file)],
                "Re-run the job that collects the evaluations.",
            )));
        }
        Err(cause) => return Err(Box::new(CheckReport::unavailable(&cause))),
    };
    EvalRows::read(text.as_bytes()).map_err(|error| {
        fail(Finding::new(
            "unreadable",
            text![code(&names.evals_file), " of ", run_link(run), " cannot be read: ", error.to_string()],
            "Re-run the job that collects the evaluations.",
        ))
    })
}

fn file_of<'a>(artifact: &'a Artifact, name: &str) -> Result<Option<&'a str>, Cause> {
    match &artifact.files {
        None => Err(Cause::new(CauseKind::NotRecorded, format!("artifact {}", artifact.name), "its content was not gathered")),
        Some(Observed::Unavailable(cause)) => Err(cause.clone()),
        Some(Observed::Absent) => Ok(None),
        Some(Observed::Present(files)) => {
            Ok(files.iter().find(|(path, _)| path.rsplit('/').next() == Some(name)).map(|(_, text)| text.as_str()))
        }
    }
}

/// The trusted bars, and where they stand.
fn bars(cx: &Context<'_>) -> Result<(String, Thresholds), Cause> {
    for path in &cx.policy().paths.thresholds {
        match cx.evidence.trusted_file(path) {
            Observed::Absent => {}
            Observed::Unavailable(cause) => return Err(cause),
            Observed::Present(text) => {
                let bars = Thresholds::read(&text).map_err(|error| Cause::new(CauseKind::Malformed, format!("{path} on the target branch"), error.to_string()))?;
                if let Some(problem) = bars.problems.first() {
                    return Err(Cause::new(CauseKind::Malformed, format!("{path} on the target branch, line {}", problem.line), problem.what.clone()));
                }
                return Ok((path.clone(), bars));
            }
        }
    }
    Err(Cause::new(CauseKind::Malformed, "accuracy bars", "the target branch has no file with them"))
}

fn judge(cx: &Context<'_>, params: &Params, run: &WorkflowRun, expected: &[Row], found: &EvalRows, path: &str, bars: &Thresholds) -> CheckReport {
    let mut findings = Vec::new();
    let missing = unmatched(expected, &found.rows);
    if !missing.is_empty() {
        let names = missing.iter().map(|row| job_name(row, &cx.policy().matrix));
        findings.push(Finding::new(
            "missing-rows",
            text![missing.len(), " of ", expected.len(), " expected evaluations have no result in ", run_link(run), ": "].and(Text::list(names, 3)),
            text!["Re-run these evaluation jobs on ", run_link(run), "."],
        ));
    }
    let mut lowest: Option<(f64, f64, Option<usize>)> = None;
    for row in &found.rows {
        let rule = cx.policy().results.tasks.get(&row.task);
        let bar = bars.bar(&row.model_prefix, &row.task, params.fallback_bar);
        match row.judge(rule, bar.value) {
            Judged::Reached { value, .. } => {
                if lowest.is_none_or(|(least, _, _)| value < least) {
                    lowest = Some((value, bar.value, bar.line));
                }
            }
            Judged::Below { metric, value } => findings.push(Finding::new(
                "below-bar",
                text![code(shown(row)), ": ", code(metric), format!(" {value:.4} is below {} ", bar.value), origin(cx, path, bar.origin, bar.line)],
                "Fix the accuracy and run the evaluation again.",
            )),
            Judged::Invalid { metric, why } => findings.push(Finding::new(
                "invalid-score",
                text![code(shown(row)), ": ", code(metric), " is no score: ", why],
                "Re-run this evaluation job.",
            )),
            Judged::Missing { metric } => findings.push(Finding::new(
                "invalid-score",
                text![code(shown(row)), " lacks ", code(metric)],
                "Re-run this evaluation job.",
            )),
            Judged::Nothing => findings.push(Finding::new("invalid-score", text![code(shown(row)), " has no score"], "Re-run this evaluation job.")),
        }
        if let Samples::Partial { have, full } = row.samples(rule) {
            findings.push(Finding::new(
                "smoke-run",
                text![code(shown(row)), format!(" has {have} of {full} samples: a limited run")],
                "Run the whole evaluation.",
            ));
        }
    }
    if let Some(findings) = Findings::from_vec(findings) {
        let reason = findings.as_slice()[0].message.clone();
        return CheckReport::new(Outcome::Fail(findings), reason);
    }
    let Some((least, bar, line)) = lowest else {
        return CheckReport::fail(Finding::new("no-results", text!["the results of ", run_link(run), " hold no row"], "Re-run the evaluation jobs and the job that collects them."));
    };
    let place = cx.evidence.file_url(&cx.evidence.trusted_sha, path, line.and_then(|line| u64::try_from(line).ok()));
    let mut images: Vec<&str> = expected.iter().map(|row| &*row.head.image).collect();
    images.sort_unstable();
    images.dedup();
    CheckReport::pass(
        text![format!("{} rows for {} expected evaluations, lowest {least:.4} ≥ {bar} (", found.rows.len(), expected.len()), link(path, place), "), image "].and(Text::list(images, 2)),
    )
}

fn origin(cx: &Context<'_>, path: &str, origin: Origin, line: Option<usize>) -> Part {
    let url = cx.evidence.file_url(&cx.evidence.trusted_sha, path, line.and_then(|line| u64::try_from(line).ok()));
    match origin {
        Origin::Model => link(format!("({path}, this model's bar)"), url),
        Origin::Default => link(format!("({path}, the task's bar)"), url),
        Origin::Fallback => "(no bar is written; the policy's fallback)".into(),
    }
}

fn shown(row: &EvalRow) -> String {
    format!("{} {} c{} {}", row.model_prefix, row.framework.as_deref().unwrap_or("?"), row.conc, row.task)
}

/// Expected rows that no result answers. One result answers one row.
fn unmatched<'r>(expected: &'r [Row], found: &[EvalRow]) -> Vec<&'r Row> {
    let mut free: Vec<Option<&EvalRow>> = found.iter().map(Some).collect();
    expected
        .iter()
        .filter(|row| {
            let hit = free.iter().position(|slot| slot.is_some_and(|result| answers(row, result)));
            match hit {
                Some(index) => {
                    free[index] = None;
                    false
                }
                None => true,
            }
        })
        .collect()
}

/// Whether a result is of an expected row. What a result does not say cannot speak against it; there is no field for
/// pipeline or context parallelism (domain guide, section 5.4).
fn answers(row: &Row, result: &EvalRow) -> bool {
    let head = &row.head;
    let same = |wanted: &str, said: Option<&str>| said.is_none_or(|said| said.eq_ignore_ascii_case(wanted));
    let number = |wanted: i64, said: Option<u64>| said.is_none_or(|said| i64::try_from(said) == Ok(wanted));
    let (isl, osl) = row.lengths().unwrap_or((0, 0));
    let concurrency = match (row.eval_conc, &row.conc) {
        (Some(conc), _) => i64::try_from(result.conc) == Ok(conc),
        (None, Conc::One(conc)) => i64::try_from(result.conc) == Ok(*conc),
        (None, Conc::Many(many)) => many.iter().any(|conc| i64::try_from(result.conc) == Ok(*conc)),
    };
    let shape = match &row.shape {
        RowShape::Single(shape) => number(shape.tp, result.tp) && number(shape.ep, result.ep),
        RowShape::Multi { prefill, decode } => {
            number(prefill.tp, result.prefill_tp)
                && number(prefill.ep, result.prefill_ep)
                && number(prefill.count, result.prefill_num_workers)
                && number(decode.tp, result.decode_tp)
                && number(decode.ep, result.decode_ep)
                && number(decode.count, result.decode_num_workers)
        }
    };
    *head.model_prefix == *result.model_prefix
        && same(&head.framework, result.framework.as_deref())
        && same(&head.precision, result.precision.as_deref())
        && same(&head.runner, result.hw.as_deref())
        && same(&row.spec_decoding, result.spec_decoding.as_deref())
        && number(isl, result.isl)
        && number(osl, result.osl)
        && concurrency
        && shape
}

#[cfg(test)]
mod tests {
    use countersign_records::evals::{EvalRows, Number};

    #[test]
    fn numbers_of_results_are_read_as_numbers() {
        let rows = EvalRows::read(br#"[{"is_multinode": false, "model_prefix": "m", "conc": 4, "task": "gsm8k", "em_strict": NaN, "em_flexible": 0.9}]"#).unwrap();
        assert!(matches!(rows.rows[0].em_strict, Some(Number::NotFinite(_))));
        assert!(!rows.rows[0].judge(None, 0.5).reached());
    }
}
