//! What people write on pull requests: from the world's form to the state.

use super::State;
use super::model::{Comment, Edited, Review, ReviewComment, Time};
use crate::world::load::WorldError;
use crate::world::pulls::{CommentSpec, ReviewCommentSpec, ReviewSpec};

impl State {
    pub(crate) fn add_comment(&mut self, at: &str, repo: &str, pull: u64, c: &CommentSpec) -> Result<u64, WorldError> {
        let author = author(at, &c.author)?;
        let created_at = c.created_at.unwrap_or(self.now());
        let edited = edited(
            c.edited_at,
            c.edited_by.as_ref(),
            &author,
            c.updated_at.unwrap_or(created_at),
        );
        let updated_at = c.updated_at.or(edited.as_ref().map(|e| e.at)).unwrap_or(created_at);
        let id = c.id.unwrap_or_else(|| self.fresh_id());
        let comment = Comment {
            id,
            pull,
            by_app: author == self.bot(),
            author,
            association: c.association.clone(),
            body: c.body.clone().unwrap_or_default(),
            created_at,
            updated_at,
            edited,
            minimized: c.minimized.clone(),
            reactions: Vec::new(),
        };
        let before = self.repo_mut(repo).and_then(|r| r.comments.insert(id, comment));
        if before.is_some() {
            return Err(WorldError::invalid(at, format!("there is another comment {id}")));
        }
        Ok(id)
    }

    pub(crate) fn add_review(&mut self, at: &str, repo: &str, pull: u64, c: &ReviewSpec) -> Result<u64, WorldError> {
        let author = author(at, &c.author)?;
        let submitted_at = c.submitted_at.unwrap_or(self.now());
        let head = self
            .repo(repo)
            .and_then(|r| r.pulls.get(&pull))
            .map(|p| p.head_sha.clone())
            .unwrap_or_default();
        let commit = match &c.commit {
            Some(text) => self.commit_at(&format!("{at}.reviews.commit"), repo, text)?,
            None => head,
        };
        let id = c.id.unwrap_or_else(|| self.fresh_id());
        let review = Review {
            id,
            pull,
            association: c.association.clone(),
            state: c
                .state
                .clone()
                .unwrap_or_else(|| "commented".to_owned())
                .to_ascii_lowercase(),
            body: c.body.clone().unwrap_or_default(),
            submitted_at,
            commit,
            edited: edited(c.edited_at, c.edited_by.as_ref(), &author, submitted_at),
            author,
            minimized: None,
        };
        let before = self.repo_mut(repo).and_then(|r| r.reviews.insert(id, review));
        if before.is_some() {
            return Err(WorldError::invalid(at, format!("there is another review {id}")));
        }
        Ok(id)
    }

    pub(crate) fn add_review_comment(
        &mut self,
        at: &str,
        repo: &str,
        pull: u64,
        c: &ReviewCommentSpec,
    ) -> Result<u64, WorldError> {
        let author = author(at, &c.author)?;
        let created_at = c.created_at.unwrap_or(self.now());
        let head = self
            .repo(repo)
            .and_then(|r| r.pulls.get(&pull))
            .map(|p| p.head_sha.clone())
            .unwrap_or_default();
        let commit = match &c.commit {
            Some(text) => self.commit_at(&format!("{at}.review_comments.commit"), repo, text)?,
            None => head,
        };
        let edited = edited(
            c.edited_at,
            c.edited_by.as_ref(),
            &author,
            c.updated_at.unwrap_or(created_at),
        );
        let id = c.id.unwrap_or_else(|| self.fresh_id());
        let comment = ReviewComment {
            id,
            pull,
            review: c.review,
            association: c.association.clone(),
            body: c.body.clone().unwrap_or_default(),
            path: c.path.clone().unwrap_or_else(|| "README.md".to_owned()),
            line: c.line,
            commit,
            in_reply_to: c.in_reply_to,
            created_at,
            updated_at: c.updated_at.or(edited.as_ref().map(|e| e.at)).unwrap_or(created_at),
            edited,
            author,
            minimized: None,
        };
        let before = self.repo_mut(repo).and_then(|r| r.review_comments.insert(id, comment));
        if before.is_some() {
            return Err(WorldError::invalid(at, format!("there is another review comment {id}")));
        }
        Ok(id)
    }
}

fn author(at: &str, login: &str) -> Result<String, WorldError> {
    if login.is_empty() {
        return Err(WorldError::invalid(
            at,
            "whoever wrote a comment or review is needed: author: login",
        ));
    }
    Ok(login.to_owned())
}

fn edited(at: Option<Time>, by: Option<&String>, author: &str, otherwise: Time) -> Option<Edited> {
    (at.is_some() || by.is_some()).then(|| Edited {
        at: at.unwrap_or(otherwise),
        by: by.cloned().unwrap_or_else(|| author.to_owned()),
    })
}
