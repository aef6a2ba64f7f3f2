//! The client's rules about repeating, limits, tokens, conditional requests and lists, against the simulator.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{TimeDelta, Utc};
use countersign_core::PrNumber;
use countersign_github::{App, AppConfig, GitHubError, Retry};
use countersign_sim::world::faults::{FaultSpec, LimitFault};
use countersign_sim::world::pulls::CommentSpec;
use countersign_sim::world::spell::OneOrMany;
use countersign_sim::{Options, TokenKind};
use support::{Bench, REPO, name, world};

const PULL: PrNumber = PrNumber(7);
const PULL_PATH: &str = "GET /repos/*/*/pulls/7";

fn fault(on: &str) -> FaultSpec {
    FaultSpec {
        on: on.into(),
        ..FaultSpec::default()
    }
}

#[tokio::test]
async fn the_app_knows_itself_and_where_it_is_installed() {
    let bench = Bench::new(&world());
    let who = bench.app.identity().await.unwrap();
    assert_eq!(
        (who.id, who.slug.as_str(), who.bot.as_str()),
        (1001, "countersign", "countersign[bot]")
    );
    bench.app.identity().await.unwrap();
    bench.repo().await;
    bench.repo().await;
    assert_eq!(bench.calls(), ["GET /app", "GET /installation"]);
    assert_eq!(bench.app.repositories().await.unwrap(), [name(REPO)]);
    let elsewhere = bench.app.repository(&name("engine/recipes")).await.unwrap_err();
    assert!(matches!(elsewhere, GitHubError::NotFound { .. }), "{elsewhere}");
    assert!(bench.app.skew().unwrap().ahead.abs() <= TimeDelta::seconds(2));
    let key = AppConfig::new(1, "no key".to_owned().into(), "https://api.github.com".parse().unwrap());
    assert!(matches!(App::new(key), Err(GitHubError::Config(why)) if why.contains("private key")));
}

#[tokio::test]
async fn a_token_that_is_refused_is_renewed_once() {
    let bench = Bench::new(&world());
    let repo = bench.repo().await;
    repo.pull_request(PULL).await.unwrap();
    bench.sim.expire_tokens();
    bench.sim.clear_calls();
    repo.pull_request(PULL).await.unwrap();
    let calls: Vec<_> = bench
        .sim
        .calls()
        .into_iter()
        .map(|call| (call.status, call.token))
        .collect();
    assert_eq!(
        calls,
        [
            (401, TokenKind::None),
            (201, TokenKind::App),
            (304, TokenKind::Installation)
        ]
    );
    // Refused for another reason: asked twice, no more.
    bench
        .sim
        .add_fault(FaultSpec {
            status: Some(401),
            ..fault(PULL_PATH)
        })
        .unwrap();
    bench.sim.clear_calls();
    let error = repo.pull_request(PULL).await.unwrap_err();
    assert!(
        matches!(error, GitHubError::Unauthorized { .. }) && error.retry() == Retry::No,
        "{error}"
    );
    assert_eq!(bench.calls().iter().filter(|call| call.contains("pulls/7")).count(), 2);
    assert!(!error.to_string().contains("ghs_"));
}

