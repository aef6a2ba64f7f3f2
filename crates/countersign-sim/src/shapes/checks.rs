//! Check runs and commit statuses.

use serde_json::{Value, json};

use super::{node, time, time_or_null};
use crate::state::State;
use crate::state::model::{Check, Job, Run, Status};

impl State {
    /// `check-run` of an app.
    pub(crate) fn check_run(&self, repo: &str, c: &Check) -> Value {
        let name = self.repo(repo).map_or(repo, |r| r.name.as_str());
        let url = self.api(&format!("/repos/{name}/check-runs/{}", c.id));
        let page = self.web(&format!("/{name}/runs/{}", c.id));
        json!({
            "id": c.id, "node_id": node("CR", c.id), "head_sha": c.head_sha, "external_id": c.external_id.clone().unwrap_or_default(),
            "url": url, "html_url": page, "details_url": c.details_url.clone().unwrap_or(page.clone()), "status": c.status,
            "conclusion": c.conclusion, "started_at": time_or_null(c.started_at), "completed_at": time_or_null(c.completed_at),
            "output": {
                "title": c.title, "summary": c.summary, "text": c.text, "annotations_count": c.annotations.len(),
                "annotations_url": format!("{url}/annotations"),
            },
            "name": c.name, "check_suite": {"id": c.suite}, "app": self.app_json(&c.app),
            "pull_requests": self.pulls_with_head(repo, &c.head_sha),
        })
    }

    /// `check-run` of a job.
    pub(crate) fn job_check_run(&self, repo: &str, run: &Run, j: &Job) -> Value {
        let name = self.repo(repo).map_or(repo, |r| r.name.as_str());
        let url = self.api(&format!("/repos/{name}/check-runs/{}", j.id));
        let page = self.web(&format!("/{name}/actions/runs/{}/job/{}", run.id, j.id));
        json!({
            "id": j.id, "node_id": node("CR", j.id), "head_sha": run.head_sha, "external_id": format!("job-{}", j.id), "url": url,
            "html_url": page, "details_url": page, "status": j.status, "conclusion": j.conclusion,
            "started_at": time(j.started_at), "completed_at": time_or_null(j.completed_at),
            "output": {
                "title": null, "summary": null, "text": null, "annotations_count": 0, "annotations_url": format!("{url}/annotations"),
            },
            "name": j.name, "check_suite": {"id": run.suite}, "app": self.app_json("github-actions"),
            "pull_requests": self.pulls_with_head(repo, &run.head_sha),
        })
    }

    /// The pull requests with a head, as checks list them. A fork's are not listed.
    pub(crate) fn pulls_with_head(&self, repo: &str, sha: &str) -> Vec<Value> {
        let Some(r) = self.repo(repo) else { return Vec::new() };
        let with = r
            .pulls
            .values()
            .filter(|p| p.open && p.head_sha == sha && p.head_repo == r.name);
        with.map(|p| self.pull_minimal(repo, p)).collect()
    }

    /// `status`.
    pub(crate) fn status(&self, repo: &str, s: &Status) -> Value {
        let name = self.repo(repo).map_or(repo, |r| r.name.as_str());
        let creator = self.user(&s.by);
        json!({
            "url": self.api(&format!("/repos/{name}/statuses/{}", s.sha)), "avatar_url": creator["avatar_url"], "id": s.id,
            "node_id": node("SC", s.id), "state": s.state, "description": s.description, "target_url": s.target_url,
            "context": s.context, "created_at": time(s.at), "updated_at": time(s.at), "creator": creator,
        })
    }

    /// `combined-commit-status`: the newest status of each context.
    pub(crate) fn combined_status(&self, repo: &str, sha: &str, statuses: &[&Status]) -> Value {
        let name = self.repo(repo).map_or(repo, |r| r.name.as_str());
        let list: Vec<Value> = statuses
            .iter()
            .map(|s| {
                let mut out = self.status(repo, s);
                if let Some(map) = out.as_object_mut() {
                    map.remove("creator");
                    map.insert("required".to_owned(), Value::Null);
                }
                out
            })
            .collect();
        let any = |states: &[&str]| statuses.iter().any(|s| states.contains(&s.state.as_str()));
        let state = if any(&["failure", "error"]) {
            "failure"
        } else if statuses.is_empty() || any(&["pending"]) {
            "pending"
        } else {
            "success"
        };
        let url = self.api(&format!("/repos/{name}/commits/{sha}"));
        json!({
            "state": state, "statuses": list, "sha": sha, "total_count": statuses.len(), "repository": self.repo_minimal(name),
            "commit_url": url, "url": format!("{url}/status"),
        })
    }
}
