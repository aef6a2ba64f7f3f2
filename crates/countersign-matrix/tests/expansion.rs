//! Expansion, evaluation choice, names and differences over the made-up repository. The rows, the evaluation rows and
//! the fingerprints are what the benchmark repository's own generator printed for exactly these configs.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{FIRST, SECOND, configs, policy};
use countersign_matrix::*;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

fn sweep(evals: EvalMode) -> Vec<Row> {
    full_sweep(&configs(FIRST, SECOND), &policy().matrix, evals).unwrap()
}

#[test]
fn one_row_of_each_kind_has_every_field() {
    let rows: Vec<Json> = sweep(EvalMode::Marked).iter().map(Row::to_json).collect();
    assert_eq!(rows.len(), 14);
    assert_eq!(
        rows[5],
        json!({"conc": 64, "dcp-size": 1, "disagg": false, "dp-attn": true, "ep": 8, "exp-name": "alpha_8k1k",
            "framework": "vllm", "image": "acme/engine:v1", "isl": 8192, "max-model-len": 9472,
            "model": "acme/Alpha-é", "model-prefix": "alpha", "osl": 1024, "pcp-size": 1, "pp": 1,
            "precision": "fp8", "run-eval": true, "runner": "b200", "spec-decoding": "mtp", "tp": 8})
    );
    assert_eq!(
        rows[9],
        json!({"conc": 4, "dcp-size": 1, "dp-attn": false, "duration": 3600, "ep": 1,
            "exp-name": "alpha_tp4_conc4_kvdram-pool_spec-mtp", "framework": "vllm", "image": "acme/engine:v1",
            "kv-offload-backend": {"name": "pool"}, "kv-offloading": "dram", "model": "acme/Alpha",
            "model-prefix": "alpha", "pcp-size": 1, "pp": 1, "precision": "fp8",
            "router": {"name": "gate", "version": "2.0"}, "run-eval": false, "runner": "cluster:b200-x",
            "scenario-type": "agentic-coding", "spec-decoding": "mtp", "total-cpu-dram-gb": 749, "tp": 4})
    );
    assert_eq!(
        rows[10],
        json!({"conc": [8, 64, 32],
            "decode": {"dcp-size": 1, "dp-attn": false, "ep": 1, "hardware": null, "num-worker": 2, "pcp-size": 1,
                "pp": 1, "tp": 8},
            "disagg": true, "eval-conc": 64, "exp-name": "beta_8k1k", "framework": "dynamo-vllm",
            "image": "acme/engine:v2", "isl": 8192, "kv-p2p-transfer": "link", "max-model-len": 9472,
            "model": "acme/Beta", "model-prefix": "beta", "osl": 1024, "precision": "fp4",
            "prefill": {"additional-settings": ["CONFIG_FILE=recipes/beta.yaml:mid[1]"], "dcp-size": 1,
                "dp-attn": true, "ep": 4, "num-worker": 1, "pcp-size": 1, "pp": 1, "tp": 4},
            "run-eval": true, "runner": "gb200", "spec-decoding": "none"})
    );
    assert_eq!(
        rows[13],
        json!({"conc": [32],
            "decode": {"dcp-size": 1, "dp-attn": true, "ep": 8, "num-worker": 0, "pcp-size": 1, "pp": 1, "tp": 8},
            "disagg": false, "duration": 3600, "exp-name": "beta_p1x8ep8dpa_d0x8ep8dpa_conc32_kvdram-pool",
            "framework": "dynamo-vllm", "image": "acme/engine:v2",
            "kv-offload-backend": {"name": "pool", "version": "1.2"}, "kv-offloading": "dram", "model": "acme/Beta",
            "model-prefix": "beta", "precision": "fp4",
            "prefill": {"dcp-size": 1, "dp-attn": true, "ep": 8, "num-worker": 1, "pcp-size": 1, "pp": 1, "tp": 8},
            "run-eval": false, "runner": "cluster:gb200-x", "scenario-type": "agentic-coding",
            "spec-decoding": "none", "total-cpu-dram-gb": 721})
    );
}

