//! The outbox: what GitHub ought to show, and how far that is done.
//!
//! One row for each thing shown (a sign-off's comment, a commit's status, …). A newer wish takes an older one's place, published or
//! not. Wishes are made by [`Store::commit`] and [`Store::apply`], which also ask for `publish` work on the pull request. Whoever claims
//! that work is the only one over all replicas who publishes for this pull request:
//!
//! ```text
//! lock = lease.pr_lock()
//! for each due_publications(lock):
//!     begin_publication(lock, it)           -- from now on GitHub may have done it
//!     … write to GitHub; where it.uncertain, look first whether it is there already …
//!     publication_done / publication_failed
//! finish_publishing(lease)                  -- due again when the next retry is
//! ```

use chrono::{DateTime, Utc};
use serde_json::Value;
use sha2::{Digest, Sha256};
use sqlx::PgConnection;
use std::time::Duration;
use uuid::Uuid;

use crate::error::{check_text, clean_json, clean_text};
use crate::lease::{hold, lost};
use crate::time::{Retry, chance, seconds};
use crate::work::request_work;
use crate::{Committed, NewWork, Next, PrLock, Store, StoreError, WorkLease};

/// The kind of work that publishes.
pub const WORK_KIND_PUBLISH: &str = "publish";

/// A wish.
#[derive(Debug, Clone, PartialEq)]
pub struct DesiredPublication {
    /// `comment`, `status`, `check_run`, `minimise`, `reaction`.
    pub kind: String,
    /// What is to be made equal to `desired`: unique for its kind in the repository, such as a sign-off's key or `<sha> <context>`.
    pub target: String,
    /// What it ought to be. Equal to what is shown already: nothing is written.
    pub desired: Value,
    /// The verdict it shows.
    pub evaluation: Option<Uuid>,
    /// Write it even if it is what we last wrote: someone else has changed it since.
    pub reassert: bool,
}

/// How far a wish is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PublicationState {
    /// To be written.
    Pending,
    /// Shown.
    Done,
    /// Given up after too many attempts.
    Failed,
    /// No longer wanted before it was written.
    Superseded,
}

impl PublicationState {
    pub(crate) fn parse(name: &str) -> Self {
        match name {
            "done" => Self::Done,
            "failed" => Self::Failed,
            "superseded" => Self::Superseded,
            _ => Self::Pending,
        }
    }
}

/// A row of the outbox.
#[derive(Debug, Clone, PartialEq)]
pub struct Publication {
    /// Its identifier.
    pub id: i64,
    /// Full name of the repository.
    pub repository: String,
    /// Number of the pull request.
    pub pull_request: i64,
    /// `comment`, `status`, …
    pub kind: String,
    /// What is made equal to `desired`.
    pub target: String,
    /// The verdict it shows.
    pub evaluation: Option<Uuid>,
    /// What it ought to be.
    pub desired: Value,
    /// Grows with each new wish for this target.
    pub revision: i64,
    /// How far it is.
    pub state: PublicationState,
    /// Attempts at this wish, with the one under way.
    pub attempts: i32,
    /// An earlier attempt began and its outcome was never learnt: GitHub may have done it.
    pub uncertain: bool,
    /// When it is due.
    pub next_attempt_at: DateTime<Utc>,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// GitHub's identifier of what is shown, from an earlier or this wish.
    pub remote_id: Option<String>,
    /// Its address.
    pub remote_url: Option<String>,
    /// Digest of what is shown, as far as we know.
    pub published_digest: Option<String>,
    /// Digest of what ought to be.
    pub desired_digest: String,
    /// When it was written last.
    pub published_at: Option<DateTime<Utc>>,
}

/// What GitHub answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Published {
    /// GitHub's identifier. None: the one before stays.
    pub remote_id: Option<String>,
    /// The address for a reader. None: the one before stays.
    pub remote_url: Option<String>,
}

#[derive(sqlx::FromRow)]
struct Row {
    id: i64,
    repository: String,
    pull_request: i64,
    kind: String,
    target: String,
    evaluation_id: Option<Uuid>,
    desired: Value,
    revision: i64,
    state: String,
    attempts: i32,
    started_at: Option<DateTime<Utc>>,
    next_attempt_at: DateTime<Utc>,
    last_error: Option<String>,
    remote_id: Option<String>,
    remote_url: Option<String>,
    published_digest: Option<String>,
    desired_digest: String,
    published_at: Option<DateTime<Utc>>,
}

