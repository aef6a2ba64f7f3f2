//! The audit log: who did what. Rows are added and never changed; the database refuses anything else.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::error::{clean_json, clean_text};
use crate::{Store, StoreError};

/// A row to add.
#[derive(Debug, Clone, PartialEq)]
pub struct NewAudit {
    /// A login, or `countersign`.
    pub actor: String,
    /// What was done, such as `override` or `status_reasserted`.
    pub action: String,
    /// Where.
    pub repository: Option<String>,
    /// On which pull request.
    pub pull_request: Option<i64>,
    /// To which evaluation.
    pub evaluation: Option<Uuid>,
    /// One sentence for a person.
    pub message: String,
    /// Facts for a program.
    pub detail: Value,
}

/// A row of the log.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct AuditEntry {
    /// Grows with time.
    pub id: i64,
    /// When, by the database's clock.
    pub at: DateTime<Utc>,
    /// A login, or `countersign`.
    pub actor: String,
    /// What was done.
    pub action: String,
    /// Where.
    pub repository: Option<String>,
    /// On which pull request.
    pub pull_request: Option<i64>,
    /// To which evaluation.
    #[sqlx(rename = "evaluation_id")]
    pub evaluation: Option<Uuid>,
    /// One sentence for a person.
    pub message: String,
    /// Facts for a program.
    pub detail: Value,
}

/// Which rows to list; unset fields let everything through.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// Of this repository.
    pub repository: Option<String>,
    /// Of this pull request.
    pub pull_request: Option<i64>,
    /// Of this action.
    pub action: Option<String>,
    /// Older than this row: for the next page.
    pub before: Option<i64>,
}

pub(crate) async fn append_audit(connection: &mut PgConnection, entries: &[NewAudit]) -> Result<(), StoreError> {
    for entry in entries {
        sqlx::query(
            "INSERT INTO audit_log (actor, action, repository, pull_request, evaluation_id, message, detail)
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
        )
        .bind(clean_text(&entry.actor, 256))
        .bind(clean_text(&entry.action, 128))
        .bind(entry.repository.as_deref().map(|name| clean_text(name, 256)))
        .bind(entry.pull_request)
        .bind(entry.evaluation)
        .bind(clean_text(&entry.message, 8192))
        .bind(clean_json(&entry.detail))
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

impl Store {
    /// Adds rows, all or none.
    pub async fn audit(&self, entries: &[NewAudit]) -> Result<(), StoreError> {
        let mut transaction = self.pool().begin().await?;
        append_audit(&mut transaction, entries).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Rows of the log, newest first.
    pub async fn audit_entries(&self, filter: &AuditFilter, limit: i64) -> Result<Vec<AuditEntry>, StoreError> {
        let sql =
            "SELECT id, at, actor, action, repository, pull_request, evaluation_id, message, detail FROM audit_log
                   WHERE ($1::text IS NULL OR repository = $1) AND ($2::bigint IS NULL OR pull_request = $2)
                     AND ($3::text IS NULL OR action = $3) AND ($4::bigint IS NULL OR id < $4)
                   ORDER BY id DESC LIMIT $5";
        Ok(sqlx::query_as(sql)
            .bind(&filter.repository)
            .bind(filter.pull_request)
            .bind(&filter.action)
            .bind(filter.before)
            .bind(limit)
            .fetch_all(self.pool())
            .await?)
    }
}
