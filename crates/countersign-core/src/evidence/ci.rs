//! Workflow runs, their jobs and their artifacts.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::ids::CommitSha;
use crate::observed::Observed;

/// How something in CI ended. Only `Success` is success (domain guide, section 15).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// Ran and was fine.
    Success,
    /// Ran and was not fine.
    Failure,
    /// Did not run.
    Skipped,
    /// Stopped.
    Cancelled,
    /// Neither.
    Neutral,
    /// Ran too long.
    TimedOut,
    /// Waits for a person.
    ActionRequired,
    /// Could not start.
    StartupFailure,
    /// Given up by GitHub.
    Stale,
    /// A word this version does not know. Never success.
    #[serde(other)]
    Unknown,
}

/// Where something in CI stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Finished, with a conclusion.
    Completed,
    /// Queued, waiting, requested, pending or running.
    Running,
}

/// A workflow run: the newest attempt, with the jobs of that attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowRun {
    /// Id, as people link it.
    pub id: u64,
    /// Newest attempt, from 1.
    pub attempt: u32,
    /// Path of the workflow file.
    pub workflow_path: String,
    /// The event that started it, e.g. `pull_request`.
    pub event: String,
    /// The commit it is attached to.
    pub head_sha: CommitSha,
    /// Where it stands.
    pub status: RunStatus,
    /// How it ended.
    pub conclusion: Option<Conclusion>,
    /// When it was started.
    pub created_at: DateTime<Utc>,
    /// Address for readers.
    pub url: String,
    /// Jobs: for every name the newest attempt that ran it.
    pub jobs: Observed<Vec<Job>>,
    /// Artifacts, newest first. Contents only where a check needs them.
    pub artifacts: Observed<Vec<Artifact>>,
}

/// One job of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Id.
    pub id: u64,
    /// Name as shown, e.g. `caller / callee`.
    pub name: String,
    /// The attempt in which it last ran.
    pub attempt: u32,
    /// Where it stands.
    pub status: RunStatus,
    /// How it ended.
    pub conclusion: Option<Conclusion>,
}

/// An uploaded artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// Id.
    pub id: u64,
    /// Name.
    pub name: String,
    /// Whether GitHub has deleted its content.
    pub expired: bool,
    /// Packed size in bytes.
    pub size: u64,
    /// When it was uploaded.
    pub created_at: Option<DateTime<Utc>>,
    /// Text files inside, by path, where the content was asked for; `None` = not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Observed<BTreeMap<String, String>>>,
}
