//! Evidence and policies by digest, compressed, each kept once.

use std::io::{Read, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use sha2::{Digest, Sha256};

use crate::error::check_text;
use crate::{Store, StoreError};

/// The largest blob, uncompressed: 256 MiB.
pub(crate) const LARGEST_BLOB: usize = 256 << 20;

/// What a blob is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BlobKind {
    /// The frozen facts a verdict was made from.
    Evidence,
    /// The policy it was made under.
    Policy,
    /// Anything else.
    Other,
}

impl BlobKind {
    fn name(self) -> &'static str {
        match self {
            Self::Evidence => "evidence",
            Self::Policy => "policy",
            Self::Other => "other",
        }
    }
}

/// Bytes as they are written, and how to read them.
pub(crate) struct Packed {
    pub(crate) encoding: &'static str,
    pub(crate) bytes: Bytes,
}

impl Packed {
    pub(crate) fn raw(bytes: &Bytes) -> Self {
        Self {
            encoding: "raw",
            bytes: bytes.clone(),
        }
    }
}

/// A row of less than 2 kB stays in its page anyway.
const WORTH_PACKING: usize = 1536;

/// For the intake: takes a sixth of zlib's time, and saves the database more than that.
pub(crate) fn pack_fast(bytes: &Bytes) -> Packed {
    if bytes.len() >= WORTH_PACKING {
        let packed = lz4_flex::block::compress_prepend_size(bytes);
        if packed.len() < bytes.len() {
            return Packed {
                encoding: "lz4",
                bytes: packed.into(),
            };
        }
    }
    Packed::raw(bytes)
}

/// For what is kept for good: small.
fn pack(bytes: &Bytes) -> Packed {
    if bytes.len() >= WORTH_PACKING {
        let mut encoder = ZlibEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::default());
        // Writing to memory does not fail; if it ever did, the raw bytes are right too.
        if let Ok(packed) = encoder.write_all(bytes).and_then(|()| encoder.finish())
            && packed.len() < bytes.len()
        {
            return Packed {
                encoding: "zlib",
                bytes: packed.into(),
            };
        }
    }
    Packed::raw(bytes)
}

/// Reads back what [`pack`] or [`pack_fast`] wrote; never more than `size` bytes (None: not known, up to [`LARGEST_BLOB`]).
pub(crate) fn unpack(encoding: &str, bytes: Vec<u8>, size: Option<usize>) -> Result<Bytes, String> {
    match encoding {
        "raw" => Ok(bytes.into()),
        "lz4" => {
            let most = size.unwrap_or(LARGEST_BLOB);
            let (claimed, rest) = lz4_flex::block::uncompressed_size(&bytes).map_err(|error| error.to_string())?;
            if claimed > most {
                return Err(format!("it is longer than {most} bytes"));
            }
            let out = lz4_flex::block::decompress(rest, claimed);
            Ok(out.map_err(|error| format!("it does not decompress: {error}"))?.into())
        }
        "zlib" => {
            let most = size.unwrap_or(LARGEST_BLOB);
            let mut out = Vec::with_capacity(size.unwrap_or(bytes.len().saturating_mul(4)).min(LARGEST_BLOB));
            let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
            ZlibDecoder::new(bytes.as_slice())
                .take(limit)
                .read_to_end(&mut out)
                .map_err(|error| format!("it does not decompress: {error}"))?;
            if out.len() > most {
                return Err(format!("it is longer than {most} bytes"));
            }
            Ok(out.into())
        }
        other => Err(format!("its encoding {other:?} is not known")),
    }
}

