//! `crossbeam-channel`.

use super::{Bounded, Peer, Plan, Receiver, Sender, WaitingReceiver, WaitingSender, OPEN};
use crate::tally::Payload;

pub(crate) struct Crossbeam;

impl<T: Payload> Peer<T> for Crossbeam {
    const NAME: &'static str = "crossbeam-channel";
    type Sender = crossbeam_channel::Sender<T>;
    type Receiver = crossbeam_channel::Receiver<T>;

    fn open(plan: Plan) -> (Vec<Self::Sender>, Vec<Self::Receiver>) {
        plan.clone_ends(match plan.bound {
            Some(bound) => crossbeam_channel::bounded(bound),
            None => crossbeam_channel::unbounded(),
        })
    }
}

impl Bounded for Crossbeam {}

impl<T: Payload> Sender<T> for crossbeam_channel::Sender<T> {
    fn push(&mut self, item: T) -> Result<(), T> {
        self.try_send(item)
            .map_err(crossbeam_channel::TrySendError::into_inner)
    }
}

impl<T: Payload> WaitingSender<T> for crossbeam_channel::Sender<T> {
    fn push_waiting(&mut self, item: T) {
        self.send(item).expect(OPEN);
    }
}

impl<T: Payload> Receiver<T> for crossbeam_channel::Receiver<T> {
    fn pop(&mut self) -> Option<T> {
        self.try_recv().ok()
    }
}

impl<T: Payload> WaitingReceiver<T> for crossbeam_channel::Receiver<T> {
    fn pop_waiting(&mut self) -> T {
        self.recv().expect(OPEN)
    }
}