#[test]
fn fingerprints_are_those_of_the_repository() {
    let rows = sweep(EvalMode::Unmarked);
    let found: Vec<String> = curves(&rows).into_iter().map(|curve| curve.fingerprint).collect();
    assert_eq!(
        found,
        [
            "68a39f1e0ed6fc6fd1c591b302078eebe20908751cf81464f24a4a1f55c49d71",
            "e613a6bdcfa30d4b8ec393fa5da3df20cf339d3b35ac9405ba59913d962595fa",
            "28cfb1e86cd55377d565c1f3a39c36115abfab6c049ac446ac3e3132cf0650a9",
            "2831660bd1d9db2be57349639bcd2c712eb5735e0a88d4ba3ebdd6f1bb1041e1",
            "5dec95d9e27fbdeb334d57fd689cbc726ba89bd3e3b9def63d66ca9397e58920",
            "f468681009dcacad73ee2f96526e7093de27b00c9161d99767e0443dc2e0f929",
            "2997f140a760c89ab3513fe8a8d75442cb27fb0aa37d3fbf85ed1aa2578c3cfc",
        ]
    );
    assert_eq!(curves(&rows)[0].concurrencies, [4, 8, 16, 32, 48]);
}

#[test]
fn evaluations_are_chosen_as_by_the_repository() {
    type Shown = (String, Vec<i64>, Option<i64>, Option<bool>);
    let shown = |mode| -> Vec<Shown> {
        sweep(mode)
            .iter()
            .map(|row| {
                assert_eq!((row.run_eval, row.eval_only), (Some(true), Some(true)));
                (
                    row.exp_name.clone(),
                    row.conc.values().to_vec(),
                    row.eval_conc,
                    row.eval_all_concs,
                )
            })
            .collect()
    };
    let row =
        |name: &str, conc: &[i64], eval: Option<i64>, all: Option<bool>| (name.to_owned(), conc.to_vec(), eval, all);
    let fixed = |conc| row("alpha_8k1k", &[conc], None, None);
    let last = "beta_p1x8ep8dpa_d0x8ep8dpa";
    assert_eq!(
        shown(EvalMode::EvalsOnly),
        [
            // The highest concurrency and the upper median of 16, 32, 48; then of 16 and 64.
            fixed(32),
            fixed(48),
            fixed(64),
            row("alpha_tp4_conc8_kvnone", &[8], None, None),
            row("beta_8k1k", &[8, 64, 32], Some(64), None),
            row(&format!("{last}_conc32_kvdram-pool"), &[32], Some(32), None),
        ]
    );
    assert_eq!(
        shown(EvalMode::AllEvals),
        [
            fixed(4),
            fixed(8),
            fixed(16),
            fixed(32),
            fixed(48),
            fixed(64),
            fixed(16),
            row("alpha_tp4_conc2_kvnone", &[2], None, None),
            row("alpha_tp4_conc8_kvnone", &[8], None, None),
            row("alpha_tp4_conc4_kvdram-pool_spec-mtp", &[4], None, None),
            row("beta_8k1k", &[8, 32, 64], None, Some(true)),
            row("beta_8k1k", &[8], None, Some(true)),
            row(&format!("{last}_conc1_kvdram-pool"), &[1, 32], Some(32), None),
        ]
    );
}

#[test]
fn an_empty_list_beside_a_range_counts_only_for_named_entries() {
    let text = FIRST.replace(
        "conc-start: 4, conc-end: 48",
        "conc-list: [], conc-start: 4, conc-end: 8",
    );
    let (configs, rules) = (configs(&text, SECOND), policy().matrix);
    let entry = configs.masters.get("alpha-fp8-b200-vllm").unwrap();
    let count = |mode| {
        generate(&configs, &rules, &[entry], mode, Scenarios::ALL, EvalMode::Unmarked)
            .unwrap()
            .len()
    };
    assert_eq!((count(Mode::FullSweep), count(Mode::TestConfig)), (4, 2));
}

