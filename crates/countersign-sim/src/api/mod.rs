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

/// All that is served, in the spelling of GitHub's own description.
pub const ENDPOINTS: &[(&str, &str)] = &[
    ("GET", "/app"),
    ("GET", "/app/installations"),
    ("GET", "/app/installations/{installation_id}"),
    ("POST", "/app/installations/{installation_id}/access_tokens"),
    ("GET", "/app/hook/config"),
    ("GET", "/app/hook/deliveries"),
    ("GET", "/app/hook/deliveries/{delivery_id}"),
    ("POST", "/app/hook/deliveries/{delivery_id}/attempts"),
    ("GET", "/installation/repositories"),
    ("GET", "/orgs/{org}/members/{username}"),
    ("GET", "/orgs/{org}/teams/{team_slug}/members"),
    ("GET", "/orgs/{org}/teams/{team_slug}/memberships/{username}"),
    ("GET", "/rate_limit"),
    ("GET", "/repos/{owner}/{repo}"),
    ("GET", "/repos/{owner}/{repo}/actions/artifacts/{artifact_id}"),
    (
        "GET",
        "/repos/{owner}/{repo}/actions/artifacts/{artifact_id}/{archive_format}",
    ),
    ("GET", "/repos/{owner}/{repo}/actions/jobs/{job_id}"),
    ("GET", "/repos/{owner}/{repo}/actions/runs"),
    ("GET", "/repos/{owner}/{repo}/actions/runs/{run_id}"),
    ("GET", "/repos/{owner}/{repo}/actions/runs/{run_id}/artifacts"),
    (
        "GET",
        "/repos/{owner}/{repo}/actions/runs/{run_id}/attempts/{attempt_number}",
    ),
    (
        "GET",
        "/repos/{owner}/{repo}/actions/runs/{run_id}/attempts/{attempt_number}/jobs",
    ),
    ("GET", "/repos/{owner}/{repo}/actions/runs/{run_id}/jobs"),
    ("GET", "/repos/{owner}/{repo}/actions/workflows"),
    ("GET", "/repos/{owner}/{repo}/actions/workflows/{workflow_id}"),
    ("GET", "/repos/{owner}/{repo}/actions/workflows/{workflow_id}/runs"),
    ("GET", "/repos/{owner}/{repo}/branches/{branch}"),
    ("POST", "/repos/{owner}/{repo}/check-runs"),
    ("GET", "/repos/{owner}/{repo}/check-runs/{check_run_id}"),
    ("PATCH", "/repos/{owner}/{repo}/check-runs/{check_run_id}"),
    ("GET", "/repos/{owner}/{repo}/check-runs/{check_run_id}/annotations"),
    ("GET", "/repos/{owner}/{repo}/codeowners/errors"),
    ("GET", "/repos/{owner}/{repo}/collaborators/{username}/permission"),
    ("GET", "/repos/{owner}/{repo}/commits/{commit_sha}/pulls"),
    ("GET", "/repos/{owner}/{repo}/commits/{ref}"),
    ("GET", "/repos/{owner}/{repo}/commits/{ref}/check-runs"),
    ("GET", "/repos/{owner}/{repo}/commits/{ref}/status"),
    ("GET", "/repos/{owner}/{repo}/commits/{ref}/statuses"),
    ("GET", "/repos/{owner}/{repo}/compare/{basehead}"),
    ("GET", "/repos/{owner}/{repo}/contents/{path}"),
    ("GET", "/repos/{owner}/{repo}/git/blobs/{file_sha}"),
    ("GET", "/repos/{owner}/{repo}/git/ref/{ref}"),
    ("GET", "/repos/{owner}/{repo}/git/trees/{tree_sha}"),
    ("GET", "/repos/{owner}/{repo}/installation"),
    ("GET", "/repos/{owner}/{repo}/issues/comments/{comment_id}"),
    ("PATCH", "/repos/{owner}/{repo}/issues/comments/{comment_id}"),
    ("DELETE", "/repos/{owner}/{repo}/issues/comments/{comment_id}"),
    ("GET", "/repos/{owner}/{repo}/issues/comments/{comment_id}/reactions"),
    ("POST", "/repos/{owner}/{repo}/issues/comments/{comment_id}/reactions"),
    (
        "DELETE",
        "/repos/{owner}/{repo}/issues/comments/{comment_id}/reactions/{reaction_id}",
    ),
    ("GET", "/repos/{owner}/{repo}/issues/{issue_number}/comments"),
    ("POST", "/repos/{owner}/{repo}/issues/{issue_number}/comments"),
    ("GET", "/repos/{owner}/{repo}/issues/{issue_number}/labels"),
    ("GET", "/repos/{owner}/{repo}/pulls"),
    ("GET", "/repos/{owner}/{repo}/pulls/comments/{comment_id}"),
    ("GET", "/repos/{owner}/{repo}/pulls/{pull_number}"),
    ("PATCH", "/repos/{owner}/{repo}/pulls/{pull_number}"),
    ("GET", "/repos/{owner}/{repo}/pulls/{pull_number}/comments"),
    ("GET", "/repos/{owner}/{repo}/pulls/{pull_number}/commits"),
    ("GET", "/repos/{owner}/{repo}/pulls/{pull_number}/files"),
    ("GET", "/repos/{owner}/{repo}/pulls/{pull_number}/reviews"),
    ("GET", "/repos/{owner}/{repo}/pulls/{pull_number}/reviews/{review_id}"),
    ("POST", "/repos/{owner}/{repo}/statuses/{sha}"),
    ("GET", "/repos/{owner}/{repo}/tarball/{ref}"),
];

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
