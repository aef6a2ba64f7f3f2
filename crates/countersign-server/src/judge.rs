//! One look at one pull request: read its state, gather, judge, store, and wish what GitHub ought to show.
//!
//! The same look answers every event. What it finds depends on GitHub and the store alone, so it may be repeated at any
//! time and by any replica; only the holder of the lease can keep its result.

use std::time::Duration;

use chrono::{DateTime, Utc};
use countersign_core::render::{HeadState, waiting_line};
use countersign_core::{Decision, Evidence, PrNumber, RepoName, SignoffKey, SignoffPlace, Verdict, digest};
use countersign_github::{GatherRequest, Gathered, PullInfo, RepoClient, gather};
use countersign_policy::LoadedPolicy;
use countersign_store::{
    Changes, DesiredPublication, EvaluationFilter, HeadSeen, Next, PrLock, PublicationState, PullRequestState,
    WorkLease,
};
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::conversation::{self, Conversation, Found};
use crate::engine::{Engine, JudgeError};
use crate::points;
use crate::wishes::{self, AnswerWish, ReactionWish, StatusWish};
use crate::worker::REASSERT;
use crate::{answers, scope};

/// Answers that we give on one pull request at most, whoever asks.
const ANSWERS: usize = 20;

/// What one look is about.
pub(crate) struct Look<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) client: RepoClient,
    pub(crate) policy: &'a LoadedPolicy,
    pub(crate) repository: RepoName,
    pub(crate) number: PrNumber,
    pub(crate) pull: PullInfo,
    pub(crate) lock: PrLock,
    pub(crate) now: DateTime<Utc>,
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
        if lease.payload().get(REASSERT).and_then(Value::as_bool) == Some(true) {
            look.reassert(&mut changes).await?;
        }
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
        if !self.pull.open || !self.is_target() {
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
        let (mut changes, next) = self.state_of(&conversation, &seen, payload).await?;
        let answers = self.answers(&conversation, &changes).await?;
        changes.publications.extend(answers);
        Ok((changes, next))
    }

    /// What the pull request's state is, and what is to be shown of it.
    async fn state_of(
        &self,
        conversation: &Conversation,
        seen: &HeadSeen,
        payload: &Value,
    ) -> Result<(Changes, Next), JudgeError> {
        let store = &self.engine.store;
        let pull_request = i64::try_from(self.number.0).unwrap_or(i64::MAX);
        let head = self.pull.head_sha.clone();
        if let Some(exempt) = self.exempt().await? {
            return Ok(exempt);
        }
        let Some(found) = &conversation.newest else {
            let mut changes = self.without_signoff(conversation);
            changes
                .publications
                .extend(self.early_reaction(conversation, seen).await);
            return Ok((changes, Next::Done));
        };
        if self.pull.draft {
            let mut changes = self.status_only(&HeadState::WaitingForReady, Some(found));
            changes
                .publications
                .extend(self.early_reaction(conversation, seen).await);
            return Ok((changes, Next::Done));
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
            let (mut changes, next) = self.stale(found).await?;
            changes
                .publications
                .extend(self.early_reaction(conversation, seen).await);
            return Ok((changes, next));
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
            // What was gathered is of another moment than the look: the sign-off was taken for that head, and for that text.
            Gathered::Evidence { evidence, .. } if !self.is_about(found, &evidence) => {
                again(Duration::from_millis(200))
            }
            Gathered::Evidence { evidence, stats } => {
                points::reach("evidence-gathered");
                tracing::info!(repo.name = %self.repository, pr.number = self.number.0, calls = stats.calls, "evidence gathered");
                metrics::histogram!("countersign_gather_calls")
                    .record(f64::from(u32::try_from(stats.calls).unwrap_or(u32::MAX)));
                self.conclude(found, conversation, &evidence, before, payload).await
            }
            // Something moved while we looked: look again, on what is there now.
            Gathered::HeadMoved { .. }
            | Gathered::PullRequestChanged
            | Gathered::SignoffChanged
            | Gathered::SignoffGone => again(Duration::from_millis(200)),
        }
    }

    /// Whether the target is a branch whose pull requests are judged. Of any other nothing is shown, not even a status: it would
    /// stand on the commit, for every pull request that has the same head, whoever writes the target's owners and bars.
    fn is_target(&self) -> bool {
        let named = &self.policy.policy.scope.target_branches;
        if named.is_empty() {
            return self.pull.default_branch.as_ref() == Some(&self.pull.base_ref);
        }
        named.contains(&self.pull.base_ref)
    }

    /// Whether evidence is of the head, the target and the text that this look has read; each may have changed before it was gathered.
    fn is_about(&self, found: &Found, evidence: &Evidence) -> bool {
        let pull = &evidence.pull_request;
        pull.head_sha == self.pull.head_sha
            && pull.base_ref == self.pull.base_ref
            && (pull.draft, pull.open) == (self.pull.draft, self.pull.open)
            && digest::sha256_hex(evidence.signoff.body.as_bytes()) == found.digest
    }

    /// Whether all that is changed belongs to owners whose paths need no sign-off.
    async fn exempt(&self) -> Result<Option<(Changes, Next)>, JudgeError> {
        let policy = &self.policy.policy;
        if policy.scope.exempt_owners.is_empty() {
            return Ok(None);
        }
        let reading: BoxFuture<'_, Result<Option<gather::Scope>, countersign_github::GitHubError>> =
            Box::pin(gather::scope(&self.client, self.number, &policy.paths.codeowners));
        let found = reading.await?.filter(|found| found.head == self.pull.head_sha);
        let Some(found) = found else {
            // It moved meanwhile: look again, on what is there now.
            return Ok(Some((
                Changes::default(),
                Next::After(Duration::from_millis(200), json!({})),
            )));
        };
        Ok(scope::exemption(&found, &policy.scope.exempt_owners)
            .map(|why| (self.status_only(&HeadState::Exempt(&why), None), Next::Done)))
    }

    /// The reaction to a reuse command while nothing is judged: whether it means a run that can be reused now. The command's own
    /// comment stands for the sign-off, since evidence is gathered for some text; nothing is judged on it.
    async fn early_reaction(&self, conversation: &Conversation, seen: &HeadSeen) -> Option<DesiredPublication> {
        let (_, comment) = conversation.command.as_ref()?;
        let request = GatherRequest {
            pull_request: self.number,
            signoff: SignoffKey {
                place: SignoffPlace::IssueComment,
                id: *comment,
            },
            policy: self.policy,
            now: self.now,
            head_seen_at: seen.had_another.then_some(seen.first_seen_at),
        };
        let gathering: BoxFuture<'_, Result<Gathered, countersign_github::GatherError>> =
            Box::pin(gather(&self.client, &request));
        match gathering.await {
            Ok(Gathered::Evidence { evidence, .. }) => {
                let usable = countersign_checks::reuse_usable(&evidence, self.policy);
                let wish = ReactionWish {
                    comment: *comment,
                    usable,
                };
                Some(wish.row())
            }
            Ok(_) => None,
            Err(error) => {
                // A reaction is a courtesy: it must not keep the state from being shown.
                tracing::info!(repo.name = %self.repository, pr.number = self.number.0, %error, "no reaction to the reuse command yet");
                None
            }
        }
    }

    /// Answers to questions that have none yet.
    async fn answers(
        &self,
        conversation: &Conversation,
        changes: &Changes,
    ) -> Result<Vec<DesiredPublication>, JudgeError> {
        if conversation.questions.is_empty() {
            return Ok(Vec::new());
        }
        let store = &self.engine.store;
        let number = i64::try_from(self.number.0).unwrap_or(i64::MAX);
        let given: Vec<String> = store
            .publications(self.repository.as_str(), number)
            .await?
            .into_iter()
            .filter(|row| wishes::is_answer(&row.kind))
            .map(|row| row.target)
            .collect();
        let newest = match changes.evaluations.last() {
            Some(new) => Some(new.verdict.clone()),
            None => {
                let filter = EvaluationFilter {
                    repository: Some(self.repository.to_string()),
                    pull_request: Some(number),
                    ..EvaluationFilter::default()
                };
                let found = store.evaluations(&filter, 1).await?;
                found.into_iter().next().map(|found| found.verdict)
            }
        };
        let verdict: Option<Verdict> = newest.and_then(|text| serde_json::from_str(&text).ok());
        let open = conversation
            .questions
            .iter()
            .filter(|question| !given.contains(&question.comment.to_string()));
        Ok(open
            .take(ANSWERS.saturating_sub(given.len()))
            .map(|question| {
                let body = answers::answer(question, &self.policy.policy, verdict.as_ref());
                let comment = question.comment;
                AnswerWish { comment, body }.row()
            })
            .collect())
    }

    /// Makes the publisher compare what is shown with GitHub, even where nothing is new.
    async fn reassert(&self, changes: &mut Changes) -> Result<(), JudgeError> {
        for wish in &mut changes.publications {
            wish.reassert = wishes::is_lasting(&wish.kind);
        }
        let number = i64::try_from(self.number.0).unwrap_or(i64::MAX);
        let rows = self.engine.store.publications(self.repository.as_str(), number).await?;
        for row in &rows {
            // A folded one is no verdict any more: deleted, it stays away, since a new one would not be folded.
            let shown = row.state == PublicationState::Done
                && wishes::is_comment(&row.kind)
                && !wishes::is_folded(&rows, &row.target);
            let mentioned = |wish: &DesiredPublication| wish.target == row.target;
            if shown && !changes.publications.iter().any(mentioned) {
                changes.publications.push(DesiredPublication {
                    kind: row.kind.clone(),
                    target: row.target.clone(),
                    desired: row.desired.clone(),
                    evaluation: row.evaluation,
                    reassert: true,
                });
            }
        }
        Ok(())
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

    pub(crate) fn status(&self, state: &HeadState<'_>, found: Option<&Found>) -> StatusWish {
        let url = found.map(|found| found.item.url.clone());
        StatusWish::new(
            &self.pull.head_sha,
            &self.policy.policy.publish.status_context,
            waiting_line(state),
            url,
        )
    }

    pub(crate) fn status_only(&self, state: &HeadState<'_>, found: Option<&Found>) -> Changes {
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
    pub(crate) async fn stale(&self, found: &Found) -> Result<(Changes, Next), JudgeError> {
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
}

/// In the payload of a look: since when evidence cannot be read.
pub(crate) const UNAVAILABLE_SINCE: &str = "unavailable_since";

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
