//! A set of numbers: of the shards that are attached, or of the records in use.
//!
//! It is a tree of bitmaps, so a walk reads words only where numbers are: the top word has a flag for each
//! bucket with numbers, a group's word one for each word of the group, and a word one for each of its numbers.
//! The word of the first numbers has none above it: the set of a few numbers is two words.
//!
//! Anybody may add a number, at any time. Each addition steps all words on the way, even if the number is in the set already.
//! A number is removed by a CAS from a word that was read *before* the check that it may be removed; so a removal
//! fails if anybody has added the number, or another one of the word, since that check began. The flags above a word
//! without flags are cleared in the same way: from a value read before the check that nothing is flagged below.
//!
//! The upper half of each word counts the changes, so each change makes it greater: if the sums of the words of each
//! level are the same in two passes over the tree, no word has changed in between.

use crate::raw::memory::once::Buckets;
use crate::sync::{planted, start, weak, AtomicU64, Ordering, SMALL};

/// The number of flags of a word.
const FLAGS: usize = if SMALL { 2 } else { 32 };
const CHANGE: u64 = 1 << 32;
/// A word without flags before its first change.
const UNCHANGED: u64 = start(32) * CHANGE;
/// Bucket `n` has `2^n` words; there is no bucket 0, since its word is `first`. The number of those after the first one.
const MORE_BUCKETS: usize = if cfg!(loom) { 1 } else { 25 };

pub(crate) struct NumberSet {
    /// A flag for each bucket.
    top: Word,
    /// A flag for each of the first numbers.
    first: Word,
    buckets: Buckets<Bucket, MORE_BUCKETS>,
}

struct Bucket {
    /// A flag for each word.
    groups: Vec<Word>,
    /// A flag for each shard.
    words: Vec<Word>,
}

/// Flags, and in the upper half a count of changes.
struct Word(AtomicU64);

/// A word as it was seen: the numbers of this word may be removed from the set if it has not changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::raw) struct Seen {
    word: usize,
    value: u64,
}

/// The sums of the words of each level that were read in one pass: the top, the groups, the words of numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SetVersion(u64, u64, u64);

impl Word {
    fn new() -> Self {
        Self(AtomicU64::new(UNCHANGED))
    }

    #[inline]
    fn read(&self) -> u64 {
        // ORDERING: Acquire; pairs with `set.add` and `set.remove`.
        self.0.load(weak!("set.read", Acquire))
    }

    #[inline]
    fn flags(&self) -> u32 {
        flags_of(self.read())
    }

    fn add(&self, index: usize) {
        // ORDERING: Release; pairs with `set.read`: the bucket, the flags below, and what the shard or record has to show.
        // Relaxed on failure and before: the CAS checks it.
        let release = weak!("set.add", Release);
        let added = self.0.fetch_update(release, Ordering::Relaxed, |word| {
            let adds = word & flag(index) == 0 || !planted!("set.adds-once");
            adds.then(|| (word | flag(index)).wrapping_add(CHANGE))
        });
        debug_assert!(added.is_ok() || planted!("set.adds-once"));
    }

    /// Clears a flag, which is set, unless the word has changed since it was `seen`. Returns the new value.
    fn remove(&self, seen: u64, index: usize) -> Option<u64> {
        let cleared = (seen - flag(index)).wrapping_add(CHANGE);
        // ORDERING: Release; pairs with `set.read`: a thread that finds a shard detached sees all that its
        // consumers had seen, and of a retired record all that was done with it. Relaxed on failure: it stays in the set.
        let release = weak!("set.remove", Release);
        let removed = self
            .0
            .compare_exchange(seen, cleared, release, Ordering::Relaxed);
        removed.ok().map(|_| cleared)
    }
}

impl SetVersion {
    /// What no set has.
    pub(in crate::raw) const NEVER: Self = Self(u64::MAX, 0, 0);
}

impl Seen {
    /// Whether it shows that this shard is attached.
    pub(in crate::raw) fn has(self, shard: usize) -> bool {
        self.word == shard / FLAGS && self.value & flag(shard % FLAGS) != 0
    }

    /// A number that differs whenever the word was changed.
    pub(in crate::raw) fn changes(self) -> u64 {
        self.value / CHANGE
    }
}

impl Default for NumberSet {
    fn default() -> Self {
        Self {
            top: Word::new(),
            first: Word::new(),
            buckets: Buckets::new(),
        }
    }
}

impl NumberSet {
    /// Adds a shard. Whoever has seen an effect of what the caller does afterwards finds it.
    pub(in crate::raw) fn add(&self, shard: usize) {
        let (number, index) = locate(shard / FLAGS);
        if number == 0 {
            return self.first.add(shard % FLAGS);
        }
        let bucket = self.buckets.get_or_add(number, || Bucket::new(number));
        bucket.words[index].add(shard % FLAGS);
        bucket.groups[index / FLAGS].add(index % FLAGS);
        self.top.add(number);
    }

