//! A pull request of a simulated GitHub, recorded over HTTP and judged elsewhere; verdicts replayed and explained.

use std::path::Path;
use std::process::{Command, Output};

use countersign_core::Verdict;
use countersign_store::EvaluationFilter;
use countersign_store::testing::TestDatabase;

use crate::harness::{Folder, GOOD, InProcess, PULL, WORLD, quiet_world};

fn countersign(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    command.args(arguments).env_remove("COUNTERSIGN_CONFIG");
    for (name, value) in environment {
        command.env(name, value);
    }
    command.output().expect("the program starts")
}

fn text(output: &Output) -> String {
    assert!(
        matches!(output.status.code(), Some(0 | 1)),
        "{:?}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout.clone()).expect("text")
}

/// The demo's world, played to its end, over HTTP; recorded into a file; judged from the file alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_recorded_pull_request_gives_the_same_bytes_elsewhere() {
    let sim = countersign_sim::Sim::start(&countersign_sim::World::parse("demo", WORLD).expect("a world"))
        .expect("it starts");
    while let Some(done) = sim.step().expect("a step") {
        // The last step pushes a commit that nobody has signed: what is recorded is the pull request before it.
        if sim.steps_left() == 1 && done.step.note.is_some() {
            break;
        }
    }
    let folder = Folder::new();
    let config = folder.path().join("countersign.toml");
    std::fs::write(&config, folder.config(&sim, "127.0.0.1:0")).expect("written");
    let policy = folder.path().join("demo.yaml");
    let (config, policy) = (config.display().to_string(), policy.display().to_string());
    let secret = sim.webhook_secret();
    let environment = [
        ("COUNTERSIGN_PRIVATE_KEY", sim.app_key_pem()),
        ("COUNTERSIGN_WEBHOOK_SECRET", secret.as_str()),
    ];
    let url = "https://github.com/octo/bench/pull/7";
    let file = folder.path().join("recorded.yaml").display().to_string();
    let recorded = countersign(&["record", url, "--config", &config, "--out", &file], &environment);
    assert!(
        recorded.status.success(),
        "{}",
        String::from_utf8_lossy(&recorded.stderr)
    );
    let kept = std::fs::read_to_string(&file).expect("a world file");
    assert!(
        !kept.contains("PRIVATE KEY") && !kept.contains(&secret),
        "no credential of the App is in it"
    );

    // "Now" is evidence, so the verdict that is compared with is made of what was recorded, by way of the server's own form.
    let elsewhere = text(&countersign(
        &["rehearse", &file, "--policy", &policy, "--format", "json"],
        &[],
    ));
    let verified = text(&countersign(
        &["verify", url, "--config", &config, "--format", "json"],
        &environment,
    ));
    let (elsewhere, mut verified): (Verdict, Verdict) = (
        serde_json::from_str(&elsewhere).expect("a verdict"),
        serde_json::from_str(&verified).expect("a verdict"),
    );
    assert_eq!(elsewhere.rows.len(), verified.rows.len());
    // Only the moment of the second look differs, and with it the digest.
    verified.evidence_digest.clone_from(&elsewhere.evidence_digest);
    assert_eq!(
        serde_json::to_string(&elsewhere).ok(),
        serde_json::to_string(&verified).ok()
    );
}

/// Evidence over HTTP → world file → evidence: every byte, and so the verdict's.
#[tokio::test(flavor = "multi_thread")]
async fn a_world_that_was_recorded_is_the_evidence_to_the_byte() {
    let all = InProcess::start(&quiet_world()).await;
    let id = all.sim.post_comment(PULL, "olive", GOOD).expect("posted");
    all.sim.post_comment(PULL, "olive", "/use 9001").expect("posted");
    all.settle().await;
    let kept = all
        .store
        .evaluations(&EvaluationFilter::default(), 1)
        .await
        .expect("kept");
    let kept = kept.first().expect("a verdict");
    assert_eq!(kept.signoff, format!("issuecomment-{id}"));
    let stored = all
        .store
        .blob(&kept.evidence_digest)
        .await
        .expect("read")
        .expect("there");
    let evidence = countersign_checks::restore(&stored).expect("this version's form");
    let folder = Folder::new();
    let policy = countersign_server::policies::load_from(folder.path(), "demo").expect("a policy");
    let recorded = countersign_worlds::record(&evidence, &policy.policy);
    assert_eq!(recorded.secrets, 0);
    let file = recorded.world.to_yaml().expect("YAML");
    let world = countersign_sim::World::parse("recorded", &file).expect("a world");
    assert_eq!(world, recorded.world, "the file says the same");
    let case = countersign_worlds::read(&world, "octo/bench", 7, &policy).expect("evidence");
    assert!(case.signed);
    let again = countersign_checks::record(&case.evidence).expect("bytes");
    let shown = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).expect("JSON");
    assert_eq!(shown(&again), shown(&stored));
    assert!(again == stored, "the same values in the same form");
    let verdict = serde_json::to_string(&countersign_checks::evaluate(&case.evidence, &policy)).expect("JSON");
    assert_eq!(verdict, kept.verdict);
    all.stop().await;
}