#[tokio::test]
async fn reads_are_repeated_a_few_times_and_writes_never() {
    let bench = Bench::new(&world());
    let repo = bench.repo().await;
    bench
        .sim
        .add_fault(FaultSpec {
            status: Some(502),
            times: Some(2),
            ..fault(PULL_PATH)
        })
        .unwrap();
    bench
        .sim
        .add_fault(FaultSpec {
            drop: true,
            calls: Some(OneOrMany::One(3)),
            ..fault(PULL_PATH)
        })
        .unwrap();
    repo.pull_request(PULL).await.unwrap();
    assert_eq!(bench.calls().iter().filter(|call| call.contains("pulls/7")).count(), 4);
    let waits: Vec<Duration> = bench.waits.lock().unwrap().drain(..).collect();
    assert_eq!(waits.len(), 3);
    assert!(
        waits
            .iter()
            .zip([100, 200, 400])
            .all(|(wait, most)| wait.as_millis() <= most && wait.as_millis() >= most / 2),
        "{waits:?}"
    );

    bench.sim.clear_faults();
    bench
        .sim
        .add_fault(FaultSpec {
            status: Some(503),
            ..fault(PULL_PATH)
        })
        .unwrap();
    bench.sim.clear_calls();
    let error = repo.pull_request(PULL).await.unwrap_err();
    assert!(
        matches!(error, GitHubError::Transient { status: 503, .. }) && error.retry() == Retry::Soon,
        "{error}"
    );
    assert_eq!(bench.sim.calls().len(), 4);

    bench.sim.clear_faults();
    bench
        .sim
        .add_fault(FaultSpec {
            status: Some(502),
            ..fault("POST /repos/*/*/statuses/*")
        })
        .unwrap();
    bench.sim.clear_calls();
    let sha = bench.sim.head(7).unwrap().parse().unwrap();
    let wanted = countersign_github::publish::DesiredStatus {
        sha: &sha,
        context: "x",
        state: countersign_github::publish::StatusState::Pending,
        description: "x",
        target_url: None,
    };
    let error = countersign_github::publish::ensure_status(&repo, &wanted)
        .await
        .unwrap_err();
    assert!(error.is_ambiguous());
    assert_eq!(bench.calls().iter().filter(|call| call.starts_with("POST")).count(), 1);
}

#[tokio::test]
async fn an_answer_that_is_cut_short_is_no_answer() {
    let bench = Bench::new(&world());
    let repo = bench.repo().await;
    bench
        .sim
        .add_fault(FaultSpec {
            truncate: Some(100),
            times: Some(1),
            ..fault(PULL_PATH)
        })
        .unwrap();
    assert_eq!(repo.pull_request(PULL).await.unwrap().number, PULL);
    // JSON that ends too early, with nothing in the headers to tell of it.
    for cut in [0, 100] {
        let bench = Bench::new(&world());
        let repo = bench.repo().await;
        bench
            .sim
            .add_fault(FaultSpec {
                cut: Some(cut),
                times: Some(1),
                ..fault(PULL_PATH)
            })
            .unwrap();
        assert_eq!(repo.pull_request(PULL).await.unwrap().number, PULL);
    }
    // Where it is so each time, it is a failure that may pass, and nothing of it is kept.
    let bench = Bench::new(&world());
    let repo = bench.repo().await;
    bench
        .sim
        .add_fault(FaultSpec {
            cut: Some(100),
            ..fault(PULL_PATH)
        })
        .unwrap();
    let error = repo.pull_request(PULL).await.unwrap_err();
    assert!(matches!(error, GitHubError::Network { .. }), "{error}");
    assert_eq!(error.retry(), countersign_github::Retry::Soon);
    bench.sim.clear_faults();
    assert_eq!(repo.pull_request(PULL).await.unwrap().number, PULL);
}

#[tokio::test]
async fn short_limits_are_waited_for_and_long_ones_are_told() {
    let bench = Bench::new(&world());
    let repo = bench.repo().await;
    bench
        .sim
        .add_fault(FaultSpec {
            limit: Some(LimitFault::TooMany),
            retry_after: Some(1),
            times: Some(1),
            ..fault(PULL_PATH)
        })
        .unwrap();
    repo.pull_request(PULL).await.unwrap();
    let waits: Vec<Duration> = bench.waits.lock().unwrap().drain(..).collect();
    assert!(
        waits.len() == 1 && waits[0] <= Duration::from_secs(1) && waits[0] > Duration::from_millis(500),
        "{waits:?}"
    );

    for (limit, retry_after, least, most) in [
        (LimitFault::Secondary, Some(90), 85, 90),
        (LimitFault::TooMany, Some(90), 85, 90),
        (LimitFault::Primary, Some(1_000), 990, 1_001),
        (LimitFault::Bare, None, 55, 60),
    ] {
        let bench = Bench::new(&world());
        let repo = bench.repo().await;
        bench
            .sim
            .add_fault(FaultSpec {
                limit: Some(limit),
                retry_after,
                times: Some(1),
                ..fault(PULL_PATH)
            })
            .unwrap();
        let error = repo.pull_request(PULL).await.unwrap_err();
        let Retry::At(until) = error.retry() else {
            panic!("{limit:?}: {error}")
        };
        let wait = (until - Utc::now()).num_seconds();
        assert!((least..=most).contains(&wait), "{limit:?}: {wait} s");
        assert!(bench.waits.lock().unwrap().is_empty());
        // Nothing is called before then, whoever asks.
        bench.sim.clear_calls();
        assert!(matches!(
            repo.list_open_pull_requests().await,
            Err(GitHubError::RateLimited { .. })
        ));
        assert!(bench.sim.calls().is_empty());
        // The App itself has limits of its own.
        bench.app.grants().await.unwrap();
    }
}

