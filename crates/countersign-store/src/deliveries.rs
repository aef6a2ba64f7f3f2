//! Deliveries after they are stored: those that no work takes along are claimed one by one; all can be looked at and taken up again.

use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::blobs::unpack;
use crate::error::{check_text, clean_text};
use crate::time::{Retry, chance, seconds};
use crate::work::{NewWork, notify, request_work};
use crate::{Store, StoreError};

/// Where a delivery stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryStatus {
    /// Stored, and not dealt with yet.
    Pending,
    /// Dealt with.
    Processed,
    /// Nothing to do.
    Ignored,
    /// Given up after too many attempts.
    Dead,
}

impl DeliveryStatus {
    fn parse(name: &str) -> Self {
        match name {
            "processed" => Self::Processed,
            "ignored" => Self::Ignored,
            "dead" => Self::Dead,
            _ => Self::Pending,
        }
    }
}

/// A delivery without its body.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct DeliveryHead {
    /// `X-GitHub-Delivery`.
    pub guid: String,
    /// `X-GitHub-Event`.
    pub event: String,
    /// `action` of the payload.
    pub action: Option<String>,
    /// When it was stored. Deliveries stored by one transaction have the same moment and no order among them.
    pub received_at: DateTime<Utc>,
    pub(crate) work_kind: String,
    pub(crate) work_key: String,
}

/// A stored delivery.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// `X-GitHub-Delivery`.
    pub guid: String,
    /// `X-GitHub-Event`.
    pub event: String,
    /// `action` of the payload.
    pub action: Option<String>,
    /// Full name of the repository.
    pub repository: Option<String>,
    /// Number of the pull request.
    pub pull_request: Option<i64>,
    /// When it was stored.
    pub received_at: DateTime<Utc>,
    /// The headers kept.
    pub headers: Value,
    /// The body, byte for byte.
    pub payload: Bytes,
    /// Where it stands.
    pub status: DeliveryStatus,
    /// Why there was nothing to do.
    pub ignored_reason: Option<String>,
    /// Attempts made.
    pub attempts: i32,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// Since when it is dealt with.
    pub processed_at: Option<DateTime<Utc>>,
}

/// A delivery claimed by [`Store::claim_deliveries`].
#[derive(Debug)]
pub struct DeliveryLease {
    delivery: Delivery,
}

impl DeliveryLease {
    /// The delivery. Its `attempts` counts this one.
    pub fn delivery(&self) -> &Delivery {
        &self.delivery
    }
}

#[derive(sqlx::FromRow)]
struct Row {
    guid: String,
    event: String,
    action: Option<String>,
    repository: Option<String>,
    pull_request: Option<i64>,
    received_at: DateTime<Utc>,
    headers: Value,
    payload: Vec<u8>,
    payload_encoding: String,
    status: String,
    ignored_reason: Option<String>,
    attempts: i32,
    last_error: Option<String>,
    processed_at: Option<DateTime<Utc>>,
}

impl Row {
    fn unpack(self) -> Result<Delivery, StoreError> {
        let payload = unpack(&self.payload_encoding, self.payload, None).map_err(|why| StoreError::Damaged {
            digest: format!("of delivery {}", self.guid),
            why,
        })?;
        Ok(Delivery {
            guid: self.guid,
            event: self.event,
            action: self.action,
            repository: self.repository,
            pull_request: self.pull_request,
            received_at: self.received_at,
            headers: self.headers,
            payload,
            status: DeliveryStatus::parse(&self.status),
            ignored_reason: self.ignored_reason,
            attempts: self.attempts,
            last_error: self.last_error,
            processed_at: self.processed_at,
        })
    }
}

impl Store {
    /// A stored delivery with its body.
    pub async fn delivery(&self, guid: &str) -> Result<Option<Delivery>, StoreError> {
        let row: Option<Row> = sqlx::query_as(
            "SELECT guid, event, action, repository, pull_request, received_at, headers, payload, payload_encoding, status,
                    ignored_reason, attempts, last_error, processed_at
             FROM deliveries WHERE guid = $1",
        )
        .bind(guid)
        .fetch_optional(self.pool())
        .await?;
        row.map(Row::unpack).transpose()
    }