/// What the database keeps of a verdict gives it again; what does not is said loudly, with both engines.
#[tokio::test(flavor = "multi_thread")]
async fn verdicts_are_replayed_and_explained_from_what_is_kept() {
    let sim = countersign_sim::Sim::start(&quiet_world()).expect("it starts");
    let database = TestDatabase::new().await.expect("a database");
    let store = database.store().await.expect("a store");
    let folder = Folder::new();
    let mut server = crate::harness::Server::start(&folder, &sim, &database.url(), None);
    sim.set_sink(Some(&format!("http://{}/webhook", server.address)));
    sim.post_comment(PULL, "olive", GOOD).expect("posted");
    sim.deliver_all().await.expect("delivered");
    let mut found = Vec::new();
    for _ in 0..200 {
        store
            .wait_until_settled(crate::harness::PATIENCE)
            .await
            .expect("the database answers");
        found = store.evaluations(&EvaluationFilter::default(), 1).await.expect("kept");
        if !found.is_empty() {
            break;
        }
        tokio::task::yield_now().await;
    }
    let kept = found.first().expect("a verdict").clone();
    server.kill();
    let config = folder.path().join("countersign.toml").display().to_string();
    let (url, secret) = (database.url(), sim.webhook_secret());
    let environment = [
        ("DATABASE_URL", url.as_str()),
        ("COUNTERSIGN_PRIVATE_KEY", sim.app_key_pem()),
        ("COUNTERSIGN_WEBHOOK_SECRET", secret.as_str()),
    ];
    let id = kept.id.to_string();
    let replayed = countersign(&["replay", &id, "--config", &config], &environment);
    assert_eq!(replayed.status.code(), Some(0), "{replayed:?}");
    assert!(text(&replayed).contains("the same"), "{}", text(&replayed));
    let explained = text(&countersign(
        &["explain", &id, "evals", "--config", &config],
        &environment,
    ));
    for wanted in [
        "What was judged",
        "By which rule",
        "bars.yaml",
        "answered PASS",
        "target branch",
        &kept.head_sha,
    ] {
        assert!(explained.contains(wanted), "{wanted} is missing in:\n{explained}");
    }
    let unknown = countersign(&["explain", &id, "no-such-check", "--config", &config], &environment);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&unknown.stderr).contains("Name one of"),
        "{unknown:?}"
    );

    // A verdict that this engine would not give.
    let mut other: Verdict = serde_json::from_str(&kept.verdict).expect("a verdict");
    other.engine_version = "0.0.9".into();
    other.decision = countersign_core::Decision::Pass;
    let forged = countersign_store::NewEvaluation::fresh_id();
    put(&store, &kept, forged, &other).await;
    let loud = countersign(&["replay", &forged.to_string(), "--config", &config], &environment);
    assert_eq!(loud.status.code(), Some(1));
    let loud = text(&loud);
    for wanted in [
        "DIFFERENT",
        "0.0.9",
        countersign_checks::ENGINE_VERSION,
        "decision: PASS → REJECTED",
    ] {
        assert!(loud.contains(wanted), "{wanted} is missing in:\n{loud}");
    }
    assert!(Path::new(&config).exists());
}

/// Keeps one more verdict beside another, over the same evidence.
async fn put(
    store: &countersign_store::Store,
    beside: &countersign_store::Evaluation,
    id: uuid::Uuid,
    verdict: &Verdict,
) {
    let work = countersign_store::NewWork::on_pull_request("by-hand", &beside.repository, beside.pull_request);
    store.request_work(&[work]).await.expect("asked");
    let claimed = store
        .claim_work(&countersign_store::ClaimOptions::of(&["by-hand"]))
        .await
        .expect("claimed");
    let lease = claimed.leases.into_iter().next().expect("a lease");
    let changes = countersign_store::Changes {
        evaluations: vec![countersign_store::NewEvaluation {
            id,
            signoff: beside.signoff.clone(),
            head_sha: beside.head_sha.clone(),
            base_sha: beside.base_sha.clone(),
            decision: verdict.decision.word().to_owned(),
            evidence_digest: beside.evidence_digest.clone(),
            policy_digest: beside.policy_digest.clone(),
            policy_name: beside.policy_name.clone(),
            engine_version: verdict.engine_version.clone(),
            verdict: serde_json::to_string(verdict).expect("JSON"),
            supersedes: Some(beside.id),
        }],
        ..countersign_store::Changes::default()
    };
    store
        .commit(&lease, &changes, &countersign_store::Next::Done)
        .await
        .expect("kept");
}
