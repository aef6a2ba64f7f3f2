//! The pull request itself, its files, its commits, its conversation.

use std::collections::BTreeSet;

use countersign_core::evidence::{ChangeStatus, ChangedFile, Comment, Commit, PullRequest};
use countersign_core::{Cause, CauseKind, CommitSha, Observed, PrNumber};

use crate::calls::Call;
use crate::client::RepoClient;
use crate::error::GitHubError;
use crate::wire;

/// Pages of files: GitHub lists 3,000 and says nothing of the rest.
const FILE_PAGES: u32 = 31;
/// GitHub's bound for the list of files.
const FILES: usize = 3_000;
/// Pages of commits: GitHub lists 250.
const COMMIT_PAGES: u32 = 4;

/// As evidence shows it.
pub(crate) fn pull_request(pull: &wire::Pull) -> PullRequest {
    PullRequest {
        number: PrNumber(pull.number),
        title: pull.title.clone(),
        body: pull.body.clone(),
        author: pull.user.as_ref().and_then(wire::Account::login),
        draft: pull.draft,
        open: pull.is_open(),
        merged: pull.is_merged(),
        base_ref: pull.base.name.clone(),
        head_sha: pull.head.sha.clone(),
        head_ref: pull.head.name.clone(),
        head_repository: pull.head.repo.as_ref().map(|repository| repository.full_name.clone()),
        labels: pull.labels.iter().map(|label| label.name.clone()).collect(),
        url: pull.html_url.clone(),
    }
}

pub(crate) async fn list_files(repo: &RepoClient, number: PrNumber) -> Result<Vec<wire::File>, GitHubError> {
    let id = number.to_string();
    repo.list_up_to::<Vec<wire::File>>(
        &Call::get(
            repo.path(["pulls", &id, "files"]),
            format!("the changed files of #{id}"),
        ),
        FILE_PAGES,
    )
    .await
}

/// The changed files, complete or unavailable. Paths are counted once: a symlink that becomes a file is listed twice.
pub(crate) fn files(pull: &wire::Pull, list: Result<Vec<wire::File>, GitHubError>) -> Observed<Vec<ChangedFile>> {
    let what = format!("the changed files of #{}", pull.number);
    let list = match list {
        Ok(list) => list,
        Err(error) => return Observed::Unavailable(error.cause(what)),
    };
    let distinct: BTreeSet<&str> = list.iter().map(|file| file.filename.as_str()).collect();
    if list.len() >= FILES {
        let why = format!("GitHub lists at most {FILES} of them");
        return Observed::Unavailable(Cause::new(CauseKind::TooLarge, what, why));
    }
    let said = pull.changed_files.unwrap_or_default();
    if distinct.len() as u64 != said {
        let why = format!("GitHub lists {} of {said} files", distinct.len());
        return Observed::Unavailable(Cause::new(CauseKind::TooLarge, what, why));
    }
    Observed::Present(list.into_iter().map(file).collect())
}

fn file(file: wire::File) -> ChangedFile {
    ChangedFile {
        path: file.filename,
        previous_path: file.previous_filename,
        status: match file.status.as_str() {
            "added" => ChangeStatus::Added,
            "removed" => ChangeStatus::Removed,
            "renamed" => ChangeStatus::Renamed,
            "copied" => ChangeStatus::Copied,
            "modified" => ChangeStatus::Modified,
            "unchanged" => ChangeStatus::Unchanged,
            // A word of tomorrow: changed somehow.
            _ => ChangeStatus::Changed,
        },
    }
}

pub(crate) async fn list_commits(repo: &RepoClient, number: PrNumber) -> Result<Vec<wire::Commit>, GitHubError> {
    let id = number.to_string();
    repo.list_up_to::<Vec<wire::Commit>>(
        &Call::get(repo.path(["pulls", &id, "commits"]), format!("the commits of #{id}")),
        COMMIT_PAGES,
    )
    .await
}

/// The commits, complete or unavailable; oldest first, as GitHub lists them.
pub(crate) fn commits(pull: &wire::Pull, list: Result<Vec<wire::Commit>, GitHubError>) -> Observed<Vec<Commit>> {
    let what = format!("the commits of #{}", pull.number);
    let list = match list {
        Ok(list) => list,
        Err(error) => return Observed::Unavailable(error.cause(what)),
    };
    let said = pull.commits.unwrap_or(list.len() as u64);
    if list.len() as u64 != said || (pull.commits.is_none() && list.len() >= 250) {
        let why = format!("GitHub lists {} of {said} commits", list.len());
        return Observed::Unavailable(Cause::new(CauseKind::TooLarge, what, why));
    }
    Observed::Present(
        list.into_iter()
            .map(|commit| Commit {
                committed_at: commit.committed_at(),
                headline: commit.commit.message.lines().next().unwrap_or_default().to_owned(),
                parents: u32::try_from(commit.parents.len()).unwrap_or(u32::MAX),
                sha: commit.sha,
            })
            .collect(),
    )
}

