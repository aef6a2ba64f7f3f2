//! What points start, at merge base and head: groups, differences, what is not known, and what is not asked twice.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;

use countersign_checks::Context;
use countersign_checks::facts::launches::{At, Difference, For};
use countersign_checks::sketch::Sketch;
use countersign_core::Observed;
use countersign_launch::Acceptance;
use countersign_policy::LoadedPolicy;

fn policy() -> LoadedPolicy {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    countersign_policy::load("policy", &|name: &str| {
        std::fs::read_to_string(folder.join(format!("{name}.yaml"))).map_err(|error| error.to_string())
    })
    .unwrap()
}

fn sketch(text: &str) -> Sketch {
    countersign_yaml::from_str(text, &countersign_yaml::Limits::default()).unwrap()
}

const CONFIGS: &str = r#"
trusted:
  configs/runners.yaml: |
    labels: { b9: [b9-x_0], gb9: [gb9-x_0] }
    hardware: { b9: { available-cpu-dram-mib: 1000, gpus-per-node: 8 }, gb9: { available-cpu-dram-mib: 1000, gpus-per-node: 8 } }
  runners/launch_b9-x.sh: "echo\n"
  runners/launch_gb9-x.sh: "echo\n"
  configs/b.yaml: "{}\n"
  configs/a.yaml: |
    m1-fp8-b9-vllm-mtp:
      image: vllm/vllm-openai:v1
      model: org/M1
      model-prefix: m1
      runner: b9
      precision: fp8
      framework: vllm
      multinode: false
      scenarios:
        fixed-seq-len:
          - isl: 8192
            osl: 1024
            search-space:
              - { tp: 8, spec-decoding: mtp, conc-list: [4, 8, 64] }
  scripts/m1_fp8_b9_vllm_mtp.sh: |
    source "$(dirname "$0")/lib.sh"
    K=3
    if [ "$CONC" -gt 32 ]; then K=1; fi
    vllm serve "$MODEL" --tensor-parallel-size "$TP" --speculative-config "{\"method\":\"mtp\",\"num_speculative_tokens\":$K}" &
    drive --model "$MODEL" --conc "$CONC" --chat
  scripts/lib.sh: "export LIB=1\n"
"#;

#[test]
fn points_that_start_alike_are_one_group_and_a_change_is_told() {
    let head = r#"
head:
  scripts/m1_fp8_b9_vllm_mtp.sh: |
    source "$(dirname "$0")/lib.sh"
    K=3
    if [ "$CONC" -gt 32 ]; then K=2; fi
    vllm serve "$MODEL" --tensor-parallel-size "$TP" --speculative-config "{\"method\":\"mtp\",\"num_speculative_tokens\":$K}" &
    drive --model "$MODEL" --conc "$CONC" --chat
"#;
    let evidence = sketch(&format!("{CONFIGS}{head}")).evidence().unwrap();
    let policy = policy();
    let cx = Context::new(&evidence, &policy);
    let launches = cx.launches().unwrap();
    let touched: Vec<_> = launches
        .touched()
        .map(|(entry, which)| (entry.head.key.to_string(), which))
        .collect();
    assert_eq!(touched.len(), 1);
    assert!(touched[0].1.fixed);
    let key = touched[0].0.as_str();
    let entry = launches.head(key);
    let groups: Vec<(Vec<i64>, Option<u32>)> = entry
        .groups
        .iter()
        .map(|group| {
            let spec = group.starts.launches[0].spec.as_ref().unwrap();
            assert_eq!(spec.acceptance, Acceptance::Real);
            (group.concurrencies(), spec.draft_tokens.value().copied())
        })
        .collect();
    assert_eq!(groups, [(vec![4, 8], Some(3)), (vec![64], Some(2))]);
    let differences = launches.differences(key).unwrap();
    assert_eq!(differences[0], Difference::Changed(Vec::new()));
    let Difference::Changed(changes) = &differences[1] else {
        panic!("{differences:?}");
    };
    let shown: Vec<_> = changes
        .iter()
        .map(|c| (c.what.as_str(), c.before.as_deref(), c.after.as_deref()))
        .collect();
    assert!(
        shown.contains(&("speculative-config.num_speculative_tokens", Some("1"), Some("2"))),
        "{shown:?}"
    );
}

