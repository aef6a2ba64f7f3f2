//! Deliveries: stored once, with the work they ask for, or refused alone.

use std::time::Duration;

use countersign_store::{Accepted, Backoff, DeliveryStatus, Disposition, Next, RejectionCounter, Retry, StoreError};
use serde_json::json;

use crate::common::{REPOSITORY, claim_one, claims_nothing, delivery, fresh, pass_time, work};

#[tokio::test]
async fn stores_the_body_byte_for_byte() {
    let (_database, store) = fresh().await;
    let mut new = delivery("g-1", Disposition::Pending);
    let long = format!("{{\"body\":\"{}\u{0}é\"}}", "As a reviewer, I sign. ".repeat(2000));
    new.payload = long.clone().into();
    new.headers = json!({"user-agent": "GitHub-Hookshot/1\u{0}"});
    assert_eq!(store.accept_delivery(new).await.unwrap(), Accepted::New);
    let stored = store.delivery("g-1").await.unwrap().unwrap();
    assert_eq!(stored.payload, long.as_bytes());
    assert_eq!(stored.headers, json!({"user-agent": "GitHub-Hookshot/1\u{fffd}"}));
    assert_eq!(stored.status, DeliveryStatus::Pending);
    assert_eq!(
        (stored.repository.as_deref(), stored.pull_request),
        (Some(REPOSITORY), Some(1))
    );
    assert!(store.delivery("g-2").await.unwrap().is_none());
    // It is kept smaller than it is.
    let kept: i64 = sqlx::query_scalar("SELECT length(payload)::bigint FROM deliveries")
        .fetch_one(store.raw_pool())
        .await
        .unwrap();
    assert!(usize::try_from(kept).unwrap() < long.len() / 5);
}

#[tokio::test]
async fn a_redelivery_changes_nothing_and_asks_for_nothing() {
    let (_database, store) = fresh().await;
    let first = delivery("g-1", Disposition::Work(work(1)));
    assert_eq!(store.accept_delivery(first.clone()).await.unwrap(), Accepted::New);
    assert_eq!(store.accept_delivery(first).await.unwrap(), Accepted::Duplicate);
    assert_eq!(
        store.work("verify", "octo/hello#1").await.unwrap().unwrap().requested,
        1
    );
}

#[tokio::test]
async fn one_guid_sent_many_times_at_once_is_new_once() {
    let (_database, store) = fresh().await;
    let sends = (0..40).map(|n| {
        let store = store.clone();
        async move {
            store
                .accept_delivery(delivery(&format!("g-{}", n % 4), Disposition::Work(work(1))))
                .await
                .unwrap()
        }
    });
    let answers = futures::future::join_all(sends).await;
    assert_eq!(answers.iter().filter(|answer| **answer == Accepted::New).count(), 4);
    assert_eq!(
        store.work("verify", "octo/hello#1").await.unwrap().unwrap().requested,
        4
    );
}

#[tokio::test]
async fn two_replicas_store_a_guid_once() {
    let (database, store) = fresh().await;
    let other = database.replica("other").await.unwrap();
    let sends = (0..60).map(|n| {
        let store = if n % 2 == 0 { store.clone() } else { other.clone() };
        // Both get all, in opposite orders.
        let guid = if n % 2 == 0 { n / 2 } else { 29 - n / 2 };
        async move {
            store
                .accept_delivery(delivery(&format!("g-{guid}"), Disposition::Pending))
                .await
        }
    });
    let answers = futures::future::join_all(sends).await;
    let new = answers
        .iter()
        .filter(|answer| matches!(answer, Ok(Accepted::New)))
        .count();
    assert_eq!(new, 30, "{answers:?}");
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
}

#[tokio::test]
async fn a_bad_delivery_is_refused_by_name_and_alone() {
    let (_database, store) = fresh().await;
    let mut bad = delivery("g-bad", Disposition::Pending);
    bad.event = "push\0".to_owned();
    let error = store.accept_delivery(bad).await.unwrap_err();
    assert!(
        matches!(error, StoreError::Invalid { .. }) && error.to_string().contains("event"),
        "{error}"
    );
    let error = store
        .accept_delivery(delivery("", Disposition::Pending))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("GUID"), "{error}");

    // One that only the database can refuse does not take its neighbours along.
    sqlx::query("ALTER TABLE deliveries ADD CHECK (event <> 'poison')")
        .execute(store.raw_pool())
        .await
        .unwrap();
    let sends = (0..20).map(|n| {
        let store = store.clone();
        async move {
            let mut new = delivery(&format!("g-{n}"), Disposition::Pending);
            if n == 7 {
                new.event = "poison".to_owned();
            }
            store.accept_delivery(new).await
        }
    });
    let answers = futures::future::join_all(sends).await;
    for (n, answer) in answers.iter().enumerate() {
        assert_eq!(answer.is_ok(), n != 7, "{n}: {answer:?}");
    }
    assert!(answers[7].as_ref().is_err_and(|error| !error.retryable()));
}

