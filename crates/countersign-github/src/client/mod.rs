//! The App, its installations, and calls in a repository's name.

mod app;
pub(crate) mod hub;
mod repo;
pub(crate) mod thread;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use countersign_core::RepoName;
use serde::de::DeserializeOwned;

use crate::calls::pages::Page;
use crate::calls::{Answer, Call, Tally, join};
use crate::error::GitHubError;
use crate::gather::GatherStats;
use hub::{Hub, Who};

/// The App: cheap to clone, one for a process.
#[derive(Clone)]
pub struct App {
    pub(crate) hub: Arc<Hub>,
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App")
            .field("id", &self.hub.config.app_id)
            .finish_non_exhaustive()
    }
}

/// Calls in the name of the installation that holds one repository: cheap to clone.
#[derive(Clone)]
pub struct RepoClient {
    pub(crate) hub: Arc<Hub>,
    pub(crate) who: Who,
    name: RepoName,
    tally: Arc<Tally>,
}

impl fmt::Debug for RepoClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RepoClient")
            .field("name", &self.name.as_str())
            .finish_non_exhaustive()
    }
}

impl RepoClient {
    /// The repository.
    #[must_use]
    pub fn name(&self) -> &RepoName {
        &self.name
    }

    /// The same client with a count of its own.
    pub(crate) fn counted(&self) -> Self {
        Self {
            tally: Arc::new(Tally::default()),
            ..self.clone()
        }
    }

    /// What was called through this client and its clones since it was counted.
    pub(crate) fn stats(&self) -> GatherStats {
        let tally = &self.tally;
        GatherStats {
            calls: tally.calls.load(Ordering::Relaxed),
            not_modified: tally.not_modified.load(Ordering::Relaxed),
            downloads: tally.downloads.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Another repository, read with the same credentials: public ones only, as GitHub sees to.
    pub(crate) fn other(&self, name: RepoName) -> Self {
        Self { name, ..self.clone() }
    }

    /// A path below the repository's.
    pub(crate) fn path<'a>(&'a self, rest: impl IntoIterator<Item = &'a str>) -> String {
        join(["repos", self.name.as_str()].into_iter().chain(rest))
    }

    pub(crate) async fn send(&self, call: &Call) -> Result<Answer, GitHubError> {
        self.hub.send(&self.who, call, &self.tally).await
    }

    pub(crate) async fn read<T: DeserializeOwned>(&self, call: &Call) -> Result<T, GitHubError> {
        self.send(call).await?.decode(&call.what)
    }

    pub(crate) async fn list<P: Page>(&self, call: &Call) -> Result<Vec<P::Item>, GitHubError> {
        self.hub.list::<P>(&self.who, call, &self.tally).await
    }

    pub(crate) async fn list_up_to<P: Page>(&self, call: &Call, pages: u32) -> Result<Vec<P::Item>, GitHubError> {
        self.hub.list_up_to::<P>(&self.who, call, pages, &self.tally).await
    }
}
