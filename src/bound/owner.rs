//! The owner of a record: where a handle puts its permits back, and where it takes permits.

use super::free_count::{FreeCount, Sight};
use super::Capacity;
use std::sync::Arc;

/// A record that a handle has acquired. One thread uses it at a time.
pub(crate) struct RecordOwner {
    record: Arc<FreeCount>,
    number: usize,
    /// All permits ever put into the record.
    put: usize,
    source: Source,
}

/// The free count where permits were found last, as it was seen then.
struct Source {
    number: usize,
    count: Arc<FreeCount>,
    seen: Sight,
}

/// A free count that a search visits, and what it has.
pub(super) struct Found<'a> {
    pub(super) number: usize,
    pub(super) count: &'a Arc<FreeCount>,
    pub(super) seen: Sight,
}

/// The number of the pool: greater than that of any record.
pub(super) const POOL: usize = usize::MAX;

impl RecordOwner {
    pub(crate) fn new(capacity: &Capacity) -> Self {
        let number = capacity.records.acquire_for_use();
        let record = Arc::clone(capacity.records.get(number));
        Self {
            number,
            put: record.put_so_far(),
            source: Source {
                number: POOL,
                count: Arc::clone(&capacity.pool),
                seen: capacity.pool.snapshot(),
            },
            record,
        }
    }

    /// Takes up to `want` permits, fewer only if no permit was free at some point during the call.
    #[must_use = "the permits are taken"]
    pub(crate) fn take(&mut self, capacity: &Capacity, want: usize) -> usize {
        if self.take_seen(want) {
            return want;
        }
        let source = &mut self.source;
        let from = match source.number {
            POOL => self.number,
            // Others take from there too: the next one may be free of them.
            number if source.seen.free >= want => number + 1,
            number => number,
        };
        capacity.gather(want, from, |found| {
            source.seen = found.seen;
            if source.number != found.number {
                source.number = found.number;
                source.count = Arc::clone(found.count);
            }
        })
    }

    /// Takes `want` permits or none; none only if fewer were free at some point during the call. Returns the same as
    /// [`Capacity::gather_all`].
    pub(crate) fn take_all(&mut self, capacity: &Capacity, want: usize) -> Result<(), usize> {
        if self.take_seen(want) {
            return Ok(());
        }
        capacity.gather_all(want)
    }

    /// Takes `want` of the permits seen at the source: `false` if they are fewer, or another thread has taken some
    /// since.
    #[inline]
    pub(crate) fn take_seen(&mut self, want: usize) -> bool {
        let Source { count, seen, .. } = &mut self.source;
        want <= seen.free && count.take(seen, want) == want
    }

    /// Puts permits back. Their waiters must be woken.
    #[inline]
    pub(crate) fn put_back(&mut self, permits: usize) {
        self.put = self.put.wrapping_add(permits);
        self.record.put_up_to(self.put);
    }

    /// Releases the record. What is in it stays there, where others find it.
    pub(crate) fn leave(self, capacity: &Capacity) {
        capacity.release_record(self.number);
    }
}
