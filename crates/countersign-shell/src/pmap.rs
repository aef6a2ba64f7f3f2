//! A small persistent ordered map: cheap to copy, so that each recorded command can keep the variables of its
//! moment and each branch its own state. Entries sit in shared chunks; a write copies one chunk.

use std::cmp::Ordering;
use std::sync::Arc;

/// Entries of a chunk at most: so many that with some hundred names a write copies about as many chunks as entries.
const CHUNK: usize = 14;

type Chunk<V> = Arc<Vec<Entry<V>>>;

/// A name with the number of its beginning, which most comparisons end at, and a value.
#[derive(Debug, Clone)]
struct Entry<V> {
    begins: u64,
    key: Arc<str>,
    value: V,
}

impl<V> Entry<V> {
    fn new(key: Arc<str>, value: V) -> Self {
        Entry {
            begins: beginning(&key),
            key,
            value,
        }
    }

    fn cmp(&self, begins: u64, key: &str) -> Ordering {
        self.begins.cmp(&begins).then_with(|| (*self.key).cmp(key))
    }
}

/// The first eight bytes as a number: its order is that of the names, as far as it tells them apart.
fn beginning(key: &str) -> u64 {
    let mut first = [0; 8];
    for (to, byte) in first.iter_mut().zip(key.bytes()) {
        *to = byte;
    }
    u64::from_be_bytes(first)
}

/// Maps that come from one another share their keys: most comparisons end at the pointer.
fn same_key(a: &Arc<str>, b: &Arc<str>) -> bool {
    Arc::ptr_eq(a, b) || a == b
}

/// Map from names to cheaply copied values, in name order.
#[derive(Debug, Clone)]
pub(crate) struct PMap<V> {
    chunks: Arc<Vec<Chunk<V>>>,
    len: usize,
}

impl<V> Default for PMap<V> {
    fn default() -> Self {
        PMap {
            chunks: Arc::new(Vec::new()),
            len: 0,
        }
    }
}

