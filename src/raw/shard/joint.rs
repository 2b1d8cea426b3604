//! Commits over several queues: one record decides for all shards.
//!
//! All shards involved point to the same record, which names the tail each will have; one store of the
//! record's flag makes all items visible; then each tail is published and its pointer cleared.
//! The flag lives in the record because a queue may no longer exist when the flag is read. The record takes the place of the
//! mark of an idle shard, which is attached first; so all shards are attached when the flag is stored, and none is marked meanwhile.

use crate::raw::memory::reclaim;
use crate::sync::{planted, step, weak, AtomicBool};
use std::mem::size_of;
use std::ptr::{self, NonNull};

/// Tails that are stored inline, which saves a fifth of the instructions of a commit over two queues; more of them are
/// allocated.
const INLINE_TAILS: usize = 8;

/// The record of a commit over several shards. Immutable except for its flag.
pub(in crate::raw) struct Joint {
    committed: AtomicBool,
    tails: Tails,
}

/// The tail that one shard will have after the commit.
#[derive(Clone, Copy)]
pub(in crate::raw) struct Tail {
    /// The address of the shard; shards of different item types have different addresses.
    pub(in crate::raw) shard: *const (),
    pub(in crate::raw) tail: u64,
}

impl Joint {
    /// The tail of the shard at this address, if the joint is committed.
    pub(in crate::raw) fn tail_of(&self, shard: *const ()) -> Option<u64> {
        // ORDERING: Acquire; pairs with `joint.commit`: a thread that sees one shard's items finds the
        // record in all others.
        if !self.committed.load(weak!("joint.committed", Acquire)) {
            return None;
        }
        let Tails { few, len, more } = &self.tails;
        let mut tails = few[..*len].iter().chain(more);
        tails.find(|tail| tail.shard == shard).map(|tail| tail.tail)
    }
}

/// One of the transactions of a commit over several queues.
pub(crate) trait Party {
    /// Adds the tail of a shard with staged items.
    fn collect(&mut self, tails: &mut Tails);
    /// Sets the record of the shard with staged items, for its consumers.
    fn announce(&mut self, record: JointRecord);
    /// Publishes the tail and clears the record.
    fn conclude(&mut self);
    /// Commits what it has taken, after all parties were concluded: a thread that sees the end of one sees the pushes of all.
    fn commit_held(&mut self);
}

/// The tails of all parties.
pub(crate) struct Tails {
    few: [Tail; INLINE_TAILS],
    len: usize,
    more: Vec<Tail>,
}

impl Tails {
    fn new() -> Self {
        let none = Tail {
            shard: ptr::null(),
            tail: 0,
        };
        Self {
            few: [none; INLINE_TAILS],
            len: 0,
            more: Vec::new(),
        }
    }

    pub(in crate::raw) fn push(&mut self, tail: Tail) {
        if self.len < INLINE_TAILS {
            self.few[self.len] = tail;
            self.len += 1;
        } else {
            self.more.push(tail);
        }
    }
}

/// The record that parties announce.
#[derive(Clone, Copy)]
pub(crate) struct JointRecord(pub(in crate::raw) *const Joint);

/// A committed record that no shard points to any more.
///
/// Retires the record when dropped. The committer drops it last, when no party can be aborted.
#[must_use]
pub(crate) struct Decided(Option<NonNull<Joint>>);

impl Drop for Decided {
    fn drop(&mut self) {
        if let Some(joint) = self.0 {
            // SAFETY: no shard points to the record, so no later pin can reach it. Its destructor only frees
            // memory.
            unsafe {
                reclaim::pin().retire(size_of::<Joint>(), move || {
                    drop(Box::from_raw(joint.as_ptr()));
                });
            }
        }
    }
}

/// Makes the staged items of all parties visible at once.
pub(crate) fn commit_together(parties: &mut [&mut dyn Party]) -> Decided {
    let mut tails = Tails::new();
    for party in parties.iter_mut() {
        party.collect(&mut tails);
    }
    if tails.len < 2 {
        conclude(parties);
        return Decided(None);
    }
    let joint = NonNull::from(Box::leak(Box::new(Joint {
        committed: AtomicBool::new(false),
        tails,
    })));
    for party in parties.iter_mut() {
        party.announce(JointRecord(joint.as_ptr()));
    }
    // SAFETY: retired only when it is dropped as `Decided`.
    // ORDERING: Release; pairs with `joint.committed`: all shards point to the record.
    unsafe { joint.as_ref() }
        .committed
        .store(true, weak!("joint.commit", Release));
    conclude(parties);
    Decided(Some(joint))
}

fn conclude(parties: &mut [&mut dyn Party]) {
    for party in parties.iter_mut() {
        party.conclude();
        planted!("joint.ends-early", party.commit_held());
    }
    for party in parties {
        step!("joint.ends-early", party.commit_held());
    }
}
