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

/// What each point starts, evaluated for itself; evaluating them together must give the same.
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
    let alone: Vec<PointLaunches> = rows.iter().map(|row| point::derive(&tree, entry, row)).collect();
    let together = point::derive_all(&tree, entry, &rows);
    for (at, (alone, together)) in alone.iter().zip(&together).enumerate() {
        assert_eq!(alone, together, "point {at} of {key}");
    }
    assert_eq!(alone.len(), together.len());
    alone
}

/// An entry whose points differ in their concurrency and parallelism.
const MANY: &str = r#"m1-fp8-b200-vllm-mtp:
  image: vllm/vllm-openai:v9
  model: example-org/Example-FP8
  model-prefix: m1
  runner: b200
  precision: fp8
  framework: vllm
  multinode: false
  scenarios:
    fixed-seq-len:
      - isl: 1024
        osl: 1024
        search-space:
          - { tp: 8, ep: 8, dp-attn: true, spec-decoding: mtp, conc-list: [4, 32, 128] }
          - { tp: 4, spec-decoding: mtp, conc-list: [4, 8, 16, 64, 1024] }
"#;

/// A script that starts a server, with statements in front of it and a word of its command.
fn started(before: &str, word: &str) -> String {
    format!(
        "source \"$(dirname \"$0\")/../../benchmark_lib.sh\"\n{before}\nvllm serve \"$MODEL\" --max-num-seqs {word} &\nwait_for $! --conc $CONC || exit 1\n[ -n \"$LATE\" ] && vllm serve late\n"
    )
}

