//! The soak: thousands of pull requests and deliveries under faults at random, two servers on one database, killed again and
//! again. At the end each pull request has exactly its right status and comment, or the run says which has not.
//!
//! `--seed N` repeats a run's plan: the same stories, faults and kills. `--short` is the length that CI has, `--pulls N` any
//! other. `--plan` prints the plan's digest and ends; `--outage 60` takes the database away for so many seconds instead. Everything is on loopback, and bounded in time.

mod outage;
mod patience;
mod plan;
mod servers;
mod tell;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use countersign_sim::{Sim, SimHandle};
use countersign_store::testing::TestDatabase;
use countersign_store::{AuditFilter, Store, WorkCounts};
use tokio::signal::unix::{SignalKind, signal};

use crate::patience::Patience;
use crate::plan::{Do, Plan};
use crate::servers::Server;
use crate::tell::Told;

/// Events that lead to work: each of their deliveries has to be stored at the end.
const EVENTS: &[&str] = &[
    "issue_comment",
    "pull_request",
    "pull_request_review",
    "pull_request_review_comment",
    "workflow_run",
    "status",
];

/// What the store says of work whose attempts all ended with their lease.
const LEASE_LOST: &str = "the worker died or lost its lease";

struct Options {
    seed: u64,
    pulls: u64,
    short: bool,
    plan_only: bool,
    outage: Option<u64>,
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        seed: u64::from(std::process::id()) ^ u64::try_from(chrono::Utc::now().timestamp()).unwrap_or(0),
        pulls: 2_000,
        short: false,
        plan_only: false,
        outage: None,
    };
    let mut pulls = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = |name: &str| {
            let text = arguments.next().unwrap_or_default();
            text.parse::<u64>()
                .map_err(|_| format!("{name} takes a number, not {text:?}"))
        };
        match argument.as_str() {
            "--seed" => options.seed = number("--seed")?,
            "--pulls" => pulls = Some(number("--pulls")?),
            "--outage" => options.outage = Some(number("--outage")?),
            "--short" => options.short = true,
            "--plan" => options.plan_only = true,
            other => {
                return Err(format!(
                    "unknown argument {other:?}; known are --seed N, --pulls N, --short, --plan, --outage SECONDS"
                ));
            }
        }
    }
    options.pulls = pulls.unwrap_or(if options.short { 150 } else { 2_000 });
    Ok(options)
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(error) => {
            say(&error);
            return ExitCode::from(2);
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    if let Some(seconds) = options.outage {
        return runtime.block_on(unless_ended(outage::run(Duration::from_secs(seconds))));
    }
    let plan = Plan::new(options.seed, options.pulls, options.short);
    say(&format!(
        "seed {} (--seed {0} repeats it): {} pull requests, {} steps, {} kinds of fault, plan {}",
        options.seed,
        plan.stories.len(),
        plan.order.len(),
        plan.faults.len(),
        plan.digest
    ));
    if options.plan_only {
        return ExitCode::SUCCESS;
    }
    runtime.block_on(unless_ended(run(&options, &plan)))
}

/// Whoever ends a run ends its servers, and drops its database, too.
async fn unless_ended(run: impl Future<Output = ExitCode>) -> ExitCode {
    let on = |kind| signal(kind).expect("a signal can be listened for");
    let (mut terminate, mut interrupt) = (on(SignalKind::terminate()), on(SignalKind::interrupt()));
    let code = tokio::select! {
        code = run => return code,
        _ = terminate.recv() => 128 + 15,
        _ = interrupt.recv() => 128 + 2,
    };
    say("ended by a signal, and both servers with it");
    ExitCode::from(code)
}

#[expect(clippy::print_stdout, reason = "this is the program's own output")]
fn say(text: &str) {
    println!("{text}");
}

