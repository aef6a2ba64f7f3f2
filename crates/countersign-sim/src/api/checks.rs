//! Check runs and commit statuses: read, and written by the App.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::commits::find;
use super::{Reply, known, number};
use crate::http::auth::{Caller, Level};
use crate::http::message::{Answer, ApiError, Req};
use crate::state::State;
use crate::state::model::{Check, Status, Time};

/// GitHub keeps so many statuses of one commit and context.
const STATUSES: usize = 1_000;

pub(super) fn of_commit(s: &mut State, req: &Req, repo: &str, at: &str) -> Reply {
    let name = s.permit(req, repo, "checks", Level::Read)?;
    let sha = find(s, &name, at)?;
    known(s.repo(&name).is_some_and(|r| r.checks_known), || {
        format!("the check runs of {name}")
    })?;
    let r = s.repo(&name).ok_or(ApiError::NotFound)?;
    // (suite, name, id, shape), jobs of all attempts and check runs of apps.
    let mut all: Vec<(u64, String, u64, Value)> = Vec::new();
    for run in r.runs.values().filter(|x| x.head_sha == sha) {
        let latest = run.latest();
        known(latest.jobs_known, || format!("the jobs of run {} in {name}", run.id))?;
        for job in run.attempts.iter().flat_map(|a| &a.jobs) {
            all.push((run.suite, job.name.clone(), job.id, s.job_check_run(&name, run, job)));
        }
    }
    for c in r.checks.values().filter(|c| c.head_sha == sha) {
        all.push((c.suite, c.name.clone(), c.id, s.check_run(&name, c)));
    }
    // One of the same name hides another, unless all are asked for.
    if req.param("filter") != Some("all") {
        let mut newest: BTreeMap<(u64, String), u64> = BTreeMap::new();
        for (suite, check, id, _) in &all {
            let slot = newest.entry((*suite, check.clone())).or_insert(*id);
            *slot = (*slot).max(*id);
        }
        all.retain(|(suite, check, id, _)| newest.get(&(*suite, check.clone())) == Some(id));
    }
    if let Some(wanted) = req.param("check_name") {
        all.retain(|(_, check, _, _)| check == wanted);
    }
    if let Some(wanted) = req.param("status") {
        all.retain(|(_, _, _, v)| v["status"] == wanted);
    }
    if let Some(app) = req.param("app_id") {
        let app: Option<u64> = app.parse().ok();
        all.retain(|(_, _, _, v)| v["app"]["id"].as_u64() == app);
    }
    // Newest first.
    all.sort_by_key(|x| std::cmp::Reverse(x.2));
    let list: Vec<Value> = all.into_iter().map(|x| x.3).collect();
    let (part, link) = req.cut(&s.base, &list);
    Ok(Answer::ok(&json!({"total_count": list.len(), "check_runs": part})).with("link", link))
}

pub(super) fn get(s: &mut State, req: &Req, repo: &str, id: &str) -> Reply {
    let name = s.permit(req, repo, "checks", Level::Read)?;
    let id = number(id)?;
    let r = s.repo(&name).ok_or(ApiError::NotFound)?;
    if let Some(c) = r.checks.get(&id) {
        return Ok(Answer::ok(&s.check_run(&name, c)));
    }
    for run in r.runs.values() {
        if let Some(job) = run.attempts.iter().flat_map(|a| &a.jobs).find(|j| j.id == id) {
            return Ok(Answer::ok(&s.job_check_run(&name, run, job)));
        }
    }
    Err(ApiError::NotFound)
}

/// The slug of the app that writes check runs: ours, since only an installation may.
fn app_slug(s: &State, req: &Req) -> Result<String, ApiError> {
    match req.caller {
        Caller::Installation { .. } => Ok(s.app.slug.clone()),
        _ => Err(ApiError::Status(
            403,
            "You must authenticate via a GitHub App.".to_owned(),
        )),
    }
}

pub(super) fn create(s: &mut State, req: &Req, repo: &str) -> Reply {
    let name = s.permit(req, repo, "checks", Level::Write)?;
    let app = app_slug(s, req)?;
    let body = req.json()?;
    let text = |field: &str| body[field].as_str().map(str::to_owned);
    let missing = |field: &'static str| ApiError::Invalid {
        resource: "CheckRun",
        field,
        message: format!("{field} is missing"),
    };
    let check_name = text("name").ok_or_else(|| missing("name"))?;
    let head_sha = text("head_sha").ok_or_else(|| missing("head_sha"))?;
    find(s, &name, &head_sha)?;
    let id = s.fresh_id();
    let suite = crate::state::build::stable_id(&format!("{app}:{head_sha}"));
    let mut check = Check {
        id,
        suite,
        name: check_name,
        head_sha,
        app,
        status: "queued".to_owned(),
        conclusion: None,
        external_id: None,
        details_url: None,
        title: None,
        summary: None,
        text: None,
        annotations: Vec::new(),
        actions: Vec::new(),
        started_at: Some(s.now()),
        completed_at: None,
        writes: 0,
    };
    write(s.now(), &mut check, &body)?;
    let out = s.check_run(&name, &check);
    let event = if check.status == "completed" {
        "completed"
    } else {
        "created"
    };
    if let Some(r) = s.repo_mut(&name) {
        r.checks.insert(id, check);
    }
    let bot = s.bot();
    s.emit(&name, &bot, "check_run", Some(event), json!({"check_run": out}));
    Ok(Answer::json(201, &out))
}

