//! Digests over canonical JSON: the same value always has the same digest, whatever order its maps were built in.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::io;

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use sha2::{Digest, Sha256};

/// Canonical JSON text: keys sorted, no spaces.
///
/// # Errors
/// When the value does not serialise (a map with keys that are no strings).
pub fn canonical_json<T: Serialize>(value: &T) -> Result<String, serde_json::Error> {
    let text = RefCell::default();
    let failed = Cell::new(false);
    let sorted = Sorted {
        text: &text,
        failed: &failed,
        open: Vec::new(),
    };
    value.serialize(&mut Serializer::with_formatter(Shared(&text), sorted))?;
    let text = text.into_inner();
    match String::from_utf8(text) {
        Ok(text) if !failed.get() => Ok(text),
        _ => Err(serde::ser::Error::custom("the canonical text could not be written")),
    }
}

/// The text as it grows: the formatter puts an object in order where it ends.
struct Shared<'t>(&'t RefCell<Vec<u8>>);

impl io::Write for Shared<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Compact text in which the members of each object stand by their keys.
struct Sorted<'t> {
    text: &'t RefCell<Vec<u8>>,
    failed: &'t Cell<bool>,
    open: Vec<Object>,
}

/// An object that has not ended: where its members begin, and where the key of each ends.
#[derive(Default)]
struct Object {
    members: Vec<(usize, usize)>,
}

impl Sorted<'_> {
    fn at(&self) -> usize {
        self.text.borrow().len()
    }
}

impl Formatter for Sorted<'_> {
    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open.push(Object::default());
        writer.write_all(b"{")
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if !first {
            writer.write_all(b",")?;
        }
        let at = self.at();
        if let Some(object) = self.open.last_mut() {
            object.members.push((at, at));
        }
        Ok(())
    }

    fn end_object_key<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        let at = self.at();
        if let Some((_, end)) = self.open.last_mut().and_then(|object| object.members.last_mut()) {
            *end = at;
        }
        Ok(())
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if let Some(object) = self.open.pop()
            && object.sort(&mut self.text.borrow_mut()).is_none()
        {
            self.failed.set(true);
        }
        writer.write_all(b"}")
    }
}

impl Object {
    /// Puts the members in order; of several with one key the last one stays. `None` where a key cannot be read back.
    fn sort(&self, text: &mut Vec<u8>) -> Option<()> {
        let Some((first, _)) = self.members.first() else {
            return Some(());
        };
        let mut members = Vec::with_capacity(self.members.len());
        for (nth, (from, key_end)) in self.members.iter().enumerate() {
            // The next member stands behind a comma.
            let to = self.members.get(nth + 1).map_or(text.len(), |(next, _)| next - 1);
            members.push((key(text.get(*from..*key_end)?)?, *from..to));
        }
        if members.is_sorted_by(|(a, _), (b, _)| a < b) {
            return Some(());
        }
        // The last of several with one key comes first, and stays.
        members.reverse();
        members.sort_by(|(a, _), (b, _)| a.cmp(b));
        members.dedup_by(|(a, _), (b, _)| a == b);
        let mut sorted = Vec::with_capacity(text.len() - first);
        for (_, range) in members {
            if !sorted.is_empty() {
                sorted.push(b',');
            }
            sorted.extend_from_slice(text.get(range)?);
        }
        text.truncate(*first);
        text.append(&mut sorted);
        Some(())
    }
}

/// A key without its quotes and escapes.
fn key(quoted: &[u8]) -> Option<Cow<'_, [u8]>> {
    if quoted.contains(&b'\\') {
        let text: String = serde_json::from_slice(quoted).ok()?;
        return Some(Cow::Owned(text.into_bytes()));
    }
    Some(Cow::Borrowed(quoted.strip_prefix(b"\"")?.strip_suffix(b"\"")?))
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    /// The same by way of a tree.
    fn by_tree<T: Serialize>(value: &T) -> String {
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
        let mut value = serde_json::to_value(value).unwrap();
        sort(&mut value);
        serde_json::to_string(&value).unwrap()
    }

    fn values() -> impl Strategy<Value = Value> {
        let text = prop_oneof!["[ -~]{0,6}", ".{0,4}", r#"["\\\\/a\n]{0,3}"#];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            text.clone().prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 60, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec((text.clone(), inner), 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_text_is_that_of_a_sorted_tree(value in values()) {
            prop_assert_eq!(canonical_json(&value).unwrap(), by_tree(&value));
        }
    }

    #[test]
    fn structs_keys_of_numbers_and_repeated_members_are_as_in_a_tree() {
        #[derive(Serialize)]
        struct Outer {
            z: BTreeMap<u32, &'static str>,
            a: Option<u8>,
            #[serde(flatten)]
            more: BTreeMap<&'static str, Value>,
        }
        let outer = Outer {
            z: [(10, "x"), (9, "y\"")].into(),
            a: Some(1),
            more: [("m", Value::from(1.5)), ("a", Value::from("twice"))].into(),
        };
        assert_eq!(canonical_json(&outer).unwrap(), by_tree(&outer));
        assert_eq!(
            canonical_json(&outer).unwrap(),
            r#"{"a":"twice","m":1.5,"z":{"10":"x","9":"y\""}}"#
        );
        let no_key: BTreeMap<Vec<u8>, u8> = [(vec![1], 2)].into();
        assert!(canonical_json(&no_key).is_err());
    }

    #[test]
    fn key_order_does_not_matter_and_content_does() {
        let one: Value = serde_json::from_str(r#"{"b":[{"y":1,"x":2}],"a":null}"#).unwrap();
        let two: Value = serde_json::from_str(r#"{"a":null,"b":[{"x":2,"y":1}]}"#).unwrap();
        let three: Value = serde_json::from_str(r#"{"a":null,"b":[{"x":2,"y":3}]}"#).unwrap();
        assert_eq!(digest_of(&one).unwrap(), digest_of(&two).unwrap());
        assert_ne!(digest_of(&one).unwrap(), digest_of(&three).unwrap());
    }
}
