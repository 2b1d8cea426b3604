//! `crossbeam_queue::SegQueue`.

use super::{Peer, Plan, Receiver, Sender};
use crate::tally::Payload;
use std::sync::Arc;

pub(crate) struct SegQueue;

type Shared<T> = Arc<crossbeam_queue::SegQueue<T>>;

impl<T: Payload> Peer<T> for SegQueue {
    const NAME: &'static str = "SegQueue";
    type Sender = Shared<T>;
    type Receiver = Shared<T>;

    fn open(plan: Plan) -> (Vec<Shared<T>>, Vec<Shared<T>>) {
        let queue = Shared::default();
        plan.clone_ends((queue.clone(), queue))
    }
}

impl<T: Payload> Sender<T> for Shared<T> {
    fn push(&mut self, item: T) -> Result<(), T> {
        crossbeam_queue::SegQueue::push(self, item);
        Ok(())
    }
}

impl<T: Payload> Receiver<T> for Shared<T> {
    fn pop(&mut self) -> Option<T> {
        crossbeam_queue::SegQueue::pop(self)
    }
}
