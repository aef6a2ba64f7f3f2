//! The simulated GitHub's memory: what the world said, and what has happened since.

pub(crate) mod build;
pub(crate) mod model;
pub(crate) mod mutate;
pub(crate) mod observe;
pub(crate) mod runs;
pub(crate) mod steps;
pub(crate) mod written;

use std::collections::{BTreeMap, VecDeque};

use chrono::{DateTime, TimeDelta, Utc};

use crate::git::{GitError, Store};
use crate::hooks::Hooks;
use crate::http::faults::Faults;
use crate::http::limits::Usage;
use crate::world::timeline::Step;
use crate::world::{AppSpec, FullPage, LimitSpec, OrgSpec, ShortForms, UserSpec};
use model::{Installation, Repo, Token};

/// Everything. One lock guards it; no answer takes long.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) partial: bool,
    pub(crate) app: AppSpec,
    pub(crate) short_forms: ShortForms,
    pub(crate) limits: LimitSpec,
    /// None where simulated time is the machine's.
    pub(crate) clock: Option<DateTime<Utc>>,
    /// The API's root, without a slash at the end.
    pub(crate) base: String,
    /// The root of the second host: archives, artifacts and web pages.
    pub(crate) storage: String,
    /// The root of links for people.
    pub(crate) html: String,
    pub(crate) stores: Vec<Store>,
    pub(crate) repos: BTreeMap<String, Repo>,
    pub(crate) orgs: BTreeMap<String, OrgSpec>,
    pub(crate) users: BTreeMap<String, UserSpec>,
    pub(crate) pages: BTreeMap<String, FullPage>,
    pub(crate) installations: BTreeMap<u64, Installation>,
    pub(crate) tokens: BTreeMap<String, Token>,
    pub(crate) last_id: u64,
    pub(crate) hooks: Hooks,
    pub(crate) faults: Faults,
    pub(crate) usage: Usage,
    pub(crate) timeline: VecDeque<Step>,
    /// Calls, newest last.
    pub(crate) calls: Vec<crate::handle::Call>,
    /// Writes of the App that were carried out, oldest first.
    pub(crate) writes: Vec<crate::handle::Write>,
    /// What was asked for and is not served, as `METHOD /path`.
    pub(crate) unserved: Vec<String>,
    /// Facts that were asked for and that the partial world does not say.
    pub(crate) unknown: Vec<String>,
    /// Things that a client should not do, such as a token sent to the storage host.
    pub(crate) complaints: Vec<String>,
}

impl State {
    /// The simulated time.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        // GitHub's times have whole seconds.
        let now = self.clock.unwrap_or_else(Utc::now);
        DateTime::from_timestamp(now.timestamp(), 0).unwrap_or(now)
    }

    /// Moves the simulated time; never backwards.
    pub(crate) fn advance_to(&mut self, at: DateTime<Utc>) {
        if let Some(clock) = &mut self.clock
            && at > *clock
        {
            *clock = at;
        }
    }

    /// Moves the simulated time by a span.
    pub(crate) fn advance(&mut self, by: TimeDelta) {
        if let Some(clock) = &mut self.clock {
            *clock += by;
        }
    }

    /// A new id, larger than all that the world names.
    pub(crate) fn fresh_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// A repository by `owner/name`, whatever the case.
    pub(crate) fn repo(&self, name: &str) -> Option<&Repo> {
        self.repos.get(&name.to_ascii_lowercase())
    }

    /// A repository by `owner/name`, whatever the case.
    pub(crate) fn repo_mut(&mut self, name: &str) -> Option<&mut Repo> {
        self.repos.get_mut(&name.to_ascii_lowercase())
    }

    /// The object store of a repository.
    pub(crate) fn store(&mut self, repo: &str) -> Option<&mut Store> {
        let index = self.repo(repo)?.store;
        self.stores.get_mut(index)
    }

    /// An organisation, whatever the case.
    pub(crate) fn org(&self, login: &str) -> Option<&OrgSpec> {
        self.orgs.get(&login.to_ascii_lowercase())
    }

    /// The tip of a branch.
    pub(crate) fn branch_tip(&mut self, repo: &str, branch: &str) -> Result<Option<String>, GitError> {
        let Some(r) = self.repo(repo) else { return Ok(None) };
        if let Some(sha) = r.branches.get(branch) {
            return Ok(Some(sha.clone()));
        }
        match self.store(repo) {
            Some(store) => store.revision(&format!("refs/heads/{branch}")),
            None => Ok(None),
        }
    }

    /// A commit by whatever names it: branch, SHA, world name, revision of the clone.
    pub(crate) fn resolve(&mut self, repo: &str, text: &str) -> Result<Option<String>, GitError> {
        let text = text.trim();
        if let Some(sha) = self.repo(repo).and_then(|r| r.branches.get(text)) {
            return Ok(Some(sha.clone()));
        }
        for prefix in ["refs/heads/", "heads/"] {
            if let Some(branch) = text.strip_prefix(prefix) {
                return self.branch_tip(repo, branch);
            }
        }
        if let Some(number) = text
            .strip_prefix("refs/pull/")
            .or(text.strip_prefix("pull/"))
            .and_then(|t| t.strip_suffix("/head"))
            && let Some(pull) = number.parse().ok().and_then(|n: u64| self.repo(repo)?.pulls.get(&n))
        {
            return Ok(Some(pull.head_sha.clone()));
        }
        match self.store(repo) {
            Some(store) => store.revision(text),
            None => Ok(None),
        }
    }

    /// The author's association with a repository, worked out as GitHub does.
    pub(crate) fn association(&self, repo: &str, login: &str) -> String {
        let Some(r) = self.repo(repo) else {
            return "NONE".to_owned();
        };
        let same = |a: &str| a.eq_ignore_ascii_case(login);
        if same(r.owner()) {
            return "OWNER".to_owned();
        }
        if let Some(org) = self.org(r.owner())
            && org.owners.iter().chain(org.members.iter().flatten()).any(|m| same(m))
        {
            return "MEMBER".to_owned();
        }
        if r.collaborators
            .iter()
            .flatten()
            .any(|(name, role)| same(name) && role.permission() != "none")
        {
            return "COLLABORATOR".to_owned();
        }
        if r.pulls.values().any(|p| same(&p.author) && p.merged_at.is_some()) {
            return "CONTRIBUTOR".to_owned();
        }
        "NONE".to_owned()
    }

    /// The App's own login.
    pub(crate) fn bot(&self) -> String {
        format!("{}[bot]", self.app.slug)
    }
}
