//! A world that stands still: what it says, asked without HTTP. For judging many worlds, and for worlds whose history is a
//! clone. The timeline is played to its end; faults, limits and webhooks play no part.
//!
//! Every answer is three-valued as the world is: said, said not to be, or not said ([`Fact`]). Which of the last two a gap
//! means is the world's word `partial`.

mod view;

pub use view::{
    Fact, StillArtifact, StillChange, StillCommit, StillJob, StillMode, StillPull, StillRun, StillText, TextPlace,
};

use chrono::{DateTime, Utc};

use crate::git::{GitError, Kind, Mode, Store};
use crate::handle::SimError;
use crate::state::State;
use crate::state::model::{Artifact, Content, Edited, Job, Repo, Run};
use crate::world::World;
use crate::world::repo::EarlierSpec;

/// A world without a server.
#[derive(Debug)]
pub struct Still {
    state: State,
}

impl Still {
    /// Builds the world and plays its timeline.
    ///
    /// # Errors
    /// What the world contradicts or names in vain.
    pub fn of(world: &World) -> Result<Still, SimError> {
        let mut state = State::build(world)?;
        while let Some(step) = state.timeline.pop_front() {
            state.play(&step)?;
        }
        Ok(Still { state })
    }

    /// The world's time, after its timeline.
    #[must_use]
    pub fn now(&self) -> DateTime<Utc> {
        // To the fraction of a second, unlike GitHub's own times: a recorded moment comes back as it was.
        self.state.clock.unwrap_or_else(|| self.state.now())
    }

    fn repo(&self, name: &str) -> Option<&Repo> {
        self.state.repo(name)
    }

    fn unsaid<T>(&self, what: impl FnOnce() -> String) -> Fact<T> {
        if self.state.partial {
            Fact::Unsaid(what())
        } else {
            Fact::Nothing
        }
    }

    /// A pull request.
    #[must_use]
    pub fn pull(&self, repo: &str, number: u64) -> Fact<StillPull> {
        let Some(r) = self.repo(repo) else {
            return self.unsaid(|| format!("the repository {repo}"));
        };
        let Some(p) = r.pulls.get(&number) else {
            return self.unsaid(|| format!("the pull request {repo}#{number}"));
        };
        Fact::Known(StillPull {
            title: p.title.clone(),
            body: p.body.clone().unwrap_or_default(),
            author: p.author.clone(),
            draft: p.draft,
            open: p.open,
            merged_at: p.merged_at,
            merge_commit: p.merge_commit.clone(),
            base_ref: p.base_ref.clone(),
            head_sha: p.head_sha.clone(),
            head_ref: p.head_ref.clone(),
            head_repo: p.head_repo.clone(),
            labels: if p.known.labels {
                Fact::Known(p.labels.clone())
            } else {
                self.unsaid(|| format!("the labels of {repo}#{number}"))
            },
            url: self.state.web(&format!("/{}/pull/{number}", r.name)),
        })
    }

    /// The tip of a branch.
    ///
    /// # Errors
    /// A clone that cannot be read.
    pub fn tip(&mut self, repo: &str, branch: &str) -> Result<Fact<String>, SimError> {
        Ok(match self.state.branch_tip(repo, branch)? {
            Some(sha) => Fact::Known(sha),
            None => self.unsaid(|| format!("the branch {branch} of {repo}")),
        })
    }

    /// Where two commits part.
    ///
    /// # Errors
    /// A clone that cannot be read.
    pub fn merge_base(&mut self, repo: &str, one: &str, other: &str) -> Result<Option<String>, SimError> {
        Ok(match self.state.store(repo) {
            Some(store) => store.merge_base(one, other)?,
            None => None,
        })
    }

    fn derivable(&self, repo: &str, given: bool) -> bool {
        given || !self.state.partial || self.repo(repo).is_some_and(|r| r.has_git)
    }

