//! Our reaction to a comment. Reactions of people are never touched.

use serde_json::json;

use super::Reaction;
use crate::calls::Call;
use crate::client::RepoClient;
use crate::error::GitHubError;
use crate::wire;

/// Makes our reaction to a comment be this one. Reactions of people are not touched. Returns whether anything was written.
///
/// # Errors
/// [`GitHubError`]. A comment that is gone is an error [`GitHubError::NotFound`].
pub async fn ensure_reaction(repo: &RepoClient, comment_id: u64, wanted: Reaction) -> Result<bool, GitHubError> {
    let id = comment_id.to_string();
    let own = &repo.hub.identity().await?.bot;
    let what = format!("the reactions to comment {id}");
    let call = Call::get(repo.path(["issues", "comments", &id, "reactions"]), &what);
    let mine: Vec<wire::ReactionItem> = repo
        .list::<Vec<wire::ReactionItem>>(&call)
        .await?
        .into_iter()
        .filter(|reaction| matches!(reaction.content.as_str(), "+1" | "-1"))
        .filter(|reaction| reaction.user.as_ref().is_some_and(|user| own.same(&user.login)))
        .collect();
    let content = match wanted {
        Reaction::Plus => Some("+1"),
        Reaction::Minus => Some("-1"),
        Reaction::None => None,
    };
    let mut written = false;
    // The new one first: a reader never sees none in between.
    if let Some(content) = content
        && !mine.iter().any(|reaction| reaction.content == content)
    {
        // GitHub answers a second one of the same kind with the first.
        let call = Call::post(
            repo.path(["issues", "comments", &id, "reactions"]),
            json!({"content": content}),
            &what,
        )
        .repeatable();
        repo.send(&call).await?;
        written = true;
    }
    for reaction in mine
        .iter()
        .filter(|reaction| Some(reaction.content.as_str()) != content)
    {
        let reaction = reaction.id.to_string();
        let call = Call::delete(repo.path(["issues", "comments", &id, "reactions", &reaction]), &what);
        match repo.send(&call).await {
            Ok(_) | Err(GitHubError::NotFound { .. }) => written = true,
            Err(error) => return Err(error),
        }
    }
    Ok(written)
}
