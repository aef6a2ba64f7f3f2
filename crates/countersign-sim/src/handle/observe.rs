//! What was asked, and what was published.

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::{Call, SimError, SimHandle, Write};
use crate::state::model;
use crate::world::spell::PullRef;

/// An issue comment as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommentView {
    /// Its id.
    pub id: u64,
    /// Who wrote it.
    pub author: String,
    /// Its text.
    pub body: String,
    /// When it was written.
    pub created_at: DateTime<Utc>,
    /// When it was last changed.
    pub updated_at: DateTime<Utc>,
    /// Who edited it last.
    pub edited_by: Option<String>,
    /// Why it is hidden, such as `outdated`.
    pub minimized: Option<String>,
    /// Its reactions.
    pub reactions: Vec<ReactionView>,
}

/// A reaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReactionView {
    /// Such as `+1`.
    pub content: String,
    /// Whose it is.
    pub by: String,
}

/// A commit status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusView {
    /// The commit.
    pub sha: String,
    /// The context.
    pub context: String,
    /// `success`, `failure`, `error` or `pending`.
    pub state: String,
    /// The text beside it.
    pub description: Option<String>,
    /// The link behind it.
    pub target_url: Option<String>,
    /// Who set it.
    pub by: String,
    /// When.
    pub at: DateTime<Utc>,
}

/// A check run that an app wrote.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckRunView {
    /// Its id.
    pub id: u64,
    /// The commit.
    pub sha: String,
    /// Its name.
    pub name: String,
    /// The app's slug.
    pub app: String,
    /// Its status.
    pub status: String,
    /// Its conclusion.
    pub conclusion: Option<String>,
    /// The app's own id for it.
    pub external_id: Option<String>,
    /// Where its details are.
    pub details_url: Option<String>,
    /// The output's title.
    pub title: Option<String>,
    /// The output's summary.
    pub summary: Option<String>,
    /// The output's text.
    pub text: Option<String>,
    /// The annotations, as they were sent.
    pub annotations: Vec<Value>,
    /// How often it was written.
    pub writes: u64,
}

/// A webhook delivery.
#[derive(Debug, Clone, PartialEq)]
pub struct DeliveryView {
    /// Its id.
    pub id: u64,
    /// Its GUID, which a redelivery keeps.
    pub guid: String,
    /// The event.
    pub event: String,
    /// The action.
    pub action: Option<String>,
    /// Whether it is a redelivery.
    pub redelivery: bool,
    /// When it was sent; none while it waits.
    pub delivered_at: Option<DateTime<Utc>>,
    /// The receiver's status; 0 while it waits.
    pub status_code: u16,
    /// The payload.
    pub payload: Value,
}

impl From<&model::Comment> for CommentView {
    fn from(c: &model::Comment) -> Self {
        CommentView {
            id: c.id,
            author: c.author.clone(),
            body: c.body.clone(),
            created_at: c.created_at,
            updated_at: c.updated_at,
            edited_by: c.edited.as_ref().map(|e| e.by.clone()),
            minimized: c.minimized.clone(),
            reactions: c
                .reactions
                .iter()
                .map(|r| ReactionView {
                    content: r.content.clone(),
                    by: r.by.clone(),
                })
                .collect(),
        }
    }
}

impl SimHandle {
    /// All API calls so far, oldest first.
    pub fn calls(&self) -> Vec<Call> {
        self.with(|s| s.calls.clone())
    }

    /// Everything that the App wrote, in order: the history of what was published.
    pub fn writes(&self) -> Vec<Write> {
        self.with(|s| s.writes.clone())
    }

    /// How many API calls were made, 304s not counted.
    pub fn counted_calls(&self) -> usize {
        self.with(|s| s.calls.iter().filter(|c| c.status != 304).count())
    }

    /// Forgets the calls so far.
    pub fn clear_calls(&self) {
        self.with(|s| s.calls.clear());
    }

    /// What was asked for and is not served, as `METHOD /path`. Empty in a test that is right.
    pub fn unserved(&self) -> Vec<String> {
        self.with(|s| s.unserved.clone())
    }

    /// Facts that were asked for and that the partial world does not say, in the order they were asked for.
    pub fn unknown(&self) -> Vec<String> {
        self.with(|s| s.unknown.clone())
    }

    /// What a client did that it should not, such as sending a token to the second host.
    pub fn complaints(&self) -> Vec<String> {
        self.with(|s| s.complaints.clone())
    }

