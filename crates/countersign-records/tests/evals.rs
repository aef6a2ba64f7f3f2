//! Results of a run: reading them as Python writes them, and judging them.
#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    reason = "a test may stop, and the values are exact"
)]

use countersign_records::evals::{
    AxisPaths, EvalRow, EvalRows, EvalRules, FrontierPaths, JsonError, Judged, MetaEnv, Number, RawResult, Samples,
    TaskRule, ThroughputRows, concurrency_of, judge, manifest_problems, parse,
};
use proptest::prelude::*;

/// The row of the domain guide's 19.4, with what `change` puts in the place of a text.
fn row(from: &str, to: &str) -> Vec<u8> {
    let text = r#"{"is_multinode": false, "model_prefix": "dsv4", "model": "/mnt/models/example", "hw": "CLUSTER:B200-DGXC",
 "framework": "sglang", "precision": "fp4", "spec_decoding": "mtp", "isl": 0, "osl": 0, "tp": 8, "ep": 1, "conc": 8,
 "dp_attention": "false", "task": "gsm8k", "em_strict": 0.951, "em_strict_se": 0.006, "em_flexible": 0.953,
 "em_flexible_se": 0.006, "n_eff": 1319, "score": 0.951, "score_name": "em_strict", "score_se": 0.006}"#;
    assert!(text.contains(from));
    format!("[{}]", text.replace(from, to)).into_bytes()
}

fn one(from: &str, to: &str) -> EvalRow {
    let rows = EvalRows::read(&row(from, to)).unwrap();
    assert_eq!(rows.problems, vec![]);
    rows.rows.into_iter().next().unwrap()
}

fn gsm8k() -> TaskRule {
    TaskRule {
        full_samples: Some(1319),
        needs: vec!["em_strict".into(), "em_flexible".into()],
    }
}

fn rules() -> EvalRules {
    EvalRules {
        prefix_field: "made_up_prefix".into(),
        metric_prefix: "exact_match,".into(),
        metric_exclude: "stderr".into(),
        tasks: [("gsm8k".to_owned(), gsm8k())].into(),
    }
}

#[test]
fn a_row_and_its_judgement() {
    let row = one("dsv4", "dsv4");
    assert_eq!(
        (row.hw.as_deref(), row.conc, row.isl, row.is_multinode),
        (Some("CLUSTER:B200-DGXC"), 8, Some(0), false)
    );
    assert_eq!(
        row.judge(Some(&gsm8k()), 0.951),
        Judged::Reached {
            metric: "em_strict".into(),
            value: 0.951
        },
        "equality passes"
    );
    assert_eq!(
        row.judge(Some(&gsm8k()), 0.952),
        Judged::Below {
            metric: "em_strict".into(),
            value: 0.951
        }
    );
    assert_eq!(row.samples(Some(&gsm8k())), Samples::Full(1319));
}

#[test]
fn both_metrics_must_reach_the_bar() {
    let low = one("\"em_flexible\": 0.953", "\"em_flexible\": 0.90");
    assert_eq!(
        low.judge(Some(&gsm8k()), 0.91),
        Judged::Below {
            metric: "em_flexible".into(),
            value: 0.90
        }
    );
    let none = one("\"em_flexible\": 0.953", "\"em_flexible\": null");
    assert_eq!(
        none.judge(Some(&gsm8k()), 0.91),
        Judged::Missing {
            metric: "em_flexible".into()
        }
    );
    assert!(
        none.judge(None, 0.91).reached(),
        "a task of another shape may have one metric"
    );
    let nothing = one("\"em_strict\": 0.951,", "").metrics().len();
    assert_eq!(nothing, 1);
}

#[test]
fn a_score_that_cannot_be_is_invalid_and_never_a_pass() {
    for bad in [
        "NaN",
        "Infinity",
        "-Infinity",
        "1.0001",
        "-0.1",
        "\"0.99\"",
        "true",
        "[0.99]",
    ] {
        let row = one("\"em_strict\": 0.951", &format!("\"em_strict\": {bad}"));
        let judged = row.judge(Some(&gsm8k()), 0.5);
        assert!(matches!(judged, Judged::Invalid { .. }), "{bad}: {judged:?}");
    }
    assert_eq!(
        one("\"em_strict_se\": 0.006", "\"em_strict_se\": NaN").em_strict,
        Some(Number::Finite(0.951))
    );
    let odd_bar = judge(&[("m".into(), Number::Finite(0.9))], &[], f64::NAN);
    assert!(matches!(odd_bar, Judged::Invalid { .. }));
}

#[test]
fn a_limited_run_is_told_apart() {
    assert_eq!(
        one("1319", "200").samples(Some(&gsm8k())),
        Samples::Partial { have: 200, full: 1319 }
    );
    assert_eq!(one("1319", "null").samples(Some(&gsm8k())), Samples::Unknown(None));
    assert_eq!(one("1319", "200").samples(None), Samples::Unknown(Some(200)));
}

