//! The common part of all disciplines: the lock, and a strict Empty.
//!
//! Items come into the rack only from the lanes, or when they were shown, and leave it, all under its lock. So
//! whoever has the lock, finds nothing ready in the rack, and then finds the lanes [empty](Lanes::is_empty) at one instant,
//! knows that nothing was ready at that instant.

use super::rack::Rack;
use super::{Discipline, Fit, Given, Next, Order, Roll, Shown, Visit};
use crate::agenda::Agenda;
use crate::raw::{Entry, Intake, Lanes};
use crate::sync::{lock, planted, Mutex, MutexGuard};
use crossbeam_utils::CachePadded;
use std::any::Any;
use std::sync::Arc;

/// Items in the order of a discipline.
pub(crate) struct Sorted<T, O, R> {
    rack: CachePadded<Mutex<Rack<T, O>>>,
    roll: R,
    lanes: Arc<Lanes<T>>,
    minds_leaving: bool,
}

impl<T: Send, O: Order<T>, R: Roll<T>> Sorted<T, O, R> {
    /// Makes a discipline of an order for a queue with these lanes.
    pub(crate) fn new(order: O, roll: R, lanes: &Arc<Lanes<T>>, agenda: &Arc<Agenda>) -> Self {
        let minds_leaving = order.minds_leaving();
        let intake = Intake::new(Arc::clone(lanes));
        let rack = Rack::new(order, intake, Arc::clone(agenda));
        Self {
            rack: CachePadded::new(Mutex::new(rack)),
            roll,
            lanes: Arc::clone(lanes),
            minds_leaving,
        }
    }

    pub(crate) fn roll(&self) -> &R {
        &self.roll
    }

    #[inline]
    fn lock(&self) -> MutexGuard<'_, Rack<T, O>> {
        lock(&self.rack)
    }

    /// Shows the order, with what the lanes have.
    pub(crate) fn with<B>(&self, look: impl FnOnce(&mut O) -> B) -> B {
        let mut rack = self.lock();
        rack.take_in();
        look(&mut rack.order)
    }

    #[inline]
    fn next(&self, for_good: bool) -> Next<Given<T>> {
        let mut rack = self.lock();
        loop {
            if rack.take_in() {
                return Next::Due;
            }
            if let Some(given) = rack.order.next(for_good) {
                return Next::Item(given);
            }
            if planted!("sorted.looks-nowhere") || self.lanes.is_empty() {
                return self.leave_lanes(rack);
            }
        }
    }

    /// Gives back the memory of lanes that are empty.
    #[cold]
    fn leave_lanes<I>(&self, mut rack: MutexGuard<'_, Rack<T, O>>) -> Next<I> {
        rack.leave_lanes();
        drop(rack);
        self.lanes.vacate_all();
        Next::Nothing
    }

    /// Takes the next item, and tells the roll of what is gone.
    #[inline]
    fn take_next(&self, for_good: bool) -> Next<Entry<T>> {
        self.next(for_good).map(|Given { entry, gone }| {
            if gone > 0 {
                self.roll.leave(entry.tag.order, gone);
            }
            entry
        })
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
            self.lock().order.leave(order)
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

    #[inline]
    fn take(&self) -> Next<Entry<T>> {
        self.take_next(false)
    }

    #[inline]
    fn pop(&self) -> (Next<Entry<T>>, usize) {
        let next = self.take_next(!self.minds_leaving);
        match &next {
            Next::Item(entry) if self.minds_leaving => {
                let ready = self.leave(entry.tag.order);
                (next, ready)
            }
            _ => (next, 0),
        }
    }

    fn take_in(&self) -> bool {
        self.lock().take_in()
    }

    fn counts(&self) -> (usize, usize) {
        let rack = self.lock();
        (rack.order.ready(), rack.order.waiting())
    }

    fn oldest(&self) -> Option<u64> {
        let (mut visit, mut least) = (self.begin_visit(), None);
        while self.lock().order.look_at_times(&mut visit, &mut least) {}
        self.end_visit();
        least
    }

    fn begin_visit(&self) -> Visit {
        self.lock().order.begin_visit()
    }

    fn show(&self, visit: &mut Visit, into: &mut Vec<Shown<T>>) -> bool {
        self.lock().order.show(visit, into)
    }

    fn put_back(&self, visit: &mut Visit, shown: &mut Vec<Shown<T>>) {
        let mut rack = self.lock();
        while let Some(shown) = shown.pop() {
            rack.order.put_back(visit, shown);
        }
    }

    fn end_visit(&self) {
        self.lock().order.end_visit();
    }

    fn is_empty(&self) -> bool {
        let rack = self.lock();
        rack.order.ready() == 0 && self.lanes.is_empty()
    }

    fn has_none(&self) -> bool {
        let rack = self.lock();
        rack.order.ready() + rack.order.waiting() + rack.order.shown() == 0
    }

    fn is_scheduled(&self) -> bool {
        self.roll.is_scheduled()
    }

    fn arrange(&self, now: u64) -> usize {
        self.lock().arrange(now)
    }

    fn advance(&self, now: u64) -> usize {
        self.lock().advance(now)
    }
}