impl<V: Clone> PMap<V> {
    fn chunk_of(&self, begins: u64, key: &str) -> Option<usize> {
        let after = self
            .chunks
            .partition_point(|c| c.first().is_some_and(|entry| entry.cmp(begins, key).is_le()));
        after.checked_sub(1)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&V> {
        let begins = beginning(key);
        let chunk = self.chunks.get(self.chunk_of(begins, key)?)?;
        let index = chunk.binary_search_by(|entry| entry.cmp(begins, key)).ok()?;
        chunk.get(index).map(|entry| &entry.value)
    }

    /// The value in its place, where no copy of the map has it too.
    pub(crate) fn own(&mut self, key: &str) -> Option<&mut V> {
        let begins = beginning(key);
        let at = self.chunk_of(begins, key)?;
        let entries = Arc::get_mut(Arc::get_mut(&mut self.chunks)?.get_mut(at)?)?;
        let index = entries.binary_search_by(|entry| entry.cmp(begins, key)).ok()?;
        entries.get_mut(index).map(|entry| &mut entry.value)
    }

    pub(crate) fn insert(&mut self, key: Arc<str>, value: V) {
        let entry = Entry::new(key, value);
        let at = self.chunk_of(entry.begins, &entry.key).unwrap_or(0);
        let chunks = Arc::make_mut(&mut self.chunks);
        let Some(chunk) = chunks.get_mut(at) else {
            chunks.push(Arc::new(vec![entry]));
            self.len += 1;
            return;
        };
        let entries = Arc::make_mut(chunk);
        match entries.binary_search_by(|other| other.cmp(entry.begins, &entry.key)) {
            Ok(index) => entries[index].value = entry.value,
            Err(index) => {
                entries.insert(index, entry);
                self.len += 1;
                if entries.len() > CHUNK {
                    let upper = entries.split_off(CHUNK / 2);
                    chunks.insert(at + 1, Arc::new(upper));
                }
            }
        }
    }

    pub(crate) fn remove(&mut self, key: &str) -> Option<V> {
        let begins = beginning(key);
        let at = self.chunk_of(begins, key)?;
        let index = self
            .chunks
            .get(at)?
            .binary_search_by(|entry| entry.cmp(begins, key))
            .ok()?;
        let chunks = Arc::make_mut(&mut self.chunks);
        let entries = Arc::make_mut(&mut chunks[at]);
        let Entry { value, .. } = entries.remove(index);
        if entries.is_empty() {
            chunks.remove(at);
        }
        self.len -= 1;
        Some(value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &V)> {
        self.chunks
            .iter()
            .flat_map(|c| c.iter())
            .map(|entry| (&entry.key, &entry.value))
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether both hold equal entries; shared chunks are not looked into.
    pub(crate) fn same_by(&self, other: &Self, eq: impl Fn(&V, &V) -> bool) -> bool {
        if Arc::ptr_eq(&self.chunks, &other.chunks) {
            return true;
        }
        if self.len != other.len {
            return false;
        }
        if self.chunks.len() == other.chunks.len()
            && self
                .chunks
                .iter()
                .zip(other.chunks.iter())
                .all(|(a, b)| a.len() == b.len())
        {
            return self.chunks.iter().zip(other.chunks.iter()).all(|(a, b)| {
                Arc::ptr_eq(a, b)
                    || a.iter()
                        .zip(b.iter())
                        .all(|(a, b)| a.begins == b.begins && same_key(&a.key, &b.key) && eq(&a.value, &b.value))
            });
        }
        self.iter()
            .zip(other.iter())
            .all(|((k, v), (l, w))| same_key(k, l) && eq(v, w))
    }

    /// Names whose values differ or that only one side has; shared chunks are not looked into.
    pub(crate) fn differing(&self, other: &Self, eq: impl Fn(&V, &V) -> bool) -> Vec<Arc<str>> {
        let mut out = Vec::new();
        self.find_differing(other, eq, |name, _, _| {
            out.push(name.clone());
            false
        });
        out
    }

    /// The first name, in order, whose values differ or that only one side has, and of which `found` says that it is the one.
    pub(crate) fn find_differing(
        &self,
        other: &Self,
        eq: impl Fn(&V, &V) -> bool,
        mut found: impl FnMut(&Arc<str>, Option<&V>, Option<&V>) -> bool,
    ) -> Option<Arc<str>> {
        if Arc::ptr_eq(&self.chunks, &other.chunks) {
            return None;
        }
        let (mut ours, mut theirs) = (Cursor::default(), Cursor::default());
        loop {
            while let (Some(a), Some(b)) = (ours.at_start(&self.chunks), theirs.at_start(&other.chunks))
                && Arc::ptr_eq(a, b)
            {
                ours.chunk += 1;
                theirs.chunk += 1;
            }
            let (a, b) = (ours.entry(&self.chunks), theirs.entry(&other.chunks));
            let order = match (a, b) {
                (Some(a), Some(b)) if Arc::ptr_eq(&a.key, &b.key) => Ordering::Equal,
                (Some(a), Some(b)) => a.cmp(b.begins, &b.key),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return None,
            };
            // What is behind the other side's place, that side does not have.
            let a = a.filter(|_| order != Ordering::Greater);
            let b = b.filter(|_| order != Ordering::Less);
            let same = matches!((a, b), (Some(a), Some(b)) if eq(&a.value, &b.value));
            if !same
                && let Some(Entry { key, .. }) = a.or(b)
                && found(key, a.map(|entry| &entry.value), b.map(|entry| &entry.value))
            {
                return Some(key.clone());
            }
            if a.is_some() {
                ours.advance(&self.chunks);
            }
            if b.is_some() {
                theirs.advance(&other.chunks);
            }
        }
    }
}

/// A place in a map; no chunk is empty.
#[derive(Default)]
struct Cursor {
    chunk: usize,
    index: usize,
}

impl Cursor {
    fn at_start<'m, V>(&self, chunks: &'m [Chunk<V>]) -> Option<&'m Chunk<V>> {
        chunks.get(self.chunk).filter(|_| self.index == 0)
    }

    fn entry<'m, V>(&self, chunks: &'m [Chunk<V>]) -> Option<&'m Entry<V>> {
        chunks.get(self.chunk)?.get(self.index)
    }

    fn advance<V>(&mut self, chunks: &[Chunk<V>]) {
        self.index += 1;
        if chunks.get(self.chunk).is_none_or(|chunk| self.index >= chunk.len()) {
            self.chunk += 1;
            self.index = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn behaves_like_an_ordered_map(ops in proptest::collection::vec((0u8..3, 0u16..200, any::<u32>()), 0..400)) {
            let mut ours: PMap<u32> = PMap::default();
            let mut model: BTreeMap<Arc<str>, u32> = BTreeMap::new();
            for (op, key, value) in ops {
                // Long enough for names of which the beginnings are the same.
                let key: Arc<str> = if key % 2 == 0 { format!("k{key}") } else { format!("a_longer_name_{key}") }.into();
                let before = ours.clone();
                let before_model = model.clone();
                match op {
                    0 | 1 => {
                        ours.insert(key.clone(), value);
                        model.insert(key.clone(), value);
                    }
                    _ => prop_assert_eq!(ours.remove(&key), model.remove(&key)),
                }
                // The copy taken before the write is untouched.
                prop_assert!(before.iter().eq(before_model.iter()));
                prop_assert_eq!(ours.len(), model.len());
                let changed: Vec<Arc<str>> = [before_model.get(&key) != model.get(&key)]
                    .iter()
                    .filter(|changed| **changed)
                    .map(|_| key.clone())
                    .collect();
                prop_assert_eq!(ours.differing(&before, |a, b| a == b), changed.clone());
                prop_assert_eq!(before.differing(&ours, |a, b| a == b), changed);
            }
            prop_assert!(ours.iter().eq(model.iter()));
            // Another map of the same entries that shares nothing, cut into chunks in another way.
            let mut again: PMap<u32> = PMap::default();
            model.iter().rev().for_each(|(key, value)| again.insert(key.clone(), *value));
            prop_assert_eq!(ours.differing(&again, |a, b| a == b), Vec::<Arc<str>>::new());
            prop_assert_eq!(ours.differing(&PMap::default(), |a, b| a == b).len(), model.len());
            for (key, value) in &model {
                prop_assert_eq!(ours.get(key), Some(value));
            }
            let mut other = ours.clone();
            prop_assert!(ours.same_by(&other, |a, b| a == b));
            other.insert("zz".into(), 1);
            prop_assert!(!ours.same_by(&other, |a, b| a == b));
            prop_assert_eq!(ours.differing(&other, |a, b| a == b), vec![Arc::<str>::from("zz")]);
        }
    }
}
