//! `tokio::sync::mpsc`: its bounded form has types of its own.

use super::{Bounded, Ends, Peer, Plan, Receiver, Sender, TaskReceiver, OPEN};
use crate::tally::Payload;
use tokio::sync::mpsc;

pub(crate) struct TokioUnbounded;

impl<T: Payload> Peer<T> for TokioUnbounded {
    const NAME: &'static str = "tokio mpsc";
    const ENDS: Ends = Ends::Mpsc;
    type Sender = mpsc::UnboundedSender<T>;
    type Receiver = mpsc::UnboundedReceiver<T>;

    fn open(plan: Plan) -> (Vec<Self::Sender>, Vec<Self::Receiver>) {
        plan.clone_senders(mpsc::unbounded_channel())
    }
}

impl<T: Payload> Sender<T> for mpsc::UnboundedSender<T> {
    fn push(&mut self, item: T) -> Result<(), T> {
        self.send(item).map_err(|error| error.0)
    }
}

impl<T: Payload> Receiver<T> for mpsc::UnboundedReceiver<T> {
    fn pop(&mut self) -> Option<T> {
        self.try_recv().ok()
    }
}

impl<T: Payload> TaskReceiver<T> for mpsc::UnboundedReceiver<T> {
    async fn pop_async(&mut self) -> T {
        self.recv().await.expect(OPEN)
    }
}

pub(crate) struct TokioBounded;

impl<T: Payload> Peer<T> for TokioBounded {
    const NAME: &'static str = "tokio mpsc";
    const ENDS: Ends = Ends::Mpsc;
    type Sender = mpsc::Sender<T>;
    type Receiver = mpsc::Receiver<T>;

    fn open(plan: Plan) -> (Vec<Self::Sender>, Vec<Self::Receiver>) {
        plan.clone_senders(mpsc::channel(plan.capacity()))
    }
}

impl Bounded for TokioBounded {}

impl<T: Payload> Sender<T> for mpsc::Sender<T> {
    fn push(&mut self, item: T) -> Result<(), T> {
        self.try_send(item)
            .map_err(mpsc::error::TrySendError::into_inner)
    }
}

impl<T: Payload> Receiver<T> for mpsc::Receiver<T> {
    fn pop(&mut self) -> Option<T> {
        self.try_recv().ok()
    }
}
