//! Accuracy bars and golden curves.
#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    reason = "a test may stop, and the values are exact"
)]

mod support;

use countersign_records::golden::{GoldenFile, GoldenRules, hundredths};
use countersign_records::thresholds::{Bar, Origin, Thresholds};
use proptest::prelude::*;

const MADE_UP: &str = "default:\n  task: 0.90\n  other: 0.3\nmodels:\n  one:\n    task: 0.91\n  one.1:\n    third: 1\n";

#[test]
fn the_most_specific_bar_counts_and_prefixes_are_exact() {
    let read = Thresholds::read(MADE_UP).unwrap();
    assert_eq!(read.problems, vec![]);
    assert!(!read.legacy);
    let bar = |prefix: &str, task: &str| read.bar(prefix, task, 0.85);
    assert_eq!(
        bar("one", "task"),
        Bar {
            value: 0.91,
            origin: Origin::Model,
            line: Some(6)
        }
    );
    assert_eq!(
        bar("one.1", "task"),
        Bar {
            value: 0.90,
            origin: Origin::Default,
            line: Some(2)
        }
    );
    assert_eq!(
        bar("one", "other"),
        Bar {
            value: 0.3,
            origin: Origin::Default,
            line: Some(3)
        }
    );
    assert_eq!(
        bar("one.1", "third"),
        Bar {
            value: 1.0,
            origin: Origin::Model,
            line: Some(8)
        }
    );
    assert_eq!(
        bar("one", "none"),
        Bar {
            value: 0.85,
            origin: Origin::Fallback,
            line: None
        }
    );
}

#[test]
fn a_flat_file_is_all_default() {
    for text in ["task: 0.5\n", "{\"task\": 0.5}\n"] {
        let read = Thresholds::read(text).unwrap();
        assert!(read.legacy);
        assert_eq!(
            read.bar("any", "task", 0.85),
            Bar {
                value: 0.5,
                origin: Origin::Default,
                line: Some(1)
            }
        );
    }
    let only_models = Thresholds::read("models:\n  one: {task: 0.4}\n").unwrap();
    assert_eq!(only_models.bar("one", "task", 0.85).origin, Origin::Model);
    assert_eq!(only_models.bar("two", "task", 0.85).origin, Origin::Fallback);
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let lines = |text: &str| {
        Thresholds::read(text)
            .unwrap()
            .problems
            .iter()
            .map(|p| p.line)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        lines("default:\n  a: high\n  b: 1.5\n  c: .nan\n  d: -0.1\n"),
        [2, 3, 4, 5]
    );
    assert_eq!(lines("default: {a: 0.5}\nextra: {}\n"), [2]);
    assert_eq!(lines("default:\n  a: 0.5\n  a: 0.1\n"), [3]);
    assert_eq!(lines("- a\n"), [1]);
    assert!(Thresholds::read("default: [").is_err());
    assert_eq!(
        Thresholds::read("default:\n  a: 1.5\n")
            .unwrap()
            .bar("x", "a", 0.85)
            .origin,
        Origin::Fallback
    );
}

#[test]
fn the_real_bars() {
    let Some(path) = support::shared("inferencex/utils/evals/thresholds.yaml") else {
        return;
    };
    let text = std::fs::read_to_string(path).unwrap();
    let read = Thresholds::read(&text).unwrap();
    assert_eq!(read.problems, vec![]);
    let table = [
        ("dsr1", 0.91),
        ("dsv4", 0.91),
        ("glm5", 0.94),
        ("glm5.1", 0.93),
        ("gptoss", 0.91),
        ("kimik2.5", 0.90),
        ("minimaxm2.5", 0.92),
        ("qwen3.5", 0.94),
    ];
    for (prefix, value) in table {
        let bar = read.bar(prefix, "gsm8k", 0.85);
        assert_eq!((bar.value, bar.origin), (value, Origin::Model), "{prefix}");
        assert!(text.lines().nth(bar.line.unwrap() - 1).unwrap().contains("gsm8k"));
    }
    for prefix in ["kimik3", "minimaxm3", "glm5.2", "kimik2.6"] {
        let bar = read.bar(prefix, "gsm8k", 0.85);
        assert_eq!((bar.value, bar.origin), (0.90, Origin::Default), "{prefix}");
    }
    assert_eq!(read.bar("dsv4", "gpqa_diamond_cot_n_shot", 0.85).value, 0.30);
    assert_eq!(read.bar("dsv4", "swebench_lite", 0.85).value, 0.50);
    assert_eq!(read.bar("dsv4", "no_such_task", 0.85).value, 0.85);
}

