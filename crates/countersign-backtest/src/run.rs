//! All pull requests in parallel: what was judged before is reused, what is new is written down at once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use chrono::{DateTime, Utc};
use countersign_checks::Memo;
use countersign_core::digest::sha256_hex;
use countersign_core::{Evidence, RepoName};
use countersign_policy::LoadedPolicy;

use crate::BacktestError;
use crate::evidence::of_head;
use crate::git::Git;
use crate::graph::{Graph, Head};
use crate::judge::judge;
use crate::record::{PullResult, Standing};
use crate::source::Source;
use crate::time::Times;

/// Pull requests that a worker takes at once: neighbours share files.
const AT_ONCE: usize = 8;

/// What is asked.
pub struct Ask<'a> {
    /// The clone.
    pub clone: &'a Path,
    /// The policy.
    pub policy: &'a LoadedPolicy,
    /// Heads from this time on; all where it is absent.
    pub since: Option<DateTime<Utc>>,
    /// These pull requests; all where it is empty.
    pub pulls: &'a BTreeSet<u64>,
    /// What else is known of pull requests.
    pub worlds: &'a dyn Worlds,
    /// A digest of the program: results of another one are not reused.
    pub engine: &'a str,
    /// Where results are kept; nothing is kept without it.
    pub kept: Option<&'a Path>,
    /// How many judge at once.
    pub workers: usize,
}

/// What more than a clone is known of pull requests.
pub trait Worlds: Sync {
    /// The pull requests of which more is known; a clone need not have their heads.
    fn numbers(&self) -> Vec<u64>;
    /// A digest of what is known of a pull request, or nothing.
    fn digest(&self, number: u64) -> Option<String>;
    /// Its evidence, and whether there is a sign-off.
    ///
    /// # Errors
    /// Why what is known cannot be used; a sentence.
    fn evidence(&self, number: u64, policy: &LoadedPolicy) -> Result<(Evidence, bool), String>;
}

/// How far it is.
pub trait Progress: Sync {
    /// So many are to be judged, and so many more were before.
    fn start(&self, new: usize, known: usize);
    /// One is done.
    fn done(&self);
}

/// What came of it.
pub struct Outcome {
    /// Every pull request, by number.
    pub results: Vec<PullResult>,
    /// How long the new ones took.
    pub times: Times,
    /// How many were judged before.
    pub known: usize,
}

