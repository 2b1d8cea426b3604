//! The mode of a queue, and its life from open to closed and drained: flags in the word of its wait queue for items, so
//! that a push and a pop read one word.
//!
//! `close` sets `CLOSED`, passes a heavy barrier, and sets `SEALED`: each push that began before has been published then, or
//! sees the flag. A pop that finds nothing [seals](Ready::seal) and looks again before it says that the queue is drained.
//!
//! So a push announces itself before it reads the word. A plain push publishes first: if the queue is open afterwards, every
//! pop that could return `Closed` finds the item; otherwise it takes the item back. A staged push cannot be taken back, since a
//! commit cannot fail, so its transaction sets a flag on its counters first: either it sees `CLOSED` and is refused, or the
//! pop sees the flag and waits for its end. A transaction that holds an item is open by that already.
//!
//! | flag | meaning | set |
//! |---|---|---|
//! | `BOUNDED` | the queue has a capacity | initially |
//! | `REGISTERED` | items have metadata, which pushes determine | initially |
//! | `SLOW_POPS` | pops check more than the shards or the order | initially, or before the first item is delayed |
//! | `SORTED` | items are taken from an order, and not from the shards | initially |
//! | `NOTIFY_ENDS` | ends of transactions and pops notify the waiters for the queue to be idle | by the first of these; initially where barriers are symmetric |
//! | `CLOSED` | pushes are refused | by `close` |
//! | `SEALED` | the heavy barrier of `close` is done | by `close` |
//! | `DRAINED` | nothing is ready, and nothing can become ready | by a pop that found this |

use crate::sync::{barrier, planted, step, SMALL};
use crate::wait::{DueTimer, WaitQueue, WaitWord};
use std::sync::Arc;

pub(super) const BOUNDED: usize = WaitWord::quiet(0);
pub(super) const REGISTERED: usize = WaitWord::quiet(1);
pub(super) const SLOW_POPS: usize = WaitWord::quiet(2);
pub(super) const SORTED: usize = WaitWord::quiet(3);
pub(super) const NOTIFY_ENDS: usize = WaitWord::quiet(4);
const CLOSED: usize = WaitWord::loud(0);
const SEALED: usize = WaitWord::loud(1);
pub(super) const DRAINED: usize = WaitWord::loud(2);

/// One of these: a push cannot take the fast path.
pub(super) const SLOWS_PUSH: usize = BOUNDED | REGISTERED | CLOSED;
/// One of these: a pop by an order cannot take the fast path.
const SLOWS_SORTED_POP: usize = SLOW_POPS | CLOSED | WaitWord::SERVING;
/// One of these: a pop from the shards cannot take the fast path.
const SLOWS_POP: usize = SLOWS_SORTED_POP | REGISTERED | SORTED;
/// One of these: a pop checks more than the shards.
const CHECKS: usize = SLOW_POPS | SORTED;
/// One of these: somebody may wait for the end of a transaction or of a pop, and not only for what it publishes. A caller has
/// waited for the queue to be idle, or the queue is closed, and its waiters wait for it to be drained.
pub(super) const AWAITS_ENDS: usize = NOTIFY_ENDS | CLOSED;
/// One of these: a pop has to release a permit, or its end may be awaited.
pub(super) const HAS_WORK_AFTER_POP: usize = BOUNDED | AWAITS_ENDS;

/// The word of a queue, or a handle, with the flags that apply.
pub(super) fn mode(flags: impl IntoIterator<Item = (bool, usize)>) -> WaitWord {
    let set = flags.into_iter().filter(|(is_set, _)| *is_set);
    WaitWord::of(set.fold(0, |word, (_, flag)| word | flag))
}

impl WaitWord {
    #[inline]
    pub(crate) fn is_closed(self) -> bool {
        self.has(CLOSED)
    }

    /// Whether a pop from the shards cannot take the fast path.
    #[inline]
    pub(crate) fn slows_pop(self) -> bool {
        self.has(SLOWS_POP)
    }

