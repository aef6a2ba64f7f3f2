//! What is wrong with a CODEOWNERS file, where, what follows from it, and what to do about it.

use serde::Serialize;

use crate::pattern::{Pattern, PatternProblem};

/// Longest excerpt of the file that a diagnostic carries, in characters.
const MAX_TEXT: usize = 160;

/// What a problem does to the file's meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// The whole file has no effect: every path is unmatched.
    FileIgnored,
    /// The line has no effect; earlier and later lines stand.
    LineSkipped,
    /// The rule stands as read, but probably does not say what its author meant.
    RuleKept,
}

/// What is wrong. The text is a clause without a full stop and without the position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Problem {
    /// GitHub does not load a file of 3 MB or more.
    #[error("the file has {bytes} bytes; a CODEOWNERS file of {limit} bytes or more has no effect")]
    FileTooLarge {
        /// Size of the file in bytes.
        bytes: usize,
        /// The first size, in bytes, that is too large.
        limit: usize,
    },
    /// The pattern cannot be used.
    #[error("{problem}")]
    InvalidPattern {
        /// Why.
        problem: PatternProblem,
    },
    /// `\#`: CODEOWNERS cannot name a path with a hash.
    #[error("`\\#` does not escape the comment sign in CODEOWNERS")]
    EscapedHash,
    /// A word after the pattern is no owner.
    #[error("`{owner}` is not an owner: expected @user, @org/team or an e-mail address")]
    InvalidOwner {
        /// The word, shortened if long.
        owner: String,
    },
    /// Too many problems to list; this one stands for the rest.
    #[error("{omitted} more problems are not listed")]
    TooManyProblems {
        /// How many.
        omitted: usize,
    },
    /// A hash inside a pattern began a comment, so the rest of the line was dropped.
    #[error("the `#` inside the pattern begins a comment, so the pattern ends before it")]
    HashEndsPattern,
    /// A rule without owners whose pattern contains an at sign.
    #[error("`{pattern}` was read as a path pattern, so this rule has no owners")]
    OwnerReadAsPattern {
        /// The pattern, shortened if long.
        pattern: String,
    },
    /// An owner that has the shape of an address but cannot be one.
    #[error("`{owner}` was read as an e-mail address, but it cannot be one")]
    UnlikelyEmail {
        /// The word, shortened if long.
        owner: String,
    },
}

impl Problem {
    /// What follows for the file.
    #[must_use]
    pub fn effect(&self) -> Effect {
        match self {
            Self::FileTooLarge { .. } => Effect::FileIgnored,
            Self::InvalidPattern { .. }
            | Self::EscapedHash
            | Self::InvalidOwner { .. }
            | Self::TooManyProblems { .. } => Effect::LineSkipped,
            Self::HashEndsPattern | Self::OwnerReadAsPattern { .. } | Self::UnlikelyEmail { .. } => Effect::RuleKept,
        }
    }

    /// What to write instead: one sentence.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::FileTooLarge { .. } => "Merge rules with wildcards until the file is smaller.",
            Self::InvalidPattern { problem } => problem.remedy(),
            Self::EscapedHash => "Match the path with `?` in place of `#`, or name its directory.",
            Self::InvalidOwner { .. } => {
                "Write each owner as @user, @org/team or an e-mail address, separated by spaces."
            }
            Self::TooManyProblems { .. } => "Correct the problems listed before this one first.",
            Self::HashEndsPattern => {
                "Put a space before the comment, or use `?` in place of a `#` that is in the path."
            }
            Self::OwnerReadAsPattern { .. } => {
                "Begin the line with a pattern, such as `*`, and put a space before the owner."
            }
            Self::UnlikelyEmail { .. } => "Put a space between two owners, or correct the address.",
        }
    }
}

/// Which paths a line would have decided if it were valid.
#[derive(Debug, Clone)]
pub(crate) enum Reach {
    Nothing,
    Pattern(Pattern),
    Everything,
}

impl Reach {
    pub(crate) fn includes(&self, path: &str) -> bool {
        match self {
            Self::Nothing => false,
            Self::Pattern(pattern) => pattern.matches(path),
            Self::Everything => true,
        }
    }
}

/// One problem with its place.
#[derive(Debug, Clone, Serialize)]
pub struct Diagnostic {
    /// Line, from 1; 1 for a problem of the whole file.
    pub line: usize,
    /// Column of the offending word, in characters, from 1, as GitHub's error list counts.
    pub column: usize,
    /// The line, shortened if long; empty for a problem of the whole file.
    pub text: String,
    /// What is wrong.
    pub problem: Problem,
    /// What follows.
    pub effect: Effect,
    /// What to do about it.
    pub remedy: &'static str,
    #[serde(skip)]
    pub(crate) reach: Reach,
}

impl Diagnostic {
    pub(crate) fn new(line: usize, column: usize, text: &str, problem: Problem, reach: Reach) -> Self {
        Self {
            line,
            column,
            text: clip(text),
            effect: problem.effect(),
            remedy: problem.remedy(),
            problem,
            reach,
        }
    }
}

impl std::fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "line {}, column {}: {}. {}",
            self.line, self.column, self.problem, self.remedy
        )
    }
}

/// At most [`MAX_TEXT`] characters of the text, the last one an ellipsis if something was cut.
pub(crate) fn clip(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        None => text.to_owned(),
        Some(_) => text.chars().take(MAX_TEXT - 1).chain(['…']).collect(),
    }
}
