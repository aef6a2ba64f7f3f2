//! Backtests of small clones that are made here, with the policy of the checks' fixtures.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use countersign_backtest::{Ask, Is, Outcome, Progress, PullResult, Standing, Worlds, compare, page, run};
use countersign_core::Evidence;
use countersign_policy::LoadedPolicy;

struct Nothing(AtomicUsize);

impl Worlds for Nothing {
    fn numbers(&self) -> Vec<u64> {
        Vec::new()
    }

    fn digest(&self, _: u64) -> Option<String> {
        None
    }

    fn evidence(&self, number: u64, _: &LoadedPolicy) -> Result<(Evidence, bool), String> {
        Err(format!("no world tells of {number}"))
    }
}

impl Progress for Nothing {
    fn start(&self, new: usize, _: usize) {
        self.0.store(new, Ordering::SeqCst);
    }

    fn done(&self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A repository under way.
struct Repo {
    folder: tempfile::TempDir,
    minute: u32,
}

impl Repo {
    fn new() -> Self {
        let repo = Self {
            folder: tempfile::tempdir().unwrap(),
            minute: 0,
        };
        repo.git(&["init", "--quiet", "--initial-branch=main"]);
        repo
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn git(&self, args: &[&str]) -> String {
        let date = format!("2026-01-02T03:{:02}:00Z", self.minute);
        let output = Command::new("git")
            .arg("-C")
            .arg(self.path())
            .args([
                "-c",
                "user.name=a",
                "-c",
                "user.email=a@example.org",
                "-c",
                "commit.gpgsign=false",
            ])
            .args(args)
            .env("GIT_AUTHOR_DATE", &date)
            .env("GIT_COMMITTER_DATE", &date)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "git {args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn write(&self, path: &str, text: &str) {
        let file = self.path().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    /// A commit of everything in the folder, a minute later.
    fn commit(&mut self, subject: &str) -> String {
        self.minute += 1;
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "-m", subject]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// A pull request's head from where the branch stands.
    fn pull(&mut self, number: u64, subject: &str, change: impl FnOnce(&Self)) -> String {
        self.git(&["checkout", "--quiet", "--detach"]);
        change(self);
        let sha = self.commit(subject);
        self.git(&["update-ref", &format!("refs/pull/{number}/head"), &sha]);
        self.git(&["checkout", "--quiet", "main"]);
        sha
    }
}

/// The row of images, as the policy joins it.
const IMAGE: &str = "image+engine-first";

const ENTRY: &str = "m1-fp8-b9-vllm:
  image: vllm/vllm-openai:v1
  model: org/M1
  model-prefix: m1
  runner: b9
  precision: fp8
  framework: vllm
  multinode: false
  scenarios:
    fixed-seq-len:
      - { isl: 8192, osl: 1024, search-space: [{ tp: 8, conc-list: [4, 16] }] }
";

fn policy(more: &str) -> LoadedPolicy {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../countersign-checks/fixtures/policy.yaml");
    let text = std::fs::read_to_string(file).unwrap();
    let own = format!("extends: fixtures\nname: own\n{more}");
    let source = |name: &str| match name {
        "fixtures" => Ok(text.clone()),
        _ => Ok(own.clone()),
    };
    countersign_policy::load("own", &source).unwrap()
}

fn ask<'a>(clone: &'a Path, policy: &'a LoadedPolicy, pulls: &'a BTreeSet<u64>, worlds: &'a Nothing) -> Ask<'a> {
    Ask {
        clone,
        policy,
        since: None,
        pulls,
        worlds,
        engine: "this build",
        kept: None,
        workers: 2,
    }
}

fn judged(clone: &Path, policy: &LoadedPolicy) -> Vec<PullResult> {
    let nothing = Nothing(AtomicUsize::new(0));
    run(&ask(clone, policy, &BTreeSet::new(), &nothing), &nothing)
        .unwrap()
        .results
}

fn row<'r>(result: &'r PullResult, slug: &str) -> &'r countersign_backtest::RowResult {
    result.rows.iter().find(|row| row.slug == slug).unwrap()
}

/// Pull request 1 is squashed in, 2 uses a foreign image, 3 only moves a file.
fn history() -> Repo {
    let mut repo = Repo::new();
    repo.write("configs/a.yaml", ENTRY);
    repo.write("configs/b.yaml", "{}\n");
    repo.write(
        "configs/runners.yaml",
        "labels: { b9: [b9-x_0] }\nhardware: { b9: { available-cpu-dram-mib: 1000, gpus-per-node: 8 } }\n",
    );
    repo.write("scripts/m1_fp8_b9_vllm.sh", "vllm serve\n");
    repo.write("notes/one.md", "one\n");
    repo.commit("First");
    repo.pull(1, "Faster", |repo| {
        repo.write("configs/a.yaml", &ENTRY.replace(":v1", ":v2"))
    });
    repo.write("configs/a.yaml", &ENTRY.replace(":v1", ":v2"));
    repo.commit("Faster, as merged (#1)");
    repo.pull(2, "<b>Own</b> image", |repo| {
        repo.write(
            "configs/a.yaml",
            &ENTRY.replace("vllm/vllm-openai:v1", "somebody/vllm:v1"),
        )
    });
    repo.pull(3, "Move", |repo| {
        std::fs::remove_file(repo.path().join("notes/one.md")).unwrap();
        repo.write("notes/two.md", "one\n");
    });
    repo
}

#[test]
fn heads_are_judged_by_the_rules_of_their_day() {
    let repo = history();
    let results = judged(repo.path(), &policy(""));
    let numbers: Vec<(u64, bool, &str)> = results
        .iter()
        .map(|result| (result.number, result.merged, result.title.as_str()))
        .collect();
    assert_eq!(
        numbers,
        [
            (1, true, "Faster, as merged"),
            (2, false, "<b>Own</b> image"),
            (3, false, "Move")
        ]
    );
    let (first, second) = (&results[0], &results[1]);
    // The first parted from the first commit, and the target branch was no further then.
    assert_eq!(first.base, first.trusted);
    assert_ne!(first.trusted, second.trusted);
    assert_eq!(row(first, IMAGE).is, Is::Pass);
    assert_eq!(row(second, IMAGE).is, Is::Fail);
    assert_eq!(second.standing, Standing::Rejected);
    let finding = &row(second, IMAGE).findings[0];
    let url = &finding.place.as_ref().unwrap().url;
    assert!(
        url.contains(&second.head) && url.ends_with("configs/a.yaml#L2"),
        "{url}"
    );
    assert_eq!(row(&results[2], IMAGE).is, Is::NotApplicable);
    // What people write is not in a clone: neither yes nor no.
    for result in &results {
        assert_eq!(row(result, "codeowner").is, Is::NotJudged);
        assert_eq!(row(result, "reuse-command").is, Is::Unavailable);
        assert_eq!(result.decision, None);
    }
}

#[test]
fn the_same_bytes_whatever_the_workers_and_what_was_judged_before() {
    let repo = history();
    let policy = policy("");
    let folder = tempfile::tempdir().unwrap();
    let kept: PathBuf = folder.path().join("kept.jsonl");
    let nothing = Nothing(AtomicUsize::new(0));
    let (all, some) = (BTreeSet::new(), BTreeSet::from([2]));
    let again = |pulls: &BTreeSet<u64>, workers: usize, engine: &str, kept: Option<&Path>| -> Outcome {
        let asked = Ask {
            workers,
            engine,
            kept,
            ..ask(repo.path(), &policy, pulls, &nothing)
        };
        run(&asked, &nothing).unwrap()
    };
    let lines = |outcome: &Outcome| serde_json::to_string(&outcome.results).unwrap();
    let plain = again(&all, 1, "a", None);
    assert_eq!(plain.times.pulls.len(), 3);
    // One is judged, the other two follow, then nothing is left to do; another build judges all.
    assert_eq!(again(&some, 1, "a", Some(&kept)).known, 0);
    let rest = again(&all, 3, "a", Some(&kept));
    assert_eq!((rest.known, lines(&rest)), (1, lines(&plain)));
    // A line that was cut when the power went is judged again.
    let mut bytes = std::fs::read(&kept).unwrap();
    bytes.truncate(bytes.len() - 20);
    std::fs::write(kept.with_extension("partial.jsonl"), &bytes).unwrap();
    std::fs::remove_file(&kept).unwrap();
    let rest = again(&all, 2, "a", Some(&kept));
    assert_eq!((rest.known, lines(&rest)), (2, lines(&plain)));
    let whole = std::fs::read(&kept).unwrap();
    assert_eq!(again(&all, 2, "a", Some(&kept)).known, 3);
    assert_eq!(std::fs::read(&kept).unwrap(), whole);
    assert_eq!(again(&all, 2, "b", Some(&kept)).known, 0);
}

#[test]
fn a_page_holds_titles_as_text_and_needs_nothing_else() {
    let repo = history();
    let results = judged(repo.path(), &policy(""));
    let page = page(&results, "octo/bench", "own 1");
    assert!(page.contains("&lt;b&gt;Own&lt;/b&gt; image") && !page.contains("<b>Own"));
    for outside in ["src=", "@import", "url(", "<link", "<iframe"] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn another_policy_shows_only_what_differs() {
    let repo = history();
    let before = judged(repo.path(), &policy(""));
    let own = "images: { namespaces: { vllm: [{ namespace: somebody }] }, skus: [b9], settings: [] }\n";
    let after = judged(repo.path(), &policy(own));
    let changes: Vec<(u64, String, String)> = compare(&before, &after)
        .into_iter()
        .map(|change| (change.number, change.slug.clone(), change.step()))
        .collect();
    assert_eq!(
        changes,
        [
            (1, IMAGE.to_owned(), "PASS → FAIL".to_owned()),
            (2, IMAGE.to_owned(), "FAIL → PASS".to_owned())
        ]
    );
    assert!(compare(&before, &before).is_empty());
}

#[test]
fn without_heads_the_commits_that_merged_are_judged() {
    let mut repo = history();
    for number in 1..=3 {
        repo.git(&["update-ref", "-d", &format!("refs/pull/{number}/head")]);
    }
    let main = repo.git(&["rev-parse", "HEAD"]);
    repo.git(&["checkout", "--quiet", "-b", "topic"]);
    repo.write("configs/a.yaml", &ENTRY.replace(":v1", ":v3"));
    let head = repo.commit("Work");
    repo.git(&["checkout", "--quiet", "main"]);
    repo.minute += 1;
    repo.git(&[
        "merge",
        "--quiet",
        "--no-ff",
        "-m",
        "Merge pull request #9 from octo/topic",
        "topic",
    ]);
    let results = judged(repo.path(), &policy(""));
    assert_eq!(results.iter().map(|result| result.number).collect::<Vec<_>>(), [1, 9]);
    assert_eq!(
        (results[1].head.as_str(), results[1].trusted.as_deref()),
        (head.as_str(), Some(main.as_str()))
    );
    assert_eq!(row(&results[1], IMAGE).is, Is::Pass);
    // The first commit of a branch has no target branch before it.
    assert_eq!(row(&results[0], IMAGE).is, Is::Pass);
}

#[test]
fn where_a_head_parted_is_what_git_says() {
    let mut repo = Repo::new();
    repo.write("a", "0");
    repo.commit("First");
    // Forward, across, and back: heads that merged the target branch, heads from old commits, merges of heads.
    for round in 1..12u64 {
        let merge = round % 3 == 0;
        let from = format!("main~{}", (round * 7) % round.min(5));
        repo.git(&["checkout", "--quiet", "--detach", &from]);
        repo.write(&format!("own{round}"), "1");
        let mut sha = repo.commit("work");
        if merge {
            repo.minute += 1;
            repo.git(&["merge", "--quiet", "-m", "take main in", "main"]);
            sha = repo.git(&["rev-parse", "HEAD"]);
        }
        repo.git(&["update-ref", &format!("refs/pull/{round}/head"), &sha]);
        repo.git(&["checkout", "--quiet", "main"]);
        if round % 4 == 0 {
            repo.minute += 1;
            repo.git(&[
                "merge",
                "--quiet",
                "--no-ff",
                "-m",
                &format!("Merge pull request #{round} from a/b"),
                &sha,
            ]);
        } else {
            repo.write("a", &round.to_string());
            repo.commit("more");
        }
    }
    let results = judged(repo.path(), &policy(""));
    assert_eq!(results.len(), 11);
    for result in results {
        let (trusted, base) = (result.trusted.unwrap(), result.base.unwrap());
        assert_eq!(
            base,
            repo.git(&["merge-base", &trusted, &result.head]),
            "#{}",
            result.number
        );
    }
}

/// Tells what a clone tells of another number, and that it is signed.
struct Told {
    clone: PathBuf,
    broken: bool,
}

impl Worlds for Told {
    fn numbers(&self) -> Vec<u64> {
        vec![2, 77]
    }

    fn digest(&self, number: u64) -> Option<String> {
        self.numbers().contains(&number).then(|| self.broken.to_string())
    }

    fn evidence(&self, number: u64, policy: &LoadedPolicy) -> Result<(Evidence, bool), String> {
        if self.broken {
            return Err(format!("the world of #{number} has no clock: write one"));
        }
        let sketch: countersign_checks::sketch::Sketch =
            serde_json::from_str("{}").map_err(|error| error.to_string())?;
        let mut evidence = sketch.evidence().map_err(|error| error.to_string())?;
        evidence.pull_request.number = countersign_core::PrNumber(number);
        assert!(self.clone.exists() && policy.policy.name == "own");
        Ok((evidence, true))
    }
}

#[test]
fn a_world_is_judged_by_all_checks_whether_or_not_the_clone_has_the_head() {
    let repo = history();
    let policy = policy("");
    let none = BTreeSet::new();
    let nothing = Nothing(AtomicUsize::new(0));
    let judged = |broken: bool| {
        let told = Told {
            clone: repo.path().to_owned(),
            broken,
        };
        let asked = Ask {
            worlds: &told,
            ..ask(repo.path(), &policy, &none, &nothing)
        };
        run(&asked, &nothing).unwrap().results
    };
    let results = judged(false);
    assert_eq!(
        results
            .iter()
            .map(|result| (result.number, result.world))
            .collect::<Vec<_>>(),
        [(1, false), (2, true), (3, false), (77, true)]
    );
    for result in results.iter().filter(|result| result.world) {
        assert!(result.decision.is_some());
        assert!(result.rows.iter().all(|row| row.is != Is::NotJudged));
    }
    // A world that cannot be used is told, and ends nothing.
    let results = judged(true);
    assert_eq!(results.len(), 4);
    assert_eq!(results[3].standing, Standing::Unjudged);
    assert_eq!(
        results[3].problem.as_deref(),
        Some("the world of #77 has no clock: write one")
    );
}

#[test]
fn a_folder_without_history_is_a_clear_error() {
    let folder = tempfile::tempdir().unwrap();
    let nothing = Nothing(AtomicUsize::new(0));
    let policy = policy("");
    let error = run(&ask(folder.path(), &policy, &BTreeSet::new(), &nothing), &nothing);
    let error = error.map(|_| ()).unwrap_err().to_string();
    assert!(error.starts_with("git log:"), "{error}");
}
