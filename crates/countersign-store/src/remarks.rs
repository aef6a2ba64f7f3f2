//! Comments, reviews and review comments that ever held a sign-off or a command.
//!
//! Events about them come in any order, twice, or not at all. What is kept is the newest version seen; a late event about an older one
//! changes nothing, and what was once deleted does not come back.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgConnection;

use crate::error::{check_text, clean_json};
use crate::time::seconds;
use crate::{Store, StoreError};

/// Where a sign-off stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SignoffState {
    /// It counts.
    Counted,
    /// It was made on a draft, and counts when that is ready.
    WaitingForReady,
    /// Someone else has edited it: it does not count.
    EditedByOther,
    /// It was deleted.
    Deleted,
    /// Its author edited it into something that is no sign-off.
    Withdrawn,
}

impl SignoffState {
    fn name(self) -> &'static str {
        match self {
            Self::Counted => "counted",
            Self::WaitingForReady => "waiting_for_ready",
            Self::EditedByOther => "edited_by_other",
            Self::Deleted => "deleted",
            Self::Withdrawn => "withdrawn",
        }
    }

    fn parse(name: &str) -> Self {
        match name {
            "waiting_for_ready" => Self::WaitingForReady,
            "edited_by_other" => Self::EditedByOther,
            "deleted" => Self::Deleted,
            "withdrawn" => Self::Withdrawn,
            _ => Self::Counted,
        }
    }
}

/// A version of a comment, review or review comment, as an event or the API showed it.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedRemark {
    /// Full name of the repository.
    pub repository: String,
    /// Number of the pull request.
    pub pull_request: i64,
    /// `issuecomment-<id>`, `pullrequestreview-<id>` or `discussion_r<id>`: also the key of a sign-off in it.
    pub source: String,
    /// Login of its author.
    pub author: String,
    /// Digest of its body.
    pub body_digest: String,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// `updated_at` of this version; for a deletion, when the event came.
    pub version_at: DateTime<Utc>,
    /// Whether it is gone.
    pub deleted: bool,
    /// The sign-off in it, if there is one. Must be None where it is gone.
    pub signoff: Option<NewSignoff>,
    /// All commands in it, in order. Must be empty where it is gone.
    pub commands: Vec<NewCommand>,
}

/// A sign-off as this version shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSignoff {
    /// Where it stands.
    pub state: SignoffState,
    /// When it was last edited, if ever.
    pub edited_at: Option<DateTime<Utc>>,
}

/// A command as this version shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct NewCommand {
    /// `reuse-sweep-run`, `use`, `verify`, …
    pub name: String,
    /// What follows it, and whatever else the caller wants to keep.
    pub arguments: Value,
    /// Author association when it was made, such as `MEMBER`.
    pub association: String,
}

/// What [`Store::observe_remark`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemarkOutcome {
    /// Something is new or different.
    Changed,
    /// All of it was known.
    Unchanged,
    /// A newer version or the deletion is known; nothing was changed.
    Stale,
    /// It holds no sign-off and no command, and never did: nothing is kept.
    Irrelevant,
}

/// A kept sign-off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signoff {
    /// Full name of the repository.
    pub repository: String,
    /// Its key: the comment, review or review comment it is in.
    pub signoff: String,
    /// Number of the pull request.
    pub pull_request: i64,
    /// Login of its author.
    pub author: String,
    /// Digest of the body.
    pub body_digest: String,
    /// Where it stands.
    pub state: SignoffState,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it was last edited, if ever.
    pub edited_at: Option<DateTime<Utc>>,
}

#[derive(sqlx::FromRow)]
struct SignoffRow {
    repository: String,
    signoff: String,
    pull_request: i64,
    author: String,
    body_digest: String,
    state: String,
    created_at: DateTime<Utc>,
    edited_at: Option<DateTime<Utc>>,
}

impl From<SignoffRow> for Signoff {
    fn from(row: SignoffRow) -> Self {
        Self {
            repository: row.repository,
            signoff: row.signoff,
            pull_request: row.pull_request,
            author: row.author,
            body_digest: row.body_digest,
            state: SignoffState::parse(&row.state),
            created_at: row.created_at,
            edited_at: row.edited_at,
        }
    }
}

/// A kept command.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct Command {
    /// Full name of the repository.
    pub repository: String,
    /// The comment it is in.
    pub source: String,
    /// Its place among the commands of that comment, from 0.
    pub ordinal: i32,
    /// Number of the pull request.
    pub pull_request: i64,
    /// Login of its author.
    pub author: String,
    /// Author association when it was made.
    pub association: String,
    /// Its name.
    pub name: String,
    /// What follows it.
    pub arguments: Value,
    /// When its comment was made.
    pub created_at: DateTime<Utc>,
    /// Since when it is deleted or edited away.
    pub revoked_at: Option<DateTime<Utc>>,
}

