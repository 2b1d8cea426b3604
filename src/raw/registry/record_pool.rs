//! A record pool: records that have one owner at a time and live as long as the pool.
//!
//! A record is *in use* from when it is acquired until an owner finds nothing left in it and *retires* it.
//! Walks visit the records in use only, by a bitmap with a word for each 32 records. The upper half of a
//! word counts retirements, so if all words are unchanged, no record came into use or was retired
//! meanwhile.

use crate::sync::{
    exclusive, fetch_max, start, weak, AtomicPtr, AtomicU64, AtomicUsize, Ordering, SMALL,
};
use std::marker::PhantomData;
use std::{ptr, slice};

/// Records in the first bucket; each further bucket doubles.
pub(crate) const FIRST: usize = if SMALL { 2 } else { 8 };
const BUCKETS: usize = if cfg!(loom) { 2 } else { 28 };
const WORD: usize = 64;
/// Flags in a word of the bitmap of records in use. The upper half of the word counts retirements.
const FLAGS: usize = 4 * FIRST;
const RETIREMENT: u64 = 1 << 32;
/// A word without flags before the first retirement.
const UNUSED: u64 = start(32) * RETIREMENT;
/// The first bucket with a word of its own in that bitmap.
const FURTHER: usize = 2;

/// A pool of type-stable records, which are acquired with the lowest free number first.
pub(crate) struct RecordPool<R> {
    buckets: [AtomicPtr<Bucket<R>>; BUCKETS],
    /// One more than the highest number ever acquired.
    len: AtomicUsize,
    /// The first word: a flag for each record that is in use, and a count of retirements.
    used: AtomicU64,
    /// The number of first records that are never retired, since they are acquired again first.
    permanent: usize,
    /// The pool owns records, and gives out references to them.
    records: PhantomData<R>,
}

struct Bucket<R> {
    records: Vec<R>,
    /// A bit for each record without an owner.
    free: Vec<AtomicU64>,
    /// The words like [`RecordPool::used`] whose first flag is for one of these records.
    used: Vec<AtomicU64>,
}

impl<R: Default> RecordPool<R> {
    /// A record pool whose first `permanent` records are never retired.
    pub(crate) fn new(permanent: usize) -> Self {
        Self {
            permanent,
            records: PhantomData,
            buckets: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
            len: AtomicUsize::new(0),
            used: AtomicU64::new(UNUSED),
        }
    }

    /// Acquires the free record with the lowest number.
    ///
    /// # Panics
    ///
    /// When two billion records are acquired at once.
    pub(crate) fn acquire(&self) -> usize {
        let mut first = 0;
        for index in 0..BUCKETS {
            let bucket = self.bucket(index);
            if let Some(offset) = bucket.acquire() {
                let number = first + offset;
                self.begin_use(number);
                return number;
            }
            first += FIRST << index;
        }
        panic!("two billion handles of one queue are in use");
    }

    /// Flags a record that was just acquired as in use, before the owner uses it.
    fn begin_use(&self, number: usize) {
        // Loom finds no race between a load and a write if a load by the same thread precedes the write,
        // so the models do without the checks that save an RMW.
        let skips_checks = SMALL && !self.stays(number);
        // ORDERING: Relaxed; a hint.
        if skips_checks || self.len.load(Ordering::Relaxed) <= number {
            // ORDERING: Release; pairs with `records.len`. Before the flag: a thread that sees the flag counts
            // the record.
            fetch_max(&self.len, number + 1, weak!("records.count", Release));
        }
        let (word, flag) = self.flag(number);
        // ORDERING: Relaxed; only owners of the record change the flag.
        if skips_checks || word.load(Ordering::Relaxed) & flag == 0 {
            // ORDERING: Release; pairs with `records.read`: the bucket. Whoever has seen an effect of what
            // the owner did afterwards sees the flag.
            word.fetch_or(flag, weak!("records.begin-use", Release));
        }
    }