    /// The changed files of a pull request, between two commits of its history, or as it gives them itself.
    ///
    /// # Errors
    /// A clone that cannot be read.
    pub fn changes(&mut self, repo: &str, number: u64) -> Result<Fact<Vec<StillChange>>, SimError> {
        let pull = self.state.pull(repo, number)?;
        let (given, head) = (pull.files.is_some(), pull.head_sha.clone());
        if !self.derivable(repo, given) || (!given && self.is_told(repo, &head)) {
            return Ok(self.unsaid(|| format!("the files of {repo}#{number}")));
        }
        let files = self.state.pull_files(repo, number)?;
        let change = |f: &crate::git::FileDiff| (f.path.clone(), f.previous.clone(), f.status);
        Ok(Fact::Known(files.iter().map(change).collect()))
    }

    /// The commits of a pull request, oldest first.
    ///
    /// # Errors
    /// A clone that cannot be read.
    pub fn commits(&mut self, repo: &str, number: u64) -> Result<Fact<Vec<StillCommit>>, SimError> {
        let pull = self.state.pull(repo, number)?;
        let (given, head) = (pull.commits.is_some(), pull.head_sha.clone());
        if !self.derivable(repo, given) || (!given && self.is_told(repo, &head)) {
            return Ok(self.unsaid(|| format!("the commits of {repo}#{number}")));
        }
        let mut out = Vec::new();
        for sha in self.state.pull_commits(repo, number)? {
            let found = self.commit(repo, &sha)?;
            out.push(found.unwrap_or(StillCommit {
                sha,
                headline: String::new(),
                committed_at: None,
                parents: Vec::new(),
                parent_count: 0,
            }));
        }
        Ok(Fact::Known(out))
    }

    /// A commit.
    ///
    /// # Errors
    /// A clone that cannot be read.
    pub fn commit(&mut self, repo: &str, sha: &str) -> Result<Option<StillCommit>, SimError> {
        let Some(store) = self.state.store(repo) else {
            return Ok(None);
        };
        let told = store.told.get(sha).and_then(|told| told.parents);
        Ok(store.commit(sha)?.map(|c| StillCommit {
            sha: sha.to_owned(),
            headline: c.message.lines().next().unwrap_or_default().to_owned(),
            committed_at: DateTime::from_timestamp(c.committer.time, 0),
            parent_count: told.unwrap_or(u32::try_from(c.parents.len()).unwrap_or(u32::MAX)),
            parents: c.parents.clone(),
        }))
    }

    /// The commit that a text names, as everywhere in a world.
    ///
    /// # Errors
    /// A clone that cannot be read.
    pub fn resolve(&mut self, repo: &str, text: &str) -> Result<Option<String>, SimError> {
        Ok(self.state.resolve(repo, text)?)
    }

    /// The files of a commit that `wanted` takes, by path, with mode and blob; none where the history does not have it.
    ///
    /// # Errors
    /// A clone that cannot be read.
    pub fn tree(
        &mut self,
        repo: &str,
        sha: &str,
        wanted: &dyn Fn(&str) -> bool,
        enter: &dyn Fn(&str) -> bool,
    ) -> Result<Option<Vec<(String, StillMode, String)>>, SimError> {
        let Some(store) = self.state.store(repo) else {
            return Ok(None);
        };
        let Some(commit) = store.commit(sha)? else {
            return Ok(None);
        };
        if store.told.get(sha).is_some_and(|told| told.covers.is_none()) {
            return Ok(None);
        }
        let mut out = Vec::new();
        walk(store, &commit.tree.clone(), "", wanted, enter, &mut out)?;
        Ok(Some(out))
    }

    /// A blob's bytes.
    ///
    /// # Errors
    /// A clone that cannot be read.
    pub fn blob(&mut self, repo: &str, sha: &str) -> Result<Option<std::sync::Arc<Vec<u8>>>, SimError> {
        let found = self.state.store(repo).map(|s| s.read(sha)).transpose()?.flatten();
        Ok(found.filter(|(kind, _)| *kind == Kind::Blob).map(|(_, bytes)| bytes))
    }

