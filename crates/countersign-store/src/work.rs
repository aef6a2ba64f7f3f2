//! The queue: one row for each thing that may need work (docs/decisions/0003-job-queue.md).
//!
//! Requests for one key coalesce, one key never runs twice at once, and an event that comes in during a run makes it run once more.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgConnection;

use crate::deliveries::DeliveryHead;
use crate::error::{check_text, clean_json};
use crate::lease::WorkLease;
use crate::time::seconds;
use crate::{Store, StoreError};

/// A request for work.
#[derive(Debug, Clone, PartialEq)]
pub struct NewWork {
    /// What is to be done, such as `verify`; claimers choose by it.
    pub kind: String,
    /// What it is to be done to, such as `octo/hello#12`. One row for each kind and key.
    pub key: String,
    /// Whose turn it uses up.
    pub repository: String,
    /// The pull request, where it is about one: such work yields a [`crate::PrLock`].
    pub pull_request: Option<i64>,
    /// An object. Its fields are laid over those of requests that still wait for the same key.
    pub payload: Value,
    /// Not before this time from now. Where the key waits already, the earlier moment counts.
    pub delay: Duration,
    /// Claims without a finish, after which the work goes to the dead letters.
    pub max_attempts: i32,
}

impl NewWork {
    /// Work on one pull request, due now.
    pub fn on_pull_request(kind: &str, repository: &str, pull_request: i64) -> Self {
        Self {
            kind: kind.to_owned(),
            key: format!("{repository}#{pull_request}"),
            repository: repository.to_owned(),
            pull_request: Some(pull_request),
            payload: Value::Object(serde_json::Map::new()),
            delay: Duration::ZERO,
            max_attempts: 10,
        }
    }

    /// Work on a repository as a whole, due now.
    pub fn on_repository(kind: &str, repository: &str) -> Self {
        Self {
            key: repository.to_owned(),
            pull_request: None,
            ..Self::on_pull_request(kind, repository, 0)
        }
    }

    /// The same with this payload, an object.
    #[must_use]
    pub fn with_payload(mut self, payload: Value) -> Self {
        self.payload = payload;
        self
    }

    /// The same, but not before this time from now.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    pub(crate) fn check(&self) -> Result<(), StoreError> {
        check_text("the kind of work", &self.kind, 64)?;
        check_text("the key of work", &self.key, 512)?;
        check_text("the repository of work", &self.repository, 256)?;
        let invalid = |why: &str| {
            Err(StoreError::Invalid {
                what: "work",
                why: why.to_owned(),
            })
        };
        if self.kind.is_empty() || self.key.is_empty() {
            return invalid("its kind or key is empty");
        }
        if !self.payload.is_object() {
            return invalid("its payload is not an object");
        }
        if self.max_attempts < 1 {
            return invalid("it must have one attempt at least");
        }
        Ok(())
    }
}

/// Which work to claim.
#[derive(Debug, Clone)]
pub struct ClaimOptions {
    /// Kinds to take.
    pub kinds: Vec<String>,
    /// How many at most: the worker's free hands.
    pub most: usize,
    /// How long the lease lasts unless it is extended ([`WorkLease::keep`]).
    pub lease: Duration,
    /// How many of one repository may run at once, over all replicas. Claims made at the same moment may exceed it by a few.
    pub per_repository: usize,
}

impl ClaimOptions {
    /// One piece of these kinds, for a minute.
    pub fn of(kinds: &[&str]) -> Self {
        Self {
            kinds: kinds.iter().map(|kind| (*kind).to_owned()).collect(),
            most: 1,
            lease: Duration::from_secs(60),
            per_repository: usize::MAX,
        }
    }
}

/// What a claim brought.
#[derive(Debug)]
pub struct Claimed {
    /// Held by this process now.
    pub leases: Vec<WorkLease>,
    /// Found to have used up their attempts by dying or losing their lease, and put to the dead letters now.
    pub buried: Vec<DeadWork>,
}

