//! What decides whether a pull request needs a sign-off at all: its changed files, and CODEOWNERS of the target branch's tip
//! (reference guide, section 2.2). Read without a sign-off, before anything else.

use countersign_core::evidence::ChangedFile;
use countersign_core::{Cause, CauseKind, CommitSha, Observed, PrNumber};

use super::pull;
use crate::calls::Call;
use crate::calls::call::RAW;
use crate::client::RepoClient;
use crate::error::GitHubError;
use crate::wire;

/// Largest CODEOWNERS, in bytes: GitHub reads none above 3 MB.
const LARGEST: usize = 3 << 20;

/// The facts, of one moment.
#[derive(Debug)]
pub struct Scope {
    /// The head that was seen before and after.
    pub head: CommitSha,
    /// The changed files, complete or unavailable.
    pub files: Observed<Vec<ChangedFile>>,
    /// CODEOWNERS of the target branch's tip; absent where there is none.
    pub codeowners: Observed<String>,
}

/// Reads the facts. `None`: the pull request changed meanwhile, so they do not belong together.
///
/// # Errors
/// [`GitHubError`] where the pull request or its target branch cannot be read.
pub async fn scope(repo: &RepoClient, number: PrNumber, paths: &[String]) -> Result<Option<Scope>, GitHubError> {
    let before = repo.read_pull(number).await?;
    let files = pull::files(&before, pull::list_files(repo, number).await);
    let branch = &before.base.name;
    let call = Call::get(repo.path(["branches", branch]), format!("target branch {branch}"));
    let tip = repo.read::<wire::Tip>(&call).await?.commit.sha;
    let mut codeowners = Observed::Absent;
    for path in paths {
        codeowners = owners(repo, path, &tip).await;
        if !matches!(codeowners, Observed::Absent) {
            break;
        }
    }
    let after = repo.read_pull(number).await?;
    let same = after.head.sha == before.head.sha && after.base.name == before.base.name;
    Ok(same.then_some(Scope {
        head: after.head.sha,
        files,
        codeowners,
    }))
}

async fn owners(repo: &RepoClient, path: &str, tip: &CommitSha) -> Observed<String> {
    let call = Call::get(repo.path(["contents", path]), path)
        .query("ref", tip)
        .accept(RAW)
        .cap(LARGEST)
        .passing();
    match repo.send(&call).await {
        Ok(answer) => String::from_utf8(answer.body.to_vec()).map_or_else(
            |_| Observed::Unavailable(Cause::new(CauseKind::Malformed, path, "the text is not UTF-8")),
            Observed::Present,
        ),
        Err(GitHubError::NotFound { .. }) => Observed::Absent,
        Err(error) => Observed::Unavailable(error.cause(path)),
    }
}
