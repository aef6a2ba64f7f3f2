//! Contents of files out of a commit's tarball, read as it comes. Nothing of it is written anywhere.
//!
//! A tarball is no listing: `export-ignore` in a `.gitattributes`, which a pull request may add, leaves files out of it, and
//! `export-subst` changes them. So it only supplies contents, known by their git object id, for files that the listing of
//! the commit names; whatever it does not supply is read one by one.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};

use bytes::{Buf, Bytes};
use countersign_core::BlobId;
use flate2::read::GzDecoder;
use sha1::{Digest, Sha1};
use tokio::sync::mpsc;

use super::RepoClient;
use crate::calls::Call;
use crate::calls::download::Tries;
use crate::error::GitHubError;
use crate::store::Content;

/// The git object id of a file's content.
pub(crate) fn blob_id(content: &[u8]) -> Option<BlobId> {
    let mut hash = Sha1::new();
    hash.update(format!("blob {}\0", content.len()));
    hash.update(content);
    hex::encode(hash.finalize()).parse().ok()
}

/// A content as evidence keeps it.
pub(crate) fn content(bytes: Vec<u8>) -> Content {
    String::from_utf8(bytes).map_or(Content::NotText, |text| Content::Text(text.into()))
}

/// Contents that a commit's tarball holds, of those wanted.
pub(crate) async fn contents(
    repo: &RepoClient,
    call: &Call,
    wanted: &BTreeSet<BlobId>,
    max_file: u64,
) -> Result<BTreeMap<BlobId, Content>, GitHubError> {
    let mut tries = Tries::default();
    loop {
        let read = repo.hub.within(call, once(repo, call, wanted, max_file)).await;
        if !tries.again(&read) {
            return read;
        }
    }
}

async fn once(
    repo: &RepoClient,
    call: &Call,
    wanted: &BTreeSet<BlobId>,
    max_file: u64,
) -> Result<BTreeMap<BlobId, Content>, GitHubError> {
    let limits = &repo.hub.config.limits;
    let mut pieces = repo
        .hub
        .open_archive(&repo.who, call, limits.archive_bytes, repo.tally())
        .await?;
    let (send, receive) = mpsc::channel::<Bytes>(16);
    let (wanted, unpacked) = (wanted.clone(), limits.archive_unpacked_bytes);
    let reader = tokio::task::spawn_blocking(move || unpack(Channel::new(receive), &wanted, max_file, unpacked));
    while let Some(piece) = pieces.next().await? {
        // The reader has all it wants, or has given up.
        if send.send(piece).await.is_err() {
            break;
        }
    }
    drop(send);
    let decode = |why: String| GitHubError::Decode {
        what: call.what.clone(),
        path: "archive".into(),
        why,
    };
    let read = reader.await.map_err(|_| decode("its reader failed".into()))?;
    read.map_err(|why| decode(why.to_string()))
}

/// Reads a gzipped tar.
pub(crate) fn unpack(
    packed: impl Read,
    wanted: &BTreeSet<BlobId>,
    max_file: u64,
    max_unpacked: u64,
) -> io::Result<BTreeMap<BlobId, Content>> {
    let mut found = BTreeMap::new();
    let bounded = Bounded {
        inner: GzDecoder::new(packed),
        left: max_unpacked,
    };
    let mut archive = tar::Archive::new(bounded);
    for entry in archive.entries()? {
        let mut entry = entry?;
        let bytes = match entry.header().entry_type() {
            tar::EntryType::Symlink => match entry.link_name_bytes() {
                Some(target) => target.into_owned(),
                None => continue,
            },
            tar::EntryType::Regular => {
                let size = entry.size();
                if size > max_file {
                    continue;
                }
                let mut bytes = Vec::with_capacity(usize::try_from(size.min(1 << 20)).unwrap_or(0));
                entry.by_ref().take(max_file + 1).read_to_end(&mut bytes)?;
                bytes
            }
            _ => continue,
        };
        let Some(id) = blob_id(&bytes) else { continue };
        if wanted.contains(&id) && !found.contains_key(&id) {
            found.insert(id, content(bytes));
            if found.len() == wanted.len() {
                break;
            }
        }
    }
    Ok(found)
}

