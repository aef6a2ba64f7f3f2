//! The checklist template as it was when the sign-off was written.

use chrono::{DateTime, Utc};
use countersign_core::evidence::FileVersion;
use countersign_core::{Cause, CauseKind, CommitSha, Observed};

use crate::calls::Call;
use crate::calls::call::RAW;
use crate::client::RepoClient;
use crate::error::GitHubError;
use crate::wire;

/// The text before the first change that is younger than `since`; absent where there was no such change, or no text before.
///
/// `tip_date` is when the trusted commit was made: where that is older, so is everything in it, and nothing is asked.
pub(crate) async fn previous(
    repo: &RepoClient,
    path: &str,
    trusted: &CommitSha,
    tip_date: Option<DateTime<Utc>>,
    since: DateTime<Utc>,
    max_bytes: u64,
) -> Observed<FileVersion> {
    if tip_date.is_some_and(|date| date <= since) {
        return Observed::Absent;
    }
    let what = format!("earlier versions of {path}");
    let unavailable = |error: &GitHubError| Observed::Unavailable(error.cause(&what));
    let call = Call::get(repo.path(["commits"]), &what)
        .query("path", path)
        .query("sha", trusted)
        .query("per_page", 50);
    let commits: Vec<wire::Commit> = match repo.read(&call).await {
        Ok(commits) => commits,
        Err(error) => return unavailable(&error),
    };
    // Newest first. A commit without a date is taken for old: the grace it would give is a favour, not a right.
    let younger = commits
        .iter()
        .take_while(|commit| commit.committed_at().is_some_and(|date| date > since))
        .last();
    let Some(change) = younger else { return Observed::Absent };
    let (Some(replaced_at), Some(parent)) = (change.committed_at(), change.parents.first()) else {
        return Observed::Absent;
    };
    let cap = usize::try_from(max_bytes).unwrap_or(usize::MAX);
    let call = Call::get(repo.path(["contents", path]), &what)
        .query("ref", &parent.sha)
        .accept(RAW)
        .cap(cap)
        .passing();
    match repo.send(&call).await {
        Ok(answer) => match String::from_utf8(answer.body.to_vec()) {
            Ok(text) => Observed::Present(FileVersion {
                commit: parent.sha.clone(),
                replaced_at,
                text,
            }),
            Err(_) => Observed::Unavailable(Cause::new(CauseKind::Malformed, what, "the text is not UTF-8")),
        },
        Err(GitHubError::NotFound { .. }) => Observed::Absent,
        Err(error) => unavailable(&error),
    }
}
