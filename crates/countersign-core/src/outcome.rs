//! What one check says: an outcome with its reason, and for everything that is not fine a finding with a remedy.

use serde::{Deserialize, Serialize};

use crate::observed::Cause;
use crate::text::Text;

/// A place in the repository or elsewhere that a reader can open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Location {
    /// Path from the repository's root, of the judged or trusted tree.
    pub path: String,
    /// Line, from 1.
    pub line: Option<u64>,
    /// Exact address, where known.
    pub url: Option<String>,
}

impl Location {
    /// A line of a file.
    pub fn line(path: impl Into<String>, line: u64) -> Self {
        Self {
            path: path.into(),
            line: Some(line),
            url: None,
        }
    }
}

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}", self.path),
            None => f.write_str(&self.path),
        }
    }
}

/// One thing that is wrong, doubtful or asked, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Finding {
    /// Stable code within the check, e.g. `not-an-owner`. Never reused with another meaning.
    pub code: String,
    /// The cause, one line.
    pub message: Text,
    /// What to do: an imperative sentence.
    pub remedy: Text,
    /// Text to paste, where there is one.
    pub paste: Option<String>,
    /// Where.
    pub location: Option<Location>,
}

impl Finding {
    /// A finding with its remedy; both are required.
    pub fn new(code: &str, message: impl Into<Text>, remedy: impl Into<Text>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
            remedy: remedy.into(),
            paste: None,
            location: None,
        }
    }

    /// With text to paste.
    #[must_use]
    pub fn paste(mut self, text: impl Into<String>) -> Self {
        self.paste = Some(text.into());
        self
    }

    /// With a place.
    #[must_use]
    pub fn at(mut self, location: Location) -> Self {
        self.location = Some(location);
        self
    }
}

/// At least one finding: a FAIL without a remedy cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Findings(Vec<Finding>);

impl Findings {
    /// One finding.
    #[must_use]
    pub fn one(finding: Finding) -> Self {
        Self(vec![finding])
    }

    /// Several, or nothing if there are none.
    #[must_use]
    pub fn from_vec(findings: Vec<Finding>) -> Option<Self> {
        (!findings.is_empty()).then_some(Self(findings))
    }

    /// The findings in order.
    #[must_use]
    pub fn as_slice(&self) -> &[Finding] {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Findings {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_vec(Vec::deserialize(deserializer)?)
            .ok_or_else(|| serde::de::Error::custom("at least one finding is required"))
    }
}

/// The answer of a check (product page, section 5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind", content = "findings")]
pub enum Outcome {
    /// The rule holds.
    Pass,
    /// The rule does not apply.
    NotApplicable,
    /// Allowed, but a reader should know.
    Warn(Findings),
    /// The rule is broken.
    Fail(Findings),
    /// A person has to answer a question.
    NeedsConfirmation(Findings),
    /// Something needed could not be read.
    Unavailable(Vec<Cause>),
}

/// An [`Outcome`] without its contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeKind {
    /// See [`Outcome::Fail`].
    Fail,
    /// See [`Outcome::NeedsConfirmation`].
    NeedsConfirmation,
    /// See [`Outcome::Unavailable`].
    Unavailable,
    /// See [`Outcome::Warn`].
    Warn,
    /// See [`Outcome::Pass`].
    Pass,
    /// See [`Outcome::NotApplicable`].
    NotApplicable,
}

impl OutcomeKind {
    /// As written in a verdict's row.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::NotApplicable => "N/A",
            Self::Warn => "WARN",
            Self::Fail => "FAIL",
            Self::NeedsConfirmation => "NEEDS CONFIRMATION",
            Self::Unavailable => "UNAVAILABLE",
        }
    }

    /// The sign in front of a row.
    #[must_use]
    pub const fn emoji(self) -> &'static str {
        match self {
            Self::Pass => "✅",
            Self::NotApplicable => "➖",
            Self::Warn => "⚠️",
            Self::Fail => "❌",
            Self::NeedsConfirmation => "⏸️",
            Self::Unavailable => "❔",
        }
    }
}

impl Outcome {
    /// The outcome without contents.
    #[must_use]
    pub fn kind(&self) -> OutcomeKind {
        match self {
            Self::Pass => OutcomeKind::Pass,
            Self::NotApplicable => OutcomeKind::NotApplicable,
            Self::Warn(_) => OutcomeKind::Warn,
            Self::Fail(_) => OutcomeKind::Fail,
            Self::NeedsConfirmation(_) => OutcomeKind::NeedsConfirmation,
            Self::Unavailable(_) => OutcomeKind::Unavailable,
        }
    }

    /// The findings, if the outcome has any.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        match self {
            Self::Warn(findings) | Self::Fail(findings) | Self::NeedsConfirmation(findings) => findings.as_slice(),
            _ => &[],
        }
    }
}

/// An outcome with the reason that stands in its row, and facts that are good to know but decide nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CheckReport {
    /// What the check says.
    pub outcome: Outcome,
    /// Why, one line.
    pub reason: Text,
    /// Facts that decide nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Text>,
}

impl CheckReport {
    /// PASS with its reason.
    pub fn pass(reason: impl Into<Text>) -> Self {
        Self {
            outcome: Outcome::Pass,
            reason: reason.into(),
            notes: Vec::new(),
        }
    }

    /// N/A with its reason.
    pub fn not_applicable(reason: impl Into<Text>) -> Self {
        Self {
            outcome: Outcome::NotApplicable,
            reason: reason.into(),
            notes: Vec::new(),
        }
    }

    /// FAIL for one cause; the cause is the reason.
    #[must_use]
    pub fn fail(finding: Finding) -> Self {
        Self {
            reason: finding.message.clone(),
            outcome: Outcome::Fail(Findings::one(finding)),
            notes: Vec::new(),
        }
    }

    /// WARN for one cause; the cause is the reason.
    #[must_use]
    pub fn warn(finding: Finding) -> Self {
        Self {
            reason: finding.message.clone(),
            outcome: Outcome::Warn(Findings::one(finding)),
            notes: Vec::new(),
        }
    }

    /// A question for a person; the question is the reason.
    #[must_use]
    pub fn confirm(finding: Finding) -> Self {
        Self {
            reason: finding.message.clone(),
            outcome: Outcome::NeedsConfirmation(Findings::one(finding)),
            notes: Vec::new(),
        }
    }

    /// UNAVAILABLE because of one cause.
    #[must_use]
    pub fn unavailable(cause: &Cause) -> Self {
        Self {
            reason: crate::text!["could not read ", cause.what.clone(), ": ", cause.why.clone()],
            outcome: Outcome::Unavailable(vec![cause.clone()]),
            notes: Vec::new(),
        }
    }

    /// Any outcome with its own reason.
    pub fn new(outcome: Outcome, reason: impl Into<Text>) -> Self {
        Self {
            outcome,
            reason: reason.into(),
            notes: Vec::new(),
        }
    }

    /// With a fact that decides nothing.
    #[must_use]
    pub fn note(mut self, note: impl Into<Text>) -> Self {
        self.notes.push(note.into());
        self
    }
}
