//! The timeline's steps, and the changes that only it and the tests make: runs, roles, teams, pages, installations.

use serde_json::json;

use super::State;
use super::model::Attempt;
use super::runs::worst;
use crate::handle::SimError;
use crate::world::actions::{CheckSpec, RunSpec, StatusSpec};
use crate::world::repo::CommitSpec;
use crate::world::timeline::{Action, Edit, InstallationChange, MergeGroup, Rerequest, Step, UpdateRun};

type Done<T = ()> = Result<T, SimError>;

impl State {
    /// Plays one step: moves the clock, makes the change, queues webhooks. Returns the id of what was made, if it has one.
    pub(crate) fn play(&mut self, step: &Step) -> Done<Option<u64>> {
        if let Some(at) = step.at {
            self.advance_to(at);
        }
        if let Some(after) = step.after {
            self.advance(after.delta());
        }
        let action = step.action().map_err(SimError::Step)?;
        let mut made = None;
        match action {
            Action::Nothing => {}
            Action::Comment(on) => {
                let (repo, number) = self.pull_ref(&on.pull)?;
                made = Some(self.post_comment(&repo, number, &on.what)?);
            }
            Action::EditComment(e) => self.edit_comment(e.id, text(&e)?, e.by.as_deref())?,
            Action::DeleteComment(r) => self.delete_comment(r.id, r.by.as_deref())?,
            Action::Review(on) => {
                let (repo, number) = self.pull_ref(&on.pull)?;
                made = Some(self.submit_review(&repo, number, &on.what)?);
            }
            Action::EditReview(e) => self.edit_review(e.id, text(&e)?, e.by.as_deref())?,
            Action::DismissReview(r) => self.dismiss_review(r.id, r.by.as_deref())?,
            Action::ReviewComment(on) => {
                let (repo, number) = self.pull_ref(&on.pull)?;
                made = Some(self.post_review_comment(&repo, number, &on.what)?);
            }
            Action::EditReviewComment(e) => self.edit_review_comment(e.id, text(&e)?, e.by.as_deref())?,
            Action::DeleteReviewComment(r) => self.delete_review_comment(r.id, r.by.as_deref())?,
            Action::Push(p) => {
                let (repo, number) = self.pull_ref(&p.pull)?;
                let parent = self.pull(&repo, number)?.head_sha.clone();
                let head = self.head_of(&repo, p.head.as_deref(), p.commit.as_ref(), &parent)?;
                self.push(&repo, number, &head, p.by.as_deref())?;
            }
            Action::PushBranch(p) => {
                let repo = self.repo_ref(p.repo.as_deref())?;
                let default = self.repo(&repo).map(|r| r.default_branch.clone()).unwrap_or_default();
                let branch = p.branch.unwrap_or(default);
                let parent = self.branch_tip(&repo, &branch)?.unwrap_or_default();
                let head = self.head_of(&repo, p.head.as_deref(), p.commit.as_ref(), &parent)?;
                let by = p.by.unwrap_or_else(|| "octocat".to_owned());
                self.push_branch(&repo, &branch, &head, &by)?;
            }
            Action::OpenPull(o) => {
                let repo = self.repo_ref(o.repo.as_deref())?;
                let now = self.now();
                let spec = crate::world::pulls::PullSpec {
                    created_at: o.pull.created_at.or(Some(now)),
                    ..o.pull
                };
                self.add_pull("open.pull", &repo, &spec)?;
                let by = self.actor(&repo, spec.number, None)?;
                self.emit_pull(&repo, spec.number, &by, "opened", json!({}));
                made = Some(spec.number);
            }
            Action::Ready(t) => {
                let (repo, number) = self.pull_ref(&t.pull)?;
                self.set_draft(&repo, number, false, t.by.as_deref())?;
            }
            Action::Draft(t) => {
                let (repo, number) = self.pull_ref(&t.pull)?;
                self.set_draft(&repo, number, true, t.by.as_deref())?;
            }
            Action::EditPullRequest(e) => {
                let (repo, number) = self.pull_ref(&e.pull)?;
                self.edit_pull(
                    &repo,
                    number,
                    e.title.as_deref(),
                    e.body.as_deref(),
                    e.base.as_deref(),
                    e.by.as_deref(),
                )?;
            }
            Action::Close(t) => {
                let (repo, number) = self.pull_ref(&t.pull)?;
                self.set_open(&repo, number, false, t.by.as_deref())?;
            }
            Action::Reopen(t) => {
                let (repo, number) = self.pull_ref(&t.pull)?;
                self.set_open(&repo, number, true, t.by.as_deref())?;
            }
            Action::MergePull(m) => {
                let (repo, number) = self.pull_ref(&m.pull)?;
                self.merge(&repo, number, m.commit.as_deref(), m.by.as_deref())?;
            }
            Action::Label(l) => {
                let (repo, number) = self.pull_ref(&l.pull)?;
                self.set_label(&repo, number, &l.label, true, l.by.as_deref())?;
            }
            Action::Unlabel(l) => {
                let (repo, number) = self.pull_ref(&l.pull)?;
                self.set_label(&repo, number, &l.label, false, l.by.as_deref())?;
            }
            Action::Run(r) => {
                let repo = self.repo_ref(r.repo.as_deref())?;
                made = Some(self.start_run(&repo, &r.what)?);
            }
            Action::UpdateWorkflowRun(u) => self.update_run(&u)?,
            Action::Check(c) => {
                let repo = self.repo_ref(c.repo.as_deref())?;
                made = Some(self.set_check(&repo, &c.what)?);
            }
            Action::RerequestCheck(r) => self.rerequest(&r)?,
            Action::Status(s) => {
                let repo = self.repo_ref(s.repo.as_deref())?;
                made = Some(self.set_status(&repo, &s.what)?);
            }
            Action::SetCollaborator(c) => {
                let repo = self.repo_ref(c.repo.as_deref())?;
                if let Some(r) = self.repo_mut(&repo) {
                    r.collaborators.get_or_insert_default().insert(c.login, c.role);
                }
            }
            Action::SetTeam(t) => {
                let org = self.orgs.entry(t.org.to_ascii_lowercase()).or_default();
                let team = org.teams.entry(t.team).or_default();
                team.unreadable = t.unreadable;
                if t.members.is_some() {
                    team.members = t.members;
                }
            }
            Action::SetPage(p) => match p.page {
                Some(page) => {
                    self.pages.insert(p.url, page.0);
                }
                None => {
                    self.pages.remove(&p.url);
                }
            },
            Action::Expire(e) => {
                let repo = self.run_repo(e.run)?;
                for a in self
                    .repo_mut(&repo)
                    .and_then(|r| r.runs.get_mut(&e.run))
                    .into_iter()
                    .flat_map(|r| &mut r.artifacts)
                {
                    a.expired |= e.name.as_ref().is_none_or(|n| *n == a.name);
                }
            }
            Action::ExpireTokens(on) => {
                if on {
                    self.expire_tokens();
                }
            }
            Action::ChangeInstallation(c) => self.change_installation(&c)?,
            Action::QueueMergeGroup(g) => self.merge_group(&g)?,
        }
        Ok(made)
    }

