//! Workflow runs: from the world's short forms to jobs, attempts and artifacts.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::State;
use super::model::{Artifact, Attempt, Check, Content, Job, Run, Status, Time, Workflow};
use crate::world::actions::{ArtifactSpec, CheckSpec, EvalSpec, JobSpec, LaneJobs, LaneSpec, RunSpec, StatusSpec};
use crate::world::load::WorldError;
use crate::world::spell::OneOrMany;

/// The first part of a workflow's path.
const WORKFLOWS: &str = ".github/workflows/";

impl State {
    /// The workflow of a file, made where it is not there yet.
    pub(crate) fn workflow(&mut self, repo: &str, file: &str, id: Option<u64>, name: Option<&str>) -> u64 {
        let path = if file.contains('/') {
            file.to_owned()
        } else {
            format!("{WORKFLOWS}{file}")
        };
        if let Some(w) = self
            .repo(repo)
            .and_then(|r| r.workflows.values().find(|w| w.path == path))
        {
            return w.id;
        }
        let id = id.unwrap_or_else(|| self.fresh_id());
        let name = name.map_or_else(|| path.rsplit('/').next().unwrap_or(&path).to_owned(), str::to_owned);
        if let Some(r) = self.repo_mut(repo) {
            r.workflows.insert(id, Workflow { id, path, name });
        }
        id
    }

    /// Adds a run.
    pub(crate) fn add_run(&mut self, at: &str, repo: &str, spec: &RunSpec) -> Result<u64, WorldError> {
        let head = self.commit_at(&format!("{at}.head"), repo, &spec.head)?;
        let workflow = self.workflow(repo, spec.workflow.as_deref().unwrap_or("ci.yml"), None, None);
        let now = self.now();
        let created_at = spec.created_at.unwrap_or(now);
        let updated_at = spec.updated_at.unwrap_or(created_at);
        let id = spec.id.unwrap_or_else(|| self.fresh_id());
        let suite = self.fresh_id();
        let (pulls, branch, head_repo, author) = self.heads(repo, &head);
        let number = self.repo(repo).map_or(0, |r| r.runs.len() as u64) + 1;
        let first_line = self.first_line(repo, &head);
        let name = spec
            .name
            .clone()
            .or_else(|| Some(self.repo(repo)?.workflows.get(&workflow)?.name.clone()));
        let mut attempts = Vec::new();
        for (i, a) in spec.attempts.iter().enumerate() {
            let at = format!("{at}.attempts[{i}]");
            if a.attempt == 0 {
                return Err(WorldError::invalid(
                    at,
                    "an earlier attempt needs its number: attempt: 1",
                ));
            }
            let started = a.created_at.unwrap_or(created_at);
            let jobs = self.jobs(a.attempt, started, a.jobs.as_deref(), a.lanes.as_ref());
            let conclusion = a.conclusion.clone().or_else(|| Some(worst(&jobs)));
            attempts.push(Attempt {
                attempt: a.attempt,
                status: "completed".to_owned(),
                conclusion,
                started_at: started,
                updated_at: started,
                jobs_known: !self.partial || a.jobs.is_some() || a.lanes.is_some(),
                jobs,
            });
        }
        let attempt = spec
            .attempt
            .unwrap_or_else(|| attempts.iter().map(|a| a.attempt).max().unwrap_or(0) + 1);
        let jobs = self.jobs(attempt, created_at, spec.jobs.as_deref(), spec.lanes.as_ref());
        let status = spec.status.clone().unwrap_or_else(|| "completed".to_owned());
        let conclusion = match (&spec.conclusion, status.as_str()) {
            (Some(c), _) => Some(c.clone()),
            (None, "completed") => Some(worst(&jobs)),
            _ => None,
        };
        attempts.push(Attempt {
            attempt,
            status,
            conclusion,
            started_at: created_at,
            updated_at,
            jobs_known: !self.partial || spec.jobs.is_some() || spec.lanes.is_some(),
            jobs,
        });
        let artifacts = self.artifacts(at, updated_at, spec.artifacts.as_deref(), spec.evals.as_deref())?;
        let run = Run {
            id,
            suite,
            number,
            workflow,
            name: name.unwrap_or_default(),
            title: spec.title.clone().unwrap_or(first_line),
            head_sha: head,
            head_repo,
            branch: spec.branch.clone().unwrap_or(branch),
            event: spec.event.clone().unwrap_or_else(|| "pull_request".to_owned()),
            actor: spec.actor.clone().unwrap_or(author),
            pulls: spec.pulls.clone().unwrap_or(pulls),
            created_at,
            attempts,
            artifacts,
            artifacts_known: spec.artifacts.is_some() || spec.evals.is_some(),
        };
        if let Some(r) = self.repo_mut(repo) {
            if r.runs.contains_key(&id) {
                return Err(WorldError::invalid(at, format!("there is another run {id}")));
            }
            r.runs.insert(id, run);
        }
        Ok(id)
    }

