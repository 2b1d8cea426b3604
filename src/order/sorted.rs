//! The common part of all disciplines: locks, choices among racks, and a strict Empty.
//!
//! Items come into a rack only from the lanes, under its lock, which is had from before they are claimed
//! until they are in. They leave it under its lock too.
//!
//! With several racks a consumer uses its own one, to which it moves what it finds in the lanes, and
//! looks at another one, whose rank it compares: two choices. The other one stays the same for a while.
//! (Rihani, Sanders, Dementiev, "`MultiQueues`", 2015; Williams, Sanders, Dementiev, "Engineering
//! `MultiQueues`", 2021.) While there is only one consumer it looks at all racks, so its order is exact.

use super::rack::{Rack, Stock};
use super::{Discipline, Fit, Given, Next, Order, Roll};
use crate::agenda::Agenda;
use crate::raw::{Entry, Intake, Lanes, Remainder};
use crate::sync::{AtomicUsize, MutexGuard, Ordering};
use crossbeam_utils::CachePadded;
use std::any::Any;
use std::sync::Arc;

/// How many times the same other rack is looked at.
const STICKY: usize = 16;

/// Items in the order of a discipline.
pub(crate) struct Sorted<T, O, R> {
    racks: Box<[CachePadded<Rack<T, O>>]>,
    roll: R,
    lanes: Arc<Lanes<T>>,
    minds_leaving: bool,
    /// Consumers that there are now, and that ever came.
    consumers: CachePadded<Consumers>,
}

/// How many racks to choose from.
#[derive(Clone, Copy)]
enum Choice {
    Two,
    All,
}

struct Consumers {
    present: AtomicUsize,
    ever: AtomicUsize,
}

impl<T: Send, O: Order<T>, R: Roll<T>> Sorted<T, O, R> {
    /// Makes a discipline of some orders, at least one, for a queue with these lanes.
    pub(crate) fn new(
        orders: impl IntoIterator<Item = O>,
        roll: R,
        lanes: &Arc<Lanes<T>>,
        agenda: &Arc<Agenda>,
    ) -> Self {
        let rack = |order| {
            let intake = Intake::new(Arc::clone(lanes));
            CachePadded::new(Rack::new(order, intake, Arc::clone(agenda)))
        };
        let racks: Box<[_]> = orders.into_iter().map(rack).collect();
        let minds_leaving = racks.iter().any(|rack| rack.lock().order.minds_leaving());
        Self {
            racks,
            roll,
            lanes: Arc::clone(lanes),
            minds_leaving,
            consumers: CachePadded::new(Consumers {
                present: AtomicUsize::new(0),
                ever: AtomicUsize::new(0),
            }),
        }
    }

    pub(crate) fn roll(&self) -> &R {
        &self.roll
    }

    /// Shows the orders one after the other, each under its lock, until `look` gives something. What the
    /// lanes have is in one of them.
    pub(crate) fn each<B>(&self, mut look: impl FnMut(&mut O) -> Option<B>) -> Option<B> {
        self.take_in();
        self.racks.iter().find_map(|rack| {
            let mut stock = rack.lock();
            let found = look(&mut stock.order);
            rack.show_rank(&stock);
            found
        })
    }

    /// Takes the next item of the only rack.
    #[inline]
    fn take_only(&self, for_good: bool) -> Next<Given<T>> {
        let mut stock = self.racks[0].lock();
        if stock.take_in() {
            return Next::Due;
        }
        let given = stock.order.next(for_good);
        given.map_or(Next::Nothing, Next::Item)
    }

    /// Takes the next item of one rack, or of a better other one.
    fn take_near(&self, number: usize, choice: Choice, for_good: bool) -> Next<Given<T>> {
        let (number, mut stock) = self.lock_from(number);
        if stock.take_in() {
            self.racks[number].show_rank(&stock);
            return Next::Due;
        }
        let other = self.choose(number, &mut stock, choice);
        if let Some(other) = other.filter(|&other| self.racks[other].rank() < stock.rank()) {
            self.racks[number].show_rank(&stock);
            drop(stock);
            if let Some(next) = self.take_if_ready(other, for_good) {
                return next;
            }
            stock = self.racks[number].lock();
        }
        let given = stock.order.next(for_good);
        self.racks[number].show_rank(&stock);
        given.map_or(Next::Nothing, Next::Item)
    }

    /// Whether there is one consumer at most.
    fn is_lone(&self) -> bool {
        // ORDERING: Relaxed; as in `join`.
        self.consumers.present.load(Ordering::Relaxed) < 2
    }

    /// The other rack to look at, if there is one.
    fn choose(&self, number: usize, stock: &mut Stock<T, O>, choice: Choice) -> Option<usize> {
        let count = self.racks.len();
        match choice {
            Choice::All => (0..count)
                .filter(|&other| other != number)
                .min_by_key(|&other| self.racks[other].rank()),
            Choice::Two => {
                let distance = 1 + stock.look() / STICKY % (count - 1);
                Some((number + distance) % count)
            }
        }
    }

    /// The lock of a rack, or if another thread has that, of the next one that is free.
    fn lock_from(&self, number: usize) -> (usize, MutexGuard<'_, Stock<T, O>>) {
        if let Some(stock) = self.racks[number].try_lock() {
            return (number, stock);
        }
        let count = self.racks.len();
        let mut others = (1..count).map(|step| (number + step) % count);
        let free = |number: usize| Some((number, self.racks[number].try_lock()?));
        let free = others.find_map(free);
        free.unwrap_or_else(|| (number, self.racks[number].lock()))
    }

