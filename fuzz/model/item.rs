//! Items that are counted and known by name.

use std::cell::RefCell;
use std::collections::BTreeSet;

/// What keeps an order of its own: one handle, or all pushes without a handle to one queue.
pub(crate) type Source = usize;

/// The name of an item. Items of one source are numbered as they are pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Mark {
    pub(crate) source: Source,
    pub(crate) number: u64,
}

thread_local! {
    /// The items that are alive. Not in the items themselves, since a forgotten item must leak nothing.
    static ALIVE: RefCell<BTreeSet<Mark>> = const { RefCell::new(BTreeSet::new()) };
    /// The items that went with a forgotten future: nobody may get them, and they need not be dropped.
    static LOST: RefCell<BTreeSet<Mark>> = const { RefCell::new(BTreeSet::new()) };
}

/// Begins a case, without items.
pub(crate) fn clear() {
    ALIVE.take();
    LOST.take();
}

pub(crate) fn alive() -> usize {
    ALIVE.with_borrow(BTreeSet::len)
}

/// Says that items went with a forgotten future.
pub(crate) fn lose(marks: &[Mark]) {
    for mark in marks {
        assert!(ALIVE.with_borrow_mut(|alive| alive.remove(mark)));
        LOST.with_borrow_mut(|lost| lost.insert(*mark));
    }
}

/// An item that is in the ledger while it is alive.
#[derive(Debug)]
pub(crate) struct Tracked<const PAD: usize> {
    mark: Mark,
    held: u32,
    pad: [u8; PAD],
}

impl<const PAD: usize> Tracked<PAD> {
    pub(crate) fn new(mark: Mark) -> Self {
        assert!(ALIVE.with_borrow_mut(|alive| alive.insert(mark)));
        Self {
            mark,
            held: 0,
            pad: [Self::filler(mark); PAD],
        }
    }

    /// Reads the name, and sees that the item is whole.
    pub(crate) fn mark(&self) -> Mark {
        let filler = Self::filler(self.mark);
        assert!(
            self.pad.iter().all(|&byte| byte == filler),
            "{:?} is torn",
            self.mark
        );
        self.mark
    }

    /// How often the item was held by transactions, `hold` included.
    pub(crate) fn times_held(&self) -> u32 {
        self.held
    }

    pub(crate) fn hold(&mut self) {
        self.held += 1;
    }

    fn filler(mark: Mark) -> u8 {
        mark.number.to_le_bytes()[0]
    }
}

impl<const PAD: usize> Drop for Tracked<PAD> {
    fn drop(&mut self) {
        let alive = ALIVE.with_borrow_mut(|alive| alive.remove(&self.mark));
        let lost = LOST.with_borrow_mut(|lost| lost.remove(&self.mark));
        assert!(alive || lost, "{:?} is dropped twice", self.mark);
    }
}
