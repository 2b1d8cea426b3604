//! Sets of numbers of items.

use crate::batch::Push;
use std::collections::HashSet;

/// The numbers of items in a group. Those that the group pushed are mostly close to each other: they are bits, the others are
/// in a table.
#[derive(Debug)]
pub(super) struct Numbers {
    first: u64,
    bits: Vec<u64>,
    others: HashSet<u64>,
}

impl Numbers {
    /// An empty set with bits for most of the pushed items, at the cost of a group with so many pushes and removes.
    pub(super) fn around(pushes: &[Push], removes: usize) -> Self {
        let numbers = || pushes.iter().map(|push| push.key.id);
        let (Some(first), Some(last)) = (numbers().min(), numbers().max()) else {
            return Self {
                first: 0,
                bits: Vec::new(),
                others: HashSet::with_capacity(removes),
            };
        };
        // Numbers of transactions that were open for long may be far behind.
        let most = 64 * (pushes.len() + removes) as u64;
        let first = first.max(last.saturating_sub(most));
        let words = (last - first) / 64 + 1;
        Self {
            first,
            bits: vec![0; usize::try_from(words).unwrap_or(0)],
            others: HashSet::new(),
        }
    }

    /// The word of bits, and the bit in it.
    #[inline]
    fn place(&self, number: u64) -> Option<(usize, u64)> {
        let offset = number.checked_sub(self.first)?;
        let word = usize::try_from(offset / 64).ok()?;
        (word < self.bits.len()).then_some((word, 1 << (offset % 64)))
    }

    #[inline]
    pub(super) fn insert(&mut self, number: u64) {
        match self.place(number) {
            Some((word, bit)) => self.bits[word] |= bit,
            None => drop(self.others.insert(number)),
        }
    }

    #[inline]
    pub(super) fn contains(&self, number: u64) -> bool {
        match self.place(number) {
            Some((word, bit)) => self.bits[word] & bit != 0,
            None => !self.others.is_empty() && self.others.contains(&number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Key;

    #[test]
    fn near_and_far_numbers() {
        let push = |id| Push {
            key: Key { queue: 0, id },
            end: 0,
        };
        let pushes = [1, 1_000_000, 1_000_001, 1_000_070].map(push);
        let mut numbers = Numbers::around(&pushes, 1);
        let all = [0, 1, 999_999, 1_000_000, 1_000_070, 1_000_071, u64::MAX];
        for (index, number) in all.into_iter().enumerate() {
            assert!(!numbers.contains(number));
            numbers.insert(number);
            assert!(all[..=index].iter().all(|number| numbers.contains(*number)));
        }
        assert!(!numbers.contains(1_000_001));
    }
}