    /// The blob at a path of a commit.
    ///
    /// # Errors
    /// A clone that cannot be read.
    pub fn blob_at(&mut self, repo: &str, sha: &str, path: &str) -> Result<Option<String>, SimError> {
        let Some(store) = self.state.store(repo) else {
            return Ok(None);
        };
        let Some(commit) = store.commit(sha)? else {
            return Ok(None);
        };
        let entry = store.lookup(&commit.tree.clone(), path)?;
        Ok(entry
            .filter(|e| !matches!(e.mode, Mode::Tree | Mode::Submodule))
            .map(|e| e.sha))
    }

    /// Texts of one place of a pull request, oldest first.
    #[must_use]
    pub fn texts(&self, repo: &str, number: u64, place: TextPlace) -> Fact<Vec<StillText>> {
        let Some(r) = self.repo(repo) else {
            return self.unsaid(|| format!("the repository {repo}"));
        };
        let Some(p) = r.pulls.get(&number) else {
            return self.unsaid(|| format!("the pull request {repo}#{number}"));
        };
        let (known, what) = match place {
            TextPlace::Comment => (p.known.comments, "comments"),
            TextPlace::Review => (p.known.reviews, "reviews"),
            TextPlace::ReviewComment => (p.known.review_comments, "review comments"),
        };
        let page = self.state.web(&format!("/{}/pull/{number}", r.name));
        let text = |id: u64,
                    author: &str,
                    association: &Option<String>,
                    body: &str,
                    times: (DateTime<Utc>, DateTime<Utc>),
                    edited: &Option<Edited>| {
            let anchor = match place {
                TextPlace::Comment => format!("#issuecomment-{id}"),
                TextPlace::Review => format!("#pullrequestreview-{id}"),
                TextPlace::ReviewComment => format!("#discussion_r{id}"),
            };
            StillText {
                place,
                id,
                author: author.to_owned(),
                is_bot: self.is_bot(author),
                association: association
                    .clone()
                    .unwrap_or_else(|| self.state.association(repo, author)),
                body: body.to_owned(),
                created_at: times.0,
                updated_at: times.1,
                edited: edited.as_ref().map(|e| (e.at, e.by.clone())),
                url: format!("{page}{anchor}"),
            }
        };
        let mut out: Vec<StillText> = match place {
            TextPlace::Comment => r
                .comments
                .values()
                .filter(|c| c.pull == number)
                .map(|c| {
                    text(
                        c.id,
                        &c.author,
                        &c.association,
                        &c.body,
                        (c.created_at, c.updated_at),
                        &c.edited,
                    )
                })
                .collect(),
            TextPlace::Review => r
                .reviews
                .values()
                .filter(|c| c.pull == number && c.state != "pending")
                .map(|c| {
                    text(
                        c.id,
                        &c.author,
                        &c.association,
                        &c.body,
                        (c.submitted_at, c.submitted_at),
                        &c.edited,
                    )
                })
                .collect(),
            TextPlace::ReviewComment => r
                .review_comments
                .values()
                .filter(|c| c.pull == number)
                .map(|c| {
                    text(
                        c.id,
                        &c.author,
                        &c.association,
                        &c.body,
                        (c.created_at, c.updated_at),
                        &c.edited,
                    )
                })
                .collect(),
        };
        // What the timeline wrote is there, even where the world did not say what else is.
        if !known && out.is_empty() {
            return self.unsaid(|| format!("the {what} of {repo}#{number}"));
        }
        out.sort_by_key(|t| (t.created_at, t.id));
        Fact::Known(out)
    }

    fn is_bot(&self, login: &str) -> bool {
        let kind = self
            .state
            .users
            .get(&login.to_ascii_lowercase())
            .and_then(|u| u.kind.as_deref());
        kind.map_or_else(|| login.ends_with("[bot]"), |kind| kind == "Bot")
    }

