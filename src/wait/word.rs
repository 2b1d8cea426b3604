//! The word of a line: what a publisher looks at.

use std::fmt;

/// What is going on in a line, in one word that is seldom written, and only under the lock.
///
/// | bits | meaning | set | cleared |
/// |---|---|---|---|
/// | `ARMED` | light barriers of publishers are full fences | by a waiter or `close`, before its heavy barrier | by a publisher, after many looks without a waiter |
/// | `SERVING` | a waiter that was woken in vain before is on its way | when it is woken | when it leaves or waits again |
/// | `BOUNDED` | the queue has a capacity | at first | never |
/// | `LABELLED` | items have labels, which pushes give | at first | never |
/// | `ATTENDED` | pops have to look at more than the shards | at first, or before the first item is delayed | never |
/// | `AWAITED` | ends of transactions and pops are told to those who wait for the queue to be idle | by the first of them; at first where barriers are symmetric | never |
/// | `CLOSED` | pushes are refused | by `close` | never |
/// | `SEALED` | the heavy barrier of `close` is done | by `close` | never |
/// | `DRAINED` | nothing is ready, and nothing can become ready | by a pop that found it so | never |
/// | the rest | how many waiters are not woken yet | | |
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word(pub(super) usize);

impl Word {
    pub(super) const ARMED: usize = 1;
    pub(super) const SERVING: usize = 1 << 1;
    pub(super) const BOUNDED: usize = 1 << 2;
    pub(super) const CLOSED: usize = 1 << 3;
    pub(super) const SEALED: usize = 1 << 4;
    pub(super) const DRAINED: usize = 1 << 5;
    pub(super) const LABELLED: usize = 1 << 6;
    pub(super) const ATTENDED: usize = 1 << 7;
    pub(super) const AWAITED: usize = 1 << 8;
    /// One waiter.
    pub(super) const ONE: usize = 1 << 9;

    /// Flags that make a pop look at more than the shards.
    const SPECIAL: usize = Self::BOUNDED | Self::LABELLED | Self::ATTENDED;
    /// Flags that are no news to a publisher.
    const STANDING: usize = Self::SPECIAL | Self::AWAITED;

    /// The word of a line where nothing has happened yet.
    pub(crate) fn standing(labelled: bool, attended: bool) -> Self {
        let flag = |set: bool, flag: usize| if set { flag } else { 0 };
        Self(flag(labelled, Self::LABELLED) | flag(attended, Self::ATTENDED))
    }

    pub(super) fn of(waiting: usize, serving: bool, flags: usize) -> Self {
        let serving = if serving { Self::SERVING } else { 0 };
        Self((waiting * Self::ONE) | serving | flags)
    }

    /// All flags but `SERVING`.
    pub(super) fn flags(self) -> usize {
        self.0 & (Self::ONE - 1) & !Self::SERVING
    }

    /// Whether a publisher has nothing to do.
    #[inline]
    pub(crate) fn is_quiet(self) -> bool {
        self.0 & !(Self::STANDING | Self::SERVING) == 0
    }

    /// Whether the end of a transaction has nothing to do.
    #[inline]
    pub(super) fn is_quiet_for_ends(self) -> bool {
        self.0 & !(Self::SPECIAL | Self::SERVING) == 0
    }

    /// Whether somebody has waited for the queue to be idle.
    #[inline]
    pub(super) fn is_awaited(self) -> bool {
        self.0 & Self::AWAITED != 0
    }

    #[inline]
    pub(super) fn is_armed(self) -> bool {
        self.0 & Self::ARMED != 0
    }

    /// Whether nothing is going on but that the line is armed.
    pub(super) fn is_idle(self) -> bool {
        self.0 & !Self::STANDING == Self::ARMED
    }

    /// Waiters that are not woken yet.
    pub(crate) fn waiting(self) -> usize {
        self.0 / Self::ONE
    }

    #[inline]
    pub(crate) fn is_serving(self) -> bool {
        self.0 & Self::SERVING != 0
    }

    #[inline]
    pub(crate) fn is_closed(self) -> bool {
        self.0 & Self::CLOSED != 0
    }

    pub(crate) fn is_sealed(self) -> bool {
        self.0 & Self::SEALED != 0
    }

    pub(crate) fn is_drained(self) -> bool {
        self.0 & Self::DRAINED != 0
    }

    /// Whether a pop cannot go the short way.
    #[inline]
    pub(crate) fn hinders_pop(self) -> bool {
        self.0 & (Self::SPECIAL | Self::CLOSED | Self::SERVING) != 0
    }

    /// Whether a push cannot go the short way.
    #[inline]
    pub(crate) fn hinders_push(self) -> bool {
        self.0 & (Self::BOUNDED | Self::LABELLED | Self::CLOSED) != 0
    }

    /// Whether a pop has to give a permit back, and nothing else.
    #[inline]
    pub(crate) fn is_only_bounded(self) -> bool {
        self.0 & (Self::BOUNDED | Self::CLOSED | Self::ATTENDED) == Self::BOUNDED
    }

    /// Whether pops have to look at more than the shards.
    #[inline]
    pub(crate) fn is_attended(self) -> bool {
        self.0 & Self::ATTENDED != 0
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Word")
            .field("waiting", &self.waiting())
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}
