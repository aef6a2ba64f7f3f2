//! Changes of comments, reviews and pull requests. Each makes the change and queues the webhooks that it implies; they are
//! used by the timeline, by tests through the handle, and by the API's own writes.

use serde_json::{Value, json};

use super::State;
use super::model::{Comment, Edited, Pull, Review, ReviewComment};
use crate::handle::SimError;
use crate::shapes::Size;
use crate::world::pulls::{CommentSpec, ReviewCommentSpec, ReviewSpec};
use crate::world::spell::PullRef;

type Done<T = ()> = Result<T, SimError>;

impl State {
    /// The repository and number that a reference means.
    pub(crate) fn pull_ref(&self, pull: &PullRef) -> Done<(String, u64)> {
        let repo = match &pull.repo {
            Some(name) => self.repo(name).map(|r| r.name.clone()),
            None => {
                let mut with = self
                    .repos
                    .values()
                    .filter(|r| r.installation.is_some() && r.pulls.contains_key(&pull.number));
                match (with.next(), with.next()) {
                    (Some(r), None) => Some(r.name.clone()),
                    _ => None,
                }
            }
        };
        match repo {
            Some(repo) if self.repo(&repo).is_some_and(|r| r.pulls.contains_key(&pull.number)) => {
                Ok((repo, pull.number))
            }
            _ => Err(SimError::no_such(format!("pull request {pull}"))),
        }
    }

    /// The named repository, or the only installed one.
    pub(crate) fn repo_ref(&self, name: Option<&str>) -> Done<String> {
        let found = match name {
            Some(name) => self.repo(name).map(|r| r.name.clone()),
            None => {
                let mut with = self.repos.values().filter(|r| r.installation.is_some());
                with.next().filter(|_| with.next().is_none()).map(|r| r.name.clone())
            }
        };
        found.ok_or_else(|| {
            SimError::no_such(format!(
                "repository {}",
                name.unwrap_or("(say which: repo: owner/name)")
            ))
        })
    }

    pub(crate) fn pull(&self, repo: &str, number: u64) -> Done<&Pull> {
        let pull = self.repo(repo).and_then(|r| r.pulls.get(&number));
        pull.ok_or_else(|| SimError::no_such(format!("pull request {repo}#{number}")))
    }

    pub(crate) fn pull_mut(&mut self, repo: &str, number: u64) -> Done<&mut Pull> {
        let now = self.now();
        let pull = self.repo_mut(repo).and_then(|r| r.pulls.get_mut(&number));
        let pull = pull.ok_or_else(|| SimError::no_such(format!("pull request {repo}#{number}")))?;
        pull.updated_at = now;
        Ok(pull)
    }

    /// The repository that holds a comment, review or review comment of this id.
    fn holder(&self, what: &str, id: u64, has: impl Fn(&super::model::Repo) -> bool) -> Done<String> {
        let repo = self.repos.values().find(|r| has(r)).map(|r| r.name.clone());
        repo.ok_or_else(|| SimError::no_such(format!("{what} {id}")))
    }

    /// An issue comment's repository.
    pub(crate) fn comment_repo(&self, id: u64) -> Done<String> {
        self.holder("comment", id, |r| r.comments.contains_key(&id))
    }

    // Issue comments.

    pub(crate) fn post_comment(&mut self, repo: &str, number: u64, spec: &CommentSpec) -> Done<u64> {
        self.pull(repo, number)?;
        let now = self.now();
        let spec = CommentSpec {
            created_at: spec.created_at.or(Some(now)),
            ..spec.clone()
        };
        let id = self.add_comment("comment", repo, number, &spec)?;
        self.pull_mut(repo, number)?;
        self.emit_comment(repo, id, &spec.author, "created", json!({}));
        Ok(id)
    }

