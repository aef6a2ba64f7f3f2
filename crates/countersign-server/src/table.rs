//! The check run of a verdict: the whole table, and a note at each changed line that is at fault. Pure.

use std::collections::BTreeSet;

use countersign_core::evidence::ChangedFile;
use countersign_core::render::{CommentOptions, comment, status_line};
use countersign_core::{Decision, Evidence, OutcomeKind, Verdict};
use countersign_github::publish::{Annotation, AnnotationLevel, CheckConclusion};

use crate::wishes::CheckRunWish;

/// Notes at most: a reader looks at no more, and each batch of fifty is a call.
const NOTES: usize = 50;

/// The check run that a decided verdict asks for.
pub(crate) fn check_run(
    verdict: &Verdict,
    evidence: &Evidence,
    options: &CommentOptions,
    name: &str,
    url: Option<String>,
) -> CheckRunWish {
    // The comment without its marker: what is read there is what is read here.
    let text = comment(verdict, options, None);
    let summary = text.split_once('\n').map_or("", |(_, rest)| rest).to_owned();
    CheckRunWish {
        head: verdict.head_sha.clone(),
        name: name.to_owned(),
        signoff: verdict.signoff,
        conclusion: match verdict.decision {
            Decision::Pass | Decision::Warn => CheckConclusion::Success,
            Decision::Rejected => CheckConclusion::Failure,
            Decision::NeedsConfirmation | Decision::Undecided => CheckConclusion::ActionRequired,
        },
        title: status_line(verdict).description,
        summary,
        url,
        annotations: notes(verdict, evidence),
    }
}

/// Findings with a line of a file that the pull request changes. GitHub shows notes on those only.
fn notes(verdict: &Verdict, evidence: &Evidence) -> Vec<Annotation> {
    let changed: BTreeSet<&str> = evidence
        .changed_files
        .present()
        .into_iter()
        .flatten()
        .map(|file: &ChangedFile| file.path.as_str())
        .collect();
    let mut notes = Vec::new();
    for row in &verdict.rows {
        let level = match row.report.outcome.kind() {
            OutcomeKind::Fail => AnnotationLevel::Failure,
            OutcomeKind::Warn | OutcomeKind::NeedsConfirmation => AnnotationLevel::Warning,
            _ => continue,
        };
        for finding in row.report.outcome.findings() {
            let Some(place) = finding
                .location
                .as_ref()
                .filter(|place| changed.contains(place.path.as_str()))
            else {
                continue;
            };
            let Some(line) = place.line else { continue };
            if notes.len() < NOTES {
                notes.push(Annotation {
                    path: place.path.clone(),
                    start_line: line,
                    end_line: line,
                    level,
                    message: format!("{}\n→ {}", finding.message.plain(), finding.remedy.plain()),
                    title: Some(format!("Check {} ({})", row.number, row.name)),
                });
            }
        }
    }
    notes
}
