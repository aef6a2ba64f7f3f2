//! Requests refused before anything of them could be trusted: counted, and nothing else kept.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use chrono::NaiveDate;

use crate::{Store, StoreError};

/// Counts in memory, so that a flood of forged requests costs no write each.
#[derive(Debug, Default)]
pub struct RejectionCounter {
    counts: Mutex<BTreeMap<&'static str, i64>>,
}

impl RejectionCounter {
    /// Counts one request refused for this reason, such as `bad_signature`.
    pub fn count(&self, reason: &'static str) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(reason).or_default() += 1;
    }

    /// Adds what was counted since the last flush to the database: every few seconds, and at shutdown. On an error the counts are kept.
    pub async fn flush(&self, store: &Store) -> Result<(), StoreError> {
        let counts = std::mem::take(&mut *self.counts.lock().unwrap_or_else(PoisonError::into_inner));
        let result = store.add_rejected(&counts).await;
        if result.is_err() {
            let mut kept = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            for (reason, count) in counts {
                *kept.entry(reason).or_default() += count;
            }
        }
        result
    }
}

impl Store {
    async fn add_rejected(&self, counts: &BTreeMap<&'static str, i64>) -> Result<(), StoreError> {
        if counts.is_empty() {
            return Ok(());
        }
        sqlx::query(
            "INSERT INTO rejected_requests (reason, day, count)
             SELECT reason, (now() AT TIME ZONE 'UTC')::date, count FROM unnest($1::text[], $2::bigint[]) AS t (reason, count)
             ON CONFLICT (reason, day) DO UPDATE SET count = rejected_requests.count + excluded.count",
        )
        .bind(counts.keys().copied().collect::<Vec<_>>())
        .bind(counts.values().copied().collect::<Vec<_>>())
        .execute(self.pool())
        .await?;
        Ok(())
    }

    /// The counts: reason, day (UTC), number; newest day first.
    pub async fn rejected(&self, limit: i64) -> Result<Vec<(String, NaiveDate, i64)>, StoreError> {
        Ok(
            sqlx::query_as("SELECT reason, day, count FROM rejected_requests ORDER BY day DESC, reason LIMIT $1")
                .bind(limit)
                .fetch_all(self.pool())
                .await?,
        )
    }
}
