//! Reads named properties out of flags and environment, engine by engine.

use crate::engine::{Engine, Role};
use crate::flags::FlagValue;
use crate::launch::{Acceptance, Launch, Parallel, Spec};
use crate::value::{Fact, Text};

/// Reads the first of `names` that was said. Unsaid is `default`, unless unknown words may have said it.
pub(crate) fn text_of(launch: &Launch, names: &[&str], default: Option<&str>) -> Fact<String> {
    for name in names {
        if let Some(value) = launch.flags.get(name) {
            return known_text(&value.value);
        }
    }
    unsaid(launch, default.map(str::to_owned))
}

fn known_text(text: &Text) -> Fact<String> {
    match text.as_known() {
        Some(known) => Fact::Known(known.to_owned()),
        None => Fact::Symbolic(text.unknowns()),
    }
}

fn unsaid<T>(launch: &Launch, default: Option<T>) -> Fact<T> {
    let mut names: Vec<String> = launch.opaque.iter().flat_map(|w| w.text.unknowns()).collect();
    names.sort();
    names.dedup();
    match (names.is_empty(), default) {
        (false, _) => Fact::Symbolic(names),
        (true, Some(value)) => Fact::Default(value),
        (true, None) => Fact::Absent,
    }
}

fn number(launch: &Launch, names: &[&str], default: Option<u32>) -> Fact<u32> {
    match text_of(launch, names, None) {
        Fact::Known(text) => match text.trim().parse() {
            Ok(n) => Fact::Known(n),
            Err(_) => Fact::Symbolic(vec![format!("`{text}` is not a number")]),
        },
        Fact::Symbolic(names) => Fact::Symbolic(names),
        Fact::Default(_) | Fact::Absent => unsaid(launch, default),
    }
}

fn switch(launch: &Launch, name: &str) -> Fact<bool> {
    match launch.flags.get(name).map(|v| &v.value) {
        None => unsaid(launch, Some(false)),
        Some(text) => match text.as_known() {
            Some(known) => Fact::Known(!matches!(known, "false" | "0" | "no" | "None" | "null")),
            None => Fact::Symbolic(text.unknowns()),
        },
    }
}

/// Product of sizes, as far as known.
fn product(sizes: &[&Fact<u32>]) -> Fact<u32> {
    let mut total = 1u32;
    let mut unknown = Vec::new();
    for size in sizes {
        match size {
            Fact::Known(n) | Fact::Default(n) => total = total.saturating_mul(*n),
            Fact::Symbolic(names) => unknown.extend(names.iter().cloned()),
            Fact::Absent => {}
        }
    }
    unknown.sort();
    unknown.dedup();
    if unknown.is_empty() {
        Fact::Known(total)
    } else {
        Fact::Symbolic(unknown)
    }
}

pub(crate) fn role(launch: &Launch) -> Role {
    if launch.role != Role::Aggregated {
        return launch.role;
    }
    let said = launch
        .flags
        .known("disaggregation-mode")
        .or_else(|| launch.flags.known("kv-transfer-config.kv_role"))
        .unwrap_or("");
    match said {
        "prefill" | "kv_producer" => Role::Prefill,
        "decode" | "kv_consumer" => Role::Decode,
        _ if launch.flags.is_on("is-prefill-worker") => Role::Prefill,
        _ if launch.flags.is_on("is-decode-worker") => Role::Decode,
        _ => Role::Aggregated,
    }
}

pub(crate) fn parallel(launch: &Launch) -> Parallel {
    let tp = number(launch, &["tensor-parallel-size"], Some(1));
    let pp = number(launch, &["pipeline-parallel-size"], Some(1));
    let dp = number(launch, &["data-parallel-size"], Some(1));
    let dcp = number(launch, &["decode-context-parallel-size"], Some(1));
    let (ep, dp_attention) = match launch.engine {
        // vLLM: a switch; experts then spread over all tensor and data ranks. Data parallelism is DP attention.
        Engine::Vllm => (switched_ep(launch, &tp, &dp), dp.clone().map(|n| n > 1)),
        Engine::Atom => (switched_ep(launch, &tp, &dp), switch(launch, "enable-dp-attention")),
        Engine::TensorrtLlm => (
            number(launch, &["moe-expert-parallel-size"], Some(1)),
            switch(launch, "enable-attention-dp"),
        ),
        _ => (sglang_ep(launch, &tp), switch(launch, "enable-dp-attention")),
    };
    Parallel {
        tp,
        pp,
        dp,
        ep,
        dcp,
        dp_attention,
    }
}

fn switched_ep(launch: &Launch, tp: &Fact<u32>, dp: &Fact<u32>) -> Fact<u32> {
    match switch(launch, "enable-expert-parallel") {
        Fact::Known(true) => product(&[tp, dp]),
        Fact::Known(false) => Fact::Known(1),
        Fact::Symbolic(names) => Fact::Symbolic(names),
        _ => Fact::Default(1),
    }
}

