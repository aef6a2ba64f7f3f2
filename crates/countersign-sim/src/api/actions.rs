//! Workflow runs, their attempts, jobs and artifacts.

use serde_json::{Value, json};

use super::{Reply, known, number};
use crate::http::auth::Level;
use crate::http::message::{Answer, ApiError, Req};
use crate::state::State;
use crate::state::model::{Attempt, Job, Run};

pub(super) fn route(s: &mut State, req: &Req, repo: &str, rest: &[&str]) -> Reply {
    let name = s.permit(req, repo, "actions", Level::Read)?;
    match rest {
        ["runs"] => runs(s, req, &name, None),
        ["workflows"] => workflows(s, req, &name),
        ["workflows", file] => {
            let id = workflow(s, &name, file)?;
            let w = s
                .repo(&name)
                .and_then(|r| r.workflows.get(&id))
                .ok_or(ApiError::NotFound)?;
            Ok(Answer::ok(&s.workflow_json(&name, w)))
        }
        ["workflows", file, "runs"] => {
            known(s.repo(&name).is_some_and(|r| r.runs_known), || {
                format!("the workflow runs of {name}")
            })?;
            let id = workflow(s, &name, file)?;
            runs(s, req, &name, Some(id))
        }
        ["runs", id] => {
            let id = find(s, &name, id)?;
            one(s, &name, id, None)
        }
        ["runs", id, "attempts", attempt] => {
            let id = find(s, &name, id)?;
            one(s, &name, id, Some(number(attempt)?))
        }
        ["runs", id, "attempts", attempt, "jobs"] => {
            let id = find(s, &name, id)?;
            let attempt = number(attempt)?;
            jobs(s, req, &name, id, Some(attempt))
        }
        ["runs", id, "jobs"] => {
            let id = find(s, &name, id)?;
            jobs(s, req, &name, id, None)
        }
        ["jobs", id] => {
            let id = number(id)?;
            let r = s.repo(&name).ok_or(ApiError::NotFound)?;
            for run in r.runs.values() {
                if let Some(job) = run.attempts.iter().flat_map(|a| &a.jobs).find(|j| j.id == id) {
                    return Ok(Answer::ok(&s.job_json(&name, run, job)));
                }
            }
            Err(ApiError::NotFound)
        }
        ["runs", id, "artifacts"] => {
            let id = find(s, &name, id)?;
            artifacts(s, req, &name, id)
        }
        ["artifacts", id] => {
            let id = number(id)?;
            let r = s.repo(&name).ok_or(ApiError::NotFound)?;
            for run in r.runs.values() {
                if let Some(a) = run.artifacts.iter().find(|a| a.id == id) {
                    return Ok(Answer::ok(&s.artifact_json(&name, run, a, size(a))));
                }
            }
            Err(ApiError::NotFound)
        }
        ["artifacts", id, "zip"] => download(s, &name, id),
        _ => Err(ApiError::Unserved),
    }
}

/// A run that is there; in a partial world without runs, another one is unknown.
fn find(s: &State, repo: &str, text: &str) -> Result<u64, ApiError> {
    let id = number(text)?;
    let r = s.repo(repo).ok_or(ApiError::NotFound)?;
    if r.runs.contains_key(&id) {
        return Ok(id);
    }
    known(r.runs_known, || format!("the workflow run {id} of {repo}"))?;
    Err(ApiError::NotFound)
}

fn run<'a>(s: &'a State, repo: &str, id: u64) -> Result<&'a Run, ApiError> {
    s.repo(repo).and_then(|r| r.runs.get(&id)).ok_or(ApiError::NotFound)
}

fn workflow(s: &State, repo: &str, file: &str) -> Result<u64, ApiError> {
    let r = s.repo(repo).ok_or(ApiError::NotFound)?;
    let found = r
        .workflows
        .values()
        .find(|w| w.path.rsplit('/').next() == Some(file) || w.id.to_string() == file);
    found.map(|w| w.id).ok_or(ApiError::NotFound)
}

fn workflows(s: &mut State, req: &Req, name: &str) -> Reply {
    let all: Vec<Value> = s
        .repo(name)
        .map(|r| r.workflows.values().map(|w| s.workflow_json(name, w)).collect())
        .unwrap_or_default();
    let (part, link) = req.cut(&s.base, &all);
    Ok(Answer::ok(&json!({"total_count": all.len(), "workflows": part})).with("link", link))
}

fn shape(s: &mut State, name: &str, id: u64, attempt: Option<u64>) -> Result<Value, ApiError> {
    let head = run(s, name, id)?.head_sha.clone();
    let commit = s.store(name).map(|x| x.commit(&head)).transpose()?.flatten();
    let r = run(s, name, id)?;
    let a = match attempt {
        None => r.latest(),
        Some(n) => r.attempts.iter().find(|a| a.attempt == n).ok_or(ApiError::NotFound)?,
    };
    Ok(s.run_json(name, r, a, commit.as_deref()))
}

fn one(s: &mut State, name: &str, id: u64, attempt: Option<u64>) -> Reply {
    Ok(Answer::ok(&shape(s, name, id, attempt)?))
}

