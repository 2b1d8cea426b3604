//! Items that are counted and known by name.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// What keeps an order of its own: one handle, or all pushes without a handle to one queue.
pub(crate) type Source = usize;

/// The name of an item. Items of one source are numbered as they are pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Mark {
    pub(crate) source: Source,
    pub(crate) number: u64,
}

/// The items that are alive.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger(Arc<Mutex<BTreeSet<Mark>>>);

impl Ledger {
    pub(crate) fn alive(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

/// An item that is in the ledger while it is alive.
#[derive(Debug)]
pub(crate) struct Tracked<const PAD: usize> {
    mark: Mark,
    held: u32,
    pad: [u8; PAD],
    ledger: Ledger,
}

impl<const PAD: usize> Tracked<PAD> {
    pub(crate) fn new(mark: Mark, ledger: &Ledger) -> Self {
        assert!(ledger.0.lock().unwrap().insert(mark));
        Self {
            mark,
            held: 0,
            pad: [Self::filler(mark); PAD],
            ledger: ledger.clone(),
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
        let alive = self.ledger.0.lock().unwrap().remove(&self.mark);
        assert!(alive, "{:?} is dropped twice", self.mark);
    }
}