    pub(crate) fn edit_comment(&mut self, id: u64, body: &str, by: Option<&str>) -> Done {
        let repo = self.comment_repo(id)?;
        let now = self.now();
        let Some(c) = self.repo_mut(&repo).and_then(|r| r.comments.get_mut(&id)) else {
            return Err(SimError::no_such("comment"));
        };
        let by = by.unwrap_or(&c.author).to_owned();
        let old = std::mem::replace(&mut c.body, body.to_owned());
        c.updated_at = now;
        c.edited = Some(Edited {
            at: now,
            by: by.clone(),
        });
        self.emit_comment(&repo, id, &by, "edited", json!({"changes": {"body": {"from": old}}}));
        Ok(())
    }

    pub(crate) fn delete_comment(&mut self, id: u64, by: Option<&str>) -> Done {
        let repo = self.comment_repo(id)?;
        let author = self
            .repo(&repo)
            .and_then(|r| r.comments.get(&id))
            .map(|c| c.author.clone())
            .unwrap_or_default();
        self.emit_comment(&repo, id, by.unwrap_or(&author), "deleted", json!({}));
        if let Some(r) = self.repo_mut(&repo) {
            r.comments.remove(&id);
        }
        Ok(())
    }

    fn emit_comment(&mut self, repo: &str, id: u64, by: &str, action: &str, more: Value) {
        let Some(r) = self.repo(repo) else { return };
        let Some(c) = r.comments.get(&id) else { return };
        let Some(p) = r.pulls.get(&c.pull) else { return };
        let payload = with(
            json!({"issue": self.issue(repo, p), "comment": self.comment(repo, c)}),
            more,
        );
        self.emit(repo, by, "issue_comment", Some(action), payload);
    }

    /// Hides a comment, a review or a review comment by its node id, or shows it again.
    pub(crate) fn minimize(&mut self, node: &str, reason: Option<&str>) -> bool {
        let Some((kind, id)) = node
            .split_once('_')
            .and_then(|(k, id)| Some((k, id.parse::<u64>().ok()?)))
        else {
            return false;
        };
        for r in self.repos.values_mut() {
            let slot = match kind {
                "IC" => r.comments.get_mut(&id).map(|c: &mut Comment| &mut c.minimized),
                "PRR" => r.reviews.get_mut(&id).map(|c: &mut Review| &mut c.minimized),
                "PRRC" => r
                    .review_comments
                    .get_mut(&id)
                    .map(|c: &mut ReviewComment| &mut c.minimized),
                _ => None,
            };
            if let Some(slot) = slot {
                *slot = reason.map(str::to_owned);
                return true;
            }
        }
        false
    }

    // Reviews and review comments.

    pub(crate) fn submit_review(&mut self, repo: &str, number: u64, spec: &ReviewSpec) -> Done<u64> {
        self.pull(repo, number)?;
        let now = self.now();
        let spec = ReviewSpec {
            submitted_at: spec.submitted_at.or(Some(now)),
            ..spec.clone()
        };
        let id = self.add_review("review", repo, number, &spec)?;
        self.pull_mut(repo, number)?;
        self.emit_review(repo, id, &spec.author, "submitted", json!({}));
        Ok(id)
    }

    pub(crate) fn edit_review(&mut self, id: u64, body: &str, by: Option<&str>) -> Done {
        let repo = self.holder("review", id, |r| r.reviews.contains_key(&id))?;
        let now = self.now();
        let Some(c) = self.repo_mut(&repo).and_then(|r| r.reviews.get_mut(&id)) else {
            return Err(SimError::no_such("review"));
        };
        let by = by.unwrap_or(&c.author).to_owned();
        let old = std::mem::replace(&mut c.body, body.to_owned());
        c.edited = Some(Edited {
            at: now,
            by: by.clone(),
        });
        self.emit_review(&repo, id, &by, "edited", json!({"changes": {"body": {"from": old}}}));
        Ok(())
    }

    pub(crate) fn dismiss_review(&mut self, id: u64, by: Option<&str>) -> Done {
        let repo = self.holder("review", id, |r| r.reviews.contains_key(&id))?;
        let Some(c) = self.repo_mut(&repo).and_then(|r| r.reviews.get_mut(&id)) else {
            return Err(SimError::no_such("review"));
        };
        "dismissed".clone_into(&mut c.state);
        let by = by.unwrap_or(&c.author).to_owned();
        self.emit_review(&repo, id, &by, "dismissed", json!({}));
        Ok(())
    }