/// Work that is not tried any more, until someone revives it or a new event asks for it.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct DeadWork {
    /// Kind of work.
    pub kind: String,
    /// Key of work.
    pub key: String,
    /// Its repository.
    pub repository: String,
    /// Its pull request.
    pub pull_request: Option<i64>,
    /// Attempts made.
    pub attempts: i32,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// Since when.
    pub dead_at: DateTime<Utc>,
}

/// A row of the queue, for people.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct WorkRow {
    /// Kind of work.
    pub kind: String,
    /// Key of work.
    pub key: String,
    /// Its repository.
    pub repository: String,
    /// Its pull request.
    pub pull_request: Option<i64>,
    /// Requests ever made.
    pub requested: i64,
    /// Requests served.
    pub done: i64,
    /// When it is due.
    pub run_at: DateTime<Utc>,
    /// Attempts of the present round.
    pub attempts: i32,
    /// Until when someone holds it.
    pub leased_until: Option<DateTime<Utc>>,
    /// Who.
    pub leased_by: Option<String>,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// Since when it is dead.
    pub dead_at: Option<DateTime<Utc>>,
    /// Since when its oldest open request waits.
    pub waiting_since: DateTime<Utc>,
}

/// Several requests for one key in one statement count as what they are.
const REQUEST: &str = "
    INSERT INTO work (kind, key, repository, pull_request, requested, run_at, max_attempts, payload)
    SELECT kind, key, repository, pull_request, requested, now() + make_interval(secs => delay), max_attempts, payload::jsonb
    FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::float8[], $7::int[], $8::text[])
         WITH ORDINALITY AS t (kind, key, repository, pull_request, requested, delay, max_attempts, payload, ordinal)
    ORDER BY ordinal
    ON CONFLICT (kind, key) DO UPDATE SET
        requested = work.requested + excluded.requested,
        repository = excluded.repository,
        pull_request = excluded.pull_request,
        max_attempts = excluded.max_attempts,
        payload = work.payload || excluded.payload,
        run_at = greatest(
            CASE WHEN work.requested > work.done AND work.dead_at IS NULL
                 THEN least(work.run_at, excluded.run_at) ELSE excluded.run_at END,
            work.not_before),
        waiting_since = CASE WHEN work.requested > work.done THEN work.waiting_since ELSE now() END,
        -- A new event is a new fact: what was given up is tried again.
        attempts = CASE WHEN work.dead_at IS NULL THEN work.attempts ELSE 0 END,
        dead_at = NULL";

/// Bumps the rows of the work asked for, and wakes the workers when the transaction commits.
pub(crate) async fn request_work(connection: &mut PgConnection, work: &[&NewWork]) -> Result<(), StoreError> {
    if work.is_empty() {
        return Ok(());
    }
    // Sorted by key, so that two transactions lock rows in the same order.
    let mut merged: BTreeMap<(&str, &str), (NewWork, i64)> = BTreeMap::new();
    for one in work {
        one.check()?;
        merged
            .entry((&one.kind, &one.key))
            .and_modify(|(before, count)| {
                *count += 1;
                before.delay = before.delay.min(one.delay);
                if let (Value::Object(fields), Value::Object(more)) = (&mut before.payload, &one.payload) {
                    fields.extend(more.clone());
                }
            })
            .or_insert_with(|| ((*one).clone(), 1));
    }
    let rows: Vec<&(NewWork, i64)> = merged.values().collect();
    sqlx::query(REQUEST)
        .bind(rows.iter().map(|row| row.0.kind.as_str()).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.0.key.as_str()).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.0.repository.as_str()).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.0.pull_request).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.1).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| seconds(row.0.delay)).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.0.max_attempts).collect::<Vec<_>>())
        .bind(
            rows.iter()
                .map(|row| clean_json(&row.0.payload).to_string())
                .collect::<Vec<_>>(),
        )
        .execute(&mut *connection)
        .await?;
    notify(connection).await
}

