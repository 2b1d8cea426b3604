//! A record pool: records that are leased one holder at a time and live as long as the record pool.
//!
//! A record is *in use* from its lease until somebody who leases it finds nothing left in it and *retires*
//! it. Walks go over the records in use only: a word of bits for each 32 of them says which these are. Its
//! upper half counts retirements, so whoever finds all words unchanged knows that no record came or went
//! meanwhile.

use crate::sync::{exclusive, weak, AtomicPtr, AtomicU64, AtomicUsize, Ordering, SMALL};
use std::{ptr, slice};

/// Records in the first bucket; each further bucket doubles.
pub(crate) const FIRST: usize = if SMALL { 2 } else { 8 };
const BUCKETS: usize = if cfg!(loom) { 2 } else { 28 };
const WORD: usize = 64;
/// Flags in a word that says which records are in use. The upper half of the word counts retirements.
const FLAGS: usize = 4 * FIRST;
const RETIREMENT: u64 = 1 << 32;
/// The first bucket with a word.
const FURTHER: usize = 2;

/// Leases type-stable records, the lowest free number first.
pub(crate) struct RecordPool<R> {
    buckets: [AtomicPtr<Bucket<R>>; BUCKETS],
    /// One more than the highest number ever leased.
    len: AtomicUsize,
    /// A flag for each of the first records that is in use, and a count of retirements.
    used: AtomicU64,
    /// So many of the first records are never retired, since they are leased again first.
    staying: usize,
}

struct Bucket<R> {
    records: Vec<R>,
    /// A bit for each record that nobody leases.
    free: Vec<AtomicU64>,
    /// The words as [`RecordPool::used`] whose first flag is for one of these records.
    used: Vec<AtomicU64>,
}

impl<R: Default> RecordPool<R> {
    /// A record pool whose first `staying` records are never retired.
    pub(crate) fn new(staying: usize) -> Self {
        Self {
            staying,
            buckets: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
            len: AtomicUsize::new(0),
            used: AtomicU64::new(0),
        }
    }

    /// Leases the free record with the lowest number.
    ///
    /// # Panics
    ///
    /// When two billion records are leased at once.
    pub(crate) fn lease(&self) -> usize {
        let mut first = 0;
        for index in 0..BUCKETS {
            let bucket = self.bucket(index);
            if let Some(offset) = bucket.lease() {
                let number = first + offset;
                self.begin_use(number);
                return number;
            }
            first += FIRST << index;
        }
        panic!("two billion handles of one queue are in use");
    }

    /// Says that a record is in use, which was just leased. Ahead of all that the holder does with it.
    fn begin_use(&self, number: usize) {
        // Loom finds no race between a load and a write that a load by the same thread comes before, so
        // the models do without the looks that save an RMW.
        let looks_less = SMALL && !self.stays(number);
        // ORDERING: Relaxed; a look.
        if looks_less || self.len.load(Ordering::Relaxed) <= number {
            // ORDERING: Release; pairs with `records.len`. Before the flag: who sees that counts the record.
            self.len
                .fetch_max(number + 1, weak!("records.count", Release));
        }
        let (word, flag) = self.flag(number);
        // ORDERING: Relaxed; only holders of the lease change the flag.
        if looks_less || word.load(Ordering::Relaxed) & flag == 0 {
            // ORDERING: Release; pairs with `records.read`: the bucket. Who has seen something that the
            // holder did afterwards sees the flag.
            word.fetch_or(flag, weak!("records.begin-use", Release));
        }
    }

