//! What functions of the user say of items that are about to be pushed: their weights and unique keys.

use crate::policy::unique::Key;
use crate::sync::swallow_panic;
use std::mem::ManuallyDrop;
use std::slice;

/// The weights and keys of what one call pushes, which are computed once, before its first attempt.
pub(crate) enum Weights {
    /// Each item has one permit, and none has a key.
    None,
    /// Of a single item: without memory of its own.
    One(Known),
    Each(Box<[Known]>),
}

/// The weight and the key of an item, where items have such. The key is dropped by hand: its destructor, which may panic, is user code
/// that runs when the item may have been pushed.
pub(crate) struct Known(
    pub(crate) Option<usize>,
    pub(crate) ManuallyDrop<Option<Key>>,
);

impl Drop for Known {
    #[inline]
    fn drop(&mut self) {
        if self.1.is_some() {
            drop_key(&mut self.1);
        }
    }
}

#[inline(never)] // most queues have no such keys
fn drop_key(key: &mut Option<Key>) {
    swallow_panic(|| *key = None);
}

impl Weights {
    #[inline]
    fn all(&self) -> &[Known] {
        match self {
            Self::None => &[],
            Self::One(known) => slice::from_ref(known),
            Self::Each(all) => all,
        }
    }

    #[inline]
    pub(crate) fn nth(&self, n: usize) -> &Known {
        static NOTHING: Known = Known(None, ManuallyDrop::new(None));
        self.all().get(n).unwrap_or(&NOTHING)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.all().iter().filter_map(|known| known.1.as_ref())
    }

    /// How many permits all items together have, where they have weights.
    #[inline]
    pub(crate) fn total(&self) -> Option<usize> {
        match self {
            Self::None => None,
            Self::One(known) => known.0,
            Self::Each(all) => all
                .iter()
                .try_fold(0, |sum: usize, known| Some(sum.saturating_add(known.0?))),
        }
    }

    /// Whether a push that waits gathers permits as they become free: that of a batch, or where items have weights.
    #[inline]
    pub(crate) fn gather(&self, is_batch: bool) -> bool {
        is_batch || self.total().is_some()
    }

    /// Whether one of the items has more than this weight.
    pub(super) fn exceed(&self, limit: usize) -> bool {
        self.all().iter().any(|known| known.0 > Some(limit))
    }
}
