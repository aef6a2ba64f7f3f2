//! The verdict comment: found by its remembered id, else among our App's own comments by its marker; never by the text of
//! others, who may write any marker they like (reference guide, section 4, items 1 and 2).

use countersign_core::PrNumber;
use countersign_core::render::marker_of;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::{DesiredAnswer, DesiredComment, OwnComment, PublishedComment};
use crate::calls::Call;
use crate::client::RepoClient;
use crate::error::GitHubError;
use crate::wire;

/// Whether our App wrote a comment. Its id decides; the login only where GitHub names no App.
pub(super) async fn is_ours(repo: &RepoClient, comment: &wire::Comment) -> Result<bool, GitHubError> {
    let own = repo.hub.identity().await?;
    let by = comment
        .user
        .as_ref()
        .is_some_and(|user| user.is_bot() && own.bot.same(&user.login));
    Ok(by
        && comment
            .performed_via_github_app
            .as_ref()
            .is_none_or(|app| app.id == own.id))
}

/// GitHub stores line ends and the end of a text in its own way.
fn same_text(one: &str, two: &str) -> bool {
    one.replace("\r\n", "\n").trim_end() == two.replace("\r\n", "\n").trim_end()
}

fn published(comment: wire::Comment, written: bool) -> PublishedComment {
    PublishedComment {
        id: comment.id,
        node_id: comment.node_id,
        url: comment.html_url,
        written,
    }
}

/// Makes the verdict comment be there.
///
/// # Errors
/// [`GitHubError`]; after an ambiguous one the comment may be there, and the next call finds it.
pub async fn ensure_comment(repo: &RepoClient, wanted: &DesiredComment<'_>) -> Result<PublishedComment, GitHubError> {
    let named = marker_of(wanted.marker, wanted.body);
    if named.as_ref() != Some(&(wanted.signoff, wanted.head.clone())) {
        return Err(GitHubError::Config(
            "a verdict comment has to begin with its own marker".into(),
        ));
    }
    if let Some(found) = find(repo, wanted).await? {
        return update(repo, wanted.body, found).await;
    }
    post(repo, wanted.pull_request, wanted.body, || Box::pin(find(repo, wanted))).await
}

/// An answer to a question: a comment of ours whose first line is its marker.
///
/// # Errors
/// [`GitHubError`].
pub async fn ensure_answer(repo: &RepoClient, wanted: &DesiredAnswer<'_>) -> Result<PublishedComment, GitHubError> {
    if let Some(found) = find_answer(repo, wanted).await? {
        return update(repo, wanted.body, found).await;
    }
    post(repo, wanted.pull_request, wanted.body, || {
        Box::pin(find_answer(repo, wanted))
    })
    .await
}

async fn find_answer(repo: &RepoClient, wanted: &DesiredAnswer<'_>) -> Result<Option<wire::Comment>, GitHubError> {
    let marker = wanted.body.lines().next().unwrap_or_default();
    for comment in repo.read_comments(wanted.pull_request).await? {
        if comment.body.lines().next().map(str::trim_end) == Some(marker) && is_ours(repo, &comment).await? {
            return Ok(Some(comment));
        }
    }
    Ok(None)
}

type Found<'f> = BoxFuture<'f, Result<Option<wire::Comment>, GitHubError>>;

/// Writes a comment; where it may have been written and only the answer was lost, looks for it before saying so.
async fn post<'f>(
    repo: &RepoClient,
    pull_request: PrNumber,
    body: &str,
    find: impl Fn() -> Found<'f>,
) -> Result<PublishedComment, GitHubError> {
    let number = pull_request.to_string();
    let call = Call::post(
        repo.path(["issues", &number, "comments"]),
        json!({"body": body}),
        format!("a comment on #{number}"),
    );
    match repo.read::<wire::Comment>(&call).await {
        Ok(comment) => Ok(published(comment, true)),
        Err(error) if error.is_ambiguous() => match find().await {
            Ok(Some(found)) => update(repo, body, found)
                .await
                .map(|done| PublishedComment { written: true, ..done }),
            _ => Err(error),
        },
        Err(error) => Err(error),
    }
}

