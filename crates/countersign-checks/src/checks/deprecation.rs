//! Nothing retired is benchmarked
//!
//! ## What it checks
//! Every scenario and arm (with or without speculative decoding) of every entry that the pull request touches, against the
//! models file on the target branch, for one day. Touched are entries that are new or changed, that run a changed script or
//! recipe, or that a new changelog item selects; of an entry whose change lies in one scenario, that scenario. The last
//! allowed day is allowed.
//!
//! ## Why
//! Machines are few; what is retired must not come back, nor take their time.
//!
//! ## Passes when
//! All of them are active on that day. The row says until when, and how many days are left.
//!
//! ## Fails when
//! One is retired on that day.
//!
//! ## Asks a person when
//! The models file contradicts itself about one, says something that cannot be interpreted, or does not speak of it.
//!
//! ## Does not apply when
//! Nothing is touched that runs; removed entries do not count, nor do entries whose script is deleted without another to take
//! its place: nothing can start them. Entries that are touched only through launchers, libraries
//! or hardware facts which they share with others are treated as the parameter `shared` says.
//!
//! ## How to fix
//! Take the retired entries or rows out of the pull request and out of its changelog item; or, where the file is wrong,
//! correct it in a pull request of its own first.
//!
//! Source: domain guide, section 8; product page, section 5.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, NaiveDate, Utc};
use countersign_core::outcome::{CheckReport, Finding, Findings, Location, Outcome, OutcomeKind};
use countersign_core::text::{code, link};
use countersign_core::{Cause, CauseKind, Text, text};
use countersign_matrix::{Entry, ScenarioType};
use countersign_records::models::{Arm, ModelsRules, ModelsTable, Query, Source, Status, utc_day};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::check::TypedCheck;
use crate::context::Context;
use crate::facts::affected::{Affected, Touch};

pub(crate) struct Deprecation;

/// Parameters of `deprecation`. How the models file is read is in the policy's section `models`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    /// The day that counts.
    day: Day,
    /// What becomes of entries that are touched only through files and facts that they share with others.
    shared: Shared,
}

/// The day that counts, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Day {
    /// On which the sign-off was written, or last edited.
    Signoff,
    /// On which the run was started that proves the points; without one, now.
    Sweep,
    /// On which it is judged.
    Now,
}

/// What becomes of entries that are touched only through what they share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Shared {
    /// They are judged like the others.
    Judge,
    /// They are not judged; retired ones are noted.
    Note,
}

/// One question to the models file: prefix, scenario, precision, arm.
type Subject = (Arc<str>, String, Arc<str>, Arm);
type Subjects = BTreeMap<Subject, BTreeSet<Arc<str>>>;

impl TypedCheck for Deprecation {
    type Params = Params;
    const SLUG: &'static str = "deprecation";
    const OUTCOMES: &'static [OutcomeKind] = &[
        OutcomeKind::Pass,
        OutcomeKind::Fail,
        OutcomeKind::NeedsConfirmation,
        OutcomeKind::NotApplicable,
        OutcomeKind::Unavailable,
    ];

    fn run(cx: &Context<'_>, params: &Params) -> CheckReport {
        let rules = match cx.section("models", &cx.policy().models) {
            Ok(rules) => rules,
            Err(cause) => return CheckReport::unavailable(&cause),
        };
        let affected = match cx.affected() {
            Ok(affected) => affected,
            Err(cause) => return CheckReport::unavailable(cause),
        };
        if let Some(report) = affected.unusable() {
            return report;
        }
        let none = &cx.policy().matrix.spec_decoding.none;
        let (own, shared) = subjects(affected, params, rules, none);
        if own.is_empty() && shared.is_empty() {
            return CheckReport::not_applicable("no entry that runs is touched");
        }
        let table = match cx.models(rules) {
            Ok(Some(table)) => table,
            Ok(None) => {
                let what = format!("{} on the target branch", cx.policy().paths.models);
                return CheckReport::unavailable(&Cause::new(CauseKind::Malformed, what, "the file is not there"));
            }
            Err(cause) => return CheckReport::unavailable(&cause),
        };
        let day = utc_day(instant(cx, params));
        let mut report = if own.is_empty() {
            CheckReport::not_applicable("only files that entries share with others are touched")
        } else {
            judge(cx, &table, &own, day)
        };
        for note in notes(&table, &shared, day) {
            report = report.note(note);
        }
        report
    }
}