#[tokio::test]
async fn an_ignored_delivery_keeps_its_reason_and_asks_for_nothing() {
    let (_database, store) = fresh().await;
    store
        .accept_delivery(delivery(
            "g-1",
            Disposition::Ignored("a star is no sign-off".to_owned()),
        ))
        .await
        .unwrap();
    store
        .accept_delivery(delivery("g-2", Disposition::Processed))
        .await
        .unwrap();
    let ignored = store.delivery("g-1").await.unwrap().unwrap();
    assert_eq!(ignored.status, DeliveryStatus::Ignored);
    assert_eq!(ignored.ignored_reason.as_deref(), Some("a star is no sign-off"));
    assert_eq!(
        store.delivery("g-2").await.unwrap().unwrap().status,
        DeliveryStatus::Processed
    );
    assert!(store.queue_empty().await.unwrap());
}

#[tokio::test]
async fn deliveries_go_along_with_the_run_that_saw_them() {
    let (_database, store) = fresh().await;
    store
        .accept_delivery(delivery("g-1", Disposition::Work(work(1))))
        .await
        .unwrap();
    store
        .accept_delivery(delivery("g-2", Disposition::Work(work(1))))
        .await
        .unwrap();
    let lease = claim_one(&store, "verify").await;
    let seen: Vec<&str> = lease.deliveries().iter().map(|head| head.guid.as_str()).collect();
    assert_eq!(seen, ["g-1", "g-2"]);
    // This one came too late for that run.
    store
        .accept_delivery(delivery("g-3", Disposition::Work(work(1))))
        .await
        .unwrap();
    assert!(store.finish(&lease, &Next::Done).await.unwrap().again);
    let status = async |guid: &str| store.delivery(guid).await.unwrap().unwrap().status;
    assert_eq!(status("g-1").await, DeliveryStatus::Processed);
    assert_eq!(status("g-2").await, DeliveryStatus::Processed);
    assert_eq!(status("g-3").await, DeliveryStatus::Pending);
    let lease = claim_one(&store, "verify").await;
    assert_eq!(lease.deliveries().len(), 1);
    store.finish(&lease, &Next::Done).await.unwrap();
    assert_eq!(status("g-3").await, DeliveryStatus::Processed);
    assert!(store.queue_empty().await.unwrap());
    assert_eq!(store.counts().await.unwrap().deliveries_pending, 0);
}

#[tokio::test]
async fn a_dispatcher_claims_what_no_work_takes_along() {
    let (_database, store) = fresh().await;
    store
        .accept_delivery(delivery("g-1", Disposition::Pending))
        .await
        .unwrap();
    store
        .accept_delivery(delivery("g-2", Disposition::Work(work(2))))
        .await
        .unwrap();
    let claimed = store.claim_deliveries(10, Duration::from_secs(60)).await.unwrap();
    assert_eq!(claimed.len(), 1);
    assert_eq!(claimed[0].delivery().guid, "g-1");
    // Claimed once; after its claim ran out, again, and the first holder is too late.
    assert!(
        store
            .claim_deliveries(10, Duration::from_secs(60))
            .await
            .unwrap()
            .is_empty()
    );
    assert!(!store.settled().await.unwrap().now);
    pass_time(&store).await;
    let again = store.claim_deliveries(10, Duration::from_secs(60)).await.unwrap();
    assert_eq!(again[0].delivery().attempts, 2);
    assert!(!store.finish_delivery(&claimed[0], &[work(1)]).await.unwrap());
    assert!(store.work("verify", "octo/hello#1").await.unwrap().is_none());
    assert!(store.finish_delivery(&again[0], &[work(1)]).await.unwrap());
    assert_eq!(
        store.work("verify", "octo/hello#1").await.unwrap().unwrap().requested,
        1
    );
    assert_eq!(
        store.delivery("g-1").await.unwrap().unwrap().status,
        DeliveryStatus::Processed
    );
}

