//! Workflow runs: those that are named, and the newest on commits of the pull request, with jobs and artifacts.
//!
//! Every push starts a run and few of them measure anything, so runs are looked at from the newest back to the first whole
//! green one: an older run cannot prove more than it does. Without such a one, all that the policy considers are read.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};
use countersign_core::evidence::{Artifact, Conclusion, Job, RunStatus, WorkflowRun};
use countersign_core::{CauseKind, CommitSha, Observed};
use countersign_matrix::Purpose;
use countersign_policy::Policy;
use futures::future::{BoxFuture, join};

use super::artifact;
use crate::calls::pages::{Artifacts, Jobs, Page, WorkflowRuns};
use crate::calls::{Call, at_once};
use crate::client::RepoClient;
use crate::error::GitHubError;
use crate::wire;

/// Pages of runs: the newest 300 on the branch.
const RUN_PAGES: u32 = 3;
/// Pages of jobs and artifacts of one run.
const DETAIL_PAGES: u32 = 40;
/// A run that takes less has measured nothing, mostly.
const SHORT: TimeDelta = TimeDelta::minutes(10);
/// Small artifacts, one measured point each, that are read of one run at most.
const POINTS: usize = 24;
/// Each of which may have so many bytes.
const POINT_BYTES: u64 = 1 << 20;
/// Runs of which throughput is read.
const MEASURED: usize = 2;
/// Commits of runs whose files are read.
pub const COMMITS: usize = 4;
const AT_ONCE: usize = 8;
/// Why jobs and artifacts of a run were not read.
pub const NO_EVIDENCE: &str = "the run is of another workflow, event or commit, so it can be no evidence";

/// What to look for.
pub(crate) struct Wanted<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) pull: &'a wire::Pull,
    /// Commits of the pull request, where known.
    pub(crate) commits: Option<&'a BTreeSet<CommitSha>>,
    /// Runs that somebody named.
    pub(crate) named: &'a [u64],
}

/// What was found.
pub(crate) struct Found {
    pub(crate) runs: Observed<Vec<WorkflowRun>>,
    /// When the first run on the head was started: the head was there then.
    pub(crate) first_on_head: Option<DateTime<Utc>>,
    /// Other commits on which something was measured.
    pub(crate) commits: Vec<CommitSha>,
}

/// Reads runs.
pub(crate) async fn runs(repo: &RepoClient, wanted: &Wanted<'_>) -> Found {
    match read(repo, wanted).await {
        Ok(found) => found,
        Err(error) => Found {
            runs: Observed::Unavailable(error.cause(format!("runs of {}", wanted.policy.ci.workflow))),
            first_on_head: None,
            commits: Vec::new(),
        },
    }
}

