//! Looking for what was lost: deliveries that never reached us, pull requests that changed while nobody listened, work that was
//! given up.
//!
//! Nothing here repairs by guessing: it only asks GitHub to deliver again, or asks for another look. Every repair is
//! counted and logged with its cause.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use countersign_core::RepoName;
use countersign_github::{GitHubError, PullInfo};
use countersign_store::{Backoff, KnownPullRequest, StoreError};
use tokio_util::sync::CancellationToken;

use crate::engine::{Engine, JudgeError};
use crate::worker::{judge_work, reassert_work};

/// Events that can lead to work; others need no second delivery.
const EVENTS: &[&str] = &[
    "issue_comment",
    "pull_request",
    "pull_request_review",
    "pull_request_review_comment",
    "workflow_run",
    "status",
    "check_run",
];

/// How far back failed deliveries are looked for: GitHub keeps them for three days.
const LOOK_BACK: TimeDelta = TimeDelta::days(3);

/// GitHub's dates are whole seconds: a look in the same second as a change, or nearly so, may have come just before it.
const SAME_MOMENT: TimeDelta = TimeDelta::seconds(5);

/// Pull requests of one repository that are looked at again in one pass though nothing seems to have changed.
const RECHECKS: i64 = 200;

/// What was given up is tried again after so long; at start, at once.
const REVIVE_AFTER: TimeDelta = TimeDelta::hours(1);

/// A look that failed is repeated after so long.
const SOON: Duration = Duration::from_secs(20);

/// At most so many given-up works are taken up again at once.
const REVIVED: i64 = 1_000;

/// At start and on a timer; sooner where a look failed, or left a repository out.
pub async fn run(engine: Arc<Engine>, stop: CancellationToken) {
    let every = Duration::from_secs(engine.settings.config.server.reconcile_minutes.max(1) * 60);
    let mut revive_before = Utc::now() + TimeDelta::days(1);
    while !stop.is_cancelled() {
        let mut wait = every;
        if let Err(error) = redeliver(&engine).await {
            tracing::warn!(%error, "could not look for failed deliveries");
            wait = every.min(SOON);
        }
        if let Err(error) = reconcile(&engine).await {
            tracing::warn!(%error, "could not reconcile");
            wait = every.min(SOON);
        }
        if let Err(error) = revive(&engine, revive_before).await {
            tracing::warn!(%error, "could not take up again what was given up");
        }
        if let Ok(Some(until)) = first_released(&engine).await {
            let left = (until - engine.clock.now()).to_std().unwrap_or_default();
            wait = wait.min(left.max(SOON));
        }
        tokio::select! { () = tokio::time::sleep(wait) => {}, () = stop.cancelled() => {} }
        revive_before = Utc::now() - REVIVE_AFTER;
    }
}

/// When the first of the repositories that are left alone is to be looked at again.
async fn first_released(engine: &Engine) -> Result<Option<DateTime<Utc>>, StoreError> {
    let quarantined = engine.store.quarantined_repositories().await?;
    Ok(quarantined.iter().filter_map(|state| state.quarantined_until).min())
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
                repaired("redelivery", 1);
            }
            Err(error) => tracing::warn!(delivery.guid = %delivery.guid, %error, "could not ask for a redelivery"),
        }
    }
    Ok(asked)
}

/// Asks for a look at every open pull request that changed, and at those that were not looked at for long. A repository that fails
/// is left alone for a while, and stops no other.
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
            // No fault of the repository's, and the next one would be told the same.
            Err(error @ JudgeError::GitHub(GitHubError::RateLimited { .. })) => return Err(error),
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
    let listed = client.list_open_pull_requests().await?;
    let numbers: Vec<i64> = listed.iter().map(|pull| number_of(pull.number.0)).collect();
    let known = engine.store.known_pull_requests(repository.as_str(), &numbers).await?;
    let known: BTreeMap<i64, KnownPullRequest> = known.into_iter().map(|known| (known.number, known)).collect();
    let mut work = Vec::new();
    for pull in &listed {
        if known
            .get(&number_of(pull.number.0))
            .is_none_or(|known| changed(known, pull))
        {
            tracing::info!(repo.name = %repository, pr.number = pull.number.0, "changed while nobody listened");
            repaired("reconcile", 1);
            work.push(judge_work(repository.as_str(), pull.number.0, Duration::ZERO));
        }
    }
    // What we hold for open and GitHub does not list any more was closed.
    for gone in known
        .values()
        .filter(|known| known.open && !numbers.contains(&known.number))
    {
        if let Ok(number) = u64::try_from(gone.number) {
            work.push(judge_work(repository.as_str(), number, Duration::ZERO));
        }
    }
    engine.store.request_work(&work).await?;
    let age = Duration::from_secs(engine.settings.config.server.recheck_minutes * 60);
    let rechecked = engine
        .store
        .request_rechecks(repository.as_str(), age, RECHECKS, |number| {
            reassert_work(repository.as_str(), u64::try_from(number).unwrap_or(0), Duration::ZERO)
        })
        .await?;
    Ok(work.len() + rechecked)
}

fn number_of(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Whether a pull request may have changed since we looked: GitHub moves `updated_at` with every comment, review and push.
fn changed(known: &KnownPullRequest, listed: &PullInfo) -> bool {
    !known.open
        || known.head_sha != listed.head_sha.as_str()
        || known.version_at < listed.updated_at
        || known.last_seen_at - listed.updated_at < SAME_MOMENT
}

/// Takes up again what was given up before a moment: its cause may be gone. Returns how many.
///
/// # Errors
/// When the database cannot be asked.
pub async fn revive(engine: &Engine, before: DateTime<Utc>) -> Result<usize, StoreError> {
    let store = &engine.store;
    let mut revived = 0;
    for dead in store
        .dead_work(REVIVED)
        .await?
        .into_iter()
        .filter(|dead| dead.dead_at < before)
    {
        if store.revive_work(&dead.kind, &dead.key).await? {
            tracing::info!(work.kind = %dead.kind, work.key = %dead.key, last_error = dead.last_error, "taken up again");
            revived += 1;
        }
    }
    for failed in store.failed_publications(REVIVED).await? {
        // Folding or answering a comment that is gone stays given up.
        let due = failed.next_attempt_at < before && crate::wishes::is_lasting(&failed.kind);
        if due && store.revive_publication(failed.id).await? {
            tracing::info!(repo.name = %failed.repository, pr.number = failed.pull_request, kind = %failed.kind, last_error = failed.last_error, "taken up again");
            revived += 1;
        }
    }
    for delivery in store
        .dead_deliveries(REVIVED)
        .await?
        .into_iter()
        .filter(|dead| dead.received_at < before)
    {
        if store.redo_delivery(&delivery.guid).await? {
            tracing::info!(delivery.guid = %delivery.guid, last_error = delivery.last_error, "taken up again");
            revived += 1;
        }
    }
    repaired("given up", revived);
    Ok(revived)
}

fn repaired(cause: &'static str, count: usize) {
    metrics::counter!("countersign_repairs_total", "cause" => cause).increment(u64::try_from(count).unwrap_or(0));
}
