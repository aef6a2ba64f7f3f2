//! Pull requests of a world, with their comments and reviews.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::spell::text_or_map;

/// One pull request.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PullSpec {
    /// Its number.
    pub number: u64,
    /// The title; `Pull request <number>` when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// A file with the description, relative to the world file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_file: Option<String>,
    /// The author's login.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// The author's association; worked out from members and collaborators when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub association: Option<String>,
    /// The head: a commit (name, branch, revision of the clone), or a mapping. `refs/pull/<number>/head` of a clone when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<HeadSpec>,
    /// The target: a branch, or a mapping with `ref` and `sha`. The default branch when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<BaseSpec>,
    /// Whether it is a draft.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub draft: bool,
    /// Open, closed or merged.
    pub state: PullState,
    /// When it was opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    /// When it was last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<DateTime<Utc>>,
    /// When it was closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<DateTime<Utc>>,
    /// When it was merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merged_at: Option<DateTime<Utc>>,
    /// Who merged it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merged_by: Option<String>,
    /// The commit that the merge made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merge_commit: Option<String>,
    /// `true`, `false`, or null while GitHub works it out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mergeable: Option<bool>,
    /// Labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<String>>,
    /// The sign-off that is judged, such as `issuecomment-1`, where it is not the newest one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signoff: Option<String>,
    /// When this head was first seen at the pull request; the first workflow run on it when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head_seen_at: Option<DateTime<Utc>>,
    /// The changed files, for a pull request without history here (upstream repositories). Worked out from git otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<ChangeSpec>>,
    /// The commits, oldest first. Worked out from git when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commits: Option<Vec<String>>,
    /// Issue comments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comments: Option<Vec<CommentSpec>>,
    /// Reviews.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviews: Option<Vec<ReviewSpec>>,
    /// Inline review comments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review_comments: Option<Vec<ReviewCommentSpec>>,
}

/// A pull request's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PullState {
    /// Still open.
    #[default]
    Open,
    /// Closed without a merge.
    Closed,
    /// Merged.
    Merged,
}

/// The head of a pull request.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FullHead {
    /// The commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha: Option<String>,
    /// The branch's name; `pull-<number>` when left out.
    #[serde(rename = "ref")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// `owner/name` of the fork, when it comes from one. It need not be described further.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
}

/// The head: its commit, or a mapping.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct HeadSpec(pub FullHead);

impl From<FullHead> for HeadSpec {
    fn from(full: FullHead) -> Self {
        HeadSpec(full)
    }
}

text_or_map!(
    HeadSpec,
    FullHead,
    "a commit, or a mapping with sha, ref and repo",
    |text| Ok::<_, String>(HeadSpec(FullHead {
        sha: Some(text.to_owned()),
        ..FullHead::default()
    }))
);

/// The target of a pull request.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FullBase {
    /// The branch.
    #[serde(rename = "ref")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// What GitHub reports as `base.sha`, when it is not the branch's tip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha: Option<String>,
}

/// The target: a branch, or a mapping.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct BaseSpec(pub FullBase);

impl From<FullBase> for BaseSpec {
    fn from(full: FullBase) -> Self {
        BaseSpec(full)
    }
}

text_or_map!(
    BaseSpec,
    FullBase,
    "a branch, or a mapping with ref and sha",
    |text| Ok::<_, String>(BaseSpec(FullBase {
        branch: Some(text.to_owned()),
        sha: None
    }))
);

/// A changed file of a pull request without history here.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ChangeSpec {
    /// The path.
    pub path: String,
    /// `added`, `removed`, `modified` (the default), `renamed`, `copied`, `changed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The old path of a rename.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
    /// Added lines; counted from `patch` when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additions: Option<u64>,
    /// Removed lines; counted from `patch` when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletions: Option<u64>,
    /// The unified diff without its two header lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    /// The file's text after the change, where no history here has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// An issue comment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CommentSpec {
    /// Its id; the next free one when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// The author's login; one ending in `[bot]` is an app.
    pub author: String,
    /// The author's association; worked out from members and collaborators when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub association: Option<String>,
    /// The text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// A file with the text, relative to the world file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_file: Option<String>,
    /// When it was written; the world's clock when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    /// When it was last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<DateTime<Utc>>,
    /// When its text was last edited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edited_at: Option<DateTime<Utc>>,
    /// Who edited it last; the author when only `edited_at` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edited_by: Option<String>,
    /// Why it is hidden, such as `OUTDATED`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimized: Option<String>,
}

/// A review.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReviewSpec {
    /// Its id; the next free one when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// The reviewer's login.
    pub author: String,
    /// The reviewer's association; worked out when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub association: Option<String>,
    /// `approved`, `changes_requested`, `commented` (the default), `dismissed`, `pending`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The summary's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// A file with the text, relative to the world file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_file: Option<String>,
    /// When it was submitted; the world's clock when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submitted_at: Option<DateTime<Utc>>,
    /// The commit it was made on; the head when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// When its text was last edited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edited_at: Option<DateTime<Utc>>,
    /// Who edited it last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edited_by: Option<String>,
}

/// An inline review comment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReviewCommentSpec {
    /// Its id; the next free one when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// The author's login.
    pub author: String,
    /// The author's association; worked out when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub association: Option<String>,
    /// The text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// A file with the text, relative to the world file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_file: Option<String>,
    /// The file it is about; the first changed one when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The line it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The commit it was made on; the head when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The review it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<u64>,
    /// The comment it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_reply_to: Option<u64>,
    /// When it was written; the world's clock when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    /// When it was last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<DateTime<Utc>>,
    /// When its text was last edited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edited_at: Option<DateTime<Utc>>,
    /// Who edited it last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edited_by: Option<String>,
}
