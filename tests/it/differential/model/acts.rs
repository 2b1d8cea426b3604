//! Pushes and pops outside any transaction.

use super::item::{Mark, Tracked};
use super::open::Worker;
use super::ops::{Act, Then, Way};
use super::queues::{on, Family, Kind};
use super::waits::{as_batch, Outcome, Waiter};
use super::world::World;
use requeue::{PopError, PushError};
use std::future::Future;
use std::task::Poll;
use std::time::Duration;

/// The result of the push of a batch.
type Pushed<const PAD: usize> = Result<usize, PushError<Vec<Tracked<PAD>>>>;

/// The result of a pop.
type Popped<const PAD: usize> = Result<Tracked<PAD>, PopError>;

impl<const PAD: usize, F: Family<PAD>> World<PAD, F> {
    pub(super) fn push<O: Kind<PAD>>(&mut self, worker: &mut Worker<PAD, O>, way: Way) {
        let (items, marks) = self.items(worker, 1);
        let handle = &mut worker.handle;
        let queue = worker.queue;
        let push = |item| match self.orders[queue].way_to_push(way, &marks) {
            Way::Try => Outcome::Answer(handle.push(item)),
            Way::Zero => Outcome::Answer(handle.push_timeout(item, Duration::ZERO)),
            Way::Block => Outcome::Answer(handle.push_blocking(item)),
            Way::Poll(then) => self.attend(queue, Some(&marks), handle.push_async(item), &[], then),
        };
        let outcome = items.into_iter().next().map(push).expect("one item");
        self.push_ends(worker, &marks, outcome.map(as_batch));
    }

    pub(super) fn push_batch<O: Kind<PAD>>(
        &mut self,
        worker: &mut Worker<PAD, O>,
        n: usize,
        way: Way,
    ) {
        let (items, marks) = self.items(worker, n);
        let handle = &mut worker.handle;
        let outcome = match self.orders[worker.queue].way_to_push(way, &marks) {
            Way::Try | Way::Zero => Outcome::Answer(handle.push_batch(items)),
            Way::Block => Outcome::Answer(handle.push_batch_blocking(items)),
            Way::Poll(then) => {
                let future = handle.push_batch_async(items);
                self.attend(worker.queue, Some(&marks), future, &[], then.of_batch())
            }
        };
        self.push_ends(worker, &marks, outcome);
    }

    pub(super) fn pop<O: Kind<PAD>>(&mut self, worker: &mut Worker<PAD, O>, way: Way) {
        self.orders[worker.queue].release();
        let handle = &mut worker.handle;
        let outcome = match self.orders[worker.queue].way_to_pop(way) {
            Way::Try => Outcome::Answer(handle.pop()),
            Way::Zero => Outcome::Answer(handle.pop_timeout(Duration::ZERO)),
            Way::Block => Outcome::Answer(handle.pop_blocking()),
            Way::Poll(then) => self.attend(worker.queue, None, handle.pop_async(), &[], then),
        };
        self.pop_ends(worker, outcome);
    }

    pub(super) fn pop_batch<O: Kind<PAD>>(
        &mut self,
        worker: &mut Worker<PAD, O>,
        max: usize,
        way: Way,
    ) {
        self.orders[worker.queue].release();
        let (order, mut items) = (&self.orders[worker.queue], Vec::new());
        let (handle, min) = (&mut worker.handle, max.min(order.ready()));
        let n = match order.way_to_pop(way) {
            Way::Zero => handle.pop_batch_timeout(max, max, &mut items, Duration::ZERO),
            Way::Block => handle.pop_batch_blocking(min, max, &mut items),
            _ => handle.pop_batch(max, &mut items),
        };
        assert_eq!(n, items.len());
        self.check_popped(worker.queue, n, max);
        for item in items {
            self.receive(worker.queue, Ok(item));
        }
    }

    /// Drains up to `n` items, if that does not wait.
    pub(super) fn drain(&mut self, queue: usize, n: usize) {
        self.orders[queue].release();
        let order = &self.orders[queue];
        if matches!(order.way_to_pop(Way::Block), Way::Block) {
            let n = n.min(order.ready());
            on!(&self.queues[queue], queued => {
                for item in queued.iter().take(n) {
                    self.receive(queue, Ok(item));
                }
            });
        }
    }

