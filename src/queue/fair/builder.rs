//! The settings of a fair queue.

use crate::order::fair::{ByKey, Keyed, Rules, UNLIMITED};
use crate::raw::Shareable;
use crate::Builder;
use std::hash::Hash;
use std::sync::Arc;

impl<T> Builder<T> {
    /// Makes the queue fair by the keys that `by` returns: a [`FairQueue`](crate::FairQueue).
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
        self.by(|()| Rules::new(Arc::new(by)), Shareable::proved())
    }
}

/// Additional settings of a [`FairQueue`](crate::FairQueue), leased or not.
impl<T: Send, O: Keyed<T>> Builder<T, O> {
    /// Delivers no item of a key while another item of the key is held or waits to be retried.
    ///
    /// So the items of a key are processed one at a time, in their order, and those of different keys in parallel. A
    /// pop finds the queue [empty](crate::PopError::Empty) while every key with items has one that is held; waiters
    /// are woken when one of those is committed, given back, or becomes a dead letter. Items that wait for another
    /// item of their key do not count as ready in [`Queue::len`](crate::Queue::len), but as
    /// [`Stats::delayed`](crate::Stats::delayed).
    ///
    /// Several workers that each hold items of several keys cannot deadlock, as long as none waits for a certain key.
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
    pub fn serial(self) -> Self {
        self.max_held_per_key(1)
    }

    /// Sets how many items of one key may be held at a time: further ones are not delivered until one of these is committed,
    /// given back, or becomes a dead letter. The default is no limit; with 1 the queue is [serial](Builder::serial).
    ///
    /// The keys that are at their limit are passed over, and the others go on. Their items count as ready in
    /// [`Queue::len`](crate::Queue::len) as long as there is a key that is not, unless the queue is serial.
    ///
    /// ```
    /// let queue = requeue::Queue::builder()
    ///     .fair_by(|job: &&str| job.chars().next())
    ///     .max_held_per_key(2)
    ///     .build();
    /// queue.handle().push_batch(["a1", "a2", "a3", "b1"])?;
    /// let first = queue.take()?;
    /// let running: Vec<_> = [queue.take()?, queue.take()?].into();
    /// assert!(queue.take().is_err()); // a3 waits
    /// first.ack();
    /// assert_eq!(*queue.take()?, "a3");
    /// # drop(running);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If `items` is 0: no item could be taken.
    #[doc(alias("concurrency limit", "max_running"))]
    #[track_caller]
    pub fn max_held_per_key(mut self, items: usize) -> Self {
        assert!(items > 0, "max_held_per_key is 0: no item could be taken");
        self.order.most_held = u32::try_from(items).unwrap_or(UNLIMITED);
        self
    }

    /// Sets how many items of a key are delivered in a row in each round. The default is one, also if `weigh` returns
    /// 0.
    ///
    /// `weigh` is called when a key gets its first item; the weight is kept as long as the key has items.
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
        self.order.weigh = Some(Arc::new(weigh));
        self
    }

    /// Sets the maximum number of items of one key. The default is unlimited.
    ///
    /// Staged, ready, held and delayed items count, dead letters do not. Pushing one more returns
    /// [`Full`](crate::PushError::Full) at once, in every form: calls wait for room in the queue, never for a key.
    /// The same holds for a batch if some of its items exceed the limit of their key. A push that waited for room and
    /// then finds its key at the limit returns `Full`, and the next waiter is woken.
    /// [`FairQueue::key_at_limit`](crate::FairQueue::key_at_limit) names the key, so that the caller can postpone the
    /// item.
    ///
    /// Unlike with [`Builder::capacity`], an item that a transaction holds counts until the transaction ends, and
    /// makes no room for its pushes.
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
        self.order.limit = u32::try_from(limit).unwrap_or(UNLIMITED);
        self
    }
}
