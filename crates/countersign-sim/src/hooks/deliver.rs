//! The task that sends webhooks, one after the other unless more are asked for: ten seconds for an answer, as GitHub gives, and no
//! second try.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::{HOOK_ID, Hooks, Waiting};
use crate::http::client;
use crate::shared::Shared;
use crate::world::faults::FaultSpec;

/// GitHub's own limit.
const TIMEOUT: Duration = Duration::from_secs(10);

struct Job {
    index: usize,
    sink: String,
    event: String,
    guid: String,
    installation: Option<u64>,
    body: Arc<Vec<u8>>,
    secret: String,
    fault: Option<FaultSpec>,
}

/// Sends what waits until the simulator stops.
pub(crate) async fn run(shared: Arc<Shared>) {
    let wake = shared.lock().hooks.wake.clone();
    let mut under_way = JoinSet::new();
    loop {
        let most = shared.lock().hooks.at_once;
        while under_way.len() >= most.max(1) {
            under_way.join_next().await;
        }
        match next(&shared) {
            Some(job) => {
                let shared = Arc::clone(&shared);
                under_way.spawn(async move { send(&shared, job).await });
            }
            None => wake.notified().await,
        }
    }
}

/// Takes the next delivery, with the fault that befalls it.
fn next(shared: &Shared) -> Option<Job> {
    let mut state = shared.lock();
    let state = &mut *state;
    let sink = state.hooks.sink.clone()?;
    loop {
        // Nothing else is coming: what was held back goes now.
        if state.hooks.queue.is_empty() {
            let (_, waiting) = (!state.hooks.held.is_empty()).then(|| state.hooks.held.remove(0))?;
            state.hooks.queue.push_back(waiting);
        }
        let waiting = state.hooks.queue.pop_front()?;
        let delivery = &state.hooks.deliveries[waiting.index];
        let fault = if waiting.judged {
            None
        } else {
            state.faults.webhook(&delivery.event)
        };
        if let Some(count) = fault.as_ref().and_then(|f| f.hold) {
            state.hooks.held.push((
                count.max(1),
                Waiting {
                    judged: true,
                    ..waiting
                },
            ));
            continue;
        }
        if let Some(copies) = fault.as_ref().and_then(|f| f.duplicate) {
            for _ in 1..copies.min(100) {
                state.hooks.queue.push_front(Waiting {
                    judged: true,
                    ..waiting
                });
                state.hooks.pending.send_modify(|n| *n += 1);
            }
        }
        // Those held back come nearer by one.
        for (count, _) in &mut state.hooks.held {
            *count -= 1;
        }
        while let Some(at) = state.hooks.held.iter().position(|(count, _)| *count == 0) {
            let (_, waiting) = state.hooks.held.remove(at);
            state.hooks.queue.push_front(waiting);
        }
        if delivery.redelivery {
            state.hooks.again.remove(&delivery.guid);
        }
        return Some(Job {
            index: waiting.index,
            sink,
            event: delivery.event.clone(),
            guid: delivery.guid.clone(),
            installation: delivery.installation,
            body: delivery.payload.clone(),
            secret: state.hooks.secret.clone(),
            fault,
        });
    }
}

async fn send(shared: &Shared, job: Job) {
    let fault = job.fault.clone().unwrap_or_default();
    if let Some(delay) = fault.delay {
        tokio::time::sleep(delay.0).await;
    }
    let secret = if fault.bad_signature {
        "not the secret"
    } else {
        &job.secret
    };
    let mut headers = vec![
        ("accept".to_owned(), "*/*".to_owned()),
        ("content-type".to_owned(), "application/json".to_owned()),
        ("user-agent".to_owned(), "GitHub-Hookshot/0000000".to_owned()),
        ("x-github-delivery".to_owned(), job.guid.clone()),
        ("x-github-event".to_owned(), job.event.clone()),
        ("x-github-hook-id".to_owned(), HOOK_ID.to_string()),
        (
            "x-github-hook-installation-target-type".to_owned(),
            "integration".to_owned(),
        ),
        (
            "x-github-hook-installation-target-id".to_owned(),
            shared.lock().app.id.to_string(),
        ),
        ("x-hub-signature-256".to_owned(), Hooks::sign(secret, &job.body)),
    ];
    headers.retain(|(_, v)| !v.is_empty());
    let started = Instant::now();
    let outcome = if fault.drop || fault.unrecorded {
        Err("failed to connect to host".to_owned())
    } else if let Some(status) = fault.status {
        // The receiver takes it, or never sees it; either way GitHub records this status.
        if fault.applied {
            let _ = post(&job, &headers).await;
        }
        Ok((status, BTreeMap::new(), String::new()))
    } else {
        post(&job, &headers).await
    };
    let duration = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let mut state = shared.lock();
    let now = state.now();
    let delivery = &mut state.hooks.deliveries[job.index];
    delivery.delivered_at = Some(now);
    delivery.duration = duration;
    delivery.unrecorded = fault.unrecorded;
    match outcome {
        Ok((status, headers, body)) => {
            delivery.status_code = status;
            delivery.status = if (200..300).contains(&status) {
                "OK".to_owned()
            } else {
                format!("Invalid HTTP Response: {status}")
            };
            delivery.response_headers = headers;
            delivery.response = body;
        }
        Err(reason) => {
            // GitHub's own record of a receiver that cannot be reached.
            delivery.status_code = 502;
            delivery.status = reason;
        }
    }
    tracing::debug!(event = %job.event, guid = %job.guid, installation = ?job.installation, "webhook sent");
    state.hooks.pending.send_modify(|n| *n = n.saturating_sub(1));
}

async fn post(job: &Job, headers: &[(String, String)]) -> Result<(u16, BTreeMap<String, String>, String), String> {
    let sent = client::send("POST", &job.sink, headers, job.body.to_vec());
    match tokio::time::timeout(TIMEOUT, sent).await {
        Err(_) => Err("timed out".to_owned()),
        Ok(Err(e)) => Err(format!("failed to connect to host: {e}")),
        Ok(Ok(answer)) => {
            let mut body = String::from_utf8_lossy(&answer.body).into_owned();
            body.truncate(body.floor_char_boundary(2_000));
            Ok((answer.status, answer.headers.into_iter().collect(), body))
        }
    }
}
