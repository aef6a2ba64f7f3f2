//! Looking for what was lost: deliveries that never reached us, pull requests that changed while nobody listened.
//!
//! Nothing here repairs by guessing: it only asks GitHub to deliver again, or asks for another look. Every repair is
//! counted and logged with its cause.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use countersign_core::RepoName;
use countersign_store::Backoff;
use tokio_util::sync::CancellationToken;

use crate::engine::{Engine, JudgeError};
use crate::worker::judge_work;

/// Events that can lead to work; others need no second delivery.
const EVENTS: &[&str] = &[
    "issue_comment",
    "pull_request",
    "pull_request_review",
    "pull_request_review_comment",
    "workflow_run",
    "status",
];

/// How far back failed deliveries are looked for: GitHub keeps them for three days.
const LOOK_BACK: TimeDelta = TimeDelta::days(3);

/// At start and on a timer.
pub async fn run(engine: Arc<Engine>, stop: CancellationToken) {
    let every = Duration::from_secs(engine.settings.config.server.reconcile_minutes.max(1) * 60);
    while !stop.is_cancelled() {
        if let Err(error) = redeliver(&engine).await {
            tracing::warn!(%error, "could not look for failed deliveries");
        }
        if let Err(error) = reconcile(&engine).await {
            tracing::warn!(%error, "could not reconcile");
        }
        tokio::select! { () = tokio::time::sleep(every) => {}, () = stop.cancelled() => {} }
    }
}

/// Asks GitHub to deliver again what failed and is not stored. Returns how many.
///
/// # Errors
/// [`JudgeError`].
pub async fn redeliver(engine: &Engine) -> Result<usize, JudgeError> {
    let failed = engine.app.failed_deliveries(engine.clock.now() - LOOK_BACK).await?;
    let wanted: Vec<_> = failed
        .into_iter()
        .filter(|delivery| EVENTS.contains(&delivery.event.as_str()))
        .collect();
    let guids: Vec<String> = wanted.iter().map(|delivery| delivery.guid.clone()).collect();
    let known = engine.store.known_deliveries(&guids).await?;
    let mut asked = 0;
    for delivery in wanted.iter().filter(|delivery| !known.contains(&delivery.guid)) {
        match engine.app.redeliver(delivery.id).await {
            Ok(()) => {
                asked += 1;
                tracing::info!(delivery.guid = %delivery.guid, event = %delivery.event, status = delivery.status_code, "asked GitHub to deliver again");
                metrics::counter!("countersign_repairs_total", "cause" => "redelivery").increment(1);
            }
            Err(error) => tracing::warn!(delivery.guid = %delivery.guid, %error, "could not ask for a redelivery"),
        }
    }
    Ok(asked)
}

/// Asks for a look at every open pull request. A repository that fails is left alone for a while, and stops no other.
///
/// # Errors
/// When the App's repositories or the database cannot be read.
pub async fn reconcile(engine: &Engine) -> Result<usize, JudgeError> {
    let now = engine.clock.now();
    let mut asked = 0;
    for repository in engine.app.repositories().await? {
        if engine.settings.repository(repository.as_str()).is_none() {
            continue;
        }
        if engine
            .store
            .repository(repository.as_str())
            .await?
            .and_then(|state| state.quarantined_until)
            .is_some_and(|until| until > now)
        {
            continue;
        }
        match reconcile_one(engine, &repository).await {
            Ok(count) => {
                asked += count;
                engine.store.repository_works(repository.as_str(), true).await?;
            }
            Err(error) => {
                let until = engine
                    .store
                    .quarantine_repository(repository.as_str(), &error.to_string(), Backoff::default())
                    .await?;
                tracing::warn!(repo.name = %repository, %error, %until, "the repository is left alone for a while");
            }
        }
    }
    Ok(asked)
}

async fn reconcile_one(engine: &Engine, repository: &RepoName) -> Result<usize, JudgeError> {
    let client = engine.app.repository(repository).await?;
    let mut work = Vec::new();
    let mut open = std::collections::BTreeSet::new();
    for pull in client.list_open_pull_requests().await? {
        open.insert(pull.number.0);
        let known = engine
            .store
            .pull_request(repository.as_str(), i64::try_from(pull.number.0).unwrap_or(i64::MAX))
            .await?;
        // What did not change since we looked needs no look: GitHub moves `updated_at` with every comment, review and push.
        let changed = known.is_none_or(|known| {
            known.version_at < pull.updated_at || known.head_sha != pull.head_sha.as_str() || !known.open
        });
        if changed {
            tracing::info!(repo.name = %repository, pr.number = pull.number.0, "changed while nobody listened");
            metrics::counter!("countersign_repairs_total", "cause" => "reconcile").increment(1);
            work.push(judge_work(repository.as_str(), pull.number.0, Duration::ZERO));
        }
    }
    // What we hold for open and GitHub does not list any more was closed.
    for known in engine.store.open_pull_requests(repository.as_str(), 10_000).await? {
        if let Ok(number) = u64::try_from(known.number)
            && !open.contains(&number)
        {
            work.push(judge_work(repository.as_str(), number, Duration::ZERO));
        }
    }
    engine.store.request_work(&work).await?;
    Ok(work.len())
}