/// Wakes the workers of all replicas when the transaction commits; many in one transaction count once.
pub(crate) async fn notify(connection: &mut PgConnection) -> Result<(), StoreError> {
    sqlx::query("SELECT pg_notify('countersign_work', '')")
        .execute(connection)
        .await?;
    Ok(())
}

/// Work whose lease ran out at its last attempt.
const BURY_EXHAUSTED: &str = "
    UPDATE work SET leased_until = NULL, leased_by = NULL, dead_at = statement_timestamp(),
        last_error = coalesce(last_error || ' · ', '') || 'the worker died or lost its lease'
    WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM work WHERE leased_until <= statement_timestamp() AND attempts >= max_attempts FOR UPDATE SKIP LOCKED))
    RETURNING kind, key, repository, pull_request, attempts, last_error, dead_at";

/// One statement, so that nothing is held while a message travels. Several claimers may choose the same rows; each takes the first ones that
/// no other has, from more candidates than it wants.
///
/// Each step is a look-up in an index, whatever the planner believes of a table that fills and empties within minutes: some conditions are
/// written in a way (`requested - done > 0`) that keeps it from taking an index by which it would read everything that waits.
const CLAIM: &str = "
    WITH RECURSIVE
    -- The kinds and repositories that have anything to claim, each found by one step through the index.
    waiting (kind, repository) AS (
        (SELECT kind, repository FROM work
         WHERE requested > done AND dead_at IS NULL AND leased_until IS NULL ORDER BY kind, repository LIMIT 1)
        UNION ALL
        SELECT following.kind, following.repository FROM waiting CROSS JOIN LATERAL (
            SELECT w.kind, w.repository FROM work w
            WHERE w.requested > w.done AND w.dead_at IS NULL AND w.leased_until IS NULL
              AND (w.kind, w.repository) > (waiting.kind, waiting.repository)
            ORDER BY w.kind, w.repository LIMIT 1) AS following
    ),
    -- Read once: for the number of each repository, and for those that ran out.
    leased AS MATERIALIZED (
        SELECT kind, key, repository, run_at, attempts < max_attempts AS again, leased_until <= statement_timestamp() AS expired
        FROM work WHERE leased_until > '-infinity'
    ),
    held (repository, number) AS (
        SELECT repository, count(*) FROM leased WHERE NOT expired AND kind = ANY ($1) GROUP BY repository
    ),
    due (kind, key, repository, run_at) AS (
        SELECT first.kind, first.key, first.repository, first.run_at
        FROM waiting CROSS JOIN LATERAL (
            SELECT w.kind, w.key, w.repository, w.run_at FROM work w
            WHERE w.kind = waiting.kind AND w.repository = waiting.repository
              AND w.requested > w.done AND w.dead_at IS NULL AND w.leased_until IS NULL
              AND w.run_at <= statement_timestamp()
            -- Of many repositories a few each are enough.
            ORDER BY w.run_at, w.key
            LIMIT (SELECT greatest(4, 2 * $6 / greatest(1, count(*))) FROM waiting AS all_of_them WHERE kind = ANY ($1))
        ) AS first
        WHERE waiting.kind = ANY ($1)
        UNION ALL
        SELECT kind, key, repository, run_at FROM leased WHERE expired AND again AND kind = ANY ($1)
    ),
    candidates AS MATERIALIZED (
        SELECT kind, key FROM (
            SELECT due.kind, due.key, due.run_at, turns.served_at, coalesce(held.number, 0) AS held,
                   row_number() OVER (PARTITION BY repository ORDER BY due.run_at, due.key) AS nth
            FROM due LEFT JOIN held USING (repository) LEFT JOIN repository_turns turns USING (repository)
        ) AS ranked
        WHERE nth <= $3 - held
        ORDER BY nth, served_at NULLS FIRST, run_at, key
        LIMIT $6
    ),
    locked AS MATERIALIZED (
        -- A row that an event is bumping right now is skipped: that event's own wake-up follows.
        SELECT row.kind, row.key FROM candidates CROSS JOIN LATERAL (
            SELECT w.kind, w.key FROM work w
            WHERE w.kind = candidates.kind AND w.key = candidates.key
              AND w.requested - w.done > 0 AND w.dead_at IS NULL
              AND coalesce(w.leased_until, '-infinity') <= statement_timestamp()
            FOR UPDATE SKIP LOCKED) AS row
        LIMIT $2
    ),
    claimed AS (
        UPDATE work w SET
            leased_until = statement_timestamp() + make_interval(secs => $4), leased_by = $5,
            lease_no = w.lease_no + 1, attempts = w.attempts + 1, not_before = NULL
        FROM locked WHERE w.kind = locked.kind AND w.key = locked.key
        RETURNING w.kind, w.key, w.repository, w.pull_request, w.requested, w.lease_no, w.attempts, w.max_attempts, w.payload,
                  w.last_error, w.waiting_since
    ),
    turns AS (
        -- Sorted, so that two claimers lock them in the same order.
        INSERT INTO repository_turns (repository, served_at)
        SELECT repository, clock_timestamp() FROM claimed GROUP BY repository ORDER BY repository
        ON CONFLICT (repository) DO UPDATE SET served_at = excluded.served_at
    )
    SELECT * FROM claimed ORDER BY kind, key";