/// The comment as it is now, if there is one.
async fn find(repo: &RepoClient, wanted: &DesiredComment<'_>) -> Result<Option<wire::Comment>, GitHubError> {
    if let Some(id) = wanted.remembered {
        match repo.read_issue_comment(id).await {
            // Whatever it says now: somebody may have edited the marker away, and it is still the one.
            Ok(comment)
                if comment.number() == Some(wanted.pull_request.0)
                    && !wanted.not_these.contains(&comment.id)
                    && is_ours(repo, &comment).await? =>
            {
                return Ok(Some(comment));
            }
            // Deleted, or another one: as if nothing was remembered.
            Ok(_) | Err(GitHubError::NotFound { .. } | GitHubError::Gone { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    let (mut found, mut orphan) = (None, None);
    for comment in repo.read_comments(wanted.pull_request).await? {
        if is_wanted(repo, wanted, &comment).await? {
            found = Some(comment);
        } else if wanted.uncertain
            && !wanted.not_these.contains(&comment.id)
            && !comment.body.starts_with("<!-- ")
            && is_ours(repo, &comment).await?
        {
            orphan = Some(comment);
        }
    }
    // One of ours that nobody remembers and that lost its first line: it was written, its answer was lost, and somebody edited it.
    Ok(found.or(orphan))
}

async fn is_wanted(
    repo: &RepoClient,
    wanted: &DesiredComment<'_>,
    comment: &wire::Comment,
) -> Result<bool, GitHubError> {
    if wanted.not_these.contains(&comment.id) {
        return Ok(false);
    }
    let named = marker_of(wanted.marker, &comment.body);
    Ok(
        named.is_some_and(|(signoff, head)| signoff == wanted.signoff && head == *wanted.head)
            && is_ours(repo, comment).await?,
    )
}

async fn update(repo: &RepoClient, body: &str, found: wire::Comment) -> Result<PublishedComment, GitHubError> {
    if same_text(&found.body, body) {
        return Ok(published(found, false));
    }
    let id = found.id.to_string();
    let call = Call::patch(
        repo.path(["issues", "comments", &id]),
        json!({"body": body}),
        format!("comment {id}"),
    )
    .repeatable();
    repo.read::<wire::Comment>(&call)
        .await
        .map(|comment| published(comment, true))
}

/// Our verdict comments on a pull request, oldest first.
///
/// # Errors
/// [`GitHubError`].
pub async fn own_verdict_comments(
    repo: &RepoClient,
    pull_request: PrNumber,
    marker: &str,
) -> Result<Vec<OwnComment>, GitHubError> {
    let mut own = Vec::new();
    for comment in repo.read_comments(pull_request).await? {
        if let Some((signoff, head)) = marker_of(marker, &comment.body)
            && is_ours(repo, &comment).await?
        {
            own.push(OwnComment {
                id: comment.id,
                node_id: comment.node_id,
                signoff,
                head,
                body: comment.body,
                url: comment.html_url,
            });
        }
    }
    Ok(own)
}

/// The node id of a comment of ours; `None` where it is gone, another's, or not on this pull request.
///
/// # Errors
/// [`GitHubError`].
pub async fn own_comment_node(
    repo: &RepoClient,
    pull_request: PrNumber,
    id: u64,
) -> Result<Option<String>, GitHubError> {
    match repo.read_issue_comment(id).await {
        Ok(comment) if comment.number() == Some(pull_request.0) && is_ours(repo, &comment).await? => {
            Ok(Some(comment.node_id))
        }
        Ok(_) | Err(GitHubError::NotFound { .. } | GitHubError::Gone { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

const MINIMISE: &str = "mutation($id: ID!) { minimizeComment(input: {subjectId: $id, classifier: OUTDATED}) { minimizedComment { isMinimized } } }";

/// Folds a comment as outdated. One that is folded or gone already is fine.
///
/// # Errors
/// [`GitHubError`].
pub async fn minimise(repo: &RepoClient, node_id: &str) -> Result<(), GitHubError> {
    let what = "folding an outdated comment";
    let done = repo
        .hub
        .graphql(&repo.who, MINIMISE, json!({"id": node_id}), what, repo.tally())
        .await;
    match done {
        Ok(data) => match data
            .pointer("/minimizeComment/minimizedComment/isMinimized")
            .and_then(Value::as_bool)
        {
            Some(false) => Err(GitHubError::Unprocessable {
                what: what.into(),
                message: "GitHub did not fold it".into(),
            }),
            _ => Ok(()),
        },
        Err(GitHubError::NotFound { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