#[test]
fn a_row_that_cannot_be_read_is_a_problem_and_not_dropped_silently() {
    for (from, to) in [
        ("\"conc\": 8,", ""),
        ("\"conc\": 8", "\"conc\": -8"),
        ("\"task\": \"gsm8k\"", "\"task\": null"),
        ("\"tp\": 8", "\"tp\": [8]"),
        ("\"model_prefix\": \"dsv4\",", ""),
    ] {
        let rows = EvalRows::read(&row(from, to)).unwrap();
        assert_eq!((rows.rows.len(), rows.problems.len()), (0, 1), "{to}");
    }
    assert_eq!(EvalRows::read(b"[1]").unwrap().problems[0].what, "the row is a number");
}

#[test]
fn bare_words_are_read_and_words_in_texts_are_left_alone() {
    let value =
        parse(br#"{"a": NaN, "b": [-Infinity,Infinity], "c": "NaN \" Infinity, NaN", "NaN": 1, "d": -1}"#).unwrap();
    assert_eq!(Number::read(&value["a"]), Some(Number::NotFinite("NaN".into())));
    assert_eq!(
        Number::read(&value["b"][0]),
        Some(Number::NotFinite("-Infinity".into()))
    );
    assert_eq!(Number::read(&value["b"][1]), Some(Number::NotFinite("Infinity".into())));
    assert_eq!(value["c"], "NaN \" Infinity, NaN");
    assert_eq!(Number::read(&value["NaN"]), Some(Number::Finite(1.0)));
    for bad in [&b"[NaNs]"[..], b"[xNaN]", b"[-NaN]", b"{NaN: 1}x", b"[1,]"] {
        assert!(matches!(parse(bad), Err(JsonError::Syntax { line: 1, .. })), "{bad:?}");
    }
    assert_eq!(parse(b"\xff"), Err(JsonError::NotUtf8));
    assert!(
        parse("[".repeat(100_000).as_bytes()).is_err(),
        "deep nesting is refused"
    );
    assert!(matches!(EvalRows::read(b"{}"), Err(JsonError::Shape { .. })));
}

#[test]
fn raw_results() {
    let text = br#"{"results": {"gsm8k": {"alias": "gsm8k", "exact_match,strict-match": 0.95, "exact_match_stderr,strict-match": 0.1,
        "exact_match,flexible-extract": NaN}, "lite": {"exact_match,resolved": 0.5}, "none": {"acc": 0.9}},
        "n-samples": {"gsm8k": {"original": 1319, "effective": 100}}, "model_name": "m"}"#;
    let read = RawResult::read(text, &rules()).unwrap();
    let task = &read.tasks["gsm8k"];
    assert_eq!((task.metrics.len(), task.n_eff), (2, Some(100)));
    assert!(matches!(task.judge(0.9), Judged::Invalid { .. }));
    assert!(read.tasks["lite"].judge(0.5).reached());
    assert_eq!(read.tasks["none"].judge(0.5), Judged::Nothing);
    assert!(RawResult::read(b"{}", &rules()).is_err());
}