    /// Makes all installation tokens useless.
    pub(crate) fn expire_tokens(&mut self) {
        self.tokens
            .retain(|_, t| matches!(t, super::model::Token::Person { .. }));
    }

    fn head_of(&mut self, repo: &str, head: Option<&str>, commit: Option<&CommitSpec>, parent: &str) -> Done<String> {
        match (head, commit) {
            (Some(head), None) => Ok(head.to_owned()),
            (None, Some(commit)) => {
                let mut commit = commit.clone();
                if commit.parent.is_none() && commit.parents.is_empty() && !parent.is_empty() {
                    commit.parent = Some(parent.to_owned());
                }
                let sha = self.add_commit("commit", repo, &commit)?;
                if !commit.id.is_empty()
                    && let Some(store) = self.store(repo)
                {
                    store.names.insert(commit.id, sha.clone());
                }
                Ok(sha)
            }
            _ => Err(SimError::Step("a push has either `head` or `commit`".to_owned())),
        }
    }

    fn run_repo(&self, id: u64) -> Done<String> {
        let repo = self
            .repos
            .values()
            .find(|r| r.runs.contains_key(&id))
            .map(|r| r.name.clone());
        repo.ok_or_else(|| SimError::no_such(format!("workflow run {id}")))
    }

    /// A run that starts, or is there already completed.
    pub(crate) fn start_run(&mut self, repo: &str, spec: &RunSpec) -> Done<u64> {
        let id = self.add_run("run", repo, spec)?;
        let completed = self
            .repo(repo)
            .and_then(|r| r.runs.get(&id))
            .is_some_and(|r| r.latest().status == "completed");
        self.emit_run(repo, id, "requested");
        if completed {
            self.emit_run(repo, id, "completed");
        }
        Ok(id)
    }