    /// The pull requests, branch, repository and author that a head belongs to. GitHub lists none for a fork's.
    fn heads(&self, repo: &str, head: &str) -> (Vec<u64>, String, String, String) {
        let Some(r) = self.repo(repo) else {
            return (Vec::new(), String::new(), repo.to_owned(), String::new());
        };
        let with: Vec<_> = r.pulls.values().filter(|p| p.head_sha == head).collect();
        let numbers = with
            .iter()
            .filter(|p| p.head_repo == r.name)
            .map(|p| p.number)
            .collect();
        match with.first() {
            Some(p) => (numbers, p.head_ref.clone(), p.head_repo.clone(), p.author.clone()),
            None => (numbers, r.default_branch.clone(), r.name.clone(), r.owner().to_owned()),
        }
    }

    fn first_line(&mut self, repo: &str, sha: &str) -> String {
        let commit = self.store(repo).and_then(|s| s.commit(sha).ok().flatten());
        commit
            .and_then(|c| c.message.lines().next().map(str::to_owned))
            .unwrap_or_else(|| "Change".to_owned())
    }

    /// Jobs from both forms, the full ones first.
    pub(crate) fn jobs(
        &mut self,
        attempt: u64,
        at: Time,
        full: Option<&[JobSpec]>,
        lanes: Option<&BTreeMap<String, LaneSpec>>,
    ) -> Vec<Job> {
        let mut out = Vec::new();
        for j in full.into_iter().flatten() {
            let status = j.status.clone().unwrap_or_else(|| "completed".to_owned());
            let done = status == "completed";
            out.push(Job {
                id: j.id.unwrap_or_else(|| self.fresh_id()),
                name: j.name.clone(),
                conclusion: j.conclusion.clone().or_else(|| done.then(|| "success".to_owned())),
                attempt: j.attempt.unwrap_or(attempt),
                started_at: j.started_at.unwrap_or(at),
                completed_at: j.completed_at.or(done.then_some(at)),
                labels: j.labels.clone(),
                status,
            });
        }
        for (lane, spec) in lanes.into_iter().flatten() {
            let total: u64 = spec.0.values().map(LaneJobs::len).sum();
            let mut made = 0;
            for (conclusion, jobs) in &spec.0 {
                let running = matches!(conclusion.as_str(), "in_progress" | "queued");
                let whole = conclusion == "skipped" && total == 1 && matches!(jobs, LaneJobs::Count(1));
                let names = match jobs {
                    _ if whole => vec![self.short_forms.skipped_lane.replace("{lane}", lane)],
                    LaneJobs::Count(n) => (1..=*n)
                        .map(|i| self.job_name(lane, &format!("c{}", made + i)))
                        .collect(),
                    LaneJobs::Named(names) => names.iter().map(|n| self.job_name(lane, n)).collect(),
                };
                made += names.len() as u64;
                for name in names {
                    out.push(Job {
                        id: self.fresh_id(),
                        name,
                        status: if running {
                            conclusion.clone()
                        } else {
                            "completed".to_owned()
                        },
                        conclusion: (!running).then(|| conclusion.clone()),
                        attempt,
                        started_at: at,
                        completed_at: (!running).then_some(at),
                        labels: Vec::new(),
                    });
                }
            }
        }
        out
    }