    fn emit_review(&mut self, repo: &str, id: u64, by: &str, action: &str, more: Value) {
        let Some(r) = self.repo(repo) else { return };
        let Some(c) = r.reviews.get(&id) else { return };
        let Some(p) = r.pulls.get(&c.pull) else { return };
        let payload = with(
            json!({"review": self.review(repo, c, false), "pull_request": self.pull_simple(repo, p)}),
            more,
        );
        self.emit(repo, by, "pull_request_review", Some(action), payload);
    }

    pub(crate) fn post_review_comment(&mut self, repo: &str, number: u64, spec: &ReviewCommentSpec) -> Done<u64> {
        self.pull(repo, number)?;
        let now = self.now();
        let spec = ReviewCommentSpec {
            created_at: spec.created_at.or(Some(now)),
            ..spec.clone()
        };
        let id = self.add_review_comment("review_comment", repo, number, &spec)?;
        self.pull_mut(repo, number)?;
        self.emit_review_comment(repo, id, &spec.author, "created", json!({}));
        Ok(id)
    }

    pub(crate) fn edit_review_comment(&mut self, id: u64, body: &str, by: Option<&str>) -> Done {
        let repo = self.holder("review comment", id, |r| r.review_comments.contains_key(&id))?;
        let now = self.now();
        let Some(c) = self.repo_mut(&repo).and_then(|r| r.review_comments.get_mut(&id)) else {
            return Err(SimError::no_such("review comment"));
        };
        let by = by.unwrap_or(&c.author).to_owned();
        let old = std::mem::replace(&mut c.body, body.to_owned());
        c.updated_at = now;
        c.edited = Some(Edited {
            at: now,
            by: by.clone(),
        });
        self.emit_review_comment(&repo, id, &by, "edited", json!({"changes": {"body": {"from": old}}}));
        Ok(())
    }

    pub(crate) fn delete_review_comment(&mut self, id: u64, by: Option<&str>) -> Done {
        let repo = self.holder("review comment", id, |r| r.review_comments.contains_key(&id))?;
        let author = self
            .repo(&repo)
            .and_then(|r| r.review_comments.get(&id))
            .map(|c| c.author.clone())
            .unwrap_or_default();
        self.emit_review_comment(&repo, id, by.unwrap_or(&author), "deleted", json!({}));
        if let Some(r) = self.repo_mut(&repo) {
            r.review_comments.remove(&id);
        }
        Ok(())
    }

    fn emit_review_comment(&mut self, repo: &str, id: u64, by: &str, action: &str, more: Value) {
        let Some(r) = self.repo(repo) else { return };
        let Some(c) = r.review_comments.get(&id) else { return };
        let Some(p) = r.pulls.get(&c.pull) else { return };
        let payload = with(
            json!({"comment": self.review_comment(repo, c), "pull_request": self.pull_simple(repo, p)}),
            more,
        );
        self.emit(repo, by, "pull_request_review_comment", Some(action), payload);
    }

    // Pull requests.

    /// Queues `pull_request` with an action, and more fields beside the pull request.
    pub(crate) fn emit_pull(&mut self, repo: &str, number: u64, by: &str, action: &str, more: Value) {
        let size = self.pull_size(repo, number).unwrap_or_default();
        let Some(p) = self.repo(repo).and_then(|r| r.pulls.get(&number)) else {
            return;
        };
        let payload = with(
            json!({"number": number, "pull_request": self.pull_full(repo, p, size)}),
            more,
        );
        self.emit(repo, by, "pull_request", Some(action), payload);
    }

    /// The author of a pull request, or whoever is named.
    pub(crate) fn actor(&self, repo: &str, number: u64, by: Option<&str>) -> Done<String> {
        let author = self.pull(repo, number)?.author.clone();
        Ok(by.map_or(author, str::to_owned))
    }

