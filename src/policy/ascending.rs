//! A map whose keys are added in ascending order.

use std::mem;

/// How many vacant entries there may be beside as many as there are values.
const SLACK: usize = 8;

/// A map in a vector: a key is added behind all others, and mostly the last or one of the first is removed. A removed value leaves a
/// vacant entry, until those are more than the values.
pub(super) struct Ascending<K, V> {
    entries: Vec<(K, Option<V>)>,
    vacant: usize,
}

derive_default!([K, V] Ascending<K, V> { entries, vacant });

impl<K: Copy + Ord, V> Ascending<K, V> {
    /// Adds a value. Its key is greater than those of all values before.
    pub(super) fn add(&mut self, key: K, value: V) {
        debug_assert!(self.entries.last().map_or(true, |(last, _)| *last < key));
        self.entries.push((key, Some(value)));
    }

    fn index_of(&self, key: K) -> Option<usize> {
        let found = self.entries.binary_search_by_key(&key, |entry| entry.0);
        found.ok()
    }

    pub(super) fn get_mut(&mut self, key: K) -> Option<&mut V> {
        let index = self.index_of(key)?;
        self.entries[index].1.as_mut()
    }

    #[inline]
    pub(super) fn remove(&mut self, key: K) -> Option<V> {
        match self.entries.last() {
            Some((last, _)) if *last == key && self.vacant == 0 => self.entries.pop()?.1,
            _ => self.remove_inner(key),
        }
    }

    /// Not inlined, so that a value from the end is not copied to where it would put one.
    #[inline(never)]
    fn remove_inner(&mut self, key: K) -> Option<V> {
        let index = self.index_of(key)?;
        let removed = self.entries[index].1.take()?;
        self.vacant += 1;
        self.trim();
        Some(removed)
    }

    /// Removes the vacant entries at the end, since the next key need only be greater than those of the values, and all of them,
    /// with memory that is not needed, if they are many.
    fn trim(&mut self) {
        while let Some((_, None)) = self.entries.last() {
            self.entries.pop();
            self.vacant -= 1;
        }
        let len = self.entries.len() - self.vacant;
        if self.vacant > len + SLACK {
            let mut entries = Vec::with_capacity(len + SLACK);
            let all = mem::take(&mut self.entries).into_iter();
            entries.extend(all.filter(|(_, value)| value.is_some()));
            (self.entries, self.vacant) = (entries, 0);
        }
    }

    /// The values, in the order of their keys.
    pub(super) fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        let entries = self.entries.iter();
        entries.filter_map(|(key, value)| Some((*key, value.as_ref()?)))
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.entries
            .iter_mut()
            .filter_map(|(_, value)| value.as_mut())
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{Ascending, SLACK};
    use std::collections::BTreeMap;

    #[test]
    fn a_key_may_come_again_when_all_that_follow_are_gone() {
        let mut table = Ascending::default();
        (1..4).for_each(|key| table.add(key, ()));
        for key in [2, 1, 3] {
            table.remove(key);
        }
        table.add(1, ());
        assert!(table.remove(1).is_some() && table.entries.is_empty());
    }

    /// As an ordered map, whichever values are removed.
    #[test]
    fn it_is_a_map() {
        for step in [1, 2, 3, 5, 7] {
            let (mut table, mut map) = (Ascending::default(), BTreeMap::new());
            for key in 0..500_u32 {
                table.add(key, key * 2);
                map.insert(key, key * 2);
                let other = key * step % (key + 1);
                if key % 3 > 0 {
                    assert_eq!(table.remove(other), map.remove(&other));
                }
                assert_eq!(table.get_mut(other), map.get_mut(&other));
                assert!(table.entries.len() <= 2 * map.len() + SLACK + 1);
            }
            let values = table.iter().map(|(key, value)| (key, *value));
            assert!(values.eq(map.clone()));
            for key in 0..500 {
                assert_eq!(table.remove(key), map.remove(&key));
            }
            assert!(table.entries.len() <= SLACK && table.entries.capacity() <= 4 * SLACK);
        }
    }
}
