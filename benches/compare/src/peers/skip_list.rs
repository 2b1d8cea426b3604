//! `crossbeam_skiplist::SkipMap`, by priority and number.

use super::orders::priority;
use super::{Peer, Plan, Receiver, Sender};
use crossbeam_skiplist::SkipMap;
use std::sync::Arc;

pub(crate) struct SkipList;

type Shared = Arc<SkipMap<(u16, u64), ()>>;

impl Peer<u64> for SkipList {
    const NAME: &'static str = "crossbeam-skiplist";
    type Sender = Shared;
    type Receiver = Shared;

    fn open(plan: Plan) -> (Vec<Shared>, Vec<Shared>) {
        let list = Shared::default();
        plan.clone_ends((list.clone(), list))
    }
}

impl Sender<u64> for Shared {
    fn push(&mut self, item: u64) -> Result<(), u64> {
        self.insert((priority(item), item), ());
        Ok(())
    }
}

impl Receiver<u64> for Shared {
    fn pop(&mut self) -> Option<u64> {
        self.pop_front().map(|entry| entry.key().1)
    }
}
