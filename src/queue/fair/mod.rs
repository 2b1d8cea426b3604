//! The public interface of queues that are fair by key.

mod builder;
mod snapshot;

pub use snapshot::FairSnapshot;

use crate::core::Local;
use crate::order::fair::{ByKey, KeySource, Keyed};
use crate::sync::{defer_with, swallow_panic};
use crate::Queue;
use std::hash::Hash;
use std::sync::Arc;

/// A queue that serves the keys of its items round-robin, so that a key with many items cannot starve the others.
///
/// Otherwise it is a [`Queue`]: handles, transactions, waiting, capacity, closing, retries, leases, dead letters and
/// statistics are the same. [`Builder::fair_by`](crate::Builder::fair_by) makes one with settings.
///
/// ```
/// use requeue::FairQueue;
///
/// let queue = FairQueue::by(|job: &&str| job.chars().next());
/// for job in ["a1", "a2", "a3", "b1", "c1", "c2"] {
///     queue.push(job)?;
/// }
/// queue.close();
/// assert!(queue.iter().eq(["a1", "b1", "c1", "a2", "c2", "a3"]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Order
///
/// A *round* delivers one item of each key that has one ready when the round begins, or as many in a row as the key's
/// [weight](crate::Builder::weight). A key that gets its first item meanwhile joins at the end, for the next round.
/// The items of a key are delivered in the order of a [`Queue`]: those pushed through one handle, or without one, in
/// that order.
///
/// Items given back by an abort, or later by a [retry](crate::Transaction::retry_after), are delivered first again,
/// and their key is served first: its share of the round is used only when an item is committed or becomes a dead
/// letter. A key leaves the round with its last ready item: if items come back then, the key may deliver one for each
/// of them, whatever its weight.
///
/// With [`Builder::serial`](crate::Builder::serial) the items of a key are also processed in that order: while one is
/// held or waits to be retried, no other item of the key is delivered.
///
/// # Keys
///
/// The key function is called once when an item is pushed or staged; if keys have a
/// [limit](crate::Builder::key_capacity), once more for each check whether there is room. Modifying a held item does
/// not move it to another key. If the key function, a weight, or `Hash` or `Eq` of a key panics, the push panics: the
/// item is dropped, and nothing else changes.
///
/// Each key is stored once while it has items that are staged, ready, held or delayed, and dropped with the last one.
/// A key may be an `Option`: `None` is a key like any other.
///
/// As in a `HashMap`, it is a logic error if `Hash` and `Eq` of a key disagree or change; then an item may be stored
/// under another key, but none is lost. `Eq` runs under a lock that pushes share, so it must not use the same queue.
/// All other user code runs outside of all locks.
///
/// # Progress and costs
///
/// A push looks the key up under the lock of one of 128 tables of keys, and then is a push of a [`Queue`]. All pops
/// share one lock, under which they move pushed items into the order and take the next item out, both in constant
/// time per item, except when memory grows. A commit of held items takes the lock of the table once more for each
/// item, and with [`Builder::serial`](crate::Builder::serial) the lock of the order; giving them back takes none.
/// Plain pops are counted in their table 64 at a time, or when the key has no more ready items; one by one if the
/// queue is serial or keys have a limit. Unlike with a [`Queue`], a thread that stalls in a pop delays the others.
///
/// An item takes 24 bytes in the order in addition to its size, and a key some 170. The items of a key are
/// contiguous, in memory that grows by doubling. Memory of removed keys is freed in pages of 64, that of items when
/// three quarters of a key's memory are unused; the tables of keys remain, with some 40 kilobytes.
pub type FairQueue<K, T> = Queue<T, ByKey<K, T>>;

impl<K, T> Queue<T, ByKey<K, T>>
where
    K: Hash + Eq + Send + Sync,
    T: Send,
{
    /// Makes an unbounded queue that is fair by the keys that `by` returns.
    ///
    /// ```
    /// let queue = requeue::FairQueue::by(|job: &(String, u32)| job.0.clone());
    /// queue.push(("alice".to_string(), 1))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn by(by: impl Fn(&T) -> K + Send + Sync + 'static) -> Self {
        Queue::builder().fair_by(by).build()
    }
}

