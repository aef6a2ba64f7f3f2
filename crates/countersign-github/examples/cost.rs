//! What a gathering costs: calls and time, cold and warm, of a pull request in a world file.
//!
//! `cargo run --release --example cost -- WORLD OWNER/NAME PULL SIGNOFF POLICY_FOLDER POLICY [LATENCY_MS] [ROUNDS]`
#![allow(clippy::print_stdout, reason = "it reports to a person")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use countersign_core::{PrNumber, RepoName};
use countersign_github::{App, AppConfig, GatherRequest, Gathered, gather};
use countersign_policy::LoadedPolicy;
use countersign_sim::{Options, Sim, SimHandle, World};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [world, name, pull, signoff, folder, policy, rest @ ..] = arguments.as_slice() else {
        return Err("arguments: WORLD OWNER/NAME PULL SIGNOFF POLICY_FOLDER POLICY [LATENCY_MS] [ROUNDS]".into());
    };
    let number = |at: usize, or: u64| rest.get(at).and_then(|text| text.parse().ok()).unwrap_or(or);
    let source =
        |name: &str| std::fs::read_to_string(format!("{folder}/{name}.yaml")).map_err(|error| error.to_string());
    let policy = countersign_policy::load(policy, &source)?;
    let world = World::load(std::path::Path::new(world))?;
    let options = Options {
        latency: Some(Duration::from_millis(number(0, 100))),
        ..Options::default()
    };
    let sim = Sim::start_with(&world, options)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure(
        &sim,
        &name.parse()?,
        PrNumber(pull.parse()?),
        signoff,
        &policy,
        number(1, 5),
    ))
}

async fn measure(
    sim: &SimHandle,
    name: &RepoName,
    pull: PrNumber,
    signoff: &str,
    policy: &LoadedPolicy,
    rounds: u64,
) -> Result<(), Box<dyn std::error::Error>> {
    for round in 1..=rounds {
        let mut config = AppConfig::new(
            sim.app_id(),
            sim.app_key_pem().to_owned().into(),
            sim.base_url().parse()?,
        );
        config
            .archive_hosts
            .push(sim.storage_url().trim_start_matches("http://").to_owned());
        let app = App::new(config)?;
        for state in ["cold", "warm"] {
            sim.clear_calls();
            let begun = Instant::now();
            let repo = app.repository(name).await?;
            let request = GatherRequest {
                pull_request: pull,
                signoff: signoff.parse()?,
                policy,
                now: sim.now(),
                head_seen_at: None,
            };
            let found = gather(&repo, &request).await?;
            let took = begun.elapsed();
            let Gathered::Evidence { evidence, stats } = found else {
                return Err(format!("no evidence: {found:?}").into());
            };
            println!(
                "round {round} {state}: {} ms, {} calls (304s not counted), {stats:?}",
                took.as_millis(),
                sim.counted_calls()
            );
            if round == 1 {
                let mut seen: BTreeMap<String, usize> = BTreeMap::new();
                for call in sim.calls() {
                    let path = call.path.replace(&format!("/repos/{name}"), "");
                    *seen
                        .entry(format!("{} {} {path}", call.status, call.method))
                        .or_default() += 1;
                }
                for (call, times) in seen {
                    println!("    {times} x {call}");
                }
                for (sha, tree) in &evidence.trees {
                    let files = tree.present().map(|tree| tree.entries.len());
                    println!("    tree {}: {files:?} files", sha.short());
                }
            }
        }
    }
    println!("not served: {:?}", sim.unserved());
    Ok(())
}
