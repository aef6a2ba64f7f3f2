//! From a small invented repository to launches: script, recipe, table, and what is missing.
#![allow(clippy::unwrap_used)]

use countersign_launch::point::{self, DeriveRules, Missing, PointLaunches};
use countersign_launch::{Acceptance, ChatTemplate, Engine, Fact, Role, diff_launches, render};
use countersign_matrix as matrix;
use matrix::Files as _;

const MASTER: &str = r#"m1-fp8-b200-vllm-mtp:
  image: vllm/vllm-openai:v9
  model: example-org/Example-FP8
  model-prefix: m1
  runner: b200
  precision: fp8
  framework: vllm
  multinode: false
  scenarios:
    fixed-seq-len:
      - isl: 8192
        osl: 1024
        search-space:
          - { tp: 8, ep: 8, dp-attn: true, spec-decoding: mtp, conc-list: [32] }
          - { tp: 4, spec-decoding: mtp, conc-list: [4] }
m1-fp8-b200-trt:
  image: nvcr.io#nvidia/tensorrt-llm/release:1
  model: example-org/Example-FP8
  model-prefix: m1
  runner: b200
  precision: fp8
  framework: trt
  multinode: false
  scenarios:
    fixed-seq-len:
      - isl: 8192
        osl: 1024
        search-space:
          - { tp: 8, conc-list: [32] }
m1-fp4-gb300-dynamo-vllm-agentic:
  image: vllm/vllm-openai:v9
  model: example-org/Example-FP4
  model-prefix: m1
  runner: cluster:gb300-nv
  precision: fp4
  framework: dynamo-vllm
  multinode: true
  disagg: true
  router: { name: r, version: "1" }
  kv-p2p-transfer: nixl
  scenarios:
    agentic-coding:
      - search-space:
          - spec-decoding: mtp
            conc-list: [16]
            prefill:
              num-worker: 1
              tp: 4
              ep: 4
              dp-attn: true
              additional-settings:
                - "CONFIG_FILE=recipes/m1.yaml:override_big"
                - "SYNTHETIC_ACCEPTANCE=true"
                - "SYNTHETIC_ACCEPTANCE_LENGTH=2.49"
            decode: { num-worker: 1, tp: 8, ep: 8, dp-attn: true }
          - spec-decoding: mtp
            conc-list: [32]
            prefill: { num-worker: 1, tp: 4, ep: 4, dp-attn: true, additional-settings: ["CONFIG_FILE=recipes/elsewhere.yaml"] }
            decode: { num-worker: 1, tp: 8, ep: 8, dp-attn: true }
"#;

const RUNNERS: &str = "labels:\n  b200: [b200-dgxc_0]\n  cluster:gb300-nv: [gb300-nv_0]\nhardware: {}\n";

const SCRIPT: &str = r#"#!/usr/bin/env bash
source "$(dirname "$0")/../../benchmark_lib.sh"
SPEC='{"method":"mtp","num_speculative_tokens":3}'
if [[ "$EVAL_ONLY" != "true" ]]; then
  SPEC=$(printf '{"method":"mtp","num_speculative_tokens":%d,"rejection_sample_method":"synthetic","synthetic_acceptance_length":%.2f}' 3 2.49)
fi
EXTRA=(--kv-cache-dtype fp8)
[[ "$DP_ATTENTION" == "true" ]] && EXTRA+=(--data-parallel-size "$TP") || EXTRA+=(--tensor-parallel-size="$TP")
if [[ -n "$SLURM_JOB_ID" ]]; then echo "job"; fi
export SOME_SETTING="${SOME_SETTING:-1}"
SOME_ENV=1 vllm serve "${MODEL_PATH:-$MODEL}" --port $PORT \
  --speculative-config "$SPEC" \
  `# a comment inside a continued command` \
  --max-num-seqs "$SLURM_CPUS" \
  "${EXTRA[@]}" > "$LOG" 2>&1 &
run_benchmark_serving --model "$MODEL" --port "$PORT" --backend vllm --use-chat-template
"#;

const TRT: &str = r#"source "$(dirname "$0")/../../benchmark_lib.sh"
OPTIONS=options.yml
cat > "$OPTIONS" << EOF
enable_attention_dp: $DP_ATTENTION
kv_cache_config:
    dtype: fp8
moe_config:
    backend: ${MOE:-TRTLLM}
