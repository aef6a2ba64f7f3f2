//! What a check collects over many points and files, and how it becomes one report.

use std::collections::BTreeSet;

use countersign_core::outcome::{CheckReport, Finding, Findings, Outcome};
use countersign_core::{Text, text};
use countersign_launch::Source;

use countersign_core::outcome::Location;

/// Most findings that are shown; the rest is counted.
const SHOWN: usize = 25;

/// Most notes that are shown.
const SHOWN_NOTES: usize = 12;

/// What was found so far. The same thing found twice is one finding.
#[derive(Debug, Default)]
pub struct Sorted {
    wrong: Vec<Finding>,
    questions: Vec<Finding>,
    notes: Vec<Text>,
    seen: BTreeSet<String>,
}

impl Sorted {
    /// Something that is against the rule.
    pub fn wrong(&mut self, finding: Finding) {
        if self.is_new(&finding) {
            self.wrong.push(finding);
        }
    }

    /// Something that only a person can answer.
    pub fn question(&mut self, finding: Finding) {
        if self.is_new(&finding) {
            self.questions.push(finding);
        }
    }

    /// Something worth knowing that decides nothing.
    pub fn note(&mut self, note: Text) {
        if self.seen.insert(note.plain()) {
            self.notes.push(note);
        }
    }

    fn is_new(&mut self, finding: &Finding) -> bool {
        let place = finding.location.as_ref().map(ToString::to_string).unwrap_or_default();
        self.seen
            .insert(format!("{} {place} {}", finding.code, finding.message.plain()))
    }

    /// The report: FAIL before a question before what `otherwise` says.
    pub fn report(mut self, otherwise: impl FnOnce() -> CheckReport) -> CheckReport {
        let mut notes = std::mem::take(&mut self.notes);
        let mut report = if self.wrong.is_empty() && self.questions.is_empty() {
            otherwise()
        } else if self.wrong.is_empty() {
            filled(self.questions, Outcome::NeedsConfirmation)
        } else {
            for question in self.questions.iter().take(SHOWN_NOTES) {
                notes.insert(0, text!["open besides: "].and(question.message.clone()));
            }
            filled(self.wrong, Outcome::Fail)
        };
        let more = notes.len().saturating_sub(SHOWN_NOTES);
        report.notes.extend(notes.into_iter().take(SHOWN_NOTES));
        if more > 0 {
            report.notes.push(text!["and ", more, " more notes"]);
        }
        report
    }
}

fn filled(mut all: Vec<Finding>, outcome: impl FnOnce(Findings) -> Outcome) -> CheckReport {
    let count = all.len();
    all.truncate(SHOWN);
    let mut reason = all.first().map(|finding| finding.message.clone()).unwrap_or_default();
    if count > 1 {
        reason = reason.with(format!(" (and {} more)", count - 1));
    }
    match Findings::from_vec(all) {
        Some(findings) => {
            let mut report = CheckReport::new(outcome(findings), reason);
            if count > SHOWN {
                report.notes.push(text![count - SHOWN, " more findings are not listed"]);
            }
            report
        }
        // Never reached with an empty list; then there is nothing to say.
        None => CheckReport::not_applicable("nothing was found"),
    }
}

/// The place of a statement, for a reader.
#[must_use]
pub fn place(source: &Source) -> Location {
    Location {
        path: source.file.to_string(),
        line: (source.line > 0).then_some(u64::from(source.line)),
        url: None,
    }
}
