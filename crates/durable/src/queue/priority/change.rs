//! Changes of items that wait.

use crate::batch::{Batch, Change, Run};
use crate::error::StoreError;
use crate::format::{Mark, OrderTag, Schedule};
use crate::log::Durability;
use crate::order::{Engine, EntryOf, Order, DEFAULT_PRIORITY};
use crate::queue::shared::Shared;
use crate::ticket::Ticket;
use crate::DurableQueue;
use requeue::Prioritized;
use std::time::Instant;

/// Items that are not held. Each call is durable when it returns.
impl<T: Send + 'static, O: Order<T>> DurableQueue<T, O>
where
    O::Ram: Prioritized<EntryOf<T, O>>,
{
    /// The time of the next scheduled item; `None` if none is scheduled. Unlike
    /// [`next_due`](DurableQueue::next_due) it does not include items that are delayed by a retry, nor leases.
    pub fn next_scheduled(&self) -> Option<Instant> {
        let cold = self.pages.as_ref().filter(|pages| pages.is_cold());
        let cold = cold.and_then(|pages| pages.next_scheduled());
        self.ram.next_scheduled().into_iter().chain(cold).min()
    }

    /// Changes the priority of an item; returns whether it was there, and not held.
    ///
    /// # Errors
    ///
    /// As for [`Transaction::commit`](crate::Transaction::commit); then the change may be lost when the store is opened again.
    pub fn reprioritize(&self, ticket: Ticket, priority: u16) -> Result<bool, StoreError> {
        self.reschedule_with(
            ticket,
            |schedule| Schedule {
                priority,
                ..schedule
            },
            |ticket| self.ram.reprioritize(ticket, priority),
        )
    }

    /// Changes the time before which an item is not delivered; returns whether it was there, and not held.
    ///
    /// # Errors
    ///
    /// As for [`reprioritize`](Self::reprioritize).
    pub fn reschedule(&self, ticket: Ticket, at: Instant) -> Result<bool, StoreError> {
        let due = Some(self.shared.times.due_in_store(at));
        self.reschedule_with(
            ticket,
            |schedule| Schedule { due, ..schedule },
            |ticket| self.ram.reschedule(ticket, at),
        )
    }

    fn reschedule_with(
        &self,
        ticket: Ticket,
        change: impl FnOnce(Schedule) -> Schedule,
        in_memory: impl Fn(requeue::Ticket) -> bool,
    ) -> Result<bool, StoreError> {
        let change_it = |ticket| in_memory(ticket).then_some(());
        if self.find(ticket, change_it)?.is_none() {
            return Ok(false);
        }
        // If the item was popped since, there is none, and nothing is written.
        let schedule = self.shared.schedule_of(ticket.0)?.unwrap_or_default();
        self.shared.write(Change::Rescheduled(
            self.shared.key(ticket.0),
            change(schedule),
        ))?;
        Ok(true)
    }

    /// Calls with the ticket in memory of an item, again if the item is on the disk only: then it is read before.
    fn find<R>(
        &self,
        ticket: Ticket,
        call: impl Fn(requeue::Ticket) -> Option<R>,
    ) -> Result<Option<R>, StoreError> {
        let in_memory = requeue::Ticket::of_store(ticket.0);
        let mut found = call(in_memory);
        if let Some(pages) = self.pages.as_ref().filter(|pages| pages.is_cold()) {
            if found.is_none() {
                pages.bring(ticket.0)?;
                found = call(in_memory);
            }
            pages.changed();
        }
        Ok(found)
    }

    /// Removes an item, and returns it if it was there and not held.
    ///
    /// # Errors
    ///
    /// As for [`Transaction::commit`](crate::Transaction::commit); then the item is back when the store is opened again.
    pub fn cancel(&self, ticket: Ticket) -> Result<Option<T>, StoreError> {
        let Some(mut entry) = self.find(ticket, |ticket| self.ram.cancel(ticket))? else {
            return Ok(None);
        };
        let shared = &self.shared;
        shared.load(&mut entry)?;
        let mut batch = Batch::default();
        Run::add(&mut batch.removes, shared.key(ticket.0), 1);
        shared.log().commit(&mut [batch], Durability::Synced)?;
        Ok(entry.item)
    }
}

impl<T: Send + 'static, O: Engine<T>> Shared<T, O> {
    /// The schedule of an item that is on the disk, or will be, if the queue has schedules.
    pub(in crate::queue) fn schedule_of(&self, id: u64) -> Result<Option<Schedule>, StoreError> {
        if O::TAG != OrderTag::ByPriority {
            return Ok(None);
        }
        let item = self.stored(id)?;
        let key = self.key(id);
        let known = |(mark, _): &(Mark, u64)| mark.schedule;
        let marked = self.log().disk().catalog().marks.get(&key).and_then(known);
        if let Some(schedule) = marked {
            return Ok(Some(schedule));
        }
        let normal = Schedule {
            priority: DEFAULT_PRIORITY,
            due: None,
        };
        Ok(item.map(|item| {
            let schedule = item.split().ok().and_then(|(front, _)| front.schedule);
            schedule.unwrap_or(normal)
        }))
    }
}
