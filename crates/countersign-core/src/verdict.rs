//! From check reports to one decision.

use serde::{Deserialize, Serialize};

use crate::ids::{CommitSha, Login, PrNumber, RepoName, SignoffKey};
use crate::observed::Cause;
use crate::outcome::{CheckReport, Outcome, OutcomeKind};
use crate::text::Text;

/// How much a check weighs; the policy's choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// A FAIL rejects.
    Enforce,
    /// A FAIL or a question becomes a WARN.
    Warn,
    /// Shown, weakened like `warn`, and left out of the decision.
    Advisory,
}

/// What a sign-off comes to (product page, section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// All checks that count are fine.
    Pass,
    /// Fine, with warnings.
    Warn,
    /// A check fails.
    Rejected,
    /// A person has to answer.
    NeedsConfirmation,
    /// Something could not be read: no verdict is posted.
    Undecided,
}

impl Decision {
    /// As shown.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Warn => "WARN",
            Self::Rejected => "REJECTED",
            Self::NeedsConfirmation => "NEEDS CONFIRMATION",
            Self::Undecided => "CANNOT JUDGE YET",
        }
    }
}

/// One check's line in a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Row {
    /// Number, as the policy counts.
    pub number: u32,
    /// Stable name.
    pub slug: String,
    /// Name shown, as the policy words it.
    pub name: String,
    /// Weight.
    pub level: Level,
    /// What the check said, after the level was applied.
    pub report: CheckReport,
    /// Who lifted a FAIL or answered a question, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifted: Option<Lifted>,
}

/// A person's answer that changed a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Lifted {
    /// What the check had said.
    pub was: OutcomeKind,
    /// Who.
    pub by: Login,
    /// Why, untrusted text.
    pub why: String,
    /// The comment.
    pub url: String,
}

/// The judgement of one sign-off at one head.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Verdict {
    /// The repository.
    pub repository: RepoName,
    /// The pull request.
    pub pull_request: PrNumber,
    /// The sign-off.
    #[schemars(with = "String")]
    pub signoff: SignoffKey,
    /// Who signed.
    pub signer: Login,
    /// The assessed commit.
    pub head_sha: CommitSha,
    /// The commit of the trusted content.
    pub trusted_sha: CommitSha,
    /// The result.
    pub decision: Decision,
    /// All checks, in the policy's order.
    pub rows: Vec<Row>,
    /// Names of checks that the policy lists and this version does not have: `number (name)`.
    pub not_run: Vec<String>,
    /// Policy name.
    pub policy: String,
    /// Policy version.
    pub policy_version: String,
    /// Digest of the policy.
    pub policy_digest: String,
    /// Digest of the evidence.
    pub evidence_digest: String,
    /// Version of the program that judged.
    pub engine_version: String,
}

impl Verdict {
    /// The rule of product page, section 7: anything unavailable → no verdict yet; else a FAIL → REJECTED; else a question, or a
    /// check that did not run, → NEEDS CONFIRMATION; else a WARN → WARN; else PASS.
    #[must_use]
    pub fn decide(rows: &[Row], not_run: &[String]) -> Decision {
        let any = |kind: OutcomeKind| {
            rows.iter()
                .any(|row| row.level != Level::Advisory && row.report.outcome.kind() == kind)
        };
        if any(OutcomeKind::Unavailable) {
            Decision::Undecided
        } else if any(OutcomeKind::Fail) {
            Decision::Rejected
        } else if any(OutcomeKind::NeedsConfirmation) || !not_run.is_empty() {
            Decision::NeedsConfirmation
        } else if any(OutcomeKind::Warn) {
            Decision::Warn
        } else {
            Decision::Pass
        }
    }

    /// All causes for which something could not be read, without repeats.
    #[must_use]
    pub fn missing(&self) -> Vec<Cause> {
        let mut causes: Vec<Cause> = Vec::new();
        for row in self.rows.iter().filter(|row| row.level != Level::Advisory) {
            if let Outcome::Unavailable(missing) = &row.report.outcome {
                for cause in missing {
                    if !causes.contains(cause) {
                        causes.push(cause.clone());
                    }
                }
            }
        }
        causes
    }

    /// Rows of one kind.
    pub fn rows_of(&self, kind: OutcomeKind) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.report.outcome.kind() == kind)
    }
}