    /// A run's next state or attempt.
    pub(crate) fn update_run(&mut self, u: &UpdateRun) -> Done {
        let repo = self.run_repo(u.id)?;
        let now = self.now();
        let attempt = self
            .repo(&repo)
            .and_then(|r| r.runs.get(&u.id))
            .map_or(1, |r| r.latest().attempt);
        let attempt = u.attempt.unwrap_or(attempt);
        let jobs = self.jobs(attempt, now, u.jobs.as_deref(), u.lanes.as_ref());
        let given = u.jobs.is_some() || u.lanes.is_some();
        let artifacts = self.artifacts("update_run", now, u.artifacts.as_deref(), u.evals.as_deref())?;
        let status = u.status.clone().unwrap_or_else(|| "completed".to_owned());
        let Some(run) = self.repo_mut(&repo).and_then(|r| r.runs.get_mut(&u.id)) else {
            return Err(SimError::no_such("run"));
        };
        if attempt != run.latest().attempt {
            let jobs_known = given || run.latest().jobs_known;
            run.attempts.push(Attempt {
                attempt,
                status: String::new(),
                conclusion: None,
                started_at: now,
                updated_at: now,
                jobs: Vec::new(),
                jobs_known,
            });
        }
        if u.artifacts.is_some() || u.evals.is_some() {
            run.artifacts = artifacts;
            run.artifacts_known = true;
        }
        if let Some(last) = run.attempts.last_mut() {
            if given {
                last.jobs = jobs;
                last.jobs_known = true;
            }
            last.conclusion = match (&u.conclusion, status.as_str()) {
                (Some(c), _) => Some(c.clone()),
                (None, "completed") => Some(worst(&last.jobs)),
                _ => None,
            };
            last.updated_at = now;
            last.status.clone_from(&status);
        }
        self.emit_run(
            &repo,
            u.id,
            if status == "completed" {
                "completed"
            } else {
                "in_progress"
            },
        );
        Ok(())
    }

    fn emit_run(&mut self, repo: &str, id: u64, action: &str) {
        let head = self
            .repo(repo)
            .and_then(|r| r.runs.get(&id))
            .map(|r| r.head_sha.clone())
            .unwrap_or_default();
        let commit = self.store(repo).and_then(|s| s.commit(&head).ok().flatten());
        let Some(r) = self.repo(repo) else { return };
        let Some(run) = r.runs.get(&id) else { return };
        let json = self.run_json(repo, run, run.latest(), commit.as_deref());
        let workflow = r.workflows.get(&run.workflow).map(|w| self.workflow_json(repo, w));
        let by = run.actor.clone();
        self.emit(
            repo,
            &by,
            "workflow_run",
            Some(action),
            json!({"workflow_run": json, "workflow": workflow}),
        );
    }

    /// Another app's check run.
    pub(crate) fn set_check(&mut self, repo: &str, spec: &CheckSpec) -> Done<u64> {
        let id = self.add_check("check", repo, spec)?;
        let Some(check) = self.repo(repo).and_then(|r| r.checks.get(&id)) else {
            return Err(SimError::no_such("check run"));
        };
        let action = if check.status == "completed" {
            "completed"
        } else {
            "created"
        };
        let (json, by) = (self.check_run(repo, check), format!("{}[bot]", check.app));
        // GitHub sends these events to the app that made the check run, and to none other unless it has checks:read.
        self.emit(repo, &by, "check_run", Some(action), json!({"check_run": json}));
        Ok(id)
    }

    fn rerequest(&mut self, r: &Rerequest) -> Done {
        let (repo, number) = self.pull_ref(&r.pull)?;
        let head = self.pull(&repo, number)?.head_sha.clone();
        let app = self.app.slug.clone();
        let found = self
            .repo(&repo)
            .and_then(|x| {
                x.checks
                    .values()
                    .rev()
                    .find(|c| c.head_sha == head && c.name == r.name && c.app == app)
            })
            .map(|c| self.check_run(&repo, c));
        let json = found.ok_or_else(|| SimError::no_such(format!("check run `{}` of the App on {head}", r.name)))?;
        self.emit(
            &repo,
            &r.by,
            "check_run",
            Some("rerequested"),
            json!({"check_run": json}),
        );
        Ok(())
    }

