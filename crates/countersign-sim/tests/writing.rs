//! Writing: what an App publishes, with GitHub's rules and the webhooks that follow.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Client, REPO, rich, start};
use countersign_sim::client::Answer;
use countersign_sim::world::repo::CommitSpec;
use serde_json::{Value, json};

#[tokio::test]
async fn comments_are_written_changed_hidden_and_deleted() {
    let sim = start(&rich());
    let c = Client::new(&sim);
    let path = format!("/repos/{REPO}/issues/7/comments");
    let made = c.call("POST", &path, &[], Some(json!({"body": "## Verdict"}))).await;
    assert_eq!(made.status, 201);
    let made = made.json();
    assert_eq!(
        (&made["user"]["login"], &made["user"]["type"]),
        (&json!("countersign[bot]"), &json!("Bot"))
    );
    assert_eq!(made["performed_via_github_app"]["slug"], "countersign");
    let id = made["id"].as_u64().unwrap();
    let one = format!("/repos/{REPO}/issues/comments/{id}");
    sim.advance(chrono::TimeDelta::minutes(1));
    let changed = c
        .call("PATCH", &one, &[], Some(json!({"body": "## Other"})))
        .await
        .json();
    assert_eq!(
        (&changed["body"], &changed["updated_at"]),
        (&json!("## Other"), &json!("2026-08-07T22:31:00Z"))
    );
    let query = "mutation($id: ID!) { minimizeComment(input: {subjectId: $id, classifier: OUTDATED}) { minimizedComment { isMinimized minimizedReason } } }";
    let hidden = c
        .call(
            "POST",
            "/graphql",
            &[],
            Some(json!({"query": query, "variables": {"id": made["node_id"]}})),
        )
        .await
        .json();
    assert_eq!(
        hidden,
        json!({"data": {"minimizeComment": {"minimizedComment": {"isMinimized": true, "minimizedReason": "outdated"}}}})
    );
    let own = sim.own_comments(7).unwrap();
    assert_eq!(own.len(), 1);
    assert_eq!(
        (own[0].minimized.as_deref(), own[0].body.as_str()),
        (Some("outdated"), "## Other")
    );
    assert_eq!(c.call("DELETE", &one, &[], None).await.status, 204);
    assert_eq!(sim.own_comments(7).unwrap(), []);
    for body in [json!({}), json!({"body": " "}), json!({"body": "x".repeat(65_537)})] {
        assert_eq!(c.call("POST", &path, &[], Some(body)).await.status, 422);
    }
    let events: Vec<String> = sim
        .deliveries()
        .iter()
        .map(|d| format!("{} {}", d.event, d.action.clone().unwrap_or_default()))
        .collect();
    assert_eq!(
        events,
        ["issue_comment created", "issue_comment edited", "issue_comment deleted"]
    );
    assert_eq!(sim.deliveries()[1].payload["changes"]["body"]["from"], "## Verdict");
}

#[tokio::test]
async fn graphql_says_who_edited_and_refuses_by_name() {
    let sim = start(&rich());
    let c = Client::new(&sim);
    sim.edit_comment(502, "/use 1", "carol").unwrap();
    let query = r#"query($ids: [ID!]!) { nodes(ids: $ids) { ... on IssueComment { databaseId lastEditedAt editor { login } } ... on PullRequestReview { state } } }"#;
    let out = c
        .call(
            "POST",
            "/graphql",
            &[],
            Some(json!({"query": query, "variables": {"ids": ["IC_502", "IC_501", "PRR_601"]}})),
        )
        .await
        .json();
    assert_eq!(
        out["data"]["nodes"],
        json!([
            {"databaseId": 502, "lastEditedAt": "2026-08-07T22:30:00Z", "editor": {"login": "carol"}},
            {"databaseId": 501, "lastEditedAt": null, "editor": null},
            {"state": "APPROVED"}
        ])
    );
    let query = r#"{ repository(owner: "octo-org", name: "bench") { pullRequest(number: 7) { comments(first: 1) { totalCount nodes { body } pageInfo { hasNextPage endCursor } } } } }"#;
    let out = c
        .call("POST", "/graphql", &[], Some(json!({"query": query})))
        .await
        .json();
    let comments = &out["data"]["repository"]["pullRequest"]["comments"];
    assert_eq!(
        (&comments["totalCount"], &comments["pageInfo"]["hasNextPage"]),
        (&json!(2), &json!(true))
    );
    let unknown = c
        .call("POST", "/graphql", &[], Some(json!({"query": "{ viewer { bio } }"})))
        .await;
    assert_eq!(unknown.status, 501);
    assert!(
        sim.unserved().contains(&"GraphQL Bot.bio".to_owned()),
        "{:?}",
        sim.unserved()
    );
    let missing = c
        .call(
            "POST",
            "/graphql",
            &[],
            Some(json!({"query": "{ node(id: \"IC_1\") { id } }"})),
        )
        .await
        .json();
    assert_eq!(
        (&missing["data"]["node"], &missing["errors"][0]["type"]),
        (&Value::Null, &json!("NOT_FOUND"))
    );
}

