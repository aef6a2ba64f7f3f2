//! Repositories.

use serde_json::{Value, json};

use super::{node, time};
use crate::state::State;
use crate::state::build::stable_id;

/// Link fields of every repository shape: name → what stands behind the repository's address.
const LINKS: [(&str, &str); 35] = [
    ("archive_url", "/{archive_format}{/ref}"),
    ("assignees_url", "/assignees{/user}"),
    ("blobs_url", "/git/blobs{/sha}"),
    ("branches_url", "/branches{/branch}"),
    ("collaborators_url", "/collaborators{/collaborator}"),
    ("comments_url", "/comments{/number}"),
    ("commits_url", "/commits{/sha}"),
    ("compare_url", "/compare/{base}...{head}"),
    ("contents_url", "/contents/{+path}"),
    ("contributors_url", "/contributors"),
    ("deployments_url", "/deployments"),
    ("downloads_url", "/downloads"),
    ("events_url", "/events"),
    ("forks_url", "/forks"),
    ("git_commits_url", "/git/commits{/sha}"),
    ("git_refs_url", "/git/refs{/sha}"),
    ("git_tags_url", "/git/tags{/sha}"),
    ("hooks_url", "/hooks"),
    ("issue_comment_url", "/issues/comments{/number}"),
    ("issue_events_url", "/issues/events{/number}"),
    ("issues_url", "/issues{/number}"),
    ("keys_url", "/keys{/key_id}"),
    ("labels_url", "/labels{/name}"),
    ("languages_url", "/languages"),
    ("merges_url", "/merges"),
    ("milestones_url", "/milestones{/number}"),
    ("notifications_url", "/notifications{?since,all,participating}"),
    ("pulls_url", "/pulls{/number}"),
    ("releases_url", "/releases{/id}"),
    ("stargazers_url", "/stargazers"),
    ("statuses_url", "/statuses/{sha}"),
    ("subscribers_url", "/subscribers"),
    ("subscription_url", "/subscription"),
    ("tags_url", "/tags"),
    ("trees_url", "/git/trees{/sha}"),
];

impl State {
    /// `minimal-repository`. A fork that the world does not describe gets one made from its name.
    pub(crate) fn repo_minimal(&self, name: &str) -> Value {
        let known = self.repo(name);
        let full_name = known.map_or(name, |r| r.name.as_str());
        let (owner, short) = full_name.split_once('/').unwrap_or((full_name, ""));
        let id = known.map_or_else(|| stable_id(name), |r| r.id);
        let url = self.api(&format!("/repos/{full_name}"));
        let fork = known.is_none_or(|r| r.fork_of.is_some());
        let mut out = json!({
            "id": id, "node_id": node("R", id), "name": short, "full_name": full_name, "private": known.is_some_and(|r| r.private),
            "owner": self.user(owner), "html_url": self.web(&format!("/{full_name}")),
            "description": known.and_then(|r| r.description.clone()), "fork": fork, "url": url,
            "teams_url": format!("{url}/teams"),
        });
        if let Some(map) = out.as_object_mut() {
            for (field, rest) in LINKS {
                map.insert(field.to_owned(), format!("{url}{rest}").into());
            }
        }
        out
    }

    /// `repository`, as pull requests and webhooks have it.
    pub(crate) fn repo_json(&self, name: &str) -> Value {
        let mut out = self.repo_minimal(name);
        let known = self.repo(name);
        let full_name = known.map_or(name, |r| r.name.as_str()).to_owned();
        let created = known.map_or_else(|| self.now(), |r| r.created_at);
        let open = known.map_or(0, |r| r.pulls.values().filter(|p| p.open).count());
        let page = self.web(&format!("/{full_name}"));
        let more = json!({
            "git_url": format!("git://github.com/{full_name}.git"), "ssh_url": format!("git@github.com:{full_name}.git"),
            "clone_url": format!("{page}.git"), "svn_url": page, "mirror_url": null, "homepage": null, "language": null,
            "forks_count": 0, "stargazers_count": 0, "watchers_count": 0, "size": 1, "open_issues_count": open,
            "default_branch": known.map_or("main", |r| r.default_branch.as_str()), "has_issues": true, "has_projects": true,
            "has_wiki": false, "has_pages": false, "has_downloads": true, "has_discussions": false, "archived": false,
            "disabled": false, "visibility": if known.is_some_and(|r| r.private) { "private" } else { "public" },
            "pushed_at": time(self.now()), "created_at": time(created), "updated_at": time(created), "license": null, "forks": 0,
            "open_issues": open, "watchers": 0, "allow_forking": true, "is_template": false, "web_commit_signoff_required": false,
            "topics": [],
        });
        merge(&mut out, more);
        out
    }

    /// `full-repository`.
    pub(crate) fn repo_full(&self, name: &str) -> Value {
        let mut out = self.repo_json(name);
        merge(&mut out, json!({"subscribers_count": 0, "network_count": 0}));
        if let Some(parent) = self.repo(name).and_then(|r| r.fork_of.clone()) {
            let parent = self.repo_json(&parent);
            merge(&mut out, json!({"parent": parent, "source": parent}));
        }
        out
    }
}

/// Adds the fields of one object to another.
pub(crate) fn merge(into: &mut Value, more: Value) {
    if let (Some(into), Value::Object(more)) = (into.as_object_mut(), more) {
        into.extend(more);
    }
}
