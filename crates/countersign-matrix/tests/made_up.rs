//! Every rule of the expansion on made-up entries, without the real repository at hand: the domain guide's three (19.1)
//! and a file of corners. `testdata/made-up/rows.jsonl` is what the repository's own generator printed for exactly
//! these files (`compare/made_up.py`).
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::collections::BTreeMap;

use common::policy;
use countersign_matrix::*;
use proptest::prelude::*;
use serde_json::{Map, Value as Json};

const THREE: &str = include_str!("../testdata/made-up/three.yaml");
const CORNERS: &str = include_str!("../testdata/made-up/corners.yaml");
const RUNNERS: &str = include_str!("../testdata/made-up/runners.yaml");
const EXPECTED: &str = include_str!("../testdata/made-up/rows.jsonl");
const MASTER: &str = "configs/master.yaml";
/// What `rows.jsonl` keeps of a row outside the throughput mode.
const KEPT: [&str; 8] = [
    "exp-name",
    "conc",
    "tp",
    "isl",
    "run-eval",
    "eval-only",
    "eval-conc",
    "eval-all-concs",
];
const MODES: [(&str, EvalMode); 4] = [
    ("unmarked", EvalMode::Unmarked),
    ("marked", EvalMode::Marked),
    ("evals-only", EvalMode::EvalsOnly),
    ("all-evals", EvalMode::AllEvals),
];

fn layout() -> Layout {
    Layout {
        masters: vec![MASTER.to_owned()],
        ..policy().layout
    }
}

fn read(master: &str, runners: &str) -> Configs {
    let files = MapFiles::new()
        .with(MASTER, master)
        .with("configs/runners.yaml", runners);
    let configs = Configs::read(&files, &layout(), &policy().matrix);
    assert_eq!(configs.problems(), []);
    configs
}

fn rows(master: &str, mode: EvalMode) -> Vec<Row> {
    full_sweep(&read(master, RUNNERS), &policy().matrix, mode).unwrap()
}

fn of<'r>(rows: &'r [Row], key: &str) -> Vec<&'r Row> {
    rows.iter().filter(|row| &*row.head.key == key).collect()
}

fn bag(rows: impl Iterator<Item = Json>) -> BTreeMap<String, usize> {
    fn sort(json: &Json) -> Json {
        match json {
            Json::Object(map) => {
                let sorted: BTreeMap<_, _> = map.iter().map(|(key, value)| (key.clone(), sort(value))).collect();
                Json::Object(sorted.into_iter().collect())
            }
            other => other.clone(),
        }
    }
    let mut bag = BTreeMap::new();
    for row in rows {
        *bag.entry(sort(&row).to_string()).or_default() += 1;
    }
    bag
}

#[test]
fn every_row_in_every_mode_is_the_generators() {
    let expected: Vec<Json> = EXPECTED
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let mut compared = 0;
    for (config, master) in [("three", THREE), ("corners", CORNERS)] {
        for (name, mode) in MODES {
            let ours = rows(master, mode).into_iter().map(|row| {
                let json = row.to_json();
                if name == "unmarked" {
                    let mut json = json;
                    json["recipe-fingerprint"] = row.fingerprint().into();
                    json
                } else {
                    let kept: Map<String, Json> = KEPT
                        .iter()
                        .filter_map(|field| Some(((*field).to_owned(), json.get(field)?.clone())))
                        .collect();
                    Json::Object(kept)
                }
            });
            let theirs = expected
                .iter()
                .filter(|line| line["config"] == config && line["mode"] == name)
                .map(|line| line["row"].clone());
            let (ours, theirs) = (bag(ours), bag(theirs));
            compared += theirs.values().sum::<usize>();
            assert_eq!(ours, theirs, "{config} {name}");
        }
    }
    assert_eq!(compared, expected.len());
}

