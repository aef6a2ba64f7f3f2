//! Workflow runs: those of a pull request's commits, and those that somebody named.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use countersign_core::evidence::{Artifact, Conclusion, Job, RunStatus, WorkflowRun};
use countersign_core::{CauseKind, CommitSha, Observed};
use countersign_github::gather::wanted::{COMMITS, NO_EVIDENCE, can_be_evidence, executed};
use countersign_policy::Policy;
use countersign_sim::still::{Fact, Still, StillArtifact, StillJob, StillRun};

use crate::WorldsError;
use crate::gaps::Gaps;

/// What was found.
pub(crate) struct Found {
    pub(crate) runs: Observed<Vec<WorkflowRun>>,
    /// When the first run on the head was started.
    pub(crate) first_on_head: Option<DateTime<Utc>>,
    /// Other commits on which something was measured.
    pub(crate) commits: Vec<CommitSha>,
}

pub(crate) fn runs(
    still: &Still,
    gaps: &Gaps<'_>,
    repository: &str,
    head: &CommitSha,
    commits: Option<&BTreeSet<CommitSha>>,
    named: &[u64],
    policy: &Policy,
) -> Result<Found, WorldsError> {
    let all = match still.runs(repository) {
        Fact::Known(runs) => runs,
        Fact::Nothing => Vec::new(),
        Fact::Unsaid(_) | Fact::Refused(_) => {
            let what = format!("runs of {}", policy.ci.workflow);
            return Ok(Found {
                runs: gaps.missing(&what),
                first_on_head: None,
                commits: Vec::new(),
            });
        }
    };
    let mut found = Vec::new();
    for run in &all {
        let run = evidence(run, gaps, policy, commits)?;
        if named.contains(&run.id) || can_be_evidence(&run, policy, commits) {
            found.push(run);
        }
    }
    let first_on_head = found
        .iter()
        .filter(|run| run.head_sha == *head)
        .map(|run| run.created_at)
        .min();
    let mut others: Vec<CommitSha> = Vec::new();
    for run in &found {
        let other = can_be_evidence(run, policy, commits) && run.head_sha != *head && executed(run, policy);
        if other && others.len() < COMMITS && !others.contains(&run.head_sha) {
            others.push(run.head_sha.clone());
        }
    }
    Ok(Found {
        runs: Observed::Present(found),
        first_on_head,
        commits: others,
    })
}

fn evidence(
    run: &StillRun,
    gaps: &Gaps<'_>,
    policy: &Policy,
    commits: Option<&BTreeSet<CommitSha>>,
) -> Result<WorkflowRun, WorldsError> {
    let of = |what: &str| format!("{what} of run {}", run.id);
    let head_sha = run.head_sha.parse().map_err(|_| WorldsError::Form {
        at: of("head"),
        why: "not a full SHA".to_owned(),
    })?;
    let mut found = WorkflowRun {
        id: run.id,
        attempt: u32::try_from(run.attempt).unwrap_or(u32::MAX),
        workflow_path: run.workflow_path.clone(),
        event: run.event.clone(),
        head_sha,
        status: status(&run.status),
        conclusion: run.conclusion.as_deref().map(conclusion),
        created_at: run.created_at,
        url: run.url.clone(),
        jobs: Observed::unavailable(CauseKind::NotRecorded, of("jobs"), NO_EVIDENCE),
        artifacts: Observed::unavailable(CauseKind::NotRecorded, of("artifacts"), NO_EVIDENCE),
    };
    if can_be_evidence(&found, policy, commits) {
        found.jobs = gaps
            .observed(&of("jobs"), run.jobs.clone())
            .map(|jobs| sorted(jobs.iter().map(job).collect(), |job: &Job| job.id));
        found.artifacts = gaps.observed(&of("artifacts"), run.artifacts.clone()).map(|list| {
            let mut list: Vec<Artifact> = list.iter().map(|artifact| shown(artifact, policy)).collect();
            list.sort_by_key(|artifact| std::cmp::Reverse((artifact.created_at, artifact.id)));
            list
        });
    }
    Ok(found)
}

fn sorted<T, K: Ord>(mut list: Vec<T>, key: impl Fn(&T) -> K) -> Vec<T> {
    list.sort_by_key(|item| key(item));
    list
}

fn status(word: &str) -> RunStatus {
    if word == "completed" {
        RunStatus::Completed
    } else {
        RunStatus::Running
    }
}

fn conclusion(word: &str) -> Conclusion {
    serde_json::from_value(serde_json::Value::String(word.to_owned())).unwrap_or(Conclusion::Unknown)
}

fn job(job: &StillJob) -> Job {
    Job {
        id: job.id,
        name: job.name.clone(),
        attempt: u32::try_from(job.attempt).unwrap_or(u32::MAX),
        status: status(&job.status),
        conclusion: job.conclusion.as_deref().map(conclusion),
    }
}

/// Contents of those artifacts that checks look into, as texts.
fn shown(artifact: &StillArtifact, policy: &Policy) -> Artifact {
    let names = &policy.ci.artifacts;
    let read = artifact.name == names.evals
        || artifact.name == names.throughput
        || (!names.agentic_prefix.is_empty() && artifact.name.starts_with(&names.agentic_prefix));
    // Files that are left out are unsaid: an artifact that was uploaded has some.
    let files = artifact
        .files
        .as_ref()
        .filter(|files| read && !artifact.expired && !files.is_empty())
        .map(|files| {
            let texts: BTreeMap<String, String> = files
                .iter()
                .filter_map(|(path, bytes)| Some((path.clone(), String::from_utf8(bytes.clone()).ok()?)))
                .collect();
            Observed::Present(texts)
        });
    Artifact {
        id: artifact.id,
        name: artifact.name.clone(),
        expired: artifact.expired,
        size: artifact.size,
        created_at: Some(artifact.created_at),
        files,
    }
}
