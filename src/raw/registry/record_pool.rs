//! A record pool: records that have one owner at a time and live as long as the pool.
//!
//! A record is *in use* from when it is acquired for use until an owner finds nothing left in it and *retires* it; a shard,
//! when it is attached. Walks visit the records in use only: the pool has the set of their numbers.

use crate::raw::memory::{once::OnceBox, Buckets, NumberSet};
use crate::sync::{weak, AtomicUsize, Ordering, SMALL};
use std::borrow::Borrow;

/// The first records, which are acquired again first: few queues have more.
pub(crate) const FIRST: usize = if SMALL { 2 } else { 8 };
/// Bucket `n` has as many records as all before it; there is no bucket 0, since its only record is `first`.
const BUCKETS: usize = if cfg!(loom) { 4 } else { 32 };

/// A pool of type-stable records, which are acquired with the lowest free number first.
///
/// `S`: how it has the set of the records in use, which may have to stay at its address.
pub(crate) struct RecordPool<R, S = NumberSet> {
    first: OnceBox<R>,
    buckets: Buckets<Box<[R]>, { BUCKETS - 2 }>,
    /// One more than the highest number ever acquired.
    len: AtomicUsize,
    /// The numbers of the records that have no owner any more.
    free: NumberSet,
    /// The numbers of the records in use.
    used: S,
    /// The number of first records that are never retired, since they are acquired again first.
    permanent: usize,
}

impl<R, S: Borrow<NumberSet>> RecordPool<R, S> {
    /// The record with number 0 of a pool that was made [with a reserved one](RecordPool::with_reserved), which is made for the
    /// first caller.
    #[inline]
    pub(crate) fn reserved(&self, make: impl FnOnce() -> R) -> &R {
        self.first.get_or_add(make)
    }
}

impl<R: Default, S: Borrow<NumberSet> + Default> RecordPool<R, S> {
    /// A record pool in which number 0 is acquired, for whoever [makes](RecordPool::reserved) that record.
    pub(crate) fn with_reserved(permanent: usize) -> Self {
        Self {
            len: AtomicUsize::new(1),
            ..Self::new(permanent)
        }
    }

    /// A record pool whose first `permanent` records are never retired.
    pub(crate) fn new(permanent: usize) -> Self {
        Self {
            first: OnceBox::default(),
            buckets: Buckets::new(),
            len: AtomicUsize::new(0),
            free: NumberSet::default(),
            used: S::default(),
            permanent,
        }
    }

    /// Acquires the free record with the lowest number, and flags it as in use.
    pub(crate) fn acquire_for_use(&self) -> usize {
        let number = self.acquire();
        // Only owners of the record change its flag. Loom finds no race between a load and a write if a load by the same
        // thread precedes the write, so the models do without the check.
        if SMALL && !self.stays(number) || !self.is_in_use(number) {
            self.used().add(number);
        }
        number
    }

    /// Acquires the free record with the lowest number.
    ///
    /// # Panics
    ///
    /// When two billion records are acquired at once.
    pub(crate) fn acquire(&self) -> usize {
        while let Some(number) = self.free.from(0).next() {
            if self.acquire_if_free(number) {
                return number;
            }
        }
        // ORDERING: Release; pairs with `records.len`: the records. Relaxed on failure and before: the CAS checks it.
        let release = weak!("records.count", Release);
        let count = |len| {
            let (bucket, _) = locate(len);
            assert!(
                bucket < BUCKETS,
                "two billion handles of one queue are in use"
            );
            if bucket == 0 {
                self.first.get_or_add(R::default);
            } else {
                let new = || (0..1 << (bucket - 1)).map(|_| R::default()).collect();
                self.buckets.get_or_add(bucket, new);
            }
            Some(len + 1)
        };
        let number = self.len.fetch_update(release, Ordering::Relaxed, count);
        number.unwrap_or_else(|len| len)
    }
}

impl<R, S: Borrow<NumberSet>> RecordPool<R, S> {
    /// One more than the highest number ever acquired.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        // ORDERING: Acquire; pairs with `records.count`: a thread that has seen an effect of a record counts it.
        self.len.load(weak!("records.len", Acquire))
    }

    /// The record with this number, which was acquired before.
    #[inline]
    pub(crate) fn get(&self, number: usize) -> &R {
        match number {
            0 => self.first.existing(),
            // Without a search for the bucket: at the end of each segment of a queue that one handle fills.
            1 => &self.buckets.existing(1)[0],
            _ => {
                let (bucket, offset) = locate(number);
                &self.buckets.existing(bucket)[offset]
            }
        }
    }

    /// All records ever acquired, whether in use or not; not a reserved one that was not made.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &R> {
        let others = (1..self.len()).map(|number| self.get(number));
        self.first.get().into_iter().chain(others)
    }

    /// Releases a record. The next owner sees all that this one did.
    pub(crate) fn release(&self, number: usize) {
        self.free.add(number);
    }

    /// Whether this record has no owner, as a hint.
    #[inline]
    pub(crate) fn is_free(&self, number: usize) -> bool {
        self.free.has(number)
    }

    /// Acquires this record if it is free.
    pub(crate) fn acquire_if_free(&self, number: usize) -> bool {
        self.free.take(number)
    }

    /// Flags a record in which nothing is left as not in use, until it is acquired for use again.
    ///
    /// The caller owns the record, and it is in use.
    pub(crate) fn retire(&self, number: usize) {
        self.used().take(number);
    }

    /// Whether a record is in use: exact for its owner, otherwise a hint.
    pub(crate) fn is_in_use(&self, number: usize) -> bool {
        self.used().has(number)
    }

    /// The numbers of the records in use.
    #[inline]
    pub(crate) fn used(&self) -> &NumberSet {
        self.used.borrow()
    }

    /// What has the set of these numbers.
    pub(crate) fn owner_of_used(&self) -> &S {
        &self.used
    }

    /// The records in use.
    #[inline]
    pub(crate) fn in_use(&self) -> impl Iterator<Item = &R> {
        self.used().from(0).map(|number| self.get(number))
    }

    /// Whether a record is never retired.
    #[inline]
    pub(crate) fn stays(&self, number: usize) -> bool {
        number < self.permanent
    }
}

/// The bucket of a record, and its index there.
#[inline]
fn locate(number: usize) -> (usize, usize) {
    let bucket = |log: u32| (log as usize + 1, number - (1 << log));
    number.checked_ilog2().map_or((0, 0), bucket)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{locate, RecordPool};

    #[test]
    #[cfg_attr(miri, ignore = "tables and segments are small")]
    fn numbers_are_located_without_gaps() {
        let places: Vec<_> = [0, 1, 2, 3, 4, 7].into_iter().map(locate).collect();
        assert_eq!(places, [(0, 0), (1, 0), (2, 0), (2, 1), (3, 0), (3, 3)]);
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
