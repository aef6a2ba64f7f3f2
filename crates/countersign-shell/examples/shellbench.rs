//! Time the evaluation of launch scripts of a directory: `shellbench <dir> <points> <script…>`.
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use countersign_shell::{Environment, Files, Limits, ScriptCache, Setup, evaluate};

struct Dir(String, std::cell::RefCell<BTreeMap<String, Option<Arc<str>>>>);

impl Files for Dir {
    fn read(&self, path: &str) -> Option<Arc<str>> {
        let mut known = self.1.borrow_mut();
        known
            .entry(path.to_string())
            .or_insert_with(|| {
                std::fs::read_to_string(format!("{}/{path}", self.0))
                    .ok()
                    .map(Into::into)
            })
            .clone()
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let files = Dir(args[0].clone(), Default::default());
    let points: usize = args[1].parse().unwrap();
    let cache = ScriptCache::new(Limits::default());
    let (mut all, mut count, mut commands, mut first) = (Duration::ZERO, 0u32, 0, Duration::ZERO);
    let mut slowest: Vec<(Duration, String)> = Vec::new();
    for script in &args[2..] {
        for point in 0..points {
            let agentic = script.contains("/agentic/");
            let mut variables: BTreeMap<String, String> = [
                ("MODEL", "org/m"),
                ("MODEL_PREFIX", "dsv4"),
                ("TP", "8"),
                ("EP_SIZE", "1"),
                ("DP_ATTENTION", "false"),
                ("ISL", "8192"),
                ("OSL", "1024"),
                ("MAX_MODEL_LEN", "9472"),
                ("RANDOM_RANGE_RATIO", "0.8"),
                ("RESULT_FILENAME", "r"),
                ("PORT", "8888"),
                ("SPEC_DECODING", "mtp"),
                ("RUN_EVAL", "false"),
                ("EVAL_ONLY", "false"),
                ("KV_OFFLOADING", "none"),
                ("TOTAL_CPU_DRAM_GB", "2399"),
                ("RESULT_DIR", "/workspace/results"),
                ("DURATION", "1800"),
                ("IMAGE", "i"),
            ]
            .map(|(k, v)| (k.to_string(), v.to_string()))
            .into();
            variables.insert("CONC".into(), (4usize << point).to_string());
            variables.insert("IS_AGENTIC".into(), if agentic { "1" } else { "0" }.into());
            let environment = Environment {
                variables,
                unknown_prefixes: vec!["SLURM_".into()],
                ..Environment::default()
            };
            let setup = Setup {
                script: script.clone(),
                roots: vec!["/workspace".into()],
                environment,
                ..Setup::default()
            };
            let start = Instant::now();
            let evaluation = evaluate(&files, &cache, &setup);
            let took = start.elapsed();
            commands += evaluation.commands.len();
            if point == 0 {
                first += took
            } else {
                all += took;
                count += 1
            }
            if point > 0 {
                slowest.push((
                    took,
                    format!("{script} conc {} worlds {}", 4 << point, evaluation.worlds),
                ))
            }
        }
    }
    slowest.sort();
    println!(
        "first points (with parsing) {first:?}; others {all:?} for {count}: {:?} each; {commands} commands",
        all / count.max(1)
    );
    println!("median {:?}", slowest[slowest.len() / 2].0);
    for (took, what) in slowest.iter().rev().take(8) {
        println!("{took:?} {what}");
    }
}
