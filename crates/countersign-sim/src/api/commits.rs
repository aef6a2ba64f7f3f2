//! Commits: one by one, compared, and what lies on them.

use serde_json::{Value, json};

use super::content::history;
use super::{Reply, checks};
use crate::http::auth::Level;
use crate::http::message::{Answer, ApiError, Req};
use crate::state::State;

/// The most files of a comparison or a commit that are listed.
const FILES: usize = 300;
/// The most commits of a comparison.
const COMMITS: usize = 250;

pub(super) fn route(s: &mut State, req: &Req, repo: &str, name: &[&str]) -> Reply {
    match name {
        [at @ .., "check-runs"] if !at.is_empty() => checks::of_commit(s, req, repo, &at.join("/")),
        [at @ .., "status"] if !at.is_empty() => checks::combined(s, req, repo, &at.join("/")),
        [at @ .., "statuses"] if !at.is_empty() => checks::statuses(s, req, repo, &at.join("/")),
        [at @ .., "pulls"] if !at.is_empty() => pulls(s, req, repo, &at.join("/")),
        [at @ .., "check-suites" | "comments" | "branches-where-head"] if !at.is_empty() => Err(ApiError::Unserved),
        at => one(s, req, repo, &at.join("/")),
    }
}

/// The commit that a path names, as 422 where there is none, like GitHub.
pub(super) fn find(s: &mut State, repo: &str, text: &str) -> Result<String, ApiError> {
    if let Some(sha) = s.resolve(repo, text)? {
        return Ok(sha);
    }
    // Statuses and runs may lie on commits that the history here no longer has.
    let mentioned = s.repo(repo).is_some_and(|r| {
        r.runs.values().any(|x| x.head_sha == text)
            || r.checks.values().any(|x| x.head_sha == text)
            || r.statuses.iter().any(|x| x.sha == text)
            || r.pulls.values().any(|p| p.head_sha == text || p.base_sha == text)
    });
    if mentioned {
        return Ok(text.to_owned());
    }
    Err(ApiError::Status(422, format!("No commit found for SHA: {text}")))
}

fn one(s: &mut State, req: &Req, repo: &str, text: &str) -> Reply {
    let name = s.permit(req, repo, "contents", Level::Read)?;
    history(s, &name)?;
    let sha = find(s, &name, text)?;
    let missing = || ApiError::Status(422, format!("No commit found for SHA: {text}"));
    let store = s.store(&name).ok_or(ApiError::NotFound)?;
    let commit = store.commit(&sha)?.ok_or_else(missing)?;
    if req.accepts("vnd.github.sha") {
        return Ok(Answer::bytes(
            "application/vnd.github.sha; charset=utf-8",
            sha.into_bytes(),
        ));
    }
    let empty = store.put(crate::git::Kind::Tree, Vec::new());
    let before = match commit.parents.first() {
        Some(parent) => store.commit(parent)?.map_or(empty, |c| c.tree.clone()),
        None => empty,
    };
    let files = store.diff(&before, &commit.tree)?;
    let (additions, deletions) = files
        .iter()
        .fold((0, 0), |(a, d), f| (a + f.additions, d + f.deletions));
    let (part, link) = req.cut(&s.base, &files);
    let part = if req.param("page").is_none() {
        &files[..files.len().min(FILES)]
    } else {
        part
    };
    let list: Vec<Value> = part.iter().map(|f| s.file_json(&name, &sha, f)).collect();
    let mut out = s.commit_json(&name, &sha, &commit);
    if let Some(map) = out.as_object_mut() {
        map.insert(
            "stats".to_owned(),
            json!({"additions": additions, "deletions": deletions, "total": additions + deletions}),
        );
        map.insert("files".to_owned(), list.into());
    }
    Ok(Answer::ok(&out).with("link", link.filter(|_| files.len() > FILES)))
}

