//! Digests over canonical JSON: the same value always has the same digest, whatever order its maps were built in.

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Canonical JSON text: keys sorted, no spaces.
///
/// # Errors
/// When the value does not serialise (a map with keys that are no strings).
pub fn canonical_json<T: Serialize>(value: &T) -> Result<String, serde_json::Error> {
    let mut value = serde_json::to_value(value)?;
    sort(&mut value);
    serde_json::to_string(&value)
}

/// Lower-case hexadecimal SHA-256 of the bytes.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// SHA-256 over [`canonical_json`].
///
/// # Errors
/// As [`canonical_json`].
pub fn digest_of<T: Serialize>(value: &T) -> Result<String, serde_json::Error> {
    Ok(sha256_hex(canonical_json(value)?.as_bytes()))
}

fn sort(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.sort_keys();
            map.values_mut().for_each(sort);
        }
        Value::Array(items) => items.iter_mut().for_each(sort),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_order_does_not_matter_and_content_does() {
        let one: Value = serde_json::from_str(r#"{"b":[{"y":1,"x":2}],"a":null}"#).unwrap();
        let two: Value = serde_json::from_str(r#"{"a":null,"b":[{"x":2,"y":1}]}"#).unwrap();
        let three: Value = serde_json::from_str(r#"{"a":null,"b":[{"x":2,"y":3}]}"#).unwrap();
        assert_eq!(digest_of(&one).unwrap(), digest_of(&two).unwrap());
        assert_ne!(digest_of(&one).unwrap(), digest_of(&three).unwrap());
    }
}
