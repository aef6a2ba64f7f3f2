//! Every affected curve has enough points on its frontier
//!
//! ## What it checks
//! The curves on which the points that the new changelog items select are drawn: model prefix, scenario, hardware, framework,
//! precision, and with fixed lengths also speculative decoding. All rows of the run that proves the pull request are put on
//! their curves, and the points on each curve's frontier of throughput over end-to-end latency are counted.
//!
//! ## Why
//! A curve of two points says little about what lies between them.
//!
//! ## Passes when
//! Every affected curve has at least the policy's number of points on its frontier.
//!
//! ## Warns when
//! A curve has fewer, or how many it has cannot be verified: no run, no rows, rows that cannot be read, or rows whose numbers
//! are missing, not finite or not positive. Points of before that an append-only change keeps are not in the run and are not
//! counted.
//!
//! ## Fails when
//! Never.
//!
//! ## Does not apply when
//! The changelog selects no points to be measured.
//!
//! ## How to fix
//! Sweep more concurrencies of the curve that is named, or say in the detail section why it has fewer.
//!
//! Source: newest policy, check 14; product page, section 5.

use std::collections::{BTreeMap, BTreeSet};

use countersign_core::evidence::{Artifact, WorkflowRun};
use countersign_core::outcome::{CheckReport, Finding, Findings, Outcome, OutcomeKind};
use countersign_core::text::{code, link};
use countersign_core::{Cause, CauseKind, Observed, Text, text};
use countersign_matrix::{Row, ScenarioType, sku};
use countersign_records::evals::{FrontierPaths, ThroughputRow, ThroughputRows};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::check::TypedCheck;
use crate::context::Context;
use crate::facts::marked;
use crate::facts::points::Points;

pub(crate) struct Pareto;

/// Parameters of `pareto`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    /// Least number of points on a frontier.
    least: usize,
    /// Where the numbers stand in a row.
    #[schemars(with = "serde_json::Value")]
    frontier: FrontierPaths,
}

/// What a curve is known by: prefix, scenario, hardware, framework, precision, speculative decoding.
type Curve = (String, String, String, String, String, String);

impl TypedCheck for Pareto {
    type Params = Params;
    const SLUG: &'static str = "pareto";
    const OUTCOMES: &'static [OutcomeKind] = &[
        OutcomeKind::Pass,
        OutcomeKind::Warn,
        OutcomeKind::NotApplicable,
        OutcomeKind::Unavailable,
    ];

    fn run(cx: &Context<'_>, params: &Params) -> CheckReport {
        let selected = match cx.points() {
            Err(cause) => return CheckReport::unavailable(cause),
            Ok(Points::Nothing) => return CheckReport::not_applicable("the changelog selects nothing"),
            Ok(Points::Refused(problems)) => {
                let why = problems.first().map(|problem| marked(&problem.message)).unwrap_or_default();
                return unverified(text!["CI refuses the new changelog items: "].and(why));
            }
            Ok(Points::Selected(selected)) => selected,
        };
        let curves: BTreeSet<Curve> = selected.selection.throughput.iter().map(|row| curve_of_row(cx, row)).collect();
        if curves.is_empty() {
            return CheckReport::not_applicable("no selected point is measured");
        }
        let sweep = match cx.sweep() {
            Err(cause) => return CheckReport::unavailable(cause),
            Ok(sweep) => sweep,
        };
        let Some(run) = sweep.and_then(|sweep| sweep.best.as_ref()).map(|weighed| weighed.run) else {
            return match sweep.and_then(|sweep| sweep.unread.as_ref()) {
                Some(cause) => CheckReport::unavailable(cause),
                None => unverified(text!["no run has measured the points"]),
            };
        };
        let measured = match rows(cx, run, &params.frontier) {
            Ok(measured) => measured,
            // What a later look may read is waited for; the rest stays unverified.
            Err(cause) if cause.kind == CauseKind::Transient => return CheckReport::unavailable(&cause),
            Err(cause) => return unverified(text![cause.to_string()]),
        };
        judge(cx, params, run, &curves, &measured, selected.selection.append_only)
    }
}