impl Level {
    /// Weakens a report: below `enforce`, a FAIL or a question is a WARN.
    #[must_use]
    pub fn apply(self, mut report: CheckReport) -> CheckReport {
        if self != Self::Enforce {
            report.outcome = match report.outcome {
                Outcome::Fail(findings) | Outcome::NeedsConfirmation(findings) => Outcome::Warn(findings),
                other => other,
            };
        }
        report
    }
}

impl Row {
    /// `✅ Check 1 (name): PASS — reason`, without markup.
    #[must_use]
    pub fn plain(&self) -> String {
        let kind = self.report.outcome.kind();
        format!(
            "{} Check {} ({}): {} — {}",
            kind.emoji(),
            self.number,
            self.name,
            kind.word(),
            self.full_reason().plain()
        )
    }

    /// The reason, and who lifted the row.
    #[must_use]
    pub fn full_reason(&self) -> Text {
        match &self.lifted {
            None => self.report.reason.clone(),
            Some(lifted) => self.report.reason.clone().and(crate::text![
                " (was ",
                lifted.was.word(),
                "; ",
                crate::text::code(&lifted.by),
                " ",
                crate::text::link("answered", &lifted.url),
                ": ",
                lifted.why.clone(),
                ")"
            ]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observed::CauseKind;
    use crate::outcome::{Finding, Findings};
    use proptest::prelude::*;

    fn outcome(index: usize) -> Outcome {
        let findings = || Findings::one(Finding::new("x", "m", "r"));
        match index {
            0 => Outcome::Pass,
            1 => Outcome::NotApplicable,
            2 => Outcome::Warn(findings()),
            3 => Outcome::Fail(findings()),
            4 => Outcome::NeedsConfirmation(findings()),
            _ => Outcome::Unavailable(vec![Cause::new(CauseKind::Transient, "a", "b")]),
        }
    }

    fn row(index: usize, level: Level) -> Row {
        Row {
            number: 0,
            slug: "x".into(),
            name: "x".into(),
            level,
            report: level.apply(CheckReport::new(outcome(index), "r")),
            lifted: None,
        }
    }

    /// An open question is neither a failure nor fine.
    #[test]
    fn each_outcome_has_its_decision_and_the_weightiest_counts() {
        let ladder = [
            (0, Decision::Pass),
            (1, Decision::Pass),
            (2, Decision::Warn),
            (4, Decision::NeedsConfirmation),
            (3, Decision::Rejected),
            (5, Decision::Undecided),
        ];
        for (step, (kind, wanted)) in ladder.iter().enumerate() {
            for (lighter, _) in &ladder[..=step] {
                let rows = [row(*kind, Level::Enforce), row(*lighter, Level::Enforce)];
                assert_eq!(Verdict::decide(&rows, &[]), *wanted, "{kind} beside {lighter}");
            }
        }
        for question_or_failure in [3, 4] {
            for (level, wanted) in [(Level::Warn, Decision::Warn), (Level::Advisory, Decision::Pass)] {
                let rows = [row(question_or_failure, level)];
                assert_eq!(Verdict::decide(&rows, &[]), wanted, "{question_or_failure} {level:?}");
            }
        }
        assert_eq!(
            Verdict::decide(&[row(0, Level::Enforce)], &["9 (new)".into()]),
            Decision::NeedsConfirmation
        );
    }

    proptest! {
        #[test]
        fn pass_needs_every_counting_row_fine(kinds in prop::collection::vec((0usize..6, 0usize..3), 0..12), skipped in 0usize..2) {
            let levels = [Level::Enforce, Level::Warn, Level::Advisory];
            let rows: Vec<Row> = kinds.iter().map(|(kind, level)| row(*kind, levels[*level])).collect();
            let not_run: Vec<String> = (0..skipped).map(|n| n.to_string()).collect();
            let decision = Verdict::decide(&rows, &not_run);
            let fine = kinds.iter().all(|(kind, level)| levels[*level] == Level::Advisory || *kind < 2);
            prop_assert_eq!(decision == Decision::Pass, fine && not_run.is_empty());
            if kinds.iter().any(|(kind, level)| *kind == 5 && levels[*level] != Level::Advisory) {
                prop_assert_eq!(decision, Decision::Undecided);
            }
        }

        #[test]
        fn a_further_failure_never_improves(kinds in prop::collection::vec(0usize..5, 0..8)) {
            let mut rows: Vec<Row> = kinds.iter().map(|kind| row(*kind, Level::Enforce)).collect();
            rows.push(row(3, Level::Enforce));
            prop_assert_eq!(Verdict::decide(&rows, &[]), Decision::Rejected);
        }
    }
}
