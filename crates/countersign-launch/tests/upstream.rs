//! Upstream readers and the comparison, on invented pages of the shapes that occur.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use countersign_launch::compare::{Class, MajorRules, Subject};
use countersign_launch::upstream::{self, Catalog, Kind, Page, PageRules};
use countersign_launch::{Arg, Engine, Fact, Launch, Role, Source, Start, Text, compare, fuzz_page, fuzz_recipe};
use proptest::prelude::*;

fn rules() -> PageRules {
    let hardware: BTreeMap<String, Vec<String>> = ["h200", "b200", "mi355x"]
        .iter()
        .map(|h| ((*h).to_owned(), vec![]))
        .collect();
    PageRules {
        hardware,
        catalog: Catalog::default(),
    }
}

const WIDGET: &str = r"export const ModelDeployment = () => {
  const BIG = new Set(['large']);
  const options = {
    model: { name: 'model', items: [{ id: 'large', default: true }, { id: 'small' }] },
    hardware: { name: 'hardware', getDynamicItems: (v) => [
      { id: 'h200', default: v.quantization !== 'fp4', disabled: v.quantization === 'fp4' },
      { id: 'b200', default: false },
    ] },
    quantization: { name: 'quantization', getDynamicItems: (v) => [
      { id: 'fp8', default: true }, { id: 'fp4', disabled: !BIG.has(v.model) } ] },
    speculative: { name: 'speculative', condition: (v) => v.hardware !== 'none', items: [{ id: 'on', default: true }, { id: 'off' }] },
  };
  const sizes = { large: { h200: { fp8: { tp: 8 } }, b200: { fp8: { tp: 8, ep: 8 }, fp4: { tp: 4 } } }, small: { b200: { fp8: { tp: 1 } } } };
  const first = () => { const s = {}; for (const [k, o] of Object.entries(options)) { const items = typeof o.getDynamicItems === 'function' ? o.getDynamicItems(s) : o.items; s[k] = (items.find(i => i.default && !i.disabled) || items[0]).id; } return s; };
  const [values, setValues] = useState(first);
  useEffect(() => { document.title = 'x'; }, []);
  const generateCommand = () => {
    const { model, hardware, quantization, speculative } = values;
    const size = sizes[model]?.[hardware]?.[quantization];
    if (!size) return '# not available';
    const suffix = quantization === 'fp4' ? '-FP4-V2' : '-FP8';
    let cmd = `sglang serve --model-path example/Model-${model === 'large' ? '100B' : '1B'}${suffix}`;
    if (size.tp > 1) cmd += ` \\\n  --tp ${size.tp}`;
    if (size.ep) { cmd += ` \\\n  --ep ${size.ep}`; }
    const flags = [];
    if (speculative === 'on') flags.push('--speculative-algorithm EAGLE', '--speculative-num-steps 3');
    flags.forEach((f) => { cmd += ` \\\n  ${f}`; });
    return `SOME_ENV=1 ${cmd} --port ${unknownThing.port}`;
  };
  return (<div>{generateCommand()}</div>);
};
";

fn summary(page: &Page) -> Vec<String> {
    page.documented
        .iter()
        .map(|d| {
            let l = &d.launch;
            let k = l.spec.as_ref().map_or("-".to_owned(), |s| s.draft_tokens.to_string());
            format!(
                "{} tp={} ep={} k={k} on {}",
                l.model,
                l.parallel.tp,
                l.parallel.ep,
                d.hardware.join("+")
            )
        })
        .collect()
}