    /// A commit status by somebody.
    pub(crate) fn set_status(&mut self, repo: &str, spec: &StatusSpec) -> Done<u64> {
        let id = self.add_status("status", repo, spec)?;
        self.emit_status(repo, id);
        Ok(id)
    }

    /// Queues `status`.
    pub(crate) fn emit_status(&mut self, repo: &str, id: u64) {
        let Some(r) = self.repo(repo) else { return };
        let Some(s) = r.statuses.iter().find(|s| s.id == id).cloned() else {
            return;
        };
        let name = r.name.clone();
        let commit = self.store(repo).and_then(|x| x.commit(&s.sha).ok().flatten());
        let commit = commit.map(|c| self.commit_json(repo, &s.sha, &c));
        let payload = json!({
            "id": s.id, "sha": s.sha, "name": name, "avatar_url": null, "target_url": s.target_url, "context": s.context,
            "description": s.description, "state": s.state, "commit": commit, "branches": [],
            "created_at": crate::shapes::time(s.at), "updated_at": crate::shapes::time(s.at),
        });
        self.emit(repo, &s.by, "status", None, payload);
    }

    fn change_installation(&mut self, c: &InstallationChange) -> Done {
        let id = c.id.or_else(|| self.installations.keys().next().copied());
        let Some(id) = id.filter(|id| self.installations.contains_key(id)) else {
            return Err(SimError::no_such("installation"));
        };
        if let Some(i) = self.installations.get_mut(&id) {
            match c.action.as_str() {
                "suspend" => i.suspended = true,
                "unsuspend" => i.suspended = false,
                "deleted" => i.deleted = true,
                "created" => i.deleted = false,
                "new_permissions_accepted" => {}
                other => return Err(SimError::Step(format!("unknown installation action `{other}`"))),
            }
        }
        if matches!(c.action.as_str(), "suspend" | "deleted") {
            self.tokens.retain(
                |_, t| !matches!(t, super::model::Token::Installation { installation, .. } if *installation == id),
            );
        }
        let repositories: Vec<_> = self
            .repos
            .values()
            .filter(|r| r.installation == Some(id))
            .map(|r| json!({"id": r.id, "node_id": crate::shapes::node("R", r.id), "name": r.short(), "full_name": r.name, "private": r.private}))
            .collect();
        let account = self
            .installations
            .get(&id)
            .map(|i| i.account.clone())
            .unwrap_or_default();
        let payload = json!({
            "action": c.action, "installation": self.installation_json(id), "repositories": repositories, "sender": self.user(&account),
        });
        self.queue_hook("installation", Some(&c.action), Some(id), None, &payload);
        Ok(())
    }

    fn merge_group(&mut self, g: &MergeGroup) -> Done {
        let Some(first) = g.pulls.first() else {
            return Err(SimError::Step("a merge group has pulls".to_owned()));
        };
        let (repo, number) = self.pull_ref(first)?;
        let p = self.pull(&repo, number)?.clone();
        let head = match &g.head {
            Some(text) => self.commit_at("merge_group.head", &repo, text)?,
            None => p.head_sha.clone(),
        };
        let commit = self.store(&repo).and_then(|s| s.commit(&head).ok().flatten());
        let numbers: Vec<String> = g.pulls.iter().map(|p| format!("pr-{}", p.number)).collect();
        let payload = json!({"merge_group": {
            "head_sha": head, "head_ref": format!("refs/heads/gh-readonly-queue/{}/{}-{}", p.base_ref, numbers.join("-"), p.base_sha),
            "base_sha": p.base_sha, "base_ref": format!("refs/heads/{}", p.base_ref),
            "head_commit": commit.map(|c| json!({
                "id": head, "tree_id": c.tree, "message": c.message, "timestamp": crate::shapes::time(self.now()),
                "author": {"name": c.author.name, "email": c.author.email}, "committer": {"name": c.committer.name, "email": c.committer.email},
            })),
        }});
        self.emit(&repo, &p.author, "merge_group", Some("checks_requested"), payload);
        Ok(())
    }
}

fn text(e: &Edit) -> Done<&str> {
    e.body
        .as_deref()
        .ok_or_else(|| SimError::Step("an edit has a `body`".to_owned()))
}
