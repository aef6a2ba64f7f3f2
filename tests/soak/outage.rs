//! The database is away for a while under load: `--outage SECONDS`. Webhooks get 503 meanwhile, and every one is recovered afterwards
//! through redelivery, by the running server's own timer.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use countersign_sim::Sim;
use countersign_store::testing::TestDatabase;

use crate::plan::Plan;
use crate::servers::Server;
use crate::tell::Told;
use crate::{breathe, missing, say};

/// Pull requests, each with two events.
const PULLS: u64 = 120;

pub(crate) async fn run(away: Duration) -> ExitCode {
    let plan = Plan::plain(PULLS);
    let sim = Sim::start(&plan.world()).expect("the simulator starts");
    let database = TestDatabase::new().await.expect("a database");
    let store = database.store().await.expect("a store");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut server = Server::new(folder.path().join("server"), &database.url());
    server.start(&sim, 360, 1);
    let started = Instant::now();
    let patience = away + Duration::from_secs(300);
    while !server.listens() && started.elapsed() < patience {
        breathe().await;
    }
    sim.set_sink(Some(&format!("http://{}/webhook", server.address)));
    let mut told: Vec<Told<'_>> = plan.stories.iter().map(|story| Told::new(story, &sim)).collect();
    // The first look at what was there before.
    while started.elapsed() < patience {
        let looked = told.iter().all(|told| told.is_seen(&sim));
        if looked && store.settled().await.is_ok_and(|settled| settled.now) {
            break;
        }
        breathe().await;
    }
    sim.deliver_all().await.expect("sent");
    let before = sim.answers().len();
    database.cut().await.expect("cut");
    let cut = Instant::now();
    say(&format!(
        "{:>5.1} s  the database is away",
        started.elapsed().as_secs_f64()
    ));
    let mut next = 0;
    let pace = away.div_f64(plan.order.len() as f64 * 1.05);
    while cut.elapsed() < away {
        if next < plan.order.len() && cut.elapsed() >= pace.mul_f64(next as f64) {
            told[plan.order[next]].go_on(&sim);
            next += 1;
        }
        breathe().await;
    }
    // What was under way is answered before the database is back.
    sim.deliver_all().await.expect("sent or refused");
    let during = sim.answers().split_off(before);
    let refused = during.iter().filter(|status| **status == 503).count();
    database.let_in().await.expect("let in");
    say(&format!(
        "{:>5.1} s  back after {:.0} s: {} webhooks, {refused} answered 503",
        started.elapsed().as_secs_f64(),
        cut.elapsed().as_secs_f64(),
        during.len()
    ));
    let back = Instant::now();
    for index in plan.order.iter().skip(next) {
        told[*index].go_on(&sim);
    }
    let mut lost = told.len();
    while started.elapsed() < patience {
        lost = told.iter().filter(|told| told.wrong(&sim).is_some()).count();
        if lost == 0 && missing(&sim, &store).await.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let unstored = missing(&sim, &store).await.len();
    let doubled: usize = told.iter().map(|told| told.doubled(&sim).len()).sum();
    say(&format!(
        "outage of {:.0} s: {} webhooks meanwhile, {refused} answered 503, all recovered {:.0} s after: {} lost, {doubled} doubled",
        away.as_secs_f64(),
        during.len(),
        back.elapsed().as_secs_f64(),
        lost + unstored
    ));
    let right = lost + unstored + doubled == 0 && refused == during.len() && refused > 0;
    ExitCode::from(u8::from(!right))
}
