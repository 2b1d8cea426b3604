//! The simplest discipline, for tests: who came last leaves first.

use super::{Given, Order, Roll, Shown, Sorted, Visit};
use crate::raw::Entry;
use crate::Queue;

/// The items, the newest last.
#[derive(Default)]
pub(super) struct Lifo {
    items: Vec<Entry<u32>>,
    shown: usize,
}

impl Order<u32> for Lifo {
    fn arrive(&mut self, entry: Entry<u32>) {
        self.items.push(entry);
    }

    fn come_back(&mut self, entry: Entry<u32>) {
        self.items.push(entry);
    }

    fn next(&mut self, for_good: bool) -> Option<Given<u32>> {
        let entry = self.items.pop()?;
        let gone = u32::from(for_good);
        Some(Given { entry, gone })
    }

    fn ready(&self) -> usize {
        self.items.len()
    }

    fn begin_visit(&mut self) -> Visit {
        Visit::default()
    }

    /// All at once, the newest first.
    fn show(&mut self, _: &mut Visit, into: &mut Vec<Shown<u32>>) -> bool {
        let shown = self.items.drain(..).rev().map(|entry| Shown {
            entry,
            number: 0,
            position: 0,
            name: 0,
        });
        into.extend(shown);
        self.shown += into.len();
        false
    }

    fn put_back(&mut self, _: &mut Visit, shown: Shown<u32>) {
        self.shown -= 1;
        self.items.push(shown.entry);
    }

    fn shown(&self) -> usize {
        self.shown
    }

    fn look_at_times(&self, _: &mut Visit, _: &mut Option<u64>) -> bool {
        unreachable!("these queues keep no times")
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
