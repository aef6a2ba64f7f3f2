//! What workers share: the store, the App, the policies, the clock.

use std::sync::Arc;

use countersign_github::{App, GatherError, GitHubError, Retry as GitHubRetry};
use countersign_policy::LoadError;
use countersign_store::{Retry, Store, StoreError};
use tokio::sync::OnceCell;
use uuid::Uuid;

use crate::clock::Clock;
use crate::config::Settings;
use crate::policies::Policies;
use crate::publish::backoff;
use crate::route::SelfIdentity;

/// Why a look could not be finished. It is tried again; nothing of it was kept.
#[derive(Debug, thiserror::Error)]
pub enum JudgeError {
    /// GitHub.
    #[error("GitHub: {0}")]
    GitHub(#[from] GitHubError),
    /// GitHub, while gathering.
    #[error("gathering: {0}")]
    Gather(#[from] GatherError),
    /// The database.
    #[error("database: {0}")]
    Store(#[from] StoreError),
    /// The policy.
    #[error("policy: {0}")]
    Policy(#[from] LoadError),
    /// Something that cannot happen.
    #[error("internal: {0}")]
    Internal(String),
}

impl JudgeError {
    /// When to try again.
    #[must_use]
    pub fn retry(&self) -> Retry {
        match self {
            Self::GitHub(error) => retry_of(error.retry()),
            Self::Gather(error) => retry_of(error.retry()),
            _ => backoff(),
        }
    }
}

/// GitHub's advice in the store's words. "No" is tried again as well, with growing pauses, until the dead letters: a
/// missing permission or installation may come back.
pub(crate) fn retry_of(retry: GitHubRetry) -> Retry {
    match retry {
        GitHubRetry::At(at) => Retry::NotBefore(at),
        GitHubRetry::No | GitHubRetry::Soon => backoff(),
    }
}

/// See the module.
pub struct Engine {
    /// The database.
    pub store: Store,
    /// GitHub.
    pub app: App,
    /// Configuration.
    pub settings: Settings,
    /// Policies in force.
    pub policies: Policies,
    /// What counts as now.
    pub clock: Clock,
    own: OnceCell<SelfIdentity>,
}

impl Engine {
    /// Puts the parts together. Calls nothing.
    #[must_use]
    pub fn new(store: Store, app: App, settings: Settings, clock: Clock) -> Arc<Self> {
        let policies = Policies::new(settings.config.policies.clone());
        Arc::new(Self {
            store,
            app,
            settings,
            policies,
            clock,
            own: OnceCell::new(),
        })
    }

    /// Who we are on GitHub; asked once.
    ///
    /// # Errors
    /// When GitHub cannot be asked.
    pub async fn identity(&self) -> Result<SelfIdentity, GitHubError> {
        self.own
            .get_or_try_init(|| async {
                let identity = self.app.identity().await?;
                Ok(SelfIdentity {
                    app_id: identity.id,
                    login: identity.bot.to_string(),
                })
            })
            .await
            .cloned()
    }

    /// Who we are, as far as known without asking: enough to route webhooks, which the worker checks again.
    #[must_use]
    pub fn identity_if_known(&self) -> SelfIdentity {
        self.own.get().cloned().unwrap_or_else(|| SelfIdentity {
            app_id: self.settings.app_id,
            login: String::new(),
        })
    }

    /// The page of an evaluation, where pages of its repository are served.
    #[must_use]
    pub fn page(&self, repository: &str, evaluation: Uuid) -> Option<String> {
        let base = self.settings.config.server.public_url.as_deref()?;
        let open = self.settings.repository(repository).is_some_and(|entry| entry.pages);
        open.then(|| format!("{}/evaluations/{evaluation}", base.trim_end_matches('/')))
    }

    /// Where people see a pull request, if the API's address says it.
    #[must_use]
    pub(crate) fn pull_url(&self, repository: &str, number: u64) -> Option<String> {
        let api = self.settings.config.github.api_url.trim_end_matches('/');
        let base = if api == "https://api.github.com" {
            "https://github.com"
        } else {
            api.strip_suffix("/api/v3")
                .filter(|base| base.starts_with("https://"))?
        };
        Some(format!("{base}/{repository}/pull/{number}"))
    }
}
