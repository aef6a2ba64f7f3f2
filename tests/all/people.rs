//! What people may decide against a check, how it is shown, and what of a fork is like anybody's.

use countersign_sim::World;
use serde_json::json;

use crate::faults::{commit, status};
use crate::harness::{GOOD, InProcess, PULL, quiet_world};

/// The same with a maintainer and an administrator.
fn with_roles() -> World {
    let mut world = quiet_world();
    let bench = world.repositories.get_mut("octo/bench").expect("there");
    bench.collaborators = serde_json::from_value(
        json!({ "olive": "write", "dana": "write", "mia": "maintain", "ada": "admin", "mallory": "read" }),
    )
    .expect("roles");
    world
}

/// The sign-off is right, and nobody has named a run: one check fails.
async fn one_failure() -> (InProcess, u64) {
    let way = InProcess::start(&with_roles()).await;
    way.settle().await;
    let signoff = way.sim.post_comment(PULL, "olive", GOOD).expect("posted");
    way.settle().await;
    assert_eq!(status(&way).0, "failure", "{}", status(&way).1);
    (way, signoff)
}

async fn says(way: &InProcess, who: &str, text: &str) -> (String, String) {
    way.pass(chrono::TimeDelta::minutes(1));
    way.sim.post_comment(PULL, who, text).expect("posted");
    way.settle().await;
    let (state, text, _) = status(way);
    (state, text)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_lifted_by_who_may_with_name_and_reason_and_for_this_head_only() {
    let (way, signoff) = one_failure().await;
    let lift = "/countersign override reuse-command run 9001 is what we merge with";
    for (who, text) in [
        ("mia", lift),
        ("ada", "/countersign override reuse-command"),
        ("ada", "/countersign confirm reuse-command because"),
        ("ada", "/countersign override sweep because"),
        ("ada", &format!("> {lift}")),
    ] {
        let (state, shown) = says(&way, who, text).await;
        assert_eq!(state, "failure", "{who} said {text:?}: {shown}");
    }
    let (state, shown) = says(&way, "ada", lift).await;
    assert_eq!(state, "success", "{shown}");
    let comments = way.sim.own_comments(PULL).expect("there");
    let newest = &comments.last().expect("a verdict").body;
    for part in [
        "**Verdict: PASS**",
        "was FAIL",
        "`ada`",
        "run 9001 is what we merge with",
        "lifted",
    ] {
        assert!(newest.contains(part), "{part:?} is not in\n{newest}");
    }
    // It was said about what was there: the next head has to be looked at anew.
    way.pass(chrono::TimeDelta::hours(1));
    way.sim.push_commit(PULL, commit("later")).expect("pushed");
    way.settle().await;
    way.pass(chrono::TimeDelta::minutes(1));
    way.sim
        .edit_comment(signoff, &format!("{GOOD}\nThe new head too.\n"), "olive")
        .expect("edited");
    way.settle().await;
    assert_eq!(status(&way).0, "failure", "{}", status(&way).1);
    way.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_policy_never_lets_anybody_lift_stays() {
    let way = InProcess::start(&with_roles()).await;
    way.settle().await;
    way.sim.post_comment(PULL, "olive", "/use 9001").expect("posted");
    way.sim.post_comment(PULL, "mallory", GOOD).expect("posted");
    way.settle().await;
    let (state, text, _) = status(&way);
    assert_eq!(state, "failure", "no owner: {text}");
    for check in ["codeowner", "0", "owner"] {
        let (state, shown) = says(&way, "ada", &format!("/countersign override {check} I know them")).await;
        assert_eq!(state, "failure", "{check}: {shown}");
    }
    way.stop().await;
}

/// GitHub names no pull request in events and runs of a fork's head.
#[tokio::test(flavor = "multi_thread")]
async fn a_pull_request_from_a_fork_is_judged_like_any_other() {
    let mut world = quiet_world();
    let bench = world.repositories.get_mut("octo/bench").expect("there");
    bench.pulls[0].author = Some("mallory".into());
    bench.pulls[0].head =
        serde_json::from_value(json!({ "sha": "change", "ref": "m1-b9", "repo": "mallory/bench" })).expect("a head");
    bench.runs.as_mut().expect("a run")[0].status = Some("in_progress".into());
    let way = InProcess::start(&world).await;
    way.settle().await;
    way.sim.post_comment(PULL, "olive", "/use 9001").expect("posted");
    way.sim.post_comment(PULL, "olive", GOOD).expect("posted");
    way.settle().await;
    assert_ne!(status(&way).0, "success", "the run is not over: {}", status(&way).1);
    // The end of the run is an event that names no pull request.
    way.sim.complete_run(9001, "success").expect("completed");
    way.settle().await;
    assert_eq!(status(&way).0, "success", "{}", status(&way).1);
    way.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_meant_to_sign_and_did_not_is_told_why() {
    let way = InProcess::start(&quiet_world()).await;
    way.settle().await;
    let waiting = status(&way).1;
    way.sim.post_comment(PULL, "olive", "Looks good to me").expect("posted");
    way.settle().await;
    assert_eq!(status(&way).1, waiting);
    way.sim
        .post_comment(
            PULL,
            "olive",
            "As a reviewer and owner, I looked at this and it is fine.",
        )
        .expect("posted");
    way.settle().await;
    // It asks for nothing by itself; the next look tells.
    way.recheck_all().await;
    way.settle().await;
    let (state, text, _) = status(&way);
    assert_eq!(state, "pending");
    assert!(text.starts_with("Not taken as a sign-off: "), "{text}");
    assert!(way.sim.own_comments(PULL).expect("there").is_empty());
    way.stop().await;
}

/// A second pull request with the same head, into a branch whose owners and bars are mallory's.
fn with_a_twin() -> World {
    let mut world = quiet_world();
    let bench = world.repositories.get_mut("octo/bench").expect("there");
    bench.collaborators = serde_json::from_value(json!({ "olive": "write", "mallory": "write" })).expect("roles");
    let own = json!({ "id": "own", "parent": "root", "date": "2026-11-01T09:00:00Z", "files": {
        "CODEOWNERS": "* @mallory\n", "bars.yaml": "default: { gsm8k: 0.0 }\nmodels: {}\n" } });
    bench.commits.insert(1, serde_json::from_value(own).expect("a commit"));
    bench.branches.insert("mine".into(), "own".into());
    bench.pulls[0].author = Some("mallory".into());
    let mut twin = bench.pulls[0].clone();
    twin.number = 8;
    twin.base = serde_json::from_value(json!("mine")).ok();
    bench.pulls.push(twin);
    world
}

async fn signed_by_mallory(way: &InProcess) -> (String, String, String) {
    way.settle().await;
    for text in ["/use 9001", GOOD] {
        way.sim.post_comment("octo/bench#8", "mallory", text).expect("posted");
    }
    way.settle().await;
    status(way)
}

/// GitHub shows a status on the commit, whatever pull request it was written for.
#[tokio::test(flavor = "multi_thread")]
async fn a_verdict_against_another_branch_says_nothing_about_this_one() {
    let way = InProcess::start(&with_a_twin()).await;
    let (state, text, _) = signed_by_mallory(&way).await;
    assert_eq!(
        (state.as_str(), text.as_str()),
        ("pending", "Waiting for a CODEOWNER's sign-off")
    );
    assert!(way.sim.own_comments("octo/bench#8").expect("there").is_empty());
    way.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_branch_that_the_policy_names_is_judged() {
    let named = |policy: &str| policy.replacen("signoff:\n", "scope: { target_branches: [mine] }\nsignoff:\n", 1);
    let way = InProcess::start_with(&with_a_twin(), &named).await;
    let (state, text, _) = signed_by_mallory(&way).await;
    assert_eq!(state, "success", "{text}");
    assert_eq!(way.sim.own_comments("octo/bench#8").expect("there").len(), 1);
    way.stop().await;
}
