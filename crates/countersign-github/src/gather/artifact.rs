//! Artifacts, read in memory: the zip, and the texts inside, within bounds that hold while reading.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::sync::Arc;

use countersign_core::evidence::Artifact;
use countersign_core::{Cause, CauseKind, Observed};

use crate::calls::Call;
use crate::client::RepoClient;
use crate::error::GitHubError;
use crate::store::ArtifactFiles;

/// Entries of one zip.
const ENTRIES: usize = 2_000;
/// How many times larger than packed all of it may be.
const RATIO: u64 = 200;
/// But so much is always fine, in bytes.
const ALWAYS: u64 = 4 << 20;
/// Characters of a name.
const NAME: usize = 300;

/// The texts of an artifact. `max_bytes` bounds its packed size, and four times as much what comes out of it.
/// Absent: GitHub has deleted it.
pub(crate) async fn files(repo: &RepoClient, artifact: &Artifact, max_bytes: u64) -> Arc<ArtifactFiles> {
    let what = format!("artifact {}", artifact.name.chars().take(100).collect::<String>());
    let unavailable = |kind, why: String| Arc::new(Observed::Unavailable(Cause::new(kind, what.clone(), why)));
    if artifact.expired {
        return Arc::new(Observed::Absent);
    }
    if artifact.size > max_bytes {
        return unavailable(
            CauseKind::TooLarge,
            format!("it has {} bytes, and at most {max_bytes} are read", artifact.size),
        );
    }
    let stores = &repo.hub.stores;
    if let Some(kept) = stores.artifact(repo.name(), artifact.id) {
        return kept;
    }
    let id = artifact.id.to_string();
    let call = Call::get(repo.path(["actions", "artifacts", &id, "zip"]), &what);
    let cap = usize::try_from(max_bytes).unwrap_or(usize::MAX);
    let packed = match repo.hub.download(&repo.who, &call, cap, repo.tally()).await {
        Ok(packed) => packed,
        Err(GitHubError::Gone { .. } | GitHubError::NotFound { .. }) => return Arc::new(Observed::Absent),
        Err(error) => return Arc::new(Observed::Unavailable(error.cause(what))),
    };
    let most = max_bytes.saturating_mul(4);
    let read = tokio::task::spawn_blocking(move || unpack(&packed, most)).await;
    let files = match read {
        Ok(Ok(files)) => Observed::Present(files),
        Ok(Err((kind, why))) => Observed::Unavailable(Cause::new(kind, what, why)),
        Err(_) => Observed::Unavailable(Cause::new(CauseKind::Malformed, what, "its reader failed")),
    };
    let files = Arc::new(files);
    // An artifact's content never changes, nor does what we make of it.
    stores.keep_artifact(repo.name(), artifact.id, Arc::clone(&files));
    files
}

/// Texts of a zip. Entries that are no text are left out; anything that looks like an attack makes the whole unreadable.
pub(crate) fn unpack(packed: &[u8], most: u64) -> Result<BTreeMap<String, String>, (CauseKind, String)> {
    let malformed = |error: &dyn std::fmt::Display| (CauseKind::Malformed, format!("the zip cannot be read: {error}"));
    let large = |why: String| (CauseKind::TooLarge, why);
    let allowed = most.min((packed.len() as u64).saturating_mul(RATIO).max(ALWAYS));
    let mut archive = zip::ZipArchive::new(Cursor::new(packed)).map_err(|error| malformed(&error))?;
    if archive.len() > ENTRIES {
        return Err(large(format!(
            "the zip has {} entries, and at most {ENTRIES} are read",
            archive.len()
        )));
    }
    let mut files = BTreeMap::new();
    let mut left = allowed;
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(|error| malformed(&error))?;
        if !entry.is_file() {
            continue;
        }
        let Some(name) = entry.name().ok().and_then(|name| clean(&name)) else {
            return Err((
                CauseKind::Malformed,
                "the zip has an entry whose name is no plain path".into(),
            ));
        };
        // What the zip says about sizes is not believed: the bound counts what comes out.
        let mut bytes = Vec::new();
        let read = entry
            .by_ref()
            .take(left + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| malformed(&error))? as u64;
        left = left
            .checked_sub(read)
            .ok_or_else(|| large(format!("the zip unpacks to more than {allowed} bytes")))?;
        if let Ok(text) = String::from_utf8(bytes)
            && files.insert(name, text).is_some()
        {
            return Err((CauseKind::Malformed, "the zip has two entries of the same name".into()));
        }
    }
    Ok(files)
}

/// A name that may be shown and looked up. No path is ever made of it, but a check that reads `a.json` must not be given `x/../a.json`.
fn clean(name: &str) -> Option<String> {
    let plain = name.chars().count() <= NAME
        && !name.starts_with('/')
        && !name.contains(['\\', ':', '\0'])
        && !name.chars().any(char::is_control)
        && name.split('/').all(|part| !matches!(part, "" | "." | ".."));
    plain.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use bytes::Bytes;
    use zip::write::SimpleFileOptions;

    use super::*;

    fn zipped(files: &[(&str, &[u8])]) -> Bytes {
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, content) in files {
            zip.start_file(*name, SimpleFileOptions::default()).unwrap();
            zip.write_all(content).unwrap();
        }
        zip.finish().unwrap().into_inner().into()
    }

    #[test]
    fn texts_by_name() {
        let files = unpack(&zipped(&[("a/b.json", b"{}"), ("x.bin", b"\xff\xfe")]), 1 << 20).unwrap();
        assert_eq!(
            files.into_iter().collect::<Vec<_>>(),
            [("a/b.json".to_owned(), "{}".to_owned())]
        );
    }

    #[test]
    fn tricks_are_refused() {
        for name in ["../x", "a/../b", "/x", "a\\b", "C:x", "a//b", "./a", "a\u{7}b"] {
            let (kind, why) = unpack(&zipped(&[(name, b"x")]), 1 << 20).unwrap_err();
            assert_eq!(kind, CauseKind::Malformed, "{name}");
            assert!(why.contains("no plain path"), "{why}");
        }
        let bomb = zipped(&[("zeros", &vec![0; 32 << 20])]);
        assert!(bomb.len() < 100_000);
        let (kind, why) = unpack(&bomb, 1 << 30).unwrap_err();
        assert_eq!(kind, CauseKind::TooLarge, "{why}");
        let many: Vec<String> = (0..=ENTRIES).map(|n| n.to_string()).collect();
        let many: Vec<(&str, &[u8])> = many.iter().map(|name| (name.as_str(), &b""[..])).collect();
        assert_eq!(unpack(&zipped(&many), 1 << 20).unwrap_err().0, CauseKind::TooLarge);
        let whole = zipped(&[("a.json", b"{}")]);
        assert_eq!(
            unpack(&whole.slice(..whole.len() / 2), 1 << 20).unwrap_err().0,
            CauseKind::Malformed
        );
        assert_eq!(
            unpack(&Bytes::from_static(b"no zip"), 1 << 20).unwrap_err().0,
            CauseKind::Malformed
        );
    }
}
