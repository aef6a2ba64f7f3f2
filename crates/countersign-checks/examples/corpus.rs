//! Judges the heads of pull requests from a clone alone, with the checks that need nothing else: a development aid for
//! looking at many real changes (`corpus GIT_DIR POLICY_FOLDER POLICIES COUNT [NUMBER…]`).
//!
//! `COUNTERSIGN_CHECKS` (`a,b`) names other checks. `COUNTERSIGN_FACTS` names a JSON file with what the clone does not hold, by
//! number: `{"7": [{"at": SECONDS, "head": SHA, "policy": NAME, "signoff": TEXT, "body": TEXT, "upstream": {URL: …}}]}`, all
//! but `signoff` optional; then only these are judged.
//!
//! Trusted is the main branch's tip at the head's date, by first parent; what is asked of GitHub is left empty. Of several
//! policies (`a,b`) the first is taken whose master configs exist at the merge base. One JSON line a head; the counts
//! follow on standard error.
#![allow(clippy::print_stdout, clippy::print_stderr, missing_docs)]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use chrono::{DateTime, Utc};
use countersign_checks::{Context, checks};
use countersign_core::evidence::{
    Association, BlobSource, Blobs, ChangeStatus, ChangedFile, EVIDENCE_FORMAT, EntryMode, People, PullRequest,
    SignoffText, Tree, TreeEntry, Upstream,
};
use countersign_core::{
    BlobId, CauseKind, CommitSha, Evidence, Observed, OutcomeKind, PrNumber, SignoffKey, SignoffPlace,
};
use countersign_policy::LoadedPolicy;
use serde::Deserialize;

type Failure = Box<dyn std::error::Error>;

const CHECKS: &str =
    "image,engine-first,deprecation,architecture,chat-template,engine-patch,golden-al,append-only,changelog";
const CACHE_BYTES: usize = 96 << 20;

/// Blobs by way of one `git cat-file --batch`.
struct Objects {
    state: Mutex<State>,
    largest: usize,
}

struct State {
    // Held so that the process lives as long as its pipes.
    _child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    cache: BTreeMap<String, Observed<Arc<str>>>,
    bytes: usize,
}