#[tokio::test]
async fn statuses_check_runs_and_reactions() {
    let sim = start(&rich());
    let c = Client::new(&sim);
    let head = sim.head(7).unwrap();
    let post = async |path: &str, body: Value| -> Answer {
        c.call("POST", &format!("/repos/{REPO}{path}"), &[], Some(body)).await
    };
    for (state, description) in [("pending", "working"), ("success", "all well")] {
        let body = json!({"state": state, "context": "gate", "description": description, "target_url": "https://x.example.org"});
        assert_eq!(post(&format!("/statuses/{head}"), body).await.status, 201);
    }
    assert_eq!(
        post(&format!("/statuses/{head}"), json!({"state": "fine"}))
            .await
            .status,
        422
    );
    assert_eq!(
        post(
            &format!("/statuses/{head}"),
            json!({"state": "success", "description": "x".repeat(141)})
        )
        .await
        .status,
        422
    );
    assert_eq!(
        post(
            &format!("/statuses/{head}"),
            json!({"state": "success", "target_url": "ftp://x"})
        )
        .await
        .status,
        422
    );
    assert_eq!(sim.status(7, "gate").unwrap().unwrap().state, "success");
    let combined = c.get(&format!("/commits/{head}/status")).await;
    let contexts: Vec<_> = combined["statuses"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["context"].as_str().unwrap())
        .collect();
    assert_eq!(
        (contexts, &combined["state"]),
        (vec!["gate", "deploy", "ci/legacy"], &json!("pending"))
    );

    let made = post(
        "/check-runs",
        json!({"name": "gate", "head_sha": head, "status": "in_progress", "external_id": "e1"}),
    )
    .await;
    assert_eq!(made.status, 201);
    let id = made.json()["id"].as_u64().unwrap();
    let path = format!("/repos/{REPO}/check-runs/{id}");
    let done = json!({"status": "completed", "conclusion": "success", "output": {"title": "T", "summary": "S", "annotations": [
        {"path": "README.md", "start_line": 1, "end_line": 1, "annotation_level": "notice", "message": "m"}]}});
    let updated = c.call("PATCH", &path, &[], Some(done)).await;
    assert_eq!(
        (updated.status, &updated.json()["output"]["annotations_count"]),
        (200, &json!(1))
    );
    for bad in [
        json!({"status": "completed"}),
        json!({"conclusion": "great"}),
        json!({"output": {"title": "T"}}),
    ] {
        let fresh = post("/check-runs", json!({"name": "x", "head_sha": head})).await.json();
        let path = format!("/repos/{REPO}/check-runs/{}", fresh["id"]);
        assert_eq!(
            c.call("PATCH", &path, &[], Some(bad.clone())).await.status,
            422,
            "{bad}"
        );
    }
    assert_eq!(
        c.call(
            "PATCH",
            &format!("/repos/{REPO}/check-runs/9501"),
            &[],
            Some(json!({"name": "y"}))
        )
        .await
        .status,
        403
    );
    let runs = sim.check_runs(REPO, &head);
    let ours = runs.iter().find(|r| r.id == id).unwrap();
    assert_eq!(
        (ours.conclusion.as_deref(), ours.external_id.as_deref(), ours.writes),
        (Some("success"), Some("e1"), 2)
    );

    let path = "/issues/comments/502/reactions";
    assert_eq!(post(path, json!({"content": "+1"})).await.status, 201);
    let again = post(path, json!({"content": "+1"})).await;
    assert_eq!(again.status, 200);
    assert_eq!(post(path, json!({"content": "clap"})).await.status, 422);
    let id = again.json()["id"].as_u64().unwrap();
    assert_eq!(sim.comments(7).unwrap()[1].reactions.len(), 1);
    assert_eq!(
        c.call("DELETE", &format!("/repos/{REPO}{path}/{id}"), &[], None)
            .await
            .status,
        204
    );
    assert_eq!(c.get(path).await, json!([]));
}

