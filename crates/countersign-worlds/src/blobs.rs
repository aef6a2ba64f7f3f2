//! Contents of files, from the world and its clone, as they are asked for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use countersign_core::evidence::BlobSource;
use countersign_core::{BlobId, CauseKind, Observed};
use countersign_sim::still::StillStore;

/// Texts that are kept, in bytes, before the oldest are forgotten all at once.
const KEPT: usize = 64 << 20;

pub(crate) struct Contents {
    pub(crate) store: StillStore,
    pub(crate) repository: String,
    /// Larger files are not evidence.
    pub(crate) largest: u64,
    kept: Mutex<(BTreeMap<BlobId, Observed<Arc<str>>>, usize)>,
}

impl Contents {
    pub(crate) fn new(store: StillStore, repository: &str, largest: u64) -> Self {
        Self {
            store,
            repository: repository.to_owned(),
            largest,
            kept: Mutex::default(),
        }
    }

    fn find(&self, id: &BlobId) -> Observed<Arc<str>> {
        match self.store.blob(&self.repository, id.as_str()) {
            Err(error) => Observed::unavailable(CauseKind::Transient, id.as_str(), error.to_string()),
            // As gathered from GitHub: what is too large or no text is left out.
            Ok(Some(bytes)) if bytes.len() as u64 <= self.largest => match String::from_utf8(bytes.to_vec()) {
                Ok(text) => Observed::Present(Arc::from(text)),
                Err(_) => Observed::Absent,
            },
            Ok(_) => Observed::Absent,
        }
    }
}

impl BlobSource for Contents {
    fn blob(&self, id: &BlobId) -> Observed<Arc<str>> {
        // A reader that panicked leaves whole entries behind.
        if let Some(known) = self.kept.lock().unwrap_or_else(PoisonError::into_inner).0.get(id) {
            return known.clone();
        }
        let found = self.find(id);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.1 += found.present().map_or(0, |text| text.len());
        if kept.1 > KEPT {
            kept.0.clear();
            kept.1 = found.present().map_or(0, |text| text.len());
        }
        kept.0.insert(id.clone(), found.clone());
        found
    }
}
