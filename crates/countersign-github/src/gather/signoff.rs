//! The text of the sign-off, from its place, and whether somebody else has edited it.

use chrono::{DateTime, Utc};
use countersign_core::evidence::SignoffText;
use countersign_core::{Login, PrNumber, SignoffKey, SignoffPlace};
use futures::future::join;
use serde::Deserialize;
use serde_json::json;

use crate::calls::Call;
use crate::client::RepoClient;
use crate::client::thread::{of_comment, of_review};
use crate::error::GitHubError;
use crate::info::ThreadItem;
use crate::wire;

/// GitHub's placeholder for accounts that were deleted.
const GHOST: &str = "ghost";

/// The conversation, and the sign-off as it stands now; `None` where it is not there, or on another pull request. A comment of
/// the conversation is taken from its list: asked for again, an unchanged list costs nothing.
pub(crate) async fn conversation(
    repo: &RepoClient,
    pull_request: PrNumber,
    key: SignoffKey,
) -> (
    Result<Vec<wire::Comment>, GitHubError>,
    Result<Option<ThreadItem>, GitHubError>,
) {
    if key.place != SignoffPlace::IssueComment {
        return join(repo.read_comments(pull_request), read(repo, pull_request, key)).await;
    }
    let comments = repo.read_comments(pull_request).await;
    let signed = match &comments {
        Ok(list) => Ok(list
            .iter()
            .find(|comment| comment.id == key.id)
            .cloned()
            .map(|comment| of_comment(key.place, comment))),
        Err(_) => read(repo, pull_request, key).await,
    };
    (comments, signed)
}

/// The sign-off once more.
pub(crate) async fn again(
    repo: &RepoClient,
    pull_request: PrNumber,
    key: SignoffKey,
) -> Result<Option<ThreadItem>, GitHubError> {
    match key.place {
        SignoffPlace::IssueComment => conversation(repo, pull_request, key).await.1,
        _ => read(repo, pull_request, key).await,
    }
}

async fn read(repo: &RepoClient, pull_request: PrNumber, key: SignoffKey) -> Result<Option<ThreadItem>, GitHubError> {
    let (id, pull) = (key.id.to_string(), pull_request.to_string());
    let what = format!("sign-off {key}");
    let found = match key.place {
        SignoffPlace::IssueComment => {
            let call = Call::get(repo.path(["issues", "comments", &id]), what);
            repo.read::<wire::Comment>(&call)
                .await
                .map(|comment| (comment.number(), Some(of_comment(key.place, comment))))
        }
        SignoffPlace::ReviewComment => {
            let call = Call::get(repo.path(["pulls", "comments", &id]), what);
            repo.read::<wire::Comment>(&call)
                .await
                .map(|comment| (comment.number(), Some(of_comment(key.place, comment))))
        }
        SignoffPlace::Review => {
            let call = Call::get(repo.path(["pulls", &pull, "reviews", &id]), what);
            repo.read::<wire::Review>(&call)
                .await
                .map(|review| (review.number().or(Some(pull_request.0)), of_review(review)))
        }
    };
    match found {
        // Ids of comments are the repository's, so the pull request has to be compared.
        Ok((number, item)) => Ok(item.filter(|_| number == Some(pull_request.0))),
        Err(GitHubError::NotFound { .. } | GitHubError::Gone { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether two readings show the same text.
pub(crate) fn same(one: &ThreadItem, two: &ThreadItem) -> bool {
    one.body == two.body && one.updated_at == two.updated_at
}

#[derive(Deserialize)]
struct Editor {
    login: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Edited {
    last_edited_at: Option<DateTime<Utc>>,
    editor: Option<Editor>,
}

/// As evidence shows it. Who edited it last has to be asked for: REST does not say it, its `updated_at` moves with more than
/// edits, and reviews do not even have that.
pub(crate) async fn text(repo: &RepoClient, item: ThreadItem) -> Result<SignoffText, GitHubError> {
    let ghost = || {
        GHOST
            .parse::<Login>()
            .map_err(|error| GitHubError::Config(error.to_string()))
    };
    let author = item.author.clone().map_or_else(ghost, Ok)?;
    // Always: GitHub's times are whole seconds, so an edit within the second of writing does not show in them.
    let edited = edited(repo, &item).await?;
    let edited_by_other = match (edited.last_edited_at, edited.editor) {
        (None, _) => None,
        (Some(_), Some(editor)) if author.same(&editor.login) => None,
        // An editor whose account is gone may have been anybody.
        (Some(_), editor) => Some(
            editor
                .and_then(|editor| editor.login.parse().ok())
                .map_or_else(ghost, Ok)?,
        ),
    };
    Ok(SignoffText {
        key: item.key,
        author,
        author_is_bot: item.is_bot,
        association: item.association,
        body: item.body,
        created_at: item.created_at,
        updated_at: edited.last_edited_at.unwrap_or(item.created_at),
        edited_by_other,
        url: item.url,
    })
}

const QUERY: &str = "query($id: ID!) { node(id: $id) { ... on Comment { lastEditedAt editor { login } } } }";

async fn edited(repo: &RepoClient, item: &ThreadItem) -> Result<Edited, GitHubError> {
    let what = format!("the last edit of {}", item.key);
    let data = repo
        .hub
        .graphql(&repo.who, QUERY, json!({"id": item.node_id}), &what, repo.tally())
        .await?;
    let decode = |why: String| GitHubError::Decode {
        what: what.clone(),
        path: "data.node".into(),
        why,
    };
    let node = data
        .get("node")
        .filter(|node| !node.is_null())
        .ok_or_else(|| decode("it is missing".into()))?;
    if node.get("lastEditedAt").is_none() {
        return Err(decode("it does not say when it was edited".into()));
    }
    Edited::deserialize(node).map_err(|error| decode(error.to_string()))
}