pub(super) fn update(s: &mut State, req: &Req, repo: &str, id: &str) -> Reply {
    let name = s.permit(req, repo, "checks", Level::Write)?;
    let app = app_slug(s, req)?;
    let body = req.json()?;
    let id = number(id)?;
    let now = s.now();
    let check = s
        .repo_mut(&name)
        .and_then(|r| r.checks.get_mut(&id))
        .ok_or(ApiError::NotFound)?;
    if check.app != app {
        return Err(ApiError::Status(
            403,
            "Invalid app_id `".to_owned()
                + &id.to_string()
                + "` - check run can only be modified by the GitHub App that created it.",
        ));
    }
    let was = check.status.clone();
    write(now, check, &body)?;
    let done = was != "completed" && check.status == "completed";
    let check = check.clone();
    let out = s.check_run(&name, &check);
    if done {
        let bot = s.bot();
        s.emit(&name, &bot, "check_run", Some("completed"), json!({"check_run": out}));
    }
    Ok(Answer::ok(&out))
}

/// Takes the fields of a request into a check run, with GitHub's own rules.
fn write(now: Time, check: &mut Check, body: &Value) -> Result<(), ApiError> {
    let text = |field: &str| body[field].as_str().map(str::to_owned);
    let invalid = |field: &'static str, message: &str| ApiError::Invalid {
        resource: "CheckRun",
        field,
        message: message.to_owned(),
    };
    if let Some(name) = text("name") {
        check.name = name;
    }
    if let Some(status) = text("status") {
        if !["queued", "in_progress", "completed", "waiting", "requested", "pending"].contains(&status.as_str()) {
            return Err(invalid("status", "is not included in the list"));
        }
        check.status = status;
    }
    if let Some(conclusion) = text("conclusion") {
        const ALL: [&str; 7] = [
            "action_required",
            "cancelled",
            "failure",
            "neutral",
            "success",
            "skipped",
            "timed_out",
        ];
        if !ALL.contains(&conclusion.as_str()) {
            return Err(invalid("conclusion", "is not included in the list"));
        }
        check.conclusion = Some(conclusion);
        "completed".clone_into(&mut check.status);
    }
    if check.status == "completed" && check.conclusion.is_none() {
        return Err(invalid("conclusion", "is required when status is completed"));
    }
    if check.status != "completed" {
        check.conclusion = None;
    }
    let moment = |field: &str| {
        body[field]
            .as_str()
            .and_then(|t| chrono::DateTime::parse_from_rfc3339(t).ok())
            .map(|t| t.to_utc())
    };
    check.started_at = moment("started_at").or(check.started_at);
    check.completed_at = if check.status == "completed" {
        moment("completed_at").or(Some(now))
    } else {
        None
    };
    check.external_id = text("external_id").or(check.external_id.take());
    check.details_url = text("details_url").or(check.details_url.take());
    if let Some(output) = body["output"].as_object() {
        let field = |name: &str| output.get(name).and_then(Value::as_str).map(str::to_owned);
        if output.get("summary").and_then(Value::as_str).is_none() {
            return Err(invalid("output", "summary is required"));
        }
        check.title = field("title").or(check.title.take());
        check.summary = field("summary");
        check.text = field("text");
        if [&check.summary, &check.text]
            .into_iter()
            .flatten()
            .any(|t| t.chars().count() > 65_535)
        {
            return Err(invalid("output", "is too long (maximum is 65535 characters)"));
        }
        let annotations = output
            .get("annotations")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        if annotations.len() > 50 {
            return Err(invalid("annotations", "at most 50 annotations a request"));
        }
        for a in &annotations {
            let complete = ["path", "message", "annotation_level"].iter().all(|f| a[f].is_string())
                && ["start_line", "end_line"].iter().all(|f| a[f].is_u64());
            if !complete {
                return Err(invalid(
                    "annotations",
                    "path, start_line, end_line, annotation_level and message are required",
                ));
            }
        }
        check.annotations.extend(annotations);
    }
    if let Some(actions) = body["actions"].as_array() {
        if actions.len() > 3 {
            return Err(invalid("actions", "at most 3 actions"));
        }
        check.actions.clone_from(actions);
    }
    check.writes += 1;
    Ok(())
}

