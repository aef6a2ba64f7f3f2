//! Flag tables of the engines: canonical names, aliases, switches without a value, and flags with many values.
//!
//! A flag that is in no table is still read: its name is put into dash form and its arity is guessed from what follows.

use super::Engine;

/// Spellings of one flag; the first is canonical.
pub type Alias = &'static [&'static str];

/// What is known of an engine's command line.
#[derive(Debug)]
pub struct Table {
    /// Spellings in dash form without leading dashes; the first of each list is canonical.
    pub aliases: &'static [Alias],
    /// Canonical names of flags that take no value.
    pub switches: &'static [&'static str],
    /// Canonical names of flags that take one or more values.
    pub many: &'static [&'static str],
    /// Canonical names of flags that name a YAML or JSON file of further options.
    pub option_files: &'static [&'static str],
    /// Environment variables that act as a flag: variable, canonical flag name.
    pub environment: &'static [(&'static str, &'static str)],
}

/// The table of an engine.
pub fn table(engine: Engine) -> &'static Table {
    match engine {
        Engine::Vllm => &VLLM,
        Engine::Sglang => &SGLANG,
        Engine::TensorrtLlm => &TRTLLM,
        Engine::Atom => &ATOM,
        Engine::Router => &ROUTER,
    }
}

/// The canonical name of a flag as spelled on a command line or in a file: leading dashes dropped, underscores of the
/// first part turned to dashes, aliases resolved, the part after the first dot kept as it is.
///
/// `--attention_config.use_x` becomes `attention-config.use_x`; `-tp` and `--tensor_parallel_size` the same name.
pub fn normalise(engine: Engine, spelled: &str) -> String {
    let bare = spelled.trim_start_matches('-');
    let (head, tail) = match bare.split_once('.') {
        Some((head, tail)) => (head, Some(tail)),
        None => (bare, None),
    };
    let head = if head.chars().count() == 1 {
        head.to_owned()
    } else {
        head.replace('_', "-").to_lowercase()
    };
    let canonical = table(engine)
        .aliases
        .iter()
        .find(|names| names.contains(&head.as_str()))
        .and_then(|names| names.first().copied())
        .map_or(head, str::to_owned);
    match tail {
        Some(tail) => format!("{canonical}.{tail}"),
        None => canonical,
    }
}

/// The canonical flag that an environment variable acts as, if any.
pub fn flag_environment(engine: Engine, variable: &str) -> Option<&'static str> {
    table(engine)
        .environment
        .iter()
        .find(|(name, _)| *name == variable)
        .map(|(_, flag)| *flag)
}

/// vLLM `vllm serve` and its module forms.
static VLLM: Table = Table {
    aliases: &[
        &["tensor-parallel-size", "tp"],
        &["pipeline-parallel-size", "pp"],
        &["data-parallel-size", "dp"],
        &["decode-context-parallel-size", "dcp"],
        &["prefill-context-parallel-size", "pcp"],
        &["data-parallel-size-local", "dpl"],
        &["data-parallel-rank", "dpn"],
        &["data-parallel-start-rank", "dpr"],
        &["data-parallel-address", "dpa"],
        &["data-parallel-rpc-port", "dpp"],
        &["data-parallel-backend", "dpb"],
        &["data-parallel-hybrid-lb", "dph"],
        &["data-parallel-external-lb", "dpe"],
        &["enable-expert-parallel", "ep"],
        &["quantization", "q"],
        &["compilation-config", "cc"],
        &["attention-config", "ac"],
        &["speculative-config", "sc", "spec-config"],
        &["optimization-level", "O"],
        &["api-server-count", "asc"],
        &["nnodes", "n"],
        &["node-rank", "r"],
    ],
    switches: &[
        "enable-expert-parallel",
        "trust-remote-code",
        "enable-auto-tool-choice",
        "enable-chunked-prefill",
        "enable-prefix-caching",
        "enforce-eager",
        "async-scheduling",
        "language-model-only",
        "disable-log-requests",
        "disable-log-stats",
        "disable-uvicorn-access-log",
        "disable-custom-all-reduce",
        "enable-log-requests",
        "enable-server-load-tracking",
        "enable-prompt-tokens-details",
        "enable-force-include-usage",
        "enable-sleep-mode",
        "enable-dbo",
        "enable-eplb",
        "enable-lora",
        "enable-mfu-metrics",
        "enable-cumem-allocator",
        "enable-ep-weight-filter",
        "enable-flashinfer-autotune",
        "data-parallel-hybrid-lb",
        "data-parallel-external-lb",
        "disable-hybrid-kv-cache-manager",
        "disable-nccl-for-dp-synchronization",
        "headless",
        "numa-bind",
        "omni",
        "skip-mm-profiling",
        "interleave-mm-strings",
        "allow-auto-truncate",
        "disable-chunked-mm-input",
        "return-tokens-as-token-ids",
        "use-tqdm-on-load",
        "calculate-kv-scales",
        "kv-cache-metrics",
        "enable-cache-report",
        "grpc",
    ],
    many: &[
        "served-model-name",
        "lora-modules",
        "cudagraph-capture-sizes",
        "cuda-graph-sizes",
        "numa-bind-nodes",
        "middleware",
    ],
    option_files: &["config"],
    environment: &[
        ("VLLM_ATTENTION_BACKEND", "attention-backend"),
        ("VLLM_ALL2ALL_BACKEND", "all2all-backend"),
        ("VLLM_DP_SIZE", "data-parallel-size"),
    ],
};

