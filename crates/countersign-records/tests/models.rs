//! The models reader on every version that the real file had, each row read from the file by a person, and on small
//! made-up files for what the history does not show.

#![allow(clippy::unwrap_used, reason = "a test may stop")]

mod support;

use chrono::NaiveDate;
use countersign_records::models::{Arm, ModelsError, ModelsTable, Query, Status, read};
use proptest::prelude::*;

fn day(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

fn show(status: &Status) -> String {
    match status {
        Status::Active { until: Some(d), .. } => format!("active {d}"),
        Status::Active { until: None, .. } => "active".into(),
        Status::Deprecated { since: Some(d), .. } => format!("deprecated {d}"),
        Status::Deprecated { since: None, .. } => "deprecated".into(),
        Status::Contradictory { .. } => "contradictory".into(),
        Status::Unknown { .. } => "unknown".into(),
    }
}

fn ask(table: &ModelsTable, prefix: &str, scenario: &str, precision: &str, arm: &str, on: &str) -> Status {
    let arm = if arm == "spec" { Arm::Spec } else { Arm::NonSpec };
    table.status(
        &Query {
            prefix,
            scenario,
            precision,
            arm,
        },
        day(on),
    )
}

/// `prefix scenario precision arm day: expected`, one a line.
fn check(name: &str, table: &ModelsTable, expectations: &str) -> usize {
    let mut count = 0;
    for line in expectations.lines().map(str::trim).filter(|l| !l.is_empty()) {
        let (question, expected) = line.split_once(": ").unwrap();
        let q: Vec<&str> = question.split_whitespace().collect();
        let got = ask(table, q[0], q[1], q[2], q[3], q[4]);
        assert_eq!(show(&got), expected, "{name}: {question}\n{got:#?}");
        count += 1;
    }
    count
}

/// True in every version: what was retired before the first of them, and what never had an end.
const ALWAYS: &str = "
    qwen3.8 agentic fp8 spec 2026-08-10: active
    qwen3.8 8k1k fp8 spec 2026-08-10: unknown
    kimik3 agentic fp4 spec 2026-08-10: active
    glm5.2 agentic fp8 spec 2026-08-10: active
    minimaxm3 agentic fp4 spec 2026-08-10: active
    minimaxm3 1k1k fp8 non 2026-07-16: active 2026-07-16
    minimaxm3 1k1k fp8 non 2026-07-17: deprecated 2026-07-17
    dsv4 8k1k fp8 non 2026-08-10: active
    dsv4 8k1k fp4 spec 2026-08-10: active
    dsv4 agentic fp4 spec 2026-08-10: active
    dsv4 1k1k fp4 spec 2026-08-10: deprecated 2026-07-17
    qwen3.5 8k1k fp8 non 2026-08-10: active
    qwen3.5 agentic fp8 spec 2026-08-10: active
    qwen3.5 1k1k fp8 non 2026-07-16: active 2026-07-16
    qwen3.5 1k1k fp8 non 2026-07-17: deprecated 2026-07-17
    qwen3.5 1k8k fp8 non 2026-03-26: active 2026-03-26
    qwen3.5 1k8k fp8 non 2026-03-27: deprecated 2026-03-27
    dsr1 8k1k fp8 non 2026-08-10: active
    dsr1 1k1k fp8 non 2026-08-10: deprecated 2026-07-17
    dsr1 1k8k fp8 non 2026-08-10: deprecated 2026-03-27
    dsr1 agentic fp8 spec 2026-08-10: unknown
    glm5 8k1k fp8 non 2026-07-17: active 2026-07-17
    glm5 8k1k fp8 non 2026-07-18: deprecated 2026-07-18
    glm5 agentic fp8 spec 2026-08-10: deprecated 2026-07-18
    glm5.1 8k1k fp8 non 2026-08-10: deprecated 2026-07-18
    glm5.1 1k1k fp8 spec 2026-08-10: deprecated 2026-07-17
    minimaxm2.5 8k1k fp8 non 2026-06-19: active 2026-06-19
    minimaxm2.5 8k1k fp8 non 2026-06-20: deprecated 2026-06-20
    gptoss 8k1k fp4 non 2026-07-05: active 2026-07-05
    gptoss 8k1k fp4 non 2026-07-06: deprecated 2026-07-06
    gptoss 1k8k fp4 non 2026-07-06: deprecated 2026-03-27
    llama70b 8k1k fp8 non 2025-10-28: active 2025-10-28
    llama70b 8k1k fp8 non 2025-10-29: deprecated 2025-10-29
    kimik2.5 1k1k fp4 non 2026-08-01: deprecated 2026-07-17
    kimik2.6 8k1k fp4 non 2026-08-01: unknown
    nosuch 8k1k fp4 non 2026-08-01: unknown
";

/// Before the first round was announced.
const BEFORE_ROUND_ONE: &str = "
    kimik3 agentic fp4 non 2026-08-10: active
    glm5.2 agentic fp8 non 2026-08-10: active
    minimaxm3 8k1k fp8 non 2026-08-10: active
    minimaxm3 agentic fp8 non 2026-08-10: active
    dsv4 agentic fp8 non 2026-08-10: active
    qwen3.5 8k1k bf16 non 2026-08-10: active
    qwen3.5 agentic fp8 non 2026-08-10: active
    kimik2.5 agentic fp4 non 2026-08-10: active
    qwen3.8 agentic fp8 non 2026-08-10: active
";

/// Round one is announced: 2026-08-03, and 2026-08-06 for one model.
const ROUND_ONE: &str = "
    minimaxm3 8k1k fp8 non 2026-08-02: active 2026-08-03
    minimaxm3 8k1k fp8 non 2026-08-03: active 2026-08-03
    minimaxm3 8k1k fp8 non 2026-08-04: deprecated 2026-08-04
    kimik2.5 agentic fp4 non 2026-08-03: active 2026-08-03
    kimik2.5 agentic fp4 spec 2026-08-04: deprecated 2026-08-04
    kimik2.5 8k1k fp4 non 2026-08-06: active 2026-08-06
    kimik2.5 8k1k fp4 non 2026-08-07: deprecated 2026-08-07
    kimik2.5 agentic fp4 non 2026-08-07: deprecated 2026-08-04
    qwen3.5 8k1k bf16 non 2026-08-02: active 2026-08-02
    qwen3.5 8k1k bf16 non 2026-08-03: contradictory
    qwen3.5 8k1k bf16 non 2026-08-04: deprecated 2026-08-03
    qwen3.5 agentic bf16 spec 2026-08-04: deprecated 2026-08-03
    qwen3.5 agentic int4 spec 2026-08-04: deprecated
    qwen3.5 agentic fp8 non 2026-08-02: active 2026-08-02
    qwen3.5 agentic fp8 non 2026-08-03: contradictory
    qwen3.5 agentic fp8 non 2026-08-04: deprecated 2026-08-03
    dsv4 agentic fp8 non 2026-08-02: active 2026-08-02
    dsv4 agentic fp8 non 2026-08-03: contradictory
    dsv4 agentic fp8 non 2026-08-04: deprecated 2026-08-03
    minimaxm3 agentic fp8 non 2026-08-03: contradictory
    minimaxm3 agentic fp8 non 2026-08-04: deprecated 2026-08-03
    glm5.2 agentic fp8 non 2026-08-02: active 2026-08-02
    glm5.2 agentic fp8 non 2026-08-04: deprecated 2026-08-03
    kimik3 agentic fp4 non 2026-07-27: deprecated 2026-07-27
    kimik3 agentic fp4 non 2026-08-04: deprecated 2026-07-27
    qwen3.8 agentic fp8 non 2026-08-10: contradictory
";

/// Scenarios and precisions are enacted, the arms are announced but not enacted.
const PARTLY_ENACTED: &str = "
    minimaxm3 8k1k fp8 non 2026-08-03: active 2026-08-03
    minimaxm3 8k1k fp8 non 2026-08-04: deprecated 2026-08-04
    kimik2.5 agentic fp4 non 2026-08-03: active 2026-08-03
    kimik2.5 agentic fp4 non 2026-08-04: deprecated 2026-08-04
    kimik2.5 8k1k fp4 non 2026-08-06: active 2026-08-06
    kimik2.5 8k1k fp4 non 2026-08-07: deprecated 2026-08-07
    qwen3.5 8k1k bf16 non 2026-08-03: active 2026-08-03
    qwen3.5 8k1k bf16 non 2026-08-04: deprecated 2026-08-04
    qwen3.5 agentic fp4 non 2026-08-03: active 2026-08-03
    qwen3.5 agentic fp4 non 2026-08-04: contradictory
    dsv4 agentic fp8 non 2026-08-03: active 2026-08-03
    dsv4 agentic fp8 non 2026-08-04: contradictory
    minimaxm3 agentic fp8 non 2026-08-03: active 2026-08-03
    minimaxm3 agentic fp8 non 2026-08-04: contradictory
    glm5.2 agentic fp8 non 2026-08-03: active 2026-08-03
    glm5.2 agentic fp8 non 2026-08-04: contradictory
    kimik3 agentic fp4 non 2026-07-27: deprecated 2026-07-27
    kimik3 agentic fp4 non 2026-08-22: deprecated 2026-07-27
    qwen3.8 agentic fp8 non 2026-08-22: contradictory
    dsv4 8k1k fp8 non 2026-08-22: active
    dsr1 8k1k fp8 non 2026-08-22: active
";

/// The model whose last scenario ended on 2026-08-06 before and after that was announced.
const KIMI_UNANNOUNCED: &str = "kimik2.5 8k1k fp4 non 2026-08-10: active";
const KIMI_ANNOUNCED: &str = "
    kimik2.5 8k1k fp4 non 2026-08-05: active 2026-08-06
    kimik2.5 8k1k fp4 non 2026-08-06: active 2026-08-06
    kimik2.5 8k1k fp4 non 2026-08-07: deprecated 2026-08-07
";

#[test]
fn every_historical_version_reads_as_a_person_reads_it() {
    let versions: [(&str, &[&str]); 13] = [
        ("2026-07-27-9fdf7668", &[BEFORE_ROUND_ONE, KIMI_UNANNOUNCED]),
        ("2026-07-27-da04663c", &[BEFORE_ROUND_ONE, KIMI_UNANNOUNCED]),
        ("2026-07-28-af2fcc6d", &[BEFORE_ROUND_ONE, KIMI_ANNOUNCED]),
        ("2026-07-29-0decc69f", &[BEFORE_ROUND_ONE, KIMI_ANNOUNCED]),
        ("2026-07-29-9f312420", &[ROUND_ONE, KIMI_ANNOUNCED]),
        ("2026-08-04-d089a913", &[PARTLY_ENACTED, KIMI_ANNOUNCED]),
        ("2026-08-05-6d5d0c08", &[PARTLY_ENACTED, KIMI_ANNOUNCED]),
        ("2026-08-05-86d7a413", &[PARTLY_ENACTED, KIMI_ANNOUNCED]),
        ("2026-08-05-4cc7bc69", &[PARTLY_ENACTED, KIMI_ANNOUNCED]),
        ("2026-08-07-8cc24c38", &[PARTLY_ENACTED, KIMI_ANNOUNCED]),
        ("2026-08-10-2b2aa633", &[PARTLY_ENACTED, KIMI_ANNOUNCED]),
        ("2026-08-10-f559835a", &[PARTLY_ENACTED, KIMI_ANNOUNCED]),
        ("2026-08-18-b9c9f925", &[PARTLY_ENACTED, KIMI_ANNOUNCED]),
    ];
    let Some(dir) = support::shared("inferencex/history/MODELS") else {
        return;
    };
    let mut count = 0;
    for (name, expectations) in versions {
        let text = std::fs::read_to_string(dir.join(format!("{name}.md"))).unwrap();
        let table = read(&text, &support::models_rules()).unwrap();
        assert_eq!(table.unread, vec![], "{name}: everything is understood");
        for expected in std::iter::once(&ALWAYS).chain(expectations) {
            count += check(name, &table, expected);
        }
    }
    assert!(count > 700, "{count}");
}

/// The guide's status table (8.2) on its first day and at the snapshot's: every scenario, precision and arm of each row.
#[test]
fn the_guides_status_table_follows_from_the_file() {
    let Some(path) = support::shared("inferencex/MODELS.md") else {
        return;
    };
    let table = read(&std::fs::read_to_string(path).unwrap(), &support::models_rules()).unwrap();
    let mut asked = 0;
    let mut every = |prefix: &str, scenarios: &[&str], precisions: &[&str], arms: &[&str], expected: &str| {
        for scenario in scenarios {
            for precision in precisions {
                for (arm, on) in arms.iter().flat_map(|arm| [(arm, "2026-08-07"), (arm, "2026-08-21")]) {
                    let status = ask(&table, prefix, scenario, precision, arm, on);
                    let shown = show(&status);
                    let word = shown.split(' ').next().unwrap();
                    assert_eq!(
                        word, expected,
                        "{prefix} {scenario} {precision} {arm} {on}: {status:#?}"
                    );
                    asked += 1;
                }
            }
        }
    };
    let (all, short, both, spec) = (
        ["agentic", "8k1k", "1k1k", "1k8k"],
        ["1k1k", "1k8k"],
        ["spec", "non"],
        ["spec"],
    );
    let precisions = ["fp8", "fp4", "bf16"];
    for retired in ["kimik2.5", "glm5", "glm5.1", "minimaxm2.5", "gptoss", "llama70b"] {
        every(retired, &all, &precisions, &both, "deprecated");
    }
    for prefix in ["qwen3.8", "kimik3", "glm5.2", "minimaxm3", "dsv4"] {
        every(prefix, &["agentic"], &precisions, &spec, "active");
    }
    every("kimik3", &["agentic"], &precisions, &["non"], "deprecated");
    for announced in ["glm5.2", "minimaxm3", "dsv4"] {
        every(announced, &["agentic"], &precisions, &["non"], "contradictory");
    }
    every("minimaxm3", &["8k1k", "1k1k"], &precisions, &both, "deprecated");
    every("dsv4", &["8k1k"], &precisions, &both, "active");
    every("dsv4", &["1k1k"], &precisions, &both, "deprecated");
    every("qwen3.5", &["8k1k"], &["fp8", "fp4"], &both, "active");
    every("qwen3.5", &["agentic"], &["fp8", "fp4"], &spec, "active");
    every("qwen3.5", &["agentic"], &["fp8", "fp4"], &["non"], "contradictory");
    every("qwen3.5", &["8k1k", "agentic"], &["bf16"], &both, "deprecated");
    every("qwen3.5", &short, &precisions, &both, "deprecated");
    every("dsr1", &["8k1k"], &precisions, &both, "active");
    every("dsr1", &short, &precisions, &both, "deprecated");
    assert!(asked > 400, "{asked}");
}

#[test]
fn answers_point_at_their_lines() {
    let Some(path) = support::shared("inferencex/MODELS.md") else {
        return;
    };
    let text = std::fs::read_to_string(path).unwrap();
    let table = read(&text, &support::models_rules()).unwrap();
    let line = |n: usize| text.lines().nth(n - 1).unwrap();
    let Status::Deprecated { source, also, .. } = ask(&table, "kimik3", "agentic", "fp4", "non", "2026-08-18") else {
        panic!("prohibited from the first day")
    };
    assert!(line(source.line).contains("non-DSpark"), "{source:?}");
    assert!(also.iter().any(|s| line(s.line).contains("DSpark only")), "{also:?}");
    let Status::Contradictory { sources, .. } = ask(&table, "dsv4", "agentic", "fp4", "non", "2026-08-18") else {
        panic!("announced and not enacted")
    };
    assert!(
        sources.iter().any(|s| line(s.line).contains("Agentic coding, non-MTP")),
        "{sources:?}"
    );
    assert!(
        sources.iter().any(|s| line(s.line).contains("not yet enacted")),
        "{sources:?}"
    );
    assert!(
        sources.iter().any(|s| line(s.line).contains("still runs while")),
        "{sources:?}"
    );
    let Status::Unknown { near: Some(near), .. } = ask(&table, "kimik2.6", "8k1k", "fp4", "non", "2026-08-18") else {
        panic!("no row")
    };
    assert!(line(near.line).contains("2.5/2.6/2.7"), "{near:?}");
    assert_eq!(table.engines["glm5.2"].engines, "native/upstream SGLang engine");
}

/// A made-up file of the same shape.
fn made_up(notice: &str, active: &str, retired: &str) -> ModelsTable {
    let text = format!(
        "# Models\n\n## Notice\n\n{notice}\n\n## Scenarios\n\n| Scenario | ISL/OSL | Status |\n|---|---|---|\n\
         | Agentic coding | traces | Active. |\n| Single-turn 8k1k | 8192 / 1024 | Active. |\n\n## Matrix\n\n\
         | Class | Prefix | Date added | Active scenarios | Deprecated scenarios |\n|---|---|---|---|---|\n\
         | Made Up 1 | `made1` | 2026-01-05 | {active} | {retired} |\n\
         | Made Up 2 | `made2` | 2026-01-05 | Single-turn 8k1k | |\n"
    );
    read(&text, &support::models_rules()).unwrap()
}

#[test]
fn a_last_day_counts_down_to_zero_and_then_ends() {
    let notice = "**Tuesday, September 8, 2026** is the last day for **Single-turn 8k1k** on Made Up (`made1`).";
    let table = made_up(notice, "Single-turn 8k1k, Agentic coding", "");
    let left = |on: &str| match ask(&table, "made1", "8k1k", "fp8", "spec", on) {
        Status::Active { days_left, .. } => days_left,
        other => panic!("{other:?}"),
    };
    assert_eq!((left("2026-09-01"), left("2026-09-08")), (Some(7), Some(0)));
    check(
        "made up",
        &table,
        "
        made1 8k1k fp8 spec 2026-09-09: deprecated 2026-09-09
        made1 agentic fp8 spec 2026-09-09: active
        made2 8k1k fp8 spec 2026-09-09: active
    ",
    );
}

#[test]
fn what_is_not_understood_is_never_a_permission() {
    let table = made_up("", "Single-turn 8k1k (by invitation)", "");
    check("qualifier", &table, "made1 8k1k fp8 spec 2026-02-01: contradictory");
    let table = made_up("", "Single-turn 8k1k, something else", "");
    check("piece", &table, "made1 8k1k fp8 spec 2026-02-01: contradictory");
    let table = made_up(
        "**2026-03-01** is the last day for everything old.",
        "Single-turn 8k1k",
        "",
    );
    check("notice", &table, "made1 8k1k fp8 spec 2026-02-01: contradictory");
    let table = made_up("", "Single-turn 8k1k", "Single-turn 8k1k");
    check("both columns", &table, "made1 8k1k fp8 spec 2026-02-01: contradictory");
    let table = made_up(
        "### March 1, 2026\n\n| Model | Deprecated | Remains |\n|---|---|---|\n| Up (`made1`) | old stuff | rest |\n",
        "Single-turn 8k1k",
        "",
    );
    check(
        "row",
        &table,
        "
        made1 8k1k fp8 spec 2026-02-01: contradictory
        made2 8k1k fp8 spec 2026-02-01: active
    ",
    );
}

#[test]
fn active_since_is_no_prohibition_and_removed_is() {
    let table = made_up("", "Single-turn 8k1k (since 2026-01-05), Agentic coding (fp8 only)", "");
    check(
        "since",
        &table,
        "
        made1 8k1k fp8 spec 2026-02-01: active
        made1 agentic fp8 spec 2026-02-01: active
        made1 agentic fp4 spec 2026-02-01: deprecated
        made1 8k1k fp4 spec 2026-02-01: active
    ",
    );
    let table = made_up(
        "",
        "Agentic coding (MTP only from 2026-02-02)",
        "Single-turn 8k1k (removed 2026-02-02)",
    );
    check(
        "removed",
        &table,
        "
        made1 8k1k fp8 spec 2026-02-01: active 2026-02-01
        made1 8k1k fp8 spec 2026-02-02: deprecated 2026-02-02
        made1 agentic fp8 non 2026-02-01: active 2026-02-01
        made1 agentic fp8 non 2026-02-02: deprecated 2026-02-02
        made1 agentic fp8 spec 2026-02-02: active
    ",
    );
}

#[test]
fn a_far_retirement_does_not_lift_an_undated_one() {
    let notice = "**December 31, 2026** is the last day for Made Up (`made1`).";
    let table = made_up(notice, "Agentic coding; fp8/fp4 only", "Single-turn 8k1k");
    check(
        "far",
        &table,
        "
        made1 8k1k fp8 spec 2026-02-01: deprecated
        made1 agentic bf16 spec 2026-02-01: deprecated
        made1 agentic fp8 spec 2026-02-01: active 2026-12-31
    ",
    );
}

#[test]
fn two_rows_for_one_prefix_are_a_question() {
    let text = "| Class | Prefix | Active scenarios | Deprecated scenarios |\n|---|---|---|---|\n\
                | A | `made1` | Agentic coding | |\n| B | `made1` | Agentic coding | |\n";
    let table = read(text, &support::models_rules()).unwrap();
    check("twice", &table, "made1 agentic fp8 spec 2026-02-01: contradictory");
}

#[test]
fn a_file_without_matrix_or_too_large_is_an_error() {
    let rules = support::models_rules();
    assert_eq!(read("# Models\n\ntext\n", &rules), Err(ModelsError::NoSupportMatrix));
    let big = "x".repeat(countersign_records::models::MAX_BYTES + 1);
    assert!(matches!(read(&big, &rules), Err(ModelsError::TooLarge { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_text_makes_it_panic(notice in "\\PC{0,200}", active in "[ a-zA-Z0-9,;().—`#|-]{0,80}", retired in "\\PC{0,60}") {
        let text = format!("{notice}\n\n| C | Prefix | Active scenarios | Deprecated scenarios |\n|---|---|---|---|\n| x | `p` | {active} | {retired} |\n");
        if let Ok(table) = read(&text, &support::models_rules()) {
            for arm in ["spec", "non"] {
                let _ = ask(&table, "p", "8k1k", "fp8", arm, "2026-08-01");
                let _ = ask(&table, "é9.", "8k1k", "fp8", arm, "2026-08-01");
            }
        }
    }

    /// Dates only ever close: what is prohibited on a day is not allowed again later.
    #[test]
    fn time_never_reopens(words in proptest::collection::vec(prop_oneof![
        Just("Single-turn 8k1k"), Just("Agentic coding"), Just("(until 2026-08-03)"), Just("(retired 2026-08-05)"), Just("—"),
        Just(", "), Just("; "), Just("fp8 only"), Just("(MTP only)"), Just("(removed 2026-08-07, #12)"), Just("bf16 recipes"),
    ], 0..8), retired in prop_oneof![Just(""), Just("Single-turn 8k1k"), Just("Agentic coding (removed 2026-08-06)")]) {
        let active = words.join(" ");
        let table = made_up("", &active, retired);
        for scenario in ["8k1k", "agentic"] {
            for arm in ["spec", "non"] {
                let mut closed = false;
                for d in 1..12 {
                    let on = format!("2026-08-{d:02}");
                    let status = ask(&table, "made1", scenario, "fp8", arm, &on);
                    if let Status::Active { .. } = status {
                        prop_assert!(!closed, "{} {} {} opens again on {}", active, scenario, arm, on);
                    }
                    closed |= matches!(status, Status::Deprecated { .. });
                }
            }
        }
    }
}
