//! The metadata of an item of a fair queue.

/// Which key an item has, and how many turns that has in a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyMeta {
    /// The number of the key: that of no other one while an item with it is in the queue.
    pub(super) key: u32,
    /// At least 1.
    pub(super) weight: u32,
}

impl KeyMeta {
    pub(super) fn new(key: u32, weight: u32) -> Self {
        Self { key, weight }
    }
}
