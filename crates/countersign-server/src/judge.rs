//! One look at one pull request: read its state, gather, judge, store, and wish what GitHub ought to show.
//!
//! The same look answers every event. What it finds depends on GitHub and the store alone, so it may be repeated at any
//! time and by any replica; only the holder of the lease can keep its result.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use countersign_core::render::{HeadState, comment, status_line, waiting_line};
use countersign_core::{CauseKind, CommitSha, Decision, Evidence, PrNumber, RepoName, Verdict, digest};
use countersign_github::{GatherRequest, Gathered, PullInfo, RepoClient, gather};
use countersign_policy::LoadedPolicy;
use countersign_store::{
    BlobKind, Changes, Evaluation, NewAudit, NewEvaluation, Next, PrLock, PullRequestState, WorkLease,
};
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::conversation::{self, Conversation, Found};
use crate::engine::{Engine, JudgeError};
use crate::points;
use crate::wishes::{self, CommentWish, MinimiseWish, ReactionWish, StatusWish};

/// How often something that could not be read is tried again.
const RETRY_UNAVAILABLE: Duration = Duration::from_secs(60);
/// How often it is tried after the status said that it cannot be judged.
const RETRY_AFTER_DEADLINE: Duration = Duration::from_secs(1800);
/// A commit this much younger than the sign-off's last edit was not seen by the signer (clocks differ a little).
const COMMIT_TOLERANCE: TimeDelta = TimeDelta::minutes(2);

/// What one look is about.
struct Look<'a> {
    engine: &'a Engine,
    client: RepoClient,
    policy: &'a LoadedPolicy,
    repository: RepoName,
    number: PrNumber,
    pull: PullInfo,
    lock: PrLock,
    now: DateTime<Utc>,
}

impl Engine {
    /// Looks at the pull request of a lease. The caller commits what comes of it.
    pub(crate) fn judge<'a>(&'a self, lease: &'a WorkLease) -> BoxFuture<'a, Result<(Changes, Next), JudgeError>> {
        Box::pin(self.judge_inner(lease))
    }

    async fn judge_inner(&self, lease: &WorkLease) -> Result<(Changes, Next), JudgeError> {
        let nothing = Ok((Changes::default(), Next::Done));
        let (Some(lock), Some(number)) = (
            lease.pr_lock(),
            lease.pull_request().and_then(|number| u64::try_from(number).ok()),
        ) else {
            return nothing;
        };
        let Ok(repository) = lease.repository().parse::<RepoName>() else {
            return nothing;
        };
        let Some(entry) = self.settings.repository(repository.as_str()).cloned() else {
            return nothing;
        };
        let policy = self.policies.get(&entry.policy)?;
        let client: BoxFuture<'_, Result<RepoClient, countersign_github::GitHubError>> =
            Box::pin(self.app.repository(&repository));
        let client = client.await?;
        let pull = match client.pull_request(PrNumber(number)).await {
            Err(countersign_github::GitHubError::NotFound { .. }) => return nothing,
            other => other?,
        };
        points::reach("pull-request-read");
        let look = Look {
            engine: self,
            client,
            policy: &policy,
            repository,
            number: PrNumber(number),
            pull,
            lock,
            now: self.clock.now(),
        };
        let (mut changes, next) = look.run(lease.payload()).await?;
        if entry.shadow {
            changes.publications.clear();
            changes.superseded.clear();
        }
        Ok((changes, next))
    }
}

