//! The checks on launches and scripts on the real repository, where a clone is at hand (`COUNTERSIGN_CORPUS`: a git
//! directory): what the domain guide's sections 9, 10, 12 and 13 say of named commits comes out.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use countersign_checks::{Context, checks};
use countersign_core::{CheckReport, OutcomeKind};

mod support;

use support::{Clone, Entries, States, entries, evidence, git};

/// The snapshot that the guide describes.
const SNAPSHOT: &str = "843c6254ff69b567f772f6a5fd97675af3d04431";

/// Commits that do not exist, for states that are put together here.
const NOWHERE: &str = "00000000000000000000000000000000000000aa";
const NOWHERE_ELSE: &str = "00000000000000000000000000000000000000bb";

fn clone() -> Option<Clone> {
    support::clone("inferencex-2026-08-22", &[SNAPSHOT])
}

impl Clone {
    fn judge(
        &self,
        slug: &str,
        base: (&str, Entries),
        head: (&str, Entries),
        number: u64,
        signoff: &str,
    ) -> CheckReport {
        let snapshot = entries(&self.dir, SNAPSHOT).unwrap();
        let states = States {
            trusted: (SNAPSHOT.to_owned(), snapshot),
            base: (base.0.to_owned(), base.1),
            head: (head.0.to_owned(), head.1),
        };
        // The configs lay elsewhere until July 2026 (domain guide 2). What a recipe names for setting up is found through
        // them; the older ones of them cannot be read by the snapshot's rules, which leaves other checks unavailable.
        let mut policy = self.policy.clone();
        let elsewhere = !states.head.1.keys().any(|path| path.starts_with("configs/"));
        if elsewhere && slug == "engine-patch" {
            let old = |path: &mut String| *path = format!(".github/{path}");
            policy.policy.layout.masters.iter_mut().for_each(old);
            old(&mut policy.policy.layout.runners);
            policy.policy.evidence.judged.push(".github/configs/".to_owned());
        }
        let evidence = evidence(&policy, &self.objects, number, &states, 1_787_000_000, signoff).unwrap();
        checks::find(slug).unwrap().run(&Context::new(&evidence, &policy))
    }

    /// A commit against its first parent.
    fn commit(&self, slug: &str, commit: &str) -> CheckReport {
        let full = |rev: &str| git(&self.dir, &["rev-parse", rev]).unwrap().trim().to_owned();
        let head = full(commit);
        // Of a branch all that it changes counts, of a commit of the main branch what it changes.
        let main = git(&self.dir, &["merge-base", SNAPSHOT, &head])
            .unwrap()
            .trim()
            .to_owned();
        let base = if main == head {
            full(&format!("{commit}^"))
        } else {
            main
        };
        let (old, new) = (entries(&self.dir, &base).unwrap(), entries(&self.dir, &head).unwrap());
        self.judge(slug, (&base, old), (&head, new), 1, "")
    }

    /// All scripts of the snapshot as if they were new, without entries that run them.
    fn scripts_alone(&self, slug: &str) -> CheckReport {
        let mut head: BTreeMap<_, _> = (*entries(&self.dir, SNAPSHOT).unwrap()).clone();
        for master in &self.policy.policy.layout.masters {
            head.remove(master);
        }
        let rules = self.policy.policy.scripts.as_ref().unwrap();
        let script = |path: &str| {
            rules
                .shell_endings
                .iter()
                .chain(&rules.python_endings)
                .any(|ending| path.ends_with(ending.as_str()))
        };
        let mut base = head.clone();
        base.retain(|path, _| !script(path));
        self.judge(slug, (NOWHERE, Arc::new(base)), (NOWHERE_ELSE, Arc::new(head)), 1, "")
    }
}

fn lines(report: &CheckReport) -> Vec<String> {
    report
        .outcome
        .findings()
        .iter()
        .map(|finding| {
            let place = finding.location.as_ref().map(ToString::to_string).unwrap_or_default();
            format!("{} [{place}] {}", finding.code, finding.message.plain())
        })
        .collect()
}

