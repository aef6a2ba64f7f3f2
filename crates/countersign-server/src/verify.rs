//! One verdict without a server: nothing is stored, nothing is posted.

use chrono::{DateTime, Utc};
use countersign_core::{Evidence, PrNumber, RepoName, SignoffKey, Verdict};
use countersign_github::{App, GatherRequest, Gathered, gather};
use countersign_policy::LoadedPolicy;
use countersign_signoff::{AuthorInfo, Recognition};

use crate::engine::JudgeError;

/// How often gathering is begun anew when something moves meanwhile.
const TRIES: usize = 5;

/// Gathers and judges. Without a sign-off the newest one of the pull request is taken.
///
/// # Errors
/// [`JudgeError`]; `Internal` when there is no sign-off, with words for a reader.
pub async fn verify_once(
    app: &App,
    policy: &LoadedPolicy,
    repository: &RepoName,
    number: PrNumber,
    signoff: Option<SignoffKey>,
    now: DateTime<Utc>,
) -> Result<Verdict, JudgeError> {
    let evidence = gather_once(app, policy, repository, number, signoff, now).await?;
    Ok(countersign_checks::evaluate(&evidence, policy))
}

/// Gathers the evidence of a sign-off. Without one the newest of the pull request is taken.
///
/// # Errors
/// As [`verify_once`].
pub async fn gather_once(
    app: &App,
    policy: &LoadedPolicy,
    repository: &RepoName,
    number: PrNumber,
    signoff: Option<SignoffKey>,
    now: DateTime<Utc>,
) -> Result<Evidence, JudgeError> {
    let client = app.repository(repository).await?;
    for _ in 0..TRIES {
        let signoff = match signoff {
            Some(key) => key,
            None => {
                let own = app.identity().await?;
                let thread = client.thread(number).await?;
                let newest = thread.iter().filter(|item| {
                    let author = AuthorInfo {
                        login: item.author.as_ref().map(ToString::to_string).unwrap_or_default(),
                        is_bot: item.is_bot,
                        is_self: item.app_id == Some(own.id),
                    };
                    matches!(
                        countersign_signoff::recognise(&item.body, &author, &policy.policy.signoff),
                        Recognition::SignOff(_)
                    )
                });
                newest
                    .max_by_key(|item| (item.created_at, item.key))
                    .map(|item| item.key)
                    .ok_or_else(|| {
                        JudgeError::Internal(format!(
                            "{repository}#{number} has no sign-off yet; a CODEOWNER has to post the checklist"
                        ))
                    })?
            }
        };
        let request = GatherRequest {
            pull_request: number,
            signoff,
            policy,
            now,
            head_seen_at: None,
        };
        match gather(&client, &request).await? {
            Gathered::Evidence { evidence, .. } => return Ok(*evidence),
            Gathered::SignoffGone => {
                return Err(JudgeError::Internal(format!(
                    "{signoff} is not a text of {repository}#{number}"
                )));
            }
            Gathered::HeadMoved { .. } | Gathered::PullRequestChanged | Gathered::SignoffChanged => {}
        }
    }
    Err(JudgeError::Internal(format!(
        "{repository}#{number} changed again and again while it was read; try again later"
    )))
}
