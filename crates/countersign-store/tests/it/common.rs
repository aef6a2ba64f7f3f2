//! What the tests share.

use std::time::Duration;

use bytes::Bytes;
use countersign_store::testing::TestDatabase;
use countersign_store::{
    BlobKind, Changes, ClaimOptions, DesiredPublication, Disposition, NewDelivery, NewEvaluation, NewWork, Store,
    WorkLease,
};
use serde_json::{Value, json};

pub(crate) const REPOSITORY: &str = "octo/hello";

pub(crate) async fn fresh() -> (TestDatabase, Store) {
    let database = TestDatabase::new().await.unwrap();
    let store = database.store().await.unwrap();
    (database, store)
}

pub(crate) fn work(pull_request: i64) -> NewWork {
    NewWork::on_pull_request("verify", REPOSITORY, pull_request)
}

pub(crate) fn delivery(guid: &str, disposition: Disposition) -> NewDelivery {
    NewDelivery {
        guid: guid.to_owned(),
        event: "issue_comment".to_owned(),
        action: Some("created".to_owned()),
        repository: Some(REPOSITORY.to_owned()),
        pull_request: Some(1),
        headers: json!({"x-github-event": "issue_comment"}),
        payload: Bytes::from_static(br#"{"action":"created"}"#),
        disposition,
    }
}

pub(crate) fn options() -> ClaimOptions {
    ClaimOptions::of(&["verify"])
}

/// Claims the only due piece of work of a kind.
pub(crate) async fn claim_one(store: &Store, kind: &str) -> WorkLease {
    let mut claimed = store.claim_work(&ClaimOptions::of(&[kind])).await.unwrap();
    assert_eq!(claimed.leases.len(), 1, "nothing of {kind} is due");
    claimed.leases.remove(0)
}

pub(crate) async fn claims_nothing(store: &Store, kind: &str) -> bool {
    store
        .claim_work(&ClaimOptions::of(&[kind]))
        .await
        .unwrap()
        .leases
        .is_empty()
}

/// Lets every lease run out, as time would.
pub(crate) async fn expire_leases(store: &Store) {
    sqlx::query("UPDATE work SET leased_until = now() - interval '1 second' WHERE leased_until IS NOT NULL")
        .execute(store.raw_pool())
        .await
        .unwrap();
}

/// Makes everything scheduled due, as time would.
pub(crate) async fn pass_time(store: &Store) {
    for sql in [
        "UPDATE work SET run_at = now() WHERE run_at > now()",
        "UPDATE publications SET next_attempt_at = now() WHERE next_attempt_at > now()",
        "UPDATE deliveries SET next_attempt_at = now() WHERE next_attempt_at > now()",
    ] {
        sqlx::query(sql).execute(store.raw_pool()).await.unwrap();
    }
}

pub(crate) async fn put_blobs(store: &Store) {
    store
        .put_blob(BlobKind::Evidence, "evidence-1", r#"{"facts":1}"#)
        .await
        .unwrap();
    store
        .put_blob(BlobKind::Policy, "policy-1", "checks: []")
        .await
        .unwrap();
}

pub(crate) fn evaluation(signoff: &str, head: &str, decision: &str) -> NewEvaluation {
    NewEvaluation {
        id: NewEvaluation::fresh_id(),
        signoff: signoff.to_owned(),
        head_sha: head.to_owned(),
        base_sha: "b".repeat(40),
        decision: decision.to_owned(),
        evidence_digest: "evidence-1".to_owned(),
        policy_digest: "policy-1".to_owned(),
        policy_name: "example".to_owned(),
        engine_version: "0.1.0".to_owned(),
        verdict: r#"{"z": 1,  "a": [1.0, "é"]}"#.to_owned(),
        supersedes: None,
    }
}

pub(crate) fn wish(kind: &str, target: &str, desired: Value) -> DesiredPublication {
    DesiredPublication {
        kind: kind.to_owned(),
        target: target.to_owned(),
        desired,
        evaluation: None,
        reassert: false,
    }
}

pub(crate) fn wishes(publications: Vec<DesiredPublication>) -> Changes {
    Changes {
        publications,
        ..Changes::default()
    }
}

/// Far longer than anything here takes; reached only where a test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(240);
