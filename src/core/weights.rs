//! The weights of items that are about to be pushed.

use crate::policy::records::Weigh;

/// The weights of what one call pushes.
#[derive(Default)]
pub(crate) struct Weights(Option<Box<Weighed>>);

struct Weighed {
    each: Vec<usize>,
    total: usize,
}

impl Weights {
    /// Those that a function of the user says.
    #[cold]
    pub(crate) fn by<T>(weigh: &Weigh<T>, items: &[T]) -> Self {
        let each: Vec<_> = items.iter().map(|item| weigh(item)).collect();
        let total = each.iter().copied().fold(0, usize::saturating_add);
        Self(Some(Box::new(Weighed { each, total })))
    }

    pub(crate) fn nth(&self, n: usize) -> usize {
        self.0.as_ref().map_or(1, |weighed| weighed.each[n])
    }

    /// How many permits all items together have, where they have weights.
    #[inline]
    pub(crate) fn total(&self) -> Option<usize> {
        self.0.as_ref().map(|weighed| weighed.total)
    }

    /// Whether a push that waits gathers permits as they become free: that of a batch, or where items have weights.
    #[inline]
    pub(crate) fn gather(&self, is_batch: bool) -> bool {
        is_batch || self.0.is_some()
    }

    /// Whether one of the items has more than this weight.
    pub(super) fn exceed(&self, limit: usize) -> bool {
        let weighed = self.0.as_ref();
        weighed.is_some_and(|weighed| weighed.each.iter().any(|&weight| weight > limit))
    }
}
