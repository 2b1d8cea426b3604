//! The builder of queues.

mod build;
mod order;
mod refused;

use super::letters::{DeadLetter, Limit};
use crate::codec::{Codec, OnUndecodable, Postcard};
use crate::entry::{Besides, Budget};
use crate::order::{KeyOf, Order, RamBuilder};
use crate::store::Store;
use requeue::{AfterTtl, Backoff, Clock, Fifo, OnDuplicate, Pace, ReturnTo};
use std::sync::Arc;
use std::time::Duration;

/// The settings of a [`DurableQueue`](crate::DurableQueue), from [`Store::builder`].
///
/// What is not about the disk means the same as in [`requeue::Builder`]. The settings are not stored: another process may
/// choose others, except the order.
#[must_use = "a builder does nothing until `build` is called"]
pub struct Builder<T, O: Order<T> = Fifo, C = Postcard> {
    codec: C,
    key_of: KeyOf<T, O>,
    ram: RamBuilder<T, O>,
    settings: Settings<T>,
}

/// What the queue in memory has not.
struct Settings<T> {
    store: Store,
    name: Arc<str>,
    letters: Option<Limit<T>>,
    besides: Besides<T>,
    on_duplicate: OnDuplicate,
    unique_for: Duration,
    reopened: bool,
    /// Whether all items have entries in memory in any case.
    is_in_memory: bool,
    has_ttl: bool,
    after_ttl: AfterTtl,
    on_undecodable: OnUndecodable,
}

