//! What the readers refuse, and where they say it is. Each case is one edit of the made-up repository.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{FIRST, RUNNERS, SECOND, configs, files, policy};
use countersign_matrix::*;

/// The edit, and a piece of the report: `line:column`, path and words.
const CASES: &[(&str, &str, &str)] = &[
    (
        "  image: acme/engine:v1\n",
        "  image: 5\n",
        ":2:10: alpha-fp8-b200-vllm: image: expected a string, found an integer",
    ),
    (
        "  image: acme/engine:v1\n",
        "",
        ":1:1: alpha-fp8-b200-vllm: missing field `image`",
    ),
    (
        "  precision: fp8\n",
        "  precision: fp8\n  color: red\n",
        ":7:3: alpha-fp8-b200-vllm: unknown field `color`",
    ),
    (
        "  model-prefix: alpha\n",
        "  model_prefix: alpha\n",
        "did you mean `model-prefix`?",
    ),
    (
        "multinode: false",
        "multinode: 0",
        ":8:14: alpha-fp8-b200-vllm: multinode: expected true or false",
    ),
    (
        "multinode: false",
        "multinode: false\n  disagg: true",
        "disagg: only a multi-node entry can be disaggregated",
    ),
    (
        "multinode: false",
        "multinode: false\n  kv-p2p-transfer: x",
        "kv-p2p-transfer: only for multi-node entries",
    ),
    (
        "multinode: false",
        "multinode: false\n  router: { name: a, version: \"image:b\" }",
        "router.version: a version may not begin with `image:`",
    ),
    (
        "multinode: false",
        "multinode: false\n  router: { name: a }",
        "router: missing field `version`",
    ),
    (
        "multinode: false",
        "multinode: false\n  router: { name: '', version: b }",
        "router.name: the text is empty",
    ),
    (
        "tp: 4, conc-start",
        "tp: \"4\", conc-start",
        ":14:15: alpha-fp8-b200-vllm: scenarios.fixed-seq-len[0].search-space[0].tp: expected an integer, found a string",
    ),
    // The generator would take a whole float, a number in quotes and underscores in a name, and write them into the row.
    (
        "tp: 4, conc-start",
        "tp: 4.0, conc-start",
        "search-space[0].tp: expected an integer, found a float",
    ),
    (
        "tp: 4, conc-start",
        "tp: 99999999999999999999, conc-start",
        "search-space[0].tp: expected an integer, found an integer beyond 64 bits",
    ),
    ("tp: 4, conc-start", "conc-start", "search-space[0]: missing field `tp`"),
    (
        "tp: 4, conc-start",
        "tp: 4, dp_attn: true, conc-start",
        "unknown field `dp_attn`; did you mean `dp-attn`?",
    ),
    (
        "tp: 4, conc-start",
        "tp: 4, dcp-size: 3, conc-start",
        "`tp` (4) is not divisible by `dcp-size` (3)",
    ),
    (
        "tp: 4, conc-start",
        "tp: 4, pp: 0, conc-start",
        "pp: `pp` must be positive",
    ),
    (
        "tp: 4, conc-start",
        "tp: 4, conc-list: [1], conc-start",
        "a list and a range of concurrencies",
    ),
    ("conc-start: 4, conc-end: 48", "conc-start: 4", "no concurrency"),
    ("conc-start: 4, conc-end: 48", "conc-list: []", "no concurrency"),
    (
        "conc-start: 4, conc-end: 48",
        "conc-list: [0]",
        "concurrencies must be positive",
    ),
    (
        "conc-start: 4, conc-end: 48",
        "conc-start: 0, conc-end: 8",
        "concurrencies must be positive",
    ),
    (
        "conc-start: 4, conc-end: 48",
        "conc-start: 9, conc-end: 8",
        "`conc-start` is above `conc-end`",
    ),
    (
        "spec-decoding: mtp, conc-list",
        "spec-decoding: eagle, conc-list",
        "`eagle` is not a value of `spec-decoding`; use one of mtp, draft_model, none",
    ),
    (
        "    - isl: 8192\n",
        "    - isl: 8192.5\n",
        "scenarios.fixed-seq-len[0].isl: expected an integer, found a float",
    ),
    (
        "    fixed-seq-len:\n",
        "    fixed-seq-len: []\n    other:\n",
        "unknown field `other`",
    ),
    (
        "runner: cluster:b200-x",
        "runner: b200-x",
        "an agentic entry needs a runner that names one cluster, not `b200-x`; write `cluster:<name>`",
    ),
    (
        "dram-utilization: 0.5",
        "dram-utilization: 1.5",
        "dram-utilization: must be above 0 and at most 1",
    ),
    (
        "- dram-utilization: 0.5\n      search-space",
        "- search-space",
        "offloading to `dram` needs `dram-utilization`",
    ),
    (
        "{ tp: 4, kv-offloading: none,",
        "{ tp: 4,",
        "missing field `kv-offloading`",
    ),
    (
        "kv-offloading: none,",
        "kv-offloading: ssd,",
        "`ssd` is not a value of `kv-offloading`; use `none` or `dram`",
    ),
    (
        "kv-offloading: none,",
        "kv-offloading: none, kv-offload-backend: { name: x },",
        "a backend without offloading",
    ),
    ("kv-offload-backend: { name: pool }, ", "", "offloading needs a backend"),
    (
        "kv-offloading: none,",
        "kv-offloading: none, prefill: {},",
        "a single-node entry has no workers",
    ),
    (
        "kv-offloading: none,",
        "kv-offloading: none, kv-p2p-transfer: x,",
        "kv-p2p-transfer: only for multi-node entries",
    ),
    (
        "kv-offloading: none,",
        "kv-offloading: none, router: { name: a, version: b },",
        "`router` is written for the entry and for this row",
    ),
    (
        "alpha-fp8-b200-vllm:\n",
        "alpha*:\n",
        ":1:1: alpha*: `*` and `?` are wildcards",
    ),
    ("alpha-fp8-b200-vllm:\n", "5:\n", "the entry's key is not a string"),
    (
        "alpha-fp8-b200-vllm:\n",
        "beta-fp4-gb200-dynamo-vllm:\n",
        "this key is already in another master config",
    ),
    (
        "  framework: vllm\n",
        "\tframework: vllm\n",
        ":7:1: a tab stands where only spaces are read",
    ),
];

