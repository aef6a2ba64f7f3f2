//! The check of recipes on two real threads, where a clone is at hand (`COUNTERSIGN_CORPUS`: a git directory): rejected
//! before the upstream change, passed after it, for the reasons that the threads give. What the cookbook documented on each
//! day is put together here from the values that the threads name.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::collections::BTreeMap;

use countersign_checks::{Context, checks};
use countersign_core::evidence::{Page, PullState, Upstream, UpstreamPull};
use countersign_core::{CheckReport, Observed, OutcomeKind};

mod support;

use support::{Clone, States, entries, evidence, git};

const PAGE: &str = "https://docs.sglang.io/cookbook/autoregressive/Qwen/Qwen3.5";
const PULL: &str = "https://github.com/sgl-project/sglang/pull/32945";

/// The head that moves to the second checkpoint, and the two heads of the arm on two GPUs.
const SECOND_CHECKPOINT: &str = "99e3a3fdaee4f2822ff43442509915f9a3a1bae0";
const ARM: &str = "e3643999";
const ARM_LATER: &str = "f705dd1f";

fn clone() -> Option<Clone> {
    support::clone("inferencex-2026-08-11", &[SECOND_CHECKPOINT, ARM, ARM_LATER])
}

/// The cookbook's commands for the FP4 checkpoint. `second`: they name the second one. `arm`: drafts run on two GPUs of a B200.
fn cookbook(second: bool, arm: bool) -> String {
    let model = if second {
        "nvidia/Qwen3.5-397B-A17B-NVFP4-V2"
    } else {
        "nvidia/Qwen3.5-397B-A17B-NVFP4"
    };
    let mut out = String::from("# Qwen3.5\n");
    for hardware in ["B200", "B300"] {
        for drafts in [false, true] {
            let size = if arm && drafts && hardware == "B200" {
                "--tp 2 --expert-parallel-size 2"
            } else {
                "--tp 4"
            };
            let draft = if drafts {
                " --speculative-algorithm NEXTN --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
            } else {
                ""
            };
            let own = if hardware == "B200" {
                " --quantization modelopt_fp4 --kv-cache-dtype fp8_e4m3"
            } else {
                ""
            };
            out.push_str(&format!(
                "\n## {hardware}\n\n```bash\nsglang serve --model-path {model} {size}{draft}{own} --attention-backend trtllm_mha --moe-runner-backend flashinfer_trtllm\n```\n"
            ));
        }
    }
    out
}

fn page(text: String) -> Upstream {
    Upstream::Page(Page {
        source: "sgl-project/sglang:docs/cookbook/autoregressive/Qwen/Qwen3.5.mdx".into(),
        commit: None,
        documents: BTreeMap::from([("docs/cookbook/autoregressive/Qwen/Qwen3.5.mdx".into(), text)]),
    })
}

fn pull(state: PullState, text: String) -> Upstream {
    Upstream::Pull(UpstreamPull {
        repository: "sgl-project/sglang".parse().unwrap(),
        number: 32945,
        state,
        merged_at: None,
        merge_commit: None,
        documents: BTreeMap::from([("docs/cookbook/autoregressive/Qwen/Qwen3.5.mdx".into(), text)]),
    })
}

impl Clone {
    fn judge(&self, head: &str, link: Option<(&str, Upstream)>) -> CheckReport {
        let head = git(&self.dir, &["rev-parse", head]).unwrap().trim().to_owned();
        let time: i64 = git(&self.dir, &["log", "-1", "--format=%ct", &head])
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        let before = format!("--before={time}");
        let trusted = git(
            &self.dir,
            &["log", "--first-parent", "--format=%H", &before, "-1", "HEAD"],
        )
        .unwrap()
        .trim()
        .to_owned();
        let base = git(&self.dir, &["merge-base", &trusted, &head])
            .unwrap()
            .trim()
            .to_owned();
        let tree = |commit: &str| (commit.to_owned(), entries(&self.dir, commit).unwrap());
        let states = States {
            trusted: tree(&trusted),
            base: tree(&base),
            head: tree(&head),
        };
        let said = link
            .as_ref()
            .map_or("- Nothing.".to_owned(), |(url, _)| format!("- The recipe: {url}"));
        let signoff = format!(
            "As a PR reviewer and CODEOWNER, I have reviewed this and have:\n\n- [x] Verified the code quality.\n\n### Additional detail section:\n{said}\n"
        );
        let mut evidence = evidence(&self.policy, &self.objects, 1, &states, time, &signoff).unwrap();
        evidence
            .upstream
            .extend(link.map(|(url, found)| (url.to_owned(), Observed::Present(found))));
        checks::find("recipe")
            .unwrap()
            .run(&Context::new(&evidence, &self.policy))
    }
}

/// Outcome, codes and reason of a report.
fn seen(report: &CheckReport) -> (OutcomeKind, Vec<String>, String) {
    let codes = report
        .outcome
        .findings()
        .iter()
        .map(|finding| finding.code.clone())
        .collect();
    (report.outcome.kind(), codes, report.reason.plain())
}

#[test]
fn the_second_checkpoint_passes_once_the_cookbook_names_it() {
    let Some(clone) = clone() else { return };
    let (kind, codes, reason) = seen(&clone.judge(SECOND_CHECKPOINT, Some((PAGE, page(cookbook(false, false))))));
    assert_eq!((kind, codes.len()), (OutcomeKind::Fail, 4), "{reason}");
    assert!(codes.iter().all(|code| code == "not-documented"), "{codes:?}");
    assert!(
        reason.contains("model nvidia/Qwen3.5-397B-A17B-NVFP4-V2 is not documented"),
        "{reason}"
    );
    let open = pull(PullState::Open, cookbook(true, false));
    let (kind, codes, reason) = seen(&clone.judge(SECOND_CHECKPOINT, Some((PULL, open))));
    assert_eq!(
        (kind, codes),
        (OutcomeKind::Fail, vec!["not-merged".to_owned()]),
        "{reason}"
    );
    let report = clone.judge(
        SECOND_CHECKPOINT,
        Some((PULL, pull(PullState::Merged, cookbook(true, false)))),
    );
    let (kind, _, reason) = seen(&report);
    assert_eq!(kind, OutcomeKind::Pass, "{reason}");
    // The topologies on two GPUs are swept and not documented: told, and no reason to reject.
    assert!(
        report
            .notes
            .iter()
            .any(|note| note.plain().contains("tp 2, documented is 4")),
        "{:?}",
        report.notes
    );
}

#[test]
fn a_new_arm_needs_the_arm_documented() {
    let Some(clone) = clone() else { return };
    let (kind, codes, reason) = seen(&clone.judge(ARM, None));
    assert_eq!(
        (kind, codes),
        (OutcomeKind::Fail, vec!["no-link".to_owned()]),
        "{reason}"
    );
    // That the topology from before is documented does not help the new one.
    let (kind, codes, reason) = seen(&clone.judge(ARM, Some((PAGE, page(cookbook(false, false))))));
    assert_eq!(
        (kind, codes),
        (OutcomeKind::Fail, vec!["not-documented".to_owned()]),
        "{reason}"
    );
    assert!(
        reason.contains("tp 2, documented is 4") && reason.contains("ep 2, documented is 1"),
        "{reason}"
    );
    let (kind, _, reason) = seen(&clone.judge(ARM_LATER, Some((PULL, pull(PullState::Merged, cookbook(true, true))))));
    assert_eq!(kind, OutcomeKind::Pass, "{reason}");
}