    fn job_name(&self, lane: &str, job: &str) -> String {
        self.short_forms.job.replace("{lane}", lane).replace("{job}", job)
    }

    /// Artifacts from both forms.
    pub(crate) fn artifacts(
        &mut self,
        at: &str,
        time: Time,
        full: Option<&[ArtifactSpec]>,
        evals: Option<&[EvalSpec]>,
    ) -> Result<Vec<Artifact>, WorldError> {
        let mut out = Vec::new();
        for (i, a) in full.into_iter().flatten().enumerate() {
            let content = match &a.zip {
                Some(path) => Content::Zip(path.clone()),
                None => {
                    let mut files = BTreeMap::new();
                    for (path, value) in &a.files {
                        let bytes = match value {
                            Value::String(text) => text.clone().into_bytes(),
                            other => serde_json::to_vec_pretty(other).map_err(|e| {
                                WorldError::invalid(format!("{at}.artifacts[{i}].files.{path}"), e.to_string())
                            })?,
                        };
                        files.insert(path.clone(), bytes);
                    }
                    Content::Files(files)
                }
            };
            let created_at = a.created_at.unwrap_or(time);
            out.push(Artifact {
                id: a.id.unwrap_or_else(|| self.fresh_id()),
                name: a.name.clone(),
                size: a.size,
                expired: a.expired,
                created_at,
                expires_at: a.expires_at.unwrap_or(created_at + chrono::TimeDelta::days(90)),
                content,
            });
        }
        if let Some(evals) = evals {
            let rows = self.eval_rows(at, evals)?;
            let bytes = serde_json::to_vec(&rows).unwrap_or_default();
            let id = self.fresh_id();
            out.push(Artifact {
                id,
                name: self.short_forms.eval_artifact.clone(),
                size: None,
                expired: false,
                created_at: time,
                expires_at: time + chrono::TimeDelta::days(90),
                content: Content::Files(BTreeMap::from([(self.short_forms.eval_file.clone(), bytes)])),
            });
        }
        Ok(out)
    }

    fn eval_rows(&self, at: &str, evals: &[EvalSpec]) -> Result<Vec<Value>, WorldError> {
        let mut rows = Vec::new();
        for (i, e) in evals.iter().enumerate() {
            let lists = [len(e.score.as_ref()), len(e.flexible.as_ref()), len(e.conc.as_ref())];
            let wanted = lists
                .iter()
                .flatten()
                .copied()
                .max()
                .unwrap_or(e.count.unwrap_or(1) as usize);
            if lists.iter().flatten().any(|n| *n != wanted) || e.count.is_some_and(|c| c as usize != wanted) {
                return Err(WorldError::invalid(
                    format!("{at}.evals[{i}]"),
                    "lists of score, flexible and conc, and count, must be of one length",
                ));
            }
            for row in 0..wanted.min(10_000) {
                let score = pick(e.score.as_ref(), row);
                let flexible = pick(e.flexible.as_ref(), row).or(score);
                let mut out: Map<String, Value> = self.short_forms.eval_row.clone().into_iter().collect();
                let fields = json!({
                    "model_prefix": e.model_prefix, "task": e.task, "conc": pick(e.conc.as_ref(), row), "n_eff": e.n_eff,
                    "em_strict": score, "em_flexible": flexible, "score": score, "score_name": score.map(|_| "em_strict"),
                });
                if let Value::Object(fields) = fields {
                    out.extend(fields);
                }
                out.extend(e.row.clone());
                rows.push(Value::Object(out));
            }
        }
        Ok(rows)
    }

