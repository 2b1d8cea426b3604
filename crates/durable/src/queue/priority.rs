//! Priorities, schedules and tickets.

use super::verbs;
use super::DurableQueue;
use crate::batch::{Batch, Change, Run};
use crate::error::{PushError, StoreError};
use crate::format::{self, Schedule};
use crate::handle::Handle;
use crate::log::{guarded, Durability};
use crate::order::{Engine, Order, Place, Wait, DEFAULT_PRIORITY};
use crate::queue::shared::Shared;
use crate::ticket::{Ticket, Tickets};
use crate::Transaction;
use requeue::Prioritized;
use std::future::Future;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// The priorities, the most urgent first.
const PRIORITIES: RangeInclusive<u16> = 1..=9_999;

/// A queue, handle or transaction whose pushes have a priority or a time; from [`DurableQueue::priority`],
/// [`at`](DurableQueue::at) and [`after`](DurableQueue::after), and the same of [`Handle`] and [`Transaction`].
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let store = requeue_durable::Store::open(directory.path())?;
/// use std::time::Duration;
///
/// let jobs = store.builder("jobs").by_priority().build()?;
/// jobs.push("normal".to_string())?;
/// jobs.priority(1).push("urgent".to_string())?;
/// let tomorrow = jobs.after(Duration::from_secs(24 * 3600)).push("tomorrow".to_string())?;
/// assert_eq!(jobs.pop()?, "urgent");
/// assert_eq!(jobs.cancel(tomorrow)?.as_deref(), Some("tomorrow"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "a view pushes nothing by itself"]
pub struct PushWith<P> {
    target: P,
    priority: u16,
    when: Option<When>,
}

#[derive(Clone, Copy, Debug)]
enum When {
    At(Instant),
    After(Duration),
}

/// A queue, handle or transaction. Sealed.
#[allow(private_bounds)] // sealed
pub trait PushTo: sealed::Push {}

mod sealed {
    use super::{Place, PushError, Ticket, Tickets, Wait};
    use std::future::Future;
    use std::time::Instant;

    pub trait Push: Sized {
        type Item: Send;
        fn now(&self) -> Instant;
        #[allow(private_interfaces)]
        fn push(
            self,
            item: Self::Item,
            place: Place,
            wait: Wait,
        ) -> Result<Ticket, PushError<Self::Item>>;
        #[allow(private_interfaces)]
        fn push_batch(
            self,
            items: Vec<Self::Item>,
            place: Place,
            wait: Wait,
        ) -> Result<Tickets, PushError<Vec<Self::Item>>>;
        #[allow(private_interfaces)]
        fn push_async(
            self,
            item: Self::Item,
            place: Place,
        ) -> impl Future<Output = Result<Ticket, PushError<Self::Item>>> + Send;
        #[allow(private_interfaces)]
        fn push_batch_async(
            self,
            items: Vec<Self::Item>,
            place: Place,
        ) -> impl Future<Output = Result<Tickets, PushError<Vec<Self::Item>>>> + Send;
    }
}

use sealed::Push;

impl<P: PushTo> PushWith<P> {
    fn new(target: P) -> Self {
        Self {
            target,
            priority: DEFAULT_PRIORITY,
            when: None,
        }
    }

    /// Sets the priority: 1, the most urgent, to 9,999. The default is 5,000.
    pub fn priority(mut self, priority: u16) -> Self {
        self.priority = priority;
        self
    }

    /// The items are not delivered before a time of the queue's clock.
    pub fn at(mut self, at: Instant) -> Self {
        self.when = Some(When::At(at));
        self
    }

    /// The items are not delivered before so long after the push.
    pub fn after(mut self, delay: Duration) -> Self {
        self.when = Some(When::After(delay));
        self
    }

    /// `None`: the priority is out of range.
    fn place(&self) -> Option<Place> {
        PRIORITIES.contains(&self.priority).then(|| Place {
            priority: self.priority,
            due: self.when.and_then(|when| match when {
                When::At(at) => Some(at),
                When::After(delay) => {
                    let now = self.target.now();
                    let late = Duration::from_secs(100 * 365 * 24 * 3600);
                    now.checked_add(delay).or_else(|| now.checked_add(late))
                }
            }),
        })
    }

