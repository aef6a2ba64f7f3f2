//! Numbers: for metrics, for `/readyz`, and for tests that wait until nothing is left to do.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::{Store, StoreError};

/// How much waits. Cheap: finished rows are not looked at.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Counts {
    /// Deliveries not dealt with, whether by themselves or along with work.
    pub deliveries_pending: i64,
    /// Deliveries given up.
    pub deliveries_dead: i64,
    /// Seconds since the oldest pending delivery came.
    pub oldest_delivery_seconds: Option<f64>,
    /// The queue, by kind of work, in the order of names.
    pub work: Vec<WorkCounts>,
    /// Wishes that are to be written.
    pub publications_pending: i64,
    /// Wishes given up.
    pub publications_failed: i64,
    /// Repositories left alone for now.
    pub repositories_quarantined: i64,
}

/// The queue of one kind of work.
#[derive(Debug, Clone, PartialEq, Default, sqlx::FromRow)]
pub struct WorkCounts {
    /// Kind of work.
    pub kind: String,
    /// Due, and no one has it.
    pub due: i64,
    /// Due later.
    pub scheduled: i64,
    /// Someone has it.
    pub running: i64,
    /// Someone had it, and the lease ran out.
    pub abandoned: i64,
    /// Given up.
    pub dead: i64,
    /// Seconds since the oldest request that is due was made.
    pub oldest_seconds: Option<f64>,
}

/// Whether anything is left to do now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// Nothing is due or under way.
    pub now: bool,
    /// Nothing is scheduled for later either.
    pub empty: bool,
    /// When the next thing comes due, where something waits.
    pub next_at: Option<DateTime<Utc>>,
}

impl Store {
    /// How much waits.
    pub async fn counts(&self) -> Result<Counts, StoreError> {
        let (deliveries_pending, oldest_delivery_seconds): (i64, Option<f64>) = sqlx::query_as(
            "SELECT sum(n)::bigint, max(age) FROM (
                 SELECT count(*) AS n, extract(epoch FROM now() - min(received_at))::float8 AS age
                 FROM deliveries WHERE status = 'pending' AND work_key IS NULL
                 UNION ALL
                 SELECT count(*), extract(epoch FROM now() - min(received_at))::float8
                 FROM deliveries WHERE status = 'pending' AND work_key IS NOT NULL) AS both_kinds",
        )
        .fetch_one(self.pool())
        .await?;
        let deliveries_dead = self
            .count("SELECT count(*) FROM deliveries WHERE status = 'dead'")
            .await?;
        let work: Vec<WorkCounts> = sqlx::query_as(
            "SELECT kind,
                    count(*) FILTER (WHERE dead_at IS NULL AND leased_until IS NULL AND run_at <= now()) AS due,
                    count(*) FILTER (WHERE dead_at IS NULL AND leased_until IS NULL AND run_at > now()) AS scheduled,
                    count(*) FILTER (WHERE leased_until > now()) AS running,
                    count(*) FILTER (WHERE leased_until <= now()) AS abandoned,
                    count(*) FILTER (WHERE dead_at IS NOT NULL) AS dead,
                    extract(epoch FROM now() - min(waiting_since) FILTER (WHERE dead_at IS NULL AND run_at <= now()))::float8
                        AS oldest_seconds
             FROM (
                 SELECT * FROM work WHERE requested > done AND dead_at IS NULL AND leased_until IS NULL
                 UNION ALL
                 SELECT * FROM work WHERE leased_until IS NOT NULL
                 UNION ALL
                 SELECT * FROM work WHERE dead_at IS NOT NULL) AS open
             GROUP BY kind ORDER BY kind",
        )
        .fetch_all(self.pool())
        .await?;
        Ok(Counts {
            deliveries_pending,
            deliveries_dead,
            oldest_delivery_seconds,
            work,
            publications_pending: self
                .count("SELECT count(*) FROM publications WHERE state = 'pending'")
                .await?,
            publications_failed: self
                .count("SELECT count(*) FROM publications WHERE state = 'failed'")
                .await?,
            repositories_quarantined: self
                .count("SELECT count(*) FROM repositories WHERE quarantined_until > now()")
                .await?,
        })
    }

    async fn count(&self, sql: &'static str) -> Result<i64, StoreError> {
        Ok(sqlx::query_scalar(sql).fetch_one(self.pool()).await?)
    }

    /// Whether inbox, queue and outbox have anything left to do. Dead letters do not count; a delivery that some work takes along counts
    /// as that work does, and a pending wish as its `publish` work.
    pub async fn settled(&self) -> Result<Settled, StoreError> {
        let (now, empty, next_at): (bool, bool, Option<DateTime<Utc>>) = sqlx::query_as(
            "SELECT coalesce(bool_and(at > now() AND NOT running), true), count(*) = 0, min(at) FROM (
                 SELECT run_at AS at, false AS running FROM work
                 WHERE requested > done AND dead_at IS NULL AND leased_until IS NULL
                 UNION ALL
                 SELECT run_at, true FROM work WHERE leased_until IS NOT NULL
                 UNION ALL
                 SELECT next_attempt_at, attempts > 0 AND last_error IS NULL FROM deliveries
                 WHERE status = 'pending' AND work_key IS NULL) AS open",
        )
        .fetch_one(self.pool())
        .await?;
        Ok(Settled { now, empty, next_at })
    }

    /// Whether nothing is left to do, now or later.
    pub async fn queue_empty(&self) -> Result<bool, StoreError> {
        Ok(self.settled().await?.empty)
    }

    /// Waits until nothing is due or under way, at most `timeout`. Answers the last state seen.
    pub async fn wait_until_settled(&self, timeout: Duration) -> Result<Settled, StoreError> {
        let deadline = tokio::time::Instant::now() + timeout;
        loop {
            let settled = self.settled().await?;
            if settled.now || tokio::time::Instant::now() >= deadline {
                return Ok(settled);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
