//! From evidence to what is stored and shown: the second half of a look.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use countersign_core::render::{HeadState, comment, status_line, waiting_line};
use countersign_core::{CauseKind, CommitSha, Decision, Evidence, SignoffKey, Verdict, digest};
use countersign_store::{BlobKind, Changes, Evaluation, NewAudit, NewEvaluation, Next, Publication};
use serde_json::{Value, json};

use crate::conversation::{Conversation, Found};
use crate::engine::JudgeError;
use crate::judge::{Look, UNAVAILABLE_SINCE};
use crate::points;
use crate::table;
use crate::wishes::{self, CommentWish, MinimiseWish, ReactionWish, StatusWish};

/// How soon something that could not be read is tried again.
const RETRY_UNAVAILABLE: Duration = Duration::from_secs(60);
/// How rarely it is tried at last, after the status said that it cannot be judged.
const RETRY_AFTER_DEADLINE: Duration = Duration::from_secs(1800);
/// A commit this much younger than the sign-off's last edit was not seen by the signer (clocks differ a little).
const COMMIT_TOLERANCE: TimeDelta = TimeDelta::minutes(2);
/// In the payload of a look: the status has said that it cannot be judged.
const DEADLINE_NOTED: &str = "deadline_noted";

impl Look<'_> {
    /// From evidence to what is stored and shown.
    pub(crate) async fn conclude(
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
        let age = self.now - since;
        let given_up = hopeless || age >= TimeDelta::minutes(i64::from(self.policy.policy.timing.cannot_judge_after));
        let mut changes = Changes {
            publications: reactions,
            ..Changes::default()
        };
        // What was decided for this head stays; a fault of the infrastructure never replaces it.
        if before.is_none() {
            let line = if given_up {
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
        if given_up && payload.get(DEADLINE_NOTED).is_none() {
            changes.audit.push(self.audit(
                "cannot_judge",
                "the evidence could not be read",
                json!({ "missing": missing }),
            ));
        }
        let mut next = json!({ UNAVAILABLE_SINCE: since.to_rfc3339() });
        if given_up || payload.get(DEADLINE_NOTED).is_some() {
            next[DEADLINE_NOTED] = Value::Bool(true);
        }
        (changes, Next::After(retry_after(given_up, age), next))
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
        let known = store.publications(self.repository.as_str(), number).await?;
        let shown = newest_comment(&known, verdict.signoff);
        // A sign-off that counts again after another took its place: its own verdict was folded meanwhile.
        let folded = wishes::is_folded(&known, &wishes::comment_target(&verdict.signoff, shown));
        let unchanged = !folded && shown_before.as_ref().is_some_and(|old| same_to_a_reader(old, &verdict));
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
            let count = if same_decision && shown > 0 && !folded {
                shown
            } else {
                shown + 1
            };
            self.wish_comment(&mut changes, &verdict, id, count, &known);
            for row in verdict.rows.iter().filter(|row| row.lifted.is_some()) {
                changes.audit.push(self.audit(
                    "answered",
                    &row.plain(),
                    json!({ "check": row.slug, "lifted": row.lifted, "evaluation": id }),
                ));
            }
        }
        let url = self
            .engine
            .page(self.repository.as_str(), evaluation)
            .or_else(|| Some(found.item.url.clone()));
        let publish = &self.policy.policy.publish;
        if let Some(name) = &publish.check_run {
            let wish = table::check_run(&verdict, evidence, &publish.comment, name, url.clone());
            changes.publications.push(wish.row(Some(evaluation)));
        }
        let context = &publish.status_context;
        changes
            .publications
            .push(StatusWish::new(&self.pull.head_sha, context, status_line(&verdict), url).row(Some(evaluation)));
        metrics::counter!("countersign_verdicts_total", "decision" => verdict.decision.word()).increment(1);
        Ok(changes)
    }

    /// One comment for a sign-off: edited while the decision stays, a new one when it changes, the old one folded.
    fn wish_comment(
        &self,
        changes: &mut Changes,
        verdict: &Verdict,
        id: uuid::Uuid,
        count: u32,
        known: &[Publication],
    ) {
        let target = wishes::comment_target(&verdict.signoff, count);
        for row in known
            .iter()
            .filter(|row| wishes::is_comment(&row.kind) && row.target != target)
        {
            // One that is still waiting to be posted would else come after the newer verdict.
            changes.superseded.push((row.kind.clone(), row.target.clone()));
            changes.publications.push(
                MinimiseWish {
                    comment_target: row.target.clone(),
                }
                .row(),
            );
        }
        let publish = &self.policy.policy.publish;
        let body = comment(
            verdict,
            &publish.comment,
            self.engine.page(self.repository.as_str(), id).as_deref(),
        );
        let wish = CommentWish {
            signoff: verdict.signoff,
            head: verdict.head_sha.clone(),
            marker: publish.comment.marker.clone(),
            body,
        };
        changes.publications.push(wish.row(count, Some(id)));
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

/// The wait before the next look at evidence that could not be read for so long already.
///
/// What was refused may be given a minute later: GitHub refuses fresh tokens now and then, and permissions are granted. Each wait is
/// as long as all before it together.
fn retry_after(given_up: bool, age: TimeDelta) -> Duration {
    if given_up {
        age.to_std()
            .unwrap_or_default()
            .clamp(RETRY_UNAVAILABLE, RETRY_AFTER_DEADLINE)
    } else {
        RETRY_UNAVAILABLE
    }
}

/// The number of the newest comment that was wished for a sign-off; 0 where there was none.
fn newest_comment(known: &[Publication], signoff: SignoffKey) -> u32 {
    known
        .iter()
        .filter(|row| wishes::is_comment(&row.kind))
        .filter_map(|row| wishes::read_comment_target(&row.target))
        .filter(|(of, _)| *of == signoff)
        .map(|(_, count)| count)
        .max()
        .unwrap_or(0)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_refused_is_tried_soon_and_then_more_rarely() {
        let mut age = TimeDelta::zero();
        let mut waits = Vec::new();
        while waits.len() < 8 {
            let wait = retry_after(true, age);
            waits.push(wait.as_secs() / 60);
            age += TimeDelta::from_std(wait).unwrap();
        }
        assert_eq!(waits, [1, 1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(retry_after(false, TimeDelta::minutes(20)), RETRY_UNAVAILABLE);
        // A clock that was set back.
        assert_eq!(retry_after(true, TimeDelta::minutes(-5)), RETRY_UNAVAILABLE);
    }
}