#[tokio::test]
async fn a_missing_permission_is_no_limit() {
    let mut world = world();
    world.app.permissions = Some(BTreeMap::from([("contents".into(), "read".into())]));
    let bench = Bench::new(&world);
    let repo = bench.repo().await;
    let error = repo.pull_request(PULL).await.unwrap_err();
    assert!(matches!(&error, GitHubError::Forbidden { .. }), "{error}");
    assert!(
        error.to_string().contains("pull request #7") && error.to_string().contains("grant"),
        "{error}"
    );
    assert_eq!(error.retry(), Retry::No);
    let granted = bench.app.installation_grants(&name(REPO)).await.unwrap();
    assert_eq!(granted.permissions.get("contents").map(String::as_str), Some("read"));
}

#[tokio::test]
async fn lists_are_read_to_the_end() {
    let mut world = world();
    let pull = &mut world.repositories.get_mut(REPO).unwrap().pulls[0];
    let comments = pull.comments.get_or_insert_default();
    for n in 0..345 {
        comments.push(CommentSpec {
            id: Some(10_000 + n),
            author: "dave".into(),
            body: Some(n.to_string()),
            ..CommentSpec::default()
        });
    }
    let bench = Bench::new(&world);
    let repo = bench.repo().await;
    let thread = repo.thread(PULL).await.unwrap();
    assert_eq!(thread.len(), 345 + 6 + 1 + 1);
    assert!(thread.windows(2).all(|pair| pair[0].created_at <= pair[1].created_at));
    bench.sim.clear_calls();
    assert_eq!(repo.thread(PULL).await.unwrap(), thread);
    assert!(
        bench.sim.calls().iter().all(|call| call.status == 304),
        "{:?}",
        bench.sim.calls()
    );
    assert_eq!(bench.sim.calls().len(), 4 + 1 + 1);
    // A comment on a later page changes that page only.
    bench.sim.edit_comment(10_300, "changed", "dave").unwrap();
    bench.sim.clear_calls();
    assert!(
        repo.thread(PULL)
            .await
            .unwrap()
            .iter()
            .any(|item| item.body == "changed")
    );
    assert_eq!(bench.sim.calls().iter().filter(|call| call.status == 200).count(), 1);
    // More pages than we take is an error, never a part.
    let small = Bench::with(&world, Options::default(), |config| config.limits.pages = 3);
    let error = small.repo().await.thread(PULL).await.unwrap_err();
    assert!(matches!(error, GitHubError::TooLarge { .. }), "{error}");
}

