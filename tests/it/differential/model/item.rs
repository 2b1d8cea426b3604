//! Items that are counted and have a name.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// A source has an order of its own: one handle, or the injector of a queue.
pub(crate) type Source = usize;

/// The name of an item. Items of one source are numbered in the order of their pushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Mark {
    pub(crate) source: Source,
    pub(crate) number: u64,
}

thread_local! {
    /// The items that are alive, with their copies. Not in the items themselves, since forgetting an item must not
    /// leak memory.
    static ALIVE: RefCell<BTreeMap<Mark, usize>> = const { RefCell::new(BTreeMap::new()) };
    /// The items that leaked with a forgotten future: they must not be delivered, and need not be dropped.
    static LOST: RefCell<BTreeSet<Mark>> = const { RefCell::new(BTreeSet::new()) };
    /// The dead letters passed to the callback.
    static SPILLED: RefCell<Vec<Mark>> = const { RefCell::new(Vec::new()) };
}

/// Begins a case without items.
pub(crate) fn clear() {
    ALIVE.take();
    LOST.take();
    SPILLED.take();
}

/// Number of alive items, including all copies.
pub(crate) fn alive() -> usize {
    ALIVE.with_borrow(|alive| alive.values().sum())
}

/// Records a dead letter that was passed to the callback.
pub(crate) fn overflow<const PAD: usize>(item: &Tracked<PAD>) {
    SPILLED.with_borrow_mut(|spilled| spilled.push(item.mark()));
}

/// The dead letters passed to the callback since the last call.
pub(crate) fn spilled() -> Vec<Mark> {
    SPILLED.take()
}

fn count(mark: Mark) {
    ALIVE.with_borrow_mut(|alive| *alive.entry(mark).or_default() += 1);
}

/// Counts one less: false if there is none.
fn uncount(mark: Mark) -> bool {
    ALIVE.with_borrow_mut(|alive| {
        let Some(count) = alive.get_mut(&mark) else {
            return false;
        };
        *count -= 1;
        if *count == 0 {
            alive.remove(&mark);
        }
        true
    })
}

/// Records items that leaked with a forgotten future.
pub(crate) fn lose(marks: &[Mark]) {
    for mark in marks {
        assert!(uncount(*mark));
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
        count(mark);
        Self {
            mark,
            held: 0,
            pad: [Self::filler(mark); PAD],
        }
    }

    /// Reads the name, and checks that the item is intact.
    pub(crate) fn mark(&self) -> Mark {
        let filler = Self::filler(self.mark);
        assert!(
            self.pad.iter().all(|&byte| byte == filler),
            "{:?} is torn",
            self.mark
        );
        self.mark
    }

    /// How often the item was held by transactions, including `hold`.
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

/// Clones as a lease does.
impl<const PAD: usize> Clone for Tracked<PAD> {
    fn clone(&self) -> Self {
        count(self.mark());
        Self { ..*self }
    }
}

impl<const PAD: usize> Drop for Tracked<PAD> {
    fn drop(&mut self) {
        let lost = || LOST.with_borrow_mut(|lost| lost.remove(&self.mark));
        assert!(
            uncount(self.mark) || lost(),
            "{:?} is dropped twice",
            self.mark
        );
    }
}