    /// The workflow runs of a repository, newest first.
    #[must_use]
    pub fn runs(&self, repo: &str) -> Fact<Vec<StillRun>> {
        let Some(r) = self.repo(repo) else {
            return self.unsaid(|| format!("the repository {repo}"));
        };
        if !r.runs_known && r.runs.is_empty() {
            return self.unsaid(|| format!("the workflow runs of {repo}"));
        }
        let mut out: Vec<StillRun> = r.runs.values().map(|run| self.run(r, run)).collect();
        out.sort_by_key(|run| std::cmp::Reverse((run.created_at, run.id)));
        Fact::Known(out)
    }

    fn run(&self, r: &Repo, run: &Run) -> StillRun {
        let latest = run.latest();
        let of = |what: &str| format!("{what} of run {}", run.id);
        StillRun {
            id: run.id,
            attempt: latest.attempt,
            workflow_path: r
                .workflows
                .get(&run.workflow)
                .map(|w| w.path.clone())
                .unwrap_or_default(),
            event: run.event.clone(),
            head_sha: run.head_sha.clone(),
            branch: run.branch.clone(),
            status: latest.status.clone(),
            conclusion: latest.conclusion.clone(),
            created_at: run.created_at,
            url: self.state.web(&format!("/{}/actions/runs/{}", r.name, run.id)),
            jobs: if latest.jobs_known {
                Fact::Known(latest.jobs.iter().map(job).collect())
            } else {
                Fact::Unsaid(of("jobs"))
            },
            artifacts: if run.artifacts_known || !self.state.partial {
                Fact::Known(run.artifacts.iter().map(artifact).collect())
            } else {
                Fact::Unsaid(of("artifacts"))
            },
        }
    }

    /// A person's permission on a repository: both words of GitHub's answer.
    #[must_use]
    pub fn permission(&self, repo: &str, login: &str) -> Fact<(String, String)> {
        let Some(r) = self.repo(repo) else {
            return self.unsaid(|| format!("the repository {repo}"));
        };
        let given = r
            .collaborators
            .iter()
            .flatten()
            .find(|(l, _)| l.eq_ignore_ascii_case(login));
        match given {
            Some((_, role)) => Fact::Known((role.permission().to_owned(), role.role_name().to_owned())),
            None if r.owner().eq_ignore_ascii_case(login) => Fact::Known(("admin".to_owned(), "admin".to_owned())),
            None if r.collaborators.is_some() || !self.state.partial => Fact::Nothing,
            None => self.unsaid(|| format!("the permission of {login} on {repo}")),
        }
    }

    /// Whether somebody belongs to a team.
    #[must_use]
    pub fn in_team(&self, org: &str, slug: &str, login: &str) -> Fact<bool> {
        let what = || format!("the members of the team {org}/{slug}");
        let team = self
            .state
            .org(org)
            .and_then(|o| o.teams.iter().find(|(name, _)| name.eq_ignore_ascii_case(slug)));
        let Some((_, team)) = team else {
            return if self.state.partial {
                Fact::Unsaid(what())
            } else {
                Fact::Refused(404)
            };
        };
        if let Some(status) = team.unreadable {
            return Fact::Refused(status);
        }
        match &team.members {
            Some(members) => Fact::Known(members.iter().any(|m| m.eq_ignore_ascii_case(login))),
            None if self.state.partial => Fact::Unsaid(what()),
            None => Fact::Known(false),
        }
    }

    /// Whether somebody belongs to an organisation.
    #[must_use]
    pub fn in_organisation(&self, org: &str, login: &str) -> Fact<bool> {
        let what = || format!("the members of {org}");
        let Some(found) = self.state.org(org) else {
            return if self.state.partial {
                Fact::Unsaid(what())
            } else {
                Fact::Known(false)
            };
        };
        if let Some(status) = found.unreadable {
            return Fact::Refused(status);
        }
        let named = |list: &[String]| list.iter().any(|m| m.eq_ignore_ascii_case(login));
        match &found.members {
            _ if named(&found.owners) => Fact::Known(true),
            Some(members) => Fact::Known(named(members)),
            None if self.state.partial => Fact::Unsaid(what()),
            None => Fact::Known(false),
        }
    }

