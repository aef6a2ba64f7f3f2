//! Workflow runs, jobs, artifacts.

use serde_json::{Value, json};

use super::{node, time, time_or_null};
use crate::git::Commit;
use crate::state::State;
use crate::state::model::{Artifact, Attempt, Job, Run, Workflow};

impl State {
    /// `workflow-run`, for one of its attempts.
    pub(crate) fn run_json(&self, repo: &str, run: &Run, attempt: &Attempt, head: Option<&Commit>) -> Value {
        let r = self.repo(repo);
        let name = r.map_or(repo, |r| r.name.as_str());
        let url = self.api(&format!("/repos/{name}/actions/runs/{}", run.id));
        let workflow = r.and_then(|r| r.workflows.get(&run.workflow));
        let pulls: Vec<Value> = run
            .pulls
            .iter()
            .filter_map(|n| r?.pulls.get(n))
            .filter(|p| p.open)
            .map(|p| self.pull_minimal(repo, p))
            .collect();
        let commit = match head {
            Some(c) => json!({
                "id": run.head_sha, "tree_id": c.tree, "message": c.message,
                "timestamp": time(chrono::DateTime::from_timestamp(c.committer.time, 0).unwrap_or_default()),
                "author": {"name": c.author.name, "email": c.author.email},
                "committer": {"name": c.committer.name, "email": c.committer.email},
            }),
            None => json!({
                "id": run.head_sha, "tree_id": run.head_sha, "message": run.title, "timestamp": time(run.created_at),
                "author": {"name": run.actor, "email": format!("{}@users.noreply.github.com", run.actor)},
                "committer": {"name": "GitHub", "email": "noreply@github.com"},
            }),
        };
        let previous = (attempt.attempt > 1).then(|| format!("{url}/attempts/{}", attempt.attempt - 1));
        json!({
            "id": run.id, "name": run.name, "node_id": node("WFR", run.id), "check_suite_id": run.suite,
            "check_suite_node_id": node("CS", run.suite), "head_branch": run.branch, "head_sha": run.head_sha,
            "path": workflow.map(|w| w.path.clone()).unwrap_or_default(), "run_number": run.number, "run_attempt": attempt.attempt,
            "referenced_workflows": [], "event": run.event, "status": attempt.status, "conclusion": attempt.conclusion,
            "workflow_id": run.workflow, "url": url, "html_url": self.web(&format!("/{name}/actions/runs/{}", run.id)),
            "pull_requests": pulls, "created_at": time(run.created_at), "updated_at": time(attempt.updated_at),
            "actor": self.user(&run.actor), "triggering_actor": self.user(&run.actor), "run_started_at": time(attempt.started_at),
            "jobs_url": format!("{url}/jobs"), "logs_url": format!("{url}/logs"),
            "check_suite_url": self.api(&format!("/repos/{name}/check-suites/{}", run.suite)),
            "artifacts_url": format!("{url}/artifacts"), "cancel_url": format!("{url}/cancel"), "rerun_url": format!("{url}/rerun"),
            "previous_attempt_url": previous, "workflow_url": self.api(&format!("/repos/{name}/actions/workflows/{}", run.workflow)),
            "head_commit": commit, "repository": self.repo_minimal(name), "head_repository": self.repo_minimal(&run.head_repo),
            "display_title": run.title,
        })
    }

    /// `workflow`.
    pub(crate) fn workflow_json(&self, repo: &str, w: &Workflow) -> Value {
        let name = self.repo(repo).map_or(repo, |r| r.name.as_str());
        let created = self.repo(repo).map_or_else(|| self.now(), |r| r.created_at);
        let page = self.web(&format!("/{name}/blob/main/{}", w.path));
        json!({
            "id": w.id, "node_id": node("W", w.id), "name": w.name, "path": w.path, "state": "active", "created_at": time(created),
            "updated_at": time(created), "url": self.api(&format!("/repos/{name}/actions/workflows/{}", w.id)), "html_url": page,
            "badge_url": self.web(&format!("/{name}/workflows/{}/badge.svg", w.id)),
        })
    }

    /// `job`.
    pub(crate) fn job_json(&self, repo: &str, run: &Run, j: &Job) -> Value {
        let name = self.repo(repo).map_or(repo, |r| r.name.as_str());
        let run_url = self.api(&format!("/repos/{name}/actions/runs/{}", run.id));
        json!({
            "id": j.id, "run_id": run.id, "workflow_name": run.name, "head_branch": run.branch, "run_url": run_url,
            "run_attempt": j.attempt, "node_id": node("CR", j.id), "head_sha": run.head_sha,
            "url": self.api(&format!("/repos/{name}/actions/jobs/{}", j.id)),
            "html_url": self.web(&format!("/{name}/actions/runs/{}/job/{}", run.id, j.id)), "status": j.status,
            "conclusion": j.conclusion, "created_at": time(j.started_at), "started_at": time(j.started_at),
            "completed_at": time_or_null(j.completed_at), "name": j.name, "steps": [],
            "check_run_url": self.api(&format!("/repos/{name}/check-runs/{}", j.id)), "labels": j.labels, "runner_id": 1,
            "runner_name": "runner-1", "runner_group_id": 1, "runner_group_name": "Default",
        })
    }

    /// `artifact`.
    pub(crate) fn artifact_json(&self, repo: &str, run: &Run, a: &Artifact, size: u64) -> Value {
        let r = self.repo(repo);
        let name = r.map_or(repo, |r| r.name.as_str());
        let url = self.api(&format!("/repos/{name}/actions/artifacts/{}", a.id));
        let id = r.map_or(0, |r| r.id);
        json!({
            "id": a.id, "node_id": node("MDg6QXJ0aWZhY3Q", a.id), "name": a.name, "size_in_bytes": size, "url": url,
            "archive_download_url": format!("{url}/zip"), "expired": a.expired, "created_at": time(a.created_at),
            "updated_at": time(a.created_at), "expires_at": time(a.expires_at), "digest": null,
            "workflow_run": {
                "id": run.id, "repository_id": id, "head_repository_id": id, "head_branch": run.branch, "head_sha": run.head_sha,
            },
        })
    }
}