#[tokio::test]
async fn a_failing_delivery_is_retried_then_dead_then_revived() {
    let (_database, store) = fresh().await;
    store
        .accept_delivery(delivery("g-1", Disposition::Pending))
        .await
        .unwrap();
    let retry = Retry::Backoff(Backoff::default());
    for attempt in 1..=3 {
        let claimed = store.claim_deliveries(1, Duration::from_secs(60)).await.unwrap();
        let status = store.fail_delivery(&claimed[0], "boom\0", &retry, 3).await.unwrap();
        let expected = if attempt < 3 {
            DeliveryStatus::Pending
        } else {
            DeliveryStatus::Dead
        };
        assert_eq!(status, Some(expected));
        if attempt == 1 {
            // Not due yet: its backoff runs.
            assert!(
                store
                    .claim_deliveries(1, Duration::from_secs(60))
                    .await
                    .unwrap()
                    .is_empty()
            );
            assert!(store.settled().await.unwrap().now);
        }
        pass_time(&store).await;
    }
    let dead = store.dead_deliveries(10).await.unwrap();
    assert_eq!((dead.len(), dead[0].last_error.as_deref()), (1, Some("boom\u{fffd}")));
    assert_eq!(store.counts().await.unwrap().deliveries_dead, 1);
    assert!(store.redo_delivery("g-1").await.unwrap());
    let claimed = store.claim_deliveries(1, Duration::from_secs(60)).await.unwrap();
    assert_eq!(claimed[0].delivery().attempts, 1);
    assert!(store.ignore_delivery(&claimed[0], "known by now").await.unwrap());
    assert!(store.queue_empty().await.unwrap());
}

#[tokio::test]
async fn redoing_a_routed_delivery_asks_for_its_work_again() {
    let (_database, store) = fresh().await;
    store
        .accept_delivery(delivery("g-1", Disposition::Work(work(1))))
        .await
        .unwrap();
    let lease = claim_one(&store, "verify").await;
    store.finish(&lease, &Next::Done).await.unwrap();
    assert!(claims_nothing(&store, "verify").await);
    assert!(store.redo_delivery("g-1").await.unwrap());
    assert!(!store.redo_delivery("g-1").await.unwrap(), "it is pending already");
    let lease = claim_one(&store, "verify").await;
    assert_eq!(lease.deliveries().len(), 1);
}

#[tokio::test]
async fn pruning_spares_the_young_and_the_unfinished() {
    let (_database, store) = fresh().await;
    store
        .accept_delivery(delivery("old-done", Disposition::Processed))
        .await
        .unwrap();
    store
        .accept_delivery(delivery("old-open", Disposition::Pending))
        .await
        .unwrap();
    sqlx::query("UPDATE deliveries SET received_at = now() - interval '30 days'")
        .execute(store.raw_pool())
        .await
        .unwrap();
    store
        .accept_delivery(delivery("young", Disposition::Processed))
        .await
        .unwrap();
    assert_eq!(
        store
            .prune_deliveries(Duration::from_secs(7 * 86_400), 100)
            .await
            .unwrap(),
        1
    );
    let guids = ["old-done", "old-open", "young"].map(str::to_owned);
    assert_eq!(store.known_deliveries(&guids).await.unwrap(), ["old-open", "young"]);
    let pending = store.pending_deliveries(Duration::from_secs(86_400), 10).await.unwrap();
    assert_eq!(pending.len(), 1);
}

#[tokio::test]
async fn refused_requests_are_counted_and_nothing_else() {
    let (_database, store) = fresh().await;
    let counter = RejectionCounter::default();
    counter.count("bad_signature");
    counter.count("bad_signature");
    counter.count("too_large");
    counter.flush(&store).await.unwrap();
    counter.flush(&store).await.unwrap();
    counter.count("bad_signature");
    counter.flush(&store).await.unwrap();
    let counts: Vec<(String, i64)> = store
        .rejected(10)
        .await
        .unwrap()
        .into_iter()
        .map(|(reason, _, count)| (reason, count))
        .collect();
    assert_eq!(counts, [("bad_signature".to_owned(), 3), ("too_large".to_owned(), 1)]);
    // A flush that fails keeps them.
    counter.count("too_large");
    let closed = store.clone();
    closed.close().await;
    assert!(counter.flush(&store).await.is_err_and(|error| error.retryable()));
}