#[test]
fn one_entry_that_cannot_be_run_does_not_stop_others() {
    let text = FIRST.replace(
        "tp: 4, spec-decoding: mtp, kv-off",
        "tp: 16, spec-decoding: mtp, kv-off",
    );
    let (configs, rules) = (configs(&text, SECOND), policy().matrix);
    assert!(configs.problems().is_empty());
    let problems = full_sweep(&configs, &rules, EvalMode::Unmarked).unwrap_err();
    assert_eq!(problems.len(), 1);
    assert_eq!((problems[0].line, problems[0].column), (30, 9));
    assert!(problems[0].to_string().contains("needs 16 GPUs"), "{}", problems[0]);
    let other = configs.masters.get("alpha-fp8-b200-vllm").unwrap();
    assert_eq!(entry_rows(&configs, &rules, other).unwrap().len(), 7);
}

#[test]
fn hostile_search_spaces_reach_a_limit() {
    let rows = "      - { tp: 4, conc-start: 1, conc-end: 9223372036854775807 }\n".repeat(1_000);
    let text = format!("{}{rows}", FIRST.split("      - {").next().unwrap());
    let problems = full_sweep(&configs(&text, SECOND), &policy().matrix, EvalMode::Marked).unwrap_err();
    assert!(problems[0].message.contains("50000 rows"), "{}", problems[0]);
    let text = FIRST.replace("isl: 8192", "isl: 9223372036854775807");
    let problems = full_sweep(&configs(&text, SECOND), &policy().matrix, EvalMode::Marked).unwrap_err();
    assert!(problems[0].message.contains("too large"), "{}", problems[0]);
}

#[test]
fn jobs_have_the_names_and_lanes_of_the_workflow() {
    let rules = policy().matrix;
    let rows = sweep(EvalMode::Unmarked);
    let names: Vec<(String, &str)> = rows
        .iter()
        .map(|row| (job_name(row, &rules), lane(row, &rules).unwrap().name.as_str()))
        .collect();
    assert_eq!(names[0], ("alpha fp8 b200 vllm TP4 c4".to_owned(), "single-node 8k1k"));
    assert_eq!(
        names[5],
        ("alpha fp8 b200 vllm TP8/EP8/DPA mtp c64".to_owned(), "single-node 8k1k")
    );
    assert_eq!(
        names[9],
        (
            "alpha fp8 cluster:b200-x vllm TP4 mtp dram KV offload pool c4".to_owned(),
            "agentic"
        )
    );
    assert_eq!(
        names[10],
        (
            "beta fp4 gb200 dynamo-vllm 1P (TP4/EP4/DPA) x 2D (TP8) c8x64x32".to_owned(),
            "multi-node 8k1k"
        )
    );
    assert_eq!(
        names[13],
        (
            "beta fp4 cluster:gb200-x dynamo-vllm (TP8/EP8/DPA) dram KV offload pool c32".to_owned(),
            "multi-node agentic"
        )
    );
    let evals = sweep(EvalMode::EvalsOnly);
    let lanes: Vec<&str> = evals
        .iter()
        .map(|row| lane(row, &rules).unwrap().name.as_str())
        .collect();
    assert_eq!(
        lanes,
        [
            "eval",
            "eval",
            "eval",
            "agentic eval",
            "multi-node eval",
            "multi-node agentic eval"
        ]
    );
    assert_eq!(
        job_name(&evals[2], &rules),
        "alpha fp8 b200 vllm TP8/EP8/DPA mtp c64 | eval-only"
    );
    assert_eq!(canary(&rows, &rules), Some(0));
    assert_eq!(canary(&rows[7..], &rules), None);
}

#[test]
fn a_row_at_other_lengths_has_a_name_and_no_lane() {
    let text = FIRST.replace("isl: 8192", "isl: 4096");
    let rows = full_sweep(&configs(&text, SECOND), &policy().matrix, EvalMode::Unmarked).unwrap();
    assert_eq!(rows[0].exp_name, "alpha_4096_1024");
    assert_eq!(lane(&rows[0], &policy().matrix), None);
    assert!(rows_report(&rows, &policy().matrix, Format::Text).contains("\n(no lane): 7\n"));
}

