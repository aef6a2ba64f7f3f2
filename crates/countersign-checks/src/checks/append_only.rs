//! An append-only change only appends
//!
//! ## What it checks
//! Where a new changelog item says `append-only`: the selected points at the merge base against those at head. Every point of
//! the base must still be there, unchanged; nothing outside of the selected entries and scenarios may differ; each new point
//! lies on a curve that is shown already, with one and the same image. Then: which other files changed.
//!
//! ## Why
//! Points of two measurements are drawn as one curve. That is honest only if nothing but the new points differs.
//!
//! ## Passes when
//! All of that holds, and nothing else changed that could touch a benchmark.
//!
//! ## Fails when
//! CI would refuse the items, or an existing point is gone or differs, or no point is new.
//!
//! ## Asks a person when
//! Other files changed: whether that is confined to the new points is not for a machine to say. They are listed.
//!
//! ## Does not apply when
//! No new item is append-only.
//!
//! ## How to fix
//! Undo what is named, or drop `append-only` and sweep everything.
//!
//! Source: domain guide, section 4.6; product page, section 5.

use std::collections::BTreeSet;

use countersign_core::evidence::ChangedFile;
use countersign_core::outcome::{CheckReport, Finding, Findings, Location, Outcome, OutcomeKind};
use countersign_core::text::code;
use countersign_core::{Observed, Text, text};
use countersign_matrix::Problem;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::check::TypedCheck;
use crate::context::Context;
use crate::facts::affected::Items;
use crate::facts::marked;
use crate::facts::points::Points;

pub(crate) struct AppendOnly;

/// Parameters of `append-only`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    /// Paths that no benchmark reads: folders ending in `/`, or whole paths. Changes there need no answer.
    #[serde(default)]
    harmless: Vec<String>,
}

/// The field of an item, as it is written in the changelog.
const FIELD: &str = "append-only";

/// Most problems that are listed.
const LISTED: usize = 10;

impl TypedCheck for AppendOnly {
    type Params = Params;
    const SLUG: &'static str = "append-only";
    const OUTCOMES: &'static [OutcomeKind] = &[
        OutcomeKind::Pass,
        OutcomeKind::Fail,
        OutcomeKind::NeedsConfirmation,
        OutcomeKind::NotApplicable,
        OutcomeKind::Unavailable,
    ];

    fn run(cx: &Context<'_>, params: &Params) -> CheckReport {
        let affected = match cx.affected() {
            Ok(affected) => affected,
            Err(cause) => return CheckReport::unavailable(cause),
        };
        let items = match &affected.items {
            Items::Untouched => return CheckReport::not_applicable("the changelog is not touched"),
            Items::Added(items) => items.iter().filter(|item| item.append_only).count(),
            Items::Unreadable(problems) => return unreadable(cx, problems),
        };
        if items == 0 {
            return CheckReport::not_applicable(text!["no new changelog item is ", code(FIELD)]);
        }
        let selected = match cx.points() {
            Err(cause) => return CheckReport::unavailable(cause),
            Ok(Points::Nothing) => return CheckReport::not_applicable("the changelog selects nothing"),
            Ok(Points::Refused(problems)) => return refused(problems),
            Ok(Points::Selected(selected)) => selected,
        };
        let points = selected.selection.throughput.len();
        let entries: BTreeSet<&str> = selected.selection.entries.iter().map(|entry| &*entry.key).collect();
        let files = match cx.changed_files() {
            Ok(files) => files,
            Err(cause) => return CheckReport::unavailable(&cause),
        };
        let fine = text![points, if points == 1 { " point is new on " } else { " points are new on " }]
            .and(Text::list(&entries, 4))
            .with(", and every earlier point is unchanged");
        let others = others(cx, params, files);
        if others.is_empty() {
            return CheckReport::pass(fine.with("; nothing else that a benchmark reads has changed"));
        }
        CheckReport::confirm(Finding::new(
            "other-changes",
            fine.with("; but these files changed too: ").and(Text::list(&others, 8)),
            text![
                "Confirm that they touch the new points only: ",
                code(format!("/countersign confirm {} <reason>", AppendOnly::SLUG)),
                ", or move them into a pull request without ",
                code(FIELD),
                "."
            ],
        ))
    }
}

fn others(cx: &Context<'_>, params: &Params, files: &[ChangedFile]) -> BTreeSet<String> {
    let layout = &cx.policy().layout;
    let harmless = |path: &str| {
        params.harmless.iter().any(|known| {
            if known.ends_with('/') {
                path.starts_with(known.as_str())
            } else {
                path == known
            }
        })
    };
    files
        .iter()
        .flat_map(ChangedFile::paths)
        .filter(|path| *path != layout.changelog && layout.masters.iter().all(|master| master != path) && !harmless(path))
        .map(str::to_owned)
        .collect()
}

/// Items that cannot be read may be append-only ones if the head speaks of that more often than the base.
fn unreadable(cx: &Context<'_>, problems: &[Problem]) -> CheckReport {
    let path = &cx.policy().layout.changelog;
    let count = |file: Observed<std::sync::Arc<str>>| match file {
        Observed::Present(text) => Ok(text.matches(FIELD).count()),
        Observed::Absent => Ok(0),
        Observed::Unavailable(cause) => Err(cause),
    };
    match (count(cx.evidence.base_file(path)), count(cx.evidence.head_file(path))) {
        (Ok(before), Ok(after)) if after <= before => {
            CheckReport::not_applicable(text!["no new changelog item is ", code(FIELD)])
        }
        (Ok(_), Ok(_)) => refused(problems),
        (Err(cause), _) | (_, Err(cause)) => CheckReport::unavailable(&cause),
    }
}

fn refused(problems: &[Problem]) -> CheckReport {
    let findings = problems.iter().take(LISTED).map(|problem| {
        let finding = Finding::new(
            "not-append-only",
            marked(&problem.message),
            text!["Mend it: "].and(marked(&problem.remedy)).with("; or drop ").with(code(FIELD)).with(" and sweep everything."),
        );
        if problem.line > 0 {
            finding.at(Location::line(problem.file.to_string(), u64::from(problem.line)))
        } else {
            finding
        }
    });
    let mut reason = problems.first().map(|problem| marked(&problem.message)).unwrap_or_default();
    if problems.len() > 1 {
        reason = reason.with(format!(" (and {} more)", problems.len() - 1));
    }
    match Findings::from_vec(findings.collect()) {
        Some(findings) => CheckReport::new(Outcome::Fail(findings), reason),
        None => CheckReport::not_applicable("the changelog selects nothing"),
    }
}
