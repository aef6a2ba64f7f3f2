//! An append-only change only appends
//!
//! ## What it checks
//! Where a new changelog item says `append-only`: the selected points at the merge base against those at head. Every point of
//! the base must still be there, unchanged; nothing outside of the selected entries and scenarios may differ; each new point
//! lies on a curve that is shown already, with one and the same image. Then, for every other changed file: can it reach a
//! point that was there before? All that the scripts of such a point would carry out, or all that its recipe says, is
//! compared at the merge base and at head.
//!
//! ## Why
//! Points of two measurements are drawn as one curve. That is honest only if nothing but the new points differs.
//!
//! ## Passes when
//! All of that holds, and every other change is proved not to reach an earlier point, or lies where no benchmark reads.
//!
//! ## Fails when
//! CI would refuse the items, or an existing point is gone or differs, or no point is new; or another change is proved to
//! alter what an earlier point does.
//!
//! ## Asks a person when
//! Whether another change reaches earlier points cannot be told. Each such file is listed with its changed lines and the
//! reason.
//!
//! ## Does not apply when
//! No new item is append-only.
//!
//! ## How to fix
//! Undo what is named, or drop `append-only` and sweep everything.
//!
//! Source: domain guide, section 4.6; product page, sections 5 and 6.

use std::collections::BTreeSet;

use countersign_core::evidence::ChangedFile;
use countersign_core::outcome::{CheckReport, Finding, Findings, Location, Outcome, OutcomeKind};
use countersign_core::text::code;
use countersign_core::{Cause, Observed, Text, text};
use countersign_launch::point::Statement;
use countersign_matrix::Problem;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::check::TypedCheck;
use crate::context::Context;
use crate::facts::affected::Items;
use crate::facts::isolation::{Isolation, Reach, Shared, changed_lines};
use crate::facts::marked;
use crate::facts::points::Points;
use crate::facts::tally::Tally;

pub(crate) struct AppendOnly;

/// Parameters of `append-only`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    /// Paths that no benchmark reads: folders ending in `/`, or whole paths. Changes there need no answer.
    #[serde(default)]
    harmless: Vec<String>,
    /// Folders, ending in `/`, of which nothing is read but by the launchers, scripts and recipes in them. A change elsewhere
    /// is always a question.
    #[serde(default)]
    followed: Vec<String>,
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
        match isolate(cx, params, &others) {
            Ok(tally) => {
                let proved = others.len();
                let files = if proved == 1 { " other changed file reaches" } else { " other changed files reach" };
                tally.report(|| CheckReport::pass(fine.with("; none of the ").with(proved).with(files).with(" an earlier point")))
            }
            Err(cause) => CheckReport::unavailable(&cause),
        }
    }
}

/// What each of the other files can reach.
fn isolate(cx: &Context<'_>, params: &Params, others: &BTreeSet<String>) -> Result<Tally, Cause> {
    let mut isolation = Isolation::new(cx, &params.followed)?;
    let mut tally = Tally::default();
    let mut open = Text::default();
    let mut count = 0;
    for path in others {
        match isolation.of(path)? {
            Reach::Isolated(why) => tally.notes.push(text![code(path), " is isolated: ", why]),
            Reach::Shared(shared) => tally.wrong.push(shared_change(path, &shared)),
            Reach::Open(why) => {
                count += 1;
                if count <= LISTED {
                    if count > 1 {
                        open = open.with("; ");
                    }
                    open = open.with(code(path)).and(lines(cx, path)).with(": ").with(why);
                }
            }
        }
    }
    if count > LISTED {
        open = open.with(format!(" and {} more", count - LISTED));
    }
    if count > 0 {
        tally.asked.push(Finding::new(
            "other-changes",
            text!["whether these changes touch the new points only cannot be proved: "].and(open),
            text![
                "Confirm that they touch the new points only: ",
                code(format!("/countersign confirm {} <reason>", AppendOnly::SLUG)),
                ", or move them into a pull request without ",
                code(FIELD),
                "."
            ],
        ));
    }
    Ok(tally)
}

/// The changed lines of a file at head, for a reader.
fn lines(cx: &Context<'_>, path: &str) -> Text {
    let (Observed::Present(before), Observed::Present(after)) = (cx.evidence.base_file(path), cx.evidence.head_file(path)) else {
        return Text::default();
    };
    match changed_lines(&before, &after) {
        Some((first, last)) if first < last => text![format!(" (lines {first} to {last})")],
        Some((first, _)) => text![format!(" (line {first})")],
        None => Text::default(),
    }
}

fn shared_change(path: &str, shared: &Shared) -> Finding {
    let first = |said: &Statement| said.text.lines().next().unwrap_or_default().chars().take(120).collect::<String>();
    let mut message = text![code(path), " changes what ", code(&shared.key), " does at ", shared.point.clone(), ", a point that was there before: "];
    message = match (&shared.before, &shared.after) {
        (Some(before), Some(after)) if first(before) == first(after) => message.with(code(first(after))).with(" runs under other conditions or with another environment"),
        (Some(before), Some(after)) => message.with("it did ").with(code(first(before))).with(" and does ").with(code(first(after))),
        (None, Some(after)) => message.with("it does ").with(code(first(after))).with(" besides"),
        (Some(before), None) => message.with("it no longer does ").with(code(first(before))),
        (None, None) => message,
    };
    let finding = Finding::new(
        "shared-change",
        message,
        text!["Confine the change to the new points, or drop ", code(FIELD), " and sweep everything."],
    );
    match shared.after.as_ref().or(shared.before.as_ref()) {
        Some(said) if said.source.line > 0 => finding.at(Location::line(said.source.file.to_string(), u64::from(said.source.line))),
        _ => finding,
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
