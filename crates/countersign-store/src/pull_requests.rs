//! Pull requests as GitHub last told of them: for reconciling, for pages, and for noticing that a head moved.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::error::check_text;
use crate::time::seconds;
use crate::work::request_work;
use crate::{NewWork, Store, StoreError};

/// A pull request as seen in an event or in an answer of the API.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct PullRequestState {
    /// Full name of the repository.
    pub repository: String,
    /// Its number.
    pub number: i64,
    /// Its head commit.
    pub head_sha: String,
    /// Name of the target branch.
    pub base_ref: String,
    /// Commit of the target branch, as GitHub said it.
    pub base_sha: String,
    /// Whether it is a draft.
    pub draft: bool,
    /// Whether it is open.
    pub open: bool,
    /// Login of its author.
    pub author: String,
    /// `updated_at` of this version. A version older than the one known changes nothing.
    pub version_at: DateTime<Utc>,
}

/// What [`Store::observe_pull_request`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PullRequestChange {
    /// Not known before.
    New,
    /// Known: this is what it was before.
    Updated(PullRequestState),
    /// A newer version is known; nothing was changed. This is what is known.
    Stale(PullRequestState),
}

/// What reconciling needs to know of a pull request.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct KnownPullRequest {
    /// Number.
    pub number: i64,
    /// Head.
    pub head_sha: String,
    /// Not closed, as far as we know.
    pub open: bool,
    /// GitHub's `updated_at` of the version we hold.
    pub version_at: DateTime<Utc>,
    /// When it was looked at last, by the database's clock.
    pub last_seen_at: DateTime<Utc>,
}

const COLUMNS: &str =
    "SELECT repository, number, head_sha, base_ref, base_sha, draft, open, author, version_at FROM pull_requests ";

impl Store {
    /// Records how a pull request looks. Events may come in any order: an older version never overwrites a newer one. Versions of the same second
    /// are taken in the order in which they come.
    pub async fn observe_pull_request(&self, seen: &PullRequestState) -> Result<PullRequestChange, StoreError> {
        for (what, text) in [
            ("a repository", &seen.repository),
            ("a head", &seen.head_sha),
            ("a base branch", &seen.base_ref),
            ("a base", &seen.base_sha),
            ("an author", &seen.author),
        ] {
            check_text(what, text, 512)?;
        }
        let mut transaction = self.pool().begin().await?;
        let inserted = sqlx::query(
            "INSERT INTO pull_requests (repository, number, head_sha, base_ref, base_sha, draft, open, author, version_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (repository, number) DO NOTHING",
        )
        .bind(&seen.repository)
        .bind(seen.number)
        .bind(&seen.head_sha)
        .bind(&seen.base_ref)
        .bind(&seen.base_sha)
        .bind(seen.draft)
        .bind(seen.open)
        .bind(&seen.author)
        .bind(seen.version_at)
        .execute(&mut *transaction)
        .await?;
        if inserted.rows_affected() > 0 {
            transaction.commit().await?;
            return Ok(PullRequestChange::New);
        }
        let sql = "SELECT repository, number, head_sha, base_ref, base_sha, draft, open, author, version_at FROM pull_requests
                   WHERE repository = $1 AND number = $2 FOR UPDATE";
        let before: PullRequestState = sqlx::query_as(sql)
            .bind(&seen.repository)
            .bind(seen.number)
            .fetch_one(&mut *transaction)
            .await?;
        if before.version_at > seen.version_at {
            return Ok(PullRequestChange::Stale(before));
        }
        sqlx::query(
            "UPDATE pull_requests SET
                 head_since = CASE WHEN head_sha = $3 THEN head_since ELSE now() END,
                 head_sha = $3, base_ref = $4, base_sha = $5, draft = $6, open = $7, author = $8, version_at = $9, last_seen_at = now()
             WHERE repository = $1 AND number = $2",
        )
        .bind(&seen.repository)
        .bind(seen.number)
        .bind(&seen.head_sha)
        .bind(&seen.base_ref)
        .bind(&seen.base_sha)
        .bind(seen.draft)
        .bind(seen.open)
        .bind(&seen.author)
        .bind(seen.version_at)
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(PullRequestChange::Updated(before))
    }

    /// What is known of a pull request.
    pub async fn pull_request(&self, repository: &str, number: i64) -> Result<Option<PullRequestState>, StoreError> {
        let sql = format!("{COLUMNS} WHERE repository = $1 AND number = $2");
        Ok(sqlx::query_as(sqlx::AssertSqlSafe(sql))
            .bind(repository)
            .bind(number)
            .fetch_optional(self.pool())
            .await?)
    }

    /// Open pull requests with this head: a status belongs to a commit, not to a pull request.
    pub async fn pull_requests_with_head(
        &self,
        repository: &str,
        head_sha: &str,
    ) -> Result<Vec<PullRequestState>, StoreError> {
        let sql = format!("{COLUMNS} WHERE repository = $1 AND head_sha = $2 AND open ORDER BY number");
        Ok(sqlx::query_as(sqlx::AssertSqlSafe(sql))
            .bind(repository)
            .bind(head_sha)
            .fetch_all(self.pool())
            .await?)
    }

    /// Open pull requests of a repository, those reconciled longest ago first.
    pub async fn open_pull_requests(&self, repository: &str, limit: i64) -> Result<Vec<PullRequestState>, StoreError> {
        let sql =
            format!("{COLUMNS} WHERE repository = $1 AND open ORDER BY reconciled_at NULLS FIRST, number LIMIT $2");
        Ok(sqlx::query_as(sqlx::AssertSqlSafe(sql))
            .bind(repository)
            .bind(limit)
            .fetch_all(self.pool())
            .await?)
    }

    /// What is known of the open pull requests of a repository, and of those of these numbers, open or not.
    pub async fn known_pull_requests(
        &self,
        repository: &str,
        numbers: &[i64],
    ) -> Result<Vec<KnownPullRequest>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT number, head_sha, open, version_at, last_seen_at FROM pull_requests
             WHERE repository = $1 AND (open OR number = ANY ($2)) ORDER BY number",
        )
        .bind(repository)
        .bind(numbers)
        .fetch_all(self.pool())
        .await?)
    }

    /// Asks for work on the open pull requests of a repository for which nobody asked like this since `age`, at most so many and the
    /// longest ago first. Of several replicas one asks. Answers how many there were.
    pub async fn request_rechecks(
        &self,
        repository: &str,
        age: Duration,
        most: i64,
        work: impl Fn(i64) -> NewWork,
    ) -> Result<usize, StoreError> {
        let mut transaction = self.pool().begin().await?;
        let numbers: Vec<i64> = sqlx::query_scalar(
            "UPDATE pull_requests p SET reconciled_at = now() FROM (
                 SELECT number FROM pull_requests
                 WHERE repository = $1 AND open AND coalesce(reconciled_at, first_seen_at) <= now() - make_interval(secs => $2)
                 ORDER BY coalesce(reconciled_at, first_seen_at), number LIMIT $3 FOR UPDATE SKIP LOCKED) AS due
             WHERE p.repository = $1 AND p.number = due.number RETURNING p.number",
        )
        .bind(repository)
        .bind(seconds(age))
        .bind(most)
        .fetch_all(&mut *transaction)
        .await?;
        let asked: Vec<NewWork> = numbers.iter().map(|number| work(*number)).collect();
        request_work(&mut transaction, &asked.iter().collect::<Vec<_>>()).await?;
        transaction.commit().await?;
        Ok(numbers.len())
    }
}
