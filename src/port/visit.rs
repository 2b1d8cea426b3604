//! A visit to all ready items.

use super::Port;

impl<T> Port<T> {
    /// Visits the ready items, holding those of one lane at a time, and says how many they were.
    pub(crate) fn visit(&mut self, mut visit: impl FnMut(&T)) -> usize {
        /// Gives the items of a lane back, also when the visitor panics.
        struct Lane<'p, T>(&'p mut Port<T>);
        impl<T> Drop for Lane<'_, T> {
            fn drop(&mut self) {
                let back = self.0.seat.give_back_uncounted();
                self.0.side.shared().ended(back);
            }
        }
        let (mut lane, mut count) = (0, 0);
        while self.side.hold_lane(&mut self.seat, lane) {
            let held = Lane(self);
            held.0.seat.visit(&mut visit);
            count += held.0.seat.held();
            lane += 1;
        }
        count
    }
}