#[test]
fn a_generator_shows_every_selectable_combination_and_no_other() {
    let page = upstream::read("w.jsx", WIDGET, &rules());
    assert_eq!(page.notes, Vec::<String>::new());
    assert_eq!(
        summary(&page),
        [
            "example/Model-100B-FP8 tp=8 ep=1 (default) k=3 on h200",
            "example/Model-100B-FP8 tp=8 ep=1 (default) k=- on h200",
            "example/Model-100B-FP8 tp=8 ep=8 k=3 on b200",
            "example/Model-100B-FP8 tp=8 ep=8 k=- on b200",
            "example/Model-100B-FP4-V2 tp=4 ep=1 (default) k=3 on b200",
            "example/Model-100B-FP4-V2 tp=4 ep=1 (default) k=- on b200",
            "example/Model-1B-FP8 tp=1 (default) ep=1 (default) k=3 on b200",
            "example/Model-1B-FP8 tp=1 (default) ep=1 (default) k=- on b200",
        ]
    );
    let d = &page.documented[0];
    assert_eq!(d.kind, Kind::Generated);
    assert_eq!(d.launch.environment["SOME_ENV"].value.as_known(), Some("1"));
    assert_eq!(
        d.launch.flags.get("port").unwrap().value.unknowns(),
        ["unknownThing.port"]
    );
    let line = WIDGET.lines().position(|l| l.contains("generateCommand =")).unwrap() as u32 + 1;
    assert_eq!(d.launch.source, Source::new("w.jsx", line));
}

const CELLS: &str = r#"export const config = {
  modelNames: { "big|fp8": "example/Big-FP8", "b200|big|fp4": "vendor/Big-FP4" },
  cells: [
    { match: { hw: "h200", variant: "big", quant: "fp8", nodes: "single" }, verified: true, env: ["A=1"],
      flags: ["--model-path {{MODEL_NAME}}", "--tp 8", "--host {{HOST_IP}}"] },
    { match: { hw: "b200", variant: "big", quant: "fp4", nodes: "multi-2" }, verified: false, env: [],
      flags: ["--model-path {{MODEL_NAME}}", "--tp 16"] },
  ],
};
"#;

#[test]
fn cells_of_a_configuration() {
    let page = upstream::read("c.jsx", CELLS, &rules());
    assert_eq!(
        summary(&page),
        [
            "example/Big-FP8 tp=8 ep=1 (default) k=- on h200",
            "vendor/Big-FP4 tp=16 ep=1 (default) k=- on b200"
        ]
    );
    assert_eq!(page.documented[0].verified, Some(true));
    assert_eq!(page.documented[0].launch.source.line, 4);
    assert_eq!(page.documented[1].launch.flags.known("nnodes"), Some("2"));
    assert_eq!(
        page.documented[0].launch.flags.get("host").unwrap().value.unknowns(),
        ["HOST_IP"]
    );
}

const RECIPE: &str = r#"meta: { hardware: { h200: verified, mi355x: unsupported } }
model:
  model_id: "example/Model-1"
  base_args: ["--trust-remote-code", "--max-model-len", "100"]
variants:
  default: { precision: fp8, vram_minimum_gb: 900 }
  fp4:
    model_id: "vendor/Model-1-FP4"
    precision: nvfp4
    vram_minimum_gb: 100
    extra_args: ["--max-model-len", "200"]
    hardware_overrides: { blackwell: { extra_args: ["--moe-backend", "x"] } }
features:
  tools: { args: ["--enable-auto-tool-choice"] }
  spec_decoding:
    modes:
      mtp: { args: ["--speculative-config", '{"method":"mtp","num_speculative_tokens":2}'] }
      other: { variants: [fp4], args: ["--speculative-config", '{"method":"eagle3","num_speculative_tokens":4}'] }
opt_in_features: [spec_decoding]
hardware_overrides:
  hopper: { extra_args: ["--kv-cache-dtype", "fp8"] }
compatible_strategies: [single_node_tp, single_node_dep]
strategy_overrides:
  single_node_dep:
    hardware_overrides: { hopper: { extra_args: ["--kv-cache-dtype", "auto"] } }
guide: |
  ## B200
  ```bash
  vllm serve example/Model-1 --tensor-parallel-size 4
  ```
"#;
const TAXONOMY: &str = "hardware_profiles:\n  h200: { brand: NVIDIA, generation: hopper, gpu_count: 8, vram_gb: 1128 }\n  b200: { brand: NVIDIA, generation: blackwell, gpu_count: 8, vram_gb: 1440 }\n  mi355x: { brand: AMD, generation: amd, gpu_count: 8, vram_gb: 2304 }\n  odd: { brand: X, generation: y, restricted: true }\n";
const DEP: &str = "name: single_node_dep\nvllm_args: ['--enable-expert-parallel']\n";