    /// Runs other operations while a future of a handle is pending.
    pub(super) fn wait<O: Kind<PAD>>(
        &mut self,
        worker: &mut Worker<PAD, O>,
        push: Option<usize>,
        meanwhile: &[Act],
        then: Then,
    ) {
        let queue = worker.queue;
        if let Some(n) = push {
            let (items, marks) = self.items(worker, n);
            let future = worker.handle.push_batch_async(items);
            let then = then.of_batch();
            let outcome = self.attend(queue, Some(&marks), future, meanwhile, then);
            self.push_ends(worker, &marks, outcome);
        } else {
            self.orders[queue].release();
            let future = worker.handle.pop_async();
            let outcome = self.attend(queue, None, future, meanwhile, then);
            self.pop_ends(worker, outcome);
        }
    }

    fn attend<W: Future + Unpin>(
        &mut self,
        queue: usize,
        push: Option<&[Mark]>,
        mut future: W,
        meanwhile: &[Act],
        then: Then,
    ) -> Outcome<W::Output> {
        let waiter = Waiter::default();
        if push.is_none() {
            self.orders[queue].release();
        }
        if let Poll::Ready(result) = waiter.poll(&mut future) {
            return Outcome::Answer(result);
        }
        self.check_queue(queue);
        self.check_waits(queue, push);
        self.join(queue, push, &waiter);
        for act in meanwhile {
            self.act_and_check(act);
        }
        self.leave(queue, Some(&waiter));
        if push.is_none() {
            self.orders[queue].release();
        }
        let outcome = Outcome::of(future, waiter, then);
        if matches!((then, &outcome), (Then::Poll, Outcome::Dropped)) {
            self.check_waits(queue, push);
        }
        outcome
    }

    fn check_waits(&self, queue: usize, push: Option<&[Mark]>) {
        match push {
            Some(marks) => self.orders[queue].check_push_waits(marks),
            None => self.orders[queue].check_pop_waits(None),
        }
    }

    fn join(&mut self, queue: usize, push: Option<&[Mark]>, waiter: &Waiter) {
        let order = &mut self.orders[queue];
        match push {
            Some(marks) => {
                order.check_worth_waiting(marks);
                order.wait_to_push(waiter, marks);
            }
            None => order.wait_to_pop(waiter),
        }
    }

    fn items<O: Kind<PAD>>(
        &mut self,
        worker: &Worker<PAD, O>,
        n: usize,
    ) -> (Vec<Tracked<PAD>>, Vec<Mark>) {
        let items: Vec<_> = (0..n).map(|_| self.item(worker.source)).collect();
        let marks = items.iter().map(Tracked::mark).collect();
        (items, marks)
    }

    /// The result of a push that is committed at once.
    pub(super) fn pushed(&mut self, queue: usize, marks: &[Mark], said: Pushed<PAD>) {
        self.orders[queue].check_push(marks, &said);
        if said.is_ok() {
            self.orders[queue].push(marks);
        }
        self.returned(marks, said.map_err(PushError::into_inner));
    }

    fn push_ends<O: Kind<PAD>>(
        &mut self,
        worker: &mut Worker<PAD, O>,
        marks: &[Mark],
        outcome: Outcome<Pushed<PAD>>,
    ) {
        let order = &mut self.orders[worker.queue];
        match outcome {
            Outcome::Answer(said) => self.pushed(worker.queue, marks, said),
            Outcome::Dropped => self.alive -= marks.len(),
            Outcome::Forgotten(waiter) => {
                order.wait_to_push(&waiter, marks);
                worker.left.waiter = Some(waiter);
                self.lose(marks);
            }
        }
    }

    fn pop_ends<O: Kind<PAD>>(
        &mut self,
        worker: &mut Worker<PAD, O>,
        outcome: Outcome<Popped<PAD>>,
    ) {
        match outcome {
            Outcome::Answer(said) => self.receive(worker.queue, said),
            Outcome::Dropped => {}
            Outcome::Forgotten(waiter) => {
                self.orders[worker.queue].wait_to_pop(&waiter);
                worker.left.waiter = Some(waiter);
            }
        }
    }
}