/// SGLang `sglang serve` and `sglang.launch_server`.
static SGLANG: Table = Table {
    aliases: &[
        &["model-path", "model"],
        &["tensor-parallel-size", "tp", "tp-size"],
        &["data-parallel-size", "dp", "dp-size"],
        &["expert-parallel-size", "ep", "ep-size"],
        &["pipeline-parallel-size", "pp", "pp-size"],
        &["decode-context-parallel-size", "dcp", "dcp-size"],
        &[
            "attn-cp-size",
            "attention-context-parallel-size",
            "context-parallel-size",
            "cp",
        ],
        &["moe-data-parallel-size", "moe-dp-size"],
        &["speculative-algorithm", "speculative-algo"],
        &[
            "speculative-draft-model-path",
            "speculative-draft-model",
            "speculative-draft",
        ],
        &["context-length", "max-model-len"],
        &["dist-init-addr", "nccl-init-addr"],
        &["nsa-prefill-backend", "dsa-prefill-backend"],
        &["nsa-decode-backend", "dsa-decode-backend"],
        &["mamba-radix-cache-strategy", "mamba-scheduler-strategy"],
        &["cuda-graph-max-bs", "cuda-graph-max-bs-decode"],
        &["quantization", "q"],
    ],
    switches: &[
        "trust-remote-code",
        "enable-dp-attention",
        "enable-dp-lm-head",
        "enable-ep-moe",
        "enable-deepep-moe",
        "enable-symm-mem",
        "enable-metrics",
        "enable-cache-report",
        "enable-flashinfer-allreduce-fusion",
        "enable-aiter-allreduce-fusion",
        "enable-mixed-chunk",
        "enable-two-batch-overlap",
        "enable-single-batch-overlap",
        "enable-torch-compile",
        "enable-hierarchical-cache",
        "enable-eplb",
        "enable-multimodal",
        "enable-lora",
        "enable-prefill-delayer",
        "enable-dp-attention-local-control-broadcast",
        "enable-nccl-nvls",
        "enable-piecewise-cuda-graph",
        "enable-hisparse",
        "enable-memory-saver",
        "enable-request-logging",
        "enable-deterministic-inference",
        "enable-return-routed-experts",
        "enable-prefill-cp",
        "enable-nsa-prefill-context-parallel",
        "enable-dsa-cache-layer-split",
        "disable-radix-cache",
        "disable-cuda-graph",
        "disable-cuda-graph-padding",
        "disable-overlap-schedule",
        "disable-shared-experts-fusion",
        "disable-custom-all-reduce",
        "disable-flashinfer-autotune",
        "disable-piecewise-cuda-graph",
        "disable-chunked-prefix-cache",
        "disable-hybrid-swa-memory",
        "prefill-round-robin-balance",
        "skip-server-warmup",
        "skip-tokenizer-init",
        "allow-auto-truncate",
        "log-requests",
        "incremental-streaming-output",
        "language-only",
        "encoder-only",
        "keep-mm-feature-on-device",
        "weight-loader-prefetch-checkpoints",
        "weight-loader-drop-cache-after-load",
        "weight-loader-disable-mmap",
        "flashinfer-mla-disable-ragged",
        "enable-mamba-extra-buffer",
        "speculative-disable-ragged",
    ],
    many: &[
        "cuda-graph-bs",
        "lora-paths",
        "piecewise-cuda-graph-tokens",
        "mamba-track-intervals",
        "bucket-time-to-first-token",
    ],
    option_files: &["config"],
    environment: &[],
};