EOF
CMD=(trtllm-serve "$MODEL" --tp_size "$TP" --ep_size "$EP_SIZE" --extra_llm_api_options="$OPTIONS")
"${CMD[@]}" &
"#;

const RECIPE: &str = r#"base:
  name: m1
  model: { path: m1, container: "vllm/vllm-openai:v9" }
  resources: { prefill_workers: 1, decode_workers: 1 }
  backend:
    type: vllm
    vllm_config:
      prefill: { tensor-parallel-size: 4 }
      decode:
        tensor-parallel-size: 4
        speculative-config: '{"method":"mtp","num_speculative_tokens":3}'
  benchmark: { type: custom }
override_big:
  backend: { vllm_config: { decode: { tensor-parallel-size: 8 } } }
"#;

fn files() -> matrix::MapFiles {
    matrix::MapFiles::new()
        .with("configs/nvidia-master.yaml", MASTER)
        .with("configs/amd-master.yaml", "{}\n")
        .with("configs/runners.yaml", RUNNERS)
        .with(
            "benchmarks/benchmark_lib.sh",
            "run_benchmark_serving() { python3 client.py \"$@\"; }\n",
        )
        .with("benchmarks/single_node/fixed_seq_len/m1_fp8_b200_vllm_mtp.sh", SCRIPT)
        .with("benchmarks/single_node/fixed_seq_len/m1_fp8_b200_trt.sh", TRT)
        .with("benchmarks/multi_node/srt-slurm-recipes/m1.yaml", RECIPE)
        .with("runners/launch_b200-dgxc.sh", "echo\n")
        .with("runners/launch_gb300-nv.sh", "echo\n")
}

#[derive(serde::Deserialize)]
struct Policy {
    matrix: matrix::MatrixRules,
    layout: matrix::Layout,
    derive: DeriveRules,
}

fn derive(files: &matrix::MapFiles, key: &str, eval: bool) -> Vec<PointLaunches> {
    let limits = countersign_yaml::Limits::default();
    let text = include_str!("../../../config/policies/inferencex-common.yaml");
    let policy: Policy = countersign_yaml::from_str(text, &limits).unwrap();
    let configs = matrix::Configs::read(files, &policy.layout, &policy.matrix);
    let entry = configs.masters.get(key).unwrap();
    let mut rows = matrix::entry_rows(&configs, &policy.matrix, entry).unwrap();
    if eval {
        rows.iter_mut().for_each(|r| r.eval_only = Some(true));
    }
    let cache = countersign_shell::ScriptCache::default();
    let tree = point::Tree {
        files,
        runners: &configs.runners,
        layout: &policy.layout,
        matrix: &policy.matrix,
        rules: &policy.derive,
        scripts: &cache,
    };
    rows.iter().map(|row| point::derive(&tree, entry, row)).collect()
}

fn acceptance(p: &PointLaunches) -> Acceptance {
    p.launches.iter().rev().find_map(|l| l.spec.clone()).unwrap().acceptance
}

#[test]
fn a_script_gives_server_client_and_acceptance_by_branch() {
    let points = derive(&files(), "m1-fp8-b200-vllm-mtp", false);
    let (dp, tp) = (&points[0].launches[0], &points[1].launches[0]);
    assert_eq!(
        points[0].launches.len(),
        1,
        "an unknown that changes nothing does not split the launch"
    );
    assert_eq!((dp.engine, dp.role), (Engine::Vllm, Role::Aggregated));
    assert_eq!(
        (dp.parallel.dp.clone(), dp.parallel.tp.clone()),
        (Fact::Known(8), Fact::Default(1))
    );
    assert_eq!(
        (tp.parallel.tp.clone(), tp.parallel.dp.clone()),
        (Fact::Known(4), Fact::Default(1))
    );
    assert_eq!(dp.model, Fact::Known("example-org/Example-FP8".into()));
    assert_eq!(dp.image.as_deref(), Some("vllm/vllm-openai:v9"));
    assert_eq!(dp.kv_cache_dtype, Fact::Known("fp8".into()));
    let spec = dp.spec.as_ref().unwrap();
    assert_eq!(spec.draft_tokens, Fact::Known(3));
    assert!(matches!(&spec.acceptance, Acceptance::Synthetic { length: Fact::Known(n), .. } if *n == 2.49));
    assert_eq!(dp.environment["SOME_ENV"].value.as_known(), Some("1"));
    assert_eq!(dp.environment["SOME_SETTING"].value.as_known(), Some("1"));
    assert!(
        !dp.environment.contains_key("MODEL"),
        "the point's own settings are not the server's statement"
    );
    let line = SCRIPT.lines().position(|l| l.contains("EXTRA=(--kv")).unwrap() as u32 + 1;
    assert_eq!(
        dp.flags.get("kv-cache-dtype").unwrap().source.line,
        line,
        "the flag stands where the array says it"
    );
    assert!(matches!(
        points[0].client.as_ref().unwrap().chat_template,
        ChatTemplate::Used(_)
    ));
    let unknowns = dp.unknowns();
    assert_eq!(unknowns.len(), 1);
    let (name, uses) = unknowns.iter().next().unwrap();
    assert!(name.contains("SLURM_CPUS") && uses == &["max-num-seqs"], "{unknowns:?}");

    let eval = derive(&files(), "m1-fp8-b200-vllm-mtp", true);
    assert_eq!(acceptance(&eval[0]), Acceptance::Real);
}

