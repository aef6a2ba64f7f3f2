//! What the App asks in its own name.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use countersign_core::{Login, RepoName};
use url::Url;

use super::hub::{Hub, Who};
use super::{App, RepoClient};
use crate::calls::pages::{Repositories, relation};
use crate::calls::{Call, Tally, join};
use crate::config::AppConfig;
use crate::error::GitHubError;
use crate::info::{FailedDelivery, Grants, Identity, Skew};
use crate::wire;

/// Pages of deliveries that are looked through at most: GitHub keeps them for three days.
const DELIVERY_PAGES: usize = 200;

impl App {
    /// Reads the key. Calls nothing.
    ///
    /// # Errors
    /// [`GitHubError::Config`] when the key or the address is unusable.
    pub fn new(config: AppConfig) -> Result<Self, GitHubError> {
        Ok(Self {
            hub: Arc::new(Hub::new(config)?),
        })
    }

    async fn read_app(&self) -> Result<wire::App, GitHubError> {
        let call = Call::get(join(["app"]), "the App");
        self.hub
            .send(&Who::App, &call, &Tally::default())
            .await?
            .decode(&call.what)
    }

    /// Who the App is; asked once.
    ///
    /// # Errors
    /// [`GitHubError`].
    pub async fn identity(&self) -> Result<Identity, GitHubError> {
        self.hub.identity().await.cloned()
    }

    /// The client of a repository.
    ///
    /// # Errors
    /// [`GitHubError::NotFound`] when the App is not installed there.
    pub async fn repository(&self, name: &RepoName) -> Result<RepoClient, GitHubError> {
        let installation = self.hub.installation_of(name).await?;
        Ok(RepoClient {
            hub: Arc::clone(&self.hub),
            who: Who::Installation(installation),
            name: name.clone(),
            tally: Arc::default(),
        })
    }

