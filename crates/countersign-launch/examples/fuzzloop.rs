//! Feeds changed pieces of real files to the readers until the time is over; for machines without a fuzzer that follows
//! coverage (with one: the folder `fuzz/`). A panic ends it, with the seed that makes the input again.
//!
//! `cargo run --release --example fuzzloop -- shell|recipe|page SECONDS FILE… [seed=N]`
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::time::{Duration, Instant};

/// xorshift64*: enough to choose changes with.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// Pieces that make readers work.
const TOKENS: &[&str] = &[
    "$(",
    "${",
    "$((",
    "))",
    "}",
    "`",
    "\"",
    "'",
    "<<EOF\n",
    "EOF\n",
    "|",
    "&&",
    "||",
    ";;",
    "case x in",
    "esac",
    "if ",
    "then\n",
    "fi\n",
    "do\n",
    "done\n",
    "for x in ",
    "while ",
    "[[ ",
    " ]]",
    "( ",
    "() {\n",
    "${x[@]}",
    "+=(",
    "eval ",
    "source ",
    "\\",
    "\n",
    "\0",
    "\u{e000}",
    "é",
    "{{",
    "- ",
    ": ",
    "&a ",
    "*a",
    "<<: ",
    "!!",
    "|-\n",
    "%",
    "```\n",
    "```bash\n",
    "<a b={",
    "}>",
    "=>",
    "export default ",
    "`${",
    "...",
    "//",
    "/*",
    "*/",
    "+",
    "-",
    "@@ -1 +1 @@\n",
    "diff --git a/x b/x\n",
    "vllm serve ",
    "python3 -m sglang.launch_server ",
    "--tp 8 ",
    "9999999999999999999999",
];

fn changed(random: &mut Random, files: &[Vec<u8>]) -> Vec<u8> {
    let pick = |random: &mut Random| -> Vec<u8> {
        let file = &files[random.below(files.len())];
        // Mostly pieces, so that many inputs are tried.
        let from = random.below(file.len());
        let most = if random.below(20) == 0 { file.len() } else { 3000 };
        file[from..(from + random.below(most) + 1).min(file.len())].to_vec()
    };
    let mut out = pick(random);
    for _ in 0..=random.below(12) {
        let at = random.below(out.len() + 1);
        match random.below(6) {
            0 if !out.is_empty() => {
                let end = (at + random.below(40)).min(out.len());
                out.drain(at.min(end)..end);
            }
            1 if !out.is_empty() => {
                let at = random.below(out.len());
                out[at] = random.next() as u8;
            }
            2 => {
                let more = pick(random);
                let end = more.len().min(200);
                out.splice(at..at, more[..end].iter().copied());
            }
            3 => {
                let end = (at + random.below(60)).min(out.len());
                let again = out[at..end].repeat(1 + random.below(40));
                out.splice(at..at, again);
            }
            _ => {
                let token = TOKENS[random.below(TOKENS.len())];
                let times = if random.below(30) == 0 { 400 } else { 1 };
                out.splice(at..at, token.repeat(times).into_bytes());
            }
        }
    }
    out
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let run: fn(&[u8]) = match args[0].as_str() {
        "shell" => countersign_shell::fuzz_entry,
        "recipe" => countersign_launch::fuzz_recipe,
        "page" => countersign_launch::fuzz_page,
        other => panic!("no reader {other}"),
    };
    let time = Duration::from_secs(args[1].parse().unwrap());
    let seed = args
        .iter()
        .find_map(|a| a.strip_prefix("seed="))
        .map(|n| n.parse().unwrap());
    let paths = args[2..].iter().filter(|a| !a.starts_with("seed="));
    let files: Vec<Vec<u8>> = paths
        .map(|p| std::fs::read(p).unwrap())
        .filter(|f| !f.is_empty())
        .collect();
    let started = Instant::now();
    let (mut inputs, mut slowest) = (0u64, (Duration::ZERO, 0));
    let mut number: u64 = seed.unwrap_or(1);
    while started.elapsed() < time {
        let mut random = Random(number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let input = changed(&mut random, &files);
        let at = Instant::now();
        let result = std::panic::catch_unwind(|| run(&input));
        let took = at.elapsed();
        if result.is_err() {
            println!("FINDING: panic at seed={number}, {} bytes", input.len());
            std::fs::write(format!("finding-{}-{number}", args[0]), &input).unwrap();
        }
        if took > slowest.0 {
            slowest = (took, number);
        }
        inputs += 1;
        number += 1;
        if seed.is_some() {
            break;
        }
    }
    println!(
        "{}: {inputs} inputs, slowest {:?} at seed={}",
        args[0], slowest.0, slowest.1
    );
}