async fn read(repo: &RepoClient, wanted: &Wanted<'_>) -> Result<Found, GitHubError> {
    let listed = list(repo, wanted).await?;
    let mut work: Vec<BoxFuture<'_, _>> = Vec::new();
    for id in wanted.named {
        match listed.iter().find(|run| run.id == *id).cloned() {
            Some(run) => work.push(Box::pin(std::future::ready(Ok(Some(run))))),
            None => work.push(Box::pin(one(repo, *id))),
        }
    }
    let named = at_once(AT_ONCE, work).await;
    let head = &wanted.pull.head.sha;
    let first_on_head = listed
        .iter()
        .filter(|run| run.head_sha == *head)
        .map(|run| run.created_at)
        .min();
    let mut named: Vec<wire::Run> = named
        .into_iter()
        .collect::<Result<Vec<_>, _>>()?
        .into_iter()
        .flatten()
        .collect();
    named.retain(|run| run.repository.as_ref().is_none_or(|of| of.full_name.same(repo.name())));
    let mut considered: Vec<wire::Run> = listed
        .into_iter()
        .filter(|run| wanted.commits.is_none_or(|commits| commits.contains(&run.head_sha)))
        .filter(|run| named.iter().all(|other| other.id != run.id))
        .collect();
    considered.sort_by_key(|run| std::cmp::Reverse((run.created_at, run.id)));
    considered.dedup_by_key(|run| run.id);
    considered.truncate(usize::try_from(wanted.policy.ci.runs_considered).unwrap_or(usize::MAX));

    let first = promising(&considered);
    let (mut done, named_done) = join(
        details(repo, wanted, first.iter().map(|at| &considered[*at]).collect()),
        details(repo, wanted, named.iter().collect()),
    )
    .await;
    done.extend(named_done);
    let whole = done
        .iter()
        .filter(|run| is_whole(run, wanted))
        .map(|run| (run.created_at, run.id))
        .max();
    let newer = |run: &&wire::Run| whole.is_none_or(|whole| (run.created_at, run.id) > whole);
    let rest: Vec<&wire::Run> = considered
        .iter()
        .take_while(newer)
        .filter(|run| done.iter().all(|done| done.id != run.id))
        .collect();
    let rest = details(repo, wanted, rest).await;
    done.extend(rest);
    done.sort_by_key(|run| std::cmp::Reverse((run.created_at, run.id)));

    contents(repo, wanted, &mut done).await;
    let mut commits: Vec<CommitSha> = Vec::new();
    for run in done
        .iter()
        .filter(|run| counts(run, wanted) && run.head_sha != *head && executed(run, wanted.policy))
    {
        if commits.len() < COMMITS && !commits.contains(&run.head_sha) {
            commits.push(run.head_sha.clone());
        }
    }
    Ok(Found {
        runs: Observed::Present(done),
        first_on_head,
        commits,
    })
}

async fn list(repo: &RepoClient, wanted: &Wanted<'_>) -> Result<Vec<wire::Run>, GitHubError> {
    let ci = &wanted.policy.ci;
    let file = ci.workflow.rsplit('/').next().unwrap_or_default();
    let call = Call::get(
        repo.path(["actions", "workflows", file, "runs"]),
        format!("runs of {}", ci.workflow),
    )
    .query("event", &ci.event)
    .query("branch", &wanted.pull.head.name);
    match repo.list_up_to::<WorkflowRuns<wire::Run>>(&call, RUN_PAGES).await {
        // A branch with more runs than that: the newest page is what counts.
        Err(GitHubError::TooLarge { .. }) => {
            let call = call.query("per_page", 100);
            Ok(repo.read::<WorkflowRuns<wire::Run>>(&call).await?.items())
        }
        other => other,
    }
}

