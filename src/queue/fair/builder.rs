//! The settings of a fair queue.

use crate::order::fair::{ByKey, Keyed, Rules, UNLIMITED};
use crate::Builder;
use std::hash::Hash;
use std::sync::Arc;

impl<T> Builder<T> {
    /// Makes the queue fair by the keys that `by` finds: a [`FairQueue`](crate::FairQueue).
    ///
    /// ```
    /// use requeue::Queue;
    ///
    /// let queue = Queue::builder().fair_by(|job: &(u32, &str)| job.0).capacity(100).build();
    /// queue.push((1, "job"))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fair_by<K>(self, by: impl Fn(&T) -> K + Send + Sync + 'static) -> Builder<T, ByKey<K, T>>
    where
        K: Hash + Eq + Send + Sync,
        T: Send,
    {
        self.by(|()| Rules::new(Arc::new(by)))
    }
}

/// Settings of a [`FairQueue`](crate::FairQueue), leased or not, besides those of all queues.
impl<T: Send, O: Keyed<T>> Builder<T, O> {
    /// Gives out no item of a key while another one of it is held, or waits to be retried.
    ///
    /// So the items of a key are worked off one after the other, in their order, and those of different
    /// keys side by side. A pop finds the queue [empty](crate::PopError::Empty) while all keys that have
    /// items have one that is held; who waits is woken when the first of those is committed, given back,
    /// or dies. Items that have to wait for another one of their key do not count as ready in
    /// [`Queue::len`](crate::Queue::len), but as [`Stats::delayed`](crate::Stats::delayed).
    ///
    /// Several workers that each hold items of several keys cannot lock each other out, as long as none
    /// waits for a certain key.
    ///
    /// ```
    /// let queue = requeue::Queue::builder().fair_by(|job: &&str| job.chars().next()).serial().build();
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
    /// use requeue::Queue;
    ///
    /// let queue = Queue::builder().fair_by(|job: &&str| job.chars().next().unwrap())
    ///     .weight(|key| if *key == 'a' { 2 } else { 1 })
    ///     .build();
    /// queue.handle().push_batch(["a1", "a2", "a3", "b1", "b2"])?;
    /// queue.close();
    /// assert!(queue.iter().eq(["a1", "a2", "b1", "a3", "b2"]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn weight(mut self, weigh: impl Fn(&O::Key) -> u32 + Send + Sync + 'static) -> Self {
        self.order().weigh = Some(Arc::new(weigh));
        self
    }

    /// The most items of one key that the queue takes; without it, there is no bound.
    ///
    /// All count that are somewhere: staged, ready, held or delayed, but not the dead letters. A push of
    /// one more is [`Full`](crate::PushError::Full) at once, in every form: those that wait, wait for the room of
    /// the queue and never for that of a key. So is a batch of which some items do not fit their key. A push that
    /// waits for the queue and finds its key at the limit when its turn comes is `Full` then, and its turn goes to
    /// the next. [`FairQueue::key_at_limit`](crate::FairQueue::key_at_limit) names the key, so that the caller can
    /// put the item off.
    ///
    /// Unlike with [`Builder::capacity`], what a transaction holds keeps its own place until the transaction
    /// ends, and gives it to none of its pushes.
    ///
    /// ```
    /// let queue = requeue::Queue::builder().fair_by(|job: &u32| job % 10).key_capacity(1).build();
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
}