#[derive(sqlx::FromRow)]
pub(crate) struct ClaimedRow {
    pub(crate) kind: String,
    pub(crate) key: String,
    pub(crate) repository: String,
    pub(crate) pull_request: Option<i64>,
    pub(crate) requested: i64,
    pub(crate) lease_no: i64,
    pub(crate) attempts: i32,
    pub(crate) max_attempts: i32,
    pub(crate) payload: Value,
    pub(crate) last_error: Option<String>,
    pub(crate) waiting_since: DateTime<Utc>,
}

impl Store {
    /// Asks for work outside of a delivery: a repair, a timer, a command line.
    pub async fn request_work(&self, work: &[NewWork]) -> Result<(), StoreError> {
        let mut transaction = self.pool().begin().await?;
        request_work(&mut transaction, &work.iter().collect::<Vec<_>>()).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Takes work that is due: the repository served longest ago first, within it the longest due first. One claimer for each process, with as
    /// many hands as it has free, is the cheapest way. A claim may bring fewer than are due: nothing is left only when it brings nothing.
    pub async fn claim_work(&self, options: &ClaimOptions) -> Result<Claimed, StoreError> {
        let bound = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let candidates = options.most.saturating_mul(2).saturating_add(16);
        let rows: Vec<ClaimedRow> = sqlx::query_as(CLAIM)
            .bind(&options.kinds)
            .bind(bound(options.most))
            .bind(bound(options.per_repository))
            .bind(seconds(options.lease))
            .bind(self.name())
            .bind(bound(candidates))
            .fetch_all(self.pool())
            .await?;
        // Whoever has time does it.
        let buried = if rows.len() < options.most {
            sqlx::query_as(BURY_EXHAUSTED).fetch_all(self.pool()).await?
        } else {
            Vec::new()
        };
        let mut deliveries = if rows.is_empty() {
            BTreeMap::new()
        } else {
            self.deliveries_of(&rows).await?
        };
        let leases = rows
            .into_iter()
            .map(|row| {
                let heads = deliveries
                    .remove(&(row.kind.clone(), row.key.clone()))
                    .unwrap_or_default();
                WorkLease::new(self.clone(), row, heads, options.lease)
            })
            .collect();
        Ok(Claimed { leases, buried })
    }

    /// The pending deliveries of what was claimed. Read after the claim, so they are those that `requested` counts, and perhaps some that came
    /// since: the run may serve these too, and there will be another run for them all the same.
    async fn deliveries_of(
        &self,
        rows: &[ClaimedRow],
    ) -> Result<BTreeMap<(String, String), Vec<DeliveryHead>>, StoreError> {
        let heads: Vec<DeliveryHead> = sqlx::query_as(
            "SELECT d.guid, d.event, d.action, d.received_at, d.work_kind, d.work_key
             FROM unnest($1::text[], $2::text[]) AS t (kind, key)
             JOIN deliveries d ON d.work_kind = t.kind AND d.work_key = t.key
             WHERE d.status = 'pending' AND d.work_key IS NOT NULL ORDER BY d.seq",
        )
        .bind(rows.iter().map(|row| row.kind.as_str()).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.key.as_str()).collect::<Vec<_>>())
        .fetch_all(self.pool())
        .await?;
        let mut deliveries: BTreeMap<(String, String), Vec<DeliveryHead>> = BTreeMap::new();
        for head in heads {
            let key = (head.work_kind.clone(), head.work_key.clone());
            deliveries.entry(key).or_default().push(head);
        }
        Ok(deliveries)
    }

