//! The database goes away and comes back.

use std::time::Duration;

use countersign_store::{Accepted, Disposition, Next};

use crate::common::{PATIENCE, claim_one, delivery, fresh, work};

#[tokio::test]
async fn while_the_database_is_away_deliveries_fail_retryably_and_are_not_half_stored() {
    let (database, store) = fresh().await;
    assert_eq!(
        store
            .accept_delivery(delivery("g-1", Disposition::Work(work(1))))
            .await
            .unwrap(),
        Accepted::New
    );
    database.cut().await.unwrap();
    let sends = (0..30).map(|n| {
        let store = store.clone();
        async move {
            store
                .accept_delivery(delivery(&format!("cut-{n}"), Disposition::Work(work(1))))
                .await
        }
    });
    for answer in futures::future::join_all(sends).await {
        let error = answer.unwrap_err();
        assert!(error.retryable(), "{error:?}");
    }
    assert!(store.ping().await.is_err_and(|error| error.retryable()));
    database.let_in().await.unwrap();
    store.ping().await.unwrap();
    // GitHub sends them again, with the same GUIDs.
    for n in 0..30 {
        let answer = store
            .accept_delivery(delivery(&format!("cut-{n}"), Disposition::Work(work(1))))
            .await
            .unwrap();
        assert_eq!(answer, Accepted::New);
    }
    assert_eq!(
        store.work("verify", "octo/hello#1").await.unwrap().unwrap().requested,
        31
    );
}

#[tokio::test]
async fn a_broken_session_is_replaced_and_the_listener_listens_again() {
    let (database, store) = fresh().await;
    let other = database.replica("other").await.unwrap();
    let mut wake_ups = store.wake_ups();
    assert!(wake_ups.wait(PATIENCE).await);
    wake_ups.arm();
    database.disconnect_all().await.unwrap();
    // It bumps when it is back, for what it did not hear.
    assert!(wake_ups.wait(PATIENCE).await);
    wake_ups.arm();
    let asked = async {
        // The pool may hand out a session whose end it has not noticed yet.
        while let Err(error) = other.request_work(&[work(1)]).await {
            assert!(error.retryable(), "{error:?}");
        }
    };
    tokio::time::timeout(PATIENCE, asked).await.unwrap();
    assert!(wake_ups.wait(PATIENCE).await);
    let lease = claim_one(&store, "verify").await;
    store.finish(&lease, &Next::Done).await.unwrap();
}

#[tokio::test]
async fn a_lease_survives_an_outage_shorter_than_itself() {
    let (database, store) = fresh().await;
    store.request_work(&[work(1)]).await.unwrap();
    let lease = claim_one(&store, "verify").await;
    let keeper = lease.keep();
    database.cut().await.unwrap();
    assert!(lease.heartbeat().await.is_err_and(|error| error.retryable()));
    database.let_in().await.unwrap();
    assert!(!keeper.is_lost());
    let finished = async {
        while let Err(error) = store.finish(&lease, &Next::Done).await {
            assert!(error.retryable(), "{error:?}");
        }
    };
    tokio::time::timeout(PATIENCE, finished).await.unwrap();
    assert!(store.wait_until_settled(Duration::from_secs(1)).await.unwrap().empty);
}
