//! Pull requests, comments, reviews, labels, reactions.

use serde_json::{Value, json};

use super::repos::merge;
use super::{node, time, time_or_null};
use crate::state::State;
use crate::state::build::stable_id;
use crate::state::model::{Comment, Pull, Reaction, Review, ReviewComment};

/// What a pull request's size is, where it is known.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Size {
    pub(crate) commits: u64,
    pub(crate) additions: u64,
    pub(crate) deletions: u64,
    pub(crate) changed_files: u64,
}

impl State {
    /// `pull-request-simple`.
    pub(crate) fn pull_simple(&self, repo: &str, p: &Pull) -> Value {
        let name = self.repo(repo).map_or(repo, |r| r.name.as_str());
        let url = self.api(&format!("/repos/{name}/pulls/{}", p.number));
        let issue = self.api(&format!("/repos/{name}/issues/{}", p.number));
        let page = self.web(&format!("/{name}/pull/{}", p.number));
        let statuses = self.api(&format!("/repos/{name}/statuses/{}", p.head_sha));
        let review_comment = self.api(&format!("/repos/{name}/pulls/comments{{/number}}"));
        let side = |branch: &str, repo: &str, sha: &str| {
            let owner = repo.split('/').next().unwrap_or("");
            json!({
                "label": format!("{owner}:{branch}"), "ref": branch, "sha": sha, "user": self.user(owner), "repo": self.repo_json(repo),
            })
        };
        let labels: Vec<Value> = p.labels.iter().map(|l| self.label(name, l)).collect();
        json!({
            "url": url, "id": p.id, "node_id": node("PR", p.id), "html_url": page, "diff_url": format!("{page}.diff"),
            "patch_url": format!("{page}.patch"), "issue_url": issue, "number": p.number,
            "state": if p.open { "open" } else { "closed" }, "locked": false, "title": p.title, "user": self.user(&p.author),
            "body": p.body, "created_at": time(p.created_at), "updated_at": time(p.updated_at), "closed_at": time_or_null(p.closed_at),
            "merged_at": time_or_null(p.merged_at), "merge_commit_sha": p.merge_commit, "assignee": null, "assignees": [],
            "requested_reviewers": [], "requested_teams": [], "labels": labels, "milestone": null, "draft": p.draft,
            "commits_url": format!("{url}/commits"), "review_comments_url": format!("{url}/comments"),
            "review_comment_url": review_comment, "comments_url": format!("{issue}/comments"), "statuses_url": statuses,
            "head": side(&p.head_ref, &p.head_repo, &p.head_sha), "base": side(&p.base_ref, name, &p.base_sha),
            "_links": {
                "self": {"href": url}, "html": {"href": page}, "issue": {"href": issue},
                "comments": {"href": format!("{issue}/comments")}, "review_comments": {"href": format!("{url}/comments")},
                "review_comment": {"href": review_comment}, "commits": {"href": format!("{url}/commits")},
                "statuses": {"href": statuses},
            },
            "author_association": self.of(repo, p.association.as_ref(), &p.author), "auto_merge": null, "active_lock_reason": null,
        })
    }

    /// `pull-request`.
    pub(crate) fn pull_full(&self, repo: &str, p: &Pull, size: Size) -> Value {
        let mut out = self.pull_simple(repo, p);
        let (comments, review_comments) = self.repo(repo).map_or((0, 0), |r| {
            let comments = r.comments.values().filter(|c| c.pull == p.number).count();
            (
                comments,
                r.review_comments.values().filter(|c| c.pull == p.number).count(),
            )
        });
        let mergeable = p.mergeable;
        let state = match mergeable {
            _ if p.draft => "draft",
            Some(true) => "clean",
            Some(false) => "dirty",
            None => "unknown",
        };
        merge(
            &mut out,
            json!({
                "merged": p.merged_at.is_some(), "mergeable": mergeable, "rebaseable": mergeable, "mergeable_state": state,
                "merged_by": self.user_or_null(p.merged_by.as_deref()), "comments": comments, "review_comments": review_comments,
                "maintainer_can_modify": false, "commits": size.commits, "additions": size.additions,
                "deletions": size.deletions, "changed_files": size.changed_files,
            }),
        );
        out
    }

