//! The weights of items that are about to be pushed.

use crate::policy::records::Weigh;
use std::slice;

/// The weights of what one call pushes.
#[derive(Default)]
pub(crate) enum Weights {
    /// Each item has one permit.
    #[default]
    None,
    /// Of a single item: without memory of its own.
    One(usize),
    Each(Box<[usize]>),
}

impl Weights {
    /// Those that a function of the user says.
    pub(crate) fn by<T>(weigh: &Weigh<T>, items: &[T]) -> Self {
        match items {
            [item] => Self::One(weigh(item)),
            _ => Self::Each(items.iter().map(|item| weigh(item)).collect()),
        }
    }

    #[inline]
    fn all(&self) -> Option<&[usize]> {
        match self {
            Self::None => None,
            Self::One(weight) => Some(slice::from_ref(weight)),
            Self::Each(all) => Some(all),
        }
    }

    #[inline]
    pub(crate) fn nth(&self, n: usize) -> usize {
        self.all().map_or(1, |all| all[n])
    }

    /// How many permits all items together have, where they have weights.
    #[inline]
    pub(crate) fn total(&self) -> Option<usize> {
        let all = self.all()?.iter().copied();
        Some(all.fold(0, usize::saturating_add))
    }

    /// Whether a push that waits gathers permits as they become free: that of a batch, or where items have weights.
    #[inline]
    pub(crate) fn gather(&self, is_batch: bool) -> bool {
        is_batch || !matches!(self, Self::None)
    }

    /// Whether one of the items has more than this weight.
    pub(super) fn exceed(&self, limit: usize) -> bool {
        let all = self.all().unwrap_or_default();
        all.iter().any(|&weight| weight > limit)
    }
}
