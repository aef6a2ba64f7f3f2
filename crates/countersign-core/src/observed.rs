//! What is known of a fact that had to be fetched: present, absent, or unavailable with the cause.

use serde::{Deserialize, Serialize};

/// A fetched fact. `Absent` may fail a check; `Unavailable` may never be read as yes or as no (product page, section 3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Observed<T> {
    /// It was read.
    Present(T),
    /// It was looked for and is not there.
    Absent,
    /// It could not be read.
    Unavailable(Cause),
}

/// Why something could not be read, in words for a reader, and whether trying again may help.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Cause {
    /// What was being read, e.g. `jobs of run 1234`.
    pub what: String,
    /// Why it failed, e.g. `GitHub answered 502`.
    pub why: String,
    /// The kind of failure.
    pub kind: CauseKind,
}

/// How a failure to read will develop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CauseKind {
    /// Trying again later may help: a fault, a limit, a run that is not finished.
    Transient,
    /// The permission to read it is missing; a person has to grant it.
    Forbidden,
    /// Larger than the bound that protects the server, or cut by GitHub.
    TooLarge,
    /// It was read, but cannot be understood.
    Malformed,
    /// The source was not asked: a world or a clone does not hold such facts.
    NotRecorded,
}

impl Cause {
    /// A cause from its three parts.
    pub fn new(kind: CauseKind, what: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            why: why.into(),
            kind,
        }
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.what, self.why)
    }
}

impl<T> Observed<T> {
    /// The fact as an `Option` where it is known, else the cause.
    ///
    /// # Errors
    /// The cause, where the fact is unavailable.
    pub fn known(&self) -> Result<Option<&T>, &Cause> {
        match self {
            Self::Present(value) => Ok(Some(value)),
            Self::Absent => Ok(None),
            Self::Unavailable(cause) => Err(cause),
        }
    }

    /// The fact, where present.
    pub fn present(&self) -> Option<&T> {
        match self {
            Self::Present(value) => Some(value),
            _ => None,
        }
    }

    /// Shorthand for an unavailable fact.
    pub fn unavailable(kind: CauseKind, what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Unavailable(Cause::new(kind, what, why))
    }

    /// Maps a present value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Observed<U> {
        match self {
            Self::Present(value) => Observed::Present(f(value)),
            Self::Absent => Observed::Absent,
            Self::Unavailable(cause) => Observed::Unavailable(cause),
        }
    }

    /// The same, borrowed.
    pub fn as_ref(&self) -> Observed<&T> {
        match self {
            Self::Present(value) => Observed::Present(value),
            Self::Absent => Observed::Absent,
            Self::Unavailable(cause) => Observed::Unavailable(cause.clone()),
        }
    }
}
