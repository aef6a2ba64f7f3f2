//! The App, its installations, and calls in a repository's name.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use countersign_core::{CommitSha, PrNumber, RepoName};

use crate::config::AppConfig;
use crate::error::GitHubError;
use crate::info::{FailedDelivery, Grants, Identity, PullInfo, Skew, ThreadItem};

/// The App: cheap to clone, one for a process.
#[derive(Debug, Clone)]
pub struct App(Arc<AppConfig>);

/// Calls in the name of the installation that holds one repository: cheap to clone.
#[derive(Debug, Clone)]
pub struct RepoClient {
    #[expect(dead_code)]
    app: App,
    name: RepoName,
}

fn not_yet<T>() -> Result<T, GitHubError> {
    Err(GitHubError::Config("not yet".into()))
}

impl App {
    /// Reads the key. Calls nothing.
    ///
    /// # Errors
    /// [`GitHubError::Config`] when the key or the address is unusable.
    pub fn new(config: AppConfig) -> Result<Self, GitHubError> {
        Ok(Self(Arc::new(config)))
    }

    /// Who the App is; asked once.
    ///
    /// # Errors
    /// [`GitHubError`].
    pub async fn identity(&self) -> Result<Identity, GitHubError> {
        not_yet()
    }

    /// The client of a repository.
    ///
    /// # Errors
    /// [`GitHubError::NotFound`] when the App is not installed there.
    pub async fn repository(&self, _name: &RepoName) -> Result<RepoClient, GitHubError> {
        not_yet()
    }

    /// All repositories that the App is installed on.
    ///
    /// # Errors
    /// [`GitHubError`].
    pub async fn repositories(&self) -> Result<Vec<RepoName>, GitHubError> {
        not_yet()
    }

    /// Forgets where the App is installed; to be called on `installation` events.
    pub fn forget_installations(&self) {}

    /// What the App asks for.
    ///
    /// # Errors
    /// [`GitHubError`].
    pub async fn grants(&self) -> Result<Grants, GitHubError> {
        not_yet()
    }

    /// What was granted for a repository.
    ///
    /// # Errors
    /// [`GitHubError`].
    pub async fn installation_grants(&self, _name: &RepoName) -> Result<Grants, GitHubError> {
        not_yet()
    }

    /// GitHub's clock against ours, once anything was answered.
    #[must_use]
    pub fn skew(&self) -> Option<Skew> {
        None
    }

    /// Deliveries since a time of which no attempt got through.
    ///
    /// # Errors
    /// [`GitHubError`].
    pub async fn failed_deliveries(&self, _since: DateTime<Utc>) -> Result<Vec<FailedDelivery>, GitHubError> {
        not_yet()
    }

    /// Asks GitHub to deliver again.
    ///
    /// # Errors
    /// [`GitHubError`].
    pub async fn redeliver(&self, _id: u64) -> Result<(), GitHubError> {
        not_yet()
    }
}

impl RepoClient {
    /// The repository.
    #[must_use]
    pub fn name(&self) -> &RepoName {
        &self.name
    }

    /// A pull request.
    ///
    /// # Errors
    /// [`GitHubError`].
    pub async fn pull_request(&self, _number: PrNumber) -> Result<PullInfo, GitHubError> {
        not_yet()
    }

    /// All open pull requests.
    ///
    /// # Errors
    /// [`GitHubError`].
    pub async fn list_open_pull_requests(&self) -> Result<Vec<PullInfo>, GitHubError> {
        not_yet()
    }

    /// Every text of a pull request: comments, reviews, inline comments; oldest first.
    ///
    /// # Errors
    /// [`GitHubError`].
    pub async fn thread(&self, _number: PrNumber) -> Result<Vec<ThreadItem>, GitHubError> {
        not_yet()
    }

    /// One comment of a conversation, and the number of its issue or pull request.
    ///
    /// # Errors
    /// [`GitHubError`].
    pub async fn issue_comment(&self, _id: u64) -> Result<(ThreadItem, u64), GitHubError> {
        not_yet()
    }

    /// Pull requests that contain a commit.
    ///
    /// # Errors
    /// [`GitHubError`].
    pub async fn pull_requests_for_commit(&self, _sha: &CommitSha) -> Result<Vec<PullInfo>, GitHubError> {
        not_yet()
    }
}
