//! The outbox to GitHub. Each wish is made true by itself; whatever happens between two steps, doing it again is harmless.

use countersign_core::PrNumber;
use countersign_core::render::State;
use countersign_github::publish::{
    DesiredAnswer, DesiredCheckRun, DesiredComment, DesiredStatus, ForeignStatus, Reaction, StatusState, ensure_answer,
    ensure_check_run, ensure_comment, ensure_reaction, look_at_status, minimise, own_comment_node,
    own_verdict_comments, write_status,
};
use countersign_github::{GitHubError, RepoClient};
use countersign_store::{
    AuditFilter, Backoff, NewAudit, PrLock, Publication, PublicationState, Published, Retry, WorkLease,
};
use serde_json::json;

use futures::future::BoxFuture;

use crate::engine::{Engine, JudgeError, retry_of};
use crate::points;
use crate::wishes::{self, StatusWish, Wish};

/// Entries of the audit log on one pull request among which a replaced status is looked for.
const NOTED: i64 = 50;

impl Engine {
    /// Makes GitHub show what the outbox wishes for the pull request of a lease.
    pub(crate) fn publish<'a>(&'a self, lease: &'a WorkLease) -> BoxFuture<'a, Result<(), JudgeError>> {
        Box::pin(self.publish_inner(lease))
    }

