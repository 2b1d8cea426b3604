//! Items with their delivery metadata.

/// Delivery metadata: the number of deliveries of an item, and the time of its push.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DeliveryMeta {
    /// The number of deliveries so far. For a held item it includes the current one.
    pub(crate) attempts: u32,
    /// The time of the first push, in a unit defined by the layers above; 0 if unknown.
    pub(crate) since: u64,
}

impl DeliveryMeta {
    /// Marks a slot whose item was removed from the hold.
    pub(in crate::raw) const GONE: Self = Self {
        attempts: u32::MAX,
        since: 0,
    };

    pub(in crate::raw) fn is_gone(self) -> bool {
        self.attempts == Self::GONE.attempts
    }

    /// The metadata of an item that was delivered so often.
    pub(crate) fn after(attempts: u32, since: u64) -> Self {
        Self {
            attempts: attempts.min(Self::GONE.attempts - 1),
            since,
        }
    }

    /// The metadata before the last delivery.
    pub(crate) fn before(self) -> Self {
        Self {
            attempts: self.attempts.saturating_sub(1),
            ..self
        }
    }

    /// The metadata of the first delivery.
    #[inline]
    pub(crate) fn first(since: u64) -> Self {
        Self { attempts: 1, since }
    }

    /// The metadata of the next delivery.
    pub(crate) fn again(self) -> Self {
        Self {
            attempts: (self.attempts + 1).min(Self::GONE.attempts - 1),
            ..self
        }
    }
}

/// An item in transit: in no shard and no hold.
#[derive(Debug)]
pub(crate) struct Entry<T> {
    pub(crate) item: T,
    pub(crate) delivery: DeliveryMeta,
}

/// An item and the metadata of its queue's order, as stored in a slot.
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

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::DeliveryMeta;

    #[test]
    fn attempts_saturate_and_never_look_gone() {
        let mut delivery = DeliveryMeta {
            attempts: u32::MAX - 3,
            since: 7,
        };
        for attempts in [u32::MAX - 2, u32::MAX - 1, u32::MAX - 1] {
            delivery = delivery.again();
            assert_eq!((delivery.attempts, delivery.since), (attempts, 7));
            assert!(!delivery.is_gone());
        }
    }
}