impl Store {
    /// Keeps `bytes` under `digest`, unless something is kept under it already. Needs to come before the evaluation that names it.
    ///
    /// The digest is the caller's (at most 128 bytes); the bytes are checked by a SHA-256 of our own when they are read.
    pub async fn put_blob(&self, kind: BlobKind, digest: &str, bytes: impl Into<Bytes>) -> Result<(), StoreError> {
        check_text("a blob's digest", digest, 128)?;
        let bytes: Bytes = bytes.into();
        if bytes.len() > LARGEST_BLOB {
            return Err(StoreError::Invalid {
                what: "a blob",
                why: format!("{} bytes, at most {LARGEST_BLOB} are kept", bytes.len()),
            });
        }
        let known: bool = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM blobs WHERE digest = $1)")
            .bind(digest)
            .fetch_one(self.pool())
            .await?;
        if known {
            return Ok(());
        }
        let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        // Megabytes take tens of milliseconds: not on a thread that serves requests.
        let (packed, sha256) = tokio::task::spawn_blocking(move || (pack(&bytes), Sha256::digest(&bytes).to_vec()))
            .await
            .map_err(|error| StoreError::Invalid {
                what: "a blob",
                why: format!("compressing it failed: {error}"),
            })?;
        sqlx::query(
            "INSERT INTO blobs (digest, kind, encoding, size, sha256, bytes) VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (digest) DO NOTHING",
        )
        .bind(digest)
        .bind(kind.name())
        .bind(packed.encoding)
        .bind(size)
        .bind(sha256)
        .bind(packed.bytes.as_ref())
        .execute(self.pool())
        .await?;
        Ok(())
    }

    /// What [`Store::put_blob`] kept, checked.
    pub async fn blob(&self, digest: &str) -> Result<Option<Bytes>, StoreError> {
        let row: Option<(String, i64, Vec<u8>, Vec<u8>)> =
            sqlx::query_as("SELECT encoding, size, sha256, bytes FROM blobs WHERE digest = $1")
                .bind(digest)
                .fetch_optional(self.pool())
                .await?;
        let Some((encoding, size, sha256, packed)) = row else {
            return Ok(None);
        };
        let damaged = |why: String| StoreError::Damaged {
            digest: digest.to_owned(),
            why,
        };
        let size = usize::try_from(size).ok().filter(|size| *size <= LARGEST_BLOB);
        let size = size.ok_or_else(|| damaged("its size is out of range".to_owned()))?;
        let unpacked = tokio::task::spawn_blocking(move || {
            let bytes = unpack(&encoding, packed, Some(size))?;
            if bytes.len() != size {
                return Err(format!("{} bytes instead of {size}", bytes.len()));
            }
            if Sha256::digest(&bytes).as_slice() != sha256.as_slice() {
                return Err("its SHA-256 is not the one it had".to_owned());
            }
            Ok(bytes)
        })
        .await
        .map_err(|error| damaged(format!("reading it failed: {error}")))?;
        unpacked.map(Some).map_err(damaged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_was_packed_comes_back(bytes in proptest::collection::vec(any::<u8>(), 0..5000), runs in 1_usize..20) {
            let bytes: Bytes = bytes.repeat(runs).into();
            for packed in [pack_fast(&bytes), pack(&bytes)] {
                prop_assert!(packed.bytes.len() <= bytes.len());
                let back = unpack(packed.encoding, packed.bytes.to_vec(), Some(bytes.len()));
                prop_assert_eq!(back, Ok(bytes.clone()));
            }
        }

        #[test]
        fn damage_is_an_error_and_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), encoding in 0_usize..2) {
            if let Ok(out) = unpack(["lz4", "zlib"][encoding], bytes, Some(10_000)) {
                prop_assert!(out.len() <= 10_000);
            }
        }
    }

    #[test]
    fn a_bomb_stops_at_the_size_it_claimed() {
        let zeros = Bytes::from(vec![0_u8; 1 << 20]);
        for (packed, encoding) in [(pack(&zeros), "zlib"), (pack_fast(&zeros), "lz4")] {
            assert_eq!(packed.encoding, encoding);
            assert!(packed.bytes.len() < 10_000);
            assert!(unpack(encoding, packed.bytes.to_vec(), Some(1000)).is_err());
        }
        assert!(unpack("zlib", b"no zlib".to_vec(), Some(1000)).is_err());
        assert!(unpack("lzma", Vec::new(), None).is_err());
    }
}