    /// `pull-request-minimal`, as checks and runs list it.
    pub(crate) fn pull_minimal(&self, repo: &str, p: &Pull) -> Value {
        let name = self.repo(repo).map_or(repo, |r| r.name.as_str());
        let side = |branch: &str, repo: &str, sha: &str| {
            let id = self.repo(repo).map_or_else(|| stable_id(repo), |r| r.id);
            json!({"ref": branch, "sha": sha, "repo": {
                "id": id, "url": self.api(&format!("/repos/{repo}")), "name": repo.split('/').nth(1).unwrap_or(""),
            }})
        };
        json!({
            "id": p.id, "number": p.number, "url": self.api(&format!("/repos/{name}/pulls/{}", p.number)),
            "head": side(&p.head_ref, &p.head_repo, &p.head_sha), "base": side(&p.base_ref, name, &p.base_sha),
        })
    }

    /// `issue`, as webhooks about comments have it.
    pub(crate) fn issue(&self, repo: &str, p: &Pull) -> Value {
        let name = self.repo(repo).map_or(repo, |r| r.name.as_str());
        let url = self.api(&format!("/repos/{name}/issues/{}", p.number));
        let pull = self.api(&format!("/repos/{name}/pulls/{}", p.number));
        let page = self.web(&format!("/{name}/pull/{}", p.number));
        let comments = self
            .repo(repo)
            .map_or(0, |r| r.comments.values().filter(|c| c.pull == p.number).count());
        let labels: Vec<Value> = p.labels.iter().map(|l| self.label(name, l)).collect();
        json!({
            "url": url, "repository_url": self.api(&format!("/repos/{name}")), "labels_url": format!("{url}/labels{{/name}}"),
            "comments_url": format!("{url}/comments"), "events_url": format!("{url}/events"), "html_url": page, "id": p.id + 1_000_000_000,
            "node_id": node("PR", p.id), "number": p.number, "title": p.title, "user": self.user(&p.author), "labels": labels,
            "state": if p.open { "open" } else { "closed" }, "locked": false, "assignee": null, "assignees": [], "milestone": null,
            "comments": comments, "created_at": time(p.created_at), "updated_at": time(p.updated_at),
            "closed_at": time_or_null(p.closed_at), "author_association": self.of(repo, p.association.as_ref(), &p.author),
            "active_lock_reason": null, "draft": p.draft, "body": p.body, "reactions": self.rollup(&format!("{url}/reactions"), &[]),
            "timeline_url": format!("{url}/timeline"), "performed_via_github_app": null, "state_reason": null,
            "pull_request": {
                "url": pull, "html_url": page, "diff_url": format!("{page}.diff"), "patch_url": format!("{page}.patch"),
                "merged_at": time_or_null(p.merged_at),
            },
        })
    }

    /// `issue-comment`.
    pub(crate) fn comment(&self, repo: &str, c: &Comment) -> Value {
        let name = self.repo(repo).map_or(repo, |r| r.name.as_str());
        let url = self.api(&format!("/repos/{name}/issues/comments/{}", c.id));
        json!({
            "url": url, "html_url": self.web(&format!("/{name}/pull/{}#issuecomment-{}", c.pull, c.id)),
            "issue_url": self.api(&format!("/repos/{name}/issues/{}", c.pull)), "id": c.id, "node_id": node("IC", c.id),
            "user": self.user(&c.author), "created_at": time(c.created_at), "updated_at": time(c.updated_at), "body": c.body,
            "author_association": self.of(repo, c.association.as_ref(), &c.author),
            "reactions": self.rollup(&format!("{url}/reactions"), &c.reactions),
            "performed_via_github_app": if c.by_app { self.app_json(&self.app.slug) } else { Value::Null },
        })
    }

