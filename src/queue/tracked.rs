//! Queues that know their items one by one: by their tickets.

use super::Queue;
use crate::core::visit::remove_unless;
use crate::order::Order;
use crate::policy::records::{tickets, Tracked};
use crate::raw::DeliveryMeta;
use crate::sync::thread;
use crate::{Builder, Delivery, Discarded, Item, Ticket, Transaction};
use std::sync::Arc;

impl<T, O: Order<T>> Builder<T, O> {
    /// Keeps track of each item until it is gone for good: by its [`Ticket`] a [`discard`](Queue::discard) finds it wherever it is,
    /// also while it is held, and the error of its last failed delivery [travels](Delivery::last_error) with it.
    ///
    /// A push with a time or a priority returns the ticket of its item, so `queue.after(Duration::ZERO).push(item)` is a push
    /// at once that returns one. The other items have tickets too: a [`Delivery`](Delivery::ticket), a
    /// [`Transaction`](Transaction::ticket) and [`Queued`](crate::Queued) tell them.
    ///
    /// ```
    /// use requeue::{Discarded, Queue};
    /// use std::time::Duration;
    ///
    /// let queue = Queue::builder().tracked().build();
    /// let ticket = queue.after(Duration::ZERO).push("long report")?;
    /// let job = queue.take()?;
    /// assert_eq!(queue.discard(ticket), Discarded::Marked); // a worker has it
    /// job.nack(); // it is not delivered again
    /// assert_eq!(queue.discard(ticket), Discarded::Unknown);
    /// assert!(queue.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Costs
    ///
    /// Each item has a record and the entry of its ticket, some 200 bytes in tables under locks that are shared by few items:
    /// each push, take, return and end takes such a lock, and pushes and takes leave their fast paths.
    ///
    /// Keeps [timestamps](Builder::timestamps).
    pub fn tracked(mut self) -> Self {
        self.settings.records = Some(|| Some(tickets()));
        self
    }
}

impl<T, O: Order<T>> Queue<T, O> {
    /// Discards the item with this ticket. One that is ready, delayed or scheduled is removed, as by [`retain`](Queue::retain). One
    /// that is held, by a transaction or a delivery, is marked: it is dropped when its holder gives it up or loses its lease,
    /// instead of coming back. A commit is not affected.
    ///
    /// In a queue that is not [tracked](Builder::tracked) it finds what [`cancel`](Queue::cancel) finds: items that are scheduled,
    /// or have a priority.
    ///
    /// What is dropped counts as [committed](crate::Stats::committed), its room and its key are free again, and a closed queue is
    /// drained without it. A mark stays until the item is gone; if it becomes a dead letter, by [`fail`](Delivery::fail) or
    /// after its last attempt, that is kept. An item whose value is [replaced](Builder::on_duplicate) keeps its ticket, and a dead
    /// letter that is pushed again gets a new one.
    ///
    /// ```
    /// use requeue::{Discarded, Queue};
    ///
    /// let queue = Queue::builder().tracked().build();
    /// queue.push_batch(["a", "b", "c"])?;
    /// let (a, b) = (queue.take()?, queue.take()?);
    /// let tickets = [a.ticket().unwrap(), b.ticket().unwrap()];
    /// a.nack(); // it is ready again
    /// assert_eq!(queue.discard(tickets[0]), Discarded::Removed);
    /// assert_eq!(queue.discard(tickets[1]), Discarded::Marked);
    /// assert_eq!(b.ack(), "b"); // done before it could be dropped
    /// assert_eq!(queue.pop()?, "c");
    /// queue.wait_idle();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Progress
    ///
    /// Takes a time in proportion to the number of items, as [`retain`](Queue::retain), if the item is ready or delayed by a retry;
    /// not if it is held or scheduled. If it is not where it seems to be, since another call is about to take it or to give it
    /// back, it is looked for again, up to eight times. Then the call that has it drops it, or, if that was a peek, the next one
    /// that would deliver it.
    ///
    /// # Panics
    ///
    /// If the destructor of an item that is removed panics. Of one that is marked, panics are caught.
    #[doc(alias = "cancel_job")]
    pub fn discard(&self, ticket: Ticket) -> Discarded {
        /// How often it looks for an item that nobody seems to hold.
        const LOOKS: usize = 8;
        let shared = &self.shared;
        if shared.cancel(ticket).is_some() {
            return Discarded::Removed;
        }
        let mark = |item: &mut Tracked| {
            item.is_discarded = true;
            (item.since, item.is_held)
        };
        let is_other = |since| move |_: &_, (it, _): (DeliveryMeta, _)| it.since != since;
        for look in 0..LOOKS {
            match shared.records().and_then(|it| it.tracked(ticket, mark)) {
                None if look == 0 => return Discarded::Unknown,
                Some((_, true)) => return Discarded::Marked,
                Some((since, false)) if remove_unless(shared, true, is_other(since)) == 0 => {
                    thread::yield_now();
                }
                _ => return Discarded::Removed,
            }
        }
        Discarded::Marked
    }
}

