//! The word of a wait queue, which publishers read.

use std::fmt;

/// The state of a wait queue, in one word that is written rarely, and only under the lock.
///
/// | bits | meaning | set | cleared |
/// |---|---|---|---|
/// | `ARMED` | light barriers of publishers are full fences | by a waiter or `close`, before its heavy barrier | by a publisher, after many notifications without a waiter |
/// | `SERVING` | a waiter that was woken in vain before has been woken again | when it is woken | when it leaves, waits again, or others have given way to it in vain |
/// | `BOUNDED` | the queue has a capacity | initially | never |
/// | `REGISTERED` | items have metadata, which pushes determine | initially | never |
/// | `SLOW_POPS` | pops check more than the shards | initially, or before the first item is delayed | never |
/// | `NOTIFY_ENDS` | ends of transactions and pops notify the waiters for the queue to be idle | by the first of these; initially where barriers are symmetric | never |
/// | `CLOSED` | pushes are refused | by `close` | never |
/// | `SEALED` | the heavy barrier of `close` is done | by `close` | never |
/// | `DRAINED` | nothing is ready, and nothing can become ready | by a pop that found this | never |
/// | the rest | the number of waiters that are not woken yet | | |
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ModeWord(pub(super) usize);

impl ModeWord {
    pub(super) const ARMED: usize = 1;
    pub(super) const SERVING: usize = 1 << 1;
    pub(super) const BOUNDED: usize = 1 << 2;
    pub(super) const CLOSED: usize = 1 << 3;
    pub(super) const SEALED: usize = 1 << 4;
    pub(super) const DRAINED: usize = 1 << 5;
    pub(super) const REGISTERED: usize = 1 << 6;
    pub(super) const SLOW_POPS: usize = 1 << 7;
    pub(super) const NOTIFY_ENDS: usize = 1 << 8;
    /// One waiter.
    pub(super) const ONE: usize = 1 << 9;

    /// Flags that make a pop check more than the shards.
    const SPECIAL: usize = Self::BOUNDED | Self::REGISTERED | Self::SLOW_POPS;
    /// Flags that keep a pop off the fast path.
    const SLOWS_POP: usize = Self::REGISTERED | Self::SLOW_POPS | Self::CLOSED | Self::SERVING;
    /// Flags that require no action of a publisher.
    const STANDING: usize = Self::SPECIAL | Self::NOTIFY_ENDS;

    /// The initial word of a wait queue.
    pub(crate) fn standing(registered: bool, slow_pops: bool) -> Self {
        let flag = |set: bool, flag: usize| if set { flag } else { 0 };
        Self(flag(registered, Self::REGISTERED) | flag(slow_pops, Self::SLOW_POPS))
    }

    /// The word with the flags of another one.
    #[inline]
    pub(crate) fn with(self, flags: Self) -> Self {
        Self(self.0 | flags.0)
    }

    #[inline]
    pub(super) fn add_waiter(&mut self) {
        self.0 += Self::ONE;
    }

    #[inline]
    pub(super) fn remove_waiter(&mut self) {
        self.0 -= Self::ONE;
    }

    pub(super) fn set_serving(&mut self, serving: bool) {
        self.0 = self.0 & !Self::SERVING | if serving { Self::SERVING } else { 0 };
    }

    /// All flags except `SERVING`.
    #[inline]
    pub(super) fn flags(self) -> usize {
        self.0 & (Self::ONE - 1) & !Self::SERVING
    }

    /// Whether a publisher has nothing to do.
    #[inline]
    pub(crate) fn needs_no_notify(self) -> bool {
        self.0 & !(Self::STANDING | Self::SERVING) == 0
    }

    /// Whether the end of a transaction has nothing to do.
    #[inline]
    pub(super) fn ends_need_no_notify(self) -> bool {
        self.0 & !(Self::SPECIAL | Self::SERVING) == 0
    }

    /// Whether a caller has waited for the queue to be idle.
    #[inline]
    pub(crate) fn notifies_ends(self) -> bool {
        self.0 & Self::NOTIFY_ENDS != 0
    }

    /// Whether somebody may wait for the end of a transaction or of a pop, and not only for what it publishes: a caller has
    /// waited for the queue to be idle, or the queue is closed, and its waiters wait for it to be drained.
    #[inline]
    pub(crate) fn awaits_ends(self) -> bool {
        self.0 & (Self::NOTIFY_ENDS | Self::CLOSED) != 0
    }

    /// Whether a pop has to release a permit, or its end may be awaited.
    #[inline]
    pub(crate) fn has_work_after_pop(self) -> bool {
        self.0 & (Self::BOUNDED | Self::NOTIFY_ENDS | Self::CLOSED) != 0
    }

    #[inline]
    pub(super) fn is_armed(self) -> bool {
        self.0 & Self::ARMED != 0
    }

    /// Whether the wait queue is armed, and nothing else requires action.
    pub(super) fn is_idle(self) -> bool {
        self.0 & !Self::STANDING == Self::ARMED
    }

    /// The number of waiters that are not woken yet.
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

    /// Whether a pop cannot take the fast path.
    #[inline]
    pub(crate) fn slows_pop(self) -> bool {
        self.0 & Self::SLOWS_POP != 0
    }

    /// Whether items need permits.
    #[inline]
    pub(crate) fn is_bounded(self) -> bool {
        self.0 & Self::BOUNDED != 0
    }

    /// Whether a push cannot take the fast path.
    #[inline]
    pub(crate) fn slows_push(self) -> bool {
        self.0 & (Self::BOUNDED | Self::REGISTERED | Self::CLOSED) != 0
    }

    /// Whether a pop has to release a permit, and nothing else.
    #[inline]
    pub(crate) fn is_only_bounded(self) -> bool {
        self.0 & (Self::BOUNDED | Self::CLOSED | Self::SLOW_POPS) == Self::BOUNDED
    }

    /// Whether pops check more than the shards.
    #[inline]
    pub(crate) fn slows_pops(self) -> bool {
        self.0 & Self::SLOW_POPS != 0
    }
}

impl fmt::Debug for ModeWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModeWord")
            .field("waiting", &self.waiting())
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}