    /// Moves the head of a pull request.
    pub(crate) fn push(&mut self, repo: &str, number: u64, head: &str, by: Option<&str>) -> Done {
        let by = self.actor(repo, number, by)?;
        let new = self.commit_at("push.head", repo, head)?;
        let p = self.pull_mut(repo, number)?;
        let before = std::mem::replace(&mut p.head_sha, new.clone());
        let (branch, head_repo, base_ref, open) = (p.head_ref.clone(), p.head_repo.clone(), p.base_ref.clone(), p.open);
        // GitHub takes the target's tip of this moment.
        if let Ok(Some(tip)) = self.branch_tip(repo, &base_ref) {
            self.pull_mut(repo, number)?.base_sha = tip;
        }
        if head_repo.eq_ignore_ascii_case(repo) {
            self.set_branch(repo, &branch, &new);
            self.emit_push(repo, &branch, &before, &new, &by);
        }
        if open {
            self.emit_pull(
                repo,
                number,
                &by,
                "synchronize",
                json!({"before": before, "after": new}),
            );
        }
        Ok(())
    }

    /// Moves a branch.
    pub(crate) fn push_branch(&mut self, repo: &str, branch: &str, head: &str, by: &str) -> Done {
        let new = self.commit_at("push_branch.head", repo, head)?;
        let zero = "0".repeat(40);
        let before = self.branch_tip(repo, branch).ok().flatten().unwrap_or(zero);
        self.set_branch(repo, branch, &new);
        self.emit_push(repo, branch, &before, &new, by);
        Ok(())
    }

    fn emit_push(&mut self, repo: &str, branch: &str, before: &str, after: &str, by: &str) {
        let email = format!("{by}@users.noreply.github.com");
        let name = self.repo(repo).map_or_else(|| repo.to_owned(), |r| r.name.clone());
        let commit = self.store(repo).and_then(|s| s.commit(after).ok().flatten());
        let (mut added, mut removed, mut modified) = (Vec::new(), Vec::new(), Vec::new());
        let old_tree = self
            .store(repo)
            .and_then(|s| s.commit(before).ok().flatten())
            .map(|c| c.tree.clone());
        if let (Some(old), Some(new)) = (old_tree, &commit)
            && let Some(Ok(files)) = self.store(repo).map(|s| s.diff(&old, &new.tree))
        {
            for f in files.iter().take(3_000) {
                match f.status {
                    "added" => added.push(f.path.clone()),
                    "removed" => removed.push(f.path.clone()),
                    _ => modified.push(f.path.clone()),
                }
                if let Some(previous) = &f.previous {
                    removed.push(previous.clone());
                }
            }
        }
        let head = commit.as_ref().map(|c| {
            let who = json!({"name": c.author.name, "email": c.author.email});
            json!({
                "id": after, "tree_id": c.tree, "distinct": true, "message": c.message,
                "timestamp": crate::shapes::time(chrono::DateTime::from_timestamp(c.committer.time, 0).unwrap_or_default()),
                "url": self.web(&format!("/{name}/commit/{after}")), "author": who, "committer": who,
                "added": added, "removed": removed, "modified": modified,
            })
        });
        let payload = json!({
            "ref": format!("refs/heads/{branch}"), "before": before, "after": after, "created": before.bytes().all(|b| b == b'0'),
            "deleted": false, "forced": false, "base_ref": null, "compare": self.web(&format!("/{name}/compare/{before}...{after}")),
            "commits": head.iter().collect::<Vec<_>>(), "head_commit": head, "pusher": {"name": by, "email": email},
        });
        self.emit(repo, by, "push", None, payload);
    }

    pub(crate) fn set_draft(&mut self, repo: &str, number: u64, draft: bool, by: Option<&str>) -> Done {
        let by = self.actor(repo, number, by)?;
        self.pull_mut(repo, number)?.draft = draft;
        self.emit_pull(
            repo,
            number,
            &by,
            if draft {
                "converted_to_draft"
            } else {
                "ready_for_review"
            },
            json!({}),
        );
        Ok(())
    }

