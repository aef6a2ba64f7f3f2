//! Evidence as bytes, to be stored with a verdict and read back for a replay: the facts, and the contents of all files.

use std::collections::BTreeMap;
use std::sync::Arc;

use countersign_core::evidence::{Blobs, EVIDENCE_FORMAT, MemoryBlobs};
use countersign_core::{BlobId, Evidence, Observed};
use serde::{Deserialize, Serialize};

/// Evidence and the contents of its files.
#[derive(Debug, Serialize, Deserialize)]
pub struct Stored {
    /// The facts.
    pub evidence: Evidence,
    /// Contents by git object id.
    pub blobs: BTreeMap<BlobId, String>,
}

/// Why evidence cannot be stored or read back.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The bytes are not of this form.
    #[error("stored evidence cannot be read: {0}")]
    Form(#[from] serde_json::Error),
    /// Written by another version.
    #[error(
        "stored evidence has format {found}, this version reads {EVIDENCE_FORMAT}: replay it with the version that judged it"
    )]
    Format {
        /// The format found.
        found: u32,
    },
}

/// Evidence as bytes: JSON with sorted keys. Files that no tree lists are left out.
///
/// # Errors
/// [`RecordError::Form`], never for evidence that was gathered.
pub fn record(evidence: &Evidence) -> Result<Vec<u8>, RecordError> {
    let mut blobs = BTreeMap::new();
    for tree in evidence.trees.values().filter_map(Observed::present) {
        for entry in tree.entries.values() {
            if let Observed::Present(text) = evidence.blobs.get(&entry.id) {
                blobs.entry(entry.id.clone()).or_insert_with(|| text.to_string());
            }
        }
    }
    #[derive(Serialize)]
    struct Borrowed<'e> {
        evidence: &'e Evidence,
        blobs: BTreeMap<BlobId, String>,
    }
    Ok(serde_json::to_vec(&Borrowed { evidence, blobs })?)
}

/// Reads back what [`record`] wrote.
///
/// # Errors
/// [`RecordError`].
pub fn restore(bytes: &[u8]) -> Result<Evidence, RecordError> {
    let Stored { mut evidence, blobs } = serde_json::from_slice(bytes)?;
    if evidence.format != EVIDENCE_FORMAT {
        return Err(RecordError::Format { found: evidence.format });
    }
    let blobs = blobs.into_iter().map(|(id, text)| (id, Arc::from(text))).collect();
    evidence.blobs = Blobs::new(MemoryBlobs(blobs));
    Ok(evidence)
}
