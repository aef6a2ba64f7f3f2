//! Where the real data is, and the vocabulary of the first repository, as a policy would give it.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "each test file uses a part, and may stop and speak"
)]

use std::path::PathBuf;

use countersign_records::changelog::ChangelogRules;
use countersign_records::models::{ModelsRules, Phrases, ScenarioRule, TableHeaders};

/// The shared data, or `None` with a line that says so.
pub(crate) fn shared(path: &str) -> Option<PathBuf> {
    let root = std::env::var_os("COUNTERSIGN_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let full = root.join(path);
    if full.exists() {
        return Some(full);
    }
    eprintln!("skipped: {path} is not among the shared data (set COUNTERSIGN_SHARED)");
    None
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|w| (*w).to_owned()).collect()
}

pub(crate) fn models_rules() -> ModelsRules {
    let scenario = |id: &str, names: &[&str], lengths| ScenarioRule {
        id: id.into(),
        words: words(names),
        lengths,
    };
    ModelsRules {
        scenarios: vec![
            scenario("agentic", &["agentic coding"], None),
            scenario("8k1k", &["single-turn 8k1k"], Some((8192, 1024))),
            scenario("1k1k", &["single-turn 1k1k"], Some((1024, 1024))),
            scenario("1k8k", &["single-turn 1k8k"], Some((1024, 8192))),
        ],
        precisions: words(&["bf16", "fp8", "fp4", "int4"]),
        spec_words: words(&["mtp", "eagle3", "dspark", "spec-decode"]),
        negation: "non-".into(),
        tables: TableHeaders {
            model: words(&["Model"]),
            deprecated: words(&["Deprecated"]),
            remains: words(&["Remains"]),
            deprecated_arm: words(&["Deprecated arm"]),
            scenario: words(&["Scenario"]),
            lengths: words(&["ISL/OSL"]),
            status: words(&["Status"]),
            prefix: words(&["Prefix"]),
            date_added: words(&["Date added"]),
            active: words(&["Active scenarios"]),
            retired: words(&["Deprecated scenarios"]),
            engines: words(&["Primary engines", "Primary native/upstream engines"]),
            drafts: words(&["Agreed draft model(s) (PoR)"]),
        },
        phrases: Phrases {
            last_day: words(&["is the last day"]),
            until: words(&["until", "retired after", "deprecated after"]),
            since: words(&["since", "from"]),
            ended: words(&["fully retired", "retired", "removed"]),
            day_zero: words(&["from day 0"]),
            not_enacted: words(&["not yet enacted", "still runs", "pending"]),
            only: words(&["only", "limited to"]),
            nothing: words(&["none", "nothing", "—", "-"]),
            active: words(&["active"]),
            deprecated: words(&["deprecated"]),
            arm_unpublished: words(&["not run or published"]),
            ordinals: words(&["first table", "second table", "third table"]),
            filler: words(&[
                "scenario",
                "scenarios",
                "arm",
                "recipes",
                "both",
                "all",
                "in every scenario",
            ]),
        },
    }
}

pub(crate) const LINK: &str = "https://github.com/made/up/pull/";

pub(crate) fn changelog_rules() -> ChangelogRules {
    changelog_rules_of(LINK)
}

pub(crate) fn changelog_rules_of(link: &str) -> ChangelogRules {
    ChangelogRules {
        link_prefix: link.into(),
        placeholders: words(&["XXX"]),
        scenario_types: words(&["fixed-seq-len", "agentic-coding"]),
    }
}

/// The canonical link of the clone's repository.
pub(crate) fn real_link() -> String {
    std::env::var("COUNTERSIGN_LINK").unwrap_or_else(|_| "https://github.com/SemiAnalysisAI/InferenceX/pull/".into())
}

/// The clone whose history is read, or `None` with a line that says so.
pub(crate) fn corpus() -> Option<PathBuf> {
    let found = std::env::var_os("COUNTERSIGN_CORPUS")
        .map(PathBuf::from)
        .filter(|p| p.exists());
    if found.is_none() {
        eprintln!("skipped: COUNTERSIGN_CORPUS names no clone");
    }
    found
}

/// What `git` prints.
pub(crate) fn git(dir: &std::path::Path, args: &[&str]) -> Option<Vec<u8>> {
    let out = std::process::Command::new("git")
        .arg("--git-dir")
        .arg(dir)
        .args(args)
        .output()
        .unwrap();
    out.status.success().then_some(out.stdout)
}
