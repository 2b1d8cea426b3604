//! Deliveries fail in all ways while a clock runs, leases expire, workers are recovered and dead letters are
//! requeued. At the end every item was committed once, or is dead, and no thread waits.

use crate::common::failing::put_off;
use crate::common::futures::block_on;
use crate::common::rng::Rng;
use crate::common::{drain, ends};
use crate::harness::{on_all_threads, panic_as_planned, scaled, together, unless_planned};
use requeue::{
    Backoff, Builder, Fifo, Handle, Item, Leased, ManualClock, Order, PopError, Queue, Transaction,
};
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

/// Maximal number of deliveries of an item.
const ATTEMPTS: u32 = 4;
const MILLISECOND: Duration = Duration::from_millis(1);
const TERM: Duration = Duration::from_millis(20);

/// The queue, and the fates of its items.
struct Floor<O: Order<usize>> {
    queue: Queue<usize, O>,
    /// Recovers the items of one worker, if the queue has leases.
    recover: fn(&Queue<usize, O>),
    clock: ManualClock,
    pushed: AtomicUsize,
    /// Number of committed items.
    done: Mutex<Vec<usize>>,
    /// Number of active workers.
    workers: AtomicUsize,
}

impl<O: Order<usize>> Floor<O> {
    fn new(Kind { builder, recover }: Kind<O>, workers: usize) -> Self {
        let clock = ManualClock::new();
        let queue = builder.clock(clock.clone()).max_attempts(ATTEMPTS).build();
        Self {
            queue,
            recover,
            clock,
            pushed: AtomicUsize::new(0),
            done: Mutex::new(Vec::new()),
            workers: AtomicUsize::new(workers),
        }
    }

    /// A handle, with one of a few names or without one.
    fn handle(&self, rng: &mut Rng) -> Handle<usize, O> {
        match rng.below(3) {
            0 => self.queue.handle(),
            1 => self.queue.named_handle("odd"),
            _ => self.queue.named_handle("even"),
        }
    }

    /// Pushes some items.
    fn push(&self, handle: &mut Handle<usize, O>, rng: &mut Rng) {
        for _ in 0..rng.below(6) {
            let item = self.pushed.fetch_add(1, Ordering::SeqCst);
            // The clock advances and others work, so there will be room.
            let mut refused = handle.push(item).err();
            while let Some(error) = refused.take() {
                self.deliver(handle, rng);
                refused = self.queue.push(error.into_inner()).err();
            }
        }
    }

    /// Advances the clock until the workers have ended.
    fn run_clock(&self, rng: &mut Rng) {
        while self.workers.load(Ordering::SeqCst) > 0 {
            self.clock
                .advance(u32::try_from(rng.below(8)).unwrap() * MILLISECOND);
            thread::yield_now();
        }
    }

    /// Takes some items and ends the transaction in some way.
    fn deliver(&self, handle: &mut Handle<usize, O>, rng: &mut Rng) {
        unless_planned(|| {
            let tx = handle.begin();
            let items = take(&tx, rng);
            self.end(tx, items, rng);
        });
    }

    fn end(&self, tx: Transaction<'_, usize, O>, taken: bool, rng: &mut Rng) {
        if !taken || rng.percent(70) {
            self.commit(tx);
            return;
        }
        match rng.below(6) {
            0 => tx.abort(),
            1 => drop(tx),
            2 => mem::forget(tx),
            3 => panic_as_planned(),
            4 => {
                self.clock.advance(TERM);
                thread::yield_now();
                self.commit(tx);
            }
            _ => {
                let renewed = tx.renew();
                if self.commit(tx) {
                    assert_eq!(renewed, Ok(()));
                }
            }
        }
    }

    /// Commits, unless the lease has expired.
    fn commit(&self, tx: Transaction<'_, usize, O>) -> bool {
        let Ok(taken) = tx.try_commit() else {
            return false;
        };
        let taken: Vec<_> = taken.collect();
        self.done.lock().unwrap().extend(taken);
        true
    }