    /// The word of a shard as it is now.
    pub(in crate::raw) fn see(&self, shard: usize) -> Seen {
        let word = shard / FLAGS;
        let value = self.word(word).map_or(0, Word::read);
        Seen { word, value }
    }

    /// A word of flags; `None` if it never had any.
    #[inline]
    fn word(&self, word: usize) -> Option<&Word> {
        match locate(word) {
            (0, _) => Some(&self.first),
            (number, index) => self.buckets.get(number).map(|bucket| &bucket.words[index]),
        }
    }

    /// Removes an attached shard, unless it or a neighbour was added or removed since the word was `seen`. Returns the
    /// word as it is afterwards.
    pub(in crate::raw) fn remove(&self, seen: Seen, shard: usize) -> Option<Seen> {
        let value = self.word(seen.word)?.remove(seen.value, shard % FLAGS)?;
        let (number, index) = locate(seen.word);
        if number > 0 {
            self.prune(number, self.buckets.existing(number), index);
        }
        Some(Seen { value, ..seen })
    }

    /// Removes a shard, if it is in the set. Of several threads one succeeds.
    pub(in crate::raw) fn take(&self, shard: usize) -> bool {
        loop {
            let seen = self.see(shard);
            if !seen.has(shard) {
                return false;
            }
            // Again if a neighbour came or went meanwhile.
            if self.remove(seen, shard).is_some() {
                return true;
            }
        }
    }

    /// Clears the flags above a word that has none.
    fn prune(&self, number: usize, bucket: &Bucket, index: usize) {
        let group = &bucket.groups[index / FLAGS];
        if !clear_above(group, index % FLAGS, || bucket.words[index].flags() == 0) {
            return;
        }
        let has_none = || bucket.groups.iter().all(|group| group.flags() == 0);
        clear_above(&self.top, number, has_none);
    }

    /// Whether a number is in the set.
    #[inline]
    pub(in crate::raw) fn has(&self, shard: usize) -> bool {
        self.see(shard).has(shard)
    }

    /// The flag of a shard for [`NumberSet::is_only`]; none if it is not one of the first.
    pub(in crate::raw) fn only_flag(shard: usize) -> u64 {
        if shard < FLAGS {
            flag(shard)
        } else {
            0
        }
    }

    /// Whether the set has no shard but that with this [`NumberSet::only_flag`].
    #[inline]
    pub(in crate::raw) fn is_only(&self, only_flag: u64) -> bool {
        self.top.flags() == 0 && u64::from(self.first.flags()) == only_flag
    }

    /// The version of the set.
    #[inline]
    pub(crate) fn version(&self) -> SetVersion {
        let (top, first) = (self.top.read(), self.first.read());
        match flags_of(top) {
            0 => SetVersion(top, 0, first),
            _ => self.version_below(top, first),
        }
    }

    /// Whether the version is still this one. Of few numbers the check makes no version, which saves 2 % of a pop of an order.
    #[inline]
    pub(in crate::raw) fn is_at(&self, version: &SetVersion) -> bool {
        let (top, first) = (self.top.read(), self.first.read());
        let is_at = top == version.0 && first == version.2;
        is_at && flags_of(top) == 0 || self.is_below_at(version)
    }

    #[cold]
    fn is_below_at(&self, version: &SetVersion) -> bool {
        self.version() == *version
    }

    /// The version, with the words of the buckets.
    #[inline(never)]
    fn version_below(&self, top: u64, mut words: u64) -> SetVersion {
        let mut groups = 0_u64;
        for number in Ones(flags_of(top)) {
            let bucket = self.buckets.existing(number);
            for (index, group) in bucket.groups.iter().enumerate() {
                let group = group.read();
                groups = groups.wrapping_add(group);
                for word in Ones(flags_of(group)) {
                    let word = &bucket.words[index * FLAGS + word];
                    words = words.wrapping_add(word.read());
                }
            }
        }
        SetVersion(top, groups, words)
    }

    /// The shards in the set from `first` on, in ascending order.
    #[inline]
    pub(crate) fn from(&self, first: usize) -> Members<'_> {
        let seen = self.see(first);
        Members {
            set: self,
            word: seen.word,
            shards: Ones(flags_of(seen.value) & from_index(first % FLAGS)),
        }
    }

    /// The first word behind `word` with a flag.
    #[inline]
    fn word_after(&self, word: usize) -> Option<usize> {
        let buckets = self.top.flags();
        (buckets != 0).then(|| self.word_from(word + 1, buckets))?
    }

    /// The first word from `first` on with a flag, in one of these `buckets`.
    #[inline(never)]
    fn word_from(&self, first: usize, buckets: u32) -> Option<usize> {
        let (start, index) = locate(first);
        Ones(buckets & from_index(start)).find_map(|number| {
            let index = if number == start { index } else { 0 };
            let found = self.buckets.existing(number).word_from(index)?;
            Some((1 << number) - 1 + found)
        })
    }
}

