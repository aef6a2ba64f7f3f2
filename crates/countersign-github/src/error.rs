//! What can go wrong with GitHub, in words for a reader, and what that means for trying again.

use chrono::{DateTime, Utc};
use countersign_core::{Cause, CauseKind};

/// Whether, and when, the same thing may be tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// It would end the same way until somebody changes something.
    No,
    /// Later, by the caller's own backoff.
    Soon,
    /// Not before this time.
    At(DateTime<Utc>),
}

/// A failed call. Never holds a token, a key or a signed address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GitHubError {
    /// There is no such thing, or we may not know of it.
    #[error("{what} is not on GitHub, or the App may not see it")]
    NotFound {
        /// What was asked for.
        what: String,
    },
    /// Our credentials were refused.
    #[error(
        "GitHub refused the App's credentials for {what}: {message} (check the App's id and private key, and this machine's clock)"
    )]
    Unauthorized {
        /// What was asked for.
        what: String,
        /// GitHub's message.
        message: String,
    },
    /// A permission is missing.
    #[error(
        "GitHub refuses access to {resource}: {message} (grant the App the permission and accept it for the installation)"
    )]
    Forbidden {
        /// What was asked for.
        resource: String,
        /// GitHub's message.
        message: String,
    },
    /// A rate limit is reached.
    #[error("GitHub's rate limit is reached; the next call is allowed at {}", until.format("%H:%M:%S UTC"))]
    RateLimited {
        /// When calls are allowed again.
        until: DateTime<Utc>,
    },
    /// GitHub failed, or answered something that it will not answer next time.
    #[error("GitHub answered {status} for {what}{}", colon(message))]
    Transient {
        /// HTTP status.
        status: u16,
        /// What was asked for.
        what: String,
        /// GitHub's message, may be empty.
        message: String,
    },
    /// The connection failed or took too long. With a write, GitHub may have done it.
    #[error("no answer from GitHub for {what}: {why}")]
    Network {
        /// What was asked for.
        what: String,
        /// What happened.
        why: String,
    },
    /// The answer has another form than expected.
    #[error("GitHub's answer for {what} cannot be read at `{path}`: {why}")]
    Decode {
        /// What was asked for.
        what: String,
        /// Path of the field.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// The answer, or a list, is larger than the bound that protects us.
    #[error("{what} is larger than {limit}")]
    TooLarge {
        /// What was asked for.
        what: String,
        /// The bound, with its unit.
        limit: String,
    },
    /// It was there and is gone, such as an expired artifact.
    #[error("{what} is gone from GitHub")]
    Gone {
        /// What was asked for.
        what: String,
    },
    /// GitHub understood the request and refuses it.
    #[error("GitHub refuses {what}: {message}")]
    Unprocessable {
        /// What was asked for.
        what: String,
        /// GitHub's message.
        message: String,
    },
    /// Our own configuration is unusable.
    #[error("{0}")]
    Config(String),
}

fn colon(message: &str) -> String {
    if message.is_empty() {
        String::new()
    } else {
        format!(": {message}")
    }
}

impl GitHubError {
    /// Whether, and when, to try again.
    #[must_use]
    pub fn retry(&self) -> Retry {
        match self {
            Self::RateLimited { until } => Retry::At(*until),
            Self::Transient { .. } | Self::Network { .. } => Retry::Soon,
            _ => Retry::No,
        }
    }

    /// Whether a write that failed this way may have been done all the same.
    #[must_use]
    pub fn is_ambiguous(&self) -> bool {
        matches!(
            self,
            Self::Transient { .. } | Self::Network { .. } | Self::Decode { .. } | Self::TooLarge { .. }
        )
    }

    /// As the cause for which a fact is unavailable. `what` is the fact, for a reader.
    #[must_use]
    pub fn cause(&self, what: impl Into<String>) -> Cause {
        let kind = match self {
            Self::RateLimited { .. } | Self::Transient { .. } | Self::Network { .. } => CauseKind::Transient,
            Self::Unauthorized { .. } | Self::Forbidden { .. } | Self::NotFound { .. } => CauseKind::Forbidden,
            Self::TooLarge { .. } => CauseKind::TooLarge,
            Self::Decode { .. } | Self::Unprocessable { .. } | Self::Gone { .. } | Self::Config(_) => {
                CauseKind::Malformed
            }
        };
        Cause::new(kind, what, self.to_string())
    }
}
