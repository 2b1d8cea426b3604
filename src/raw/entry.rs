//! What is known of an item besides itself.

/// How often an item was delivered, and since when it is in the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DeliveryMeta {
    /// Deliveries so far. A held item's include the present one.
    pub(crate) attempts: u32,
    /// When it was first pushed, in a unit that only the layers above know; 0: not known.
    pub(crate) since: u64,
}

impl DeliveryMeta {
    /// The delivery of a place whose item has left the hold.
    pub(super) const GONE: Self = Self {
        attempts: u32::MAX,
        since: 0,
    };

    pub(super) fn is_gone(self) -> bool {
        self.attempts == Self::GONE.attempts
    }

    /// The delivery of an item that is delivered for the first time.
    #[inline]
    pub(super) fn first(since: u64) -> Self {
        Self { attempts: 1, since }
    }

    /// The delivery of the next delivery.
    pub(super) fn again(self) -> Self {
        Self {
            attempts: (self.attempts + 1).min(Self::GONE.attempts - 1),
            ..self
        }
    }
}

/// An item that is in none of the shards, and in no hold.
#[derive(Debug)]
pub(crate) struct Entry<T> {
    pub(crate) item: T,
    pub(crate) delivery: DeliveryMeta,
}

/// An item and what the order of its queue knows it by, as they lie in a slot.
#[derive(Clone, Debug)]
pub(crate) struct Stored<T, M> {
    pub(crate) item: T,
    pub(crate) meta: M,
}

impl<T, M> Stored<T, M> {
    #[inline]
    pub(crate) fn into_item(self) -> T {
        self.item
    }
}