    /// The bucket at `index`, allocated if necessary.
    fn bucket(&self, index: usize) -> &Bucket<R> {
        let bucket = &self.buckets[index];
        // ORDERING: Acquire; pairs with `records.add-bucket`: the records.
        let mut at = bucket.load(weak!("records.bucket", Acquire));
        if at.is_null() {
            let new = Box::into_raw(Box::new(Bucket::new(index)));
            // ORDERING: Release; pairs with `records.bucket`: the records. Acquire on failure: another
            // thread's, whose `records.add-bucket` it pairs with.
            match bucket.compare_exchange(
                ptr::null_mut(),
                new,
                weak!("records.add-bucket", Release),
                weak!("records.other-bucket", Acquire),
            ) {
                Ok(_) => at = new,
                Err(theirs) => {
                    // SAFETY: not shared.
                    drop(unsafe { Box::from_raw(new) });
                    at = theirs;
                }
            }
        }
        // SAFETY: buckets live as long as the record pool.
        unsafe { &*at }
    }
}

impl<R> RecordPool<R> {
    /// One more than the highest number ever acquired.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        // ORDERING: Acquire; pairs with `records.count`: a thread that has seen an effect of a record counts it.
        self.len.load(weak!("records.len", Acquire))
    }

    /// The record with this number, which was acquired before.
    #[inline]
    pub(crate) fn get(&self, number: usize) -> &R {
        let (bucket, offset) = locate(number);
        &self.existing(bucket).records[offset]
    }

    /// All records ever acquired, whether in use or not.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &R> {
        (0..self.len()).map(|number| self.get(number))
    }

    /// Releases a record.
    pub(crate) fn release(&self, number: usize) {
        let (bucket, offset) = locate(number);
        // ORDERING: Release; pairs with `records.acquire` and `records.acquire-if-free`: the next owner sees all
        // that this one did.
        let release = weak!("records.release", Release);
        self.existing(bucket).free[offset / WORD].fetch_or(bit(offset), release);
    }

    /// Whether this record has no owner, as a hint.
    #[inline]
    pub(crate) fn is_free(&self, number: usize) -> bool {
        let (bucket, offset) = locate(number);
        // ORDERING: Relaxed; a hint.
        self.existing(bucket).free[offset / WORD].load(Ordering::Relaxed) & bit(offset) != 0
    }

    /// Acquires this record if it is free.
    pub(crate) fn acquire_if_free(&self, number: usize) -> bool {
        let (bucket, offset) = locate(number);
        let word = &self.existing(bucket).free[offset / WORD];
        // ORDERING: Acquire; pairs with `records.release`.
        word.fetch_and(!bit(offset), weak!("records.acquire-if-free", Acquire)) & bit(offset) != 0
    }

    /// Flags a record in which nothing is left as not in use, until it is acquired again.
    ///
    /// The caller owns the record, and it is in use.
    pub(crate) fn retire(&self, number: usize) {
        let (word, flag) = self.flag(number);
        // ORDERING: Release; pairs with `records.read`: a thread that finds the record retired sees all that was
        // done with it. One addition clears the flag, which is set, and counts the retirement.
        word.fetch_add(RETIREMENT - flag, weak!("records.retire", Release));
    }

    /// Whether a record is in use: exact for its owner, otherwise a hint.
    pub(crate) fn is_in_use(&self, number: usize) -> bool {
        let (word, flag) = self.flag(number);
        // ORDERING: Relaxed; only owners of the record change it.
        word.load(Ordering::Relaxed) & flag != 0
    }

    /// The numbers of the records in use, from `first` on.
    #[inline]
    pub(crate) fn in_use_from(&self, first: usize) -> InUse<'_, R> {
        let mut walk = InUse {
            pool: self,
            len: self.len(),
            bucket: FURTHER,
            words: [].iter(),
            first: first - first % FLAGS,
            flags: 0,
        };
        if first < FLAGS {
            walk.flags = flags_of(read(&self.used));
        } else if first < walk.len {
            walk.seek(first / FLAGS);
        }
        walk.flags &= u32::MAX << (first % FLAGS);
        walk
    }

    /// The records in use.
    #[inline]
    pub(crate) fn in_use(&self) -> impl Iterator<Item = &R> {
        self.in_use_from(0).map(|number| self.get(number))
    }

    /// The number of records in use.
    pub(crate) fn count_in_use(&self) -> usize {
        let words = self.further_words(self.len()).chain([&self.used]);
        words
            .map(|word| flags_of(read(word)).count_ones() as usize)
            .sum()
    }

    /// The version of the set of records in use: the sum of all words. Both the beginning and the end of a
    /// record's use make its word greater.
    #[inline]
    pub(crate) fn version(&self) -> u64 {
        let first = read(&self.used);
        let len = self.len();
        if len <= FLAGS {
            return first;
        }
        let words = self.further_words(len).map(read);
        words.fold(first, u64::wrapping_add)
    }

    /// All words of the bitmap for the first `len` records, except the first word.
    fn further_words(&self, len: usize) -> impl Iterator<Item = &AtomicU64> {
        let end = if len <= FLAGS {
            0
        } else {
            locate(len - 1).0 + 1
        };
        (FURTHER..end).flat_map(|bucket| &self.existing(bucket).used)
    }

    /// The word with the flag of a record that was acquired before, and the flag.
    #[inline]
    fn flag(&self, number: usize) -> (&AtomicU64, u64) {
        (self.word(number / FLAGS), 1 << (number % FLAGS))
    }

    /// A word of the bitmap of records in use.
    #[inline]
    fn word(&self, word: usize) -> &AtomicU64 {
        if word == 0 {
            &self.used
        } else {
            self.further_word(word)
        }
    }

    fn further_word(&self, word: usize) -> &AtomicU64 {
        let (bucket, offset) = locate_word(word);
        &self.existing(bucket).used[offset]
    }

    /// Whether a record is never retired.
    #[inline]
    pub(crate) fn stays(&self, number: usize) -> bool {
        number < self.permanent
    }

    #[inline]
    fn existing(&self, bucket: usize) -> &Bucket<R> {
        // ORDERING: Relaxed; a thread that knows a number, from `len` or by acquiring it, has seen its bucket.
        let at = self.buckets[bucket].load(Ordering::Relaxed);
        // SAFETY: the bucket of a number that was acquired was allocated; buckets live as long as the
        // record pool.
        unsafe { at.as_ref() }.expect("the record was acquired before")
    }
}

