//! Commits over several queues: one record decides for all shards.
//!
//! Every shard involved is shown the same record, which names the tail each will have; the record's
//! flag makes them all visible in one store; then each tail is published and its pointer cleared.
//! The flag lives in the record because a queue may be gone by the time it is read.

use super::reclaim;
use crate::sync::{weak, AtomicBool};
use std::mem::size_of;
use std::ptr::{self, NonNull};

/// Parties of one commit whose tails need no memory of their own.
const FEW: usize = 8;

/// A decision about the tails of several shards. Immutable but for its flag.
pub(super) struct Joint {
    committed: AtomicBool,
    tails: Tails,
}

/// The tail that one shard will have.
#[derive(Clone, Copy)]
pub(super) struct Tail {
    /// The address of the shard; shards of different item types have different addresses.
    pub(super) shard: *const (),
    pub(super) tail: u64,
}

impl Joint {
    /// The tail of the shard at this address, if the joint is committed.
    pub(super) fn tail_of(&self, shard: *const ()) -> Option<u64> {
        // ORDERING: Acquire; pairs with `joint.commit`: who sees one shard's items finds the record in
        // all others.
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
    /// Shows the record to the consumers of the shard with staged items.
    fn announce(&mut self, record: JointRecord);
    /// Publishes the tail, and stops showing the record.
    fn conclude(&mut self);
}

/// The tails of all parties.
pub(crate) struct Tails {
    few: [Tail; FEW],
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
            few: [none; FEW],
            len: 0,
            more: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, tail: Tail) {
        if self.len < FEW {
            self.few[self.len] = tail;
            self.len += 1;
        } else {
            self.more.push(tail);
        }
    }
}

/// The record as parties announce it.
#[derive(Clone, Copy)]
pub(crate) struct JointRecord(pub(super) *const Joint);

/// A record that has decided, and that no shard shows any more.
///
/// It is retired when it is dropped. Whoever has committed drops it last, when no party can be aborted.
#[must_use]
pub(crate) struct Decided(Option<NonNull<Joint>>);

impl Drop for Decided {
    fn drop(&mut self) {
        if let Some(joint) = self.0 {
            // SAFETY: no shard shows the record, so no pin to come can reach it. Its destructor gives memory
            // back, and no more.
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
    // ORDERING: Release; pairs with `joint.committed`: all shards show the record.
    unsafe { joint.as_ref() }
        .committed
        .store(true, weak!("joint.commit", Release));
    conclude(parties);
    Decided(Some(joint))
}

fn conclude(parties: &mut [&mut dyn Party]) {
    for party in parties {
        party.conclude();
    }
}
