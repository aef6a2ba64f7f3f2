//! The whole way in one process: what a reader of the pull request sees after each event.

use countersign_sim::World;

use crate::harness::{CONTEXT, GOOD, InProcess, PULL, WORLD, quiet_world};

fn status(way: &InProcess) -> (String, String) {
    let status = way.sim.status(PULL, CONTEXT).expect("the pull request is there");
    status.map_or_else(Default::default, |status| {
        (status.state, status.description.unwrap_or_default())
    })
}

fn verdicts(way: &InProcess) -> Vec<(String, bool)> {
    way.sim
        .own_comments(PULL)
        .expect("there")
        .into_iter()
        .map(|comment| (comment.body, comment.minimized.is_some()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_goes_from_rejected_to_pass() {
    let world = World::parse("demo world", WORLD).expect("right");
    let way = InProcess::start(&world).await;
    way.settle().await;
    let mut seen = Vec::new();
    while way.sim.step().expect("a step").is_some() {
        way.settle().await;
        seen.push(status(&way).0);
    }
    assert_eq!(seen, ["failure", "failure", "success"]);
    let verdicts = verdicts(&way);
    assert_eq!(
        verdicts.len(),
        2,
        "one comment while the decision stays, a new one when it changes: {verdicts:#?}"
    );
    assert!(
        verdicts[0].0.contains("REJECTED") && verdicts[0].1,
        "the first is folded"
    );
    assert!(verdicts[1].0.contains("**Verdict: PASS**") && !verdicts[1].1);
    assert!(way.sim.complaints().is_empty(), "{:?}", way.sim.complaints());
    way.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_world_twice_gives_the_same_bytes() {
    let mut texts = Vec::new();
    for _ in 0..2 {
        let way = InProcess::start(&World::parse("demo world", WORLD).expect("right")).await;
        way.settle().await;
        while way.sim.step().expect("a step").is_some() {
            way.settle().await;
        }
        texts.push(verdicts(&way));
        way.stop().await;
    }
    assert!(!texts[0].is_empty());
    assert_eq!(texts[0], texts[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_push_gets_its_state_at_once() {
    let way = InProcess::start(&quiet_world()).await;
    way.settle().await;
    way.sim.set_label(PULL, "full-sweep", false).expect("a label");
    let comment = way.sim.post_comment(PULL, "olive", GOOD).expect("posted");
    way.settle().await;
    assert_eq!(status(&way).0, "failure", "no reuse command yet: {}", status(&way).1);
    way.sim.post_comment(PULL, "olive", "/use 9001").expect("posted");
    way.settle().await;
    assert_eq!(status(&way).0, "success", "{}", status(&way).1);

    way.sim
        .push_commit(PULL, serde_yaml_commit("late", "notes.md", "later\n"))
        .expect("pushed");
    way.settle().await;
    let (state, text) = status(&way);
    assert_eq!(state, "pending");
    assert!(text.contains("Head moved: PASS was for"), "{text}");

    // The same sign-off, edited by its author, is taken anew for this head; the run is on an earlier commit and still counts.
    way.sim.advance(chrono::TimeDelta::minutes(10));
    way.sim
        .edit_comment(comment, &format!("{GOOD}\nSeen the last push too.\n"), "olive")
        .expect("edited");
    way.settle().await;
    assert_eq!(status(&way).0, "success", "{}", status(&way).1);
    way.stop().await;
}

fn serde_yaml_commit(id: &str, path: &str, text: &str) -> countersign_sim::world::repo::CommitSpec {
    serde_json::from_value(serde_json::json!({ "id": id, "files": { path: text }, "date": "2026-11-02T09:05:00Z" }))
        .expect("a commit")
}

#[tokio::test(flavor = "multi_thread")]
async fn drafts_wait_and_deleted_or_foreign_edited_signoffs_do_not_count() {
    let way = InProcess::start(&quiet_world()).await;
    way.settle().await;
    way.sim.set_draft(PULL, true).expect("a draft");
    let comment = way.sim.post_comment(PULL, "olive", GOOD).expect("posted");
    way.settle().await;
    assert!(
        status(&way).1.contains("will be judged when ready"),
        "{}",
        status(&way).1
    );
    assert!(verdicts(&way).is_empty());
    way.sim.set_draft(PULL, false).expect("ready");
    way.settle().await;
    assert_eq!(verdicts(&way).len(), 1);

    way.sim.advance(chrono::TimeDelta::minutes(1));
    way.sim
        .edit_comment(comment, &format!("{GOOD}\n"), "mallory")
        .expect("edited");
    way.settle().await;
    let (state, text) = status(&way);
    assert!(
        state == "pending" && text.contains("mallory edited it"),
        "{state}: {text}"
    );

    way.sim.delete_comment(comment, "olive").expect("deleted");
    way.settle().await;
    assert!(status(&way).1.contains("it was deleted"), "{}", status(&way).1);
    way.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_forgery_counts() {
    let way = InProcess::start(&quiet_world()).await;
    way.settle().await;
    // A marker by somebody else, our own verdict quoted, the phrase in a quote and in code, a bot's text.
    let pass = "<!-- demo-verdict signoff=issuecomment-1 sha=0123456789012345678901234567890123456789 -->\n## ✅✅✅ **Verdict: PASS** ✅✅✅\n";
    way.sim.post_comment(PULL, "mallory", pass).expect("posted");
    way.sim
        .post_comment(PULL, "mallory", &GOOD.replace('\n', "\n> ").replacen("As", "> As", 1))
        .expect("posted");
    way.sim
        .post_comment(PULL, "mallory", &format!("```\n{GOOD}```\n"))
        .expect("posted");
    way.sim.post_comment(PULL, "some-app[bot]", GOOD).expect("posted");
    way.settle().await;
    assert!(verdicts(&way).is_empty(), "{:?}", verdicts(&way));
    assert_eq!(status(&way).0, "pending");
    way.stop().await;
}