impl<T, O: Order<T>> Delivery<T, O> {
    /// The ticket of the item; `None` unless the queue is [tracked](Builder::tracked).
    ///
    /// ```
    /// let queue = requeue::Queue::builder().tracked().build();
    /// queue.push("job")?;
    /// let ticket = queue.take()?.ticket();
    /// assert_eq!(queue.take()?.ticket(), ticket); // of the item, not of the delivery
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn ticket(&self) -> Option<Ticket> {
        let (shared, since) = self.0.known();
        shared.ticket(since)
    }

    /// The last error with which a delivery of the item has failed before: that of a run of [`Workers`](crate::Workers), or of a
    /// [`fail`](Self::fail) for which there was no room among the dead letters, whose own error is
    /// [`DeadLetter::error`](crate::DeadLetter::error). `None` unless the queue is [tracked](Builder::tracked).
    ///
    /// ```
    /// let queue = requeue::Queue::builder().tracked().max_dead_letters(0).build();
    /// queue.push("job")?;
    /// let job = queue.take()?;
    /// assert_eq!(job.last_error(), None);
    /// job.fail("no connection");
    /// let again = queue.take()?;
    /// assert_eq!(again.last_error().as_deref(), Some("no connection"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn last_error(&self) -> Option<Arc<str>> {
        let (shared, since) = self.0.known();
        shared.tracked(since, |item| item.error.clone())?
    }
}

impl<T, O: Order<T>> Transaction<'_, T, O> {
    /// The ticket of an item that it holds; `None` unless the queue is [tracked](Builder::tracked).
    ///
    /// ```
    /// let queue = requeue::Queue::builder().tracked().build();
    /// queue.push("job")?;
    /// let mut worker = queue.handle();
    /// let tx = worker.begin();
    /// let ticket = tx.ticket(&tx.pop()?).unwrap();
    /// queue.discard(ticket);
    /// tx.abort();
    /// assert!(queue.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If another transaction holds the item, or this one [is borrowed](Transaction#borrowing).
    #[track_caller]
    pub fn ticket(&self, item: &Item<'_, T>) -> Option<Ticket> {
        let mut local = self.local();
        let (shared, since) = local.known(&item.reference);
        shared.ticket(since)
    }

    /// The last error with which a delivery of an item that it holds has failed before, as [`Delivery::last_error`].
    ///
    /// ```
    /// use requeue::{Queue, Workers};
    ///
    /// let queue = Queue::builder().tracked().build();
    /// queue.push("job")?;
    /// queue.close();
    /// let workers = Workers::builder(&queue).run(|job, tx| match tx.last_error(&job).as_deref() {
    ///     None => Err("no connection"),
    ///     Some(error) => Ok(assert_eq!(error, "\"no connection\"")),
    /// });
    /// assert_eq!(workers.join().done, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// As for [`ticket`](Self::ticket).
    #[track_caller]
    pub fn last_error(&self, item: &Item<'_, T>) -> Option<Arc<str>> {
        let mut local = self.local();
        let (shared, since) = local.known(&item.reference);
        shared.tracked(since, |item| item.error.clone())?
    }
}
