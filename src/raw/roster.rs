//! A roster: records that are leased one holder at a time and live as long as the roster.

use crate::sync::{exclusive, AtomicPtr, AtomicU64, AtomicUsize, Ordering, SMALL};
use std::ptr;

/// Records in the first bucket; each further bucket doubles.
const FIRST: usize = if SMALL { 2 } else { 8 };
const BUCKETS: usize = if cfg!(loom) { 2 } else { 28 };
const WORD: usize = 64;

/// Leases type-stable records, the lowest free number first.
pub(crate) struct Roster<R> {
    buckets: [AtomicPtr<Bucket<R>>; BUCKETS],
    /// One more than the highest number ever leased.
    len: AtomicUsize,
}

struct Bucket<R> {
    records: Vec<R>,
    /// A bit for each record that nobody leases.
    free: Vec<AtomicU64>,
}

impl<R: Default> Roster<R> {
    pub(crate) fn new() -> Self {
        Self {
            buckets: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
            len: AtomicUsize::new(0),
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
            if let Some(offset) = self.bucket(index).lease() {
                let number = first + offset;
                // ORDERING: Release; pairs with the Acquire in `len`. Ahead of all that the
                // holder does with the record.
                self.len.fetch_max(number + 1, Ordering::Release);
                return number;
            }
            first += FIRST << index;
        }
        panic!("two billion handles of one queue are in use");
    }

    /// The bucket at `index`, which is made if need be.
    fn bucket(&self, index: usize) -> &Bucket<R> {
        let bucket = &self.buckets[index];
        // ORDERING: Acquire; pairs with the Release below: the records.
        let mut at = bucket.load(Ordering::Acquire);
        if at.is_null() {
            let new = Box::into_raw(Box::new(Bucket::new(FIRST << index)));
            // ORDERING: Release publishes the records. Acquire on failure: another thread's, which
            // pairs with its Release.
            match bucket.compare_exchange(
                ptr::null_mut(),
                new,
                Ordering::Release,
                Ordering::Acquire,
            ) {
                Ok(_) => at = new,
                Err(theirs) => {
                    // SAFETY: not shared.
                    drop(unsafe { Box::from_raw(new) });
                    at = theirs;
                }
            }
        }
        // SAFETY: buckets live as long as the roster.
        unsafe { &*at }
    }
}

impl<R> Roster<R> {
    /// One more than the highest number ever leased.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        // ORDERING: Acquire; pairs with the Release in `lease`: who has seen something of a record
        // counts it.
        self.len.load(Ordering::Acquire)
    }

    /// The record with this number, which was leased before.
    #[inline]
    pub(crate) fn get(&self, number: usize) -> &R {
        let (bucket, offset) = locate(number);
        &self.known(bucket).records[offset]
    }

    /// All records ever leased.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &R> {
        (0..self.len()).map(|number| self.get(number))
    }

    /// Ends the lease of a record.
    pub(crate) fn release(&self, number: usize) {
        let (bucket, offset) = locate(number);
        // ORDERING: Release; pairs with the Acquire in `Bucket::lease` and `lease_if_free`: the
        // next holder sees all that this one did.
        self.known(bucket).free[offset / WORD].fetch_or(bit(offset), Ordering::Release);
    }

    /// Leases this very record, if nobody does.
    pub(crate) fn lease_if_free(&self, number: usize) -> bool {
        let (bucket, offset) = locate(number);
        let word = &self.known(bucket).free[offset / WORD];
        // ORDERING: Relaxed; a look to save the RMW.
        if word.load(Ordering::Relaxed) & bit(offset) == 0 {
            return false;
        }
        // ORDERING: Acquire; pairs with the Release in `release`.
        word.fetch_and(!bit(offset), Ordering::Acquire) & bit(offset) != 0
    }

    fn known(&self, bucket: usize) -> &Bucket<R> {
        // ORDERING: Relaxed; whoever knows a number, from `len` or a lease, has seen its bucket.
        let at = self.buckets[bucket].load(Ordering::Relaxed);
        // SAFETY: a number that was leased lies in a bucket that was made; buckets live as long as
        // the roster.
        unsafe { at.as_ref() }.expect("the record was leased before")
    }
}

impl<R: Default> Bucket<R> {
    fn new(len: usize) -> Self {
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
    /// Leases the lowest free record.
    fn lease(&self) -> Option<usize> {
        for (index, word) in self.free.iter().enumerate() {
            // ORDERING: Relaxed; the RMW below decides.
            let mut free = word.load(Ordering::Relaxed);
            while free != 0 {
                let lowest = free & free.wrapping_neg();
                // ORDERING: Acquire; pairs with the Release in `release`.
                let before = word.fetch_and(!lowest, Ordering::Acquire);
                if before & lowest != 0 {
                    return Some(index * WORD + lowest.trailing_zeros() as usize);
                }
                free = before & !lowest;
            }
        }
        None
    }
}

impl<R> Drop for Roster<R> {
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

fn bit(offset: usize) -> u64 {
    1 << (offset % WORD)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{locate, Roster};

    #[test]
    fn numbers_are_located_without_gaps() {
        let places: Vec<_> = [0, 7, 8, 23, 24].into_iter().map(locate).collect();
        assert_eq!(places, [(0, 0), (0, 7), (1, 0), (1, 15), (2, 0)]);
    }

    #[test]
    fn the_lowest_free_number_is_leased() {
        let roster = Roster::<u32>::new();
        let leased: Vec<_> = (0..1000).map(|_| roster.lease()).collect();
        assert_eq!(leased, (0..1000).collect::<Vec<_>>());
        roster.release(700);
        roster.release(5);
        assert_eq!((roster.lease(), roster.lease()), (5, 700));
        assert_eq!(roster.len(), 1000);
        assert!(!roster.lease_if_free(3));
        roster.release(3);
        assert!(roster.lease_if_free(3));
    }
}