    /// The bucket at `index`, which is made if need be.
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
    /// One more than the highest number ever leased.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        // ORDERING: Acquire; pairs with `records.count`: who has seen something of a record counts it.
        self.len.load(weak!("records.len", Acquire))
    }

    /// The record with this number, which was leased before.
    #[inline]
    pub(crate) fn get(&self, number: usize) -> &R {
        let (bucket, offset) = locate(number);
        &self.known(bucket).records[offset]
    }

    /// All records ever leased, whether in use or not.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &R> {
        (0..self.len()).map(|number| self.get(number))
    }

    /// Ends the lease of a record.
    pub(crate) fn release(&self, number: usize) {
        let (bucket, offset) = locate(number);
        // ORDERING: Release; pairs with `records.lease` and `records.lease-if-free`: the next holder sees all
        // that this one did.
        let release = weak!("records.release", Release);
        self.known(bucket).free[offset / WORD].fetch_or(bit(offset), release);
    }

    /// Whether nobody leases this record, as a hint.
    pub(crate) fn is_free(&self, number: usize) -> bool {
        let (bucket, offset) = locate(number);
        // ORDERING: Relaxed; a hint.
        self.known(bucket).free[offset / WORD].load(Ordering::Relaxed) & bit(offset) != 0
    }

    /// Leases this very record, if nobody does.
    pub(crate) fn lease_if_free(&self, number: usize) -> bool {
        let (bucket, offset) = locate(number);
        let word = &self.known(bucket).free[offset / WORD];
        // ORDERING: Acquire; pairs with `records.release`.
        word.fetch_and(!bit(offset), weak!("records.lease-if-free", Acquire)) & bit(offset) != 0
    }

    /// Says that nothing is left in a record until it is leased again.
    ///
    /// The caller has the lease, and the record is in use.
    pub(crate) fn retire(&self, number: usize) {
        let (word, flag) = self.flag(number);
        // ORDERING: Release; pairs with `records.read`: who finds the record gone sees all that was done
        // with it. One addition clears the flag, which is set, and counts.
        word.fetch_add(RETIREMENT - flag, weak!("records.retire", Release));
    }

    /// Whether a record is in use. The caller has the lease, or wants a hint.
    pub(crate) fn is_in_use(&self, number: usize) -> bool {
        let (word, flag) = self.flag(number);
        // ORDERING: Relaxed; only holders of the lease change it.
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
            walk.flags = low(read(&self.used));
        } else if first < walk.len {
            walk.go_to(first / FLAGS);
        }
        walk.flags &= u32::MAX << (first % FLAGS);
        walk
    }

    /// The records in use.
    pub(crate) fn in_use(&self) -> impl Iterator<Item = &R> {
        self.in_use_from(0).map(|number| self.get(number))
    }

    /// How many records are in use.
    pub(crate) fn count_in_use(&self) -> usize {
        let words = self.further_words(self.len()).chain([&self.used]);
        words
            .map(|word| low(read(word)).count_ones() as usize)
            .sum()
    }

    /// A number that differs after each change of what is in use: all words added up. Both what begins the
    /// use of a record and what ends it makes its word greater.
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

    /// All words but the first, which say what is in use of the first `len` records.
    fn further_words(&self, len: usize) -> impl Iterator<Item = &AtomicU64> {
        let end = if len <= FLAGS {
            0
        } else {
            locate(len - 1).0 + 1
        };
        (FURTHER..end).flat_map(|bucket| &self.known(bucket).used)
    }

    /// The word with the flag of a number that was leased, and the flag.
    #[inline]
    fn flag(&self, number: usize) -> (&AtomicU64, u64) {
        (self.word(number / FLAGS), 1 << (number % FLAGS))
    }

    /// One of the words that say what is in use.
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
        &self.known(bucket).used[offset]
    }

    /// Whether a record is never retired.
    #[inline]
    pub(crate) fn stays(&self, number: usize) -> bool {
        number < self.staying
    }

    fn known(&self, bucket: usize) -> &Bucket<R> {
        // ORDERING: Relaxed; whoever knows a number, from `len` or a lease, has seen its bucket.
        let at = self.buckets[bucket].load(Ordering::Relaxed);
        // SAFETY: a number that was leased lies in a bucket that was made; buckets live as long as
        // the record pool.
        unsafe { at.as_ref() }.expect("the record was leased before")
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
            used: (0..len / FLAGS).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

impl<R> Bucket<R> {
    /// Leases the lowest free record.
    fn lease(&self) -> Option<usize> {
        for (index, word) in self.free.iter().enumerate() {
            // ORDERING: Relaxed; the RMW below decides.
            let mut free = word.load(Ordering::Relaxed);
            while free != 0 {
                let lowest = free & free.wrapping_neg();
                // ORDERING: Acquire; pairs with `records.release`.
                let before = word.fetch_and(!lowest, weak!("records.lease", Acquire));
                if before & lowest != 0 {
                    return Some(index * WORD + lowest.trailing_zeros() as usize);
                }
                free = before & !lowest;
            }
        }
        None
    }
}

/// A walk over the numbers in use.
///
/// Who has seen something of a record by the time the walk begins finds its number, unless nothing is
/// left of it.
pub(crate) struct InUse<'r, R> {
    pool: &'r RecordPool<R>,
    len: usize,
    /// The next bucket, and the words of the present one that are still to come.
    bucket: usize,
    words: slice::Iter<'r, AtomicU64>,
    /// The first number of the present word, and those of its flags that are still to come.
    first: usize,
    flags: u32,
}

