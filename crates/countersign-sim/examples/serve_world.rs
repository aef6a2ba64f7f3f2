//! Serves a world until standard input ends: `serve_world [--prefix /api/v3] [world.yaml]`, the rich world without a file.
//! The first line on standard output says, as JSON, where and with which credentials. Each line on standard input that is
//! a step (YAML or JSON in one line) is played; `timeline` plays the world's own to its end; the answer is one line.
//! `serve_world --schema` prints the format's JSON Schema instead.
#![allow(clippy::print_stdout, reason = "an example that is driven by its output")]

use std::io::BufRead;
use std::path::Path;

use countersign_sim::world::timeline::Step;
use countersign_sim::{Options, Sim, World};
use serde_json::json;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut options = Options::default();
    let mut file = None;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--schema" => {
                println!("{}", serde_json::to_string_pretty(&countersign_sim::world::schema())?);
                return Ok(());
            }
            "--prefix" => options.prefix = args.next().unwrap_or_default(),
            _ => file = Some(arg),
        }
    }
    let world = match file {
        Some(file) => World::load(Path::new(&file))?,
        None => World::parse("rich.yaml", include_str!("../worlds/rich.yaml"))?,
    };
    let sim = Sim::start_with(&world, options)?;
    let tokens: serde_json::Map<String, serde_json::Value> = world
        .repositories
        .keys()
        .filter_map(|name| Some((name.clone(), sim.mint_token(sim.installation_of(name)?).into())))
        .collect();
    let hello = json!({
        "base": sim.base_url(), "storage": sim.storage_url(), "jwt": sim.app_jwt()?, "tokens": tokens, "app_id": sim.app_id(),
        "webhook_secret": sim.webhook_secret(), "endpoints": countersign_sim::ENDPOINTS,
    });
    println!("{hello}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let done = match line.trim() {
            "" => continue,
            "timeline" => {
                let mut count = 0;
                while sim.step()?.is_some() {
                    count += 1;
                }
                json!({"played": count})
            }
            "unserved" => json!(sim.unserved()),
            "snapshot" => sim.snapshot(),
            sink if sink.starts_with("sink ") => {
                sim.set_sink(sink.strip_prefix("sink "));
                json!({"sink": sink})
            }
            "deliver" => {
                runtime.block_on(sim.deliver_all())?;
                json!({"delivered": sim.deliveries().len()})
            }
            text => {
                let step: Step = serde_json::from_str(text)?;
                json!({"made": sim.play(&step)?})
            }
        };
        println!("{done}");
    }
    Ok(())
}
