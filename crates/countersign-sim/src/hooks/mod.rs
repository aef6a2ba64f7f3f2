//! Webhooks: derived from changes of the state, signed, delivered in order, recorded, delivered again when asked.

pub(crate) mod deliver;

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;

use hmac::{Hmac, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::sync::{Notify, watch};

use crate::shapes::node;
use crate::state::State;
use crate::state::build::made_up_sha;
use crate::state::model::Time;
use crate::world::AppSpec;

/// The id of the App's hook, as `X-GitHub-Hook-ID` has it.
pub(crate) const HOOK_ID: u64 = 700_001;

/// All deliveries, and which of them wait.
#[derive(Debug)]
pub(crate) struct Hooks {
    pub(crate) secret: String,
    events: Option<Vec<String>>,
    /// Where they go; none keeps them waiting.
    pub(crate) sink: Option<String>,
    pub(crate) deliveries: Vec<Delivery>,
    pub(crate) queue: VecDeque<Waiting>,
    /// Deliveries held back by a fault, with how many others go first.
    pub(crate) held: Vec<(u64, Waiting)>,
    pub(crate) wake: Arc<Notify>,
    /// How many wait or are under way.
    pub(crate) pending: watch::Sender<usize>,
    /// How many are sent at once; more than one may overtake each other.
    pub(crate) at_once: usize,
    /// GUIDs of redeliveries that wait: asked for once more, they are not sent once more.
    pub(crate) again: HashSet<String>,
}

/// One delivery that waits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiting {
    /// Its place in `deliveries`.
    pub(crate) index: usize,
    /// Whether faults have been drawn for it.
    pub(crate) judged: bool,
}

/// One delivery, as the App's delivery API shows it.
#[derive(Debug, Clone)]
pub(crate) struct Delivery {
    pub(crate) id: u64,
    pub(crate) guid: String,
    pub(crate) event: String,
    pub(crate) action: Option<String>,
    pub(crate) installation: Option<u64>,
    pub(crate) repository: Option<u64>,
    pub(crate) payload: Arc<Vec<u8>>,
    pub(crate) redelivery: bool,
    /// When it was sent; none while it waits.
    pub(crate) delivered_at: Option<Time>,
    /// The receiver's status; 0 where there was no answer.
    pub(crate) status_code: u16,
    pub(crate) status: String,
    pub(crate) response: String,
    pub(crate) response_headers: BTreeMap<String, String>,
    /// Milliseconds.
    pub(crate) duration: u64,
    /// Left out of the API's list: lost without a trace.
    pub(crate) unrecorded: bool,
}

impl Hooks {
    pub(crate) fn new(app: &AppSpec) -> Self {
        Hooks {
            secret: app.webhook_secret.clone(),
            events: app.events.clone(),
            sink: None,
            deliveries: Vec::new(),
            queue: VecDeque::new(),
            held: Vec::new(),
            wake: Arc::new(Notify::new()),
            pending: watch::Sender::new(0),
            at_once: 1,
            again: HashSet::new(),
        }
    }

    /// Whether the App has subscribed to an event. Those about its own installation always come.
    fn wanted(&self, event: &str) -> bool {
        matches!(
            event,
            "installation" | "installation_repositories" | "ping" | "github_app_authorization"
        ) || self.events.as_ref().is_none_or(|e| e.iter().any(|x| x == event))
    }

    /// Puts a delivery at the end of the queue.
    pub(crate) fn enqueue(&mut self, index: usize) {
        self.queue.push_back(Waiting { index, judged: false });
        self.pending.send_modify(|n| *n += 1);
        self.wake.notify_one();
    }

    /// The value of `X-Hub-Signature-256`.
    pub(crate) fn sign(secret: &str, body: &[u8]) -> String {
        // HMAC takes a key of any length.
        match Hmac::<Sha256>::new_from_slice(secret.as_bytes()) {
            Ok(mut mac) => {
                mac.update(body);
                format!("sha256={}", hex::encode(mac.finalize().into_bytes()))
            }
            Err(_) => String::new(),
        }
    }
}

