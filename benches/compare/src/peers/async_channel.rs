//! `async-channel`.

use super::{
    Bounded, Peer, Plan, Receiver, Sender, TaskReceiver, WaitingReceiver, WaitingSender, OPEN,
};
use crate::tally::Payload;

pub(crate) struct AsyncChannel;

impl<T: Payload> Peer<T> for AsyncChannel {
    const NAME: &'static str = "async-channel";
    type Sender = async_channel::Sender<T>;
    type Receiver = async_channel::Receiver<T>;

    fn open(plan: Plan) -> (Vec<Self::Sender>, Vec<Self::Receiver>) {
        plan.clone_ends(match plan.bound {
            Some(bound) => async_channel::bounded(bound),
            None => async_channel::unbounded(),
        })
    }
}

impl Bounded for AsyncChannel {}

impl<T: Payload> Sender<T> for async_channel::Sender<T> {
    fn push(&mut self, item: T) -> Result<(), T> {
        self.try_send(item)
            .map_err(async_channel::TrySendError::into_inner)
    }
}

impl<T: Payload> WaitingSender<T> for async_channel::Sender<T> {
    fn push_waiting(&mut self, item: T) {
        self.send_blocking(item).expect(OPEN);
    }
}

impl<T: Payload> Receiver<T> for async_channel::Receiver<T> {
    fn pop(&mut self) -> Option<T> {
        self.try_recv().ok()
    }
}

impl<T: Payload> WaitingReceiver<T> for async_channel::Receiver<T> {
    fn pop_waiting(&mut self) -> T {
        self.recv_blocking().expect(OPEN)
    }
}

impl<T: Payload> TaskReceiver<T> for async_channel::Receiver<T> {
    async fn pop_async(&mut self) -> T {
        self.recv().await.expect(OPEN)
    }
}