/// The settings that are those of the queue in memory.
macro_rules! set {
    ($($(#[$on:meta])* $name:ident($($arg:ident: $type:ty)?) $(, $($flag:ident).+)?;)+) => {$(
        $(#[$on])*
        #[track_caller]
        pub fn $name(mut self $(, $arg: $type)?) -> Self {
            self.ram = self.ram.$name($($arg)?);
            $(self.settings.$($flag).+ = true;)?
            self
        }
    )+};
}

use set;

impl<T: Send + 'static> Builder<T> {
    pub(crate) fn new(store: Store, name: &str) -> Self {
        Self {
            codec: Postcard,
            key_of: Arc::new(|_| ()),
            ram: requeue::Queue::builder(),
            settings: Settings {
                store,
                name: name.into(),
                letters: None,
                besides: Besides {
                    budget: None,
                    unique: None,
                    weigh: None,
                    hash: None,
                    has_keys: false,
                    is_serial: false,
                },
                on_duplicate: OnDuplicate::Refuse,
                unique_for: Duration::ZERO,
                reopened: false,
                is_in_memory: false,
                has_ttl: false,
                after_ttl: AfterTtl::default(),
                on_undecodable: OnUndecodable::default(),
            },
        }
    }
}

impl<T: Send + 'static, O: Order<T>, C> Builder<T, O, C> {
    /// Another order.
    fn by<P: Order<T>>(
        self,
        order: impl FnOnce(KeyOf<T, O>, RamBuilder<T, O>) -> (KeyOf<T, P>, RamBuilder<T, P>),
    ) -> Builder<T, P, C> {
        let (codec, settings) = (self.codec, self.settings);
        let (key_of, ram) = order(self.key_of, self.ram);
        Builder {
            codec,
            key_of,
            ram,
            settings,
        }
    }

    /// Sets how items become bytes. The default is [`Postcard`].
    ///
    /// ```
    /// use requeue_durable::{Codec, CodecError, Store};
    ///
    /// struct Lines;
    ///
    /// impl Codec<String> for Lines {
    ///     fn encode(&self, item: &String, bytes: &mut Vec<u8>) -> Result<(), CodecError> {
    ///         bytes.extend_from_slice(item.as_bytes());
    ///         Ok(())
    ///     }
    ///     fn decode(&self, bytes: &[u8]) -> Result<String, CodecError> {
    ///         String::from_utf8(bytes.to_vec()).map_err(CodecError::new)
    ///     }
    /// }
    /// # let directory = tempfile::tempdir()?;
    /// # let store = Store::open(directory.path())?;
    /// let lines = store.builder("lines").codec(Lines).build()?;
    /// lines.push("first".to_string())?;
    /// assert_eq!(lines.pop()?, "first");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn codec<D: Codec<T>>(self, codec: D) -> Builder<T, O, D> {
        let Self {
            key_of,
            ram,
            settings,
            ..
        } = self;
        Builder {
            codec,
            key_of,
            ram,
            settings,
        }
    }

    /// Sets what becomes of items on the disk that the codec cannot decode when the queue is opened. By default they become
    /// [dead letters](crate::DeadLetters::undecodable).
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// use requeue_durable::{OnUndecodable, StoreError};
    ///
    /// store.queue::<String>("jobs")?.push("x".repeat(300))?;
    /// let jobs = store.builder::<u8>("jobs").on_undecodable(OnUndecodable::Refuse).build();
    /// assert!(matches!(jobs, Err(StoreError::Codec(_))));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_undecodable(mut self, what: OnUndecodable) -> Self {
        self.settings.on_undecodable = what;
        self
    }

    set! {
        /// Sets how often an item is delivered, in all processes together, before it becomes a
        /// [dead letter](crate::DurableQueue::dead_letters): a job that crashes its process does so at most `attempts` times. The
        /// default is unlimited, and each process counts from zero.
        ///
        /// A delivery counts unless the transaction commits: after an abort, a drop, an error, a panic, or a crash.
        ///
        /// Each delivery is written before the item is handed out. So a pop in a transaction waits for a write, which it shares with
        /// other threads, but not for a sync, unless a commit in the same group needs one. A pop that commits by itself writes
        /// nothing more than without this limit. After a power loss the deliveries of the last half second may not count. The
        /// README has figures of what this costs.
        ///
        /// # Panics
        ///
        /// If `attempts` is 0.
        max_attempts(attempts: u32);
        /// See [`requeue::Builder::backoff`]. The delays are written without a wait, and go on in the next process.
        backoff(backoff: Backoff);
        /// See [`requeue::Builder::on_failure`]. The disk keeps the order of the pushes: what an ended process had returned to the tail is
        /// in its old place in the next one.
        on_failure(to: ReturnTo);
        /// See [`requeue::Builder::clock`].
        clock(clock: impl Clock);
        /// See [`requeue::Builder::timestamps`].
        timestamps();
        /// See [`requeue::Builder::pace`].
        pace(pace: Pace);
        /// See [`requeue::Builder::max_held`].
        ///
        /// # Panics
        ///
        /// If `items` is 0.
        max_held(items: usize);
        /// See [`requeue::Builder::paused`].
        paused();
    }

    /// Sets the maximum number of items, in memory and on the disk, or their maximum [weight](Self::weigh). The default is
    /// unlimited. A queue that has more on the disk keeps them.
    ///
    /// # Panics
    ///
    /// If `capacity` is 0.
    #[track_caller]
    pub fn capacity(mut self, capacity: usize) -> Self {
        self.ram = self.ram.capacity(capacity);
        self
    }

    /// Sets how many bytes the items of the queue take in memory. The default is that of the
    /// [store](crate::StoreOptions::memory), unlimited unless it is set.
    ///
    /// A queue without weights, [ageing](Self::age_after), or a [capacity of each key](Self::key_capacity), has pages then: the items
    /// that are next are in memory, in a [fair](Self::fair_by) queue those of each key, with some 200 bytes besides each, 700 if they
    /// are [unique](Self::unique_by), and the others on the disk only, until their turn comes, or until they are due. An item that is
    /// [returned to the tail](Self::on_failure) is behind those in memory then. In other queues all items have entries in memory of some
    /// 50 bytes each, and the bytes limit their contents: further ones are read from the disk when they are popped.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// let pages = store.builder("pages").memory(1 << 20).build()?;
    /// pages.push_batch((0..32).map(|_| vec![0_u8; 100_000]))?; // three times as much
    /// assert_eq!(pages.pop()?.len(), 100_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn memory(mut self, bytes: usize) -> Self {
        self.settings.besides.budget = Some(Budget::new(bytes));
        self
    }

    /// Sets how many [dead letters](crate::DurableQueue::dead_letters) the queue keeps. Of more, the oldest ones are handed to
    /// `overflow`, by a thread of the store, once their removal is on the disk. The default is unlimited.
    ///
    /// If the process dies between the removal and the call, `overflow` does not get them.
    /// [Undecodable](crate::DeadLetters::undecodable) letters are kept, and do not count.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// use std::sync::mpsc::channel;
    ///
    /// let (send, oldest) = channel();
    /// let jobs = store
    ///     .builder("jobs")
    ///     .max_attempts(1)
    ///     .max_dead_letters(1, move |letter| send.send(letter.item).unwrap())
    ///     .build()?;
    /// jobs.push_batch([1, 2])?;
    /// let mut delivery = jobs.begin_owned();
    /// delivery.pop_batch(2)?;
    /// delivery.fail_all("no good")?;
    /// assert_eq!((oldest.recv()?, jobs.dead_letters().len()), (1, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn max_dead_letters(
        mut self,
        most: usize,
        overflow: impl Fn(DeadLetter<T>) + Send + Sync + 'static,
    ) -> Self {
        let overflow = Arc::new(overflow);
        self.settings.letters = Some(Limit { most, overflow });
        self
    }

    /// Sets the time to live of items: one that was pushed longer ago is not delivered any more, in this process or a later one,
    /// and leaves the disk. The default is no limit.
    ///
    /// It means the same as in memory, see [`requeue::Builder::ttl`]. The time of each push is on the disk, by the
    /// [wall clock](crate::StoreOptions::wall_clock), so the time to live goes on while no process runs: what is over is dropped
    /// when the queue is opened. Within a process the [clock](Self::clock) of the queue decides, except about items that are on
    /// the disk only. Items that have no time, since the queue had no time to live when they were pushed, get that of the first
    /// opening with one. The time to live itself is not stored: each opening may choose another one for all items.
    ///
    /// The removal of an item is written without a wait; if a crash undoes it, it is repeated at the next opening.
    ///
    /// A store with such a queue has version 2 of the format at least, which earlier versions of this crate refuse to open.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// use requeue_durable::ManualClock;
    /// use std::time::Duration;
    ///
    /// let clock = ManualClock::new();
    /// let codes = store.builder("codes").ttl(Duration::from_secs(60)).clock(clock.clone()).build()?;
    /// codes.push(7)?;
    /// clock.advance(Duration::from_secs(60));
    /// assert!(codes.pop().unwrap_err().is_empty());
    /// assert_eq!(codes.stats().timed_out, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If `ttl` is zero: nothing could be delivered.
    #[track_caller]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ram = self.ram.ttl(ttl);
        self.settings.has_ttl = true;
        self
    }

    /// Sets what becomes of items whose [time to live](Self::ttl) is over. By default they are dropped; they may become
    /// [dead letters](crate::DurableQueue::dead_letters) instead, on the disk.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// use requeue_durable::{AfterTtl, Cause, ManualClock, Reason};
    /// use std::time::Duration;
    ///
    /// let clock = ManualClock::new();
    /// let codes = store.builder("codes").ttl(Duration::from_secs(60)).on_expired(AfterTtl::DeadLetter);
    /// let codes = codes.clock(clock.clone()).build()?;
    /// codes.push(7)?;
    /// clock.advance(Duration::from_secs(60));
    /// assert!(codes.is_empty());
    /// let letter = codes.dead_letters().oldest()?.unwrap();
    /// assert_eq!((letter.item, letter.reason), (7, Cause::Failed(Reason::TimedOut)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_expired(mut self, then: AfterTtl) -> Self {
        self.settings.after_ttl = then;
        self
    }

    /// Opens the queue again if it was [closed](crate::DurableQueue::close). By default it stays closed.
    pub fn reopened(mut self) -> Self {
        self.settings.reopened = true;
        self
    }
}

requeue::debug_struct!([T, O: Order<T>, C] Builder<T, O, C>, |it| name: it.settings.name);
