//! Organisations, teams, and who may do what.

use serde_json::{Value, json};

use super::{Reply, known};
use crate::http::auth::{Caller, Level};
use crate::http::message::{Answer, ApiError, Req};
use crate::shapes::encode;
use crate::state::State;

pub(super) fn route(s: &mut State, req: &Req, org: &str, rest: &[&str]) -> Reply {
    match rest {
        ["members", login] => member(s, req, org, login),
        ["teams", team, "memberships", login] => membership(s, req, org, team, login),
        ["teams", team, "members"] => members(s, req, org, team),
        _ => Err(ApiError::Unserved),
    }
}

/// Whether the caller may read members: an installation on the organisation with that permission.
fn readable(s: &State, req: &Req, org: &str) -> Result<(), ApiError> {
    match &req.caller {
        Caller::Installation { id, .. } => {
            let ours = s
                .installations
                .get(id)
                .is_some_and(|i| i.account.eq_ignore_ascii_case(org));
            if ours && s.granted(*id, "members", Level::Read) {
                Ok(())
            } else {
                Err(ApiError::forbidden())
            }
        }
        Caller::Person(_) => Ok(()),
        Caller::App => Err(ApiError::Status(
            401,
            "A JSON web token cannot be used here: use an installation's token".to_owned(),
        )),
        Caller::Anonymous => Err(ApiError::Status(401, "Requires authentication".to_owned())),
    }
}

fn refusal(status: u16) -> ApiError {
    match status {
        404 => ApiError::NotFound,
        403 => ApiError::forbidden(),
        other => ApiError::Status(other, "Server Error".to_owned()),
    }
}

fn member(s: &mut State, req: &Req, org: &str, login: &str) -> Reply {
    readable(s, req, org)?;
    let fact = || format!("the members of {org}");
    let Some(spec) = s.org(org) else {
        return if s.partial {
            Err(ApiError::Unknown(fact()))
        } else {
            Err(ApiError::NotFound)
        };
    };
    if let Some(status) = spec.unreadable {
        return Err(refusal(status));
    }
    let named = |list: &[String]| list.iter().any(|m| m.eq_ignore_ascii_case(login));
    if named(&spec.owners) || spec.members.as_ref().is_some_and(|m| named(m)) {
        return Ok(Answer::empty(204));
    }
    known(spec.members.is_some() || !s.partial, fact)?;
    Err(ApiError::NotFound)
}

/// The team's members and pending ones, where it may be read.
fn team<'a>(s: &'a State, org: &str, team: &str) -> Result<(&'a [String], &'a [String]), ApiError> {
    let fact = || format!("the members of the team {org}/{team}");
    let found = s
        .org(org)
        .and_then(|o| o.teams.iter().find(|(slug, _)| slug.eq_ignore_ascii_case(team)));
    let Some((_, spec)) = found else {
        return if s.partial {
            Err(ApiError::Unknown(fact()))
        } else {
            Err(ApiError::NotFound)
        };
    };
    if let Some(status) = spec.unreadable {
        return Err(refusal(status));
    }
    known(spec.members.is_some() || !s.partial, fact)?;
    Ok((spec.members.as_deref().unwrap_or(&[]), &spec.pending))
}

fn membership(s: &mut State, req: &Req, org: &str, slug: &str, login: &str) -> Reply {
    readable(s, req, org)?;
    let (members, pending) = team(s, org, slug)?;
    let named = |list: &[String]| list.iter().any(|m| m.eq_ignore_ascii_case(login));
    let state = match (named(members), named(pending)) {
        (true, _) => "active",
        (false, true) => "pending",
        (false, false) => return Err(ApiError::NotFound),
    };
    let url = s.api(&format!("/orgs/{org}/teams/{slug}/memberships/{}", encode(login)));
    Ok(Answer::ok(&json!({"url": url, "role": "member", "state": state})))
}

fn members(s: &mut State, req: &Req, org: &str, slug: &str) -> Reply {
    readable(s, req, org)?;
    let (members, _) = team(s, org, slug)?;
    let members = members.to_vec();
    let (part, link) = req.cut(&s.base, &members);
    let list: Vec<Value> = part.iter().map(|m| s.user(m)).collect();
    Ok(Answer::ok(&json!(list)).with("link", link))
}

pub(super) fn permission(s: &mut State, req: &Req, repo: &str, login: &str) -> Reply {
    let name = s.permit(req, repo, "metadata", Level::Read)?;
    if req.caller == Caller::Anonymous {
        return Err(ApiError::Status(401, "Requires authentication".to_owned()));
    }
    if s.users.get(&login.to_ascii_lowercase()).is_some_and(|u| u.missing) {
        return Err(ApiError::NotFound);
    }
    let r = s.repo(&name).ok_or(ApiError::NotFound)?;
    let given = r
        .collaborators
        .iter()
        .flatten()
        .find(|(l, _)| l.eq_ignore_ascii_case(login))
        .map(|(_, role)| role);
    let (permission, role) = match given {
        Some(role) => (role.permission(), role.role_name()),
        None if r.owner().eq_ignore_ascii_case(login) => ("admin", "admin"),
        None => {
            known(r.collaborators.is_some() || !s.partial, || {
                format!("the permission of {login} on {name}")
            })?;
            let none = if r.private { "none" } else { "read" };
            (none, none)
        }
    };
    let mut user = s.user(login);
    if let Some(map) = user.as_object_mut() {
        let at_least = |levels: &[&str]| levels.contains(&permission);
        map.insert("role_name".to_owned(), role.into());
        map.insert(
            "permissions".to_owned(),
            json!({
                "admin": permission == "admin", "maintain": permission == "admin" || role == "maintain",
                "push": at_least(&["admin", "write"]), "triage": at_least(&["admin", "write"]) || role == "triage",
                "pull": at_least(&["admin", "write", "read"]),
            }),
        );
    }
    Ok(Answer::ok(
        &json!({"permission": permission, "role_name": role, "user": user}),
    ))
}
