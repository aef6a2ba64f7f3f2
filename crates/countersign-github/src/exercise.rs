//! Entries for fuzzers (`fuzz/`): what reads bytes that a workflow or a pull request supplied, with the bounds it has in use.

use std::collections::{BTreeMap, BTreeSet};

use crate::gather::{archive, artifact};

/// Reads a zip as an artifact is read; `most` bounds what comes out, in bytes. None: it was refused.
#[must_use]
pub fn artifact(data: &[u8], most: u64) -> Option<BTreeMap<String, String>> {
    artifact::unpack(data, most).ok()
}

/// Reads a gzipped tar as a commit's archive is read, looking for a content that is not there.
pub fn archive(data: &[u8], most: u64) {
    let wanted: BTreeSet<_> = archive::blob_id(b"not there").into_iter().collect();
    let _ = archive::unpack(data, &wanted, most / 4, most);
}
