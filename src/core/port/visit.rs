//! A visit to all ready items.

use super::Port;
use crate::order::{Discipline, Shown, Visit, PART};

impl<T> Port<T> {
    /// Visits the ready items, holding few of them at a time, and says how many they were.
    pub(crate) fn visit(&mut self, mut visit: impl FnMut(&T)) -> usize {
        let shared = self.side.shared().clone();
        match shared.order() {
            Some(order) => self.visit_order(order, &mut visit),
            None => self.visit_lanes(&mut visit),
        }
    }

    fn visit_lanes(&mut self, mut visit: impl FnMut(&T)) -> usize {
        /// Gives the items of a lane back, also when the visitor panics.
        struct Lane<'p, T>(&'p mut Port<T>);
        impl<T> Drop for Lane<'_, T> {
            fn drop(&mut self) {
                let back = self.0.seat.give_back_uncounted();
                self.0.side.shared().ended(back);
            }
        }
        let (mut lane, mut count) = (0, 0);
        while self.seat.hold_lane(&mut lane) {
            let held = Lane(self);
            held.0.seat.visit(&mut visit);
            count += held.0.seat.held();
        }
        count
    }

    /// Items are taken out of the order in parts, and looked at without its lock.
    fn visit_order(&mut self, order: &dyn Discipline<T>, mut look: impl FnMut(&T)) -> usize {
        /// Ends the visit, also when the visitor panics.
        struct End<'d, T>(&'d dyn Discipline<T>);
        impl<T> Drop for End<'_, T> {
            fn drop(&mut self) {
                self.0.end_visit();
            }
        }
        let mut visit = order.begin_visit();
        let _end = End(order);
        let (mut more, mut count) = (true, 0);
        while more {
            let mut part = Part {
                port: self,
                order,
                visit: &mut visit,
                shown: Vec::with_capacity(PART),
            };
            more = order.show(part.visit, &mut part.shown);
            part.port.seat.count_shown(part.shown.len());
            part.shown.iter().for_each(|shown| look(&shown.entry.item));
            count += part.shown.len();
        }
        count
    }
}

/// Some items that are shown. They are put back to where they were, also when the visitor panics.
struct Part<'p, T> {
    port: &'p mut Port<T>,
    order: &'p dyn Discipline<T>,
    visit: &'p mut Visit,
    shown: Vec<Shown<T>>,
}

impl<T> Drop for Part<'_, T> {
    fn drop(&mut self) {
        let count = self.shown.len();
        if count > 0 {
            self.order.put_back(self.visit, &mut self.shown);
            self.port.seat.uncount_shown(count);
            self.port.side.shared().ended(count);
        }
    }
}
