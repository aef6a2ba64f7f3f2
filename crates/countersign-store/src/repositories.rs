//! Repositories: which are left alone for a while because they fail, and when each was last compared with GitHub.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::error::{check_text, clean_text};
use crate::time::{Backoff, chance, seconds};
use crate::{Store, StoreError};

/// What is known of a repository.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct RepositoryState {
    /// Its full name.
    pub repository: String,
    /// It is left alone until then.
    pub quarantined_until: Option<DateTime<Utc>>,
    /// Why.
    pub quarantine_reason: Option<String>,
    /// Failures in a row.
    pub failures: i32,
    /// When it was last compared with GitHub.
    pub reconciled_at: Option<DateTime<Utc>>,
}

impl Store {
    /// Records that a repository as a whole cannot be served (its policy does not load, access was taken away): it is left alone, longer
    /// with each failure in a row. Others go on. Answers until when.
    pub async fn quarantine_repository(
        &self,
        repository: &str,
        reason: &str,
        backoff: Backoff,
    ) -> Result<DateTime<Utc>, StoreError> {
        check_text("a repository", repository, 256)?;
        let mut transaction = self.pool().begin().await?;
        let failures: i32 = sqlx::query_scalar(
            "INSERT INTO repositories (repository, failures) VALUES ($1, 1)
             ON CONFLICT (repository) DO UPDATE SET failures = repositories.failures + 1 RETURNING failures",
        )
        .bind(repository)
        .fetch_one(&mut *transaction)
        .await?;
        let delay = backoff.delay(u32::try_from(failures).unwrap_or(1), chance());
        let until = sqlx::query_scalar(
            "UPDATE repositories SET quarantined_until = now() + make_interval(secs => $2), quarantine_reason = $3
             WHERE repository = $1 RETURNING quarantined_until",
        )
        .bind(repository)
        .bind(seconds(delay))
        .bind(clean_text(reason, 4096))
        .fetch_one(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(until)
    }

    /// Records that a repository works (again). `reconciled`: and that it was compared with GitHub now.
    pub async fn repository_works(&self, repository: &str, reconciled: bool) -> Result<(), StoreError> {
        check_text("a repository", repository, 256)?;
        sqlx::query(
            "INSERT INTO repositories (repository, reconciled_at) VALUES ($1, CASE WHEN $2 THEN now() END)
             ON CONFLICT (repository) DO UPDATE SET failures = 0, quarantined_until = NULL, quarantine_reason = NULL,
                 reconciled_at = coalesce(excluded.reconciled_at, repositories.reconciled_at)",
        )
        .bind(repository)
        .bind(reconciled)
        .execute(self.pool())
        .await?;
        Ok(())
    }

    /// What is known of a repository.
    pub async fn repository(&self, repository: &str) -> Result<Option<RepositoryState>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT repository, quarantined_until, quarantine_reason, failures, reconciled_at FROM repositories
             WHERE repository = $1",
        )
        .bind(repository)
        .fetch_optional(self.pool())
        .await?)
    }

    /// Repositories in quarantine now, by name.
    pub async fn quarantined_repositories(&self) -> Result<Vec<RepositoryState>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT repository, quarantined_until, quarantine_reason, failures, reconciled_at FROM repositories
             WHERE quarantined_until > now() ORDER BY repository",
        )
        .fetch_all(self.pool())
        .await?)
    }

    /// Known repositories that are not in quarantine and were not compared with GitHub for `age`, the longest ago first.
    pub async fn repositories_to_reconcile(&self, age: Duration, limit: i64) -> Result<Vec<String>, StoreError> {
        Ok(sqlx::query_scalar(
            "SELECT repository FROM repositories
             WHERE (quarantined_until IS NULL OR quarantined_until <= now())
               AND (reconciled_at IS NULL OR reconciled_at <= now() - make_interval(secs => $1))
             ORDER BY reconciled_at NULLS FIRST, repository LIMIT $2",
        )
        .bind(seconds(age))
        .bind(limit)
        .fetch_all(self.pool())
        .await?)
    }
}
