//! Branches are swept by the generator that they started from: rules that it does not know yet do not hold for them.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::borrow::Cow;
use std::sync::Arc;

use common::{FIRST, RUNNERS, SECOND, policy};
use countersign_matrix::{Configs, EvalMode, Generator, MapFiles, MatrixRules, Row, Words, full_sweep};

fn words(path: &str, has: &str, lacks: &[&str]) -> Option<Words> {
    Some(Words {
        path: path.to_owned(),
        has: vec![has.to_owned()],
        lacks: lacks.iter().map(|word| (*word).to_owned()).collect(),
    })
}

fn rules() -> MatrixRules {
    let mut rules = policy().matrix;
    rules.generator = Some(Generator {
        agentic_single_node_evals: words("gen.py", "single_evals", &["OFF = True"]),
        agentic_multi_node_evals: words("gen.py", "multi_evals", &[]),
        multi_node_memory_budget: words("gen.py", "budget", &[]),
        components: words("check.py", "transfer", &[]),
    });
    rules
}

/// The rules for a branch with these two files; none = not to be read.
fn then<'r>(rules: &'r MatrixRules, generator: Option<&str>, check: Option<&str>) -> Cow<'r, MatrixRules> {
    let text = |path: &str| match path {
        "gen.py" => generator.map(Arc::from),
        "check.py" => check.map(Arc::from),
        other => panic!("{other}"),
    };
    rules.then(&text)
}

fn rows(rules: &MatrixRules, mode: EvalMode, first: &str, second: &str) -> Result<Vec<Row>, Vec<String>> {
    let files = MapFiles::new()
        .with("configs/amd-master.yaml", first)
        .with("configs/nvidia-master.yaml", second)
        .with("configs/runners.yaml", RUNNERS);
    let configs = Configs::read(&files, &policy().layout, rules);
    let problems: Vec<String> = configs.problems().iter().map(ToString::to_string).collect();
    if !problems.is_empty() {
        return Err(problems);
    }
    full_sweep(&configs, rules, mode).map_err(|found| found.iter().map(ToString::to_string).collect())
}

fn evaluated(rows: &[Row]) -> Vec<&str> {
    let mut keys: Vec<&str> = rows
        .iter()
        .filter(|row| row.run_eval == Some(true))
        .map(|row| &*row.head.key)
        .collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

#[test]
fn a_generator_of_today_and_one_that_cannot_be_read_change_nothing() {
    let rules = rules();
    let now = "single_evals multi_evals budget";
    for (generator, check) in [(Some(now), Some("transfer")), (None, None), (Some(now), None)] {
        assert!(matches!(then(&rules, generator, check), Cow::Borrowed(_)));
    }
    assert!(matches!(
        policy().matrix.then(&|_| panic!("nothing is asked for")),
        Cow::Borrowed(_)
    ));
}

#[test]
fn evaluations_that_were_not_there_yet_or_were_off_are_not_expected() {
    let rules = rules();
    let marked = |generator: &str| {
        let then = then(&rules, Some(generator), Some("transfer"));
        let rows = rows(&then, EvalMode::EvalsOnly, FIRST, SECOND).unwrap();
        evaluated(&rows)
            .iter()
            .filter(|key| key.ends_with("agentic"))
            .map(|key| (*key).to_owned())
            .collect::<Vec<_>>()
    };
    let (single, multi) = ("alpha-fp8-b200-vllm-agentic", "beta-fp4-gb200-dynamo-vllm-agentic");
    assert_eq!(marked("single_evals multi_evals budget"), [single, multi]);
    assert_eq!(marked("single_evals budget"), [single]);
    assert_eq!(marked("single_evals budget OFF = True"), Vec::<String>::new());
    assert_eq!(marked("budget"), Vec::<String>::new());
}

#[test]
fn entries_of_the_time_before_components_are_read() {
    let rules = rules();
    let first = FIRST.replace("kv-offload-backend: { name: pool }", "kv-offload-backend: pool");
    let second = SECOND.replace("  kv-p2p-transfer: link\n", "");
    let now = then(&rules, Some("single_evals multi_evals budget"), Some("transfer"));
    let refused = rows(&now, EvalMode::Marked, &first, &second).unwrap_err().join("\n");
    assert!(
        refused.contains("needs `kv-p2p-transfer`") && refused.contains("expected a mapping"),
        "{refused}"
    );
    let before = then(&rules, Some("budget"), Some("nothing of it"));
    let old = rows(&before, EvalMode::Marked, &first, &second).unwrap();
    let new = rows(&now, EvalMode::Marked, FIRST, SECOND).unwrap();
    assert_eq!(old.len(), new.len());
}

#[test]
fn memory_of_several_machines_was_not_budgeted_before() {
    let rules = rules();
    let runners = RUNNERS.replace(
        "  cluster:gb200-x: { available-cpu-dram-mib: 860_160, gpus-per-node: 4 }\n",
        "",
    );
    let rows = |rules: &MatrixRules| {
        let files = MapFiles::new()
            .with("configs/amd-master.yaml", FIRST)
            .with("configs/nvidia-master.yaml", SECOND)
            .with("configs/runners.yaml", &*runners);
        full_sweep(&Configs::read(&files, &policy().layout, rules), rules, EvalMode::Marked)
    };
    let now = then(&rules, Some("budget"), Some("transfer"));
    assert!(
        rows(&now)
            .unwrap_err()
            .iter()
            .any(|problem| problem.message.contains("no hardware facts"))
    );
    let before = then(&rules, Some("nothing"), Some("transfer"));
    assert!(rows(&before).is_ok());
}
