//! The App itself: installations, tokens, webhook deliveries, limits.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Reply, number};
use crate::hooks::Delivery;
use crate::http::auth::Caller;
use crate::http::message::{Answer, ApiError, Req};
use crate::shapes::{time, time_or_null};
use crate::state::State;

pub(super) fn route(s: &mut State, req: &Req, segments: &[&str]) -> Reply {
    if segments.first() == Some(&"installation") {
        return match (req.method.as_str(), segments) {
            ("GET", ["installation", "repositories"]) => installation_repositories(s, req),
            _ => Err(ApiError::Unserved),
        };
    }
    let served = matches!(
        (req.method.as_str(), &segments[1..]),
        (
            "GET",
            [] | ["installations"]
                | ["installations", _]
                | ["hook", "config" | "deliveries"]
                | ["hook", "deliveries", _]
        ) | (
            "POST",
            ["installations", _, "access_tokens"] | ["hook", "deliveries", _, "attempts"]
        )
    );
    if !served {
        return Err(ApiError::Unserved);
    }
    if req.caller != Caller::App {
        return Err(ApiError::Status(
            401,
            "A JSON web token could not be decoded".to_owned(),
        ));
    }
    match &segments[1..] {
        [] => {
            let mut app = s.app_json(&s.app.slug);
            let count = s.installations.values().filter(|i| !i.deleted).count();
            if let Some(map) = app.as_object_mut() {
                map.insert("installations_count".to_owned(), count.into());
            }
            Ok(Answer::ok(&app))
        }
        ["installations"] => {
            let ids: Vec<u64> = s.installations.values().filter(|i| !i.deleted).map(|i| i.id).collect();
            let (part, link) = req.cut(&s.base, &ids);
            let list: Vec<Value> = part.iter().map(|id| s.installation_json(*id)).collect();
            Ok(Answer::ok(&json!(list)).with("link", link))
        }
        ["installations", id] => {
            let id = installation(s, id)?;
            Ok(Answer::ok(&s.installation_json(id)))
        }
        ["installations", id, "access_tokens"] => access_token(s, req, id),
        ["hook", "config"] => Ok(Answer::ok(&json!({
            "content_type": "json", "insecure_ssl": "0", "secret": "********",
            "url": s.hooks.sink.clone().unwrap_or_else(|| "https://example.org/webhook".to_owned()),
        }))),
        ["hook", "deliveries"] => deliveries(s, req),
        ["hook", "deliveries", id] => {
            let id = number(id)?;
            let found = s
                .hooks
                .deliveries
                .iter()
                .find(|d| d.id == id && shown(d))
                .ok_or(ApiError::NotFound)?;
            let mut out = delivery(found);
            let payload: Value = serde_json::from_slice(&found.payload).unwrap_or_default();
            if let Some(map) = out.as_object_mut() {
                map.insert("url".to_owned(), s.hooks.sink.clone().unwrap_or_default().into());
                map.insert(
                    "request".to_owned(),
                    json!({"headers": {"X-GitHub-Event": found.event, "X-GitHub-Delivery": found.guid}, "payload": payload}),
                );
                map.insert(
                    "response".to_owned(),
                    json!({"headers": found.response_headers, "payload": found.response}),
                );
            }
            Ok(Answer::ok(&out))
        }
        ["hook", "deliveries", id, "attempts"] => {
            let id = number(id)?;
            if s.redeliver(id) {
                Ok(Answer::json(202, &json!({})))
            } else {
                Err(ApiError::NotFound)
            }
        }
        _ => Err(ApiError::Unserved),
    }
}

fn installation(s: &State, id: &str) -> Result<u64, ApiError> {
    let id = number(id)?;
    let there = s.installations.get(&id).is_some_and(|i| !i.deleted);
    there.then_some(id).ok_or(ApiError::NotFound)
}

