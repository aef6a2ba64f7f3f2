//! From a world to the state that is served. What the world contradicts or names in vain is an error with its place.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::Value;

use super::State;
use super::model::{Installation, Known, Pull, Repo, Token};
use crate::git::{Mode, ModeBits, NewCommit, NewFile, Person, Store, Told};
use crate::hooks::Hooks;
use crate::http::faults::Faults;
use crate::http::limits::Usage;
use crate::world::World;
use crate::world::load::WorldError;
use crate::world::pulls::{PullSpec, PullState};
use crate::world::repo::{CommitSpec, RepoSpec};
use crate::world::spell::{Clock, FileSpec};

/// Permissions that an App has unless the world says otherwise: all that is served.
const PERMISSIONS: [(&str, &str); 9] = [
    ("actions", "read"),
    ("administration", "read"),
    ("checks", "write"),
    ("contents", "read"),
    ("issues", "write"),
    ("members", "read"),
    ("metadata", "read"),
    ("pull_requests", "write"),
    ("statuses", "write"),
];

impl State {
    /// Builds the state. Addresses are filled in when the servers listen.
    pub(crate) fn build(world: &World) -> Result<State, WorldError> {
        let mut state = State {
            partial: world.partial,
            app: world.app.clone(),
            short_forms: world.short_forms.clone(),
            limits: world.limits.clone(),
            clock: match world.clock {
                Clock::At(t) => Some(t),
                Clock::Real => None,
            },
            base: String::new(),
            storage: String::new(),
            html: world.web.clone().unwrap_or_else(|| "https://github.com".to_owned()),
            stores: Vec::new(),
            repos: BTreeMap::new(),
            orgs: world
                .orgs
                .iter()
                .map(|(k, v)| (k.to_ascii_lowercase(), v.clone()))
                .collect(),
            users: world
                .users
                .iter()
                .map(|(k, v)| (k.to_ascii_lowercase(), v.clone()))
                .collect(),
            pages: world.pages.iter().map(|(k, v)| (k.clone(), v.0.clone())).collect(),
            installations: BTreeMap::new(),
            tokens: BTreeMap::new(),
            last_id: 1_000.max(largest_id(&serde_json::to_value(world).unwrap_or_default())),
            hooks: Hooks::new(&world.app),
            faults: Faults::new(&world.faults)?,
            usage: Usage::default(),
            timeline: VecDeque::from(world.timeline.clone()),
            calls: Vec::new(),
            writes: Vec::new(),
            unserved: Vec::new(),
            unknown: Vec::new(),
            complaints: Vec::new(),
        };
        for (i, step) in world.timeline.iter().enumerate() {
            step.action()
                .map_err(|e| WorldError::invalid(format!("timeline[{i}]"), e))?;
        }
        for url in world.pages.keys() {
            if url::Url::parse(url).is_err() {
                return Err(WorldError::invalid(
                    format!("pages.{url}"),
                    "not a URL such as https://docs.example.org/page",
                ));
            }
        }
        for (token, login) in &world.tokens {
            state
                .tokens
                .insert(token.clone(), Token::Person { login: login.clone() });
        }
        let all = world
            .repositories
            .iter()
            .map(|r| ("repositories", r))
            .chain(world.upstream.iter().map(|r| ("upstream", r)));
        // Forks share their parent's objects, so parents come first.
        let (forks, roots): (Vec<_>, Vec<_>) = all.partition(|(_, (_, spec))| spec.fork_of.is_some());
        let ordered: Vec<_> = roots.into_iter().chain(forks).collect();
        for (kind, (name, spec)) in &ordered {
            state.add_repo(&format!("{kind}.{name}"), name, spec)?;
        }
        state.add_installations(world)?;
        for (kind, (name, spec)) in &ordered {
            state.fill_repo(&format!("{kind}.{name}"), name, spec)?;
        }
        Ok(state)
    }

