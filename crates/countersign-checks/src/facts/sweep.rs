//! Which run proves the points of a pull request, and what each run lacks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use countersign_core::evidence::{Conclusion, Job, RunStatus, WorkflowRun};
use countersign_core::{Cause, Evidence, Observed};
use countersign_matrix::{Configs, Entry, Files, MatrixRules, Purpose, Row, check_run_name, entry_rows, resolve};
use countersign_policy::Policy;
use serde_json::Value as Json;

use super::points::{self, Jobs, Selected};
use super::runs;
use super::tree::TreeFiles;

/// What happened in one lane of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaneResult {
    /// Green jobs that were expected.
    pub green: usize,
    /// Expected jobs.
    pub expected: usize,
    /// Expected jobs that are not green, by name.
    pub missing: Vec<String>,
    /// Jobs that ran and are not green: name and conclusion.
    pub bad: Vec<(String, &'static str)>,
    /// Jobs that are not finished.
    pub running: usize,
    /// Whether any job of the lane ran.
    pub executed: bool,
}

impl LaneResult {
    fn good(&self) -> bool {
        self.missing.is_empty() && self.green >= self.expected
    }
}

/// One run, weighed.
#[derive(Debug)]
pub struct Weighed<'e> {
    /// The run.
    pub run: &'e WorkflowRun,
    /// Required lanes with what happened there.
    pub lanes: BTreeMap<String, LaneResult>,
    /// Entries whose rows differ between the run's commit and head, with one field that does.
    pub stale_rows: Vec<(String, String)>,
    /// Scripts and recipes of the entries that differ between the run's commit and head.
    pub stale_files: Vec<String>,
}

impl Weighed<'_> {
    /// Whether the run proves everything.
    #[must_use]
    pub fn good(&self) -> bool {
        self.lanes.values().all(LaneResult::good) && self.stale_rows.is_empty() && self.stale_files.is_empty()
    }

    /// Whether all its lanes are proved, whatever changed since.
    #[must_use]
    pub fn lanes_good(&self) -> bool {
        self.lanes.values().all(LaneResult::good)
    }

    fn green(&self) -> usize {
        self.lanes.values().map(|lane| lane.green).sum()
    }
}

/// The best run, and why others do not count.
#[derive(Debug)]
pub struct Sweep<'e> {
    /// The run that proves the points, else the one that comes closest.
    pub best: Option<Weighed<'e>>,
    /// Runs that are no evidence at all: id and why.
    pub not_evidence: Vec<(u64, String)>,
    /// Something that could not be read and that may hide a better run.
    pub unread: Option<Cause>,
}

/// Weighs all runs: the pinned one first, then newest first; the first that proves everything is taken.
///
/// # Errors
/// What could not be read.
pub fn weigh<'e>(
    evidence: &'e Evidence,
    policy: &Policy,
    selected: &Selected,
    pinned: Option<u64>,
) -> Result<Sweep<'e>, Cause> {
    let commits = runs::commits(evidence)?;
    let mut candidates = runs::all(evidence)?;
    candidates.sort_by_key(|run| Some(run.id) != pinned);
    let expected = points::expected(selected.selection.rows(), policy);
    let mut sweep = Sweep {
        best: None,
        not_evidence: Vec::new(),
        unread: None,
    };
    for run in candidates {
        match runs::counts(run, &policy.ci, &commits) {
            Err(runs::NotEvidence::Workflow(path)) => {
                sweep.not_evidence.push((run.id, format!("it is a run of {path}")))
            }
            Err(runs::NotEvidence::Event(event)) => {
                sweep.not_evidence.push((run.id, format!("it was started by {event}")))
            }
            // What a reader can do something about stands first: this run was theirs.
            Err(runs::NotEvidence::CommitGone(sha)) => sweep.not_evidence.insert(
                0,
                (
                    run.id,
                    format!("its commit {} is no longer in this pull request", sha.short()),
                ),
            ),
            Ok(()) => match weigh_one(evidence, policy, selected, &expected, run) {
                Err(cause) => sweep.unread = sweep.unread.or(Some(cause)),
                Ok(weighed) if weighed.good() => {
                    sweep.best = Some(weighed);
                    return Ok(sweep);
                }
                Ok(weighed) => {
                    // Lanes that are proved weigh more than fresh files; then the number of green points.
                    let rank = |weighed: &Weighed<'_>| (weighed.lanes_good(), weighed.green());
                    if sweep.best.as_ref().is_none_or(|best| rank(best) < rank(&weighed)) {
                        sweep.best = Some(weighed);
                    }
                }
            },
        }
    }
    Ok(sweep)
}

