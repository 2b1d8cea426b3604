//! What the order word of an item says.

/// Which key an item has, and how many turns that has in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// The number of the key: that of no other one while an item with it is in the queue.
    pub(super) key: u32,
    /// At least 1.
    pub(super) weight: u32,
}

impl Mark {
    pub(super) fn new(key: u32, weight: u32) -> Self {
        Self { key, weight }
    }

    pub(super) fn word(self) -> u64 {
        u64::from(self.weight) << u32::BITS | u64::from(self.key)
    }

    pub(super) fn of(word: u64) -> Self {
        let upper = |word: u64| (word >> u32::BITS) as u32;
        Self {
            key: upper(word << u32::BITS),
            weight: upper(word),
        }
    }
}
