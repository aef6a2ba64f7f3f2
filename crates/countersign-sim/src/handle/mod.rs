//! The running simulator, as programs and tests hold it.

mod observe;
mod start;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

pub use self::observe::{CheckRunView, CommentView, DeliveryView, ReactionView, StatusView};
use crate::git::GitError;
use crate::shared::Shared;
use crate::state::State;
use crate::world::World;
use crate::world::actions::RunSpec;
use crate::world::faults::FaultSpec;
use crate::world::load::WorldError;
use crate::world::pulls::{CommentSpec, ReviewCommentSpec, ReviewSpec};
use crate::world::repo::CommitSpec;
use crate::world::spell::PullRef;
use crate::world::timeline::{Push, PushBranch, Step, UpdateRun};

/// What can go wrong with a simulator, or with a step.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimError {
    /// The world is not right.
    #[error(transparent)]
    World(#[from] WorldError),
    /// Something that is not there.
    #[error("no such {0}")]
    NoSuch(String),
    /// A step that is not right.
    #[error("{0}")]
    Step(String),
    /// A clone that cannot be read.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The servers cannot listen, or the webhooks cannot be sent.
    #[error("simulated GitHub: {0}")]
    Io(#[from] std::io::Error),
}

impl SimError {
    pub(crate) fn no_such(what: impl Into<String>) -> Self {
        SimError::NoSuch(what.into())
    }
}

/// How a simulator is set up, beside its world.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The API's path prefix, as GitHub Enterprise has it: `/api/v3`.
    pub prefix: String,
    /// How long each API call takes at least; the world's when none.
    pub latency: Option<Duration>,
    /// The root of links for people; `https://github.com` when none.
    pub html: Option<String>,
}

/// Starts simulators.
#[derive(Debug)]
pub struct Sim;

/// Whose token a call came with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TokenKind {
    /// The App's JWT.
    App,
    /// An installation's token.
    Installation,
    /// A person's token.
    Person,
    /// None.
    None,
}

/// One API call that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The method.
    pub method: String,
    /// The path below the API's root.
    pub path: String,
    /// The status; 0 where the connection was dropped.
    pub status: u16,
    /// Whose token it came with.
    pub token: TokenKind,
    /// Whether a fault changed the answer.
    pub faulted: bool,
}

/// One write of the App that was carried out, also where a fault hid the answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Write {
    /// The simulated time.
    pub at: DateTime<Utc>,
    /// The method.
    pub method: String,
    /// The path below the API's root.
    pub path: String,
    /// The body that was sent.
    pub body: serde_json::Value,
    /// The status that was answered, or would have been.
    pub status: u16,
}

/// A step of the timeline that was played.
#[derive(Debug, Clone)]
pub struct StepDone {
    /// The step.
    pub step: Step,
    /// The simulated time after it.
    pub at: DateTime<Utc>,
    /// The id of what it made, if that has one.
    pub made: Option<u64>,
}

/// A running simulator. It stops when the last clone of the handle is dropped.
#[derive(Debug, Clone)]
pub struct SimHandle {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    base: String,
    storage: String,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Sim {
    /// Builds and starts a simulator on two free loopback ports. It runs on a thread of its own, so it answers whatever
    /// the caller's runtime does.
    ///
    /// # Errors
    /// A world that contradicts itself or names what is not there; no free port.
    pub fn start(world: &World) -> Result<SimHandle, SimError> {
        Sim::start_with(world, Options::default())
    }

    /// The same, with options.
    ///
    /// # Errors
    /// As [`Sim::start`].
    pub fn start_with(world: &World, options: Options) -> Result<SimHandle, SimError> {
        start::start(world, options)
    }

    /// Checks a world without starting anything: all that [`Sim::start`] would refuse.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn check(world: &World) -> Result<(), SimError> {
        State::build(world).map(|_| ()).map_err(SimError::from)
    }
}