fn unverified(why: Text) -> CheckReport {
    CheckReport::warn(Finding::new(
        "unverified",
        text!["the number of frontier points could not be verified: "].and(why),
        "Let a sweep finish on this pull request, and check again.",
    ))
}

fn scenario(cx: &Context<'_>, agentic: bool, lengths: Option<(u64, u64)>) -> String {
    match lengths {
        Some((isl, osl)) if !agentic => {
            let known = cx.policy().matrix.sequences.iter().find(|(_, sequence)| {
                u64::try_from(sequence.isl) == Ok(isl) && u64::try_from(sequence.osl) == Ok(osl)
            });
            known.map_or_else(|| format!("{isl}/{osl}"), |(name, _)| name.to_string())
        }
        _ => "agentic".to_owned(),
    }
}

fn hardware(cx: &Context<'_>, runner: &str) -> String {
    let runner = runner.to_lowercase();
    sku(&runner, &cx.policy().layout, &cx.policy().matrix).map_or(runner.clone(), str::to_owned)
}

fn curve_of_row(cx: &Context<'_>, row: &Row) -> Curve {
    let agentic = row.scenario() == ScenarioType::Agentic;
    let lengths = row.lengths().and_then(|(isl, osl)| Some((u64::try_from(isl).ok()?, u64::try_from(osl).ok()?)));
    (
        row.head.model_prefix.to_lowercase(),
        scenario(cx, agentic, lengths),
        hardware(cx, &row.head.runner),
        row.head.framework.to_lowercase(),
        row.head.precision.to_lowercase(),
        if agentic { String::new() } else { row.spec_decoding.to_lowercase() },
    )
}

fn curve_of_measured(cx: &Context<'_>, row: &ThroughputRow) -> Curve {
    let none = &cx.policy().matrix.spec_decoding.none;
    let spec = row.spec_decoding.as_deref().filter(|spec| !spec.is_empty()).unwrap_or(none);
    (
        row.model_prefix.to_lowercase(),
        scenario(cx, row.agentic, row.lengths),
        hardware(cx, &row.hw),
        row.framework.to_lowercase(),
        row.precision.to_lowercase(),
        if row.agentic { String::new() } else { spec.to_lowercase() },
    )
}

fn name(curve: &Curve) -> String {
    let (prefix, scenario, hardware, framework, precision, spec) = curve;
    [prefix, precision, hardware, framework, scenario, spec].into_iter().filter(|word| !word.is_empty()).cloned().collect::<Vec<_>>().join(" ")
}

/// All rows that the run measured.
fn rows(cx: &Context<'_>, run: &WorkflowRun, paths: &FrontierPaths) -> Result<ThroughputRows, Cause> {
    let names = &cx.policy().ci.artifacts;
    let artifacts = match &run.artifacts {
        Observed::Present(artifacts) => artifacts,
        Observed::Absent => return Err(Cause::new(CauseKind::NotRecorded, format!("artifacts of run {}", run.id), "there are none")),
        Observed::Unavailable(cause) => return Err(cause.clone()),
    };
    let is_point = |artifact: &&Artifact| !names.agentic_prefix.is_empty() && artifact.name.starts_with(&names.agentic_prefix);
    let mut out = ThroughputRows::default();
    // Newest first: of several with one name the newest counts.
    let mut seen = BTreeSet::new();
    for artifact in artifacts.iter().filter(|artifact| artifact.name == names.throughput || is_point(artifact)) {
        if !seen.insert(artifact.name.as_str()) {
            continue;
        }
        let what = || format!("{} of run {}", artifact.name, run.id);
        if artifact.expired {
            return Err(Cause::new(CauseKind::NotRecorded, what(), "GitHub has deleted it"));
        }
        let files = match &artifact.files {
            Some(Observed::Present(files)) => files,
            Some(Observed::Unavailable(cause)) => return Err(cause.clone()),
            Some(Observed::Absent) | None => return Err(Cause::new(CauseKind::NotRecorded, what(), "its content was not gathered")),
        };
        let whole = artifact.name == names.throughput;
        for (path, text) in files.iter().filter(|(path, _)| if whole { **path == names.throughput_file } else { path.ends_with(".json") }) {
            let read = ThroughputRows::read(text.as_bytes(), paths)
                .map_err(|error| Cause::new(CauseKind::Malformed, format!("{path} in {}", what()), error.to_string()))?;
            if let Some(problem) = read.problems.first() {
                return Err(Cause::new(CauseKind::Malformed, format!("row {} of {path} in {}", problem.index + 1, what()), problem.what.clone()));
            }
            out.rows.extend(read.rows);
        }
    }
    if out.rows.is_empty() {
        return Err(Cause::new(CauseKind::NotRecorded, format!("throughput rows of run {}", run.id), "there are none"));
    }
    Ok(out)
}

