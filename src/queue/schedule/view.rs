//! Views of queues, handles and transactions whose pushes have a priority or a time.

use super::future::PushWithAsync;
use super::target::{Destination, PushTo};
use crate::core::put::Load;
use crate::core::Local;
use crate::order::priority::{Prioritized, DEFAULT_PRIORITY};
use crate::order::{StorePlace, Ticket};
use crate::PushError;
use std::time::{Duration, Instant};

/// Pushes with a priority, a time, or both: a view of a queue, a handle or a transaction, from its `priority`, `at`, `after`
/// or `expires_in`.
///
/// Its methods are those of its target, and return a [`Ticket`] for each item. The last setting of each kind applies;
/// the priority defaults to [`DEFAULT_PRIORITY`](crate::PriorityQueue::DEFAULT_PRIORITY), and without a time the item
/// is due at once.
///
/// ```
/// use std::time::Duration;
///
/// let clock = requeue::ManualClock::new();
/// let queue = requeue::Queue::builder().by_priority().clock(clock.clone()).build();
/// queue.priority(5).push("normal")?;
/// queue.priority(1).after(Duration::from_secs(1)).push("urgent, but not yet")?;
///
/// assert_eq!(queue.pop()?, "normal");
/// clock.advance(Duration::from_secs(1));
/// assert_eq!(queue.pop()?, "urgent, but not yet");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The view of a queue or a transaction is `Copy`, and can be used again:
///
/// ```
/// let queue = requeue::PriorityQueue::by_priority();
/// let urgent = queue.priority(1);
/// urgent.push("first")?;
/// urgent.push_batch(["second", "third"])?;
/// assert_eq!(queue.len(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// All pushes fail as the pushes of the target. The items come back with the error.
///
/// # Panics
///
/// Pushes to a transaction panic if it [is borrowed](crate::Transaction#borrowing).
#[derive(Clone, Copy, Debug)]
#[must_use = "a view pushes nothing by itself"]
pub struct PushWith<P> {
    target: P,
    priority: u16,
    when: Option<When>,
    /// How long the items live in nanoseconds, if they have a time of their own, or 0.
    life: u64,
}

/// The requested due time of an item.
#[derive(Clone, Copy, Debug)]
enum When {
    At(Instant),
    After(Duration),
}

impl<P: PushTo> PushWith<P>
where
    P::Order: Prioritized<P::Item>,
{
    /// Gives the items this priority: 0 is the first, 65,535 the last.
    ///
    /// ```
    /// let queue = requeue::PriorityQueue::by_priority();
    /// queue.at(queue.now()).priority(1).push("second")?;
    /// queue.at(queue.now()).priority(0).push("first")?;
    /// assert_eq!(queue.pop()?, "first");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn priority(mut self, priority: u16) -> Self {
        self.priority = priority;
        self
    }
}

impl<P: PushTo> PushWith<P> {
    #[inline]
    pub(super) fn new(target: P) -> Self {
        Self {
            target,
            priority: DEFAULT_PRIORITY,
            when: None,
            life: 0,
        }
    }

