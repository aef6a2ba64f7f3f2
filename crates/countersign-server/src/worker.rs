//! Workers: claim, work, finish, in short transactions; wake-up by notification, with a poll as net.

use std::sync::Arc;
use std::time::Duration;

use countersign_github::webhook;
use countersign_store::{
    Backoff, ClaimOptions, DeliveryLease, NewWork, Retry, StoreError, WORK_KIND_PUBLISH, WorkLease,
};
use futures::future::BoxFuture;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::engine::{Engine, JudgeError};
use crate::points;
use crate::route::{Route, route};

/// Kind of work: look at a pull request.
pub const WORK_KIND_JUDGE: &str = "judge";

/// How long a worker sleeps at most when nothing wakes it.
const POLL: Duration = Duration::from_secs(5);
/// Attempts at routing one delivery.
const ROUTE_ATTEMPTS: i32 = 10;
/// Works of one repository at once, so that one cannot starve the others.
const PER_REPOSITORY: usize = 3;

/// Work on one pull request.
#[must_use]
pub fn judge_work(repository: &str, number: u64, settle: Duration) -> NewWork {
    NewWork::on_pull_request(WORK_KIND_JUDGE, repository, i64::try_from(number).unwrap_or(i64::MAX)).after(settle)
}

/// In the payload of a look: what is shown is to be compared with GitHub even where it is what we last wrote.
pub(crate) const REASSERT: &str = "reassert";

/// How long after a foreign change of what we show it is shown again. Whoever writes again at once must not be answered at once,
/// or two programs write as fast as they can.
const REASSERT_AFTER: Duration = Duration::from_secs(2);

/// Work on one pull request of which somebody changed what we show there.
#[must_use]
pub fn reassert_work(repository: &str, number: u64, settle: Duration) -> NewWork {
    judge_work(repository, number, settle).with_payload(serde_json::json!({ REASSERT: true }))
}

/// The work that a route asks for on one of its pull requests.
#[must_use]
pub(crate) fn work_for(repository: &str, number: u64, settle: Duration, reassert: bool) -> NewWork {
    if reassert {
        reassert_work(repository, number, REASSERT_AFTER)
    } else {
        judge_work(repository, number, settle)
    }
}

/// Runs workers until `stop`; what is under way is finished.
pub async fn run(engine: Arc<Engine>, hands: usize, stop: CancellationToken) {
    let mut set = JoinSet::new();
    for _ in 0..hands.max(1) {
        set.spawn(one_hand(Arc::clone(&engine), stop.clone()));
    }
    set.spawn(dispatch(engine, stop));
    while set.join_next().await.is_some() {}
}

async fn one_hand(engine: Arc<Engine>, stop: CancellationToken) {
    let mut wake_ups = engine.store.wake_ups();
    let options = ClaimOptions {
        kinds: vec![WORK_KIND_JUDGE.into(), WORK_KIND_PUBLISH.into()],
        most: 1,
        lease: lease_of(&engine),
        per_repository: PER_REPOSITORY,
    };
    while !stop.is_cancelled() {
        match engine.store.claim_work(&options).await {
            Ok(claimed) => {
                for dead in &claimed.buried {
                    tracing::error!(work.kind = %dead.kind, work.key = %dead.key, "given up after too many attempts; see `countersign doctor`");
                }
                if claimed.leases.is_empty() {
                    pause(&engine, &mut wake_ups, &stop).await;
                }
                for lease in claimed.leases {
                    points::reach("work-claimed");
                    let span = tracing::info_span!("work", work.kind = %lease.kind(), work.key = %lease.key(), attempt = lease.attempt());
                    work(&engine, lease).instrument(span).await;
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot claim work");
                tokio::select! { () = tokio::time::sleep(Duration::from_millis(500)) => {}, () = stop.cancelled() => {} }
            }
        }
    }
}

/// How long a lease lasts unless it is extended.
fn lease_of(engine: &Engine) -> Duration {
    Duration::from_secs(engine.settings.config.server.lease_seconds.max(1))
}

/// Until something is due, somebody calls, or the poll's time is over.
async fn pause(engine: &Engine, wake_ups: &mut countersign_store::WakeUps, stop: &CancellationToken) {
    let due = engine
        .store
        .next_work_in(&[WORK_KIND_JUDGE, WORK_KIND_PUBLISH])
        .await
        .ok()
        .flatten();
    let until = due.unwrap_or(POLL).clamp(Duration::from_millis(20), POLL);
    tokio::select! {
        _ = wake_ups.wait(until) => {}
        () = stop.cancelled() => {}
    }
}

async fn work(engine: &Arc<Engine>, lease: WorkLease) {
    let lease = Arc::new(lease);
    let keeper = lease.keep();
    let result = run_guarded(engine, &lease).await;
    drop(keeper);
    let outcome = match result {
        Ok(()) => return,
        Err(error) => error,
    };
    match outcome {
        // Somebody else has it: what was done here is void, what they do counts.
        JudgeError::Store(StoreError::LeaseLost { .. }) => tracing::info!("the lease was lost; another worker goes on"),
        error => {
            tracing::warn!(%error, "the attempt failed");
            metrics::counter!("countersign_work_failures_total", "kind" => lease.kind().to_owned()).increment(1);
            let retry = error.retry();
            // The task has ended, so this is the last owner; if it were not, the lease would run out.
            let Some(lease) = Arc::into_inner(lease) else { return };
            if let Err(error) = lease.fail(&error.to_string(), &retry).await {
                tracing::warn!(%error, "could not record the failure; the lease will run out");
            }
        }
    }
}

/// A panic in one pull request's work is an error of that work, not of the worker.
async fn run_guarded(engine: &Arc<Engine>, lease: &Arc<WorkLease>) -> Result<(), JudgeError> {
    let task = tokio::spawn(run_one(Arc::clone(engine), Arc::clone(lease)).in_current_span());
    match task.await {
        Ok(result) => result,
        Err(error) => Err(JudgeError::Internal(format!("the work ended by itself: {error}"))),
    }
}

fn run_one(engine: Arc<Engine>, lease: Arc<WorkLease>) -> BoxFuture<'static, Result<(), JudgeError>> {
    Box::pin(async move {
        if lease.kind() == WORK_KIND_PUBLISH {
            engine.publish(&lease).await?;
            engine.store.finish_publishing(&lease).await?;
            points::reach("publishing-finished");
        } else {
            let (changes, next) = engine.judge(&lease).await?;
            engine.store.commit(&lease, &changes, &next).await?;
            points::reach("verdict-committed");
        }
        Ok(())
    })
}