#[test]
fn check_run_names_are_taken_apart_exactly() {
    let rules = policy().matrix;
    for (name, caller, job, priority) in [
        (
            "single-node 8k1k / / p4.250 | dsv4 fp4 b200 sgl TP8  mtp   c8",
            "single-node 8k1k",
            Some("dsv4 fp4 b200 sgl TP8 mtp c8"),
            Some("4.250"),
        ),
        (
            "eval / dsv4 fp4 b200 sgl TP8 c64 | eval-only",
            "eval",
            Some("dsv4 fp4 b200 sgl TP8 c64 | eval-only"),
            None,
        ),
        ("multi-node eval /", "multi-node eval", None, None),
        ("multi-node eval", "multi-node eval", None, None),
        (
            "collect-evals / collect-evals",
            "collect-evals",
            Some("collect-evals"),
            None,
        ),
        (
            "agentic / / p1.000 | a fp4 r x (TP8/EP8) c1x2",
            "agentic",
            Some("a fp4 r x (TP8/EP8) c1x2"),
            Some("1.000"),
        ),
        ("", "", None, None),
    ] {
        let found = check_run_name(name, &rules);
        assert_eq!(
            (found.caller.as_str(), found.job.as_deref(), found.priority.as_deref()),
            (caller, job, priority)
        );
    }
}

#[test]
fn differences_tell_added_removed_and_changed_points() {
    let rules = policy().matrix;
    let rows = |first: &str, second: &str| full_sweep(&configs(first, second), &rules, EvalMode::Marked).unwrap();
    let base = rows(FIRST, SECOND);
    // The order of entries and of rows never counts.
    let mut reordered = base.clone();
    reordered.reverse();
    assert!(diff(&base, &reordered).is_empty());
    let image = diff(&base, &rows(&FIRST.replacen("engine:v1", "engine:v9", 1), SECOND));
    assert_eq!((image.added.len(), image.removed.len(), image.changed.len()), (0, 0, 7));
    let change = &image.changed[0].fields;
    assert_eq!(change.len(), 1);
    assert_eq!(
        (change[0].field.as_str(), change[0].after.clone()),
        ("image", Some(json!("acme/engine:v9")))
    );
    assert_eq!(image.entries(), ["alpha-fp8-b200-vllm"]);
    let conc = diff(
        &base,
        &rows(
            &FIRST.replace("[2, 8]", "[2, 16]"),
            &SECOND.replace("[8, 64, 32]", "[8, 64]"),
        ),
    );
    assert_eq!((conc.added.len(), conc.removed.len(), conc.changed.len()), (1, 1, 1));
    assert_eq!(conc.added[0].exp_name, "alpha_tp4_conc16_kvnone");
    assert_eq!(conc.removed[0].exp_name, "alpha_tp4_conc8_kvnone");
    assert_eq!(conc.changed[0].fields[0].field, "conc");
    let text = diff_report(&conc, &rules, Format::Text);
    assert!(
        text.starts_with("1 added, 1 removed, 1 changed, in 2 entries\n"),
        "{text}"
    );
    assert!(text.contains("    conc: [8,64,32] -> [8,64]\n"), "{text}");
    let csv = diff_report(&conc, &rules, Format::Csv);
    assert_eq!(csv.lines().count(), 5, "{csv}");
    assert!(csv.starts_with("change,entry,lane,job,purpose,"), "{csv}");
}

#[test]
fn rows_of_one_identity_are_paired_by_likeness() {
    let twin = |setting: &str, conc: &str| {
        format!(
            "      - conc-list: {conc}\n        prefill: {{ num-worker: 3, tp: 2, ep: 1, dp-attn: false, \
             additional-settings: [\"CONFIG_FILE={setting}\"] }}\n        decode: {{ num-worker: 1, tp: 2, ep: 1, \
             dp-attn: false }}\n"
        )
    };
    let with = |rows: &[String]| {
        SECOND.replace(
            "beta-fp4-gb200-dynamo-vllm-agentic:",
            &format!("{}beta-fp4-gb200-dynamo-vllm-agentic:", rows.concat()),
        )
    };
    let rules = policy().matrix;
    let rows = |second: &str| full_sweep(&configs(FIRST, second), &rules, EvalMode::Unmarked).unwrap();
    let base = rows(&with(&[twin("a", "[1]"), twin("b", "[2]")]));
    let head = rows(&with(&[twin("b", "[2, 4]"), twin("c", "[7]"), twin("a", "[1]")]));
    let found = diff(&base, &head);
    assert_eq!((found.added.len(), found.removed.len(), found.changed.len()), (1, 0, 1));
    assert_eq!(found.changed[0].after.conc, Conc::Many(vec![2, 4]));
    assert_eq!(found.added[0].conc, Conc::Many(vec![7]));
}

