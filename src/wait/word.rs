//! The word of a wait queue, which publishers read.

/// The state of a wait queue, in one word that is written rarely, and only under the lock. Its owner has flags in it.
///
/// | bits | meaning | set | cleared |
/// |---|---|---|---|
/// | `ARMED` | light barriers of publishers are full fences | by a waiter or [`announce`](super::WaitQueue::announce), before its heavy barrier | by a publisher, after many notifications without a waiter |
/// | `SERVING` | a waiter that was woken in vain before has been woken again | when it is woken | when it leaves, waits again, or others have given way to it in vain |
/// | `QUIET` | flags of the owner that require no action of a publisher | by the owner | never |
/// | `LOUD` | flags of the owner that a publisher has to see | by the owner | never |
/// | the rest | the number of waiters that are not woken yet | | |
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct WaitWord(pub(super) usize);

const NUMBER_OF_QUIET: u32 = 5;
const NUMBER_OF_LOUD: u32 = 3;

impl WaitWord {
    pub(crate) const ARMED: usize = 1;
    pub(crate) const SERVING: usize = 1 << 1;
    const QUIET: usize = ((1 << NUMBER_OF_QUIET) - 1) << 2;
    /// One waiter.
    const ONE: usize = 1 << (2 + NUMBER_OF_QUIET + NUMBER_OF_LOUD);

    /// The nth flag of the owner that requires no action of a publisher.
    pub(crate) const fn quiet(nth: u32) -> usize {
        assert!(nth < NUMBER_OF_QUIET);
        1 << (2 + nth)
    }

    /// The nth flag of the owner that a publisher has to see.
    pub(crate) const fn loud(nth: u32) -> usize {
        assert!(nth < NUMBER_OF_LOUD);
        1 << (2 + NUMBER_OF_QUIET + nth)
    }

    /// A word with these flags of the owner.
    pub(crate) const fn of(flags: usize) -> Self {
        Self(flags)
    }

    /// The word with the flags of another one.
    #[inline]
    pub(crate) fn with(self, flags: Self) -> Self {
        Self(self.0 | flags.0)
    }

    /// Whether one of these flags is set.
    #[inline]
    pub(crate) fn has(self, flags: usize) -> bool {
        self.0 & flags != 0
    }

    /// Whether nobody waits, and of the other flags except `SERVING` only these may be set.
    #[inline]
    pub(crate) fn has_only(self, flags: usize) -> bool {
        self.0 & !(flags | Self::SERVING) == 0
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
        self.has_only(Self::QUIET)
    }

    #[inline]
    pub(super) fn is_armed(self) -> bool {
        self.has(Self::ARMED)
    }

    /// Whether the wait queue is armed, and nothing else requires action.
    pub(super) fn is_idle(self) -> bool {
        self.0 & !Self::QUIET == Self::ARMED
    }

    /// The number of waiters that are not woken yet.
    pub(crate) fn waiting(self) -> usize {
        self.0 / Self::ONE
    }

    #[inline]
    pub(crate) fn is_serving(self) -> bool {
        self.has(Self::SERVING)
    }
}
