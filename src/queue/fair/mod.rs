//! Queues that are fair by key, as users see them.

mod builder;
mod snapshot;

pub use snapshot::FairSnapshot;

use crate::core::Local;
use crate::order::fair::{ByKey, Keyed};
use crate::order::{Sequence, Source};
use crate::sync::{defer_with, swallow_panic};
use crate::Queue;
use std::hash::Hash;
use std::sync::Arc;

/// A queue that serves the keys of its items in turn, so that one with many items does not delay the
/// others.
///
/// It is a [`Queue`] in all else: handles, transactions, waiting, capacity, closing, retries, leases, dead
/// letters and statistics are the same. [`Builder::fair_by`](crate::Builder::fair_by) makes one with settings.
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
/// A *round* serves the first item of each key that has one ready when the round begins: one, or as many
/// in a row as the key has [weight](crate::Builder::weight). A key that gets its first item meanwhile joins at the
/// end, for the next round. The items of a key leave in the order of a [`Queue`]: those that were pushed
/// through one handle, or without one, in that order.
///
/// What an abort gives back comes first again, and its key with it: the turn was not used. So does what
/// comes back later, as after a [retry](crate::Transaction::retry_after). A turn is used when the item is
/// committed or dies. The visit of a key ends with its last ready item: if that comes back, the key has one
/// turn for each item that does, whatever its weight.
///
/// With [`Builder::serial`](crate::Builder::serial) the items of a key are also worked off in that order: while one is held, or
/// waits to be retried, no other of that key is given out.
///
/// # Keys
///
/// The key of an item is asked for when it is pushed or staged: once, but where keys have a
/// [limit](crate::Builder::key_capacity) once more for each look whether they have room. Changes of the item after
/// that, while it is held, do not move it to another key. If the key function, a weight, or `Hash` or `Eq` of a key
/// panics, so does the push: then the item is dropped as with any panic of its owner, and nothing else
/// happens.
///
/// Each key is stored once while an item with it is somewhere: staged, ready, held or delayed. It is
/// dropped with the last one. A key may be an `Option`: `None` is a key like others.
///
/// As in a `HashMap`, it is an error in the program if `Hash` and `Eq` of a key disagree or change; then an
/// item may find itself among those of another number, but none is lost. `Eq` runs under a lock that
/// pushes share, so it must not use the same queue. All other code of the user runs outside all locks.
///
/// # Progress and costs
///
/// A push takes the lock of one of 128 tables of keys for a look-up, and is then that of a [`Queue`]. All
/// pops share one lock, under which they move what was pushed into the order and take the next item out,
/// both in constant time for each item, but for the growth of memory. The commit of what was held takes the
/// lock of its table once more for each item, and with [`Builder::serial`](crate::Builder::serial) that of the order; giving it back
/// takes none. What is popped for good is told to its table 64 at a time, or when the key has no more ready;
/// one by one if the queue is serial or has a limit for each key. A thread that is stopped in the midst of a
/// pop delays the others, unlike with a [`Queue`].
///
/// An item takes 24 bytes besides itself in the order, and a key some 170 besides itself. The items of a key
/// lie side by side, with room for as many again. Memory of keys that are gone is given back in pages of 64,
/// that of items when three quarters of a key's are unused; the tables of keys stay, with a few kilobytes.
pub type FairQueue<K, T> = Queue<T, ByKey<K, T>>;

impl<K, T> Queue<T, ByKey<K, T>>
where
    K: Hash + Eq + Send + Sync,
    T: Send,
{
    /// Makes a queue without bounds that is fair by the keys that `by` finds.
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

/// What a [`FairQueue`] knows of its keys, leased or not.
impl<T: Send, O: Keyed<T>> Queue<T, O> {
    /// The key of an item, which need not be in the queue.
    ///
    /// ```
    /// let queue = requeue::FairQueue::by(|job: &u32| job % 10);
    /// assert_eq!(queue.key_of(&42), 2);
    /// ```
    pub fn key_of(&self, item: &T) -> O::Key {
        self.shared().source.registry().key_of(item)
    }

    /// The key of an item, if there are as many with it as the [limit](crate::Builder::key_capacity) allows.
    ///
    /// So it names the key for which a push was [`Full`](crate::PushError::Full), in whatever form; `None`, if it
    /// was the queue that had no room.
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
        self.shared().source.registry().key_at_limit(item)
    }

    /// Visits the items of one key in their order, and says how many they were. They stay.
    ///
    /// An item that is in the queue all the time is visited once: a ready one, and in a
    /// [serial](crate::Builder::serial) queue those that wait for another one of their key too. Those that are held,
    /// delayed or looked at by somebody else are missed, and those that are pushed meanwhile.
    ///
    /// Costs a look-up of the key, and constant time for each item of this key; items of other keys are not
    /// touched. Some thirty items at a time are set aside while `visit` looks at them, without a lock; pops wait only
    /// while a part is set aside or put back. Those few count as held: pops find the others, and of a serial queue none
    /// of this key while its first item is set aside. They come back to their places, also if `visit` panics, and no
    /// delivery is counted.
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
    pub fn items_of(&self, key: &O::Key, visit: impl FnMut(&T)) -> usize {
        let shared = self.shared();
        shared.bring_up_to_date();
        let keys = shared.source.registry();
        let Some((number, key)) = keys.find(key) else {
            return 0;
        };
        // Its destructor is user code, and may be ours to run.
        let key = defer_with(Some(key), |key| _ = swallow_panic(|| drop(key.take())));
        // Between two parts all items of the key may go, and its number may become that of another one.
        let is_same = || key.as_ref().is_some_and(|key| keys.is(number, key));
        Local::new(Arc::clone(shared), None).visit_source(
            |source| source.with(|rounds| rounds.begin_visit_of(number)),
            |source, at, shown| source.with(|rounds| is_same() && rounds.show(at, shown)),
            visit,
        )
    }

    /// The keys that have items in the queue, in the order in which they will be served, as they are at
    /// one instant. Pops wait meanwhile.
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
        let source = &self.shared().source;
        source.with(|rounds| FairSnapshot::of(rounds, source.registry()))
    }
}