/// Clears a flag of `above` if nothing is flagged below it. Returns whether it is cleared.
fn clear_above(above: &Word, index: usize, has_none: impl Fn() -> bool) -> bool {
    let seen = above.read();
    seen & flag(index) == 0 || has_none() && above.remove(seen, index).is_some()
}

impl Bucket {
    fn new(number: usize) -> Self {
        let words = 1 << number;
        let new = |len| (0..len).map(|_| Word::new()).collect();
        Self {
            groups: new(words / FLAGS + usize::from(words < FLAGS)),
            words: new(words),
        }
    }

    /// The first word from `index` on with a flag.
    fn word_from(&self, index: usize) -> Option<usize> {
        let mut flags = from_index(index % FLAGS);
        (index / FLAGS..self.groups.len()).find_map(|group| {
            let flags = self.groups[group].flags() & std::mem::replace(&mut flags, u32::MAX);
            Some(group * FLAGS + Ones(flags).next()?)
        })
    }
}

/// A walk over the set.
///
/// A caller that has seen an effect of a shard before the walk begins finds it, unless it was detached.
pub(crate) struct Members<'s> {
    set: &'s NumberSet,
    /// The present word, and what remains of it.
    word: usize,
    shards: Ones,
}

impl Iterator for Members<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        loop {
            if let Some(index) = self.shards.next() {
                return Some(self.word * FLAGS + index);
            }
            self.word = self.set.word_after(self.word)?;
            self.shards = Ones(flags_of(self.set.see(self.word * FLAGS).value));
        }
    }
}

/// The indices of the flags that are set.
struct Ones(u32);

impl Iterator for Ones {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        let index = self.0.trailing_zeros() as usize;
        self.0 &= self.0.wrapping_sub(1);
        (index < u32::BITS as usize).then_some(index)
    }
}

/// The flags of a word.
#[inline]
#[allow(clippy::cast_possible_truncation)] // the lower half
fn flags_of(word: u64) -> u32 {
    word as u32
}

#[inline]
fn flag(index: usize) -> u64 {
    1 << index
}

/// All flags from this index on.
#[inline]
fn from_index(index: usize) -> u32 {
    u32::MAX << index
}

/// The bucket of a word, and its index there.
#[inline]
fn locate(word: usize) -> (usize, usize) {
    let number = (word + 1).ilog2() as usize;
    (number, word + 1 - (1 << number))
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::NumberSet;

    fn members(set: &NumberSet, first: usize) -> Vec<usize> {
        set.from(first).collect()
    }

    #[test]
    #[cfg_attr(miri, ignore = "too many steps for Miri")]
    fn walks_find_the_members() {
        let set = NumberSet::default();
        assert!(members(&set, 0).is_empty());
        let shards: Vec<_> = (0..200_000)
            .filter(|shard| shard % 1_000 % 37 == 5)
            .collect();
        shards.iter().rev().for_each(|shard| set.add(*shard));
        assert_eq!(members(&set, 0), shards);
        for first in [1, 5, 6, 31, 32, 96, 1_005, 33_000, 199_999, 3_000_000] {
            let later: Vec<_> = shards
                .iter()
                .copied()
                .filter(|shard| *shard >= first)
                .collect();
            assert_eq!(members(&set, first), later, "from {first}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "tables and segments are small")]
    fn a_shard_is_removed_unless_it_was_added_since() {
        let set = NumberSet::default();
        for shard in [3, 4, 70_000] {
            set.add(shard);
        }
        let before = set.version();
        let seen = set.see(70_000);
        assert!(seen.has(70_000) && !seen.has(70_001));
        set.add(70_000);
        assert_ne!(set.version(), before);
        assert_eq!(set.remove(seen, 70_000), None);
        assert!(set.remove(set.see(70_000), 70_000).is_some());
        assert_eq!(members(&set, 0), [3, 4]);
        let after = set.remove(set.see(4), 4).unwrap();
        assert_eq!(after, set.see(4));
        assert!(set.remove(after, 3).is_some());
        assert!(members(&set, 0).is_empty());
        assert!(!set.has(3));
        set.add(3);
        assert_eq!(members(&set, 0), [3]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "too many steps for Miri")]
    fn walks_read_no_words_without_members() {
        let set = NumberSet::default();
        (0..100_000).for_each(|shard| set.add(shard));
        for shard in (0..100_000).filter(|shard| *shard != 640) {
            assert!(set.remove(set.see(shard), shard).is_some());
        }
        assert_eq!(members(&set, 0), [640]);
        assert_eq!(super::flags_of(set.top.read()).count_ones(), 1);
        let bucket = set.buckets.existing(4);
        let words = bucket.words.iter().filter(|word| word.flags() != 0);
        assert_eq!(
            (bucket.groups[0].flags().count_ones(), words.count()),
            (1, 1)
        );
    }
}
