//! What is known of an item besides itself.

/// What comes with an item when it is pushed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Label {
    /// When it was first pushed, in a unit that only the layers above know; 0: not known.
    pub(crate) since: u64,
    /// By what the queue's discipline knows it, if it has one.
    pub(crate) order: u64,
}

impl Label {
    pub(crate) const NONE: Self = Self { since: 0, order: 0 };
}

/// How often an item was delivered, since when it is in the queue, and by what its discipline knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tag {
    /// Deliveries so far. A held item's include the present one.
    pub(crate) attempts: u32,
    /// As in [`Label`].
    pub(crate) since: u64,
    /// As in [`Label`].
    pub(crate) order: u64,
}

impl Tag {
    /// The tag of a place whose item has left the hold.
    pub(super) const GONE: Self = Self {
        attempts: u32::MAX,
        since: 0,
        order: 0,
    };

    pub(super) fn is_gone(self) -> bool {
        self.attempts == Self::GONE.attempts
    }

    /// The tag of an item that is delivered for the first time.
    #[inline]
    pub(super) fn first(Label { since, order }: Label) -> Self {
        Self {
            attempts: 1,
            since,
            order,
        }
    }

    /// What came with the item.
    pub(crate) fn label(self) -> Label {
        Label {
            since: self.since,
            order: self.order,
        }
    }

    /// The tag of the next delivery.
    pub(super) fn again(self) -> Self {
        Self {
            attempts: (self.attempts + 1).min(Self::GONE.attempts - 1),
            ..self
        }
    }
}

/// An item that is in none of the lanes, and in no hold.
#[derive(Debug)]
pub(crate) struct Entry<T> {
    pub(crate) item: T,
    pub(crate) tag: Tag,
}
