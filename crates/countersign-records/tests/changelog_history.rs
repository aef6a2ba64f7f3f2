//! The changelog rules over the history of a clone: one answer for each first-parent commit, written as JSON lines for
//! `compare/changelog.py` where `COUNTERSIGN_OUT` names a file, and properties that must hold on every one of them.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test may stop and speak")]

mod support;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use countersign_records::changelog::{GateModes, Links, added_lines, check, gate};

const FILE: &str = "perf-changelog.yaml";
const SINCE: &str = "utils/validate_perf_changelog.py";
const MASTERS: [&str; 4] = [
    "configs/amd-master.yaml",
    "configs/nvidia-master.yaml",
    ".github/configs/amd-master.yaml",
    ".github/configs/nvidia-master.yaml",
];

fn keys(dir: &std::path::Path, rev: &str) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    for path in MASTERS {
        let Some(blob) = support::git(dir, &["show", &format!("{rev}:{path}")]) else {
            continue;
        };
        let text = String::from_utf8(blob).unwrap();
        let document = countersign_yaml::parse(&text, &countersign_yaml::Limits::default()).unwrap();
        out.extend(
            document
                .root
                .as_map()
                .unwrap()
                .iter()
                .filter_map(|(k, _)| k.as_str().map(str::to_owned)),
        );
    }
    out
}

fn number(subject: &str) -> Option<u64> {
    subject
        .rsplit_once("(#")
        .and_then(|(_, tail)| tail.split_once(')'))
        .and_then(|(n, _)| n.parse().ok())
}

#[test]
fn every_commit_since_the_validator_has_an_answer() {
    let Some(dir) = support::corpus() else { return };
    let first = support::git(
        &dir,
        &[
            "log",
            "--first-parent",
            "--format=%H",
            "--diff-filter=A",
            "HEAD",
            "--",
            SINCE,
        ],
    );
    let first = String::from_utf8(first.unwrap()).unwrap();
    let range = format!("{}~1..HEAD", first.lines().last().unwrap());
    let log = support::git(&dir, &["log", "--first-parent", "--format=%H %P%x09%s", &range]).unwrap();
    let rules = support::changelog_rules_of(&support::real_link());
    let mut out = String::new();
    let (mut commits, mut same_added) = (0, 0);
    for line in String::from_utf8(log).unwrap().lines() {
        let (ids, subject) = line.split_once('\t').unwrap();
        let mut ids = ids.split(' ');
        let (head, base) = (ids.next().unwrap(), ids.next().unwrap());
        let blob = |rev: &str| support::git(&dir, &["show", &format!("{rev}:{FILE}")]).unwrap_or_default();
        let (old, new) = (blob(base), blob(head));
        commits += 1;
        let changed = old != new;
        let number = number(subject).unwrap_or(0);
        let on_main = check(&old, &new, Links::DefaultBranch, &rules);
        let in_pull = check(&old, &new, Links::PullRequest(number), &rules);
        let known = if changed { keys(&dir, head) } else { BTreeSet::new() };
        let ci = gate(&old, &new, &known, GateModes::default(), &rules);
        for checked in [&on_main, &in_pull] {
            if let Some(suggestion) = &checked.suggestion {
                let result = [old.as_slice(), suggestion.append.as_bytes()].concat();
                let links = if std::ptr::eq(checked, &on_main) {
                    Links::DefaultBranch
                } else {
                    Links::PullRequest(number)
                };
                assert!(check(&old, &result, links, &rules).passes(), "{head}");
            }
        }
        if changed {
            // The reference reads these lines from git's own diff.
            let diff = support::git(&dir, &["diff", base, head, "--", FILE]).unwrap();
            let expected: Vec<&str> = std::str::from_utf8(&diff)
                .unwrap()
                .split('\n')
                .filter(|l| l.starts_with('+') && !l.starts_with("+++"))
                .map(|l| &l[1..])
                .collect();
            let ours = added_lines(&old, &new);
            assert_eq!(ours.added, expected.join("\n"), "{head}");
            same_added += 1;
        }
        let list = |v: &[countersign_records::changelog::Violation]| {
            v.iter()
                .map(|v| serde_json::Value::from(format!("{:?} {v}", v.kind)))
                .collect::<Vec<_>>()
        };
        let row = serde_json::json!({
            "base": base, "head": head, "number": number, "changed": changed,
            "main": list(&on_main.violations), "pull": list(&in_pull.violations), "gate": list(&ci.violations),
            "selected": ci.selected, "suggested": in_pull.suggestion.is_some(),
        });
        writeln!(out, "{row}").unwrap();
    }
    eprintln!("{commits} commits, {same_added} with a changed changelog, every added line as git has it");
    assert!(commits > 0);
    if let Some(path) = std::env::var_os("COUNTERSIGN_OUT") {
        std::fs::write(path, out).unwrap();
    }
}