fn weigh_one<'e>(
    evidence: &'e Evidence,
    policy: &Policy,
    selected: &Selected,
    expected: &BTreeMap<&str, Jobs>,
    run: &'e WorkflowRun,
) -> Result<Weighed<'e>, Cause> {
    let jobs = match &run.jobs {
        Observed::Present(jobs) => jobs.as_slice(),
        Observed::Absent => &[],
        Observed::Unavailable(cause) => return Err(cause.clone()),
    };
    let lanes = by_lane(policy, expected, jobs);
    let (stale_rows, stale_files) = if run.head_sha == evidence.pull_request.head_sha {
        (Vec::new(), Vec::new())
    } else {
        stale(evidence, policy, selected, run)?
    };
    Ok(Weighed {
        run,
        lanes,
        stale_rows,
        stale_files,
    })
}

/// What happened in the lanes that are required. A lane is the caller's name, compared whole (domain guide, section 4.4).
fn by_lane(policy: &Policy, expected: &BTreeMap<&str, Jobs>, jobs: &[Job]) -> BTreeMap<String, LaneResult> {
    let canary = policy.matrix.canary.as_ref().map(|canary| canary.lane.as_str());
    let mut green: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut results: BTreeMap<String, LaneResult> = expected
        .iter()
        .map(|(lane, jobs)| {
            (
                (*lane).to_owned(),
                LaneResult {
                    expected: jobs.values().sum(),
                    ..LaneResult::default()
                },
            )
        })
        .collect();
    let mut canary_green: Vec<String> = Vec::new();
    for job in jobs {
        let name = check_run_name(&job.name, &policy.matrix);
        let shown = name.job.clone().unwrap_or_default();
        if canary == Some(name.caller.as_str()) {
            if job.conclusion == Some(Conclusion::Success) {
                canary_green.push(shown);
            }
            continue;
        }
        let Some(result) = results.get_mut(&name.caller) else {
            continue;
        };
        match (job.status, job.conclusion) {
            (RunStatus::Running, _) | (RunStatus::Completed, None) => {
                result.running += 1;
                result.executed = true;
            }
            (_, Some(Conclusion::Success)) => {
                result.executed = true;
                green.entry(name.caller).or_default().push(shown);
            }
            (_, Some(Conclusion::Skipped)) => {}
            (_, Some(other)) => {
                result.executed = true;
                result.bad.push((shown, word(other)));
            }
        }
    }
    for (lane, result) in &mut results {
        let Some(wanted) = expected.get(lane.as_str()) else {
            continue;
        };
        let throughput = policy
            .matrix
            .lanes
            .iter()
            .any(|known| known.name == *lane && known.purpose == Purpose::Throughput && takes_canary(policy, lane));
        let mut have: Jobs = Jobs::new();
        for name in green.remove(lane).unwrap_or_default() {
            *have.entry(name).or_default() += 1;
        }
        let lane_green: usize = have.values().sum();
        if have.keys().any(|name| wanted.contains_key(name)) || (lane_green == 0 && throughput) {
            if throughput {
                for name in canary_green.iter().filter(|name| wanted.contains_key(*name)) {
                    *have.entry(name.clone()).or_default() += 1;
                }
            }
            for (name, count) in wanted {
                let found = have.get(name).copied().unwrap_or(0).min(*count);
                result.green += found;
                result.missing.extend(std::iter::repeat_n(name.clone(), count - found));
            }
            // The canary takes one point out of its lane; a name of it that says nothing stands for one point.
            if throughput
                && result.missing.len() == 1
                && !canary_green.is_empty()
                && canary_green.iter().all(|name| !wanted.contains_key(name))
            {
                result.missing.clear();
                result.green += 1;
            }
        } else {
            // Names of another form (or shortened): then only numbers can be compared, and nothing red may be among them.
            let canary = usize::from(throughput && !canary_green.is_empty());
            result.green = (lane_green + canary).min(result.expected);
            let short = result.expected - result.green;
            if short > 0 || !result.bad.is_empty() || result.running > 0 {
                let lacking = short.max(result.bad.len() + result.running).max(1);
                result.missing = vec![format!("{lacking} of {}", result.expected)];
            }
        }
    }
    results
}

/// Whether the canary could have been taken out of a lane.
fn takes_canary(policy: &Policy, lane: &str) -> bool {
    policy.matrix.canary.as_ref().is_some_and(|canary| {
        policy.matrix.lanes.iter().any(|known| {
            known.name == lane
                && known.nodes == countersign_matrix::NodeKind::Single
                && known.purpose == Purpose::Throughput
                && known
                    .sequence
                    .as_ref()
                    .is_some_and(|sequence| canary.sequences.contains(sequence))
        })
    })
}

