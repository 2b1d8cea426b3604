//! Commits over several queues: one record decides for all shards.
//!
//! Every shard involved is shown the same record, which names the tail each will have; the record's
//! flag makes them all visible in one store; then each tail is published and its pointer cleared.
//! The flag lives in the record because a queue may be gone by the time it is read.

use super::reclaim;
use crate::sync::{AtomicBool, Ordering};
use std::mem::size_of;

/// A decision about the tails of several shards. Immutable but for its flag.
pub(super) struct Joint {
    committed: AtomicBool,
    tails: Vec<Tail>,
}

/// The tail that one shard will have.
pub(super) struct Tail {
    /// The address of the shard; shards of different item types have different addresses.
    pub(super) shard: *const (),
    pub(super) tail: u64,
}

impl Joint {
    /// The tail of the shard at this address, if the joint is committed.
    pub(super) fn tail_of(&self, shard: *const ()) -> Option<u64> {
        // ORDERING: Acquire; pairs with the Release in `commit_together`: who sees one shard's
        // items finds the record in all others.
        if !self.committed.load(Ordering::Acquire) {
            return None;
        }
        let tail = self.tails.iter().find(|tail| tail.shard == shard);
        tail.map(|tail| tail.tail)
    }
}

/// One of the transactions of a commit over several queues.
pub(crate) trait Party {
    /// Adds the tail of a shard with staged items.
    fn collect(&self, tails: &mut Tails);
    /// Shows the record to the consumers of the shard with staged items.
    fn announce(&self, record: Record);
    /// Publishes the tail, and stops showing the record.
    fn conclude(&mut self);
}

/// The tails of all parties.
pub(crate) struct Tails(Vec<Tail>);

impl Tails {
    pub(super) fn push(&mut self, tail: Tail) {
        self.0.push(tail);
    }
}

/// The record as parties announce it.
#[derive(Clone, Copy)]
pub(crate) struct Record(pub(super) *const Joint);

/// Makes the staged items of all parties visible at once.
pub(crate) fn commit_together(parties: &mut [&mut dyn Party]) {
    let mut tails = Tails(Vec::with_capacity(parties.len()));
    for party in parties.iter() {
        party.collect(&mut tails);
    }
    if tails.0.len() < 2 {
        conclude(parties);
        return;
    }
    let bytes = size_of::<Joint>() + size_of::<Tail>() * tails.0.len();
    let joint = Box::into_raw(Box::new(Joint {
        committed: AtomicBool::new(false),
        tails: tails.0,
    }));
    for party in parties.iter() {
        party.announce(Record(joint));
    }
    // SAFETY: retired only below.
    // ORDERING: Release; pairs with the Acquire in `tail_of`: all shards show the record.
    unsafe { &*joint }.committed.store(true, Ordering::Release);
    conclude(parties);
    // SAFETY: no shard shows the record any more, so no pin to come can reach it.
    unsafe { reclaim::pin().retire(bytes, move || drop(Box::from_raw(joint))) };
}

fn conclude(parties: &mut [&mut dyn Party]) {
    for party in parties {
        party.conclude();
    }
}
