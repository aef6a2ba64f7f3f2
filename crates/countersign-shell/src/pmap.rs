//! A small persistent ordered map: cheap to copy, so that each recorded command can keep the variables of its
//! moment and each branch its own state. Entries sit in shared chunks; a write copies one chunk.

use std::sync::Arc;

const CHUNK: usize = 24;

type Entry<V> = (Arc<str>, V);
type Chunk<V> = Arc<Vec<Entry<V>>>;

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
    fn chunk_of(&self, key: &str) -> Option<usize> {
        let after = self
            .chunks
            .partition_point(|c| c.first().is_some_and(|(k, _)| k.as_ref() <= key));
        after.checked_sub(1)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&V> {
        let chunk = self.chunks.get(self.chunk_of(key)?)?;
        let index = chunk.binary_search_by(|(k, _)| k.as_ref().cmp(key)).ok()?;
        chunk.get(index).map(|(_, v)| v)
    }

    pub(crate) fn insert(&mut self, key: Arc<str>, value: V) {
        let at = self.chunk_of(&key).unwrap_or(0);
        let chunks = Arc::make_mut(&mut self.chunks);
        let Some(chunk) = chunks.get_mut(at) else {
            chunks.push(Arc::new(vec![(key, value)]));
            self.len += 1;
            return;
        };
        let entries = Arc::make_mut(chunk);
        match entries.binary_search_by(|(k, _)| k.cmp(&key)) {
            Ok(index) => entries[index].1 = value,
            Err(index) => {
                entries.insert(index, (key, value));
                self.len += 1;
                if entries.len() > CHUNK {
                    let upper = entries.split_off(CHUNK / 2);
                    chunks.insert(at + 1, Arc::new(upper));
                }
            }
        }
    }

    pub(crate) fn remove(&mut self, key: &str) -> Option<V> {
        let at = self.chunk_of(key)?;
        let index = self
            .chunks
            .get(at)?
            .binary_search_by(|(k, _)| k.as_ref().cmp(key))
            .ok()?;
        let chunks = Arc::make_mut(&mut self.chunks);
        let entries = Arc::make_mut(&mut chunks[at]);
        let (_, value) = entries.remove(index);
        if entries.is_empty() {
            chunks.remove(at);
        }
        self.len -= 1;
        Some(value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &V)> {
        self.chunks.iter().flat_map(|c| c.iter()).map(|(k, v)| (k, v))
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
            return self
                .chunks
                .iter()
                .zip(other.chunks.iter())
                .all(|(a, b)| Arc::ptr_eq(a, b) || a.iter().zip(b.iter()).all(|((k, v), (l, w))| k == l && eq(v, w)));
        }
        self.iter().zip(other.iter()).all(|((k, v), (l, w))| k == l && eq(v, w))
    }

    /// Names whose values differ or that only one side has.
    pub(crate) fn differing(&self, other: &Self, eq: impl Fn(&V, &V) -> bool) -> Vec<Arc<str>> {
        let mut out = Vec::new();
        let (mut a, mut b) = (self.iter().peekable(), other.iter().peekable());
        loop {
            match (a.peek(), b.peek()) {
                (Some((k, v)), Some((l, w))) => match k.cmp(l) {
                    std::cmp::Ordering::Equal => {
                        if !eq(v, w) {
                            out.push((*k).clone());
                        }
                        a.next();
                        b.next();
                    }
                    std::cmp::Ordering::Less => {
                        out.push((*k).clone());
                        a.next();
                    }
                    std::cmp::Ordering::Greater => {
                        out.push((*l).clone());
                        b.next();
                    }
                },
                (Some((k, _)), None) => {
                    out.push((*k).clone());
                    a.next();
                }
                (None, Some((l, _))) => {
                    out.push((*l).clone());
                    b.next();
                }
                (None, None) => return out,
            }
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
                let key: Arc<str> = format!("k{key}").into();
                let before = ours.clone();
                let before_model = model.clone();
                match op {
                    0 | 1 => {
                        ours.insert(key.clone(), value);
                        model.insert(key, value);
                    }
                    _ => {
                        prop_assert_eq!(ours.remove(&key), model.remove(&key));
                    }
                }
                // The copy taken before the write is untouched.
                prop_assert!(before.iter().eq(before_model.iter()));
                prop_assert_eq!(ours.len(), model.len());
            }
            prop_assert!(ours.iter().eq(model.iter()));
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
