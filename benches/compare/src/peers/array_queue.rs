//! `crossbeam_queue::ArrayQueue`.

use super::{Bounded, Peer, Plan, Receiver, Sender};
use crate::tally::Payload;
use std::sync::Arc;

pub(crate) struct ArrayQueue;

type Shared<T> = Arc<crossbeam_queue::ArrayQueue<T>>;

impl<T: Payload> Peer<T> for ArrayQueue {
    const NAME: &'static str = "ArrayQueue";
    type Sender = Shared<T>;
    type Receiver = Shared<T>;

    fn open(plan: Plan) -> (Vec<Shared<T>>, Vec<Shared<T>>) {
        let queue = Shared::new(crossbeam_queue::ArrayQueue::new(plan.capacity()));
        plan.clone_ends((queue.clone(), queue))
    }
}

impl Bounded for ArrayQueue {}

impl<T: Payload> Sender<T> for Shared<T> {
    fn push(&mut self, item: T) -> Result<(), T> {
        crossbeam_queue::ArrayQueue::push(self, item)
    }
}

impl<T: Payload> Receiver<T> for Shared<T> {
    fn pop(&mut self) -> Option<T> {
        crossbeam_queue::ArrayQueue::pop(self)
    }
}
