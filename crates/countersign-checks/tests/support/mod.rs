//! Evidence from a clone: trees and contents through `git`, everything that is asked of GitHub left empty.
#![allow(dead_code, missing_docs, clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};

use chrono::{DateTime, Utc};
use countersign_core::evidence::{
    Association, BlobSource, Blobs, ChangeStatus, ChangedFile, EVIDENCE_FORMAT, EntryMode, People, PullRequest,
    SignoffText, Tree, TreeEntry,
};
use countersign_core::{BlobId, CauseKind, CommitSha, Evidence, Observed, PrNumber, SignoffKey, SignoffPlace};
use countersign_policy::LoadedPolicy;

pub(crate) type Failure = Box<dyn std::error::Error>;

const CACHE_BYTES: usize = 96 << 20;

/// Blobs by way of one `git cat-file --batch`.
pub(crate) struct Objects {
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
    pub(crate) fn open(dir: &str, largest: u64) -> Result<Self, Failure> {
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

pub(crate) fn git(dir: &str, args: &[&str]) -> Result<String, Failure> {
    let output = Command::new("git")
        .arg(format!("--git-dir={dir}"))
        .args(args)
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

pub(crate) type Entries = Arc<BTreeMap<String, TreeEntry>>;

pub(crate) fn entries(dir: &str, commit: &str) -> Result<Entries, Failure> {
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

pub(crate) fn changes(base: &Entries, head: &Entries) -> Vec<ChangedFile> {
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

/// The clone's objects, shared by all evidence.
pub(crate) struct Shared(pub(crate) Arc<Objects>);

impl BlobSource for Shared {
    fn blob(&self, id: &BlobId) -> Observed<Arc<str>> {
        self.0.blob(id)
    }
}

/// The clone that tests on real commits are given, and the policy that they judge by.
pub(crate) struct Clone {
    pub(crate) dir: String,
    pub(crate) objects: Arc<Objects>,
    pub(crate) policy: LoadedPolicy,
}

/// `None` where no clone is given, or where it lacks one of the commits; that is said.
pub(crate) fn clone(policy: &str, commits: &[&str]) -> Option<Clone> {
    let Ok(dir) = std::env::var("COUNTERSIGN_CORPUS") else {
        eprintln!("skipped: COUNTERSIGN_CORPUS names no git directory");
        return None;
    };
    if let Some(missing) = commits
        .iter()
        .find(|commit| git(&dir, &["cat-file", "-e", commit]).is_err())
    {
        eprintln!("skipped: {dir} does not have {missing}");
        return None;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/policies");
    let policy = countersign_policy::load(policy, &|name: &str| {
        std::fs::read_to_string(folder.join(format!("{name}.yaml"))).map_err(|error| error.to_string())
    })
    .unwrap();
    let objects = Arc::new(Objects::open(&dir, policy.policy.evidence.max_file_bytes).unwrap());
    Some(Clone { dir, objects, policy })
}

/// The three states of a pull request: commit and tree of each.
pub(crate) struct States {
    pub(crate) trusted: (String, Entries),
    pub(crate) base: (String, Entries),
    pub(crate) head: (String, Entries),
}

/// The evidence of a pull request, with a sign-off's text.
pub(crate) fn evidence(
    policy: &LoadedPolicy,
    objects: &Arc<Objects>,
    number: u64,
    states: &States,
    time: i64,
    signoff: &str,
) -> Result<Evidence, Failure> {
    let changed = changes(&states.base.1, &states.head.1);
    let mut trees = BTreeMap::new();
    let mut covers = policy.policy.evidence.judged.clone();
    covers.extend(policy.policy.evidence.trusted.iter().cloned());
    for (sha, entries) in [
        (&states.trusted.0, states.trusted.1.clone()),
        (&states.base.0, states.base.1.clone()),
        (&states.head.0, states.head.1.clone()),
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
            body: String::new(),
            author: None,
            draft: false,
            open: true,
            merged: false,
            base_ref: "main".into(),
            head_sha: states.head.0.parse()?,
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
            body: signoff.to_owned(),
            created_at: now,
            updated_at: now,
            edited_by_other: None,
            url: String::new(),
        },
        trusted_sha: states.trusted.0.parse()?,
        merge_base: Observed::Present(states.base.0.parse()?),
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
        upstream: BTreeMap::new(),
        blobs: Blobs::new(Shared(objects.clone())),
    };
    Ok(evidence)
}
