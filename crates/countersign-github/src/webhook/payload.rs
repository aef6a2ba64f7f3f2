//! The fields of webhook payloads that we use, and nothing else.

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// A payload that cannot be read: which field, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the payload of `{event}` cannot be read at `{path}`: {why}")]
pub struct PayloadError {
    /// Event name.
    pub event: String,
    /// Path of the field.
    pub path: String,
    /// What is wrong with it.
    pub why: String,
}

/// A user, organisation or App.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Account {
    /// Login.
    pub login: String,
    /// `User`, `Bot`, `Organization`, `Mannequin`.
    #[serde(rename = "type", default)]
    pub kind: String,
}

impl Account {
    /// Whether it is a bot.
    #[must_use]
    pub fn is_bot(&self) -> bool {
        self.kind == "Bot" || self.login.ends_with("[bot]")
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Repository {
    full_name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct App {
    id: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct From {
    #[serde(default)]
    from: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
struct Changes {
    #[serde(default)]
    body: Option<From>,
    #[serde(default)]
    base: Option<Anything>,
}

/// A value of any form, of which only the presence matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Anything;

impl<'de> Deserialize<'de> for Anything {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

/// A comment of any kind.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Comment {
    /// Id.
    pub id: u64,
    /// Text.
    #[serde(default)]
    pub body: Option<String>,
    /// Who wrote it; absent for deleted accounts.
    #[serde(default)]
    pub user: Option<Account>,
    /// Relation to the repository.
    #[serde(default)]
    pub author_association: String,
    /// When it was written, RFC 3339.
    #[serde(default)]
    pub created_at: Option<String>,
    /// When it was changed, RFC 3339.
    #[serde(default)]
    pub updated_at: Option<String>,
    #[serde(default)]
    performed_via_github_app: Option<App>,
}

impl Comment {
    /// The App that wrote it, if one did.
    #[must_use]
    pub fn app_id(&self) -> Option<u64> {
        self.performed_via_github_app.as_ref().map(|app| app.id)
    }
}

/// A review's summary.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Review {
    /// Id.
    pub id: u64,
    /// Text.
    #[serde(default)]
    pub body: Option<String>,
    /// Who wrote it.
    #[serde(default)]
    pub user: Option<Account>,
    /// Relation to the repository.
    #[serde(default)]
    pub author_association: String,
    /// When, RFC 3339.
    #[serde(default)]
    pub submitted_at: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Reference {
    #[serde(rename = "ref", default)]
    name: String,
    sha: String,
}

/// A pull request as webhooks show it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PullRequest {
    /// Number.
    pub number: u64,
    #[serde(default)]
    state: String,
    #[serde(default)]
    draft: Option<bool>,
    head: Reference,
    base: Reference,
    #[serde(default)]
    user: Option<Account>,
}

impl PullRequest {
    /// Head commit.
    #[must_use]
    pub fn head_sha(&self) -> &str {
        &self.head.sha
    }
    /// Target branch.
    #[must_use]
    pub fn base_ref(&self) -> &str {
        &self.base.name
    }
    /// Commit of the target branch, as recorded.
    #[must_use]
    pub fn base_sha(&self) -> &str {
        &self.base.sha
    }
    /// Whether it is open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.state == "open"
    }
    /// Whether it is a draft.
    #[must_use]
    pub fn is_draft(&self) -> bool {
        self.draft.unwrap_or(false)
    }
    /// Who opened it.
    #[must_use]
    pub fn author(&self) -> Option<&str> {
        self.user.as_ref().map(|user| user.login.as_str())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Issue {
    number: u64,
    #[serde(default)]
    pull_request: Option<Anything>,
}

#[derive(Deserialize)]
struct RawComment {
    action: String,
    issue: Issue,
    comment: Comment,
    repository: Repository,
    sender: Account,
    #[serde(default)]
    changes: Changes,
}

#[derive(Deserialize)]
struct RawReview {
    action: String,
    review: Review,
    pull_request: PullRequest,
    repository: Repository,
    sender: Account,
    #[serde(default)]
    changes: Changes,
}

#[derive(Deserialize)]
struct RawReviewComment {
    action: String,
    comment: Comment,
    pull_request: PullRequest,
    repository: Repository,
    sender: Account,
    #[serde(default)]
    changes: Changes,
}

#[derive(Deserialize)]
struct RawPull {
    action: String,
    pull_request: PullRequest,
    repository: Repository,
    #[serde(default)]
    changes: Changes,
}

/// A workflow run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct WorkflowRun {
    /// Id.
    pub id: u64,
    /// Path of the workflow file.
    #[serde(default)]
    pub path: Option<String>,
    /// Event that started it.
    #[serde(default)]
    pub event: String,
    /// Commit.
    pub head_sha: String,
    /// Branch.
    #[serde(default)]
    pub head_branch: Option<String>,
    #[serde(default)]
    pull_requests: Vec<Numbered>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Numbered {
    number: u64,
}

impl WorkflowRun {
    /// Pull requests that GitHub names; empty for forks, and once the head has moved.
    pub fn pull_requests(&self) -> impl Iterator<Item = u64> + '_ {
        self.pull_requests.iter().map(|pull| pull.number)
    }
}

#[derive(Deserialize)]
struct RawRun {
    action: String,
    workflow_run: WorkflowRun,
    repository: Repository,
}

#[derive(Deserialize)]
struct RawStatus {
    sha: String,
    context: String,
    repository: Repository,
    sender: Account,
}

#[derive(Deserialize)]
struct RawCheckRun {
    action: String,
    check_run: CheckRun,
    repository: Repository,
}

/// A check run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CheckRun {
    /// Commit.
    pub head_sha: String,
    /// The App that wrote it.
    #[serde(default)]
    app: Option<AppId>,
    #[serde(default)]
    pull_requests: Vec<Numbered>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct AppId {
    id: u64,
}

impl CheckRun {
    /// The App that wrote it.
    pub fn app_id(&self) -> Option<u64> {
        self.app.as_ref().map(|app| app.id)
    }

    /// Pull requests that GitHub names; empty for forks.
    pub fn pull_requests(&self) -> impl Iterator<Item = u64> + '_ {
        self.pull_requests.iter().map(|pull| pull.number)
    }
}

#[derive(Deserialize)]
struct RawInstallation {
    action: String,
}

/// A comment in a conversation, created, edited or deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssueCommentEvent {
    /// Action.
    pub action: String,
    /// Repository.
    pub repository: String,
    /// Issue or pull request number.
    pub number: u64,
    /// Whether the issue is a pull request.
    pub on_pull_request: bool,
    /// The comment.
    pub comment: Comment,
    /// Who acted.
    pub sender: Account,
    /// The text before an edit.
    pub old_body: Option<String>,
}

/// A review, submitted, edited or dismissed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewEvent {
    /// Action.
    pub action: String,
    /// Repository.
    pub repository: String,
    /// The pull request.
    pub pull_request: PullRequest,
    /// The review.
    pub review: Review,
    /// Who acted.
    pub sender: Account,
    /// The text before an edit.
    pub old_body: Option<String>,
}

/// An inline comment, created, edited or deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewCommentEvent {
    /// Action.
    pub action: String,
    /// Repository.
    pub repository: String,
    /// The pull request.
    pub pull_request: PullRequest,
    /// The comment.
    pub comment: Comment,
    /// Who acted.
    pub sender: Account,
    /// The text before an edit.
    pub old_body: Option<String>,
}

