//! GitHub's own JSON shapes, made from the state. Required fields follow GitHub's published OpenAPI description, which
//! `tests/openapi` checks every answer against; links for people point at `State::html`, all others at the simulator.

mod actions;
mod checks;
mod commits;
mod content;
mod pulls;
mod repos;

pub(crate) use commits::change;
pub(crate) use pulls::Size;

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};

use crate::state::State;
use crate::state::build::stable_id;

/// A time as GitHub writes it: whole seconds, UTC.
pub(crate) fn time(t: DateTime<Utc>) -> String {
    t.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// The same for a time that may be missing.
pub(crate) fn time_or_null(t: Option<DateTime<Utc>>) -> Value {
    t.map_or(Value::Null, |t| time(t).into())
}

/// An opaque GraphQL node id: a prefix for the type and the number.
pub(crate) fn node(prefix: &str, id: u64) -> String {
    format!("{prefix}_{id}")
}

impl State {
    /// A link into the API.
    pub(crate) fn api(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// A link for people.
    pub(crate) fn web(&self, path: &str) -> String {
        format!("{}{path}", self.html)
    }

    /// The id of a login.
    pub(crate) fn user_id(&self, login: &str) -> u64 {
        let user = self.users.get(&login.to_ascii_lowercase()).and_then(|u| u.id);
        user.or_else(|| self.org(login)?.id).unwrap_or_else(|| stable_id(login))
    }

    /// `simple-user`. An empty login is a deleted account, which GitHub shows as `ghost`.
    pub(crate) fn user(&self, login: &str) -> Value {
        let login = if login.is_empty() { "ghost" } else { login };
        let spec = self.users.get(&login.to_ascii_lowercase());
        let id = self.user_id(login);
        let kind = spec.and_then(|u| u.kind.clone()).unwrap_or_else(|| {
            if login.ends_with("[bot]") {
                "Bot".to_owned()
            } else if self.org(login).is_some() {
                "Organization".to_owned()
            } else {
                "User".to_owned()
            }
        });
        let url = self.api(&format!("/users/{}", encode(login)));
        let page = match login.strip_suffix("[bot]") {
            Some(slug) => self.web(&format!("/apps/{slug}")),
            None => self.web(&format!("/{login}")),
        };
        json!({
            "login": login, "id": id, "node_id": node("U", id), "avatar_url": format!("https://avatars.githubusercontent.com/u/{id}?v=4"),
            "gravatar_id": "", "url": url, "html_url": page,
            "followers_url": format!("{url}/followers"), "following_url": format!("{url}/following{{/other_user}}"),
            "gists_url": format!("{url}/gists{{/gist_id}}"), "starred_url": format!("{url}/starred{{/owner}}{{/repo}}"),
            "subscriptions_url": format!("{url}/subscriptions"), "organizations_url": format!("{url}/orgs"),
            "repos_url": format!("{url}/repos"), "events_url": format!("{url}/events{{/privacy}}"),
            "received_events_url": format!("{url}/received_events"), "type": kind, "user_view_type": "public", "site_admin": false,
        })
    }

    /// The same for a login that may be missing.
    pub(crate) fn user_or_null(&self, login: Option<&str>) -> Value {
        login.map_or(Value::Null, |l| self.user(l))
    }

    /// `integration`: our App, or another one by its slug.
    pub(crate) fn app_json(&self, slug: &str) -> Value {
        let ours = slug == self.app.slug;
        let id = if ours { self.app.id } else { stable_id(slug) };
        let (name, owner) = if ours {
            (self.app.name.as_str(), self.app.owner.as_str())
        } else {
            (slug, "github")
        };
        let permissions = self
            .installations
            .values()
            .next()
            .map(|i| json!(i.permissions))
            .unwrap_or_else(|| json!({}));
        json!({
            "id": id, "slug": slug, "client_id": format!("Iv1.{id:016x}"), "node_id": node("A", id), "owner": self.user(owner), "name": name, "description": "",
            "external_url": "https://example.org", "html_url": self.web(&format!("/apps/{slug}")),
            "created_at": "2025-01-01T00:00:00Z", "updated_at": "2025-01-01T00:00:00Z",
            "permissions": if ours { permissions } else { json!({}) },
            "events": if ours { json!(self.app.events.clone().unwrap_or_default()) } else { json!([]) },
        })
    }

    /// `installation`.
    pub(crate) fn installation_json(&self, id: u64) -> Value {
        let Some(i) = self.installations.get(&id) else {
            return Value::Null;
        };
        let account = self.user(&i.account);
        let (target, kind) = (account["id"].clone(), account["type"].clone());
        json!({
            "id": id, "client_id": format!("Iv1.{:016x}", self.app.id), "account": account,
            "repository_selection": if i.repositories.is_some() { "selected" } else { "all" },
            "access_tokens_url": self.api(&format!("/app/installations/{id}/access_tokens")),
            "repositories_url": self.api("/installation/repositories"),
            "html_url": self.web(&format!("/organizations/{}/settings/installations/{id}", i.account)),
            "app_id": self.app.id, "app_slug": self.app.slug, "target_id": target, "target_type": kind,
            "permissions": i.permissions, "events": self.app.events.clone().unwrap_or_default(),
            "created_at": time(i.created_at), "updated_at": time(i.created_at), "single_file_name": null,
            "has_multiple_single_files": false, "single_file_paths": [],
            "suspended_by": self.user_or_null(i.suspended.then_some(i.account.as_str())),
            "suspended_at": time_or_null(i.suspended.then(|| self.now())),
        })
    }
}

/// Percent-encodes one segment of a path.
pub(crate) fn encode(text: &str) -> String {
    let mut out = String::new();
    for b in text.bytes() {
        if b.is_ascii_alphanumeric() || b"-._~".contains(&b) {
            out.push(b as char);
        } else {
            out.push_str(&format!("%{b:02X}"));
        }
    }
    out
}

/// Percent-encodes a path, leaving its slashes.
pub(crate) fn encode_path(text: &str) -> String {
    text.split('/').map(encode).collect::<Vec<_>>().join("/")
}
