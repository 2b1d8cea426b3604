//! `std::sync::mpsc`: its bounded form has a sender of its own.

use super::{Bounded, Ends, Peer, Plan, Receiver, Sender, WaitingReceiver, WaitingSender, OPEN};
use crate::tally::Payload;
use std::sync::mpsc::{self, TrySendError};

pub(crate) struct StdUnbounded;

impl<T: Payload> Peer<T> for StdUnbounded {
    const NAME: &'static str = "std mpsc";
    const ENDS: Ends = Ends::Mpsc;
    type Sender = mpsc::Sender<T>;
    type Receiver = mpsc::Receiver<T>;

    fn open(plan: Plan) -> (Vec<Self::Sender>, Vec<Self::Receiver>) {
        plan.clone_senders(mpsc::channel())
    }
}

impl<T: Payload> Sender<T> for mpsc::Sender<T> {
    fn push(&mut self, item: T) -> Result<(), T> {
        self.send(item).map_err(|error| error.0)
    }
}

impl<T: Payload> WaitingSender<T> for mpsc::Sender<T> {
    fn push_waiting(&mut self, item: T) {
        self.send(item).expect(OPEN);
    }
}

impl<T: Payload> Receiver<T> for mpsc::Receiver<T> {
    fn pop(&mut self) -> Option<T> {
        self.try_recv().ok()
    }
}

impl<T: Payload> WaitingReceiver<T> for mpsc::Receiver<T> {
    fn pop_waiting(&mut self) -> T {
        self.recv().expect(OPEN)
    }
}

pub(crate) struct StdBounded;

impl<T: Payload> Peer<T> for StdBounded {
    const NAME: &'static str = "std mpsc";
    const ENDS: Ends = Ends::Mpsc;
    type Sender = mpsc::SyncSender<T>;
    type Receiver = mpsc::Receiver<T>;

    fn open(plan: Plan) -> (Vec<Self::Sender>, Vec<Self::Receiver>) {
        plan.clone_senders(mpsc::sync_channel(plan.capacity()))
    }
}

impl Bounded for StdBounded {}

impl<T: Payload> Sender<T> for mpsc::SyncSender<T> {
    fn push(&mut self, item: T) -> Result<(), T> {
        self.try_send(item).map_err(|error| match error {
            TrySendError::Full(item) | TrySendError::Disconnected(item) => item,
        })
    }
}

impl<T: Payload> WaitingSender<T> for mpsc::SyncSender<T> {
    fn push_waiting(&mut self, item: T) {
        self.send(item).expect(OPEN);
    }
}
