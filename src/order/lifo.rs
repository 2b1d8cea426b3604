//! The simplest discipline, for tests: who came last leaves first.

use super::{Given, Order, Roll, Sorted};
use crate::raw::Entry;
use crate::Queue;

/// The items, the newest last.
#[derive(Default)]
pub(super) struct Lifo(Vec<Entry<u32>>);

impl Order<u32> for Lifo {
    fn arrive(&mut self, entry: Entry<u32>) {
        self.0.push(entry);
    }

    fn come_back(&mut self, entry: Entry<u32>) {
        self.0.push(entry);
    }

    fn next(&mut self, for_good: bool) -> Option<Given<u32>> {
        let entry = self.0.pop()?;
        let gone = u32::from(for_good);
        Some(Given { entry, gone })
    }

    fn ready(&self) -> usize {
        self.0.len()
    }

    fn oldest(&self) -> Option<u64> {
        None
    }
}

/// There is always room.
pub(super) struct Anybody;

impl Roll<u32> for Anybody {
    fn enrol(&self, _: &u32) -> Option<u64> {
        Some(0)
    }
}

/// A queue of this order.
pub(crate) fn queue() -> Queue<u32> {
    let (settings, _) = Queue::builder().into_settings();
    let (queue, _) = Queue::ordered(settings, |lanes, agenda| {
        Sorted::new(Lifo::default(), Anybody, lanes, agenda)
    });
    queue
}