impl State {
    /// Queues the webhook of something that happened in a repository. Nothing is sent where the App is not installed.
    pub(crate) fn emit(&mut self, repo: &str, sender: &str, event: &str, action: Option<&str>, payload: Value) {
        let Some(r) = self.repo(repo) else { return };
        let (Some(installation), owner, id) = (r.installation, r.owner().to_owned(), r.id) else {
            return;
        };
        if self
            .installations
            .get(&installation)
            .is_none_or(|i| i.suspended || i.deleted)
        {
            return;
        }
        let mut body = json!({});
        if let Some(map) = body.as_object_mut() {
            if let Some(action) = action {
                map.insert("action".to_owned(), action.into());
            }
            if let Value::Object(more) = payload {
                map.extend(more);
            }
            map.insert("repository".to_owned(), self.repo_json(repo));
            if self.org(&owner).is_some() {
                map.insert("organization".to_owned(), self.org_json(&owner));
            }
            map.insert("sender".to_owned(), self.user(sender));
            map.insert(
                "installation".to_owned(),
                json!({"id": installation, "node_id": node("IN", installation)}),
            );
        }
        self.queue_hook(event, action, Some(installation), Some(id), &body);
    }

    /// Queues a webhook with a ready payload.
    pub(crate) fn queue_hook(
        &mut self,
        event: &str,
        action: Option<&str>,
        installation: Option<u64>,
        repository: Option<u64>,
        payload: &Value,
    ) {
        if !self.hooks.wanted(event) {
            return;
        }
        let id = self.fresh_id();
        let delivery = Delivery {
            id,
            guid: guid(id),
            event: event.to_owned(),
            action: action.map(str::to_owned),
            installation,
            repository,
            payload: Arc::new(serde_json::to_vec(payload).unwrap_or_default()),
            redelivery: false,
            delivered_at: None,
            status_code: 0,
            status: "pending".to_owned(),
            response: String::new(),
            response_headers: BTreeMap::new(),
            duration: 0,
            unrecorded: false,
        };
        self.hooks.deliveries.push(delivery);
        self.hooks.enqueue(self.hooks.deliveries.len() - 1);
    }

    /// Queues the same delivery once more: same GUID, new id.
    pub(crate) fn redeliver(&mut self, id: u64) -> bool {
        // Ids grow.
        let deliveries = &self.hooks.deliveries;
        let found = deliveries.binary_search_by_key(&id, |d| d.id).ok();
        let Some(old) = found
            .and_then(|at| deliveries.get(at))
            .filter(|d| d.delivered_at.is_some())
        else {
            return false;
        };
        let again = Delivery {
            id: 0,
            redelivery: true,
            delivered_at: None,
            status_code: 0,
            status: "pending".to_owned(),
            response: String::new(),
            response_headers: BTreeMap::new(),
            duration: 0,
            unrecorded: false,
            ..old.clone()
        };
        if !self.hooks.again.insert(again.guid.clone()) {
            return true;
        }
        let id = self.fresh_id();
        self.hooks.deliveries.push(Delivery { id, ..again });
        self.hooks.enqueue(self.hooks.deliveries.len() - 1);
        true
    }

    fn org_json(&self, login: &str) -> Value {
        let id = self.user_id(login);
        let url = self.api(&format!("/orgs/{login}"));
        json!({
            "login": login, "id": id, "node_id": node("O", id), "url": url, "repos_url": format!("{url}/repos"),
            "events_url": format!("{url}/events"), "hooks_url": format!("{url}/hooks"), "issues_url": format!("{url}/issues"),
            "members_url": format!("{url}/members{{/member}}"), "public_members_url": format!("{url}/public_members{{/member}}"),
            "avatar_url": format!("https://avatars.githubusercontent.com/u/{id}?v=4"), "description": null,
        })
    }
}

/// A GUID that depends on the delivery only, so that two runs of a world send the same.
fn guid(id: u64) -> String {
    let h = made_up_sha(&format!("delivery {id}"));
    format!(
        "{}-{}-1{}-8{}-{}",
        &h[..8],
        &h[8..12],
        &h[13..16],
        &h[17..20],
        &h[20..32]
    )
}
