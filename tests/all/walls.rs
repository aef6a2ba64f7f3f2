//! The walls between crates, the size of files, and what only the policy may know.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Package name → names of the packages it is built from, at any depth; without those for tests.
fn closures() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    let name = |id: &str| {
        metadata["packages"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|package| package["id"] == id)
            .and_then(|package| package["name"].as_str())
            .unwrap_or_default()
            .to_owned()
    };
    let mut direct: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for node in metadata["resolve"]["nodes"].as_array().into_iter().flatten() {
        let normal = node["deps"].as_array().into_iter().flatten().filter(|dependency| {
            dependency["dep_kinds"]
                .as_array()
                .is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
        });
        direct.insert(
            node["id"].as_str().unwrap_or_default().to_owned(),
            normal
                .filter_map(|dependency| Some(dependency["pkg"].as_str()?.to_owned()))
                .collect(),
        );
    }
    let members: BTreeSet<&str> = metadata["workspace_members"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    members
        .into_iter()
        .map(|member| {
            let mut seen = BTreeSet::new();
            let mut open = vec![member.to_owned()];
            while let Some(id) = open.pop() {
                for next in direct.get(&id).into_iter().flatten() {
                    if seen.insert(next.clone()) {
                        open.push(next.clone());
                    }
                }
            }
            (name(member), seen.iter().map(|id| name(id)).collect())
        })
        .collect()
}

#[test]
fn pure_crates_know_no_io_and_each_outside_has_one_door() {
    const PURE: &[&str] = &[
        "countersign-core",
        "countersign-yaml",
        "countersign-codeowners",
        "countersign-signoff",
        "countersign-records",
        "countersign-matrix",
        "countersign-shell",
        "countersign-launch",
        "countersign-policy",
        "countersign-checks",
    ];
    const OUTSIDE: &[&str] = &[
        "tokio",
        "octocrab",
        "sqlx",
        "reqwest",
        "hyper",
        "axum",
        "countersign-store",
        "countersign-github",
        "countersign-server",
        "countersign-sim",
    ];
    let closures = closures();
    for pure in PURE {
        let closure = closures.get(*pure).unwrap_or_else(|| panic!("{pure} is no member"));
        for outside in OUTSIDE {
            assert!(!closure.contains(*outside), "{pure} is built from {outside}");
        }
    }
    // Whoever needs an outside goes through the crate that knows it.
    let owners = |library: &str| -> Vec<String> {
        all_manifests()
            .into_iter()
            .filter(|(_, text)| {
                text.lines()
                    .any(|line| line.starts_with(&format!("{library}.")) || line.starts_with(&format!("{library} =")))
            })
            .map(|(name, _)| name)
            .collect()
    };
    assert_eq!(owners("octocrab"), ["countersign-github"]);
    assert_eq!(owners("sqlx"), ["countersign-store"]);
}

/// The manifests of the workspace's packages, by folder.
fn all_manifests() -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = std::fs::read_dir(root().join("crates"))
        .expect("a folder")
        .filter_map(|entry| {
            let path = entry.expect("an entry").path();
            let text = std::fs::read_to_string(path.join("Cargo.toml")).ok()?;
            Some((path.file_name()?.to_str()?.to_owned(), text))
        })
        .collect();
    found.sort();
    found
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            if path
                .file_name()
                .is_some_and(|name| name != "target" && name != "node_modules")
            {
                sources(&path, found);
            }
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

fn all_sources() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    sources(&root().join("crates"), &mut found);
    sources(&root().join("tests"), &mut found);
    found
        .into_iter()
        .map(|path| (path.clone(), std::fs::read_to_string(path).expect("text")))
        .collect()
}

#[test]
fn files_are_short_and_say_what_they_are_for() {
    for (path, text) in all_sources() {
        let lines = text.lines().count();
        assert!(lines <= 650, "{} has {lines} lines", path.display());
        assert!(
            text.starts_with("//!") || text.starts_with("#!["),
            "{} does not begin by saying its purpose",
            path.display()
        );
    }
}

#[test]
fn only_the_policy_knows_the_repository_that_is_judged() {
    for (path, text) in all_sources() {
        if path.ends_with("walls.rs") {
            continue;
        }
        // Tests may look for the real files in the folder beside the repository; code may not know the name.
        let code = !path
            .components()
            .any(|part| part.as_os_str() == "tests" || part.as_os_str() == "examples");
        for word in ["SemiAnalysisAI", "InferenceX"] {
            assert!(!(code && text.contains(word)), "{} knows {word}", path.display());
        }
    }
}
