//! Scheduled items: not ready before their times.

use super::Shared;
use crate::core::mode::SLOW_POPS;
use crate::order::{Order, Registry, Source, StoredOf, Ticket};
use crate::policy::delay::Scheduled;
use crate::raw::{Entry, Stored};
use crate::sync::step;
#[cfg(feature = "broker")]
use crate::wait::AlarmCall;

impl<T, O: Order<T>> Shared<T, O> {
    /// Schedules items that are counted as delayed, and wakes a waiter if it has to wake others earlier than it knows.
    pub(crate) fn schedule(&self, items: impl Iterator<Item = Scheduled<StoredOf<T, O>>>) {
        self.ready.set(SLOW_POPS);
        let planned = self.failures.delayed.schedule(items, |due| {
            self.due_timer.plan(due);
        });
        self.notify_scheduled(planned);
    }

    /// Has `call` called at a time.
    #[cfg(feature = "broker")]
    pub(crate) fn set_alarm(&self, at: u64, call: AlarmCall) {
        self.ready.set(SLOW_POPS);
        let planned = self.due_timer.set_alarm(at, call);
        self.notify_scheduled(planned);
    }

    /// Wakes a waiter for items that were scheduled, if it has to wake others earlier than it knows: if that was `planned`.
    pub(super) fn notify_scheduled(&self, planned: bool) {
        if planned {
            self.due_timer.call_backup();
        }
        // Without a leader too: whoever has planned an earlier time may not have woken one yet.
        if planned || !self.due_timer.has_leader() {
            step!("schedule.plans-unsaid", self.ready.notify(1));
        }
    }

    /// Removes an item that is scheduled, or ready and known by its ticket. It counts as committed.
    pub(crate) fn cancel(&self, ticket: Ticket) -> Option<T> {
        self.bring_up_to_date();
        let delayed = &self.failures.delayed;
        let scheduled = delayed.remove(ticket);
        let is_scheduled = scheduled.is_some();
        let mut entry = scheduled.or_else(|| self.source.cancel(ticket))?;
        self.taken(entry.delivery.since, &mut entry.item.item);
        let permits = self.forget(entry.delivery.since);
        self.shards.count_popped(1);
        if is_scheduled {
            delayed.count_released(1);
        }
        Some(self.part_with(entry, permits))
    }

    /// Changes the due time of an item that is scheduled, or ready and known by its ticket; returns whether there is one.
    pub(crate) fn reschedule(&self, ticket: Ticket, due: u64) -> bool {
        self.bring_up_to_date();
        let delayed = &self.failures.delayed;
        // Before it leaves the order, so that it is never unseen.
        delayed.count_coming(1);
        let scheduled = delayed.remove(ticket);
        let is_counted_twice = scheduled.is_some();
        let found = scheduled.or_else(|| self.source.cancel(ticket));
        let is_found = found.is_some();
        if let Some(entry) = found {
            let Stored { item, meta } = entry.item;
            let meta = self.registry().reschedule(meta, due);
            let item = Stored { item, meta };
            let entry = Entry { item, ..entry };
            self.schedule(std::iter::once(Scheduled { due, ticket, entry }));
        }
        if is_counted_twice || !is_found {
            delayed.count_released(1);
            self.notify_end(0);
        }
        self.release_due();
        is_found
    }

    /// Changes the metadata of a scheduled item by `change`; returns whether there is one with this ticket.
    pub(crate) fn change_scheduled(
        &self,
        ticket: Ticket,
        change: impl FnOnce(O::Meta) -> O::Meta,
    ) -> bool {
        self.failures.delayed.change(ticket, |entry| {
            entry.item.meta = change(entry.item.meta);
        })
    }

    /// The time of the next scheduled item; [`NEVER`](crate::time::NEVER) if there is none.
    pub(crate) fn next_scheduled(&self) -> u64 {
        self.bring_up_to_date();
        self.failures.delayed.next_scheduled()
    }
}