/// Judges.
///
/// # Errors
/// The clone or the kept results cannot be used.
pub fn run(ask: &Ask<'_>, progress: &dyn Progress) -> Result<Outcome, BacktestError> {
    let git = Git::new(ask.clone);
    let graph = Graph::read(&git)?;
    let repository = repository(&git, ask.policy);
    let mut heads = graph.heads(&git)?;
    heads.retain(|head| {
        (ask.pulls.is_empty() || ask.pulls.contains(&head.number))
            && ask.since.is_none_or(|since| head.time >= since.timestamp())
    });
    let here: BTreeSet<u64> = heads.iter().map(|head| head.number).collect();
    let further = ask.worlds.numbers().into_iter().filter(|number| !here.contains(number));
    heads.extend(
        further
            .filter(|number| ask.pulls.is_empty() || ask.pulls.contains(number))
            .map(Head::unknown),
    );
    heads.sort_by_key(|head| head.number);
    if heads.is_empty() {
        return Err(BacktestError::Nothing(
            "no pull request of the clone was asked for".into(),
        ));
    }
    // By day, so that neighbours share the files of the target branch.
    let mut order: Vec<usize> = (0..heads.len()).collect();
    order.sort_by_key(|at| (heads[*at].trusted, heads[*at].number));
    let keys: Vec<String> = heads.iter().map(|head| key(head, &graph, ask)).collect();
    let kept = Kept::open(ask)?;
    let mut slots: Vec<Option<PullResult>> = keys.iter().map(|key| kept.known.get(key).cloned()).collect();
    order.retain(|at| slots[*at].is_none());
    let known = heads.len() - order.len();
    progress.start(order.len(), known);

    let next = AtomicUsize::new(0);
    let found: Mutex<Vec<(usize, PullResult)>> = Mutex::default();
    let all_times: Mutex<Times> = Mutex::default();
    let fault: Mutex<Option<BacktestError>> = Mutex::default();
    let memo = Memo::default();
    let work = || -> Result<(), BacktestError> {
        let source = Arc::new(Source::open(&git, ask.policy.policy.evidence.max_file_bytes)?);
        let mut times = Times::default();
        loop {
            let from = next.fetch_add(AT_ONCE, Ordering::Relaxed);
            let Some(batch) = order
                .get(from..(from + AT_ONCE).min(order.len()))
                .filter(|batch| !batch.is_empty())
            else {
                break;
            };
            for at in batch {
                let result = one(
                    &heads[*at],
                    &keys[*at],
                    &graph,
                    &source,
                    ask,
                    &repository,
                    &memo,
                    &mut times,
                );
                kept.add(&result)?;
                found.lock().unwrap_or_else(PoisonError::into_inner).push((*at, result));
                progress.done();
            }
        }
        all_times.lock().unwrap_or_else(PoisonError::into_inner).add(times);
        Ok(())
    };
    std::thread::scope(|scope| {
        for _ in 0..ask.workers.clamp(1, 64) {
            scope.spawn(|| {
                if let Err(error) = work() {
                    fault
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .get_or_insert(error);
                    next.store(usize::MAX / 2, Ordering::Relaxed);
                }
            });
        }
    });
    if let Some(error) = fault.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    for (at, result) in found.into_inner().unwrap_or_else(PoisonError::into_inner) {
        slots[at] = Some(result);
    }
    let results: Vec<PullResult> = slots.into_iter().flatten().collect();
    kept.finish(&results)?;
    let times = all_times.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Outcome { results, times, known })
}

fn one(
    head: &Head,
    key: &str,
    graph: &Graph,
    source: &Arc<Source>,
    ask: &Ask<'_>,
    repository: &RepoName,
    memo: &Memo,
    times: &mut Times,
) -> PullResult {
    let start = Instant::now();
    let policy = ask.policy;
    let mut result = PullResult {
        number: head.number,
        title: head.title.clone(),
        merged: head.merged,
        at: DateTime::from_timestamp(head.time, 0).unwrap_or_default(),
        head: head.sha.clone(),
        trusted: None,
        base: None,
        url: format!("https://github.com/{repository}/pull/{}", head.number),
        policy: format!("{} {}", policy.policy.name, policy.policy.version),
        world: false,
        standing: Standing::Unjudged,
        decision: None,
        problem: None,
        rows: Vec::new(),
        key: key.to_owned(),
    };
    let evidence = if ask.worlds.digest(head.number).is_some() {
        result.world = true;
        ask.worlds.evidence(head.number, policy)
    } else {
        of_head(head, graph, source, &policy.policy, repository).map(|evidence| (evidence, false))
    };
    match evidence {
        Ok((evidence, signed)) => {
            if result.world {
                result.at = evidence.now;
                result.head = evidence.pull_request.head_sha.to_string();
                if !evidence.pull_request.title.is_empty() {
                    result.title.clone_from(&evidence.pull_request.title);
                }
            }
            judge(&mut result, &evidence, signed, policy, memo, start.elapsed(), times);
        }
        Err(why) => result.problem = Some(why),
    }
    result
}

/// The repository that readers know: the policy's, else by the clone's remote.
fn repository(git: &Git, policy: &LoadedPolicy) -> RepoName {
    let named = policy.policy.repository.as_deref().and_then(|name| name.parse().ok());
    let remote = || {
        let url = git.output(&["config", "--get", "remote.origin.url"]).ok()?;
        let path = url.trim().trim_end_matches('/').trim_end_matches(".git").to_owned();
        let mut parts = path.rsplit(['/', ':']);
        let (name, owner) = (parts.next()?, parts.next()?);
        format!("{owner}/{name}").parse().ok()
    };
    named
        .or_else(remote)
        .or_else(|| "local/clone".parse().ok())
        .unwrap_or_else(|| unreachable!("a name with two words is a name"))
}