    fn push_one(self, item: P::Item, wait: Wait) -> Result<Ticket, PushError<P::Item>> {
        match self.place() {
            Some(place) => self.target.push(item, place, wait),
            None => Err(PushError::OutOfRange(item)),
        }
    }

    fn push_many(
        self,
        items: Vec<P::Item>,
        wait: Wait,
    ) -> Result<Vec<Ticket>, PushError<Vec<P::Item>>> {
        match self.place() {
            Some(place) => self
                .target
                .push_batch(items, place, wait)
                .map(Tickets::into_vec),
            None => Err(PushError::OutOfRange(items)),
        }
    }

    /// Pushes an item; returns its ticket.
    ///
    /// # Errors
    ///
    /// As the push of the queue, handle or transaction, and [`PushError::OutOfRange`] if the priority is not in 1 to 9,999.
    pub fn push(self, item: P::Item) -> Result<Ticket, PushError<P::Item>> {
        self.push_one(item, Wait::Never)
    }

    /// Pushes an item; waits for room.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn push_blocking(self, item: P::Item) -> Result<Ticket, PushError<P::Item>> {
        self.push_one(item, Wait::Forever)
    }

    /// Pushes an item; waits for room for at most `timeout`.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn push_timeout(
        self,
        item: P::Item,
        timeout: Duration,
    ) -> Result<Ticket, PushError<P::Item>> {
        self.push_one(item, Wait::For(timeout))
    }

    /// Pushes an item in a task; waits for room.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn push_async(
        self,
        item: P::Item,
    ) -> impl Future<Output = Result<Ticket, PushError<P::Item>>> + Send {
        let begun = match self.place() {
            Some(place) => Ok(self.target.push_async(item, place)),
            None => Err(PushError::OutOfRange(item)),
        };
        async { begun?.await }
    }

    /// Pushes all items, with the same priority and time; returns their tickets.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push), with the items that were not pushed.
    pub fn push_batch(
        self,
        items: impl IntoIterator<Item = P::Item>,
    ) -> Result<Vec<Ticket>, PushError<Vec<P::Item>>> {
        self.push_many(items.into_iter().collect(), Wait::Never)
    }

    /// As [`push_batch`](Self::push_batch); waits for room.
    ///
    /// # Errors
    ///
    /// As [`push_batch`](Self::push_batch).
    pub fn push_batch_blocking(
        self,
        items: impl IntoIterator<Item = P::Item>,
    ) -> Result<Vec<Ticket>, PushError<Vec<P::Item>>> {
        self.push_many(items.into_iter().collect(), Wait::Forever)
    }

    /// As [`push_batch`](Self::push_batch); waits for room for at most `timeout`.
    ///
    /// # Errors
    ///
    /// As [`push_batch`](Self::push_batch).
    pub fn push_batch_timeout(
        self,
        items: impl IntoIterator<Item = P::Item>,
        timeout: Duration,
    ) -> Result<Vec<Ticket>, PushError<Vec<P::Item>>> {
        self.push_many(items.into_iter().collect(), Wait::For(timeout))
    }

    /// As [`push_batch_blocking`](Self::push_batch_blocking), in a task.
    ///
    /// # Errors
    ///
    /// As [`push_batch`](Self::push_batch).
    pub fn push_batch_async(
        self,
        items: impl IntoIterator<Item = P::Item>,
    ) -> impl Future<Output = Result<Vec<Ticket>, PushError<Vec<P::Item>>>> + Send {
        let items: Vec<_> = items.into_iter().collect();
        let begun = match self.place() {
            Some(place) => Ok(self.target.push_batch_async(items, place)),
            None => Err(PushError::OutOfRange(items)),
        };
        async { begun?.await.map(Tickets::into_vec) }
    }
}