/// Newest first, with the filters that the API has. GitHub never shows more than a thousand filtered runs.
fn runs(s: &mut State, req: &Req, name: &str, workflow: Option<u64>) -> Reply {
    let r = s.repo(name).ok_or(ApiError::NotFound)?;
    known(r.runs_known, || format!("the workflow runs of {name}"))?;
    let mut all: Vec<&Run> = r
        .runs
        .values()
        .filter(|x| workflow.is_none_or(|w| x.workflow == w))
        .filter(|x| req.param("head_sha").is_none_or(|v| x.head_sha == v))
        .filter(|x| req.param("event").is_none_or(|v| x.event == v))
        .filter(|x| req.param("branch").is_none_or(|v| x.branch == v))
        .filter(|x| req.param("actor").is_none_or(|v| x.actor.eq_ignore_ascii_case(v)))
        .filter(|x| {
            let last = x.latest();
            req.param("status")
                .is_none_or(|v| last.status == v || last.conclusion.as_deref() == Some(v))
        })
        .filter(|x| req.param("created").is_none_or(|v| created(x, v)))
        .collect();
    all.sort_by_key(|x| std::cmp::Reverse((x.created_at, x.id)));
    all.truncate(1_000);
    let ids: Vec<u64> = all.iter().map(|x| x.id).collect();
    let (part, link) = req.cut(&s.base, &ids);
    let part = part.to_vec();
    let list: Vec<Value> = part
        .iter()
        .map(|id| shape(s, name, *id, None))
        .collect::<Result<_, _>>()?;
    Ok(Answer::ok(&json!({"total_count": ids.len(), "workflow_runs": list})).with("link", link))
}

/// `>=2026-01-01`, `<…`, `a..b` or a day, on the date of creation.
fn created(run: &Run, filter: &str) -> bool {
    let at = crate::shapes::time(run.created_at);
    // Times compare as text when they are cut to the same length.
    let cut = |bound: &str| at[..at.len().min(bound.len())].to_owned();
    if let Some((from, to)) = filter.split_once("..") {
        return (from == "*" || cut(from).as_str() >= from) && (to == "*" || cut(to).as_str() <= to);
    }
    for (sign, holds) in [
        (">=", [true, true, false]),
        ("<=", [false, true, true]),
        (">", [true, false, false]),
        ("<", [false, false, true]),
    ] {
        if let Some(bound) = filter.strip_prefix(sign) {
            return match cut(bound).as_str().cmp(bound) {
                std::cmp::Ordering::Greater => holds[0],
                std::cmp::Ordering::Equal => holds[1],
                std::cmp::Ordering::Less => holds[2],
            };
        }
    }
    cut(filter) == filter
}

fn jobs(s: &mut State, req: &Req, name: &str, id: u64, attempt: Option<u64>) -> Reply {
    let r = run(s, name, id)?;
    let attempts: Vec<&Attempt> = match attempt {
        Some(n) => vec![r.attempts.iter().find(|a| a.attempt == n).ok_or(ApiError::NotFound)?],
        None if req.param("filter") == Some("all") => r.attempts.iter().collect(),
        None => vec![r.latest()],
    };
    for a in &attempts {
        known(a.jobs_known, || format!("the jobs of run {id} in {name}"))?;
    }
    let all: Vec<&Job> = attempts.iter().flat_map(|a| &a.jobs).collect();
    let (part, link) = req.cut(&s.base, &all);
    let list: Vec<Value> = part.iter().map(|j| s.job_json(name, r, j)).collect();
    Ok(Answer::ok(&json!({"total_count": all.len(), "jobs": list})).with("link", link))
}

fn size(a: &crate::state::model::Artifact) -> u64 {
    a.size
        .unwrap_or_else(|| super::archive::zip_of(a).map_or(0, |z| z.len() as u64))
}

fn artifacts(s: &mut State, req: &Req, name: &str, id: u64) -> Reply {
    let r = run(s, name, id)?;
    known(r.artifacts_known || !s.partial, || {
        format!("the artifacts of run {id} in {name}")
    })?;
    let mut all: Vec<_> = r
        .artifacts
        .iter()
        .filter(|a| req.param("name").is_none_or(|n| a.name == n))
        .collect();
    all.sort_by_key(|a| std::cmp::Reverse(a.id));
    let (part, link) = req.cut(&s.base, &all);
    let list: Vec<Value> = part.iter().map(|a| s.artifact_json(name, r, a, size(a))).collect();
    Ok(Answer::ok(&json!({"total_count": all.len(), "artifacts": list})).with("link", link))
}

fn download(s: &mut State, name: &str, id: &str) -> Reply {
    let id = number(id)?;
    let r = s.repo(name).ok_or(ApiError::NotFound)?;
    let found = r
        .runs
        .values()
        .flat_map(|x| &x.artifacts)
        .find(|a| a.id == id)
        .ok_or(ApiError::NotFound)?;
    if found.expired {
        return Err(ApiError::Status(410, "Artifact has expired".to_owned()));
    }
    let sig = &crate::state::build::made_up_sha(&format!("artifact {id}"))[..16];
    Ok(Answer::redirect(format!(
        "{}/artifacts/{name}/{id}?sig={sig}",
        s.storage
    )))
}