    /// How long until the next work of these kinds comes due or runs out of its lease, by the database's clock; None: nothing waits. Zero
    /// also where work is due but its repository has as much running as it may.
    pub async fn next_work_in(&self, kinds: &[&str]) -> Result<Option<Duration>, StoreError> {
        let wait: Option<f64> = sqlx::query_scalar(
            "SELECT extract(epoch FROM min(greatest(at, now())) - now())::float8 FROM (
                 SELECT run_at AS at FROM work
                 WHERE requested > done AND dead_at IS NULL AND leased_until IS NULL AND kind = ANY ($1)
                 UNION ALL
                 SELECT leased_until FROM work WHERE leased_until IS NOT NULL AND kind = ANY ($1)) AS open",
        )
        .bind(kinds.iter().map(|kind| (*kind).to_owned()).collect::<Vec<_>>())
        .fetch_one(self.pool())
        .await?;
        Ok(wait.map(|wait| Duration::try_from_secs_f64(wait).unwrap_or_default()))
    }

    /// The row of a key, for people and tests.
    pub async fn work(&self, kind: &str, key: &str) -> Result<Option<WorkRow>, StoreError> {
        let sql = "SELECT kind, key, repository, pull_request, requested, done, run_at, attempts, leased_until, leased_by, last_error,
                          dead_at, waiting_since
                   FROM work WHERE kind = $1 AND key = $2";
        Ok(sqlx::query_as(sql)
            .bind(kind)
            .bind(key)
            .fetch_optional(self.pool())
            .await?)
    }

    /// Work that waits or runs, the longest waiting first.
    pub async fn pending_work(&self, limit: i64) -> Result<Vec<WorkRow>, StoreError> {
        let sql = "SELECT kind, key, repository, pull_request, requested, done, run_at, attempts, leased_until, leased_by, last_error,
                          dead_at, waiting_since
                   FROM work WHERE requested > done AND dead_at IS NULL ORDER BY waiting_since, kind, key LIMIT $1";
        Ok(sqlx::query_as(sql).bind(limit).fetch_all(self.pool()).await?)
    }

    /// The dead letters, the newest first.
    pub async fn dead_work(&self, limit: i64) -> Result<Vec<DeadWork>, StoreError> {
        let sql = "SELECT kind, key, repository, pull_request, attempts, last_error, dead_at FROM work
                   WHERE dead_at IS NOT NULL ORDER BY dead_at DESC, kind, key LIMIT $1";
        Ok(sqlx::query_as(sql).bind(limit).fetch_all(self.pool()).await?)
    }

    /// Takes dead work up again, now, with all its attempts. False: it was not dead.
    pub async fn revive_work(&self, kind: &str, key: &str) -> Result<bool, StoreError> {
        let mut transaction = self.pool().begin().await?;
        let revived = sqlx::query(
            "UPDATE work SET dead_at = NULL, attempts = 0, run_at = now(), not_before = NULL
             WHERE kind = $1 AND key = $2 AND dead_at IS NOT NULL",
        )
        .bind(kind)
        .bind(key)
        .execute(&mut *transaction)
        .await?
        .rows_affected();
        if revived > 0 {
            notify(&mut transaction).await?;
        }
        transaction.commit().await?;
        Ok(revived > 0)
    }
}