    /// `pull-request-review`; the API writes the state in upper case, webhooks in lower case.
    pub(crate) fn review(&self, repo: &str, r: &Review, upper: bool) -> Value {
        let name = self.repo(repo).map_or(repo, |x| x.name.as_str());
        let page = self.web(&format!("/{name}/pull/{}#pullrequestreview-{}", r.pull, r.id));
        let pull = self.api(&format!("/repos/{name}/pulls/{}", r.pull));
        json!({
            "id": r.id, "node_id": node("PRR", r.id), "user": self.user(&r.author), "body": r.body,
            "state": if upper { r.state.to_ascii_uppercase() } else { r.state.clone() }, "html_url": page, "pull_request_url": pull,
            "author_association": self.of(repo, r.association.as_ref(), &r.author),
            "_links": {"html": {"href": page}, "pull_request": {"href": pull}}, "submitted_at": time(r.submitted_at),
            "commit_id": r.commit,
        })
    }

    /// `pull-request-review-comment`.
    pub(crate) fn review_comment(&self, repo: &str, c: &ReviewComment) -> Value {
        let name = self.repo(repo).map_or(repo, |r| r.name.as_str());
        let url = self.api(&format!("/repos/{name}/pulls/comments/{}", c.id));
        let page = self.web(&format!("/{name}/pull/{}#discussion_r{}", c.pull, c.id));
        let pull = self.api(&format!("/repos/{name}/pulls/{}", c.pull));
        let mut out = json!({
            "url": url, "pull_request_review_id": c.review, "id": c.id, "node_id": node("PRRC", c.id), "diff_hunk": "@@ -1,1 +1,1 @@",
            "path": c.path, "commit_id": c.commit, "original_commit_id": c.commit, "user": self.user(&c.author), "body": c.body,
            "created_at": time(c.created_at), "updated_at": time(c.updated_at), "html_url": page, "pull_request_url": pull,
            "author_association": self.of(repo, c.association.as_ref(), &c.author),
            "_links": {"self": {"href": url}, "html": {"href": page}, "pull_request": {"href": pull}},
            "original_position": 1, "position": 1, "line": c.line.unwrap_or(1), "original_line": c.line.unwrap_or(1),
            "start_line": null, "original_start_line": null, "start_side": null, "side": "RIGHT", "subject_type": "line",
            "reactions": self.rollup(&format!("{url}/reactions"), &[]),
        });
        if let Some(to) = c.in_reply_to {
            merge(&mut out, json!({"in_reply_to_id": to}));
        }
        out
    }

    /// `reaction`.
    pub(crate) fn reaction(&self, r: &Reaction) -> Value {
        json!({
            "id": r.id, "node_id": node("REA", r.id), "user": self.user(&r.by), "content": r.content, "created_at": time(r.at),
        })
    }

    fn rollup(&self, url: &str, reactions: &[Reaction]) -> Value {
        let count = |content: &str| reactions.iter().filter(|r| r.content == content).count();
        json!({
            "url": url, "total_count": reactions.len(), "+1": count("+1"), "-1": count("-1"), "laugh": count("laugh"),
            "hooray": count("hooray"), "confused": count("confused"), "heart": count("heart"), "rocket": count("rocket"),
            "eyes": count("eyes"),
        })
    }

    /// `label`.
    pub(crate) fn label(&self, repo: &str, name: &str) -> Value {
        let id = stable_id(&format!("{repo}:{name}"));
        json!({
            "id": id, "node_id": node("LA", id), "url": self.api(&format!("/repos/{repo}/labels/{}", super::encode(name))),
            "name": name, "description": "", "color": "ededed", "default": false,
        })
    }

    /// An association that was given, or the one worked out.
    pub(crate) fn of(&self, repo: &str, given: Option<&String>, login: &str) -> String {
        given.cloned().unwrap_or_else(|| self.association(repo, login))
    }
}