#[test]
fn points_that_are_evaluated_together_start_what_each_starts_alone() {
    for (before, word) in [
        ("", "$CONC"),
        ("N=$((CONC * 2))", "\"$N\""),
        ("N=$(( CONC < 16 ? 4096 : CONC * (1 + 3) / TP ))", "$N"),
        ("(( N = CONC > 8 ? 1 : 2 ))", "$N"),
        ("N=1; while (( N < CONC )); do N=$((N * 2)); done", "$N"),
        ("N=8; [ \"$CONC\" -gt 64 ] && N=64", "$N"),
        ("N=8; if [[ $CONC -ge 16 && $TP -lt 8 ]]; then N=16; fi", "$N"),
        ("case \"$CONC\" in 4) N=a;; 8|16) N=b;; 1*) N=c;; *) N=d;; esac", "$N"),
        ("N=8; [[ $CONC == 1* || $DP_ATTENTION = true ]] && N=9", "$N"),
        (
            "declare -A MAP=([4:8]=1 [4:4]=2 [64:4]=3); N=${MAP[$CONC:$TP]:-7}",
            "$N",
        ),
        ("LIST=(a b c d e f g h i j); N=${LIST[CONC]:-z}", "$N"),
        (
            "N=0; if [[ \"$CONC\" =~ ^[0-9][0-9]$ ]]; then N=${BASH_REMATCH[0]}; fi",
            "$N",
        ),
        ("N=0; if [[ \"$CONC\" =~ ^(.)4$ ]]; then N=${BASH_REMATCH[1]}; fi", "$N"),
        ("printf -v N '%04d' \"$CONC\"", "$N"),
        ("N=$(seq -s, 1 2 $CONC)", "$N"),
        ("N=$(echo $CONC | tr 4 5)", "$N"),
        ("N=$(echo x$CONC | sed 's/4/five/')", "$N"),
        ("N=; for i in $(seq 1 $((CONC / 4))); do N=${N}x; done", "\"$N\""),
        ("N=${#CONC}", "$N"),
        ("N=${CONC%4}", "\"x$N\""),
        ("X=a_4_b; N=${X%_${CONC}_b}", "$N"),
        ("X=abcdefgh; N=${X:0:$((CONC / 4))}", "$N"),
        ("N=$(compute --conc $CONC)", "$N"),
        ("N=$(cat /proc/x) || N=$CONC", "$N"),
        ("N=1; if probe --conc $CONC; then N=2; fi", "$N"),
        ("N=1; if grep -q 4 <<<\"$CONC\"; then N=2; fi", "$N"),
        ("N=1; [ -f /tmp/there_$CONC ] && N=2", "$N"),
        ("echo 5 > /tmp/set_$CONC; N=$(cat /tmp/set_4)", "$N"),
        ("echo \"$CONC\" > /tmp/set; read -r N < /tmp/set", "$N"),
        ("IFS=6 read -r N M <<<\"$CONC\"", "\"$N\""),
        ("export \"N_$CONC=1\"; N=${N_4:-none}", "$N"),
        ("V=CONC; N=${!V}", "$N"),
        ("N=1; [ $EXP_NAME = \"$EXP_NAME\" ] && N=$EXP_NAME", "$N"),
        ("f() { local n=$1; shift; N=\"$n:$*\"; }; f $CONC $TP", "\"$N\""),
        ("set -- a b c d e f g h; N=${@:1:$((CONC / 8 + 1))}", "\"$N\""),
        (
            "C=\"vllm serve inner --max-num-seqs $CONC --x $((CONC+1))\"; eval \"$C\"",
            "1",
        ),
        (
            "eval \"N={1,$CONC}\"; eval \"for i in a{1..$CONC}; do N=\\$i; done\"",
            "$N",
        ),
        ("eval \"cmd $CONC>/tmp/f\"", "1"),
        ("bash -c \"vllm serve inner --max-num-seqs $CONC\"", "1"),
        ("trap \"vllm serve trapped --max-num-seqs $CONC\" EXIT", "1"),
        ("source \"lib_$CONC.sh\"", "$FROM_LIB"),
        ("exit $((CONC == 8))", "1"),
        ("[ $CONC = 8 ] && exit 1", "1"),
        ("false || { [ $CONC -lt 1000 ] || return 1; }", "1"),
        ("N=$((100 / (CONC - 16)))", "$N"),
        ("let N=CONC-8 && M=1 || M=2", "$N$M"),
        (
            "cat > o.yml <<EOF\nmax_num_seqs: $CONC\ntp: $TP\nEOF",
            "1 --config o.yml",
        ),
        (
            "printf 'max_num_seqs: %s\\n' \"$CONC\" > o_$CONC.yml",
            "1 --config o_$CONC.yml",
        ),
        (
            "docker run -e CONC=$CONC img vllm serve inner --max-num-seqs $CONC",
            "1",
        ),
        ("N=$'a\\001b'; echo \"$N$CONC\"", "\"$N\""),
        ("if [ \"$UNKNOWN_NAME\" = \"$CONC\" ]; then N=1; else N=2; fi", "\"$N\""),
        ("if [ \"$SLURM_X\" = \"$CONC\" ]; then N=1; else N=2; fi", "\"$N\""),
        ("N=$CONC; if probe; then N=64; fi; [ $N = 64 ] && M=1", "$N$M"),
        // Ways that part and meet again.
        (
            "if [ \"$CONC\" -le 8 ]; then\nN=7\nM=3.8\nelif [ \"$CONC\" -le 16 ]; then\nN=3\nM=3.0\nelse\nN=0\nM=1\nfi",
            "$N,$M",
        ),
        (
            "if [ \"$CONC\" -le 8 ]; then\nN=7\nM=3\nelse\nN=0\nfi",
            "\"$N${M:-none}\"",
        ),
        ("case $CONC in\n4)\nN=a\n;;\n8|16)\nN=b\n;;\n*)\nN=c\n;;\nesac", "$N"),
        (
            "N=; for ((i = 1; i <= CONC; i++)); do\nif [ -n \"$N\" ]; then\nN+=,\nfi\nN+=\"$((i * 2))\"\ndone",
            "\"{\\\"sizes\\\":[$N]}\"",
        ),
        ("A=(); for ((i = 0; i < CONC; i++)); do A+=(x); done; N=${#A[@]}", "$N"),
        ("A=(a b); if [ $CONC -gt 8 ]; then A=(c d); fi", "\"${A[@]}\""),
        ("A=(a b); if [ $CONC -gt 8 ]; then A+=(c); fi", "\"${A[@]}\""),
        ("N=$(seq -s, 1 \"$CONC\")", "$N"),
        (
            "printf '%q ' run \"$(seq -s, 1 $CONC)\" | tee /tmp/o; N=$(cat /tmp/o)",
            "\"$N\"",
        ),
        ("printf -v N '%q' \"1,$CONC\"", "\"$N\""),
        ("N=$(echo 2x8x$CONC | tr 'x' '\\n' | sort -n | tail -1)", "$N"),
        ("N=$(echo 2x8x$CONC | tr 'x' '\\n' | grep -c 8)", "$N"),
        ("N=0; seq 1 $CONC | while read -r i; do N=$i; M=$i; done", "$N${M:-}"),
        ("mapfile -t L < <(seq 1 $CONC); N=${#L[@]}", "$N"),
        ("for i in $(seq 1 $CONC); do N=$i; done", "$N"),
        ("seq 1 $CONC | bash; N=1", "$N"),
        (
            "seq 1 $CONC > /tmp/s; read -r N < /tmp/s; M=$(tail -n 1 /tmp/s)",
            "$N$M",
        ),
        ("[ $CONC -gt 8 ] && M=1; N=${M:-none}", "$N"),
        ("[ $CONC -gt 8 ] && unset PORT; N=${PORT:-none}", "$N"),
        (
            "if probe; then if [ $CONC -gt 8 ]; then N=1; fi; else N=2; fi",
            "\"$N\"",
        ),
        (
            "if [ $CONC -gt 8 ]; then if probe; then N=1; fi; else N=2; fi",
            "\"$N\"",
        ),
        ("N=1; if [ $CONC -gt 8 ]; then probe --big $CONC || N=2; fi", "$N"),
        (
            "if [ $CONC -gt 8 ]; then echo a > /tmp/f; fi; N=$(cat /tmp/f)",
            "\"$N\"",
        ),
        (
            "if [ $CONC -gt 8 ]; then echo a > /tmp/f; else\necho b > /tmp/f; fi; N=$(cat /tmp/f)",
            "$N",
        ),
        ("if [ $CONC -gt 8 ]; then set -- a b; fi; N=$#", "$N"),
        (
            "f() { local l=1; if [ $CONC -gt 8 ]; then local m=2; l=3; fi; N=$l${m:-}; }; f; M=${l:-}${m:-}",
            "$N$M",
        ),
        ("f() { if [ $CONC -gt 8 ]; then return 1; fi; N=1; }; f || N=2", "$N"),
        (
            "for i in 1 2 3 4; do if [ $((i * 8)) -gt $CONC ]; then break; fi; N=$i; done",
            "\"$N\"",
        ),
        (
            "i=0; while [ $i -lt $CONC ]; do i=$((i + 3)); probe $i; done; N=$i",
            "$N",
        ),
        ("if [ $CONC -gt 8 ]; then cd /tmp; fi; N=$PWD", "$N"),
        ("if [ $CONC -gt 8 ]; then export PORT=1; fi", "$PORT"),
        ("if [ $CONC -gt 8 ]; then MODEL=other; fi; N=\"$MODEL\"", "$N"),
        ("if [ $CONC -gt 8 ]; then f() { N=1; }; else f() { N=2; }; fi; f", "$N"),
        ("if [ $CONC -gt 8 ]; then trap 'vllm serve trapped' EXIT; fi", "1"),
        ("if [ $CONC -gt 8 ]; then vllm serve other --x $CONC; fi", "1"),
        ("if [ $CONC -gt 8 ]; then N=\"a b\"; else N=c; fi", "$N"),
        ("if [ $CONC -gt 8 ]; then N=; else N=c; fi", "\"$N\""),
        ("if [ $CONC -gt 8 ]; then N=$(host); else N=c; fi", "\"$N\""),
        (
            "N=1; export N_A=$CONC N_B=2; M=$(env | grep '^N_' | sort | head -1)",
            "\"$M\"",
        ),
        ("M=$(env | grep '^PORT')", "\"$M\""),
    ] {
        let files = files()
            .with("configs/nvidia-master.yaml", MANY)
            .with("lib_4.sh", "FROM_LIB=4\n")
            .with(
                "benchmarks/single_node/fixed_seq_len/m1_fp8_b200_vllm_mtp.sh",
                started(before, word),
            );
        for eval in [false, true] {
            let points = derive(&files, "m1-fp8-b200-vllm-mtp", eval);
            assert_eq!(points.len(), 8, "{before}");
        }
    }
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