fn judge(cx: &Context<'_>, params: &Params, run: &WorkflowRun, curves: &BTreeSet<Curve>, measured: &ThroughputRows, append_only: bool) -> CheckReport {
    let mut by_curve: BTreeMap<Curve, Vec<&ThroughputRow>> = BTreeMap::new();
    for row in &measured.rows {
        by_curve.entry(curve_of_measured(cx, row)).or_default().push(row);
    }
    let mut findings = Vec::new();
    let mut counts = Vec::new();
    for curve in curves {
        let rows = by_curve.get(curve).map_or(&[][..], Vec::as_slice);
        if let Some(bad) = rows.iter().find(|row| row.point().is_none()) {
            findings.push(Finding::new(
                "invalid-row",
                text![code(name(curve)), ": the row at concurrency ", bad.conc, " of ", link(format!("run {}", run.id), &run.url), " has no valid latency and throughput"],
                "Find out why the result has no valid numbers, and measure the point again.",
            ));
            continue;
        }
        let count = frontier(rows.iter().filter_map(|row| row.point()).collect());
        if count < params.least {
            let mut message = text![code(name(curve)), " has ", count, " points on its frontier in ", link(format!("run {}", run.id), &run.url), ", fewer than ", params.least];
            if append_only {
                message = message.with("; points of earlier runs are not counted");
            }
            findings.push(Finding::new("few-points", message, "Sweep more concurrencies of this curve, or say in the detail section why it has fewer."));
        } else {
            counts.push(format!("{} ({count})", name(curve)));
        }
    }
    let first = findings.first().map(|finding| finding.message.clone());
    let more = findings.len().saturating_sub(1);
    match (Findings::from_vec(findings), first) {
        (Some(findings), Some(first)) => {
            let reason = if more > 0 { first.with(format!(" (and {more} more)")) } else { first };
            CheckReport::new(Outcome::Warn(findings), reason)
        }
        _ => CheckReport::pass(text!["points on the frontier: "].and(Text::list(counts, 6))),
    }
}

/// How many points lie on the upper front: with rising latency throughput rises, or stays the same at another latency. Equal
/// points count once.
fn frontier(mut points: Vec<(f64, f64)>) -> usize {
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.total_cmp(&a.1)));
    let mut count = 0;
    let mut last: Option<(f64, f64)> = None;
    for (x, y) in points {
        let keep = last.is_none_or(|(before, best)| x > before && y >= best);
        if keep {
            count += 1;
            last = Some((x, y));
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::frontier;

    #[test]
    fn the_front_rises_with_latency() {
        assert_eq!(frontier(vec![(1.0, 10.0), (2.0, 20.0), (3.0, 15.0), (4.0, 30.0)]), 3);
        // A plateau at another latency counts, an equal point once, a lower one at the same latency not.
        assert_eq!(frontier(vec![(1.0, 10.0), (2.0, 10.0), (2.0, 10.0), (2.0, 5.0)]), 2);
        assert_eq!(frontier(vec![]), 0);
    }
}