    fn add_installations(&mut self, world: &World) -> Result<(), WorldError> {
        let permissions: BTreeMap<String, String> = match &world.app.permissions {
            Some(given) => given.clone(),
            None => PERMISSIONS
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
        };
        let created_at = self.now();
        let mut all: Vec<Installation> = Vec::new();
        if world.installations.is_empty() {
            let owners: BTreeSet<&str> = world.repositories.keys().filter_map(|n| n.split('/').next()).collect();
            for owner in owners {
                all.push(Installation {
                    id: self.fresh_id(),
                    account: owner.to_owned(),
                    repositories: None,
                    suspended: false,
                    deleted: false,
                    permissions: permissions.clone(),
                    created_at,
                });
            }
        }
        for (i, spec) in world.installations.iter().enumerate() {
            let lost = spec
                .repositories
                .iter()
                .flatten()
                .find(|name| self.repo(name).is_none());
            if let Some(name) = lost {
                let at = format!("installations[{i}].repositories");
                return Err(WorldError::invalid(at, format!("`{name}` is not among `repositories`")));
            }
            let lower = |names: &Vec<String>| names.iter().map(|n| n.to_ascii_lowercase()).collect();
            all.push(Installation {
                id: spec.id,
                account: spec.account.clone(),
                repositories: spec.repositories.as_ref().map(lower),
                suspended: spec.suspended,
                deleted: false,
                permissions: spec.permissions.clone().unwrap_or_else(|| permissions.clone()),
                created_at,
            });
        }
        for installation in all {
            for name in world.repositories.keys() {
                let account = name.split('/').next().unwrap_or("");
                let selected = installation.repositories.as_ref();
                let ours = account.eq_ignore_ascii_case(&installation.account)
                    && selected.is_none_or(|set| set.contains(&name.to_ascii_lowercase()));
                if ours && let Some(repo) = self.repo_mut(name) {
                    repo.installation = Some(installation.id);
                }
            }
            self.installations.insert(installation.id, installation);
        }
        Ok(())
    }

    fn add_repo(&mut self, at: &str, name: &str, spec: &RepoSpec) -> Result<(), WorldError> {
        let valid = name.split('/').count() == 2 && name.split('/').all(|p| !p.is_empty());
        if !valid {
            return Err(WorldError::invalid(at, "a repository is named owner/name"));
        }
        if self.repo(name).is_some() {
            return Err(WorldError::invalid(at, "this repository is described twice"));
        }
        let store = match &spec.fork_of {
            Some(parent) => match self.repo(parent) {
                Some(parent) => parent.store,
                None => {
                    return Err(WorldError::invalid(
                        format!("{at}.fork_of"),
                        format!("`{parent}` is not in this world"),
                    ));
                }
            },
            None => {
                self.stores.push(Store::default());
                self.stores.len() - 1
            }
        };
        if let Some(path) = &spec.clone {
            self.stores[store]
                .open_clone(path)
                .map_err(|e| WorldError::invalid(format!("{at}.clone"), e.to_string()))?;
        }
        let default_branch = spec
            .default_branch
            .clone()
            .or_else(|| self.stores[store].head_branch().filter(|_| spec.clone.is_some()))
            .unwrap_or_else(|| "main".to_owned());
        let now = self.now();
        let repo = Repo {
            id: spec.id.unwrap_or_else(|| stable_id(name)),
            name: name.to_owned(),
            private: spec.private,
            description: spec.description.clone(),
            default_branch,
            created_at: spec.created_at.unwrap_or(now),
            fork_of: spec.fork_of.clone(),
            store,
            has_git: spec.clone.is_some() || !spec.commits.is_empty() || spec.files.is_some() || spec.fork_of.is_some(),
            branches: BTreeMap::new(),
            pulls: BTreeMap::new(),
            pulls_known: !self.partial || !spec.pulls.is_empty(),
            comments: BTreeMap::new(),
            reviews: BTreeMap::new(),
            review_comments: BTreeMap::new(),
            workflows: BTreeMap::new(),
            runs: BTreeMap::new(),
            runs_known: !self.partial || spec.runs.is_some(),
            checks: BTreeMap::new(),
            checks_known: !self.partial || spec.checks.is_some() || spec.runs.is_some(),
            statuses: Vec::new(),
            collaborators: spec.collaborators.clone(),
            codeowners_errors: spec.codeowners_errors.clone(),
            earlier: spec.earlier.clone(),
            labels: BTreeSet::new(),
            installation: None,
        };
        self.repos.insert(name.to_ascii_lowercase(), repo);
        Ok(())
    }