impl Store {
    /// Records a version of a comment, review or review comment with the sign-off and the commands in it.
    ///
    /// Call it for every version seen of whatever may hold one: that a command is no longer in a newer version revokes it.
    pub async fn observe_remark(&self, seen: &ObservedRemark) -> Result<RemarkOutcome, StoreError> {
        for (what, text) in [
            ("a repository", &seen.repository),
            ("a comment's key", &seen.source),
            ("an author", &seen.author),
            ("a digest", &seen.body_digest),
        ] {
            check_text(what, text, 256)?;
        }
        if seen.deleted && (seen.signoff.is_some() || !seen.commands.is_empty()) {
            return Err(StoreError::Invalid {
                what: "a deleted comment",
                why: "it holds a sign-off or a command".to_owned(),
            });
        }
        let mut transaction = self.pool().begin().await?;
        let before: Option<(DateTime<Utc>, Option<DateTime<Utc>>)> = sqlx::query_as(
            "SELECT version_at, deleted_at FROM remarks WHERE repository = $1 AND source = $2 FOR UPDATE",
        )
        .bind(&seen.repository)
        .bind(&seen.source)
        .fetch_optional(&mut *transaction)
        .await?;
        match before {
            Some((_, Some(_))) if seen.deleted => return Ok(RemarkOutcome::Unchanged),
            Some((_, Some(_))) => return Ok(RemarkOutcome::Stale),
            Some((version_at, None)) if version_at > seen.version_at && !seen.deleted => {
                return Ok(RemarkOutcome::Stale);
            }
            // A deletion is kept even where nothing is known: its "created" may still come.
            None if !seen.deleted && seen.signoff.is_none() && seen.commands.is_empty() => {
                return Ok(RemarkOutcome::Irrelevant);
            }
            _ => {}
        }
        // Two first sightings at once: the second waits here for the first, and then sees what that one wrote.
        let applied = sqlx::query(
            "INSERT INTO remarks AS r (repository, source, pull_request, author, body_digest, created_at, version_at, deleted_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, CASE WHEN $8 THEN $7 END)
             ON CONFLICT (repository, source) DO UPDATE SET
                 pull_request = excluded.pull_request, body_digest = excluded.body_digest,
                 version_at = greatest(r.version_at, excluded.version_at), deleted_at = excluded.deleted_at
             WHERE r.deleted_at IS NULL AND (r.version_at <= excluded.version_at OR excluded.deleted_at IS NOT NULL)",
        )
        .bind(&seen.repository)
        .bind(&seen.source)
        .bind(seen.pull_request)
        .bind(&seen.author)
        .bind(&seen.body_digest)
        .bind(seen.created_at)
        .bind(seen.version_at)
        .bind(seen.deleted)
        .execute(&mut *transaction)
        .await?;
        if applied.rows_affected() == 0 {
            return Ok(RemarkOutcome::Stale);
        }
        let mut changed = seen.deleted;
        changed |= write_signoff(&mut transaction, seen).await?;
        changed |= write_commands(&mut transaction, seen).await?;
        transaction.commit().await?;
        Ok(if changed {
            RemarkOutcome::Changed
        } else {
            RemarkOutcome::Unchanged
        })
    }

    /// Moves sign-offs of a pull request from one state to another, such as those that waited for it to be ready. Answers their keys.
    pub async fn move_signoffs(
        &self,
        repository: &str,
        pull_request: i64,
        from: SignoffState,
        to: SignoffState,
    ) -> Result<Vec<String>, StoreError> {
        Ok(sqlx::query_scalar(
            "UPDATE signoffs SET state = $4, changed_at = now()
             WHERE repository = $1 AND pull_request = $2 AND state = $3 RETURNING signoff",
        )
        .bind(repository)
        .bind(pull_request)
        .bind(from.name())
        .bind(to.name())
        .fetch_all(self.pool())
        .await?)
    }

    /// The sign-offs of a pull request, the oldest first.
    pub async fn signoffs(&self, repository: &str, pull_request: i64) -> Result<Vec<Signoff>, StoreError> {
        let rows: Vec<SignoffRow> = sqlx::query_as(
            "SELECT repository, signoff, pull_request, author, body_digest, state, created_at, edited_at FROM signoffs
             WHERE repository = $1 AND pull_request = $2 ORDER BY created_at, signoff",
        )
        .bind(repository)
        .bind(pull_request)
        .fetch_all(self.pool())
        .await?;
        Ok(rows.into_iter().map(Signoff::from).collect())
    }

    /// Sign-offs that count, on open pull requests that are no drafts, that we have known for `age` and never judged: whoever made them
    /// still waits. The oldest first; for the sweep.
    pub async fn unjudged_signoffs(&self, age: Duration, limit: i64) -> Result<Vec<Signoff>, StoreError> {
        let rows: Vec<SignoffRow> = sqlx::query_as(
            "SELECT s.repository, s.signoff, s.pull_request, s.author, s.body_digest, s.state, s.created_at, s.edited_at
             FROM signoffs s JOIN pull_requests p ON p.repository = s.repository AND p.number = s.pull_request
             WHERE s.state = 'counted' AND p.open AND NOT p.draft AND s.first_seen_at <= now() - make_interval(secs => $1)
               AND NOT EXISTS (SELECT 1 FROM evaluations e WHERE e.repository = s.repository
                               AND e.pull_request = s.pull_request AND e.signoff = s.signoff)
             ORDER BY s.first_seen_at, s.signoff LIMIT $2",
        )
        .bind(seconds(age))
        .bind(limit)
        .fetch_all(self.pool())
        .await?;
        Ok(rows.into_iter().map(Signoff::from).collect())
    }

