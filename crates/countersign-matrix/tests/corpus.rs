//! Against the real repository, where it is at hand. What is expected are the facts of the domain guide (3.5, 3.8, 3.9,
//! 4.2-4.4, 4.6), which were found by running the repository's own Python.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use common::policy;
use countersign_matrix::*;

/// The snapshot described by the domain guide.
const SNAPSHOT: &str = "843c6254ff69b567f772f6a5fd97675af3d04431";

fn shared() -> Option<PathBuf> {
    let folder = std::env::var_os("COUNTERSIGN_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    folder.join("inferencex/configs").is_dir().then_some(folder)
}

/// A git directory, read with the `git` program.
struct Git(PathBuf);

impl Git {
    fn open() -> Option<Self> {
        std::env::var_os("COUNTERSIGN_CORPUS").map(|path| Self(PathBuf::from(path)))
    }

    fn run(&self, args: &[&str]) -> Option<String> {
        let output = Command::new("git")
            .arg("--git-dir")
            .arg(&self.0)
            .args(args)
            .output()
            .ok()?;
        output.status.success().then(|| String::from_utf8(output.stdout).ok())?
    }

    fn tree(&self, revision: &str) -> GitTree<'_> {
        let list = self
            .run(&["ls-tree", "-r", "--name-only", revision])
            .unwrap_or_default();
        GitTree {
            git: self,
            revision: revision.to_owned(),
            paths: list.lines().map(str::to_owned).collect(),
        }
    }
}

struct GitTree<'g> {
    git: &'g Git,
    revision: String,
    paths: BTreeSet<String>,
}

impl Files for GitTree<'_> {
    fn read(&self, path: &str) -> Option<Arc<str>> {
        self.git
            .run(&["cat-file", "blob", &format!("{}:{path}", self.revision)])
            .map(Arc::from)
    }

    fn list(&self, prefix: &str) -> Vec<String> {
        self.paths
            .iter()
            .filter(|path| path.starts_with(prefix))
            .cloned()
            .collect()
    }

    fn exists(&self, path: &str) -> bool {
        self.paths.contains(path)
    }
}

fn check_counts(configs: &Configs) {
    let rules = policy().matrix;
    assert_eq!(configs.problems(), []);
    assert_eq!(configs.masters.duplicates, []);
    assert_eq!(configs.masters.entries.len(), 56 + 152);
    let rows = full_sweep(configs, &rules, EvalMode::Marked).unwrap();
    let mut lanes: BTreeMap<&str, usize> = BTreeMap::new();
    let mut entries: BTreeMap<&str, usize> = BTreeMap::new();
    for row in &rows {
        *lanes.entry(&lane(row, &rules).unwrap().name).or_default() += 1;
        *entries.entry(&row.head.key).or_default() += 1;
    }
    assert_eq!(
        lanes.into_iter().collect::<Vec<_>>(),
        [
            ("agentic", 482),
            ("multi-node 1k1k", 1),
            ("multi-node 8k1k", 383),
            ("multi-node agentic", 264),
            ("single-node 8k1k", 690)
        ]
    );
    assert_eq!(entries.values().max(), Some(&42));
    // Full names are not unique: these two entries share every one of theirs.
    let names = |key: &str| -> BTreeSet<String> {
        let rows = entry_rows(configs, &rules, configs.masters.get(key).unwrap()).unwrap();
        rows.iter().map(|row| job_name(row, &rules)).collect()
    };
    let twin = "dsv4-fp4-gb200-dynamo-vllm-mtp2";
    assert!(!names(twin).is_disjoint(&names(&format!("{twin}-nosynthetic"))));
    let without_eval: BTreeSet<&str> = configs
        .masters
        .entries
        .iter()
        .filter(|entry| {
            generate(
                configs,
                &rules,
                &[entry],
                Mode::TestConfig,
                Scenarios::ALL,
                EvalMode::EvalsOnly,
            )
            .unwrap()
            .is_empty()
        })
        .map(|entry| &*entry.head.key)
        .collect();
    assert_eq!(
        without_eval,
        BTreeSet::from([
            "dsv4-fp4-gb300-dynamo-vllm-agentic-mtp-agg",
            "dsv4-fp4-gb200-dynamo-vllm-agentic-mtp2-agg",
            "glm5.2-fp4-gb200-dynamo-sglang-agentic-disagg",
            "glm5.2-fp4-gb200-dynamo-sglang-agentic-mtp-agg",
            "glm5.2-fp4-gb300-dynamo-sglang-agentic-agg",
            "glm5.2-fp4-gb300-dynamo-trt-agentic-agg-mtp",
            "kimik3-fp4-gb300-dynamo-vllm-agentic-dspark-mooncake-dcp8-agg",
            "glm5.1-fp8-b200-tilert",
        ])
    );
}

#[test]
fn the_snapshot_has_the_points_of_the_guide() {
    let Some(shared) = shared() else {
        eprintln!("skipped: no COUNTERSIGN_SHARED");
        return;
    };
    let policy = policy();
    let mut files = MapFiles::new();
    for path in policy.layout.masters.iter().chain([&policy.layout.runners]) {
        let text = std::fs::read_to_string(shared.join("inferencex").join(path)).unwrap();
        files = files.with(path, text);
    }
    check_counts(&Configs::read(&files, &policy.layout, &policy.matrix));
}

