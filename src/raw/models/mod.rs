//! Loom models of the protocols, each beside the ordering that it rests on.
//!
//! `cfg(loom)` shrinks segments, pages, nodes and blocks to two places. The table is checked, not
//! only read: `.ci/weaken` makes each change in a copy of the crate and expects the model to fail.
//! A change is made at every place where the text stands. The barrier of `left_when_closed` goes together with
//! `void_reserved`, whose pin is a barrier too.
//!
//! Not in the table, because it takes more threads or slots to see them, or because a fence of the
//! reclaimer makes up for them in every model: the orderings of the directory's `front`, of the
//! roster's buckets, of the common shard's `first` and `last`, of the count of aborts in the head, of
//! loads of the head, and of the step of `emptied`. They are argued where they stand.
//!
//! | model | file | ordering | weakened to |
//! |---|---|---|---|
//! | shard::publish_and_claim | shard.rs | `tail.store(tail, Ordering::Release)` | `tail.store(tail, Ordering::Relaxed)` |
//! | shard::publish_and_claim | shard.rs | `tail.load(Ordering::Acquire)` | `tail.load(Ordering::Relaxed)` |
//! | shard::two_claimants | front.rs | `.compare_exchange(from.0, to.0, Ordering::AcqRel, Ordering::Acquire)` | `.swap(to.0, Ordering::AcqRel).checked_add(0).ok_or(0u64)` |
//! | shard::a_segment | segment.rs | `fetch_add(count, Ordering::AcqRel)` | `fetch_add(count, Ordering::Acquire)` |
//! | shard::a_segment | segment.rs | `fetch_add(count, Ordering::AcqRel)` | `fetch_add(count, Ordering::Release)` |
//! | shard::a_segment | shard.rs | `segment.into_raw(), Ordering::Release` | `segment.into_raw(), Ordering::Relaxed` |
//! | shard::a_segment | shard.rs | `swap(ptr::null_mut(), Ordering::Acquire)` | `swap(ptr::null_mut(), Ordering::Relaxed)` |
//! | front::an_abort | front.rs | `first.as_ptr(), Ordering::AcqRel` | `first.as_ptr(), Ordering::Acquire` |
//! | front::two_aborts | front.rs | `let top = self.top.load(Ordering::Acquire)` | `let top = self.top.load(Ordering::Relaxed)` |
//! | front::nothing_pushed | front.rs | `self.count_abort();` | `();` |
//! | front::claimants | run.rs | `.compare_exchange(from.0, to.0, Ordering::Release, Ordering::Relaxed) .is_ok()` | `.swap(to.0, Ordering::Release) >= from.0` |
//! | empty::never_while_a_push | front.rs | `.compare_exchange(from.0, to.0, Ordering::AcqRel, Ordering::Acquire)` | `.compare_exchange(from.0, to.0, Ordering::Acquire, Ordering::Acquire)` |
//! | empty::never_while_items_move | consumer.rs | `Err(marks) if lanes.marks_if_empty() == Some(marks)` | `Err(_)` |
//! | empty::nothing_is_left | shard.rs | `barrier::full();` | `` |
//! | empty::nothing_is_left | strict.rs | `barrier::full(); self.common().void_reserved();` | `` |
//! | front::a_run_that | front.rs | `self.emptied.fetch_add(1, Ordering::Release);` | `` |
//! | front::a_run_that | front.rs | `run.next(), Ordering::AcqRel` | `run.next(), Ordering::Relaxed` |
//! | front::a_run_that | run.rs | `compare_exchange(from.0, to.0, Ordering::Release` | `compare_exchange(from.0, to.0, Ordering::Relaxed` |
//! | front::a_run_that | run.rs | `self.cursor.load(Ordering::Acquire)` | `self.cursor.load(Ordering::Relaxed)` |
//! | front::a_run_that | front.rs | `self.top.load(Ordering::Acquire).is_null()` | `self.top.load(Ordering::Relaxed).is_null()` |
//! | front::a_run_that | front.rs | `self.emptied.load(Ordering::Acquire)` | `self.emptied.load(Ordering::Relaxed)` |
//! | joint:: | joint.rs | `committed .store(true, Ordering::Release)` | `committed.store(true, Ordering::Relaxed)` |
//! | joint:: | joint.rs | `committed.load(Ordering::Acquire)` | `committed.load(Ordering::Relaxed)` |
//! | joint:: | shard.rs | `.store(joint.cast_mut(), Ordering::Release)` | `.store(joint.cast_mut(), Ordering::Relaxed)` |
//! | joint:: | shard.rs | `self.published.joint.load(Ordering::Acquire)` | `self.published.joint.load(Ordering::Relaxed)` |
//! | lease:: | roster.rs | `fetch_or(bit(offset), Ordering::Release)` | `fetch_or(bit(offset), Ordering::Relaxed)` |
//! | lease:: | roster.rs | `fetch_and(!lowest, Ordering::Acquire)` | `fetch_and(!lowest, Ordering::Relaxed)` |
//! | lease:: | roster.rs | `fetch_and(!bit(offset), Ordering::Acquire)` | `fetch_and(!bit(offset), Ordering::Relaxed)` |
//! | lease::a_shard_joins | roster.rs | `fetch_max(number + 1, Ordering::Release)` | `fetch_max(number + 1, Ordering::Relaxed)` |
//! | lease::a_shard_joins | roster.rs | `self.len.load(Ordering::Acquire)` | `self.len.load(Ordering::Relaxed)` |
//! | lease::a_shard_joins | roster.rs | `word.fetch_or(flag, Ordering::Release)` | `word.fetch_or(flag, Ordering::Relaxed)` |
//! | lease::a_shard_joins | roster.rs | `word.load(Ordering::Acquire)` | `word.load(Ordering::Relaxed)` |
//! | retire::never_empty_while_a_push | roster.rs | `word.load(Ordering::Acquire)` | `word.load(Ordering::Relaxed)` |
//! | retire::an_abort_against_the_next | front.rs | `first.as_ptr(), Ordering::AcqRel` | `first.as_ptr(), Ordering::Release` |
//! | retire::an_abort_against_the_next | front.rs | `closed(), ptr::null_mut(), Ordering::Release` | `closed(), ptr::null_mut(), Ordering::Relaxed` |
//! | retire::an_abort_against_the_next | lanes.rs | `let number = self.shards.lease(); let shard = self.shards.get(number);` | `let number = self.shards.len() - 1; let shard = self.shards.get(number); shard.reopen(); let number = self.shards.lease();` |
//! | retire::an_abort_against_the_ret | run.rs | `if !linked {` | `if false {` |
//! | retire::never_drained | roster.rs | `fetch_add(RETIREMENT - flag, Ordering::Release)` | `fetch_add(RETIREMENT - flag, Ordering::Relaxed)` |
//! | lease::a_lent | guests.rs | `self.busy.swap(true, Ordering::Acquire)` | `self.busy.swap(true, Ordering::Relaxed)` |
//! | lease::a_lent | guests.rs | `self.busy.store(false, Ordering::Release)` | `self.busy.store(false, Ordering::Relaxed)` |
//! | times::an_item_of | node.rs | `unsafe { self.node.times.note(place(index), label) }; self.cell(index).offer(item)` | `let done = self.cell(index).offer(item); unsafe { self.node.times.note(place(index), label) }; done` |
//! | inbox::who_takes | inbox.rs | `envelope, Ordering::Release,` | `envelope, Ordering::Relaxed,` |
//! | inbox::who_takes | inbox.rs | `swap(ptr::null_mut(), Ordering::Acquire)` | `swap(ptr::null_mut(), Ordering::Relaxed)` |
//! | common:: | node.rs | `compare_exchange(VACANT, FULL, Ordering::Release` | `compare_exchange(VACANT, FULL, Ordering::Relaxed` |
//! | common:: | node.rs | `self.state.load(Ordering::Acquire)` | `self.state.load(Ordering::Relaxed)` |
//! | common:: | common.rs | `new.as_ptr(), Ordering::Release` | `new.as_ptr(), Ordering::Relaxed` |
//! | common:: | node.rs | `self.node.next.load(Ordering::Acquire)` | `self.node.next.load(Ordering::Relaxed)` |
//! | common:: | node.rs | `self.cell(index) .state .compare_exchange(VACANT, VOID, Ordering::Relaxed, Ordering::Relaxed) .is_ok()` | `self.cell(index).state.swap(VOID, Ordering::Relaxed) == VACANT` |

