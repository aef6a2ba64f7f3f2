//! Credentials, permissions, limits, conditional requests, and what is not served.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeMap;

use common::{Client, REPO, rich, start};
use countersign_sim::world::InstallationSpec;
use countersign_sim::{Options, Sim, TEST_KEY_PEM, TokenKind};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::json;

fn jwt(algorithm: Algorithm, iss: &str, iat: i64, exp: i64) -> String {
    let now = chrono::Utc::now().timestamp();
    let claims = json!({"iss": iss, "iat": now + iat, "exp": now + exp});
    let key = match algorithm {
        Algorithm::HS256 => EncodingKey::from_secret(TEST_KEY_PEM.as_bytes()),
        _ => EncodingKey::from_rsa_pem(TEST_KEY_PEM.as_bytes()).unwrap(),
    };
    jsonwebtoken::encode(&Header::new(algorithm), &claims, &key).unwrap()
}

#[tokio::test]
async fn the_apps_jwt_is_checked() {
    let sim = start(&rich());
    let mut c = Client::new(&sim);
    for (token, status) in [
        (sim.app_jwt().unwrap(), 200),
        (jwt(Algorithm::RS256, "1001", -60, 600), 200),
        (jwt(Algorithm::RS256, "1001", -60, 700), 401),
        (jwt(Algorithm::RS256, "1001", -700, -1), 401),
        (jwt(Algorithm::RS256, "1001", 300, 500), 401),
        (jwt(Algorithm::RS256, "1002", -60, 500), 401),
        (jwt(Algorithm::HS256, "1001", -60, 500), 401),
        ("a.b.c".to_owned(), 401),
        ("ghs_unknown".to_owned(), 401),
    ] {
        c.token = Some(token.clone());
        assert_eq!(c.call("GET", "/app", &[], None).await.status, status, "{token}");
    }
    // An installation's token is not the App, and the App's is no installation's.
    let other = Client::new(&sim);
    assert_eq!(other.call("GET", "/app", &[], None).await.status, 401);
    c.token = Some(sim.app_jwt().unwrap());
    assert_eq!(c.call("GET", &format!("/repos/{REPO}"), &[], None).await.status, 401);
    assert_eq!(sim.calls()[0].token, TokenKind::App);
}

#[tokio::test]
async fn installation_tokens_are_minted_limited_and_expire() {
    let sim = start(&rich());
    let mut c = Client::new(&sim);
    c.token = Some(sim.app_jwt().unwrap());
    let installation = c
        .call("GET", &format!("/repos/{REPO}/installation"), &[], None)
        .await
        .json();
    let id = installation["id"].as_u64().unwrap();
    assert_eq!(id, sim.installation_of(REPO).unwrap());
    let path = format!("/app/installations/{id}/access_tokens");
    let made = c
        .call("POST", &path, &[], Some(json!({"repositories": ["bench"]})))
        .await;
    assert_eq!(made.status, 201);
    assert_eq!(
        c.call("POST", &path, &[], Some(json!({"repositories": ["other"]})))
            .await
            .status,
        422
    );
    assert_eq!(
        c.call("POST", "/app/installations/1/access_tokens", &[], None)
            .await
            .status,
        404
    );
    c.token = made.json()["token"].as_str().map(str::to_owned);
    let list = c.call("GET", "/installation/repositories", &[], None).await.json();
    assert_eq!(
        (&list["total_count"], &list["repositories"][0]["full_name"]),
        (&json!(1), &json!(REPO))
    );
    c.get("/pulls/7").await;
    sim.expire_tokens();
    assert_eq!(
        c.call("GET", &format!("/repos/{REPO}/pulls/7"), &[], None).await.status,
        401
    );
}

#[tokio::test]
async fn permissions_are_checked() {
    let mut world = rich();
    world.app.permissions = Some(BTreeMap::from([
        ("contents".into(), "read".into()),
        ("statuses".into(), "read".into()),
    ]));
    world.installations = vec![InstallationSpec {
        id: 77,
        account: "octo-org".into(),
        repositories: None,
        suspended: false,
        permissions: None,
    }];
    world.repositories.get_mut(REPO).unwrap().private = true;
    let sim = start(&world);
    let mut c = Client::new(&sim);
    let head = sim.head(7).unwrap();
    assert_eq!(
        c.call("GET", &format!("/repos/{REPO}/contents/README.md"), &[], None)
            .await
            .status,
        200
    );
    for path in ["/pulls/7", "/issues/7/comments", "/actions/runs"] {
        assert_eq!(
            c.call("GET", &format!("/repos/{REPO}{path}"), &[], None).await.status,
            403,
            "{path}"
        );
    }
    assert_eq!(
        c.call("GET", &format!("/repos/{REPO}/commits/{head}/statuses"), &[], None)
            .await
            .status,
        200
    );
    let write = c
        .call(
            "POST",
            &format!("/repos/{REPO}/statuses/{head}"),
            &[],
            Some(json!({"state": "success"})),
        )
        .await;
    assert_eq!(
        (write.status, &write.json()["message"]),
        (403, &json!("Resource not accessible by integration"))
    );
    assert_eq!(
        c.call("GET", "/orgs/octo-org/members/carol", &[], None).await.status,
        403
    );
    // A private repository is not there for others.
    c.token = None;
    assert_eq!(c.call("GET", &format!("/repos/{REPO}"), &[], None).await.status, 404);
}