/// Fails where more comes out than is allowed.
struct Bounded<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.left = self
            .left
            .checked_sub(read as u64)
            .ok_or_else(|| io::Error::other("it unpacks to more than is allowed"))?;
        Ok(read)
    }
}

/// Pieces of a body as a reader, on a thread of its own.
struct Channel {
    receive: mpsc::Receiver<Bytes>,
    piece: Bytes,
}

impl Channel {
    fn new(receive: mpsc::Receiver<Bytes>) -> Self {
        Self {
            receive,
            piece: Bytes::new(),
        }
    }
}

impl Read for Channel {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.receive.blocking_recv() {
                Some(piece) => self.piece = piece,
                None => return Ok(0),
            }
        }
        let length = buffer.len().min(self.piece.len());
        self.piece.copy_to_slice(&mut buffer[..length]);
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(build: impl FnOnce(&mut tar::Builder<GzEncoder<Vec<u8>>>)) -> Vec<u8> {
        let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        build(&mut tar);
        tar.into_inner().unwrap().finish().unwrap()
    }

    fn file(tar: &mut tar::Builder<GzEncoder<Vec<u8>>>, path: &[u8], content: &[u8]) {
        let mut header = tar::Header::new_gnu();
        header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path);
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        tar.append(&header, content).unwrap();
    }

    fn ids(contents: &[&[u8]]) -> BTreeSet<BlobId> {
        contents.iter().filter_map(|content| blob_id(content)).collect()
    }

    #[test]
    fn object_ids_are_those_of_git() {
        // `printf 'hello\n' | git hash-object --stdin`; and the id of the empty file.
        assert_eq!(
            blob_id(b"hello\n").unwrap().as_str(),
            "ce013625030ba8dba906f756967f9e9ca394464a"
        );
        assert_eq!(
            blob_id(b"").unwrap().as_str(),
            "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
        );
    }

    #[test]
    fn odd_paths_write_nothing_and_only_wanted_contents_are_kept() {
        let archive = packed(|tar| {
            file(tar, b"r-sha/a.txt", b"one");
            file(tar, b"../../etc/passwd", b"two");
            file(tar, b"/abs", b"three");
            file(tar, b"r-sha/unwanted", b"other");
            file(tar, b"r-sha/binary", b"\xff\xfe");
            let mut link = tar::Header::new_gnu();
            link.set_entry_type(tar::EntryType::Symlink);
            link.set_size(0);
            tar.append_link(&mut link, "r-sha/link", "/etc/passwd").unwrap();
        });
        let wanted = ids(&[b"one", b"two", b"three", b"\xff\xfe", b"/etc/passwd", b"not there"]);
        let found = unpack(&archive[..], &wanted, 100, 1 << 20).unwrap();
        assert_eq!(found.len(), 5);
        assert_eq!(
            found[&blob_id(b"/etc/passwd").unwrap()],
            Content::Text("/etc/passwd".into())
        );
        assert_eq!(found[&blob_id(b"\xff\xfe").unwrap()], Content::NotText);
        assert!(!std::path::Path::new("../../etc/passwd").exists());
    }

    #[test]
    fn bombs_end_early() {
        let archive = packed(|tar| file(tar, b"r/bomb", &vec![0; 8 << 20]));
        assert!(archive.len() < 100_000);
        let wanted = ids(&[b"x"]);
        assert!(
            unpack(&archive[..], &wanted, 1 << 30, 1 << 20)
                .unwrap_err()
                .to_string()
                .contains("more than is allowed")
        );
        // A file over its own limit is passed over.
        assert!(unpack(&archive[..], &wanted, 1 << 10, 1 << 30).unwrap().is_empty());
        // Half an archive is an error, never an empty one.
        assert!(unpack(&archive[..archive.len() / 2], &wanted, 1 << 10, 1 << 30).is_err());
        let mut garbage = Vec::new();
        garbage.write_all(b"\x1f\x8bgarbage").unwrap();
        assert!(unpack(&garbage[..], &wanted, 100, 100).is_err());
    }
}
