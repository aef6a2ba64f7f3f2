//! The one line of a commit status: the states that a reader can tell apart (product page, section 7).

use serde::{Deserialize, Serialize};

use crate::outcome::OutcomeKind;
use crate::verdict::{Decision, Verdict};

/// The colour of a commit status on GitHub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Merge is allowed.
    Success,
    /// Merge is refused.
    Failure,
    /// Something is awaited.
    Pending,
    /// It cannot be judged.
    Error,
}

/// A commit status: colour and text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusLine {
    /// Colour.
    pub state: State,
    /// Text, at most 140 characters (GitHub's limit).
    pub description: String,
}

/// Where a pull request's head stands when there is no verdict for it. Every state reads differently
/// (reference guide, section 4, item 5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeadState<'a> {
    /// No sign-off is needed, with the reason.
    Exempt(&'a str),
    /// No sign-off yet; maybe a reuse command is already on record.
    WaitingForSignoff {
        /// The command on record, e.g. `/use 123 by octocat`.
        command: Option<&'a str>,
    },
    /// Somebody plausibly meant to sign, but it does not count, with the reason.
    NotASignoff(&'a str),
    /// A sign-off is there, the pull request is a draft.
    WaitingForReady,
    /// Being judged.
    Running,
    /// An earlier head was judged: its short SHA and what it came to.
    Stale {
        /// First digits of the judged head.
        judged: &'a str,
        /// What it came to.
        decision: Decision,
    },
    /// The sign-off no longer counts, with the reason.
    SignoffVoid(&'a str),
    /// The deadline is over; what could not be read.
    CannotJudge(&'a str),
}

/// The status of a head without a verdict.
#[must_use]
pub fn waiting_line(state: &HeadState<'_>) -> StatusLine {
    let (state, text) = match state {
        HeadState::Exempt(why) => (State::Success, format!("No sign-off needed: {why}")),
        HeadState::WaitingForSignoff { command: None } => {
            (State::Pending, "Waiting for a CODEOWNER's sign-off".to_owned())
        }
        HeadState::WaitingForSignoff { command: Some(command) } => (
            State::Pending,
            format!("Waiting for a CODEOWNER's sign-off; on record: {command}"),
        ),
        HeadState::NotASignoff(why) => (State::Pending, format!("Not taken as a sign-off: {why}")),
        HeadState::WaitingForReady => (
            State::Pending,
            "Signed off as a draft: will be judged when ready for review".to_owned(),
        ),
        HeadState::Running => (State::Pending, "Checking the sign-off".to_owned()),
        HeadState::Stale { judged, decision } => (
            State::Pending,
            format!(
                "Head moved: {} was for {judged}; edit the sign-off or sign again for this head",
                decision.word()
            ),
        ),
        HeadState::SignoffVoid(why) => (
            State::Pending,
            format!("Sign-off no longer counts: {why}; sign off again"),
        ),
        HeadState::CannotJudge(missing) => (
            State::Error,
            format!("Cannot judge, could not read {missing}; retry with /countersign verify"),
        ),
    };
    StatusLine {
        state,
        description: shorten(&text, 140),
    }
}

/// The status of a verdict.
#[must_use]
pub fn status_line(verdict: &Verdict) -> StatusLine {
    let names = |kind: OutcomeKind| {
        verdict
            .rows_of(kind)
            .map(|row| format!("{} {}", row.number, row.slug))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let (state, text) = match verdict.decision {
        Decision::Pass => (
            State::Success,
            format!("PASS: {} checks, signed by {}", verdict.rows.len(), verdict.signer),
        ),
        Decision::Warn => (
            State::Success,
            format!("WARN: {}; signed by {}", names(OutcomeKind::Warn), verdict.signer),
        ),
        Decision::Rejected => (State::Failure, format!("REJECTED: {}", names(OutcomeKind::Fail))),
        Decision::NeedsConfirmation => {
            let mut asked = names(OutcomeKind::NeedsConfirmation);
            if !verdict.not_run.is_empty() {
                if !asked.is_empty() {
                    asked.push_str("; ");
                }
                asked.push_str(&format!("{} checks not run by this version", verdict.not_run.len()));
            }
            (State::Failure, format!("NEEDS CONFIRMATION: {asked}"))
        }
        Decision::Undecided => (
            State::Pending,
            format!(
                "Cannot judge yet: {}",
                verdict
                    .missing()
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join("; ")
            ),
        ),
    };
    StatusLine {
        state,
        description: shorten(&text, 140),
    }
}

/// Cuts at a character boundary and says so.
#[must_use]
pub fn shorten(text: &str, limit: usize) -> String {
    let text = crate::text::printable(text);
    if text.chars().count() <= limit {
        return text;
    }
    let mut cut: String = text.chars().take(limit.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_reads_differently_and_fits() {
        let states = [
            HeadState::Exempt("only files without a specific owner"),
            HeadState::WaitingForSignoff { command: None },
            HeadState::WaitingForSignoff {
                command: Some("/use 1 by octocat"),
            },
            HeadState::NotASignoff("the phrase stands in code"),
            HeadState::WaitingForReady,
            HeadState::Running,
            HeadState::Stale {
                judged: "01234567",
                decision: Decision::Pass,
            },
            HeadState::SignoffVoid("it was deleted"),
            HeadState::CannotJudge("jobs of run 12: GitHub answered 502"),
        ];
        let mut seen: Vec<String> = states.iter().map(|state| waiting_line(state).description).collect();
        assert!(seen.iter().all(|text| text.chars().count() <= 140));
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), states.len());
    }

    #[test]
    fn cutting_counts_characters() {
        assert_eq!(shorten("äöü", 3), "äöü");
        assert_eq!(shorten("äöüß", 3), "äö…");
    }
}