    pub(crate) fn edit_pull(
        &mut self,
        repo: &str,
        number: u64,
        title: Option<&str>,
        body: Option<&str>,
        base: Option<&str>,
        by: Option<&str>,
    ) -> Done {
        let by = self.actor(repo, number, by)?;
        let tip = match base {
            Some(branch) => Some(
                self.branch_tip(repo, branch)
                    .ok()
                    .flatten()
                    .ok_or_else(|| SimError::no_such(format!("branch {branch} of {repo}")))?,
            ),
            None => None,
        };
        let p = self.pull_mut(repo, number)?;
        let mut changes = serde_json::Map::new();
        if let Some(title) = title {
            changes.insert("title".to_owned(), json!({"from": p.title}));
            title.clone_into(&mut p.title);
        }
        if let Some(body) = body {
            changes.insert("body".to_owned(), json!({"from": p.body}));
            p.body = Some(body.to_owned());
        }
        if let (Some(base), Some(tip)) = (base, tip) {
            changes.insert(
                "base".to_owned(),
                json!({"ref": {"from": p.base_ref}, "sha": {"from": p.base_sha}}),
            );
            base.clone_into(&mut p.base_ref);
            p.base_sha = tip;
        }
        self.emit_pull(repo, number, &by, "edited", json!({"changes": changes}));
        Ok(())
    }

    pub(crate) fn set_open(&mut self, repo: &str, number: u64, open: bool, by: Option<&str>) -> Done {
        let by = self.actor(repo, number, by)?;
        let now = self.now();
        let p = self.pull_mut(repo, number)?;
        p.open = open;
        p.closed_at = (!open).then_some(now);
        self.emit_pull(repo, number, &by, if open { "reopened" } else { "closed" }, json!({}));
        Ok(())
    }

    /// Merges a pull request: a merge commit on the target branch where there is history.
    pub(crate) fn merge(&mut self, repo: &str, number: u64, commit: Option<&str>, by: Option<&str>) -> Done {
        let by = self.actor(repo, number, by)?;
        let now = self.now();
        let p = self.pull(repo, number)?.clone();
        let before = self.branch_tip(repo, &p.base_ref).ok().flatten();
        let sha = match commit {
            Some(text) => self.commit_at("merge.commit", repo, text)?,
            None => self.merge_commit(repo, &p, before.as_deref(), &by)?,
        };
        let pull = self.pull_mut(repo, number)?;
        pull.open = false;
        pull.merged_at = Some(now);
        pull.closed_at = Some(now);
        pull.merged_by = Some(by.clone());
        pull.merge_commit = Some(sha.clone());
        pull.mergeable = None;
        let there = self.store(repo).is_some_and(|x| matches!(x.commit(&sha), Ok(Some(_))));
        if let Some(before) = before.filter(|_| there) {
            self.set_branch(repo, &p.base_ref, &sha);
            self.emit_push(repo, &p.base_ref, &before, &sha, &by);
        }
        self.emit_pull(repo, number, &by, "closed", json!({}));
        Ok(())
    }

