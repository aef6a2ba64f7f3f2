//! What GitHub told us: newest version wins, in whatever order events come.

use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use countersign_store::{
    AuditFilter, Backoff, BlobKind, Changes, EvaluationFilter, NewAudit, NewCommand, NewSignoff, NewWork, Next,
    ObservedRemark, PullRequestChange, PullRequestState, RemarkOutcome, SignoffState, StoreError,
};
use serde_json::json;

use crate::common::{REPOSITORY, claim_one, evaluation, fresh, put_blobs, work};

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_780_000_000, 0).unwrap() + TimeDelta::seconds(seconds)
}

fn pull_request(head: &str, version: i64) -> PullRequestState {
    PullRequestState {
        repository: REPOSITORY.to_owned(),
        number: 1,
        head_sha: head.to_owned(),
        base_ref: "main".to_owned(),
        base_sha: "base".to_owned(),
        draft: false,
        open: true,
        author: "author".to_owned(),
        version_at: at(version),
    }
}

#[tokio::test]
async fn an_older_version_of_a_pull_request_changes_nothing() {
    let (_database, store) = fresh().await;
    let (one, two, three) = (pull_request("a", 10), pull_request("b", 20), pull_request("c", 15));
    assert_eq!(store.observe_pull_request(&one).await.unwrap(), PullRequestChange::New);
    assert_eq!(
        store.observe_pull_request(&two).await.unwrap(),
        PullRequestChange::Updated(one)
    );
    assert_eq!(
        store.observe_pull_request(&three).await.unwrap(),
        PullRequestChange::Stale(two.clone())
    );
    assert_eq!(store.pull_request(REPOSITORY, 1).await.unwrap(), Some(two.clone()));
    // GitHub's clock ticks in seconds: of two versions of one second the later to come counts.
    let same = pull_request("d", 20);
    assert_eq!(
        store.observe_pull_request(&same).await.unwrap(),
        PullRequestChange::Updated(two)
    );
    assert_eq!(
        store.pull_requests_with_head(REPOSITORY, "d").await.unwrap(),
        std::slice::from_ref(&same)
    );
    let closed = PullRequestState {
        open: false,
        version_at: at(30),
        ..same
    };
    store.observe_pull_request(&closed).await.unwrap();
    assert!(store.pull_requests_with_head(REPOSITORY, "d").await.unwrap().is_empty());
    assert!(store.open_pull_requests(REPOSITORY, 10).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_was_not_looked_at_for_long_is_asked_for_once_over_all_replicas() {
    let (_database, store) = fresh().await;
    for number in 1..=3 {
        store
            .observe_pull_request(&PullRequestState {
                number,
                open: number != 3,
                ..pull_request("a", 1)
            })
            .await
            .unwrap();
    }
    let known = store.known_pull_requests(REPOSITORY, &[3, 4]).await.unwrap();
    let known: Vec<(i64, bool)> = known.iter().map(|known| (known.number, known.open)).collect();
    assert_eq!(known, [(1, true), (2, true), (3, false)]);
    let work = |number| NewWork::on_pull_request("judge", REPOSITORY, number);
    let hour = Duration::from_secs(3600);
    assert_eq!(store.request_rechecks(REPOSITORY, hour, 10, work).await.unwrap(), 0);
    assert_eq!(
        store
            .request_rechecks(REPOSITORY, Duration::ZERO, 1, work)
            .await
            .unwrap(),
        1
    );
    assert_eq!(store.request_rechecks(REPOSITORY, hour, 10, work).await.unwrap(), 0);
    let waiting: Vec<String> = store
        .pending_work(10)
        .await
        .unwrap()
        .into_iter()
        .map(|row| row.key)
        .collect();
    assert_eq!(waiting, [format!("{REPOSITORY}#1")]);
    // The one asked for longest ago is next.
    assert_eq!(
        store
            .request_rechecks(REPOSITORY, Duration::ZERO, 1, work)
            .await
            .unwrap(),
        1
    );
    assert_eq!(store.pending_work(10).await.unwrap().len(), 2);
}

fn remark(version: i64, signoff: Option<SignoffState>, commands: &[&str]) -> ObservedRemark {
    ObservedRemark {
        repository: REPOSITORY.to_owned(),
        pull_request: 1,
        source: "issuecomment-5".to_owned(),
        author: "reviewer".to_owned(),
        body_digest: format!("digest-{version}"),
        created_at: at(0),
        version_at: at(version),
        deleted: false,
        signoff: signoff.map(|state| NewSignoff { state, edited_at: None }),
        commands: commands
            .iter()
            .map(|run| NewCommand {
                name: "use".to_owned(),
                arguments: json!({"run": run}),
                association: "MEMBER".to_owned(),
            })
            .collect(),
    }
}

fn deletion(version: i64) -> ObservedRemark {
    ObservedRemark {
        deleted: true,
        ..remark(version, None, &[])
    }
}

#[tokio::test]
async fn a_sign_off_follows_its_comment() {
    let (_database, store) = fresh().await;
    let state = async || {
        store
            .signoffs(REPOSITORY, 1)
            .await
            .unwrap()
            .pop()
            .map(|signoff| signoff.state)
    };
    let counted = Some(SignoffState::Counted);
    assert_eq!(
        store.observe_remark(&remark(1, None, &[])).await.unwrap(),
        RemarkOutcome::Irrelevant
    );
    assert_eq!(
        store.observe_remark(&remark(2, counted, &[])).await.unwrap(),
        RemarkOutcome::Changed
    );
    assert_eq!(
        store.observe_remark(&remark(2, counted, &[])).await.unwrap(),
        RemarkOutcome::Unchanged
    );
    assert_eq!(
        store
            .observe_remark(&remark(4, Some(SignoffState::EditedByOther), &[]))
            .await
            .unwrap(),
        RemarkOutcome::Changed
    );
    assert_eq!(
        store.observe_remark(&remark(3, counted, &[])).await.unwrap(),
        RemarkOutcome::Stale
    );
    assert_eq!(state().await, Some(SignoffState::EditedByOther));
    assert_eq!(
        store.observe_remark(&remark(5, None, &[])).await.unwrap(),
        RemarkOutcome::Changed
    );
    assert_eq!(state().await, Some(SignoffState::Withdrawn));
    assert_eq!(
        store.observe_remark(&deletion(4)).await.unwrap(),
        RemarkOutcome::Changed,
        "gone is gone, whenever it says"
    );
    assert_eq!(
        store.observe_remark(&deletion(6)).await.unwrap(),
        RemarkOutcome::Unchanged
    );
    assert_eq!(
        store.observe_remark(&remark(9, counted, &[])).await.unwrap(),
        RemarkOutcome::Stale
    );
    assert_eq!(state().await, Some(SignoffState::Deleted));
}

#[tokio::test]
async fn a_deletion_that_comes_before_the_creation_wins() {
    let (_database, store) = fresh().await;
    assert_eq!(
        store.observe_remark(&deletion(5)).await.unwrap(),
        RemarkOutcome::Changed
    );
    let late = remark(1, Some(SignoffState::Counted), &["7"]);
    assert_eq!(store.observe_remark(&late).await.unwrap(), RemarkOutcome::Stale);
    assert!(store.signoffs(REPOSITORY, 1).await.unwrap().is_empty());
    assert!(store.commands(REPOSITORY, 1).await.unwrap().is_empty());
    let impossible = ObservedRemark { deleted: true, ..late };
    assert!(matches!(
        store.observe_remark(&impossible).await,
        Err(StoreError::Invalid { .. })
    ));
}

#[tokio::test]
async fn commands_are_kept_without_any_sign_off_and_revoked_with_their_comment() {
    let (_database, store) = fresh().await;
    let live = async || {
        let commands = store.commands(REPOSITORY, 1).await.unwrap();
        commands
            .iter()
            .filter(|c| c.revoked_at.is_none())
            .map(|c| c.arguments["run"].clone())
            .collect::<Vec<_>>()
    };
    store.observe_remark(&remark(1, None, &["7", "8"])).await.unwrap();
    assert_eq!(live().await, [json!("7"), json!("8")]);
    assert!(store.signoffs(REPOSITORY, 1).await.unwrap().is_empty());
    assert_eq!(
        store.observe_remark(&remark(2, None, &["9"])).await.unwrap(),
        RemarkOutcome::Changed
    );
    assert_eq!(live().await, [json!("9")]);
    assert_eq!(
        store.observe_remark(&remark(3, None, &["9"])).await.unwrap(),
        RemarkOutcome::Unchanged
    );
    assert_eq!(
        store.observe_remark(&remark(4, None, &[])).await.unwrap(),
        RemarkOutcome::Changed
    );
    assert!(live().await.is_empty());
    assert_eq!(
        store.observe_remark(&remark(5, None, &["10"])).await.unwrap(),
        RemarkOutcome::Changed
    );
    assert_eq!(
        store.observe_remark(&deletion(6)).await.unwrap(),
        RemarkOutcome::Changed
    );
    assert!(live().await.is_empty());
    assert_eq!(
        store.commands(REPOSITORY, 1).await.unwrap().len(),
        2,
        "revoked ones stay on record"
    );
}

#[tokio::test]
async fn versions_of_a_comment_that_race_end_with_the_newest() {
    let (database, store) = fresh().await;
    let other = database.replica("other").await.unwrap();
    for round in 0..10 {
        let source = format!("issuecomment-{round}");
        let versions = (1..=8_i64).map(|version| {
            let store = if version % 2 == 0 { store.clone() } else { other.clone() };
            let run = version.to_string();
            let seen = ObservedRemark {
                source: source.clone(),
                ..remark(version, Some(SignoffState::Counted), &[run.as_str()])
            };
            async move { store.observe_remark(&seen).await }
        });
        for outcome in futures::future::join_all(versions).await {
            outcome.unwrap();
        }
        let commands = store.commands(REPOSITORY, 1).await.unwrap();
        let last = commands.iter().find(|command| command.source == source).unwrap();
        assert_eq!(last.arguments, json!({"run": "8"}));
        let signoffs = store.signoffs(REPOSITORY, 1).await.unwrap();
        let last = signoffs.iter().find(|signoff| signoff.signoff == source).unwrap();
        assert_eq!(last.body_digest, "digest-8");
    }
}

#[tokio::test]
async fn sign_offs_that_waited_for_the_draft_are_moved_together() {
    let (_database, store) = fresh().await;
    for id in 1..=3 {
        let state = if id == 2 {
            SignoffState::Counted
        } else {
            SignoffState::WaitingForReady
        };
        let seen = ObservedRemark {
            source: format!("issuecomment-{id}"),
            ..remark(1, Some(state), &[])
        };
        store.observe_remark(&seen).await.unwrap();
    }
    let mut moved = store
        .move_signoffs(REPOSITORY, 1, SignoffState::WaitingForReady, SignoffState::Counted)
        .await
        .unwrap();
    moved.sort();
    assert_eq!(moved, ["issuecomment-1", "issuecomment-3"]);
    assert!(
        store
            .signoffs(REPOSITORY, 1)
            .await
            .unwrap()
            .iter()
            .all(|signoff| signoff.state == SignoffState::Counted)
    );
}

#[tokio::test]
async fn the_sweep_finds_who_still_waits_for_a_verdict() {
    let (_database, store) = fresh().await;
    put_blobs(&store).await;
    store.observe_pull_request(&pull_request("a", 1)).await.unwrap();
    for (id, state) in [
        (1, SignoffState::Counted),
        (2, SignoffState::Counted),
        (3, SignoffState::EditedByOther),
    ] {
        let seen = ObservedRemark {
            source: format!("issuecomment-{id}"),
            ..remark(1, Some(state), &[])
        };
        store.observe_remark(&seen).await.unwrap();
    }
    store.request_work(&[work(1)]).await.unwrap();
    let lease = claim_one(&store, "verify").await;
    let judged = Changes {
        evaluations: vec![evaluation("issuecomment-1", "a", "PASS")],
        ..Changes::default()
    };
    store.commit(&lease, &judged, &Next::Done).await.unwrap();
    let waiting = async |age: Duration| {
        let found = store.unjudged_signoffs(age, 10).await.unwrap();
        found.into_iter().map(|signoff| signoff.signoff).collect::<Vec<_>>()
    };
    assert_eq!(waiting(Duration::ZERO).await, ["issuecomment-2"]);
    assert!(waiting(Duration::from_secs(3600)).await.is_empty());
    store
        .observe_pull_request(&PullRequestState {
            draft: true,
            ..pull_request("a", 2)
        })
        .await
        .unwrap();
    assert!(waiting(Duration::ZERO).await.is_empty());
}

#[tokio::test]
async fn a_sign_off_is_pinned_to_the_head_it_was_taken_for_until_its_text_changes() {
    let (_database, store) = fresh().await;
    let pin = async |digest: &str, head: &str| {
        store
            .pin_signoff(REPOSITORY, "issuecomment-1", digest, head, at(0))
            .await
            .unwrap()
    };
    assert_eq!(pin("text-1", "head-1").await, "head-1");
    assert_eq!(pin("text-1", "head-2").await, "head-1");
    assert_eq!(pin("text-2", "head-2").await, "head-2");
    assert_eq!(pin("text-2", "head-3").await, "head-2");
}

#[tokio::test]
async fn a_head_keeps_the_time_when_it_was_first_seen() {
    let (_database, store) = fresh().await;
    let seen = async |head: &str, when: i64| store.head_seen(REPOSITORY, 1, head, at(when)).await.unwrap();
    let first = seen("head-1", 10).await;
    assert_eq!((first.first_seen_at, first.had_another), (at(10), false));
    let second = seen("head-2", 20).await;
    assert_eq!((second.first_seen_at, second.had_another), (at(20), true));
    // The first one has had none before it, though it is seen again later.
    assert_eq!(seen("head-1", 30).await, first);
}

#[tokio::test]
async fn a_repository_in_trouble_is_left_alone_longer_each_time() {
    let (_database, store) = fresh().await;
    store.repository_works("octo/fine", false).await.unwrap();
    let backoff = Backoff {
        first: Duration::from_secs(100),
        most: Duration::from_secs(10_000),
    };
    let first = store
        .quarantine_repository(REPOSITORY, "no access", backoff)
        .await
        .unwrap();
    let second = store
        .quarantine_repository(REPOSITORY, "no access\0", backoff)
        .await
        .unwrap();
    assert!(second > first - TimeDelta::seconds(3) && (second - Utc::now()).num_seconds() > 97);
    let trouble = store.quarantined_repositories().await.unwrap();
    assert_eq!((trouble.len(), trouble[0].failures), (1, 2));
    assert_eq!(store.counts().await.unwrap().repositories_quarantined, 1);
    let due = async || {
        store
            .repositories_to_reconcile(Duration::from_secs(3600), 10)
            .await
            .unwrap()
    };
    assert_eq!(due().await, ["octo/fine"]);
    store.repository_works(REPOSITORY, false).await.unwrap();
    assert_eq!(store.repository(REPOSITORY).await.unwrap().unwrap().failures, 0);
    assert_eq!(due().await, ["octo/fine", REPOSITORY]);
    store.repository_works("octo/fine", true).await.unwrap();
    assert_eq!(due().await, [REPOSITORY]);
}

#[tokio::test]
async fn blobs_come_back_checked() {
    let (_database, store) = fresh().await;
    let evidence: Bytes = format!("[{}]", r#"{"path":"a/b","sha":"0123"},"#.repeat(20_000)).into();
    store
        .put_blob(BlobKind::Evidence, "d1", evidence.clone())
        .await
        .unwrap();
    store
        .put_blob(BlobKind::Evidence, "d1", "something else")
        .await
        .unwrap();
    assert_eq!(store.blob("d1").await.unwrap(), Some(evidence.clone()));
    assert_eq!(store.blob("d2").await.unwrap(), None);
    store.put_blob(BlobKind::Policy, "empty", "").await.unwrap();
    assert_eq!(store.blob("empty").await.unwrap(), Some(Bytes::new()));
    let kept: i64 = sqlx::query_scalar("SELECT length(bytes)::bigint FROM blobs WHERE digest = 'd1'")
        .fetch_one(store.raw_pool())
        .await
        .unwrap();
    assert!(usize::try_from(kept).unwrap() < evidence.len() / 20);
    // What was written by other means is noticed.
    sqlx::query("INSERT INTO blobs SELECT 'd3', kind, encoding, size, decode(repeat('00', 32), 'hex'), bytes FROM blobs WHERE digest = 'd1'")
        .execute(store.raw_pool())
        .await
        .unwrap();
    assert!(matches!(store.blob("d3").await, Err(StoreError::Damaged { .. })));
}

#[tokio::test]
async fn verdicts_are_found_by_what_they_are_about() {
    let (_database, store) = fresh().await;
    put_blobs(&store).await;
    let first = evaluation("issuecomment-1", "head-1", "REJECTED");
    let second = countersign_store::NewEvaluation {
        supersedes: Some(first.id),
        ..evaluation("issuecomment-1", "head-2", "PASS")
    };
    let third = evaluation("issuecomment-2", "head-2", "REJECTED");
    store.request_work(&[work(1)]).await.unwrap();
    let lease = claim_one(&store, "verify").await;
    let changes = Changes {
        evaluations: vec![first.clone(), second.clone(), third.clone()],
        ..Changes::default()
    };
    store.commit(&lease, &changes, &Next::Done).await.unwrap();

    let latest = async |head: Option<&str>| {
        store
            .latest_evaluation(REPOSITORY, 1, "issuecomment-1", head)
            .await
            .unwrap()
            .map(|found| found.id)
    };
    assert_eq!(latest(None).await, Some(second.id));
    assert_eq!(latest(Some("head-1")).await, Some(first.id));
    assert_eq!(latest(Some("head-3")).await, None);
    let by_id = store.evaluation(second.id).await.unwrap().unwrap();
    assert_eq!((by_id.supersedes, by_id.decision.as_str()), (Some(first.id), "PASS"));
    let rejected = EvaluationFilter {
        decision: Some("REJECTED".to_owned()),
        ..EvaluationFilter::default()
    };
    let page = store.evaluations(&rejected, 1).await.unwrap();
    assert_eq!(page[0].id, third.id);
    let page = store
        .evaluations(
            &EvaluationFilter {
                before: Some(page[0].seq),
                ..rejected
            },
            10,
        )
        .await
        .unwrap();
    assert_eq!(page.iter().map(|found| found.id).collect::<Vec<_>>(), [first.id]);
}

#[tokio::test]
async fn the_audit_log_is_read_in_pages() {
    let (_database, store) = fresh().await;
    let entry = |action: &str, pull_request: i64| NewAudit {
        actor: "maintainer".to_owned(),
        action: action.to_owned(),
        repository: Some(REPOSITORY.to_owned()),
        pull_request: Some(pull_request),
        evaluation: None,
        message: "because\0".to_owned(),
        detail: json!({"reason": "x\u{0}"}),
    };
    store
        .audit(&[entry("override", 1), entry("confirm", 1), entry("override", 2)])
        .await
        .unwrap();
    let all = store.audit_entries(&AuditFilter::default(), 2).await.unwrap();
    assert_eq!(
        all.iter().map(|e| e.pull_request).collect::<Vec<_>>(),
        [Some(2), Some(1)]
    );
    assert_eq!(
        (all[0].message.as_str(), &all[0].detail),
        ("because\u{fffd}", &json!({"reason": "x\u{fffd}"}))
    );
    let filter = AuditFilter {
        before: Some(all[1].id),
        ..AuditFilter::default()
    };
    assert_eq!(store.audit_entries(&filter, 10).await.unwrap().len(), 1);
    let filter = AuditFilter {
        action: Some("override".to_owned()),
        pull_request: Some(1),
        repository: Some(REPOSITORY.to_owned()),
        before: None,
    };
    assert_eq!(store.audit_entries(&filter, 10).await.unwrap().len(), 1);
}
