//! The queue of this repository, in the ways to use it.

use super::{
    Bounded, Deliverer, Peer, Plan, Receiver, Sender, TaskReceiver, Transactions, WaitingReceiver,
    WaitingSender, OPEN,
};
use crate::tally::Payload;
use requeue::{Fifo, Handle, Order, Queue};

impl Plan {
    /// All ends, each made for itself.
    pub(super) fn make_ends<E>(&self, end: impl Fn() -> E) -> (Vec<E>, Vec<E>) {
        let make = |number| (0..number).map(|_| end()).collect();
        (make(self.senders), make(self.receivers))
    }

    fn queue<T: Send>(&self) -> Queue<T> {
        self.bound.map_or_else(Queue::unbounded, Queue::bounded)
    }
}

/// With a handle for each thread.
pub(crate) struct Plain;

/// A handle, and memory for its batches.
pub(crate) struct WithHandle<T, O: Order<T> = Fifo> {
    pub(super) handle: Handle<T, O>,
    batch: Vec<T>,
}

impl<T, O: Order<T>> WithHandle<T, O> {
    pub(crate) fn of(queue: &Queue<T, O>) -> Self {
        Self {
            handle: queue.handle(),
            batch: Vec::new(),
        }
    }
}

impl<T: Payload> Peer<T> for Plain {
    const NAME: &'static str = "requeue";
    type Sender = WithHandle<T>;
    type Receiver = WithHandle<T>;

    fn open(plan: Plan) -> (Vec<Self::Sender>, Vec<Self::Receiver>) {
        let queue = plan.queue();
        plan.make_ends(|| WithHandle::of(&queue))
    }
}

impl Bounded for Plain {}

/// With a stickiness.
pub(crate) struct Sticky<const ITEMS: u32>;

impl<T: Payload, const ITEMS: u32> Peer<T> for Sticky<ITEMS> {
    const NAME: &'static str = match ITEMS {
        1 => "requeue, stickiness 1",
        4 => "requeue, stickiness 4",
        16 => "requeue, stickiness 16",
        64 => "requeue, stickiness 64",
        256 => "requeue, stickiness 256",
        1024 => "requeue, stickiness 1024",
        _ => "requeue, unlimited",
    };
    type Sender = WithHandle<T>;
    type Receiver = WithHandle<T>;

    fn open(plan: Plan) -> (Vec<Self::Sender>, Vec<Self::Receiver>) {
        let queue = Queue::builder().stickiness(ITEMS).build();
        plan.make_ends(|| WithHandle::of(&queue))
    }
}

impl<T: Payload> Sender<T> for WithHandle<T> {
    fn push(&mut self, item: T) -> Result<(), T> {
        self.handle
            .push(item)
            .map_err(requeue::PushError::into_inner)
    }

    fn push_batch(&mut self, items: impl Iterator<Item = T>) {
        self.handle.push_batch(items).expect(OPEN);
    }
}

impl<T: Payload> WaitingSender<T> for WithHandle<T> {
    fn push_waiting(&mut self, item: T) {
        self.handle.push_blocking(item).expect(OPEN);
    }
}

impl<T: Payload, O: Order<T> + 'static> Receiver<T> for WithHandle<T, O>
where
    Self: Send,
{
    fn pop(&mut self) -> Option<T> {
        self.handle.pop().ok()
    }

    fn pop_batch(&mut self, max: usize, each: impl FnMut(T)) -> usize {
        let popped = self.handle.pop_batch(max, &mut self.batch);
        self.batch.drain(..).for_each(each);
        popped
    }
}

impl<T: Payload> WaitingReceiver<T> for WithHandle<T> {
    fn pop_waiting(&mut self) -> T {
        self.handle.pop_blocking().expect(OPEN)
    }
}

impl<T: Payload> TaskReceiver<T> for WithHandle<T> {
    async fn pop_async(&mut self) -> T {
        self.handle.pop_async().await.expect(OPEN)
    }
}

/// Each push and pop in a transaction of its own; so is a batch, whose items are staged and taken one by one.
pub(crate) struct Transactional;

/// The same, but a batch is pushed and popped by one call inside its transaction.
pub(crate) struct Bulk;

pub(crate) struct WithTransactions<T, const BULK: bool>(Handle<T>);

impl<T: Payload> Peer<T> for Transactional {
    const NAME: &'static str = "requeue, transaction";
    type Sender = WithTransactions<T, false>;
    type Receiver = WithTransactions<T, false>;

    fn open(plan: Plan) -> (Vec<Self::Sender>, Vec<Self::Receiver>) {
        let queue = plan.queue();
        plan.make_ends(|| WithTransactions(queue.handle()))
    }
}

impl Bounded for Transactional {}

impl<T: Payload> Peer<T> for Bulk {
    const NAME: &'static str = "requeue, transaction, bulk";
    type Sender = WithTransactions<T, true>;
    type Receiver = WithTransactions<T, true>;

    fn open(plan: Plan) -> (Vec<Self::Sender>, Vec<Self::Receiver>) {
        let queue = plan.queue();
        plan.make_ends(|| WithTransactions(queue.handle()))
    }
}

impl<T: Payload, const BULK: bool> Sender<T> for WithTransactions<T, BULK> {
    fn push(&mut self, item: T) -> Result<(), T> {
        let tx = self.0.begin();
        tx.push(item).map_err(requeue::PushError::into_inner)?;
        tx.commit();
        Ok(())
    }

    fn push_batch(&mut self, items: impl Iterator<Item = T>) {
        let tx = self.0.begin();
        if BULK {
            tx.push_batch(items).expect(OPEN);
        } else {
            items.for_each(|item| tx.push(item).expect(OPEN));
        }
        tx.commit();
    }
}

