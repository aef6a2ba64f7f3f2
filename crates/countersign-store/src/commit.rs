//! The end of a run: everything it decided, in one transaction, made only by who still holds the lease.

use std::time::Duration;

use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::audit::append_audit;
use crate::error::clean_json;
use crate::evaluations::insert_evaluation;
use crate::lease::{hold, lost};
use crate::publications::{publish_work, supersede, wish};
use crate::time::seconds;
use crate::work::request_work;
use crate::{DesiredPublication, NewAudit, NewEvaluation, NewWork, PrLock, Store, StoreError, WorkLease};

/// What a run has decided.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Verdicts to keep.
    pub evaluations: Vec<NewEvaluation>,
    /// What GitHub ought to show. Asks for `publish` work where anything differs from what is shown.
    pub publications: Vec<DesiredPublication>,
    /// Kind and target of wishes that are pending and no longer wanted, such as the status of a head that is gone.
    pub superseded: Vec<(String, String)>,
    /// Rows of the audit log.
    pub audit: Vec<NewAudit>,
    /// Further work to ask for.
    pub work: Vec<NewWork>,
}

/// What becomes of the work after this run.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Nothing, until someone asks again.
    Done,
    /// Once more after this time, with this payload (an object): to look again at something that is not ready.
    After(Duration, Value),
}

/// What [`Store::commit`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed {
    /// Requests came in during the run: the key is due again.
    pub again: bool,
    /// So many wishes differ from what is shown, and are to be published.
    pub wishes: usize,
}

impl Store {
    /// Keeps what a run decided and finishes its work, in one transaction. [`StoreError::LeaseLost`]: nothing was kept.
    ///
    /// After a retryable error it is not known whether it was kept; [`WorkLease::fail`] finds out (a lost lease: it was, or someone else has it).
    pub async fn commit(&self, lease: &WorkLease, changes: &Changes, next: &Next) -> Result<Committed, StoreError> {
        let mut transaction = self.pool().begin().await?;
        hold(&mut transaction, lease.kind(), lease.key(), lease.lease_no()).await?;
        let wishes = apply(&mut transaction, lease.repository(), lease.pull_request(), changes).await?;
        let again = finish(&mut *transaction, lease, next).await?;
        transaction.commit().await?;
        Ok(Committed { again, wishes })
    }

    /// Finishes work that decided nothing.
    pub async fn finish(&self, lease: &WorkLease, next: &Next) -> Result<Committed, StoreError> {
        Ok(Committed {
            again: finish(self.pool(), lease, next).await?,
            wishes: 0,
        })
    }

    /// Keeps part of a run's decisions before its end, such as the status "running".
    pub async fn apply(&self, lock: &PrLock, changes: &Changes) -> Result<usize, StoreError> {
        let mut transaction = self.pool().begin().await?;
        hold(&mut transaction, lock.kind(), lock.key(), lock.lease_no()).await?;
        let wishes = apply(&mut transaction, lock.repository(), Some(lock.pull_request()), changes).await?;
        transaction.commit().await?;
        Ok(wishes)
    }
}

/// Whoever publishes holds the row of that work and then takes those of the wishes; so it is taken first here too, or both would wait for
/// each other until the database ends one of them.
async fn lock_publishing(connection: &mut PgConnection, repository: &str, pull_request: i64) -> Result<(), StoreError> {
    let work = publish_work(repository, pull_request);
    sqlx::query("SELECT 1 FROM work WHERE kind = $1 AND key = $2 FOR UPDATE")
        .bind(&work.kind)
        .bind(&work.key)
        .execute(connection)
        .await?;
    Ok(())
}

async fn apply(
    connection: &mut PgConnection,
    repository: &str,
    pull_request: Option<i64>,
    changes: &Changes,
) -> Result<usize, StoreError> {
    let of_pull_request = |what: &'static str| {
        pull_request.ok_or_else(|| StoreError::Invalid {
            what,
            why: "the work is not about a pull request".to_owned(),
        })
    };
    if let Some(pull_request) = pull_request
        && !(changes.publications.is_empty() && changes.superseded.is_empty())
    {
        lock_publishing(connection, repository, pull_request).await?;
    }
    for evaluation in &changes.evaluations {
        insert_evaluation(connection, repository, of_pull_request("an evaluation")?, evaluation).await?;
    }
    for (kind, target) in &changes.superseded {
        supersede(
            connection,
            repository,
            of_pull_request("a superseded publication")?,
            kind,
            target,
        )
        .await?;
    }
    let mut wishes = 0;
    for publication in &changes.publications {
        if wish(connection, repository, of_pull_request("a publication")?, publication).await? {
            wishes += 1;
        }
    }
    append_audit(connection, &changes.audit).await?;
    let publish = match pull_request {
        Some(pull_request) if wishes > 0 => Some(publish_work(repository, pull_request)),
        _ => None,
    };
    let work: Vec<&NewWork> = changes.work.iter().chain(&publish).collect();
    request_work(connection, &work).await?;
    Ok(wishes)
}

/// Marks the run's requests and deliveries as served, in one statement, and wakes the workers where others came in meanwhile; it answers that.
///
/// Where nothing came in, what is left is what this run asks of itself. Where something did, that is due now and keeps all payloads.
const FINISH: &str = "
    WITH finished AS (
        UPDATE work SET
            done = $4, requested = requested + $5,
            attempts = 0, leased_until = NULL, leased_by = NULL, last_error = NULL, finished_at = now(),
            run_at = CASE WHEN requested > $4 THEN greatest(now(), not_before) ELSE now() + make_interval(secs => $6) END,
            payload = CASE WHEN requested > $4 THEN payload || $7::jsonb ELSE $7::jsonb END,
            waiting_since = now()
        WHERE kind = $1 AND key = $2 AND lease_no = $3 AND leased_until IS NOT NULL
        RETURNING requested > done AND run_at <= now() AS again
    ),
    served AS (
        UPDATE deliveries SET status = 'processed', processed_at = now(), attempts = attempts + 1, last_error = NULL
        WHERE guid = ANY ($8) AND status = 'pending' AND EXISTS (SELECT 1 FROM finished)
    )
    SELECT again FROM finished CROSS JOIN LATERAL (
        SELECT CASE WHEN again THEN pg_notify('countersign_work', '') END) AS notified";

pub(crate) async fn finish(
    executor: impl sqlx::PgExecutor<'_>,
    lease: &WorkLease,
    next: &Next,
) -> Result<bool, StoreError> {
    let (later, delay, payload) = match next {
        Next::Done => (0_i64, Duration::ZERO, Value::Object(serde_json::Map::new())),
        Next::After(_, payload) if !payload.is_object() => {
            return Err(StoreError::Invalid {
                what: "work",
                why: "its payload is not an object".to_owned(),
            });
        }
        Next::After(delay, payload) => (1, *delay, clean_json(payload)),
    };
    let guids: Vec<&str> = lease
        .deliveries()
        .iter()
        .map(|delivery| delivery.guid.as_str())
        .collect();
    let again: Option<bool> = sqlx::query_scalar(FINISH)
        .bind(lease.kind())
        .bind(lease.key())
        .bind(lease.lease_no())
        .bind(lease.requested())
        .bind(later)
        .bind(seconds(delay))
        .bind(payload.to_string())
        .bind(guids)
        .fetch_optional(executor)
        .await?;
    again.ok_or_else(|| lost(lease.kind(), lease.key(), lease.lease_no()))
}

/// Identifies an evaluation before it is stored, since its comment links to it.
impl NewEvaluation {
    /// A fresh identifier.
    pub fn fresh_id() -> Uuid {
        Uuid::new_v4()
    }
}