/// Routes deliveries that could not be routed when they came in: those that name a commit.
async fn dispatch(engine: Arc<Engine>, stop: CancellationToken) {
    let mut wake_ups = engine.store.wake_ups();
    while !stop.is_cancelled() {
        match engine.store.claim_deliveries(32, lease_of(&engine)).await {
            Ok(leases) if leases.is_empty() => {
                tokio::select! { _ = wake_ups.wait(POLL) => {}, () = stop.cancelled() => {} }
            }
            Ok(leases) => {
                for lease in leases {
                    if let Err(error) = dispatch_one(&engine, &lease).await {
                        let retry = match &error {
                            JudgeError::Store(_) => Retry::Backoff(Backoff::default()),
                            other => other.retry(),
                        };
                        if let Err(error) = engine
                            .store
                            .fail_delivery(&lease, &error.to_string(), &retry, ROUTE_ATTEMPTS)
                            .await
                        {
                            tracing::warn!(%error, "could not record a failure; the claim will run out");
                        }
                    }
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot claim deliveries");
                tokio::select! { () = tokio::time::sleep(Duration::from_millis(500)) => {}, () = stop.cancelled() => {} }
            }
        }
    }
}

async fn dispatch_one(engine: &Arc<Engine>, lease: &DeliveryLease) -> Result<(), JudgeError> {
    let delivery = lease.delivery();
    let event = match webhook::parse(&delivery.event, &delivery.payload) {
        Ok(event) => event,
        Err(error) => {
            engine.store.ignore_delivery(lease, &error.to_string()).await?;
            return Ok(());
        }
    };
    let policy = delivery
        .repository
        .as_deref()
        .and_then(|name| engine.settings.repository(name))
        .and_then(|entry| engine.policies.get(&entry.policy).ok());
    let own = engine.identity().await?;
    match route(&event, policy.as_ref().map(|policy| &policy.policy), &own) {
        Route::Ignored(reason) => {
            engine.store.ignore_delivery(lease, reason).await?;
        }
        Route::PullRequest {
            repository,
            number,
            reassert,
            ..
        } => {
            engine
                .store
                .finish_delivery(lease, &[work_for(&repository, number, Duration::ZERO, reassert)])
                .await?;
        }
        Route::Commit {
            repository,
            sha,
            mut numbers,
            reassert,
            ..
        } => {
            for known in engine.store.pull_requests_with_head(&repository, &sha).await? {
                numbers.extend(u64::try_from(known.number));
            }
            if let (Ok(name), Ok(commit)) = (repository.parse(), sha.parse()) {
                let client = engine.app.repository(&name).await?;
                for pull in client.pull_requests_for_commit(&commit).await? {
                    if pull.open {
                        numbers.push(pull.number.0);
                    }
                }
            }
            numbers.sort_unstable();
            numbers.dedup();
            let work: Vec<NewWork> = numbers
                .iter()
                .map(|number| work_for(&repository, *number, Duration::ZERO, reassert))
                .collect();
            if work.is_empty() {
                engine
                    .store
                    .ignore_delivery(lease, "no open pull request contains the commit")
                    .await?;
            } else {
                engine.store.finish_delivery(lease, &work).await?;
            }
        }
    }
    Ok(())
}