#[test]
fn a_recipe_file_composes_variant_strategy_hardware_and_features() {
    let (catalog, notes) = Catalog::parse(Some(TAXONOMY), &[("d".into(), DEP.into())]);
    assert!(notes.is_empty());
    let rules = PageRules { catalog, ..rules() };
    let page = upstream::read("r.yaml", RECIPE, &rules);
    let pick = |variant: &str, hw: &str, strategy: &str, spec: Option<&str>| {
        let found: Vec<&Launch> = page
            .documented
            .iter()
            .filter(|d| {
                d.labels.get("variant").map(String::as_str) == Some(variant)
                    && d.hardware == [hw]
                    && d.labels["strategy"] == strategy
                    && d.labels.get("spec_decoding").map(String::as_str) == spec
            })
            .map(|d| &d.launch)
            .collect();
        assert!(found.len() <= 1);
        found.first().copied().cloned()
    };
    let a = pick("default", "h200", "single_node_tp", None).unwrap();
    assert_eq!(
        (
            a.parallel.tp.clone(),
            a.flags.known("kv-cache-dtype"),
            a.flags.known("max-model-len")
        ),
        (Fact::Known(8), Some("fp8"), Some("100"))
    );
    assert!(a.flags.is_on("enable-auto-tool-choice") && a.spec.is_none());
    let b = pick("default", "h200", "single_node_dep", Some("mtp")).unwrap();
    assert_eq!(
        (
            b.parallel.dp.clone(),
            b.parallel.ep.clone(),
            b.flags.known("kv-cache-dtype")
        ),
        (Fact::Known(8), Fact::Known(8), Some("auto"))
    );
    assert_eq!(b.spec.unwrap().draft_tokens, Fact::Known(2));
    let c = pick("fp4", "b200", "single_node_tp", Some("other")).unwrap();
    assert_eq!(
        (c.model.clone(), c.parallel.tp.clone()),
        (Fact::Known("vendor/Model-1-FP4".into()), Fact::Known(1))
    );
    assert_eq!(
        (c.flags.known("moe-backend"), c.flags.known("max-model-len")),
        (Some("x"), Some("200"))
    );
    assert!(
        pick("fp4", "h200", "single_node_tp", None).is_none(),
        "a 4-bit variant needs its generation"
    );
    assert!(
        pick("default", "mi355x", "single_node_tp", None).is_none(),
        "unsupported hardware"
    );
    assert!(
        pick("default", "b200", "single_node_tp", Some("other")).is_none(),
        "a mode of another variant"
    );
    let guide = page.documented.iter().find(|d| d.kind == Kind::Command).unwrap();
    assert_eq!(
        (guide.hardware.as_slice(), guide.launch.parallel.tp.clone()),
        (&["b200".to_owned()][..], Fact::Known(4))
    );
    let line = RECIPE.lines().position(|l| l.contains("vllm serve")).unwrap() as u32 + 1;
    assert_eq!(guide.launch.source.line, line);
}

fn launch(words: &[&str]) -> Launch {
    let argv: Vec<Arg> = words
        .iter()
        .map(|w| {
            let text = w.strip_prefix('$').map_or_else(|| Text::known(*w), Text::unknown);
            Arg::new(text, Source::new("run.sh", 7))
        })
        .collect();
    Launch::from_command(&Start {
        argv: &argv,
        environment: &[],
        options: &|_| None,
    })
    .unwrap()
}

fn major() -> MajorRules {
    let names = [
        "model",
        "hardware",
        "tp",
        "dp",
        "ep",
        "dp-attention",
        "quantisation",
        "kv-cache-dtype",
        "attention-backend",
        "spec-method",
        "spec-length",
        "enable-x",
    ];
    MajorRules {
        arguments: names.map(str::to_owned).to_vec(),
        equal: vec![("spec-method".into(), vec!["eagle".into(), "nextn".into()])],
    }
}

