//! One verdict at a time for a reader: whatever happened to an older one, it is folded, or never posted.

use countersign_sim::world::faults::FaultSpec;

use crate::faults::{calm, empty, passed, status};
use crate::harness::{GOOD, InProcess, PULL, quiet_world};

const POST: &str = "POST /repos/*/*/issues/*/comments";
const READ: &str = "GET /repos/*/*/issues/*/comments";

/// Headline of each comment of ours, and whether it is folded.
fn shown(way: &InProcess) -> Vec<(&'static str, bool)> {
    let comments = way.sim.own_comments(PULL).expect("there");
    comments
        .iter()
        .map(|comment| {
            let headline = ["PASS", "REJECTED"].into_iter().find(|word| {
                comment.body.contains(&format!("**Verdict: {word}**")) || comment.body.contains(&format!("**{word}**"))
            });
            (headline.unwrap_or("other"), comment.minimized.is_some())
        })
        .collect()
}

/// A pull request with a verdict that names no run: REJECTED.
async fn rejected() -> InProcess {
    let way = InProcess::start(&quiet_world()).await;
    way.settle().await;
    way.sim.post_comment(PULL, "olive", GOOD).expect("posted");
    calm(&way).await;
    assert_eq!(shown(&way), [("REJECTED", false)]);
    way
}

fn refused(on: &str) -> FaultSpec {
    FaultSpec {
        on: on.into(),
        status: Some(500),
        ..FaultSpec::default()
    }
}

/// Found by the soak: a limit held the first verdict back, and it came after the second one.
#[tokio::test(flavor = "multi_thread")]
async fn a_verdict_that_could_not_be_posted_does_not_come_after_the_newer_one() {
    let way = InProcess::start(&quiet_world()).await;
    way.settle().await;
    way.sim.add_fault(refused(POST)).expect("a fault");
    way.sim.post_comment(PULL, "olive", GOOD).expect("posted");
    calm(&way).await;
    assert_eq!(status(&way).0, "failure", "{}", status(&way).1);
    way.sim.post_comment(PULL, "olive", "/use 9001").expect("posted");
    calm(&way).await;
    assert_eq!(status(&way).0, "success", "{}", status(&way).1);
    assert_eq!(shown(&way), []);
    way.sim.clear_faults();
    empty(&way).await;
    assert_eq!(shown(&way), [("PASS", false)]);
    way.stop().await;
}

/// The first verdict is posted, its answer is lost, and it cannot be looked for before the second one is there.
#[tokio::test(flavor = "multi_thread")]
async fn a_verdict_whose_posting_was_not_heard_of_is_folded() {
    // How often the conversation is read until the verdict is posted.
    let way = InProcess::start(&quiet_world()).await;
    way.settle().await;
    way.sim.clear_calls();
    way.sim.post_comment(PULL, "olive", GOOD).expect("posted");
    calm(&way).await;
    let is_comments = |path: &str| path.contains("/issues/") && path.ends_with("/comments");
    let calls = way.sim.calls();
    let before_posting = calls
        .iter()
        .take_while(|call| call.method != "POST" || !is_comments(&call.path))
        .filter(|call| call.method == "GET" && is_comments(call.path.split('?').next().unwrap_or_default()))
        .count();
    assert!(before_posting > 0, "{calls:?}");
    way.stop().await;

    let way = InProcess::start(&quiet_world()).await;
    way.settle().await;
    way.sim
        .add_fault(FaultSpec {
            status: Some(502),
            applied: true,
            times: Some(1),
            ..refused(POST)
        })
        .expect("a fault");
    way.sim
        .add_fault(FaultSpec {
            from: Some(before_posting as u64 + 1),
            ..refused(READ)
        })
        .expect("a fault");
    way.sim.post_comment(PULL, "olive", GOOD).expect("posted");
    calm(&way).await;
    assert_eq!(shown(&way), [("REJECTED", false)]);
    let rows = way
        .store
        .publications("octo/bench", 7)
        .await
        .expect("the database answers");
    let row = rows.iter().find(|row| row.kind == "comment").expect("there");
    assert!(row.uncertain && row.remote_id.is_none(), "nobody heard of it: {row:?}");
    way.sim.clear_faults();
    // Before it is looked for again there is another verdict.
    way.sim.post_comment(PULL, "olive", "/use 9001").expect("posted");
    empty(&way).await;
    let shown = shown(&way);
    let open: Vec<_> = shown.iter().filter(|(_, folded)| !folded).collect();
    assert_eq!(open, [&("PASS", false)], "{shown:?}");
    way.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_verdict_is_folded_whatever_somebody_made_of_its_text() {
    let way = rejected().await;
    let first = way.sim.own_comments(PULL).expect("there")[0].id;
    // Nobody hears of the edit, so that our text is not shown again first.
    way.sim
        .add_fault(FaultSpec {
            on: "webhook issue_comment".into(),
            unrecorded: true,
            times: Some(1),
            ..FaultSpec::default()
        })
        .expect("a fault");
    way.sim
        .edit_comment(first, "nothing to see", "mallory")
        .expect("edited");
    way.sim.post_comment(PULL, "olive", "/use 9001").expect("posted");
    empty(&way).await;
    assert_eq!(shown(&way), [("other", true), ("PASS", false)]);
    way.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_verdict_that_somebody_deletes_stays_away() {
    let way = rejected().await;
    way.sim.post_comment(PULL, "olive", "/use 9001").expect("posted");
    empty(&way).await;
    assert_eq!(shown(&way), [("REJECTED", true), ("PASS", false)]);
    let first = way.sim.own_comments(PULL).expect("there")[0].id;
    way.sim.delete_comment(first, "mallory").expect("deleted");
    empty(&way).await;
    way.recheck_all().await;
    empty(&way).await;
    assert_eq!(shown(&way), [("PASS", false)]);
    way.stop().await;
}

/// A second sign-off takes the place of the first; when it is deleted, the first one's verdict is to be seen again.
#[tokio::test(flavor = "multi_thread")]
async fn a_signoff_that_counts_again_has_an_open_verdict_again() {
    let (way, _) = passed().await;
    assert_eq!(shown(&way), [("PASS", false)]);
    way.sim.advance(chrono::TimeDelta::minutes(1));
    let second = way.sim.post_comment(PULL, "olive", GOOD).expect("posted");
    empty(&way).await;
    assert_eq!(shown(&way), [("PASS", true), ("PASS", false)]);
    way.sim.delete_comment(second, "olive").expect("deleted");
    empty(&way).await;
    assert_eq!(status(&way).0, "success", "{}", status(&way).1);
    assert_eq!(shown(&way), [("PASS", true), ("PASS", true), ("PASS", false)]);
    way.stop().await;
}
