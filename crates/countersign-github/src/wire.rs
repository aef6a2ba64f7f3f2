//! GitHub's JSON, as far as it is used. Only what is read is named, so that a change in some other field breaks nothing.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use countersign_core::evidence::{Association, Conclusion};
use countersign_core::{BlobId, CommitSha, Login, RepoName};
use serde::{Deserialize, Deserializer};

/// An account; its login is kept as GitHub gave it, and refused where it could act in a comment or an address.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Account {
    pub(crate) login: String,
    #[serde(rename = "type", default)]
    kind: String,
}

impl Account {
    pub(crate) fn login(&self) -> Option<Login> {
        self.login.parse().ok()
    }

    pub(crate) fn is_bot(&self) -> bool {
        self.kind == "Bot" || self.login.ends_with("[bot]")
    }
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct App {
    pub(crate) id: u64,
    #[serde(default)]
    pub(crate) slug: String,
    #[serde(default)]
    pub(crate) permissions: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) events: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Installation {
    pub(crate) id: u64,
    #[serde(default)]
    pub(crate) permissions: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) events: Vec<String>,
    #[serde(default)]
    pub(crate) suspended_at: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct AccessToken {
    pub(crate) token: String,
    pub(crate) expires_at: DateTime<Utc>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Repository {
    pub(crate) full_name: RepoName,
    #[serde(default)]
    pub(crate) default_branch: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Branch {
    #[serde(rename = "ref")]
    pub(crate) name: String,
    pub(crate) sha: CommitSha,
    #[serde(default)]
    pub(crate) repo: Option<Repository>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Label {
    #[serde(default)]
    pub(crate) name: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Pull {
    pub(crate) number: u64,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) title: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) body: String,
    pub(crate) state: String,
    #[serde(default)]
    pub(crate) draft: bool,
    #[serde(default)]
    pub(crate) merged: Option<bool>,
    #[serde(default)]
    pub(crate) merged_at: Option<DateTime<Utc>>,
    #[serde(default)]
    pub(crate) merge_commit_sha: Option<CommitSha>,
    #[serde(default)]
    pub(crate) user: Option<Account>,
    pub(crate) head: Branch,
    pub(crate) base: Branch,
    #[serde(default)]
    pub(crate) labels: Vec<Label>,
    #[serde(default)]
    pub(crate) changed_files: Option<u64>,
    #[serde(default)]
    pub(crate) commits: Option<u64>,
    #[serde(default)]
    pub(crate) html_url: String,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) updated_at: DateTime<Utc>,
}

impl Pull {
    pub(crate) fn is_open(&self) -> bool {
        self.state == "open"
    }

    pub(crate) fn is_merged(&self) -> bool {
        self.merged.unwrap_or(self.merged_at.is_some())
    }
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct File {
    pub(crate) filename: String,
    #[serde(default)]
    pub(crate) previous_filename: Option<String>,
    pub(crate) status: String,
    /// Changed lines; none for binary files.
    #[serde(default)]
    pub(crate) changes: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Signature {
    #[serde(default)]
    pub(crate) date: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct CommitInner {
    #[serde(default)]
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) committer: Option<Signature>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Named {
    pub(crate) sha: CommitSha,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Commit {
    pub(crate) sha: CommitSha,
    pub(crate) commit: CommitInner,
    #[serde(default)]
    pub(crate) parents: Vec<Named>,
}

impl Commit {
    pub(crate) fn committed_at(&self) -> Option<DateTime<Utc>> {
        self.commit.committer.as_ref()?.date
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Comparison {
    pub(crate) merge_base_commit: Named,
}

/// A branch.
#[derive(Debug, Deserialize)]
pub(crate) struct Tip {
    pub(crate) commit: Commit,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Ref {
    pub(crate) object: Object,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Object {
    pub(crate) sha: CommitSha,
}

/// An issue comment or an inline comment.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Comment {
    pub(crate) id: u64,
    #[serde(default)]
    pub(crate) node_id: String,
    #[serde(default)]
    pub(crate) user: Option<Account>,
    #[serde(default = "no_association")]
    pub(crate) author_association: Association,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) body: String,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) updated_at: DateTime<Utc>,
    #[serde(default)]
    pub(crate) html_url: String,
    #[serde(default)]
    pub(crate) issue_url: Option<String>,
    #[serde(default)]
    pub(crate) pull_request_url: Option<String>,
    #[serde(default)]
    pub(crate) performed_via_github_app: Option<App>,
}

impl Comment {
    /// The number of the issue or pull request it stands on: ids of comments are the repository's, not the pull request's.
    pub(crate) fn number(&self) -> Option<u64> {
        number_at_end(self.issue_url.as_deref().or(self.pull_request_url.as_deref())?)
    }
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Review {
    pub(crate) id: u64,
    #[serde(default)]
    pub(crate) node_id: String,
    #[serde(default)]
    pub(crate) user: Option<Account>,
    #[serde(default = "no_association")]
    pub(crate) author_association: Association,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) body: String,
    /// Missing while the review is not submitted.
    #[serde(default)]
    pub(crate) submitted_at: Option<DateTime<Utc>>,
    #[serde(default)]
    pub(crate) html_url: String,
    #[serde(default)]
    pub(crate) pull_request_url: Option<String>,
}

impl Review {
    pub(crate) fn number(&self) -> Option<u64> {
        number_at_end(self.pull_request_url.as_deref()?)
    }
}

fn number_at_end(url: &str) -> Option<u64> {
    url.rsplit('/').next()?.parse().ok()
}

#[derive(Debug, Deserialize)]
pub(crate) struct TreeAnswer {
    pub(crate) tree: Vec<TreeItem>,
    #[serde(default)]
    pub(crate) truncated: bool,
}

#[derive(Debug, Deserialize)]
pub(crate) struct TreeItem {
    pub(crate) path: String,
    pub(crate) mode: String,
    pub(crate) sha: BlobId,
    #[serde(default)]
    pub(crate) size: Option<u64>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Run {
    pub(crate) id: u64,
    #[serde(default)]
    pub(crate) run_attempt: Option<u32>,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) path: String,
    #[serde(default)]
    pub(crate) event: String,
    pub(crate) head_sha: CommitSha,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) status: String,
    #[serde(default)]
    pub(crate) conclusion: Option<Conclusion>,
    pub(crate) created_at: DateTime<Utc>,
    #[serde(default)]
    pub(crate) run_started_at: Option<DateTime<Utc>>,
    #[serde(default)]
    pub(crate) updated_at: Option<DateTime<Utc>>,
    #[serde(default)]
    pub(crate) html_url: String,
    #[serde(default)]
    pub(crate) repository: Option<Repository>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Job {
    pub(crate) id: u64,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) run_attempt: Option<u32>,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) status: String,
    #[serde(default)]
    pub(crate) conclusion: Option<Conclusion>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Artifact {
    pub(crate) id: u64,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) expired: bool,
    #[serde(default)]
    pub(crate) size_in_bytes: u64,
    #[serde(default)]
    pub(crate) created_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Permission {
    #[serde(default)]
    pub(crate) permission: String,
    #[serde(default)]
    pub(crate) role_name: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Delivery {
    pub(crate) id: u64,
    pub(crate) guid: String,
    pub(crate) delivered_at: DateTime<Utc>,
    #[serde(default)]
    pub(crate) status_code: u16,
    #[serde(default)]
    pub(crate) event: String,
    #[serde(default)]
    pub(crate) action: Option<String>,
    #[serde(default)]
    pub(crate) installation_id: Option<u64>,
    #[serde(default)]
    pub(crate) repository_id: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Status {
    #[serde(default)]
    pub(crate) id: u64,
    pub(crate) state: String,
    #[serde(default)]
    pub(crate) context: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) description: String,
    #[serde(default)]
    pub(crate) target_url: Option<String>,
    #[serde(default)]
    pub(crate) creator: Option<Account>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ReactionItem {
    pub(crate) id: u64,
    #[serde(default)]
    pub(crate) user: Option<Account>,
    pub(crate) content: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct CheckRun {
    pub(crate) id: u64,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) external_id: Option<String>,
    #[serde(default)]
    pub(crate) status: String,
    #[serde(default)]
    pub(crate) conclusion: Option<String>,
    #[serde(default)]
    pub(crate) details_url: Option<String>,
    #[serde(default)]
    pub(crate) app: Option<App>,
    #[serde(default)]
    pub(crate) output: Option<CheckOutput>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct CheckOutput {
    #[serde(default)]
    pub(crate) title: Option<String>,
    #[serde(default)]
    pub(crate) summary: Option<String>,
    #[serde(default)]
    pub(crate) text: Option<String>,
    #[serde(default)]
    pub(crate) annotations_count: u64,
}

fn no_association() -> Association {
    Association::None
}

/// GitHub writes `null` for many empty texts.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nulls_and_unknown_words_are_read() {
        let run: Run = serde_json::from_str(
            r#"{"id":1,"path":null,"event":"pull_request","head_sha":"0123456789abcdef0123456789abcdef01234567","status":"completed",
                "conclusion":"a_new_word","created_at":"2026-08-01T00:00:00Z"}"#,
        )
        .unwrap();
        assert_eq!(run.conclusion, Some(Conclusion::Unknown));
        let comment: Comment = serde_json::from_str(
            r#"{"id":7,"body":null,"user":null,"author_association":"A_NEW_WORD","created_at":"2026-08-01T00:00:00Z","updated_at":"2026-08-01T00:00:00Z",
                "issue_url":"https://api.github.com/repos/o/r/issues/12"}"#,
        )
        .unwrap();
        assert_eq!(
            (comment.number(), comment.author_association),
            (Some(12), Association::None)
        );
    }
}