/// SGLang: some all-to-all backends force the expert size to the tensor size.
fn sglang_ep(launch: &Launch, tp: &Fact<u32>) -> Fact<u32> {
    let forced = matches!(
        launch.flags.known("moe-a2a-backend"),
        Some("deepep" | "mooncake" | "megamoe" | "mori" | "flashinfer")
    ) || launch.flags.is_on("enable-deepep-moe")
        || launch.flags.is_on("enable-ep-moe");
    if forced && !launch.flags.mentions("expert-parallel-size") {
        return tp.clone();
    }
    number(launch, &["expert-parallel-size"], Some(1))
}

pub(crate) fn quantisation(launch: &Launch) -> Fact<String> {
    let names: &[&str] = match launch.engine {
        Engine::TensorrtLlm => &["quant-config.quant_algo", "quantization"],
        _ => &["quantization"],
    };
    text_of(launch, names, Some("checkpoint"))
}

pub(crate) fn attention_backend(launch: &Launch) -> Fact<String> {
    let names: &[&str] = match launch.engine {
        Engine::TensorrtLlm => &["attn-backend"],
        Engine::Sglang => &[
            "attention-backend",
            "decode-attention-backend",
            "prefill-attention-backend",
        ],
        _ => &["attention-backend", "attention-config.backend"],
    };
    text_of(launch, names, Some("auto"))
}

pub(crate) fn moe_backend(launch: &Launch) -> Fact<String> {
    let names: &[&str] = match launch.engine {
        Engine::TensorrtLlm => &["moe-config.backend"],
        Engine::Sglang => &["moe-runner-backend"],
        _ => &["moe-backend", "kernel-config.moe_backend"],
    };
    text_of(launch, names, Some("auto"))
}

/// Environment knobs of simulated acceptance: engine, variable, what to add to get the mean length (domain guide 10.2).
const ACCEPTANCE_ENV: &[(Engine, &str, f64)] = &[
    (Engine::Sglang, "SGLANG_SIMULATE_ACC_LEN", 0.0),
    (Engine::TensorrtLlm, "TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS", 1.0),
];

pub(crate) fn spec(launch: &Launch) -> Option<Spec> {
    let method = spec_method(launch)?;
    let f = &launch.flags;
    let (draft_names, k): (&[&str], Fact<u32>) = match launch.engine {
        Engine::Vllm => (
            &["speculative-config.model"],
            spec_number(launch, &["speculative-config.num_speculative_tokens"]),
        ),
        Engine::TensorrtLlm => (
            &[
                "speculative-config.speculative_model",
                "speculative-config.speculative_model_dir",
            ],
            spec_number(
                launch,
                &[
                    "speculative-config.max_draft_len",
                    "speculative-config.num_nextn_predict_layers",
                ],
            ),
        ),
        // ATOM drafts one token unless told otherwise.
        Engine::Atom => (&["draft-model"], number(launch, &["num-speculative-tokens"], Some(1))),
        _ => (
            &["speculative-draft-model-path"],
            spec_number(launch, &["speculative-num-steps", "speculative-dspark-block-size"]),
        ),
    };
    let draft_model = text_of(launch, draft_names, None);
    let acceptance = acceptance(launch, &k);
    let draft_sampling = text_of(launch, &["speculative-config.draft_sample_method"], None);
    Some(Spec {
        method,
        draft_model,
        draft_tokens: k,
        eagle_topk: text_number(f.get("speculative-eagle-topk")),
        verify_tokens: text_number(f.get("speculative-num-draft-tokens")),
        draft_sampling,
        acceptance,
    })
}

/// Unsaid length: engines then choose by model, which text alone cannot tell.
fn spec_number(launch: &Launch, names: &[&str]) -> Fact<u32> {
    match number(launch, names, None) {
        Fact::Absent => Fact::Symbolic(vec![format!("engine's own default of {}", names[0])]),
        fact => fact,
    }
}

fn text_number(value: Option<&FlagValue>) -> Fact<u32> {
    match value.map(|v| &v.value) {
        None => Fact::Absent,
        Some(text) => match text.as_known().and_then(|t| t.trim().parse().ok()) {
            Some(n) => Fact::Known(n),
            None => Fact::Symbolic(text.unknowns()),
        },
    }
}

