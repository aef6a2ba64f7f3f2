//! What an attacker can write: a pull request, a comment, a webhook without the secret. `SECURITY.md` lists what was tried.

use countersign_store::EvaluationFilter;
use pulldown_cmark::{Event, Options, Parser, Tag};

use crate::harness::{CONTEXT, Folder, GOOD, InProcess, PATIENCE, PULL, Server, quiet_world};
use crate::webhook::post;

/// Everything at once: a mention, an image, a link, a reference, a heading, a table, a comment, a script, and text that runs backwards.
const HOSTILE: &str = "x @mallory <img src=https://evil.example/p.png onerror=alert(1)> [a](https://evil.example) #12 **b** | c | <!-- d --> <script>alert(1)</script> \u{202e}txt";

fn hostile_yaml() -> String {
    serde_json::to_string(HOSTILE).expect("JSON is YAML")
}

/// What of a comment would act, beside what our own text is made of.
fn active(markdown: &str) -> Vec<String> {
    let mut found = Vec::new();
    for event in Parser::new_ext(markdown, Options::all() - Options::ENABLE_SUPERSCRIPT) {
        match event {
            Event::Html(html) | Event::InlineHtml(html) => {
                let html = html.trim();
                let ours = html.starts_with("<!-- demo-verdict signoff=issuecomment-")
                    || ["<details>", "</details>", "<summary>", "</summary>", "<sub>", "</sub>"]
                        .iter()
                        .any(|tag| html.starts_with(tag));
                if !ours {
                    found.push(format!("HTML {html}"));
                }
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. })
                if !dest_url.starts_with("https://github.com/octo/bench/") =>
            {
                found.push(format!("link {dest_url}"));
            }
            // GitHub finds mentions and references in what is rendered, not in code.
            Event::Text(text) => {
                for (at, sign) in text.match_indices(['@', '#']) {
                    let after = &text[at + 1..];
                    let mention = sign == "@" && after.starts_with(|c: char| c.is_ascii_alphanumeric());
                    let reference = sign == "#" && after.starts_with(|c: char| c.is_ascii_digit());
                    if (mention && !after.starts_with("olive")) || reference {
                        found.push(format!("{sign}{after}"));
                    }
                }
                if text.contains("://") {
                    found.push(format!("bare link {text}"));
                }
            }
            _ => {}
        }
    }
    if markdown.contains('\u{202e}') {
        found.push("text that runs backwards".into());
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_others_write_acts() {
    let mut world = quiet_world();
    let bench = world.repositories.get_mut("octo/bench").expect("there");
    bench.pulls[0].title = Some(HOSTILE.into());
    bench.pulls[0].body = Some(HOSTILE.into());
    let change = bench
        .commits
        .iter_mut()
        .find(|commit| commit.id == "change")
        .expect("there");
    change.message = Some(HOSTILE.into());
    let key = hostile_yaml();
    let files = serde_json::json!({
        "configs/a.yaml": format!("{key}:\n  image: {key}\n  model: {key}\n  model-prefix: {key}\n  runner: b9\n  precision: fp8\n  framework: {key}\n  multinode: false\n  scenarios:\n    fixed-seq-len:\n      - {{ isl: 8192, osl: 1024, search-space: [{{ tp: 8, conc-list: [4, 16, 32, 64] }}] }}\n"),
        "journal.yaml": format!("- config-keys: [{key}]\n  description: [{key}]\n  pr-link: {key}\n"),
        "configs/ @mallory <b>x<b> #1.yaml": "{}\n",
    });
    change.files = serde_json::from_value(files).expect("files");
    let way = InProcess::start_with(&world, &str::to_owned).await;
    way.settle().await;
    let signoff = format!(
        "{GOOD}- [ ] {HOSTILE}\n- [x] {HOSTILE}\n\n### Details\n- {HOSTILE}\n- https://evil.example/run/1\n\nSigned: {HOSTILE}\n"
    );
    way.sim.post_comment(PULL, "olive", "/use 9001").expect("posted");
    way.sim.post_comment(PULL, "olive", &signoff).expect("posted");
    way.sim
        .post_comment(
            PULL,
            "olive",
            &format!("/countersign override sweep {HOSTILE}\n/countersign explain {HOSTILE}\n"),
        )
        .expect("posted");
    way.settle().await;
    let comments = way.sim.own_comments(PULL).expect("there");
    assert!(
        !comments.is_empty(),
        "there is something to look at: {:?}",
        way.sim.status(PULL, CONTEXT)
    );
    for comment in &comments {
        let body = comment.body.replace(
            "<!-- demo-verdict-answer to=",
            "<!-- demo-verdict signoff=issuecomment-",
        );
        assert!(active(&body).is_empty(), "{:#?}\n{}", active(&body), comment.body);
    }
    let head = way.sim.head(PULL).expect("a head");
    for status in way.sim.statuses("octo/bench", &head) {
        let text = status.description.unwrap_or_default();
        assert!(
            text.chars().count() <= 140 && !text.chars().any(char::is_control),
            "{text:?}"
        );
    }
    way.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_an_evaluation_escapes_everything_and_is_closed_by_default() {
    let mut world = quiet_world();
    let bench = world.repositories.get_mut("octo/bench").expect("there");
    let change = bench
        .commits
        .iter_mut()
        .find(|commit| commit.id == "change")
        .expect("there");
    let files = serde_json::json!({ "configs/a.yaml": format!("{}: 1\n", hostile_yaml()) });
    change.files = serde_json::from_value(files).expect("files");
    for open in [false, true] {
        let way = InProcess::start_configured(&world, &str::to_owned, if open { "pages = true\n" } else { "" }).await;
        way.settle().await;
        way.sim.post_comment(PULL, "olive", GOOD).expect("posted");
        way.settle().await;
        let found = way
            .store
            .evaluations(&EvaluationFilter::default(), 1)
            .await
            .expect("the database answers");
        let id = found.first().expect("a verdict").id;
        let address = format!("http://{}/evaluations/{id}", way.service.address());
        let answer = reqwest::get(&address).await.expect("an answer");
        assert_eq!(answer.status().as_u16(), if open { 200 } else { 404 });
        let policy = answer.headers()["content-security-policy"]
            .to_str()
            .expect("text")
            .to_owned();
        assert!(
            policy.starts_with("default-src 'none'") && !policy.contains("unsafe"),
            "{policy}"
        );
        let text = answer.text().await.expect("text");
        assert!(!text.contains("<script") && !text.contains("<img"), "{text}");
        if open {
            assert!(text.contains("REJECTED") && text.contains("olive"), "{text}");
        }
        for odd in [
            "nonsense",
            "..%2f..%2fetc%2fpasswd",
            "00000000-0000-0000-0000-000000000000",
            "%3Cscript%3E",
        ] {
            let answer = reqwest::get(format!("http://{}/evaluations/{odd}", way.service.address()))
                .await
                .expect("an answer");
            assert_eq!(answer.status().as_u16(), 404, "{odd}");
            assert!(!answer.text().await.expect("text").contains("<script"), "{odd}");
        }
        way.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_that_only_look_alike_do_not_sign() {
    let way = InProcess::start(&quiet_world()).await;
    way.settle().await;
    // A Cyrillic А, a full-width letter, and boxes whose brackets are full-width.
    for body in [
        GOOD.replacen('A', "\u{410}", 1),
        GOOD.replacen('A', "\u{ff21}", 1),
        GOOD.replace("[x]", "［x］").replace("[ ]", "［ ］"),
    ] {
        way.sim.post_comment(PULL, "olive", &body).expect("posted");
    }
    way.sim
        .post_comment(PULL, "olive", "/\u{441}ountersign verify\n／use 9001\n")
        .expect("posted");
    way.settle().await;
    assert!(way.sim.own_comments(PULL).expect("there").is_empty());
    let status = way.sim.status(PULL, CONTEXT).expect("there").expect("a status");
    assert_eq!(status.state, "pending", "{status:?}");
    way.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backdated_push_is_no_part_of_what_was_signed() {
    let way = InProcess::start(&quiet_world()).await;
    way.settle().await;
    way.sim.post_comment(PULL, "olive", "/use 9001").expect("posted");
    way.sim.post_comment(PULL, "olive", GOOD).expect("posted");
    way.settle().await;
    let old = serde_json::json!({ "id": "old", "files": { "notes.md": "x" }, "date": "2026-11-02T07:30:00Z" });
    way.sim
        .push_commit(PULL, serde_json::from_value(old).expect("a commit"))
        .expect("pushed");
    way.settle().await;
    let status = way.sim.status(PULL, CONTEXT).expect("there").expect("a status");
    assert_eq!(status.state, "pending", "{status:?}");
    assert!(status.description.is_some_and(|text| text.contains("Head moved")));
    way.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_can_answer_for_those_who_may() {
    let way = InProcess::start(&quiet_world()).await;
    way.settle().await;
    way.sim.post_comment(PULL, "olive", GOOD).expect("posted");
    // Somebody without a role authorises a run, lifts the failure, confirms, and signs too.
    for text in [
        "/use 9001",
        "/countersign override reuse-command because",
        "/countersign confirm reuse-command because",
    ] {
        way.sim.post_comment(PULL, "mallory", text).expect("posted");
    }
    way.settle().await;
    let status = way.sim.status(PULL, CONTEXT).expect("there").expect("a status");
    assert_eq!(status.state, "failure", "{status:?}");
    way.sim.post_comment(PULL, "mallory", GOOD).expect("posted");
    way.settle().await;
    let status = way.sim.status(PULL, CONTEXT).expect("there").expect("a status");
    assert_eq!(
        status.state, "failure",
        "a stranger's sign-off is no owner's: {status:?}"
    );
    way.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deep_and_odd_payloads_are_refused_in_words() {
    let way = InProcess::start(&quiet_world()).await;
    way.settle().await;
    let secret = way.sim.webhook_secret();
    let deep = "[".repeat(200_000) + &"]".repeat(200_000);
    let bodies = [
        deep.clone().into_bytes(),
        format!("{{\"a\":{deep}}}").into_bytes(),
        b"{\"action\":\"created\",\"issue\":{\"number\":-1}}".to_vec(),
        b"\xff\xfe".to_vec(),
        Vec::new(),
    ];
    for (index, body) in bodies.iter().enumerate() {
        for event in ["issue_comment", "pull_request", "workflow_run", "status"] {
            let (code, text) = post(&way, body, &secret, Some(event), &format!("odd-{index}-{event}")).await;
            assert_eq!(code, 400, "{index} {event}: {text}");
            assert!(!text.trim().is_empty() && text.len() < 1_000, "{text}");
        }
    }
    // A GUID or event that is no name is not stored either.
    let (code, _) = post(&way, b"{}", &secret, Some(&"x".repeat(100)), "long").await;
    assert_eq!(code, 400);
    way.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_in_the_log() {
    use countersign_sim::Sim;
    use countersign_sim::world::faults::FaultSpec;
    use countersign_store::testing::TestDatabase;
    let sim = Sim::start(&quiet_world()).expect("the simulator starts");
    let database = TestDatabase::new().await.expect("a database");
    let folder = Folder::new();
    for (on, status) in [
        ("POST /repos/**", 502),
        ("GET /repos/*/*/actions/**", 401),
        ("GET /repos/*/*/branches/*", 500),
    ] {
        sim.add_fault(FaultSpec {
            on: on.into(),
            times: Some(2),
            status: Some(status),
            ..FaultSpec::default()
        })
        .expect("a fault");
    }
    let server = Server::start(&folder, &sim, &database.url(), None);
    sim.set_sink(Some(&format!("http://{}/webhook", server.address)));
    sim.post_comment(PULL, "olive", "/use 9001").expect("posted");
    sim.post_comment(PULL, "olive", GOOD).expect("posted");
    let store = database.store().await.expect("a store");
    let mut asked = std::collections::HashSet::new();
    let verdict = async {
        while sim.own_comments(PULL).expect("there").is_empty() {
            sim.deliver_all().await.expect("sent or refused");
            for sent in sim.deliveries().iter().filter(|sent| sent.delivered_at.is_some()) {
                // A server that is slow to reach its database refuses, and would look for what it missed minutes later.
                if !matches!(sent.status_code, 200..=299) && asked.insert(sent.id) {
                    sim.redeliver(sent.id).expect("sent before");
                }
            }
            let settled = store.wait_until_settled(PATIENCE).await;
            settled.expect("the database answers");
            // Credentials that were refused are tried again after a minute, or with the next comment.
            if sim.own_comments(PULL).expect("there").is_empty() {
                sim.post_comment(PULL, "olive", GOOD).expect("posted");
            }
        }
    };
    let in_time = tokio::time::timeout(PATIENCE, verdict).await.is_ok();
    drop(server);
    let log = folder.log();
    assert!(in_time, "no verdict; deliveries {:?}; log {log}", sim.deliveries());
    let key_line = sim.app_key_pem().lines().nth(3).expect("a key").to_owned();
    for (what, secret) in [
        ("the webhook secret", sim.webhook_secret()),
        ("the private key", key_line),
        ("an installation token", "ghs_".to_owned()),
        ("a JWT", "eyJ".to_owned()),
        ("the database's address", database.url()),
        ("a sign-off's text", "Saw that evals pass".to_owned()),
    ] {
        assert!(!log.contains(&secret), "{what} is in the log");
    }
}
