//! A record pool: records that have one owner at a time and live as long as the pool.
//!
//! A record is *in use* from when it is acquired for use until an owner finds nothing left in it and *retires* it; a shard,
//! when it is attached. Walks visit the records in use only: the pool has the set of their numbers.

use crate::raw::memory::number_set::NumberSet;
use crate::sync::{exclusive, fetch_max, weak, AtomicPtr, AtomicU64, AtomicUsize, Ordering, SMALL};
use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;

/// Records in the first bucket; each further bucket doubles.
pub(crate) const FIRST: usize = if SMALL { 2 } else { 8 };
const BUCKETS: usize = if cfg!(loom) { 2 } else { 28 };
const WORD: usize = 64;
/// A pool of type-stable records, which are acquired with the lowest free number first.
pub(crate) struct RecordPool<R> {
    buckets: [AtomicPtr<Bucket<R>>; BUCKETS],
    /// One more than the highest number ever acquired.
    len: AtomicUsize,
    /// The numbers of the records in use.
    used: Arc<NumberSet>,
    /// The number of first records that are never retired, since they are acquired again first.
    permanent: usize,
    /// The pool owns records, and gives out references to them.
    records: PhantomData<R>,
}

struct Bucket<R> {
    records: Vec<R>,
    /// A bit for each record without an owner.
    free: Vec<AtomicU64>,
}

impl<R: Default> RecordPool<R> {
    /// A record pool whose first `permanent` records are never retired.
    pub(crate) fn new(permanent: usize) -> Self {
        Self {
            permanent,
            records: PhantomData,
            buckets: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
            len: AtomicUsize::new(0),
            used: Arc::new(NumberSet::new()),
        }
    }

    /// Acquires the free record with the lowest number, and flags it as in use.
    pub(crate) fn acquire_for_use(&self) -> usize {
        let number = self.acquire();
        // Only owners of the record change its flag. The models do without the check, as in `count`.
        if SMALL && !self.stays(number) || !self.is_in_use(number) {
            self.used.add(number);
        }
        number
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
                self.count(number);
                return number;
            }
            first += FIRST << index;
        }
        panic!("two billion handles of one queue are in use");
    }

    /// Counts a record that was just acquired, before its owner uses it.
    fn count(&self, number: usize) {
        // Loom finds no race between a load and a write if a load by the same thread precedes the write,
        // so the models do without the checks that save an RMW.
        let skips_check = SMALL && !self.stays(number);
        // ORDERING: Relaxed; a hint.
        if skips_check || self.len.load(Ordering::Relaxed) <= number {
            // ORDERING: Release; pairs with `records.len`.
            fetch_max(&self.len, number + 1, weak!("records.count", Release));
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

    /// Flags a record in which nothing is left as not in use, until it is acquired for use again.
    ///
    /// The caller owns the record, and it is in use.
    pub(crate) fn retire(&self, number: usize) {
        // Again if a neighbour came or went meanwhile.
        while self.used.remove(self.used.see(number), number).is_none() {}
    }

    /// Whether a record is in use: exact for its owner, otherwise a hint.
    pub(crate) fn is_in_use(&self, number: usize) -> bool {
        self.used.has(number)
    }

    /// The numbers of the records in use.
    pub(crate) fn used(&self) -> &Arc<NumberSet> {
        &self.used
    }

    /// The records in use.
    #[inline]
    pub(crate) fn in_use(&self) -> impl Iterator<Item = &R> {
        self.used.from(0).map(|number| self.get(number))
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
        assert_eq!(pool.used().from(0).next(), None);
        for _ in 0..1000 {
            pool.acquire_for_use();
        }
        assert!(pool.used().from(0).eq(0..1000));
        assert!(pool.used().from(100).eq(100..1000));
        assert_eq!(pool.used().from(5000).next(), None);
        let before = pool.used().version();
        (0..1000)
            .filter(|number| number % 100 != 7)
            .for_each(|number| pool.retire(number));
        assert!(pool.used().from(0).eq((7..1000).step_by(100)));
        assert!(pool.used().from(8).eq((107..1000).step_by(100)));
        assert_eq!(pool.used().from(0).count(), 10);
        assert_ne!(pool.used().version(), before);
        assert!(!pool.is_in_use(8));
        pool.release(8);
        assert_eq!(pool.acquire_for_use(), 8);
        assert!(pool.is_in_use(8));
        assert_eq!((pool.used().from(0).count(), pool.len()), (11, 1000));
    }
}
