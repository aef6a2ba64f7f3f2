//! Issue comments, their reactions, and labels.

use serde_json::{Value, json};

use super::{Reply, known, number};
use crate::http::auth::{Caller, Level};
use crate::http::message::{Answer, ApiError, Req};
use crate::state::State;
use crate::state::model::Reaction;
use crate::world::pulls::CommentSpec;

/// The longest comment.
const BODY: usize = 65_536;
const REACTIONS: [&str; 8] = ["+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes"];

pub(super) fn route(s: &mut State, req: &Req, repo: &str, rest: &[&str]) -> Reply {
    let level = if req.method == http::Method::GET {
        Level::Read
    } else {
        Level::Write
    };
    let name = s.permit(req, repo, "issues", level)?;
    match (req.method.as_str(), rest) {
        ("GET", [n, "comments"]) => list(s, req, &name, n),
        ("POST", [n, "comments"]) => create(s, req, &name, n),
        ("GET", ["comments", id]) => {
            let id = number(id)?;
            let c = s
                .repo(&name)
                .and_then(|r| r.comments.get(&id))
                .ok_or(ApiError::NotFound)?;
            Ok(Answer::ok(&s.comment(&name, c)))
        }
        ("PATCH", ["comments", id]) => {
            let id = own(s, req, &name, id)?;
            let body = text(req)?;
            let by = who(s, req);
            s.edit_comment(id, &body, Some(&by))?;
            let c = s
                .repo(&name)
                .and_then(|r| r.comments.get(&id))
                .ok_or(ApiError::NotFound)?;
            Ok(Answer::ok(&s.comment(&name, c)))
        }
        ("DELETE", ["comments", id]) => {
            let id = own(s, req, &name, id)?;
            let by = who(s, req);
            s.delete_comment(id, Some(&by))?;
            Ok(Answer::empty(204))
        }
        ("GET", ["comments", id, "reactions"]) => {
            let id = number(id)?;
            let c = s
                .repo(&name)
                .and_then(|r| r.comments.get(&id))
                .ok_or(ApiError::NotFound)?;
            let wanted = req.param("content");
            let all: Vec<&Reaction> = c
                .reactions
                .iter()
                .filter(|r| wanted.is_none_or(|w| r.content == w))
                .collect();
            let (part, link) = req.cut(&s.base, &all);
            let list: Vec<Value> = part.iter().map(|r| s.reaction(r)).collect();
            Ok(Answer::ok(&json!(list)).with("link", link))
        }
        ("POST", ["comments", id, "reactions"]) => react(s, req, &name, id),
        ("DELETE", ["comments", id, "reactions", reaction]) => {
            let (id, reaction) = (number(id)?, number(reaction)?);
            let by = who(s, req);
            let c = s
                .repo_mut(&name)
                .and_then(|r| r.comments.get_mut(&id))
                .ok_or(ApiError::NotFound)?;
            let found = c
                .reactions
                .iter()
                .position(|r| r.id == reaction)
                .ok_or(ApiError::NotFound)?;
            if c.reactions[found].by != by {
                return Err(ApiError::forbidden());
            }
            c.reactions.remove(found);
            Ok(Answer::empty(204))
        }
        ("GET", [n, "labels"]) => {
            let n = super::pulls::find(s, &name, n)?;
            let p = s.pull(&name, n)?;
            known(p.known.labels, || format!("the labels of {name}#{n}"))?;
            let (part, link) = req.cut(&s.base, &p.labels);
            let list: Vec<Value> = part.iter().map(|l| s.label(&name, l)).collect();
            Ok(Answer::ok(&json!(list)).with("link", link))
        }
        _ => Err(ApiError::Unserved),
    }
}

/// The login that a write is by.
fn who(s: &State, req: &Req) -> String {
    match &req.caller {
        Caller::Person(login) => login.clone(),
        _ => s.bot(),
    }
}

