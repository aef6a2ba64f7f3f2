//! The real repository, where a clone is at hand (`COUNTERSIGN_CORPUS`: a git directory): every recipe of its newest
//! commit is read, and the named properties of every server in it are known.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::process::Command;

use countersign_launch::Role;
use countersign_launch::recipe::{self, RecipeOptions};

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
