//! Webhooks and faults, against a receiver of the test's own.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::{Arc, Mutex};

use common::{Client, REPO, rich, start};
use countersign_sim::world::faults::{FaultSpec, LimitFault};
use countersign_sim::world::spell::OneOrMany;
use countersign_sim::world::timeline::{Push, Step};
use hmac::{Hmac, Mac};
use serde_json::json;
use sha2::Sha256;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// What arrived: headers in lower case, and the body.
type Received = Arc<Mutex<Vec<(Vec<(String, String)>, Vec<u8>)>>>;

/// A receiver that answers each request with the next status, and the last one from then on.
async fn receiver(statuses: Vec<u16>) -> (String, Received) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/webhook", listener.local_addr().unwrap());
    let received = Received::default();
    let out = received.clone();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut data = Vec::new();
            let (headers, body) = loop {
                let mut chunk = [0; 4096];
                let n = stream.read(&mut chunk).await.unwrap();
                data.extend_from_slice(&chunk[..n]);
                let Some(end) = data.windows(4).position(|w| w == b"\r\n\r\n") else {
                    continue;
                };
                let head = String::from_utf8_lossy(&data[..end]).into_owned();
                let headers: Vec<(String, String)> = head
                    .lines()
                    .skip(1)
                    .filter_map(|l| l.split_once(": "))
                    .map(|(n, v)| (n.to_lowercase(), v.to_owned()))
                    .collect();
                let length: usize = headers
                    .iter()
                    .find(|(n, _)| n == "content-length")
                    .unwrap()
                    .1
                    .parse()
                    .unwrap();
                if data.len() >= end + 4 + length {
                    break (headers, data[end + 4..].to_vec());
                }
            };
            let status = {
                let mut all = out.lock().unwrap();
                all.push((headers, body));
                statuses[(all.len() - 1).min(statuses.len() - 1)]
            };
            let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok");
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (url, received)
}

fn header<'a>(headers: &'a [(String, String)], name: &str) -> &'a str {
    headers.iter().find(|(n, _)| n == name).map_or("", |(_, v)| v)
}

#[tokio::test]
async fn webhooks_are_signed_recorded_and_sent_again() {
    let sim = start(&rich());
    let (url, received) = receiver(vec![500, 202]).await;
    sim.post_comment(7, "dave", "hello").unwrap();
    assert!(sim.deliver_all().await.is_err(), "there is no sink yet");
    sim.set_sink(Some(&url));
    sim.deliver_all().await.unwrap();
    {
        let all = received.lock().unwrap();
        let (headers, body) = &all[0];
        let mut mac = Hmac::<Sha256>::new_from_slice(b"test-secret").unwrap();
        mac.update(body);
        assert_eq!(
            header(headers, "x-hub-signature-256"),
            format!("sha256={}", hex::encode(mac.finalize().into_bytes()))
        );
        assert_eq!(header(headers, "x-github-event"), "issue_comment");
        let payload: serde_json::Value = serde_json::from_slice(body).unwrap();
        assert_eq!(
            (&payload["action"], &payload["comment"]["body"]),
            (&json!("created"), &json!("hello"))
        );
        assert_eq!(
            (&payload["issue"]["number"], &payload["sender"]["login"]),
            (&json!(7), &json!("dave"))
        );
        assert!(payload["issue"]["pull_request"].is_object());
    }
    // GitHub does not try again by itself; the App finds the failure and asks.
    let mut c = Client::new(&sim);
    c.token = Some(sim.app_jwt().unwrap());
    let list = c.call("GET", "/app/hook/deliveries", &[], None).await.json();
    assert_eq!(
        (&list[0]["status_code"], &list[0]["redelivery"]),
        (&json!(500), &json!(false))
    );
    let id = list[0]["id"].as_u64().unwrap();
    let full = c
        .call("GET", &format!("/app/hook/deliveries/{id}"), &[], None)
        .await
        .json();
    assert_eq!(full["request"]["payload"]["comment"]["body"], "hello");
    assert_eq!(
        c.call("POST", &format!("/app/hook/deliveries/{id}/attempts"), &[], None)
            .await
            .status,
        202
    );
    sim.deliver_all().await.unwrap();
    let all = received.lock().unwrap();
    assert_eq!(all.len(), 2);
    assert_eq!(
        header(&all[0].0, "x-github-delivery"),
        header(&all[1].0, "x-github-delivery")
    );
    assert_eq!(all[0].1, all[1].1);
    let views = sim.deliveries();
    assert_eq!((views[1].redelivery, views[1].status_code), (true, 202));
}