#[test]
fn each_mistake_is_named_with_its_place() {
    assert!(configs(FIRST, SECOND).problems().is_empty());
    for (from, to, expected) in CASES {
        assert!(FIRST.contains(from), "{from:?} is not in the text");
        let problems = configs(&FIRST.replacen(from, to, 1), SECOND).problems();
        let shown: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert!(
            shown.iter().any(|line| line.contains(expected)),
            "{from:?} -> {to:?}: {shown:#?}"
        );
        assert!(
            full_sweep(
                &configs(&FIRST.replacen(from, to, 1), SECOND),
                &policy().matrix,
                EvalMode::Marked
            )
            .is_err()
        );
    }
}

#[test]
fn mistakes_of_multi_node_entries_are_named() {
    for (from, to, expected) in [
        (
            "num-worker: 1, tp: 4, ep: 4, dp-attn: true",
            "num-worker: 1, tp: 4, ep: 4",
            "prefill: missing field `dp-attn`",
        ),
        (
            "hardware: null",
            "hardware: gb300",
            "`hardware` is given for one kind of workers only",
        ),
        (
            "additional-settings: [\"CONFIG",
            "additional-settings: [5, \"CONFIG",
            "prefill.additional-settings[0]: expected a string",
        ),
        (
            "  kv-p2p-transfer: link\n",
            "",
            "a disaggregated entry needs `kv-p2p-transfer`",
        ),
        (
            "- conc-list: [8]\n",
            "- conc-list: [8]\n        kv-p2p-transfer: other\n",
            "`kv-p2p-transfer` is written for the entry and for this row",
        ),
        (
            "- conc-list: [8]\n",
            "- conc-list: [8]\n        kv-p2p-transfer: null\n",
            "this row takes away the transfer",
        ),
        (
            "- conc-list: [8]\n",
            "- conc-list: [8]\n        tp: 4\n",
            "unknown field `tp`",
        ),
        (
            "- conc-list: [1, 32]\n",
            "- conc-list: [1, 32]\n        tp: 4\n",
            "a multi-node entry has its parallelism in `prefill` and `decode`",
        ),
        (
            "- conc-list: [1, 32]\n",
            "- conc-list: [1, 32]\n        pp: 1\n",
            "a multi-node row cannot have this",
        ),
        (
            "num-worker: 1, tp: 8, ep: 8",
            "num-worker: 1, tp: 6, ep: 8",
            "a worker of 6 GPUs does not fill nodes of 4",
        ),
        (
            "num-worker: 1, tp: 8, ep: 8",
            "num-worker: 1, tp: 3, ep: 8",
            "a worker of 3 GPUs does not divide a node of 4",
        ),
        (
            "num-worker: 1, tp: 8, ep: 8",
            "num-worker: 1, tp: 0, ep: 8",
            "a worker of 0 GPUs does not divide a node of 4",
        ),
        (
            "runner: cluster:gb200-x",
            "runner: cluster:gb200-z",
            "the runner `cluster:gb200-z` has no hardware facts",
        ),
    ] {
        assert!(SECOND.contains(from), "{from:?} is not in the text");
        let configs = configs(FIRST, &SECOND.replacen(from, to, 1));
        let problems = full_sweep(&configs, &policy().matrix, EvalMode::Marked).unwrap_err();
        let shown: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert!(
            shown.iter().any(|line| line.contains(expected)),
            "{from:?} -> {to:?}: {shown:#?}"
        );
    }
}

