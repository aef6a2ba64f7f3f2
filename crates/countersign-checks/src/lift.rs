//! Answers of people: `/countersign confirm` answers a question, `/countersign override` lifts a FAIL.
//!
//! An answer counts if its writer has the role that the policy asks for, and if it is younger than both the sign-off and
//! the moment in which this head was first seen: nobody can confirm what was not there yet. An answer of somebody whose
//! role cannot be read does not count.

use countersign_core::evidence::{Comment, Role};
use countersign_core::outcome::{CheckReport, Outcome, OutcomeKind};
use countersign_core::verdict::{Level, Lifted, Row};
use countersign_core::{Login, Observed};
use countersign_policy::CheckEntry;
use countersign_signoff::CommandKind;

use crate::context::Context;

pub(crate) fn apply(cx: &Context<'_>, entry: &CheckEntry, row: Row) -> Row {
    let authority = &cx.policy().commands.authority;
    let (wanted, role) = match row.report.outcome.kind() {
        OutcomeKind::NeedsConfirmation => (Wanted::Confirm, authority.confirm_role),
        OutcomeKind::Fail
            if !authority
                .never_override
                .iter()
                .any(|slug| entry.slugs().any(|own| own == slug)) =>
        {
            (Wanted::Override, authority.override_role)
        }
        _ => return row,
    };
    match answer(cx, entry, wanted, role) {
        None => row,
        Some(lifted) => {
            let was = row.report.outcome.kind();
            let mut report = CheckReport {
                outcome: Outcome::Pass,
                ..row.report
            };
            if wanted == Wanted::Override && row.level == Level::Enforce {
                // A lifted FAIL stays visible as what it is: a decision of a person against a check.
                report
                    .notes
                    .push(countersign_core::text!["FAIL lifted by a maintainer"]);
            }
            Row {
                report,
                lifted: Some(Lifted { was, ..lifted }),
                ..row
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Confirm,
    Override,
}

fn answer(cx: &Context<'_>, entry: &CheckEntry, wanted: Wanted, least: Role) -> Option<Lifted> {
    let comments = cx.evidence.comments.present()?;
    let since = cx.evidence.signoff.created_at.max(cx.evidence.head_seen_at);
    comments
        .iter()
        .rev()
        .filter(|comment| comment.created_at >= since && !comment.author_is_bot)
        .find_map(|comment| {
            let author = comment.author.as_ref()?;
            if !has_role(cx, author, least) {
                return None;
            }
            command(cx, comment).into_iter().find_map(|kind| {
                let (check, reason, kind) = match kind {
                    CommandKind::Confirm { check, reason } => (check, reason, Wanted::Confirm),
                    CommandKind::Override { check, reason } => (check, reason, Wanted::Override),
                    _ => return None,
                };
                let names_it =
                    entry.slug == check || entry.slugs().any(|slug| slug == check) || entry.number.to_string() == check;
                // An override says more than a confirmation, so it answers a question too.
                let fits = kind == wanted || (wanted == Wanted::Confirm && kind == Wanted::Override);
                (names_it && fits && !reason.trim().is_empty()).then(|| Lifted {
                    was: OutcomeKind::Fail,
                    by: author.clone(),
                    why: reason,
                    url: comment.url.clone(),
                })
            })
        })
}

fn command(cx: &Context<'_>, comment: &Comment) -> Vec<CommandKind> {
    countersign_signoff::commands(&comment.body, &cx.policy().commands.words)
        .commands
        .into_iter()
        .map(|command| command.kind)
        .collect()
}

fn has_role(cx: &Context<'_>, login: &Login, least: Role) -> bool {
    matches!(
        cx.evidence.people.permissions.get(&login.as_str().to_ascii_lowercase()),
        Some(Observed::Present(permission)) if permission.role >= least
    )
}
