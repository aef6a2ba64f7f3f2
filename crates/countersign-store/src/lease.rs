//! What a claim hands out: the right to work on one key, for a while, and the proof of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgConnection;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::deliveries::DeliveryHead;
use crate::error::clean_text;
use crate::time::{Retry, chance, seconds};
use crate::work::{ClaimedRow, notify};
use crate::{Store, StoreError};

/// Proof that this process, and no other over all replicas, works on one pull request.
///
/// It can only be had from a claim ([`WorkLease::pr_lock`]); whatever publishes takes it as an argument. It carries the lease's
/// number: once someone else has claimed the pull request, whatever is written with the old number changes nothing and fails with
/// [`StoreError::LeaseLost`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrLock {
    kind: String,
    key: String,
    repository: String,
    pull_request: i64,
    lease_no: i64,
}

impl PrLock {
    /// Full name of the repository.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// Number of the pull request.
    pub fn pull_request(&self) -> i64 {
        self.pull_request
    }

    /// Kind of the work it comes from.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The fencing number: grows with each claim of the key.
    pub fn lease_no(&self) -> i64 {
        self.lease_no
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }
}

/// The right to work on one key until it is finished, failed, given back, or runs out.
#[derive(Debug)]
pub struct WorkLease {
    store: Store,
    row: ClaimedRow,
    deliveries: Vec<DeliveryHead>,
    duration: Duration,
}

impl std::fmt::Debug for ClaimedRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} {} (lease {}, attempt {})",
            self.kind, self.key, self.lease_no, self.attempts
        )
    }
}

impl WorkLease {
    pub(crate) fn new(store: Store, row: ClaimedRow, deliveries: Vec<DeliveryHead>, duration: Duration) -> Self {
        Self {
            store,
            row,
            deliveries,
            duration,
        }
    }

    /// Kind of work.
    pub fn kind(&self) -> &str {
        &self.row.kind
    }

    /// Key of work.
    pub fn key(&self) -> &str {
        &self.row.key
    }

    /// Full name of the repository.
    pub fn repository(&self) -> &str {
        &self.row.repository
    }

    /// Number of the pull request, where the work is about one.
    pub fn pull_request(&self) -> Option<i64> {
        self.row.pull_request
    }

    /// The payloads of all waiting requests, laid over each other.
    pub fn payload(&self) -> &Value {
        &self.row.payload
    }

    /// The deliveries that asked for this run. They are marked processed when it finishes.
    pub fn deliveries(&self) -> &[DeliveryHead] {
        &self.deliveries
    }

    /// 1 for the first attempt.
    pub fn attempt(&self) -> i32 {
        self.row.attempts
    }

    /// Whether a failure of this attempt is the last one.
    pub fn is_last_attempt(&self) -> bool {
        self.row.attempts >= self.row.max_attempts
    }

    /// What went wrong at the attempt before.
    pub fn last_error(&self) -> Option<&str> {
        self.row.last_error.as_deref()
    }

    /// Since when the oldest of the requests waits.
    pub fn waiting_since(&self) -> DateTime<Utc> {
        self.row.waiting_since
    }

    /// The fencing number.
    pub fn lease_no(&self) -> i64 {
        self.row.lease_no
    }

    pub(crate) fn requested(&self) -> i64 {
        self.row.requested
    }

    /// Proof that this pull request is ours. None: the work is not about one.
    pub fn pr_lock(&self) -> Option<PrLock> {
        Some(PrLock {
            kind: self.row.kind.clone(),
            key: self.row.key.clone(),
            repository: self.row.repository.clone(),
            pull_request: self.row.pull_request?,
            lease_no: self.row.lease_no,
        })
    }

    fn lost(&self) -> StoreError {
        lost(&self.row.kind, &self.row.key, self.row.lease_no)
    }

    /// Extends the lease by its full length from now.
    pub async fn heartbeat(&self) -> Result<(), StoreError> {
        extend(
            &self.store,
            &self.row.kind,
            &self.row.key,
            self.row.lease_no,
            self.duration,
        )
        .await
    }

    /// Extends the lease from a task of its own, three times in its length, until the keeper is dropped.
    pub fn keep(&self) -> Keeper {
        Keeper::start(
            self.store.clone(),
            self.row.kind.clone(),
            self.row.key.clone(),
            self.row.lease_no,
            self.duration,
        )
    }

    /// Ends a failed attempt: the key becomes due again as `retry` says, or goes to the dead letters where that was the last attempt.
    /// Answers whether it is dead now. The deliveries stay pending, for the next attempt.
    pub async fn fail(self, error: &str, retry: &Retry) -> Result<bool, StoreError> {
        let attempts = u32::try_from(self.row.attempts).unwrap_or(1);
        let (delay, not_before) = match retry {
            Retry::Backoff(backoff) => (backoff.delay(attempts, chance()), None),
            Retry::After(delay) => (*delay, None),
            Retry::NotBefore(at) => (Duration::ZERO, Some(*at)),
            Retry::Never => (Duration::ZERO, None),
        };
        // Waiting for a rate limit says nothing against the work: such an attempt is not counted.
        let counted = !matches!(retry, Retry::NotBefore(_));
        let dead: Option<bool> = sqlx::query_scalar(
            "UPDATE work SET
                 leased_until = NULL, leased_by = NULL, last_error = $4,
                 run_at = greatest(now() + make_interval(secs => $5), $6), not_before = $6,
                 dead_at = CASE WHEN $7 OR ($8 AND attempts >= max_attempts) THEN now() END,
                 attempts = attempts - CASE WHEN $8 THEN 0 ELSE 1 END
             WHERE kind = $1 AND key = $2 AND lease_no = $3 AND leased_until IS NOT NULL
             RETURNING dead_at IS NOT NULL",
        )
        .bind(&self.row.kind)
        .bind(&self.row.key)
        .bind(self.row.lease_no)
        .bind(clean_text(error, 4096))
        .bind(seconds(delay))
        .bind(not_before)
        .bind(matches!(retry, Retry::Never))
        .bind(counted)
        .fetch_optional(self.store.pool())
        .await?;
        dead.ok_or_else(|| self.lost())
    }