fn spec_method(launch: &Launch) -> Option<Fact<String>> {
    let f = &launch.flags;
    let lower = |fact: Fact<String>| fact.map(|m| m.to_lowercase());
    match launch.engine {
        Engine::Vllm | Engine::TensorrtLlm => {
            let key = if launch.engine == Engine::Vllm {
                "speculative-config.method"
            } else {
                "speculative-config.decoding_type"
            };
            if let Some(value) = f.get(key) {
                return Some(lower(known_text(&value.value)));
            }
            if f.under("speculative-config").next().is_some() {
                // vLLM infers the method from the draft model.
                return Some(Fact::Symbolic(vec!["method inferred by the engine".into()]));
            }
            match f.get("speculative-config").map(|v| &v.value) {
                None => None,
                Some(text) => match text.as_known().map(str::trim) {
                    Some("" | "null" | "None" | "{}") => None,
                    Some(_) => Some(Fact::Symbolic(vec!["speculative-config is not readable".into()])),
                    None => Some(Fact::Symbolic(text.unknowns())),
                },
            }
        }
        Engine::Atom => {
            if let Some(value) = f.get("method") {
                return Some(lower(known_text(&value.value)));
            }
            f.mentions("num-speculative-tokens")
                .then(|| Fact::Symbolic(vec!["method inferred by the engine".into()]))
        }
        Engine::Sglang => {
            if let Some(value) = f.get("speculative-algorithm") {
                let fact = lower(known_text(&value.value));
                return (fact.value().map(String::as_str) != Some("null")
                    && fact.value().map(String::as_str) != Some("none"))
                .then_some(fact);
            }
            f.mentions("speculative-num-steps")
                .then(|| Fact::Symbolic(vec!["speculative-algorithm is not said".into()]))
        }
        Engine::Router => None,
    }
}

/// Without the noise of binary fractions.
fn rounded(n: f64) -> f64 {
    (n * 1e6).round() / 1e6
}

fn decimal(text: &Text) -> Fact<f64> {
    match text.as_known() {
        Some(known) => match known.trim().trim_matches(['"', '\'']).parse::<f64>() {
            Ok(n) if n.is_finite() => Fact::Known(n),
            _ => Fact::Symbolic(vec![format!("`{known}` is not a number")]),
        },
        None => Fact::Symbolic(text.unknowns()),
    }
}

fn acceptance(launch: &Launch, k: &Fact<u32>) -> Acceptance {
    let f = &launch.flags;
    for (engine, variable, add) in ACCEPTANCE_ENV {
        if *engine == launch.engine
            && let Some(value) = launch.environment.get(*variable)
            && !value.value.is_empty()
        {
            return Acceptance::Synthetic {
                length: decimal(&value.value).map(|n| rounded(n + add)),
                knob: (*variable).to_owned(),
                source: value.source.clone(),
            };
        }
    }
    match launch.engine {
        Engine::Vllm => {
            let method = f.get("speculative-config.rejection_sample_method");
            let length = f.get("speculative-config.synthetic_acceptance_length");
            let synthetic = method.is_some_and(|m| m.value.as_known() == Some("synthetic"));
            match (synthetic, length) {
                (true, Some(value)) => Acceptance::Synthetic {
                    length: decimal(&value.value),
                    knob: "synthetic_acceptance_length".into(),
                    source: value.source.clone(),
                },
                (true, None) => Acceptance::Incomplete {
                    knob: "rejection_sample_method".into(),
                    missing: "synthetic_acceptance_length".into(),
                    source: method.map_or_else(|| launch.source.clone(), |m| m.source.clone()),
                },
                (false, Some(value)) => Acceptance::Incomplete {
                    knob: "synthetic_acceptance_length".into(),
                    missing: "rejection_sample_method synthetic".into(),
                    source: value.source.clone(),
                },
                (false, None) => unsimulated(launch),
            }
        }
        Engine::Atom => {
            if let Some(value) = f.get("spec-decode-acceptance-length") {
                return Acceptance::Synthetic {
                    length: decimal(&value.value),
                    knob: "--spec-decode-acceptance-length".into(),
                    source: value.source.clone(),
                };
            }
            if let Some(value) = f.get("spec-decode-acceptance-rate") {
                let length = match (decimal(&value.value), k.clone()) {
                    (Fact::Known(rate), Fact::Known(k) | Fact::Default(k)) => {
                        Fact::Known(rounded(1.0 + rate * f64::from(k)))
                    }
                    (Fact::Symbolic(names), _) | (_, Fact::Symbolic(names)) => Fact::Symbolic(names),
                    _ => Fact::Absent,
                };
                return Acceptance::Synthetic {
                    length,
                    knob: "--spec-decode-acceptance-rate".into(),
                    source: value.source.clone(),
                };
            }
            unsimulated(launch)
        }
        _ => unsimulated(launch),
    }
}

/// No knob is in sight: acceptance is real, unless the environment or the words may hold one.
fn unsimulated(launch: &Launch) -> Acceptance {
    let mut hidden = launch.open_environment.clone();
    hidden.extend(launch.opaque.iter().flat_map(|w| w.text.unknowns()));
    hidden.sort();
    hidden.dedup();
    if hidden.is_empty() {
        Acceptance::Real
    } else {
        Acceptance::Unknown(hidden)
    }
}
