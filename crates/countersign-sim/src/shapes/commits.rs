//! Commits, comparisons, changed files, branches.

use serde_json::{Value, json};

use super::repos::merge;
use super::{encode_path, node};
use crate::git::{Commit, FileDiff, Person};
use crate::state::State;
use crate::world::pulls::ChangeSpec;

impl State {
    /// `commit`, without its files.
    pub(crate) fn commit_json(&self, repo: &str, sha: &str, c: &Commit) -> Value {
        let name = self.repo(repo).map_or(repo, |r| r.name.as_str());
        let url = self.api(&format!("/repos/{name}/commits/{sha}"));
        let person = |p: &Person| {
            let date = chrono::DateTime::from_timestamp(p.time, 0).unwrap_or_default();
            json!({"name": p.name, "email": p.email, "date": super::time(date)})
        };
        let parents: Vec<Value> = c
            .parents
            .iter()
            .map(|p| {
                json!({
                    "sha": p, "url": self.api(&format!("/repos/{name}/commits/{p}")),
                    "html_url": self.web(&format!("/{name}/commit/{p}")),
                })
            })
            .collect();
        json!({
            "sha": sha, "node_id": format!("C_{sha}"), "url": url, "html_url": self.web(&format!("/{name}/commit/{sha}")),
            "comments_url": format!("{url}/comments"),
            "commit": {
                "author": person(&c.author), "committer": person(&c.committer), "message": c.message.trim_end_matches('\n'),
                "tree": {"sha": c.tree, "url": self.api(&format!("/repos/{name}/git/trees/{}", c.tree))},
                "url": self.api(&format!("/repos/{name}/git/commits/{sha}")), "comment_count": 0,
                "verification": {"verified": false, "reason": "unsigned", "signature": null, "payload": null, "verified_at": null},
            },
            "author": self.person_login(&c.author), "committer": self.person_login(&c.committer), "parents": parents,
        })
    }

    /// The account of a commit's author: by the address that GitHub gives accounts, or by a user of the world.
    fn person_login(&self, p: &Person) -> Value {
        let address = p.email.to_ascii_lowercase();
        if let Some(local) = address.strip_suffix("@users.noreply.github.com") {
            return self.user(local.rsplit('+').next().unwrap_or(local));
        }
        match self
            .users
            .iter()
            .find(|(_, u)| u.email.as_ref().is_some_and(|e| e.eq_ignore_ascii_case(&address)))
        {
            Some((login, _)) => self.user(login),
            None => Value::Null,
        }
    }

    /// `diff-entry`.
    pub(crate) fn file_json(&self, repo: &str, commit: &str, f: &FileDiff) -> Value {
        let name = self.repo(repo).map_or(repo, |r| r.name.as_str());
        let path = encode_path(&f.path);
        let mut out = json!({
            "sha": f.sha, "filename": f.path, "status": f.status, "additions": f.additions, "deletions": f.deletions,
            "changes": f.additions + f.deletions, "blob_url": self.web(&format!("/{name}/blob/{commit}/{path}")),
            "raw_url": self.web(&format!("/{name}/raw/{commit}/{path}")),
            "contents_url": self.api(&format!("/repos/{name}/contents/{path}?ref={commit}")),
        });
        if let Some(patch) = &f.patch {
            merge(&mut out, json!({"patch": patch}));
        }
        if let Some(previous) = &f.previous {
            merge(&mut out, json!({"previous_filename": previous}));
        }
        out
    }

    /// `git-ref`.
    pub(crate) fn ref_json(&self, repo: &str, branch: &str, sha: &str) -> Value {
        let name = self.repo(repo).map_or(repo, |r| r.name.as_str());
        json!({
            "ref": format!("refs/heads/{branch}"), "node_id": node("REF", super::stable_id(&format!("{name}:{branch}"))),
            "url": self.api(&format!("/repos/{name}/git/refs/heads/{}", encode_path(branch))),
            "object": {"type": "commit", "sha": sha, "url": self.api(&format!("/repos/{name}/git/commits/{sha}"))},
        })
    }
}

/// A file that the world spells out, with lines counted from its patch.
pub(crate) fn change(c: &ChangeSpec) -> FileDiff {
    let count = |sign: char| {
        let lines = c
            .patch
            .as_deref()
            .unwrap_or("")
            .lines()
            .filter(|l| l.starts_with(sign))
            .count();
        lines as u64
    };
    let status = match c.status.as_deref() {
        Some("added") => "added",
        Some("removed") => "removed",
        Some("renamed") => "renamed",
        Some("copied") => "copied",
        Some("changed") => "changed",
        _ if c.previous.is_some() => "renamed",
        _ => "modified",
    };
    FileDiff {
        path: c.path.clone(),
        previous: c.previous.clone(),
        status,
        sha: crate::state::build::made_up_sha(c.patch.as_deref().unwrap_or(&c.path)),
        additions: c.additions.unwrap_or_else(|| count('+')),
        deletions: c.deletions.unwrap_or_else(|| count('-')),
        patch: c.patch.clone(),
    }
}