fn word(conclusion: Conclusion) -> &'static str {
    match conclusion {
        Conclusion::Success => "success",
        Conclusion::Failure => "failure",
        Conclusion::Skipped => "skipped",
        Conclusion::Cancelled => "cancelled",
        Conclusion::Neutral => "neutral",
        Conclusion::TimedOut => "timed out",
        Conclusion::ActionRequired => "action required",
        Conclusion::StartupFailure => "could not start",
        Conclusion::Stale => "stale",
        Conclusion::Unknown => "unknown",
    }
}

/// Whether every selected row of an entry is among those that it had at the run's commit. What an entry has lost since, as a
/// retired scenario, was measured too and does no harm.
fn all_measured(selected: &Selected, then: &Configs, then_entry: &Arc<Entry>, rules: &MatrixRules) -> bool {
    let Ok(rows) = entry_rows(then, rules, then_entry) else {
        return false;
    };
    let rows: Vec<Row> = rows.iter().map(bare).collect();
    let now = selected
        .selection
        .rows()
        .filter(|row| row.head.key == then_entry.head.key);
    now.map(bare).all(|row| rows.iter().any(|then| same_work(then, &row)))
}

/// A row without what it is run for.
fn bare(row: &Row) -> Row {
    Row {
        run_eval: None,
        eval_only: None,
        eval_conc: None,
        eval_all_concs: None,
        recipe_fingerprint: None,
        ..row.clone()
    }
}

/// Whether two rows start the same. One job may measure several concurrencies, and how they are cut into jobs is the
/// generator's choice.
fn same_work(then: &Row, now: &Row) -> bool {
    let concurrencies = now.conc.values().iter().all(|conc| then.conc.values().contains(conc));
    let (Json::Object(mut then), Json::Object(mut now)) = (then.to_json(), now.to_json()) else {
        return false;
    };
    for own in ["conc", "exp-name"] {
        then.remove(own);
        now.remove(own);
    }
    // Names of components, which entries say since they are recorded; nothing is started by them.
    for told in ["router", "kv-p2p-transfer"] {
        if !then.contains_key(told) {
            now.remove(told);
        }
    }
    concurrencies && then == now
}

/// Entries with a field that differs, and files that differ.
type Stale = (Vec<(String, String)>, Vec<String>);

/// What of the selected entries changed between a run's commit and head: rows (image, topology), scripts and recipes
/// (domain guide, section 5.4). Launchers and shared libraries are left out: merges of the target branch move them.
fn stale(evidence: &Evidence, policy: &Policy, selected: &Selected, run: &WorkflowRun) -> Result<Stale, Cause> {
    let then_files = TreeFiles::new(evidence, &run.head_sha)?;
    let head_files = TreeFiles::new(evidence, &evidence.pull_request.head_sha)?;
    // The commit may be older than what the branch has merged since.
    let mut rules = policy.matrix.clone();
    rules.components = false;
    let then = Configs::read(&then_files, &policy.layout, &rules);
    if let Some(cause) = then_files.unread() {
        return Err(cause);
    }
    let mut rows = Vec::new();
    let mut files = BTreeSet::new();
    let keys: BTreeSet<&str> = selected.selection.entries.iter().map(|entry| &*entry.key).collect();
    for key in keys {
        let Some(now_entry) = selected.configs.masters.get(key) else {
            continue;
        };
        match then.masters.get(key) {
            None => rows.push((key.to_owned(), "the entry is new since".to_owned())),
            Some(then_entry)
                if !then_entry.raw.same_value(&now_entry.raw) && !all_measured(selected, &then, then_entry, &rules) =>
            {
                let fields = countersign_matrix::changed_fields(&then_entry.raw, &now_entry.raw);
                rows.push((
                    key.to_owned(),
                    fields.first().cloned().unwrap_or_else(|| "a value".to_owned()),
                ));
            }
            Some(_) => {}
        }
        let used = resolve(
            now_entry,
            &selected.configs.runners,
            &head_files,
            &policy.layout,
            &policy.matrix,
        );
        let paths = used
            .scripts
            .iter()
            .map(|file| file.path.clone())
            .chain(used.recipes.iter().filter_map(|recipe| recipe.path.clone()));
        for path in paths {
            if head_files.exists(&path) && then_files.id(&path) != head_files.id(&path) {
                files.insert(path);
            }
        }
    }
    Ok((rows, files.into_iter().collect()))
}