#[test]
fn what_did_not_change_is_derived_once() {
    // Selected by the journal only: both sides are one and the same answer.
    let head = r#"
head:
  journal.yaml: |
    - config-keys: [m1-fp8-b9-vllm-mtp]
      description: [again]
      pr-link: XXX
"#;
    let evidence = sketch(&format!("{CONFIGS}{head}")).evidence().unwrap();
    let policy = policy();
    let cx = Context::new(&evidence, &policy);
    let launches = cx.launches().unwrap();
    let key = "m1-fp8-b9-vllm-mtp";
    assert!(std::sync::Arc::ptr_eq(&launches.head(key), &launches.base(key)));
    assert!(
        launches
            .differences(key)
            .unwrap()
            .iter()
            .all(|difference| *difference == Difference::Changed(Vec::new()))
    );
    assert_eq!(launches.entry(At::Head, For::Evaluation, key).groups.len(), 2);
}

#[test]
fn a_new_point_is_new_and_a_file_out_of_sight_is_named() {
    let head = r#"
head:
  configs/b.yaml: |
    m2-fp8-b9-vllm:
      image: vllm/vllm-openai:v1
      model: org/M2
      model-prefix: m2
      runner: b9
      precision: fp8
      framework: vllm
      multinode: false
      scenarios:
        fixed-seq-len:
          - { isl: 8192, osl: 1024, search-space: [{ tp: 8, conc-list: [4] }] }
  scripts/m2_fp8_b9_vllm.sh: |
    source "$(dirname "$0")/../elsewhere/lib.sh"
    vllm serve "$MODEL" --tensor-parallel-size "$TP" &
"#;
    let mut evidence = sketch(&format!("{CONFIGS}{head}")).evidence().unwrap();
    let policy = policy();
    for tree in evidence.trees.values_mut() {
        if let Observed::Present(tree) = tree {
            tree.covers = policy.policy.evidence.judged.clone();
        }
    }
    let cx = Context::new(&evidence, &policy);
    let launches = cx.launches().unwrap();
    assert_eq!(launches.differences("m2-fp8-b9-vllm").unwrap(), [Difference::New]);
    assert!(launches.base("m2-fp8-b9-vllm").entry.is_none());
    let entry = launches.head("m2-fp8-b9-vllm");
    assert!(entry.unread.is_none());
    assert_eq!(
        entry.outside.iter().map(String::as_str).collect::<Vec<_>>(),
        ["elsewhere/lib.sh"]
    );
}

#[test]
fn a_tree_that_could_not_be_read_is_a_cause() {
    let evidence = sketch(&format!("{CONFIGS}unavailable: [head]\n")).evidence().unwrap();
    let policy = policy();
    assert!(Context::new(&evidence, &policy).launches().is_err());
}

#[test]
fn hostile_numbers_of_points_are_left_out_and_counted() {
    let list: Vec<String> = (1..=500).map(|conc| conc.to_string()).collect();
    let text = CONFIGS.replace("[4, 8, 64]", &format!("[{}]", list.join(", ")));
    let head = "head:\n  scripts/lib.sh: \"export LIB=2\\n\"\n";
    let evidence = sketch(&format!("{text}{head}")).evidence().unwrap();
    let policy = policy();
    let cx = Context::new(&evidence, &policy);
    let entry = cx.launches().unwrap().head("m1-fp8-b9-vllm-mtp");
    // The library is no file of the entry by the layout, so nothing is touched and nothing derived.
    assert_eq!((entry.groups.len(), entry.left), (0, 500));
    let head = "head:\n  scripts/m1_fp8_b9_vllm_mtp.sh: |\n    vllm serve \"$MODEL\" &\n";
    let evidence = sketch(&format!("{text}{head}")).evidence().unwrap();
    let cx = Context::new(&evidence, &policy);
    let entry = cx.launches().unwrap().head("m1-fp8-b9-vllm-mtp");
    assert_eq!((entry.groups.len(), entry.left), (1, 372));
}