/// Paths that findings with a code point to.
fn paths<'r>(report: &'r CheckReport, code: &str) -> BTreeSet<&'r str> {
    let findings = report.outcome.findings().iter().filter(|finding| finding.code == code);
    findings
        .filter_map(|finding| Some(finding.location.as_ref()?.path.as_str()))
        .collect()
}

/// Domain guide 12.1: the commit, the file that patches, the finding.
const PATCHES: &[(&str, &str, &str)] = &[
    (
        "39324e44",
        "benchmarks/single_node/agentic/apply_k3_container_patches.sh",
        "no-waiver",
    ),
    (
        "ed5e88bf",
        "benchmarks/single_node/agentic/qwen3.5_fp8_h100_mtp.sh",
        "no-waiver",
    ),
    (
        "088bc02d",
        "benchmarks/single_node/agentic/qwen3.5_fp8_h200_mtp.sh",
        "no-waiver",
    ),
    (
        "bb000558",
        "benchmarks/multi_node/amd_utils/server_vllm.sh",
        "no-waiver",
    ),
    (
        "a8661543",
        "benchmarks/single_node/agentic/dsv4_fp4_mi355x_vllm_mtp.sh",
        "no-waiver",
    ),
    (
        "cbc9f656",
        "benchmarks/single_node/agentic/dsv4_fp4_mi355x_vllm.sh",
        "no-waiver",
    ),
    (
        "cf3ad37f",
        "benchmarks/single_node/fixed_seq_len/minimaxm3_fp8_mi355x_mtp.sh",
        "no-waiver",
    ),
    (
        "f274a814",
        "benchmarks/single_node/fixed_seq_len/minimaxm3_fp8_mi300x_mtp.sh",
        "no-waiver",
    ),
    (
        "41c27c5b",
        "benchmarks/single_node/fixed_seq_len/minimaxm3_fp8_mi325x_mtp.sh",
        "no-waiver",
    ),
    (
        "8eaed569",
        "benchmarks/single_node/fixed_seq_len/minimaxm3_fp8_b200_mtp.sh",
        "no-waiver",
    ),
    (
        "a9ddd5fd",
        "benchmarks/single_node/fixed_seq_len/minimaxm3_fp8_b200.sh",
        "no-waiver",
    ),
    (
        "e33c6f6b",
        "benchmarks/single_node/fixed_seq_len/minimaxm3_fp8_b300.sh",
        "no-waiver",
    ),
    (
        "8826caf2",
        "benchmarks/single_node/fixed_seq_len/minimaxm3_fp8_b300_mtp.sh",
        "no-waiver",
    ),
    (
        "c258cdd9",
        "benchmarks/multi_node/srt-slurm-recipes/configs/minimax-m3-vllm-fixes.sh",
        "no-waiver",
    ),
    (
        "e72ade4e",
        "benchmarks/multi_node/srt-slurm-recipes/configs/minimax-m3-gb300-vllm-fixes.sh",
        "no-waiver",
    ),
    (
        "e486985a",
        "benchmarks/multi_node/srt-slurm-recipes/configs/minimax-m3-gb200-vllm-fixes.sh",
        "no-waiver",
    ),
    ("466be35d", "benchmarks/multi_node/amd_utils/job.slurm", "no-waiver"),
    (
        "0bd3fa41",
        "benchmarks/multi_node/amd_utils/job_agentic.slurm",
        "no-waiver",
    ),
    (
        "0bd3fa41",
        "benchmarks/multi_node/amd_utils/setup_deps_agentic.sh",
        "no-waiver",
    ),
    ("4d9fe4af", "benchmarks/single_node/dsv4_fp4_b300_vllm.sh", "no-waiver"),
    ("0eafa6e1", "benchmarks/dsr1_fp4_b200_docker.sh", "no-waiver"),
    ("c88a4c3d", "benchmarks/dsr1_fp4_b200_slurm.sh", "no-waiver"),
    ("e28c038f", "benchmarks/gptoss_fp4_h200_trt.sh", "no-waiver"),
    (
        "a1adf12b",
        "benchmarks/single_node/dsv4_fp4_mi355x_atom.sh",
        "no-waiver",
    ),
    (
        "38d2da7d",
        "benchmarks/single_node/dsv4_fp4_mi355x_atom.sh",
        "no-waiver",
    ),
    (
        "18f85edb",
        "benchmarks/single_node/dsv4_fp8_mi355x_vllm.sh",
        "no-waiver",
    ),
    (
        "f93f91df",
        "benchmarks/single_node/dsv4_fp4_mi355x_sglang.sh",
        "no-waiver",
    ),
    (
        "1b234994f",
        "benchmarks/single_node/agentic/kimik2.5_fp4_mi355x.sh",
        "no-waiver",
    ),
    (
        "077d4832",
        "benchmarks/multi_node/tilert_utils/setup_deps.sh",
        "no-waiver",
    ),
    // Rejected: only the name of a script from elsewhere changed.
    (
        "2b5c030",
        "benchmarks/multi_node/srt-slurm-recipes/vllm/deepseek-v4/8k1k/disagg-gb200-low-latency.yaml",
        "setup-script",
    ),
    // Rejected: the patch of a pull request that had no waiver yet.
    (
        "0baf642",
        "benchmarks/single_node/agentic/apply_k3_container_patches.sh",
        "no-waiver",
    ),
];