#[test]
fn metadata_and_manifest() {
    let single = MetaEnv::read(
        br#"{"made_up_prefix": "dsv4", "is_multinode": "false", "conc": "16", "hw": "b200"}"#,
        &rules(),
    )
    .unwrap();
    assert_eq!(
        (single.model_prefix.as_deref(), single.conc, single.is_multinode),
        (Some("dsv4"), Some(16), false)
    );
    assert_eq!(
        manifest_problems(&single, &["results.json"], Some(&[16])),
        Vec::<String>::new()
    );
    assert_eq!(manifest_problems(&single, &["a.json", "b.json"], Some(&[32])).len(), 2);
    assert_eq!(manifest_problems(&single, &["a.json"], Some(&[16, 32])).len(), 1);
    let unknown = MetaEnv::read(br#"{"made_up_prefix": "unknown"}"#, &rules()).unwrap();
    assert_eq!(unknown.model_prefix, None);
    let batch = |completed: &str, failed: &str| {
        let text = format!(
            "{{\"eval_concs\": [16, 32], \"completed_eval_concs\": {completed}, \"failed_eval_concs\": {failed}}}"
        );
        MetaEnv::read(text.as_bytes(), &rules()).unwrap()
    };
    let files = ["results_conc16.json", "results_conc32_1.json"];
    assert_eq!(
        manifest_problems(&batch("[16, 32]", "[]"), &files, Some(&[32, 16])),
        Vec::<String>::new()
    );
    assert_eq!(
        manifest_problems(&batch("[16]", "[32]"), &files[..1], Some(&[16, 32])).len(),
        3
    );
    assert_eq!(manifest_problems(&batch("[16, 32, 32]", "[]"), &files, None).len(), 1);
    assert!(!manifest_problems(&batch("[16, 0]", "null"), &files, None).is_empty());
    assert_eq!(
        manifest_problems(&batch("[16, 32]", "[]"), &["results.json", files[0], files[1]], None).len(),
        1
    );
}

#[test]
fn concurrency_in_a_name() {
    let table = [
        ("r_conc16.json", Some(16)),
        ("r_conc16_2.json", Some(16)),
        ("r_conc.json", None),
        ("r_conc16_x.json", None),
        ("r_conc16.jsonl", None),
        ("conc16.json", None),
        ("a_conc1_b_conc2.json", Some(2)),
    ];
    for (name, expected) in table {
        assert_eq!(concurrency_of(name), expected, "{name}");
    }
}

fn paths() -> FrontierPaths {
    let list = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
    FrontierPaths {
        prefix_field: "made_up_prefix".into(),
        agentic_scenario: "agentic-coding".into(),
        fixed: AxisPaths {
            latency: list(&["median_e2el"]),
            throughput: list(&["tput_per_gpu"]),
        },
        agentic: AxisPaths {
            latency: list(&["p90_e2el", "request_metrics.e2el.p90"]),
            throughput: list(&["tput_per_gpu", "request_metrics.throughput.per_gpu.total_tput_tps"]),
        },
    }
}

#[test]
fn throughput_rows_of_both_kinds() {
    let fixed = r#"[{"hw": "b200", "conc": 4, "image": "a/b:1", "model": "m", "made_up_prefix": "dsv4", "framework": "vllm", "precision": "fp8",
        "spec_decoding": "mtp", "disagg": false, "recipe_fingerprint": "", "isl": 8192, "osl": 1024, "is_multinode": false, "tp": 8, "ep": 1,
        "tput_per_gpu": 1234.5, "median_e2el": 12.5}, {"hw": "b200"}]"#;
    let read = ThroughputRows::read(fixed.as_bytes(), &paths()).unwrap();
    let row = &read.rows[0];
    assert_eq!(
        (
            row.lengths,
            row.image.as_deref(),
            row.recipe_fingerprint.as_deref(),
            row.agentic
        ),
        (Some((8192, 1024)), Some("a/b:1"), None, false)
    );
    assert_eq!(row.point(), Some((12.5, 1234.5)));
    assert_eq!(read.problems.len(), 1);
    let agentic = r#"{"hw": "cluster:b200", "conc": 8, "image": "a/b:1", "made_up_prefix": "dsv4", "framework": "sglang", "precision": "fp4",
        "scenario_type": "agentic-coding", "disagg": true, "is_multinode": true, "prefill_tp": 4, "prefill_num_workers": 2,
        "request_metrics": {"e2el": {"p90": 30.25}, "throughput": {"per_gpu": {"total_tput_tps": 99.5}}}}"#;
    let read = ThroughputRows::read(agentic.as_bytes(), &paths()).unwrap();
    assert_eq!(
        (read.rows[0].point(), read.rows[0].prefill, read.rows[0].lengths),
        (Some((30.25, 99.5)), Some((4, 2)), None)
    );
    for bad in ["NaN", "0", "-1", "\"30\"", "null"] {
        let text = agentic.replace("30.25", bad);
        assert_eq!(
            ThroughputRows::read(text.as_bytes(), &paths()).unwrap().rows[0].point(),
            None,
            "{bad}"
        );
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), text in "[\\[\\]{}\",:NaInfity0-9.e\\\\ -]{0,120}") {
        for bytes in [bytes.as_slice(), text.as_bytes()] {
            let _ = EvalRows::read(bytes);
            let _ = RawResult::read(bytes, &rules());
            let _ = MetaEnv::read(bytes, &rules());
            let _ = ThroughputRows::read(bytes, &paths());
        }
    }

    /// Marking bare words changes nothing else: ordinary JSON reads as it does without.
    #[test]
    fn ordinary_json_is_untouched(keys in proptest::collection::vec("\\PC{0,8}", 0..6), word in "(NaN|Infinity|-Infinity)") {
        let value: serde_json::Value = keys.iter().map(|k| (format!("{word}{k}"), serde_json::Value::from(format!("{k}{word}")))).collect::<serde_json::Map<_, _>>().into();
        let text = value.to_string();
        prop_assert_eq!(parse(text.as_bytes()).unwrap(), value);
    }

    /// Lowering the bar never turns a pass into a failure, and a worse metric never turns a failure into a pass.
    #[test]
    fn judgement_is_monotone(values in proptest::collection::vec(0.0f64..1.0, 1..4), bar in 0.0f64..1.0, less in 0.0f64..1.0) {
        let metrics: Vec<(String, Number)> = values.iter().enumerate().map(|(i, v)| (i.to_string(), Number::Finite(*v))).collect();
        if judge(&metrics, &[], bar).reached() {
            prop_assert!(judge(&metrics, &[], bar * less).reached());
        } else {
            let mut worse = metrics.clone();
            worse.push(("w".into(), Number::Finite(less)));
            prop_assert!(!judge(&worse, &[], bar).reached());
        }
    }
}