    /// Inspects the queue, or changes its state.
    fn oversee(&self, rng: &mut Rng) {
        let queue = &self.queue;
        match rng.below(7) {
            0 => _ = queue.dead_letters().requeue_all(),
            1 => (self.recover)(queue),
            2 => _ = queue.peek_each(|item| assert!(*item < self.pushed.load(Ordering::SeqCst))),
            3 => _ = queue.held(),
            4 => _ = queue.stats(),
            5 => self.remove_some(),
            _ => assert!(queue.len() <= queue.capacity().unwrap_or(usize::MAX)),
        }
    }

    /// Removes some of the items that nobody holds, which counts as a commit.
    fn remove_some(&self) {
        let mut removed = Vec::new();
        let count = self.queue.retain(|item, _| {
            let keep = item % 16 > 0;
            removed.extend((!keep).then_some(*item));
            keep
        });
        assert_eq!(count, removed.len());
        self.done.lock().unwrap().extend(removed);
    }

    /// No item is lost, and none was committed twice.
    fn assert_all_there(self) {
        let Self { queue, clock, .. } = self;
        queue.stats().check().unwrap();
        assert_eq!(queue.stats().held, 0);
        assert!(queue.held().is_empty());
        clock.advance(1_000 * TERM);
        assert_eq!(queue.stats().delayed, 0);
        let mut all = self.done.into_inner().unwrap();
        assert_eq!(all.len() as u64, queue.stats().committed);
        all.extend(drain(&queue));
        if let Some(capacity) = queue.capacity().filter(|_| !queue.is_closed()) {
            let refused = (0..=capacity).find(|_| queue.push(0).is_err());
            assert_eq!(refused, Some(capacity));
        }
        queue.close();
        queue.iter().for_each(drop);
        let stats = queue.stats();
        assert_eq!((stats.ready, stats.held, stats.delayed), (0, 0, 0));
        stats.check().unwrap();
        all.extend(queue.dead_letters().map(|letter| letter.item));
        all.sort_unstable();
        assert!(all.into_iter().eq(0..self.pushed.into_inner()));
        assert_eq!(queue.pop(), Err(PopError::Closed));
    }
}

/// A worker, which ends also by a panic: then the clock does not wait for it.
struct Leaving<'f>(&'f AtomicUsize);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Takes some items, and retries some of them after a delay. Returns whether there were any.
fn take<O: Order<usize>>(tx: &Transaction<'_, usize, O>, rng: &mut Rng) -> bool {
    let most = 1 + rng.below(6);
    let mut items: Vec<Item<'_, usize>> = match rng.below(4) {
        0 => tx.pop().into_iter().collect(),
        1 => tx.pop_timeout(MILLISECOND).into_iter().collect(),
        2 => tx.peek().map(requeue::Peek::take).into_iter().collect(),
        _ => tx.pop_batch(most).collect(),
    };
    for item in &items {
        assert!(item.attempts() <= ATTEMPTS);
    }
    let found = !items.is_empty();
    while !items.is_empty() && rng.percent(15) {
        let item = items.swap_remove(rng.below(items.len()));
        let delay = u32::try_from(rng.below(10)).unwrap() * MILLISECOND;
        let given_back = match rng.below(2) {
            0 => tx.retry(item).is_ok(),
            _ => tx.retry_after(item, delay).is_ok(),
        };
        assert!(given_back, "nothing is staged");
    }
    found
}

/// A kind of queue.
struct Kind<O: Order<usize>> {
    builder: Builder<usize, O>,
    recover: fn(&Queue<usize, O>),
}

impl Kind<Fifo> {
    fn plain(builder: Builder<usize>) -> Self {
        let recover = |_: &Queue<usize>| {};
        Self { builder, recover }
    }
}

impl Kind<Leased<Fifo>> {
    fn leased(builder: Builder<usize>) -> Self {
        let builder = builder.leased(TERM);
        let recover = |queue: &Queue<usize, _>| _ = queue.recover("odd", queue.now());
        Self { builder, recover }
    }
}

/// Runs a test with queues of several kinds.
macro_rules! with_each {
    ($kind:ident => $does:expr) => {
        let builder = Queue::builder;
        let backoff = Backoff::exponential(MILLISECOND, 8 * MILLISECOND).with_jitter();
        for builder in [
            builder(),
            builder().backoff(backoff),
            builder().capacity(20),
        ] {
            let $kind = Kind::plain(builder);
            $does;
        }
        for builder in [
            builder(),
            builder().capacity(7).backoff(backoff),
            builder().backoff(Backoff::fixed(Duration::ZERO)),
        ] {
            let $kind = Kind::leased(builder);
            $does;
        }
    };
}