#[tokio::test]
async fn people_change_pull_requests() {
    let sim = start(&rich());
    let c = Client::new(&sim);
    let old = sim.head(7).unwrap();
    let commit = CommitSpec {
        id: "new".into(),
        files: [("README.md".into(), Default::default())].into(),
        ..CommitSpec::default()
    };
    let new = sim.push_commit(7, commit).unwrap();
    assert_ne!(old, new);
    sim.set_draft(8, false).unwrap();
    sim.change_base(7, "arm").unwrap();
    sim.set_label(7, "urgent", true).unwrap();
    sim.set_open(8, false).unwrap();
    sim.change_base(7, "main").unwrap();
    sim.merge(7, "olivia").unwrap();
    let events: Vec<String> = sim
        .deliveries()
        .iter()
        .map(|d| {
            d.action
                .clone()
                .map_or_else(|| d.event.clone(), |a| format!("{} {a}", d.event))
        })
        .collect();
    assert_eq!(
        events,
        [
            "push",
            "pull_request synchronize",
            "pull_request ready_for_review",
            "pull_request edited",
            "pull_request labeled",
            "pull_request closed",
            "pull_request edited",
            "push",
            "pull_request closed"
        ]
    );
    let sync = &sim.deliveries()[1].payload;
    assert_eq!(
        (&sync["before"], &sync["after"], &sync["pull_request"]["head"]["sha"]),
        (&json!(old), &json!(new), &json!(new))
    );
    assert_eq!(sync["installation"]["id"], sim.installation_of(REPO).unwrap());
    assert_eq!(sim.deliveries()[3].payload["changes"]["base"]["ref"]["from"], "main");
    assert_eq!(sim.deliveries()[8].payload["pull_request"]["merged"], true);
    let pull = c.get("/pulls/7").await;
    assert_eq!(
        (&pull["state"], &pull["merged"], &pull["merged_by"]["login"]),
        (&json!("closed"), &json!(true), &json!("olivia"))
    );
    // The merge has both sides: the target's README was deleted by the pull request, its scripts are renamed.
    let tree = c.get("/git/trees/main?recursive=1").await;
    let paths: Vec<_> = tree["tree"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["path"].as_str().unwrap())
        .collect();
    assert!(paths.contains(&"scripts/serve.sh") && !paths.contains(&"README.md"));
}

#[tokio::test]
async fn a_timeline_is_played_step_by_step() {
    let sim = start(&rich());
    let before = sim.head(7).unwrap();
    let first = sim.step().unwrap().unwrap();
    assert_eq!(
        (first.made, first.at.to_rfc3339()),
        (Some(503), "2026-08-07T22:40:00+00:00".to_owned())
    );
    assert_eq!(sim.comments(7).unwrap().last().unwrap().created_at, first.at);
    let second = sim.step().unwrap().unwrap();
    assert_eq!(second.at.to_rfc3339(), "2026-08-07T22:50:00+00:00");
    assert_ne!(sim.head(7).unwrap(), before);
    assert!(sim.step().unwrap().is_none());
}

#[tokio::test]
async fn the_same_world_gives_the_same_bytes() {
    let run = || {
        let sim = start(&rich());
        while sim.step().unwrap().is_some() {}
        let deliveries: Vec<_> = sim
            .deliveries()
            .iter()
            .map(|d| (d.guid.clone(), d.event.clone()))
            .collect();
        (sim.snapshot().to_string(), deliveries)
    };
    assert_eq!(run(), run());
}
