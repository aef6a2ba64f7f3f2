//! What the tests share: a small world, a policy for it, an App on the simulator with a clock that never sleeps.
#![allow(dead_code, reason = "each test file uses a part")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign_core::{Evidence, RepoName, SignoffKey};
use countersign_github::{App, AppConfig, GatherRequest, GatherStats, Gathered, RepoClient, Time, gather};
use countersign_policy::LoadedPolicy;
use countersign_sim::{Options, Sim, SimHandle, World};

pub(crate) const REPO: &str = "octo-org/bench";
pub(crate) const SIGNOFF: &str = "issuecomment-600";

pub(crate) fn world() -> World {
    World::parse("world.yaml", include_str!("world.yaml")).unwrap()
}

/// The shipped values with another repository's paths, hosts and names.
pub(crate) fn policy() -> LoadedPolicy {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/policies");
    let source = |name: &str| match name {
        "test" => Ok(include_str!("policy.yaml").to_owned()),
        other => std::fs::read_to_string(format!("{folder}/{other}.yaml")).map_err(|error| error.to_string()),
    };
    countersign_policy::load("test", &source).unwrap()
}

/// A simulator, an App on it, and the waits that the App asked for.
pub(crate) struct Bench {
    pub(crate) sim: SimHandle,
    pub(crate) app: App,
    pub(crate) waits: Arc<Mutex<Vec<Duration>>>,
}

impl Bench {
    pub(crate) fn new(world: &World) -> Self {
        Self::with(world, Options::default(), |_| {})
    }

    pub(crate) fn with(world: &World, options: Options, change: impl FnOnce(&mut AppConfig)) -> Self {
        let sim = Sim::start_with(world, options).unwrap();
        let waits = Arc::new(Mutex::new(Vec::new()));
        let app = Self::app(&sim, &waits, change);
        Self { sim, app, waits }
    }

    /// Another App on the same simulator, with empty caches.
    pub(crate) fn fresh(&self) -> App {
        Self::app(&self.sim, &self.waits, |_| {})
    }

    fn app(sim: &SimHandle, waits: &Arc<Mutex<Vec<Duration>>>, change: impl FnOnce(&mut AppConfig)) -> App {
        let mut config = AppConfig::new(
            sim.app_id(),
            sim.app_key_pem().to_owned().into(),
            sim.base_url().parse().unwrap(),
        );
        config
            .archive_hosts
            .push(sim.storage_url().trim_start_matches("http://").to_owned());
        let waits = Arc::clone(waits);
        config.time = Time::new(chrono::Utc::now, move |wait| {
            waits.lock().unwrap().push(wait);
            Box::pin(std::future::ready(()))
        });
        change(&mut config);
        App::new(config).unwrap()
    }

    pub(crate) async fn repo(&self) -> RepoClient {
        self.app.repository(&name(REPO)).await.unwrap()
    }

    /// Paths that were called, with the repository's own part left out.
    pub(crate) fn calls(&self) -> Vec<String> {
        let own = format!("/repos/{REPO}");
        self.sim
            .calls()
            .iter()
            .map(|call| format!("{} {}", call.method, call.path.replace(&own, "")))
            .collect()
    }

    pub(crate) async fn gather(&self) -> Gathered {
        self.gather_with(&policy(), SIGNOFF).await
    }

    pub(crate) async fn gather_with(&self, policy: &LoadedPolicy, signoff: &str) -> Gathered {
        let repo = self.repo().await;
        is_send(gather(&repo, &request(policy, signoff, self.sim.now())))
            .await
            .unwrap()
    }

    pub(crate) async fn evidence(&self) -> (Evidence, GatherStats) {
        evidence(self.gather().await)
    }
}

pub(crate) fn request<'p>(
    policy: &'p LoadedPolicy,
    signoff: &str,
    now: chrono::DateTime<chrono::Utc>,
) -> GatherRequest<'p> {
    GatherRequest {
        pull_request: countersign_core::PrNumber(7),
        signoff: key(signoff),
        policy,
        now,
        head_seen_at: None,
    }
}

pub(crate) fn evidence(gathered: Gathered) -> (Evidence, GatherStats) {
    match gathered {
        Gathered::Evidence { evidence, stats } => (*evidence, stats),
        other => panic!("no evidence: {other:?}"),
    }
}

pub(crate) fn name(text: &str) -> RepoName {
    text.parse().unwrap()
}

pub(crate) fn key(text: &str) -> SignoffKey {
    text.parse().unwrap()
}

/// Servers gather in tasks of their own.
fn is_send<T: Send>(future: T) -> T {
    future
}