impl Look<'_> {
    async fn run(&self, payload: &Value) -> Result<(Changes, Next), JudgeError> {
        let store = &self.engine.store;
        let pull_request = i64::try_from(self.number.0).unwrap_or(i64::MAX);
        store.observe_pull_request(&self.state(pull_request)).await?;
        let head = self.pull.head_sha.clone();
        let seen = store
            .head_seen(self.repository.as_str(), pull_request, head.as_str(), self.now)
            .await?;
        if !self.pull.open {
            return Ok((Changes::default(), Next::Done));
        }
        let thread: BoxFuture<'_, Result<Vec<countersign_github::ThreadItem>, countersign_github::GitHubError>> =
            Box::pin(self.client.thread(self.number));
        let thread = thread.await?;
        let own = self.engine.identity().await?;
        let conversation = conversation::read(
            store,
            &self.repository,
            self.number,
            &thread,
            &self.policy.policy,
            &own,
            self.pull.draft,
            self.now,
        )
        .await?;
        points::reach("thread-recorded");
        let Some(found) = &conversation.newest else {
            return Ok((self.without_signoff(&conversation), Next::Done));
        };
        if self.pull.draft {
            return Ok((self.status_only(&HeadState::WaitingForReady, Some(found)), Next::Done));
        }
        let signoff = found.item.key;
        let pinned = if seen.had_another && seen.first_seen_at > found.item.updated_at {
            // This head came after the sign-off was written: it was taken for an earlier one, whichever that was.
            None
        } else {
            let pinned = store
                .pin_signoff(
                    self.repository.as_str(),
                    &signoff.to_string(),
                    &found.digest,
                    head.as_str(),
                    self.now,
                )
                .await?;
            (pinned == head.as_str()).then_some(pinned)
        };
        if pinned.is_none() {
            return self.stale(found).await;
        }
        let before = store
            .latest_evaluation(
                self.repository.as_str(),
                pull_request,
                &signoff.to_string(),
                Some(head.as_str()),
            )
            .await?;
        if before.is_none() && payload.get(UNAVAILABLE_SINCE).is_none() {
            store
                .apply(&self.lock, &self.status_only(&HeadState::Running, Some(found)))
                .await?;
            points::reach("running-status-wished");
        }
        let request = GatherRequest {
            pull_request: self.number,
            signoff,
            policy: self.policy,
            now: self.now,
            head_seen_at: seen.had_another.then_some(seen.first_seen_at),
        };
        let again = |delay| Ok((Changes::default(), Next::After(delay, payload.clone())));
        let gathering: BoxFuture<'_, Result<Gathered, countersign_github::GatherError>> =
            Box::pin(gather(&self.client, &request));
        match gathering.await? {
            Gathered::Evidence { evidence, stats } => {
                points::reach("evidence-gathered");
                tracing::info!(repo.name = %self.repository, pr.number = self.number.0, calls = stats.calls, "evidence gathered");
                metrics::histogram!("countersign_gather_calls")
                    .record(f64::from(u32::try_from(stats.calls).unwrap_or(u32::MAX)));
                self.conclude(found, &conversation, &evidence, before, payload).await
            }
            // Something moved while we looked: look again, on what is there now.
            Gathered::HeadMoved { .. }
            | Gathered::PullRequestChanged
            | Gathered::SignoffChanged
            | Gathered::SignoffGone => again(Duration::from_millis(200)),
        }
    }

    fn state(&self, number: i64) -> PullRequestState {
        PullRequestState {
            repository: self.repository.to_string(),
            number,
            head_sha: self.pull.head_sha.to_string(),
            base_ref: self.pull.base_ref.clone(),
            base_sha: self.pull.base_sha.to_string(),
            draft: self.pull.draft,
            open: self.pull.open,
            author: self.pull.author.as_ref().map(ToString::to_string).unwrap_or_default(),
            version_at: self.pull.updated_at,
        }
    }

    fn status(&self, state: &HeadState<'_>, found: Option<&Found>) -> StatusWish {
        let url = found.map(|found| found.item.url.clone());
        StatusWish::new(
            &self.pull.head_sha,
            &self.policy.policy.publish.status_context,
            waiting_line(state),
            url,
        )
    }

    fn status_only(&self, state: &HeadState<'_>, found: Option<&Found>) -> Changes {
        Changes {
            publications: vec![self.status(state, found).row(None)],
            ..Changes::default()
        }
    }

    fn without_signoff(&self, conversation: &Conversation) -> Changes {
        let sentence = conversation
            .failed_attempt
            .as_ref()
            .map(countersign_signoff::Refusal::sentence);
        let command = conversation.command.as_ref().map(|(shown, _)| shown.as_str());
        let state = match (&sentence, conversation.one_was_deleted) {
            (Some(sentence), _) => HeadState::NotASignoff(sentence),
            (None, true) => HeadState::SignoffVoid("it was deleted"),
            (None, false) => HeadState::WaitingForSignoff { command },
        };
        self.status_only(&state, None)
    }

    /// The head is not the one that was signed.
    async fn stale(&self, found: &Found) -> Result<(Changes, Next), JudgeError> {
        let number = i64::try_from(self.number.0).unwrap_or(i64::MAX);
        let last = self
            .engine
            .store
            .latest_evaluation(self.repository.as_str(), number, &found.item.key.to_string(), None)
            .await?;
        let judged = last.as_ref().map(|last| {
            (
                last.head_sha.chars().take(8).collect::<String>(),
                decision_of(&last.decision),
            )
        });
        let state = match &judged {
            Some((judged, decision)) => HeadState::Stale {
                judged,
                decision: *decision,
            },
            None => HeadState::SignoffVoid("the head moved after it was written"),
        };
        Ok((self.status_only(&state, Some(found)), Next::Done))
    }

    /// From evidence to what is stored and shown.
    async fn conclude(
        &self,
        found: &Found,
        conversation: &Conversation,
        evidence: &Evidence,
        before: Option<Evaluation>,
        payload: &Value,
    ) -> Result<(Changes, Next), JudgeError> {
        if let Some(editor) = &evidence.signoff.edited_by_other {
            let why = format!("{editor} edited it");
            return Ok((self.status_only(&HeadState::SignoffVoid(&why), Some(found)), Next::Done));
        }
        if let Some(young) = committed_after(evidence) {
            tracing::info!(repo.name = %self.repository, pr.number = self.number.0, commit = %young, "a commit is younger than the sign-off");
            return self.stale(found).await;
        }
        // Judging is pure and short, but a large pull request must not hold up the other tasks of this thread.
        let verdict = tokio::task::block_in_place(|| countersign_checks::evaluate(evidence, self.policy));
        points::reach("verdict-made");
        let mut reactions = Vec::new();
        if let Some((_, comment)) = &conversation.command {
            let usable = countersign_checks::reuse_usable(evidence, self.policy);
            reactions.push(
                ReactionWish {
                    comment: *comment,
                    usable,
                }
                .row(),
            );
        }
        if verdict.decision == Decision::Undecided {
            return Ok(self.undecided(found, &verdict, before, payload, reactions));
        }
        let mut changes = self.decided(found, evidence, verdict, before).await?;
        changes.publications.extend(reactions);
        Ok((changes, Next::Done))
    }

    fn undecided(
        &self,
        found: &Found,
        verdict: &Verdict,
        before: Option<Evaluation>,
        payload: &Value,
        reactions: Vec<countersign_store::DesiredPublication>,
    ) -> (Changes, Next) {
        let missing = verdict.missing();
        let since = payload
            .get(UNAVAILABLE_SINCE)
            .and_then(Value::as_str)
            .and_then(|text| text.parse::<DateTime<Utc>>().ok())
            .unwrap_or(self.now);
        let hopeless = missing.iter().all(|cause| cause.kind != CauseKind::Transient);
        let over = self.now - since >= TimeDelta::minutes(i64::from(self.policy.policy.timing.cannot_judge_after));
        let mut changes = Changes {
            publications: reactions,
            ..Changes::default()
        };
        // What was decided for this head stays; a fault of the infrastructure never replaces it.
        if before.is_none() {
            let line = if hopeless || over {
                let what = missing.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
                waiting_line(&HeadState::CannotJudge(&what))
            } else {
                status_line(verdict)
            };
            let context = &self.policy.policy.publish.status_context;
            changes
                .publications
                .push(StatusWish::new(&self.pull.head_sha, context, line, Some(found.item.url.clone())).row(None));
        }
        if hopeless || (over && payload.get(DEADLINE_NOTED).is_none()) {
            changes.audit.push(self.audit(
                "cannot_judge",
                "the evidence could not be read",
                json!({ "missing": missing }),
            ));
        }
        let delay = if hopeless || over {
            RETRY_AFTER_DEADLINE
        } else {
            RETRY_UNAVAILABLE
        };
        let mut payload = json!({ UNAVAILABLE_SINCE: since.to_rfc3339() });
        if over {
            payload[DEADLINE_NOTED] = Value::Bool(true);
        }
        (changes, Next::After(delay, payload))
    }

    async fn decided(
        &self,
        found: &Found,
        evidence: &Evidence,
        verdict: Verdict,
        before: Option<Evaluation>,
    ) -> Result<Changes, JudgeError> {
        let store = &self.engine.store;
        let number = i64::try_from(self.number.0).unwrap_or(i64::MAX);
        let record = countersign_checks::record(evidence).map_err(|error| JudgeError::Internal(error.to_string()))?;
        store
            .put_blob(BlobKind::Evidence, &digest::sha256_hex(&record), record.clone())
            .await?;
        let policy = digest::canonical_json(&self.policy.tree.to_json())
            .map_err(|error| JudgeError::Internal(error.to_string()))?;
        store
            .put_blob(BlobKind::Policy, &self.policy.digest, policy.into_bytes())
            .await?;
        points::reach("evidence-stored");
        let id = NewEvaluation::fresh_id();
        let text = serde_json::to_string(&verdict).map_err(|error| JudgeError::Internal(error.to_string()))?;
        let shown_before = before
            .as_ref()
            .and_then(|before| serde_json::from_str::<Verdict>(&before.verdict).ok());
        let unchanged = shown_before.as_ref().is_some_and(|old| same_to_a_reader(old, &verdict));
        let mut changes = Changes::default();
        let mut evaluation = id;
        if unchanged && let Some(before) = &before {
            evaluation = before.id;
        } else {
            changes.evaluations.push(NewEvaluation {
                id,
                signoff: verdict.signoff.to_string(),
                head_sha: verdict.head_sha.to_string(),
                base_sha: verdict.trusted_sha.to_string(),
                decision: verdict.decision.word().to_owned(),
                evidence_digest: digest::sha256_hex(&record),
                policy_digest: self.policy.digest.clone(),
                policy_name: self.policy.policy.name.clone(),
                engine_version: verdict.engine_version.clone(),
                verdict: text,
                supersedes: before.as_ref().map(|before| before.id),
            });
            let same_decision = shown_before
                .as_ref()
                .is_some_and(|old| old.decision == verdict.decision);
            self.wish_comment(&mut changes, &verdict, id, same_decision, number)
                .await?;
            for row in verdict.rows.iter().filter(|row| row.lifted.is_some()) {
                changes.audit.push(self.audit(
                    "answered",
                    &row.plain(),
                    json!({ "check": row.slug, "lifted": row.lifted, "evaluation": id }),
                ));
            }
        }
        let url = self.engine.page(evaluation).or_else(|| Some(found.item.url.clone()));
        let context = &self.policy.policy.publish.status_context;
        changes
            .publications
            .push(StatusWish::new(&self.pull.head_sha, context, status_line(&verdict), url).row(Some(evaluation)));
        metrics::counter!("countersign_verdicts_total", "decision" => verdict.decision.word()).increment(1);
        Ok(changes)
    }

    /// One comment for a sign-off: edited while the decision stays, a new one when it changes, the old one folded.
    async fn wish_comment(
        &self,
        changes: &mut Changes,
        verdict: &Verdict,
        id: uuid::Uuid,
        same_decision: bool,
        number: i64,
    ) -> Result<(), JudgeError> {
        let known = self.engine.store.publications(self.repository.as_str(), number).await?;
        let mut newest = 0;
        for row in known.iter().filter(|row| wishes::is_comment(&row.kind)) {
            let Some((signoff, count)) = wishes::read_comment_target(&row.target) else {
                continue;
            };
            if signoff == verdict.signoff {
                newest = newest.max(count);
            }
        }
        let count = if same_decision && newest > 0 {
            newest
        } else {
            newest + 1
        };
        let target = wishes::comment_target(&verdict.signoff, count);
        for row in known
            .iter()
            .filter(|row| wishes::is_comment(&row.kind) && row.target != target)
        {
            changes.publications.push(
                MinimiseWish {
                    comment_target: row.target.clone(),
                }
                .row(),
            );
        }
        let publish = &self.policy.policy.publish;
        let body = comment(verdict, &publish.comment, self.engine.page(id).as_deref());
        let wish = CommentWish {
            signoff: verdict.signoff,
            head: verdict.head_sha.clone(),
            marker: publish.comment.marker.clone(),
            body,
        };
        changes.publications.push(wish.row(count, Some(id)));
        Ok(())
    }

    fn audit(&self, action: &str, message: &str, detail: Value) -> NewAudit {
        NewAudit {
            actor: "countersign".into(),
            action: action.into(),
            repository: Some(self.repository.to_string()),
            pull_request: i64::try_from(self.number.0).ok(),
            evaluation: None,
            message: message.into(),
            detail,
        }
    }
}

const UNAVAILABLE_SINCE: &str = "unavailable_since";
const DEADLINE_NOTED: &str = "deadline_noted";

fn decision_of(word: &str) -> Decision {
    [
        Decision::Pass,
        Decision::Warn,
        Decision::Rejected,
        Decision::NeedsConfirmation,
    ]
    .into_iter()
    .find(|decision| decision.word() == word)
    .unwrap_or(Decision::Undecided)
}

/// Whether two verdicts on one head read the same; digests of evidence and the time differ with every look.
fn same_to_a_reader(old: &Verdict, new: &Verdict) -> bool {
    old.decision == new.decision
        && old.rows == new.rows
        && old.not_run == new.not_run
        && (&old.policy, &old.policy_version) == (&new.policy, &new.policy_version)
}

/// The head commit, if it says that it was made after the sign-off was last written: then it cannot have been reviewed.
fn committed_after(evidence: &Evidence) -> Option<&CommitSha> {
    let commits = evidence.commits.present()?;
    let head = commits
        .iter()
        .find(|commit| commit.sha == evidence.pull_request.head_sha)?;
    (head.committed_at? > evidence.signoff.updated_at + COMMIT_TOLERANCE).then_some(&head.sha)
}
