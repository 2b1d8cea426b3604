//! The queues and their models.

use super::item::{self, Mark, Source, Tracked};
use super::open::Left;
use super::ops::{Act, Case, Finish, Label, Op, QUEUES, SLOTS};
use super::order::Order;
use super::queues::{on, AnyQueue, AnyWorker, Family};
use super::settings::Ticks;
use super::verbs::Ticketed;
use super::waits::Waiter;
use requeue::{ManualClock, PopError, Reason};
use std::array;
use std::mem;
use std::time::{Duration, Instant};

/// The sources up to here are the injectors, one for each queue, and then the handles of this thread.
const HANDLES: Source = 2 * QUEUES;

/// Longer than any delay.
const LONG: Ticks = 100;

pub(crate) struct World<const PAD: usize, F: Family<PAD>> {
    pub(super) clock: ManualClock,
    /// The time at which the queues were created.
    pub(super) start: Instant,
    pub(super) queues: [AnyQueue<PAD, F>; QUEUES],
    pub(super) orders: [Order; QUEUES],
    pub(super) workers: [Option<AnyWorker<PAD, F>>; SLOTS],
    pub(super) sources: Source,
    numbers: u64,
    pub(super) tickets: Vec<Ticketed>,
    /// Expected number of alive items.
    pub(super) alive: usize,
}

impl<const PAD: usize, F: Family<PAD>> World<PAD, F> {
    /// All queues are empty, each with a handle in the slot of the same number.
    pub(crate) fn new(case: &Case) -> Self {
        item::clear();
        let clock = ManualClock::new();
        let mut world = Self {
            start: clock.now(),
            queues: case
                .settings
                .map(|settings| settings.build::<PAD, F>(&clock)),
            orders: array::from_fn(|queue| Order::new(case.settings[queue], queue)),
            clock,
            workers: Default::default(),
            sources: HANDLES,
            numbers: 0,
            tickets: Vec::new(),
            alive: 0,
        };
        for queue in 0..QUEUES {
            world.act(&Act::Handle(queue, queue, Label::None));
        }
        world
    }

