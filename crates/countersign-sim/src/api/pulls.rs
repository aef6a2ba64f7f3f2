//! Pull requests, their files and commits, reviews and inline comments.

use serde_json::{Value, json};

use super::{Reply, known, number};
use crate::http::auth::{Caller, Level};
use crate::http::message::{Answer, ApiError, Req};
use crate::state::State;
use crate::state::model::Pull;

/// The most files that GitHub lists for a pull request.
const FILES: usize = 3_000;
/// The most commits that GitHub lists for a pull request.
const COMMITS: usize = 250;

pub(super) fn route(s: &mut State, req: &Req, repo: &str, rest: &[&str]) -> Reply {
    let level = if req.method == http::Method::GET {
        Level::Read
    } else {
        Level::Write
    };
    match (req.method.as_str(), rest) {
        ("GET", []) => list(s, req, repo),
        ("GET", ["comments", id]) => {
            let name = s.permit(req, repo, "pull_requests", level)?;
            let id = number(id)?;
            let c = s
                .repo(&name)
                .and_then(|r| r.review_comments.get(&id))
                .ok_or(ApiError::NotFound)?;
            Ok(Answer::ok(&s.review_comment(&name, c)))
        }
        ("GET", ["comments"]) => Err(ApiError::Unserved),
        ("GET", [n]) => {
            let name = s.permit(req, repo, "pull_requests", level)?;
            let n = find(s, &name, n)?;
            let size = size(s, &name, n)?;
            let p = s.pull(&name, n)?;
            known(p.known.labels, || format!("the labels of {name}#{n}"))?;
            Ok(Answer::ok(&s.pull_full(&name, p, size)))
        }
        ("PATCH", [n]) => patch(s, req, repo, n),
        ("GET", [n, "files"]) => files(s, req, repo, n),
        ("GET", [n, "commits"]) => commits(s, req, repo, n),
        ("GET", [n, "reviews"]) => reviews(s, req, repo, n),
        ("GET", [n, "reviews", id]) => {
            let name = s.permit(req, repo, "pull_requests", level)?;
            let (n, id) = (find(s, &name, n)?, number(id)?);
            let r = s
                .repo(&name)
                .and_then(|r| r.reviews.get(&id))
                .filter(|r| r.pull == n)
                .ok_or(ApiError::NotFound)?;
            Ok(Answer::ok(&s.review(&name, r, true)))
        }
        ("GET", [n, "comments"]) => comments(s, req, repo, n),
        _ => Err(ApiError::Unserved),
    }
}

/// The number of a pull request that is there; in a partial world another one is unknown, not missing.
pub(super) fn find(s: &State, repo: &str, text: &str) -> Result<u64, ApiError> {
    let n = number(text)?;
    let r = s.repo(repo).ok_or(ApiError::NotFound)?;
    if r.pulls.contains_key(&n) {
        return Ok(n);
    }
    if s.partial {
        Err(ApiError::Unknown(format!("the pull request {repo}#{n}")))
    } else {
        Err(ApiError::NotFound)
    }
}

fn size(s: &mut State, repo: &str, n: u64) -> Result<crate::shapes::Size, ApiError> {
    Ok(s.pull_size(repo, n)?)
}

fn list(s: &mut State, req: &Req, repo: &str) -> Reply {
    let name = s.permit(req, repo, "pull_requests", Level::Read)?;
    let r = s.repo(&name).ok_or(ApiError::NotFound)?;
    known(r.pulls_known, || format!("the pull requests of {name}"))?;
    let state = req.param("state").unwrap_or("open");
    let mut all: Vec<&Pull> = r
        .pulls
        .values()
        .filter(|p| state == "all" || (state == "open") == p.open)
        .filter(|p| req.param("base").is_none_or(|b| p.base_ref == b))
        .filter(|p| {
            let label = format!("{}:{}", p.head_repo.split('/').next().unwrap_or(""), p.head_ref);
            req.param("head").is_none_or(|h| label == h)
        })
        .collect();
    match req.param("sort") {
        Some("updated") => all.sort_by_key(|p| (p.updated_at, p.number)),
        _ => all.sort_by_key(|p| (p.created_at, p.number)),
    }
    if req.param("direction") != Some("asc") {
        all.reverse();
    }
    let (part, link) = req.cut(&s.base, &all);
    for p in part {
        known(p.known.labels, || format!("the labels of {name}#{}", p.number))?;
    }
    let list: Vec<Value> = part.iter().map(|p| s.pull_simple(&name, p)).collect();
    Ok(Answer::ok(&json!(list)).with("link", link))
}