    async fn publish_inner(&self, lease: &WorkLease) -> Result<(), JudgeError> {
        let (Some(lock), Some(number)) = (
            lease.pr_lock(),
            lease.pull_request().and_then(|number| u64::try_from(number).ok()),
        ) else {
            return Ok(());
        };
        points::reach("publish-claimed");
        let Ok(repository) = lease.repository().parse() else {
            return Ok(());
        };
        let client = self.app.repository(&repository).await?;
        for due in self.store.due_publications(&lock).await? {
            let Some(wish) = self.store.begin_publication(&lock, &due).await? else {
                continue;
            };
            points::reach("publication-begun");
            match self.show(&client, PrNumber(number), &lock, &wish).await {
                Ok(published) => {
                    self.store.publication_done(&lock, &wish, &published).await?;
                    points::reach("publication-recorded");
                }
                Err(JudgeError::GitHub(error)) => self.note_failure(&lock, &wish, &error).await?,
                // Nothing is known of the attempt: it stays begun, and the next one looks first.
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn note_failure(&self, lock: &PrLock, wish: &Publication, error: &GitHubError) -> Result<(), JudgeError> {
        let retry = match error {
            // A comment that is gone needs no reaction and no folding.
            GitHubError::NotFound { .. } | GitHubError::Gone { .. }
                if wish.kind == "reaction" || wish.kind == "minimise" =>
            {
                Retry::Never
            }
            error => retry_of(error.retry()),
        };
        let state = self
            .store
            .publication_failed(lock, wish, &error.to_string(), &retry, !error.is_ambiguous())
            .await?;
        tracing::warn!(repo.name = %wish.repository, pr.number = wish.pull_request, kind = %wish.kind, %error, "could not publish");
        metrics::counter!("countersign_publish_failures_total", "kind" => wish.kind.clone()).increment(1);
        if state == PublicationState::Failed {
            tracing::error!(repo.name = %wish.repository, pr.number = wish.pull_request, kind = %wish.kind, "given up publishing");
        }
        Ok(())
    }

    async fn show(
        &self,
        client: &RepoClient,
        number: PrNumber,
        lock: &PrLock,
        row: &Publication,
    ) -> Result<Published, JudgeError> {
        let wish = wishes::read(&row.kind, &row.desired).map_err(|error| GitHubError::Config(error.to_string()))?;
        match wish {
            Wish::Comment(wish) => {
                // Other comments of ours must not be taken for this one: a changed decision has a comment of its own.
                let rows = self.store.publications(lock.repository(), lock.pull_request()).await?;
                let others = other_comments(&rows, &row.target);
                let published = ensure_comment(
                    client,
                    &DesiredComment {
                        pull_request: number,
                        marker: &wish.marker,
                        signoff: wish.signoff,
                        head: &wish.head,
                        body: &wish.body,
                        remembered: row.remote_id.as_deref().and_then(|id| id.parse().ok()),
                        not_these: &others,
                        uncertain: row.uncertain,
                    },
                )
                .await?;
                points::reach("comment-written");
                Ok(Published {
                    remote_id: Some(published.id.to_string()),
                    remote_url: Some(published.url),
                })
            }
            Wish::Status(wish) => {
                let state = match wish.state {
                    State::Success => StatusState::Success,
                    State::Failure => StatusState::Failure,
                    State::Pending => StatusState::Pending,
                    State::Error => StatusState::Error,
                };
                let desired = DesiredStatus {
                    sha: &wish.head,
                    context: &wish.context,
                    state,
                    description: &wish.description,
                    target_url: wish.url.as_deref(),
                };
                let before = look_at_status(client, &desired).await?;
                // Recorded first: of a write whose answer is lost, or after which we die, nothing tells any more what it replaced.
                if let Some(other) = &before.replaces {
                    self.note_replaced(row, &wish, other).await?;
                }
                write_status(client, &desired, before).await?;
                points::reach("status-written");
                Ok(Published::default())
            }
            Wish::Reaction(wish) => {
                let reaction = match wish.usable {
                    Some(true) => Reaction::Plus,
                    Some(false) => Reaction::Minus,
                    None => Reaction::None,
                };
                ensure_reaction(client, wish.comment, reaction).await?;
                Ok(Published::default())
            }
            Wish::CheckRun(wish) => {
                let external = wish.signoff.to_string();
                let desired = DesiredCheckRun {
                    head: &wish.head,
                    name: &wish.name,
                    external_id: &external,
                    conclusion: Some(wish.conclusion),
                    title: &wish.title,
                    summary: &wish.summary,
                    text: None,
                    details_url: wish.url.as_deref(),
                    annotations: &wish.annotations,
                    actions: &[],
                };
                let published = ensure_check_run(client, &desired).await?;
                Ok(Published {
                    remote_id: Some(published.id.to_string()),
                    remote_url: None,
                })
            }
            Wish::Answer(wish) => {
                let desired = DesiredAnswer {
                    pull_request: number,
                    body: &wish.body,
                };
                let published = ensure_answer(client, &desired).await?;
                Ok(Published {
                    remote_id: Some(published.id.to_string()),
                    remote_url: Some(published.url),
                })
            }
            Wish::Minimise(wish) => {
                self.fold(client, number, lock, &wish.comment_target).await?;
                Ok(Published::default())
            }
        }
    }

    /// Folds an older verdict, if it was ever posted. One whose answer was lost is looked for among our own comments.
    async fn fold(&self, client: &RepoClient, number: PrNumber, lock: &PrLock, target: &str) -> Result<(), JudgeError> {
        let rows = self.store.publications(lock.repository(), lock.pull_request()).await?;
        let Some(row) = rows
            .iter()
            .find(|row| wishes::is_comment(&row.kind) && row.target == target)
        else {
            return Ok(());
        };
        if let Some(id) = row.remote_id.as_deref().and_then(|id| id.parse().ok()) {
            // By its id, whatever it says now: somebody may have edited our marker away.
            if let Some(node) = own_comment_node(client, number, id).await? {
                minimise(client, &node).await?;
            }
            return Ok(());
        }
        if !row.uncertain {
            return Ok(());
        }
        let wish = wishes::read(&row.kind, &row.desired).map_err(|error| GitHubError::Config(error.to_string()))?;
        let Wish::Comment(wish) = wish else {
            return Ok(());
        };
        let others = other_comments(&rows, target);
        let own = own_verdict_comments(client, number, &wish.marker).await?;
        let posted = own.into_iter().find(|comment| {
            comment.signoff == wish.signoff && comment.head == wish.head && !others.contains(&comment.id)
        });
        if let Some(comment) = posted {
            // Remembered first: else the newer verdict could take this one for its own.
            let found = Published {
                remote_id: Some(comment.id.to_string()),
                remote_url: Some(comment.url),
            };
            self.store.publication_done(lock, row, &found).await?;
            minimise(client, &comment.node_id).await?;
        }
        Ok(())
    }

    /// Once for each status of another that is replaced.
    async fn note_replaced(
        &self,
        row: &Publication,
        wish: &StatusWish,
        other: &ForeignStatus,
    ) -> Result<(), JudgeError> {
        let ForeignStatus { by, id } = other;
        let entry = NewAudit {
            actor: by.to_string(),
            action: "status_reasserted".into(),
            repository: Some(row.repository.clone()),
            pull_request: Some(row.pull_request),
            evaluation: row.evaluation,
            message: format!("{by} had written our status on {}; it was replaced", wish.head),
            detail: json!({ "context": wish.context, "sha": wish.head, "status": id }),
        };
        let filter = AuditFilter {
            repository: Some(row.repository.clone()),
            pull_request: Some(row.pull_request),
            action: Some(entry.action.clone()),
            ..AuditFilter::default()
        };
        let known = self.store.audit_entries(&filter, NOTED).await?;
        if !known.iter().any(|known| known.detail == entry.detail) {
            self.store.audit(&[entry]).await?;
        }
        Ok(())
    }
}

/// Ids of the comments that we wrote for anything but one target.
fn other_comments(rows: &[Publication], except: &str) -> Vec<u64> {
    rows.iter()
        .filter(|row| wishes::is_answer(&row.kind) || wishes::is_comment(&row.kind) && row.target != except)
        .filter_map(|row| row.remote_id.as_deref()?.parse().ok())
        .collect()
}

/// The wait after a failed publication.
#[must_use]
pub(crate) fn backoff() -> Retry {
    Retry::Backoff(Backoff::default())
}