#[tokio::test]
async fn deliveries_are_listed_by_cursor() {
    let sim = start(&rich());
    let (url, _) = receiver(vec![202]).await;
    sim.set_sink(Some(&url));
    for i in 0..5 {
        sim.post_comment(7, "dave", &format!("comment {i}")).unwrap();
    }
    sim.deliver_all().await.unwrap();
    let mut c = Client::new(&sim);
    c.token = Some(sim.app_jwt().unwrap());
    let mut next = Some("/app/hook/deliveries?per_page=2".to_owned());
    let mut seen = Vec::new();
    while let Some(path) = next {
        let answer = c.call("GET", &path, &[], None).await;
        seen.extend(
            answer
                .json()
                .as_array()
                .unwrap()
                .iter()
                .map(|d| d["id"].as_u64().unwrap()),
        );
        next = answer
            .header("link")
            .map(|l| l.split(['<', '>']).nth(1).unwrap().to_owned());
    }
    let mut expected: Vec<u64> = sim.deliveries().iter().map(|d| d.id).collect();
    expected.reverse();
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn webhooks_are_lost_doubled_reordered_and_forged() {
    let mut world = rich();
    let hook = |calls: u64| FaultSpec {
        on: "webhook issue_comment".into(),
        calls: Some(OneOrMany::One(calls)),
        ..FaultSpec::default()
    };
    world.faults = vec![
        FaultSpec { drop: true, ..hook(1) },
        FaultSpec {
            unrecorded: true,
            ..hook(2)
        },
        FaultSpec {
            duplicate: Some(2),
            ..hook(3)
        },
        FaultSpec {
            hold: Some(1),
            ..hook(4)
        },
        FaultSpec {
            bad_signature: true,
            ..hook(6)
        },
        FaultSpec {
            status: Some(500),
            applied: true,
            ..hook(7)
        },
    ];
    let sim = start(&world);
    for i in 1..=7 {
        sim.post_comment(7, "dave", &format!("{i}")).unwrap();
    }
    let (url, received) = receiver(vec![202]).await;
    sim.set_sink(Some(&url));
    sim.deliver_all().await.unwrap();
    let all = received.lock().unwrap().clone();
    let bodies: Vec<String> = all
        .iter()
        .map(|(_, b)| {
            serde_json::from_slice::<serde_json::Value>(b).unwrap()["comment"]["body"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(bodies, ["3", "3", "5", "4", "6", "7"]);
    assert_eq!(
        header(&all[0].0, "x-github-delivery"),
        header(&all[1].0, "x-github-delivery")
    );
    let mut mac = Hmac::<Sha256>::new_from_slice(b"test-secret").unwrap();
    mac.update(&all[4].1);
    assert_ne!(
        header(&all[4].0, "x-hub-signature-256"),
        format!("sha256={}", hex::encode(mac.finalize().into_bytes()))
    );
    let mut c = Client::new(&sim);
    c.token = Some(sim.app_jwt().unwrap());
    let list = c
        .call("GET", "/app/hook/deliveries?per_page=100&status=failure", &[], None)
        .await
        .json();
    let codes: Vec<u64> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|d| d["status_code"].as_u64().unwrap())
        .collect();
    assert_eq!(
        codes,
        [500, 502],
        "the last one that the receiver took, and the first that was dropped"
    );
}

#[tokio::test]
async fn calls_fail_in_every_way() {
    let sim = start(&rich());
    let c = Client::new(&sim);
    let path = format!("/repos/{REPO}/pulls/7");
    let fault = |f: FaultSpec| {
        sim.clear_faults();
        sim.add_fault(FaultSpec {
            on: "GET /repos/*/*/pulls/*".into(),
            times: Some(1),
            ..f
        })
        .unwrap();
    };
    fault(FaultSpec {
        status: Some(502),
        ..FaultSpec::default()
    });
    assert_eq!(c.call("GET", &path, &[], None).await.status, 502);
    assert_eq!(c.call("GET", &path, &[], None).await.status, 200);
    fault(FaultSpec {
        drop: true,
        ..FaultSpec::default()
    });
    assert!(c.try_call("GET", &path, &[], None).await.is_err());
    fault(FaultSpec {
        truncate: Some(50),
        ..FaultSpec::default()
    });
    assert!(c.try_call("GET", &path, &[], None).await.is_err());
    fault(FaultSpec {
        cut: Some(50),
        ..FaultSpec::default()
    });
    let cut = c.call("GET", &path, &[], None).await;
    assert_eq!((cut.status, cut.body.len()), (200, 50));
    fault(FaultSpec {
        limit: Some(LimitFault::Primary),
        retry_after: Some(30),
        ..FaultSpec::default()
    });
    let limited = c.call("GET", &path, &[], None).await;
    assert_eq!(
        (limited.status, limited.header("x-ratelimit-remaining")),
        (403, Some("0"))
    );
    fault(FaultSpec {
        limit: Some(LimitFault::Secondary),
        retry_after: Some(2),
        ..FaultSpec::default()
    });
    assert_eq!(c.call("GET", &path, &[], None).await.header("retry-after"), Some("2"));
    fault(FaultSpec {
        limit: Some(LimitFault::TooMany),
        ..FaultSpec::default()
    });
    assert_eq!(c.call("GET", &path, &[], None).await.status, 429);
    fault(FaultSpec {
        limit: Some(LimitFault::Bare),
        ..FaultSpec::default()
    });
    let bare = c.call("GET", &path, &[], None).await;
    assert_eq!(
        (
            bare.status,
            bare.header("retry-after"),
            bare.header("x-ratelimit-remaining")
        ),
        (403, None, None)
    );
    assert_eq!(sim.faults_fired(), 1);
}

#[tokio::test]
async fn a_write_is_accepted_and_then_fails() {
    let sim = start(&rich());
    let c = Client::new(&sim);
    sim.add_fault(FaultSpec {
        on: "POST /repos/*/*/issues/*/comments".into(),
        calls: Some(OneOrMany::One(1)),
        status: Some(502),
        applied: true,
        ..FaultSpec::default()
    })
    .unwrap();
    let path = format!("/repos/{REPO}/issues/7/comments");
    assert_eq!(
        c.call("POST", &path, &[], Some(json!({"body": "once"}))).await.status,
        502
    );
    assert_eq!(sim.own_comments(7).unwrap().len(), 1);
    let writes = sim.writes();
    assert_eq!(
        (writes.len(), &writes[0].body["body"], writes[0].status),
        (1, &json!("once"), 201)
    );
}

#[tokio::test]
async fn a_run_starts_and_completes() {
    let sim = start(&rich());
    let c = Client::new(&sim);
    let spec = countersign_sim::world::actions::RunSpec {
        head: "arm".into(),
        status: Some("in_progress".into()),
        ..Default::default()
    };
    let id = sim.start_run(REPO, &spec).unwrap();
    assert_eq!(
        c.get(&format!("/actions/runs/{id}")).await["conclusion"],
        serde_json::Value::Null
    );
    sim.complete_run(id, "failure").unwrap();
    let run = c.get(&format!("/actions/runs/{id}")).await;
    assert_eq!(
        (&run["status"], &run["conclusion"]),
        (&json!("completed"), &json!("failure"))
    );
    let events: Vec<_> = sim
        .deliveries()
        .iter()
        .map(|d| format!("{} {}", d.event, d.action.clone().unwrap()))
        .collect();
    assert_eq!(events, ["workflow_run requested", "workflow_run completed"]);
    assert!(sim.complete_run(1, "success").is_err());
}

#[tokio::test]
async fn the_head_moves_after_the_first_look() {
    let sim = start(&rich());
    let c = Client::new(&sim);
    let push = Push {
        pull: 7.into(),
        head: Some("later".into()),
        commit: None,
        by: None,
    };
    sim.add_fault(FaultSpec {
        on: "GET /repos/*/*/pulls/7".into(),
        calls: Some(OneOrMany::One(1)),
        after: Some(Box::new(Step {
            push: Some(push),
            ..Step::default()
        })),
        ..FaultSpec::default()
    })
    .unwrap();
    let first = c.get("/pulls/7").await;
    let second = c.get("/pulls/7").await;
    assert_ne!(first["head"]["sha"], second["head"]["sha"]);
    assert_eq!(sim.deliveries().last().unwrap().action.as_deref(), Some("synchronize"));
    assert_eq!(sim.complaints(), Vec::<String>::new());
}
