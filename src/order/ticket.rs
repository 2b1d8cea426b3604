//! Tickets, which identify items.

use crate::sync::start;
use std::cell::Cell;
use std::num::NonZeroU64;
// From std, since the counter outlives all queues, and so all executions of a model.
use std::sync::atomic::{AtomicU64, Ordering};

/// How many numbers a thread takes at once, at least; it does not use the first of them.
const BLOCK: u64 = 1 << 10;

/// Identifies an item that was pushed with a priority or a due time, for [`cancel`](crate::Queue::cancel),
/// [`reschedule`](crate::Queue::reschedule) and [`reprioritize`](crate::PriorityQueue::reprioritize).
///
/// Tickets are unique across all queues.
///
/// ```
/// let queue = requeue::PriorityQueue::by_priority();
/// let ticket = queue.priority(1).push("job")?;
/// assert_eq!(queue.cancel(ticket), Some("job"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ticket(NonZeroU64);

impl Ticket {
    /// The bits of a number. Numbers wrap after some years at a million per second.
    pub(super) const BITS: u32 = 47;

    /// Creates a ticket that no item has.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(crate) fn new() -> Self {
        Self::first_of(1)
    }

    /// Creates `count` consecutive tickets that no item has, and returns the first.
    #[inline]
    pub(crate) fn first_of(count: usize) -> Self {
        std::thread_local! {
            static LAST: Cell<u64> = const { Cell::new(BLOCK - 1) };
        }
        let count = count as u64;
        let number = LAST.try_with(|last| {
            let mut number = last.get() + 1;
            if last.get() % BLOCK + count >= BLOCK {
                number = new_blocks(count) + 1;
            }
            last.set(number + count - 1);
            number
        });
        // The thread-locals are destroyed: take blocks for these numbers only.
        let number = number.unwrap_or_else(|_| new_blocks(count) + 1);
        Self::numbered(number).expect("the first number of a block is not used")
    }

    /// The nth of consecutive tickets, of which this is the first.
    #[inline]
    pub(crate) fn nth(self, nth: usize) -> Self {
        Self::of_store(self.number() + nth as u64)
    }

    /// `count` consecutive tickets, of which this is the first.
    pub(crate) fn and_next(self, count: usize) -> Vec<Self> {
        (0..count).map(|nth| self.nth(nth)).collect()
    }

    /// The ticket of an item that a store has given a number, which is not 0 and differs from the others of its queue.
    #[doc(hidden)]
    pub fn of_store(number: u64) -> Self {
        let number = number % (1 << Self::BITS);
        Self(NonZeroU64::new(number).unwrap_or(NonZeroU64::MIN))
    }

    /// The ticket with a number of up to [`Ticket::BITS`] bits; `None` for 0.
    #[inline]
    pub(super) fn numbered(number: u64) -> Option<Self> {
        NonZeroU64::new(number).map(Self)
    }

    #[inline]
    pub(crate) fn number(self) -> u64 {
        self.0.get()
    }

    /// The index of the block of its number.
    pub(super) fn block(self) -> u64 {
        self.number() / BLOCK
    }
}

/// The first number of new consecutive blocks, which have this many others.
#[cold]
fn new_blocks(count: u64) -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(start(Ticket::BITS) / BLOCK * BLOCK);
    const END: u64 = 1 << Ticket::BITS;
    let taken = (count + 1).next_multiple_of(BLOCK);
    loop {
        // ORDERING: Relaxed; only distinct numbers matter.
        let first = NEXT.fetch_add(taken, Ordering::Relaxed) % END;
        // Numbers that begin again at 0 are not consecutive.
        if first + taken <= END {
            return first;
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::thread;

    const TICKETS: usize = 3000;

    #[test]
    fn tickets_of_all_threads_differ() {
        let tickets: Vec<Ticket> = thread::scope(|scope| {
            let take = || (0..TICKETS).map(|_| Ticket::new()).collect::<Vec<_>>();
            let threads = [(); 4].map(|()| scope.spawn(take));
            let tickets = threads.into_iter().map(|thread| thread.join().unwrap());
            tickets.flatten().collect()
        });
        let different: HashSet<_> = tickets.iter().collect();
        assert_eq!(different.len(), 4 * TICKETS);
    }

    #[test]
    fn consecutive_tickets_differ_from_others() {
        let mut different = HashSet::new();
        for count in [1, 1022, 2, 1023, 1, 1024, 5000, 7, 1017, 1] {
            let first = Ticket::first_of(count);
            assert!(first.nth(count - 1).number() < 1 << Ticket::BITS);
            assert!((0..count).all(|nth| different.insert(first.nth(nth))));
            assert!(different.insert(Ticket::new()));
        }
    }
}
