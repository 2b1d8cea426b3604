//! The queues beside their models.

use super::item::{Ledger, Mark, Source, Tracked};
use super::open::{Left, Worker};
use super::ops::{Act, Case, Op, QUEUES, SLOTS};
use super::order::Order;
use requeue::{PopError, Queue};
use std::mem;

/// The sources up to here are the pushes without a handle, one for each queue.
const HANDLES: Source = QUEUES;

pub(crate) struct World<const PAD: usize> {
    queues: [Queue<Tracked<PAD>>; QUEUES],
    pub(super) orders: [Order; QUEUES],
    pub(super) workers: [Option<Worker<PAD>>; SLOTS],
    sources: Source,
    numbers: u64,
    ledger: Ledger,
    /// How many items should be alive.
    pub(super) alive: usize,
}

impl<const PAD: usize> World<PAD> {
    /// All queues empty, each with a handle in the slot of the same number.
    pub(crate) fn new() -> Self {
        let mut world = Self {
            queues: Default::default(),
            orders: Default::default(),
            workers: Default::default(),
            sources: HANDLES,
            numbers: 0,
            ledger: Ledger::default(),
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
            }
            self.check();
        }
        let Self {
            queues,
            workers,
            ledger,
            ..
        } = self;
        if case.queues_first {
            drop(queues);
            drop(workers);
        } else {
            drop(workers);
            drop(queues);
        }
        assert_eq!(ledger.alive(), 0, "items outlive their queue");
    }

    pub(super) fn check(&self) {
        for (queue, order) in self.queues.iter().zip(&self.orders) {
            assert_eq!(queue.len(), order.ready());
            assert_eq!(queue.is_empty(), order.ready() == 0);
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
        assert_eq!(self.ledger.alive(), self.alive, "items alive");
    }

    pub(super) fn act(&mut self, act: &Act) {
        match *act {
            Act::Push(slot) => self.with(slot, |world, worker| {
                let item = world.item(worker.source);
                let mark = item.mark();
                worker.handle.push(item).unwrap();
                world.orders[worker.queue].push(&[mark]);
            }),
            Act::Pop(slot) => self.with(slot, |world, worker| {
                world.receive(worker.queue, worker.handle.pop());
            }),
            Act::PushBatch(slot, n) => self.with(slot, |world, worker| {
                let items: Vec<_> = (0..n).map(|_| world.item(worker.source)).collect();
                let marks: Vec<_> = items.iter().map(Tracked::mark).collect();
                assert_eq!(worker.handle.push_batch(items).unwrap(), n);
                world.orders[worker.queue].push(&marks);
            }),
            Act::PopBatch(slot, max) => self.with(slot, |world, worker| {
                let mut items = Vec::new();
                let n = worker.handle.pop_batch(max, &mut items);
                assert_eq!(n, items.len());
                world.check_batch(worker.queue, n, max);
                for item in items {
                    world.receive(worker.queue, Ok(item));
                }
            }),
            Act::PushDirect(queue) => {
                let item = self.item(queue);
                let mark = item.mark();
                self.queues[queue].push(item).unwrap();
                self.orders[queue].push(&[mark]);
            }
            Act::PopDirect(queue) => self.receive(queue, self.queues[queue].pop()),
            Act::Handle(slot, queue) => {
                self.act(&Act::Drop(slot));
                let source = self.sources;
                self.sources += 1;
                let handle = self.queues[queue].handle();
                let left = Left::default();
                self.workers[slot] = Some(Worker {
                    handle,
                    queue,
                    source,
                    left,
                });
            }
            Act::Drop(slot) => {
                if let Some(worker) = self.workers[slot].take() {
                    drop(worker.handle);
                    self.settle(worker.queue, &worker.left);
                }
            }
        }
    }

    /// Uses the handle in a slot, if there is one and no open transaction has borrowed it.
    pub(super) fn with(&mut self, slot: usize, work: impl FnOnce(&mut Self, &mut Worker<PAD>)) {
        if let Some(mut worker) = self.workers[slot].take() {
            self.settle(worker.queue, &mem::take(&mut worker.left));
            work(self, &mut worker);
            self.workers[slot] = Some(worker);
        }
    }

    /// The next use of a handle ends what it was left with.
    pub(super) fn settle(&mut self, queue: usize, left: &Left) {
        self.orders[queue].abort(&left.held);
        self.alive -= left.doomed;
    }

    pub(super) fn item(&mut self, source: Source) -> Tracked<PAD> {
        let number = self.numbers;
        self.numbers += 1;
        self.alive += 1;
        Tracked::new(Mark { source, number }, &self.ledger)
    }

    /// The outcome of a pop that is committed at once.
    fn receive(&mut self, queue: usize, popped: Result<Tracked<PAD>, PopError>) {
        let Ok(item) = popped else {
            return self.check_batch(queue, 0, 1);
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