impl<T: Payload, const BULK: bool> WaitingSender<T> for WithTransactions<T, BULK> {
    fn push_waiting(&mut self, item: T) {
        let tx = self.0.begin();
        tx.push_blocking(item).expect(OPEN);
        tx.commit();
    }
}

impl<T: Payload, const BULK: bool> Receiver<T> for WithTransactions<T, BULK> {
    fn pop(&mut self) -> Option<T> {
        let tx = self.0.begin();
        let item = tx.pop().ok()?.clone();
        tx.commit();
        Some(item)
    }

    fn pop_batch(&mut self, max: usize, mut each: impl FnMut(T)) -> usize {
        let tx = self.0.begin();
        if BULK {
            tx.pop_batch(max).for_each(|item| each(item.clone()));
        } else {
            let items = (0..max).map_while(|_| tx.pop().ok());
            items.for_each(|item| each(item.clone()));
        }
        let popped = tx.held();
        tx.commit();
        popped
    }
}

impl<T: Payload, const BULK: bool> WaitingReceiver<T> for WithTransactions<T, BULK> {
    fn pop_waiting(&mut self) -> T {
        let tx = self.0.begin();
        let item = tx.pop_blocking().expect(OPEN).clone();
        tx.commit();
        item
    }
}

impl<T: Payload, const BULK: bool> TaskReceiver<T> for WithTransactions<T, BULK>
where
    T: Sync,
{
    async fn pop_async(&mut self) -> T {
        let tx = self.0.begin();
        let item = tx.pop_async().await.expect(OPEN).clone();
        tx.commit();
        item
    }
}

impl<T: Payload> Transactions<T> for Transactional {
    const NAME: &'static str = "requeue";
    type Sender = WithHandle<T>;
    type Deliverer = WithTransactions<T, false>;

    fn open(plan: Plan) -> (Vec<Self::Sender>, Vec<Self::Deliverer>) {
        let queue = plan.queue();
        let deliverer = |_| WithTransactions(queue.handle());
        let deliverers = (0..plan.receivers).map(deliverer).collect();
        let senders = (0..plan.senders).map(|_| WithHandle::of(&queue));
        (senders.collect(), deliverers)
    }
}

impl<T: Payload, const BULK: bool> Deliverer<T> for WithTransactions<T, BULK> {
    fn deliver(&mut self, max: usize, abort: bool, mut each: impl FnMut(&T)) -> usize {
        let tx = self.0.begin();
        if max == 1 {
            tx.pop().into_iter().for_each(|item| each(&item));
        } else {
            tx.pop_batch(max).for_each(|item| each(&item));
        }
        let held = tx.held();
        if abort {
            tx.abort();
        } else {
            tx.commit();
        }
        held
    }
}

/// Each item is a delivery, which is acknowledged or given back by itself.
pub(crate) struct Deliveries;

pub(crate) struct Taker<T>(Queue<T>);

impl<T: Payload> Transactions<T> for Deliveries {
    const NAME: &'static str = "requeue, deliveries";
    type Sender = WithHandle<T>;
    type Deliverer = Taker<T>;

    fn open(plan: Plan) -> (Vec<Self::Sender>, Vec<Self::Deliverer>) {
        let queue = plan.queue();
        let deliverer = |_| Taker(queue.clone());
        let deliverers = (0..plan.receivers).map(deliverer).collect();
        let senders = (0..plan.senders).map(|_| WithHandle::of(&queue));
        (senders.collect(), deliverers)
    }
}

impl<T: Payload> Deliverer<T> for Taker<T> {
    fn deliver(&mut self, max: usize, abort: bool, mut each: impl FnMut(&T)) -> usize {
        let mut taken = 0;
        for delivery in self.0.take_batch(max) {
            each(&delivery);
            taken += 1;
            if abort {
                delivery.nack();
            } else {
                delivery.ack();
            }
        }
        taken
    }
}

/// Without a handle.
pub(crate) struct Direct;

impl<T: Payload> Peer<T> for Direct {
    const NAME: &'static str = "requeue, no handle";
    type Sender = Queue<T>;
    type Receiver = Queue<T>;

    fn open(plan: Plan) -> (Vec<Self::Sender>, Vec<Self::Receiver>) {
        let queue = plan.queue();
        plan.clone_ends((queue.clone(), queue))
    }
}

impl Bounded for Direct {}

impl<T: Payload> Sender<T> for Queue<T> {
    fn push(&mut self, item: T) -> Result<(), T> {
        Queue::push(self, item).map_err(requeue::PushError::into_inner)
    }

    fn push_batch(&mut self, items: impl Iterator<Item = T>) {
        Queue::push_batch(self, items).expect(OPEN);
    }
}

impl<T: Payload> WaitingSender<T> for Queue<T> {
    fn push_waiting(&mut self, item: T) {
        self.push_blocking(item).expect(OPEN);
    }
}

impl<T: Payload> Receiver<T> for Queue<T> {
    fn pop(&mut self) -> Option<T> {
        Queue::pop(self).ok()
    }

    fn pop_batch(&mut self, max: usize, each: impl FnMut(T)) -> usize {
        let mut items = Vec::with_capacity(max);
        let popped = Queue::pop_batch(self, max, &mut items);
        items.into_iter().for_each(each);
        popped
    }
}

impl<T: Payload> WaitingReceiver<T> for Queue<T> {
    fn pop_waiting(&mut self) -> T {
        self.pop_blocking().expect(OPEN)
    }
}

impl<T: Payload> TaskReceiver<T> for Queue<T> {
    async fn pop_async(&mut self) -> T {
        Queue::pop_async(self).await.expect(OPEN)
    }
}
