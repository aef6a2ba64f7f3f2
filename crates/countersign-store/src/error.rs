//! What can go wrong with the store, told apart by what the caller should do about it.

use std::error::Error;

/// A failure of the store.
///
/// [`StoreError::retryable`] says whether the same call may succeed later with nothing changed; a webhook then answers 503, so that
/// GitHub records the failure, and a worker lets its lease run out or fails the work with a backoff.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The database cannot be reached, is starting, stopping or read-only, or the connection broke.
    #[error("the database cannot be reached: {source}")]
    Unavailable {
        /// What the driver said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// No connection became free in time, or the intake is full.
    #[error("the store is overloaded: {what}")]
    Overloaded {
        /// What there was too much of.
        what: &'static str,
    },
    /// The statement ran into its time limit or waited too long for a lock.
    #[error("the database took too long: {source}")]
    TimedOut {
        /// What the driver said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Two transactions got into each other's way; neither is wrong.
    #[error("the transaction collided with another one: {source}")]
    Collision {
        /// What the driver said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Someone else holds the lease by now, or it was given back: nothing was written, and nothing may be published.
    #[error("the lease {lease_no} on {kind} {key} is no longer held")]
    LeaseLost {
        /// Kind of the work.
        kind: String,
        /// Key of the work.
        key: String,
        /// The number that is not the newest any more.
        lease_no: i64,
    },
    /// No such row.
    #[error("there is no {what} {id}")]
    NotFound {
        /// Kind of thing, such as `delivery`.
        what: &'static str,
        /// Its id.
        id: String,
    },
    /// An evaluation names evidence or a policy that was never stored: call [`crate::Store::put_blob`] first.
    #[error("evidence or policy is not stored yet; store it first: {source}")]
    MissingBlob {
        /// What the driver said, which names the column.
        source: Box<dyn Error + Send + Sync>,
    },
    /// What was read back is not what was written.
    #[error("blob {digest} is damaged: {why}")]
    Damaged {
        /// Its digest.
        digest: String,
        /// In what way.
        why: String,
    },
    /// The caller handed over something that no retry makes right.
    #[error("{what} cannot be stored: {why}")]
    Invalid {
        /// Which value.
        what: &'static str,
        /// What is wrong with it, and what would be right.
        why: String,
    },
    /// The schema is not the one this program was built for.
    #[error("{0}")]
    Schema(String),
    /// A right is missing: see `deploy/sql/roles.sql`.
    #[error("the database refuses: {source} (rights of the server: deploy/sql/roles.sql)")]
    Forbidden {
        /// What the driver said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Anything else that the database or the driver said.
    #[error("the database refused the statement: {source}")]
    Database {
        /// What the driver said.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl StoreError {
    /// Whether the same call may succeed later with nothing changed.
    pub fn retryable(&self) -> bool {
        matches!(
            self,
            Self::Unavailable { .. } | Self::Overloaded { .. } | Self::TimedOut { .. } | Self::Collision { .. }
        )
    }

    /// The same failure for each of several callers who shared one transaction.
    pub(crate) fn share(&self) -> Self {
        let text = || self.root().to_string().into();
        match self {
            Self::Unavailable { .. } => Self::Unavailable { source: text() },
            Self::Overloaded { what } => Self::Overloaded { what },
            Self::TimedOut { .. } => Self::TimedOut { source: text() },
            Self::Collision { .. } => Self::Collision { source: text() },
            Self::Forbidden { .. } => Self::Forbidden { source: text() },
            Self::Schema(text) => Self::Schema(text.clone()),
            _ => Self::Database { source: text() },
        }
    }

    fn root(&self) -> &dyn std::fmt::Display {
        match self {
            Self::Unavailable { source }
            | Self::TimedOut { source }
            | Self::Collision { source }
            | Self::MissingBlob { source }
            | Self::Forbidden { source }
            | Self::Database { source } => source,
            other => other,
        }
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        enum Kind {
            Unavailable,
            TimedOut,
            Collision,
            MissingBlob,
            Schema,
            Forbidden,
            Database,
        }
        let kind = match &error {
            sqlx::Error::PoolTimedOut => {
                return Self::Overloaded {
                    what: "no connection became free in time",
                };
            }
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed => Kind::Unavailable,
            sqlx::Error::Database(database) => match database.code().as_deref().unwrap_or_default() {
                // Too many connections, out of disk or memory, administrator's shutdown, recovery, crash, read-only standby.
                "53000" | "55000" | "53100" | "53200" | "53300" | "57P01" | "57P02" | "57P03" | "57P05" | "25006"
                | "25P03" => Kind::Unavailable,
                code if code.starts_with("08") || code.starts_with("58") => Kind::Unavailable,
                "57014" | "55P03" => Kind::TimedOut,
                "40001" | "40P01" => Kind::Collision,
                "23503" if database.constraint().is_some_and(|name| name.ends_with("_digest_fkey")) => {
                    Kind::MissingBlob
                }
                // Undefined table, column or function.
                "42P01" | "42703" | "42883" => Kind::Schema,
                "42501" => Kind::Forbidden,
                _ => Kind::Database,
            },
            _ => Kind::Database,
        };
        match kind {
            Kind::Schema => Self::Schema(format!(
                "the database's schema is not the one this program needs ({error}); run `countersign migrate`"
            )),
            Kind::Unavailable => Self::Unavailable { source: error.into() },
            Kind::TimedOut => Self::TimedOut { source: error.into() },
            Kind::Collision => Self::Collision { source: error.into() },
            Kind::MissingBlob => Self::MissingBlob { source: error.into() },
            Kind::Forbidden => Self::Forbidden { source: error.into() },
            Kind::Database => Self::Database { source: error.into() },
        }
    }
}

/// Postgres text and json hold no NUL, and index entries have a size limit: found out here, with a name, rather than there.
pub(crate) fn check_text(what: &'static str, text: &str, most: usize) -> Result<(), StoreError> {
    if text.len() > most {
        return Err(StoreError::Invalid {
            what,
            why: format!("{} bytes, at most {most} are kept", text.len()),
        });
    }
    if text.contains('\0') {
        return Err(StoreError::Invalid {
            what,
            why: "it holds a NUL character".to_owned(),
        });
    }
    Ok(())
}

/// A message of unknown origin, cut to `most` bytes, without what Postgres cannot hold.
pub(crate) fn clean_text(text: &str, most: usize) -> String {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].replace('\0', "\u{fffd}")
}

/// The same value without what jsonb cannot hold: NUL becomes U+FFFD. Deeper than serde_json would read it never gets here.
pub(crate) fn clean_json(value: &serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::String(text) if text.contains('\0') => Value::String(text.replace('\0', "\u{fffd}")),
        Value::Array(items) => Value::Array(items.iter().map(clean_json).collect()),
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .map(|(name, value)| (name.replace('\0', "\u{fffd}"), clean_json(value)))
                .collect(),
        ),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_pool_may_be_tried_again_and_a_lost_lease_may_not() {
        assert!(StoreError::from(sqlx::Error::PoolClosed).retryable());
        assert!(StoreError::from(sqlx::Error::PoolTimedOut).retryable());
        let lost = StoreError::LeaseLost {
            kind: "verify".into(),
            key: "o/r#1".into(),
            lease_no: 3,
        };
        assert!(!lost.retryable());
        assert!(!StoreError::from(sqlx::Error::RowNotFound).retryable());
    }

    #[test]
    fn a_shared_failure_stays_retryable_and_says_the_same() {
        let error = StoreError::from(sqlx::Error::PoolClosed);
        let shared = error.share();
        assert!(shared.retryable());
        assert_eq!(shared.to_string(), error.to_string());
    }

    #[test]
    fn what_postgres_cannot_hold_is_replaced_and_the_rest_stays() {
        assert_eq!(clean_text("a\0é", 3), "a\u{fffd}");
        assert_eq!(clean_text("aé", 3), "aé");
        let value = serde_json::json!({"a\u{0}": ["x\u{0}y", 1, null, {"b": "plain"}]});
        assert_eq!(
            clean_json(&value),
            serde_json::json!({"a\u{fffd}": ["x\u{fffd}y", 1, null, {"b": "plain"}]})
        );
    }

    #[test]
    fn text_with_nul_or_too_long_is_named() {
        assert!(check_text("guid", "abc", 3).is_ok());
        assert!(check_text("guid", "abcd", 3).is_err_and(|e| e.to_string().contains("guid")));
        assert!(check_text("guid", "a\0", 3).is_err());
    }
}