fn classes(words: &[&str], hardware: &str) -> (BTreeMap<String, Class>, bool) {
    let page = upstream::read("w.jsx", WIDGET, &rules());
    let l = launch(words);
    let c = compare(
        &Subject {
            launch: &l,
            models: &[],
            hardware: Some(hardware),
        },
        &page.documented,
        &major(),
    );
    let documented = c.is_documented();
    (
        c.differences.into_iter().map(|d| (d.argument, d.class)).collect(),
        documented,
    )
}

const BASE: &[&str] = &[
    "sglang",
    "serve",
    "--model-path",
    "example/Model-100B-FP4-V2",
    "--tp",
    "4",
    "--speculative-algo",
    "NEXTN",
    "--speculative-num-steps",
    "3",
];

#[test]
fn comparison_classes() {
    let with =
        |more: &[&'static str]| -> Vec<&'static str> { BASE.iter().copied().chain(more.iter().copied()).collect() };
    let (c, ok) = classes(BASE, "b200");
    assert!(ok, "{c:?}");
    assert!(c.values().all(|v| *v == Class::Matching), "{c:?}");

    let (c, ok) = classes(&with(&["--kv-cache-dtype", "fp8"]), "b200");
    assert!(!ok);
    assert_eq!(c["kv-cache-dtype"], Class::Missing);

    let (c, ok) = classes(&with(&["--tp", "2"]), "b200");
    assert!(!ok);
    assert_eq!((c["tp"], c["model"]), (Class::Contradicting, Class::Matching));

    let mut other = with(&[]);
    other[3] = "example/Model-100B-FP4";
    let (c, ok) = classes(&other, "b200");
    assert!(!ok);
    assert_eq!(
        c["model"],
        Class::Missing,
        "the former checkpoint is not the documented one"
    );

    let (c, ok) = classes(BASE, "mi355x");
    assert!(!ok);
    assert_eq!(c["hardware"], Class::Contradicting);

    let (c, ok) = classes(&with(&["$EXTRA"]), "b200");
    assert!(!ok, "unknown words may hide any flag");
    assert_eq!(c["kv-cache-dtype"], Class::Undecided);
    assert_eq!(c["enable-x"], Class::Undecided);
}

#[test]
fn a_value_documented_for_other_hardware_is_elsewhere_and_no_match() {
    let cells = r#"export const config = { modelNames: { "fp8": "example/Big-FP8" }, cells: [
      { match: { hw: "h200", quant: "fp8" }, flags: ["--model-path {{MODEL_NAME}}", "--kv-cache-dtype fp8"] },
      { match: { hw: "b200", quant: "fp8" }, flags: ["--model-path {{MODEL_NAME}}"] } ] };"#;
    let page = upstream::read("c.jsx", cells, &rules());
    let l = launch(&[
        "sglang",
        "serve",
        "--model-path",
        "example/Big-FP8",
        "--kv-cache-dtype",
        "fp8",
    ]);
    let subject = |hardware| Subject {
        launch: &l,
        models: &[],
        hardware: Some(hardware),
    };
    let b200 = compare(&subject("b200"), &page.documented, &major());
    let kv: Vec<_> = b200
        .differences
        .iter()
        .filter(|d| d.argument == "kv-cache-dtype")
        .collect();
    assert_eq!(
        (kv[0].class, kv[0].source.as_ref().unwrap().line),
        (Class::Elsewhere, 2)
    );
    assert_eq!(kv[0].elsewhere, ["h200"]);
    assert!(!b200.is_documented());
    assert!(compare(&subject("h200"), &page.documented, &major()).is_documented());
}