pub(super) fn compare(s: &mut State, req: &Req, repo: &str, range: &str) -> Reply {
    let name = s.permit(req, repo, "contents", Level::Read)?;
    history(s, &name)?;
    let (base, head) = range.split_once("...").ok_or(ApiError::NotFound)?;
    // A fork's branch may be named owner:branch.
    let (base, head) = (
        base.rsplit(':').next().unwrap_or(base),
        head.rsplit(':').next().unwrap_or(head),
    );
    let base = s.resolve(&name, base)?.ok_or(ApiError::NotFound)?;
    let head = s.resolve(&name, head)?.ok_or(ApiError::NotFound)?;
    let store = s.store(&name).ok_or(ApiError::NotFound)?;
    let common = store
        .merge_base(&base, &head)?
        .ok_or_else(|| ApiError::Status(404, format!("No common ancestor between {base} and {head}.")))?;
    let ahead = store.between(&base, &head)?;
    let behind = store.between(&head, &base)?;
    let (Some(base_commit), Some(merge_base), Some(head_commit)) =
        (store.commit(&base)?, store.commit(&common)?, store.commit(&head)?)
    else {
        return Err(ApiError::NotFound);
    };
    let files = store.diff(&merge_base.tree, &head_commit.tree)?;
    let mut commits = Vec::new();
    let paged = req.param("page").is_some() || req.param("per_page").is_some();
    let (part, link) = req.cut(&s.base, &ahead);
    // Without paging the newest 250 are shown.
    let part = if paged {
        part
    } else {
        &ahead[ahead.len().saturating_sub(COMMITS)..]
    };
    for sha in part {
        if let Some(c) = s.store(&name).map(|x| x.commit(sha)).transpose()?.flatten() {
            commits.push(s.commit_json(&name, sha, &c));
        }
    }
    let status = match (ahead.is_empty(), behind.is_empty()) {
        (true, true) => "identical",
        (false, true) => "ahead",
        (true, false) => "behind",
        (false, false) => "diverged",
    };
    // Files come with the first page only.
    let (page, _) = req.page();
    let list: Vec<Value> = if page > 1 {
        Vec::new()
    } else {
        files.iter().take(FILES).map(|f| s.file_json(&name, &head, f)).collect()
    };
    let page_url = s.web(&format!("/{name}/compare/{base}...{head}"));
    let out = json!({
        "url": s.api(&format!("/repos/{name}/compare/{base}...{head}")), "html_url": page_url, "permalink_url": page_url,
        "diff_url": format!("{page_url}.diff"), "patch_url": format!("{page_url}.patch"),
        "base_commit": s.commit_json(&name, &base, &base_commit),
        "merge_base_commit": s.commit_json(&name, &common, &merge_base), "status": status, "ahead_by": ahead.len(),
        "behind_by": behind.len(), "total_commits": ahead.len(), "commits": commits, "files": list,
    });
    Ok(Answer::ok(&out).with("link", link.filter(|_| paged)))
}

/// The pull requests that a commit is in, or that it was merged by.
fn pulls(s: &mut State, req: &Req, repo: &str, text: &str) -> Reply {
    let name = s.permit(req, repo, "pull_requests", Level::Read)?;
    let sha = find(s, &name, text)?;
    super::known(s.repo(&name).is_some_and(|r| r.pulls_known), || {
        format!("the pull requests of {name}")
    })?;
    let numbers: Vec<u64> = s
        .repo(&name)
        .map(|r| r.pulls.keys().copied().collect())
        .unwrap_or_default();
    let mut found = Vec::new();
    for number in numbers {
        let direct = s
            .pull(&name, number)
            .is_ok_and(|p| p.head_sha == sha || p.merge_commit.as_deref() == Some(&sha));
        if direct || s.pull_commits(&name, number)?.contains(&sha) {
            found.push(number);
        }
    }
    let (part, link) = req.cut(&s.base, &found);
    let r = s.repo(&name).ok_or(ApiError::NotFound)?;
    let list: Vec<Value> = part
        .iter()
        .filter_map(|n| r.pulls.get(n))
        .map(|p| s.pull_simple(&name, p))
        .collect();
    Ok(Answer::ok(&json!(list)).with("link", link))
}
