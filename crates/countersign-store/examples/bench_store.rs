//! Measures the store on a private, durable Postgres (fsync on, synchronous commit), the load in the same process:
//! `cargo run --release -p countersign-store --features testing --example bench_store`
//!
//! Options, each with its number: `--deliveries 40000`, `--callers 128`, `--pull-requests 200`, `--writers 2`, `--batch 128`,
//! `--rate 2000` (deliveries a second at fixed moments instead of as fast as it goes), `--claims 0` (the intake only).

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use countersign_store::private::{PrivateOptions, PrivatePostgres};
use countersign_store::{Accepted, ClaimOptions, Disposition, NewDelivery, NewWork, Next, Store, StoreOptions};
use serde_json::json;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

struct Settings(BTreeMap<String, usize>);

impl Settings {
    fn read() -> Outcome<Self> {
        let mut settings = BTreeMap::new();
        let mut words = std::env::args().skip(1);
        while let Some(name) = words.next() {
            let value = words.next().ok_or_else(|| format!("{name} needs a number"))?;
            settings.insert(name.trim_start_matches('-').to_owned(), value.parse()?);
        }
        Ok(Self(settings))
    }

    fn get(&self, name: &str, otherwise: usize) -> usize {
        self.0.get(name).copied().unwrap_or(otherwise)
    }
}

fn say(text: &str) -> Outcome<()> {
    Ok(writeln!(std::io::stdout(), "{text}")?)
}

/// About 12 KB, shaped like a webhook's body: many addresses that share their beginnings, some text of its own.
fn body(n: usize) -> Bytes {
    let mut repository = serde_json::Map::new();
    for field in [
        "archive",
        "assignees",
        "blobs",
        "branches",
        "collaborators",
        "comments",
        "commits",
        "compare",
        "contents",
        "contributors",
        "deployments",
        "downloads",
        "events",
        "forks",
        "git_commits",
        "git_refs",
        "git_tags",
        "hooks",
        "issue_comment",
        "issue_events",
        "issues",
        "keys",
        "labels",
        "languages",
        "merges",
        "milestones",
        "notifications",
        "pulls",
        "releases",
        "stargazers",
        "statuses",
        "subscribers",
        "subscription",
        "tags",
        "teams",
        "trees",
        "clone",
        "svn",
        "mirror",
        "homepage",
    ] {
        let address = format!("https://api.github.example/repos/octo-organisation/hello-benchmarks/{field}{{/sha}}");
        repository.insert(format!("{field}_url"), address.into());
    }
    let user = |login: &str| {
        let mut user = serde_json::Map::new();
        user.insert("login".to_owned(), login.into());
        user.insert("id".to_owned(), (n * 7919 % 100_000_000).into());
        for field in [
            "followers",
            "following",
            "gists",
            "starred",
            "subscriptions",
            "organizations",
            "repos",
            "events",
            "received_events",
        ] {
            user.insert(
                format!("{field}_url"),
                format!("https://api.github.example/users/{login}/{field}").into(),
            );
        }
        user
    };
    // Words that differ from body to body, as people's do.
    let mut state = n as u64 + 1;
    let mut words = String::new();
    while words.len() < 4200 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        words.push_str(&format!("{:x} ", state >> 40));
    }
    let body = json!({
        "action": "created", "repository": repository, "sender": user("reviewer"), "organization": user("octo-organisation"),
        "issue": {"number": n % 200, "user": user("author"), "body": words, "title": "Add a benchmark"},
        "comment": {"id": n, "user": user("reviewer"), "body": "As a reviewer I have checked:\n- [x] one\n- [x] two\n"},
    });
    let mut text = body.to_string();
    let missing = 12_000_usize.saturating_sub(text.len());
    text.truncate(text.len() - 1);
    text.push_str(&format!(
        ",\"more\":\"{}\"}}",
        "abcdefgh https://api.github.example/ ".repeat(missing / 37)
    ));
    text.into()
}