    pub(crate) fn run(mut self, case: &Case) {
        for op in &case.ops {
            match op {
                Op::Plain(act) => {
                    self.act_and_check(act);
                    continue;
                }
                Op::Begin { slots, steps, end } => self.begin(slots, steps, end),
                Op::Transact { slot, steps, close } => {
                    self.with(*slot, |world, worker| world.transact(worker, steps, *close));
                }
                Op::Wait {
                    slot,
                    push,
                    meanwhile,
                    then,
                } => self.with(*slot, |world, worker| {
                    on!(worker, worker => world.wait(worker, *push, meanwhile, *then));
                }),
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
        self.advance(LONG);
        self.cancel_latest();
        for queue in 0..QUEUES {
            self.act(&Act::Close(Some(queue)));
            self.orders[queue].release();
            on!(&self.queues[queue], queued => {
                for item in queued {
                    self.receive(queue, Ok(item));
                }
            });
            let nothing = on!(&self.queues[queue], queue => queue.pop());
            self.receive(queue, nothing);
        }
        self.check();
    }

    pub(super) fn check(&mut self) {
        (0..QUEUES).for_each(|queue| self.check_queue(queue));
        (0..QUEUES).for_each(|queue| self.check_order(queue));
        for (queue, order) in self.queues.iter().zip(&self.orders) {
            on!(queue, queue => {
                assert_eq!(queue.is_empty(), order.ready() == 0);
                assert_eq!(queue.is_closed(), order.closed);
                order.check();
                order.check_stats(&queue.stats());
                order.check_held(self.start, &queue.held());
                assert_eq!(queue.dead_letters().len(), order.letters.len());
            });
        }
        let expected = self
            .orders
            .iter_mut()
            .flat_map(|order| order.spilled.drain(..));
        let spilled = item::spilled();
        assert!(
            expected.eq(spilled.iter().copied()),
            "{spilled:?} handed over"
        );
        self.alive -= spilled.len();
        assert_eq!(item::alive(), self.alive, "items alive");
    }

    /// Checks a queue, which releases its due items.
    pub(super) fn check_queue(&mut self, queue: usize) {
        self.orders[queue].release();
        let len = on!(&self.queues[queue], queue => queue.len());
        assert_eq!(len, self.orders[queue].ready());
    }

    /// Uses the handle in a slot, if there is one and no open transaction borrows it.
    pub(super) fn with(
        &mut self,
        slot: usize,
        work: impl FnOnce(&mut Self, &mut AnyWorker<PAD, F>),
    ) {
        if let Some(mut worker) = self.workers[slot].take() {
            self.settle_worker(&mut worker);
            work(self, &mut worker);
            self.put(slot, worker);
        }
    }

    /// Puts a handle back; a new one may have taken its slot.
    pub(super) fn put(&mut self, slot: usize, worker: AnyWorker<PAD, F>) {
        self.act(&Act::Drop(slot));
        self.workers[slot] = Some(worker);
    }

    /// The next use of a handle settles its forgotten state.
    pub(super) fn settle_worker(&mut self, worker: &mut AnyWorker<PAD, F>) {
        on!(worker, worker => {
            self.settle_left(worker.queue, worker.source, &mem::take(&mut worker.left));
        });
    }

    /// So does dropping it.
    pub(super) fn settle_left(&mut self, queue: usize, source: Source, left: &Left) {
        self.settle(queue, source, left, Reason::Forgotten);
    }

    /// A transaction ends without a commit.
    pub(super) fn settle(&mut self, queue: usize, source: Source, left: &Left, reason: Reason) {
        self.leave(queue, left.waiter.as_ref());
        let order = &mut self.orders[queue];
        let (lost, copies) = order.end(source);
        let own = left.held.iter().filter(|held| !lost.contains(held));
        let own: Vec<_> = own.map(|held| held.mark).collect();
        order.abort(&own, reason);
        order.unstage(&left.staged);
        self.alive -= left.staged.len() + left.doomed + lost.len() + copies;
    }

    /// This future no longer waits.
    pub(super) fn leave(&mut self, queue: usize, waiter: Option<&Waiter>) {
        if let Some(waiter) = waiter {
            self.orders[queue].poppers.leave(waiter);
            self.orders[queue].pushers.leave(waiter);
        }
    }

    /// Items leaked with a forgotten future.
    pub(super) fn lose(&mut self, marks: &[Mark]) {
        self.alive -= marks.len();
        item::lose(marks);
    }

    /// A failed push returns the items that were to be pushed.
    pub(super) fn returned<R>(&mut self, marks: &[Mark], said: Result<R, Vec<Tracked<PAD>>>) {
        if let Err(items) = said {
            assert!(items.iter().map(Tracked::mark).eq(marks.iter().copied()));
            self.alive -= items.len();
        }
    }

    /// The handle by which this thread uses a queue without a handle. It lives from the first use on.
    pub(super) fn own_handle(&mut self, queue: usize) -> Source {
        let source = QUEUES + queue;
        if !self.orders[queue].has_joined(source) {
            self.orders[queue].join(source, None);
        }
        source
    }

    pub(super) fn item(&mut self, source: Source) -> Tracked<PAD> {
        let number = self.numbers;
        self.numbers += 1;
        self.alive += 1;
        Tracked::new(Mark { source, number })
    }

    /// The result of a pop that is committed at once.
    pub(super) fn receive(&mut self, queue: usize, popped: Result<Tracked<PAD>, PopError>) {
        let item = match popped {
            Ok(item) => item,
            Err(said) => return self.orders[queue].check_nothing(said),
        };
        let mark = item.mark();
        self.orders[queue].hold(mark);
        assert_eq!(
            item.times_held(),
            self.orders[queue].changes(mark),
            "changes made while held stay"
        );
        self.orders[queue].commit(&[mark]);
        self.alive -= 1;
    }

    /// Like [`World::check_batch`], for items that are gone at once, which may make others ready.
    pub(super) fn check_popped(&self, queue: usize, n: usize, max: usize) {
        let order = &self.orders[queue];
        let (ready, waiting) = (order.ready(), order.waiting());
        assert!(n <= max.min(ready + waiting), "{n} popped of {ready}");
        assert!(
            n > 0 || max == 0 || ready == 0,
            "empty, but {ready} are ready"
        );
    }

    /// A pop may return nothing only if no item is ready.
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

pub(super) fn whole(time: Duration) -> Ticks {
    Ticks::try_from(time.as_millis()).unwrap_or(Ticks::MAX)
}
