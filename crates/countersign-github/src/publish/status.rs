//! The commit status: written where the newest of its context is not what it should be, or not ours.

use countersign_core::Login;
use serde_json::json;

use super::{DesiredStatus, ForeignStatus, PublishedStatus, StatusBefore};
use crate::calls::Call;
use crate::client::RepoClient;
use crate::error::GitHubError;
use crate::wire;

/// GitHub's limit for the description, in characters.
const DESCRIPTION: usize = 140;

/// Looks what the newest commit status of the context is, before [`write_status`]: whoever keeps a record of what is replaced must have
/// made it before, or it is lost with the answer.
///
/// # Errors
/// [`GitHubError`].
pub async fn look_at_status(repo: &RepoClient, wanted: &DesiredStatus<'_>) -> Result<StatusBefore, GitHubError> {
    let newest = newest(repo, wanted).await?;
    let (there, other) = judge(repo, wanted, &cut(wanted.description), newest.as_ref()).await?;
    let id = newest.map(|status| status.id).unwrap_or_default();
    Ok(StatusBefore {
        there,
        replaces: other.map(|by| ForeignStatus { by, id }),
    })
}

/// Makes the commit status be the newest of its context: looks, and writes.
///
/// # Errors
/// [`GitHubError`].
pub async fn ensure_status(repo: &RepoClient, wanted: &DesiredStatus<'_>) -> Result<PublishedStatus, GitHubError> {
    let before = look_at_status(repo, wanted).await?;
    write_status(repo, wanted, before).await
}

/// Writes the commit status, unless it was found there.
///
/// # Errors
/// [`GitHubError`].
pub async fn write_status(
    repo: &RepoClient,
    wanted: &DesiredStatus<'_>,
    before: StatusBefore,
) -> Result<PublishedStatus, GitHubError> {
    if before.there {
        return Ok(PublishedStatus {
            written: false,
            replaced: None,
        });
    }
    let description = cut(wanted.description);
    let replaced = before.replaces.map(|other| other.by);
    let mut body = json!({"state": wanted.state, "context": wanted.context, "description": description});
    if let Some(url) = wanted.target_url {
        body["target_url"] = url.into();
    }
    let call = Call::post(
        repo.path(["statuses", wanted.sha.as_str()]),
        body,
        format!("the status {} on {}", wanted.context, wanted.sha.short()),
    );
    match repo.send(&call).await {
        Ok(_) => Ok(PublishedStatus {
            written: true,
            replaced,
        }),
        // It may have been written, and only the answer was lost.
        Err(error) if error.is_ambiguous() => {
            let Ok(newest) = self::newest(repo, wanted).await else {
                return Err(error);
            };
            if judge(repo, wanted, &description, newest.as_ref()).await?.0 {
                return Ok(PublishedStatus {
                    written: true,
                    replaced,
                });
            }
            Err(error)
        }
        Err(error) => Err(error),
    }
}

/// The newest status of the context. GitHub lists the newest first, all contexts together.
async fn newest(repo: &RepoClient, wanted: &DesiredStatus<'_>) -> Result<Option<wire::Status>, GitHubError> {
    let path = repo.path(["commits", wanted.sha.as_str(), "statuses"]);
    for page in 1..=repo.hub.config.limits.pages {
        let call = Call::get(path.clone(), format!("the statuses of {}", wanted.sha.short()))
            .query("per_page", 100)
            .query("page", page);
        let list: Vec<wire::Status> = repo.read(&call).await?;
        let last = list.len() < 100;
        if let Some(found) = list.into_iter().find(|status| status.context == wanted.context) {
            return Ok(Some(found));
        }
        if last {
            break;
        }
    }
    Ok(None)
}

/// Whether it is there already; else whose it replaces.
async fn judge(
    repo: &RepoClient,
    wanted: &DesiredStatus<'_>,
    description: &str,
    newest: Option<&wire::Status>,
) -> Result<(bool, Option<Login>), GitHubError> {
    let Some(found) = newest else { return Ok((false, None)) };
    let own = &repo.hub.identity().await?.bot;
    let ours = found.creator.as_ref().is_some_and(|creator| own.same(&creator.login));
    let state = serde_json::to_value(wanted.state).ok();
    let same = state.as_ref().and_then(serde_json::Value::as_str) == Some(found.state.as_str())
        && found.description == description
        && found.target_url.as_deref().filter(|url| !url.is_empty()) == wanted.target_url;
    let other = found.creator.as_ref().filter(|_| !ours).and_then(wire::Account::login);
    Ok((ours && same, other))
}

fn cut(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().count() <= DESCRIPTION {
        return text;
    }
    text.chars().take(DESCRIPTION - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_cut_between_characters() {
        assert_eq!(cut("a\nb"), "a b");
        assert_eq!(cut(&"é".repeat(140)).chars().count(), 140);
        let long = cut(&"é".repeat(200));
        assert!(long.ends_with('…') && long.chars().count() == 140);
    }
}