impl Objects {
    fn open(dir: &str, largest: u64) -> Result<Self, Failure> {
        let mut child = Command::new("git")
            .args([&format!("--git-dir={dir}"), "cat-file", "--batch"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().ok_or("no stdin")?;
        let output = BufReader::new(child.stdout.take().ok_or("no stdout")?);
        Ok(Self {
            state: Mutex::new(State {
                _child: child,
                input,
                output,
                cache: BTreeMap::new(),
                bytes: 0,
            }),
            largest: usize::try_from(largest)?,
        })
    }
}

impl State {
    fn fetch(&mut self, id: &str, largest: usize) -> Result<Observed<Arc<str>>, Failure> {
        writeln!(self.input, "{id}")?;
        self.input.flush()?;
        let mut header = String::new();
        self.output.read_line(&mut header)?;
        let words: Vec<&str> = header.split_whitespace().collect();
        if words.len() != 3 {
            return Ok(Observed::Absent);
        }
        let size: usize = words[2].parse()?;
        let mut content = Vec::new();
        (&mut self.output).take(size as u64 + 1).read_to_end(&mut content)?;
        content.pop();
        if size > largest {
            return Ok(Observed::unavailable(CauseKind::TooLarge, id, "larger than is kept"));
        }
        Ok(match String::from_utf8(content) {
            Ok(text) => Observed::Present(Arc::from(text)),
            Err(_) => Observed::unavailable(CauseKind::Malformed, id, "no UTF-8"),
        })
    }
}

impl BlobSource for Objects {
    fn blob(&self, id: &BlobId) -> Observed<Arc<str>> {
        let Ok(mut state) = self.state.lock() else {
            return Observed::Absent;
        };
        if let Some(known) = state.cache.get(id.as_str()) {
            return known.clone();
        }
        let found = match state.fetch(id.as_str(), self.largest) {
            Ok(found) => found,
            Err(error) => return Observed::unavailable(CauseKind::Transient, id.as_str(), error.to_string()),
        };
        state.bytes += found.present().map_or(0, |text| text.len());
        if state.bytes > CACHE_BYTES {
            state.cache.clear();
            state.bytes = 0;
        }
        state.cache.insert(id.as_str().to_owned(), found.clone());
        found
    }
}

fn git(dir: &str, args: &[&str]) -> Result<String, Failure> {
    let output = Command::new("git")
        .arg(format!("--git-dir={dir}"))
        .args(args)
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

type Entries = Arc<BTreeMap<String, TreeEntry>>;

fn entries(dir: &str, commit: &str) -> Result<Entries, Failure> {
    let mut out = BTreeMap::new();
    for record in git(dir, &["ls-tree", "-r", "-z", commit])?.split('\0') {
        let Some((meta, path)) = record.split_once('\t') else {
            continue;
        };
        let words: Vec<&str> = meta.split(' ').collect();
        let [mode, _, id] = words.as_slice() else { continue };
        let mode = match *mode {
            "120000" => EntryMode::Symlink,
            "160000" => EntryMode::Submodule,
            "100755" => EntryMode::Executable,
            _ => EntryMode::File,
        };
        out.insert(path.to_owned(), TreeEntry { mode, id: id.parse()? });
    }
    Ok(Arc::new(out))
}

fn changes(base: &Entries, head: &Entries) -> Vec<ChangedFile> {
    let change = |path: &String, status| ChangedFile {
        path: path.clone(),
        previous_path: None,
        status,
    };
    let mut out = Vec::new();
    for (path, entry) in head.iter() {
        match base.get(path) {
            None => out.push(change(path, ChangeStatus::Added)),
            Some(old) if old != entry => out.push(change(path, ChangeStatus::Modified)),
            Some(_) => {}
        }
    }
    let gone = base.keys().filter(|path| !head.contains_key(*path));
    out.extend(gone.map(|path| change(path, ChangeStatus::Removed)));
    out
}

/// What is known of one sign-off besides the clone.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Facts {
    at: Option<i64>,
    head: Option<String>,
    policy: Option<String>,
    signoff: String,
    body: String,
    upstream: BTreeMap<String, Observed<Upstream>>,
}

struct MainCommit {
    sha: String,
    time: i64,
}

struct World {
    dir: String,
    main: Vec<MainCommit>,
    merged: BTreeMap<u64, String>,
    policies: Vec<LoadedPolicy>,
    objects: Arc<Objects>,
    trees: Mutex<BTreeMap<String, Entries>>,
}

/// The clone's objects, shared by all evidence.
struct Shared(Arc<Objects>);

impl BlobSource for Shared {
    fn blob(&self, id: &BlobId) -> Observed<Arc<str>> {
        self.0.blob(id)
    }
}

impl World {
    fn open(dir: &str, folder: &str, names: &str) -> Result<Self, Failure> {
        let source = |file: &str| {
            std::fs::read_to_string(format!("{folder}/{file}.yaml")).map_err(|error| format!("{file}: {error}"))
        };
        let mut policies = Vec::new();
        for name in names.split(',') {
            let policy = countersign_policy::load(name, &source)?;
            countersign_checks::validate(&policy)?;
            policies.push(policy);
        }
        let largest = policies.first().ok_or("no policy")?.policy.evidence.max_file_bytes;
        let (mut main, mut merged) = (Vec::new(), BTreeMap::new());
        for line in git(dir, &["log", "--first-parent", "--format=%H %ct %s", "HEAD"])?.lines() {
            let mut words = line.splitn(3, ' ');
            let (Some(sha), Some(time), Some(subject)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            main.push(MainCommit {
                sha: sha.to_owned(),
                time: time.parse()?,
            });
            let number = subject.rsplit_once("(#").and_then(|(_, rest)| rest.strip_suffix(')'));
            if let Some(number) = number.and_then(|number| number.parse().ok()) {
                merged.insert(number, sha.to_owned());
            }
        }
        Ok(Self {
            dir: dir.to_owned(),
            main,
            merged,
            policies,
            objects: Arc::new(Objects::open(dir, largest)?),
            trees: Mutex::default(),
        })
    }

    fn tree(&self, commit: &str) -> Result<Entries, Failure> {
        let mut trees = self.trees.lock().map_err(|_| "poisoned")?;
        if let Some(known) = trees.get(commit) {
            return Ok(known.clone());
        }
        if trees.len() > 60 {
            trees.clear();
        }
        let found = entries(&self.dir, commit)?;
        trees.insert(commit.to_owned(), found.clone());
        Ok(found)
    }

    /// The evidence of a head, and the policy for it.
    fn evidence(
        &self,
        number: u64,
        head: &str,
        time: i64,
        facts: &Facts,
    ) -> Result<(Evidence, &LoadedPolicy), Failure> {
        let trusted = self
            .main
            .iter()
            .find(|commit| commit.time <= time)
            .ok_or("older than the main branch")?;
        let base = git(&self.dir, &["merge-base", &trusted.sha, head])?.trim().to_owned();
        let (trusted_tree, base_tree, head_tree) = (self.tree(&trusted.sha)?, self.tree(&base)?, self.tree(head)?);
        let fits = |policy: &&LoadedPolicy| {
            policy
                .policy
                .layout
                .masters
                .iter()
                .any(|path| base_tree.contains_key(path))
        };
        let wanted = |policy: &&LoadedPolicy| facts.policy.as_ref().is_none_or(|name| *name == policy.policy.name);
        let policy = self.policies.iter().filter(wanted).find(fits).ok_or("no policy fits")?;
        let changed = changes(&base_tree, &head_tree);
        let mut trees = BTreeMap::new();
        let mut covers = policy.policy.evidence.judged.clone();
        covers.extend(policy.policy.evidence.trusted.iter().cloned());
        for (sha, entries) in [
            (&trusted.sha, trusted_tree),
            (&base, base_tree),
            (&head.to_owned(), head_tree),
        ] {
            let commit: CommitSha = sha.parse()?;
            let tree = Tree {
                commit: commit.clone(),
                covers: covers.clone(),
                entries,
            };
            trees.insert(commit, Observed::Present(tree));
        }
        let now: DateTime<Utc> = DateTime::from_timestamp(time, 0).ok_or("no time")?;
        let evidence = Evidence {
            format: EVIDENCE_FORMAT,
            now,
            head_seen_at: now,
            repository: "octo/bench".parse()?,
            pull_request: PullRequest {
                number: PrNumber(number),
                title: String::new(),
                body: facts.body.clone(),
                author: None,
                draft: false,
                open: true,
                merged: false,
                base_ref: "main".into(),
                head_sha: head.parse()?,
                head_ref: "head".into(),
                head_repository: None,
                labels: Vec::new(),
                url: format!("https://github.com/octo/bench/pull/{number}"),
            },
            signoff: SignoffText {
                key: SignoffKey {
                    place: SignoffPlace::IssueComment,
                    id: 1,
                },
                author: "nobody".parse()?,
                author_is_bot: false,
                association: Association::None,
                body: facts.signoff.clone(),
                created_at: now,
                updated_at: now,
                edited_by_other: None,
                url: String::new(),
            },
            trusted_sha: trusted.sha.parse()?,
            merge_base: Observed::Present(base.parse()?),
            changed_files: Observed::Present(changed),
            commits: Observed::Absent,
            comments: Observed::Absent,
            people: People {
                permissions: BTreeMap::new(),
                signer_teams: BTreeMap::new(),
                signer_in_organisation: None,
            },
            previous_template: Observed::Absent,
            trees,
            runs: Observed::Absent,
            upstream: facts.upstream.clone(),
            blobs: Blobs::new(Shared(self.objects.clone())),
        };
        Ok((evidence, policy))
    }
}

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [dir, folder, names, count, only @ ..] = args.as_slice() else {
        return Err("corpus GIT_DIR POLICY_FOLDER POLICIES COUNT [NUMBER…]".into());
    };
    let world = World::open(dir, folder, names)?;
    let slugs = std::env::var("COUNTERSIGN_CHECKS").unwrap_or_else(|_| CHECKS.to_owned());
    let slugs: Vec<&'static str> = slugs
        .split(',')
        .map(|slug| {
            checks::find(slug)
                .map(countersign_checks::Check::slug)
                .ok_or("no such check")
        })
        .collect::<Result<_, _>>()?;
    let known: Option<BTreeMap<u64, Vec<Facts>>> = match std::env::var("COUNTERSIGN_FACTS") {
        Ok(path) => Some(serde_json::from_str(&std::fs::read_to_string(path)?)?),
        Err(_) => None,
    };
    let mut heads: Vec<(u64, String, i64)> = Vec::new();
    let format = "--format=%(refname) %(objectname) %(committerdate:unix)";
    for line in git(dir, &["for-each-ref", format, "refs/pull"])?.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [name, sha, time] = words.as_slice() else { continue };
        let Some(number) = name
            .strip_prefix("refs/pull/")
            .and_then(|rest| rest.strip_suffix("/head"))
        else {
            continue;
        };
        heads.push((number.parse()?, (*sha).to_owned(), time.parse()?));
    }
    heads.sort();
    if let Some(known) = &known {
        heads.retain(|(number, ..)| known.contains_key(number));
    }
    if only.is_empty() {
        let count: usize = count.parse()?;
        let all = heads.len();
        let count = count.min(all).max(1);
        heads = (0..count).map(|index| heads[index * all / count].clone()).collect();
    } else {
        heads.retain(|(number, ..)| only.contains(&number.to_string()));
    }
    let mut counts: BTreeMap<(&str, bool, OutcomeKind), usize> = BTreeMap::new();
    let (mut panics, mut skipped, mut slowest) = (0, 0, 0.0f64);
    let mut out = std::io::stdout().lock();
    let nothing = vec![Facts::default()];
    let jobs = heads.iter().flat_map(|(number, head, time)| {
        let facts = known.as_ref().and_then(|known| known.get(number)).unwrap_or(&nothing);
        facts.iter().map(move |facts| {
            let head = facts.head.as_ref().unwrap_or(head);
            (number, head, facts.at.unwrap_or(*time), facts)
        })
    });
    for (number, head, time, facts) in jobs {
        let merged = world.merged.contains_key(number);
        let (evidence, policy) = match world.evidence(*number, head, time, facts) {
            Ok(found) => found,
            Err(error) => {
                skipped += 1;
                writeln!(
                    out,
                    "{}",
                    serde_json::json!({"pr": number, "skipped": error.to_string().trim()})
                )?;
                continue;
            }
        };
        let start = Instant::now();
        let cx = Context::new(&evidence, policy);
        let mut rows = serde_json::Map::new();
        for &slug in &slugs {
            let check = checks::find(slug).ok_or("no such check")?;
            let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check.run(&cx)));
            let Ok(report) = run else {
                panics += 1;
                rows.insert(slug.to_owned(), "PANIC".into());
                continue;
            };
            *counts.entry((slug, merged, report.outcome.kind())).or_default() += 1;
            let findings: Vec<String> = report
                .outcome
                .findings()
                .iter()
                .map(|finding| {
                    let place = finding.location.as_ref().map(ToString::to_string).unwrap_or_default();
                    let paste = finding.paste.as_deref().unwrap_or_default();
                    format!(
                        "{} [{place}] {} -> {} {paste}",
                        finding.code,
                        finding.message.plain(),
                        finding.remedy.plain()
                    )
                })
                .collect();
            let notes: Vec<String> = report.notes.iter().map(|note| note.plain()).collect();
            rows.insert(
                slug.to_owned(),
                serde_json::json!({"is": report.outcome.kind().word(), "why": report.reason.plain(), "findings": findings, "notes": notes}),
            );
        }
        let ms = start.elapsed().as_secs_f64() * 1000.0;
        slowest = slowest.max(ms);
        let line = serde_json::json!({
            "pr": number, "head": head, "at": evidence.now, "merged": merged, "policy": policy.policy.name, "ms": ms, "rows": rows,
        });
        writeln!(out, "{line}")?;
        out.flush()?;
    }
    for ((slug, merged, kind), count) in &counts {
        eprintln!(
            "{slug:<14} {:<9} {:<18} {count}",
            if *merged { "merged" } else { "not merged" },
            kind.word()
        );
    }
    eprintln!(
        "{} heads, {skipped} skipped, {panics} panics, slowest {slowest:.0} ms",
        heads.len()
    );
    Ok(())
}