impl From<Row> for Publication {
    fn from(row: Row) -> Self {
        Self {
            id: row.id,
            repository: row.repository,
            pull_request: row.pull_request,
            kind: row.kind,
            target: row.target,
            evaluation: row.evaluation_id,
            desired: row.desired,
            revision: row.revision,
            state: PublicationState::parse(&row.state),
            attempts: row.attempts,
            uncertain: row.started_at.is_some(),
            next_attempt_at: row.next_attempt_at,
            last_error: row.last_error,
            remote_id: row.remote_id,
            remote_url: row.remote_url,
            published_digest: row.published_digest,
            desired_digest: row.desired_digest,
            published_at: row.published_at,
        }
    }
}

pub(crate) fn publish_work(repository: &str, pull_request: i64) -> NewWork {
    NewWork::on_pull_request(WORK_KIND_PUBLISH, repository, pull_request)
}

/// Records a wish. True: it differs from what is shown, so there is something to do.
pub(crate) async fn wish(
    connection: &mut PgConnection,
    repository: &str,
    pull_request: i64,
    wish: &DesiredPublication,
) -> Result<bool, StoreError> {
    check_text("the kind of a publication", &wish.kind, 64)?;
    check_text("the target of a publication", &wish.target, 512)?;
    let desired = clean_json(&wish.desired);
    let digest = hex::encode(Sha256::digest(desired.to_string()));
    // An attempt whose outcome is unknown stays marked: the next one has to look first.
    let state: String = sqlx::query_scalar(
        "INSERT INTO publications AS p (repository, pull_request, kind, target, evaluation_id, desired, desired_digest)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (repository, kind, target) DO UPDATE SET
             pull_request = excluded.pull_request,
             evaluation_id = excluded.evaluation_id,
             desired = excluded.desired,
             desired_digest = excluded.desired_digest,
             published_digest = CASE WHEN $8 THEN NULL ELSE p.published_digest END,
             revision = p.revision + CASE WHEN p.desired_digest = excluded.desired_digest AND NOT $8 THEN 0 ELSE 1 END,
             state = CASE WHEN p.published_digest = excluded.desired_digest AND p.started_at IS NULL AND NOT $8
                          THEN 'done' ELSE 'pending' END,
             attempts = CASE WHEN p.desired_digest = excluded.desired_digest AND p.state = 'pending' THEN p.attempts ELSE 0 END,
             next_attempt_at = CASE WHEN p.desired_digest = excluded.desired_digest AND p.state = 'pending'
                                    THEN p.next_attempt_at ELSE now() END,
             updated_at = now()
         RETURNING state",
    )
    .bind(repository)
    .bind(pull_request)
    .bind(&wish.kind)
    .bind(&wish.target)
    .bind(wish.evaluation)
    .bind(desired)
    .bind(digest)
    .bind(wish.reassert)
    .fetch_one(connection)
    .await?;
    Ok(state == "pending")
}

/// Takes a wish back that is not fulfilled yet.
pub(crate) async fn supersede(
    connection: &mut PgConnection,
    repository: &str,
    pull_request: i64,
    kind: &str,
    target: &str,
) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE publications SET state = 'superseded', updated_at = now()
         WHERE repository = $1 AND pull_request = $2 AND kind = $3 AND target = $4 AND state IN ('pending', 'failed')",
    )
    .bind(repository)
    .bind(pull_request)
    .bind(kind)
    .bind(target)
    .execute(connection)
    .await?;
    Ok(())
}

impl Store {
    /// The wishes of the locked pull request that are due, in the order in which they were first made.
    pub async fn due_publications(&self, lock: &PrLock) -> Result<Vec<Publication>, StoreError> {
        let sql = "SELECT id, repository, pull_request, kind, target, evaluation_id, desired, revision, state, attempts, started_at,
                          next_attempt_at, last_error, remote_id, remote_url, published_digest, desired_digest, published_at
                   FROM publications
                   WHERE repository = $1 AND pull_request = $2 AND state = 'pending' AND next_attempt_at <= now()
                   ORDER BY id";
        let rows: Vec<Row> = sqlx::query_as(sql)
            .bind(lock.repository())
            .bind(lock.pull_request())
            .fetch_all(self.pool())
            .await?;
        Ok(rows.into_iter().map(Publication::from).collect())
    }