    /// Which of these GUIDs are stored: for telling lost deliveries from those that came.
    pub async fn known_deliveries(&self, guids: &[String]) -> Result<Vec<String>, StoreError> {
        Ok(
            sqlx::query_scalar("SELECT guid FROM deliveries WHERE guid = ANY ($1) ORDER BY guid")
                .bind(guids)
                .fetch_all(self.pool())
                .await?,
        )
    }

    /// Takes deliveries that no work takes along ([`crate::Disposition::Pending`]), the oldest first. A claim that is not settled within
    /// `lease` runs out: that is how those of a killed process come back.
    pub async fn claim_deliveries(&self, most: usize, lease: Duration) -> Result<Vec<DeliveryLease>, StoreError> {
        let rows: Vec<Row> = sqlx::query_as(
            "WITH due AS (
                 SELECT guid FROM deliveries
                 WHERE status = 'pending' AND work_key IS NULL AND next_attempt_at <= now()
                 ORDER BY next_attempt_at, seq LIMIT $1 FOR UPDATE SKIP LOCKED
             )
             UPDATE deliveries d SET attempts = attempts + 1, last_error = NULL, next_attempt_at = now() + make_interval(secs => $2)
             FROM due WHERE d.guid = due.guid
             RETURNING d.guid, event, action, repository, pull_request, received_at, headers, payload, payload_encoding, status,
                       ignored_reason, attempts, last_error, processed_at",
        )
        .bind(i64::try_from(most).unwrap_or(i64::MAX))
        .bind(seconds(lease))
        .fetch_all(self.pool())
        .await?;
        let mut leases = Vec::with_capacity(rows.len());
        for row in rows {
            let (guid, attempts) = (row.guid.clone(), row.attempts);
            match row.unpack() {
                Ok(delivery) => leases.push(DeliveryLease { delivery }),
                // One damaged row must not keep the others from being handed out.
                Err(error) => {
                    self.settle(&guid, attempts, "dead", None, Some(&error.to_string()), &[])
                        .await?;
                }
            }
        }
        leases.sort_by(|a, b| {
            (a.delivery.received_at, &a.delivery.guid).cmp(&(b.delivery.received_at, &b.delivery.guid))
        });
        Ok(leases)
    }

    /// Settles a claimed delivery and asks for the work it leads to, in one transaction. False: the claim had run out and someone else has
    /// it; nothing was changed.
    pub async fn finish_delivery(&self, lease: &DeliveryLease, work: &[NewWork]) -> Result<bool, StoreError> {
        let delivery = &lease.delivery;
        self.settle(&delivery.guid, delivery.attempts, "processed", None, None, work)
            .await
    }

    /// Settles a claimed delivery as one with nothing to do. False: as for [`Store::finish_delivery`].
    pub async fn ignore_delivery(&self, lease: &DeliveryLease, reason: &str) -> Result<bool, StoreError> {
        check_text("the reason for ignoring a delivery", reason, 4096)?;
        let delivery = &lease.delivery;
        self.settle(&delivery.guid, delivery.attempts, "ignored", Some(reason), None, &[])
            .await
    }

    async fn settle(
        &self,
        guid: &str,
        attempts: i32,
        status: &str,
        reason: Option<&str>,
        error: Option<&str>,
        work: &[NewWork],
    ) -> Result<bool, StoreError> {
        let mut transaction = self.pool().begin().await?;
        let settled = sqlx::query(
            "UPDATE deliveries SET status = $3, ignored_reason = $4, last_error = $5, processed_at = now()
             WHERE guid = $1 AND attempts = $2 AND status = 'pending'",
        )
        .bind(guid)
        .bind(attempts)
        .bind(status)
        .bind(reason)
        .bind(error)
        .execute(&mut *transaction)
        .await?;
        if settled.rows_affected() == 0 {
            return Ok(false);
        }
        request_work(&mut transaction, &work.iter().collect::<Vec<_>>()).await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// Puts a claimed delivery back, to be tried again as `retry` says, or among the dead after `max_attempts`. Answers where it stands now;
    /// None: the claim had run out.
    pub async fn fail_delivery(
        &self,
        lease: &DeliveryLease,
        error: &str,
        retry: &Retry,
        max_attempts: i32,
    ) -> Result<Option<DeliveryStatus>, StoreError> {
        let attempts = lease.delivery.attempts;
        let (delay, not_before) = match retry {
            Retry::Backoff(backoff) => (backoff.delay(u32::try_from(attempts).unwrap_or(1), chance()), None),
            Retry::After(delay) => (*delay, None),
            Retry::NotBefore(at) => (Duration::ZERO, Some(*at)),
            Retry::Never => (Duration::ZERO, None),
        };
        let dead = matches!(retry, Retry::Never) || attempts >= max_attempts;
        let status: Option<String> = sqlx::query_scalar(
            "UPDATE deliveries SET last_error = $3, status = CASE WHEN $4 THEN 'dead' ELSE 'pending' END,
                 next_attempt_at = greatest(now() + make_interval(secs => $5), $6)
             WHERE guid = $1 AND attempts = $2 AND status = 'pending' RETURNING status",
        )
        .bind(&lease.delivery.guid)
        .bind(attempts)
        .bind(clean_text(error, 4096))
        .bind(dead)
        .bind(seconds(delay))
        .bind(not_before)
        .fetch_optional(self.pool())
        .await?;
        Ok(status.map(|name| DeliveryStatus::parse(&name)))
    }

    /// Deliveries not dealt with that came more than `age` ago, oldest first; with their work, where some work takes them along. For the sweep
    /// and for people.
    pub async fn pending_deliveries(&self, age: Duration, limit: i64) -> Result<Vec<Delivery>, StoreError> {
        self.list("status = 'pending'", age, limit).await
    }

    /// Deliveries given up, oldest first.
    pub async fn dead_deliveries(&self, limit: i64) -> Result<Vec<Delivery>, StoreError> {
        self.list("status = 'dead'", Duration::ZERO, limit).await
    }

    async fn list(&self, condition: &'static str, age: Duration, limit: i64) -> Result<Vec<Delivery>, StoreError> {
        let sql = format!(
            "SELECT guid, event, action, repository, pull_request, received_at, headers, payload, payload_encoding, status,
                    ignored_reason, attempts, last_error, processed_at
             FROM deliveries WHERE {condition} AND received_at <= now() - make_interval(secs => $1) ORDER BY seq LIMIT $2"
        );
        // The condition is one of the two literals above.
        let rows: Vec<Row> = sqlx::query_as(sqlx::AssertSqlSafe(sql))
            .bind(seconds(age))
            .bind(limit)
            .fetch_all(self.pool())
            .await?;
        rows.into_iter().map(Row::unpack).collect()
    }

    /// Takes a dead, processed or ignored delivery up again. What some work had taken along asks for that work anew.
    pub async fn redo_delivery(&self, guid: &str) -> Result<bool, StoreError> {
        let mut transaction = self.pool().begin().await?;
        let redone = sqlx::query(
            "UPDATE deliveries SET status = 'pending', ignored_reason = NULL, attempts = 0, next_attempt_at = now(), processed_at = NULL
             WHERE guid = $1 AND status <> 'pending'",
        )
        .bind(guid)
        .execute(&mut *transaction)
        .await?;
        if redone.rows_affected() == 0 {
            return Ok(false);
        }
        sqlx::query(
            "UPDATE work SET requested = requested + 1, run_at = greatest(now(), not_before), dead_at = NULL, attempts = 0
             FROM deliveries d WHERE d.guid = $1 AND work.kind = d.work_kind AND work.key = d.work_key",
        )
        .bind(guid)
        .execute(&mut *transaction)
        .await?;
        notify(&mut transaction).await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// Forgets deliveries that were dealt with more than `age` ago, at most `limit` of them, and answers how many. GitHub redelivers for three
    /// days only; an age of less than that would let a redelivery in as new.
    pub async fn prune_deliveries(&self, age: Duration, limit: i64) -> Result<u64, StoreError> {
        let pruned = sqlx::query(
            "DELETE FROM deliveries WHERE guid IN (
                 SELECT guid FROM deliveries
                 WHERE received_at < now() - make_interval(secs => $1) AND status IN ('processed', 'ignored') LIMIT $2)",
        )
        .bind(seconds(age))
        .bind(limit)
        .execute(self.pool())
        .await?;
        Ok(pruned.rows_affected())
    }
}