#[test]
fn an_options_file_that_the_script_writes_is_read() {
    let points = derive(&files(), "m1-fp8-b200-trt", false);
    let l = &points[0].launches[0];
    assert_eq!(l.engine, Engine::TensorrtLlm);
    assert_eq!(
        (l.parallel.tp.clone(), l.parallel.dp_attention.clone()),
        (Fact::Known(8), Fact::Known(false))
    );
    assert_eq!(
        (l.kv_cache_dtype.clone(), l.moe_backend.clone()),
        (Fact::Known("fp8".into()), Fact::Known("TRTLLM".into()))
    );
    let line = TRT.lines().position(|l| l.contains("dtype: fp8")).unwrap() as u32 + 1;
    let source = &l.flags.get("kv-cache-config.dtype").unwrap().source;
    assert_eq!((source.line, source.file.ends_with("m1_fp8_b200_trt.sh")), (line, true));
    assert!(l.opaque.is_empty());
}

#[test]
fn a_recipe_with_override_and_injection_and_one_that_is_elsewhere() {
    let points = derive(&files(), "m1-fp4-gb300-dynamo-vllm-agentic", false);
    let decode = points[0].launches.iter().find(|l| l.role == Role::Decode).unwrap();
    assert_eq!(decode.parallel.tp, Fact::Known(8));
    assert!(matches!(acceptance(&points[0]), Acceptance::Synthetic { length: Fact::Known(n), .. } if n == 2.49));
    assert_eq!(
        acceptance(&derive(&files(), "m1-fp4-gb300-dynamo-vllm-agentic", true)[0]),
        Acceptance::Real
    );
    assert!(points[1].launches.is_empty());
    assert!(matches!(&points[1].missing[..], [Missing::Recipe(p)] if p.ends_with("elsewhere.yaml")));
}

#[test]
fn a_setting_that_no_launcher_carries_out_is_noted_and_changes_nothing() {
    let other = MASTER.replace("cluster:gb300-nv", "cluster:b300-nv");
    let files = files()
        .with("configs/nvidia-master.yaml", other)
        .with("configs/runners.yaml", RUNNERS.replace("gb300-nv", "b300-nv"))
        .with("runners/launch_b300-nv.sh", "echo\n");
    let points = derive(&files, "m1-fp4-gb300-dynamo-vllm-agentic", false);
    assert_eq!(acceptance(&points[0]), Acceptance::Real);
    assert!(
        points[0].notes.iter().any(|n| n.contains("does not inject")),
        "{:?}",
        points[0].notes
    );
}

#[test]
fn a_missing_script_is_missing_not_empty() {
    let mut map = matrix::MapFiles::new();
    for path in files().list("") {
        if !path.ends_with("trt.sh") {
            map = map.with(&path, files().read(&path).unwrap());
        }
    }
    let points = derive(&map, "m1-fp8-b200-trt", false);
    assert!(matches!(&points[0].missing[..], [Missing::Script(_)]));
}

