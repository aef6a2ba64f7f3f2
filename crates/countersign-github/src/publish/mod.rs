//! To GitHub: comments, statuses, reactions, check runs. Every publisher takes what should be there, looks what is, and writes
//! only the difference; so each may be repeated at any time.

mod check_run;
mod comment;
mod reaction;
mod status;

pub use check_run::ensure_check_run;
pub use comment::{ensure_answer, ensure_comment, minimise, own_comment_node, own_verdict_comments};
pub use reaction::ensure_reaction;
pub use status::{ensure_status, look_at_status, write_status};

use countersign_core::{CommitSha, Login, PrNumber, SignoffKey};

/// An answer to a question that was asked in a comment.
#[derive(Debug, Clone)]
pub struct DesiredAnswer<'a> {
    /// The pull request.
    pub pull_request: PrNumber,
    /// The whole text. Its first line is the marker by which it is found again.
    pub body: &'a str,
}

/// The verdict comment as it should be.
#[derive(Debug, Clone)]
pub struct DesiredComment<'a> {
    /// The pull request.
    pub pull_request: PrNumber,
    /// The word of the marker in the body's first line.
    pub marker: &'a str,
    /// The sign-off that the marker names.
    pub signoff: SignoffKey,
    /// The head that the marker names.
    pub head: &'a CommitSha,
    /// The whole text; its first line is the marker.
    pub body: &'a str,
    /// The id under which it was published before.
    pub remembered: Option<u64>,
    /// Comments of ours that are other ones, although their markers may name the same sign-off and head: an earlier
    /// decision keeps its comment.
    pub not_these: &'a [u64],
    /// An earlier attempt began and its outcome was never learnt: there may be one that nobody remembers.
    pub uncertain: bool,
}

/// A comment that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedComment {
    /// Its id.
    pub id: u64,
    /// Its global id.
    pub node_id: String,
    /// Its address for readers.
    pub url: String,
    /// Whether anything had to be written.
    pub written: bool,
}

/// A verdict comment of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnComment {
    /// Its id.
    pub id: u64,
    /// Its global id.
    pub node_id: String,
    /// The sign-off it speaks of.
    pub signoff: SignoffKey,
    /// The head it speaks of.
    pub head: CommitSha,
    /// Its text.
    pub body: String,
    /// Its address for readers.
    pub url: String,
}

/// State of a commit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StatusState {
    /// Not decided.
    Pending,
    /// Fine.
    Success,
    /// Not fine.
    Failure,
    /// Cannot be judged.
    Error,
}

/// The commit status as it should be.
#[derive(Debug, Clone)]
pub struct DesiredStatus<'a> {
    /// The commit.
    pub sha: &'a CommitSha,
    /// The context.
    pub context: &'a str,
    /// The state.
    pub state: StatusState,
    /// GitHub takes 140 characters; longer ones are cut.
    pub description: &'a str,
    /// Where the details are.
    pub target_url: Option<&'a str>,
}

/// What is there before a status is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusBefore {
    /// It is there already.
    pub there: bool,
    /// Somebody else's status of the same context that it will replace.
    pub replaces: Option<ForeignStatus>,
}

/// A status of our context that is not ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignStatus {
    /// Whose it is.
    pub by: Login,
    /// GitHub's id.
    pub id: u64,
}

/// What was done about a status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedStatus {
    /// Whether it had to be written.
    pub written: bool,
    /// Somebody else's status of the same context that ours replaced.
    pub replaced: Option<Login>,
}

/// Our reaction to a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reaction {
    /// 👍
    Plus,
    /// 👎
    Minus,
    /// None of ours.
    None,
}

/// A check run as it should be.
#[derive(Debug, Clone)]
pub struct DesiredCheckRun<'a> {
    /// The commit.
    pub head: &'a CommitSha,
    /// Name.
    pub name: &'a str,
    /// Our key for it.
    pub external_id: &'a str,
    /// Absent = in progress.
    pub conclusion: Option<CheckConclusion>,
    /// Headline.
    pub title: &'a str,
    /// Markdown under the headline.
    pub summary: &'a str,
    /// More Markdown.
    pub text: Option<&'a str>,
    /// Where the details are.
    pub details_url: Option<&'a str>,
    /// Notes at lines.
    pub annotations: &'a [Annotation],
    /// Buttons, at most three.
    pub actions: &'a [CheckAction],
}

/// How a check run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckConclusion {
    /// Fine.
    Success,
    /// Not fine.
    Failure,
    /// Neither.
    Neutral,
    /// A person has to act.
    ActionRequired,
    /// Does not apply.
    Skipped,
}

/// How grave an annotation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AnnotationLevel {
    /// For information.
    Notice,
    /// To be looked at.
    Warning,
    /// Wrong.
    Failure,
}

/// A note at a line of a file.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Annotation {
    /// The path at the head.
    pub path: String,
    /// First line, from 1.
    pub start_line: u64,
    /// Last line.
    pub end_line: u64,
    /// How grave.
    #[serde(rename = "annotation_level")]
    pub level: AnnotationLevel,
    /// The text.
    pub message: String,
    /// Its headline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// A button at a check run.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CheckAction {
    /// On the button, at most 20 characters.
    pub label: String,
    /// What it does, at most 40 characters.
    pub description: String,
    /// Our word for it, at most 20 characters.
    pub identifier: String,
}

/// A check run that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedCheckRun {
    /// Its id.
    pub id: u64,
    /// Whether anything had to be written.
    pub written: bool,
}
