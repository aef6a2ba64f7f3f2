//! Which runs count: of the one workflow, by the one event, on a commit that is still in the pull request.

use std::collections::BTreeSet;

use countersign_core::evidence::{Artifact, Conclusion, RunStatus, WorkflowRun};
use countersign_core::{Cause, CauseKind, CommitSha, Evidence, Observed};
use countersign_policy::{Artifacts, Ci};

/// Why a run is no evidence (domain guide, sections 4.4 and 6.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotEvidence {
    /// Of another workflow.
    Workflow(String),
    /// Started by another event.
    Event(String),
    /// Its commit is no longer in the pull request.
    CommitGone(CommitSha),
}

/// The commits of the pull request.
///
/// # Errors
/// Why they are not known.
pub fn commits(evidence: &Evidence) -> Result<BTreeSet<&CommitSha>, Cause> {
    match &evidence.commits {
        Observed::Present(commits) => Ok(commits.iter().map(|commit| &commit.sha).collect()),
        Observed::Absent => Err(Cause::new(CauseKind::NotRecorded, "commits", "they were not gathered")),
        Observed::Unavailable(cause) => Err(cause.clone()),
    }
}

/// All gathered runs, newest first.
///
/// # Errors
/// Why they are not known.
pub fn all(evidence: &Evidence) -> Result<Vec<&WorkflowRun>, Cause> {
    match &evidence.runs {
        Observed::Present(runs) => {
            let mut runs: Vec<&WorkflowRun> = runs.iter().collect();
            runs.sort_by_key(|run| std::cmp::Reverse((run.created_at, run.id)));
            Ok(runs)
        }
        Observed::Absent => Err(Cause::new(
            CauseKind::NotRecorded,
            "workflow runs",
            "they were not gathered",
        )),
        Observed::Unavailable(cause) => Err(cause.clone()),
    }
}

/// Whether a run can be evidence at all.
///
/// # Errors
/// Why not.
pub fn counts(run: &WorkflowRun, ci: &Ci, commits: &BTreeSet<&CommitSha>) -> Result<(), NotEvidence> {
    // GitHub may append `@ref` to the path of a workflow.
    let path = run.workflow_path.split('@').next().unwrap_or_default();
    if path != ci.workflow {
        Err(NotEvidence::Workflow(run.workflow_path.clone()))
    } else if run.event != ci.event {
        Err(NotEvidence::Event(run.event.clone()))
    } else if !commits.contains(&run.head_sha) {
        Err(NotEvidence::CommitGone(run.head_sha.clone()))
    } else {
        Ok(())
    }
}

/// Whether the reuse machinery would take a run, as far as the run itself goes (domain guide, section 6.3): completed,
/// success (or any of success, failure, cancelled when pinned), and at least one unexpired result.
///
/// # Errors
/// Why not, as words to follow "run N".
pub fn reusable(run: &WorkflowRun, names: &Artifacts, pinned: bool) -> Result<(), String> {
    if run.status != RunStatus::Completed {
        return Err("is still running".into());
    }
    let fine = match run.conclusion {
        Some(Conclusion::Success) => true,
        Some(Conclusion::Failure | Conclusion::Cancelled) => pinned,
        _ => false,
    };
    if !fine {
        return Err(if pinned {
            "did not end in success, failure or cancellation".into()
        } else {
            "is not green".into()
        });
    }
    let results = |artifact: &&Artifact| {
        names.reusable.contains(&artifact.name)
            || names
                .reusable_prefixes
                .iter()
                .any(|prefix| artifact.name.starts_with(prefix.as_str()))
    };
    match &run.artifacts {
        Observed::Present(artifacts) => {
            let mut found = artifacts.iter().filter(results).peekable();
            if found.peek().is_none() {
                Err("has no result artifact (nothing was measured)".into())
            } else if found.all(|artifact| artifact.expired) {
                Err("has only expired result artifacts".into())
            } else {
                Ok(())
            }
        }
        Observed::Absent => Err("has no result artifact (nothing was measured)".into()),
        Observed::Unavailable(cause) => Err(format!("has artifacts that could not be read ({})", cause.why)),
    }
}
