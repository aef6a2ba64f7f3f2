//! Verdicts, append-only, each with the digests of what it was made from.

use chrono::{DateTime, Utc};
use serde::de::IgnoredAny;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::error::check_text;
use crate::{Store, StoreError};

/// A verdict to keep. Evidence and policy are stored first ([`Store::put_blob`]).
#[derive(Debug, Clone)]
pub struct NewEvaluation {
    /// Chosen by the caller ([`NewEvaluation::fresh_id`]), since the comment links to it.
    pub id: Uuid,
    /// Key of the sign-off.
    pub signoff: String,
    /// The commit that was judged.
    pub head_sha: String,
    /// The commit whose rules and files were trusted.
    pub base_sha: String,
    /// `PASS`, `WARN`, `REJECTED`, `NEEDS CONFIRMATION`.
    pub decision: String,
    /// Digest of the evidence.
    pub evidence_digest: String,
    /// Digest of the policy.
    pub policy_digest: String,
    /// Its name.
    pub policy_name: String,
    /// Version of the program that judged.
    pub engine_version: String,
    /// The verdict as JSON text, kept byte for byte.
    pub verdict: String,
    /// The verdict it takes the place of.
    pub supersedes: Option<Uuid>,
}

/// A kept verdict.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct Evaluation {
    /// Its identifier.
    pub id: Uuid,
    /// Grows with each verdict kept.
    pub seq: i64,
    /// Full name of the repository.
    pub repository: String,
    /// Number of the pull request.
    pub pull_request: i64,
    /// Key of the sign-off.
    pub signoff: String,
    /// The commit that was judged.
    pub head_sha: String,
    /// The commit whose rules and files were trusted.
    pub base_sha: String,
    /// `PASS`, `WARN`, `REJECTED`, `NEEDS CONFIRMATION`.
    pub decision: String,
    /// Digest of the evidence.
    pub evidence_digest: String,
    /// Digest of the policy.
    pub policy_digest: String,
    /// Its name.
    pub policy_name: String,
    /// Version of the program that judged.
    pub engine_version: String,
    /// The verdict as JSON text, byte for byte as it was kept.
    pub verdict: String,
    /// The verdict it took the place of.
    pub supersedes: Option<Uuid>,
    /// When it was kept.
    pub created_at: DateTime<Utc>,
}

/// Which verdicts to list; unset fields let everything through.
#[derive(Debug, Clone, Default)]
pub struct EvaluationFilter {
    /// Of this repository.
    pub repository: Option<String>,
    /// Of this pull request.
    pub pull_request: Option<i64>,
    /// Of this sign-off.
    pub signoff: Option<String>,
    /// Of this head.
    pub head_sha: Option<String>,
    /// With this decision.
    pub decision: Option<String>,
    /// Kept before the one with this `seq`: for the next page.
    pub before: Option<i64>,
}

pub(crate) async fn insert_evaluation(
    connection: &mut PgConnection,
    repository: &str,
    pull_request: i64,
    evaluation: &NewEvaluation,
) -> Result<(), StoreError> {
    let NewEvaluation {
        id,
        signoff,
        head_sha,
        base_sha,
        decision,
        evidence_digest,
        policy_digest,
        policy_name,
        engine_version,
        verdict,
        supersedes,
    } = evaluation;
    for (what, text) in [
        ("a sign-off's key", signoff),
        ("a head", head_sha),
        ("a base", base_sha),
        ("a decision", decision),
        ("a policy's name", policy_name),
        ("a version", engine_version),
    ] {
        check_text(what, text, 256)?;
    }
    if let Err(error) = serde_json::from_str::<IgnoredAny>(verdict) {
        return Err(StoreError::Invalid {
            what: "a verdict",
            why: format!("it is not JSON: {error}"),
        });
    }
    sqlx::query(
        "INSERT INTO evaluations (id, repository, pull_request, signoff, head_sha, base_sha, decision, evidence_digest,
                                  policy_digest, policy_name, engine_version, verdict, supersedes)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12::text::json, $13)",
    )
    .bind(id)
    .bind(repository)
    .bind(pull_request)
    .bind(signoff)
    .bind(head_sha)
    .bind(base_sha)
    .bind(decision)
    .bind(evidence_digest)
    .bind(policy_digest)
    .bind(policy_name)
    .bind(engine_version)
    .bind(verdict)
    .bind(supersedes)
    .execute(connection)
    .await?;
    Ok(())
}

impl Store {
    /// A verdict by its identifier.
    pub async fn evaluation(&self, id: Uuid) -> Result<Option<Evaluation>, StoreError> {
        let sql = "SELECT id, seq, repository, pull_request, signoff, head_sha, base_sha, decision, evidence_digest, policy_digest,
                          policy_name, engine_version, verdict::text AS verdict, supersedes, created_at
                   FROM evaluations WHERE id = $1";
        Ok(sqlx::query_as(sql).bind(id).fetch_optional(self.pool()).await?)
    }

    /// The newest verdict of a sign-off, for this head or (None) for any.
    pub async fn latest_evaluation(
        &self,
        repository: &str,
        pull_request: i64,
        signoff: &str,
        head_sha: Option<&str>,
    ) -> Result<Option<Evaluation>, StoreError> {
        let filter = EvaluationFilter {
            repository: Some(repository.to_owned()),
            pull_request: Some(pull_request),
            signoff: Some(signoff.to_owned()),
            head_sha: head_sha.map(str::to_owned),
            ..EvaluationFilter::default()
        };
        Ok(self.evaluations(&filter, 1).await?.into_iter().next())
    }

    /// Verdicts, newest first.
    pub async fn evaluations(&self, filter: &EvaluationFilter, limit: i64) -> Result<Vec<Evaluation>, StoreError> {
        let sql = "SELECT id, seq, repository, pull_request, signoff, head_sha, base_sha, decision, evidence_digest, policy_digest,
                          policy_name, engine_version, verdict::text AS verdict, supersedes, created_at
                   FROM evaluations
                   WHERE ($1::text IS NULL OR repository = $1) AND ($2::bigint IS NULL OR pull_request = $2)
                     AND ($3::text IS NULL OR signoff = $3) AND ($4::text IS NULL OR head_sha = $4)
                     AND ($5::text IS NULL OR decision = $5) AND ($6::bigint IS NULL OR seq < $6)
                   ORDER BY seq DESC LIMIT $7";
        Ok(sqlx::query_as(sql)
            .bind(&filter.repository)
            .bind(filter.pull_request)
            .bind(&filter.signoff)
            .bind(&filter.head_sha)
            .bind(&filter.decision)
            .bind(filter.before)
            .bind(limit)
            .fetch_all(self.pool())
            .await?)
    }
}