fn modes() -> GoldenRules {
    GoldenRules {
        modes: vec!["thinking_on".into(), "thinking_off".into()],
    }
}

#[test]
fn a_curve_is_compared_after_rounding() {
    let text = "m:\n  thinking_on: {1: 1.80, 2: 2.4, 3: 2.4}\n  thinking_off:\n    1: 1.7\n";
    let read = GoldenFile::read(text, &modes()).unwrap();
    assert_eq!((read.problems.len(), read.model.as_str()), (0, "m"));
    assert_eq!(
        read.length("thinking_on", 2).map(|p| (p.hundredths, p.line)),
        Some((240, 2))
    );
    assert_eq!(
        read.length("thinking_off", 1).map(|p| (p.value(), p.line)),
        Some((1.7, 4))
    );
    assert_eq!(read.length("thinking_off", 2), None);
    assert_eq!(
        read.drafts_with("thinking_on", 2.400_1),
        [2, 3],
        "two lengths of draft can share a value"
    );
    assert_eq!(read.drafts_with("thinking_on", 2.41), Vec::<u32>::new());
    assert_eq!(read.drafts_with("thinking_on", f64::NAN), Vec::<u32>::new());
}

#[test]
fn a_curve_that_cannot_be_is_refused() {
    let lines = |text: &str| {
        GoldenFile::read(text, &modes())
            .unwrap()
            .problems
            .iter()
            .map(|p| p.line)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        lines("m:\n  thinking_on:\n    1: 0.9\n    2: 3.01\n    0: 1.0\n    x: 1\n    3: .inf\n    4: 5\n"),
        [3, 4, 5, 6, 7]
    );
    assert_eq!(lines("m:\n  thinking_maybe: {1: 1.5}\n"), [2]);
    assert_eq!(lines("m: {thinking_on: {1: 1.5}}\nn: {thinking_on: {1: 1.5}}\n"), [1]);
    assert_eq!(lines("m:\n  thinking_on:\n    1: 1.5\n    1: 1.6\n"), [4]);
}

#[test]
fn the_real_curves() {
    let Some(dir) = support::shared("inferencex/golden_al_distribution") else {
        return;
    };
    // Domain guide 10.1: values with thinking on, for 1 to 8 draft tokens.
    let table: [(&str, [f64; 8]); 8] = [
        ("dsv4_mtp", [1.79, 2.27, 2.49, 2.54, 2.55, 2.55, 2.54, 2.58]),
        ("dsv4-pro-0813-dspark", [1.84, 2.51, 3.01, 3.36, 3.61, 3.77, 3.73, 3.47]),
        ("glm5.2_mtp", [1.84, 2.50, 2.99, 3.33, 3.61, 3.78, 3.91, 4.06]),
        ("qwen3.5_mtp", [1.93, 2.73, 3.39, 3.97, 4.41, 4.80, 5.04, 5.21]),
        ("kimik3_dspark", [1.84, 2.45, 2.87, 3.22, 3.44, 3.54, 3.78, 3.88]),
        (
            "kimik3_dspark_probabilistic_sample_method_block_rejection_sample_method",
            [1.85, 2.51, 3.00, 3.36, 3.62, 3.75, 3.84, 4.00],
        ),
        ("minimaxm3_eagle3", [1.78, 2.38, 2.83, 3.11, 3.35, 3.45, 3.53, 3.74]),
        ("minimaxm3_eagle3_gqa", [1.79, 2.39, 2.78, 3.02, 3.21, 3.30, 3.52, 3.51]),
    ];
    for (name, values) in table {
        let text = std::fs::read_to_string(dir.join(format!("{name}.yaml"))).unwrap();
        let read = GoldenFile::read(&text, &modes()).unwrap();
        assert_eq!(read.problems, vec![], "{name}");
        for (index, value) in values.iter().enumerate() {
            let k = u32::try_from(index).unwrap() + 1;
            assert_eq!(
                read.length("thinking_on", k).map(|p| p.hundredths),
                hundredths(*value),
                "{name} {k}"
            );
        }
        let off = ["dsv4_mtp", "qwen3.5_mtp", "minimaxm3_eagle3", "minimaxm3_eagle3_gqa"].contains(&name);
        assert_eq!(read.curves.contains_key("thinking_off"), off, "{name}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_them_panic(text in "[a-z0-9:.{}\\[\\], \n\t-]{0,120}", any in "\\PC{0,60}") {
        for text in [&text, &any] {
            let _ = Thresholds::read(text).map(|t| t.bar("a", "b", 0.85));
            let _ = GoldenFile::read(text, &modes()).map(|g| g.drafts_with("thinking_on", 2.0));
        }
    }
}
