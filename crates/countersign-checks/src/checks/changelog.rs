//! The changelog will merge as it is
//!
//! ## What it checks
//! The bytes of the changelog at head against the merge base, by the strict rules that hold when the pull request is merged.
//! CI's own gate is laxer: it sees only the lines that a diff adds.
//!
//! ## Why
//! What passes CI and breaks these rules is found out only at the merge, when the sweep is paid for.
//!
//! ## Passes when
//! The history is there byte for byte, new items follow it with one blank line between, and their links are this pull
//! request's own or a placeholder.
//!
//! ## Fails when
//! Anything else: items in the middle, a changed or deleted item, a foreign or missing link, tabs, carriage returns, blank
//! lines too many or too few, no final newline, an item that breaks the form. Each with its line and what to do.
//!
//! ## Does not apply when
//! The changelog is not touched, or is new.
//!
//! ## How to fix
//! Do what the findings say. Where it can be derived, a block is given that is right as it stands: take the file from the
//! target branch, and append the block.
//!
//! Source: domain guide, section 7.2 (B); product page, section 5.

use countersign_core::evidence::ChangedFile;
use countersign_core::outcome::{CheckReport, Finding, Findings, Location, Outcome, OutcomeKind};
use countersign_core::text::code;
use countersign_core::{Cause, CauseKind, Observed, text};
use countersign_records::changelog::{ChangelogRules, Checked, Links, Side};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::check::TypedCheck;
use crate::context::Context;
use crate::facts::marked;
use crate::facts::points::Points;

pub(crate) struct Changelog;

/// Parameters of `changelog`. The form of links is in the policy's section `changelog`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {}

/// Most violations that are listed one by one.
const LISTED: usize = 10;

impl TypedCheck for Changelog {
    type Params = Params;
    const SLUG: &'static str = "changelog";
    const OUTCOMES: &'static [OutcomeKind] = &[
        OutcomeKind::Pass,
        OutcomeKind::Fail,
        OutcomeKind::NotApplicable,
        OutcomeKind::Unavailable,
    ];
    const LONG: bool = true;

    fn run(cx: &Context<'_>, _: &Params) -> CheckReport {
        let rules = match cx.section("changelog", &cx.policy().changelog) {
            Ok(rules) => rules,
            Err(cause) => return CheckReport::unavailable(&cause),
        };
        let path = &cx.policy().layout.changelog;
        let files = match cx.changed_files() {
            Ok(files) => files,
            Err(cause) => return CheckReport::unavailable(&cause),
        };
        if !files.iter().flat_map(ChangedFile::paths).any(|changed| changed == path) {
            return CheckReport::not_applicable(text![code(path), " is not touched"]);
        }
        let base = match cx.evidence.base_file(path) {
            Observed::Present(text) => text,
            Observed::Absent => return CheckReport::not_applicable(text![code(path), " is new"]),
            Observed::Unavailable(cause) => return CheckReport::unavailable(&cause),
        };
        let head = match cx.evidence.head_file(path) {
            Observed::Present(text) => text,
            Observed::Absent => {
                return CheckReport::fail(Finding::new(
                    "gone",
                    text![code(path), " is deleted or moved away"],
                    text!["Restore it from ", code(&cx.evidence.pull_request.base_ref), "."],
                ));
            }
            Observed::Unavailable(cause) => return CheckReport::unavailable(&cause),
        };
        let number = cx.evidence.pull_request.number.0;
        let Some(merge_base) = cx.evidence.merge_base.present() else {
            return CheckReport::not_applicable(text![code(path), " is new"]);
        };
        let history = cx.history(merge_base, &base, rules);
        let checked = history.check(head.as_bytes(), Links::PullRequest(number), rules);
        let mut report = judge(cx, rules, &checked, &base, &head);
        if let Ok(Points::Refused(problems)) = cx.points()
            && let Some(problem) = problems.first()
        {
            report = report.note(text!["CI refuses to start a sweep: "].and(marked(&problem.to_string())));
        }
        if let Observed::Present(tip) = cx.evidence.trusted_file(path)
            && tip != base
        {
            report = report.note(text![
                code(&cx.evidence.pull_request.base_ref),
                " has changed ",
                code(path),
                " since: merge it before the next sweep, or CI takes its new items for deleted ones"
            ]);
        }
        report
    }
}

fn judge(cx: &Context<'_>, rules: &ChangelogRules, checked: &Checked, base: &str, head: &str) -> CheckReport {
    let path = &cx.policy().layout.changelog;
    if let Some(old) = checked.violations.iter().find(|violation| violation.side == Side::Base) {
        return CheckReport::unavailable(&Cause::new(
            CauseKind::Malformed,
            format!("{path} at the merge base"),
            format!("it breaks the rules itself: {old}"),
        ));
    }
    let mut findings: Vec<Finding> = checked
        .violations
        .iter()
        .take(LISTED)
        .map(|violation| {
            Finding::new(
                "violation",
                text![format!("line {}: ", violation.line)].and(marked(&violation.what)),
                marked(&capital(&violation.fix)).with("."),
            )
            .at(Location::line(path, violation.line as u64))
        })
        .collect();
    let Some(first) = findings.first() else {
        let what = match (checked.additions.len(), checked.corrections) {
            (0, 0) => text!["the same bytes as at the merge base"],
            (0, links) => text![links, if links == 1 { " link is corrected" } else { " links are corrected" }],
            (1, _) => text!["1 item is appended as it must be"],
            (items, _) => text![items, " items are appended as they must be"],
        };
        return CheckReport::pass(what);
    };
    let mut reason = first.message.clone();
    let more = checked.violations.len() - 1;
    if more > 0 {
        reason = reason.with(format!(" (and {more} more)"));
    }
    if let Some(append) = suggestion(cx, rules, checked, base, head) {
        findings.push(
            Finding::new(
                "suggestion",
                "these bytes, appended to the target branch's file, are right as they stand",
                text![
                    "Take ",
                    code(path),
                    " from ",
                    code(&cx.evidence.pull_request.base_ref),
                    " and append this block, with the blank line at its start where there is one."
                ],
            )
            .paste(append),
        );
    }
    match Findings::from_vec(findings) {
        Some(findings) => CheckReport::new(Outcome::Fail(findings), reason),
        None => CheckReport::pass(reason),
    }
}

/// The block to append to the file as it is on the target branch now.
fn suggestion(cx: &Context<'_>, rules: &ChangelogRules, checked: &Checked, base: &str, head: &str) -> Option<String> {
    let path = &cx.policy().layout.changelog;
    let tip = match cx.evidence.trusted_file(path) {
        Observed::Present(tip) if *tip != *base => tip,
        Observed::Present(_) => return checked.suggestion.as_ref().map(|found| found.append.clone()),
        _ => return None,
    };
    let number = cx.evidence.pull_request.number.0;
    let history = cx.history(&cx.evidence.trusted_sha, &tip, rules);
    let found = history.check(head.as_bytes(), Links::PullRequest(number), rules);
    found.suggestion.map(|found| found.append)
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
