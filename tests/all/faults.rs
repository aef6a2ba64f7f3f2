//! What goes wrong on the way, one test each: `docs/reliability.md` names them beside the failure that each makes impossible.

use std::collections::BTreeMap;

use countersign_server::recover;
use countersign_sim::world::faults::{FaultSpec, LimitFault};
use countersign_sim::world::repo::CommitSpec;
use countersign_sim::world::timeline::Step;
use countersign_store::{AuditFilter, NewWork, Retry};
use serde_json::json;

use crate::harness::{CONTEXT, GOOD, InProcess, PATIENCE, PULL, quiet_world};

pub(crate) fn status(way: &InProcess) -> (String, String, String) {
    way.sim
        .status(PULL, CONTEXT)
        .expect("there")
        .map_or_else(Default::default, |status| {
            (status.state, status.description.unwrap_or_default(), status.by)
        })
}

pub(crate) fn commit(id: &str) -> CommitSpec {
    let date = "2026-11-02T09:30:00Z";
    serde_json::from_value(json!({ "id": id, "files": { "notes.md": id }, "date": date })).expect("a commit")
}

pub(crate) fn step(value: serde_json::Value) -> Box<Step> {
    Box::new(serde_json::from_value(value).expect("a step"))
}

/// A pull request with a PASS, and the id of its sign-off.
pub(crate) async fn passed() -> (InProcess, u64) {
    let way = InProcess::start(&quiet_world()).await;
    way.settle().await;
    way.sim.post_comment(PULL, "olive", "/use 9001").expect("posted");
    let signoff = way.sim.post_comment(PULL, "olive", GOOD).expect("posted");
    way.settle().await;
    assert_eq!(status(&way).0, "success", "{}", status(&way).1);
    (way, signoff)
}

/// Sends what waits, whatever it is answered, and waits until nothing is due.
pub(crate) async fn calm(way: &InProcess) {
    way.sim.deliver_all().await.expect("sent or refused");
    let settled = way
        .store
        .wait_until_settled(PATIENCE)
        .await
        .expect("the database answers");
    assert!(settled.now, "not settled: {:?}", way.store.pending_work(5).await);
}

