//! A seat: everything that one handle owns, and the operations of its transactions.
//!
//! The seat keeps the state of the transaction, so that a forgotten transaction is found and ended
//! at the next use of the seat, or when it is dropped.

use super::access::{Access, Loan};
use super::batch::Batch;
use super::drops::drop_all;
use super::hold::Spot;
use super::joint::{Party, Record, Tail, Tails};
use super::lanes::Lanes;
use super::sink::Sink;
use super::state::State;
use super::tag::{Entry, Stored, Tag};
use crate::sync::{defer_with, weak, AtomicBool, Ordering, UnsafeCell};
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// The private state of one handle.
///
/// Its methods run no user code while they have the state, but for destructors of items that were
/// taken out of it.
pub(crate) struct Seat<T> {
    state: UnsafeCell<State<T>>,
    /// Whether a [`Loan`] lives, or was forgotten.
    pub(super) lent: AtomicBool,
    lanes: Arc<Lanes<T>>,
}

// SAFETY: a seat owns what it points to or shares it as `Lanes` does; items are of type T. It has
// no tie to the thread that made it.
unsafe impl<T: Send> Send for Seat<T> {}

impl<T> Seat<T> {
    pub(crate) fn new(lanes: Arc<Lanes<T>>) -> Self {
        Self {
            state: UnsafeCell::new(State::new(&lanes)),
            lent: AtomicBool::new(false),
            lanes,
        }
    }

    /// Runs `step` on the state. It must run no user code that could come back here.
    #[inline]
    pub(super) fn with<R>(&mut self, step: impl FnOnce(&mut State<T>, &Lanes<T>) -> R) -> R {
        // SAFETY: `&mut self`, and the contract of this method.
        unsafe { self.with_shared(step) }
    }

    /// # Safety
    ///
    /// The caller is the only one to use the seat until `step` returns.
    #[inline]
    pub(super) unsafe fn with_shared<R>(
        &self,
        step: impl FnOnce(&mut State<T>, &Lanes<T>) -> R,
    ) -> R {
        self.state.with_mut(|state| {
            // SAFETY: by contract.
            step(unsafe { &mut *state }, &self.lanes)
        })
    }

