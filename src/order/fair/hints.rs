//! Hints at which number a key has: a cache in front of the tables, shared by all threads.
//!
//! Only the tables decide whether a number belongs to a key, and they compare the keys themselves. So the hash that
//! places a hint may be a weak one: where keys collide, the tables are searched by their own hash, which nobody can
//! predict. A hint that is stale, or that of another key, by chance or on purpose, costs a look at the wrong place.

use crate::raw::OnceBox;
use crate::sync::{AtomicU32, SMALL};
use std::hash::{Hash, Hasher};

/// The number of hints, as a power of two: of a queue with few keys, and of others.
const FEW_BITS: u32 = if SMALL { 0 } else { 6 };
const MANY_BITS: u32 = if SMALL { 0 } else { 12 };
/// The hint of no key.
pub(super) const NO_KEY: u32 = u32::MAX;
/// A multiplier that spreads consecutive numbers evenly (Knuth, "The Art of Computer Programming", volume 3, 6.4).
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// A hint for each of some hashes.
#[derive(Default)]
pub(super) struct Hints {
    /// Made when a key has [several](Hints::expect_few) items: before that no hint is of use.
    few: OnceBox<[AtomicU32; 1 << FEW_BITS]>,
    /// Made when there are [many](Hints::expect_many) keys, and used instead from then on.
    many: OnceBox<[AtomicU32; 1 << MANY_BITS]>,
}

/// Hints of no keys.
fn none<const N: usize>() -> [AtomicU32; N] {
    std::array::from_fn(|_| AtomicU32::new(NO_KEY))
}

impl Hints {
    /// Makes room for the hints of a few keys.
    pub(super) fn expect_few(&self) {
        self.few.get_or_add(none);
    }

    /// Makes room for the hints of many keys.
    pub(super) fn expect_many(&self) {
        self.many.get_or_add(none);
    }

    /// The hint of a key, which may be that of another one: the number of either, if that has not changed. `None` while
    /// there is room for none. Runs `Hash` of the key.
    #[inline]
    pub(super) fn of<K: Hash>(&self, key: &K) -> Option<&AtomicU32> {
        let mut hasher = WeakHasher(0);
        key.hash(&mut hasher);
        match self.many.get() {
            Some(many) => Some(&many[hasher.index(MANY_BITS)]),
            None => Some(&self.few.get()?[hasher.index(FEW_BITS)]),
        }
    }
}

/// A multiplicative hash: fast, and predictable.
struct WeakHasher(u64);

impl WeakHasher {
    /// The upper bits, which depend on all others.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // of few bits
    fn index(&self, bits: u32) -> usize {
        self.0.rotate_left(bits) as usize & ((1 << bits) - 1)
    }
}

impl Hasher for WeakHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            let number = u64::from_ne_bytes(word);
            self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(GOLDEN);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{Hints, MANY_BITS, NO_KEY};
    use std::hash::Hash;
    use std::sync::atomic::Ordering::Relaxed;

    /// The number of places for these keys.
    fn places<K: Hash>(keys: impl IntoIterator<Item = K>) -> usize {
        let hints = Hints::default();
        hints.expect_many();
        for (key, number) in keys.into_iter().zip(0..) {
            hints.of(&key).unwrap().store(number, Relaxed);
        }
        let used = hints.many.get().into_iter().flatten();
        used.filter(|hint| hint.load(Relaxed) != NO_KEY).count()
    }

    #[test]
    fn a_hint_is_found_again() {
        let hints = Hints::default();
        assert!(hints.of(&"key").is_none());
        hints.expect_few();
        let hint = || hints.of(&"key").unwrap();
        assert_eq!(hint().load(Relaxed), NO_KEY);
        hint().store(7, Relaxed);
        assert_eq!(hint().load(Relaxed), 7);
    }

    #[test]
    fn keys_have_places_of_their_own() {
        let few = 0..1000_u32;
        assert!(places(few.clone()) > 990);
        assert!(places(few.clone().map(|key| u64::from(key) << 40)) > 700);
        assert!(places(few.clone().map(|key| format!("tenant-{key}"))) > 700);
        assert!(places(few.map(|key| (key % 10, key > 500, -i64::from(key)))) > 700);
        assert!(places(0..1_u64 << (MANY_BITS + 4)) == 1 << MANY_BITS);
    }
}