/// Two servers, and when the next dies.
struct Pair<'p> {
    servers: [Server; 2],
    plan: &'p Plan,
    next_kill: usize,
    kill_at: Instant,
    start_at: [Option<Instant>; 2],
    kills: u32,
    /// No more than so many: on a busy machine two servers that die every two seconds get nothing done.
    most_kills: u32,
    turn: usize,
}

impl Pair<'_> {
    fn tick(&mut self, sim: &SimHandle) {
        let now = Instant::now();
        for index in 0..2 {
            if self.start_at[index].is_some_and(|at| at <= now) {
                self.servers[index].start(sim, 360, 60);
                self.start_at[index] = None;
            }
        }
        if now >= self.kill_at && self.kills < self.most_kills {
            let kill = self.plan.kills[self.next_kill % self.plan.kills.len()];
            self.servers[kill.server].kill();
            self.kills += 1;
            self.start_at[kill.server] = Some(now + kill.away);
            self.next_kill += 1;
            self.kill_at = now + self.plan.kills[self.next_kill % self.plan.kills.len()].after;
        }
        // Deliveries go now to one, now to the other, dead or alive.
        self.turn = (self.turn + 1) % 2;
        sim.set_sink(Some(&format!("http://{}/webhook", self.servers[self.turn].address)));
    }
}

async fn breathe() {
    tokio::time::sleep(Duration::from_millis(15)).await;
}

