//! What a check found over several entries, folded into one report: failures before questions before the rest.

use countersign_core::Text;
use countersign_core::outcome::{CheckReport, Finding, Findings, Outcome};

/// See the module.
#[derive(Debug, Default)]
pub struct Tally {
    /// What is wrong.
    pub wrong: Vec<Finding>,
    /// What a person has to answer.
    pub asked: Vec<Finding>,
    /// What is good to know.
    pub notes: Vec<Text>,
}

impl Tally {
    /// FAIL with everything that is wrong; else a question with everything that is asked; else what is given. The reason is
    /// the first finding's message, and how many more there are.
    pub fn report(self, fine: impl FnOnce() -> CheckReport) -> CheckReport {
        let mut report = if let Some(findings) = Findings::from_vec(self.wrong) {
            let reason = reason(&findings);
            CheckReport::new(Outcome::Fail(findings), reason)
        } else if let Some(findings) = Findings::from_vec(self.asked) {
            let reason = reason(&findings);
            CheckReport::new(Outcome::NeedsConfirmation(findings), reason)
        } else {
            fine()
        };
        report.notes.extend(self.notes);
        report
    }
}

fn reason(findings: &Findings) -> Text {
    let findings = findings.as_slice();
    let first = findings
        .first()
        .map(|finding| finding.message.clone())
        .unwrap_or_default();
    if findings.len() > 1 {
        first.with(format!(" (and {} more)", findings.len() - 1))
    } else {
        first
    }
}