mod common;
mod empty;
mod front;
mod inbox;
mod joint;
mod lease;
mod retire;
mod shard;
mod times;

use super::common::Common;
use super::hold::Hold;
use super::lanes::Lanes;
use super::producer::Producer;
use super::seat::Seat;
use super::shard::Shard;
use super::visit::{Take, Visit};
use crate::sync::model::model;
use crate::sync::AtomicU64;
use loom::thread;
use std::sync::Arc;

/// The producer's side of a shard.
struct Pusher {
    shard: Arc<Shard<u32>>,
    producer: Producer<u32>,
    stamps: AtomicU64,
    timed: bool,
}

impl Pusher {
    /// Takes over a shard that nobody else leases.
    fn new(shard: &Arc<Shard<u32>>) -> Self {
        Self {
            shard: Arc::clone(shard),
            // SAFETY: nobody else leases the shard.
            producer: unsafe { shard.unpark() },
            stamps: AtomicU64::new(0),
            timed: false,
        }
    }

    fn stage(&mut self, item: u32) {
        if self.producer.is_full() {
            self.producer.open(&self.shard, &self.stamps, self.timed);
        }
        self.producer.stage(item);
    }

    fn publish(&mut self) {
        self.producer.publish(&self.shard);
    }

    fn push(&mut self, item: u32) {
        self.stage(item);
        self.publish();
    }
}

