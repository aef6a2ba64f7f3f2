//! The signer owns what changed
//!
//! ## What it checks
//! Every changed path, both paths of a rename, against CODEOWNERS at the target branch's tip. The last matching line
//! decides. A line that matches everything takes any owner listed anywhere in the file; every other line takes its own
//! owners only.
//!
//! ## Why
//! A sign-off of somebody who does not answer for the changed files proves nothing.
//!
//! ## Passes when
//! The signer owns every specifically owned path, and is a listed owner (or a member of a listed team) for the rest.
//!
//! ## Fails when
//! A specifically owned path has other owners, or the signer is no listed owner at all.
//!
//! ## Asks a person when
//! Membership of a team that decides cannot be read, or a broken CODEOWNERS line may have been meant for a path.
//!
//! ## How to fix
//! An owner of the named paths signs off, or the paths leave the pull request.
//!
//! Source: domain guide, section 2; product page, section 5.

use std::collections::BTreeMap;

use countersign_codeowners::{CodeOwners, Match, Owner};
use countersign_core::evidence::Association;
use countersign_core::outcome::{CheckReport, Finding, Findings, Location, Outcome, OutcomeKind};
use countersign_core::text::code;
use countersign_core::{Observed, Text, text};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::check::TypedCheck;
use crate::context::Context;

pub(crate) struct CodeOwner;

/// Parameters of `codeowner`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    /// Author associations that pass, with a note, where only an unreadable team could tell. Empty = such a row asks a person.
    unreadable_team_passes: Vec<Association>,
}

/// What the signer is to a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    Owner,
    /// No, for certain.
    Stranger,
    /// Only this team could tell, and it cannot be read.
    Unreadable(String),
}

impl TypedCheck for CodeOwner {
    type Params = Params;
    const SLUG: &'static str = "codeowner";
    const NEEDS_CONVERSATION: bool = true;
    const OUTCOMES: &'static [OutcomeKind] = &[OutcomeKind::Pass, OutcomeKind::Fail, OutcomeKind::NeedsConfirmation, OutcomeKind::Unavailable];

    fn run(cx: &Context<'_>, params: &Params) -> CheckReport {
        let files = match cx.changed_files() {
            Ok(files) => files,
            Err(cause) => return CheckReport::unavailable(&cause),
        };
        let (path, owners) = match cx.codeowners() {
            Observed::Present(found) => (&found.0, &found.1),
            Observed::Unavailable(cause) => return CheckReport::unavailable(cause),
            Observed::Absent => {
                return CheckReport::fail(Finding::new(
                    "no-codeowners",
                    text!["the target branch has no CODEOWNERS file, so nobody can sign"],
                    text!["Add ", code(cx.policy().paths.codeowners.first().map_or("CODEOWNERS", String::as_str)), " to ", code(&cx.evidence.pull_request.base_ref), "."],
                ));
            }
        };
        judge(cx, params, path, owners, files)
    }
}

