//! Snapshots of the keys of a fair queue.

use crate::order::fair::KeySource;
use std::sync::Arc;

/// The keys of a [`FairQueue`](crate::FairQueue), from [`FairQueue::keys`](crate::FairQueue::keys).
///
/// It keeps the keys alive even if their items are gone meanwhile.
///
/// ```
/// let queue = requeue::FairQueue::by(|job: &u32| job % 10);
/// queue.push(42)?;
/// queue.push(32)?;
/// assert_eq!(queue.keys().iter().collect::<Vec<_>>(), [(&2, 2)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FairSnapshot<K> {
    keys: Vec<(Arc<K>, usize)>,
    /// How many of them, from the first, remain in the current round.
    round: usize,
}

impl<K> FairSnapshot<K> {
    /// Runs no user code.
    pub(super) fn of<T, M>(source: &impl KeySource<T, M, Key = K>) -> Self {
        let mut snapshot = Self::default();
        source.each_standing(|standing| {
            if let Some(key) = source.keys().key(standing.key) {
                snapshot.keys.push((key, standing.items));
                snapshot.round += usize::from(standing.in_round);
            }
        });
        snapshot
    }

    /// The remaining keys of the current round, in order. Empty between two rounds: the next begins with the next
    /// pop.
    ///
    /// ```
    /// let queue = requeue::FairQueue::by(|job: &u32| job % 10);
    /// queue.handle().push_batch([11, 12, 13, 21])?;
    /// assert_eq!(queue.keys().round().count(), 0);
    /// assert_eq!(queue.pop()?, 11);
    /// assert!(queue.keys().round().eq(&[2, 3]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn round(&self) -> impl ExactSizeIterator<Item = &K> + '_ {
        self.keys[..self.round].iter().map(|(key, _)| &**key)
    }

    /// All keys with the number of their items in the queue, neither held nor delayed, in the order in which they
    /// will be served. In a [serial](crate::Builder::serial) queue, keys that wait for a held item come last.
    ///
    /// ```
    /// let queue = requeue::FairQueue::by(|job: &u32| job % 10);
    /// queue.handle().push_batch([11, 12, 13, 21])?;
    /// assert!(queue.keys().iter().eq([(&1, 2), (&2, 1), (&3, 1)]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&K, usize)> + '_ {
        self.keys.iter().map(|(key, items)| (&**key, *items))
    }
}

derive_default!([K] FairSnapshot<K> { keys, round });
