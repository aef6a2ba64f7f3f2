//! Parse every shell script of a revision: `shellscan <git dir> [revision] [prefix…]`. Prints a table of what could not
//! be read, by our parser and by the second grammar.
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use std::process::Command;
use std::time::{Duration, Instant};

use countersign_shell::{Limits, Script, check_grammar, scan_script};

fn git(dir: &str, args: &[&str]) -> Vec<u8> {
    let output = Command::new("git")
        .arg("--git-dir")
        .arg(dir)
        .args(args)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "git {args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (dir, revision) = (args[0].as_str(), args.get(1).map_or("HEAD", |r| r.as_str()));
    let prefixes = if args.len() > 2 {
        args[2..].to_vec()
    } else {
        vec!["benchmarks/".into(), "runners/".into()]
    };
    let listing = String::from_utf8(git(dir, &["ls-tree", "-r", revision])).unwrap();
    let limits = Limits::default();
    let (mut count, mut clean, mut commands, mut bytes) = (0, 0, 0, 0);
    let (mut parsing, mut checking, mut slowest) = (Duration::ZERO, Duration::ZERO, (Duration::ZERO, String::new()));
    let (mut agree, mut links) = (0, 0);
    for line in listing.lines() {
        let (meta, path) = line.split_once('\t').unwrap();
        if !path.ends_with(".sh") || !prefixes.iter().any(|p| path.starts_with(p.as_str())) {
            continue;
        }
        if meta.starts_with("120000") {
            println!("{path}: a symbolic link, not parsed");
            links += 1;
            continue;
        }
        let text = String::from_utf8(git(
            dir,
            &[
                "cat-file",
                "blob",
                meta.split(' ').nth(2).unwrap().split('\t').next().unwrap(),
            ],
        ))
        .unwrap();
        count += 1;
        bytes += text.len();
        let start = Instant::now();
        let script = Script::parse(path, &text, &limits);
        let took = start.elapsed();
        parsing += took;
        if took > slowest.0 {
            slowest = (took, path.to_string());
        }
        commands += scan_script(&script).commands.len();
        for issue in script.issues() {
            println!(
                "{path}:{}:{}: {:?} {}",
                issue.at.line, issue.at.col, issue.kind, issue.message
            );
        }
        clean += usize::from(script.issues().is_empty());
        let start = Instant::now();
        let report = check_grammar(&text, &limits);
        checking += start.elapsed();
        for at in &report.errors {
            println!("{path}:{}:{}: the second grammar cannot read this", at.line, at.col);
        }
        for d in &report.disagreements {
            println!(
                "{path}:{}:{}: only {} has the command `{}`",
                d.at.line,
                d.at.col,
                if d.ours { "our parser" } else { "the second grammar" },
                d.word
            );
        }
        if report.cancelled {
            println!("{path}: the second grammar was cancelled");
        }
        agree += usize::from(!report.cancelled && report.errors.is_empty() && report.disagreements.is_empty());
    }
    println!(
        "{count} scripts, {bytes} bytes, {links} links: {clean} without an issue, {agree} read alike by both; {commands} commands"
    );
    println!(
        "our parser {parsing:?} in all, slowest {:?} {}; second grammar {checking:?}",
        slowest.0, slowest.1
    );
}
