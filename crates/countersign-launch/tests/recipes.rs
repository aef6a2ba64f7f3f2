//! Recipes of all flavours, small and invented (domain guide 19.3), and the real ones where a clone is at hand.
#![allow(clippy::unwrap_used)]

use countersign_launch::recipe::{self, Injected, Injection, InjectorKind, RecipeError, RecipeOptions, TableInput};
use countersign_launch::{Acceptance, ChatTemplate, Engine, Fact, Launch, Role, Source};

const VLLM: &str = r#"name: one
model: { path: local-name, container: "reg.example#team/image:1" }
identity: { model: { repo: org/Model }, container: { image: "reg.example/team/image:1" } }
resources: { gpu_type: x, prefill_workers: 2, decode_workers: 1, gpus_per_decode: 8 }
backend:
  type: vllm
  decode_environment:
    SOME_VAR: "1"
  vllm_config:
    prefill:
      tensor-parallel-size: 4
      data-parallel-size: 2
      enable-expert-parallel: true
      no-enable-prefix-caching: true
      attention-config: '{"use_x": true}'
    decode:
      tensor-parallel-size: 8
      kv-cache-dtype: fp8
      speculative-config: '{"method": "mtp", "num_speculative_tokens": 3}'
benchmark: { type: b, concurrencies: "4x8" }
"#;

const SGLANG: &str = r#"backend:
  decode_environment:
    A: b
  sglang_config:
    decode:
      tp-size: 8
      ep-size: 8
      dp-size: 8
      enable-dp-attention: true
      load-balance-method: null
      speculative-algo: EAGLE
      speculative-num-steps: 3
      speculative-eagle-topk: 1
      speculative-num-draft-tokens: 4
benchmark: { type: b, use_chat_template: false }
"#;

const TRTLLM: &str = r#"backend:
  type: trtllm
  decode_environment: { TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS: "1.49" }
  trtllm_config:
    decode:
      tensor_parallel_size: 8
      moe_expert_parallel_size: 4
      enable_attention_dp: true
      kv_cache_config: { dtype: fp8 }
      moe_config: { backend: TRTLLM }
      speculative_config: { decoding_type: MTP, max_draft_len: 3 }
"#;

fn read(text: &str, injection: Option<Injection>) -> recipe::Recipe {
    recipe::read(
        "r.yaml",
        text,
        &RecipeOptions {
            selector: None,
            injection,
        },
    )
    .unwrap()
}

fn decode(r: &recipe::Recipe) -> &Launch {
    r.launches.iter().find(|l| l.role == Role::Decode).unwrap()
}

fn injection(kind: Option<InjectorKind>, length: Option<&str>) -> Option<Injection> {
    Some(Injection {
        kind,
        length: length.map(str::to_owned),
        source: Source::new("entry", 9),
    })
}

#[test]
fn vllm_flavour() {
    let r = read(VLLM, None);
    let prefill = &r.launches[0];
    assert_eq!((prefill.role, prefill.engine), (Role::Prefill, Engine::Vllm));
    assert_eq!(prefill.parallel.ep, Fact::Known(8));
    assert_eq!(prefill.parallel.dp_attention, Fact::Known(true));
    assert_eq!(prefill.flags.known("enable-prefix-caching"), Some("false"));
    assert_eq!(prefill.flags.known("attention-config.use_x"), Some("true"));
    assert!(prefill.spec.is_none());
    assert_eq!(prefill.extra["workers"].value.as_known(), Some("2"));
    let d = decode(&r);
    assert_eq!(d.model, Fact::Known("org/Model".into()));
    assert_eq!(d.image.as_deref(), Some("reg.example/team/image:1"));
    assert_eq!(d.kv_cache_dtype, Fact::Known("fp8".into()));
    assert_eq!(d.parallel.ep, Fact::Default(1));
    let spec = d.spec.as_ref().unwrap();
    assert_eq!(
        (spec.method.value().unwrap().as_str(), spec.draft_tokens.value()),
        ("mtp", Some(&3))
    );
    assert_eq!(spec.acceptance, Acceptance::Real);
    let line = VLLM.lines().position(|l| l.contains("speculative-config")).unwrap() as u32 + 1;
    assert_eq!(
        d.flags.get("speculative-config.method").unwrap().source,
        Source::new("r.yaml", line)
    );
    assert_eq!(d.environment["SOME_VAR"].value.as_known(), Some("1"));
    assert!(matches!(
        d.client.as_ref().unwrap().chat_template,
        ChatTemplate::Used(_)
    ));
    assert_eq!(r.facts["benchmark.concurrencies"].value.as_known(), Some("4x8"));
}

