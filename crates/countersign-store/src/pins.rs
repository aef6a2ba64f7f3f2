//! Which head a sign-off was taken for, and when heads were first seen.
//!
//! The times come from the caller: in a rehearsal the world's clock counts, not the database's.

use chrono::{DateTime, Utc};

use crate::error::check_text;
use crate::{Store, StoreError};

/// A head as far as it was seen before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadSeen {
    /// When it was first seen.
    pub first_seen_at: DateTime<Utc>,
    /// Whether the pull request was seen with another head before that.
    pub had_another: bool,
}

impl Store {
    /// Records that a pull request has this head; the first time counts.
    pub async fn head_seen(
        &self,
        repository: &str,
        pull_request: i64,
        head_sha: &str,
        now: DateTime<Utc>,
    ) -> Result<HeadSeen, StoreError> {
        check_text("a repository", repository, 256)?;
        check_text("a head", head_sha, 64)?;
        sqlx::query("INSERT INTO heads (repository, pull_request, head_sha, first_seen_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING")
            .bind(repository)
            .bind(pull_request)
            .bind(head_sha)
            .bind(now)
            .execute(self.pool())
            .await?;
        let (first_seen_at, had_another): (DateTime<Utc>, bool) = sqlx::query_as(
            "SELECT h.first_seen_at,
                    EXISTS (SELECT 1 FROM heads o WHERE o.repository = $1 AND o.pull_request = $2 AND o.head_sha <> $3
                            AND o.first_seen_at <= h.first_seen_at)
             FROM heads h WHERE h.repository = $1 AND h.pull_request = $2 AND h.head_sha = $3",
        )
        .bind(repository)
        .bind(pull_request)
        .bind(head_sha)
        .fetch_one(self.pool())
        .await?;
        Ok(HeadSeen {
            first_seen_at,
            had_another,
        })
    }

    /// The head for which a sign-off with this text was taken. The first call for a text decides; the same text later gets
    /// the same head, whatever `head_sha` says.
    pub async fn pin_signoff(
        &self,
        repository: &str,
        signoff: &str,
        body_digest: &str,
        head_sha: &str,
        now: DateTime<Utc>,
    ) -> Result<String, StoreError> {
        check_text("a repository", repository, 256)?;
        check_text("a sign-off", signoff, 256)?;
        check_text("a digest", body_digest, 128)?;
        check_text("a head", head_sha, 64)?;
        let pinned = sqlx::query_scalar(
            "INSERT INTO signoff_pins AS p (repository, signoff, body_digest, head_sha, pinned_at) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (repository, signoff) DO UPDATE SET
                 head_sha = CASE WHEN p.body_digest = excluded.body_digest THEN p.head_sha ELSE excluded.head_sha END,
                 pinned_at = CASE WHEN p.body_digest = excluded.body_digest THEN p.pinned_at ELSE excluded.pinned_at END,
                 body_digest = excluded.body_digest
             RETURNING head_sha",
        )
        .bind(repository)
        .bind(signoff)
        .bind(body_digest)
        .bind(head_sha)
        .bind(now)
        .fetch_one(self.pool())
        .await?;
        Ok(pinned)
    }
}
