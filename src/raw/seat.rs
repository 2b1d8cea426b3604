//! A seat: everything that one handle owns, and the operations of its transactions.
//!
//! The seat keeps the state of the transaction, so that a forgotten transaction is found and ended
//! at the next use of the seat, or when it is dropped.

use super::drops::drop_all;
use super::hold::Spot;
use super::joint::{Party, Record, Tail, Tails};
use super::lanes::Lanes;
use super::state::State;
use crate::sync::UnsafeCell;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// The private state of one handle.
///
/// Methods on `&self` run no user code and keep no borrow, so that they never meet each other.
pub(crate) struct Seat<T> {
    state: UnsafeCell<State<T>>,
    lanes: Arc<Lanes<T>>,
}

// SAFETY: a seat owns what it points to or shares it as `Lanes` does; items are of type T. It has
// no tie to the thread that made it.
unsafe impl<T: Send> Send for Seat<T> {}

impl<T> Seat<T> {
    pub(crate) fn new(lanes: Arc<Lanes<T>>) -> Self {
        Self {
            state: UnsafeCell::new(State::new(&lanes)),
            lanes,
        }
    }

    #[cfg(all(loom, test))]
    pub(crate) fn lanes(&self) -> &Lanes<T> {
        &self.lanes
    }

    /// Runs `step` on the state. It must run no user code that could come back here.
    #[inline]
    fn with<R>(&self, step: impl FnOnce(&mut State<T>, &Lanes<T>) -> R) -> R {
        self.state.with_mut(|state| {
            // SAFETY: the seat is not Sync, and no step calls anything that calls `with`.
            step(unsafe { &mut *state }, &self.lanes)
        })
    }

    /// Ends what a forgotten transaction left.
    #[inline]
    pub(crate) fn settle(&mut self) {
        let open = self.with(|state, _| state.producer.staged() | state.hold.len());
        if open != 0 {
            self.settle_forgotten();
        }
    }

    #[cold]
    fn settle_forgotten(&mut self) {
        if self.with(|state, _| state.taken) {
            self.drop_taken();
        }
        self.abort();
    }

    /// Stages an item.
    #[inline]
    pub(crate) fn stage(&self, item: T) {
        self.with(|state, lanes| state.stage(lanes, item));
    }

    /// Stages all items. The iterator cannot come back here: it would need this seat.
    pub(crate) fn stage_all(&mut self, mut items: impl Iterator<Item = T>) {
        self.with(|state, lanes| loop {
            if state.producer.is_full() {
                state.make_room(lanes);
            }
            if state.producer.stage_from(&mut items) {
                break;
            }
        });
    }

    /// Staged items.
    #[inline]
    pub(crate) fn staged(&self) -> usize {
        self.with(|state, _| state.producer.staged())
    }

    /// Pushes one item, committed at once.
    #[inline]
    pub(crate) fn push(&mut self, item: T) {
        self.with(|state, lanes| state.push(lanes, item));
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
    pub(crate) fn pop_batch(&mut self, most: usize, items: &mut Vec<T>) -> usize {
        self.with(|state, lanes| {
            let count = state.consumer.take_all(lanes, items, most);
            state.desk().count_popped(count);
            count
        })
    }

    /// Holds one item more: the item and how often it was delivered.
    #[inline]
    #[allow(clippy::mut_from_ref)] // each call gives out another item
    pub(crate) fn hold(&self) -> Option<(&mut T, u32)> {
        let (item, attempts) = self.with(|state, lanes| {
            if state.consumer.take(lanes, &mut state.hold, 1) == 0 {
                return None;
            }
            state.desk().count_taken(1);
            let held = state.hold.newest();
            // SAFETY: held just now.
            Some((held.item(), unsafe { held.attempts() }))
        })?;
        // SAFETY: the item was held just now, and only this call gives it out. While the seat is
        // borrowed it does not move: only methods on `&mut self` take items out.
        Some((unsafe { &mut *item }, attempts))
    }

    /// Holds up to `most` items more.
    pub(crate) fn hold_batch(&self, most: usize) -> HeldItems<'_, T> {
        let (spot, left) = self.with(|state, lanes| {
            let spot = state.hold.end();
            let count = state.consumer.take_all(lanes, &mut state.hold, most);
            state.desk().count_taken(count);
            (spot, count)
        });
        HeldItems {
            seat: self,
            spot,
            left,
            items: PhantomData,
        }
    }

    /// Held items, or those left to take out after a commit.
    #[inline]
    pub(crate) fn held(&self) -> usize {
        self.with(|state, _| state.hold.len())
    }

    /// Commits: publishes what is staged, and leaves what is held to be taken out.
    #[inline]
    pub(crate) fn commit(&mut self) {
        self.with(|state, _| {
            if state.producer.staged() > 0 {
                state.publish();
            }
        });
        self.commit_held();
    }

    /// Leaves what is held to be taken out.
    #[inline]
    fn commit_held(&mut self) {
        self.with(|state, _| {
            let held = state.hold.len();
            if held > 0 {
                state.taken = true;
                state.desk().count_committed(held);
            }
        });
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
        self.with(|state, lanes| {
            let held = state.hold.len();
            if held > 0 {
                state.hold.give_back();
                state.consumer.aborted(lanes);
                state.desk().count_aborted(held);
            }
        });
        drop_all(|| self.with(|state, _| state.producer.unstage()));
    }
}

impl<T> Drop for Seat<T> {
    fn drop(&mut self) {
        /// Leaves also when a destructor of an item panics.
        struct Leave<'s, T>(&'s mut Seat<T>);
        impl<T> Drop for Leave<'_, T> {
            fn drop(&mut self) {
                self.0.with(State::leave);
            }
        }
        Leave(self).0.settle();
    }
}

impl<T> Party for Seat<T> {
    fn collect(&self, tails: &mut Tails) {
        self.with(|state, _| {
            if let Some(shard) = state.staging_shard() {
                tails.push(Tail {
                    shard: NonNull::from(shard).as_ptr().cast_const().cast(),
                    tail: state.producer.next(),
                });
            }
        });
    }

    fn announce(&self, record: Record) {
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
            }
        });
        self.commit_held();
    }
}

/// Items that one call has added to a transaction's hold, each given out once.
pub(crate) struct HeldItems<'t, T> {
    seat: &'t Seat<T>,
    spot: Spot,
    left: usize,
    items: PhantomData<&'t mut T>,
}

impl<'t, T> HeldItems<'t, T> {
    /// The next item and how often it was delivered.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<(&'t mut T, u32)> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let (item, attempts) = self.seat.with(|state, _| {
            let held = state.hold.step(&mut self.spot);
            // SAFETY: held by the call that made this iterator.
            (held.item(), unsafe { held.attempts() })
        });
        // SAFETY: filled by the call that made this iterator, at an address that does not move; each
        // spot is given out once, by that call; while `'t` lasts the seat is borrowed, and only
        // methods on `&mut self` take items out.
        Some((unsafe { &mut *item }, attempts))
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.left
    }
}