impl<R: Default> Bucket<R> {
    fn new(index: usize) -> Self {
        let len = FIRST << index;
        let bits = |word: usize| match len.saturating_sub(word * WORD) {
            left if left < WORD => (1 << left) - 1,
            _ => u64::MAX,
        };
        Self {
            records: (0..len).map(|_| R::default()).collect(),
            free: (0..len.div_ceil(WORD))
                .map(|word| AtomicU64::new(bits(word)))
                .collect(),
            used: (0..len / FLAGS).map(|_| AtomicU64::new(UNUSED)).collect(),
        }
    }
}

impl<R> Bucket<R> {
    /// Acquires the lowest free record.
    fn acquire(&self) -> Option<usize> {
        for (index, word) in self.free.iter().enumerate() {
            // ORDERING: Relaxed; the RMW below decides.
            let mut free = word.load(Ordering::Relaxed);
            while free != 0 {
                let lowest = free & free.wrapping_neg();
                // ORDERING: Acquire; pairs with `records.release`.
                let before = word.fetch_and(!lowest, weak!("records.acquire", Acquire));
                if before & lowest != 0 {
                    return Some(index * WORD + lowest.trailing_zeros() as usize);
                }
                free = before & !lowest;
            }
        }
        None
    }
}

/// A walk over the numbers of the records in use.
///
/// A caller that has seen an effect of a record before the walk begins finds its number, unless the record
/// was retired.
pub(crate) struct InUse<'r, R> {
    pool: &'r RecordPool<R>,
    len: usize,
    /// The next bucket, and the remaining words of the present one.
    bucket: usize,
    words: slice::Iter<'r, AtomicU64>,
    /// The first number of the present word, and its remaining flags.
    first: usize,
    flags: u32,
}

