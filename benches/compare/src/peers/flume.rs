//! `flume`.

use super::{
    Bounded, Peer, Plan, Receiver, Sender, TaskReceiver, WaitingReceiver, WaitingSender, OPEN,
};
use crate::tally::Payload;

pub(crate) struct Flume;

impl<T: Payload> Peer<T> for Flume {
    const NAME: &'static str = "flume";
    type Sender = flume::Sender<T>;
    type Receiver = flume::Receiver<T>;

    fn open(plan: Plan) -> (Vec<Self::Sender>, Vec<Self::Receiver>) {
        plan.clone_ends(match plan.bound {
            Some(bound) => flume::bounded(bound),
            None => flume::unbounded(),
        })
    }
}

impl Bounded for Flume {}

impl<T: Payload> Sender<T> for flume::Sender<T> {
    fn push(&mut self, item: T) -> Result<(), T> {
        self.try_send(item).map_err(flume::TrySendError::into_inner)
    }
}

impl<T: Payload> WaitingSender<T> for flume::Sender<T> {
    fn push_waiting(&mut self, item: T) {
        self.send(item).expect(OPEN);
    }
}

impl<T: Payload> Receiver<T> for flume::Receiver<T> {
    fn pop(&mut self) -> Option<T> {
        self.try_recv().ok()
    }
}

impl<T: Payload> WaitingReceiver<T> for flume::Receiver<T> {
    fn pop_waiting(&mut self) -> T {
        self.recv().expect(OPEN)
    }
}

impl<T: Payload> TaskReceiver<T> for flume::Receiver<T> {
    async fn pop_async(&mut self) -> T {
        self.recv_async().await.expect(OPEN)
    }
}
