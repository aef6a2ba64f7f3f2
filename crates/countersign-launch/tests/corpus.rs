//! The real repository, where a clone is at hand (`COUNTERSIGN_CORPUS`: a git directory): every recipe of its newest
//! commit is read, and the named properties of every server in it are known.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::Arc;
use std::sync::Mutex;

use countersign_launch::Role;
use countersign_launch::point::{self, DeriveRules};
use countersign_launch::recipe::{self, RecipeOptions};
use countersign_matrix as matrix;

fn git(dir: &str, args: &[&str]) -> Option<String> {
    let out = Command::new("git").arg("--git-dir").arg(dir).args(args).output().ok()?;
    out.status
        .success()
        .then(|| String::from_utf8_lossy(&out.stdout).into_owned())
}

#[test]
fn every_recipe_in_the_repository_is_known() {
    let Ok(dir) = std::env::var("COUNTERSIGN_CORPUS") else {
        eprintln!("skipped: COUNTERSIGN_CORPUS names no git directory");
        return;
    };
    let Some(list) = git(
        &dir,
        &[
            "grep",
            "-l",
            "-E",
            "^ *(vllm|sglang|trtllm)_config:",
            "HEAD",
            "--",
            "*.yaml",
        ],
    ) else {
        eprintln!("skipped: {dir} cannot be searched with git");
        return;
    };
    let (mut read, mut known, mut servers) = (0usize, 0usize, 0usize);
    let mut problems = Vec::new();
    for line in list.lines() {
        let path = line.strip_prefix("HEAD:").unwrap_or(line);
        let text = git(&dir, &["show", line]).unwrap();
        let mut selectors: Vec<Option<String>> = recipe::variants(&text).into_iter().map(Some).collect();
        if selectors.is_empty() {
            selectors.push(None);
        }
        for selector in selectors {
            let options = RecipeOptions {
                selector: selector.as_deref(),
                injection: None,
            };
            match recipe::read(path, &text, &options) {
                Ok(recipe) => {
                    read += 1;
                    for launch in recipe.launches.iter().filter(|l| l.role != Role::Frontend) {
                        servers += 1;
                        let p = &launch.parallel;
                        let spec = launch
                            .spec
                            .as_ref()
                            .is_none_or(|s| s.method.is_known() && s.draft_tokens.is_known());
                        let all = launch.model.is_known()
                            && [&p.tp, &p.pp, &p.dp, &p.ep].iter().all(|f| f.is_known())
                            && launch.quantisation.is_known()
                            && launch.kv_cache_dtype.is_known()
                            && spec;
                        known += usize::from(all);
                    }
                }
                Err(error) => problems.push(error.to_string()),
            }
        }
    }
    assert!(read > 0, "no recipe found");
    assert!(problems.len() * 100 <= read, "{problems:#?}");
    assert!(known * 100 >= servers * 99, "{known} of {servers} known");
}

/// Files of one commit.
struct AtCommit {
    dir: String,
    commit: String,
    paths: BTreeSet<String>,
    read: Mutex<BTreeMap<String, Option<Arc<str>>>>,
}

impl AtCommit {
    fn new(dir: &str, commit: &str) -> Option<Self> {
        let list = git(dir, &["ls-tree", "-r", "--name-only", commit])?;
        Some(Self {
            dir: dir.to_owned(),
            commit: commit.to_owned(),
            paths: list.lines().map(str::to_owned).collect(),
            read: Mutex::default(),
        })
    }
}

impl matrix::Files for AtCommit {
    fn read(&self, path: &str) -> Option<Arc<str>> {
        if !self.paths.contains(path) {
            return None;
        }
        let mut read = self.read.lock().unwrap();
        let text = read
            .entry(path.to_owned())
            .or_insert_with(|| git(&self.dir, &["show", &format!("{}:{path}", self.commit)]).map(Arc::from));
        text.clone()
    }

    fn list(&self, prefix: &str) -> Vec<String> {
        let within = self.paths.iter().filter(|path| path.starts_with(prefix));
        within.cloned().collect()
    }

    fn exists(&self, path: &str) -> bool {
        self.paths.contains(path)
    }
}

#[derive(serde::Deserialize)]
struct Policy {
    matrix: matrix::MatrixRules,
    layout: matrix::Layout,
    derive: DeriveRules,
}

/// The newest commit and older ones since the configs lie where they lie.
const COMMITS: &[&str] = &["HEAD", "HEAD~60", "HEAD~120", "HEAD~180", "HEAD~240"];

#[test]
fn points_of_the_repository_start_together_what_each_starts_alone() {
    let Ok(dir) = std::env::var("COUNTERSIGN_CORPUS") else {
        eprintln!("skipped: COUNTERSIGN_CORPUS names no git directory");
        return;
    };
    let text = include_str!("../../../config/policies/inferencex-common.yaml");
    let policy: Policy = countersign_yaml::from_str(text, &countersign_yaml::Limits::default()).unwrap();
    let mut compared = 0;
    for commit in COMMITS {
        let Some(files) = AtCommit::new(&dir, commit) else {
            eprintln!("skipped: {dir} has no commit {commit}");
            continue;
        };
        let configs = matrix::Configs::read(&files, &policy.layout, &policy.matrix);
        let cache = countersign_shell::ScriptCache::default();
        let tree = point::Tree {
            files: &files,
            runners: &configs.runners,
            layout: &policy.layout,
            matrix: &policy.matrix,
            rules: &policy.derive,
            scripts: &cache,
        };
        for entry in &configs.masters.entries {
            let Ok(rows) = matrix::entry_rows(&configs, &policy.matrix, entry) else {
                continue;
            };
            let together = point::derive_all(&tree, entry, &rows);
            for (row, together) in rows.iter().zip(&together) {
                let alone = point::derive(&tree, entry, row);
                if &alone != together {
                    let changes = countersign_launch::diff_launches(&alone.launches, &together.launches);
                    panic!("{} at {commit}, {:?}: {changes:#?}", entry.head.key, row.conc);
                }
                compared += 1;
            }
        }
    }
    assert!(compared > 0, "no point found");
    eprintln!("{compared} points are the same");
}