/// A named run; `None` where there is none in this repository.
async fn one(repo: &RepoClient, id: u64) -> Result<Option<wire::Run>, GitHubError> {
    let text = id.to_string();
    let call = Call::get(repo.path(["actions", "runs", &text]), format!("run {id}"));
    match repo.read::<wire::Run>(&call).await {
        Ok(run) => Ok(Some(run)),
        Err(GitHubError::NotFound { .. } | GitHubError::Gone { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Places of the runs that are most likely the whole green one: the newest, the newest success, the newest long success.
fn promising(runs: &[wire::Run]) -> BTreeSet<usize> {
    let green = |run: &wire::Run| run.conclusion == Some(Conclusion::Success);
    let long = |run: &wire::Run| {
        run.updated_at
            .is_some_and(|end| end - run.run_started_at.unwrap_or(run.created_at) >= SHORT)
    };
    [
        (!runs.is_empty()).then_some(0),
        runs.iter().position(green),
        runs.iter().position(|run| green(run) && long(run)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

async fn details(repo: &RepoClient, wanted: &Wanted<'_>, runs: Vec<&wire::Run>) -> Vec<WorkflowRun> {
    let mut work: Vec<BoxFuture<'_, _>> = Vec::new();
    for run in runs {
        work.push(Box::pin(detail(repo, wanted, run)));
    }
    at_once(AT_ONCE, work).await
}

async fn detail(repo: &RepoClient, wanted: &Wanted<'_>, run: &wire::Run) -> WorkflowRun {
    let id = run.id.to_string();
    let of = |what: &str| format!("{what} of run {id}");
    let mut found = WorkflowRun {
        id: run.id,
        attempt: run.run_attempt.unwrap_or(1),
        workflow_path: run.path.clone(),
        event: run.event.clone(),
        head_sha: run.head_sha.clone(),
        status: status(&run.status),
        conclusion: run.conclusion,
        created_at: run.created_at,
        url: run.html_url.clone(),
        jobs: Observed::unavailable(CauseKind::NotRecorded, of("jobs"), NO_EVIDENCE),
        artifacts: Observed::unavailable(CauseKind::NotRecorded, of("artifacts"), NO_EVIDENCE),
    };
    // Somebody named it; why it does not count can be said without them.
    if !counts(&found, wanted) {
        return found;
    }
    let jobs = Call::get(repo.path(["actions", "runs", &id, "jobs"]), of("jobs")).query("filter", "latest");
    let artifacts = Call::get(repo.path(["actions", "runs", &id, "artifacts"]), of("artifacts"));
    let (jobs, artifacts) = join(
        repo.list_up_to::<Jobs<wire::Job>>(&jobs, DETAIL_PAGES),
        repo.list_up_to::<Artifacts<wire::Artifact>>(&artifacts, DETAIL_PAGES),
    )
    .await;
    found.jobs = match jobs {
        Ok(list) => Observed::Present(jobs_of(list)),
        Err(error) => Observed::Unavailable(error.cause(of("jobs"))),
    };
    found.artifacts = match artifacts {
        Ok(list) => Observed::Present(artifacts_of(list)),
        Err(error) => Observed::Unavailable(error.cause(of("artifacts"))),
    };
    found
}

fn status(word: &str) -> RunStatus {
    if word == "completed" {
        RunStatus::Completed
    } else {
        RunStatus::Running
    }
}

fn jobs_of(mut list: Vec<wire::Job>) -> Vec<Job> {
    list.sort_by_key(|job| job.id);
    list.dedup_by_key(|job| job.id);
    list.into_iter()
        .map(|job| Job {
            id: job.id,
            name: job.name,
            attempt: job.run_attempt.unwrap_or(1),
            status: status(&job.status),
            conclusion: job.conclusion,
        })
        .collect()
}

fn artifacts_of(mut list: Vec<wire::Artifact>) -> Vec<Artifact> {
    list.sort_by_key(|artifact| std::cmp::Reverse((artifact.created_at, artifact.id)));
    list.dedup_by_key(|artifact| artifact.id);
    list.into_iter()
        .map(|artifact| Artifact {
            id: artifact.id,
            name: artifact.name,
            expired: artifact.expired,
            size: artifact.size_in_bytes,
            created_at: artifact.created_at,
            files: None,
        })
        .collect()
}

/// Whether a run can be evidence: of the one workflow, by the one event, on a commit of the pull request.
#[must_use]
pub fn can_be_evidence(run: &WorkflowRun, policy: &Policy, commits: Option<&BTreeSet<CommitSha>>) -> bool {
    let ci = &policy.ci;
    run.workflow_path.split('@').next() == Some(ci.workflow.as_str())
        && run.event == ci.event
        && commits.is_none_or(|commits| commits.contains(&run.head_sha))
}

fn counts(run: &WorkflowRun, wanted: &Wanted<'_>) -> bool {
    can_be_evidence(run, wanted.policy, wanted.commits)
}

/// Jobs of the lanes of one purpose. The canary measures a point too.
fn lane_jobs<'j>(run: &'j WorkflowRun, policy: &Policy, purpose: Purpose) -> Vec<&'j Job> {
    let fold = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let rules = &policy.matrix;
    let mut names: Vec<String> = rules
        .lanes
        .iter()
        .filter(|lane| lane.purpose == purpose)
        .map(|lane| fold(&lane.name))
        .collect();
    if purpose == Purpose::Throughput {
        names.extend(rules.canary.as_ref().map(|canary| fold(&canary.lane)));
    }
    let jobs = run.jobs.present().map_or(&[][..], Vec::as_slice);
    jobs.iter()
        .filter(|job| names.contains(&fold(job.name.split('/').next().unwrap_or_default())))
        .collect()
}

/// Whether anything was measured or evaluated.
#[must_use]
pub fn executed(run: &WorkflowRun, policy: &Policy) -> bool {
    [Purpose::Throughput, Purpose::Eval]
        .into_iter()
        .flat_map(|purpose| lane_jobs(run, policy, purpose))
        .any(|job| job.conclusion != Some(Conclusion::Skipped))
}

/// Green as a whole, with something measured and something evaluated, and not by a label that trims the sweep.
fn is_whole(run: &WorkflowRun, wanted: &Wanted<'_>) -> bool {
    let policy = wanted.policy;
    let green = |purpose| {
        lane_jobs(run, policy, purpose)
            .iter()
            .any(|job| job.conclusion == Some(Conclusion::Success))
    };
    let trimmed = wanted
        .pull
        .labels
        .iter()
        .any(|label| policy.ci.labels.trimmed.contains(&label.name));
    counts(run, wanted)
        && !trimmed
        && run.status == RunStatus::Completed
        && run.conclusion == Some(Conclusion::Success)
        && green(Purpose::Throughput)
        && green(Purpose::Eval)
}

/// Reads what checks want to see inside of artifacts: evaluation rows of all runs that can be evidence, throughput rows of
/// the newest.
async fn contents(repo: &RepoClient, wanted: &Wanted<'_>, runs: &mut [WorkflowRun]) {
    let names = &wanted.policy.ci.artifacts;
    let mut measured = 0;
    let mut asked: Vec<(usize, usize, u64)> = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        if !(counts(run, wanted) && run.status == RunStatus::Completed) {
            continue;
        }
        let Observed::Present(artifacts) = &run.artifacts else {
            continue;
        };
        // Newest first: of several with one name the newest counts.
        let newest = |name: &str| {
            artifacts
                .iter()
                .position(|artifact| artifact.name == name && !artifact.expired)
        };
        asked.extend(newest(&names.evals).map(|index| (at, index, names.max_bytes)));
        let mut points: Vec<usize> = newest(&names.throughput).into_iter().collect();
        let mut seen = BTreeSet::new();
        points.extend(
            artifacts
                .iter()
                .enumerate()
                .filter(|(_, artifact)| {
                    !names.agentic_prefix.is_empty()
                        && artifact.name.starts_with(&names.agentic_prefix)
                        && !artifact.expired
                        && artifact.size <= POINT_BYTES
                        && seen.insert(artifact.name.as_str())
                })
                .map(|(index, _)| index)
                .take(POINTS),
        );
        if measured < MEASURED && !points.is_empty() {
            measured += 1;
            asked.extend(points.into_iter().map(|index| (at, index, names.max_bytes)));
        }
    }
    let mut work: Vec<BoxFuture<'_, _>> = Vec::new();
    for (at, index, most) in asked {
        let run = runs.get(at).and_then(|run| run.artifacts.present());
        if let Some(artifact) = run.and_then(|artifacts| artifacts.get(index)).cloned() {
            work.push(Box::pin(async move {
                (at, index, artifact::files(repo, &artifact, most).await)
            }));
        }
    }
    for (at, index, files) in at_once(AT_ONCE, work).await {
        if let Some(run) = runs.get_mut(at)
            && let Observed::Present(artifacts) = &mut run.artifacts
            && let Some(artifact) = artifacts.get_mut(index)
        {
            // GitHub says in its list that it is there, and on reading that it is not: its time ended in between.
            artifact.expired |= matches!(files.as_ref(), Observed::Absent);
            artifact.files = match files.as_ref() {
                Observed::Absent => None,
                files => Some(files.clone()),
            };
        }
    }
}
