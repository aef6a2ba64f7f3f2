//! Commits and publications: all or nothing, only by the holder of the lease, the newest wish wins.

use std::time::Duration;

use chrono::{TimeDelta, Utc};
use countersign_store::{
    Backoff, Changes, NewAudit, Next, PublicationState, Published, Retry, Store, StoreError, WORK_KIND_PUBLISH,
    WorkLease,
};
use serde_json::json;

use crate::common::{
    REPOSITORY, claim_one, claims_nothing, evaluation, expire_leases, fresh, pass_time, put_blobs, wish, wishes, work,
};

/// Runs one `verify` that makes these changes.
async fn verify(store: &Store, changes: Changes) -> usize {
    store.request_work(&[work(1)]).await.unwrap();
    let lease = claim_one(store, "verify").await;
    store.commit(&lease, &changes, &Next::Done).await.unwrap().wishes
}

/// Publishes everything due, and answers kind, target and body of what GitHub was told.
async fn publish(store: &Store) -> Vec<(String, String, serde_json::Value)> {
    let lease = claim_one(store, WORK_KIND_PUBLISH).await;
    let lock = lease.pr_lock().unwrap();
    let mut told = Vec::new();
    for due in store.due_publications(&lock).await.unwrap() {
        let begun = store.begin_publication(&lock, &due).await.unwrap().unwrap();
        let published = Published {
            remote_id: Some("77".to_owned()),
            remote_url: Some("https://example.org/77".to_owned()),
        };
        let state = store.publication_done(&lock, &begun, &published).await.unwrap();
        assert_eq!(state, PublicationState::Done);
        told.push((begun.kind, begun.target, begun.desired));
    }
    store.finish_publishing(&lease).await.unwrap();
    told
}