#[tokio::test]
async fn smaller_reads() {
    let bench = Bench::new(&world());
    let repo = bench.repo().await;
    let pull = repo.pull_request(PULL).await.unwrap();
    assert_eq!(
        (
            pull.head_ref.as_str(),
            pull.base_ref.as_str(),
            pull.draft,
            pull.open,
            pull.merged
        ),
        ("arm", "main", false, true, false)
    );
    assert_eq!(
        (pull.author.as_ref().unwrap().as_str(), pull.changed_files),
        ("dana", Some(3))
    );
    let open = repo.list_open_pull_requests().await.unwrap();
    assert_eq!(open.iter().map(|pull| pull.number.0).collect::<Vec<_>>(), [8, 7]);
    let with = repo.pull_requests_for_commit(&pull.head_sha).await.unwrap();
    assert_eq!(with.iter().map(|pull| pull.number.0).collect::<Vec<_>>(), [7]);
    let (comment, number) = repo.issue_comment(600).await.unwrap();
    assert_eq!(
        (comment.key.to_string().as_str(), number, comment.is_bot),
        ("issuecomment-600", 7, false)
    );
    assert!(matches!(repo.issue_comment(1).await, Err(GitHubError::NotFound { .. })));
    assert!(matches!(
        repo.pull_request(PrNumber(99)).await,
        Err(GitHubError::NotFound { .. })
    ));
}

#[tokio::test]
async fn enterprise_servers_have_a_prefix() {
    let bench = Bench::with(
        &world(),
        Options {
            prefix: "/api/v3".into(),
            ..Options::default()
        },
        |_| {},
    );
    let repo = bench.repo().await;
    assert!(bench.sim.base_url().ends_with("/api/v3"));
    assert_eq!(repo.pull_request(PULL).await.unwrap().number, PULL);
    // An archive's address keeps its own path, and GraphQL is beside REST.
    bench
        .sim
        .edit_comment(600, "As a PR reviewer and CODEOWNER\n- [x] a", "olivia")
        .unwrap();
    let (evidence, stats) = bench.evidence().await;
    assert_eq!(evidence.signoff.edited_by_other.unwrap().as_str(), "olivia");
    assert!(stats.downloads > 0);
    assert_eq!(bench.sim.unserved(), [] as [String; 0]);
}

#[tokio::test]
async fn deliveries_that_failed_are_found_and_sent_again() {
    let bench = Bench::new(&world());
    let sink = sink().await;
    bench.sim.set_sink(Some(&sink));
    let since = Utc::now() - TimeDelta::days(400);
    bench
        .sim
        .add_fault(FaultSpec {
            drop: true,
            times: Some(2),
            ..fault("webhook issue_comment")
        })
        .unwrap();
    for n in 0..4 {
        bench.sim.post_comment(7, "dave", &n.to_string()).unwrap();
    }
    bench.sim.deliver_all().await.unwrap();
    let failed = bench.app.failed_deliveries(since).await.unwrap();
    assert_eq!(
        failed
            .iter()
            .map(|delivery| (delivery.event.as_str(), delivery.attempts))
            .collect::<Vec<_>>(),
        [("issue_comment", 1); 2]
    );
    bench.app.redeliver(failed[0].id).await.unwrap();
    bench.sim.deliver_all().await.unwrap();
    let left = bench.app.failed_deliveries(since).await.unwrap();
    assert_eq!(
        left.iter().map(|delivery| &delivery.guid).collect::<Vec<_>>(),
        [&failed[1].guid]
    );
    assert!(
        bench
            .app
            .failed_deliveries(Utc::now() + TimeDelta::days(400))
            .await
            .unwrap()
            .is_empty()
    );
    assert!(matches!(
        bench.app.redeliver(1).await,
        Err(GitHubError::NotFound { .. })
    ));
}

/// A receiver that takes everything.
async fn sink() -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/webhook", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut read = Vec::new();
                let mut piece = [0; 16_384];
                loop {
                    let Ok(n) = stream.read(&mut piece).await else { return };
                    if n == 0 {
                        return;
                    }
                    read.extend_from_slice(&piece[..n]);
                    let text = String::from_utf8_lossy(&read).to_ascii_lowercase();
                    let Some(end) = text.find("\r\n\r\n") else { continue };
                    let length = text
                        .split("content-length: ")
                        .nth(1)
                        .and_then(|rest| rest.split("\r\n").next()?.parse().ok())
                        .unwrap_or(0);
                    if read.len() >= end + 4 + length {
                        break;
                    }
                }
                let _ = stream
                    .write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                    .await;
            });
        }
    });
    url
}
