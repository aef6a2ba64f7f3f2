//! Files, folders, trees and blobs.

use base64::Engine;
use serde_json::{Value, json};

use super::repos::merge;
use super::{encode_path, node};
use crate::git::{Entry, Mode};
use crate::state::State;

/// Base64 in lines of sixty characters, as GitHub wraps it.
fn wrapped(data: &[u8]) -> String {
    let text = base64::engine::general_purpose::STANDARD.encode(data);
    let mut out = String::with_capacity(text.len() + text.len() / 60 + 1);
    for chunk in text.as_bytes().chunks(60) {
        out.extend(chunk.iter().map(|b| *b as char));
        out.push('\n');
    }
    out
}

impl State {
    fn entry_json(&self, repo: &str, at: &str, path: &str, entry: &Entry, size: usize) -> Value {
        let name = self.repo(repo).map_or(repo, |r| r.name.as_str());
        let encoded = encode_path(path);
        let url = self.api(&format!("/repos/{name}/contents/{encoded}?ref={at}"));
        let folder = if entry.mode == Mode::Tree { "trees" } else { "blobs" };
        let git = self.api(&format!("/repos/{name}/git/{folder}/{}", entry.sha));
        let kind = if entry.mode == Mode::Tree { "tree" } else { "blob" };
        let html = self.web(&format!("/{name}/{kind}/{at}/{encoded}"));
        let download = match entry.mode {
            Mode::File | Mode::Executable | Mode::Symlink => {
                Value::from(format!("https://raw.githubusercontent.com/{name}/{at}/{encoded}"))
            }
            Mode::Tree | Mode::Submodule => Value::Null,
        };
        json!({
            "name": path.rsplit('/').next().unwrap_or(path), "path": path, "sha": entry.sha, "size": size, "url": url,
            "html_url": html, "git_url": git, "download_url": download, "_links": {"self": url, "git": git, "html": html},
        })
    }

    /// `content-directory` entry.
    pub(crate) fn directory_entry(&self, repo: &str, at: &str, path: &str, entry: &Entry, size: usize) -> Value {
        let mut out = self.entry_json(repo, at, path, entry, size);
        let kind = match entry.mode {
            Mode::Tree => "dir",
            Mode::Symlink => "symlink",
            Mode::Submodule => "submodule",
            Mode::File | Mode::Executable => "file",
        };
        merge(&mut out, json!({"type": kind}));
        out
    }

    /// `content-file`, `content-symlink` or `content-submodule`. Above one megabyte the content is left out.
    pub(crate) fn file_content(&self, repo: &str, at: &str, path: &str, entry: &Entry, data: &[u8]) -> Value {
        let mut out = self.entry_json(repo, at, path, entry, data.len());
        let more = match entry.mode {
            Mode::Symlink => json!({"type": "symlink", "target": String::from_utf8_lossy(data)}),
            Mode::Submodule => {
                json!({"type": "submodule", "submodule_git_url": "https://github.com/octocat/submodule.git"})
            }
            _ if data.len() > crate::api::content::ONE_MEGABYTE => {
                json!({"type": "file", "encoding": "none", "content": ""})
            }
            _ => json!({"type": "file", "encoding": "base64", "content": wrapped(data)}),
        };
        merge(&mut out, more);
        out
    }

    /// `git-tree` entry.
    pub(crate) fn tree_entry(&self, repo: &str, path: &str, entry: &Entry, size: Option<usize>) -> Value {
        let name = self.repo(repo).map_or(repo, |r| r.name.as_str());
        let (kind, folder) = match entry.mode {
            Mode::Tree => ("tree", "trees"),
            Mode::Submodule => ("commit", "commits"),
            _ => ("blob", "blobs"),
        };
        let mut out = json!({
            "path": path, "mode": entry.mode.six(), "type": kind, "sha": entry.sha,
            "url": self.api(&format!("/repos/{name}/git/{folder}/{}", entry.sha)),
        });
        if let Some(size) = size {
            merge(&mut out, json!({"size": size}));
        }
        out
    }

    /// `blob`.
    pub(crate) fn blob_json(&self, repo: &str, sha: &str, data: &[u8]) -> Value {
        let name = self.repo(repo).map_or(repo, |r| r.name.as_str());
        json!({
            "sha": sha, "node_id": node("B", super::stable_id(sha)), "size": data.len(), "encoding": "base64",
            "url": self.api(&format!("/repos/{name}/git/blobs/{sha}")), "content": wrapped(data),
        })
    }
}
