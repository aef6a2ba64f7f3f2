//! Run every entry of the crate on files and say how long each took.
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use countersign_shell::{Environment, Limits, Rest, ScriptCache, Setup, check_grammar, evaluate, fuzz_entry, scan};
use std::time::Instant;

fn main() {
    let limits = Limits {
        steps: 20_000,
        grammar_callbacks: 200,
        total_bytes: 4 << 20,
        ..Limits::default()
    };
    for path in std::env::args().skip(1) {
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        let start = Instant::now();
        let commands = scan("fuzz.sh", &text, &limits).len();
        let scanned = start.elapsed();
        let start = Instant::now();
        let report = check_grammar(&text, &limits);
        let checked = start.elapsed();
        let files: std::collections::BTreeMap<String, std::sync::Arc<str>> =
            [("fuzz.sh".to_string(), std::sync::Arc::from(&*text))].into();
        let environment = Environment {
            rest: Rest::Unknown,
            ..Environment::default()
        };
        let setup = Setup {
            script: "fuzz.sh".into(),
            roots: vec!["/w".into()],
            environment,
            limits,
            ..Setup::default()
        };
        let start = Instant::now();
        let evaluation = evaluate(&files, &ScriptCache::new(limits), &setup);
        let evaluated = start.elapsed();
        println!(
            "{path} scan {scanned:?} ({commands}) grammar {checked:?} ({}) evaluate {evaluated:?} ({})",
            report.cancelled,
            evaluation.commands.len()
        );
        fuzz_entry(text.as_bytes());
    }
}
