//! What changelog items select, and which entries a change touches (domain guide 4.1, 4.5, 4.6, 3.8, 3.9).
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{FIRST, SECOND, configs, files, policy};
use countersign_matrix::*;

const FILE: &str = "perf-changelog.yaml";
const BASE: &str = "- config-keys:\n    - old\n  description:\n    - \"x\"\n  pr-link: l\n";

fn item(keys: &str, extra: &str) -> String {
    format!("\n- config-keys: {keys}\n  description: [\"d\"]\n  pr-link: XXX\n{extra}")
}

fn added(text: &str) -> Result<Vec<Item>, Vec<String>> {
    added_items(FILE, BASE, text).map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

fn selection(text: &str, options: SelectOptions) -> Result<Selection, Vec<String>> {
    let items = added(text)?;
    select(FILE, &items, &configs(FIRST, SECOND), None, &policy().matrix, options)
        .map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

fn counts(selection: &Selection) -> (usize, usize) {
    (selection.throughput.len(), selection.evals.len())
}

fn plain(text: &str) -> (usize, usize) {
    counts(&selection(text, SelectOptions::default()).unwrap())
}

#[test]
fn items_are_read_from_the_added_lines() {
    let items = added(&format!(
        "{BASE}{}",
        item("[a, b]", "  evals-only: true\n  scenario-type: [agentic-coding]\n")
    ))
    .unwrap();
    assert_eq!(items.len(), 1);
    assert_eq!(
        (items[0].line, items[0].evals_only, items[0].append_only),
        (7, true, false)
    );
    assert_eq!(
        items[0].scenarios(),
        Scenarios {
            fixed: false,
            agentic: true
        }
    );
    for (text, expected) in [
        (BASE.to_owned(), "nothing is added"),
        (format!("{BASE}# note\n"), "only comments are added"),
        (format!("{BASE}a: b\n"), ":6:1: the added lines are not a list of items"),
        (BASE.replace("    - old\n", ""), "line 2 of the base is gone: `- old`"),
        (BASE.trim_end().to_owned(), "line 5 of the base is gone: `pr-link: l`"),
        (
            format!("{BASE}{}", item("[]", "")),
            ":7:16: [0].config-keys: `config-keys` is empty",
        ),
        (
            format!("{BASE}{}", item("[a]", "  other: 1\n")),
            ":10:3: [0]: unknown field `other`",
        ),
        (
            format!("{BASE}{}", item("[a]", "  eval-min-prefill-ep: 0\n")),
            "must be at least 1",
        ),
        (
            format!("{BASE}{}", item("[a]", "  scenario-type: [fast]\n")),
            "`fast` is not a scenario type",
        ),
        (
            format!("{BASE}{}", item("[a]", "  scenario-type: []\n")),
            "the list is empty",
        ),
        (
            format!("{BASE}{}", item("[a]", "  append-only: true\n  all-evals: true\n")),
            "cannot be combined",
        ),
        (format!("{BASE}\n- 5\n"), ":7:3: [0]: expected a mapping"),
    ] {
        let problems = added(&text).unwrap_err();
        assert!(
            problems.iter().any(|line| line.contains(expected)),
            "{expected}: {problems:#?}"
        );
    }
    // Blank lines may go, as far as the sweep is concerned.
    assert_eq!(
        added_items(FILE, &format!("{BASE}\n"), &format!("{BASE}{}", item("[a]", "")))
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn wildcards_and_repetitions_select_each_entry_once() {
    let all = plain(&format!("{BASE}{}", item("[\"*\"]", "")));
    assert_eq!(all, (14, 6));
    assert_eq!(
        plain(&format!(
            "{BASE}{}",
            item("[\"alpha-*\", alpha-fp8-b200-vllm, \"*-agentic\"]", "")
        )),
        (12, 5)
    );
    assert_eq!(
        plain(&format!("{BASE}{}{}", item("[\"*\"]", ""), item("[\"*\"]", ""))),
        all
    );
    assert_eq!(plain(&format!("{BASE}{}", item("[\"*fp4*dynamo*\"]", ""))), (4, 2));
    let problems = selection(
        &format!("{BASE}{}", item("[gamma, \"delta*\"]", "")),
        SelectOptions::default(),
    )
    .unwrap_err();
    assert_eq!(problems.len(), 2);
    assert!(
        problems[0].contains(":7:1: config-keys: `gamma` matches no entry"),
        "{problems:?}"
    );
}

#[test]
fn scenarios_are_covered_one_by_one() {
    let one = item("[\"*\"]", "  scenario-type: [fixed-seq-len]\n");
    assert_eq!(plain(&format!("{BASE}{one}")), (9, 4));
    assert_eq!(plain(&format!("{BASE}{one}{}", item("[\"*\"]", ""))), (14, 6));
}

#[test]
fn modifiers_change_what_runs() {
    let text = |extra: &str| format!("{BASE}{}", item("[\"*\"]", extra));
    assert_eq!(plain(&text("  evals-only: true\n")), (0, 6));
    assert_eq!(plain(&text("  all-evals: true\n")), (0, 13));
    assert_eq!(plain(&text("  eval-min-prefill-ep: 8\n")), (14, 5));
    assert_eq!(plain(&text("  eval-min-prefill-ep: 9\n")), (14, 4));
    // The broader evaluation wins although its item comes last; throughput still comes from the other one.
    assert_eq!(
        plain(&format!("{}{}", text(""), item("[\"*\"]", "  all-evals: true\n"))),
        (14, 13)
    );
    let with = |options| counts(&selection(&text(""), options).unwrap());
    assert_eq!(
        with(SelectOptions {
            evals_only: true,
            ..SelectOptions::default()
        }),
        (0, 6)
    );
    assert_eq!(
        with(SelectOptions {
            all_evals: true,
            ..SelectOptions::default()
        }),
        (14, 13)
    );
    let trimmed = selection(
        &text(""),
        SelectOptions {
            trim: true,
            ..SelectOptions::default()
        },
    )
    .unwrap();
    let concs: Vec<&[i64]> = trimmed.throughput.iter().map(|row| row.conc.values()).collect();
    assert_eq!(concs, [&[4][..], &[16], &[2], &[4], &[8], &[8], &[1], &[32]]);
    assert!(
        trimmed
            .throughput
            .iter()
            .all(|row| row.recipe_fingerprint.as_ref().is_some_and(|f| f.len() == 64))
    );
    assert!(trimmed.evals.iter().all(|row| row.recipe_fingerprint.is_none()));
}

#[test]
fn buckets_are_those_of_the_sweep() {
    let all = selection(&format!("{BASE}{}", item("[\"*\"]", "")), SelectOptions::default()).unwrap();
    let buckets = buckets_json(&all, &policy().matrix);
    let size = |pointer: &str| buckets.pointer(pointer).unwrap().as_array().unwrap().len();
    assert_eq!(
        [
            "/single_node/8k1k",
            "/single_node/agentic",
            "/multi_node/8k1k",
            "/multi_node/agentic"
        ]
        .map(size),
        [7, 3, 2, 2]
    );
    assert_eq!(
        [
            "/evals",
            "/agentic_evals",
            "/multinode_evals",
            "/multinode_agentic_evals"
        ]
        .map(size),
        [3, 1, 1, 1]
    );
    let text = selection_report(&all, &policy().matrix, Format::Text);
    assert!(
        text.contains("canary (where it is enabled): alpha fp8 b200 vllm TP4 c4"),
        "{text}"
    );
    assert!(text.contains("\nagentic eval: 1\n"), "{text}");
}

fn append(first: &str, second: &str, keys: &str, extra: &str) -> Result<Vec<i64>, Vec<String>> {
    let text = format!("{BASE}{}", item(keys, &format!("  append-only: true\n{extra}")));
    let items = added(&text)?;
    let base = configs(FIRST, SECOND);
    let head = configs(first, second);
    select(
        FILE,
        &items,
        &head,
        Some(&base),
        &policy().matrix,
        SelectOptions::default(),
    )
    .map(|selection| {
        assert!(selection.append_only && selection.evals.is_empty());
        selection
            .throughput
            .iter()
            .flat_map(|row| row.conc.values().to_vec())
            .collect()
    })
    .map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

#[test]
fn append_only_runs_exactly_the_new_points() {
    let agentic = "[alpha-fp8-b200-vllm-agentic]";
    assert_eq!(
        append(&FIRST.replace("[2, 8]", "[1, 2, 8, 16]"), SECOND, agentic, ""),
        Ok(vec![1, 16])
    );
    let multi = SECOND.replace("[8, 64, 32]", "[4, 8, 64, 32, 128]");
    assert_eq!(
        append(FIRST, &multi, "[beta-fp4-gb200-dynamo-vllm]", ""),
        Ok(vec![4, 128])
    );
    // A new recipe on a shown curve.
    let recipe = FIRST.replace(
        "      - { tp: 4, kv-offloading: none,",
        "      - { tp: 8, kv-offloading: none, conc-list: [3] }\n      - { tp: 4, kv-offloading: none,",
    );
    assert_eq!(append(&recipe, SECOND, agentic, ""), Ok(vec![3]));
}

#[test]
fn append_only_refuses_whatever_is_not_an_addition() {
    let more = FIRST.replace("[2, 8]", "[2, 8, 16]");
    let agentic = "[alpha-fp8-b200-vllm-agentic]";
    for (first, second, keys, extra, expected) in [
        (FIRST.to_owned(), SECOND.to_owned(), agentic, "", "no point is added"),
        (FIRST.replace("[2, 8]", "[2, 16]"), SECOND.to_owned(), agentic, "", "existing concurrencies of `alpha-fp8-b200-vllm-agentic` were removed: 8"),
        (more.replace("cluster:b200-x\n", "cluster:b200-z\n"), SECOND.to_owned(), agentic, "", "hardware facts"),
        (more.replace("version: \"2.0\"", "version: \"2.1\""), SECOND.to_owned(), agentic, "", "a recipe of `alpha-fp8-b200-vllm-agentic` was removed or changed"),
        (more.clone(), SECOND.replace("engine:v2", "engine:v3"), agentic, "", "the entry `beta-fp4-gb200-dynamo-vllm` changed and is not selected"),
        (more.clone(), SECOND.replace("beta-fp4-gb200-dynamo-vllm-agentic:", "new-fp4:"), agentic, "", "`beta-fp4-gb200-dynamo-vllm-agentic` changed and is not selected"),
        (more.clone(), SECOND.to_owned(), agentic, "  scenario-type: [fixed-seq-len]\n", "the scenario `agentic-coding` changed and is not selected"),
        (more.replace("    agentic-coding:\n", "    fixed-seq-len:\n    - { isl: 1, osl: 1, search-space: [{ tp: 1, conc-list: [1] }] }\n    agentic-coding:\n"), SECOND.to_owned(), agentic, "", "the scenario `fixed-seq-len` was added or removed"),
        (more.clone(), SECOND.replace("beta-fp4-gb200-dynamo-vllm:", "beta2:"), "[beta2]", "", "the entry `beta2` is not in the base revision"),
        // A new precision of offloading makes another shown curve.
        (FIRST.replace("      - { tp: 4, conc-start", "      - { tp: 4, spec-decoding: draft_model, conc-list: [5] }\n      - { tp: 4, conc-start"), SECOND.to_owned(), "[alpha-fp8-b200-vllm]", "", "does not lie on a shown curve"),
    ] {
        let problems = append(&first, &second, keys, extra).unwrap_err();
        assert!(problems.iter().any(|line| line.contains(expected)), "{expected}: {problems:#?}");
    }
    let mixed = format!(
        "{BASE}{}{}",
        item("[\"alpha*\"]", "  append-only: true\n"),
        item("[\"beta*\"]", "")
    );
    assert!(selection(&mixed, SelectOptions::default()).unwrap_err()[0].contains("cannot share a sweep"));
    let labelled = format!("{BASE}{}", item("[\"alpha*\"]", "  append-only: true\n"));
    let options = SelectOptions {
        evals_only: true,
        ..SelectOptions::default()
    };
    assert!(selection(&labelled, options).unwrap_err()[0].contains("no evaluations to extend"));
    assert!(selection(&labelled, SelectOptions::default()).unwrap_err()[0].contains("base revision is not known"));
}

fn repository(first: &str, second: &str) -> MapFiles {
    files(first, second)
        .with("runners/launch_b200-x.sh", "echo\n")
        .with("runners/launch_b200-y.sh", "launch_b200-x.sh")
        .with("runners/launch_gb200-x.sh", "echo\n")
        .with("benchmarks/single_node/fixed_seq_len/alpha_fp8_b200_vllm.sh", "echo\n")
        .with("benchmarks/single_node/fixed_seq_len/alpha_fp8_b200.sh", "echo\n")
        .with("benchmarks/single_node/fixed_seq_len/alpha_fp8_b200_mtp.sh", "echo\n")
        .with("benchmarks/multi_node/srt-slurm-recipes/beta.yaml", "a: b\n")
}

#[test]
fn entries_resolve_to_the_files_they_run() {
    let policy = policy();
    let files = repository(FIRST, SECOND);
    let configs = Configs::read(&files, &policy.layout, &policy.matrix);
    let found = |key: &str| {
        resolve(
            configs.masters.get(key).unwrap(),
            &configs.runners,
            &files,
            &policy.layout,
            &policy.matrix,
        )
    };
    let paths = |files: &std::collections::BTreeSet<UsedFile>| -> Vec<String> {
        files
            .iter()
            .map(|file| format!("{}{}", file.path, if file.exists { "" } else { " (missing)" }))
            .collect()
    };
    let single = found("alpha-fp8-b200-vllm");
    assert_eq!(single.sku.as_deref(), Some("b200"));
    // The tagged script wins over the untagged one; where only the untagged exists, it is used.
    assert_eq!(
        paths(&single.scripts),
        [
            "benchmarks/single_node/fixed_seq_len/alpha_fp8_b200_mtp.sh",
            "benchmarks/single_node/fixed_seq_len/alpha_fp8_b200_vllm.sh"
        ]
    );
    assert_eq!(
        paths(&single.launchers),
        ["runners/launch_b200-x.sh", "runners/launch_b200-y.sh"]
    );
    assert_eq!(single.uses("benchmarks/benchmark_lib.sh"), Some(FileRole::Support));
    let agentic = found("alpha-fp8-b200-vllm-agentic");
    assert_eq!(
        paths(&agentic.scripts),
        [
            "benchmarks/single_node/agentic/alpha_fp8_b200_vllm.sh (missing)",
            "benchmarks/single_node/agentic/alpha_fp8_b200_vllm_mtp.sh (missing)"
        ]
    );
    let multi = found("beta-fp4-gb200-dynamo-vllm");
    assert_eq!(multi.sku.as_deref(), Some("gb200"));
    let recipe = multi.recipes.first().unwrap();
    assert_eq!(
        (recipe.name.as_str(), recipe.selector.as_deref(), recipe.exists),
        ("recipes/beta.yaml", Some("mid[1]"), true)
    );
    assert_eq!(
        multi.uses("benchmarks/multi_node/srt-slurm-recipes/beta.yaml"),
        Some(FileRole::Recipe)
    );
    assert_eq!(multi.uses("benchmarks/multi_node/srt-slurm-recipes/other.yaml"), None);
}

#[test]
fn a_recipe_that_climbs_out_of_its_directory_is_not_looked_up() {
    let policy = policy();
    let text = SECOND.replace("recipes/beta.yaml", "recipes/../../secret.yaml");
    let files = repository(FIRST, &text).with("benchmarks/secret.yaml", "a: b\n");
    let configs = Configs::read(&files, &policy.layout, &policy.matrix);
    let entry = configs.masters.get("beta-fp4-gb200-dynamo-vllm").unwrap();
    let found = resolve(entry, &configs.runners, &files, &policy.layout, &policy.matrix);
    assert_eq!(found.recipes.first().unwrap().path, None);
}

#[test]
fn a_change_affects_entries_by_text_by_files_and_by_the_changelog() {
    let policy = policy();
    let first = FIRST
        .replacen(
            "  image: acme/engine:v1\n",
            "  # a comment\n  image: \"acme/engine:v1\"\n",
            1,
        )
        .replace("[2, 8]", "[2, 8, 9]");
    let second = SECOND.replace("beta-fp4-gb200-dynamo-vllm:", "beta-fp4-gb200-dynamo-vllm-new:");
    let (old_files, new_files) = (repository(FIRST, SECOND), repository(&first, &second));
    let read = |files: &MapFiles| Configs::read(files, &policy.layout, &policy.matrix);
    let (old, new) = (read(&old_files), read(&new_files));
    let run = |changed: &[&str], selected: &[SelectedEntry]| {
        let changed: Vec<String> = changed.iter().map(|path| (*path).to_owned()).collect();
        let base = Revision {
            configs: &old,
            files: &old_files,
        };
        let head = Revision {
            configs: &new,
            files: &new_files,
        };
        affected(base, head, &changed, selected, &policy.layout, &policy.matrix)
            .into_iter()
            .map(|entry| (entry.key.to_string(), entry.reasons))
            .collect::<Vec<_>>()
    };
    let changed = |fields: &[&str]| Reason::Changed {
        fields: fields.iter().map(|f| (*f).to_owned()).collect(),
    };
    let file = |role, path: &str| Reason::File {
        role,
        path: path.to_owned(),
    };
    assert_eq!(
        run(&[], &[]),
        [
            (
                "alpha-fp8-b200-vllm-agentic".to_owned(),
                vec![changed(&["scenarios.agentic-coding"])]
            ),
            ("beta-fp4-gb200-dynamo-vllm".to_owned(), vec![Reason::Removed]),
            ("beta-fp4-gb200-dynamo-vllm-new".to_owned(), vec![Reason::Added]),
        ]
    );
    let recipe = "benchmarks/multi_node/srt-slurm-recipes/beta.yaml";
    let selected = SelectedEntry {
        key: std::sync::Arc::from("alpha-fp8-b200-vllm"),
        item: 0,
        line: 9,
    };
    assert_eq!(
        run(&["runners/launch_b200-x.sh", recipe], &[selected]),
        [
            (
                "alpha-fp8-b200-vllm".to_owned(),
                vec![
                    file(FileRole::Launcher, "runners/launch_b200-x.sh"),
                    Reason::Changelog { line: 9 }
                ]
            ),
            (
                "alpha-fp8-b200-vllm-agentic".to_owned(),
                vec![
                    changed(&["scenarios.agentic-coding"]),
                    file(FileRole::Launcher, "runners/launch_b200-x.sh")
                ]
            ),
            (
                "beta-fp4-gb200-dynamo-vllm".to_owned(),
                vec![Reason::Removed, file(FileRole::Recipe, recipe)]
            ),
            (
                "beta-fp4-gb200-dynamo-vllm-new".to_owned(),
                vec![Reason::Added, file(FileRole::Recipe, recipe)]
            ),
        ]
    );
}

#[test]
fn a_script_that_is_deleted_counts_as_a_change_only_where_another_takes_its_place() {
    let policy = policy();
    let old_files = repository(FIRST, SECOND);
    let configs = Configs::read(&old_files, &policy.layout, &policy.matrix);
    let folder = "benchmarks/single_node/fixed_seq_len/";
    let run = |before: &[&str], after: &[&str]| {
        let files = |names: &[&str]| {
            let bare = repository(FIRST, SECOND).without(folder);
            names
                .iter()
                .fold(bare, |files, name| files.with(&format!("{folder}{name}"), "serve\n"))
        };
        let changed: Vec<String> = before
            .iter()
            .filter(|name| !after.contains(name))
            .map(|name| format!("{folder}{name}"))
            .collect();
        let (before, after) = (files(before), files(after));
        let base = Revision {
            configs: &configs,
            files: &before,
        };
        let head = Revision {
            configs: &configs,
            files: &after,
        };
        let found = affected(base, head, &changed, &[], &policy.layout, &policy.matrix);
        found.into_iter().flat_map(|entry| entry.reasons).collect::<Vec<_>>()
    };
    let (named, plain, draft) = ("alpha_fp8_b200_vllm.sh", "alpha_fp8_b200.sh", "alpha_fp8_b200_mtp.sh");
    let gone = |name: &str| {
        vec![Reason::ScriptGone {
            path: format!("{folder}{name}"),
        }]
    };
    let changed = |name: &str| {
        vec![Reason::File {
            role: FileRole::Script,
            path: format!("{folder}{name}"),
        }]
    };
    // One name after the other is looked for: the plain one is found only where the other is missing.
    assert_eq!(run(&[named, draft], &[draft]), gone(named));
    assert_eq!(run(&[plain, draft], &[draft]), gone(plain));
    assert_eq!(run(&[named, plain, draft], &[plain, draft]), changed(named));
    assert_eq!(run(&[named, draft], &[named]), gone(draft));
    assert_eq!(run(&[named, plain], &[named]), vec![]);
}

fn side<'r>(configs: &'r Configs, files: &'r MapFiles) -> Revision<'r> {
    Revision { configs, files }
}

#[test]
fn what_both_revisions_share_is_affected_as_if_each_were_read_by_itself() {
    let policy = policy();
    let paths = [
        "benchmarks/single_node/fixed_seq_len/alpha_fp8_b200_vllm.sh",
        "benchmarks/single_node/fixed_seq_len/alpha_fp8_b200.sh",
        "runners/launch_b200-x.sh",
        "benchmarks/multi_node/srt-slurm-recipes/beta.yaml",
    ];
    let tree = |mask: usize| {
        let bare = paths
            .iter()
            .fold(repository(FIRST, SECOND), |files, path| files.without(path));
        let there = paths.iter().enumerate().filter(|(bit, _)| mask >> bit & 1 == 1);
        there.fold(bare, |files, (_, path)| files.with(path, "serve\n"))
    };
    let read = |files: &MapFiles| Configs::read(files, &policy.layout, &policy.matrix);
    for (before, after) in (0..16).flat_map(|before| (0..16).map(move |after| (before, after))) {
        let changed = paths
            .iter()
            .enumerate()
            .filter(|(bit, _)| (before ^ after) >> bit & 1 == 1);
        let changed: Vec<String> = changed.map(|(_, path)| (*path).to_owned()).collect();
        let (old, new) = (tree(before), tree(after));
        let configs = read(&old);
        let run = |head: &Configs| {
            let (base, head) = (side(&configs, &old), side(head, &new));
            affected(base, head, &changed, &[], &policy.layout, &policy.matrix)
        };
        assert_eq!(run(&configs), run(&read(&new)), "{before:04b} then {after:04b}");
    }
}

#[test]
fn the_command_answers_in_every_form_and_refuses_in_the_same_form() {
    let policy = policy();
    let changelog = |files: MapFiles, text: &str| files.with(FILE, text);
    let base = changelog(repository(FIRST, SECOND), BASE);
    let head = changelog(
        repository(&FIRST.replace("[2, 8]", "[2, 9]"), SECOND),
        &format!("{BASE}{}", item("[alpha-fp8-b200-vllm-agentic]", "")),
    );
    let ask = |request, format| matrix_report(request, &policy.layout, &policy.matrix, format);
    let rows = MatrixRequest::Rows {
        head: &head,
        evals: EvalMode::Marked,
    };
    assert!(ask(rows, Format::Text).unwrap().starts_with("14 jobs\n"));
    let changed = ["runners/launch_gb200-x.sh".to_owned()];
    let difference = MatrixRequest::Difference {
        base: &base,
        head: &head,
        changed: &changed,
    };
    let text = ask(difference, Format::Text).unwrap();
    assert!(text.contains("1 added, 1 removed, 0 changed, in 1 entries\n"), "{text}");
    assert!(text.contains("3 entries are affected\n"), "{text}");
    assert!(
        text.contains("  alpha-fp8-b200-vllm-agentic: changed: scenarios.agentic-coding\n"),
        "{text}"
    );
    assert!(
        text.contains("  beta-fp4-gb200-dynamo-vllm: launcher runners/launch_gb200-x.sh\n"),
        "{text}"
    );
    let json: serde_json::Value = serde_json::from_str(&ask(difference, Format::Json).unwrap()).unwrap();
    assert_eq!(
        json["difference"]["added"][0]["row"]["exp-name"],
        "alpha_tp4_conc9_kvnone"
    );
    assert_eq!(json["affected"][0]["reasons"][0]["reason"], "changed");
    let selected = MatrixRequest::Changelog {
        base: &base,
        head: &head,
        options: SelectOptions::default(),
    };
    let text = ask(selected, Format::Text).unwrap();
    assert!(text.contains("item on line 7: alpha-fp8-b200-vllm-agentic\n"), "{text}");
    assert_eq!(ask(selected, Format::Csv).unwrap().lines().count(), 5);
    let broken = files(&FIRST.replacen("fp8\n", "5\n", 1), SECOND);
    let refused = MatrixRequest::Rows {
        head: &broken,
        evals: EvalMode::Marked,
    };
    assert!(
        ask(refused, Format::Text)
            .unwrap_err()
            .contains("precision: expected a string")
    );
    let json: serde_json::Value = serde_json::from_str(&ask(refused, Format::Json).unwrap_err()).unwrap();
    assert_eq!(json["problems"][0]["line"], 6);
    assert!(ask(refused, Format::Csv).unwrap_err().starts_with("file,line,column,"));
}