#[test]
fn every_mistake_of_a_file_is_reported_at_once() {
    let text = FIRST
        .replacen("image: acme/engine:v1", "image: 5", 1)
        .replace("kv-offloading: none,", "kv-offloading: ssd,")
        .replace("tp: 8, ep: 8", "tp: x, ep: y");
    let problems = configs(&text, SECOND).problems();
    assert_eq!(problems.len(), 4, "{problems:#?}");
}

#[test]
fn a_repeated_key_counts_as_the_generator_counts_it_and_is_reported() {
    let text = FIRST.replacen("  runner: b200\n", "  runner: b300\n  runner: b200\n", 1);
    let found = configs(&text, SECOND);
    assert!(found.problems().is_empty());
    assert_eq!(&*found.masters.get("alpha-fp8-b200-vllm").unwrap().head.runner, "b200");
    let shown: Vec<String> = found.masters.duplicates.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "configs/amd-master.yaml:6:3: the key `runner` is already written on line 5; keep one of the two; the last one counts"
        ]
    );
}

#[test]
fn runners_are_read_strictly() {
    let policy = policy();
    for (from, to, expected) in [
        ("labels:", "label:", "unknown field `label`; did you mean `labels`?"),
        (
            "[b200-x_0, b200-y_1]",
            "[]",
            "labels.b200: the list of runners is empty",
        ),
        (
            "[b200-x_0, b200-y_1]",
            "b200-x_0",
            "labels.b200: expected a list, found a string",
        ),
        ("3_000_000", "0", "`available-cpu-dram-mib` must be positive"),
        ("3_000_000", "3_000_000 GB", "expected an integer, found a string"),
        (", gpus-per-node: 8", "", "missing field `gpus-per-node`"),
    ] {
        let files = files(FIRST, SECOND).with("configs/runners.yaml", RUNNERS.replacen(from, to, 1));
        let runners = read_runners(&files, &policy.layout);
        let shown: Vec<String> = runners.problems.iter().map(ToString::to_string).collect();
        assert!(
            shown.iter().any(|line| line.contains(expected)),
            "{from:?} -> {to:?}: {shown:#?}"
        );
    }
    let missing = Configs::read(&MapFiles::new(), &policy.layout, &policy.matrix);
    assert_eq!(missing.problems().len(), 3);
    assert_eq!(
        missing.problems()[0].to_string(),
        "configs/amd-master.yaml: the file is missing; restore it"
    );
}

#[test]
fn rules_that_contradict_themselves_are_named() {
    let mut rules = policy().matrix;
    assert_eq!(rules.faults(), Vec::<String>::new());
    rules.range_factor = 1;
    rules.agentic.multi_node_concurrencies_per_job = 0;
    rules.eval.sequence = "2k".to_owned();
    rules.spec_decoding.none = "off".to_owned();
    assert_eq!(rules.faults().len(), 4);
}