    /// Keeps the items back until `at`. A past time makes them ready immediately; one beyond the clock's range is
    /// clamped.
    ///
    /// ```
    /// let queue = requeue::PriorityQueue::by_priority();
    /// queue.priority(1).at(queue.now()).push("now")?;
    /// assert_eq!(queue.pop()?, "now");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn at(mut self, at: Instant) -> Self {
        self.when = Some(When::At(at));
        self
    }

    /// Keeps the items back until `delay` has passed, counted from the call that pushes them, or that makes the
    /// future.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let queue = requeue::PriorityQueue::by_priority();
    /// queue.priority(1).after(Duration::from_millis(1)).push("later")?;
    /// assert_eq!(queue.pop_blocking()?, "later");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn after(mut self, delay: Duration) -> Self {
        self.when = Some(When::After(delay));
        self
    }

    /// Gives the items a time to live of their own, counted from the call that pushes them, or that makes the future; if they
    /// are kept back, from when they are due. See [`Queue::expires_in`](crate::Queue::expires_in).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let queue = requeue::Queue::builder()
    ///     .by_priority()
    ///     .max_ttl(Duration::from_secs(60))
    ///     .build();
    /// queue.priority(1).expires_in(Duration::from_secs(5)).push("soon or never")?;
    /// assert_eq!(queue.pop()?, "soon or never");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the queue was built without [`max_ttl`](crate::Builder::max_ttl), or if `life` is zero.
    #[cfg(feature = "broker")]
    #[inline]
    #[track_caller]
    pub fn expires_in(mut self, life: Duration) -> Self {
        let expires = self.target.with_shared(|shared| shared.has_deadlines());
        assert!(
            expires,
            "expires_in in a queue that was built without `max_ttl`"
        );
        assert!(
            !life.is_zero(),
            "expires_in zero: it could not be delivered"
        );
        self.life = crate::time::whole(life);
        self
    }

    /// Where this number of items go, and their first ticket.
    #[inline]
    #[track_caller]
    fn place(&mut self, count: usize) -> (Ticket, Destination<P>) {
        let due = match self.when {
            None | Some(When::After(Duration::ZERO)) => None,
            Some(When::At(at)) => self.target.with_shared(|shared| shared.time.if_ahead(at)),
            Some(When::After(delay)) => {
                Some(self.target.with_shared(|shared| shared.time.after(delay)))
            }
        };
        let first = Ticket::first_of(count.max(1));
        let place = StorePlace {
            number: first.number(),
            priority: self.priority,
            ..StorePlace::default()
        };
        let (place, mut terms) = place.place_at(due);
        if self.life > 0 {
            let life = Duration::from_nanos(self.life);
            terms.deadline = self.target.with_shared(|shared| shared.time.after(life));
        }
        (first, (place, terms))
    }

    /// Pushes an item or a batch by `put`. One that does not wait has a function of its own: as a case of
    /// [`Wait`](crate::Wait) it would cost more instructions.
    #[inline]
    #[track_caller]
    fn push_by<L: Load<P::Item, P::Order> + Send>(
        mut self,
        load: L,
        put: impl FnOnce(
            &mut Local<P::Item, P::Order>,
            L,
            Destination<P>,
        ) -> Result<L::Pushed, PushError<L>>,
    ) -> Result<Ticket, PushError<L>> {
        let (ticket, to) = self.place(load.as_slice().len());
        self.target.with_local(|local| put(local, load, to))?;
        Ok(ticket)
    }

    /// Pushes an item.
    ///
    /// ```
    /// let queue = requeue::PriorityQueue::by_priority();
    /// let ticket = queue.priority(2).push("normal")?;
    /// queue.priority(1).push("urgent")?;
    /// assert!(queue.reprioritize(ticket, 3));
    /// assert_eq!(queue.pop()?, "urgent");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [for the view](PushWith#errors).
    ///
    /// # Panics
    ///
    /// As [for the view](PushWith#panics).
    #[inline]
    #[track_caller]
    pub fn push(self, item: P::Item) -> Result<Ticket, PushError<P::Item>> {
        self.push_by(item, |local, item, to| local.put(item, P::PUT, to))
    }

    verb! {
        push(self, item: P::Item) -> Result<Ticket, PushError<P::Item>>,
            |wait| self.push_by(item, |local, item, to| {
                local.put_waiting(item, P::PUT, wait, to)
            });
        blocking:
        /// Pushes an item, and waits for room if there is none.
        ///
        /// ```
        /// let queue = requeue::Queue::builder().by_priority().capacity(1).build();
        /// let mut handle = queue.handle();
        /// handle.priority(2).push_blocking("normal")?;
        /// std::thread::scope(|scope| {
        ///     scope.spawn(|| handle.priority(1).push_blocking("urgent"));
        ///     assert_eq!(queue.pop_blocking(), Ok("normal"));
        /// });
        /// assert_eq!(queue.pop(), Ok("urgent"));
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// As [for the view](PushWith#errors).
        ///
        /// # Panics
        ///
        /// As [for the view](PushWith#panics).
        timed: "Pushes an item", "room",
        /// let queue = requeue::Queue::builder().by_priority().capacity(1).build();
        /// queue.push("normal")?;
        /// let urgent = queue.priority(1);
        refused = urgent("urgent");
        /// assert!(refused.unwrap_err().is_full());
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`PushError::Full`] on timeout, otherwise as [for the view](PushWith#errors).
        ///
        /// # Panics
        ///
        /// As [for the view](PushWith#panics).
        async(mut self, item: P::Item) -> PushWithAsync<P::Push, Ticket> {
            let (ticket, place) = self.place(1);
            PushWithAsync::new(self.target.push_async(item, place), ticket)
        }
        /// A future that pushes the item when there is room. Its output is that of [`PushWith::push_blocking`].
        ///
        /// Cancel safe: if it is dropped before it is ready, the item is dropped with it and was not pushed. The future
        /// of a queue's view borrows nothing; that of a handle's or transaction's view borrows the handle or transaction.
        ///
        /// ```
        /// # futures::executor::block_on(async {
        /// let queue = requeue::Queue::builder().by_priority().capacity(1).build();
        /// let ticket = queue.priority(1).push_async("job").await?;
        /// assert_eq!(queue.cancel(ticket), Some("job"));
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// # }).unwrap();
        /// ```
        ///
        /// # Panics
        ///
        /// As [for the view](PushWith#panics).
    }

    verb! {
        push_batch(self, items: impl IntoIterator<Item = P::Item>) -> Result<Vec<Ticket>, PushError<Vec<P::Item>>>,
            |wait| {
                let items: Vec<_> = items.into_iter().collect();
                let count = items.len();
                let first = self.push_by(items, |local, items, to| {
                    local.put_waiting(items, P::PUT, wait, to)
                });
                Ok(first?.and_next(count))
            };
        now:
        /// Pushes all items, and returns their tickets: they become ready all at once, unless their time is in the
        /// future.
        ///
        /// ```
        /// let queue = requeue::Queue::builder().by_priority().capacity(3).build();
        /// queue.push("normal")?;
        /// let tickets = queue.priority(1).push_batch(["first", "second"])?;
        /// assert_eq!(queue.cancel(tickets[0]), Some("first"));
        /// assert_eq!(queue.pop()?, "second");
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// As [for the view](PushWith#errors); [`PushError::Full`] if there was no room for all items. All come back
        /// in their order.
        ///
        /// # Panics
        ///
        /// As [for the view](PushWith#panics).
        blocking:
        /// As [`PushWith::push_batch`], but waits until there is room for all items.
        ///
        /// ```
        /// let queue = requeue::Queue::builder().by_priority().capacity(2).build();
        /// queue.priority(1).push_batch_blocking([1, 2])?;
        /// let refused = queue.priority(1).push_batch_blocking([3, 4, 5]);
        /// assert!(refused.unwrap_err().is_full()); // can never fit
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`PushError::Full`] at once if the items can never fit, otherwise as [for the view](PushWith#errors).
        ///
        /// # Panics
        ///
        /// As [for the view](PushWith#panics).
        timed: "Pushes all items", "room for all of them",
        /// let queue = requeue::Queue::builder().by_priority().capacity(2).build();
        /// queue.push(1)?;
        /// let urgent = queue.priority(1);
        refused = urgent([2, 3]);
        /// assert_eq!(refused.unwrap_err().into_inner(), [2, 3]);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`PushError::Full`] on timeout, otherwise as [for the view](PushWith#errors).
        ///
        /// # Panics
        ///
        /// As [for the view](PushWith#panics).
        async(mut self, items: impl IntoIterator<Item = P::Item>) -> PushWithAsync<P::PushBatch, Vec<Ticket>> {
            let items: Vec<_> = items.into_iter().collect();
            let count = items.len();
            let (first, place) = self.place(count);
            PushWithAsync::new(self.target.push_batch_async(items, place), first.and_next(count))
        }
        /// A future that pushes all items when there is room for them. Its output is that of
        /// [`PushWith::push_batch_blocking`]. Cancel safe, as [`PushWith::push_async`] is.
        ///
        /// ```
        /// # futures::executor::block_on(async {
        /// let queue = requeue::Queue::builder().by_priority().capacity(2).build();
        /// assert_eq!(queue.priority(1).push_batch_async([1, 2]).await?.len(), 2);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// # }).unwrap();
        /// ```
        ///
        /// # Panics
        ///
        /// As [for the view](PushWith#panics).
    }
}
