//! The reuse command that counts, and the run that it means.

use countersign_core::evidence::{Comment, WorkflowRun};
use countersign_core::{Cause, CauseKind, Evidence, Login, Observed};
use countersign_policy::Policy;
use countersign_signoff::{CommandKind, NearMiss};

use super::runs;

/// An authorised command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReuseCommand {
    /// Its name, e.g. `/use`.
    pub name: String,
    /// The run it names.
    pub run: Option<u64>,
    /// Who gave it.
    pub by: Login,
    /// The giver's association, as GitHub spells it.
    pub association: &'static str,
    /// The comment's id.
    pub comment_id: u64,
    /// The comment's address.
    pub url: String,
}

/// What a command comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolved {
    /// This run.
    Run(u64),
    /// No run, and why.
    Nothing(String),
    /// Runs could not be read.
    Unknown(Cause),
}

/// All that is known of reuse commands in the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reuse {
    /// The newest authorised one.
    pub command: Option<ReuseCommand>,
    /// What it resolves to; only with a command.
    pub resolved: Option<Resolved>,
    /// The newest command by somebody without the authority: login and association.
    pub unauthorised: Option<(String, &'static str)>,
    /// Texts that look like a command and are none, newest first.
    pub near_misses: Vec<NearMiss>,
    /// The newest run that an unpinned command would take: what to pin.
    pub suggestion: Option<u64>,
}

/// Finds the command that counts (domain guide, section 6.1): comments by creation time, from the newest; without authority
/// they are skipped; the first with a command decides, and in it the last line.
///
/// # Errors
/// Why comments are not known.
pub fn resolve(evidence: &Evidence, policy: &Policy) -> Result<Reuse, Cause> {
    let comments = match &evidence.comments {
        Observed::Present(comments) => comments,
        Observed::Absent => return Err(Cause::new(CauseKind::NotRecorded, "comments", "they were not gathered")),
        Observed::Unavailable(cause) => return Err(cause.clone()),
    };
    let mut ordered: Vec<&Comment> = comments.iter().collect();
    ordered.sort_by_key(|comment| std::cmp::Reverse((comment.created_at, comment.id)));
    let mut reuse = Reuse {
        command: None,
        resolved: None,
        unauthorised: None,
        near_misses: Vec::new(),
        suggestion: newest_reusable(evidence, policy).ok().flatten().map(|run| run.id),
    };
    for comment in ordered {
        let found = countersign_signoff::commands(&comment.body, &policy.commands.words);
        if reuse.near_misses.len() < 3 {
            reuse.near_misses.extend(
                found
                    .near_misses
                    .iter()
                    .filter(|miss| is_reuse(policy, &miss.text))
                    .take(1)
                    .cloned(),
            );
        }
        let Some(CommandKind::Reuse { name, run }) = found.reuse().map(|command| command.kind.clone()) else {
            continue;
        };
        let Some(author) = comment.author.clone() else { continue };
        if comment.author_is_bot
            || !policy
                .commands
                .authority
                .reuse_associations
                .contains(&comment.association)
        {
            reuse.unauthorised = reuse
                .unauthorised
                .or_else(|| Some((author.to_string(), comment.association.word())));
            continue;
        }
        reuse.resolved = Some(resolve_run(evidence, policy, run));
        reuse.command = Some(ReuseCommand {
            name,
            run,
            by: author,
            association: comment.association.word(),
            comment_id: comment.id,
            url: comment.url.clone(),
        });
        break;
    }
    Ok(reuse)
}

fn is_reuse(policy: &Policy, line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    policy
        .commands
        .words
        .reuse
        .iter()
        .any(|rule| line.contains(&rule.name.to_ascii_lowercase()))
}

fn resolve_run(evidence: &Evidence, policy: &Policy, pinned: Option<u64>) -> Resolved {
    let labels = &policy.ci.labels;
    if let Some(label) = evidence
        .pull_request
        .labels
        .iter()
        .find(|label| labels.not_reusable.contains(label))
    {
        return Resolved::Nothing(format!("the label {label} makes results not reusable"));
    }
    let commits = match runs::commits(evidence) {
        Ok(commits) => commits,
        Err(cause) => return Resolved::Unknown(cause),
    };
    let Some(id) = pinned else {
        return match newest_reusable(evidence, policy) {
            Ok(Some(run)) => Resolved::Run(run.id),
            Ok(None) => Resolved::Nothing("no green run with results on a commit of this pull request".into()),
            Err(cause) => Resolved::Unknown(cause),
        };
    };
    let all = match runs::all(evidence) {
        Ok(all) => all,
        Err(cause) => return Resolved::Unknown(cause),
    };
    let Some(run) = all.into_iter().find(|run| run.id == id) else {
        return Resolved::Nothing(format!("there is no run {id} on a commit of this pull request"));
    };
    match runs::counts(run, &policy.ci, &commits) {
        Err(runs::NotEvidence::Workflow(path)) => {
            return Resolved::Nothing(format!("run {id} is of {path}, not of {}", policy.ci.workflow));
        }
        Err(runs::NotEvidence::Event(event)) => {
            return Resolved::Nothing(format!("run {id} was started by {event}, not by {}", policy.ci.event));
        }
        Err(runs::NotEvidence::CommitGone(sha)) => {
            return Resolved::Nothing(format!(
                "run {id} is on {}, which is no longer in this pull request",
                sha.short()
            ));
        }
        Ok(()) => {}
    }
    match runs::reusable(run, &policy.ci.artifacts, true) {
        Ok(()) => Resolved::Run(id),
        Err(why) => Resolved::Nothing(format!("run {id} {why}")),
    }
}

fn newest_reusable<'e>(evidence: &'e Evidence, policy: &Policy) -> Result<Option<&'e WorkflowRun>, Cause> {
    let commits = runs::commits(evidence)?;
    Ok(runs::all(evidence)?.into_iter().find(|run| {
        runs::counts(run, &policy.ci, &commits).is_ok() && runs::reusable(run, &policy.ci.artifacts, false).is_ok()
    }))
}
