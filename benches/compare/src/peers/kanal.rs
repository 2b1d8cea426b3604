//! `kanal`.

use super::{
    Bounded, Peer, Plan, Receiver, Sender, TaskReceiver, WaitingReceiver, WaitingSender, OPEN,
};
use crate::tally::Payload;

pub(crate) struct Kanal;

impl<T: Payload> Peer<T> for Kanal {
    const NAME: &'static str = "kanal";
    type Sender = kanal::Sender<T>;
    type Receiver = kanal::Receiver<T>;

    fn open(plan: Plan) -> (Vec<Self::Sender>, Vec<Self::Receiver>) {
        plan.clone_ends(match plan.bound {
            Some(bound) => kanal::bounded(bound),
            None => kanal::unbounded(),
        })
    }
}

impl Bounded for Kanal {}

impl<T: Payload> Sender<T> for kanal::Sender<T> {
    fn push(&mut self, item: T) -> Result<(), T> {
        let mut item = Some(item);
        self.try_send_option(&mut item).expect(OPEN);
        item.map_or(Ok(()), Err)
    }
}

impl<T: Payload> WaitingSender<T> for kanal::Sender<T> {
    fn push_waiting(&mut self, item: T) {
        self.send(item).expect(OPEN);
    }
}

impl<T: Payload> Receiver<T> for kanal::Receiver<T> {
    fn pop(&mut self) -> Option<T> {
        self.try_recv().expect(OPEN)
    }
}

impl<T: Payload> WaitingReceiver<T> for kanal::Receiver<T> {
    fn pop_waiting(&mut self) -> T {
        self.recv().expect(OPEN)
    }
}

impl<T: Payload> TaskReceiver<T> for kanal::Receiver<T> {
    async fn pop_async(&mut self) -> T {
        self.as_async().recv().await.expect(OPEN)
    }
}
