//! Repositories, branches, refs, trees, blobs, files.

use serde_json::{Value, json};

use super::{Reply, known};
use crate::git::{Entry, Kind, Mode};
use crate::http::auth::Level;
use crate::http::message::{Answer, ApiError, Req};
use crate::state::State;

/// Above this size the contents endpoint gives no content, except as raw.
pub(crate) const ONE_MEGABYTE: usize = 1 << 20;
/// Above this size the contents endpoint refuses altogether.
const HUNDRED_MEGABYTES: usize = 100 << 20;
/// The most entries of a recursive tree.
const TREE_LIMIT: usize = 100_000;

pub(super) fn repository(s: &mut State, req: &Req, repo: &str) -> Reply {
    let name = s.permit(req, repo, "metadata", Level::Read)?;
    let mut out = s.repo_full(&name);
    // What a token may do is part of the answer for whoever is known.
    if let Some(map) = out.as_object_mut() {
        map.insert(
            "permissions".to_owned(),
            json!({"admin": false, "maintain": false, "push": false, "triage": false, "pull": true}),
        );
    }
    Ok(Answer::ok(&out))
}

/// Whether the history of a repository is there; in a partial world without it, everything about it is unknown.
pub(super) fn history(s: &State, repo: &str) -> Result<(), ApiError> {
    let has = s.repo(repo).is_some_and(|r| r.has_git);
    known(has || !s.partial, || format!("the history of {repo}"))
}

pub(super) fn branch(s: &mut State, req: &Req, repo: &str, branch: &str) -> Reply {
    let name = s.permit(req, repo, "contents", Level::Read)?;
    history(s, &name)?;
    let missing = || ApiError::Status(404, "Branch not found".to_owned());
    let sha = s.branch_tip(&name, branch)?.ok_or_else(missing)?;
    let commit = s
        .store(&name)
        .map(|x| x.commit(&sha))
        .transpose()?
        .flatten()
        .ok_or_else(missing)?;
    let url = s.api(&format!("/repos/{name}/branches/{branch}"));
    Ok(Answer::ok(&json!({
        "name": branch, "commit": s.commit_json(&name, &sha, &commit),
        "_links": {"self": url, "html": s.web(&format!("/{name}/tree/{branch}"))}, "protected": false,
        "protection": {"enabled": false, "required_status_checks": {"enforcement_level": "off", "contexts": [], "checks": []}},
        "protection_url": format!("{url}/protection"),
    })))
}

pub(super) fn git_ref(s: &mut State, req: &Req, repo: &str, name: &str) -> Reply {
    let repo = s.permit(req, repo, "contents", Level::Read)?;
    history(s, &repo)?;
    if let Some(branch) = name.strip_prefix("heads/") {
        let sha = s.branch_tip(&repo, branch)?.ok_or(ApiError::NotFound)?;
        return Ok(Answer::ok(&s.ref_json(&repo, branch, &sha)));
    }
    if name.starts_with("pull/") {
        let sha = s.resolve(&repo, name)?.ok_or(ApiError::NotFound)?;
        let mut out = s.ref_json(&repo, name, &sha);
        if let Some(map) = out.as_object_mut() {
            map.insert("ref".to_owned(), format!("refs/{name}").into());
        }
        return Ok(Answer::ok(&out));
    }
    Err(ApiError::NotFound)
}

/// The tree that a tree-ish names.
fn tree_of(s: &mut State, repo: &str, text: &str) -> Result<(String, String), ApiError> {
    if let Some(sha) = s.resolve(repo, text)?
        && let Some(commit) = s.store(repo).map(|x| x.commit(&sha)).transpose()?.flatten()
    {
        return Ok((commit.tree.clone(), sha));
    }
    let store = s.store(repo).ok_or(ApiError::NotFound)?;
    match store.read(text)? {
        Some((Kind::Tree, _)) => Ok((text.to_owned(), text.to_owned())),
        _ => Err(ApiError::NotFound),
    }
}

