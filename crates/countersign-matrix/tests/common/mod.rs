//! A small made-up repository of the shape that the expansion reads, and the rules for it.
#![allow(dead_code)]

use countersign_matrix::{Configs, Layout, MapFiles, MatrixRules};

/// The ready fragment for the benchmark repository; the made-up one has the same shape.
#[derive(Clone, serde::Deserialize)]
pub(crate) struct Policy {
    pub(crate) matrix: MatrixRules,
    pub(crate) layout: Layout,
}

pub(crate) fn policy() -> Policy {
    static POLICY: std::sync::OnceLock<Policy> = std::sync::OnceLock::new();
    POLICY.get_or_init(read_policy).clone()
}

fn read_policy() -> Policy {
    let text = include_str!("../../testdata/rules.yaml");
    countersign_yaml::from_str(text, &countersign_yaml::Limits::default()).expect("the fragment is valid")
}

pub(crate) const FIRST: &str = r#"alpha-fp8-b200-vllm:
  image: acme/engine:v1
  model: acme/Alpha-é
  model-prefix: alpha
  runner: b200
  precision: fp8
  framework: vllm
  multinode: false
  scenarios:
    fixed-seq-len:
    - isl: 8192
      osl: 1024
      search-space:
      - { tp: 4, conc-start: 4, conc-end: 48 }
      - { tp: 8, ep: 8, dp-attn: true, spec-decoding: mtp, conc-list: [64, 16] }
alpha-fp8-b200-vllm-agentic:
  image: acme/engine:v1
  model: acme/Alpha
  model-prefix: alpha
  runner: cluster:b200-x
  precision: fp8
  framework: vllm
  multinode: false
  router: { name: gate, version: "2.0" }
  scenarios:
    agentic-coding:
    - dram-utilization: 0.5
      search-space:
      - { tp: 4, kv-offloading: none, conc-list: [2, 8] }
      - { tp: 4, spec-decoding: mtp, kv-offloading: dram, kv-offload-backend: { name: pool }, conc-list: [4] }
"#;

pub(crate) const SECOND: &str = r#"beta-fp4-gb200-dynamo-vllm:
  image: acme/engine:v2
  model: acme/Beta
  model-prefix: beta
  runner: gb200
  precision: fp4
  framework: dynamo-vllm
  multinode: true
  disagg: true
  kv-p2p-transfer: link
  scenarios:
    fixed-seq-len:
    - isl: 8192
      osl: 1024
      search-space:
      - conc-list: [8, 64, 32]
        prefill: { num-worker: 1, tp: 4, ep: 4, dp-attn: true, additional-settings: ["CONFIG_FILE=recipes/beta.yaml:mid[1]"] }
        decode: { num-worker: 2, tp: 8, ep: 1, dp-attn: false, hardware: null }
      - conc-list: [8]
        prefill: { num-worker: 1, tp: 2, ep: 1, dp-attn: false }
        decode: { num-worker: 1, tp: 2, ep: 1, dp-attn: false }
beta-fp4-gb200-dynamo-vllm-agentic:
  image: acme/engine:v2
  model: acme/Beta
  model-prefix: beta
  runner: cluster:gb200-x
  precision: fp4
  framework: dynamo-vllm
  multinode: true
  scenarios:
    agentic-coding:
    - dram-utilization: 0.8
      search-space:
      - conc-list: [1, 32]
        kv-offloading: dram
        kv-offload-backend: { name: pool, version: "1.2" }
        prefill: { num-worker: 1, tp: 8, ep: 8, dp-attn: true }
        decode: { num-worker: 0, tp: 8, ep: 8, dp-attn: true }
"#;

pub(crate) const RUNNERS: &str = "labels:
  b200: [b200-x_0, b200-y_1]
  cluster:b200-x: [b200-x_0]
  gb200: [gb200-x_0]
  cluster:gb200-x: [gb200-x_0]
hardware:
  cluster:b200-x: { available-cpu-dram-mib: 3_000_000, gpus-per-node: 8 }
  cluster:gb200-x: { available-cpu-dram-mib: 860_160, gpus-per-node: 4 }
";

pub(crate) fn files(first: &str, second: &str) -> MapFiles {
    MapFiles::new()
        .with("configs/amd-master.yaml", first)
        .with("configs/nvidia-master.yaml", second)
        .with("configs/runners.yaml", RUNNERS)
}

pub(crate) fn configs(first: &str, second: &str) -> Configs {
    let policy = policy();
    Configs::read(&files(first, second), &policy.layout, &policy.matrix)
}
