//! What tests and programs look at: what was published, as plain values.

use serde_json::{Value, json};

use super::State;
use crate::shapes::time;

impl State {
    /// Everything that apps and people have left on a repository's pull requests, for a snapshot. The App's own links into
    /// the API are left out, since they hold the port.
    pub(crate) fn snapshot(&self) -> Value {
        let mut out = serde_json::Map::new();
        for r in self.repos.values().filter(|r| r.installation.is_some()) {
            let pulls: Vec<Value> = r
                .pulls
                .values()
                .map(|p| {
                    json!({
                        "number": p.number, "state": if p.merged_at.is_some() { "merged" } else if p.open { "open" } else { "closed" },
                        "draft": p.draft, "head": p.head_sha, "base": p.base_ref, "labels": p.labels,
                    })
                })
                .collect();
            let comments: Vec<Value> = r
                .comments
                .values()
                .map(|c| {
                    let reactions: Vec<String> = c.reactions.iter().map(|x| format!("{} by {}", x.content, x.by)).collect();
                    json!({
                        "id": c.id, "pull": c.pull, "author": c.author, "at": time(c.created_at), "body": c.body,
                        "edited": c.edited.as_ref().map(|e| json!({"at": time(e.at), "by": e.by})), "minimized": c.minimized,
                        "reactions": reactions,
                    })
                })
                .collect();
            let statuses: Vec<Value> = r
                .statuses
                .iter()
                .map(|x| {
                    json!({
                        "sha": x.sha, "context": x.context, "state": x.state, "description": x.description,
                        "target_url": x.target_url, "by": x.by, "at": time(x.at),
                    })
                })
                .collect();
            let checks: Vec<Value> = r
                .checks
                .values()
                .map(|c| {
                    json!({
                        "id": c.id, "sha": c.head_sha, "name": c.name, "app": c.app, "status": c.status, "conclusion": c.conclusion,
                        "external_id": c.external_id, "details_url": c.details_url, "title": c.title, "summary": c.summary,
                        "text": c.text, "annotations": c.annotations, "actions": c.actions, "writes": c.writes,
                    })
                })
                .collect();
            let value = json!({"pulls": pulls, "comments": comments, "statuses": statuses, "checks": checks});
            out.insert(r.name.clone(), value);
        }
        Value::Object(out)
    }
}