    /// The issue comments of a pull request, oldest first.
    ///
    /// # Errors
    /// No such pull request.
    pub fn comments(&self, pull: impl Into<PullRef>) -> Result<Vec<CommentView>, SimError> {
        self.with(|s| {
            let (repo, n) = s.pull_ref(&pull.into())?;
            let comments = s.repo(&repo).into_iter().flat_map(|r| r.comments.values());
            let mut list: Vec<CommentView> = comments.filter(|c| c.pull == n).map(CommentView::from).collect();
            list.sort_by_key(|c| (c.created_at, c.id));
            Ok(list)
        })
    }

    /// The comments of a pull request that the App wrote.
    ///
    /// # Errors
    /// No such pull request.
    pub fn own_comments(&self, pull: impl Into<PullRef>) -> Result<Vec<CommentView>, SimError> {
        let bot = self.bot_login();
        Ok(self.comments(pull)?.into_iter().filter(|c| c.author == bot).collect())
    }

    /// All statuses of a commit, oldest first.
    pub fn statuses(&self, repo: &str, sha: &str) -> Vec<StatusView> {
        self.with(|s| {
            let all = s.repo(repo).into_iter().flat_map(|r| &r.statuses);
            all.filter(|x| x.sha == sha)
                .map(|x| StatusView {
                    sha: x.sha.clone(),
                    context: x.context.clone(),
                    state: x.state.clone(),
                    description: x.description.clone(),
                    target_url: x.target_url.clone(),
                    by: x.by.clone(),
                    at: x.at,
                })
                .collect()
        })
    }

    /// The newest status of a context on the head of a pull request.
    ///
    /// # Errors
    /// No such pull request.
    pub fn status(&self, pull: impl Into<PullRef>, context: &str) -> Result<Option<StatusView>, SimError> {
        let pull = pull.into();
        let repo = self.with(|s| s.pull_ref(&pull))?.0;
        let head = self.head(pull)?;
        Ok(self
            .statuses(&repo, &head)
            .into_iter()
            .rev()
            .find(|x| x.context == context))
    }

    /// The check runs that apps wrote on a commit, by id. Jobs of workflow runs are not among them.
    pub fn check_runs(&self, repo: &str, sha: &str) -> Vec<CheckRunView> {
        self.with(|s| {
            let all = s.repo(repo).into_iter().flat_map(|r| r.checks.values());
            all.filter(|c| c.head_sha == sha)
                .map(|c| CheckRunView {
                    id: c.id,
                    sha: c.head_sha.clone(),
                    name: c.name.clone(),
                    app: c.app.clone(),
                    status: c.status.clone(),
                    conclusion: c.conclusion.clone(),
                    external_id: c.external_id.clone(),
                    details_url: c.details_url.clone(),
                    title: c.title.clone(),
                    summary: c.summary.clone(),
                    text: c.text.clone(),
                    annotations: c.annotations.clone(),
                    writes: c.writes,
                })
                .collect()
        })
    }

    /// All webhook deliveries so far, oldest first.
    pub fn deliveries(&self) -> Vec<DeliveryView> {
        self.with(|s| {
            s.hooks
                .deliveries
                .iter()
                .map(|d| DeliveryView {
                    id: d.id,
                    guid: d.guid.clone(),
                    event: d.event.clone(),
                    action: d.action.clone(),
                    redelivery: d.redelivery,
                    delivered_at: d.delivered_at,
                    status_code: d.status_code,
                    payload: serde_json::from_slice(&d.payload).unwrap_or_default(),
                })
                .collect()
        })
    }

    /// What each delivery that was sent was answered, in the order in which they came about.
    pub fn answers(&self) -> Vec<u16> {
        self.with(|s| {
            let sent = s.hooks.deliveries.iter().filter(|d| d.delivered_at.is_some());
            sent.map(|d| d.status_code).collect()
        })
    }

    /// GUID and event of each delivery that the App's delivery API shows, each GUID once.
    pub fn recorded_deliveries(&self) -> Vec<(String, String)> {
        self.with(|s| {
            let recorded = s.hooks.deliveries.iter().filter(|d| !d.unrecorded && !d.redelivery);
            recorded.map(|d| (d.guid.clone(), d.event.clone())).collect()
        })
    }

    /// Everything that was published in the installed repositories, the same bytes for the same events.
    pub fn snapshot(&self) -> Value {
        self.with(|s| s.snapshot())
    }
}
