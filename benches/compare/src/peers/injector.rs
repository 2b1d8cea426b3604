//! `crossbeam_deque::Injector`.

use super::{Peer, Plan, Receiver, Sender};
use crate::tally::Payload;
use crossbeam_deque::Steal;
use std::sync::Arc;

pub(crate) struct Injector;

type Shared<T> = Arc<crossbeam_deque::Injector<T>>;

impl<T: Payload> Peer<T> for Injector {
    const NAME: &'static str = "Injector";
    type Sender = Shared<T>;
    type Receiver = Shared<T>;

    fn open(plan: Plan) -> (Vec<Shared<T>>, Vec<Shared<T>>) {
        let queue = Shared::default();
        plan.clone_ends((queue.clone(), queue))
    }
}

impl<T: Payload> Sender<T> for Shared<T> {
    fn push(&mut self, item: T) -> Result<(), T> {
        crossbeam_deque::Injector::push(self, item);
        Ok(())
    }
}

impl<T: Payload> Receiver<T> for Shared<T> {
    fn pop(&mut self) -> Option<T> {
        loop {
            match self.steal() {
                Steal::Success(item) => return Some(item),
                Steal::Empty => return None,
                Steal::Retry => {}
            }
        }
    }
}
