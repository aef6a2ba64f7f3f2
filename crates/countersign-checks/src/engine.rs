//! Runs the checks that the policy lists and folds their reports into a verdict.

use std::borrow::Cow;
use std::sync::OnceLock;

use countersign_core::outcome::{CheckReport, Findings, Outcome, OutcomeKind};
use countersign_core::verdict::{Row, Verdict};
use countersign_core::{Evidence, Text, digest};
use countersign_policy::{CheckEntry, LoadedPolicy};

use crate::checks as registry;
use crate::context::Context;
use crate::lift;
use crate::memo::Memo;
use crate::share::share;

/// The version of the program that judged, as stored with a verdict.
pub const ENGINE_VERSION: &str = env!("CARGO_PKG_VERSION");

/// What [`evaluate_watched`] tells while it works, from the thread that works on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A check begins.
    Begins(&'static str),
    /// It has said what it has to say. Facts that it was the first to ask for are part of its time.
    Ended(&'static str),
}

/// What threads share out.
#[derive(Clone, Copy)]
enum Job {
    /// One of the checks.
    Check(usize),
    /// The digest of the evidence.
    Digest,
    /// What changed scripts say, which no check waits for as long as launches are derived.
    Scripts,
}

/// Judges. Same evidence and policy, same verdict, to the byte.
#[must_use]
pub fn evaluate(evidence: &Evidence, policy: &LoadedPolicy) -> Verdict {
    evaluate_watched(evidence, policy, Memo::default(), &|_| {})
}

/// Judges, with what earlier judgements by the same policy have read, and says which check it is at: for whoever measures.
/// Neither changes the verdict.
#[must_use]
pub fn evaluate_watched(
    evidence: &Evidence,
    policy: &LoadedPolicy,
    memo: Memo,
    watch: &(dyn Fn(Step) + Sync),
) -> Verdict {
    let then = policy_then(evidence, policy);
    let cx = Context::with_memo(evidence, &then, memo);
    let mut rows = Vec::new();
    let mut not_run = Vec::new();
    let known = policy
        .policy
        .checks
        .iter()
        .flat_map(CheckEntry::slugs)
        .filter_map(registry::find);
    let jobs: Vec<_> = known.map(|check| (check, OnceLock::new())).collect();
    // Long ones first, and with them what no check waits for.
    let mut order: Vec<Job> = (0..jobs.len()).map(Job::Check).collect();
    order.sort_by_key(|job| matches!(job, Job::Check(at) if !jobs[*at].0.long()));
    let after = order.len().min(1);
    order.splice(after..after, [Job::Digest, Job::Scripts]);
    let evidence_digest = OnceLock::new();
    share(order.len(), &|place| {
        let (check, report) = match order[place] {
            Job::Digest => {
                // Evidence holds no map with keys that are no text, so this cannot fail; an empty digest would be seen by
                // replay.
                let _first = evidence_digest.set(digest::digest_of(evidence).unwrap_or_default());
                return;
            }
            Job::Scripts => return cx.read_scripts_ahead(),
            Job::Check(at) => &jobs[at],
        };
        watch(Step::Begins(check.slug()));
        let _first = report.set(check.run(&cx));
        watch(Step::Ended(check.slug()));
    });
    let mut reports = jobs
        .into_iter()
        .filter_map(|(check, report)| Some((check.slug(), report.into_inner()?)));
    for entry in &policy.policy.checks {
        let missing: Vec<&str> = entry.slugs().filter(|slug| registry::find(slug).is_none()).collect();
        if !missing.is_empty() {
            not_run.push(format!("{} ({})", entry.number, missing.join(", ")));
        }
        let own = reports.by_ref().take(entry.slugs().count() - missing.len());
        if let Some(report) = join(own.collect()) {
            rows.push(lift::apply(&cx, entry, row(entry, report)));
        }
    }
    let decision = Verdict::decide(&rows, &not_run);
    Verdict {
        repository: evidence.repository.clone(),
        pull_request: evidence.pull_request.number,
        signoff: evidence.signoff.key,
        signer: evidence.signoff.author.clone(),
        head_sha: evidence.pull_request.head_sha.clone(),
        trusted_sha: evidence.trusted_sha.clone(),
        decision,
        rows,
        not_run,
        policy: policy.policy.name.clone(),
        policy_version: policy.policy.version.clone(),
        policy_digest: policy.digest.clone(),
        evidence_digest: evidence_digest.into_inner().unwrap_or_default(),
        engine_version: ENGINE_VERSION.to_owned(),
    }
}

/// The policy with the rules of the matrix as they were where the pull request left its target. A branch is swept by the
/// generator that it started from; it is read there, so that no pull request can change it for itself.
#[must_use]
pub fn policy_then<'p>(evidence: &Evidence, policy: &'p LoadedPolicy) -> Cow<'p, LoadedPolicy> {
    let text = |path: &str| evidence.base_file(path).present().cloned();
    match policy.policy.matrix.then(&text) {
        Cow::Borrowed(_) => Cow::Borrowed(policy),
        Cow::Owned(matrix) => {
            let mut policy = policy.clone();
            policy.policy.matrix = matrix;
            Cow::Owned(policy)
        }
    }
}