pub(super) fn tree(s: &mut State, req: &Req, repo: &str, text: &str) -> Reply {
    let name = s.permit(req, repo, "contents", Level::Read)?;
    history(s, &name)?;
    let (tree, shown) = tree_of(s, &name, text)?;
    let store = s.store(&name).ok_or(ApiError::NotFound)?;
    // GitHub lists recursively whatever the parameter's value is.
    let mut entries: Vec<(String, Entry)> = if req.param("recursive").is_some() {
        store.flatten(&tree, TREE_LIMIT + 1)?
    } else {
        store
            .tree(&tree)?
            .ok_or(ApiError::NotFound)?
            .iter()
            .map(|e| (e.name.clone(), e.clone()))
            .collect()
    };
    let truncated = entries.len() > TREE_LIMIT;
    entries.truncate(TREE_LIMIT);
    let mut list = Vec::with_capacity(entries.len());
    for (path, entry) in &entries {
        let size = if matches!(entry.mode, Mode::Tree | Mode::Submodule) {
            None
        } else {
            s.store(&name).map(|x| x.size(&entry.sha)).transpose()?.flatten()
        };
        list.push(s.tree_entry(&name, path, entry, size));
    }
    let url = s.api(&format!("/repos/{name}/git/trees/{shown}"));
    Ok(Answer::ok(
        &json!({"sha": shown, "url": url, "tree": list, "truncated": truncated}),
    ))
}

pub(super) fn blob(s: &mut State, req: &Req, repo: &str, sha: &str) -> Reply {
    let name = s.permit(req, repo, "contents", Level::Read)?;
    history(s, &name)?;
    let Some((Kind::Blob, data)) = s.store(&name).ok_or(ApiError::NotFound)?.read(sha)? else {
        return Err(ApiError::NotFound);
    };
    if req.accepts("raw") {
        return Ok(Answer::bytes(
            "application/vnd.github.raw; charset=utf-8",
            data.to_vec(),
        ));
    }
    Ok(Answer::ok(&s.blob_json(&name, sha, &data)))
}

pub(super) fn contents(s: &mut State, req: &Req, repo: &str, path: &str) -> Reply {
    let name = s.permit(req, repo, "contents", Level::Read)?;
    history(s, &name)?;
    let default = s.repo(&name).map(|r| r.default_branch.clone()).unwrap_or_default();
    let at = req.param("ref").unwrap_or(&default).to_owned();
    let no_commit = || ApiError::Status(404, format!("No commit found for the ref {at}"));
    let commit = s.resolve(&name, &at)?.ok_or_else(no_commit)?;
    let tree = s
        .store(&name)
        .map(|x| x.commit(&commit))
        .transpose()?
        .flatten()
        .ok_or_else(no_commit)?
        .tree
        .clone();
    let store = s.store(&name).ok_or(ApiError::NotFound)?;
    let entry = store.lookup(&tree, path)?.ok_or(ApiError::NotFound)?;
    if entry.mode == Mode::Tree {
        let entries = store.tree(&entry.sha)?.ok_or(ApiError::NotFound)?;
        let mut list: Vec<Value> = Vec::new();
        for e in entries.iter().take(1_000) {
            let full = if path.is_empty() {
                e.name.clone()
            } else {
                format!("{path}/{}", e.name)
            };
            let size = s
                .store(&name)
                .map(|x| x.size(&e.sha))
                .transpose()?
                .flatten()
                .unwrap_or(0);
            list.push(s.directory_entry(&name, &at, &full, e, size));
        }
        if req.accepts("object") {
            let mut out = s.directory_entry(&name, &at, path, &entry, 0);
            if let Some(map) = out.as_object_mut() {
                map.insert("entries".to_owned(), list.into());
            }
            return Ok(Answer::ok(&out));
        }
        return Ok(Answer::ok(&json!(list)));
    }
    let data = match store.read(&entry.sha)? {
        Some((Kind::Blob, data)) => data.to_vec(),
        _ => Vec::new(),
    };
    if data.len() > HUNDRED_MEGABYTES {
        return Err(ApiError::Status(
            403,
            "This API returns blobs up to 100 MB in size. The requested blob is too large to fetch via the API"
                .to_owned(),
        ));
    }
    if req.accepts("raw") {
        return Ok(Answer::bytes("application/vnd.github.raw; charset=utf-8", data));
    }
    Ok(Answer::ok(&s.file_content(&name, &at, path, &entry, &data)))
}

pub(super) fn codeowners_errors(s: &mut State, req: &Req, repo: &str) -> Reply {
    let name = s.permit(req, repo, "contents", Level::Read)?;
    let given = s.repo(&name).and_then(|r| r.codeowners_errors.clone());
    known(given.is_some() || !s.partial, || {
        format!("the CODEOWNERS errors of {name}")
    })?;
    let errors: Vec<Value> = given
        .unwrap_or_default()
        .iter()
        .map(|e| {
            json!({
                "line": e.line, "column": e.column, "kind": e.kind, "source": e.source, "suggestion": e.suggestion,
                "message": e.message, "path": e.path,
            })
        })
        .collect();
    Ok(Answer::ok(&json!({"errors": errors})))
}