#[tokio::test]
async fn a_commit_keeps_everything_and_finishes_in_one_go() {
    let (_database, store) = fresh().await;
    put_blobs(&store).await;
    let kept = evaluation("issuecomment-1", "head", "PASS");
    let audit = NewAudit {
        actor: "countersign".to_owned(),
        action: "verdict".to_owned(),
        repository: Some(REPOSITORY.to_owned()),
        pull_request: Some(1),
        evaluation: Some(kept.id),
        message: "PASS for issuecomment-1".to_owned(),
        detail: json!({}),
    };
    let changes = Changes {
        evaluations: vec![kept.clone()],
        publications: vec![
            wish("comment", "issuecomment-1", json!({"body": "PASS"})),
            wish("status", "head ctx", json!(1)),
        ],
        audit: vec![audit],
        work: vec![work(2)],
        ..Changes::default()
    };
    assert_eq!(verify(&store, changes).await, 2);
    let found = store
        .latest_evaluation(REPOSITORY, 1, "issuecomment-1", Some("head"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!((found.id, found.verdict.as_str()), (kept.id, kept.verdict.as_str()));
    assert_eq!(store.audit_entries(&Default::default(), 10).await.unwrap().len(), 1);
    assert_eq!(claim_one(&store, "verify").await.key(), "octo/hello#2");
    assert_eq!(store.counts().await.unwrap().publications_pending, 2);
    assert_eq!(publish(&store).await.len(), 2);
    assert_eq!(store.counts().await.unwrap().publications_pending, 0);
    assert!(claims_nothing(&store, WORK_KIND_PUBLISH).await);
}

#[tokio::test]
async fn a_commit_without_the_lease_keeps_nothing() {
    let (_database, store) = fresh().await;
    put_blobs(&store).await;
    store.request_work(&[work(1)]).await.unwrap();
    let old = claim_one(&store, "verify").await;
    let old_lock = old.pr_lock().unwrap();
    expire_leases(&store).await;
    let _new = claim_one(&store, "verify").await;
    let changes = Changes {
        evaluations: vec![evaluation("issuecomment-1", "head", "PASS")],
        publications: vec![wish("comment", "issuecomment-1", json!("PASS"))],
        ..Changes::default()
    };
    assert!(matches!(
        store.commit(&old, &changes, &Next::Done).await,
        Err(StoreError::LeaseLost { .. })
    ));
    assert!(matches!(
        store.apply(&old_lock, &changes).await,
        Err(StoreError::LeaseLost { .. })
    ));
    assert!(store.evaluations(&Default::default(), 10).await.unwrap().is_empty());
    assert!(store.publications(REPOSITORY, 1).await.unwrap().is_empty());
    assert!(claims_nothing(&store, WORK_KIND_PUBLISH).await);
}

#[tokio::test]
async fn a_commit_that_fails_half_way_keeps_nothing_and_the_lease() {
    let (_database, store) = fresh().await;
    store.request_work(&[work(1)]).await.unwrap();
    let lease = claim_one(&store, "verify").await;
    // Its evidence was never stored.
    let changes = Changes {
        publications: vec![wish("comment", "issuecomment-1", json!("PASS"))],
        evaluations: vec![evaluation("issuecomment-1", "head", "PASS")],
        ..Changes::default()
    };
    let error = store.commit(&lease, &changes, &Next::Done).await.unwrap_err();
    assert!(matches!(error, StoreError::MissingBlob { .. }), "{error:?}");
    assert!(store.publications(REPOSITORY, 1).await.unwrap().is_empty());
    put_blobs(&store).await;
    store.commit(&lease, &changes, &Next::Done).await.unwrap();
}

#[tokio::test]
async fn a_crash_before_the_commit_repeats_the_run_and_one_after_it_does_not() {
    let (_database, store) = fresh().await;
    put_blobs(&store).await;
    store.request_work(&[work(1)]).await.unwrap();
    // Killed between claim and commit.
    drop(claim_one(&store, "verify").await);
    expire_leases(&store).await;
    let lease = claim_one(&store, "verify").await;
    let changes = Changes {
        evaluations: vec![evaluation("issuecomment-1", "head", "PASS")],
        publications: vec![wish("comment", "issuecomment-1", json!("PASS"))],
        ..Changes::default()
    };
    store.commit(&lease, &changes, &Next::Done).await.unwrap();
    // Killed right after it: nothing is left to run but publishing.
    drop(lease);
    expire_leases(&store).await;
    assert!(claims_nothing(&store, "verify").await);
    assert_eq!(store.evaluations(&Default::default(), 10).await.unwrap().len(), 1);
    assert_eq!(publish(&store).await.len(), 1);
}

#[tokio::test]
async fn a_newer_wish_takes_the_place_of_a_pending_one() {
    let (_database, store) = fresh().await;
    assert_eq!(
        verify(
            &store,
            wishes(vec![wish("status", "head ctx", json!({"state": "pending"}))])
        )
        .await,
        1
    );
    assert_eq!(
        verify(
            &store,
            wishes(vec![wish("status", "head ctx", json!({"state": "success"}))])
        )
        .await,
        1
    );
    assert_eq!(
        publish(&store).await,
        [("status".to_owned(), "head ctx".to_owned(), json!({"state": "success"}))]
    );
    // The same again: nothing to write. Another: written, with what is known of the last.
    assert_eq!(
        verify(
            &store,
            wishes(vec![wish("status", "head ctx", json!({"state": "success"}))])
        )
        .await,
        0
    );
    assert!(claims_nothing(&store, WORK_KIND_PUBLISH).await);
    assert_eq!(
        verify(
            &store,
            wishes(vec![wish("status", "head ctx", json!({"state": "failure"}))])
        )
        .await,
        1
    );
    let row = store.publications(REPOSITORY, 1).await.unwrap().remove(0);
    assert_eq!(
        (row.state, row.remote_id.as_deref(), row.revision),
        (PublicationState::Pending, Some("77"), 3)
    );
    // And back before it was written: nothing to write either.
    assert_eq!(
        verify(
            &store,
            wishes(vec![wish("status", "head ctx", json!({"state": "success"}))])
        )
        .await,
        0
    );
    let reassert = countersign_store::DesiredPublication {
        reassert: true,
        ..wish("status", "head ctx", json!({"state": "success"}))
    };
    assert_eq!(verify(&store, wishes(vec![reassert])).await, 1);
    assert_eq!(publish(&store).await.len(), 1);
}

#[tokio::test]
async fn an_answer_about_an_older_wish_does_not_settle_the_newer() {
    let (_database, store) = fresh().await;
    verify(&store, wishes(vec![wish("comment", "issuecomment-1", json!("one"))])).await;
    let lease = claim_one(&store, WORK_KIND_PUBLISH).await;
    let lock = lease.pr_lock().unwrap();
    let due = store.due_publications(&lock).await.unwrap().remove(0);
    let begun = store.begin_publication(&lock, &due).await.unwrap().unwrap();
    assert!(!begun.uncertain);
    // A verdict comes while GitHub is asked.
    verify(&store, wishes(vec![wish("comment", "issuecomment-1", json!("two"))])).await;
    assert_eq!(
        store.begin_publication(&lock, &due).await.unwrap(),
        None,
        "it has changed: look again"
    );
    let published = Published {
        remote_id: Some("1".to_owned()),
        remote_url: None,
    };
    assert_eq!(
        store.publication_done(&lock, &begun, &published).await.unwrap(),
        PublicationState::Pending
    );
    assert!(store.finish_publishing(&lease).await.unwrap().again);
    let lease = claim_one(&store, WORK_KIND_PUBLISH).await;
    let due = store
        .due_publications(&lease.pr_lock().unwrap())
        .await
        .unwrap()
        .remove(0);
    assert_eq!(
        (due.desired, due.uncertain, due.remote_id.as_deref()),
        (json!("two"), false, Some("1"))
    );
}

#[tokio::test]
async fn an_attempt_without_an_answer_leaves_a_mark() {
    let (_database, store) = fresh().await;
    verify(&store, wishes(vec![wish("comment", "issuecomment-1", json!("one"))])).await;
    let lease = claim_one(&store, WORK_KIND_PUBLISH).await;
    let lock = lease.pr_lock().unwrap();
    let due = store.due_publications(&lock).await.unwrap().remove(0);
    store.begin_publication(&lock, &due).await.unwrap().unwrap();
    // Killed here: GitHub may have it.
    drop(lease);
    expire_leases(&store).await;
    let lease = claim_one(&store, WORK_KIND_PUBLISH).await;
    assert!(matches!(
        store.publication_done(&lock, &due, &Published::default()).await,
        Err(StoreError::LeaseLost { .. })
    ));
    let lock = lease.pr_lock().unwrap();
    let due = store.due_publications(&lock).await.unwrap().remove(0);
    assert!(due.uncertain);
    let begun = store.begin_publication(&lock, &due).await.unwrap().unwrap();
    assert_eq!((begun.uncertain, begun.attempts), (true, 2));
    // A refusal of this attempt says nothing about the one before.
    let retry = Retry::After(Duration::ZERO);
    store
        .publication_failed(&lock, &begun, "422", &retry, true)
        .await
        .unwrap();
    let due = store.due_publications(&lock).await.unwrap().remove(0);
    assert!(due.uncertain);
    let begun = store.begin_publication(&lock, &due).await.unwrap().unwrap();
    store
        .publication_done(&lock, &begun, &Published::default())
        .await
        .unwrap();
    // A refusal of the first attempt is certain; a 502 is not.
    verify(&store, wishes(vec![wish("comment", "issuecomment-1", json!("two"))])).await;
    for (certain, uncertain) in [(true, false), (false, true)] {
        let due = store.due_publications(&lock).await.unwrap().remove(0);
        assert!(!due.uncertain);
        let begun = store.begin_publication(&lock, &due).await.unwrap().unwrap();
        store
            .publication_failed(&lock, &begun, "no", &retry, certain)
            .await
            .unwrap();
        assert_eq!(store.due_publications(&lock).await.unwrap()[0].uncertain, uncertain);
    }
    // Even the old text is written again then: what is shown is not known.
    assert_eq!(
        verify(&store, wishes(vec![wish("comment", "issuecomment-1", json!("one"))])).await,
        1
    );
}

#[tokio::test]
async fn each_wish_is_retried_apart_and_the_work_waits_for_the_next() {
    let (_database, store) = fresh().await;
    verify(
        &store,
        wishes(vec![wish("comment", "c", json!(1)), wish("status", "s", json!(2))]),
    )
    .await;
    let backoff = Retry::Backoff(Backoff {
        first: Duration::from_secs(100),
        most: Duration::from_secs(1000),
    });
    let lease = claim_one(&store, WORK_KIND_PUBLISH).await;
    let lock = lease.pr_lock().unwrap();
    for due in store.due_publications(&lock).await.unwrap() {
        let begun = store.begin_publication(&lock, &due).await.unwrap().unwrap();
        if begun.kind == "comment" {
            store
                .publication_failed(&lock, &begun, "502", &backoff, false)
                .await
                .unwrap();
        } else {
            store
                .publication_done(&lock, &begun, &Published::default())
                .await
                .unwrap();
        }
    }
    assert!(store.due_publications(&lock).await.unwrap().is_empty());
    assert!(!store.finish_publishing(&lease).await.unwrap().again);
    let settled = store.settled().await.unwrap();
    let wait = (settled.next_at.unwrap() - Utc::now()).num_seconds();
    assert!(settled.now && (48..=100).contains(&wait), "{wait}");
    pass_time(&store).await;
    assert_eq!(publish(&store).await.len(), 1);
    assert!(store.queue_empty().await.unwrap());
}

async fn fail_once(store: &Store, lease: &WorkLease, retry: &Retry) -> PublicationState {
    let lock = lease.pr_lock().unwrap();
    let due = store.due_publications(&lock).await.unwrap().remove(0);
    let begun = store.begin_publication(&lock, &due).await.unwrap().unwrap();
    store
        .publication_failed(&lock, &begun, "no", retry, true)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_wish_is_given_up_in_the_end_and_can_be_revived() {
    let (_database, store) = fresh().await;
    verify(&store, wishes(vec![wish("comment", "c", json!(1))])).await;
    sqlx::query("UPDATE publications SET max_attempts = 3")
        .execute(store.raw_pool())
        .await
        .unwrap();
    let lease = claim_one(&store, WORK_KIND_PUBLISH).await;
    let now = Retry::After(Duration::ZERO);
    // A rate limit costs no attempt.
    let limit = Retry::NotBefore(Utc::now() - TimeDelta::seconds(1));
    assert_eq!(fail_once(&store, &lease, &limit).await, PublicationState::Pending);
    assert_eq!(fail_once(&store, &lease, &now).await, PublicationState::Pending);
    assert_eq!(fail_once(&store, &lease, &now).await, PublicationState::Pending);
    assert_eq!(fail_once(&store, &lease, &now).await, PublicationState::Failed);
    store.finish_publishing(&lease).await.unwrap();
    assert!(store.queue_empty().await.unwrap());
    assert_eq!(store.counts().await.unwrap().publications_failed, 1);
    let failed = store.failed_publications(10).await.unwrap();
    assert!(store.revive_publication(failed[0].id).await.unwrap());
    assert!(!store.revive_publication(failed[0].id).await.unwrap());
    assert_eq!(publish(&store).await.len(), 1);
    // What can never work is given up at once; the same verdict again is a new chance.
    verify(&store, wishes(vec![wish("comment", "c", json!(2))])).await;
    let lease = claim_one(&store, WORK_KIND_PUBLISH).await;
    assert_eq!(fail_once(&store, &lease, &Retry::Never).await, PublicationState::Failed);
    store.finish_publishing(&lease).await.unwrap();
    assert_eq!(verify(&store, wishes(vec![wish("comment", "c", json!(2))])).await, 1);
    assert_eq!(publish(&store).await.len(), 1);
}

#[tokio::test]
async fn a_wish_can_be_taken_back_and_a_lost_thing_forgotten() {
    let (_database, store) = fresh().await;
    verify(
        &store,
        wishes(vec![
            wish("status", "old ctx", json!(1)),
            wish("comment", "c", json!(1)),
        ]),
    )
    .await;
    let changes = Changes {
        superseded: vec![("status".to_owned(), "old ctx".to_owned())],
        ..Changes::default()
    };
    verify(&store, changes).await;
    assert_eq!(publish(&store).await.len(), 1);
    let rows = store.publications(REPOSITORY, 1).await.unwrap();
    assert_eq!(rows[0].state, PublicationState::Superseded);
    // Its comment was deleted on GitHub.
    store.request_work(&[work(1)]).await.unwrap();
    let lease = claim_one(&store, "verify").await;
    store
        .forget_remote(&lease.pr_lock().unwrap(), rows[1].id)
        .await
        .unwrap();
    let again = wishes(vec![wish("comment", "c", json!(1))]);
    assert_eq!(store.commit(&lease, &again, &Next::Done).await.unwrap().wishes, 1);
    assert_eq!(store.publications(REPOSITORY, 1).await.unwrap()[1].remote_id, None);
}

#[tokio::test]
async fn part_of_a_run_is_shown_before_its_end() {
    let (_database, store) = fresh().await;
    store.request_work(&[work(1)]).await.unwrap();
    let lease = claim_one(&store, "verify").await;
    let running = wishes(vec![wish("status", "head ctx", json!("running"))]);
    let lock = lease.pr_lock().unwrap();
    assert_eq!(store.apply(&lock, &running).await.unwrap(), 1);
    // To publish takes the lock for publishing.
    let row = store.publications(REPOSITORY, 1).await.unwrap().remove(0);
    assert!(matches!(
        store.begin_publication(&lock, &row).await,
        Err(StoreError::Invalid { .. })
    ));
    assert_eq!(publish(&store).await.len(), 1);
    let end = wishes(vec![wish("status", "head ctx", json!("pass"))]);
    store.commit(&lease, &end, &Next::Done).await.unwrap();
    assert_eq!(publish(&store).await[0].2, json!("pass"));
}

#[tokio::test(flavor = "multi_thread")]
async fn wishing_and_publishing_at_once_do_not_lock_each_other_out() {
    let (_database, store) = fresh().await;
    store.request_work(&[work(1)]).await.unwrap();
    let judging = claim_one(&store, "verify").await;
    let lock = judging.pr_lock().unwrap();
    let both = |round: u32| {
        wishes(vec![
            wish("status", "head ctx", json!(round)),
            wish("comment", "issuecomment-5/1", json!(round)),
        ])
    };
    store.apply(&lock, &both(0)).await.unwrap();
    let publishing = claim_one(&store, WORK_KIND_PUBLISH).await;
    let publisher = publishing.pr_lock().unwrap();
    let wishing = async {
        for round in 1..150 {
            store.apply(&lock, &both(round)).await.expect("no deadlock");
        }
    };
    let showing = async {
        for _ in 0..150 {
            for due in store.due_publications(&publisher).await.expect("no deadlock") {
                if let Some(begun) = store.begin_publication(&publisher, &due).await.expect("no deadlock") {
                    let done = store.publication_done(&publisher, &begun, &Published::default()).await;
                    done.expect("no deadlock");
                }
            }
        }
    };
    tokio::join!(wishing, showing);
}
