//! Conversations: comments, reviews and inline comments in one form.

use countersign_core::{PrNumber, SignoffKey, SignoffPlace};
use futures::future::try_join3;

use super::RepoClient;
use crate::calls::Call;
use crate::error::GitHubError;
use crate::info::ThreadItem;
use crate::wire;

impl RepoClient {
    pub(crate) async fn read_comments(&self, number: PrNumber) -> Result<Vec<wire::Comment>, GitHubError> {
        let id = number.to_string();
        let call = Call::get(self.path(["issues", &id, "comments"]), format!("the comments of #{id}"));
        let mut comments = self.list::<Vec<wire::Comment>>(&call).await?;
        // A page shifts when a comment is deleted meanwhile.
        comments.sort_by_key(|comment| (comment.created_at, comment.id));
        comments.dedup_by_key(|comment| comment.id);
        Ok(comments)
    }

    /// Every text of a pull request: comments, submitted reviews, inline comments; oldest first.
    ///
    /// # Errors
    /// [`GitHubError`].
    pub async fn thread(&self, number: PrNumber) -> Result<Vec<ThreadItem>, GitHubError> {
        let id = number.to_string();
        let reviews = Call::get(self.path(["pulls", &id, "reviews"]), format!("the reviews of #{id}"));
        let inline = Call::get(
            self.path(["pulls", &id, "comments"]),
            format!("the inline comments of #{id}"),
        );
        let (comments, reviews, inline) = try_join3(
            self.read_comments(number),
            self.list::<Vec<wire::Review>>(&reviews),
            self.list::<Vec<wire::Comment>>(&inline),
        )
        .await?;
        let mut items: Vec<ThreadItem> = comments
            .into_iter()
            .map(|comment| of_comment(SignoffPlace::IssueComment, comment))
            .collect();
        items.extend(reviews.into_iter().filter_map(of_review));
        items.extend(
            inline
                .into_iter()
                .map(|comment| of_comment(SignoffPlace::ReviewComment, comment)),
        );
        items.sort_by_key(|item| (item.created_at, item.key));
        items.dedup_by_key(|item| item.key);
        Ok(items)
    }

    pub(crate) async fn read_issue_comment(&self, id: u64) -> Result<wire::Comment, GitHubError> {
        let id = id.to_string();
        self.read(&Call::get(
            self.path(["issues", "comments", &id]),
            format!("comment {id}"),
        ))
        .await
    }

    /// One comment of a conversation, and the number of its issue or pull request.
    ///
    /// # Errors
    /// [`GitHubError`].
    pub async fn issue_comment(&self, id: u64) -> Result<(ThreadItem, u64), GitHubError> {
        let comment = self.read_issue_comment(id).await?;
        let number = comment.number().ok_or_else(|| GitHubError::Decode {
            what: format!("comment {id}"),
            path: "issue_url".into(),
            why: "it names no issue".into(),
        })?;
        Ok((of_comment(SignoffPlace::IssueComment, comment), number))
    }
}

pub(crate) fn of_comment(place: SignoffPlace, comment: wire::Comment) -> ThreadItem {
    ThreadItem {
        key: SignoffKey { place, id: comment.id },
        node_id: comment.node_id,
        author: comment.user.as_ref().and_then(wire::Account::login),
        is_bot: comment.user.as_ref().is_some_and(wire::Account::is_bot),
        association: comment.author_association,
        body: comment.body,
        created_at: comment.created_at,
        updated_at: comment.updated_at,
        url: comment.html_url,
        app_id: comment.performed_via_github_app.map(|app| app.id),
    }
}

pub(crate) fn of_review(review: wire::Review) -> Option<ThreadItem> {
    let submitted_at = review.submitted_at?;
    Some(ThreadItem {
        key: SignoffKey {
            place: SignoffPlace::Review,
            id: review.id,
        },
        node_id: review.node_id,
        author: review.user.as_ref().and_then(wire::Account::login),
        is_bot: review.user.as_ref().is_some_and(wire::Account::is_bot),
        association: review.author_association,
        body: review.body,
        created_at: submitted_at,
        updated_at: submitted_at,
        url: review.html_url,
        app_id: None,
    })
}