    /// All repositories that the App is installed on, sorted. An installation that is suspended or fails is left out, and
    /// logged: one account's trouble is not another's.
    ///
    /// # Errors
    /// [`GitHubError`] when not even the installations can be listed.
    pub async fn repositories(&self) -> Result<Vec<RepoName>, GitHubError> {
        let tally = Tally::default();
        let call = Call::get(join(["app", "installations"]), "the App's installations");
        let installations = self
            .hub
            .list::<Vec<wire::Installation>>(&Who::App, &call, &tally)
            .await?;
        let mut names = Vec::new();
        for found in installations.into_iter().filter(|found| found.suspended_at.is_none()) {
            let who = Who::Installation(self.hub.installation(found.id));
            let call = Call::get(
                join(["installation", "repositories"]),
                format!("the repositories of installation {}", found.id),
            );
            match self
                .hub
                .list::<Repositories<wire::Repository>>(&who, &call, &tally)
                .await
            {
                Ok(list) => names.extend(list.into_iter().map(|repository| repository.full_name)),
                Err(error) => {
                    tracing::warn!(installation = found.id, %error, "an installation's repositories cannot be listed")
                }
            }
        }
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// Forgets where the App is installed; to be called on `installation` events.
    pub fn forget_installations(&self) {
        self.hub.forget_installations();
    }

    /// What the App asks for, as its settings stand.
    ///
    /// # Errors
    /// [`GitHubError`].
    pub async fn grants(&self) -> Result<Grants, GitHubError> {
        let app = self.read_app().await?;
        Ok(Grants {
            permissions: app.permissions,
            events: app.events,
            suspended: false,
        })
    }

    /// What was granted for a repository; it lags behind the App's settings until an owner accepts them.
    ///
    /// # Errors
    /// [`GitHubError`].
    pub async fn installation_grants(&self, name: &RepoName) -> Result<Grants, GitHubError> {
        let found = self.hub.read_installation(name).await?;
        Ok(Grants {
            permissions: found.permissions,
            events: found.events,
            suspended: found.suspended_at.is_some(),
        })
    }

    /// GitHub's clock against ours, once anything was answered. More than a minute ahead of GitHub, and the App's tokens are refused.
    #[must_use]
    pub fn skew(&self) -> Option<Skew> {
        self.hub.transport.skew().map(|seconds| Skew {
            ahead: TimeDelta::seconds(seconds),
        })
    }

    /// Deliveries since a time of which no attempt got through, oldest first.
    ///
    /// # Errors
    /// [`GitHubError`].
    pub async fn failed_deliveries(&self, since: DateTime<Utc>) -> Result<Vec<FailedDelivery>, GitHubError> {
        let mut attempts: BTreeMap<String, (wire::Delivery, u32, bool)> = BTreeMap::new();
        let mut cursor: Option<String> = None;
        for _ in 0..DELIVERY_PAGES {
            let mut call =
                Call::get(join(["app", "hook", "deliveries"]), "the App's deliveries").query("per_page", 100);
            if let Some(cursor) = &cursor {
                call = call.query("cursor", cursor);
            }
            let answer = self.hub.send(&Who::App, &call, &Tally::default()).await?;
            let page: Vec<wire::Delivery> = answer.decode(&call.what)?;
            let reached = page.is_empty() || page.iter().any(|delivery| delivery.delivered_at < since);
            for delivery in page.into_iter().filter(|delivery| delivery.delivered_at >= since) {
                let through = (200..300).contains(&delivery.status_code);
                let entry = attempts
                    .entry(delivery.guid.clone())
                    .or_insert_with(|| (delivery.clone(), 0, false));
                entry.1 += 1;
                entry.2 |= through;
                if (delivery.delivered_at, delivery.id) > (entry.0.delivered_at, entry.0.id) {
                    entry.0 = delivery;
                }
            }
            cursor = answer.link.as_deref().and_then(next_cursor);
            if reached || cursor.is_none() {
                break;
            }
        }
        let mut failed: Vec<FailedDelivery> = attempts
            .into_values()
            .filter(|(_, _, through)| !through)
            .map(|(newest, attempts, _)| FailedDelivery {
                id: newest.id,
                guid: newest.guid,
                event: newest.event,
                action: newest.action,
                delivered_at: newest.delivered_at,
                status_code: newest.status_code,
                attempts,
                installation_id: newest.installation_id,
                repository_id: newest.repository_id,
            })
            .collect();
        failed.sort_by_key(|delivery| (delivery.delivered_at, delivery.id));
        Ok(failed)
    }

    /// Asks GitHub to deliver again. A second copy is known by its GUID, so asking twice does no harm.
    ///
    /// # Errors
    /// [`GitHubError`].
    pub async fn redeliver(&self, id: u64) -> Result<(), GitHubError> {
        let id = id.to_string();
        let call = Call::post(
            join(["app", "hook", "deliveries", &id, "attempts"]),
            serde_json::json!({}),
            format!("another attempt of delivery {id}"),
        )
        .repeatable();
        self.hub.send(&Who::App, &call, &Tally::default()).await.map(drop)
    }
}

impl Hub {
    pub(crate) async fn identity(&self) -> Result<&Identity, GitHubError> {
        self.identity
            .get_or_try_init(|| async {
                let call = Call::get(join(["app"]), "the App");
                let app: wire::App = self
                    .send(&Who::App, &call, &Tally::default())
                    .await?
                    .decode(&call.what)?;
                let bot: Login = format!("{}[bot]", app.slug).parse().map_err(|_| GitHubError::Decode {
                    what: call.what.clone(),
                    path: "slug".into(),
                    why: "it is no slug".into(),
                })?;
                Ok(Identity {
                    id: app.id,
                    slug: app.slug,
                    bot,
                })
            })
            .await
    }
}

fn next_cursor(link: &str) -> Option<String> {
    let url = Url::parse(relation(link, "next")?).ok()?;
    url.query_pairs()
        .find(|(name, _)| name == "cursor")
        .map(|(_, value)| value.into_owned())
}