pub(super) fn annotations(s: &mut State, req: &Req, repo: &str, id: &str) -> Reply {
    let name = s.permit(req, repo, "checks", Level::Read)?;
    let id = number(id)?;
    let check = s
        .repo(&name)
        .and_then(|r| r.checks.get(&id))
        .ok_or(ApiError::NotFound)?;
    let list: Vec<Value> = check
        .annotations
        .iter()
        .map(|a| {
            let mut a = a.clone();
            if let Some(map) = a.as_object_mut() {
                for field in ["start_column", "end_column", "title", "raw_details"] {
                    map.entry(field).or_insert(Value::Null);
                }
                let href = s.web(&format!(
                    "/{name}/blob/{}/{}",
                    check.head_sha,
                    map["path"].as_str().unwrap_or("")
                ));
                map.insert("blob_href".to_owned(), href.into());
            }
            a
        })
        .collect();
    let (part, link) = req.cut(&s.base, &list);
    Ok(Answer::ok(&json!(part)).with("link", link))
}

pub(super) fn create_status(s: &mut State, req: &Req, repo: &str, sha: &str) -> Reply {
    let name = s.permit(req, repo, "statuses", Level::Write)?;
    let body = req.json()?;
    let sha = find(s, &name, sha)?;
    let state = body["state"].as_str().unwrap_or("");
    if !["error", "failure", "pending", "success"].contains(&state) {
        let message = "state is not included in the list".to_owned();
        return Err(ApiError::Invalid {
            resource: "Status",
            field: "state",
            message,
        });
    }
    let description = body["description"].as_str().map(str::to_owned);
    if description.as_ref().is_some_and(|d| d.chars().count() > 140) {
        let message = "description is too long (maximum is 140 characters)".to_owned();
        return Err(ApiError::Invalid {
            resource: "Status",
            field: "description",
            message,
        });
    }
    let context = body["context"].as_str().unwrap_or("default").to_owned();
    let target_url = body["target_url"].as_str().filter(|u| !u.is_empty()).map(str::to_owned);
    if target_url
        .as_ref()
        .is_some_and(|u| !u.starts_with("http://") && !u.starts_with("https://"))
    {
        let message = "target_url must use http(s) scheme".to_owned();
        return Err(ApiError::Invalid {
            resource: "Status",
            field: "target_url",
            message,
        });
    }
    let there = s.repo(&name).map_or(0, |r| {
        r.statuses
            .iter()
            .filter(|x| x.sha == sha && x.context == context)
            .count()
    });
    if there >= STATUSES {
        let message = "This SHA and context has reached the maximum number of statuses.".to_owned();
        return Err(ApiError::Invalid {
            resource: "Status",
            field: "base",
            message,
        });
    }
    let by = match &req.caller {
        Caller::Person(login) => login.clone(),
        _ => s.bot(),
    };
    let id = s.fresh_id();
    let status = Status {
        id,
        sha,
        context,
        state: state.to_owned(),
        description,
        target_url,
        by,
        at: s.now(),
    };
    let out = s.status(&name, &status);
    if let Some(r) = s.repo_mut(&name) {
        r.statuses.push(status);
    }
    s.emit_status(&name, id);
    Ok(Answer::json(201, &out))
}

/// The statuses of a commit, newest first.
fn newest<'a>(s: &'a State, repo: &str, sha: &str) -> Vec<&'a Status> {
    s.repo(repo)
        .map(|r| r.statuses.iter().rev().filter(|x| x.sha == sha).collect())
        .unwrap_or_default()
}

pub(super) fn statuses(s: &mut State, req: &Req, repo: &str, at: &str) -> Reply {
    let name = s.permit(req, repo, "statuses", Level::Read)?;
    let sha = find(s, &name, at)?;
    let all = newest(s, &name, &sha);
    let (part, link) = req.cut(&s.base, &all);
    let list: Vec<Value> = part.iter().map(|x| s.status(&name, x)).collect();
    Ok(Answer::ok(&json!(list)).with("link", link))
}

pub(super) fn combined(s: &mut State, req: &Req, repo: &str, at: &str) -> Reply {
    let name = s.permit(req, repo, "statuses", Level::Read)?;
    let sha = find(s, &name, at)?;
    let mut seen = std::collections::BTreeSet::new();
    let all: Vec<&Status> = newest(s, &name, &sha)
        .into_iter()
        .filter(|x| seen.insert(x.context.clone()))
        .collect();
    let (part, link) = req.cut(&s.base, &all);
    let mut out = s.combined_status(&name, &sha, &all);
    if part.len() < all.len() {
        out["statuses"] = s.combined_status(&name, &sha, part)["statuses"].clone();
    }
    Ok(Answer::ok(&out).with("link", link))
}