impl SimHandle {
    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.inner.shared.lock())
    }

    // Addresses and credentials.

    /// The API's root, such as `http://127.0.0.1:40123` or `http://127.0.0.1:40123/api/v3`.
    pub fn base_url(&self) -> &str {
        &self.inner.base
    }

    /// The root of the second host: archives, artifacts, pages. No token may be sent there.
    pub fn storage_url(&self) -> &str {
        &self.inner.storage
    }

    /// Web pages: the origin of each host in the world → where the simulator serves it. A client that wants
    /// `https://docs.example.org/a` asks for the value of `https://docs.example.org` with `/a` behind it.
    pub fn page_origins(&self) -> BTreeMap<String, String> {
        self.with(|s| {
            let urls = s.pages.keys().filter_map(|u| url::Url::parse(u).ok());
            urls.filter_map(|u| {
                let host = u.host_str()?;
                let origin = u.origin().ascii_serialization();
                Some((origin, format!("{}/pages/{}/{host}", self.inner.storage, u.scheme())))
            })
            .collect()
        })
    }

    /// Where the simulator serves any web page: `scheme://host/path` → `<storage>/pages/scheme/host/path`, also for hosts
    /// that the world does not name. None for text that is no URL with a host.
    pub fn page_url(&self, url: &str) -> Option<String> {
        let parsed = url::Url::parse(url).ok()?;
        let host = parsed.host_str()?;
        let rest = &url[url.find("://")? + 3..];
        let rest = rest.find(['/', '?']).map_or("", |at| &rest[at..]);
        Some(format!("{}/pages/{}/{host}{rest}", self.inner.storage, parsed.scheme()))
    }

    /// A JWT of the App, as a test's own client needs: good for nine minutes of the machine's clock.
    ///
    /// # Errors
    /// None with the key that ships here; the signer's own are passed on.
    pub fn app_jwt(&self) -> Result<String, SimError> {
        let now = Utc::now().timestamp();
        let claims = serde_json::json!({"iat": now - 60, "exp": now + 540, "iss": self.app_id().to_string()});
        let key = jsonwebtoken::EncodingKey::from_rsa_pem(crate::TEST_KEY_PEM.as_bytes());
        let header = jsonwebtoken::Header::new(jsonwebtoken::Algorithm::RS256);
        key.and_then(|key| jsonwebtoken::encode(&header, &claims, &key))
            .map_err(|e| SimError::Step(e.to_string()))
    }

    /// The App's id.
    pub fn app_id(&self) -> u64 {
        self.with(|s| s.app.id)
    }

    /// The App's slug; its comments are by `<slug>[bot]`.
    pub fn app_slug(&self) -> String {
        self.with(|s| s.app.slug.clone())
    }

    /// The login under which the App writes.
    pub fn bot_login(&self) -> String {
        self.with(|s| s.bot())
    }

    /// The App's private key, PEM.
    pub fn app_key_pem(&self) -> &'static str {
        crate::TEST_KEY_PEM
    }

    /// The secret that webhooks are signed with.
    pub fn webhook_secret(&self) -> String {
        self.with(|s| s.hooks.secret.clone())
    }

    /// The installation that covers a repository.
    pub fn installation_of(&self, repo: &str) -> Option<u64> {
        self.with(|s| s.repo(repo)?.installation)
    }

    /// A fresh token of an installation, as a test's own client needs.
    pub fn mint_token(&self, installation: u64) -> String {
        self.with(|s| s.mint(installation, None).0)
    }

    // Time.

    /// The simulated time.
    pub fn now(&self) -> DateTime<Utc> {
        self.with(|s| s.now())
    }

    /// Moves the simulated time forwards.
    pub fn advance(&self, by: TimeDelta) {
        self.with(|s| s.advance(by));
    }

    /// Moves the simulated time to a moment that has not been reached yet.
    pub fn advance_to(&self, at: DateTime<Utc>) {
        self.with(|s| s.advance_to(at));
    }

    // Changes. Each queues the webhooks that GitHub would send.

    /// Plays any step.
    ///
    /// # Errors
    /// What the step names is not there, or the step is not right.
    pub fn play(&self, step: &Step) -> Result<Option<u64>, SimError> {
        self.with(|s| s.play(step))
    }

    /// Writes an issue comment and returns its id.
    ///
    /// # Errors
    /// No such pull request.
    pub fn post_comment(&self, pull: impl Into<PullRef>, author: &str, body: &str) -> Result<u64, SimError> {
        let spec = CommentSpec {
            author: author.to_owned(),
            body: Some(body.to_owned()),
            ..CommentSpec::default()
        };
        self.with(|s| {
            let (repo, n) = s.pull_ref(&pull.into())?;
            s.post_comment(&repo, n, &spec)
        })
    }

    /// Changes an issue comment's text.
    ///
    /// # Errors
    /// No such comment.
    pub fn edit_comment(&self, id: u64, body: &str, by: &str) -> Result<(), SimError> {
        self.with(|s| s.edit_comment(id, body, Some(by)))
    }

    /// Deletes an issue comment.
    ///
    /// # Errors
    /// No such comment.
    pub fn delete_comment(&self, id: u64, by: &str) -> Result<(), SimError> {
        self.with(|s| s.delete_comment(id, Some(by)))
    }

    /// Submits a review and returns its id.
    ///
    /// # Errors
    /// No such pull request.
    pub fn submit_review(&self, pull: impl Into<PullRef>, spec: &ReviewSpec) -> Result<u64, SimError> {
        self.with(|s| {
            let (repo, n) = s.pull_ref(&pull.into())?;
            s.submit_review(&repo, n, spec)
        })
    }

    /// Writes an inline review comment and returns its id.
    ///
    /// # Errors
    /// No such pull request.
    pub fn post_review_comment(&self, pull: impl Into<PullRef>, spec: &ReviewCommentSpec) -> Result<u64, SimError> {
        self.with(|s| {
            let (repo, n) = s.pull_ref(&pull.into())?;
            s.post_review_comment(&repo, n, spec)
        })
    }

    /// Pushes a commit, made here on top of the present head, to a pull request's branch. Returns the new head.
    ///
    /// # Errors
    /// No such pull request.
    pub fn push_commit(&self, pull: impl Into<PullRef>, commit: CommitSpec) -> Result<String, SimError> {
        let pull = pull.into();
        self.play(&Step {
            push: Some(Push {
                pull: pull.clone(),
                head: None,
                commit: Some(commit),
                by: None,
            }),
            ..Step::default()
        })?;
        self.head(pull)
    }

    /// Pushes a commit that is there already.
    ///
    /// # Errors
    /// No such pull request or commit.
    pub fn push(&self, pull: impl Into<PullRef>, head: &str) -> Result<(), SimError> {
        self.with(|s| {
            let (repo, n) = s.pull_ref(&pull.into())?;
            s.push(&repo, n, head, None)
        })
    }

    /// Moves a branch to a commit made here on top of its tip.
    ///
    /// # Errors
    /// No such repository.
    pub fn push_branch(&self, repo: &str, branch: &str, commit: CommitSpec) -> Result<(), SimError> {
        let push = PushBranch {
            repo: Some(repo.to_owned()),
            branch: Some(branch.to_owned()),
            head: None,
            commit: Some(commit),
            by: None,
        };
        self.play(&Step {
            push_branch: Some(push),
            ..Step::default()
        })
        .map(|_| ())
    }

    /// Makes a pull request a draft, or ready for review.
    ///
    /// # Errors
    /// No such pull request.
    pub fn set_draft(&self, pull: impl Into<PullRef>, draft: bool) -> Result<(), SimError> {
        self.with(|s| {
            let (repo, n) = s.pull_ref(&pull.into())?;
            s.set_draft(&repo, n, draft, None)
        })
    }

    /// Changes the target branch.
    ///
    /// # Errors
    /// No such pull request or branch.
    pub fn change_base(&self, pull: impl Into<PullRef>, base: &str) -> Result<(), SimError> {
        self.with(|s| {
            let (repo, n) = s.pull_ref(&pull.into())?;
            s.edit_pull(&repo, n, None, None, Some(base), None)
        })
    }

    /// Closes or reopens a pull request.
    ///
    /// # Errors
    /// No such pull request.
    pub fn set_open(&self, pull: impl Into<PullRef>, open: bool) -> Result<(), SimError> {
        self.with(|s| {
            let (repo, n) = s.pull_ref(&pull.into())?;
            s.set_open(&repo, n, open, None)
        })
    }

    /// Merges a pull request.
    ///
    /// # Errors
    /// No such pull request.
    pub fn merge(&self, pull: impl Into<PullRef>, by: &str) -> Result<(), SimError> {
        self.with(|s| {
            let (repo, n) = s.pull_ref(&pull.into())?;
            s.merge(&repo, n, None, Some(by))
        })
    }

    /// Puts a label on, or takes it off.
    ///
    /// # Errors
    /// No such pull request.
    pub fn set_label(&self, pull: impl Into<PullRef>, label: &str, on: bool) -> Result<(), SimError> {
        self.with(|s| {
            let (repo, n) = s.pull_ref(&pull.into())?;
            s.set_label(&repo, n, label, on, None)
        })
    }

    /// Adds a workflow run, running or already completed, and returns its id.
    ///
    /// # Errors
    /// No such repository or commit.
    pub fn start_run(&self, repo: &str, spec: &RunSpec) -> Result<u64, SimError> {
        self.with(|s| s.start_run(repo, spec))
    }

    /// Completes a workflow run with the jobs it has.
    ///
    /// # Errors
    /// No such run.
    pub fn complete_run(&self, id: u64, conclusion: &str) -> Result<(), SimError> {
        let update = UpdateRun {
            id,
            status: None,
            conclusion: Some(conclusion.to_owned()),
            attempt: None,
            jobs: None,
            lanes: None,
            artifacts: None,
            evals: None,
        };
        self.with(|s| s.update_run(&update))
    }

    /// The head of a pull request.
    ///
    /// # Errors
    /// No such pull request.
    pub fn head(&self, pull: impl Into<PullRef>) -> Result<String, SimError> {
        self.with(|s| {
            let (repo, n) = s.pull_ref(&pull.into())?;
            Ok(s.pull(&repo, n)?.head_sha.clone())
        })
    }

    // The timeline.

    /// Plays the next step of the world's timeline; none when it is over. Webhooks are queued, not yet delivered.
    ///
    /// # Errors
    /// As [`SimHandle::play`]; the step is used up.
    pub fn step(&self) -> Result<Option<StepDone>, SimError> {
        self.with(|s| {
            let Some(step) = s.timeline.pop_front() else {
                return Ok(None);
            };
            let made = s.play(&step)?;
            Ok(Some(StepDone {
                step,
                at: s.now(),
                made,
            }))
        })
    }

    /// How many steps of the timeline are left.
    pub fn steps_left(&self) -> usize {
        self.with(|s| s.timeline.len())
    }

    // Webhooks.

    /// Where webhooks go. Those that wait are sent at once; none makes them wait.
    pub fn set_sink(&self, url: Option<&str>) {
        self.with(|s| {
            s.hooks.sink = url.map(str::to_owned);
            s.hooks.wake.notify_one();
        });
    }

    /// How many webhooks are sent at once; one, unless this says more. More may overtake each other.
    pub fn deliver_at_once(&self, most: usize) {
        self.with(|s| s.hooks.at_once = most);
    }

    /// How many webhooks wait or are under way.
    pub fn undelivered(&self) -> usize {
        self.with(|s| *s.hooks.pending.borrow())
    }

    /// Waits until all queued webhooks have been sent, each answered or given up.
    ///
    /// # Errors
    /// There is no sink, and something waits.
    pub async fn deliver_all(&self) -> Result<(), SimError> {
        let mut pending = self.with(|s| {
            if s.hooks.sink.is_none() && *s.hooks.pending.borrow() > 0 {
                return Err(SimError::Step(
                    "webhooks wait and there is no sink: call set_sink first".to_owned(),
                ));
            }
            Ok(s.hooks.pending.subscribe())
        })?;
        // The sender lives as long as this handle.
        let _ = pending.wait_for(|n| *n == 0).await;
        Ok(())
    }

    /// Sends a delivery once more, as somebody does with the button on GitHub's page.
    ///
    /// # Errors
    /// No such delivery, or it still waits.
    pub fn redeliver(&self, id: u64) -> Result<(), SimError> {
        self.with(|s| {
            if s.redeliver(id) {
                Ok(())
            } else {
                Err(SimError::no_such(format!("delivery {id}")))
            }
        })
    }

    // Faults and limits.

    /// Adds a fault.
    ///
    /// # Errors
    /// The fault is not right.
    pub fn add_fault(&self, fault: FaultSpec) -> Result<(), SimError> {
        self.with(|s| s.faults.add(fault).map_err(SimError::Step))
    }

    /// Drops all faults.
    pub fn clear_faults(&self) {
        self.with(|s| s.faults.clear());
    }

    /// How many faults have fired since they were last cleared.
    pub fn faults_fired(&self) -> u64 {
        self.with(|s| s.faults.fired())
    }

    /// Leaves every known token so many calls in its window.
    pub fn set_rate_remaining(&self, remaining: u64) {
        self.with(|s| s.set_remaining(remaining));
    }

    /// Makes all installation tokens useless; the next call with one is a 401.
    pub fn expire_tokens(&self) {
        self.with(|s| s.expire_tokens());
    }
}
