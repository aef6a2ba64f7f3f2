//! The queue: coalescing, leases, retries, dead letters, turns, wake-ups.

use std::time::Duration;

use chrono::{TimeDelta, Utc};
use countersign_store::{Backoff, ClaimOptions, NewWork, Next, Retry, StoreError};
use serde_json::json;

use crate::common::{PATIENCE, REPOSITORY, claim_one, claims_nothing, expire_leases, fresh, options, pass_time, work};

#[tokio::test]
async fn requests_coalesce_and_lay_their_payloads_over_each_other() {
    let (_database, store) = fresh().await;
    let one = work(1).with_payload(json!({"head": "a", "cause": "push"}));
    let two = work(1).with_payload(json!({"head": "b"}));
    store.request_work(&[one, two]).await.unwrap();
    store
        .request_work(&[work(1).with_payload(json!({"asked": true}))])
        .await
        .unwrap();
    let lease = claim_one(&store, "verify").await;
    assert_eq!(lease.payload(), &json!({"asked": true, "cause": "push", "head": "b"}));
    assert_eq!(
        (lease.repository(), lease.pull_request(), lease.attempt()),
        (REPOSITORY, Some(1), 1)
    );
    assert!(!store.finish(&lease, &Next::Done).await.unwrap().again);
    assert!(claims_nothing(&store, "verify").await);
    let row = store.work("verify", "octo/hello#1").await.unwrap().unwrap();
    assert_eq!((row.requested, row.done), (3, 3));
    // The next round starts with its own payload only.
    store
        .request_work(&[work(1).with_payload(json!({"new": 1}))])
        .await
        .unwrap();
    assert_eq!(claim_one(&store, "verify").await.payload(), &json!({"new": 1}));
}

#[tokio::test]
async fn what_comes_during_a_run_makes_it_run_once_more() {
    let (_database, store) = fresh().await;
    store.request_work(&[work(1)]).await.unwrap();
    let lease = claim_one(&store, "verify").await;
    for _ in 0..5 {
        store.request_work(&[work(1)]).await.unwrap();
    }
    assert!(claims_nothing(&store, "verify").await, "it runs already");
    assert!(store.finish(&lease, &Next::Done).await.unwrap().again);
    let lease = claim_one(&store, "verify").await;
    assert!(!store.finish(&lease, &Next::Done).await.unwrap().again);
    assert!(store.queue_empty().await.unwrap());
}

#[tokio::test]
async fn a_lease_that_ran_out_is_claimed_anew_and_its_holder_can_do_nothing() {
    let (_database, store) = fresh().await;
    store.request_work(&[work(1)]).await.unwrap();
    let old = claim_one(&store, "verify").await;
    let old_lock = old.pr_lock().unwrap();
    assert!(claims_nothing(&store, "verify").await);
    expire_leases(&store).await;
    let new = claim_one(&store, "verify").await;
    assert_eq!((new.attempt(), new.lease_no()), (2, old.lease_no() + 1));

    let lost = |error: StoreError| matches!(error, StoreError::LeaseLost { .. }) && !error.retryable();
    assert!(lost(old.heartbeat().await.unwrap_err()));
    assert!(lost(
        store
            .confirm_lock(&old_lock, Duration::from_secs(60))
            .await
            .unwrap_err()
    ));
    assert!(lost(store.finish(&old, &Next::Done).await.unwrap_err()));
    assert!(lost(old.fail("late", &Retry::Never).await.unwrap_err()));

    // The new holder never noticed.
    new.heartbeat().await.unwrap();
    store
        .confirm_lock(&new.pr_lock().unwrap(), Duration::from_secs(60))
        .await
        .unwrap();
    store.finish(&new, &Next::Done).await.unwrap();
    assert!(
        lost(store.finish(&new, &Next::Done).await.unwrap_err()),
        "finished is finished"
    );
}

#[tokio::test]
async fn a_lease_that_ran_out_but_was_not_taken_may_still_be_used() {
    let (_database, store) = fresh().await;
    store.request_work(&[work(1)]).await.unwrap();
    let lease = claim_one(&store, "verify").await;
    expire_leases(&store).await;
    lease.heartbeat().await.unwrap();
    assert!(
        claims_nothing(&store, "verify").await,
        "the heartbeat made it good again"
    );
    store.finish(&lease, &Next::Done).await.unwrap();
}