/// Where the pull request parted from its target, if its commits say it: when all of them together have one parent outside,
/// everything before that one is in the target, and nothing after it. With several (the target was merged in, or there
/// are several roots), and with a list that is cut, the commits do not say it.
pub(crate) fn parted(pull: &wire::Pull, list: &[wire::Commit]) -> Option<CommitSha> {
    if list.is_empty() || pull.commits != Some(list.len() as u64) {
        return None;
    }
    let own: BTreeSet<&CommitSha> = list.iter().map(|commit| &commit.sha).collect();
    let outside: BTreeSet<&CommitSha> = list
        .iter()
        .flat_map(|commit| &commit.parents)
        .map(|parent| &parent.sha)
        .filter(|sha| !own.contains(sha))
        .collect();
    let rooted = list.iter().all(|commit| !commit.parents.is_empty());
    match outside.into_iter().collect::<Vec<_>>().as_slice() {
        [one] if rooted => Some((*one).clone()),
        _ => None,
    }
}

/// The conversation, oldest first.
pub(crate) fn comments(list: Vec<wire::Comment>) -> Vec<Comment> {
    list.into_iter()
        .map(|comment| Comment {
            id: comment.id,
            author: comment.user.as_ref().and_then(wire::Account::login),
            author_is_bot: comment.user.as_ref().is_some_and(wire::Account::is_bot),
            association: comment.author_association,
            body: comment.body,
            created_at: comment.created_at,
            updated_at: comment.updated_at,
            url: comment.html_url,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pull(files: u64, commits: u64) -> wire::Pull {
        serde_json::from_value(serde_json::json!({
            "number": 5, "state": "open", "changed_files": files, "commits": commits,
            "head": {"ref": "x", "sha": "0123456789abcdef0123456789abcdef01234567"},
            "base": {"ref": "main", "sha": "0123456789abcdef0123456789abcdef01234567"},
            "created_at": "2026-08-01T00:00:00Z", "updated_at": "2026-08-01T00:00:00Z",
        }))
        .unwrap()
    }

    fn named(name: &str, status: &str) -> wire::File {
        wire::File {
            filename: name.into(),
            previous_filename: None,
            status: status.into(),
            changes: 1,
        }
    }

    #[test]
    fn where_it_parted_is_said_by_its_commits_or_not_at_all() {
        let sha = |n: u32| format!("{n:040x}").parse::<CommitSha>().unwrap();
        let commit = |own: u32, parents: &[u32]| wire::Commit {
            sha: sha(own),
            commit: wire::CommitInner {
                message: String::new(),
                committer: None,
            },
            parents: parents.iter().map(|parent| wire::Named { sha: sha(*parent) }).collect(),
        };
        let line = [commit(2, &[1]), commit(3, &[2]), commit(4, &[3])];
        assert_eq!(parted(&pull(1, 3), &line), Some(sha(1)));
        // A branch of its own, merged within.
        assert_eq!(
            parted(&pull(1, 3), &[commit(2, &[1]), commit(3, &[1]), commit(4, &[2, 3])]),
            Some(sha(1))
        );
        // The target, merged in.
        assert_eq!(parted(&pull(1, 2), &[commit(2, &[1]), commit(4, &[2, 9])]), None);
        assert_eq!(parted(&pull(1, 3), &line[1..]), None);
        assert_eq!(parted(&pull(1, 1), &[commit(2, &[])]), None);
        assert_eq!(parted(&pull(1, 0), &[]), None);
    }

    #[test]
    fn a_list_that_is_cut_is_unavailable() {
        let twice = vec![
            named("link", "removed"),
            named("link", "added"),
            named("b", "a-new-word"),
        ];
        let found = files(&pull(2, 1), Ok(twice.clone()));
        assert_eq!(found.present().map(Vec::len), Some(3));
        assert_eq!(found.present().unwrap()[2].status, ChangeStatus::Changed);
        assert!(
            matches!(files(&pull(3, 1), Ok(twice)), Observed::Unavailable(cause) if cause.kind == CauseKind::TooLarge && cause.why.contains("2 of 3"))
        );
        let many: Vec<_> = (0..3_000).map(|n| named(&n.to_string(), "added")).collect();
        assert!(
            matches!(files(&pull(3_000, 1), Ok(many)), Observed::Unavailable(cause) if cause.kind == CauseKind::TooLarge)
        );
        assert!(
            matches!(commits(&pull(1, 251), Ok(Vec::new())), Observed::Unavailable(cause) if cause.kind == CauseKind::TooLarge)
        );
    }
}
