//! A visit to all ready items.

use super::Port;
use crate::core::shared::Shared;
use crate::order::{Order, Shown, Source, Visit, PART};
use std::sync::Arc;

impl<T, O: Order<T>> Port<T, O> {
    /// Visits the ready items, holding few of them at a time, and says how many they were.
    pub(crate) fn visit(&mut self, visit: impl FnMut(&T)) -> usize {
        if Shared::<T, O>::SORTS {
            self.visit_source(visit)
        } else {
            self.visit_lanes(visit)
        }
    }

    fn visit_lanes(&mut self, mut visit: impl FnMut(&T)) -> usize {
        /// Gives the items of a lane back, also when the visitor panics.
        struct Lane<'p, T, O: Order<T>>(&'p mut Port<T, O>);
        impl<T, O: Order<T>> Drop for Lane<'_, T, O> {
            fn drop(&mut self) {
                let back = self.0.seat.give_back_uncounted();
                self.0.side.shared().ended(back);
            }
        }
        let (mut lane, mut count) = (0, 0);
        while self.seat.hold_lane(&mut lane) {
            let held = Lane(self);
            held.0.seat.visit(|stored, _| visit(&stored.item));
            count += held.0.seat.held();
        }
        count
    }

    /// Items are taken out of the source in parts, and looked at without its lock.
    fn visit_source(&mut self, mut look: impl FnMut(&T)) -> usize {
        /// Ends the visit, also when the visitor panics.
        struct End<'s, T, O: Order<T>>(&'s Shared<T, O>);
        impl<T, O: Order<T>> Drop for End<'_, T, O> {
            fn drop(&mut self) {
                self.0.source.end_visit();
            }
        }
        let shared = Arc::clone(self.side.shared());
        let mut visit = shared.source.begin_visit();
        let _end = End(&shared);
        let (mut more, mut count) = (true, 0);
        while more {
            let mut part = Part {
                port: self,
                visit: &mut visit,
                shown: Vec::with_capacity(PART),
            };
            more = shared.source.show(part.visit, &mut part.shown);
            part.port.seat.count_shown(part.shown.len());
            for shown in &part.shown {
                look(&shown.entry.item.item);
            }
            count += part.shown.len();
        }
        count
    }
}

/// Some items that are shown. They are put back to where they were, also when the visitor panics.
struct Part<'p, T, O: Order<T>> {
    port: &'p mut Port<T, O>,
    visit: &'p mut Visit,
    shown: Vec<Shown<T, O::Meta>>,
}

impl<T, O: Order<T>> Drop for Part<'_, T, O> {
    fn drop(&mut self) {
        let count = self.shown.len();
        if count > 0 {
            let shared = self.port.side.shared();
            shared.source.put_back(self.visit, &mut self.shown);
            self.port.seat.uncount_shown(count);
            self.port.side.shared().ended(count);
        }
    }
}
