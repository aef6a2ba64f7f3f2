//! A green sweep on a commit of this pull request
//!
//! ## What it checks
//! That one run of the sweep workflow, on a commit that is still in the pull request, has executed green jobs for every
//! point that the pull request's new changelog items select: throughput and evaluation, each in its lane. The points are
//! expanded from the configs at head. Skipped is not success, aggregator jobs are no evidence, and what ran on an earlier
//! commit counts only for entries that are the same at head.
//!
//! ## Why
//! A number that was never measured on this change must not be published under it.
//!
//! ## Passes when
//! Such a run exists. The run named by a reuse command is looked at first, then newer before older.
//!
//! ## Fails when
//! No run proves all points: none on a commit of the pull request, points missing or red, still running, or entries
//! changed since.
//!
//! ## Asks a person when
//! A script or recipe of the entries changed after the run: whether that can change results is not for a machine to say.
//!
//! ## How to fix
//! Run a full sweep on the current head, or re-run the failed jobs.
//!
//! Source: domain guide, sections 4 and 17; product page, section 5.

use countersign_core::outcome::{CheckReport, Finding, Location, OutcomeKind};
use countersign_core::text::{Part, code, link};
use countersign_core::{Text, text};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::check::TypedCheck;
use crate::context::Context;
use crate::facts::points::Points;
use crate::facts::sweep::{LaneResult, Weighed};

pub(crate) struct Sweep;

/// Parameters of `sweep`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {}

impl TypedCheck for Sweep {
    type Params = Params;
    const SLUG: &'static str = "sweep";
    const OUTCOMES: &'static [OutcomeKind] = &[OutcomeKind::Pass, OutcomeKind::Fail, OutcomeKind::NeedsConfirmation, OutcomeKind::Unavailable];

    fn run(cx: &Context<'_>, _: &Params) -> CheckReport {
        let selected = match cx.points() {
            Err(cause) => return CheckReport::unavailable(cause),
            Ok(Points::Nothing) => {
                return CheckReport::fail(Finding::new(
                    "no-points",
                    text!["nothing is ever swept for this pull request: it adds no item to ", code(&cx.policy().layout.changelog)],
                    text!["Append an item that names the changed config keys to ", code(&cx.policy().layout.changelog), ", then run a full sweep."],
                ));
            }
            Ok(Points::Refused(problems)) => return refused(problems),
            Ok(Points::Selected(selected)) => selected,
        };
        let sweep = match cx.sweep() {
            Ok(Some(sweep)) => sweep,
            Ok(None) => return CheckReport::fail(no_run(cx, &[])),
            Err(cause) => return CheckReport::unavailable(cause),
        };
        let Some(best) = &sweep.best else {
            return match &sweep.unread {
                Some(cause) => CheckReport::unavailable(cause),
                None => CheckReport::fail(no_run(cx, &sweep.not_evidence)),
            };
        };
        if best.good() {
            let mut report = CheckReport::pass(praise(cx, best));
            if selected.selection.evals.is_empty() {
                report = report.note("no evaluation row is generated for these points, so no evaluation lane is required");
            }
            return report;
        }
        // A run that could not be read may be the one that proves everything.
        if let Some(cause) = &sweep.unread {
            return CheckReport::unavailable(cause);
        }
        judge(best)
    }
}

fn run_link(best: &Weighed<'_>) -> Part {
    link(format!("run {}", best.run.id), &best.run.url)
}

fn praise(cx: &Context<'_>, best: &Weighed<'_>) -> Text {
    let head = best.run.head_sha == cx.evidence.pull_request.head_sha;
    let mut reason = text![run_link(best), " on ", if head { "head " } else { "commit " }, code(best.run.head_sha.short()), ": "];
    for (index, (lane, result)) in best.lanes.iter().enumerate() {
        if index > 0 {
            reason = reason.with(", ");
        }
        reason = reason.with(format!("{}/{} ", result.green, result.expected)).with(code(lane));
    }
    reason.with(" green")
}

