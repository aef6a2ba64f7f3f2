//! What GitHub ought to show, as rows of the outbox: made by the judge, read by the publisher. One place for their form.

use countersign_core::render::{State, StatusLine};
use countersign_core::{CommitSha, SignoffKey};
use countersign_github::publish::{Annotation, CheckConclusion};
use countersign_store::{DesiredPublication, Publication};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

/// A verdict comment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommentWish {
    /// The sign-off it speaks of.
    pub signoff: SignoffKey,
    /// The head it speaks of.
    pub head: CommitSha,
    /// The word of its marker.
    pub marker: String,
    /// The whole text.
    pub body: String,
}

/// A commit status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusWish {
    /// The commit.
    pub head: CommitSha,
    /// Its context.
    pub context: String,
    /// Colour.
    pub state: State,
    /// Text.
    pub description: String,
    /// Where it leads.
    pub url: Option<String>,
}

/// A reaction to a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReactionWish {
    /// The comment.
    pub comment: u64,
    /// 👍 (usable now), 👎 (not), or none of ours.
    pub usable: Option<bool>,
}

/// An older verdict that is to be folded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MinimiseWish {
    /// The target of the comment's own row in the outbox.
    pub comment_target: String,
}

/// The check run of a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckRunWish {
    /// The commit.
    pub head: CommitSha,
    /// Its name.
    pub name: String,
    /// The sign-off that it speaks of.
    pub signoff: SignoffKey,
    /// How it ends.
    pub conclusion: CheckConclusion,
    /// One line.
    pub title: String,
    /// The whole table, Markdown.
    pub summary: String,
    /// Where more is.
    pub url: Option<String>,
    /// Notes at lines.
    pub annotations: Vec<Annotation>,
}

/// An answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerWish {
    /// The comment that asks.
    pub comment: u64,
    /// The whole text.
    pub body: String,
}

/// A row of the outbox, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// See [`CommentWish`].
    Comment(CommentWish),
    /// See [`StatusWish`].
    Status(StatusWish),
    /// See [`ReactionWish`].
    Reaction(ReactionWish),
    /// See [`MinimiseWish`].
    Minimise(MinimiseWish),
    /// See [`AnswerWish`].
    Answer(AnswerWish),
    /// See [`CheckRunWish`].
    CheckRun(Box<CheckRunWish>),
}

const COMMENT: &str = "comment";
const STATUS: &str = "status";
const REACTION: &str = "reaction";
const MINIMISE: &str = "minimise";
const ANSWER: &str = "answer";
const CHECK_RUN: &str = "check_run";

fn row(kind: &str, target: String, desired: Value, evaluation: Option<Uuid>) -> DesiredPublication {
    DesiredPublication {
        kind: kind.to_owned(),
        target,
        desired,
        evaluation,
        reassert: false,
    }
}

/// The target of a sign-off's comments: `key/1`, and after a changed decision or head `key/2`, …
#[must_use]
pub fn comment_target(signoff: &SignoffKey, number: u32) -> String {
    format!("{signoff}/{number}")
}

/// The sign-off and number of a comment's target.
#[must_use]
pub fn read_comment_target(target: &str) -> Option<(SignoffKey, u32)> {
    let (signoff, number) = target.split_once('/')?;
    Some((signoff.parse().ok()?, number.parse().ok()?))
}

impl CommentWish {
    /// As a row.
    #[must_use]
    pub fn row(&self, number: u32, evaluation: Option<Uuid>) -> DesiredPublication {
        row(COMMENT, comment_target(&self.signoff, number), json!(self), evaluation)
    }
}

impl StatusWish {
    /// From a line.
    #[must_use]
    pub fn new(head: &CommitSha, context: &str, line: StatusLine, url: Option<String>) -> Self {
        Self {
            head: head.clone(),
            context: context.to_owned(),
            state: line.state,
            description: line.description,
            url,
        }
    }

    /// As a row.
    #[must_use]
    pub fn row(&self, evaluation: Option<Uuid>) -> DesiredPublication {
        row(
            STATUS,
            format!("{} {}", self.head, self.context),
            json!(self),
            evaluation,
        )
    }
}

impl ReactionWish {
    /// As a row.
    #[must_use]
    pub fn row(&self) -> DesiredPublication {
        row(REACTION, self.comment.to_string(), json!(self), None)
    }
}

impl MinimiseWish {
    /// As a row.
    #[must_use]
    pub fn row(&self) -> DesiredPublication {
        row(MINIMISE, self.comment_target.clone(), json!(self), None)
    }
}

impl CheckRunWish {
    /// As a row.
    #[must_use]
    pub fn row(&self, evaluation: Option<Uuid>) -> DesiredPublication {
        row(
            CHECK_RUN,
            format!("{} {}", self.head, self.name),
            json!(self),
            evaluation,
        )
    }
}

impl AnswerWish {
    /// As a row.
    #[must_use]
    pub fn row(&self) -> DesiredPublication {
        row(ANSWER, self.comment.to_string(), json!(self), None)
    }
}

/// Whether a row of the outbox is an answer.
#[must_use]
pub fn is_answer(kind: &str) -> bool {
    kind == ANSWER
}

/// Whether a row of the outbox is a verdict's comment.
#[must_use]
pub fn is_comment(kind: &str) -> bool {
    kind == COMMENT
}

/// Whether the comment of a target is folded, or is to be: the row that folds it has the same target.
#[must_use]
pub fn is_folded(rows: &[Publication], target: &str) -> bool {
    rows.iter().any(|row| row.kind == MINIMISE && row.target == target)
}

/// Whether somebody else can change it after we showed it, so that it has to be shown again.
#[must_use]
pub fn is_lasting(kind: &str) -> bool {
    matches!(kind, COMMENT | STATUS)
}

/// Reads a row.
///
/// # Errors
/// For rows of another version of this program.
pub fn read(kind: &str, desired: &Value) -> Result<Wish, serde_json::Error> {
    let desired = desired.clone();
    Ok(match kind {
        COMMENT => Wish::Comment(serde_json::from_value(desired)?),
        STATUS => Wish::Status(serde_json::from_value(desired)?),
        REACTION => Wish::Reaction(serde_json::from_value(desired)?),
        MINIMISE => Wish::Minimise(serde_json::from_value(desired)?),
        CHECK_RUN => Wish::CheckRun(Box::new(serde_json::from_value(desired)?)),
        ANSWER => Wish::Answer(serde_json::from_value(desired)?),
        other => return Err(serde::de::Error::custom(format!("unknown kind {other}"))),
    })
}
