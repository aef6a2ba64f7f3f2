//! Archives: the redirect to the second host, and what it serves: a gzipped tar of a commit, the zip of an artifact.

use std::io::{Cursor, Write};

use super::Reply;
use super::content::history;
use crate::git::{Kind, Mode};
use crate::http::auth::Level;
use crate::http::message::{Answer, ApiError, Req};
use crate::state::State;
use crate::state::model::{Artifact, Content};

pub(super) fn redirect(s: &mut State, req: &Req, repo: &str, name: &str) -> Reply {
    let repo = s.permit(req, repo, "contents", Level::Read)?;
    history(s, &repo)?;
    let default = s.repo(&repo).map(|r| r.default_branch.clone()).unwrap_or_default();
    let wanted = if name.is_empty() { &default } else { name };
    let sha = s.resolve(&repo, wanted)?.ok_or(ApiError::NotFound)?;
    Ok(Answer::redirect(format!(
        "{}/codeload/{repo}/legacy.tar.gz/{sha}",
        s.storage
    )))
}

/// The tar of a commit, below one folder `<owner>-<name>-<sha>/`.
pub(crate) fn tarball(s: &mut State, repo: &str, sha: &str) -> Option<Answer> {
    let prefix = format!("{}-{sha}", s.repo(repo)?.name.replace('/', "-"));
    let store = s.store(repo)?;
    let commit = store.commit(sha).ok()??;
    let entries = store.flatten(&commit.tree, usize::MAX).ok()?;
    let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut tar = tar::Builder::new(gzip);
    let time = u64::try_from(commit.committer.time).unwrap_or(0);
    let header = |kind: tar::EntryType, mode: u32, size: u64| {
        let mut h = tar::Header::new_gnu();
        h.set_entry_type(kind);
        h.set_mode(mode);
        h.set_size(size);
        h.set_mtime(time);
        h
    };
    let mut root = header(tar::EntryType::Directory, 0o775, 0);
    tar.append_data(&mut root, format!("{prefix}/"), std::io::empty())
        .ok()?;
    for (path, entry) in entries {
        let path = format!("{prefix}/{path}");
        match entry.mode {
            Mode::Tree => {
                let mut h = header(tar::EntryType::Directory, 0o775, 0);
                tar.append_data(&mut h, format!("{path}/"), std::io::empty()).ok()?;
            }
            Mode::Submodule => {}
            Mode::Symlink => {
                let (_, data) = store.read(&entry.sha).ok()??;
                let mut h = header(tar::EntryType::Symlink, 0o777, 0);
                tar.append_link(&mut h, path, String::from_utf8_lossy(&data).as_ref())
                    .ok()?;
            }
            Mode::File | Mode::Executable => {
                let Some((Kind::Blob, data)) = store.read(&entry.sha).ok()? else {
                    return None;
                };
                let mode = if entry.mode == Mode::Executable { 0o775 } else { 0o664 };
                let mut h = header(tar::EntryType::Regular, mode, data.len() as u64);
                tar.append_data(&mut h, path, data.as_slice()).ok()?;
            }
        }
    }
    let body = tar.into_inner().ok()?.finish().ok()?;
    let answer = Answer::bytes("application/x-gzip", body);
    Some(answer.with(
        "content-disposition",
        Some(format!("attachment; filename={prefix}.tar.gz")),
    ))
}

/// The zip of an artifact.
pub(crate) fn artifact(s: &mut State, repo: &str, id: &str) -> Option<Answer> {
    let id: u64 = id.parse().ok()?;
    let found = s
        .repo(repo)?
        .runs
        .values()
        .flat_map(|r| &r.artifacts)
        .find(|a| a.id == id)?;
    if found.expired {
        return Some(Answer::empty(410));
    }
    Some(Answer::bytes("application/zip", zip_of(found).ok()?))
}

/// An artifact's bytes.
pub(crate) fn zip_of(artifact: &Artifact) -> std::io::Result<Vec<u8>> {
    match &artifact.content {
        Content::Zip(path) => std::fs::read(path),
        Content::Files(files) => {
            let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
            let options = zip::write::SimpleFileOptions::default()
                .compression_method(zip::CompressionMethod::Deflated)
                .last_modified_time(zip::DateTime::default());
            for (path, data) in files {
                zip.start_file(path.as_str(), options).map_err(std::io::Error::other)?;
                zip.write_all(data)?;
            }
            Ok(zip.finish().map_err(std::io::Error::other)?.into_inner())
        }
    }
}