#[tokio::test]
async fn a_keeper_extends_the_lease_and_notices_its_loss() {
    let (_database, store) = fresh().await;
    store.request_work(&[work(1)]).await.unwrap();
    let short = ClaimOptions {
        lease: Duration::from_millis(300),
        ..options()
    };
    let lease = store.claim_work(&short).await.unwrap().leases.remove(0);
    let first = store
        .work("verify", "octo/hello#1")
        .await
        .unwrap()
        .unwrap()
        .leased_until
        .unwrap();
    let keeper = lease.keep();
    let extended = async {
        while store
            .work("verify", "octo/hello#1")
            .await
            .unwrap()
            .unwrap()
            .leased_until
            .unwrap()
            <= first
        {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, extended).await.expect("it is extended");
    assert!(!keeper.is_lost());
    sqlx::query("UPDATE work SET lease_no = lease_no + 1")
        .execute(store.raw_pool())
        .await
        .unwrap();
    tokio::time::timeout(PATIENCE, keeper.lost())
        .await
        .expect("the loss is noticed");
    assert!(keeper.is_lost());
}

#[tokio::test]
async fn failures_wait_longer_each_time_and_end_among_the_dead() {
    let (_database, store) = fresh().await;
    let new = NewWork {
        max_attempts: 3,
        ..work(1)
    };
    store.request_work(&[new]).await.unwrap();
    let backoff = Backoff {
        first: Duration::from_secs(100),
        most: Duration::from_secs(100_000),
    };
    let mut waits = Vec::new();
    for attempt in 1..=3 {
        let lease = claim_one(&store, "verify").await;
        assert_eq!((lease.attempt(), lease.is_last_attempt()), (attempt, attempt == 3));
        assert_eq!(lease.last_error().is_some(), attempt > 1);
        let dead = lease
            .fail(&format!("failure {attempt}"), &Retry::Backoff(backoff))
            .await
            .unwrap();
        assert_eq!(dead, attempt == 3);
        let row = store.work("verify", "octo/hello#1").await.unwrap().unwrap();
        waits.push((row.run_at - Utc::now()).num_seconds());
        assert!(claims_nothing(&store, "verify").await);
        pass_time(&store).await;
    }
    assert!(
        (48..=100).contains(&waits[0]) && (98..=200).contains(&waits[1]),
        "{waits:?}"
    );
    let dead = store.dead_work(10).await.unwrap();
    assert_eq!(dead.len(), 1);
    assert_eq!(
        (dead[0].attempts, dead[0].last_error.as_deref()),
        (3, Some("failure 3"))
    );
    assert!(
        store.settled().await.unwrap().empty,
        "the dead do not keep a test waiting"
    );
    assert_eq!(store.counts().await.unwrap().work[0].dead, 1);

    assert!(store.revive_work("verify", "octo/hello#1").await.unwrap());
    assert!(!store.revive_work("verify", "octo/hello#1").await.unwrap());
    let lease = claim_one(&store, "verify").await;
    assert_eq!(lease.attempt(), 1);
    lease.bury("a person says no").await.unwrap();
    // A new event is a new fact.
    store.request_work(&[work(1)]).await.unwrap();
    assert_eq!(claim_one(&store, "verify").await.attempt(), 1);
}

#[tokio::test]
async fn a_run_that_kills_its_process_is_buried_in_the_end() {
    let (_database, store) = fresh().await;
    store
        .request_work(&[
            NewWork {
                max_attempts: 2,
                ..work(1)
            },
            work(2),
        ])
        .await
        .unwrap();
    let claim_all = ClaimOptions { most: 10, ..options() };
    assert_eq!(store.claim_work(&claim_all).await.unwrap().leases.len(), 2);
    expire_leases(&store).await;
    assert_eq!(store.claim_work(&claim_all).await.unwrap().leases.len(), 2);
    expire_leases(&store).await;
    let third = store.claim_work(&claim_all).await.unwrap();
    let keys: Vec<&str> = third.leases.iter().map(|lease| lease.key()).collect();
    assert_eq!(keys, ["octo/hello#2"]);
    assert_eq!(third.buried.len(), 1);
    assert_eq!(third.buried[0].key, "octo/hello#1");
    assert!(third.buried[0].last_error.as_deref().unwrap().contains("died"));
}

#[tokio::test]
async fn a_shutdown_gives_work_back_uncounted() {
    let (_database, store) = fresh().await;
    store.request_work(&[work(1)]).await.unwrap();
    claim_one(&store, "verify").await.release().await.unwrap();
    let lease = claim_one(&store, "verify").await;
    assert_eq!(lease.attempt(), 1);
    assert_eq!(lease.lease_no(), 2);
}

#[tokio::test]
async fn a_rate_limit_is_a_floor_that_no_event_lowers_and_no_attempt() {
    let (_database, store) = fresh().await;
    store.request_work(&[work(1)]).await.unwrap();
    let until = Utc::now() + TimeDelta::hours(1);
    assert!(
        !claim_one(&store, "verify")
            .await
            .fail("rate limit", &Retry::NotBefore(until))
            .await
            .unwrap()
    );
    store.request_work(&[work(1)]).await.unwrap();
    let row = store.work("verify", "octo/hello#1").await.unwrap().unwrap();
    assert_eq!((row.run_at - until).num_milliseconds(), 0);
    assert_eq!(row.attempts, 0);
    assert!(claims_nothing(&store, "verify").await);
    // A backoff is none: an event brings it forward.
    store.request_work(&[work(2)]).await.unwrap();
    claim_one(&store, "verify")
        .await
        .fail("boom", &Retry::After(Duration::from_secs(3600)))
        .await
        .unwrap();
    assert!(claims_nothing(&store, "verify").await);
    store.request_work(&[work(2)]).await.unwrap();
    assert_eq!(claim_one(&store, "verify").await.key(), "octo/hello#2");
}

#[tokio::test]
async fn work_can_look_again_later_and_an_event_brings_it_forward() {
    let (_database, store) = fresh().await;
    store.request_work(&[work(1)]).await.unwrap();
    let lease = claim_one(&store, "verify").await;
    let later = Next::After(Duration::from_secs(3600), json!({"waiting_for": "run 7"}));
    assert!(!store.finish(&lease, &later).await.unwrap().again);
    let settled = store.settled().await.unwrap();
    assert!(settled.now && !settled.empty);
    let wait = settled.next_at.unwrap() - Utc::now();
    assert!((3500..=3600).contains(&wait.num_seconds()), "{wait}");
    let wait = store.next_work_in(&["verify"]).await.unwrap().unwrap();
    assert!((3500..=3600).contains(&wait.as_secs()), "{wait:?}");
    assert_eq!(store.next_work_in(&["other"]).await.unwrap(), None);

    store
        .request_work(&[work(1).with_payload(json!({"event": 1}))])
        .await
        .unwrap();
    assert!(!store.settled().await.unwrap().now);
    let lease = claim_one(&store, "verify").await;
    assert_eq!(lease.payload(), &json!({"waiting_for": "run 7", "event": 1}));
    store.finish(&lease, &Next::Done).await.unwrap();
    assert!(
        store.queue_empty().await.unwrap(),
        "the look that was planned is done too"
    );
}

#[tokio::test]
async fn repositories_take_turns() {
    let (_database, store) = fresh().await;
    let mut wanted: Vec<NewWork> = (1..=50)
        .map(|n| NewWork::on_pull_request("verify", "big/flood", n))
        .collect();
    store.request_work(&wanted).await.unwrap();
    wanted = vec![
        NewWork::on_pull_request("verify", "small/a", 1),
        NewWork::on_pull_request("verify", "small/b", 1),
    ];
    store.request_work(&wanted).await.unwrap();
    let mut served = Vec::new();
    for _ in 0..4 {
        served.push(claim_one(&store, "verify").await.repository().to_owned());
    }
    served.sort();
    assert_eq!(served, ["big/flood", "big/flood", "small/a", "small/b"]);

    // Several at once: one of each, before a second of any.
    store.request_work(&wanted).await.unwrap();
    for sql in
        ["UPDATE work SET done = requested, leased_until = NULL, leased_by = NULL WHERE leased_until IS NOT NULL"]
    {
        sqlx::query(sql).execute(store.raw_pool()).await.unwrap();
    }
    store.request_work(&wanted).await.unwrap();
    let three = store.claim_work(&ClaimOptions { most: 3, ..options() }).await.unwrap();
    let mut repositories: Vec<&str> = three.leases.iter().map(|lease| lease.repository()).collect();
    repositories.sort_unstable();
    assert_eq!(repositories, ["big/flood", "small/a", "small/b"]);
}

#[tokio::test]
async fn one_repository_cannot_take_all_hands() {
    let (_database, store) = fresh().await;
    let wanted: Vec<NewWork> = (1..=10)
        .map(|n| NewWork::on_pull_request("verify", "slow/one", n))
        .collect();
    store.request_work(&wanted).await.unwrap();
    let bounded = ClaimOptions {
        most: 10,
        per_repository: 3,
        ..options()
    };
    let held = store.claim_work(&bounded).await.unwrap().leases;
    assert_eq!(held.len(), 3);
    assert!(store.claim_work(&bounded).await.unwrap().leases.is_empty());
    store
        .request_work(&[NewWork::on_pull_request("verify", "other/one", 1)])
        .await
        .unwrap();
    assert_eq!(
        store.claim_work(&bounded).await.unwrap().leases[0].repository(),
        "other/one"
    );
    store.finish(&held[0], &Next::Done).await.unwrap();
    assert_eq!(store.claim_work(&bounded).await.unwrap().leases.len(), 1);
}

#[tokio::test]
async fn kinds_are_claimed_apart() {
    let (_database, store) = fresh().await;
    store
        .request_work(&[work(1), NewWork::on_repository("reconcile", REPOSITORY)])
        .await
        .unwrap();
    let lease = claim_one(&store, "reconcile").await;
    assert_eq!((lease.key(), lease.pull_request()), (REPOSITORY, None));
    assert!(lease.pr_lock().is_none());
    assert!(claims_nothing(&store, "reconcile").await);
    assert_eq!(claim_one(&store, "verify").await.kind(), "verify");
}

#[tokio::test]
async fn a_request_wakes_a_worker_of_another_replica() {
    let (database, store) = fresh().await;
    let other = database.replica("other").await.unwrap();
    let mut wake_ups = store.wake_ups();
    // The first bump: it listens.
    assert!(wake_ups.wait(PATIENCE).await);
    wake_ups.arm();
    assert!(claims_nothing(&store, "verify").await);
    other.request_work(&[work(1)]).await.unwrap();
    assert!(wake_ups.wait(PATIENCE).await, "woken, not timed out");
    assert_eq!(claim_one(&store, "verify").await.key(), "octo/hello#1");

    // What comes between arming and waiting is not missed, and nothing wakes without a cause.
    wake_ups.arm();
    other.request_work(&[work(2)]).await.unwrap();
    assert!(wake_ups.wait(PATIENCE).await);
    wake_ups.arm();
    assert!(!wake_ups.wait(Duration::from_millis(30)).await);
}

#[tokio::test]
async fn finishing_wakes_whoever_can_run_it_again_and_so_does_giving_back() {
    let (database, store) = fresh().await;
    let other = database.replica("other").await.unwrap();
    store.request_work(&[work(1)]).await.unwrap();
    let lease = claim_one(&store, "verify").await;
    store.request_work(&[work(1)]).await.unwrap();
    let mut wake_ups = other.wake_ups();
    assert!(wake_ups.wait(PATIENCE).await);
    wake_ups.arm();
    store.finish(&lease, &Next::Done).await.unwrap();
    assert!(wake_ups.wait(PATIENCE).await);
    let lease = claim_one(&other, "verify").await;
    wake_ups.arm();
    lease.release().await.unwrap();
    assert!(wake_ups.wait(PATIENCE).await);
}

#[tokio::test]
async fn bad_work_is_refused() {
    let (_database, store) = fresh().await;
    for bad in [
        NewWork {
            kind: String::new(),
            ..work(1)
        },
        NewWork {
            key: "x".repeat(513),
            ..work(1)
        },
        NewWork {
            payload: json!([1]),
            ..work(1)
        },
        NewWork {
            max_attempts: 0,
            ..work(1)
        },
    ] {
        assert!(matches!(
            store.request_work(&[bad]).await.unwrap_err(),
            StoreError::Invalid { .. }
        ));
    }
    assert!(store.queue_empty().await.unwrap());
}
