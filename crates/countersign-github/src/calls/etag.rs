//! Answers kept for conditional requests: GitHub answers "not modified" without counting it against the limit.
//!
//! The key names the installation, since one must never see another's answer, and the accepted form, since the same address
//! gives different bodies. Only answers that were read whole are kept.

use std::sync::Arc;

use bytes::Bytes;
use moka::sync::Cache;

/// A kept answer.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) etag: String,
    pub(crate) link: Option<String>,
    pub(crate) status: u16,
    pub(crate) body: Bytes,
}

/// Bounded by bytes; the least used goes first.
#[derive(Clone)]
pub(crate) struct Etags {
    cache: Cache<String, Arc<Kept>>,
    largest: usize,
}

impl Etags {
    pub(crate) fn new(bytes: u64) -> Self {
        Self {
            cache: Cache::builder()
                .max_capacity(bytes)
                .weigher(|key: &String, kept: &Arc<Kept>| {
                    u32::try_from(key.len() + kept.etag.len() + kept.body.len() + 200).unwrap_or(u32::MAX)
                })
                .build(),
            largest: usize::try_from(bytes / 4).unwrap_or(usize::MAX),
        }
    }

    pub(crate) fn key(owner: &str, accept: &str, url: &str) -> String {
        format!("{owner} {accept} {url}")
    }

    pub(crate) fn get(&self, key: &str) -> Option<Arc<Kept>> {
        self.cache.get(key)
    }

    pub(crate) fn keep(&self, key: String, kept: Kept) {
        if kept.body.len() <= self.largest {
            // `Bytes` may be a piece of a larger buffer; what is kept is exactly as large as it is counted.
            let body = Bytes::copy_from_slice(&kept.body);
            self.cache.insert(key, Arc::new(Kept { body, ..kept }));
        }
    }
}