    /// Adds a check run of an app.
    pub(crate) fn add_check(&mut self, at: &str, repo: &str, spec: &CheckSpec) -> Result<u64, WorldError> {
        let head_sha = self.commit_at(&format!("{at}.head"), repo, &spec.head)?;
        let status = spec.status.clone().unwrap_or_else(|| "completed".to_owned());
        let done = status == "completed";
        let now = self.now();
        let id = spec.id.unwrap_or_else(|| self.fresh_id());
        let app = spec.app.clone().unwrap_or_else(|| "github-actions".to_owned());
        let check = Check {
            id,
            suite: super::build::stable_id(&format!("{app}:{head_sha}")),
            name: spec.name.clone(),
            head_sha,
            app,
            conclusion: spec.conclusion.clone().or_else(|| done.then(|| "success".to_owned())),
            status,
            external_id: spec.external_id.clone(),
            details_url: spec.details_url.clone(),
            title: spec.title.clone(),
            summary: spec.summary.clone(),
            text: None,
            annotations: Vec::new(),
            actions: Vec::new(),
            started_at: Some(spec.started_at.unwrap_or(now)),
            completed_at: spec.completed_at.or(done.then_some(now)),
            writes: 1,
        };
        if let Some(r) = self.repo_mut(repo) {
            r.checks.insert(id, check);
        }
        Ok(id)
    }

    /// Adds a commit status.
    pub(crate) fn add_status(&mut self, at: &str, repo: &str, spec: &StatusSpec) -> Result<u64, WorldError> {
        let sha = self.commit_at(&format!("{at}.sha"), repo, &spec.sha)?;
        let id = self.fresh_id();
        let status = Status {
            id,
            sha,
            context: spec.context.clone(),
            state: spec.state.clone(),
            description: spec.description.clone(),
            target_url: spec.target_url.clone(),
            by: spec.by.clone().unwrap_or_else(|| "github-actions[bot]".to_owned()),
            at: spec.at.unwrap_or(self.now()),
        };
        if let Some(r) = self.repo_mut(repo) {
            r.statuses.push(status);
        }
        Ok(id)
    }

    /// A commit that the world names; a full SHA is taken at its word.
    pub(crate) fn commit_at(&mut self, at: &str, repo: &str, text: &str) -> Result<String, WorldError> {
        if text.is_empty() {
            return Err(WorldError::invalid(at, "a commit is needed here"));
        }
        match self.resolve(repo, text) {
            Ok(Some(sha)) => Ok(sha),
            Ok(None) => {
                // Runs and statuses may lie on commits that were pushed away and that a clone no longer has.
                if crate::git::is_sha(text) {
                    return Ok(text.to_owned());
                }
                Err(WorldError::invalid(
                    at,
                    format!(
                        "`{text}` is no commit of {repo}: give an inline commit's id, a branch, or a full SHA of the clone"
                    ),
                ))
            }
            Err(e) => Err(WorldError::invalid(at, e.to_string())),
        }
    }
}

impl LaneJobs {
    fn len(&self) -> u64 {
        match self {
            LaneJobs::Count(n) => *n,
            LaneJobs::Named(names) => names.len() as u64,
        }
    }
}

/// The conclusion of a run whose jobs ended so: what is worst, and success where nothing failed.
pub(crate) fn worst(jobs: &[Job]) -> String {
    for bad in ["failure", "timed_out", "cancelled", "action_required"] {
        if jobs.iter().any(|j| j.conclusion.as_deref() == Some(bad)) {
            return bad.to_owned();
        }
    }
    "success".to_owned()
}

fn len<T>(values: Option<&OneOrMany<T>>) -> Option<usize> {
    match values {
        Some(OneOrMany::Many(v)) => Some(v.len()),
        _ => None,
    }
}

fn pick<T: Copy>(values: Option<&OneOrMany<T>>, row: usize) -> Option<T> {
    match values {
        Some(OneOrMany::One(v)) => Some(*v),
        Some(OneOrMany::Many(v)) => v.get(row).copied(),
        None => None,
    }
}
