//! The simplest sorting order, for tests: last in, first out.

use super::{Dequeued, Engine, Registry, Sequence, ShardsOf, Shown, Sorted, Unleased, Visit};
use crate::raw::{Entry, Shareable, Stored};
use crate::wait::DueTimer;
use crate::Queue;
use std::sync::Arc;

type LifoItem = Entry<Stored<u32, ()>>;

/// The items, the newest last.
#[derive(Default)]
pub(crate) struct LifoItems {
    items: Vec<LifoItem>,
    shown: usize,
}

impl Sequence<u32, ()> for LifoItems {
    fn arrive(&mut self, entry: LifoItem) {
        self.items.push(entry);
    }

    fn come_back(&mut self, entry: LifoItem) {
        self.items.push(entry);
    }

    fn next(&mut self, for_good: bool) -> Option<Dequeued<u32, ()>> {
        let entry = self.items.pop()?;
        let gone = u32::from(for_good);
        Some(Dequeued { entry, gone })
    }

    fn ready(&self) -> usize {
        self.items.len()
    }

    fn begin_visit(&mut self) -> Visit {
        Visit::default()
    }

    /// Shows all items at once, the newest first.
    fn show(&mut self, _: &mut Visit, into: &mut Vec<Shown<u32, ()>>) -> bool {
        let shown = self.items.drain(..).rev().map(|entry| Shown {
            entry,
            number: 0,
            position: 0,
            place: 0,
            name: 0,
        });
        into.extend(shown);
        self.shown += into.len();
        false
    }

    fn put_back(&mut self, _: &mut Visit, shown: Shown<u32, ()>) {
        self.shown -= 1;
        self.items.push(shown.entry);
    }

    fn shown(&self) -> usize {
        self.shown
    }

    fn scan_times(&self, _: &mut Visit, _: &mut Option<u64>) -> bool {
        unreachable!("these queues keep no timestamps")
    }
}

/// A registry without limits.
pub(crate) struct Anybody;

impl Registry<u32, ()> for Anybody {
    fn register(&self, _: &u32) -> Option<()> {
        Some(())
    }
}

/// The LIFO order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lifo;

impl Unleased for Lifo {}

impl Engine<u32> for Lifo {
    type Settings = ();
    type Meta = ();
    type Source = Sorted<u32, (), LifoItems, Anybody>;

    fn source(
        (): (),
        shards: &Arc<ShardsOf<u32, Self>>,
        due_timer: &Arc<DueTimer>,
    ) -> Self::Source {
        Sorted::new(LifoItems::default(), Anybody, shards, due_timer)
    }
}

/// Creates a queue of this order.
pub(crate) fn queue() -> Queue<u32, Lifo> {
    Queue::builder()
        .by::<Lifo>(|()| (), Shareable::proved())
        .build()
}