fn instant(cx: &Context<'_>, params: &Params) -> DateTime<Utc> {
    match params.day {
        Day::Now => cx.evidence.now,
        Day::Signoff => cx.evidence.signoff.updated_at,
        Day::Sweep => {
            let best = cx.sweep().ok().flatten().and_then(|sweep| sweep.best.as_ref());
            best.filter(|best| best.good()).map_or(cx.evidence.now, |best| best.run.created_at)
        }
    }
}

/// What is asked for entries touched themselves, and for those touched through what they share.
fn subjects(affected: &Affected, params: &Params, rules: &ModelsRules, none: &str) -> (Subjects, Subjects) {
    let (mut own, mut shared) = (Subjects::new(), Subjects::new());
    for touched in &affected.entries {
        let Some(entry) = affected.head.masters.get(&touched.key) else {
            continue;
        };
        match affected.touch(touched) {
            Touch::Nothing => {}
            Touch::Own(scenarios) => collect(entry, |which| scenarios.has(which), rules, none, &mut own),
            Touch::Shared if params.shared == Shared::Judge => collect(entry, |_| true, rules, none, &mut own),
            Touch::Shared => collect(entry, |_| true, rules, none, &mut shared),
        }
    }
    (own, shared)
}

fn collect(entry: &Entry, wanted: impl Fn(ScenarioType) -> bool, rules: &ModelsRules, none: &str, out: &mut Subjects) {
    let head = &entry.head;
    let mut add = |scenario: String, spec: &str| {
        let arm = if spec == none { Arm::NonSpec } else { Arm::Spec };
        out.entry((head.model_prefix.clone(), scenario, head.precision.clone(), arm)).or_default().insert(head.key.clone());
    };
    if wanted(ScenarioType::Fixed) {
        for block in &entry.fixed {
            let lengths = u64::try_from(block.isl).ok().zip(u64::try_from(block.osl).ok());
            let name = lengths.and_then(|(isl, osl)| rules.scenario_of_lengths(isl, osl));
            let name = name.map_or_else(|| format!("{}/{}", block.isl, block.osl), str::to_owned);
            for row in &block.rows {
                add(name.clone(), &row.spec_decoding);
            }
        }
    }
    if wanted(ScenarioType::Agentic) {
        // The scenario without lengths of its own.
        let name = rules.scenarios.iter().find(|scenario| scenario.lengths.is_none());
        let name = name.map_or_else(|| ScenarioType::Agentic.name().to_owned(), |scenario| scenario.id.clone());
        for row in entry.agentic.iter().flat_map(|block| &block.rows) {
            add(name.clone(), &row.spec_decoding);
        }
    }
}

fn ask(table: &ModelsTable, (prefix, scenario, precision, arm): &Subject, day: NaiveDate) -> Status {
    let query = Query { prefix, scenario, precision, arm: *arm };
    table.status(&query, day)
}

fn name((prefix, scenario, precision, arm): &Subject) -> Text {
    let arm = match arm {
        Arm::Spec => " with speculative decoding",
        Arm::NonSpec => " without speculative decoding",
    };
    text![code(prefix), " ", code(scenario), " in ", &**precision, arm]
}