#[test]
fn sglang_flavour_without_type() {
    let r = read(SGLANG, None);
    let d = decode(&r);
    assert_eq!(d.engine, Engine::Sglang);
    assert_eq!(
        [&d.parallel.tp, &d.parallel.ep, &d.parallel.dp].map(|f| f.value().copied()),
        [Some(8), Some(8), Some(8)]
    );
    assert_eq!(d.parallel.dp_attention, Fact::Known(true));
    assert!(
        !d.flags.mentions("load-balance-method"),
        "null members are left out by the runner"
    );
    let spec = d.spec.as_ref().unwrap();
    assert_eq!(
        (spec.method.value().unwrap().as_str(), spec.draft_tokens.value()),
        ("eagle", Some(&3))
    );
    assert_eq!(
        (spec.eagle_topk.value(), spec.verify_tokens.value()),
        (Some(&1), Some(&4))
    );
    assert_eq!(d.client.as_ref().unwrap().chat_template, ChatTemplate::Unused);
}

#[test]
fn trtllm_flavour_adds_one_to_the_forced_tokens() {
    let r = read(TRTLLM, None);
    let d = decode(&r);
    assert_eq!(d.parallel.ep, Fact::Known(4));
    assert_eq!(d.parallel.dp_attention, Fact::Known(true));
    assert_eq!(d.kv_cache_dtype, Fact::Known("fp8".into()));
    assert_eq!(d.moe_backend, Fact::Known("TRTLLM".into()));
    let spec = d.spec.as_ref().unwrap();
    assert_eq!(
        (spec.method.value().unwrap().as_str(), spec.draft_tokens.value()),
        ("mtp", Some(&3))
    );
    match &spec.acceptance {
        Acceptance::Synthetic {
            length: Fact::Known(n), ..
        } => assert!((n - 2.49).abs() < 1e-9, "{n}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn injection_follows_what_the_injectors_match() {
    let vllm = Some(InjectorKind::VllmSpeculativeConfig);
    let r = read(VLLM, injection(vllm, Some("2.49")));
    assert_eq!(r.injected, Injected::Applied(1));
    match &decode(&r).spec.as_ref().unwrap().acceptance {
        Acceptance::Synthetic { length, source, .. } => {
            assert_eq!(length, &Fact::Known(2.49));
            assert_eq!(source, &Source::new("entry", 9));
        }
        other => panic!("{other:?}"),
    }
    // Double quotes are not matched, and the job aborts.
    let double = VLLM.replace(
        r#"'{"method": "mtp", "num_speculative_tokens": 3}'"#,
        r#""{\"method\": \"mtp\", \"num_speculative_tokens\": 3}""#,
    );
    let r = read(&double, injection(vllm, Some("2.49")));
    assert!(matches!(r.injected, Injected::Aborts(_)));
    assert_eq!(decode(&r).spec.as_ref().unwrap().acceptance, Acceptance::Real);

    let sglang = Some(InjectorKind::SglangEnvironment);
    let r = read(SGLANG, injection(sglang, Some("3.33")));
    assert_eq!(r.injected, Injected::Applied(1));
    assert!(
        matches!(&decode(&r).spec.as_ref().unwrap().acceptance, Acceptance::Synthetic { length: Fact::Known(n), .. } if *n == 3.33)
    );
    let set = SGLANG.replace("A: b", "SGLANG_SIMULATE_ACC_LEN: '2'");
    assert!(matches!(
        read(&set, injection(sglang, Some("3.33"))).injected,
        Injected::Aborts(_)
    ));
    assert!(matches!(
        read(SGLANG, injection(sglang, None)).injected,
        Injected::Aborts(_)
    ));
    assert!(matches!(
        read(SGLANG, injection(None, Some("2"))).injected,
        Injected::Aborts(_)
    ));
}

#[test]
fn a_half_set_knob_is_incomplete_not_synthetic() {
    let half = VLLM.replace(
        "\"num_speculative_tokens\": 3",
        "\"num_speculative_tokens\": 3, \"synthetic_acceptance_length\": 2.5",
    );
    assert!(matches!(
        decode(&read(&half, None)).spec.as_ref().unwrap().acceptance,
        Acceptance::Incomplete { .. }
    ));
}

#[test]
fn errors_say_what_to_fix() {
    let err = |text: &str, selector: Option<&str>| {
        recipe::read(
            "r.yaml",
            text,
            &RecipeOptions {
                selector,
                injection: None,
            },
        )
        .unwrap_err()
    };
    assert!(matches!(err("a: [", None), RecipeError::Yaml { .. }));
    assert!(matches!(err("a: 1", None), RecipeError::NoBackend { .. }));
    assert!(err(VLLM, Some("override_x")).to_string().contains("override_x"));
    assert_eq!(
        recipe::split_reference("a/b.yaml:zip_override_x[3]"),
        ("a/b.yaml", Some("zip_override_x[3]"))
    );
    assert_eq!(recipe::split_reference("a/b.yaml"), ("a/b.yaml", None));
}

#[test]
fn llmd_and_tables() {
    let llmd = "prefill:\n  tp: 1\n  enable-expert-parallel: true\n  extra-args: >-\n    --kv-cache-dtype fp8\n    --compilation-config {\"mode\":0}\n  env: { A: '1' }\ndecode: { tp: 8, extra-args: '--max-num-seqs 4' }\n";
    let input = |tp, dp| TableInput {
        tp: Some(tp),
        dp_attention: Some(dp),
        ..TableInput::default()
    };
    let launches = recipe::llmd_recipe(
        "l.yaml",
        llmd,
        &[(Role::Prefill, input(8, true)), (Role::Decode, input(8, false))],
    )
    .unwrap();
    assert_eq!(launches[0].parallel.dp, Fact::Known(8));
    assert_eq!(launches[0].parallel.ep, Fact::Known(8));
    assert_eq!(launches[0].flags.known("compilation-config.mode"), Some("0"));
    assert_eq!(launches[1].parallel.tp, Fact::Known(8));
    let launches = recipe::llmd_recipe("l.yaml", llmd, &[]).unwrap();
    assert!(launches[0].parallel.dp.is_symbolic());

    let table = "Model-X-DI:\n  base_flags: '--kv-cache-dtype fp8 --attention-backend a'\n  mtp_flags: '--speculative-algorithm NEXTN'\n  dp_flags: '--enable-dp-attention'\n  ep_flags: '--moe-a2a-backend m'\n";
    let input = TableInput {
        tp: Some(8),
        ep: Some(true),
        dp_attention: Some(true),
        draft_tokens: Some(2),
        ..TableInput::default()
    };
    let l = recipe::model_table(Engine::Sglang, "t.yaml", table, "org/Model-X", Role::Decode, &input).unwrap();
    assert_eq!(
        (l.parallel.tp.value(), l.parallel.ep.value(), l.parallel.dp.value()),
        (Some(&8), Some(&8), Some(&8))
    );
    assert_eq!(l.parallel.dp_attention, Fact::Known(true));
    assert_eq!(l.spec.as_ref().unwrap().draft_tokens, Fact::Known(2));
    // One table of flags by role: the entry's size stands over the table's, its switches are added where they lack.
    let by_role = "Model-Y:\n  prefill_flags: '--tensor-parallel-size 8 --kv-cache-dtype fp8'\n  decode_flags: '--tensor-parallel-size 8 --enable-expert-parallel --max-num-seqs 4'\n  env: 'A=1'\n  decode_env: 'B=2'\n";
    let sized = |tp, ep| TableInput {
        tp: Some(tp),
        ep: Some(ep),
        dp_attention: Some(false),
        draft_tokens: Some(0),
        ..TableInput::default()
    };
    let read = |role, input| recipe::model_table(Engine::Vllm, "v.yaml", by_role, "org/Model-Y", role, &input).unwrap();
    let prefill = read(Role::Prefill, sized(4, false));
    assert_eq!(
        (prefill.parallel.tp.value(), prefill.parallel.ep.value()),
        (Some(&4), Some(&1))
    );
    assert_eq!(prefill.flags.known("kv-cache-dtype"), Some("fp8"));
    assert_eq!(prefill.environment.keys().collect::<Vec<_>>(), ["A"]);
    let decode = read(Role::Decode, sized(2, false));
    assert_eq!(
        (decode.parallel.tp.value(), decode.parallel.ep.value()),
        (Some(&2), Some(&2))
    );
    assert_eq!(decode.environment.keys().collect::<Vec<_>>(), ["A", "B"]);
    assert!(
        read(Role::Prefill, sized(4, true))
            .flags
            .is_on("enable-expert-parallel")
    );

    let l = recipe::model_table(
        Engine::Sglang,
        "t.yaml",
        table,
        "Model-X",
        Role::Decode,
        &TableInput::default(),
    )
    .unwrap();
    assert!(
        l.parallel.ep.is_symbolic(),
        "sizes that the entry gives are not known here"
    );
    assert!(
        recipe::model_table(
            Engine::Sglang,
            "t.yaml",
            table,
            "Other",
            Role::Decode,
            &TableInput::default()
        )
        .is_err()
    );
}