/// The same, also for what is scheduled for later.
pub(crate) async fn empty(way: &InProcess) {
    let start = std::time::Instant::now();
    loop {
        calm(way).await;
        if way.store.settled().await.expect("the database answers").empty {
            return;
        }
        assert!(
            start.elapsed() < PATIENCE,
            "not settled: {:?}",
            way.store.pending_work(5).await
        );
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_written_by_hand_is_replaced_and_noted() {
    replaced_and_noted(&[]).await;
}

/// Our status is written, its answer is lost, and so is the answer to the question whether it is there.
#[tokio::test(flavor = "multi_thread")]
async fn a_status_written_by_hand_is_noted_though_the_answer_to_ours_is_lost() {
    let lost = json!([
        { "on": "POST /repos/*/*/statuses/*", "drop": true, "applied": true, "times": 1 },
        { "on": "GET /repos/*/*/commits/*/statuses", "status": 500, "from": 2, "times": 4 },
    ]);
    replaced_and_noted(&serde_json::from_value::<Vec<FaultSpec>>(lost).expect("faults")).await;
}

async fn replaced_and_noted(faults: &[FaultSpec]) {
    let (way, _) = passed().await;
    for fault in faults {
        way.sim.add_fault(fault.clone()).expect("a fault");
    }
    let head = way.sim.head(PULL).expect("a head");
    let forged = json!({ "status": { "sha": head, "context": CONTEXT, "state": "failure", "description": "no", "by": "mallory" } });
    way.sim.play(&step(forged)).expect("a status");
    assert_eq!(status(&way).2, "mallory");
    empty(&way).await;
    let (state, _, by) = status(&way);
    assert_eq!((state.as_str(), by), ("success", way.sim.bot_login()));
    let filter = AuditFilter {
        action: Some("status_reasserted".into()),
        ..AuditFilter::default()
    };
    let audit = way
        .store
        .audit_entries(&filter, 10)
        .await
        .expect("the database answers");
    assert_eq!(audit.len(), 1, "{audit:?}");
    assert_eq!(audit[0].actor, "mallory");
    way.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_written_by_hand_while_nobody_listened_is_replaced_by_the_next_recheck() {
    let (way, _) = passed().await;
    let head = way.sim.head(PULL).expect("a head");
    way.sim
        .add_fault(FaultSpec {
            on: "webhook status".into(),
            unrecorded: true,
            ..FaultSpec::default()
        })
        .expect("a fault");
    let forged = json!({ "status": { "sha": head, "context": CONTEXT, "state": "failure", "by": "mallory" } });
    way.sim.play(&step(forged)).expect("a status");
    calm(&way).await;
    assert_eq!(status(&way).2, "mallory", "nobody has told us");
    way.recheck_all().await;
    empty(&way).await;
    assert_eq!(status(&way).0, "success");
    way.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn our_comment_is_shown_again_after_somebody_edits_or_deletes_it() {
    let (way, _) = passed().await;
    let ours = || way.sim.own_comments(PULL).expect("there");
    let text = ours()[0].body.clone();
    way.sim
        .edit_comment(ours()[0].id, "nothing to see", "mallory")
        .expect("edited");
    empty(&way).await;
    assert_eq!(ours().len(), 1);
    assert_eq!(ours()[0].body, text);
    way.sim.delete_comment(ours()[0].id, "mallory").expect("deleted");
    assert!(ours().is_empty());
    empty(&way).await;
    assert_eq!(ours().len(), 1);
    assert_eq!(ours()[0].body, text);
    way.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_database_down_webhooks_get_503_and_all_are_recovered_by_redelivery() {
    let way = InProcess::start(&quiet_world()).await;
    way.settle().await;
    let before = way.sim.deliveries().len();
    way.database.cut().await.expect("cut");
    way.sim.post_comment(PULL, "olive", "/use 9001").expect("posted");
    way.sim.post_comment(PULL, "olive", GOOD).expect("posted");
    way.sim.deliver_all().await.expect("sent or refused");
    let during: Vec<_> = way.sim.deliveries().split_off(before);
    assert_eq!(during.len(), 2);
    for delivery in &during {
        assert_eq!(delivery.status_code, 503, "{} was answered otherwise", delivery.event);
    }
    way.database.let_in().await.expect("let in");
    wait_for_database(&way).await;
    let asked = recover::redeliver(way.service.engine()).await.expect("GitHub answers");
    assert_eq!(asked, 2);
    empty(&way).await;
    for delivery in &during {
        let stored = way.store.delivery(&delivery.guid).await.expect("the database answers");
        assert!(stored.is_some(), "{} is lost", delivery.guid);
    }
    assert_eq!(status(&way).0, "success");
    assert_eq!(way.sim.own_comments(PULL).expect("there").len(), 1);
    // What is stored is not asked for again.
    assert_eq!(
        recover::redeliver(way.service.engine()).await.expect("GitHub answers"),
        0
    );
    way.stop().await;
}

async fn wait_for_database(way: &InProcess) {
    let start = std::time::Instant::now();
    while way.store.ping().await.is_err() {
        assert!(start.elapsed() < PATIENCE, "the database does not come back");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_lost_without_a_trace_is_found_by_reconciling() {
    let way = InProcess::start(&quiet_world()).await;
    way.settle().await;
    way.sim
        .add_fault(FaultSpec {
            on: "webhook".into(),
            unrecorded: true,
            ..FaultSpec::default()
        })
        .expect("a fault");
    way.sim.advance(chrono::TimeDelta::minutes(1));
    way.sim.post_comment(PULL, "olive", "/use 9001").expect("posted");
    way.sim.post_comment(PULL, "olive", GOOD).expect("posted");
    calm(&way).await;
    assert_eq!(status(&way).0, "pending", "nobody has told us");
    assert_eq!(
        recover::redeliver(way.service.engine()).await.expect("GitHub answers"),
        0
    );
    way.sim.clear_faults();
    recover::reconcile(way.service.engine()).await.expect("GitHub answers");
    empty(&way).await;
    assert_eq!(status(&way).0, "success");
    way.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn late_doubled_and_reordered_webhooks_end_in_the_same_state() {
    let way = InProcess::start(&quiet_world()).await;
    way.settle().await;
    for fault in [
        FaultSpec {
            on: "webhook issue_comment".into(),
            duplicate: Some(3),
            ..FaultSpec::default()
        },
        FaultSpec {
            on: "webhook pull_request".into(),
            hold: Some(50),
            ..FaultSpec::default()
        },
    ] {
        way.sim.add_fault(fault).expect("a fault");
    }
    // What happened first is heard of last: a draft that is ready again, signed, edited, and signed anew.
    way.sim.set_draft(PULL, true).expect("a draft");
    way.sim.set_draft(PULL, false).expect("ready");
    way.sim.post_comment(PULL, "olive", "/use 9001").expect("posted");
    let signoff = way.sim.post_comment(PULL, "olive", GOOD).expect("posted");
    way.sim
        .edit_comment(signoff, &format!("{GOOD}\nAll of it.\n"), "olive")
        .expect("edited");
    empty(&way).await;
    assert_eq!(status(&way).0, "success", "{}", status(&way).1);
    assert_eq!(way.sim.own_comments(PULL).expect("there").len(), 1);
    let head = way.sim.head(PULL).expect("a head");
    let decided = way
        .sim
        .statuses("octo/bench", &head)
        .into_iter()
        .filter(|status| status.state == "success");
    assert_eq!(decided.count(), 1);
    way.stop().await;
}

/// Signs off, and pushes when GitHub has answered the first such call.
async fn pushed_after(call: &str) {
    let way = InProcess::start(&quiet_world()).await;
    way.settle().await;
    way.sim.post_comment(PULL, "olive", "/use 9001").expect("posted");
    way.settle().await;
    let old = way.sim.head(PULL).expect("a head");
    way.sim.advance(chrono::TimeDelta::minutes(1));
    way.sim
        .add_fault(FaultSpec {
            on: call.into(),
            times: Some(1),
            // Its date says that it is older than the sign-off, so that nothing but the head itself tells of the push.
            after: Some(step(json!({ "push": { "pull": 7, "commit":
                { "id": "moved", "files": { "notes.md": "moved" }, "date": "2026-11-02T08:30:00Z" } } }))),
            ..FaultSpec::default()
        })
        .expect("a fault");
    way.sim.post_comment(PULL, "olive", GOOD).expect("posted");
    empty(&way).await;
    let new = way.sim.head(PULL).expect("a head");
    assert_ne!(old, new, "the push did happen");
    let (state, text, _) = status(&way);
    assert_eq!(state, "pending", "{text}");
    assert!(text.contains("head moved"), "{text}");
    for comment in way.sim.own_comments(PULL).expect("there") {
        assert!(
            !comment.body.contains(&new),
            "a verdict on a head that nobody signed: {}",
            comment.body
        );
    }
    way.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_moves_while_evidence_is_gathered_is_not_judged_under_the_old_signoff() {
    pushed_after("GET /repos/*/*/pulls/*/files").await;
}

/// The sign-off was taken for the head that the look has read; what is gathered is read later.
#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_moves_just_before_evidence_is_gathered_is_not_judged_under_the_old_signoff() {
    pushed_after("GET /repos/*/*/pulls/*").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_while_evidence_is_gathered_is_what_counts() {
    let way = InProcess::start(&quiet_world()).await;
    way.settle().await;
    way.sim.post_comment(PULL, "olive", "/use 9001").expect("posted");
    way.settle().await;
    let short = GOOD.replace("- [x] Saw that evals pass\n", "");
    let signoff = way.sim.post_comment(PULL, "olive", GOOD).expect("posted");
    way.sim
        .add_fault(FaultSpec {
            on: "GET /repos/*/*/pulls/*/files".into(),
            times: Some(1),
            after: Some(step(
                json!({ "edit_comment": { "id": signoff, "by": "olive", "body": short } }),
            )),
            ..FaultSpec::default()
        })
        .expect("a fault");
    empty(&way).await;
    assert_eq!(
        status(&way).0,
        "failure",
        "the edited text lacks an item: {}",
        status(&way).1
    );
    let comments = way.sim.own_comments(PULL).expect("there");
    assert_eq!(comments.len(), 1, "no verdict on a text that was gone: {comments:#?}");
    assert!(comments[0].body.contains("**REJECTED**"));
    way.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_github_took_and_answered_502_is_not_made_twice() {
    let way = InProcess::start(&quiet_world()).await;
    way.settle().await;
    for on in [
        "POST /repos/*/*/issues/*/comments",
        "POST /repos/*/*/statuses/*",
        "POST /repos/*/*/issues/comments/*/reactions",
    ] {
        way.sim
            .add_fault(FaultSpec {
                on: on.into(),
                times: Some(2),
                status: Some(502),
                applied: true,
                ..FaultSpec::default()
            })
            .expect("a fault");
    }
    way.sim.post_comment(PULL, "olive", "/use 9001").expect("posted");
    way.sim.post_comment(PULL, "olive", GOOD).expect("posted");
    empty(&way).await;
    assert_eq!(way.sim.own_comments(PULL).expect("there").len(), 1);
    let head = way.sim.head(PULL).expect("a head");
    let mut count = BTreeMap::new();
    for status in way.sim.statuses("octo/bench", &head) {
        *count.entry((status.state, status.description)).or_insert(0) += 1;
    }
    assert!(count.values().all(|count| *count == 1), "{count:?}");
    way.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_of_the_infrastructure_neither_rejects_nor_replaces_a_result() {
    let (way, signoff) = passed().await;
    // The runs cannot be read any more, for as long as this lasts.
    way.sim
        .add_fault(FaultSpec {
            on: "GET /repos/*/*/actions/**".into(),
            status: Some(500),
            ..FaultSpec::default()
        })
        .expect("a fault");
    way.sim.advance(chrono::TimeDelta::minutes(1));
    way.sim
        .edit_comment(signoff, &format!("{GOOD}\nAll of it.\n"), "olive")
        .expect("edited");
    calm(&way).await;
    let (state, text, _) = status(&way);
    assert_eq!(state, "success", "the result for this head stays: {text}");
    let comments = way.sim.own_comments(PULL).expect("there");
    assert!(comments.iter().all(|comment| !comment.body.contains("REJECTED")));
    // A head without a result yet is told that it cannot be judged yet, and is not rejected.
    way.sim.push_commit(PULL, commit("late")).expect("pushed");
    way.settle().await;
    way.sim.advance(chrono::TimeDelta::hours(1));
    way.sim
        .edit_comment(signoff, &format!("{GOOD}\nThe new head too.\n"), "olive")
        .expect("edited");
    calm(&way).await;
    let (state, text, _) = status(&way);
    assert_eq!(state, "pending", "{text}");
    assert!(text.contains("Cannot judge yet"), "{text}");
    way.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rate_limit_costs_no_attempt_and_no_event_hurries_it() {
    let way = InProcess::start(&quiet_world()).await;
    way.settle().await;
    way.sim
        .add_fault(FaultSpec {
            on: "GET /repos/*/*/pulls/*".into(),
            limit: Some(LimitFault::Secondary),
            retry_after: Some(3_600),
            ..FaultSpec::default()
        })
        .expect("a fault");
    way.sim.post_comment(PULL, "olive", "/use 9001").expect("posted");
    calm(&way).await;
    let work = || async {
        let row = way
            .store
            .work("judge", "octo/bench#7")
            .await
            .expect("the database answers");
        row.expect("there")
    };
    let waits = work().await;
    assert_eq!(waits.attempts, 0, "{waits:?}");
    assert!(
        waits.run_at > chrono::Utc::now() + chrono::TimeDelta::minutes(50),
        "{waits:?}"
    );
    let calls = way.sim.counted_calls();
    way.sim.post_comment(PULL, "olive", GOOD).expect("posted");
    calm(&way).await;
    assert_eq!(work().await.run_at, waits.run_at, "an event does not hurry it");
    assert_eq!(way.sim.counted_calls(), calls, "nothing is asked meanwhile");
    way.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_credentials_are_told_and_tried_again_soon() {
    let way = InProcess::start(&quiet_world()).await;
    way.settle().await;
    way.sim
        .add_fault(FaultSpec {
            on: "GET /repos/*/*/actions/**".into(),
            status: Some(401),
            ..FaultSpec::default()
        })
        .expect("a fault");
    way.sim.post_comment(PULL, "olive", "/use 9001").expect("posted");
    way.sim.post_comment(PULL, "olive", GOOD).expect("posted");
    calm(&way).await;
    let (state, text, _) = status(&way);
    assert_eq!(state, "error", "{text}");
    let row = way.store.work("judge", "octo/bench#7").await;
    let waits = row.expect("the database answers").expect("there");
    let soon = chrono::Utc::now() + chrono::TimeDelta::minutes(2);
    assert!(waits.requested > waits.done && waits.run_at < soon, "{waits:?}");
    way.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_given_up_is_taken_up_again() {
    let (way, _) = passed().await;
    let key = "octo/bench#99";
    way.store
        .request_work(&[NewWork {
            kind: "somebody-elses".into(),
            ..NewWork::on_pull_request("judge", "octo/bench", 99)
        }])
        .await
        .expect("the database answers");
    let options = countersign_store::ClaimOptions::of(&["somebody-elses"]);
    let lease = way
        .store
        .claim_work(&options)
        .await
        .expect("the database answers")
        .leases
        .remove(0);
    assert!(
        lease
            .fail("it is broken", &Retry::Never)
            .await
            .expect("the database answers"),
        "it is given up"
    );
    assert_eq!(way.store.dead_work(10).await.expect("the database answers").len(), 1);
    let engine = way.service.engine();
    let now = chrono::Utc::now();
    assert_eq!(
        recover::revive(engine, now - chrono::TimeDelta::hours(1))
            .await
            .expect("the database answers"),
        0
    );
    assert_eq!(
        recover::revive(engine, now + chrono::TimeDelta::hours(1))
            .await
            .expect("the database answers"),
        1
    );
    let row = way
        .store
        .work("somebody-elses", key)
        .await
        .expect("the database answers")
        .expect("there");
    assert!(row.dead_at.is_none() && row.attempts == 0);
    way.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_that_fails_is_left_alone_and_stops_no_other() {
    let mut world = quiet_world();
    let bench = world.repositories["octo/bench"].clone();
    world.repositories.insert("octo/broken".into(), bench);
    let way = InProcess::start(&world).await;
    calm(&way).await;
    way.sim
        .add_fault(FaultSpec {
            on: "GET /repos/octo/broken/**".into(),
            status: Some(404),
            ..FaultSpec::default()
        })
        .expect("a fault");
    way.sim
        .add_fault(FaultSpec {
            on: "webhook".into(),
            unrecorded: true,
            ..FaultSpec::default()
        })
        .expect("a fault");
    way.sim.advance(chrono::TimeDelta::minutes(1));
    way.sim.post_comment(PULL, "olive", "/use 9001").expect("posted");
    way.sim.post_comment(PULL, "olive", GOOD).expect("posted");
    calm(&way).await;
    recover::reconcile(way.service.engine())
        .await
        .expect("one repository's trouble is not fatal");
    calm(&way).await;
    assert_eq!(status(&way).0, "success", "{}", status(&way).1);
    let quarantined = way
        .store
        .quarantined_repositories()
        .await
        .expect("the database answers");
    assert_eq!(quarantined.len(), 1);
    assert_eq!(quarantined[0].repository, "octo/broken");
    assert!(
        quarantined[0]
            .quarantine_reason
            .as_deref()
            .is_some_and(|why| !why.is_empty())
    );
    way.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retargeted_pull_request_is_judged_against_its_new_base() {
    let mut world = quiet_world();
    let bench = world.repositories.get_mut("octo/bench").expect("there");
    bench.branches.insert("other".into(), "root".into());
    let way = InProcess::start(&world).await;
    way.settle().await;
    way.sim.change_base(PULL, "other").expect("changed");
    way.settle().await;
    let looked = way
        .store
        .pull_request("octo/bench", 7)
        .await
        .expect("the database answers")
        .expect("known");
    assert_eq!(looked.base_ref, "other");
    way.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reaction_that_github_refuses_changes_no_result() {
    let way = InProcess::start(&quiet_world()).await;
    way.settle().await;
    way.sim
        .add_fault(FaultSpec {
            on: "POST /repos/*/*/issues/comments/*/reactions".into(),
            status: Some(403),
            ..FaultSpec::default()
        })
        .expect("a fault");
    way.sim.post_comment(PULL, "olive", "/use 9001").expect("posted");
    // The reaction waits in the outbox before the verdict does.
    calm(&way).await;
    way.sim.post_comment(PULL, "olive", GOOD).expect("posted");
    calm(&way).await;
    assert_eq!(status(&way).0, "success", "{}", status(&way).1);
    assert_eq!(way.sim.own_comments(PULL).expect("there").len(), 1);
    way.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_that_is_hit_while_looking_for_what_was_lost_is_no_fault_of_a_repository() {
    let way = InProcess::start(&quiet_world()).await;
    way.settle().await;
    way.sim
        .add_fault(FaultSpec {
            on: "GET /repos/*/*/pulls".into(),
            limit: Some(LimitFault::Primary),
            retry_after: Some(3_600),
            times: Some(1),
            ..FaultSpec::default()
        })
        .expect("a fault");
    recover::reconcile(way.service.engine())
        .await
        .expect_err("the look was not finished, and is to be repeated");
    let quarantined = way.store.quarantined_repositories().await;
    assert_eq!(quarantined.expect("the database answers"), []);
    way.stop().await;
}