impl Drop for Pusher {
    fn drop(&mut self) {
        let producer = std::mem::replace(&mut self.producer, Producer::new());
        // SAFETY: the lease is ours.
        unsafe { self.shard.park(producer) };
    }
}

/// A consumer of one shard.
struct Popper {
    shard: Arc<Shard<u32>>,
    visit: Visit<u32>,
}

impl Popper {
    fn new(shard: &Arc<Shard<u32>>) -> Self {
        Self {
            shard: Arc::clone(shard),
            visit: Visit::new(shard),
        }
    }

    /// Takes one item, if the shard has one.
    fn pop(&mut self) -> Option<u32> {
        let mut item = None;
        loop {
            match self.visit.take(&mut item, 1) {
                Take::Got(_) => return item,
                Take::Empty => return None,
                Take::Spent => self.visit.enter(),
                Take::Lost => {}
                Take::Returned => match self.shard.front().take(&mut item, 1) {
                    0 if self.shard.front().is_closed() => return None,
                    0 => {}
                    _ => return item,
                },
            }
        }
    }

    /// Takes items until the shard looks empty.
    fn drain(&mut self) -> Vec<u32> {
        std::iter::from_fn(|| self.pop()).collect()
    }

    /// Holds up to `most` items of the head.
    fn hold(&mut self, hold: &mut Hold<u32>, most: usize) {
        while let Take::Spent = self.visit.take(hold, most) {
            self.visit.enter();
        }
    }
}

impl Drop for Popper {
    fn drop(&mut self) {
        self.visit.flush();
    }
}

/// A shard in which `items` are ready.
fn filled(items: impl IntoIterator<Item = u32>) -> (Arc<Shard<u32>>, Pusher) {
    let shard = Arc::new(Shard::default());
    let mut pusher = Pusher::new(&shard);
    items.into_iter().for_each(|item| pusher.push(item));
    (shard, pusher)
}

/// Aborts a hold of shards that are in use.
fn give_back(hold: &mut Hold<u32>) {
    hold.give_back(&Common::new(false));
}

/// All items in order.
fn sorted(items: impl IntoIterator<Item = u32>) -> Vec<u32> {
    let mut items: Vec<_> = items.into_iter().collect();
    items.sort_unstable();
    items
}
