//! A reuse command is on record
//!
//! ## What it checks
//! That the conversation has an authorised command to reuse a run. The newest authorised comment decides, and in it the
//! last command; a command of somebody without the authority is passed over; deleting the comment revokes it.
//!
//! ## Why
//! Without it a merge measures everything again, or fails to publish anything.
//!
//! ## Passes when
//! There is one. The row says who gave it, which run it means, and how many of the jobs for the pull request's points that
//! run covers, with those that it does not; where that run cannot be reused, or the command names none, a note gives the
//! exact command to post instead.
//!
//! ## Fails when
//! There is none, or only ones without authority.
//!
//! ## How to fix
//! Somebody with the authority posts the command, on a line of its own.
//!
//! Source: domain guide, section 6; product page, sections 4 and 5.

use countersign_core::outcome::{CheckReport, Finding, OutcomeKind};
use countersign_core::text::{code, link};
use countersign_core::{Text, text};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::check::TypedCheck;
use crate::context::Context;
use crate::facts::reuse::{Resolved, Reuse};

pub(crate) struct ReuseCommand;

/// Parameters of `reuse-command`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    /// The command to suggest, without its run, e.g. `/use`.
    suggest: String,
}

impl TypedCheck for ReuseCommand {
    type Params = Params;
    const SLUG: &'static str = "reuse-command";
    const OUTCOMES: &'static [OutcomeKind] = &[OutcomeKind::Pass, OutcomeKind::Fail, OutcomeKind::Unavailable];

    fn run(cx: &Context<'_>, params: &Params) -> CheckReport {
        match cx.reuse() {
            Ok(reuse) => judge(params, reuse, covered(cx, reuse)),
            Err(cause) => CheckReport::unavailable(cause),
        }
    }
}

/// What the run that the command means covers of the pull request's points. Nothing where another run counts, or nothing is
/// known of it: then the row on the sweep says why.
fn covered(cx: &Context<'_>, reuse: &Reuse) -> Option<Text> {
    let Some(Resolved::Run(run)) = &reuse.resolved else {
        return None;
    };
    let weighed = cx.sweep().ok().flatten()?.best.as_ref().filter(|best| best.run.id == *run)?;
    let (green, expected) = weighed.lanes.values().fold((0, 0), |(green, expected), lane| (green + lane.green, expected + lane.expected));
    let missing: Vec<String> = weighed.lanes.values().flat_map(|lane| &lane.missing).map(|name| format!("`{name}`")).collect();
    Some(if missing.is_empty() {
        text![", covers all ", expected, " jobs for its points"]
    } else {
        text![", covers ", green, " of ", expected, " jobs for its points, not "].and(Text::list(&missing, 3))
    })
}

fn judge(params: &Params, reuse: &Reuse, covered: Option<Text>) -> CheckReport {
    let wanted = |run: Option<u64>| run.map_or_else(|| format!("{} <run>", params.suggest), |run| format!("{} {run}", params.suggest));
    let Some(command) = &reuse.command else {
        return CheckReport::fail(missing(reuse, &wanted(reuse.suggestion)));
    };
    let shown = command.run.map_or_else(|| command.name.clone(), |run| format!("{} {run}", command.name));
    let given = text![link(shown, &command.url), " by ", code(&command.by), " (", command.association, ")"];
    let mut report = CheckReport::pass(match covered {
        Some(covered) => given.and(covered),
        None => given,
    });
    match (&reuse.resolved, command.run) {
        (Some(Resolved::Run(run)), None) => {
            report = report.note(text!["it names no run and now means ", code(run), "; a later push can change that: pin it with ", code(wanted(Some(*run)))]);
        }
        (Some(Resolved::Nothing(why)), _) => {
            let next = reuse.suggestion.filter(|other| Some(*other) != command.run);
            let advice: Text = next.map_or_else(
                || text!["run a full sweep on this head, then post ", code(wanted(None))],
                |run| text!["post ", code(wanted(Some(run)))],
            );
            report = report.note(text!["nothing can be reused by it now: ", why.clone(), "; "].and(advice));
        }
        (Some(Resolved::Unknown(cause)), _) => report = report.note(text!["whether its run can be reused could not be read: ", cause.to_string()]),
        _ => {}
    }
    report
}

fn missing(reuse: &Reuse, wanted: &str) -> Finding {
    let remedy = text!["Post ", code(wanted), " on a line of its own, by an owner, member or collaborator."];
    if let Some((login, association)) = &reuse.unauthorised {
        return Finding::new("no-authority", text!["the command on record is by ", code(login), " (", *association, "), who may not authorise it"], remedy).paste(wanted);
    }
    match reuse.near_misses.first() {
        Some(miss) => Finding::new("near-miss", text!["no reuse command counts; ", code(&miss.text), " is close"], text![miss.remedy.clone(), " "].and(remedy)).paste(wanted),
        None => Finding::new("missing", "no reuse command is on record", remedy).paste(wanted),
    }
}