/// Whether the newest reuse command means a run that can be reused now. `None`: there is no command, or it could not be read.
#[must_use]
pub fn reuse_usable(evidence: &Evidence, policy: &LoadedPolicy) -> Option<bool> {
    let then = policy_then(evidence, policy);
    let cx = Context::new(evidence, &then);
    match cx.reuse().ok()?.resolved.as_ref()? {
        crate::facts::reuse::Resolved::Run(_) => Some(true),
        crate::facts::reuse::Resolved::Nothing(_) => Some(false),
        crate::facts::reuse::Resolved::Unknown(_) => None,
    }
}

fn row(entry: &CheckEntry, report: CheckReport) -> Row {
    Row {
        number: entry.number,
        slug: entry.slug.clone(),
        name: entry.name.clone(),
        level: entry.level,
        report: entry.level.apply(report),
        lifted: None,
    }
}

/// Several checks under one number make one row: the gravest outcome counts, all reasons are kept.
fn join(reports: Vec<(&str, CheckReport)>) -> Option<CheckReport> {
    let mut reports = reports;
    if reports.len() < 2 {
        return reports.pop().map(|(_, report)| report);
    }
    // N/A says less than PASS: a row that is PASS for one half and N/A for the other is PASS.
    let kind = reports.iter().map(|(_, report)| report.outcome.kind()).min()?;
    let mut findings = Vec::new();
    let mut causes = Vec::new();
    let mut reason = Text::default();
    let mut notes = Vec::new();
    for (slug, report) in reports {
        if !reason.is_empty() {
            reason = reason.with("; ");
        }
        reason = reason.with(format!("{slug}: ")).and(report.reason);
        notes.extend(report.notes);
        match report.outcome {
            Outcome::Unavailable(missing) => causes.extend(missing),
            ref outcome if outcome.kind() == kind => findings.extend(outcome.findings().to_vec()),
            _ => {}
        }
    }
    let outcome = match (kind, Findings::from_vec(findings)) {
        (OutcomeKind::Fail, Some(findings)) => Outcome::Fail(findings),
        (OutcomeKind::NeedsConfirmation, Some(findings)) => Outcome::NeedsConfirmation(findings),
        (OutcomeKind::Warn, Some(findings)) => Outcome::Warn(findings),
        (OutcomeKind::Pass, _) => Outcome::Pass,
        (OutcomeKind::NotApplicable, _) => Outcome::NotApplicable,
        _ => Outcome::Unavailable(causes),
    };
    Some(CheckReport { outcome, reason, notes })
}
