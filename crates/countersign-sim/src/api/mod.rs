//! The endpoints. `route` is the whole list: what is not in it is answered with 501 by name and recorded.

mod actions;
mod app;
pub(crate) mod archive;
mod checks;
mod commits;
pub(crate) mod content;
mod graphql;
mod issues;
mod orgs;
mod pulls;

use http::Method;

use crate::http::message::{Answer, ApiError, Req};
use crate::state::State;

pub(crate) type Reply = Result<Answer, ApiError>;

/// Finds the endpoint and calls it.
pub(crate) fn route(s: &mut State, req: &Req) -> Reply {
    let segments: Vec<&str> = req.segments.iter().map(String::as_str).collect();
    let get = req.method == Method::GET;
    match segments.as_slice() {
        ["rate_limit"] if get => app::rate_limit(s, req),
        ["graphql"] if req.method == Method::POST => graphql::call(s, req),
        ["app", ..] | ["installation", ..] => app::route(s, req, &segments),
        ["orgs", org, rest @ ..] if get => orgs::route(s, req, org, rest),
        ["repos", owner, name, rest @ ..] => {
            let repo = format!("{owner}/{name}");
            repos(s, req, &repo, rest)
        }
        _ => Err(ApiError::Unserved),
    }
}

fn repos(s: &mut State, req: &Req, repo: &str, rest: &[&str]) -> Reply {
    match (req.method.as_str(), rest) {
        ("GET", []) => content::repository(s, req, repo),
        ("GET", ["installation"]) => app::repo_installation(s, req, repo),
        ("GET", ["branches", branch @ ..]) if !branch.is_empty() => content::branch(s, req, repo, &branch.join("/")),
        ("GET", ["git", "ref", name @ ..]) => content::git_ref(s, req, repo, &name.join("/")),
        ("GET", ["git", "trees", sha @ ..]) => content::tree(s, req, repo, &sha.join("/")),
        ("GET", ["git", "blobs", sha]) => content::blob(s, req, repo, sha),
        ("GET", ["contents", path @ ..]) => content::contents(s, req, repo, &path.join("/")),
        ("GET", ["tarball", name @ ..]) => archive::redirect(s, req, repo, &name.join("/")),
        ("GET", ["compare", range @ ..]) => commits::compare(s, req, repo, &range.join("/")),
        ("GET", ["commits", name @ ..]) if !name.is_empty() => commits::route(s, req, repo, name),
        ("GET", ["codeowners", "errors"]) => content::codeowners_errors(s, req, repo),
        ("POST", ["statuses", sha]) => checks::create_status(s, req, repo, sha),
        ("POST", ["check-runs"]) => checks::create(s, req, repo),
        ("GET", ["check-runs", id]) => checks::get(s, req, repo, id),
        ("PATCH", ["check-runs", id]) => checks::update(s, req, repo, id),
        ("GET", ["check-runs", id, "annotations"]) => checks::annotations(s, req, repo, id),
        ("GET", ["collaborators", user, "permission"]) => orgs::permission(s, req, repo, user),
        (_, ["pulls", rest @ ..]) => pulls::route(s, req, repo, rest),
        (_, ["issues", rest @ ..]) => issues::route(s, req, repo, rest),
        ("GET", ["actions", rest @ ..]) => actions::route(s, req, repo, rest),
        _ => Err(ApiError::Unserved),
    }
}

/// A number in a path; what is none is not found.
pub(crate) fn number(text: &str) -> Result<u64, ApiError> {
    text.parse().map_err(|_| ApiError::NotFound)
}

/// Refuses a list that a partial world does not give.
pub(crate) fn known(is: bool, fact: impl FnOnce() -> String) -> Result<(), ApiError> {
    if is { Ok(()) } else { Err(ApiError::Unknown(fact())) }
}