fn percentiles(mut times: Vec<Duration>) -> String {
    times.sort();
    let at = |share: f64| {
        times
            .get(((times.len() as f64 - 1.0) * share) as usize)
            .copied()
            .unwrap_or_default()
            .as_secs_f64()
            * 1e3
    };
    format!(
        "p50 {:.2} ms, p95 {:.2} ms, p99 {:.2} ms, max {:.2} ms",
        at(0.5),
        at(0.95),
        at(0.99),
        at(1.0)
    )
}

fn new_delivery(n: usize, pull_requests: usize, bodies: &[Bytes]) -> NewDelivery {
    let pull_request = (n % pull_requests) as i64 + 1;
    NewDelivery {
        guid: format!("{n:08x}-cc78-11e3-81ab-4c9367dc0958"),
        event: "issue_comment".to_owned(),
        action: Some("created".to_owned()),
        repository: Some("octo/hello".to_owned()),
        pull_request: Some(pull_request),
        headers: json!({"x-github-event": "issue_comment", "user-agent": "GitHub-Hookshot/0000000", "content-type": "application/json"}),
        payload: bodies[n % bodies.len()].clone(),
        disposition: Disposition::Work(NewWork::on_pull_request("verify", "octo/hello", pull_request)),
    }
}

/// Processor time of this process so far, and of the session processes of the database, in seconds: what a machine of its own would need.
fn processor_seconds(server: &PrivatePostgres) -> (f64, f64) {
    let of = |pid: &str| -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields: Vec<&str> = stat
            .rsplit_once(')')
            .map_or("", |(_, rest)| rest)
            .split_whitespace()
            .collect();
        // Hundredths of a second, in user and in system mode.
        [11, 12]
            .iter()
            .filter_map(|n| fields.get(*n)?.parse::<f64>().ok())
            .sum::<f64>()
            / 100.0
    };
    let pid_file = std::fs::read_to_string(server.folder().join("data/postmaster.pid")).unwrap_or_default();
    let postmaster = pid_file.lines().next().unwrap_or_default();
    let children =
        std::fs::read_to_string(format!("/proc/{postmaster}/task/{postmaster}/children")).unwrap_or_default();
    (of("self"), children.split_whitespace().map(of).sum())
}

async fn intake(store: &Store, server: &PrivatePostgres, settings: &Settings) -> Outcome<()> {
    let total = settings.get("deliveries", 40_000);
    let callers = settings.get("callers", 128);
    let pull_requests = settings.get("pull-requests", 200);
    let rate = settings.get("rate", 0);
    let bodies: Arc<Vec<Bytes>> = Arc::new((0..512).map(body).collect());
    let next = Arc::new(AtomicUsize::new(0));
    let before = processor_seconds(server);
    let start = Instant::now();
    let tasks: Vec<_> = (0..callers)
        .map(|_| {
            let (store, bodies, next) = (store.clone(), Arc::clone(&bodies), Arc::clone(&next));
            tokio::spawn(async move {
                let mut times = Vec::new();
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= total {
                        return Ok::<_, Box<dyn Error + Send + Sync>>(times);
                    }
                    let mut begin = Instant::now();
                    if rate > 0 {
                        // Counted from when it was due, not from when a caller was free.
                        let due = start + Duration::from_secs_f64(n as f64 / rate as f64);
                        tokio::time::sleep_until(due.into()).await;
                        begin = due.max(begin.min(due));
                    }
                    if store.accept_delivery(new_delivery(n, pull_requests, &bodies)).await? != Accepted::New {
                        return Err("a duplicate".into());
                    }
                    times.push(begin.elapsed());
                }
            })
        })
        .collect();
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await??);
    }
    let elapsed = start.elapsed().as_secs_f64();
    let after = processor_seconds(server);
    let each = |seconds: f64| seconds / total as f64 * 1e6;
    say(&format!(
        "processor time for each: {:.0} us here (load included), {:.0} us in the database",
        each(after.0 - before.0),
        each(after.1 - before.1)
    ))?;
    let bytes: usize = bodies.iter().map(Bytes::len).sum::<usize>() / bodies.len();
    say(&format!(
        "accept_delivery: {total} of {bytes} bytes, {callers} callers, {pull_requests} pull requests: {:.0} /s; {}",
        total as f64 / elapsed,
        percentiles(times)
    ))
}

