//! History as git itself sees it: SHAs of inline commits, merge bases, commit lists, changed files and counts, on made-up
//! histories and on a real clone (`COUNTERSIGN_CORPUS`).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{Client, start};
use countersign_sim::World;
use serde_json::Value;

fn git(dir: &Path, args: &[&str], input: &str) -> String {
    let mut child = Command::new("git")
        .arg("-C")
        .arg(dir)
        .args(args)
        .envs([
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_SYSTEM", "/dev/null"),
            ("GIT_NO_LAZY_FETCH", "1"),
        ])
        .envs([
            ("GIT_AUTHOR_NAME", "dana"),
            ("GIT_AUTHOR_EMAIL", "dana@users.noreply.github.com"),
        ])
        .envs([
            ("GIT_COMMITTER_NAME", "dana"),
            ("GIT_COMMITTER_EMAIL", "dana@users.noreply.github.com"),
        ])
        .envs([
            ("GIT_AUTHOR_DATE", "1785574800 +0000"),
            ("GIT_COMMITTER_DATE", "1785574800 +0000"),
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let out = child.wait_with_output().unwrap();
    // `git merge-base` says with 1 that there is none.
    assert!(
        out.status.success() || out.status.code() == Some(1),
        "{args:?}: {}",
        String::from_utf8_lossy(&out.stderr)
    );
    String::from_utf8_lossy(&out.stdout).trim().to_owned()
}

#[tokio::test]
async fn inline_commits_have_the_shas_of_git() {
    let dir = tempfile::tempdir().unwrap();
    git(dir.path(), &["init", "-q", "-b", "main", "."], "");
    let put = |path: &str, text: &str| {
        let full = dir.path().join(path);
        std::fs::create_dir_all(full.parent().unwrap()).unwrap();
        std::fs::write(full, text).unwrap();
    };
    put("a.b", "1\n");
    put("a/x", "2\n");
    put("a-c", "3\n");
    put("deep/er/file", "4");
    std::os::unix::fs::symlink("a.b", dir.path().join("link")).unwrap();
    put("run.sh", "#!/bin/sh\n");
    git(dir.path(), &["add", "-A"], "");
    git(dir.path(), &["update-index", "--chmod=+x", "run.sh"], "");
    let tree = git(dir.path(), &["write-tree"], "");
    let first = git(dir.path(), &["commit-tree", &tree], "First\n\nWith a body");
    git(dir.path(), &["rm", "-q", "--cached", "deep/er/file"], "");
    let tree = git(dir.path(), &["write-tree"], "");
    let second = git(dir.path(), &["commit-tree", &tree, "-p", &first], "Second");
    let world = r##"
world: 1
clock: 2026-08-01T09:00:00Z
repositories:
  octo-org/bench:
    commits:
      - id: first
        author: dana
        message: "First\n\nWith a body"
        files:
          a.b: "1\n"
          a/x: "2\n"
          a-c: "3\n"
          deep/er/file: "4"
          link: {symlink: a.b}
          run.sh: {text: "#!/bin/sh\n", executable: true}
      - {id: second, parent: first, author: dana, message: Second, files: {deep/er/file: null}}
"##;
    let sim = start(&World::parse("w", world).unwrap());
    let c = Client::new(&sim);
    let commit = c.get("/commits/main").await;
    assert_eq!(commit["sha"], second);
    assert_eq!(commit["parents"][0]["sha"], first);
    assert_eq!(commit["commit"]["tree"]["sha"], tree);
}

/// A made-up history with merges, renames, edits and clock skew, as `git fast-import` reads it.
fn history(seed: u64, commits: usize) -> String {
    let mut state = seed;
    let mut random = move |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    let mut out = String::new();
    for i in 1..=commits {
        let time = 1_700_000_000 + i * 100 - if random(7) == 0 { 350 } else { 0 };
        out.push_str(&format!(
            "commit refs/heads/b{i}\nmark :{i}\ncommitter d <d@x> {time} +0000\ndata 1\nm\n"
        ));
        let mut parents = BTreeSet::new();
        if i > 1 {
            parents.insert(i - 1 - random((i - 1).min(4)));
            if random(4) == 0 {
                parents.insert(1 + random(i - 1));
            }
        }
        for (n, p) in parents.iter().rev().enumerate() {
            out.push_str(&format!("{} :{p}\n", if n == 0 { "from" } else { "merge" }));
        }
        let file = random(5);
        let text: String = (0..20)
            .map(|l| {
                if l == i % 20 {
                    format!("line {l} of {i}\n")
                } else {
                    format!("line {l} of {file}\n")
                }
            })
            .collect();
        out.push_str(&format!("M 644 inline d/f{file}\ndata {}\n{text}\n", text.len()));
        match random(6) {
            0 => out.push_str(&format!("R d/f{file} e/g{}\n", random(9))),
            1 if i > 3 => out.push_str(&format!("D d/f{file}\n")),
            _ => {}
        }
        out.push('\n');
    }
    out
}

/// What git says of `base...head`: possible merge bases, the commits of head, and the files.
struct Expected {
    bases: Vec<String>,
    commits: BTreeSet<String>,
    files: BTreeMap<String, (String, u64, u64)>,
    patches: BTreeMap<String, String>,
}

fn expected(dir: &Path, base: &str, head: &str) -> Expected {
    let bases: Vec<String> = git(dir, &["merge-base", "--all", base, head], "")
        .lines()
        .map(str::to_owned)
        .collect();
    let commits = git(dir, &["rev-list", &format!("{base}..{head}")], "")
        .lines()
        .map(str::to_owned)
        .collect();
    let mut files = BTreeMap::new();
    if let Some(from) = bases.first() {
        let names = git(dir, &["diff", "--raw", "-M", "-z", from, head], "");
        let mut parts = names.split('\0').filter(|p| !p.is_empty());
        while let Some(raw) = parts.next() {
            let status = raw.rsplit(' ').next().unwrap();
            let mut path = parts.next().unwrap().to_owned();
            let mut what = match status.chars().next().unwrap() {
                'A' => "added",
                'D' => "removed",
                'R' => "renamed",
                _ => "modified",
            }
            .to_owned();
            if what == "renamed" {
                what = format!("renamed from {path}");
                path = parts.next().unwrap().to_owned();
            }
            files.insert(path, (what, 0, 0));
        }
        let counts = git(dir, &["diff", "--numstat", "-M", "-z", from, head], "");
        let mut parts = counts.split('\0').filter(|p| !p.is_empty());
        while let Some(line) = parts.next() {
            let mut fields = line.split('\t');
            let (add, del, path) = (
                fields.next().unwrap(),
                fields.next().unwrap(),
                fields.next().unwrap_or(""),
            );
            let path = if path.is_empty() {
                parts.next();
                parts.next().unwrap().to_owned()
            } else {
                path.to_owned()
            };
            let entry = files.get_mut(&path).unwrap();
            (entry.1, entry.2) = (add.parse().unwrap_or(0), del.parse().unwrap_or(0));
        }
    }
    let patches = bases.first().map(|from| patches(dir, from, head)).unwrap_or_default();
    Expected {
        bases,
        commits,
        files,
        patches,
    }
}

/// The patches that git prints, by path, without their headers and without what it puts behind the second `@@`.
fn patches(dir: &Path, from: &str, head: &str) -> BTreeMap<String, String> {
    let all = git(
        dir,
        &["-c", "core.quotePath=false", "diff", "-M", "--no-color", from, head],
        "",
    );
    let mut out = BTreeMap::new();
    for part in format!("\n{all}").split("\ndiff --git ").skip(1) {
        let Some(at) = part.find("\n@@ ") else { continue };
        let (header, hunks) = part.split_at(at + 1);
        let line = |start: &str| header.lines().find_map(|l| l.strip_prefix(start));
        let path = line("+++ b/").or(line("--- a/")).unwrap().trim_end_matches('\t');
        let hunks: Vec<String> = hunks
            .split('\n')
            .map(
                |l| match l.strip_prefix("@@ ").and_then(|r| r.find(" @@").map(|end| &r[..end])) {
                    Some(range) => format!("@@ {range} @@"),
                    None => l.to_owned(),
                },
            )
            .collect();
        out.insert(path.to_owned(), hunks.join("\n"));
    }
    out
}

/// The patches that the API gives, by path.
fn given(files: &Value) -> BTreeMap<String, String> {
    let files = files.as_array().unwrap().iter();
    files
        .filter_map(|f| Some((f["filename"].as_str()?.to_owned(), f["patch"].as_str()?.to_owned())))
        .collect()
}

fn listed(files: &Value) -> BTreeMap<String, (String, u64, u64)> {
    let one = |f: &Value| {
        let status = match f["previous_filename"].as_str() {
            Some(from) => format!("renamed from {from}"),
            None => f["status"].as_str().unwrap().to_owned(),
        };
        let count = |name: &str| f[name].as_u64().unwrap();
        (
            f["filename"].as_str().unwrap().to_owned(),
            (status, count("additions"), count("deletions")),
        )
    };
    files.as_array().unwrap().iter().map(one).collect()
}

#[tokio::test]
async fn made_up_histories_are_walked_as_git_walks_them() {
    for seed in 1..=3 {
        let dir = tempfile::tempdir().unwrap();
        git(dir.path(), &["init", "-q", "-b", "main", "."], "");
        let count = 24;
        git(dir.path(), &["fast-import", "--quiet"], &history(seed, count));
        let world = format!(
            "world: 1\nrepositories: {{octo-org/bench: {{clone: '{}'}}}}\n",
            dir.path().display()
        );
        let sim = start(&World::parse("w", &world).unwrap());
        let c = Client::new(&sim);
        for (a, b) in (1..=count)
            .step_by(3)
            .flat_map(|a| [(a, count), (count - 1, a / 2 + 1)])
        {
            let (base, head) = (
                git(dir.path(), &["rev-parse", &format!("b{a}")], ""),
                git(dir.path(), &["rev-parse", &format!("b{b}")], ""),
            );
            let expected = expected(dir.path(), &base, &head);
            let path = format!("/repos/octo-org/bench/compare/{base}...{head}");
            let answer = c.call("GET", &path, &[], None).await;
            if expected.bases.is_empty() {
                assert_eq!(answer.status, 404);
                continue;
            }
            let out = answer.json();
            let found = out["merge_base_commit"]["sha"].as_str().unwrap().to_owned();
            assert!(
                expected.bases.contains(&found),
                "seed {seed}: {a}...{b}: {found} is none of {:?}",
                expected.bases
            );
            let commits: Vec<String> = out["commits"]
                .as_array()
                .unwrap()
                .iter()
                .map(|c| c["sha"].as_str().unwrap().to_owned())
                .collect();
            assert_eq!(
                commits.iter().cloned().collect::<BTreeSet<_>>(),
                expected.commits,
                "seed {seed}: {a}...{b}"
            );
            for (i, commit) in out["commits"].as_array().unwrap().iter().enumerate() {
                for parent in commit["parents"].as_array().unwrap() {
                    let at = commits.iter().position(|c| parent["sha"] == **c);
                    assert!(at.is_none_or(|at| at < i), "parents come before children");
                }
            }
            if expected.bases[0] == found {
                assert_eq!(listed(&out["files"]), expected.files, "seed {seed}: {a}...{b}");
                assert_eq!(given(&out["files"]), expected.patches, "seed {seed}: {a}...{b}");
            }
        }
    }
}

#[tokio::test]
async fn real_pull_requests_have_the_files_that_git_names() {
    let Ok(corpus) = std::env::var("COUNTERSIGN_CORPUS") else {
        eprintln!("skipped: set COUNTERSIGN_CORPUS to the git directory of a clone with refs/pull/*/head");
        return;
    };
    let dir = Path::new(&corpus);
    let refs = git(dir, &["for-each-ref", "--format=%(refname)", "refs/pull/"], "");
    let step: usize = std::env::var("COUNTERSIGN_CORPUS_EVERY")
        .ok()
        .and_then(|v| v.parse().ok())
        .unwrap_or(40);
    let numbers: Vec<u64> = refs.lines().filter_map(|r| r.split('/').nth(2)?.parse().ok()).collect();
    let pulls: Vec<String> = numbers
        .iter()
        .step_by(step)
        .map(|n| format!("{{number: {n}}}"))
        .collect();
    assert!(!pulls.is_empty(), "the corpus has no pull requests");
    let world = format!(
        "world: 1\nrepositories: {{octo-org/bench: {{clone: '{corpus}', pulls: [{}]}}}}\n",
        pulls.join(", ")
    );
    let sim = start(&World::parse("w", &world).unwrap());
    let c = Client::new(&sim);
    let main = c.get("").await["default_branch"].as_str().unwrap().to_owned();
    let (mut compared, mut different, mut files, mut other) = (0, Vec::new(), 0, Vec::new());
    for number in numbers.iter().step_by(step) {
        let expected = expected(dir, &main, &format!("refs/pull/{number}/head"));
        if expected.bases.len() != 1 || expected.files.len() > 3_000 {
            continue;
        }
        let mut found = BTreeMap::new();
        for page in 1..=31 {
            let part = c.get(&format!("/pulls/{number}/files?per_page=100&page={page}")).await;
            if part.as_array().unwrap().is_empty() {
                break;
            }
            found.extend(listed(&part));
            for (path, patch) in given(&part) {
                if expected
                    .patches
                    .get(&path)
                    .is_none_or(|p| p.trim_end() != patch.trim_end())
                {
                    other.push(format!("#{number} {path}"));
                }
            }
        }
        let mut commits = BTreeSet::new();
        for page in 1..=3 {
            let part = c
                .get(&format!("/pulls/{number}/commits?per_page=100&page={page}"))
                .await;
            commits.extend(
                part.as_array()
                    .unwrap()
                    .iter()
                    .map(|c| c["sha"].as_str().unwrap().to_owned()),
            );
        }
        if expected.commits.len() <= 250 {
            assert_eq!(commits, expected.commits, "pull request {number}");
        } else {
            assert_eq!(commits.len(), 250, "pull request {number}");
        }
        compared += 1;
        files += expected.files.len();
        // Which of several similar files is the source of a rename, and how much alike they must be, git weighs by chunks
        // of bytes; the rest must be equal. Counts of a diff differ where several smallest diffs exist.
        for path in found.keys().chain(expected.files.keys()).collect::<BTreeSet<_>>() {
            let (a, b) = (found.get(path).map(|x| &x.0), expected.files.get(path).map(|x| &x.0));
            if a != b {
                different.push(format!("#{number} {path}: {a:?}, git {b:?}"));
            }
        }
    }
    eprintln!(
        "{compared} pull requests, {files} files; {} different: {different:#?}",
        different.len()
    );
    eprintln!("{} other patches: {other:#?}", other.len());
    assert!(different.len() * 1_000 <= files, "more than one in a thousand");
    // Several patches may be right; git's heuristics choose among them.
    assert!(other.len() * 20 <= files, "more than one in twenty");
}