#[test]
fn what_a_change_does_is_told_flag_by_flag() {
    let base = derive(&files(), "m1-fp8-b200-vllm-mtp", false);
    let path = "benchmarks/single_node/fixed_seq_len/m1_fp8_b200_vllm_mtp.sh";
    let changed = files().with(
        path,
        SCRIPT.replace("--kv-cache-dtype fp8", "--kv-cache-dtype auto --enforce-eager"),
    );
    let head = derive(&changed, "m1-fp8-b200-vllm-mtp", false);
    let changes = diff_launches(&base[0].launches, &head[0].launches);
    let seen: Vec<_> = changes
        .iter()
        .map(|c| (c.what.as_str(), c.before.as_deref(), c.after.as_deref()))
        .collect();
    assert_eq!(
        seen,
        [
            ("kv-cache-dtype", Some("fp8"), Some("auto")),
            ("enforce-eager", None, Some("true"))
        ]
    );
    assert!(diff_launches(&base[0].launches, &base[0].launches).is_empty());
    let text = render::text(&head[0].launches[0]);
    assert!(text.contains("kv-cache-dtype = auto") && text.contains(path), "{text}");
    let json: serde_json::Value = serde_json::from_str(&render::json(&head[0].launches[0]).unwrap()).unwrap();
    assert_eq!(json["parallel"]["dp"]["known"], 8);
}

const HANDED: &str = r#"m1-fp8-mi355x-sglang-disagg:
  image: lmsysorg/sglang:v9
  model: example-org/Example-FP8
  model-prefix: m1
  runner: cluster:mi355x-amds
  precision: fp8
  framework: sglang-disagg
  multinode: true
  disagg: true
  router: { name: r, version: "1" }
  kv-p2p-transfer: mori
  scenarios:
    fixed-seq-len:
      - isl: 8192
        osl: 1024
        search-space:
          - conc-list: [16]
            prefill: { num-worker: 1, tp: 4, ep: 1, dp-attn: false, additional-settings: ["PREFILL_NODES=1"] }
            decode: { num-worker: 1, tp: 8, ep: 1, dp-attn: false, additional-settings: ["DECODE_NODES=1"] }
"#;

const WRAPPER: &str = r#"export PAGES="${PAGES:-256}"
export WHERE=$(hostname)
export DECODE_TP=3
if [[ -n "$SLURM_JOB_ID" ]]; then export SOMETIMES=1; fi
JOB=$(bash ./submit.sh "$PREFILL_TP")
"#;

const SERVER: &str = r#"if [[ -f /config/hicache_mc.env ]]; then source /config/hicache_mc.env; else exit 1; fi
export SHOWN="${PAGES:-none} $DECODE_TP_SIZE ${DECODE_TP} ${SOMETIMES:-never}"
export SEEN_AT="$WHERE"
if [ "$NODE_RANK" -eq 0 ]; then
  python3 -m sglang.launch_server --model-path m --disaggregation-mode prefill &
else
  python3 -m sglang.launch_server --model-path m --disaggregation-mode decode &
fi
"#;

const MODELS: &str = r#"Example-FP8:
  base_flags: "--kv-cache-dtype fp8_e4m3"
  prefill: { mem_fraction_static: 0.8, no_dp: { max_running_requests: 4 } }
  decode: { mem_fraction_static: 0.9, no_dp: { max_running_requests: 8 } }
"#;

#[test]
fn what_the_entrys_own_script_exports_reaches_the_servers() {
    let utils = "benchmarks/multi_node/amd_utils";
    let files = files()
        .with("configs/amd-master.yaml", HANDED)
        .with(
            "configs/runners.yaml",
            RUNNERS.replace("labels:\n", "labels:\n  cluster:mi355x-amds: [mi355x-amds_0]\n"),
        )
        .with("runners/launch_mi355x-amds.sh", "echo\n")
        .with("benchmarks/multi_node/m1_fp8_mi355x_sglang-disagg.sh", WRAPPER)
        .with(&format!("{utils}/server_sglang.sh"), SERVER)
        .with(&format!("{utils}/models.yaml"), MODELS);
    let points = derive(&files, "m1-fp8-mi355x-sglang-disagg", false);
    let point = &points[0];
    let decode = point.launches.iter().find(|l| l.role == Role::Decode).unwrap();
    // The wrapper's exports, under the policy's own variables and over the row's; what only some ways export is not there.
    assert_eq!(decode.environment["SHOWN"].value.as_known(), Some("256 8 3 never"));
    assert!(
        decode.environment["SEEN_AT"].value.as_known().is_none(),
        "a host's name is not known"
    );
    assert!(decode.open_environment.is_empty(), "{:?}", decode.open_environment);
    assert!(
        point
            .files
            .iter()
            .any(|f| f.ends_with("m1_fp8_mi355x_sglang-disagg.sh")),
        "{:?}",
        point.files
    );
}
