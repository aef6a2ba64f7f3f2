//! The conversation of a pull request: which sign-off counts, which commands are on record.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use countersign_core::{PrNumber, RepoName, SignoffKey, SignoffPlace, digest};
use countersign_github::ThreadItem;
use countersign_policy::Policy;
use countersign_signoff::{AuthorInfo, CommandKind, Recognition, Refusal};
use countersign_store::{NewCommand, NewSignoff, ObservedRemark, SignoffState, Store, StoreError};
use serde_json::json;

use crate::answers::{self, Question};
use crate::route::SelfIdentity;

/// A sign-off that was found.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) item: ThreadItem,
    /// Digest of its text: an edit takes it anew.
    pub(crate) digest: String,
}

/// What a conversation holds for us.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    /// The newest sign-off.
    pub(crate) newest: Option<Found>,
    /// The newest authorised reuse command: shown text and comment id.
    pub(crate) command: Option<(String, u64)>,
    /// Somebody plausibly meant to sign; why it does not count.
    pub(crate) failed_attempt: Option<Refusal>,
    /// A sign-off was there once and is gone now.
    pub(crate) one_was_deleted: bool,
    /// Questions to us, oldest first.
    pub(crate) questions: Vec<Question>,
}

/// Reads a conversation and records what it holds.
pub(crate) async fn read(
    store: &Store,
    repository: &RepoName,
    number: PrNumber,
    thread: &[ThreadItem],
    policy: &Policy,
    own: &SelfIdentity,
    draft: bool,
    now: DateTime<Utc>,
) -> Result<Conversation, StoreError> {
    let mut conversation = Conversation::default();
    let mut present: BTreeSet<String> = BTreeSet::new();
    let mut attempt: Option<(DateTime<Utc>, Refusal)> = None;
    for item in thread {
        let Some(author) = &item.author else { continue };
        present.insert(item.key.to_string());
        let info = AuthorInfo {
            login: author.to_string(),
            is_bot: item.is_bot,
            is_self: item.app_id == Some(own.app_id) || author.same(&own.login),
        };
        let recognition = countersign_signoff::recognise(&item.body, &info, &policy.signoff);
        let found = digest::sha256_hex(item.body.as_bytes());
        let signoff = match &recognition {
            Recognition::SignOff(_) => {
                if conversation
                    .newest
                    .as_ref()
                    .is_none_or(|newest| (newest.item.created_at, newest.item.key) < (item.created_at, item.key))
                {
                    conversation.newest = Some(Found {
                        item: item.clone(),
                        digest: found.clone(),
                    });
                }
                Some(NewSignoff {
                    state: if draft {
                        SignoffState::WaitingForReady
                    } else {
                        SignoffState::Counted
                    },
                    edited_at: (item.updated_at > item.created_at).then_some(item.updated_at),
                })
            }
            Recognition::Refused(refusal) => {
                if refusal.is_attempt() && attempt.as_ref().is_none_or(|(at, _)| *at < item.created_at) {
                    attempt = Some((item.created_at, refusal.clone()));
                }
                None
            }
        };
        let commands = commands_of(item, &info, policy);
        if !info.is_bot && !info.is_self && in_conversation(item.key) {
            let asked = countersign_signoff::commands(&item.body, &policy.commands.words).commands;
            conversation.questions.extend(answers::question(item.key.id, &asked));
        }
        if let Some(shown) = reuse_of(item, &info, policy) {
            // The thread is oldest first, so the last one stays.
            conversation.command = Some((shown, item.key.id));
        }
        let remark = ObservedRemark {
            repository: repository.to_string(),
            pull_request: i64::try_from(number.0).unwrap_or(i64::MAX),
            source: item.key.to_string(),
            author: author.to_string(),
            body_digest: found,
            created_at: item.created_at,
            version_at: item.updated_at,
            deleted: false,
            signoff,
            commands,
        };
        store.observe_remark(&remark).await?;
    }
    let known = store
        .signoffs(repository.as_str(), i64::try_from(number.0).unwrap_or(i64::MAX))
        .await?;
    for signoff in known {
        if !present.contains(&signoff.signoff) {
            conversation.one_was_deleted = true;
            if signoff.state != SignoffState::Deleted {
                store
                    .observe_remark(&ObservedRemark {
                        repository: signoff.repository.clone(),
                        pull_request: signoff.pull_request,
                        source: signoff.signoff.clone(),
                        author: signoff.author.clone(),
                        body_digest: signoff.body_digest.clone(),
                        created_at: signoff.created_at,
                        version_at: now.max(signoff.edited_at.unwrap_or(signoff.created_at)),
                        deleted: true,
                        signoff: None,
                        commands: Vec::new(),
                    })
                    .await?;
            }
        }
    }
    if conversation.newest.is_none() {
        conversation.failed_attempt = attempt.map(|(_, refusal)| refusal);
    }
    Ok(conversation)
}

/// Commands count in comments of the conversation only (domain guide, section 6.1).
fn in_conversation(key: SignoffKey) -> bool {
    key.place == SignoffPlace::IssueComment
}

fn commands_of(item: &ThreadItem, author: &AuthorInfo, policy: &Policy) -> Vec<NewCommand> {
    if author.is_bot || author.is_self || !in_conversation(item.key) {
        return Vec::new();
    }
    countersign_signoff::commands(&item.body, &policy.commands.words)
        .commands
        .into_iter()
        .map(|command| {
            let (name, arguments) = match &command.kind {
                CommandKind::Reuse { name, run } => (name.clone(), json!({ "run": run })),
                CommandKind::Verify => ("verify".to_owned(), json!({})),
                CommandKind::Help => ("help".to_owned(), json!({})),
                CommandKind::Explain { check } => ("explain".to_owned(), json!({ "check": check })),
                CommandKind::Confirm { check, reason } => {
                    ("confirm".to_owned(), json!({ "check": check, "reason": reason }))
                }
                CommandKind::Override { check, reason } => {
                    ("override".to_owned(), json!({ "check": check, "reason": reason }))
                }
            };
            NewCommand {
                name,
                arguments,
                association: item.association.word().to_owned(),
            }
        })
        .collect()
}

fn reuse_of(item: &ThreadItem, author: &AuthorInfo, policy: &Policy) -> Option<String> {
    if author.is_bot
        || author.is_self
        || !in_conversation(item.key)
        || !policy.commands.authority.reuse_associations.contains(&item.association)
    {
        return None;
    }
    let found = countersign_signoff::commands(&item.body, &policy.commands.words);
    match &found.reuse()?.kind {
        CommandKind::Reuse { name, run: Some(run) } => Some(format!("{name} {run} by {}", author.login)),
        CommandKind::Reuse { name, run: None } => Some(format!("{name} by {}", author.login)),
        _ => None,
    }
}