    fn fill_repo(&mut self, at: &str, name: &str, spec: &RepoSpec) -> Result<(), WorldError> {
        let branch = self.repo(name).map(|r| r.default_branch.clone()).unwrap_or_default();
        if let Some(files) = &spec.files {
            let root = CommitSpec {
                message: Some("Root".to_owned()),
                files: files.clone(),
                ..CommitSpec::default()
            };
            let sha = self.add_commit(&format!("{at}.files"), name, &root)?;
            self.set_branch(name, &branch, &sha);
        }
        for (i, commit) in spec.commits.iter().enumerate() {
            let at = format!("{at}.commits[{i}]");
            if commit.id.is_empty() && commit.sha.is_none() {
                return Err(WorldError::invalid(
                    at,
                    "a commit needs an id, by which the rest of the world names it",
                ));
            }
            let sha = self.add_commit(&at, name, commit)?;
            if !commit.id.is_empty()
                && let Some(store) = self.store(name)
                && store.names.insert(commit.id.clone(), sha).is_some()
            {
                return Err(WorldError::invalid(
                    at,
                    format!("there is another commit named `{}`", commit.id),
                ));
            }
        }
        for (b, to) in &spec.branches {
            let at = format!("{at}.branches.{b}");
            let sha = match self.store(name).map(|s| s.revision(to)) {
                Some(Ok(Some(sha))) => sha,
                _ => self.commit_at(&at, name, to)?,
            };
            self.set_branch(name, b, &sha);
        }
        // Where inline history has no branch yet, the default branch is its last commit.
        if !spec.commits.is_empty()
            && matches!(self.branch_tip(name, &branch), Ok(None))
            && let Some(last) = spec.commits.last()
        {
            let sha = self.commit_at(at, name, last.sha.as_deref().unwrap_or(&last.id))?;
            self.set_branch(name, &branch, &sha);
        }
        for (i, pull) in spec.pulls.iter().enumerate() {
            self.add_pull(&format!("{at}.pulls[{i}]"), name, pull)?;
        }
        for (i, w) in spec.workflows.iter().enumerate() {
            if w.file.is_empty() {
                return Err(WorldError::invalid(
                    format!("{at}.workflows[{i}]"),
                    "a workflow needs its file",
                ));
            }
            self.workflow(name, &w.file, w.id, w.name.as_deref());
        }
        for (i, run) in spec.runs.iter().flatten().enumerate() {
            self.add_run(&format!("{at}.runs[{i}]"), name, run)?;
        }
        for (i, check) in spec.checks.iter().flatten().enumerate() {
            self.add_check(&format!("{at}.checks[{i}]"), name, check)?;
        }
        for (i, status) in spec.statuses.iter().enumerate() {
            self.add_status(&format!("{at}.statuses[{i}]"), name, status)?;
        }
        Ok(())
    }

    /// Points a branch at a commit.
    pub(crate) fn set_branch(&mut self, repo: &str, branch: &str, sha: &str) {
        if let Some(r) = self.repo_mut(repo) {
            r.branches.insert(branch.to_owned(), sha.to_owned());
        }
    }

    /// Makes an inline commit and returns its SHA.
    pub(crate) fn add_commit(&mut self, at: &str, repo: &str, spec: &CommitSpec) -> Result<String, WorldError> {
        let mut parents = Vec::new();
        for parent in spec.parent.iter().chain(&spec.parents) {
            let sha = self.commit_at(&format!("{at}.parent"), repo, parent)?;
            if !self.store(repo).is_some_and(|s| matches!(s.commit(&sha), Ok(Some(_)))) {
                return Err(WorldError::invalid(
                    format!("{at}.parent"),
                    format!("`{parent}` is not in this repository"),
                ));
            }
            parents.push(sha);
        }
        let login = spec.author.clone().unwrap_or_else(|| "octocat".to_owned());
        let user = self.users.get(&login.to_ascii_lowercase());
        let author = Person {
            name: user.and_then(|u| u.name.clone()).unwrap_or_else(|| login.clone()),
            email: user
                .and_then(|u| u.email.clone())
                .unwrap_or_else(|| format!("{login}@users.noreply.github.com")),
            time: spec.date.unwrap_or(self.now()).timestamp(),
        };
        let message = spec.message.clone().unwrap_or_else(|| format!("Change {}", spec.id));
        let mut files = BTreeMap::new();
        for (path, file) in &spec.files {
            files.insert(path.clone(), content(&format!("{at}.files.{path}"), file)?);
        }
        let told = match &spec.sha {
            Some(sha) if !crate::git::is_sha(sha) => {
                return Err(WorldError::invalid(
                    format!("{at}.sha"),
                    format!("`{sha}` is not a full SHA"),
                ));
            }
            Some(sha) => Some((
                sha.clone(),
                Told {
                    covers: spec.covers.clone(),
                    parents: spec.parent_count,
                },
            )),
            None => None,
        };
        let fail = || WorldError::invalid(at, "this repository is not in the world");
        let store = self.store(repo).ok_or_else(fail)?;
        let sha = store
            .make(NewCommit {
                parents,
                author,
                message,
                files,
                told,
            })
            .map_err(|e| WorldError::invalid(at, e.to_string()))?;
        if let Some(r) = self.repo_mut(repo) {
            r.has_git = true;
        }
        Ok(sha)
    }

