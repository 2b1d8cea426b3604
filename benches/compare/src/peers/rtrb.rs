//! `rtrb`, a ring for one producer and one consumer.

use super::{Bounded, Ends, Peer, Plan, Receiver, Sender};
use crate::tally::Payload;

pub(crate) struct Rtrb;

impl<T: Payload> Peer<T> for Rtrb {
    const NAME: &'static str = "rtrb";
    const ENDS: Ends = Ends::Spsc;
    type Sender = rtrb::Producer<T>;
    type Receiver = rtrb::Consumer<T>;

    fn open(plan: Plan) -> (Vec<Self::Sender>, Vec<Self::Receiver>) {
        assert_eq!((plan.senders, plan.receivers), (1, 1), "one end of each");
        let (sender, receiver) = rtrb::RingBuffer::new(plan.capacity());
        (vec![sender], vec![receiver])
    }
}

impl Bounded for Rtrb {}

impl<T: Payload> Sender<T> for rtrb::Producer<T> {
    fn push(&mut self, item: T) -> Result<(), T> {
        rtrb::Producer::push(self, item).map_err(|rtrb::PushError::Full(item)| item)
    }
}

impl<T: Payload> Receiver<T> for rtrb::Consumer<T> {
    fn pop(&mut self) -> Option<T> {
        rtrb::Consumer::pop(self).ok()
    }
}