    /// The commands of a pull request, revoked ones too, in the order in which they were made.
    pub async fn commands(&self, repository: &str, pull_request: i64) -> Result<Vec<Command>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT repository, source, ordinal, pull_request, author, association, name, arguments, created_at, revoked_at
             FROM commands WHERE repository = $1 AND pull_request = $2 ORDER BY created_at, source, ordinal",
        )
        .bind(repository)
        .bind(pull_request)
        .fetch_all(self.pool())
        .await?)
    }
}

async fn write_signoff(connection: &mut PgConnection, seen: &ObservedRemark) -> Result<bool, StoreError> {
    let changed = match &seen.signoff {
        Some(signoff) => {
            sqlx::query(
                "INSERT INTO signoffs AS s (repository, signoff, pull_request, author, body_digest, state, created_at, edited_at)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
                 ON CONFLICT (repository, signoff) DO UPDATE SET
                     pull_request = excluded.pull_request, body_digest = excluded.body_digest, state = excluded.state,
                     edited_at = excluded.edited_at, changed_at = now()
                 WHERE (s.pull_request, s.body_digest, s.state, s.edited_at) IS DISTINCT FROM
                       (excluded.pull_request, excluded.body_digest, excluded.state, excluded.edited_at)",
            )
            .bind(&seen.repository)
            .bind(&seen.source)
            .bind(seen.pull_request)
            .bind(&seen.author)
            .bind(&seen.body_digest)
            .bind(signoff.state.name())
            .bind(seen.created_at)
            .bind(signoff.edited_at)
            .execute(connection)
            .await?
        }
        None => {
            let state = if seen.deleted { SignoffState::Deleted } else { SignoffState::Withdrawn };
            sqlx::query(
                "UPDATE signoffs SET state = $3, changed_at = now() WHERE repository = $1 AND signoff = $2 AND state <> $3",
            )
            .bind(&seen.repository)
            .bind(&seen.source)
            .bind(state.name())
            .execute(connection)
            .await?
        }
    };
    Ok(changed.rows_affected() > 0)
}

async fn write_commands(connection: &mut PgConnection, seen: &ObservedRemark) -> Result<bool, StoreError> {
    let sql =
        "SELECT repository, source, ordinal, pull_request, author, association, name, arguments, created_at, revoked_at
               FROM commands WHERE repository = $1 AND source = $2";
    let before: Vec<Command> = sqlx::query_as(sql)
        .bind(&seen.repository)
        .bind(&seen.source)
        .fetch_all(&mut *connection)
        .await?;
    let mut before: BTreeMap<i32, Command> = before.into_iter().map(|command| (command.ordinal, command)).collect();
    let mut changed = false;
    for (ordinal, command) in (0_i32..).zip(&seen.commands) {
        check_text("the name of a command", &command.name, 128)?;
        check_text("an association", &command.association, 64)?;
        let arguments = clean_json(&command.arguments);
        let known = before.remove(&ordinal).is_some_and(|known| {
            known.name == command.name
                && known.arguments == arguments
                && known.association == command.association
                && known.pull_request == seen.pull_request
                && known.revoked_at.is_none()
        });
        if known {
            continue;
        }
        changed = true;
        sqlx::query(
            "INSERT INTO commands (repository, source, ordinal, pull_request, author, association, name, arguments, created_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
             ON CONFLICT (repository, source, ordinal) DO UPDATE SET
                 pull_request = excluded.pull_request, association = excluded.association, name = excluded.name,
                 arguments = excluded.arguments, revoked_at = NULL",
        )
        .bind(&seen.repository)
        .bind(&seen.source)
        .bind(ordinal)
        .bind(seen.pull_request)
        .bind(&seen.author)
        .bind(&command.association)
        .bind(&command.name)
        .bind(arguments)
        .bind(seen.created_at)
        .execute(&mut *connection)
        .await?;
    }
    let gone: Vec<i32> = before
        .into_values()
        .filter(|command| command.revoked_at.is_none())
        .map(|c| c.ordinal)
        .collect();
    if !gone.is_empty() {
        changed = true;
        sqlx::query("UPDATE commands SET revoked_at = $4 WHERE repository = $1 AND source = $2 AND ordinal = ANY ($3)")
            .bind(&seen.repository)
            .bind(&seen.source)
            .bind(gone)
            .bind(seen.version_at)
            .execute(connection)
            .await?;
    }
    Ok(changed)
}