fn judge(cx: &Context<'_>, table: &ModelsTable, subjects: &Subjects, day: NaiveDate) -> CheckReport {
    let path = &cx.policy().paths.models;
    let at = |source: &Source| {
        let line = source.line as u64;
        Location { path: path.clone(), line: Some(line), url: Some(cx.evidence.file_url(&cx.evidence.trusted_sha, path, Some(line))) }
    };
    let says = |source: &Source| {
        let place = at(source);
        text![link(place.to_string(), place.url.as_deref().unwrap_or_default()), ": ", code(short(&source.text))]
    };
    let (mut wrong, mut questions, mut ends) = (Vec::new(), Vec::new(), BTreeMap::new());
    for (subject, keys) in subjects {
        let entries = Text::list(keys, 3);
        match ask(table, subject, day) {
            Status::Active { until: None, .. } => {}
            Status::Active { until: Some(last), days_left, .. } => {
                ends.insert((last, subject.clone()), days_left.unwrap_or_default());
            }
            Status::Deprecated { since, source, .. } => {
                let since = since.map_or_else(String::new, |since| format!(" since {since}"));
                wrong.push(
                    Finding::new(
                        "retired",
                        name(subject).with(format!(" is retired{since} (day that counts: {day}): ")).and(entries).with("; ").and(says(&source)),
                        text!["Take "].and(Text::list(keys, 3)).with(" out of this pull request and out of its changelog item, or remove the retired rows."),
                    )
                    .at(at(&source)),
                );
            }
            Status::Contradictory { sources, why } => {
                let mut message = name(subject).with(" (").and(entries).with("): ").with(why);
                for source in sources.iter().take(2) {
                    message = message.with("; ").and(says(source));
                }
                let finding = Finding::new(
                    "contradictory",
                    message,
                    text!["Decide whether it may still run: ", code(format!("/countersign confirm {} <reason>", Deprecation::SLUG)), "."],
                );
                questions.push(match sources.first() {
                    Some(source) => finding.at(at(source)),
                    None => finding,
                });
            }
            Status::Unknown { why, near } => {
                let mut message = name(subject).with(" (").and(entries).with("): ").with(why);
                if let Some(near) = &near {
                    message = message.with("; perhaps meant: ").and(says(near));
                }
                questions.push(Finding::new(
                    "not-listed",
                    message,
                    text!["Add it to ", code(path), " in a pull request of its own, or confirm that it may run: ", code(format!("/countersign confirm {} <reason>", Deprecation::SLUG)), "."],
                ));
            }
        }
    }
    let first = |findings: &Findings| {
        let all = findings.as_slice();
        let reason = all.first().map(|finding| finding.message.clone()).unwrap_or_default();
        if all.len() > 1 { reason.with(format!(" (and {} more)", all.len() - 1)) } else { reason }
    };
    if !wrong.is_empty() {
        // What a person would have to answer besides is of no use as long as something is retired.
        if let Some(findings) = Findings::from_vec(wrong) {
            let reason = first(&findings);
            return CheckReport::new(Outcome::Fail(findings), reason);
        }
    }
    if let Some(findings) = Findings::from_vec(questions) {
        let reason = first(&findings);
        return CheckReport::new(Outcome::NeedsConfirmation(findings), reason);
    }
    praise(subjects, &ends, day)
}

fn praise(subjects: &Subjects, ends: &BTreeMap<(NaiveDate, Subject), i64>, day: NaiveDate) -> CheckReport {
    let models: BTreeSet<String> = subjects.keys().map(|(prefix, scenario, ..)| format!("{prefix} {scenario}")).collect();
    let mut reason = text![format!("active on {day}: ")].and(Text::list(&models, 4));
    if let Some(((last, subject), left)) = ends.iter().next() {
        let days = match left {
            0 => "today is the last day".to_owned(),
            1 => "1 day left".to_owned(),
            days => format!("{days} days left"),
        };
        reason = reason.with("; ").and(name(subject)).with(format!(" until {last} ({days})"));
    }
    CheckReport::pass(reason)
}

/// What is retired among the entries that are touched only through what they share.
fn notes(table: &ModelsTable, shared: &Subjects, day: NaiveDate) -> Vec<Text> {
    let retired: BTreeSet<&Arc<str>> = shared
        .iter()
        .filter(|(subject, _)| matches!(ask(table, subject, day), Status::Deprecated { .. }))
        .flat_map(|(_, keys)| keys)
        .collect();
    if retired.is_empty() {
        return Vec::new();
    }
    vec![text!["a changed launcher or library is shared with retired entries: "].and(Text::list(retired, 4))]
}

fn short(text: &str) -> String {
    match text.char_indices().nth(120) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