#[test]
fn the_three_entries_are_as_in_the_guide() {
    let rules = policy().matrix;
    let throughput = rows(THREE, EvalMode::Unmarked);
    let evals = rows(THREE, EvalMode::EvalsOnly);
    let lanes = |rows: &[&Row]| -> Vec<String> {
        let mut lanes: Vec<String> = rows.iter().map(|row| lane(row, &rules).unwrap().name.clone()).collect();
        lanes.dedup();
        lanes
    };
    for (key, points, checked, expected) in [
        ("dsv4-fp8-b200-vllm-mtp", 7, 3, ["single-node 8k1k", "eval"]),
        ("dsv4-fp4-b200-sglang-agentic-mtp", 4, 1, ["agentic", "agentic eval"]),
        (
            "dsv4-fp4-gb300-dynamo-vllm-agentic-disagg",
            2,
            1,
            ["multi-node agentic", "multi-node agentic eval"],
        ),
    ] {
        let (of_entry, of_evals) = (of(&throughput, key), of(&evals, key));
        assert_eq!((of_entry.len(), of_evals.len()), (points, checked), "{key}");
        assert_eq!([lanes(&of_entry), lanes(&of_evals)].concat(), expected, "{key}");
    }
    assert_eq!(throughput.len(), 13);
    assert_eq!(curves(&throughput).len(), 5);
}

#[test]
fn job_names_are_those_of_the_workflow_templates() {
    let rules = policy().matrix;
    let names = |master, mode, key: &str| -> Vec<String> {
        of(&rows(master, mode), key)
            .into_iter()
            .map(|row| job_name(row, &rules))
            .collect()
    };
    let named = |names: Vec<String>, wanted: &[&str]| {
        for name in wanted {
            assert!(names.iter().any(|found| found == name), "{name}: {names:#?}");
        }
    };
    named(
        names(THREE, EvalMode::Unmarked, "dsv4-fp4-b200-sglang-agentic-mtp"),
        &[
            "dsv4 fp4 cluster:b200-dgxc sgl TP8 mtp c1",
            "dsv4 fp4 cluster:b200-dgxc sgl TP8 mtp dram KV offload hicache c8",
        ],
    );
    named(
        names(THREE, EvalMode::Unmarked, "dsv4-fp4-gb300-dynamo-vllm-agentic-disagg"),
        &["dsv4 fp4 cluster:gb300-nv dynamo-vllm 1P (TP4/EP4/DPA) x 1D (TP8/EP8/DPA) mtp c16"],
    );
    // The backends `default` and `none` are not shown; each degree has its place.
    named(
        names(CORNERS, EvalMode::Unmarked, "zeta2.5-fp8-h900-vllm-power"),
        &[
            "zeta2.5 fp8 cluster:h900-x vllm TP4/PP2 dram KV offload pool c5",
            "zeta2.5 fp8 cluster:h900-x vllm TP2/DCP2/PCP2/EP2/DPA mtp dram KV offload c2",
            "zeta2.5 fp8 cluster:h900-x vllm TP8 c5",
        ],
    );
    named(
        names(CORNERS, EvalMode::Unmarked, "theta-fp4-r900-dynamo-x-agentic"),
        &[
            "theta fp4 cluster:r900-x dynamo-x (TP4) c8",
            "theta fp4 cluster:r900-x dynamo-x (TP2/EP2/DPA) dram KV offload c40",
        ],
    );
    named(
        names(CORNERS, EvalMode::EvalsOnly, "theta-fp4-r900-dynamo-x"),
        &["theta fp4 r900 dynamo-x 2P (TP4/EP4/DPA) x 1D (TP8/PP2/DCP4/PCP2/EP8/DPA) c256 | eval-only"],
    );
    named(
        names(CORNERS, EvalMode::AllEvals, "theta-fp4-r900-dynamo-x"),
        &["theta fp4 r900 dynamo-x 2P (TP4/EP4/DPA) x 1D (TP8/PP2/DCP4/PCP2/EP8/DPA) c4x64x256 | eval-only"],
    );
    named(
        names(CORNERS, EvalMode::Marked, "zeta2.5-fp8-h900-vllm"),
        &[
            "zeta2.5 fp8 cluster:h900-x vllm TP1 c64 | eval",
            "zeta2.5 fp8 cluster:h900-x vllm TP1 c32",
        ],
    );
}

#[test]
fn the_canary_is_the_lowest_single_node_point_and_the_short_lengths_come_first() {
    let rules = policy().matrix;
    let all = rows(CORNERS, EvalMode::Unmarked);
    let chosen = &all[canary(&all, &rules).unwrap()];
    assert_eq!((chosen.lengths(), chosen.conc.values()), (Some((1024, 1024)), &[1][..]));
    let long: Vec<Row> = all
        .into_iter()
        .filter(|row| row.lengths() != Some((1024, 1024)))
        .collect();
    let chosen = &long[canary(&long, &rules).unwrap()];
    assert_eq!((chosen.lengths(), chosen.conc.values()), (Some((8192, 1024)), &[8][..]));
}