    /// Whether a pop by an order cannot take the fast path.
    #[inline]
    pub(super) fn slows_sorted_pop(self) -> bool {
        self.has(SLOWS_SORTED_POP)
    }

    /// Whether a pop cannot take the fast path, but only because it has to check more than the shards.
    #[inline]
    pub(super) fn slows_only_checks(self) -> bool {
        self.has(SLOW_POPS) && !self.has(SLOWS_POP & !SLOW_POPS)
    }

    /// Whether a push or a pop has to do with permits, and nothing else.
    #[inline]
    pub(super) fn is_only_bounded(self) -> bool {
        self.has(BOUNDED) && !self.has(CLOSED | CHECKS)
    }
}

/// The wait queue for items, with the mode of the queue in its word.
#[derive(Clone)]
pub(crate) struct Ready(Arc<DueTimer>);

impl Ready {
    pub(crate) fn new(due_timer: &Arc<DueTimer>) -> Self {
        Self(Arc::clone(due_timer))
    }

    /// The wait queue of a queue with this mode.
    pub(crate) fn wait_queue(mut mode: WaitWord) -> WaitQueue {
        barrier::prepare();
        // Models begin to notify ends where they need it.
        if !SMALL && !barrier::is_asymmetric() {
            mode = mode.with(WaitWord::of(NOTIFY_ENDS));
        }
        WaitQueue::new(mode, false)
    }

    /// Whether the queue is open, seen after what this thread stored before. False if only [`WaitQueue::fenced_word`] can say
    /// it.
    #[inline]
    pub(super) fn is_surely_open(&self) -> bool {
        !self.word_after_pop().has(CLOSED | WaitWord::ARMED)
    }

    /// Wakes waiters for `count` items that a transaction published when it ended. Returns whether others
    /// await the end itself.
    #[inline]
    #[must_use = "those that wait for the queue to be idle or drained must be notified"]
    pub(super) fn notify_end(&self, count: usize) -> bool {
        planted!("waitqueue.ends-unsaid", return false);
        let word = self.word_after_pop();
        !word.has_only(BOUNDED | REGISTERED | CHECKS) && notify_end_slowly(self, count)
    }

    /// The word after an item was taken for good just now. Pairs with the heavy barriers of [`Ready::close`] and
    /// [`Ready::begin_notifying_ends`].
    #[inline]
    pub(super) fn word_after_pop(&self) -> WaitWord {
        barrier::compiler();
        self.word()
    }

    /// Makes ends of transactions and committed pops notify the waiters for the queue to be idle from now on. What other
    /// threads did before they could see the flag is visible afterwards.
    pub(super) fn begin_notifying_ends(&self) {
        self.announce(NOTIFY_ENDS, 0, "waitqueue.notify-ends");
    }

    /// Refuses pushes from now on; returns whether they were not refused before.
    pub(crate) fn close(&self) -> bool {
        // The barrier is heavy even where the wait queue is armed already: pops read the word behind a compiler barrier
        // alone.
        let closes = self.announce(CLOSED, SEALED, "waitqueue.close");
        if closes {
            step!("waitqueue.closes-unsaid", self.wake_all());
        }
        closes
    }

    /// Makes every push that began before the close visible.
    pub(crate) fn seal(&self) {
        if self.word().has(SEALED) {
            // Pairs with the barrier of `close`, which came before the flag.
            barrier::full("waitqueue.seal");
        } else {
            barrier::heavy_against_compiler("waitqueue.seal-early");
        }
    }
}

#[cold]
#[inline(never)]
fn notify_end_slowly(wait_queue: &WaitQueue, count: usize) -> bool {
    let word = wait_queue.notify_slowly(count);
    word.has(NOTIFY_ENDS) || word.is_closed() && word.waiting() > 0
}

deref!([] Ready => WaitQueue, |ready| ready.0.wait_queue());
