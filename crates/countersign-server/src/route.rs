//! What a webhook asks for. Pure: the event and the policy in, a route out.
//!
//! Every event that could change a pull request's state asks for the same work, "look at this pull request": the worker
//! reads the state itself and never acts on what a payload claims. So events may come twice, late, or in any order.

use countersign_github::webhook::{Account, Event};
use countersign_policy::Policy;
use countersign_signoff::{AuthorInfo, CommandKind, Recognition};

/// Where an event goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// Look at one pull request.
    PullRequest {
        /// `owner/name`.
        repository: String,
        /// Number.
        number: u64,
        /// Why, for the log.
        cause: &'static str,
        /// What we show was changed by somebody: it is to be compared with GitHub and written again.
        reassert: bool,
    },
    /// Look at all pull requests that contain a commit; which ones they are has to be found out.
    Commit {
        /// `owner/name`.
        repository: String,
        /// The commit.
        sha: String,
        /// Numbers that GitHub names.
        numbers: Vec<u64>,
        /// Why, for the log.
        cause: &'static str,
        /// As for a pull request.
        reassert: bool,
    },
    /// Nothing to do, for this reason.
    Ignored(&'static str),
}

/// Who we are, to know our own traces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelfIdentity {
    /// App id.
    pub app_id: u64,
    /// Login of the App's bot account.
    pub login: String,
}

impl SelfIdentity {
    fn is(&self, account: Option<&Account>, app_id: Option<u64>) -> bool {
        app_id == Some(self.app_id) || account.is_some_and(|account| account.login.eq_ignore_ascii_case(&self.login))
    }
}

/// Decides. `policy` is the one in force for the event's repository; without one the repository is not ours to judge.
#[must_use]
pub fn route(event: &Event, policy: Option<&Policy>, own: &SelfIdentity) -> Route {
    match event {
        Event::Ping => return Route::Ignored("ping"),
        Event::Installation(_) => {
            return Route::Ignored("installation events carry nothing that is not read when needed");
        }
        Event::Other => return Route::Ignored("this event is not used"),
        _ => {}
    }
    let Some(policy) = policy else {
        return Route::Ignored("no policy is configured for this repository");
    };
    match event {
        Event::IssueComment(event) => {
            if !event.on_pull_request {
                return Route::Ignored("the comment is on an issue, not on a pull request");
            }
            if own.is(event.comment.user.as_ref(), event.comment.app_id()) {
                return if event.action == "created" {
                    Route::Ignored("our own comment")
                } else if own.is(Some(&event.sender), None) {
                    Route::Ignored("our own change of our comment")
                } else {
                    // Somebody changed or removed what we wrote: look, and show it again.
                    Route::PullRequest {
                        repository: event.repository.clone(),
                        number: event.number,
                        cause: "our comment was changed",
                        reassert: true,
                    }
                };
            }
            let texts = [event.comment.body.as_deref(), event.old_body.as_deref()];
            match relevant(texts, event.comment.user.as_ref(), policy, true) {
                Some(cause) => pull(&event.repository, event.number, cause),
                None => Route::Ignored("no sign-off and no command in the comment"),
            }
        }
        Event::Review(event) => {
            let texts = [event.review.body.as_deref(), event.old_body.as_deref()];
            match relevant(texts, event.review.user.as_ref(), policy, false) {
                Some(cause) => pull(&event.repository, event.pull_request.number, cause),
                None => Route::Ignored("no sign-off in the review"),
            }
        }
        Event::ReviewComment(event) => {
            let texts = [event.comment.body.as_deref(), event.old_body.as_deref()];
            match relevant(texts, event.comment.user.as_ref(), policy, false) {
                Some(cause) => pull(&event.repository, event.pull_request.number, cause),
                None => Route::Ignored("no sign-off in the review comment"),
            }
        }
        Event::PullRequest(event) => {
            let cause = match event.action.as_str() {
                "opened" => "opened",
                "reopened" => "reopened",
                "synchronize" => "head moved",
                "ready_for_review" => "ready for review",
                "converted_to_draft" => "converted to draft",
                "closed" => "closed",
                "edited" if event.base_changed => "base changed",
                "edited" => return Route::Ignored("only title or description changed"),
                _ => return Route::Ignored("this action does not change what is judged"),
            };
            pull(&event.repository, event.pull_request.number, cause)
        }
        Event::WorkflowRun(event) => {
            let path = event
                .run
                .path
                .as_deref()
                .unwrap_or_default()
                .split('@')
                .next()
                .unwrap_or_default();
            if event.action != "completed" {
                Route::Ignored("the run is not finished")
            } else if path != policy.ci.workflow {
                Route::Ignored("a run of another workflow")
            } else {
                Route::Commit {
                    repository: event.repository.clone(),
                    sha: event.run.head_sha.clone(),
                    numbers: event.run.pull_requests().collect(),
                    cause: "sweep run completed",
                    reassert: false,
                }
            }
        }
        Event::Status(event) => {
            if event.context != policy.publish.status_context {
                Route::Ignored("a status of another context")
            } else if own.is(Some(&event.sender), None) {
                Route::Ignored("our own status")
            } else {
                Route::Commit {
                    repository: event.repository.clone(),
                    sha: event.sha.clone(),
                    numbers: Vec::new(),
                    cause: "our status was overwritten",
                    reassert: true,
                }
            }
        }
        Event::CheckRun(event) => {
            if event.action != "rerequested" {
                Route::Ignored("nobody asks for this check run again")
            } else if event.run.app_id() != Some(own.app_id) {
                Route::Ignored("a check run of another App")
            } else {
                Route::Commit {
                    repository: event.repository.clone(),
                    sha: event.run.head_sha.clone(),
                    numbers: event.run.pull_requests().collect(),
                    cause: "asked for again",
                    reassert: true,
                }
            }
        }
        Event::Ping | Event::Installation(_) | Event::Other => Route::Ignored("this event is not used"),
    }
}

fn pull(repository: &str, number: u64, cause: &'static str) -> Route {
    Route::PullRequest {
        repository: repository.to_owned(),
        number,
        cause,
        reassert: false,
    }
}

/// Whether one of the texts (now, or before an edit) is a sign-off or has a command that we act on.
fn relevant(texts: [Option<&str>; 2], user: Option<&Account>, policy: &Policy, commands: bool) -> Option<&'static str> {
    let author = AuthorInfo {
        login: user.map(|user| user.login.clone()).unwrap_or_default(),
        is_bot: user.is_some_and(Account::is_bot),
        is_self: false,
    };
    for text in texts.into_iter().flatten() {
        if matches!(
            countersign_signoff::recognise(text, &author, &policy.signoff),
            Recognition::SignOff(_)
        ) {
            return Some("sign-off");
        }
        if commands && !author.is_bot {
            let found = countersign_signoff::commands(text, &policy.commands.words);
            let ask = |command: &countersign_signoff::Command| match command.kind {
                CommandKind::Reuse { .. } => "reuse command",
                CommandKind::Verify | CommandKind::Confirm { .. } | CommandKind::Override { .. } => "command",
                CommandKind::Explain { .. } | CommandKind::Help => "question",
            };
            if let Some(cause) = found.commands.first().map(ask) {
                return Some(cause);
            }
        }
    }
    None
}