macro_rules! views {
    ([$($generics:tt)*] $type:ty, $target:ty, [$($by:tt)+]) => {
        impl<$($generics)* T: Send + 'static, O: Order<T>> $type
        where
            O::Ram: Prioritized<crate::order::EntryOf<T, O>>,
        {
            /// The same, for pushes with a priority: 1, the most urgent, to 9,999.
            pub fn priority($($by)+ self, priority: u16) -> PushWith<$target> {
                PushWith::new(self).priority(priority)
            }

            /// The same, for pushes that are not delivered before a time of the queue's clock. The time survives the process.
            pub fn at($($by)+ self, at: Instant) -> PushWith<$target> {
                PushWith::new(self).at(at)
            }

            /// The same, for pushes that are not delivered before so long after the push.
            pub fn after($($by)+ self, delay: Duration) -> PushWith<$target> {
                PushWith::new(self).after(delay)
            }
        }
    };
}

views!([] DurableQueue<T, O>, &Self, [&]);
views!([] Handle<T, O>, &mut Self, [&mut]);
views!(['h,] Transaction<'h, T, O>, &Self, [&]);

macro_rules! push_to {
    ([$($generics:tt)*] $type:ty, |$from:ident| $clock:expr, $begin:path) => {
        impl<$($generics)* T: Send + 'static, O: Order<T>> PushTo for $type {}

        impl<$($generics)* T: Send + 'static, O: Order<T>> Push for $type {
            type Item = T;

            fn now(&self) -> Instant {
                let $from = self;
                $clock.now()
            }

            #[allow(private_interfaces)]
            fn push(self, item: T, place: Place, wait: Wait) -> Result<Ticket, PushError<T>> {
                verbs::push(self, item, Some(place), wait)
            }

            #[allow(private_interfaces)]
            fn push_batch(self, items: Vec<T>, place: Place, wait: Wait) -> Result<Tickets, PushError<Vec<T>>> {
                verbs::push_batch(self, items, Some(place), wait)
            }

            #[allow(private_interfaces)]
            async fn push_async(self, item: T, place: Place) -> Result<Ticket, PushError<T>> {
                verbs::push_async($begin(self), item, Some(place)).await
            }

            #[allow(private_interfaces)]
            async fn push_batch_async(self, items: Vec<T>, place: Place) -> Result<Tickets, PushError<Vec<T>>> {
                verbs::push_batch_async($begin(self), items, Some(place)).await
            }
        }
    };
}