/// A change of a pull request itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequestEvent {
    /// Action.
    pub action: String,
    /// Repository.
    pub repository: String,
    /// The pull request.
    pub pull_request: PullRequest,
    /// With `edited`: whether the target branch changed.
    pub base_changed: bool,
}

/// A workflow run was requested, is running or has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowRunEvent {
    /// Action.
    pub action: String,
    /// Repository.
    pub repository: String,
    /// The run.
    pub run: WorkflowRun,
}

/// Somebody wrote a commit status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusEvent {
    /// Repository.
    pub repository: String,
    /// Commit.
    pub sha: String,
    /// Context.
    pub context: String,
    /// Who wrote it.
    pub sender: Account,
}

/// A check run was written, or somebody asks for it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckRunEvent {
    /// Action.
    pub action: String,
    /// Repository.
    pub repository: String,
    /// The check run.
    pub run: CheckRun,
}

/// The App was installed, removed, or given other repositories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallationEvent {
    /// Action.
    pub action: String,
}

/// Characters of a refusal's parts.
const SHOWN: usize = 200;

/// A webhook, as far as we read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// `ping`.
    Ping,
    /// `issue_comment`.
    IssueComment(Box<IssueCommentEvent>),
    /// `pull_request_review`.
    Review(Box<ReviewEvent>),
    /// `pull_request_review_comment`.
    ReviewComment(Box<ReviewCommentEvent>),
    /// `pull_request`.
    PullRequest(Box<PullRequestEvent>),
    /// `workflow_run`.
    WorkflowRun(Box<WorkflowRunEvent>),
    /// `status`.
    Status(Box<StatusEvent>),
    /// `check_run`.
    CheckRun(Box<CheckRunEvent>),
    /// `installation`, `installation_repositories`.
    Installation(InstallationEvent),
    /// Any other event.
    Other,
}