    /// The shared use of the seat.
    #[inline]
    pub(crate) fn access(&self) -> Access<'_, T> {
        Access::new(self)
    }

    /// Begins a batch of held items.
    ///
    /// # Panics
    ///
    /// If the seat is lent.
    #[track_caller]
    pub(crate) fn batch(&self) -> Batch<'_, T> {
        Batch::new(self.lend())
    }

    /// Lends the seat until the loan is dropped.
    ///
    /// # Panics
    ///
    /// If it is lent.
    #[inline]
    #[track_caller]
    pub(crate) fn lend(&self) -> Loan<'_, T> {
        self.assert_not_lent();
        // ORDERING: Relaxed; only the thread that has the transaction reads it before the loan ends.
        self.lent.store(true, Ordering::Relaxed);
        Loan::new(self)
    }

    #[inline]
    #[track_caller]
    pub(crate) fn assert_not_lent(&self) {
        assert!(
            !self.is_lent(),
            "transaction is borrowed by a `pop_async`/`push_async` future or a `Peek` that is still \
             alive, or by a call that has not returned yet",
        );
    }

    #[inline]
    pub(crate) fn is_lent(&self) -> bool {
        // ORDERING: Acquire; pairs with `loan.end`.
        self.lent.load(weak!("seat.is-lent", Acquire))
    }

    /// Lends the seat to a future that has it alone anyway.
    pub(crate) fn mark_lent(&mut self) {
        // ORDERING: Relaxed; the seat is ours alone.
        self.lent.store(true, Ordering::Relaxed);
    }

    /// Ends a loan that has no [`Loan`], or was forgotten.
    pub(crate) fn end_loan(&mut self) {
        // ORDERING: Relaxed; the seat is ours alone.
        self.lent.store(false, Ordering::Relaxed);
    }

    /// Whether a transaction or a future was forgotten.
    #[inline]
    pub(crate) fn is_unsettled(&mut self) -> bool {
        let lent = usize::from(self.is_lent());
        self.with(|state, _| state.producer.staged() | state.hold.len() | lent) != 0
    }

    /// Ends what a forgotten transaction left.
    #[cold]
    pub(crate) fn settle(&mut self) {
        if self.is_taken() {
            self.drop_taken();
        }
        self.abort();
    }

    /// Whether what is held was committed, and only waits to be taken out.
    pub(crate) fn is_taken(&mut self) -> bool {
        self.with(|state, _| state.taken)
    }

    /// Stages all items. The iterator cannot come back here: it would need this seat.
    pub(crate) fn stage_all(&mut self, mut items: impl Iterator<Item = T>) {
        self.with(|state, lanes| loop {
            state.make_room_for_one(lanes);
            if state.producer.stage_from(&mut items) {
                break;
            }
        });
    }

    /// Stages an item with its time.
    pub(crate) fn stage_since(&mut self, item: T, since: u64) {
        self.with(|state, lanes| {
            state.note_time(lanes, since);
            state.producer.stage(item);
        });
    }

    /// Pushes one item, committed at once.
    #[inline]
    pub(crate) fn push(&mut self, item: T) {
        self.with(|state, lanes| state.push(lanes, item));
    }

    /// Pushes one item with its time, committed at once.
    pub(crate) fn push_since(&mut self, item: T, since: u64) {
        self.with(|state, lanes| {
            state.note_time(lanes, since);
            state.push(lanes, item);
        });
    }

    /// Takes the item of the last [`Seat::push`] back, if nobody has, and nothing before it waits.
    pub(crate) fn retract(&mut self) -> Option<Entry<T>> {
        self.with(|state, _| state.retract())
    }

    /// As [`Access::go_to_head`].
    pub(crate) fn go_to_head(&mut self) {
        self.with(|state, lanes| state.consumer.go_to_head(lanes));
    }

    /// Takes one item, committed at once.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        self.with(|state, lanes| {
            let item = state.consumer.take_one(lanes)?;
            state.desk().count_popped(1);
            Some(item)
        })
    }

    /// Takes up to `most` items, committed at once.
    pub(super) fn pop_into(&mut self, most: usize, items: &mut impl Sink<T>) -> usize {
        self.with(|state, lanes| {
            let count = state.consumer.take_all(lanes, items, most);
            state.desk().count_popped(count);
            count
        })
    }

    /// Counts an item that was popped elsewhere.
    pub(crate) fn count_popped(&mut self) {
        self.with(|state, _| state.desk().count_popped(1));
    }

    /// Staged items.
    #[inline]
    pub(crate) fn staged(&mut self) -> usize {
        self.with(|state, _| state.producer.staged())
    }

    /// Held items, or those left to take out after a commit.
    #[inline]
    pub(crate) fn held(&mut self) -> usize {
        self.with(|state, _| state.hold.len())
    }

    /// Says that a transaction stages something, unless `admit` refuses then.
    pub(crate) fn begin_staging_if(&mut self, admit: impl FnOnce() -> bool) -> bool {
        self.with(|state, _| state.begin_staging_if(admit))
    }

    /// Commits: publishes what is staged, and leaves what is held to be taken out. Says how many
    /// items were staged, and how many held.
    #[inline]
    pub(crate) fn commit(&mut self) -> (usize, usize) {
        self.with(|state, _| {
            let staged = state.producer.staged();
            if staged > 0 {
                state.publish();
                state.desk().end_staging();
            }
            (staged, state.commit_held())
        })
    }

    /// Takes out the next committed item.
    #[inline]
    pub(crate) fn take_out(&mut self) -> Option<T> {
        self.with(|state, _| {
            let item = state.hold.take_out();
            state.taken = state.hold.len() > 0;
            item
        })
    }

    /// Drops the committed items that were not taken out.
    #[inline]
    pub(crate) fn drop_taken(&mut self) {
        if std::mem::needs_drop::<T>() {
            drop_all(|| self.take_out());
        } else {
            self.with(|state, _| {
                state.taken = false;
                state.hold.clear();
            });
        }
    }

    /// Gives back what is held, then drops what is staged.
    pub(crate) fn abort(&mut self) {
        self.give_back();
        self.end_staging();
        self.drop_staged();
    }

    /// Gives back what is held, and says how many items that were.
    pub(crate) fn give_back(&mut self) -> usize {
        self.with(|state, lanes| {
            let held = state.hold.len();
            if held > 0 {
                state.hold.give_back(lanes.common());
                state.consumer.aborted(lanes);
                state.desk().count_aborted(held);
            }
            held
        })
    }

    /// Gives back what is held without a delivery counted, and says how many items that were.
    pub(crate) fn give_back_uncounted(&mut self) -> usize {
        self.with(|state, lanes| {
            let held = state.hold.len();
            state.hold.uncount();
            state.hold.give_back(lanes.common());
            state.desk().uncount_taken(held);
            held
        })
    }

    /// Takes the next held item from `spot` that is picked, by its address and its tag, out of the
    /// transaction, which must say later how that ended, by [`Seat::count_aborted`].
    pub(crate) fn remove_next(
        &mut self,
        spot: &mut Spot,
        pick: impl Fn(&T, Tag) -> bool,
    ) -> Option<Entry<T>> {
        // SAFETY: `&mut self`: no transaction gives items out any more.
        self.with(|state, _| unsafe { state.hold.remove_next(spot, pick) })
    }

    /// Counts removed items that are somewhere else by now.
    pub(crate) fn count_aborted(&mut self, items: usize) {
        self.with(|state, _| state.desk().count_aborted(items));
    }

    /// Holds all items that the next lane has now, from `lane` on, which moves behind it. False: there is
    /// none.
    pub(crate) fn hold_lane(&mut self, lane: &mut usize) -> bool {
        self.with(|state, lanes| {
            let Some(next) = lanes.next_from(*lane) else {
                return false;
            };
            *lane = next + 1;
            let most = usize::try_from(lanes.ready_in(next)).unwrap_or(usize::MAX);
            state.desk().count_taken(most);
            let held = state.consumer.take_lane(lanes, next, &mut state.hold, most);
            state.desk().uncount_taken(most - held);
            true
        })
    }

    /// Counts items as taken that are elsewhere: shown to somebody.
    pub(crate) fn count_shown(&mut self, items: usize) {
        self.with(|state, _| state.desk().count_taken(items));
    }

    /// Counts no more what was [counted](Seat::count_shown).
    pub(crate) fn uncount_shown(&mut self, items: usize) {
        self.with(|state, _| state.desk().uncount_taken(items));
    }

    /// Shows all held items. `visit` cannot come back here: it would need this seat.
    pub(crate) fn visit(&mut self, mut visit: impl FnMut(&T, Tag)) {
        self.with(|state, _| {
            let mut spot = Spot::default();
            while let Some(held) = state.hold.next_at(&mut spot) {
                // SAFETY: held, and nobody else uses it.
                unsafe { visit(&*held.item(), held.tag()) };
            }
        });
    }

    /// The number of the handle's desk.
    pub(crate) fn desk(&mut self) -> usize {
        self.with(|state, _| state.desk_number)
    }

    /// Says that nothing of what is staged will be published.
    pub(crate) fn end_staging(&mut self) {
        self.with(|state, _| state.desk().end_staging());
    }

    /// Takes the last staged item back out.
    pub(crate) fn unstage(&mut self) -> Option<Entry<T>> {
        self.with(|state, _| state.producer.unstage())
    }

    /// Drops what is staged.
    pub(crate) fn drop_staged(&mut self) {
        drop_all(|| self.unstage());
    }
}

impl<T, M> Seat<Stored<T, M>> {
    /// Takes up to `most` items, committed at once, without what the order knows of them.
    pub(crate) fn pop_batch(&mut self, most: usize, items: &mut Vec<T>) -> usize {
        self.pop_into(most, items)
    }
}

impl<T> Drop for Seat<T> {
    fn drop(&mut self) {
        // Leaves also if a destructor of an item panics.
        defer_with(self, |seat| seat.with(State::leave)).settle();
    }
}

impl<T> Party for Seat<T> {
    fn collect(&mut self, tails: &mut Tails) {
        self.with(|state, _| {
            if let Some(shard) = state.staging_shard() {
                tails.push(Tail {
                    shard: NonNull::from(shard).as_ptr().cast_const().cast(),
                    tail: state.producer.next(),
                });
            }
        });
    }

    fn announce(&mut self, record: Record) {
        self.with(|state, _| {
            if let Some(shard) = state.staging_shard() {
                shard.announce(record.0);
            }
        });
    }

    fn conclude(&mut self) {
        self.with(|state, _| {
            if let Some(shard) = state.staging_shard() {
                state.publish();
                shard.announce(ptr::null());
                state.desk().end_staging();
            }
            state.commit_held();
        });
    }
}