    /// The part of a commit's tree that is here, where it is not all of it.
    #[must_use]
    pub fn covers(&mut self, repo: &str, sha: &str) -> Option<Vec<String>> {
        self.state.store(repo)?.told.get(sha)?.covers.clone()
    }

    /// An earlier version of a file that the world tells of by itself.
    #[must_use]
    pub fn earlier(&self, repo: &str, path: &str) -> Option<EarlierSpec> {
        self.repo(repo)?.earlier.get(path).cloned()
    }

    /// Whether all of a commit's history is told: then there are no earlier versions but those of [`Still::earlier`].
    #[must_use]
    pub fn is_told(&mut self, repo: &str, sha: &str) -> bool {
        self.state.store(repo).is_some_and(|store| store.told.contains_key(sha))
    }

    /// The text of a changed file that a pull request gives itself.
    #[must_use]
    pub fn text_after(&self, repo: &str, number: u64, path: &str) -> Option<String> {
        let files = self.repo(repo)?.pulls.get(&number)?.files.as_ref()?;
        files.iter().find(|file| file.path == path)?.text.clone()
    }

    /// Whether a repository's history is here.
    #[must_use]
    pub fn has_history(&self, repo: &str) -> bool {
        self.repo(repo).is_some_and(|r| r.has_git)
    }

    /// The blobs of a repository, for readers that outlive this world's other facts.
    #[must_use]
    pub fn into_store(self) -> StillStore {
        StillStore {
            still: std::sync::Mutex::new(self),
        }
    }
}

/// The objects of a world, shared.
#[derive(Debug)]
pub struct StillStore {
    still: std::sync::Mutex<Still>,
}

impl StillStore {
    /// A blob's bytes.
    ///
    /// # Errors
    /// A clone that cannot be read.
    pub fn blob(&self, repo: &str, sha: &str) -> Result<Option<std::sync::Arc<Vec<u8>>>, SimError> {
        // A poisoned lock means that another reader panicked; the objects are as good as before.
        let mut still = self.still.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        still.blob(repo, sha)
    }
}

fn walk(
    store: &mut Store,
    tree: &str,
    prefix: &str,
    wanted: &dyn Fn(&str) -> bool,
    enter: &dyn Fn(&str) -> bool,
    out: &mut Vec<(String, StillMode, String)>,
) -> Result<(), GitError> {
    let Some(entries) = store.tree(tree)? else {
        return Ok(());
    };
    for entry in entries.iter() {
        let path = format!("{prefix}{}", entry.name);
        let mode = match entry.mode {
            Mode::Tree => {
                let folder = format!("{path}/");
                if enter(&folder) {
                    walk(store, &entry.sha, &folder, wanted, enter, out)?;
                }
                continue;
            }
            Mode::File => StillMode::File,
            Mode::Executable => StillMode::Executable,
            Mode::Symlink => StillMode::Symlink,
            Mode::Submodule => StillMode::Submodule,
        };
        if wanted(&path) {
            out.push((path, mode, entry.sha.clone()));
        }
    }
    Ok(())
}

fn job(job: &Job) -> StillJob {
    StillJob {
        id: job.id,
        name: job.name.clone(),
        attempt: job.attempt,
        status: job.status.clone(),
        conclusion: job.conclusion.clone(),
    }
}

fn artifact(artifact: &Artifact) -> StillArtifact {
    let files = match &artifact.content {
        Content::Files(files) => Some(files.clone()),
        Content::Zip(_) => None,
    };
    StillArtifact {
        id: artifact.id,
        name: artifact.name.clone(),
        expired: artifact.expired,
        size: artifact
            .size
            .unwrap_or_else(|| crate::api::archive::zip_of(artifact).map_or(0, |zip| zip.len() as u64)),
        created_at: artifact.created_at,
        files,
    }
}