    /// The head's tree over the target's tip. Where both changed, the head's side wins: the simulator resolves no conflict.
    fn merge_commit(&mut self, repo: &str, p: &Pull, tip: Option<&str>, by: &str) -> Done<String> {
        let Some(tip) = tip else {
            return Ok(super::build::made_up_sha(&format!("{repo}#{} merged", p.number)));
        };
        let time = self.now().timestamp();
        let store = self.store(repo).ok_or_else(|| SimError::no_such("repository"))?;
        let base = store.merge_base(tip, &p.head_sha)?.unwrap_or_else(|| tip.to_owned());
        let (Some(old), Some(new)) = (store.commit(&base)?, store.commit(&p.head_sha)?) else {
            return Ok(super::build::made_up_sha(&format!("{repo}#{} merged", p.number)));
        };
        let mut files = std::collections::BTreeMap::new();
        for f in store.diff(&old.tree, &new.tree)?.iter() {
            if let Some(previous) = &f.previous {
                files.insert(previous.clone(), None);
            }
            let content = match store.lookup(&new.tree, &f.path)? {
                Some(entry) => store
                    .read(&entry.sha)?
                    .map(|(_, data)| crate::git::NewFile::Content(crate::git::ModeBits::of(entry.mode), data.to_vec())),
                None => None,
            };
            files.insert(f.path.clone(), content);
        }
        let author = crate::git::Person {
            name: by.to_owned(),
            email: format!("{by}@users.noreply.github.com"),
            time,
        };
        let message = format!("{} (#{})", p.title, p.number);
        Ok(store.make(crate::git::NewCommit {
            parents: vec![tip.to_owned()],
            author,
            message,
            files,
            told: None,
        })?)
    }

    pub(crate) fn set_label(&mut self, repo: &str, number: u64, label: &str, on: bool, by: Option<&str>) -> Done {
        let by = self.actor(repo, number, by)?;
        if let Some(r) = self.repo_mut(repo) {
            r.labels.insert(label.to_owned());
        }
        let p = self.pull_mut(repo, number)?;
        let there = p.labels.iter().any(|l| l == label);
        if there == on {
            return Ok(());
        }
        if on {
            p.labels.push(label.to_owned());
        } else {
            p.labels.retain(|l| l != label);
        }
        let label = self.label(repo, label);
        self.emit_pull(
            repo,
            number,
            &by,
            if on { "labeled" } else { "unlabeled" },
            json!({"label": label}),
        );
        Ok(())
    }

    /// How large a pull request is, from git or from what the world spells out.
    pub(crate) fn pull_size(&mut self, repo: &str, number: u64) -> Done<Size> {
        let files = self.pull_files(repo, number)?;
        let commits = self.pull_commits(repo, number)?.len() as u64;
        Ok(Size {
            commits,
            additions: files.iter().map(|f| f.additions).sum(),
            deletions: files.iter().map(|f| f.deletions).sum(),
            changed_files: files.len() as u64,
        })
    }

    /// The changed files of a pull request: from the merge base with its target to its head.
    pub(crate) fn pull_files(&mut self, repo: &str, number: u64) -> Done<std::sync::Arc<Vec<crate::git::FileDiff>>> {
        let p = self.pull(repo, number)?;
        if let Some(files) = &p.files {
            return Ok(std::sync::Arc::new(files.iter().map(crate::shapes::change).collect()));
        }
        let (base, head) = (p.base_sha.clone(), p.head_sha.clone());
        let Some(store) = self.store(repo) else {
            return Ok(std::sync::Arc::default());
        };
        let Some(from) = store.merge_base(&base, &head)? else {
            return Ok(std::sync::Arc::default());
        };
        let (Some(old), Some(new)) = (store.commit(&from)?, store.commit(&head)?) else {
            return Ok(std::sync::Arc::default());
        };
        Ok(store.diff(&old.tree, &new.tree)?)
    }

    /// The commits of a pull request, oldest first.
    pub(crate) fn pull_commits(&mut self, repo: &str, number: u64) -> Done<Vec<String>> {
        let p = self.pull(repo, number)?;
        let (base, head) = (p.base_sha.clone(), p.head_sha.clone());
        if let Some(commits) = p.commits.clone() {
            return commits
                .iter()
                .map(|c| Ok(self.commit_at("commits", repo, c)?))
                .collect();
        }
        let has_git = self.repo(repo).is_some_and(|r| r.has_git);
        if let Some(store) = self.store(repo).filter(|_| has_git)
            && store.commit(&head)?.is_some()
        {
            return Ok(store.between(&base, &head)?);
        }
        Ok(vec![head])
    }
}

/// One object with another's fields added.
fn with(mut into: Value, more: Value) -> Value {
    if let (Some(into), Value::Object(more)) = (into.as_object_mut(), more) {
        into.extend(more);
    }
    into
}
