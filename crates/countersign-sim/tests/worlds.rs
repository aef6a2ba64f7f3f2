//! The format: strict, with places in its errors; short forms; partial worlds; the schema; the examples of the manual.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::Path;

use common::{Client, rich, start};
use countersign_sim::{Sim, SimError, World, WorldError};
use serde_json::json;

fn parse(text: &str) -> Result<World, WorldError> {
    World::parse("w.yaml", text)
}

#[test]
fn mistakes_are_named_with_their_place() {
    for (text, line, says) in [
        ("world: 1\npullz: []\n", 2, "pullz"),
        (
            "world: 1\nrepositories:\n  o/r:\n    pulls:\n      - {number: 1, titel: x}\n",
            5,
            "titel",
        ),
        (
            "world: 1\nrepositories:\n  o/r:\n    collaborators:\n      a: boss\n",
            5,
            "boss",
        ),
        (
            "world: 1\nrepositories:\n  o/r:\n    runs:\n      - head: x\n        lanes: {a: {succes: 3}}\n",
            6,
            "succes",
        ),
        ("world: 1\nclock: yesterday\n", 2, "yesterday"),
        ("world: 1\nlatency: 5\n", 2, "5"),
        (
            "world: 1\ntimeline:\n  - comment: {pull: 1, author: a, bodi: x}\n",
            3,
            "bodi",
        ),
        ("world: 1\ntimeline:\n  - comment: {author: a}\n", 3, "pull"),
        ("world: 1\nworld: 1\n", 2, "duplicate"),
        ("world: 1\nusers: [\n", 3, ""),
    ] {
        match parse(text) {
            Err(WorldError::Parse {
                line: found,
                column,
                message,
                ..
            }) => {
                assert!(message.contains(says), "{text}: {message}");
                assert!(
                    found.abs_diff(line) <= 1 && column > 0,
                    "{text}: line {found}, column {column}: {message}"
                );
            }
            other => panic!("{text}: {other:?}"),
        }
    }
    assert!(matches!(parse("world: 2\n"), Err(WorldError::Version { found: 2, .. })));
    assert!(matches!(parse("partial: true\n"), Err(WorldError::Parse { .. })));
}