    /// Marks that an attempt begins: from now on GitHub may have done it, whether or not we live to hear of it. Answers the row as it is now,
    /// with `uncertain` telling of the attempts before this one; None: the wish has changed or is gone, look again.
    pub async fn begin_publication(
        &self,
        lock: &PrLock,
        publication: &Publication,
    ) -> Result<Option<Publication>, StoreError> {
        let mut transaction = self.pool().begin().await?;
        hold_for_publishing(&mut transaction, lock).await?;
        // The answer shows `started_at` as it was before.
        let row: Option<Row> = sqlx::query_as(
            "WITH before AS (
                 SELECT id, started_at FROM publications WHERE id = $1 AND revision = $2 AND state = 'pending'
                   AND repository = $3 AND pull_request = $4 FOR UPDATE
             )
             UPDATE publications p SET started_at = now(), attempts = p.attempts + 1, updated_at = now()
             FROM before WHERE p.id = before.id
             RETURNING p.id, repository, pull_request, kind, target, evaluation_id, desired, revision, state, attempts,
                       before.started_at, next_attempt_at, last_error, remote_id, remote_url, published_digest, desired_digest,
                       published_at",
        )
        .bind(publication.id)
        .bind(publication.revision)
        .bind(lock.repository())
        .bind(lock.pull_request())
        .fetch_optional(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(row.map(Publication::from))
    }

    /// Records that GitHub shows this wish now. Where a newer wish came meanwhile, that one stays pending. May be called again.
    pub async fn publication_done(
        &self,
        lock: &PrLock,
        publication: &Publication,
        published: &Published,
    ) -> Result<PublicationState, StoreError> {
        let mut transaction = self.pool().begin().await?;
        hold_for_publishing(&mut transaction, lock).await?;
        let state: Option<String> = sqlx::query_scalar(
            "UPDATE publications SET
                 published_digest = $3, published_at = now(), started_at = NULL, last_error = NULL,
                 remote_id = coalesce($4, remote_id), remote_url = coalesce($5, remote_url),
                 state = CASE WHEN revision = $2 THEN 'done' ELSE state END, updated_at = now()
             WHERE id = $1 RETURNING state",
        )
        .bind(publication.id)
        .bind(publication.revision)
        .bind(&publication.desired_digest)
        .bind(published.remote_id.as_deref().map(|text| clean_text(text, 512)))
        .bind(published.remote_url.as_deref().map(|text| clean_text(text, 2048)))
        .fetch_optional(&mut *transaction)
        .await?;
        let state = state.ok_or_else(|| missing(publication.id))?;
        transaction.commit().await?;
        Ok(PublicationState::parse(&state))
    }

    /// Records that an attempt failed. `certain`: GitHub has surely not done it (it answered a 4xx, or nothing was sent). Answers
    /// [`PublicationState::Failed`] where that was the last attempt.
    pub async fn publication_failed(
        &self,
        lock: &PrLock,
        publication: &Publication,
        error: &str,
        retry: &Retry,
        certain: bool,
    ) -> Result<PublicationState, StoreError> {
        let attempts = u32::try_from(publication.attempts).unwrap_or(1);
        let (delay, not_before) = match retry {
            Retry::Backoff(backoff) => (backoff.delay(attempts, chance()), None),
            Retry::After(delay) => (*delay, None),
            Retry::NotBefore(at) => (Duration::ZERO, Some(*at)),
            Retry::Never => (Duration::ZERO, None),
        };
        let counted = not_before.is_none();
        let mut transaction = self.pool().begin().await?;
        hold_for_publishing(&mut transaction, lock).await?;
        // A newer wish has its own attempts; only what is known of GitHub's side carries over to it.
        let state: Option<String> = sqlx::query_scalar(
            "UPDATE publications SET
                 started_at = CASE WHEN $3 AND NOT $9 THEN NULL ELSE started_at END,
                 last_error = $4,
                 state = CASE WHEN revision <> $2 OR state <> 'pending' THEN state
                              WHEN $7 OR ($8 AND attempts >= max_attempts) THEN 'failed' ELSE 'pending' END,
                 next_attempt_at = CASE WHEN revision = $2 THEN greatest(now() + make_interval(secs => $5), $6)
                                        ELSE greatest(next_attempt_at, $6) END,
                 attempts = attempts - CASE WHEN revision = $2 AND NOT $8 THEN 1 ELSE 0 END,
                 updated_at = now()
             WHERE id = $1 RETURNING state",
        )
        .bind(publication.id)
        .bind(publication.revision)
        .bind(certain)
        .bind(clean_text(error, 4096))
        .bind(seconds(delay))
        .bind(not_before)
        .bind(matches!(retry, Retry::Never))
        .bind(counted)
        .bind(publication.uncertain)
        .fetch_optional(&mut *transaction)
        .await?;
        let state = state.ok_or_else(|| missing(publication.id))?;
        transaction.commit().await?;
        Ok(PublicationState::parse(&state))
    }

