//! `thingbuf::ThingBuf`, which has no unbounded form.

use super::{Bounded, Peer, Plan, Receiver, Sender};
use crate::tally::Payload;
use std::sync::Arc;

pub(crate) struct ThingBuf;

type Shared<T> = Arc<thingbuf::ThingBuf<T>>;

impl<T: Payload + Sync> Peer<T> for ThingBuf {
    const NAME: &'static str = "thingbuf";
    type Sender = Shared<T>;
    type Receiver = Shared<T>;

    fn open(plan: Plan) -> (Vec<Shared<T>>, Vec<Shared<T>>) {
        let queue = Shared::new(thingbuf::ThingBuf::new(plan.capacity()));
        plan.clone_ends((queue.clone(), queue))
    }
}

impl Bounded for ThingBuf {}

impl<T: Payload + Sync> Sender<T> for Shared<T> {
    fn push(&mut self, item: T) -> Result<(), T> {
        thingbuf::ThingBuf::push(self, item).map_err(thingbuf::Full::into_inner)
    }
}

impl<T: Payload + Sync> Receiver<T> for Shared<T> {
    fn pop(&mut self) -> Option<T> {
        thingbuf::ThingBuf::pop(self)
    }
}