#[test]
fn what_is_named_in_vain_is_said_with_its_place() {
    for (text, place) in [
        ("world: 1\nrepositories: {bench: {}}\n", "repositories.bench"),
        (
            "world: 1\nrepositories: {o/r: {files: {a: b}, pulls: [{number: 1, head: gone}]}}\n",
            "repositories.o/r.pulls[0].head",
        ),
        (
            "world: 1\nrepositories: {o/r: {files: {a: b}, pulls: [{number: 1, head: main, base: dev}]}}\n",
            "repositories.o/r.pulls[0].base",
        ),
        (
            "world: 1\nrepositories: {o/r: {commits: [{id: a, parent: z}]}}\n",
            "repositories.o/r.commits[0].parent",
        ),
        (
            "world: 1\nrepositories: {o/r: {clone: /nonexistent}}\n",
            "repositories.o/r.clone",
        ),
        (
            "world: 1\nrepositories: {o/r: {files: {a: {text: x, base64: eA==}}}}\n",
            "repositories.o/r.files.files.a",
        ),
        (
            "world: 1\nrepositories: {o/r: {runs: [{head: x}]}}\n",
            "repositories.o/r.runs[0].head",
        ),
        (
            "world: 1\nrepositories: {o/r: {pulls: [{number: 1}, {number: 1}]}}\n",
            "repositories.o/r.pulls[1]",
        ),
        ("world: 1\nfaults: [{on: somewhere}]\n", "faults[0]"),
        (
            "world: 1\ntimeline: [{ready: {pull: 1}, draft: {pull: 1}}]\n",
            "timeline[0]",
        ),
        ("world: 1\npages: {not a url: x}\n", "pages.not a url"),
        (
            "world: 1\ninstallations: [{id: 1, account: o, repositories: [o/r]}]\n",
            "installations[0].repositories",
        ),
    ] {
        match Sim::check(&parse(text).unwrap()) {
            Err(SimError::World(WorldError::Invalid { at, .. })) => assert_eq!(at, place, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn a_world_survives_being_written() {
    let world = rich();
    let text = world.to_yaml().unwrap();
    assert_eq!(parse(&text).unwrap(), world, "{text}");
}

#[tokio::test]
async fn a_partial_world_never_says_none_for_what_it_does_not_say() {
    let world = parse(
        "world: 1\npartial: true\nrepositories:\n  octo-org/bench:\n    files: {a: b}\n    pulls:\n      - {number: 1, head: main, comments: [], labels: []}\n",
    )
    .unwrap();
    let sim = start(&world);
    let c = Client::new(&sim);
    let head = sim.head(1).unwrap();
    assert_eq!(c.get("/issues/1/comments").await, json!([]));
    assert_eq!(c.get("/pulls/1/files").await, json!([]));
    assert_eq!(c.get("/pulls/1").await["labels"], json!([]));
    assert_eq!(c.get(&format!("/commits/{head}/statuses")).await, json!([]));
    let mut expected = Vec::new();
    for (path, fact) in [
        (
            "/repos/octo-org/bench/pulls/1/reviews",
            "the reviews of octo-org/bench#1",
        ),
        (
            "/repos/octo-org/bench/pulls/1/comments",
            "the review comments of octo-org/bench#1",
        ),
        ("/repos/octo-org/bench/pulls/2", "the pull request octo-org/bench#2"),
        (
            "/repos/octo-org/bench/actions/runs",
            "the workflow runs of octo-org/bench",
        ),
        (
            "/repos/octo-org/bench/actions/runs/5",
            "the workflow run 5 of octo-org/bench",
        ),
        (
            "/repos/octo-org/bench/commits/main/check-runs",
            "the check runs of octo-org/bench",
        ),
        (
            "/repos/octo-org/bench/codeowners/errors",
            "the CODEOWNERS errors of octo-org/bench",
        ),
        (
            "/repos/octo-org/bench/collaborators/dave/permission",
            "the permission of dave on octo-org/bench",
        ),
        ("/repos/engine/recipes/pulls/3", "the repository engine/recipes"),
        ("/orgs/octo-org/members/dave", "the members of octo-org"),
        (
            "/orgs/octo-org/teams/core/memberships/dave",
            "the members of the team octo-org/core",
        ),
    ] {
        let answer = c.call("GET", path, &[], None).await;
        assert_eq!(
            (answer.status, answer.header("x-sim-unknown")),
            (501, Some(fact)),
            "{path}"
        );
        expected.push(fact.to_owned());
    }
    let page = sim.page_url("https://docs.example.org/x?y=1").unwrap();
    let mut anonymous = Client::new(&sim);
    anonymous.token = None;
    assert_eq!(anonymous.call("GET", &page, &[], None).await.status, 501);
    expected.push("the page https://docs.example.org/x?y=1".to_owned());
    assert_eq!(sim.unknown(), expected);
    assert_eq!(sim.unserved(), Vec::<String>::new());
}

#[tokio::test]
async fn runs_of_a_partial_world_say_only_what_they_say() {
    let world = parse(
        "world: 1\npartial: true\nrepositories:\n  octo-org/bench:\n    files: {a: b}\n    runs:\n      - {id: 5, head: main}\n      - {id: 6, head: main, lanes: {eval: 2}, evals: []}\n",
    )
    .unwrap();
    let sim = start(&world);
    let c = Client::new(&sim);
    assert_eq!(c.get("/actions/runs").await["total_count"], 2);
    assert_eq!(c.get("/actions/runs/6/jobs").await["total_count"], 2);
    assert_eq!(c.get("/actions/runs/6/artifacts").await["total_count"], 1);
    for path in [
        "/actions/runs/5/jobs",
        "/actions/runs/5/artifacts",
        "/commits/main/check-runs",
    ] {
        assert_eq!(
            c.call("GET", &format!("/repos/octo-org/bench{path}"), &[], None)
                .await
                .status,
            501,
            "{path}"
        );
    }
    assert_eq!(
        c.call("GET", "/repos/octo-org/bench/actions/runs/7", &[], None)
            .await
            .status,
        404,
        "a list that is given is complete"
    );
}

#[test]
fn the_schema_is_checked_in() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/schema/world.json");
    let there: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&path).unwrap_or_default()).unwrap_or_default();
    assert_eq!(
        there,
        countersign_sim::world::schema(),
        "write it anew: cargo run -p countersign-sim --example serve_world -- --schema > config/schema/world.json"
    );
}

#[test]
fn the_manuals_examples_are_worlds() {
    let manual = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/worlds.md")).unwrap();
    let mut found = 0;
    for block in manual.split("```yaml\n").skip(1) {
        let text = block.split("```").next().unwrap();
        if text.starts_with("world: 1") {
            let world = parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
            Sim::check(&world).unwrap_or_else(|e| panic!("{e}\n{text}"));
            let sim = start(&world);
            while sim.step().unwrap_or_else(|e| panic!("{e}\n{text}")).is_some() {}
            found += 1;
        }
    }
    assert!(found >= 2, "a complete example and a partial one");
}