async fn run(options: &Options, plan: &Plan) -> ExitCode {
    let mut patience = Patience::new(Duration::from_secs(60 * if options.short { 20 } else { 60 }));
    let sim = Sim::start(&plan.world()).expect("the simulator starts");
    let database = TestDatabase::new().await.expect("a database");
    let store = database.store().await.expect("a store");
    let folder = tempfile::tempdir().expect("a temporary folder");
    // As many at once as GitHub might: they overtake each other.
    sim.deliver_at_once(8);
    for fault in &plan.faults {
        sim.add_fault(fault.clone()).expect("a fault");
    }
    let mut pair = Pair {
        servers: [0, 1].map(|index| Server::new(folder.path().join(format!("server-{index}")), &database.url())),
        plan,
        next_kill: 0,
        kill_at: Instant::now() + plan.kills[0].after,
        start_at: [None, None],
        kills: 0,
        most_kills: if options.short { 30 } else { 150 },
        turn: 0,
    };
    for server in &mut pair.servers {
        server.start(&sim, 360, 60);
    }
    let mut told: Vec<Told<'_>> = plan.stories.iter().map(|story| Told::new(story, &sim)).collect();
    say(&format!("{:>5.1} s  both servers start", patience.seconds()));

    // The stories, in the order of the plan; whoever has to wait is asked again.
    let mut waiting: std::collections::VecDeque<usize> = plan.order.iter().copied().collect();
    while !waiting.is_empty() && patience.lasts(waiting.len()) {
        pair.tick(&sim);
        for _ in 0..waiting.len().min(if options.short { 12 } else { 40 }) {
            let Some(index) = waiting.pop_front() else { break };
            if !told[index].go_on(&sim) {
                waiting.push_back(index);
            }
        }
        breathe().await;
        if pair.kills >= pair.most_kills && patience.may_take_up() {
            take_up_again(&store, |_| true).await;
        }
        patience.tell(|| format!("{} steps to go, {}", waiting.len(), busy(&sim)));
    }
    let untold = told.iter().filter(|told| !told.is_over()).count();
    let fired = sim.faults_fired();
    say(&format!(
        "{:>5.1} s  {} of {} stories told, {fired} faults fired, {} kills",
        patience.seconds(),
        told.len() - untold,
        told.len(),
        pair.kills
    ));

    // Quiet now: no more faults, and both servers start once more, as after an outage.
    // GitHub sends nothing meanwhile: what it could not deliver after they have listed the failures would wait for their next look.
    patience.renew();
    sim.set_sink(None);
    sim.clear_faults();
    for (server, recheck_minutes) in pair.servers.iter_mut().zip([0, 360]) {
        server.kill();
        server.start(&sim, recheck_minutes, 60);
    }
    while !pair.servers.iter().all(Server::listens) && patience.lasts(0) {
        breathe().await;
    }
    sim.set_sink(Some(&format!("http://{}/webhook", pair.servers[0].address)));
    let mut open: Vec<usize> = (0..told.len()).collect();
    let mut calm;
    loop {
        open.retain(|index| told[*index].wrong(&sim).is_some());
        let left = left(&store).await;
        calm = left == Some(0);
        let lost = if open.is_empty() && calm {
            missing(&sim, &store).await.len()
        } else {
            0
        };
        let all = open.len() + left.unwrap_or_default() + lost;
        if (all == 0 && calm) || !patience.lasts(all) {
            break;
        }
        if patience.may_take_up() {
            // Without faults nothing else is a reason to give up.
            take_up_again(&store, |why| why.ends_with(LEASE_LOST)).await;
        }
        patience.tell(|| {
            let first = open.first().map(|index| told[*index].pull.as_str()).unwrap_or("none");
            format!(
                "{} not right (first {first}), {all} left to do, {}",
                open.len(),
                busy(&sim)
            )
        });
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    report(options, plan, &sim, &store, &told, &pair, &patience, calm, folder).await
}

/// What was given up is taken up again by every server that starts, and after an hour by those that run. Where none is killed any more,
/// this stands for the hour: on a busy machine ten leases of two seconds run out before a pull request is judged.
async fn take_up_again(store: &Store, reason: impl Fn(&str) -> bool) {
    for dead in store.dead_work(100).await.unwrap_or_default() {
        let why = dead.last_error.unwrap_or_default();
        if reason(&why) && store.revive_work(&dead.kind, &dead.key).await.unwrap_or_default() {
            say(&format!("        taken up again: {} {}: {why}", dead.kind, dead.key));
        }
    }
    for failed in store.failed_publications(100).await.unwrap_or_default() {
        let why = failed.last_error.unwrap_or_default();
        if reason(&why) && store.revive_publication(failed.id).await.unwrap_or_default() {
            say(&format!(
                "        taken up again: {} of {}#{}: {why}",
                failed.kind, failed.repository, failed.pull_request
            ));
        }
    }
}

fn busy(sim: &SimHandle) -> String {
    format!(
        "{} webhooks wait, {} calls so far",
        sim.undelivered(),
        sim.counted_calls()
    )
}

/// How much the servers have left to do, now or later; none where the database does not say.
async fn left(store: &Store) -> Option<usize> {
    let counts = store.counts().await.ok()?;
    let open = |work: &WorkCounts| work.due + work.scheduled + work.running + work.abandoned;
    let all = counts.deliveries_pending + counts.work.iter().map(open).sum::<i64>();
    usize::try_from(all).ok()
}

/// Recorded deliveries of events that we act on which are not stored.
async fn missing(sim: &SimHandle, store: &Store) -> Vec<String> {
    let recorded = sim.recorded_deliveries();
    let guids: Vec<String> = recorded
        .into_iter()
        .filter(|(_, event)| EVENTS.contains(&event.as_str()))
        .map(|(guid, _)| guid)
        .collect();
    let known: std::collections::BTreeSet<String> = store
        .known_deliveries(&guids)
        .await
        .unwrap_or_default()
        .into_iter()
        .collect();
    guids.into_iter().filter(|guid| !known.contains(guid)).collect()
}

async fn report(
    options: &Options,
    plan: &Plan,
    sim: &SimHandle,
    store: &Store,
    told: &[Told<'_>],
    pair: &Pair<'_>,
    patience: &Patience,
    calm: bool,
    folder: tempfile::TempDir,
) -> ExitCode {
    let mut lost = Vec::new();
    let mut doubled = Vec::new();
    for told in told {
        if !told.is_over() {
            lost.push(format!(
                "{} ({}): its story was not told to the end",
                told.pull, told.story.kind.name
            ));
        } else if let Some(why) = told.wrong(sim) {
            lost.push(format!("{} ({}): {why}", told.pull, told.story.kind.name));
        }
        doubled.extend(told.doubled(sim));
        let overwritten = told
            .story
            .kind
            .steps
            .iter()
            .any(|(_, what)| *what == Do::OverwriteStatus);
        if overwritten && told.is_over() {
            let filter = AuditFilter {
                repository: Some(told.story.repository.clone()),
                pull_request: i64::try_from(told.story.number).ok(),
                action: Some("status_reasserted".into()),
                ..AuditFilter::default()
            };
            if store
                .audit_entries(&filter, 5)
                .await
                .map_or(true, |entries| entries.is_empty())
            {
                lost.push(format!(
                    "{}: nothing in the audit log of the status that was replaced",
                    told.pull
                ));
            }
        }
    }
    for guid in missing(sim, store).await {
        lost.push(format!("delivery {guid} is not stored"));
    }
    for dead in store.dead_work(100).await.unwrap_or_default() {
        lost.push(format!(
            "given up: {} {}: {}",
            dead.kind,
            dead.key,
            dead.last_error.unwrap_or_default()
        ));
    }
    for failed in store.failed_publications(100).await.unwrap_or_default() {
        lost.push(format!(
            "given up showing: {} on {}#{}: {}",
            failed.kind,
            failed.repository,
            failed.pull_request,
            failed.last_error.unwrap_or_default()
        ));
    }
    if !calm {
        lost.push("work is left".into());
        for row in store.pending_work(5).await.unwrap_or_default() {
            lost.push(format!(
                "  {} {} due {}: {}",
                row.kind,
                row.key,
                row.run_at,
                row.last_error.unwrap_or_default()
            ));
        }
    }
    for complaint in sim.complaints() {
        lost.push(format!("complaint: {complaint}"));
    }
    for line in lost.iter().take(20) {
        say(&format!("LOST    {line}"));
    }
    for line in doubled.iter().take(20) {
        say(&format!("DOUBLED {line}"));
    }
    let deliveries = sim.recorded_deliveries().len();
    let comments: usize = sim
        .writes()
        .iter()
        .filter(|write| write.method == "POST" && write.path.ends_with("/comments"))
        .count();
    say(&format!(
        "{:>5.1} s  {deliveries} deliveries recorded, {} API calls, {comments} comments, {} kills, plan {}",
        patience.seconds(),
        sim.calls().len(),
        pair.kills,
        plan.digest
    ));
    say(&format!("         most asked for: {}", busiest(sim)));
    if !(lost.is_empty() && doubled.is_empty()) {
        say(&format!("logs are kept in {}", folder.keep().display()));
    }
    say(&format!(
        "soak, seed {}: {} pull requests, {deliveries} deliveries: {} lost, {} doubled",
        options.seed,
        told.len(),
        lost.len(),
        doubled.len()
    ));
    ExitCode::from(u8::from(!(lost.is_empty() && doubled.is_empty())))
}

/// What was asked for most, numbers and names left out.
fn busiest(sim: &SimHandle) -> String {
    let mut count = std::collections::BTreeMap::<String, usize>::new();
    for call in sim.calls() {
        let path = call.path.split('?').next().unwrap_or_default();
        let shape: Vec<&str> = path
            .split('/')
            .map(|part| {
                let plain = part.len() < 20 && !part.contains(|c: char| c.is_ascii_digit());
                if plain { part } else { "*" }
            })
            .collect();
        *count.entry(format!("{} {}", call.method, shape.join("/"))).or_default() += 1;
    }
    let mut count: Vec<(String, usize)> = count.into_iter().collect();
    count.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
    count.truncate(8);
    count
        .iter()
        .map(|(shape, times)| format!("{times} {shape}"))
        .collect::<Vec<_>>()
        .join(", ")
}