async fn claims(store: &Store, server: &PrivatePostgres) -> Outcome<()> {
    // Idle latency: from the request until a worker of another replica holds the lease.
    let mut wake_ups = store.wake_ups();
    wake_ups.wait(Duration::from_secs(5)).await;
    let mut times = Vec::new();
    for n in 0..500 {
        wake_ups.arm();
        let begin = Instant::now();
        store
            .request_work(&[NewWork::on_pull_request("idle", "octo/hello", n)])
            .await?;
        wake_ups.wait(Duration::from_secs(5)).await;
        let lease = store
            .claim_work(&ClaimOptions::of(&["idle"]))
            .await?
            .leases
            .pop()
            .ok_or("nothing to claim")?;
        times.push(begin.elapsed());
        store.finish(&lease, &Next::Done).await?;
    }
    say(&format!("request, wake-up, claim, idle: {}", percentiles(times)))?;

    for (batch, total, repositories) in [(1, 4000, 1), (10, 4000, 1), (10, 10_000, 50)] {
        let work: Vec<NewWork> = (0..total)
            .map(|n| NewWork::on_pull_request(&format!("drain{batch}"), &format!("octo/r{}", n % repositories), n))
            .collect();
        let begin = Instant::now();
        for chunk in work.chunks(100) {
            store.request_work(chunk).await?;
        }
        let asked = begin.elapsed().as_secs_f64();
        let before = processor_seconds(server);
        let begin = Instant::now();
        let kind = format!("drain{batch}");
        let workers: Vec<_> = (0..8)
            .map(|_| {
                let (store, kind) = (store.clone(), kind.clone());
                tokio::spawn(async move {
                    let options = ClaimOptions {
                        most: batch,
                        ..ClaimOptions::of(&[&kind])
                    };
                    let mut times = Vec::new();
                    loop {
                        let begin = Instant::now();
                        let leases = store.claim_work(&options).await?.leases;
                        times.push(begin.elapsed());
                        if leases.is_empty() {
                            return Ok::<_, Box<dyn Error + Send + Sync>>(times);
                        }
                        for lease in leases {
                            store.finish(&lease, &Next::Done).await?;
                        }
                    }
                })
            })
            .collect();
        let mut times = Vec::new();
        for worker in workers {
            times.extend(worker.await??);
        }
        say(&format!(
            "drain {total} pieces of {repositories} repositories, 8 workers, {batch} a claim: {:.0} /s (asked for in hundreds: {:.0} /s); a claim {}",
            total as f64 / begin.elapsed().as_secs_f64(),
            total as f64 / asked,
            percentiles(times)
        ))?;
        let after = processor_seconds(server);
        let each = |seconds: f64| seconds / total as f64 * 1e6;
        say(&format!(
            "processor time for each: {:.0} us here, {:.0} us in the database",
            each(after.0 - before.0),
            each(after.1 - before.1)
        ))?;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let settings = Settings::read()?;
    let server = PrivatePostgres::start_async(PrivateOptions {
        durable: true,
        ..PrivateOptions::default()
    })
    .await?;
    let options = StoreOptions {
        intake_writers: settings.get("writers", StoreOptions::default().intake_writers),
        intake_batch: settings.get("batch", StoreOptions::default().intake_batch),
        ..StoreOptions::default()
    };
    let store = Store::connect(&server.url(), options).await?;
    store.migrate().await?;
    intake(&store, &server, &settings).await?;
    let size: (i64, i64) =
        sqlx::query_as("SELECT pg_total_relation_size('deliveries'), (pg_current_wal_lsn() - '0/0')::bigint")
            .fetch_one(store.raw_pool())
            .await?;
    say(&format!(
        "on disk: deliveries {:.0} MB, log {:.0} MB",
        size.0 as f64 / 1e6,
        size.1 as f64 / 1e6
    ))?;
    if settings.get("claims", 1) > 0 {
        claims(&store, &server).await?;
    }
    store.close().await;
    Ok(())
}