    /// Adds a pull request with all that was written on it.
    pub(crate) fn add_pull(&mut self, at: &str, repo: &str, spec: &PullSpec) -> Result<(), WorldError> {
        if spec.number == 0 {
            return Err(WorldError::invalid(at, "a pull request needs its number"));
        }
        let (default_branch, has_git) = self
            .repo(repo)
            .map(|r| (r.default_branch.clone(), r.has_git))
            .unwrap_or_default();
        let head = spec.head.clone().unwrap_or_default().0;
        let git_here = has_git && spec.files.is_none();
        let head_text = head
            .sha
            .clone()
            .unwrap_or_else(|| format!("refs/pull/{}/head", spec.number));
        let head_sha = match self.commit_at(&format!("{at}.head"), repo, &head_text) {
            Ok(sha) => sha,
            Err(_) if !git_here => made_up_sha(&format!("{repo}#{}", spec.number)),
            Err(e) => return Err(e),
        };
        if git_here
            && !self
                .store(repo)
                .is_some_and(|s| matches!(s.commit(&head_sha), Ok(Some(_))))
        {
            return Err(WorldError::invalid(
                format!("{at}.head"),
                format!("{head_sha} is not in the repository's history"),
            ));
        }
        let base = spec.base.clone().unwrap_or_default().0;
        let base_ref = base.branch.unwrap_or(default_branch);
        let base_sha = match base.sha {
            Some(sha) => self.commit_at(&format!("{at}.base.sha"), repo, &sha)?,
            None => match self.branch_tip(repo, &base_ref) {
                Ok(Some(sha)) => sha,
                _ if git_here => {
                    let message = format!("the repository has no branch `{base_ref}`: name it under `branches`");
                    return Err(WorldError::invalid(format!("{at}.base"), message));
                }
                _ => made_up_sha(&format!("{repo}@{base_ref}")),
            },
        };
        let now = self.now();
        let created_at = spec.created_at.unwrap_or(now);
        let merged = spec.state == PullState::Merged || spec.merged_at.is_some();
        let merged_at = merged.then(|| spec.merged_at.unwrap_or(created_at));
        let full_name = self.repo(repo).map_or_else(|| repo.to_owned(), |r| r.name.clone());
        let merge_commit = match &spec.merge_commit {
            Some(text) => Some(self.commit_at(&format!("{at}.merge_commit"), repo, text)?),
            None => merged.then(|| made_up_sha(&format!("{repo}#{} merged", spec.number))),
        };
        let author = spec.author.clone().unwrap_or_else(|| "octocat".to_owned());
        let closed = merged || spec.state == PullState::Closed;
        let pull = Pull {
            number: spec.number,
            id: self.fresh_id(),
            title: spec
                .title
                .clone()
                .unwrap_or_else(|| format!("Pull request {}", spec.number)),
            body: spec.body.clone(),
            author,
            association: spec.association.clone(),
            head_sha,
            head_ref: head.branch.unwrap_or_else(|| format!("pull-{}", spec.number)),
            head_repo: head.repo.unwrap_or(full_name),
            base_ref,
            base_sha,
            draft: spec.draft,
            open: !closed,
            merged_at,
            merged_by: spec.merged_by.clone().or_else(|| merged.then(|| "octocat".to_owned())),
            merge_commit,
            mergeable: spec.mergeable.or((!closed).then_some(true)),
            labels: spec.labels.clone().unwrap_or_default(),
            created_at,
            updated_at: spec.updated_at.or(merged_at).unwrap_or(created_at),
            closed_at: spec.closed_at.or(merged_at).or(closed.then_some(created_at)),
            files: spec.files.clone(),
            commits: spec.commits.clone(),
            known: Known {
                labels: !self.partial || spec.labels.is_some(),
                comments: !self.partial || spec.comments.is_some(),
                reviews: !self.partial || spec.reviews.is_some(),
                review_comments: !self.partial || spec.review_comments.is_some(),
            },
        };
        let number = spec.number;
        let same = pull.head_repo.eq_ignore_ascii_case(repo);
        if pull.open && same && git_here && matches!(self.branch_tip(repo, &pull.head_ref), Ok(None)) {
            self.set_branch(repo, &pull.head_ref, &pull.head_sha);
        }
        if let Some(r) = self.repo_mut(repo) {
            r.labels.extend(pull.labels.iter().cloned());
            if r.pulls.insert(number, pull).is_some() {
                return Err(WorldError::invalid(
                    at,
                    format!("there is another pull request {number}"),
                ));
            }
        }
        for c in spec.comments.iter().flatten() {
            self.add_comment(at, repo, number, c)?;
        }
        for c in spec.reviews.iter().flatten() {
            self.add_review(at, repo, number, c)?;
        }
        for c in spec.review_comments.iter().flatten() {
            self.add_review_comment(at, repo, number, c)?;
        }
        Ok(())
    }
}