#[test]
fn entries_of_the_snapshot_resolve_as_in_the_guide() {
    let Some(git) = Git::open() else {
        eprintln!("skipped: no COUNTERSIGN_CORPUS");
        return;
    };
    let policy = policy();
    let tree = git.tree(SNAPSHOT);
    let configs = Configs::read(&tree, &policy.layout, &policy.matrix);
    check_counts(&configs);
    let (mut scripts, mut missing, mut recipes) = (BTreeSet::new(), BTreeSet::new(), BTreeMap::new());
    for entry in &configs.masters.entries {
        let found = resolve(entry, &configs.runners, &tree, &policy.layout, &policy.matrix);
        assert!(found.sku.is_some(), "{}", entry.head.key);
        assert!(found.launchers.iter().any(|file| file.exists), "{}", entry.head.key);
        assert!(
            !found.scripts.is_empty() || !found.recipes.is_empty(),
            "{}",
            entry.head.key
        );
        for script in found.scripts {
            if script.exists {
                scripts.insert(script.path);
            } else {
                missing.insert(entry.head.key.to_string());
            }
        }
        for recipe in found.recipes.into_iter().filter(|recipe| !recipe.eval_only) {
            let bare = !recipe.name.contains('/');
            recipes.insert(recipe.name, (bare, recipe.exists));
        }
    }
    assert_eq!(
        missing.into_iter().collect::<Vec<_>>(),
        ["qwen3.5-fp8-h100-sglang-agentic"]
    );
    // The guide counts 111 scripts, the missing one among them.
    assert_eq!(
        scripts
            .iter()
            .filter(|path| path.starts_with("benchmarks/single_node/"))
            .count(),
        110
    );
    // The guide counts 242 under the recipes' directory; the two bare names lie in another one.
    let here = |bare| recipes.values().filter(|found| **found == (bare, true)).count();
    assert_eq!((recipes.len(), here(false), here(true)), (447, 242, 2));
}

#[test]
fn the_one_real_append_only_sweep_selects_four_points_and_no_evaluation() {
    let Some(git) = Git::open() else {
        eprintln!("skipped: no COUNTERSIGN_CORPUS");
        return;
    };
    let policy = policy();
    let log = git.run(&["log", "--first-parent", "--format=%H %s", SNAPSHOT]).unwrap();
    let line = log.lines().find(|line| line.ends_with("(#2647)")).unwrap();
    let head = line.split(' ').next().unwrap();
    let (base, head) = (git.tree(&format!("{head}^")), git.tree(head));
    let file = &policy.layout.changelog;
    let items = added_items(file, &base.read(file).unwrap(), &head.read(file).unwrap()).unwrap();
    let read = |tree: &GitTree<'_>| Configs::read(tree, &policy.layout, &policy.matrix);
    let (base, head) = (read(&base), read(&head));
    let found = select(
        file,
        &items,
        &head,
        Some(&base),
        &policy.matrix,
        SelectOptions::default(),
    )
    .unwrap();
    assert!(found.append_only);
    assert_eq!((found.throughput.len(), found.evals.len()), (4, 0));
    let mut concs: Vec<i64> = found
        .throughput
        .iter()
        .flat_map(|row| row.conc.values().to_vec())
        .collect();
    concs.sort_unstable();
    assert_eq!(concs, [1, 2, 4, 6]);
}

#[test]
fn added_lines_are_those_of_git_over_the_whole_history_of_the_changelog() {
    let Some(git) = Git::open() else {
        eprintln!("skipped: no COUNTERSIGN_CORPUS");
        return;
    };
    let file = policy().layout.changelog;
    let log = git
        .run(&["log", "--first-parent", "--format=%H", SNAPSHOT, "--", &file])
        .unwrap();
    let mut compared = 0;
    for commit in log.lines() {
        let blob = |revision: &str| git.run(&["cat-file", "blob", &format!("{revision}:{file}")]);
        let (Some(old), Some(new)) = (blob(&format!("{commit}^")), blob(commit)) else {
            continue;
        };
        let diff = git.run(&["diff", &format!("{commit}^"), commit, "--", &file]).unwrap();
        let body = diff
            .lines()
            .skip_while(|line| !line.starts_with("@@"))
            .filter(|line| !line.starts_with("@@"));
        let (mut deleted, mut added) = (Vec::new(), Vec::new());
        for line in body {
            match line.as_bytes().first() {
                Some(b'-') => deleted.push(&line[1..]),
                Some(b'+') => added.push(&line[1..]),
                _ => {}
            }
        }
        let (old, new): (Vec<&str>, Vec<&str>) =
            (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
        let Some(found) = line_diff(&old, &new) else {
            assert!(deleted.len() > 100, "{commit}");
            continue;
        };
        let texts = |lines: &[&str], at: &[usize]| -> Vec<String> {
            at.iter()
                .map(|index| lines[*index].trim_end_matches('\n').to_owned())
                .collect()
        };
        // Where content is deleted nothing is selected, and the alignment does not matter.
        if deleted.iter().all(|line| line.trim().is_empty()) {
            assert_eq!(texts(&new, &found.added), added, "{commit}");
            assert_eq!(texts(&old, &found.deleted), deleted, "{commit}");
            compared += 1;
        } else {
            assert!(
                found.deleted.iter().any(|index| !old[*index].trim().is_empty()),
                "{commit}"
            );
        }
    }
    assert!(compared > 500, "only {compared} commits could be compared");
}