fn text(req: &Req) -> Result<String, ApiError> {
    let body = req.json()?;
    let invalid = |message: &str| ApiError::Invalid {
        resource: "IssueComment",
        field: "body",
        message: message.to_owned(),
    };
    let text = body["body"].as_str().ok_or_else(|| invalid("body is missing"))?;
    if text.trim().is_empty() {
        return Err(invalid("body cannot be blank"));
    }
    if text.chars().count() > BODY {
        return Err(invalid("body is too long (maximum is 65536 characters)"));
    }
    Ok(text.to_owned())
}

/// A comment that the caller may change: its own, or any for somebody with write access to the repository.
fn own(s: &State, req: &Req, repo: &str, id: &str) -> Result<u64, ApiError> {
    let id = number(id)?;
    let r = s.repo(repo).ok_or(ApiError::NotFound)?;
    let c = r.comments.get(&id).ok_or(ApiError::NotFound)?;
    let by = who(s, req);
    let writer = match &req.caller {
        Caller::Installation { id, .. } => s.granted(*id, "issues", Level::Write),
        Caller::Person(login) => r
            .collaborators
            .iter()
            .flatten()
            .any(|(l, role)| l.eq_ignore_ascii_case(login) && matches!(role.permission(), "admin" | "write")),
        _ => false,
    };
    if c.author == by || writer {
        Ok(id)
    } else {
        Err(ApiError::forbidden())
    }
}

fn list(s: &mut State, req: &Req, name: &str, n: &str) -> Reply {
    let n = super::pulls::find(s, name, n)?;
    known(s.pull(name, n)?.known.comments, || {
        format!("the comments of {name}#{n}")
    })?;
    let since = req
        .param("since")
        .and_then(|t| chrono::DateTime::parse_from_rfc3339(t).ok());
    let r = s.repo(name).ok_or(ApiError::NotFound)?;
    let mut all: Vec<_> = r
        .comments
        .values()
        .filter(|c| c.pull == n && since.is_none_or(|t| c.updated_at >= t))
        .collect();
    // GitHub lists by id, which is the order of creation.
    all.sort_by_key(|c| (c.created_at, c.id));
    let (part, link) = req.cut(&s.base, &all);
    let list: Vec<Value> = part.iter().map(|c| s.comment(name, c)).collect();
    Ok(Answer::ok(&json!(list)).with("link", link))
}

fn create(s: &mut State, req: &Req, name: &str, n: &str) -> Reply {
    let n = super::pulls::find(s, name, n)?;
    let body = text(req)?;
    let spec = CommentSpec {
        author: who(s, req),
        body: Some(body),
        ..CommentSpec::default()
    };
    let id = s.post_comment(name, n, &spec)?;
    let c = s
        .repo(name)
        .and_then(|r| r.comments.get(&id))
        .ok_or(ApiError::NotFound)?;
    let out = s.comment(name, c);
    let location = out["url"].as_str().map(str::to_owned);
    Ok(Answer::json(201, &out).with("location", location))
}

/// A reaction that is there already is answered with 200, as GitHub does.
fn react(s: &mut State, req: &Req, name: &str, id: &str) -> Reply {
    let id = number(id)?;
    let body = req.json()?;
    let content = body["content"].as_str().filter(|c| REACTIONS.contains(c));
    let content = content.ok_or(ApiError::Invalid {
        resource: "Reaction",
        field: "content",
        message: "content is not included in the list".to_owned(),
    })?;
    let (by, at) = (who(s, req), s.now());
    let fresh = s.fresh_id();
    let c = s
        .repo_mut(name)
        .and_then(|r| r.comments.get_mut(&id))
        .ok_or(ApiError::NotFound)?;
    if let Some(there) = c.reactions.iter().find(|r| r.by == by && r.content == content).cloned() {
        return Ok(Answer::ok(&s.reaction(&there)));
    }
    let reaction = Reaction {
        id: fresh,
        by,
        content: content.to_owned(),
        at,
    };
    c.reactions.push(reaction.clone());
    Ok(Answer::json(201, &s.reaction(&reaction)))
}