#[test]
fn no_item_is_lost_or_done_twice() {
    on_all_threads(|threads, rng| {
        with_each!(kind => {
            let floor = Floor::new(kind, threads);
            let share = scaled(4_000) / threads;
            together(threads + 1, rng, |number, rng| {
                if number == threads {
                    return floor.run_clock(rng);
                }
                let _leaving = Leaving(&floor.workers);
                let mut handle = floor.handle(rng);
                for _ in 0..share {
                    match rng.below(10) {
                        0 => handle = floor.handle(rng),
                        1 => floor.oversee(rng),
                        2..=3 => floor.push(&mut handle, rng),
                        _ => floor.deliver(&mut handle, rng),
                    }
                }
            });
            floor.assert_all_there();
        });
    });
}

/// Workers wait for items that fail and are delayed, in a queue that is closed meanwhile: all of them see its end.
#[test]
fn no_thread_waits_forever() {
    on_all_threads(|threads, rng| {
        with_each!(kind => {
            let mut rng = rng.fork();
            ends(move || wait_for_the_end(kind, threads, &mut rng));
        });
    });
}

fn wait_for_the_end<O: Order<usize>>(kind: Kind<O>, threads: usize, rng: &mut Rng) {
    let floor = Floor::new(kind, threads);
    let share = scaled(1_500) / threads;
    together(threads + 2, rng, |number, rng| {
        if number == threads {
            return floor.run_clock(rng);
        }
        let mut handle = floor.handle(rng);
        if number > threads {
            for _ in 0..share {
                let item = floor.pushed.fetch_add(1, Ordering::SeqCst);
                handle.push_blocking(item).unwrap();
            }
            floor.queue.close();
            return;
        }
        let _leaving = Leaving(&floor.workers);
        while work(&floor, &mut handle, rng) {}
        drop(handle);
    });
    floor.assert_all_there();
}

/// Waits for an item and ends its delivery in some way: false if the queue is drained.
fn work<O: Order<usize>>(floor: &Floor<O>, handle: &mut Handle<usize, O>, rng: &mut Rng) -> bool {
    let worked = unless_planned(|| {
        let tx = handle.begin();
        let popped = match rng.below(4) {
            0 => block_on(tx.pop_async()),
            1 => tx.pop_timeout(3 * MILLISECOND),
            _ => tx.pop_blocking(),
        };
        match popped {
            Err(PopError::Closed) => return false,
            Err(PopError::Empty) => return true,
            Ok(item) if rng.percent(15) => {
                assert!(tx.retry_after(item, 2 * MILLISECOND).is_ok());
            }
            Ok(_) => {}
        }
        floor.end(tx, true, rng);
        true
    });
    worked.unwrap_or(true)
}

/// As many items are delayed as there are workers, and each worker waits for one and leaves: the leader hands over to
/// another one.
#[test]
fn each_waiter_gets_one() {
    on_all_threads(|threads, rng| {
        for _ in 0..scaled(50) {
            let mut rng = rng.fork();
            ends(move || wait_for_one_each(threads, &mut rng));
        }
    });
}

fn wait_for_one_each(threads: usize, rng: &mut Rng) {
    let floor = Floor::new(Kind::plain(Queue::builder()), threads);
    floor.queue.handle().push_batch(0..threads).unwrap();
    floor.pushed.fetch_add(threads, Ordering::SeqCst);
    for _ in 0..threads {
        let delay = u32::try_from(1 + rng.below(50)).unwrap() * MILLISECOND;
        put_off(&floor.queue, delay);
    }
    together(threads + 1, rng, |number, rng| {
        if number == threads {
            return floor.run_clock(rng);
        }
        let mut handle = floor.handle(rng);
        let tx = handle.begin();
        match rng.below(2) {
            0 => assert!(tx.pop_blocking().is_ok()),
            _ => assert!(block_on(tx.pop_async()).is_ok()),
        }
        assert!(floor.commit(tx));
        floor.workers.fetch_sub(1, Ordering::SeqCst);
    });
    floor.assert_all_there();
}
