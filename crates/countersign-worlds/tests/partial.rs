//! Partial worlds judged without a server: what they say counts, what they do not say is unavailable.

use std::path::Path;
use std::process::Command;

use countersign_core::outcome::OutcomeKind;
use countersign_core::{CauseKind, Observed, Verdict};
use countersign_policy::LoadedPolicy;
use countersign_sim::World;
use countersign_worlds::{lay_over, read, record};

fn policy() -> LoadedPolicy {
    let text = include_str!("../../countersign-cli/demo/policy.yaml");
    countersign_policy::load("demo", &|_: &str| Ok(text.to_owned())).unwrap()
}

const FILES: &str = r"
          CODEOWNERS: '* @olive'
          docs/CHECKLIST.md: |
            ```
            As a reviewer and owner, I looked at this and:
            - [ ] Used the latest version of the checklist
            - [ ] Saw that evals pass
            - [ ] If any of this cannot be satisfied, said why below

            ### Details
            - write here
            ```
          bars.yaml: |
            default: { gsm8k: 0.90 }
          configs/a.yaml: '{}'
          configs/b.yaml: '{}'
          configs/runners.yaml: |
            labels: { b9: [b9-x_0] }
            hardware: { b9: { available-cpu-dram-mib: 1000, gpus-per-node: 8 } }
          journal.yaml: |
            - config-keys: [old]
              description: [The first entry]
              pr-link: https://github.com/octo/bench/pull/1
          scripts/m1_fp8_b9_vllm.sh: 'vllm serve'
";
const CHANGE: &str = r"
          configs/a.yaml: |
            m1-fp8-b9-vllm:
              image: vllm/vllm-openai:v1
              model: org/M1
              model-prefix: m1
              runner: b9
              precision: fp8
              framework: vllm
              multinode: false
              scenarios:
                fixed-seq-len:
                  - { isl: 8192, osl: 1024, search-space: [{ tp: 8, conc-list: [4, 16, 32, 64] }] }
          journal.yaml: |
            - config-keys: [old]
              description: [The first entry]
              pr-link: https://github.com/octo/bench/pull/1

            - config-keys: [m1-fp8-b9-vllm]
              description: [M1 on B9]
              pr-link: XXX
";
const SIGNOFF: &str = "As a reviewer and owner, I looked at this and:\\n- [x] Used the latest version of the checklist\\n- [x] Saw that evals pass\\n- [ ] If any of this cannot be satisfied, said why below\\n";

