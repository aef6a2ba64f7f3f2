//! What `/webhook` answers to what should not have been sent.

use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::harness::{InProcess, quiet_world};

pub(crate) async fn post(way: &InProcess, body: &[u8], secret: &str, event: Option<&str>, guid: &str) -> (u16, String) {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("any key");
    mac.update(body);
    let signature = format!("sha256={}", hex::encode(mac.finalize().into_bytes()));
    let mut request = reqwest::Client::new()
        .post(format!("http://{}/webhook", way.service.address()))
        .header("x-hub-signature-256", signature)
        .header("x-github-delivery", guid)
        .header("content-type", "application/json")
        .body(body.to_vec());
    if let Some(event) = event {
        request = request.header("x-github-event", event);
    }
    match request.send().await {
        Ok(answer) => (answer.status().as_u16(), answer.text().await.unwrap_or_default()),
        // A server may close the connection on a body that it will not read.
        Err(_) => (413, String::new()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_get_their_answer_and_leave_nothing_but_a_count() {
    let way = InProcess::start(&quiet_world()).await;
    way.settle().await;
    let secret = way.sim.webhook_secret();
    let comment = br#"{"action":"created"}"#;
    assert_eq!(post(&way, b"{}", "wrong", Some("ping"), "g1").await.0, 401);
    assert_eq!(
        post(&way, &vec![b' '; 30 * 1024 * 1024], &secret, Some("ping"), "g2")
            .await
            .0,
        413
    );
    assert_eq!(post(&way, b"{", &secret, Some("whatever"), "g3").await.0, 400);
    assert_eq!(post(&way, b"{}", &secret, None, "g4").await.0, 400);
    let (code, text) = post(&way, comment, &secret, Some("issue_comment"), "g5").await;
    assert!(code == 400 && text.contains("issue"), "{code} {text}");
    for guid in ["g1", "g2", "g3", "g4", "g5"] {
        assert!(
            way.store.delivery(guid).await.expect("the database answers").is_none(),
            "{guid} is stored"
        );
    }

    let (code, _) = post(&way, b"{}", &secret, Some("some_future_event"), "g6").await;
    assert_eq!(code, 202, "an unknown event is stored as ignored");
    let stored = way
        .store
        .delivery("g6")
        .await
        .expect("the database answers")
        .expect("stored");
    assert!(stored.ignored_reason.is_some());
    assert_eq!(
        post(&way, b"{}", &secret, Some("some_future_event"), "g6").await,
        (202, "stored before\n".into())
    );

    // Counts are written every few seconds.
    let patience = std::time::Instant::now();
    loop {
        let counted: i64 = way
            .store
            .rejected(10)
            .await
            .expect("the database answers")
            .iter()
            .map(|(_, _, count)| count)
            .sum();
        if counted == 5 {
            break;
        }
        assert!(
            counted < 5 && patience.elapsed() < crate::harness::PATIENCE,
            "{counted} counted"
        );
        tokio::task::yield_now().await;
    }
    way.stop().await;
}

/// Every example payload that GitHub's tool kit publishes gets a 2xx or a clear 4xx, never a 5xx.
#[tokio::test(flavor = "multi_thread")]
async fn published_examples_are_answered() {
    let Some(folder) = std::env::var_os("COUNTERSIGN_WEBHOOK_EXAMPLES") else {
        eprintln!("skipped: COUNTERSIGN_WEBHOOK_EXAMPLES names no folder of @octokit/webhooks-examples");
        return;
    };
    let way = InProcess::start(&quiet_world()).await;
    let secret = way.sim.webhook_secret();
    let text =
        std::fs::read(std::path::Path::new(&folder).join("api.github.com/index.json")).expect("the package's list");
    let events: Vec<serde_json::Value> = serde_json::from_slice(&text).expect("JSON");
    let mut sent = 0;
    for event in &events {
        let name = event["name"].as_str().unwrap_or_default();
        for example in event["examples"].as_array().into_iter().flatten() {
            let (code, answer) = post(
                &way,
                example.to_string().as_bytes(),
                &secret,
                Some(name),
                &format!("example-{sent}"),
            )
            .await;
            assert!(
                (200..300).contains(&code) || ((400..500).contains(&code) && !answer.trim().is_empty()),
                "{name}: {code} {answer}"
            );
            sent += 1;
        }
    }
    assert!(sent > 100, "{sent}");
    way.stop().await;
}