fn content(at: &str, file: &FileSpec) -> Result<Option<NewFile>, WorldError> {
    use base64::Engine;
    let full = match file {
        FileSpec::Deleted => return Ok(None),
        FileSpec::Text(text) => return Ok(Some(NewFile::Content(ModeBits::File, text.clone().into_bytes()))),
        FileSpec::Full(full) => full,
    };
    if let Some(target) = &full.symlink {
        return Ok(Some(NewFile::Content(ModeBits::Symlink, target.clone().into_bytes())));
    }
    if let Some(id) = full.id.as_ref().or(full.submodule.as_ref()) {
        if !crate::git::is_sha(id) {
            return Err(WorldError::invalid(
                at,
                format!("`{id}` is not an object id of 40 hexadecimal digits"),
            ));
        }
        let mode = match (full.submodule.is_some(), full.executable) {
            (true, _) => Mode::Submodule,
            (_, true) => Mode::Executable,
            _ => Mode::File,
        };
        return Ok(Some(NewFile::Id(mode, id.clone())));
    }
    let mut bytes = match (&full.text, &full.base64) {
        (Some(text), None) => text.clone().into_bytes(),
        (None, Some(data)) => base64::engine::general_purpose::STANDARD
            .decode(data.trim())
            .map_err(|e| WorldError::invalid(at, format!("not base64: {e}")))?,
        _ => {
            return Err(WorldError::invalid(
                at,
                "a file has exactly one of text, file, base64, symlink, id and submodule",
            ));
        }
    };
    if let Some(times) = full.repeat {
        bytes = bytes.repeat(times.min(100_000) as usize);
    }
    let mode = if full.executable {
        ModeBits::Executable
    } else {
        ModeBits::File
    };
    Ok(Some(NewFile::Content(mode, bytes)))
}

/// A SHA for something that has no history here.
pub(crate) fn made_up_sha(text: &str) -> String {
    use sha1::{Digest, Sha1};
    hex::encode(Sha1::digest(text))
}

/// An id that depends on a name only.
pub(crate) fn stable_id(name: &str) -> u64 {
    let sha = made_up_sha(&name.to_ascii_lowercase());
    u64::from_str_radix(&sha[..7], 16).unwrap_or(0) + 100_000
}

/// The largest id that the world names, so that ids made up later never meet it.
fn largest_id(value: &Value) -> u64 {
    match value {
        Value::Object(map) => map
            .iter()
            .map(|(k, v)| {
                if k == "id" {
                    v.as_u64().filter(|id| *id < 1 << 53).unwrap_or(0)
                } else {
                    largest_id(v)
                }
            })
            .max()
            .unwrap_or(0),
        Value::Array(items) => items.iter().map(largest_id).max().unwrap_or(0),
        _ => 0,
    }
}