fn access_token(s: &mut State, req: &Req, id: &str) -> Reply {
    let id = installation(s, id)?;
    let i = s.installations.get(&id).ok_or(ApiError::NotFound)?;
    if i.suspended {
        return Err(ApiError::Status(403, "This installation has been suspended".to_owned()));
    }
    let (account, permissions) = (i.account.clone(), i.permissions.clone());
    let body = if req.body.is_empty() { json!({}) } else { req.json()? };
    let names: BTreeSet<String> = body["repositories"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(|n| format!("{account}/{n}").to_ascii_lowercase())
        .collect();
    let by_id = body["repository_ids"].as_array().cloned().unwrap_or_default();
    let mut only: BTreeSet<String> = names;
    for wanted in &by_id {
        match s.repos.iter().find(|(_, r)| Some(r.id) == wanted.as_u64()) {
            Some((name, _)) => only.insert(name.clone()),
            None => return Err(ApiError::Status(
                422,
                "There is at least one repository that does not exist or is not accessible to the parent installation."
                    .to_owned(),
            )),
        };
    }
    if only
        .iter()
        .any(|n| s.repos.get(n).is_none_or(|r| r.installation != Some(id)))
    {
        return Err(ApiError::Status(
            422,
            "There is at least one repository that does not exist or is not accessible to the parent installation."
                .to_owned(),
        ));
    }
    let selected = !only.is_empty();
    let (token, expires_at) = s.mint(id, selected.then_some(only.clone()));
    let mut out = json!({
        "token": token, "expires_at": time(expires_at), "permissions": permissions,
        "repository_selection": if selected { "selected" } else { "all" },
    });
    if selected && let Some(map) = out.as_object_mut() {
        let repositories: Vec<Value> = only.iter().map(|n| s.repo_json(n)).collect();
        map.insert("repositories".to_owned(), repositories.into());
    }
    Ok(Answer::json(201, &out))
}

fn installation_repositories(s: &mut State, req: &Req) -> Reply {
    let Caller::Installation { id, repositories } = &req.caller else {
        return Err(ApiError::Status(403, "You must authenticate with an installation access token in order to list repositories for an installation.".to_owned()));
    };
    let names: Vec<String> = s
        .repos
        .iter()
        .filter(|(key, r)| r.installation == Some(*id) && repositories.as_ref().is_none_or(|set| set.contains(*key)))
        .map(|(_, r)| r.name.clone())
        .collect();
    let (part, link) = req.cut(&s.base, &names);
    let list: Vec<Value> = part.iter().map(|n| s.repo_json(n)).collect();
    let selection = if s.installations.get(id).is_some_and(|i| i.repositories.is_some()) {
        "selected"
    } else {
        "all"
    };
    let out = json!({"total_count": names.len(), "repository_selection": selection, "repositories": list});
    Ok(Answer::ok(&out).with("link", link))
}

pub(super) fn repo_installation(s: &mut State, req: &Req, repo: &str) -> Reply {
    if req.caller != Caller::App {
        return Err(ApiError::Status(
            401,
            "A JSON web token could not be decoded".to_owned(),
        ));
    }
    let id = s.repo(repo).and_then(|r| r.installation).ok_or(ApiError::NotFound)?;
    installation(s, &id.to_string())?;
    Ok(Answer::ok(&s.installation_json(id)))
}

/// Waiting and traceless deliveries are not in the list.
fn shown(d: &Delivery) -> bool {
    d.delivered_at.is_some() && !d.unrecorded
}

fn delivery(d: &Delivery) -> Value {
    json!({
        "id": d.id, "guid": d.guid, "delivered_at": time_or_null(d.delivered_at), "redelivery": d.redelivery,
        "duration": (d.duration as f64) / 1_000.0, "status": d.status, "status_code": d.status_code, "event": d.event,
        "action": d.action, "installation_id": d.installation, "repository_id": d.repository, "throttled_at": null,
    })
}

/// Newest first; the cursor is the id of the last one shown.
fn deliveries(s: &mut State, req: &Req) -> Reply {
    let (_, size) = req.page();
    let before: u64 = req
        .param("cursor")
        .and_then(|c| c.strip_prefix("v1_"))
        .and_then(|c| c.parse().ok())
        .unwrap_or(u64::MAX);
    let status = req.param("status");
    // Ids grow.
    let older = s.hooks.deliveries.partition_point(|d| d.id < before);
    let mut found = s.hooks.deliveries[..older].iter().rev().filter(|d| {
        let through = (200..300).contains(&d.status_code);
        shown(d)
            && match status {
                Some("success") => through,
                Some("failure") => !through,
                _ => true,
            }
    });
    let part: Vec<&Delivery> = found.by_ref().take(size).collect();
    let more = found.next().is_some();
    let next = part.last().filter(|_| more).map(|last| {
        let status = status.map(|v| format!("&status={v}")).unwrap_or_default();
        format!(
            "<{}/app/hook/deliveries?per_page={size}{status}&cursor=v1_{}>; rel=\"next\"",
            s.base, last.id
        )
    });
    let list: Vec<Value> = part.iter().map(|d| delivery(d)).collect();
    Ok(Answer::ok(&json!(list)).with("link", next))
}

pub(super) fn rate_limit(s: &mut State, req: &Req) -> Reply {
    let core = s.rate(&req.caller);
    let other = json!({"limit": 30, "used": 0, "remaining": 30, "reset": core["reset"]});
    Ok(Answer::ok(
        &json!({"resources": {"core": core, "search": other, "graphql": core}, "rate": core}),
    ))
}