push_to!(['p,] &'p DurableQueue<T, O>, |queue| queue.shared.clock, DurableQueue::begin_owned);
push_to!(['p,] &'p mut Handle<T, O>, |handle| handle.queue().shared.clock, Handle::begin);

impl<T: Send + 'static, O: Order<T>> PushTo for &Transaction<'_, T, O> {}

impl<T: Send + 'static, O: Order<T>> Push for &Transaction<'_, T, O> {
    type Item = T;

    fn now(&self) -> Instant {
        self.core().local.shared.clock.now()
    }

    #[allow(private_interfaces)]
    fn push(self, item: T, place: Place, wait: Wait) -> Result<Ticket, PushError<T>> {
        self.stage(item, Some(place), wait)
    }

    #[allow(private_interfaces)]
    fn push_batch(
        self,
        items: Vec<T>,
        place: Place,
        wait: Wait,
    ) -> Result<Tickets, PushError<Vec<T>>> {
        self.stage_batch(items, Some(place), wait)
    }

    #[allow(private_interfaces)]
    fn push_async(
        self,
        item: T,
        place: Place,
    ) -> impl Future<Output = Result<Ticket, PushError<T>>> + Send {
        self.stage_async(item, Some(place))
    }

    #[allow(private_interfaces)]
    fn push_batch_async(
        self,
        items: Vec<T>,
        place: Place,
    ) -> impl Future<Output = Result<Tickets, PushError<Vec<T>>>> + Send {
        self.stage_batch_async(items, Some(place))
    }
}

/// Items that are not held. Each call is durable when it returns.
impl<T: Send + 'static, O: Order<T>> DurableQueue<T, O>
where
    O::Ram: Prioritized<crate::order::EntryOf<T, O>>,
{
    fn ram_ticket(&self, ticket: Ticket) -> Option<requeue::Ticket> {
        let tickets = self.shared.tickets.as_ref()?;
        tickets.lock().get(&ticket.0).copied()
    }

    /// Changes the priority of an item; returns whether it was there, and not held.
    ///
    /// # Errors
    ///
    /// As for [`Transaction::commit`]; then the change may be lost when the store is opened again.
    ///
    /// # Panics
    ///
    /// If the priority is not in 1 to 9,999.
    #[track_caller]
    pub fn reprioritize(&self, ticket: Ticket, priority: u16) -> Result<bool, StoreError> {
        assert!(
            PRIORITIES.contains(&priority),
            "a priority is from 1 to 9,999"
        );
        self.reschedule_with(
            ticket,
            |schedule| Schedule {
                priority,
                ..schedule
            },
            |ticket| self.ram.reprioritize(ticket, priority).unwrap_or(false),
        )
    }

    /// Changes the time before which an item is not delivered; returns whether it was there, and not held.
    ///
    /// # Errors
    ///
    /// As for [`reprioritize`](Self::reprioritize).
    pub fn reschedule(&self, ticket: Ticket, at: Instant) -> Result<bool, StoreError> {
        let place = Place {
            priority: DEFAULT_PRIORITY,
            due: Some(at),
        };
        let due = self.shared.schedule(place).due;
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
        in_memory: impl FnOnce(requeue::Ticket) -> bool,
    ) -> Result<bool, StoreError> {
        let Some(ram_ticket) = self.ram_ticket(ticket) else {
            return Ok(false);
        };
        let schedule = self.shared.schedule_of(ticket.0)?.unwrap_or_default();
        if !in_memory(ram_ticket) {
            return Ok(false);
        }
        self.shared.write(Change::Rescheduled(
            self.shared.key(ticket.0),
            change(schedule),
        ))?;
        Ok(true)
    }

    /// Removes an item, and returns it if it was there and not held.
    ///
    /// # Errors
    ///
    /// As for [`Transaction::commit`]; then the item is back when the store is opened again.
    pub fn cancel(&self, ticket: Ticket) -> Result<Option<T>, StoreError> {
        let Some(ram_ticket) = self.ram_ticket(ticket) else {
            return Ok(None);
        };
        let Some(mut entry) = self.ram.cancel(ram_ticket) else {
            return Ok(None);
        };
        let shared = &self.shared;
        shared.load(&mut entry)?;
        let mut batch = Batch::default();
        Run::add(&mut batch.removes, shared.key(ticket.0), 1);
        let tickets = shared.tickets_of(&mut batch);
        shared.log().commit(&mut [batch], Durability::Synced)?;
        shared.exchange_tickets(tickets);
        Ok(entry.into_item())
    }
}

impl<T: Send + 'static, O: Engine<T>> Shared<T, O> {
    /// The schedule of an item that is on the disk, or will be, if the queue has schedules.
    pub(super) fn schedule_of(&self, id: u64) -> Result<Option<Schedule>, StoreError> {
        if !O::HAS_TICKETS {
            return Ok(None);
        }
        let key = self.key(id);
        let disk = self.log().disk();
        let read = || -> Result<Option<Schedule>, StoreError> {
            if let Some(schedule) = disk
                .books()
                .marks
                .get(&key)
                .and_then(|mark| mark.0.schedule)
            {
                return Ok(Some(schedule));
            }
            let bytes = key.to_bytes();
            let value = guarded(|| Ok(disk.tables.items.get(bytes)?))?;
            Ok(value.map(|value| {
                let content = format::open(&bytes, &value).and_then(format::split_value);
                content
                    .and_then(|(schedule, _)| schedule)
                    .unwrap_or(Schedule {
                        priority: DEFAULT_PRIORITY,
                        due: None,
                    })
            }))
        };
        if let Some(schedule) = read()? {
            return Ok(Some(schedule));
        }
        self.log().flush()?;
        read()
    }
}
