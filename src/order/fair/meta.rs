//! The metadata of an item of a fair queue.

/// The key of an item, and the weight of the key: its turns per round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyMeta {
    /// The number of the key, unique while an item with it is in the queue.
    pub(super) key: u32,
    /// At least 1.
    pub(super) weight: u32,
}

impl KeyMeta {
    pub(super) fn new(key: u32, weight: u32) -> Self {
        Self { key, weight }
    }
}