#[test]
fn sizes_that_a_recipe_leaves_to_the_deployment_are_no_contradiction() {
    let recipe = |tp: &str| {
        format!(
            "model: {{ model_id: org/Big-1 }}\nmeta: {{ hardware: {{ b200: verified }} }}\ncompatible_strategies: [single_node_tp]\nvariants:\n  default: {{ vram_minimum_gb: 900{tp} }}\n"
        )
    };
    let catalog = Catalog::parse(
        Some("hardware_profiles:\n  b200: { brand: NVIDIA, gpu_count: 8, vram_gb: 1440 }\n"),
        &[],
    )
    .0;
    let rules = PageRules { catalog, ..rules() };
    let class = |tp: &str, ours: &str| {
        let page = upstream::read("m.yaml", &recipe(tp), &rules);
        let l = launch(&["vllm", "serve", "org/Big-1", "--tensor-parallel-size", ours]);
        let subject = Subject {
            launch: &l,
            models: &[],
            hardware: Some("b200"),
        };
        let c = compare(&subject, &page.documented, &major());
        c.differences.iter().find(|d| d.argument == "tp").unwrap().class
    };
    assert_eq!(class("", "8"), Class::Matching);
    assert_eq!(class("", "4"), Class::Matching);
    assert_eq!(class(", tp: 8", "4"), Class::Contradicting);
    assert_eq!(class(", tp: 8", "8"), Class::Matching);
}

#[test]
fn a_draft_on_the_host_is_known_by_its_name() {
    let page = upstream::read(
        "p.md",
        "```bash\nvllm serve org/Big-1 --speculative-config '{\"method\":\"eagle3\",\"model\":\"org/Draft-1\",\"num_speculative_tokens\":3}'\n```\n",
        &rules(),
    );
    let class = |draft: &str| {
        let config = format!("{{\"method\":\"eagle3\",\"model\":\"{draft}\",\"num_speculative_tokens\":3}}");
        let l = launch(&["vllm", "serve", "org/Big-1", "--speculative-config", &config]);
        let subject = Subject {
            launch: &l,
            models: &[],
            hardware: None,
        };
        let rules = MajorRules {
            arguments: vec!["draft-model".into()],
            equal: Vec::new(),
        };
        compare(&subject, &page.documented, &rules).differences[0].class
    };
    assert_eq!(class("org/Draft-1"), Class::Matching);
    assert_eq!(class("/models/Draft-1"), Class::Matching);
    assert_eq!(class("/models/Draft-2"), Class::Contradicting);
    assert_eq!(class("other/Draft-1"), Class::Contradicting);
}

#[test]
fn nothing_documented_is_never_a_pass() {
    let l = launch(BASE);
    let c = compare(
        &Subject {
            launch: &l,
            models: &[],
            hardware: Some("b200"),
        },
        &[],
        &major(),
    );
    assert!(!c.is_documented());
    assert!(c.of(Class::Matching).next().is_none());
}

#[test]
fn roles_and_engines() {
    let l = launch(&[
        "python3",
        "-m",
        "sglang.launch_server",
        "--model-path",
        "a/b",
        "--disaggregation-mode",
        "decode",
    ]);
    assert_eq!((l.role, l.engine), (Role::Decode, Engine::Sglang));
    let l = launch(&[
        "vllm",
        "serve",
        "a/b",
        "--kv-transfer-config",
        r#"{"kv_role":"kv_producer"}"#,
    ]);
    assert_eq!(l.role, Role::Prefill);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn pages_of_any_kind_return(data in proptest::collection::vec(any::<u8>(), 0..400)) {
        fuzz_page(&data);
        fuzz_recipe(&data);
    }

    #[test]
    fn cut_and_spliced_snippets_return(from in 0usize..2600, to in 0usize..2600, insert in "[(){}\\[\\];`'\"$=>.,a-z0-9 \n]{0,40}") {
        let cut = |n: usize| { let mut n = n.min(WIDGET.len()); while !WIDGET.is_char_boundary(n) { n -= 1; } n };
        let text = format!("{}{insert}{}", &WIDGET[..cut(from)], &WIDGET[cut(to)..]);
        let _ = upstream::read("w.jsx", &text, &rules());
        let _ = upstream::read("w.mdx", &text, &rules());
    }

    #[test]
    fn spliced_recipes_return(from in 0usize..1500, to in 0usize..1500, insert in "[a-z:\\-{}\\[\\]'\", \n0-9]{0,30}") {
        let text = format!("{}{insert}{}", &RECIPE[..from.min(RECIPE.len())], &RECIPE[to.min(RECIPE.len())..]);
        let _ = upstream::read("r.yaml", &text, &rules());
        fuzz_recipe(text.as_bytes());
    }
}
