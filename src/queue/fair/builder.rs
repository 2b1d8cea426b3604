//! The settings of a fair queue.

use super::FairQueue;
use crate::order::fair::{By, Keys, Rounds, Rules, Weigh, UNLIMITED};
use crate::order::Sorted;
use crate::{Builder, Queue};
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

/// Of how many items of a key that are gone its table is told together, so that pops leave the tables to
/// pushes.
const TOGETHER: u32 = 64;

/// The order of a [`FairQueue`], as a [`Builder`] knows it: see [`FairQueue::builder`].
///
/// ```
/// use requeue::{Builder, ByKey, FairQueue};
///
/// fn limited(builder: Builder<u32, ByKey<u32, u32>>) -> FairQueue<u32, u32> {
///     builder.capacity(100).build()
/// }
/// assert_eq!(limited(FairQueue::builder(|job| job % 10)).capacity(), Some(100));
/// ```
pub struct ByKey<K, T> {
    by: By<K, T>,
    weigh: Option<Weigh<K>>,
    limit: u32,
    serial: bool,
}

impl<K, T> ByKey<K, T> {
    pub(super) fn new(by: By<K, T>) -> Self {
        Self {
            by,
            weigh: None,
            limit: UNLIMITED,
            serial: false,
        }
    }
}

/// Settings of a [`FairQueue`] besides those of all queues.
impl<K, T> Builder<T, ByKey<K, T>>
where
    K: Hash + Eq + Send + Sync + 'static,
    T: Send + 'static,
{
    /// Gives out no item of a key while another one of it is held, or waits to be retried.
    ///
    /// So the items of a key are worked off one after the other, in their order, and those of different
    /// keys side by side. A pop finds the queue [empty](crate::PopError::Empty) while all keys that have
    /// items have one that is held; who waits is woken when the first of those is committed, given back,
    /// or dies. Items that have to wait for another one of their key do not count as ready in
    /// [`Queue::len`], but as [`Stats::delayed`](crate::Stats::delayed).
    ///
    /// Several workers that each hold items of several keys cannot lock each other out, as long as none
    /// waits for a certain key.
    ///
    /// ```
    /// let queue = requeue::FairQueue::builder(|job: &&str| job.chars().next()).serial().build();
    /// let mut worker = queue.handle();
    /// worker.push_batch(["a1", "a2", "b1"])?;
    /// let tx = worker.begin();
    /// assert_eq!(*tx.pop()?, "a1");
    /// assert_eq!(queue.pop()?, "b1");
    /// assert!(queue.is_empty()); // a2 waits
    /// tx.commit();
    /// assert_eq!(queue.pop()?, "a2");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn serial(mut self) -> Self {
        self.order().serial = true;
        self
    }

    /// How many turns in a row a key has in each round: one without this, and if `weigh` says 0.
    ///
    /// Asked for when a key gets its first item, and then kept as long as one is somewhere.
    ///
    /// ```
    /// use requeue::FairQueue;
    ///
    /// let queue = FairQueue::builder(|job: &&str| job.chars().next().unwrap())
    ///     .weight(|key| if *key == 'a' { 2 } else { 1 })
    ///     .build();
    /// queue.handle().push_batch(["a1", "a2", "a3", "b1", "b2"])?;
    /// queue.close();
    /// assert!(queue.drain().eq(["a1", "a2", "b1", "a3", "b2"]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn weight(mut self, weigh: impl Fn(&K) -> u32 + Send + Sync + 'static) -> Self {
        self.order().weigh = Some(Arc::new(weigh));
        self
    }

    /// The most items of one key that the queue takes; without it, there is no bound.
    ///
    /// All count that are somewhere: staged, ready, held or delayed, but not the dead letters. A push of
    /// one more is [`Full`](crate::PushError::Full); [`FairQueue::key_at_limit`] tells that from a full
    /// queue. Pushes that wait for room wait for that of their key, too; all of them are woken when an item is
    /// gone or a place is free, and who finds room first has it.
    ///
    /// Unlike with [`Builder::capacity`], what a transaction holds keeps its own place until the transaction
    /// ends, and gives it to none of its pushes: one that waits for a place which it holds itself waits for ever.
    ///
    /// ```
    /// let queue = requeue::FairQueue::builder(|job: &u32| job % 10).key_capacity(1).build();
    /// queue.push(42)?;
    /// assert!(queue.push(32).unwrap_err().is_full());
    /// queue.push(43)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If `limit` is 0: there must be room for at least one item of a key.
    #[track_caller]
    pub fn key_capacity(mut self, limit: usize) -> Self {
        assert!(limit > 0, "key_capacity is 0: no key could have an item");
        self.order().limit = u32::try_from(limit).unwrap_or(UNLIMITED);
        self
    }

    /// Makes the queue.
    ///
    /// ```
    /// let queue = requeue::FairQueue::builder(|job: &u32| job % 10).build();
    /// assert_eq!(queue.capacity(), None);
    /// ```
    pub fn build(self) -> FairQueue<K, T> {
        let (settings, by_key) = self.into_settings();
        let ByKey {
            by,
            weigh,
            limit,
            serial,
        } = by_key;
        // A limit has to be exact.
        let together = if limit == UNLIMITED { TOGETHER } else { 1 };
        let rounds = Rounds::new(serial, together);
        let keys = Keys::new(Rules { by, weigh, limit });
        let (queue, order) = Queue::ordered(settings, |lanes, agenda| {
            Sorted::new(rounds, keys, lanes, agenda)
        });
        FairQueue { queue, order }
    }
}

impl<K, T> Clone for ByKey<K, T> {
    fn clone(&self) -> Self {
        Self {
            by: Arc::clone(&self.by),
            weigh: self.weigh.clone(),
            limit: self.limit,
            serial: self.serial,
        }
    }
}

impl<K, T> fmt::Debug for ByKey<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = Some(self.limit).filter(|limit| *limit < UNLIMITED);
        f.debug_struct("ByKey")
            .field("serial", &self.serial)
            .field("weighed", &self.weigh.is_some())
            .field("key_capacity", &limit)
            .finish_non_exhaustive()
    }
}