fn judge(cx: &Context<'_>, params: &Params, codeowners_path: &str, owners: &CodeOwners, files: &[countersign_core::evidence::ChangedFile]) -> CheckReport {
    let signer = &cx.evidence.signoff.author;
    let passes_unread = params.unreadable_team_passes.contains(&cx.evidence.signoff.association);
    // Paths grouped by the line that decides, so that a row stays short with a thousand files.
    let mut strangers: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    let mut unread: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut owned: BTreeMap<usize, String> = BTreeMap::new();
    let mut doubted: BTreeMap<usize, (String, Vec<&str>)> = BTreeMap::new();
    let mut loose = 0usize;
    for path in files.iter().flat_map(countersign_core::evidence::ChangedFile::paths) {
        for doubt in owners.doubts_about(path) {
            doubted.entry(doubt.line).or_insert_with(|| (doubt.text.clone(), Vec::new())).1.push(path);
        }
        match owners.owners_of(path) {
            Match::Owned { rule, owners: own } if !rule.is_catch_all() => match standing(cx, own) {
                Standing::Owner => {
                    owned.insert(rule.line(), rule.pattern().to_owned());
                }
                Standing::Stranger => strangers.entry(rule.line()).or_default().push(path),
                Standing::Unreadable(team) => unread.entry(team).or_default().push(path),
            },
            _ => loose += 1,
        }
    }
    let listed = if loose > 0 { standing(cx, &owners.listed_owners().into_iter().cloned().collect::<Vec<_>>()) } else { Standing::Owner };
    if listed == Standing::Stranger {
        let names: Vec<String> = owners.listed_owners().iter().filter(|owner| matches!(owner, Owner::User(_))).map(ToString::to_string).collect();
        return CheckReport::fail(Finding::new(
            "not-listed",
            text![code(signer), " is no owner listed in ", code(codeowners_path), ", but ", loose, " changed paths need one"],
            text!["Let one of these sign off: "].and(Text::list(names, 12)).with("."),
        ));
    }
    if !strangers.is_empty() {
        return refuse(cx, codeowners_path, owners, &strangers);
    }
    if let Standing::Unreadable(team) = &listed {
        unread.entry(team.clone()).or_default().push("paths that any listed owner may sign");
    }
    let mut report = if unread.is_empty() || passes_unread {
        CheckReport::pass(praise(cx, &owned, loose))
    } else {
        let findings = unread
            .iter()
            .map(|(team, paths)| {
                Finding::new(
                    "team-unreadable",
                    text!["whether ", code(signer), " belongs to ", code(team), " cannot be read; it decides for "].and(Text::list(paths, 4)),
                    text!["Confirm the membership with ", code(format!("/countersign confirm {} <reason>", CodeOwner::SLUG)), ", or list the signer by name in ", code(codeowners_path), "."],
                )
            })
            .collect();
        ask(findings)
    };
    if passes_unread {
        for team in unread.keys() {
            report = report.note(text!["membership of ", code(team), " cannot be read; accepted since the signer is ", cx.evidence.signoff.association.word()]);
        }
    }
    if !doubted.is_empty() && report.outcome.kind() == OutcomeKind::Pass {
        return ask(
            doubted
                .iter()
                .map(|(line, (shown, paths))| {
                    Finding::new(
                        "broken-line",
                        text![code(codeowners_path), " line ", *line, " is not valid (", code(shown), ") and may have been meant for "].and(Text::list(paths, 4)),
                        text!["Mend the line on ", code(&cx.evidence.pull_request.base_ref), ", or confirm with ", code(format!("/countersign confirm {} <reason>", CodeOwner::SLUG)), "."],
                    )
                    .at(Location::line(codeowners_path, *line as u64))
                })
                .collect(),
        );
    }
    report
}

fn ask(findings: Vec<Finding>) -> CheckReport {
    let reason = findings.first().map(|finding| finding.message.clone()).unwrap_or_default();
    match Findings::from_vec(findings) {
        Some(findings) => CheckReport::new(Outcome::NeedsConfirmation(findings), reason),
        None => CheckReport::pass(reason),
    }
}

fn standing(cx: &Context<'_>, owners: &[Owner]) -> Standing {
    let signer = cx.evidence.signoff.author.as_str();
    let mut unreadable = None;
    for owner in owners {
        match owner {
            Owner::User(_) if owner.is_user(signer) => return Standing::Owner,
            Owner::Team { org, slug } => match cx.evidence.people.signer_teams.get(&format!("{org}/{slug}").to_ascii_lowercase()) {
                Some(Observed::Present(true)) => return Standing::Owner,
                Some(Observed::Present(false) | Observed::Absent) => {}
                Some(Observed::Unavailable(_)) | None => unreadable = unreadable.or_else(|| Some(owner.to_string())),
            },
            _ => {}
        }
    }
    unreadable.map_or(Standing::Stranger, Standing::Unreadable)
}

fn refuse(cx: &Context<'_>, codeowners_path: &str, owners: &CodeOwners, strangers: &BTreeMap<usize, Vec<&str>>) -> CheckReport {
    let signer = &cx.evidence.signoff.author;
    let findings: Vec<Finding> = strangers
        .iter()
        .filter_map(|(line, paths)| {
            let rule = owners.rules().iter().find(|rule| rule.line() == *line)?;
            let who: Vec<String> = rule.owners().iter().map(ToString::to_string).collect();
            Some(
                Finding::new(
                    "not-an-owner",
                    text![code(signer), " does not own "].and(Text::list(paths, 4)).with(" (").with(code(codeowners_path)).with(" line ").with(*line).with(")"),
                    text!["Let one of these sign off: "].and(Text::list(who, 12)).with("."),
                )
                .at(Location::line(codeowners_path, *line as u64)),
            )
        })
        .collect();
    let reason = findings.first().map(|finding| finding.message.clone()).unwrap_or_default();
    match Findings::from_vec(findings) {
        Some(findings) => CheckReport::new(Outcome::Fail(findings), reason),
        None => CheckReport::pass(reason),
    }
}

fn praise(cx: &Context<'_>, owned: &BTreeMap<usize, String>, loose: usize) -> Text {
    let signer = &cx.evidence.signoff.author;
    let mut reason = text![code(signer)];
    if owned.is_empty() {
        reason = reason.with(" is a listed owner; only paths that any listed owner may sign have changed");
    } else {
        reason = reason.with(" owns ").and(Text::list(owned.values(), 4));
        if loose > 0 {
            reason = reason.with("; the rest may be signed by any listed owner");
        }
    }
    reason
}