/// TensorRT-LLM `trtllm-serve`, whose options file uses underscore names.
static TRTLLM: Table = Table {
    aliases: &[
        &["tensor-parallel-size", "tp-size", "tp"],
        &["pipeline-parallel-size", "pp-size", "pp"],
        &["moe-expert-parallel-size", "ep-size", "ep"],
        &["context-parallel-size", "cp-size"],
        &["moe-cluster-parallel-size", "cluster-size"],
        &["extra-llm-api-options", "config", "options"],
        &["attn-backend", "attention-backend"],
        &[
            "kv-cache-config.free_gpu_memory_fraction",
            "kv-cache-free-gpu-memory-fraction",
        ],
        &["tokenizer", "tokenizer-path"],
    ],
    switches: &[
        "trust-remote-code",
        "enable-chunked-prefill",
        "fail-fast-on-attention-window-too-large",
        "enable-attention-dp",
    ],
    many: &[],
    option_files: &["extra-llm-api-options"],
    environment: &[],
};

/// ATOM `atom.entrypoints.openai_server`.
static ATOM: Table = Table {
    aliases: &[
        &["tensor-parallel-size", "tp", "tp-size"],
        &["data-parallel-size", "dp", "dp-size"],
        &["enable-expert-parallel", "ep"],
        &["model", "model-path"],
        &["draft-model", "speculative-model"],
        &["online-quant-config", "online-quantization-config"],
        &["hf-overrides", "hf-override"],
    ],
    switches: &[
        "trust-remote-code",
        "enforce-eager",
        "enable-expert-parallel",
        "enable-dp-attention",
        "enable-prefix-caching",
        "enable-chunked-prefill",
        "enable-tbo",
        "disable-log-stats",
        "torch-profiler",
    ],
    many: &[],
    option_files: &["config"],
    environment: &[],
};

/// Routers: no aliases are needed, their flags are only shown.
static ROUTER: Table = Table {
    aliases: &[],
    switches: &[
        "pd-disaggregation",
        "dp-aware",
        "disable-retries",
        "disable-health-check",
        "disable-circuit-breaker",
        "vllm-pd-disaggregation",
    ],
    many: &["worker-urls", "prefill", "decode"],
    option_files: &[],
    environment: &[],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_tensor_parallelism_is_one_name() {
        let cases: &[(Engine, &[&str])] = &[
            (
                Engine::Vllm,
                &[
                    "-tp",
                    "--tensor-parallel-size",
                    "--tensor_parallel_size",
                    "tensor-parallel-size",
                ],
            ),
            (
                Engine::Sglang,
                &["--tp", "--tp-size", "--tp_size", "--tensor-parallel-size", "tp-size"],
            ),
            (Engine::TensorrtLlm, &["--tp_size", "tensor_parallel_size", "--tp-size"]),
            (Engine::Atom, &["-tp", "--tensor-parallel-size"]),
        ];
        for (engine, spellings) in cases {
            for spelled in *spellings {
                assert_eq!(
                    normalise(*engine, spelled),
                    "tensor-parallel-size",
                    "{engine} {spelled}"
                );
            }
        }
    }

    #[test]
    fn only_the_first_part_of_a_dotted_name_changes() {
        assert_eq!(
            normalise(Engine::Vllm, "--attention_config.use_fp4_x"),
            "attention-config.use_fp4_x"
        );
        assert_eq!(
            normalise(Engine::Vllm, "-cc.pass_config.fuse_x"),
            "compilation-config.pass_config.fuse_x"
        );
        assert_eq!(normalise(Engine::Vllm, "-O"), "optimization-level");
        assert_eq!(
            normalise(Engine::TensorrtLlm, "moe_config.backend"),
            "moe-config.backend"
        );
    }

    #[test]
    fn no_spelling_means_two_flags() {
        for engine in [
            Engine::Vllm,
            Engine::Sglang,
            Engine::TensorrtLlm,
            Engine::Atom,
            Engine::Router,
        ] {
            let mut seen = std::collections::BTreeMap::new();
            for names in table(engine).aliases {
                for name in *names {
                    assert!(seen.insert(*name, names).is_none(), "{engine}: {name} twice");
                }
            }
            for name in table(engine)
                .switches
                .iter()
                .chain(table(engine).many)
                .chain(table(engine).option_files)
            {
                assert_eq!(normalise(engine, name), *name, "{engine}: tables use canonical names");
            }
        }
    }
}