/// A digest of all that a result follows from.
fn key(head: &Head, graph: &Graph, ask: &Ask<'_>) -> String {
    let trusted = head.trusted.and_then(|place| graph.main_at(place)).unwrap_or_default();
    let parts = [
        ask.engine,
        &ask.policy.digest,
        &head.number.to_string(),
        &head.sha,
        trusted,
        &head.merged.to_string(),
        &head.title,
        &ask.worlds.digest(head.number).unwrap_or_default(),
    ];
    sha256_hex(parts.join("\0").as_bytes())
}

/// Results on disk: those of an earlier backtest, and those of one that was stopped.
struct Kept {
    file: Option<PathBuf>,
    partial: Option<Mutex<BufWriter<File>>>,
    known: BTreeMap<String, PullResult>,
}

fn fault(file: &Path, error: impl std::fmt::Display) -> BacktestError {
    BacktestError::File {
        file: file.display().to_string(),
        why: error.to_string(),
    }
}

fn partial_of(file: &Path) -> PathBuf {
    file.with_extension("partial.jsonl")
}

impl Kept {
    fn open(ask: &Ask<'_>) -> Result<Self, BacktestError> {
        let Some(file) = ask.kept else {
            return Ok(Self {
                file: None,
                partial: None,
                known: BTreeMap::new(),
            });
        };
        let partial = partial_of(file);
        let mut known = BTreeMap::new();
        for place in [file, &partial] {
            let Ok(open) = File::open(place) else { continue };
            for line in BufReader::new(open).lines() {
                // The last line of a stopped backtest may be cut; what cannot be read is judged again.
                let Ok(line) = line else { break };
                if let Ok(result) = serde_json::from_str::<PullResult>(&line) {
                    known.insert(result.key.clone(), result);
                }
            }
        }
        let open = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&partial)
            .map_err(|error| fault(&partial, error))?;
        let mut writer = BufWriter::new(open);
        // A cut line must not swallow the next one.
        writer.write_all(b"\n").map_err(|error| fault(&partial, error))?;
        Ok(Self {
            file: Some(file.to_owned()),
            partial: Some(Mutex::new(writer)),
            known,
        })
    }

    fn add(&self, result: &PullResult) -> Result<(), BacktestError> {
        let (Some(file), Some(partial)) = (&self.file, &self.partial) else {
            return Ok(());
        };
        let mut writer = partial.lock().unwrap_or_else(PoisonError::into_inner);
        let line = serde_json::to_string(result).map_err(|error| fault(file, error))?;
        writeln!(writer, "{line}")
            .and_then(|()| writer.flush())
            .map_err(|error| fault(&partial_of(file), error))
    }

    /// Puts all results into their place at once, beside those of pull requests that were not asked for.
    fn finish(self, results: &[PullResult]) -> Result<(), BacktestError> {
        let Some(file) = self.file else { return Ok(()) };
        drop(self.partial);
        let asked: BTreeSet<u64> = results.iter().map(|result| result.number).collect();
        let others = self.known.values().filter(|result| !asked.contains(&result.number));
        let mut all: Vec<&PullResult> = results.iter().chain(others).collect();
        all.sort_by(|left, right| (left.number, &left.key).cmp(&(right.number, &right.key)));
        let new = file.with_extension("jsonl.new");
        let write = || -> std::io::Result<()> {
            let mut writer = BufWriter::new(File::create(&new)?);
            for result in &all {
                serde_json::to_writer(&mut writer, result)?;
                writer.write_all(b"\n")?;
            }
            writer.flush()?;
            drop(writer);
            std::fs::rename(&new, &file)
        };
        write().map_err(|error| fault(&file, error))?;
        std::fs::remove_file(partial_of(&file)).map_err(|error| fault(&file, error))
    }
}
