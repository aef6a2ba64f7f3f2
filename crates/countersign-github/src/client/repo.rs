//! Smaller reads of one repository: pull requests and who they belong to.

use countersign_core::{CommitSha, PrNumber};

use super::RepoClient;
use crate::calls::Call;
use crate::error::GitHubError;
use crate::info::PullInfo;
use crate::wire;

impl RepoClient {
    pub(crate) async fn read_pull(&self, number: PrNumber) -> Result<wire::Pull, GitHubError> {
        let id = number.to_string();
        self.read(&Call::get(
            self.path(["pulls", &id]),
            format!("pull request #{id} of {}", self.name),
        ))
        .await
    }

    /// A pull request.
    ///
    /// # Errors
    /// [`GitHubError`].
    pub async fn pull_request(&self, number: PrNumber) -> Result<PullInfo, GitHubError> {
        self.read_pull(number).await.map(info)
    }

    /// All open pull requests, newest first.
    ///
    /// # Errors
    /// [`GitHubError`].
    pub async fn list_open_pull_requests(&self) -> Result<Vec<PullInfo>, GitHubError> {
        let call =
            Call::get(self.path(["pulls"]), format!("the open pull requests of {}", self.name)).query("state", "open");
        let mut pulls: Vec<PullInfo> = self
            .list::<Vec<wire::Pull>>(&call)
            .await?
            .into_iter()
            .map(info)
            .collect();
        // A page shifts when a pull request is opened or closed meanwhile.
        pulls.sort_by_key(|pull| std::cmp::Reverse(pull.number));
        pulls.dedup_by_key(|pull| pull.number);
        Ok(pulls)
    }

    /// Pull requests that contain a commit. GitHub knows them for forks too, which its events do not name.
    ///
    /// # Errors
    /// [`GitHubError`].
    pub async fn pull_requests_for_commit(&self, sha: &CommitSha) -> Result<Vec<PullInfo>, GitHubError> {
        let call = Call::get(
            self.path(["commits", sha.as_str(), "pulls"]),
            format!("the pull requests with commit {}", sha.short()),
        );
        Ok(self
            .list::<Vec<wire::Pull>>(&call)
            .await?
            .into_iter()
            .map(info)
            .collect())
    }
}

fn info(pull: wire::Pull) -> PullInfo {
    PullInfo {
        number: PrNumber(pull.number),
        open: pull.is_open(),
        merged: pull.is_merged(),
        head_sha: pull.head.sha,
        head_ref: pull.head.name,
        head_repository: pull.head.repo.map(|repository| repository.full_name),
        base_ref: pull.base.name,
        default_branch: pull.base.repo.and_then(|repository| repository.default_branch),
        base_sha: pull.base.sha,
        draft: pull.draft,
        author: pull.user.as_ref().and_then(wire::Account::login),
        title: pull.title,
        labels: pull.labels.into_iter().map(|label| label.name).collect(),
        changed_files: pull.changed_files,
        created_at: pull.created_at,
        updated_at: pull.updated_at,
        url: pull.html_url,
    }
}
