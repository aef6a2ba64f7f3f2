//! What the tests share: the rich world, and a client for it.
#![allow(dead_code, reason = "each test file uses a part")]

use countersign_sim::client::{Answer, send};
use countersign_sim::{Sim, SimHandle, World};
use serde_json::Value;

pub(crate) const REPO: &str = "octo-org/bench";

/// The bundled world with something of everything.
pub(crate) fn rich() -> World {
    World::parse("rich.yaml", include_str!("../../worlds/rich.yaml")).unwrap()
}

pub(crate) fn start(world: &World) -> SimHandle {
    Sim::start(world).unwrap()
}

/// A client of the API, with an installation's token.
pub(crate) struct Client {
    pub(crate) sim: SimHandle,
    pub(crate) token: Option<String>,
}

impl Client {
    pub(crate) fn new(sim: &SimHandle) -> Self {
        let installation = sim.installation_of(REPO).unwrap();
        Client {
            sim: sim.clone(),
            token: Some(sim.mint_token(installation)),
        }
    }

    pub(crate) async fn call(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<Value>) -> Answer {
        self.try_call(method, path, headers, body).await.unwrap()
    }

    pub(crate) async fn try_call(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<Value>,
    ) -> std::io::Result<Answer> {
        let url = if path.starts_with("http") {
            path.to_owned()
        } else {
            format!("{}{path}", self.sim.base_url())
        };
        let mut all: Vec<(String, String)> = headers
            .iter()
            .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
            .collect();
        if let Some(token) = &self.token {
            all.push(("authorization".to_owned(), format!("Bearer {token}")));
        }
        send(
            method,
            &url,
            &all,
            body.map(|b| b.to_string().into_bytes()).unwrap_or_default(),
        )
        .await
    }

    /// A GET below the repository that must succeed.
    pub(crate) async fn get(&self, path: &str) -> Value {
        let answer = self.call("GET", &format!("/repos/{REPO}{path}"), &[], None).await;
        assert_eq!(answer.status, 200, "{path}: {}", String::from_utf8_lossy(&answer.body));
        answer.json()
    }
}