    /// Finishes `publish` work: done where nothing is pending any more, else due again when the next retry is.
    pub async fn finish_publishing(&self, lease: &WorkLease) -> Result<Committed, StoreError> {
        let Some(lock) = lease.pr_lock() else {
            return Err(StoreError::Invalid {
                what: "publish work",
                why: "it is not about a pull request".to_owned(),
            });
        };
        let mut transaction = self.pool().begin().await?;
        hold_for_publishing(&mut transaction, &lock).await?;
        let wait: Option<f64> = sqlx::query_scalar(
            "SELECT extract(epoch FROM min(greatest(next_attempt_at, now())) - now())::float8 FROM publications
             WHERE repository = $1 AND pull_request = $2 AND state = 'pending'",
        )
        .bind(lock.repository())
        .bind(lock.pull_request())
        .fetch_one(&mut *transaction)
        .await?;
        let next = match wait {
            None => Next::Done,
            Some(wait) => Next::After(
                Duration::try_from_secs_f64(wait).unwrap_or_default(),
                Value::Object(serde_json::Map::new()),
            ),
        };
        let again = crate::commit::finish(&mut *transaction, lease, &next).await?;
        transaction.commit().await?;
        Ok(Committed { again, wishes: 0 })
    }

    /// The whole outbox of a pull request, for pages, for reconciling and for tests.
    pub async fn publications(&self, repository: &str, pull_request: i64) -> Result<Vec<Publication>, StoreError> {
        let sql = "SELECT id, repository, pull_request, kind, target, evaluation_id, desired, revision, state, attempts, started_at,
                          next_attempt_at, last_error, remote_id, remote_url, published_digest, desired_digest, published_at
                   FROM publications WHERE repository = $1 AND pull_request = $2 ORDER BY id";
        let rows: Vec<Row> = sqlx::query_as(sql)
            .bind(repository)
            .bind(pull_request)
            .fetch_all(self.pool())
            .await?;
        Ok(rows.into_iter().map(Publication::from).collect())
    }

    /// Wishes given up, the newest first.
    pub async fn failed_publications(&self, limit: i64) -> Result<Vec<Publication>, StoreError> {
        let sql = "SELECT id, repository, pull_request, kind, target, evaluation_id, desired, revision, state, attempts, started_at,
                          next_attempt_at, last_error, remote_id, remote_url, published_digest, desired_digest, published_at
                   FROM publications WHERE state = 'failed' ORDER BY updated_at DESC, id LIMIT $1";
        let rows: Vec<Row> = sqlx::query_as(sql).bind(limit).fetch_all(self.pool()).await?;
        Ok(rows.into_iter().map(Publication::from).collect())
    }

    /// Takes a wish up again that was given up, or that someone has changed on GitHub since it was shown. False: it is pending already, no
    /// longer wanted, or unknown.
    pub async fn revive_publication(&self, id: i64) -> Result<bool, StoreError> {
        let mut transaction = self.pool().begin().await?;
        let found: Option<(String, i64)> = sqlx::query_as(
            "UPDATE publications SET state = 'pending', attempts = 0, next_attempt_at = now(), published_digest = NULL,
                    revision = revision + 1, updated_at = now()
             WHERE id = $1 AND state IN ('failed', 'done') RETURNING repository, pull_request",
        )
        .bind(id)
        .fetch_optional(&mut *transaction)
        .await?;
        let Some((repository, pull_request)) = found else {
            return Ok(false);
        };
        request_work(&mut transaction, &[&publish_work(&repository, pull_request)]).await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// Forgets what is known of a thing on GitHub that is gone, such as a comment that someone deleted, so that it is made anew.
    pub async fn forget_remote(&self, lock: &PrLock, id: i64) -> Result<(), StoreError> {
        let forgotten = sqlx::query(
            "UPDATE publications SET remote_id = NULL, remote_url = NULL, published_digest = NULL, updated_at = now()
             WHERE id = $1 AND EXISTS (SELECT 1 FROM work WHERE kind = $2 AND key = $3 AND lease_no = $4 AND leased_until IS NOT NULL)",
        )
        .bind(id)
        .bind(lock.kind())
        .bind(lock.key())
        .bind(lock.lease_no())
        .execute(self.pool())
        .await?;
        if forgotten.rows_affected() == 0 {
            Err(lost(lock.kind(), lock.key(), lock.lease_no()))
        } else {
            Ok(())
        }
    }
}

/// The lock of other work on the same pull request is no right to publish: two would do it at once.
async fn hold_for_publishing(connection: &mut PgConnection, lock: &PrLock) -> Result<(), StoreError> {
    if lock.kind() != WORK_KIND_PUBLISH {
        return Err(StoreError::Invalid {
            what: "a publication",
            why: format!("the lock is one for {}, not for {WORK_KIND_PUBLISH}", lock.kind()),
        });
    }
    hold(connection, lock.kind(), lock.key(), lock.lease_no()).await
}

fn missing(id: i64) -> StoreError {
    StoreError::NotFound {
        what: "publication",
        id: id.to_string(),
    }
}