fn patch(s: &mut State, req: &Req, repo: &str, n: &str) -> Reply {
    let name = s.permit(req, repo, "pull_requests", Level::Write)?;
    let n = find(s, &name, n)?;
    let body = req.json()?;
    let by = match &req.caller {
        Caller::Person(login) => login.clone(),
        _ => s.bot(),
    };
    let text = |field: &str| body[field].as_str();
    if text("title").is_some() || text("body").is_some() || text("base").is_some() {
        s.edit_pull(&name, n, text("title"), text("body"), text("base"), Some(&by))?;
    }
    match text("state") {
        Some("closed") if s.pull(&name, n)?.open => s.set_open(&name, n, false, Some(&by))?,
        Some("open") if !s.pull(&name, n)?.open => s.set_open(&name, n, true, Some(&by))?,
        _ => {}
    }
    let size = size(s, &name, n)?;
    Ok(Answer::ok(&s.pull_full(&name, s.pull(&name, n)?, size)))
}

/// Whether the history or the spelled-out list gives a pull request's files or commits.
fn derivable(s: &State, repo: &str, n: u64, given: bool, what: &str) -> Result<(), ApiError> {
    let has = given || s.repo(repo).is_some_and(|r| r.has_git);
    known(has || !s.partial, || format!("the {what} of {repo}#{n}"))
}

fn files(s: &mut State, req: &Req, repo: &str, n: &str) -> Reply {
    let name = s.permit(req, repo, "pull_requests", Level::Read)?;
    let n = find(s, &name, n)?;
    let p = s.pull(&name, n)?;
    derivable(s, &name, n, p.files.is_some(), "files")?;
    let head = p.head_sha.clone();
    let all = s.pull_files(&name, n)?;
    let all = &all[..all.len().min(FILES)];
    let (part, link) = req.cut(&s.base, all);
    let list: Vec<Value> = part.iter().map(|f| s.file_json(&name, &head, f)).collect();
    Ok(Answer::ok(&json!(list)).with("link", link))
}

fn commits(s: &mut State, req: &Req, repo: &str, n: &str) -> Reply {
    let name = s.permit(req, repo, "pull_requests", Level::Read)?;
    let n = find(s, &name, n)?;
    let p = s.pull(&name, n)?;
    derivable(s, &name, n, p.commits.is_some(), "commits")?;
    let (author, at) = (p.author.clone(), p.created_at.timestamp());
    let all = s.pull_commits(&name, n)?;
    let all = &all[..all.len().min(COMMITS)];
    let (part, link) = req.cut(&s.base, all);
    let mut list = Vec::new();
    for sha in part {
        let commit = s.store(&name).map(|x| x.commit(sha)).transpose()?.flatten();
        list.push(match commit {
            Some(c) => s.commit_json(&name, sha, &c),
            None => {
                // A commit that the world only names.
                let who = crate::git::Person {
                    name: author.clone(),
                    email: format!("{author}@users.noreply.github.com"),
                    time: at,
                };
                let tree = crate::state::build::made_up_sha(sha);
                let commit = crate::git::Commit {
                    tree,
                    parents: Vec::new(),
                    author: who.clone(),
                    committer: who,
                    message: "Change".to_owned(),
                };
                s.commit_json(&name, sha, &commit)
            }
        });
    }
    Ok(Answer::ok(&json!(list)).with("link", link))
}

fn reviews(s: &mut State, req: &Req, repo: &str, n: &str) -> Reply {
    let name = s.permit(req, repo, "pull_requests", Level::Read)?;
    let n = find(s, &name, n)?;
    known(s.pull(&name, n)?.known.reviews, || format!("the reviews of {name}#{n}"))?;
    let r = s.repo(&name).ok_or(ApiError::NotFound)?;
    let mut all: Vec<_> = r.reviews.values().filter(|x| x.pull == n).collect();
    all.sort_by_key(|x| (x.submitted_at, x.id));
    let (part, link) = req.cut(&s.base, &all);
    let list: Vec<Value> = part.iter().map(|x| s.review(&name, x, true)).collect();
    Ok(Answer::ok(&json!(list)).with("link", link))
}

fn comments(s: &mut State, req: &Req, repo: &str, n: &str) -> Reply {
    let name = s.permit(req, repo, "pull_requests", Level::Read)?;
    let n = find(s, &name, n)?;
    known(s.pull(&name, n)?.known.review_comments, || {
        format!("the review comments of {name}#{n}")
    })?;
    let r = s.repo(&name).ok_or(ApiError::NotFound)?;
    let mut all: Vec<_> = r.review_comments.values().filter(|x| x.pull == n).collect();
    all.sort_by_key(|x| (x.created_at, x.id));
    let (part, link) = req.cut(&s.base, &all);
    let list: Vec<Value> = part.iter().map(|x| s.review_comment(&name, x)).collect();
    Ok(Answer::ok(&json!(list)).with("link", link))
}
