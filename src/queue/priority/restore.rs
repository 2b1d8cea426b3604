//! Restores the items of an earlier process, with their priorities.

use crate::order::priority::{Prioritized, Priority, PushOptions, Ticket};
use crate::queue::Restore;
use std::time::{Duration, Instant};

impl<T: Send, O: Prioritized<T>> Restore<'_, T, O> {
    /// As [`add`](Self::add), for an item with a ticket, a priority, and a time before which it is kept back if it is given.
    ///
    /// # Panics
    ///
    /// If the priority is out of range, or the queue has no room for it.
    pub fn add_with(
        &mut self,
        item: T,
        ticket: Ticket,
        priority: u16,
        due: Option<Instant>,
        attempts: u32,
        delay: Duration,
    ) {
        let Self { shared, restored } = self;
        let priority = Priority::new(priority).expect("the priority is in range");
        let due = due.map(|due| shared.time.nanos(due));
        let is_scheduled = due.is_some_and(|due| due > shared.time.now());
        let place = PushOptions {
            priority,
            due,
            ticket: Some(ticket),
        };
        shared.add_restored(restored, item, attempts, delay, place, is_scheduled);
    }
}
