//! What readers are shown beside verdicts: reactions, answers, exemptions, check runs.

use countersign_sim::world::faults::FaultSpec;
use serde_json::json;

use crate::faults::{calm, empty, status, step};
use crate::harness::{GOOD, InProcess, PULL, quiet_world};

#[tokio::test(flavor = "multi_thread")]
async fn a_reuse_command_is_answered_before_there_is_a_signoff_and_questions_are_answered_once() {
    let way = InProcess::start(&quiet_world()).await;
    way.settle().await;
    let good = way.sim.post_comment(PULL, "olive", "/use 9001").expect("posted");
    way.settle().await;
    let reaction = |id: u64| {
        let comments = way.sim.comments(PULL).expect("there");
        let comment = comments.into_iter().find(|comment| comment.id == id).expect("there");
        comment
            .reactions
            .into_iter()
            .map(|reaction| reaction.content)
            .collect::<Vec<_>>()
    };
    assert_eq!(reaction(good), ["+1"]);
    let bad = way.sim.post_comment(PULL, "olive", "/use 404404").expect("posted");
    way.settle().await;
    assert_eq!(reaction(bad), ["-1"]);
    assert_eq!(status(&way).0, "pending");

    way.sim
        .post_comment(PULL, "dana", "/countersign help\n/countersign explain evals")
        .expect("posted");
    way.settle().await;
    let answers = way.sim.own_comments(PULL).expect("there");
    assert_eq!(answers.len(), 1, "{answers:#?}");
    assert!(answers[0].body.contains("explain CHECK") && answers[0].body.contains("no verdict yet"));
    way.recheck_all().await;
    empty(&way).await;
    assert_eq!(way.sim.own_comments(PULL).expect("there").len(), 1);
    way.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_belongs_to_exempt_owners_needs_no_signoff() {
    let way = InProcess::start_with(&quiet_world(), &|policy| {
        policy.replacen(
            "signoff:\n",
            "scope: { exempt_owners: [\"@octo/core\", \"@olive\"] }\nsignoff:\n",
            1,
        )
    })
    .await;
    way.settle().await;
    let (state, text, _) = status(&way);
    assert_eq!(state, "success", "{text}");
    assert!(text.starts_with("No sign-off needed"), "{text}");
    way.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_run_shows_the_table_where_the_policy_asks_for_it_and_its_button_judges_again() {
    let way = InProcess::start_with(&quiet_world(), &|policy| {
        policy.replacen(
            "  status_context: owner-signoff\n",
            "  status_context: owner-signoff\n  check_run: Owner sign-off\n",
            1,
        )
    })
    .await;
    way.settle().await;
    way.sim.post_comment(PULL, "olive", GOOD).expect("posted");
    way.settle().await;
    let head = way.sim.head(PULL).expect("a head");
    let runs = || way.sim.check_runs("octo/bench", &head);
    assert_eq!(runs().len(), 1, "{:?}", runs());
    assert_eq!(runs()[0].conclusion.as_deref(), Some("failure"));
    let summary = runs()[0].summary.clone().expect("a summary");
    assert!(
        summary.contains("**REJECTED**") && !summary.contains("<!--"),
        "{summary}"
    );
    // The button: judged again, though no comment came.
    way.sim
        .add_fault(FaultSpec {
            on: "webhook issue_comment".into(),
            unrecorded: true,
            ..FaultSpec::default()
        })
        .expect("a fault");
    way.sim.post_comment(PULL, "olive", "/use 9001").expect("posted");
    calm(&way).await;
    assert_eq!(runs()[0].conclusion.as_deref(), Some("failure"), "nobody has told us");
    let button = json!({ "rerequest_check": { "pull": 7, "name": "Owner sign-off", "by": "dana" } });
    way.sim.play(&step(button)).expect("pressed");
    empty(&way).await;
    let newest = runs().pop().expect("a run");
    assert_eq!(newest.conclusion.as_deref(), Some("success"), "{newest:?}");
    way.stop().await;
}
