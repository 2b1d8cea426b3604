//! Transactions as one writes them by hand: a queue, and a locked map of the items in progress.

use super::locked::lock;
use super::{Crossbeam, Deliverer, Locked, Peer, Plan, Receiver, SegQueue, Sender, Transactions};
use crate::tally::Payload;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

/// A peer with a map. Given back, an item goes to the tail.
pub(crate) struct InProgress<P>(PhantomData<P>);

pub(crate) type CrossbeamWithMap = InProgress<Crossbeam>;
pub(crate) type SegQueueWithMap = InProgress<SegQueue>;
pub(crate) type LockedWithMap = InProgress<Locked>;

/// A receiver, a sender for what is given back, and the items in progress by their numbers.
pub(crate) struct Worker<T: Payload, P: Peer<T>> {
    receiver: P::Receiver,
    back: P::Sender,
    in_progress: Arc<Mutex<HashMap<u64, T>>>,
    taken: Vec<T>,
}

/// The name of a peer with a map.
trait Named {
    const NAME: &'static str;
}

impl Named for Crossbeam {
    const NAME: &'static str = "crossbeam-channel, map";
}

impl Named for SegQueue {
    const NAME: &'static str = "SegQueue, map";
}

impl Named for Locked {
    const NAME: &'static str = "Mutex<VecDeque>, map";
}

#[allow(private_bounds)]
impl<T: Payload, P: Peer<T> + Named> Transactions<T> for InProgress<P> {
    const NAME: &'static str = <P as Named>::NAME;
    type Sender = P::Sender;
    type Deliverer = Worker<T, P>;

    fn open(plan: Plan) -> (Vec<P::Sender>, Vec<Self::Deliverer>) {
        let in_progress = Arc::default();
        let (mut senders, receivers) = P::open(Plan {
            senders: plan.senders + plan.receivers,
            ..plan
        });
        let back = senders.split_off(plan.senders);
        let worker = |(receiver, back)| Worker {
            receiver,
            back,
            in_progress: Arc::clone(&in_progress),
            taken: Vec::new(),
        };
        let workers = receivers.into_iter().zip(back).map(worker).collect();
        (senders, workers)
    }
}

impl<T: Payload, P: Peer<T>> Deliverer<T> for Worker<T, P> {
    fn deliver(&mut self, max: usize, abort: bool, each: impl FnMut(&T)) -> usize {
        let Self {
            receiver,
            back,
            in_progress,
            taken,
        } = self;
        let popped = receiver.pop_batch(max, |item| taken.push(item));
        if popped == 0 {
            return 0;
        }
        lock(in_progress).extend(taken.iter().map(|item| (item.number(), item.clone())));
        taken.iter().for_each(each);
        {
            let mut in_progress = lock(in_progress);
            for item in &*taken {
                in_progress.remove(&item.number());
            }
        }
        if abort {
            taken.drain(..).for_each(|item| back.push_retrying(item));
        } else {
            taken.clear();
        }
        popped
    }
}