#[tokio::test]
async fn unchanged_answers_are_304_and_not_counted() {
    let sim = start(&rich());
    let c = Client::new(&sim);
    let path = format!("/repos/{REPO}/pulls/7");
    let first = c.call("GET", &path, &[], None).await;
    let etag = first.header("etag").unwrap().to_owned();
    let used = first.header("x-ratelimit-used").unwrap().to_owned();
    let second = c.call("GET", &path, &[("if-none-match", &etag)], None).await;
    assert_eq!((second.status, second.body.len()), (304, 0));
    assert_eq!(second.header("x-ratelimit-used").unwrap(), used);
    assert_eq!((sim.calls().len(), sim.counted_calls()), (2, 1));
    sim.set_label(7, "other", true).unwrap();
    assert_eq!(
        c.call("GET", &path, &[("if-none-match", &etag)], None).await.status,
        200
    );
}

#[tokio::test]
async fn limits_answer_as_github_does() {
    let mut world = rich();
    world.limits.core = 3;
    world.limits.writes_per_minute = Some(1);
    world.limits.retry_after = Some(7);
    let sim = start(&world);
    let c = Client::new(&sim);
    let path = format!("/repos/{REPO}/issues/7/comments");
    assert_eq!(c.call("POST", &path, &[], Some(json!({"body": "a"}))).await.status, 201);
    let second = c.call("POST", &path, &[], Some(json!({"body": "b"}))).await;
    assert_eq!((second.status, second.header("retry-after")), (403, Some("7")));
    assert_eq!(sim.own_comments(7).unwrap().len(), 1);
    for status in [200, 200, 403] {
        let answer = c.call("GET", &path, &[], None).await;
        assert_eq!(answer.status, status);
        if status == 403 {
            assert_eq!(answer.header("x-ratelimit-remaining"), Some("0"));
            let reset: i64 = answer.header("x-ratelimit-reset").unwrap().parse().unwrap();
            assert!(reset > chrono::Utc::now().timestamp());
        }
    }
    assert_eq!(
        c.call("GET", "/rate_limit", &[], None).await.json()["rate"]["remaining"],
        0
    );
}

#[tokio::test]
async fn what_is_not_served_is_said_by_name() {
    let sim = start(&rich());
    let c = Client::new(&sim);
    for (method, path) in [
        ("GET", "/repos/octo-org/bench/topics"),
        ("DELETE", "/repos/octo-org/bench"),
        ("GET", "/user"),
        ("GET", "/"),
        ("PUT", "/app"),
    ] {
        let answer = c.call(method, path, &[], None).await;
        assert_eq!(
            (answer.status, &answer.json()["unserved"]),
            (501, &json!(format!("{method} {path}")))
        );
    }
    assert_eq!(sim.unserved().len(), 5);
}

#[tokio::test]
async fn an_enterprise_server_has_a_prefix() {
    let sim = Sim::start_with(
        &rich(),
        Options {
            prefix: "/api/v3".into(),
            ..Options::default()
        },
    )
    .unwrap();
    let c = Client::new(&sim);
    assert!(sim.base_url().ends_with("/api/v3"));
    let pull = c.get("/pulls/7").await;
    assert_eq!(pull["url"], format!("{}/repos/{REPO}/pulls/7", sim.base_url()));
    let graphql = sim.base_url().replace("/api/v3", "/api/graphql");
    let out = c
        .call("POST", &graphql, &[], Some(json!({"query": "{ viewer { login } }"})))
        .await;
    assert_eq!(out.json()["data"]["viewer"]["login"], "countersign");
    let outside = sim.base_url().replace("/api/v3", "/repos/octo-org/bench");
    assert_eq!(c.call("GET", &outside, &[], None).await.status, 501);
}
