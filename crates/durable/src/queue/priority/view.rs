//! Pushes with a priority and a time.

use super::target::PushTo;
use crate::call::{now, Caller};
use crate::error::PushError;
use crate::order::{EntryOf, Load, Many, One, Order, Place, DEFAULT_PRIORITY};
use crate::ticket::{Ticket, Tickets};
use crate::{DurableQueue, Handle, Transaction};
use requeue::Prioritized;
use std::future::Future;
use std::time::{Duration, Instant};

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

impl<P: PushTo> PushWith<P> {
    fn new(target: P) -> Self {
        Self {
            target,
            priority: DEFAULT_PRIORITY,
            when: None,
        }
    }

    /// Sets the priority: 0, the most urgent, to 65,535. The default is 5,000.
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

    fn place(&self) -> Place {
        Place {
            priority: self.priority,
            due: self.when.and_then(|when| match when {
                When::At(at) => Some(at),
                When::After(delay) => {
                    let now = self.target.clock().now();
                    let late = Duration::from_secs(100 * 365 * 24 * 3600);
                    now.checked_add(delay).or_else(|| now.checked_add(late))
                }
            }),
        }
    }

    fn push_by<L: Load>(
        self,
        load: L::Of<P::Item>,
        caller: Caller,
    ) -> impl Future<Output = Result<Tickets, PushError<L::Of<P::Item>>>> + Send {
        let place = self.place();
        self.target.push::<L>(load, Some(place), caller)
    }

    requeue::verb! {
        push(self, item: P::Item) -> Result<Ticket, PushError<P::Item>>, |wait| now(self.push_by::<One>(item, Caller::Thread(wait))).map(Tickets::first);
        now:
        /// Pushes an item; returns its ticket.
        ///
        /// # Errors
        ///
        /// As the push of the queue, handle or transaction.
        blocking:
        /// Pushes an item; waits for room.
        ///
        /// # Errors
        ///
        /// As [`push`](Self::push).
        timed: "Pushes an item", "room",
        /// # let directory = tempfile::tempdir()?;
        /// # let store = requeue_durable::Store::open(directory.path())?;
        /// let jobs = store.builder("jobs").by_priority().capacity(1).build()?;
        /// let urgent = jobs.priority(1);
        /// urgent.push(7)?;
        refused = urgent(8);
        /// assert!(refused.unwrap_err().is_full());
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// As [`push`](Self::push).
        async(self, item: P::Item) -> impl Future<Output = Result<Ticket, PushError<P::Item>>> + Send {
            let pushing = self.push_by::<One>(item, Caller::Task);
            async { pushing.await.map(Tickets::first) }
        }
        /// Pushes an item in a task; waits for room.
        ///
        /// # Errors
        ///
        /// As [`push`](Self::push).
    }

    requeue::verb! {
        push_batch(self, items: impl IntoIterator<Item = P::Item>) -> Result<Vec<Ticket>, PushError<Vec<P::Item>>>,
            |wait| now(self.push_by::<Many>(items.into_iter().collect(), Caller::Thread(wait))).map(Tickets::into_vec);
        now:
        /// Pushes all items, with the same priority and time; returns their tickets.
        ///
        /// # Errors
        ///
        /// As [`push`](Self::push), with the items that were not pushed.
        blocking:
        /// As [`push_batch`](Self::push_batch); waits for room.
        ///
        /// # Errors
        ///
        /// As [`push_batch`](Self::push_batch).
        timed: "Pushes all items, with the same priority and time", "room for all of them",
        /// # let directory = tempfile::tempdir()?;
        /// # let store = requeue_durable::Store::open(directory.path())?;
        /// let jobs = store.builder("jobs").by_priority().capacity(2).build()?;
        /// let urgent = jobs.priority(1);
        /// urgent.push(7)?;
        refused = urgent([8, 9]);
        /// assert_eq!(refused.unwrap_err().into_inner(), Some(vec![8, 9]));
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// As [`push_batch`](Self::push_batch).
        async(self, items: impl IntoIterator<Item = P::Item>) -> impl Future<Output = Result<Vec<Ticket>, PushError<Vec<P::Item>>>> + Send {
            let pushing = self.push_by::<Many>(items.into_iter().collect(), Caller::Task);
            async { pushing.await.map(Tickets::into_vec) }
        }
        /// As [`push_batch_blocking`](Self::push_batch_blocking), in a task.
        ///
        /// # Errors
        ///
        /// As [`push_batch`](Self::push_batch).
    }
}

macro_rules! views {
    ([$($generics:tt)*] $type:ty, $target:ty, [$($by:tt)+]) => {
        impl<$($generics)* T: Send + 'static, O: Order<T>> $type
        where
            O::Ram: Prioritized<EntryOf<T, O>>,
        {
            /// The same, for pushes with a priority: 0, the most urgent, to 65,535.
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
