//! `concurrent_queue::ConcurrentQueue`.

use super::{Bounded, Peer, Plan, Receiver, Sender};
use crate::tally::Payload;
use std::sync::Arc;

pub(crate) struct ConcurrentQueue;

type Shared<T> = Arc<concurrent_queue::ConcurrentQueue<T>>;

impl<T: Payload> Peer<T> for ConcurrentQueue {
    const NAME: &'static str = "concurrent-queue";
    type Sender = Shared<T>;
    type Receiver = Shared<T>;

    fn open(plan: Plan) -> (Vec<Shared<T>>, Vec<Shared<T>>) {
        let queue = Shared::new(match plan.bound {
            Some(bound) => concurrent_queue::ConcurrentQueue::bounded(bound),
            None => concurrent_queue::ConcurrentQueue::unbounded(),
        });
        plan.clone_ends((queue.clone(), queue))
    }
}

impl Bounded for ConcurrentQueue {}

impl<T: Payload> Sender<T> for Shared<T> {
    fn push(&mut self, item: T) -> Result<(), T> {
        concurrent_queue::ConcurrentQueue::push(self, item)
            .map_err(concurrent_queue::PushError::into_inner)
    }
}

impl<T: Payload> Receiver<T> for Shared<T> {
    fn pop(&mut self) -> Option<T> {
        concurrent_queue::ConcurrentQueue::pop(self).ok()
    }
}