/// Inspection of the keys of a [`FairQueue`], leased or not.
impl<T: Send, O: Keyed<T>> Queue<T, O> {
    /// The key of an item, which need not be in the queue.
    ///
    /// ```
    /// let queue = requeue::FairQueue::by(|job: &u32| job % 10);
    /// assert_eq!(queue.key_of(&42), 2);
    /// ```
    pub fn key_of(&self, item: &T) -> O::Key {
        self.shared().source.keys().key_of(item)
    }

    /// The key of an item, if the key is at its [limit](crate::Builder::key_capacity).
    ///
    /// It names the key for which a push, of any form, returned [`Full`](crate::PushError::Full); `None` if the queue
    /// had no room.
    ///
    /// ```
    /// let queue = requeue::Queue::builder().fair_by(|job: &u32| job % 10).key_capacity(1).build();
    /// queue.push(42)?;
    /// let refused = queue.push(32).unwrap_err();
    /// assert!(refused.is_full());
    /// assert_eq!(queue.key_at_limit(&refused.into_inner()), Some(2));
    /// assert_eq!(queue.key_at_limit(&33), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn key_at_limit(&self, item: &T) -> Option<O::Key> {
        self.shared().source.keys().key_at_limit(item)
    }

    /// Visits the items of one key in their order, and returns their number. They stay.
    ///
    /// A ready item that stays in the queue is visited once; in a [serial](crate::Builder::serial) queue also one
    /// that waits for another item of its key. Items that are held, delayed, visited by another call, or pushed
    /// meanwhile may be missed.
    ///
    /// It looks the key up, and takes constant time for each of its items; items of other keys are not touched. Some
    /// thirty items at a time are set aside for `visit`, without a lock; pops wait only while items are set aside or
    /// put back. Those few count as held: pops find the others, in a serial queue none of this key while its first
    /// item is set aside. They return to their places, also if `visit` panics, and no delivery is counted.
    ///
    /// ```
    /// let queue = requeue::FairQueue::by(|job: &(&str, u32)| job.0);
    /// queue.push(("alice", 1))?;
    /// queue.push(("bob", 2))?;
    /// queue.push(("alice", 3))?;
    /// let mut jobs = Vec::new();
    /// assert_eq!(queue.items_of(&"alice", |job| jobs.push(job.1)), 2);
    /// assert_eq!((jobs, queue.len()), (vec![1, 3], 3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn items_of(&self, key: &O::Key, mut visit: impl FnMut(&T)) -> usize {
        let shared = self.shared();
        shared.bring_up_to_date();
        let keys = shared.source.keys();
        let Some((number, key)) = keys.find(key) else {
            return 0;
        };
        // The key may be dropped here, and its destructor is user code.
        let key = defer_with(Some(key), |key| _ = swallow_panic(|| drop(key.take())));
        // Between two parts all items of the key may be removed, and its number reused for another key.
        let is_same = || key.as_ref().is_some_and(|key| keys.is(number, key));
        let mut count = 0;
        Local::new(Arc::clone(shared), None).visit_source(
            |source| source.begin_visit_of(number),
            is_same,
            |item, _| {
                visit(item);
                count += 1;
                true
            },
        );
        count
    }

    /// A consistent snapshot of the keys that have items in the queue, in the order in which they will be served.
    /// Pops wait while it is taken.
    ///
    /// ```
    /// let queue = requeue::FairQueue::by(|job: &&str| job.chars().next().unwrap());
    /// for job in ["a1", "b1", "a2", "c1"] {
    ///     queue.push(job)?;
    /// }
    /// assert_eq!(queue.pop()?, "a1");
    /// let keys = queue.keys();
    /// assert!(keys.round().eq(&['b', 'c']));
    /// assert!(keys.iter().eq([(&'b', 1), (&'c', 1), (&'a', 1)]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn keys(&self) -> FairSnapshot<O::Key> {
        self.shared().bring_up_to_date();
        FairSnapshot::of(&*self.shared().source)
    }
}