    /// What is ready in a rack.
    fn take_if_ready(&self, number: usize, for_good: bool) -> Option<Next<Given<T>>> {
        let rack = &self.racks[number];
        let mut stock = rack.lock();
        let given = stock.order.next(for_good);
        rack.show_rank(&stock);
        given.map(Next::Item)
    }

    /// Takes the next item, and tells the roll of what is gone.
    #[inline]
    fn take_for(&self, consumer: Option<usize>, for_good: bool) -> Next<Entry<T>> {
        let count = self.racks.len();
        let next = match consumer {
            _ if count == 1 => self.take_only(for_good),
            Some(consumer) if !self.is_lone() => {
                self.take_near(consumer % count, Choice::Two, for_good)
            }
            _ => self.take_near(0, Choice::All, for_good),
        };
        let next = match next {
            Next::Nothing => self.take_anywhere(for_good),
            next => next,
        };
        next.map(|Given { entry, gone }| {
            if gone > 0 {
                self.roll.leave(entry.tag.order, gone);
            }
            entry
        })
    }

    /// Gives back the memory of lanes that are empty.
    fn leave_lanes(&self) {
        self.racks.iter().for_each(|rack| rack.lock().leave_lanes());
        self.lanes.vacate_all();
    }

    /// Looks everywhere.
    #[cold]
    fn take_anywhere(&self, for_good: bool) -> Next<Given<T>> {
        loop {
            let mut found = None;
            let remainder = self.lanes.remainder(|| {
                let mut racks = 0..self.racks.len();
                found = racks.find_map(|number| self.take_if_ready(number, for_good));
                found.is_none()
            });
            match (found, remainder) {
                (Some(next), _) => return next,
                (None, Remainder::Nothing) => {
                    self.leave_lanes();
                    return Next::Nothing;
                }
                (None, _) if self.take_in() => return Next::Due,
                (None, _) => {}
            }
        }
    }
}

impl<T: Send, O: Order<T>, R: Roll<T>> Discipline<T> for Sorted<T, O, R> {
    fn enrol(&self, item: &T) -> Option<u64> {
        self.roll.enrol(item)
    }

    fn enrol_again(&self, item: &T, order: u64) -> Option<u64> {
        self.roll.enrol_again(item, order)
    }

    fn is_limited(&self) -> bool {
        self.roll.is_limited()
    }

    fn fit(&self, items: &[T]) -> Fit {
        self.roll.fit(items)
    }

    fn leave(&self, order: u64) -> usize {
        let ready = if self.minds_leaving {
            let racks = self.racks.iter();
            racks.map(|rack| rack.lock().order.leave(order)).sum()
        } else {
            0
        };
        self.roll.leave(order, 1);
        ready
    }

    fn strike(&self, order: u64) {
        self.roll.leave(order, 1);
    }

    fn roll(&self) -> &dyn Any {
        &self.roll
    }

    fn join(&self) -> usize {
        // ORDERING: Relaxed, both; a choice that is right in any case.
        self.consumers.present.fetch_add(1, Ordering::Relaxed);
        self.consumers.ever.fetch_add(1, Ordering::Relaxed)
    }

    fn quit(&self) {
        // ORDERING: Relaxed; as above.
        self.consumers.present.fetch_sub(1, Ordering::Relaxed);
    }

    #[inline]
    fn take(&self, consumer: Option<usize>) -> Next<Entry<T>> {
        self.take_for(consumer, false)
    }

    #[inline]
    fn pop(&self, consumer: Option<usize>) -> (Next<Entry<T>>, usize) {
        let next = self.take_for(consumer, !self.minds_leaving);
        match &next {
            Next::Item(entry) if self.minds_leaving => {
                let ready = self.leave(entry.tag.order);
                (next, ready)
            }
            _ => (next, 0),
        }
    }

    fn take_in(&self) -> bool {
        let mut stock = self.racks[0].lock();
        let may_be_due = stock.take_in();
        self.racks[0].show_rank(&stock);
        may_be_due
    }

    fn counts(&self) -> (usize, usize) {
        let counts = self.racks.iter().map(|rack| {
            let stock = rack.lock();
            (stock.order.ready(), stock.order.waiting())
        });
        counts.fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1))
    }

    fn oldest(&self) -> Option<u64> {
        let racks = self.racks.iter();
        racks.filter_map(|rack| rack.lock().order.oldest()).min()
    }

    fn is_empty(&self) -> bool {
        let is_bare = |rack: &CachePadded<Rack<T, O>>| rack.lock().order.ready() == 0;
        let none_ready = || self.racks.iter().all(is_bare);
        self.lanes.remainder(none_ready) == Remainder::Nothing
    }

    fn has_none(&self) -> bool {
        self.racks.iter().all(|rack| {
            let stock = rack.lock();
            stock.order.ready() + stock.order.waiting() == 0
        })
    }

    fn advance(&self, now: u64) -> usize {
        let advance = |rack: &CachePadded<Rack<T, O>>| {
            let mut stock = rack.lock();
            let count = stock.advance(now);
            rack.show_rank(&stock);
            count
        };
        self.racks.iter().map(advance).sum()
    }
}