impl<R> InUse<'_, R> {
    /// Goes to a word behind the first one.
    fn go_to(&mut self, word: usize) {
        let (bucket, offset) = locate_word(word);
        self.words = self.pool.known(bucket).used[offset..].iter();
        self.bucket = bucket + 1;
        self.flags = self.words.next().map_or(0, |word| low(read(word)));
    }

    /// Goes to the next word with a flag: false if there is none.
    fn go_on(&mut self) -> bool {
        while self.flags == 0 {
            let Some(word) = self.words.next() else {
                if self.first + FLAGS >= self.len {
                    return false;
                }
                self.words = self.pool.known(self.bucket).used.iter();
                self.bucket += 1;
                continue;
            };
            self.first += FLAGS;
            self.flags = low(read(word));
        }
        true
    }
}

impl<R> Iterator for InUse<'_, R> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.flags == 0 && (self.first + FLAGS >= self.len || !self.go_on()) {
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
fn low(word: u64) -> u32 {
    word as u32
}

impl<R> Drop for RecordPool<R> {
    fn drop(&mut self) {
        for bucket in &mut self.buckets {
            let at = exclusive(bucket);
            if !at.is_null() {
                // SAFETY: made by `Box::into_raw`, and nobody else is there.
                drop(unsafe { Box::from_raw(at) });
            }
        }
    }
}

/// The bucket of a record, and where it stands there.
#[inline]
fn locate(number: usize) -> (usize, usize) {
    let bucket = ((number + FIRST) / FIRST).ilog2() as usize;
    (bucket, number + FIRST - (FIRST << bucket))
}

/// The bucket of a word behind the first one, and where it stands there.
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
    fn numbers_are_located_without_gaps() {
        let places: Vec<_> = [0, 7, 8, 23, 24].into_iter().map(locate).collect();
        assert_eq!(places, [(0, 0), (0, 7), (1, 0), (1, 15), (2, 0)]);
    }

    #[test]
    fn the_lowest_free_number_is_leased() {
        let pool = RecordPool::<u32>::new(0);
        let leased: Vec<_> = (0..1000).map(|_| pool.lease()).collect();
        assert_eq!(leased, (0..1000).collect::<Vec<_>>());
        pool.release(700);
        pool.release(5);
        assert_eq!((pool.lease(), pool.lease()), (5, 700));
        assert_eq!(pool.len(), 1000);
        assert!(!pool.lease_if_free(3));
        pool.release(3);
        assert!(pool.lease_if_free(3));
    }

    #[test]
    fn walks_find_what_is_in_use() {
        let pool = RecordPool::<u32>::new(0);
        assert_eq!(pool.in_use_from(0).next(), None);
        for _ in 0..1000 {
            pool.lease();
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
        assert!(pool.version() > before);
        assert!(!pool.is_in_use(8));
        pool.release(8);
        assert_eq!(pool.lease(), 8);
        assert!(pool.is_in_use(8));
        assert_eq!((pool.count_in_use(), pool.len()), (11, 1000));
    }
}