    /// Ends the work for good, until someone revives it: the same as failing with [`Retry::Never`].
    pub async fn bury(self, error: &str) -> Result<(), StoreError> {
        self.fail(error, &Retry::Never).await.map(|_| ())
    }

    /// Gives the work back as if it had never been claimed, for the next replica: a shutdown.
    pub async fn release(self) -> Result<(), StoreError> {
        let mut transaction = self.store.pool().begin().await?;
        let released = sqlx::query(
            "UPDATE work SET leased_until = NULL, leased_by = NULL, attempts = attempts - 1
             WHERE kind = $1 AND key = $2 AND lease_no = $3 AND leased_until IS NOT NULL",
        )
        .bind(&self.row.kind)
        .bind(&self.row.key)
        .bind(self.row.lease_no)
        .execute(&mut *transaction)
        .await?;
        if released.rows_affected() == 0 {
            return Err(self.lost());
        }
        notify(&mut transaction).await?;
        transaction.commit().await?;
        Ok(())
    }
}

impl Store {
    /// Checks that the lock is still ours and extends it to at least `duration` from now: to be called right before a write to GitHub
    /// that is not idempotent, with a duration longer than that write may take.
    pub async fn confirm_lock(&self, lock: &PrLock, duration: Duration) -> Result<(), StoreError> {
        extend(self, &lock.kind, &lock.key, lock.lease_no, duration).await
    }
}

async fn extend(store: &Store, kind: &str, key: &str, lease_no: i64, duration: Duration) -> Result<(), StoreError> {
    let extended = sqlx::query(
        "UPDATE work SET leased_until = greatest(leased_until, now() + make_interval(secs => $4))
         WHERE kind = $1 AND key = $2 AND lease_no = $3 AND leased_until IS NOT NULL",
    )
    .bind(kind)
    .bind(key)
    .bind(lease_no)
    .bind(seconds(duration))
    .execute(store.pool())
    .await?;
    if extended.rows_affected() == 0 {
        Err(lost(kind, key, lease_no))
    } else {
        Ok(())
    }
}

pub(crate) fn lost(kind: &str, key: &str, lease_no: i64) -> StoreError {
    StoreError::LeaseLost {
        kind: kind.to_owned(),
        key: key.to_owned(),
        lease_no,
    }
}

/// Locks the row of a lease for the rest of the transaction, and fails where the lease is not held any more.
pub(crate) async fn hold(
    connection: &mut PgConnection,
    kind: &str,
    key: &str,
    lease_no: i64,
) -> Result<(), StoreError> {
    let held: Option<i32> = sqlx::query_scalar(
        "SELECT 1 FROM work WHERE kind = $1 AND key = $2 AND lease_no = $3 AND leased_until IS NOT NULL FOR UPDATE",
    )
    .bind(kind)
    .bind(key)
    .bind(lease_no)
    .fetch_optional(connection)
    .await?;
    held.map(|_| ()).ok_or_else(|| lost(kind, key, lease_no))
}

/// Extends a lease in the background. Dropping it stops that; the lease then runs out by itself.
#[derive(Debug)]
pub struct Keeper {
    task: JoinHandle<()>,
    lost: watch::Receiver<bool>,
    flag: Arc<AtomicBool>,
}

impl Keeper {
    fn start(store: Store, kind: String, key: String, lease_no: i64, duration: Duration) -> Self {
        let (sender, lost) = watch::channel(false);
        let flag = Arc::new(AtomicBool::new(false));
        let set = Arc::clone(&flag);
        let task = tokio::spawn(async move {
            let mut safe_until = tokio::time::Instant::now() + duration;
            loop {
                tokio::time::sleep(duration / 3).await;
                let asked = tokio::time::Instant::now();
                match extend(&store, &kind, &key, lease_no, duration).await {
                    Ok(()) => safe_until = asked + duration,
                    // The database is away: as long as the lease lasts, it is ours; it may be back in time.
                    Err(error) if error.retryable() && tokio::time::Instant::now() < safe_until => {
                        tracing::warn!(work.kind = kind, work.key = key, %error, "a lease could not be extended yet");
                    }
                    Err(_) => {
                        set.store(true, Ordering::Release);
                        let _ = sender.send(true);
                        return;
                    }
                }
            }
        });
        Self { task, lost, flag }
    }

    /// Whether the lease is known to be lost.
    pub fn is_lost(&self) -> bool {
        self.flag.load(Ordering::Acquire)
    }

    /// Returns when the lease is lost; waits for ever while it is not. For `select!` beside the work, which is then dropped.
    pub async fn lost(&self) {
        let mut lost = self.lost.clone();
        if lost.wait_for(|lost| *lost).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.task.abort();
    }
}
