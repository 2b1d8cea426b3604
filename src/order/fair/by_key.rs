//! The order of fair queues.

use super::{By, Keys, Mark, Rounds, Rules, Weigh, UNLIMITED};
use crate::order::{Engine, LanesOf, Sorted};
use crate::wait::Agenda;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

/// Of how many items of a key that are gone its table is told together, so that pops leave the tables to
/// pushes.
const TOGETHER: u32 = 64;

/// The order of a [`FairQueue`](crate::FairQueue): see [`Builder::fair_by`](crate::Builder::fair_by).
///
/// ```
/// use requeue::{Builder, ByKey, FairQueue, Queue};
///
/// fn limited(builder: Builder<u32, ByKey<u32, u32>>) -> FairQueue<u32, u32> {
///     builder.capacity(100).build()
/// }
/// assert_eq!(limited(Queue::builder().fair_by(|job| job % 10)).capacity(), Some(100));
/// ```
pub struct ByKey<K, T> {
    pub(crate) by: By<K, T>,
    pub(crate) weigh: Option<Weigh<K>>,
    pub(crate) limit: u32,
    pub(crate) serial: bool,
}

impl<K, T> ByKey<K, T> {
    pub(crate) fn new(by: By<K, T>) -> Self {
        Self {
            by,
            weigh: None,
            limit: UNLIMITED,
            serial: false,
        }
    }
}

impl<K, T> Engine<T> for ByKey<K, T>
where
    K: Hash + Eq + Send + Sync,
    T: Send,
{
    type Meta = Mark;
    type Source = Sorted<T, Mark, Rounds<T>, Keys<K, T>>;

    fn source(self, lanes: &Arc<LanesOf<T, Self>>, agenda: &Arc<Agenda>) -> Self::Source {
        let Self {
            by,
            weigh,
            limit,
            serial,
        } = self;
        // A limit has to be exact.
        let together = if limit == UNLIMITED { TOGETHER } else { 1 };
        let rounds = Rounds::new(serial, together);
        let keys = Keys::new(Rules { by, weigh, limit });
        Sorted::new(rounds, keys, lanes, agenda)
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