#[test]
fn the_table_has_one_line_a_row_and_quotes_what_needs_it() {
    let rows = sweep(EvalMode::Marked);
    let csv = rows_report(&rows, &policy().matrix, Format::Csv);
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 15);
    assert!(
        lines[0].starts_with("entry,lane,job,purpose,image,model,"),
        "{}",
        lines[0]
    );
    assert!(lines[11].contains("8 64 32"), "{}", lines[11]);
    let json: Json = serde_json::from_str(&rows_report(&rows, &policy().matrix, Format::Json)).unwrap();
    assert_eq!(json[0]["exp-name"], "alpha_8k1k");
}

/// A generic canonical form: whatever `to_json` says, sorted.
fn sorted_without_point(row: &Row) -> String {
    fn sort(json: &Json) -> Json {
        match json {
            Json::Object(map) => {
                let mut keys: Vec<&String> = map.keys().collect();
                keys.sort();
                Json::Object(keys.into_iter().map(|key| (key.clone(), sort(&map[key]))).collect())
            }
            other => other.clone(),
        }
    }
    let mut json = row.to_json();
    for field in ["conc", "exp-name", "recipe-fingerprint"] {
        json.as_object_mut().unwrap().shift_remove(field);
    }
    let text = sort(&json).to_string();
    let mut ascii = String::new();
    for c in text.chars() {
        match c {
            '\u{7f}'.. => c
                .encode_utf16(&mut [0; 2])
                .iter()
                .for_each(|unit| ascii.push_str(&format!("\\u{unit:04x}"))),
            _ => ascii.push(c),
        }
    }
    ascii
}

#[test]
fn the_canonical_form_is_a_generic_sort_of_the_row() {
    for mode in [
        EvalMode::Unmarked,
        EvalMode::Marked,
        EvalMode::EvalsOnly,
        EvalMode::AllEvals,
    ] {
        for row in sweep(mode) {
            assert_eq!(row.curve_key(), sorted_without_point(&row));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// Text anywhere in a row reaches the canonical form escaped as Python escapes it.
    #[test]
    fn texts_are_escaped(image in "[ -~\u{7f}\u{e9}\u{3bb}\u{1f600}\\n\\t\\r\u{8}\u{c}]{0,12}") {
        let quoted = serde_json::to_string(&image).unwrap();
        let text = FIRST.replacen("acme/engine:v1", &quoted, 1);
        let configs = configs(&text, SECOND);
        if configs.problems().is_empty() {
            let rows = full_sweep(&configs, &policy().matrix, EvalMode::Unmarked).unwrap();
            prop_assert_eq!(&*rows[0].head.image, image.as_str());
            prop_assert_eq!(rows[0].curve_key(), sorted_without_point(&rows[0]));
        }
    }

    /// Whatever is done to the text, reading and expanding end without a panic, and refusals have a place.
    #[test]
    fn mutated_configs_do_not_panic(at in 0..1400_usize, cut in 0..60_usize, put in "([-a-z0-9 :,\\[\\]{}\\n]|null|true|-1|tp: 0|\\*){0,8}") {
        for (first, second) in [(true, false), (false, true)] {
            let mutate = |text: &str, wanted: bool| {
                if !wanted { return text.to_owned(); }
                let chars: Vec<char> = text.chars().collect();
                let (start, end) = (at.min(chars.len()), (at + cut).min(chars.len()));
                chars[..start].iter().chain(put.chars().collect::<Vec<_>>().iter()).chain(&chars[end..]).collect()
            };
            let configs = configs(&mutate(FIRST, first), &mutate(SECOND, second));
            match full_sweep(&configs, &policy().matrix, EvalMode::AllEvals) {
                Ok(rows) => prop_assert!(diff(&rows, &rows).is_empty()),
                Err(problems) => {
                    prop_assert!(!problems.is_empty());
                    for problem in problems {
                        prop_assert!(!problem.message.is_empty() && !problem.remedy.is_empty());
                    }
                }
            }
        }
    }
}
