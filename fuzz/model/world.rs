//! The queues beside their models.

use super::item::{self, Mark, Source, Tracked};
use super::open::{Left, Worker};
use super::ops::{Act, Case, Finish, Op, QUEUES, SLOTS};
use super::order::Order;
use super::waits::Waiter;
use requeue::{PopError, Queue};
use std::mem;

/// The sources up to here are the pushes without a handle, one for each queue.
const HANDLES: Source = QUEUES;

pub(crate) struct World<const PAD: usize> {
    pub(super) queues: [Queue<Tracked<PAD>>; QUEUES],
    pub(super) orders: [Order; QUEUES],
    pub(super) workers: [Option<Worker<PAD>>; SLOTS],
    pub(super) sources: Source,
    numbers: u64,
    /// How many items should be alive.
    pub(super) alive: usize,
}

impl<const PAD: usize> World<PAD> {
    /// All queues empty, each with a handle in the slot of the same number.
    pub(crate) fn new(case: &Case) -> Self {
        item::clear();
        let mut world = Self {
            queues: case.capacities.map(|capacity| match capacity {
                Some(capacity) => Queue::bounded(capacity),
                None => Queue::unbounded(),
            }),
            orders: case.capacities.map(Order::new),
            workers: Default::default(),
            sources: HANDLES,
            numbers: 0,
            alive: 0,
        };
        for queue in 0..QUEUES {
            world.act(&Act::Handle(queue, queue));
        }
        world
    }

    pub(crate) fn run(mut self, case: &Case) {
        for op in &case.ops {
            match op {
                Op::Plain(act) => self.act(act),
                Op::Begin { slots, steps, end } => self.begin(slots, steps, end),
                Op::Transact {
                    slot,
                    steps,
                    commit,
                } => self.transact(*slot, steps, *commit),
                Op::Wait {
                    slot,
                    push,
                    meanwhile,
                    then,
                } => self.wait(*slot, *push, meanwhile, *then),
            }
            self.check();
        }
        if matches!(case.finish, Finish::Drain) {
            self.close_and_drain();
        }
        let Self {
            queues, workers, ..
        } = self;
        if matches!(case.finish, Finish::QueuesFirst) {
            drop(queues);
            drop(workers);
        } else {
            drop(workers);
            drop(queues);
        }
        assert_eq!(item::alive(), 0, "items outlive their queue");
    }

    /// A drain ends when the last item has left a closed queue.
    fn close_and_drain(&mut self) {
        (0..SLOTS).for_each(|slot| self.act(&Act::Drop(slot)));
        for queue in 0..QUEUES {
            self.act(&Act::Close(Some(queue)));
            for item in self.queues[queue].drain() {
                self.receive(queue, Ok(item));
            }
            self.receive(queue, self.queues[queue].pop());
        }
        self.check();
    }

    pub(super) fn check(&self) {
        for (queue, order) in self.queues.iter().zip(&self.orders) {
            assert_eq!(queue.len(), order.ready());
            assert_eq!(queue.is_empty(), order.ready() == 0);
            assert_eq!(queue.is_closed(), order.closed);
            order.check();
            let stats = queue.stats();
            let seen = [
                stats.pushed,
                stats.ready,
                stats.held,
                stats.committed,
                stats.aborted,
            ];
            let expected = [
                order.pushed,
                order.ready(),
                order.held,
                order.committed,
                order.aborted,
            ];
            assert_eq!(
                seen,
                expected.map(|n| n as u64),
                "pushed, ready, held, committed, aborted"
            );
        }
        assert_eq!(item::alive(), self.alive, "items alive");
    }

    /// Uses the handle in a slot, if there is one and no open transaction has borrowed it.
    pub(super) fn with(&mut self, slot: usize, work: impl FnOnce(&mut Self, &mut Worker<PAD>)) {
        if let Some(mut worker) = self.workers[slot].take() {
            self.settle(worker.queue, worker.source, &mem::take(&mut worker.left));
            work(self, &mut worker);
            self.put(slot, worker);
        }
    }

    /// Puts a handle back; a new one may have taken its slot.
    pub(super) fn put(&mut self, slot: usize, worker: Worker<PAD>) {
        self.act(&Act::Drop(slot));
        self.workers[slot] = Some(worker);
    }

    /// The next use of a handle ends what it was left with.
    pub(super) fn settle(&mut self, queue: usize, source: Source, left: &Left) {
        self.leave(queue, left.waiter.as_ref());
        self.orders[queue].end(source);
        self.orders[queue].abort(&left.held);
        self.alive -= left.doomed;
    }

    /// Nobody waits by this future any more.
    pub(super) fn leave(&mut self, queue: usize, waiter: Option<&Waiter>) {
        if let Some(waiter) = waiter {
            self.orders[queue].poppers.leave(waiter);
            self.orders[queue].pushers.leave(waiter);
        }
    }

    /// Items went with a forgotten future.
    pub(super) fn lose(&mut self, marks: &[Mark]) {
        self.alive -= marks.len();
        item::lose(marks);
    }

    /// What a push gave back is what was to be pushed.
    pub(super) fn returned<R>(&mut self, marks: &[Mark], said: Result<R, Vec<Tracked<PAD>>>) {
        if let Err(items) = said {
            assert!(items.iter().map(Tracked::mark).eq(marks.iter().copied()));
            self.alive -= items.len();
        }
    }

    pub(super) fn item(&mut self, source: Source) -> Tracked<PAD> {
        let number = self.numbers;
        self.numbers += 1;
        self.alive += 1;
        Tracked::new(Mark { source, number })
    }

    /// The outcome of a pop that is committed at once.
    pub(super) fn receive(&mut self, queue: usize, popped: Result<Tracked<PAD>, PopError>) {
        let item = match popped {
            Ok(item) => item,
            Err(said) => return self.orders[queue].check_nothing(said),
        };
        let mark = item.mark();
        let attempt = self.orders[queue].hold(mark);
        assert_eq!(
            item.times_held() + 1,
            attempt,
            "changes made while held stay"
        );
        self.orders[queue].commit(&[mark]);
        self.alive -= 1;
    }

    /// A pop may give nothing only if nothing is ready.
    pub(super) fn check_batch(&self, queue: usize, n: usize, max: usize) {
        let ready = self.orders[queue].ready();
        assert!(
            n <= max.min(ready),
            "{n} popped, at most {max} wanted, {ready} ready"
        );
        assert!(
            n > 0 || max == 0 || ready == 0,
            "empty, but {ready} are ready"
        );
    }
}
