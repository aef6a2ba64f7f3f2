//! What is kept of a judged pull request: plain words and addresses, one JSON line.

use chrono::{DateTime, Utc};
use countersign_checks::checks;
use countersign_core::outcome::Location;
use countersign_core::{CheckReport, Decision, Evidence, Level, OutcomeKind, Verdict};
use serde::{Deserialize, Serialize};

/// What became of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Is {
    /// The rule is broken.
    #[serde(rename = "FAIL")]
    Fail,
    /// A person has to answer.
    #[serde(rename = "NEEDS CONFIRMATION")]
    Question,
    /// Allowed, but a reader should know.
    #[serde(rename = "WARN")]
    Warn,
    /// The rule holds.
    #[serde(rename = "PASS")]
    Pass,
    /// The rule does not apply.
    #[serde(rename = "N/A")]
    NotApplicable,
    /// Something that it needs is not in the clone or could not be read.
    #[serde(rename = "UNAVAILABLE")]
    Unavailable,
    /// It judges what people wrote, and there is nothing written.
    #[serde(rename = "NOT JUDGED")]
    NotJudged,
}

impl Is {
    /// Every one, gravest first.
    pub const ALL: [Self; 7] = [
        Self::Fail,
        Self::Question,
        Self::Warn,
        Self::Pass,
        Self::NotApplicable,
        Self::Unavailable,
        Self::NotJudged,
    ];

    /// As it is shown.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Fail => "FAIL",
            Self::Question => "NEEDS CONFIRMATION",
            Self::Warn => "WARN",
            Self::Pass => "PASS",
            Self::NotApplicable => "N/A",
            Self::Unavailable => "UNAVAILABLE",
            Self::NotJudged => "NOT JUDGED",
        }
    }

    fn of(kind: OutcomeKind) -> Self {
        match kind {
            OutcomeKind::Fail => Self::Fail,
            OutcomeKind::NeedsConfirmation => Self::Question,
            OutcomeKind::Warn => Self::Warn,
            OutcomeKind::Pass => Self::Pass,
            OutcomeKind::NotApplicable => Self::NotApplicable,
            OutcomeKind::Unavailable => Self::Unavailable,
        }
    }
}

/// What a pull request comes to. Without a sign-off that is no verdict: it says what is known already to stand in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// An enforced check fails.
    Rejected,
    /// None fails, and a person has to answer.
    Question,
    /// Nothing worse than warnings.
    Warned,
    /// Nothing stands in the way.
    Clear,
    /// It could not be judged at all.
    Unjudged,
}

impl Standing {
    /// Every one, gravest first.
    pub const ALL: [Self; 5] = [
        Self::Rejected,
        Self::Question,
        Self::Warned,
        Self::Clear,
        Self::Unjudged,
    ];

    /// As it is shown.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::Question => "question",
            Self::Warned => "warned",
            Self::Clear => "clear",
            Self::Unjudged => "not judged",
        }
    }
}

/// A place that a reader can open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Path, with the line where there is one.
    pub name: String,
    /// Address.
    pub url: String,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// Its code.
    pub code: String,
    /// The cause.
    pub message: String,
    /// What to do.
    pub remedy: String,
    /// What to paste.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paste: Option<String>,
    /// Where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
}

/// One row of the policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowResult {
    /// Number, as the policy counts.
    pub number: u32,
    /// Slug, as the policy has it.
    pub slug: String,
    /// Name, as the policy words it.
    pub name: String,
    /// Weight.
    pub level: Level,
    /// What became of it.
    pub is: Is,
    /// Why, one line.
    pub why: String,
    /// Findings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Said>,
    /// Facts that decide nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A judged pull request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullResult {
    /// Number.
    pub number: u64,
    /// Title, as far as the clone or the world tells.
    pub title: String,
    /// Whether the clone's target branch has it.
    pub merged: bool,
    /// The day that counts as now: of the head, or of the world.
    pub at: DateTime<Utc>,
    /// The head.
    pub head: String,
    /// The commit of the target branch whose files are trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted: Option<String>,
    /// Where the two parted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Address.
    pub url: String,
    /// Policy and version.
    pub policy: String,
    /// Whether a world told of sign-off, runs and artifacts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub world: bool,
    /// What it comes to.
    pub standing: Standing,
    /// The decision on the sign-off, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// Why it could not be judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The rows, in the policy's order.
    pub rows: Vec<RowResult>,
    /// Digest of all that this follows from. An equal one means an equal result.
    pub key: String,
}

impl PullResult {
    /// Takes over a verdict. Rows that judge what people wrote say so where there is no sign-off.
    pub(crate) fn fill(&mut self, verdict: &Verdict, evidence: &Evidence, signed: bool) {
        self.trusted = Some(verdict.trusted_sha.to_string());
        self.base = evidence.merge_base.present().map(ToString::to_string);
        self.rows = verdict
            .rows
            .iter()
            .map(|row| {
                let silent = !signed
                    && row
                        .slug
                        .split('+')
                        .filter_map(checks::find)
                        .any(|check| check.needs_conversation());
                let mut out = RowResult {
                    number: row.number,
                    slug: row.slug.clone(),
                    name: row.name.clone(),
                    level: row.level,
                    is: Is::NotJudged,
                    why: "it judges what people wrote, and a clone does not hold that".to_owned(),
                    findings: Vec::new(),
                    notes: Vec::new(),
                };
                if !silent {
                    told(&mut out, &row.report, evidence);
                }
                out
            })
            .collect();
        self.decision = signed.then_some(verdict.decision);
        self.standing = standing(&self.rows);
    }
}

fn told(out: &mut RowResult, report: &CheckReport, evidence: &Evidence) {
    out.is = Is::of(report.outcome.kind());
    out.why = report.reason.plain();
    out.notes = report.notes.iter().map(|note| note.plain()).collect();
    out.findings = report
        .outcome
        .findings()
        .iter()
        .map(|finding| Said {
            code: finding.code.clone(),
            message: finding.message.plain(),
            remedy: finding.remedy.plain(),
            paste: finding.paste.clone(),
            place: finding.location.as_ref().map(|location| place(location, evidence)),
        })
        .collect();
}

fn place(location: &Location, evidence: &Evidence) -> Place {
    let head = &evidence.pull_request.head_sha;
    Place {
        name: location.to_string(),
        url: location
            .url
            .clone()
            .unwrap_or_else(|| evidence.file_url(head, &location.path, location.line)),
    }
}

fn standing(rows: &[RowResult]) -> Standing {
    let any = |is: Is| rows.iter().any(|row| row.level != Level::Advisory && row.is == is);
    if any(Is::Fail) {
        Standing::Rejected
    } else if any(Is::Question) {
        Standing::Question
    } else if any(Is::Warn) {
        Standing::Warned
    } else {
        Standing::Clear
    }
}