fn refused(problems: &[countersign_matrix::Problem]) -> CheckReport {
    let first = problems.first();
    let message = first.map_or_else(String::new, |problem| problem.message.clone());
    let remedy = first.map_or_else(String::new, |problem| problem.remedy.clone());
    let mut finding = Finding::new("ci-refuses", text!["CI cannot generate a sweep from this pull request: ", message], text!["Mend it: ", remedy, "; then run a full sweep."]);
    if let Some(problem) = first.filter(|problem| problem.line > 0) {
        finding = finding.at(Location::line(problem.file.to_string(), u64::from(problem.line)));
    }
    CheckReport::fail(finding)
}

fn no_run(cx: &Context<'_>, not_evidence: &[(u64, String)]) -> Finding {
    let label = cx.policy().ci.labels.full.first().cloned().unwrap_or_default();
    let mut message = text!["no run of ", code(&cx.policy().ci.workflow), " on a commit of this pull request"];
    if let Some((id, why)) = not_evidence.first() {
        message = message.with(format!("; run {id} does not count: {why}"));
    }
    Finding::new("no-run", message, text!["Set the label ", code(label), " (remove and set it again if it is there), and let the sweep end."])
}

fn judge(best: &Weighed<'_>) -> CheckReport {
    let running: usize = best.lanes.values().map(|lane| lane.running).sum();
    if !best.lanes_good() {
        let executed = best.lanes.values().any(|lane| lane.executed);
        return CheckReport::fail(if !executed && running == 0 {
            Finding::new(
                "no-op",
                text![run_link(best), " ran nothing: every lane that these points need was skipped"],
                "Remove a bare reuse command if one is on record, then run a full sweep on this head (remove and set the sweep label again).",
            )
        } else if running > 0 {
            Finding::new(
                "running",
                text![run_link(best), " is not finished: "].and(gaps(best)),
                "Nothing to do: this is judged again when the run ends.",
            )
        } else if best.lanes.values().any(|lane| !lane.bad.is_empty()) {
            Finding::new(
                "red",
                text![run_link(best), " is not green: "].and(gaps(best)),
                text!["Use \"Re-run failed jobs\" on ", run_link(best), ", or fix the cause and sweep again."],
            )
        } else {
            Finding::new(
                "partial",
                text![run_link(best), " does not cover all points of this pull request: "].and(gaps(best)),
                "Run a full sweep on this head: a trimmed or partial one is not enough.",
            )
        });
    }
    if let Some((entry, field)) = best.stale_rows.first() {
        let more = best.stale_rows.len() - 1;
        let mut message = text![run_link(best), " measured ", code(entry), " before ", code(field), " changed"];
        if more > 0 {
            message = message.with(format!(" (and {more} more entries)"));
        }
        return CheckReport::fail(Finding::new("stale", message, "Run a full sweep on this head."));
    }
    CheckReport::confirm(Finding::new(
        "changed-since",
        text![run_link(best), " ran on ", code(best.run.head_sha.short()), "; since then these changed: "].and(Text::list(&best.stale_files, 4)),
        text!["Run a full sweep on this head, or confirm that results cannot differ: ", code(format!("/countersign confirm {} <reason>", Sweep::SLUG)), "."],
    ))
}

/// The lanes that lack something, each with the first names.
fn gaps(best: &Weighed<'_>) -> Text {
    let mut out = Text::default();
    let lacking = best.lanes.iter().filter(|(_, lane)| !lane.missing.is_empty());
    for (index, (name, lane)) in lacking.enumerate() {
        if index > 0 {
            out = out.with("; ");
        }
        out = out.with(code(name)).with(format!(" {}/{}", lane.green, lane.expected)).and(names(lane));
    }
    out
}

fn names(lane: &LaneResult) -> Text {
    if !lane.bad.is_empty() {
        return text![" (", lane.bad[0].1, ": "].and(Text::list(lane.bad.iter().map(|(name, _)| name), 3)).with(")");
    }
    if !lane.executed {
        return text![" (skipped)"];
    }
    text![" (lacks "].and(Text::list(&lane.missing, 3)).with(")")
}
