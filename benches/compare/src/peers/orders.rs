//! The queues of other orders of this repository, and queues with a pace.

use super::requeue::WithHandle;
use super::{Peer, Plan, Sender};
use crate::tally::spread;
use requeue::{ByKey, ByPriority, FairQueue, Pace, PriorityQueue, Queue};
use std::time::Duration;

/// Number of keys among the items.
const KEYS: u64 = 1000;
/// Number of priorities among the items.
const PRIORITIES: u64 = 9999;

pub(super) fn key(item: u64) -> u64 {
    spread(item) % KEYS
}

pub(crate) fn priority(item: u64) -> u16 {
    u16::try_from(1 + spread(item) % PRIORITIES).expect("below 10,000")
}

pub(crate) struct Fair;

impl Peer<u64> for Fair {
    const NAME: &'static str = "requeue, fair";
    type Sender = WithHandle<u64, ByKey<u64, u64>>;
    type Receiver = WithHandle<u64, ByKey<u64, u64>>;

    fn open(plan: Plan) -> (Vec<Self::Sender>, Vec<Self::Receiver>) {
        let queue = FairQueue::by(|item| key(*item));
        plan.make_ends(|| WithHandle::of(&queue))
    }
}

impl Sender<u64> for WithHandle<u64, ByKey<u64, u64>> {
    fn push(&mut self, item: u64) -> Result<(), u64> {
        self.handle
            .push(item)
            .map_err(requeue::PushError::into_inner)
    }
}

pub(crate) struct Priority;

impl Peer<u64> for Priority {
    const NAME: &'static str = "requeue, priority";
    type Sender = WithHandle<u64, ByPriority>;
    type Receiver = WithHandle<u64, ByPriority>;

    fn open(plan: Plan) -> (Vec<Self::Sender>, Vec<Self::Receiver>) {
        let queue = PriorityQueue::by_priority();
        plan.make_ends(|| WithHandle::of(&queue))
    }
}

impl Sender<u64> for WithHandle<u64, ByPriority> {
    fn push(&mut self, item: u64) -> Result<(), u64> {
        let pushed = self.handle.priority(priority(item)).push(item);
        pushed.map(drop).map_err(|_| item)
    }
}

/// A queue with a pace.
fn paced(pace: Pace, plan: Plan) -> (Vec<WithHandle<u64>>, Vec<WithHandle<u64>>) {
    let queue = Queue::builder().pace(pace).build();
    plan.make_ends(|| WithHandle::of(&queue))
}

/// With a pace that does not limit.
pub(crate) struct Paced;

impl Peer<u64> for Paced {
    const NAME: &'static str = "requeue, unlimited pace";
    type Sender = WithHandle<u64>;
    type Receiver = WithHandle<u64>;

    fn open(plan: Plan) -> (Vec<Self::Sender>, Vec<Self::Receiver>) {
        paced(Pace::unlimited(), plan)
    }
}

/// With a limit that is never reached.
pub(crate) struct PacedWithinLimit;

impl Peer<u64> for PacedWithinLimit {
    const NAME: &'static str = "requeue, limit not reached";
    type Sender = WithHandle<u64>;
    type Receiver = WithHandle<u64>;

    fn open(plan: Plan) -> (Vec<Self::Sender>, Vec<Self::Receiver>) {
        let limit = Pace::rate(u32::MAX, Duration::from_secs(1)).burst(u32::MAX);
        paced(limit, plan)
    }
}