/// A partial world with these further lines for the repository.
fn world(more: &str) -> World {
    let text = format!(
        r#"
world: 1
partial: true
clock: 2026-11-02T09:00:00Z
short_forms: {{ eval_artifact: evals_all, eval_file: all.json }}
repositories:
  octo/bench:
    commits:
      - id: root
        date: 2026-11-01T08:00:00Z
        files:{FILES}
      - id: change
        parent: root
        date: 2026-11-02T07:00:00Z
        files:{CHANGE}
    branches: {{ main: root }}
    pulls:
      - number: 7
        head: change
        comments:
          - {{ author: olive, association: MEMBER, body: /use 9001 }}
          - {{ author: olive, association: MEMBER, body: "{SIGNOFF}" }}
{more}"#
    );
    World::parse("test", &text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

const RUN: &str = r#"
    runs:
      - id: 9001
        workflow: sweep.yml
        head: change
        lanes: { "single-node 8k1k": { success: 4 }, eval: { success: 2 } }
        evals: [{ task: gsm8k, model_prefix: m1, score: [0.95, 0.96], conc: [32, 64], n_eff: 1319 }]
"#;

fn judged(world: &World) -> Verdict {
    let policy = policy();
    let case = read(world, "octo/bench", 7, &policy).unwrap();
    assert!(case.signed);
    countersign_checks::evaluate(&case.evidence, &policy)
}

fn kind(verdict: &Verdict, slug: &str) -> OutcomeKind {
    let row = verdict.rows.iter().find(|row| row.slug == slug);
    row.unwrap_or_else(|| panic!("no row {slug}")).report.outcome.kind()
}

#[test]
fn a_few_lines_are_enough_for_a_verdict() {
    let verdict = judged(&world(RUN));
    for slug in ["codeowner", "sweep", "evals", "reuse-command", "template"] {
        assert_eq!(kind(&verdict, slug), OutcomeKind::Pass, "{slug}: {:?}", verdict.rows);
    }
}

#[test]
fn short_forms_say_what_is_red_and_what_is_low() {
    let red = RUN.replace("{ success: 4 }", "{ success: 3, failure: 1 }");
    assert_eq!(kind(&judged(&world(&red)), "sweep"), OutcomeKind::Fail);
    let low = RUN.replace("[0.95, 0.96]", "[0.95, 0.86]");
    assert_eq!(kind(&judged(&world(&low)), "evals"), OutcomeKind::Fail);
}

#[test]
fn what_a_partial_world_does_not_say_is_unavailable_and_what_it_says_to_be_empty_is_absent() {
    for (more, wanted) in [
        ("", OutcomeKind::Unavailable),
        ("    runs: []", OutcomeKind::Fail),
        (
            "    runs: [{ id: 9001, workflow: sweep.yml, head: change }]",
            OutcomeKind::Unavailable,
        ),
    ] {
        let verdict = judged(&world(more));
        assert_eq!(kind(&verdict, "sweep"), wanted, "{more:?}");
        let causes = verdict.missing();
        assert!(
            causes.iter().all(|cause| cause.kind == CauseKind::NotRecorded),
            "{causes:?}"
        );
    }
    // A run without scores: the sweep is proved, the evaluations are not known.
    let unsaid = RUN
        .lines()
        .filter(|line| !line.contains("evals:"))
        .collect::<Vec<_>>()
        .join("\n");
    let verdict = judged(&world(&unsaid));
    assert_eq!(
        (kind(&verdict, "sweep"), kind(&verdict, "evals")),
        (OutcomeKind::Pass, OutcomeKind::Unavailable)
    );
}

#[test]
fn a_clone_gives_the_history_and_the_clock_the_day() {
    let folder = tempfile::tempdir().unwrap();
    let git = |arguments: &[&str], date: &str| {
        let done = Command::new("git")
            .arg("-C")
            .arg(folder.path())
            .args([
                "-c",
                "user.name=a",
                "-c",
                "user.email=a@b",
                "-c",
                "init.defaultBranch=main",
                "-c",
                "commit.gpgsign=false",
            ])
            .args(arguments)
            .env("GIT_COMMITTER_DATE", date)
            .env("GIT_AUTHOR_DATE", date)
            .output()
            .unwrap();
        assert!(
            done.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
    };
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    git(&["init", "-q"], "");
    for (path, text) in files(FILES) {
        write(&path, &text);
    }
    git(&["add", "."], "");
    git(&["commit", "-qm", "root"], "2026-11-01T08:00:00Z");
    git(&["checkout", "-qb", "topic"], "");
    for (path, text) in files(CHANGE) {
        write(&path, &text);
    }
    git(&["commit", "-qam", "change"], "2026-11-02T07:00:00Z");
    git(&["update-ref", "refs/pull/7/head", "topic"], "");
    git(&["checkout", "-q", "main"], "");
    // After the day of the world the owner is another one: the verdict is that of the day.
    write("CODEOWNERS", "* @somebody-else");
    git(&["commit", "-qam", "owners"], "2026-11-03T08:00:00Z");

    let text = format!(
        "world: 1\npartial: true\nclock: 2026-11-02T09:00:00Z\nshort_forms: {{ eval_artifact: evals_all, eval_file: all.json }}\nrepositories:\n  octo/bench:\n    pulls:\n      - number: 7\n        comments:\n          - {{ author: olive, association: MEMBER, body: /use 9001 }}\n          - {{ author: olive, association: MEMBER, body: \"{SIGNOFF}\" }}\n{}",
        RUN.replace("head: change", "head: refs/pull/7/head")
    );
    let mut world = World::parse("test", &text).unwrap();
    lay_over(&mut world, folder.path());
    let verdict = judged(&world);
    for slug in ["codeowner", "sweep", "evals", "reuse-command", "template"] {
        assert_eq!(kind(&verdict, slug), OutcomeKind::Pass, "{slug}: {:?}", verdict.rows);
    }
    // A month later the rules of the day before yesterday do not count.
    let late = text.replace("2026-11-02T09", "2026-12-02T09");
    let mut world = World::parse("test", &late).unwrap();
    lay_over(&mut world, folder.path());
    assert_eq!(kind(&judged(&world), "codeowner"), OutcomeKind::Fail);
}

/// Files of a block of the worlds above.
fn files(block: &str) -> Vec<(String, String)> {
    let yaml = format!("world: 1\nrepositories:\n  o/r:\n    commits:\n      - id: x\n        files:{block}");
    let world = World::parse("block", &yaml).unwrap();
    let files = &world.repositories["o/r"].commits[0].files;
    let text = |file: &countersign_sim::world::spell::FileSpec| match file {
        countersign_sim::world::spell::FileSpec::Text(text) => text.clone(),
        other => panic!("{other:?}"),
    };
    files.iter().map(|(path, file)| (path.clone(), text(file))).collect()
}

#[test]
fn evidence_survives_being_recorded_to_the_byte() {
    let policy = policy();
    let upstream = r"
upstream:
  engine/recipes:
    pulls: [{ number: 42, state: merged, merged_at: 2026-11-01T12:00:00Z, files: [{ path: a.md, status: added, text: serve }] }]
";
    for more in [
        RUN.to_owned(),
        String::new(),
        format!("{RUN}{upstream}"),
        "    runs: []\n".to_owned(),
    ] {
        let mut first = world(&more);
        // Contents of all kinds: binary, executable, a link, and a file that is gone at head.
        let commits = &mut first.repositories.get_mut("octo/bench").unwrap().commits;
        let extra: World = World::parse(
            "extra",
            "world: 1\nrepositories:\n  o/r:\n    commits:\n      - id: x\n        files:\n          configs/bin: { base64: '/wD/' }\n          configs/run.sh: { text: 'x', executable: true }\n          configs/link: { symlink: a.yaml }\n          configs/gone.yaml: 'crlf\\r\\nand  trailing '\n",
        )
        .unwrap();
        commits[0]
            .files
            .extend(extra.repositories["o/r"].commits[0].files.clone());
        commits[1].files.insert(
            "configs/gone.yaml".to_owned(),
            countersign_sim::world::spell::FileSpec::Deleted,
        );
        let before = read(&first, "octo/bench", 7, &policy).unwrap();
        let recorded = record(&before.evidence, &policy.policy);
        let text = serde_json::to_string(&recorded.world).unwrap();
        let world = World::parse("recorded", &text).unwrap();
        let after = read(&world, "octo/bench", 7, &policy).unwrap();
        let bytes = |evidence: &countersign_core::Evidence| {
            String::from_utf8(countersign_checks::record(evidence).unwrap()).unwrap()
        };
        assert_eq!(bytes(&before.evidence), bytes(&after.evidence), "{more}");
        assert_eq!(
            countersign_checks::evaluate(&before.evidence, &policy),
            countersign_checks::evaluate(&after.evidence, &policy)
        );
        assert!(matches!(
            after.evidence.head_file("configs/bin"),
            Observed::Unavailable(_)
        ));
        assert!(matches!(
            after.evidence.head_file("configs/gone.yaml"),
            Observed::Absent
        ));
        // What a wider policy would ask for was not recorded, so it is not known.
        assert!(matches!(
            after.evidence.head_file("README.md"),
            Observed::Unavailable(_)
        ));
    }
}

#[test]
fn a_world_that_names_what_is_not_there_says_so() {
    let error = read(&world(RUN), "octo/bench", 8, &policy()).unwrap_err();
    assert!(error.to_string().contains("add it under `pulls`"), "{error}");
    let mut world = world(RUN);
    lay_over(&mut world, Path::new("/nowhere"));
    assert!(
        read(&world, "octo/bench", 7, &policy()).is_ok(),
        "a repository with a history of its own keeps it"
    );
}