#[test]
fn entries_that_share_an_evaluation_have_it_each_when_swept_alone() {
    let (configs, rules) = (read(CORNERS, RUNNERS), policy().matrix);
    let evals = |keys: &[&str]| -> Vec<(String, String)> {
        let entries: Vec<_> = keys.iter().map(|key| configs.masters.get(key).unwrap()).collect();
        let found = generate(
            &configs,
            &rules,
            &entries,
            Mode::TestConfig,
            Scenarios {
                fixed: false,
                agentic: true,
            },
            EvalMode::EvalsOnly,
        );
        found
            .unwrap()
            .iter()
            .map(|row| (row.head.key.to_string(), row.exp_name.clone()))
            .collect()
    };
    let row = |key: &str, name: &str| (key.to_owned(), name.to_owned());
    let (first, second) = ("zeta2.5-fp8-h900-vllm", "zeta2.5-fp8-h900-vllm-power");
    // Of equal concurrencies the first counts.
    assert_eq!(evals(&[first, second]), [row(first, "zeta2.5_tp2_conc5_kvnone")]);
    assert_eq!(evals(&[second]), [row(second, "zeta2.5_tp4_conc5_kvdram-pool")]);
}

const CHANGELOG: &str = "perf-changelog.yaml";

fn append(base: (&str, &str), head: (&str, &str), item: &str) -> Result<Vec<i64>, String> {
    let text = format!("- config-keys: {item}\n  description: [d]\n  pr-link: XXX\n  append-only: true\n");
    let items = added_items(CHANGELOG, "", &text).unwrap();
    let (base, head) = (read(base.0, base.1), read(head.0, head.1));
    let options = SelectOptions::default();
    select(CHANGELOG, &items, &head, Some(&base), &policy().matrix, options)
        .map(|found| {
            assert!(found.append_only && found.evals.is_empty(), "no evaluations");
            found
                .throughput
                .iter()
                .flat_map(|row| row.conc.values().to_vec())
                .collect()
        })
        .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

#[test]
fn an_appended_point_needs_an_unselected_scenario_to_stay_and_one_image_on_its_curve() {
    let base = (CORNERS, RUNNERS);
    let edit = |from: &str, to: &str| {
        assert!(CORNERS.contains(from), "{from}");
        CORNERS.replacen(from, to, 1)
    };
    // One scenario of an entry that has two.
    let longer = edit("conc-list: [3, 5]", "conc-list: [3, 4, 5]");
    let agentic = "[zeta2.5-fp8-h900-vllm]\n  scenario-type: [agentic-coding]";
    assert_eq!(append(base, (&longer, RUNNERS), agentic), Ok(vec![4]));
    // Both entries lie on one shown curve, and it has two images, since they are written in two ways.
    let both = "[\"zeta*\"]";
    let refused = append(base, (&longer, RUNNERS), both).unwrap_err();
    assert!(
        refused.contains("does not lie on a shown curve with the same single image"),
        "{refused}"
    );
    let alike = |text: &str| text.replace("registry.example#acme", "registry.example/acme");
    let (same, more) = (alike(CORNERS), alike(&longer));
    assert_eq!(append((&same, RUNNERS), (&more, RUNNERS), both), Ok(vec![4]));
    let other = more.replacen("model: acme/Zeta-2.5\n", "model: acme/Zeta\n", 1);
    let refused = append((&same, RUNNERS), (&other, RUNNERS), agentic).unwrap_err();
    assert!(
        refused.contains("a field of the whole entry changed, and one of its scenarios is not selected"),
        "{refused}"
    );
    // The base's rows are those of the base's own hardware facts.
    let power = edit("conc-list: [5, 1]", "conc-list: [5, 1, 7]");
    let selected = "[zeta2.5-fp8-h900-vllm-power]";
    assert_eq!(append(base, (&power, RUNNERS), selected), Ok(vec![7]));
    let smaller = RUNNERS.replace("2_063_837", "2_060_000");
    let refused = append(base, (&power, &smaller), selected).unwrap_err();
    assert!(refused.contains("was removed or changed"), "{refused}");
    // A list of a multi-node row is extended; only what is new runs.
    let rack = edit("- conc-list: [4, 64]", "- conc-list: [4, 64, 96, 128]");
    assert_eq!(
        append(base, (&rack, RUNNERS), "[theta-fp4-r900-dynamo-x]"),
        Ok(vec![96, 128])
    );
    // What another row of the same curve runs already is not new.
    let twice = edit("- conc-list: [4, 64]", "- conc-list: [4, 64, 256]");
    let refused = append(base, (&twice, RUNNERS), "[theta-fp4-r900-dynamo-x]").unwrap_err();
    assert!(refused.contains("no point is added"), "{refused}");
}

/// Rows of one kind only: in the mode with marks, evaluation and throughput share their points.
fn some(picks: &[prop::sample::Index]) -> Vec<Row> {
    let all = rows(CORNERS, EvalMode::Unmarked);
    picks.iter().map(|pick| all[pick.index(all.len())].clone()).collect()
}

fn multiset(rows: impl IntoIterator<Item = Row>) -> BTreeMap<String, i64> {
    let mut found = BTreeMap::new();
    for row in rows {
        *found.entry(format!("{} {}", row.head.key, row.to_json())).or_default() += 1;
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// The base without what was removed and changed, with what was added and changed, is the head; and backwards.
    #[test]
    fn a_difference_leads_from_one_matrix_to_the_other(
        base in prop::collection::vec(any::<prop::sample::Index>(), 0..30),
        head in prop::collection::vec(any::<prop::sample::Index>(), 0..30),
        bumped in prop::collection::vec(any::<bool>(), 30),
    ) {
        let (base, mut head) = (some(&base), some(&head));
        for (row, bump) in head.iter_mut().zip(&bumped) {
            if *bump {
                let mut other = (*row.head).clone();
                other.image = "acme/other:v9".into();
                row.head = other.into();
            }
        }
        let there = diff(&base, &head);
        let mut walked = multiset(base.iter().cloned());
        let before = there.changed.iter().map(|changed| changed.before.clone());
        for (text, count) in multiset(there.removed.iter().cloned().chain(before)) {
            *walked.entry(text).or_default() -= count;
        }
        let after = there.changed.iter().map(|changed| changed.after.clone());
        for (text, count) in multiset(there.added.iter().cloned().chain(after)) {
            *walked.entry(text).or_default() += count;
        }
        walked.retain(|_, count| *count != 0);
        prop_assert_eq!(walked, multiset(head.iter().cloned()));
        for changed in &there.changed {
            prop_assert_eq!(changed.before.point(), changed.after.point());
            prop_assert!(!changed.fields.is_empty());
        }
        // No point is both added and removed: it would be one that changed.
        let added: Vec<Point> = there.added.iter().map(Row::point).collect();
        prop_assert!(there.removed.iter().all(|row| !added.contains(&row.point())));
        let back = diff(&head, &base);
        prop_assert_eq!(
            (back.added.len(), back.removed.len(), back.changed.len()),
            (there.removed.len(), there.added.len(), there.changed.len())
        );
    }

    /// Order never counts, and a matrix does not differ from itself.
    #[test]
    fn the_order_of_rows_never_counts(
        picks in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
        keys in prop::collection::vec(any::<u32>(), 40),
    ) {
        let one = some(&picks);
        let mut other: Vec<(u32, Row)> = keys.into_iter().zip(one.iter().cloned()).collect();
        other.sort_by_key(|(key, _)| *key);
        let other: Vec<Row> = other.into_iter().map(|(_, row)| row).collect();
        prop_assert!(diff(&one, &other).is_empty());
        let points = |rows: &[Row]| {
            let mut points: Vec<Point> = rows.iter().map(Row::point).collect();
            points.sort();
            points
        };
        prop_assert_eq!(points(&one), points(&other));
    }

    /// Rows are on one curve exactly where they differ in nothing but the concurrency.
    #[test]
    fn a_fingerprint_is_a_row_without_its_concurrency(a in any::<prop::sample::Index>(), b in any::<prop::sample::Index>()) {
        let pair = some(&[a, b]);
        let bare = |row: &Row| {
            let mut json = row.to_json();
            let map = json.as_object_mut().unwrap();
            for field in ["conc", "exp-name"] {
                map.shift_remove(field);
            }
            bag([json].into_iter())
        };
        prop_assert_eq!(pair[0].fingerprint() == pair[1].fingerprint(), bare(&pair[0]) == bare(&pair[1]));
    }
}