fn show(name: &str, report: &CheckReport) {
    eprintln!("== {name}: {:?} {}", report.outcome.kind(), report.reason.plain());
    for line in lines(report) {
        eprintln!("   {line}");
    }
    for note in &report.notes {
        eprintln!("   note {}", note.plain());
    }
}

/// The key that a finding begins with.
fn keys(report: &CheckReport, code: &str) -> BTreeSet<String> {
    let findings = report.outcome.findings().iter().filter(|finding| finding.code == code);
    findings
        .filter_map(|finding| Some(finding.message.plain().split_whitespace().next()?.to_owned()))
        .collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Domain guide 12.1 and 12.2 at the snapshot: what patches there is found, everything else among all scripts passes.
#[test]
fn what_only_looks_like_a_patch_passes() {
    let Some(clone) = clone() else { return };
    let report = clone.scripts_alone("engine-patch");
    show("scripts of the snapshot", &report);
    let found: BTreeSet<String> = paths(&report, "no-waiver").into_iter().map(str::to_owned).collect();
    let agentic = "benchmarks/single_node/agentic";
    let wanted = [
        format!("{agentic}/apply_k3_container_patches.sh"),
        format!("{agentic}/qwen3.5_fp8_h100_mtp.sh"),
        format!("{agentic}/qwen3.5_fp8_h200_mtp.sh"),
        format!("{agentic}/dsv4_fp4_mi355x_vllm_mtp.sh"),
        "benchmarks/multi_node/amd_utils/server_vllm.sh".to_owned(),
        "benchmarks/multi_node/tilert_utils/setup_deps.sh".to_owned(),
    ];
    assert_eq!(found, wanted.into_iter().collect(), "{:#?}", lines(&report));
    assert!(
        report
            .outcome
            .findings()
            .iter()
            .all(|finding| finding.code == "no-waiver"),
        "{:#?}",
        lines(&report)
    );
}

#[test]
fn every_patch_of_the_guide_is_found_at_its_commit() {
    let Some(clone) = clone() else { return };
    let mut missed = Vec::new();
    for (commit, path, code) in PATCHES {
        let report = clone.commit("engine-patch", commit);
        if !paths(&report, code).contains(*path) {
            show(commit, &report);
            missed.push((commit, path));
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn overrides_of_the_guide() {
    let Some(clone) = clone() else { return };
    let fixed = "benchmarks/single_node/fixed_seq_len";
    // Domain guide 13: the commit, the files that cut computation.
    let cuts: [(&str, &[&str]); 6] = [
        ("60bf726a", &["dsv4_fp4_mi355x_atom.sh"]),
        ("4c021b13", &["../../multi_node/amd_utils/server_atom.sh"]),
        (
            "54f9e13c",
            &["minimaxm3_fp4_mi355x_atom.sh", "minimaxm3_fp4_mi355x_atom_mtp.sh"],
        ),
        (
            "a5ddb703",
            &["minimaxm3_fp8_mi355x_atom.sh", "minimaxm3_fp8_mi355x_atom_mtp.sh"],
        ),
        ("73bd8e20", &["../agentic/minimaxm3_fp4_mi355x_mtp.sh"]),
        // Only a comment says that it is not passed.
        ("b38bf415", &[]),
    ];
    for (commit, files) in cuts {
        let report = clone.commit("architecture", commit);
        let wanted: BTreeSet<String> = files
            .iter()
            .map(|file| match file.strip_prefix("../../") {
                Some(rest) => format!("benchmarks/{rest}"),
                None => match file.strip_prefix("../") {
                    Some(rest) => format!("benchmarks/single_node/{rest}"),
                    None => format!("{fixed}/{file}"),
                },
            })
            .collect();
        let found: BTreeSet<String> = paths(&report, "cuts-computation")
            .into_iter()
            .map(str::to_owned)
            .collect();
        assert_eq!(found, wanted, "{commit}: {:?}", lines(&report));
        let kind = if wanted.is_empty() {
            OutcomeKind::Pass
        } else {
            OutcomeKind::Fail
        };
        assert_eq!(report.outcome.kind(), kind, "{commit}: {:?}", lines(&report));
    }
    // What is rewritten there is a model's description, and of it only the name of its type (sections 12.2 and 13).
    for commit in ["32a1de46", "f93f91df"] {
        let report = clone.commit("architecture", commit);
        assert!(paths(&report, "model-edited").is_empty(), "{:?}", lines(&report));
        let told = |note: &countersign_core::Text| note.plain().contains("model_type");
        assert!(report.notes.iter().any(told), "{:?}", report.notes);
    }
}

/// Domain guide 9.2 and 10.4. All points of the snapshot: minutes without optimisation.
#[test]
fn golden_lengths_and_chat_templates_of_the_snapshot() {
    if cfg!(debug_assertions) {
        eprintln!("skipped: without optimisation this takes minutes (cargo nextest run --release)");
        return;
    }
    let Some(clone) = clone() else { return };
    let head = entries(&clone.dir, SNAPSHOT).unwrap();
    let mut base: BTreeMap<_, _> = (*head).clone();
    for master in &clone.policy.policy.layout.masters {
        base.remove(master);
    }
    let states = States {
        trusted: (SNAPSHOT.to_owned(), head.clone()),
        base: (NOWHERE.to_owned(), Arc::new(base)),
        head: (SNAPSHOT.to_owned(), head),
    };
    let evidence = evidence(&clone.policy, &clone.objects, 1, &states, 1_787_000_000, "").unwrap();
    let cx = Context::new(&evidence, &clone.policy);
    let golden = checks::find("golden-al").unwrap().run(&cx);
    show("golden lengths of the snapshot", &golden);
    assert_eq!(golden.outcome.kind(), OutcomeKind::Fail);
    assert_eq!(
        keys(&golden, "other-length"),
        set(&[
            "dsv4-fp4-gb200-dynamo-vllm-agentic-mtp-agg",
            "dsv4-fp4-gb200-dynamo-vllm-agentic-mtp-disagg"
        ])
    );
    assert_eq!(
        keys(&golden, "simulated-outside-of-replays"),
        set(&["dsv4-fp4-gb200-dynamo-vllm-mtp2", "dsv4-fp4-b200-dynamo-vllm-mtp"])
    );
    let codes: BTreeSet<&str> = golden
        .outcome
        .findings()
        .iter()
        .map(|finding| finding.code.as_str())
        .collect();
    assert_eq!(
        codes,
        BTreeSet::from(["other-length", "simulated-outside-of-replays"]),
        "{:#?}",
        lines(&golden)
    );
    let chat = checks::find("chat-template").unwrap().run(&cx);
    show("chat templates of the snapshot", &chat);
    assert!(
        !chat
            .outcome
            .findings()
            .iter()
            .any(|finding| finding.code == "raw-prompts"),
        "{:#?}",
        lines(&chat)
    );
}
