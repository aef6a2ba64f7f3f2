//! Made-up changes of a changelog with the reference's answers, written by `compare/changelog_mutations.py` into the
//! file that `COUNTERSIGN_MUTATIONS` names.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test may stop and speak")]

mod support;

use countersign_records::changelog::{GateModes, Links, added_lines, check, gate};
use serde_json::Value;

#[test]
fn same_answers_as_the_reference() {
    let Some(path) = std::env::var_os("COUNTERSIGN_MUTATIONS") else {
        eprintln!("skipped: COUNTERSIGN_MUTATIONS names no file");
        return;
    };
    let rules = support::changelog_rules_of(&support::real_link());
    let known = ["a-fp8-x", "a-fp8-y", "b-fp4-x"].map(str::to_owned).into();
    let bytes = |v: &Value| {
        v.as_str()
            .unwrap()
            .chars()
            .map(|c| u8::try_from(u32::from(c)).unwrap())
            .collect::<Vec<u8>>()
    };
    let (mut count, mut differ) = (0, 0);
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let (base, head) = (bytes(&row["base"]), bytes(&row["head"]));
        let pull = check(&base, &head, Links::PullRequest(7), &rules);
        let main = check(&base, &head, Links::DefaultBranch, &rules);
        let ci = gate(&base, &head, &known, GateModes::default(), &rules);
        let mut bad = Vec::new();
        if pull.passes() != row["pull"].is_null() {
            bad.push(format!("pull: {:?} against {}", pull.violations, row["pull"]));
        }
        if main.passes() != row["main"].is_null() {
            bad.push(format!("main: {:?} against {}", main.violations, row["main"]));
        }
        if ci.violations.is_empty() != row["gate"].is_null() {
            bad.push(format!("gate: {:?} against {}", ci.violations, row["gate"]));
        }
        if let Some(added) = row["added"].as_str() {
            let ours = added_lines(&base, &head);
            if ours.added != added {
                bad.push(format!("added {:?} against {added:?}", ours.added));
            }
        }
        if let Some(suggestion) = &pull.suggestion {
            let result = [base.as_slice(), suggestion.append.as_bytes()].concat();
            assert!(check(&base, &result, Links::PullRequest(7), &rules).passes());
        }
        count += 1;
        if !bad.is_empty() {
            differ += 1;
            if differ <= 12 {
                eprintln!(
                    "--- base\n{}--- head\n{}\n{}\n",
                    row["base"].as_str().unwrap(),
                    row["head"].as_str().unwrap(),
                    bad.join("\n")
                );
            }
        }
    }
    eprintln!("{count} changes, {differ} differ");
    assert!(count > 0);
    assert_eq!(differ, 0);
}
