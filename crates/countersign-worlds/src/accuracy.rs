//! How well verdicts agree with verdicts that are known: check by check, with a reason for everything that differs.
//!
//! An expectation stands beside its world: `NAME.yaml` and `NAME.expect.json`. Reasons are kept by people in one file, by name
//! and check; a difference without a reason counts as ours to answer for.

mod report;

use std::collections::BTreeMap;

use countersign_core::outcome::{Outcome, OutcomeKind};
use countersign_core::verdict::{Decision, Row, Verdict};
use countersign_core::{Cause, CauseKind};

pub use report::report;

/// What is known of a verdict.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// Name of the case, and of its world's file.
    pub name: String,
    /// The pull request.
    pub pull: u64,
    /// The day of the verdict.
    #[serde(default)]
    pub date: Option<String>,
    /// What kind of change it was.
    #[serde(default)]
    pub kind: String,
    /// The known decision.
    pub decision: String,
    /// The policy that was in force.
    #[serde(default)]
    pub policy: Option<String>,
    /// Where it is from.
    #[serde(default)]
    pub source: String,
    /// The known rows, by check.
    #[serde(default)]
    pub rows: BTreeMap<String, ExpectedRow>,
    /// Checks that are known to have failed.
    #[serde(default)]
    pub failing: Vec<String>,
    /// Whether `failing` names all of them.
    #[serde(default)]
    pub complete: bool,
    /// What the world was given although the case does not say it.
    #[serde(default)]
    pub assumed: Vec<String>,
    /// Why there is no world.
    #[serde(default)]
    pub none: Option<String>,
}

/// One known row.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedRow {
    /// `PASS`, `FAIL`, `N/A`, `WARN`, or `PASS or N/A`.
    pub status: String,
    /// Its reason, as retold.
    pub reason: String,
}

/// A reason for a difference.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// Who is right.
    pub right: Right,
    /// Why, in own words.
    pub why: String,
    /// The written rule.
    #[serde(default)]
    pub rule: String,
}

/// Who is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Right {
    /// This program.
    We,
    /// The known verdict.
    They,
    /// What the case tells is not enough to say.
    NotComparable,
}

/// Reasons by case, then by check. A case `*` is for all.
pub type Reasons = BTreeMap<String, BTreeMap<String, Reason>>;

/// Reads a file of reasons.
///
/// # Errors
/// With line and column.
pub fn reasons(text: &str) -> Result<Reasons, countersign_yaml::YamlError> {
    countersign_yaml::from_str(text, &countersign_yaml::Limits::default())
}

/// How one row compares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Match {
    /// Both fail it, or neither does.
    Agree,
    /// They differ; with whoever is right.
    Differ(Right, String),
    /// They differ, and nobody has said why.
    Unexplained,
    /// It cannot be compared, and why.
    NotComparable(String),
}

/// One row of one case.
#[derive(Debug, Clone)]
pub struct Compared {
    /// The check.
    pub slug: String,
    /// What was known.
    pub theirs: String,
    /// What was retold of the reason.
    pub their_reason: String,
    /// What this program says.
    pub ours: Option<OutcomeKind>,
    /// Why.
    pub our_reason: String,
    /// How they compare.
    pub result: Match,
}

/// One case.
#[derive(Debug, Clone)]
pub struct CaseResult {
    /// The case.
    pub expected: Expectation,
    /// This program's decision; none where there is no world.
    pub decision: Option<Decision>,
    /// Why there is none.
    pub failed: Option<String>,
    /// Rows, in the policy's order.
    pub rows: Vec<Compared>,
}

impl CaseResult {
    /// A case that cannot be judged.
    #[must_use]
    pub fn not_judged(expected: Expectation, why: String) -> Self {
        Self {
            expected,
            decision: None,
            failed: Some(why),
            rows: Vec::new(),
        }
    }

    /// A known failure that this program lets pass: the one error that must not be.
    #[must_use]
    pub fn is_wrong_pass(&self) -> bool {
        self.expected.decision == "REJECTED" && matches!(self.decision, Some(Decision::Pass | Decision::Warn))
    }
}

/// Compares a verdict with what is known.
#[must_use]
pub fn compare(expected: Expectation, verdict: &Verdict, reasons: &Reasons) -> CaseResult {
    let mut rows = Vec::new();
    for row in &verdict.rows {
        let known = expected.rows.get(&row.slug);
        if let Some(known) = known {
            rows.push(compare_row(&expected.name, &row.slug, known, Some(row), reasons));
        } else if expected.complete && expected.decision == "REJECTED" {
            // All failing checks are named, so every other one was fine.
            let fine = ExpectedRow {
                status: "PASS or N/A".to_owned(),
                reason: "not named among the failing checks".to_owned(),
            };
            rows.push(compare_row(&expected.name, &row.slug, &fine, Some(row), reasons));
        }
    }
    for (slug, known) in &expected.rows {
        if !verdict.rows.iter().any(|row| row.slug == *slug) {
            rows.push(compare_row(&expected.name, slug, known, None, reasons));
        }
    }
    CaseResult {
        decision: Some(verdict.decision),
        failed: None,
        rows,
        expected,
    }
}

fn compare_row(name: &str, slug: &str, known: &ExpectedRow, row: Option<&Row>, reasons: &Reasons) -> Compared {
    let ours = row.map(|row| row.report.outcome.kind());
    let result = match row {
        None => Match::NotComparable(
            "the policy of that day does not list this check, or this version does not have it".to_owned(),
        ),
        Some(row) => result(name, slug, known, row, reasons),
    };
    Compared {
        slug: slug.to_owned(),
        theirs: known.status.clone(),
        their_reason: known.reason.clone(),
        ours,
        our_reason: row.map(|row| row.full_reason().plain()).unwrap_or_default(),
        result,
    }
}

fn result(name: &str, slug: &str, known: &ExpectedRow, row: &Row, reasons: &Reasons) -> Match {
    let kind = row.report.outcome.kind();
    if let Outcome::Unavailable(causes) = &row.report.outcome {
        return Match::NotComparable(unavailable(causes));
    }
    let fails = known.status == "FAIL";
    let agree = match kind {
        OutcomeKind::Fail => fails,
        // A question is neither: whoever answers it decides.
        OutcomeKind::NeedsConfirmation => false,
        _ => !fails,
    };
    if agree {
        return Match::Agree;
    }
    let reason = reasons
        .get(name)
        .and_then(|case| case.get(slug))
        .or_else(|| reasons.get("*").and_then(|all| all.get(slug)));
    match reason {
        Some(Reason {
            right: Right::NotComparable,
            why,
            ..
        }) => Match::NotComparable(why.clone()),
        Some(reason) => {
            let rule = if reason.rule.is_empty() {
                String::new()
            } else {
                format!(" ({})", reason.rule)
            };
            Match::Differ(reason.right, format!("{}{rule}", reason.why))
        }
        None => Match::Unexplained,
    }
}

fn unavailable(causes: &[Cause]) -> String {
    let told = causes
        .iter()
        .filter(|cause| cause.kind == CauseKind::NotRecorded)
        .map(|cause| format!("the case does not tell {}", cause.what))
        .next();
    told.or_else(|| causes.first().map(ToString::to_string))
        .unwrap_or_else(|| "unavailable".to_owned())
}