impl<R> InUse<'_, R> {
    /// Moves to a word behind the first one.
    fn seek(&mut self, word: usize) {
        let (bucket, offset) = locate_word(word);
        self.words = self.pool.existing(bucket).used[offset..].iter();
        self.bucket = bucket + 1;
        self.flags = self.words.next().map_or(0, |word| flags_of(read(word)));
    }

    /// Moves to the next word with a flag: false if there is none.
    fn next_word(&mut self) -> bool {
        while self.flags == 0 {
            let Some(word) = self.words.next() else {
                if self.first + FLAGS >= self.len {
                    return false;
                }
                self.words = self.pool.existing(self.bucket).used.iter();
                self.bucket += 1;
                continue;
            };
            self.first += FLAGS;
            self.flags = flags_of(read(word));
        }
        true
    }
}

impl<R> Iterator for InUse<'_, R> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.flags == 0 && (self.first + FLAGS >= self.len || !self.next_word()) {
            return None;
        }
        let flag = self.flags.trailing_zeros();
        self.flags &= self.flags - 1;
        Some(self.first + flag as usize)
    }
}

#[inline]
fn read(word: &AtomicU64) -> u64 {
    // ORDERING: Acquire; pairs with `records.begin-use` and `records.retire`.
    word.load(weak!("records.read", Acquire))
}

/// The flags of a word.
#[inline]
#[allow(clippy::cast_possible_truncation)] // the lower half
fn flags_of(word: u64) -> u32 {
    word as u32
}

impl<R> Drop for RecordPool<R> {
    fn drop(&mut self) {
        for bucket in &mut self.buckets {
            let at = exclusive(bucket);
            if !at.is_null() {
                // SAFETY: made by `Box::into_raw`, and not shared any more.
                drop(unsafe { Box::from_raw(at) });
            }
        }
    }
}

/// The bucket of a record, and its index there.
#[inline]
fn locate(number: usize) -> (usize, usize) {
    if number < FIRST {
        return (0, number);
    }
    let bucket = ((number + FIRST) / FIRST).ilog2() as usize;
    (bucket, number + FIRST - (FIRST << bucket))
}

/// The bucket of a word behind the first one, and its index there.
fn locate_word(word: usize) -> (usize, usize) {
    let level = word.ilog2() as usize;
    (FURTHER + level, word - (1 << level))
}

fn bit(offset: usize) -> u64 {
    1 << (offset % WORD)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{locate, RecordPool};

    #[test]
    #[cfg_attr(miri, ignore = "tables and segments are small")]
    fn numbers_are_located_without_gaps() {
        let places: Vec<_> = [0, 7, 8, 23, 24].into_iter().map(locate).collect();
        assert_eq!(places, [(0, 0), (0, 7), (1, 0), (1, 15), (2, 0)]);
    }

    #[test]
    fn the_lowest_free_number_is_acquired() {
        let pool = RecordPool::<u32>::new(0);
        let acquired: Vec<_> = (0..1000).map(|_| pool.acquire()).collect();
        assert_eq!(acquired, (0..1000).collect::<Vec<_>>());
        pool.release(700);
        pool.release(5);
        assert_eq!((pool.acquire(), pool.acquire()), (5, 700));
        assert_eq!(pool.len(), 1000);
        assert!(!pool.acquire_if_free(3));
        pool.release(3);
        assert!(pool.acquire_if_free(3));
    }

    #[test]
    fn walks_find_the_records_in_use() {
        let pool = RecordPool::<u32>::new(0);
        assert_eq!(pool.in_use_from(0).next(), None);
        for _ in 0..1000 {
            pool.acquire();
        }
        assert!(pool.in_use_from(0).eq(0..1000));
        assert!(pool.in_use_from(100).eq(100..1000));
        assert_eq!(pool.in_use_from(5000).next(), None);
        let before = pool.version();
        (0..1000)
            .filter(|number| number % 100 != 7)
            .for_each(|number| pool.retire(number));
        assert!(pool.in_use_from(0).eq((7..1000).step_by(100)));
        assert!(pool.in_use_from(8).eq((107..1000).step_by(100)));
        assert_eq!(pool.count_in_use(), 10);
        assert_ne!(pool.version(), before);
        assert!(!pool.is_in_use(8));
        pool.release(8);
        assert_eq!(pool.acquire(), 8);
        assert!(pool.is_in_use(8));
        assert_eq!((pool.count_in_use(), pool.len()), (11, 1000));
    }
}
