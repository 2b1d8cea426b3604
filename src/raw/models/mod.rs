//! Loom models of the protocols.
//!
//! `cfg(loom)` shrinks segments, pages and blocks to two slots; of items of more than two words a short segment has one. `docs/orderings.md` lists the model that
//! fails without each ordering; `.ci/weaken` checks it.

mod acquire;
mod adopt;
mod attached;
mod bookmark;
mod counters;
mod detach;
mod empty;
mod front;
mod idle;
mod inbox;
mod joint;
mod record_pool;
mod retire;
mod returns;
mod segments;
mod shard;
mod thread_cells;
mod times;

use crate::raw::handle::endpoint::Endpoint;
use crate::raw::hold::Hold;
use crate::raw::memory::Notes;
use crate::raw::registry::shards::Shards;
use crate::raw::shard::cursor::{Cursor, Take};
use crate::raw::shard::{Producer, Shard};
use crate::raw::testing::UNBORROWED;
use crate::sync::model::model;
use crate::sync::AtomicU64;
use loom::thread;
use std::sync::Arc;

/// A producer of one shard.
struct Pusher<T = u32> {
    shard: Arc<Shard<T>>,
    producer: Producer<T>,
    stamps: AtomicU64,
    timed: bool,
}

impl<T> Pusher<T> {
    /// Acquires a shard that has no other producer.
    fn new(shard: &Arc<Shard<T>>) -> Self {
        Self {
            shard: Arc::clone(shard),
            // SAFETY: the shard has no other producer.
            producer: unsafe { shard.check_out() },
            stamps: AtomicU64::new(0),
            timed: false,
        }
    }

    fn stage(&mut self, item: T) {
        if self.producer.is_full() {
            let notes = Notes::timed(self.timed);
            self.producer.open(&self.shard, &self.stamps, notes);
        }
        self.producer.stage(item);
    }

    fn publish(&mut self) {
        self.producer.publish(&self.shard);
    }

    fn push(&mut self, item: T) {
        self.stage(item);
        self.publish();
    }
}

impl<T> Drop for Pusher<T> {
    fn drop(&mut self) {
        let producer = std::mem::replace(&mut self.producer, Producer::new());
        // SAFETY: this is the producer of the shard.
        unsafe { self.shard.check_in(producer) };
    }
}

/// A consumer of one shard.
struct Popper<T = u32> {
    shard: Arc<Shard<T>>,
    cursor: Cursor<T>,
}

impl<T> Popper<T> {
    fn new(shard: &Arc<Shard<T>>) -> Self {
        Self::of(shard, false, u32::MAX)
    }

    /// Enters a segment for `stickiness` items, which have times if they are `timed`.
    fn of(shard: &Arc<Shard<T>>, timed: bool, stickiness: u32) -> Self {
        Self {
            shard: Arc::clone(shard),
            cursor: Cursor::new(shard, timed, stickiness),
        }
    }

    /// Takes one item, if the shard has one.
    fn pop(&mut self) -> Option<T> {
        let mut item = None;
        loop {
            match self.cursor.take_pushed(&mut item, 1) {
                Take::Got(_) => return item,
                Take::Empty => return None,
                Take::Spent => self.cursor.enter(),
                Take::Lost => {}
                Take::Returned => match self.shard.front().take(&mut item, 1) {
                    0 if self.shard.front().is_detached() => return None,
                    0 => {}
                    _ => return item,
                },
            }
        }
    }

    /// Takes items until none is visible in the shard.
    fn drain(&mut self) -> Vec<T> {
        std::iter::from_fn(|| self.pop()).collect()
    }

    /// Holds up to `most` items from the head on.
    fn hold(&mut self, hold: &mut Hold<T>, most: usize) {
        while let Take::Spent = self.cursor.take_pushed(hold, most) {
            self.cursor.enter();
        }
    }
}

impl<T> Drop for Popper<T> {
    fn drop(&mut self) {
        self.cursor.flush();
    }
}

/// A shard in which `items` are ready.
fn filled<T>(items: impl IntoIterator<Item = T>) -> (Arc<Shard<T>>, Pusher<T>) {
    let shard = Arc::new(Shard::default());
    let mut pusher = Pusher::new(&shard);
    items.into_iter().for_each(|item| pusher.push(item));
    (shard, pusher)
}

/// Endpoints of the same shards whose shards are attached and empty, with room for another item.
fn used_up<const N: usize>(shards: &Arc<Shards<u32>>) -> [Endpoint<u32>; N] {
    [(); N].map(|()| {
        let mut endpoint = Endpoint::new(Arc::clone(shards));
        endpoint.push(100);
        assert_eq!(endpoint.pop(), Some(100));
        endpoint
    })
}

/// The items in ascending order.
fn sorted(items: impl IntoIterator<Item = u32>) -> Vec<u32> {
    let mut items: Vec<_> = items.into_iter().collect();
    items.sort_unstable();
    items
}