/// What a refusal shows of a body: keys and values in it are as long as their sender likes.
fn short(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

fn read<T: DeserializeOwned>(event: &str, body: &[u8]) -> Result<T, PayloadError> {
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    serde_path_to_error::deserialize(&mut deserializer).map_err(|error| PayloadError {
        event: event.to_owned(),
        path: short(&error.path().to_string()),
        why: short(&error.inner().to_string()),
    })
}

fn old_body(changes: Changes) -> Option<String> {
    changes.body.and_then(|body| body.from)
}

/// Reads a payload of a verified request.
///
/// # Errors
/// [`PayloadError`] when a field that we use is missing or of another form, or when the body is no JSON.
pub fn parse(event: &str, body: &[u8]) -> Result<Event, PayloadError> {
    Ok(match event {
        "ping" => Event::Ping,
        "issue_comment" => {
            let raw: RawComment = read(event, body)?;
            Event::IssueComment(Box::new(IssueCommentEvent {
                action: raw.action,
                repository: raw.repository.full_name,
                number: raw.issue.number,
                on_pull_request: raw.issue.pull_request.is_some(),
                comment: raw.comment,
                sender: raw.sender,
                old_body: old_body(raw.changes),
            }))
        }
        "pull_request_review" => {
            let raw: RawReview = read(event, body)?;
            Event::Review(Box::new(ReviewEvent {
                action: raw.action,
                repository: raw.repository.full_name,
                pull_request: raw.pull_request,
                review: raw.review,
                sender: raw.sender,
                old_body: old_body(raw.changes),
            }))
        }
        "pull_request_review_comment" => {
            let raw: RawReviewComment = read(event, body)?;
            Event::ReviewComment(Box::new(ReviewCommentEvent {
                action: raw.action,
                repository: raw.repository.full_name,
                pull_request: raw.pull_request,
                comment: raw.comment,
                sender: raw.sender,
                old_body: old_body(raw.changes),
            }))
        }
        "pull_request" => {
            let raw: RawPull = read(event, body)?;
            Event::PullRequest(Box::new(PullRequestEvent {
                action: raw.action,
                repository: raw.repository.full_name,
                pull_request: raw.pull_request,
                base_changed: raw.changes.base.is_some(),
            }))
        }
        "workflow_run" => {
            let raw: RawRun = read(event, body)?;
            Event::WorkflowRun(Box::new(WorkflowRunEvent {
                action: raw.action,
                repository: raw.repository.full_name,
                run: raw.workflow_run,
            }))
        }
        "status" => {
            let raw: RawStatus = read(event, body)?;
            Event::Status(Box::new(StatusEvent {
                repository: raw.repository.full_name,
                sha: raw.sha,
                context: raw.context,
                sender: raw.sender,
            }))
        }
        "check_run" => {
            let raw: RawCheckRun = read(event, body)?;
            Event::CheckRun(Box::new(CheckRunEvent {
                action: raw.action,
                repository: raw.repository.full_name,
                run: raw.check_run,
            }))
        }
        "installation" | "installation_repositories" => Event::Installation(InstallationEvent {
            action: read::<RawInstallation>(event, body)?.action,
        }),
        _ => {
            // Still has to be JSON: a body that is none was not sent by GitHub in a form that we can keep.
            read::<serde::de::IgnoredAny>(event, body)?;
            Event::Other
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_field_is_named() {
        let error = parse("issue_comment", br#"{"action":"created","issue":{"number":"x"}}"#).unwrap_err();
        assert_eq!(error.path, "issue.number");
        let long = format!(
            "{{\"action\":\"created\",\"issue\":{{\"number\":\"{}\"}}}}",
            "x".repeat(10_000)
        );
        let error = parse("issue_comment", long.as_bytes()).unwrap_err();
        assert!(
            error.to_string().chars().count() < 600,
            "a refusal does not echo the body"
        );
        assert!(parse("whatever", b"{}").is_ok());
        assert!(parse("whatever", b"{").is_err());
    }

    #[test]
    fn an_edit_keeps_the_old_text() {
        let body = br#"{"action":"edited","issue":{"number":3,"pull_request":{"url":"x"}},"comment":{"id":5,"body":"new","user":{"login":"a","type":"User"}},
            "repository":{"full_name":"o/r"},"sender":{"login":"b","type":"User"},"changes":{"body":{"from":"old"}}}"#;
        let Event::IssueComment(event) = parse("issue_comment", body).unwrap() else {
            panic!("another event")
        };
        assert_eq!(
            (event.number, event.on_pull_request, event.old_body.as_deref()),
            (3, true, Some("old"))
        );
    }
}
