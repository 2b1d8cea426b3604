//! Scenarios that hold for the queues of both crates, in memory and on disk.

use super::{directory, open};
use requeue::{ByKey, ByPriority, Fifo};
use requeue_durable::{DurableQueue, Order, Store};
use std::collections::HashSet;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::mpsc::channel;
use std::sync::Arc;
use std::thread;
use tempfile::TempDir;

/// What a pop returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Popped {
    Item(u64),
    Empty,
    Closed,
}
use Popped::{Closed, Empty, Item};

/// What became of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pushed {
    Done,
    Full,
    Refused,
}

/// A queue of numbers.
trait Both: Clone + Send + Sync + 'static {
    type Handle: Worker;
    fn handle(&self) -> Self::Handle;
    fn push(&self, number: u64) -> Pushed;
    fn pop(&self) -> Popped;
    fn len(&self) -> usize;
    fn close(&self);
    /// The numbers, deliveries and errors of the dead letters.
    fn dead(&self) -> Vec<(u64, u32, Option<String>)>;
    /// Runs a function on all items, by a pool of workers; returns how many runs were done, failed and panicked.
    fn work(
        &self,
        threads: usize,
        run: impl Fn(u64, u32) -> Result<(), &'static str> + Send + Sync + 'static,
    ) -> [u64; 3];
}

trait Worker: Send {
    type Tx<'h>: Tx
    where
        Self: 'h;
    fn begin(&mut self) -> Self::Tx<'_>;
}

trait Tx {
    fn push(&self, number: u64) -> Pushed;
    fn push_blocking(&self, number: u64) -> Pushed;
    fn pop(&self) -> Popped;
    fn pop_blocking(&self) -> Popped;
    fn held(&self) -> usize;
    fn commit(self);
}

macro_rules! results {
    ($push:expr) => {
        match $push {
            Ok(()) => Pushed::Done,
            Err(error) if error.is_full() => Pushed::Full,
            Err(error) if error.is_closed() => Pushed::Refused,
            Err(error) => panic!("{error}"),
        }
    };
    ($pop:expr, $item:ident => $number:expr) => {
        match $pop {
            Ok($item) => Item($number),
            Err(error) if error.is_empty() => Empty,
            Err(error) if error.is_closed() => Closed,
            Err(error) => panic!("{error}"),
        }
    };
}

macro_rules! both {
    ($queue:ty, $handle:ty, $tx:ident, [$($order:tt)+], |$this:ident| $inner:expr, $build:path, $letters:expr) => {
        impl<O: $($order)+> Both for $queue {
            type Handle = $handle;

            fn handle(&self) -> Self::Handle {
                let $this = self;
                $inner.handle()
            }

            fn push(&self, number: u64) -> Pushed {
                let $this = self;
                results!($inner.push(number))
            }

            fn pop(&self) -> Popped {
                let $this = self;
                results!($inner.pop(), item => item)
            }

            fn len(&self) -> usize {
                let $this = self;
                $inner.len()
            }

            fn close(&self) {
                let $this = self;
                let _ = $inner.close();
            }

            fn dead(&self) -> Vec<(u64, u32, Option<String>)> {
                let $this = self;
                $letters($inner)
            }

            fn work(
                &self,
                threads: usize,
                run: impl Fn(u64, u32) -> Result<(), &'static str> + Send + Sync + 'static,
            ) -> [u64; 3] {
                let $this = self;
                let builder = $build($inner).threads(threads);
                let workers = builder.run(move |item, _tx| run(*item, item.attempts()));
                let report = workers.join();
                [report.done, report.failed, report.panicked]
            }
        }

        impl<O: $($order)+> Worker for $handle {
            type Tx<'h> = $tx::Transaction<'h, u64, O>;

            fn begin(&mut self) -> Self::Tx<'_> {
                self.begin()
            }
        }

        impl<O: $($order)+> Tx for $tx::Transaction<'_, u64, O> {
            fn push(&self, number: u64) -> Pushed {
                results!(self.push(number))
            }

            fn push_blocking(&self, number: u64) -> Pushed {
                results!(self.push_blocking(number))
            }

            fn pop(&self) -> Popped {
                results!(self.pop(), item => *item)
            }

            fn pop_blocking(&self) -> Popped {
                results!(self.pop_blocking(), item => *item)
            }

            fn held(&self) -> usize {
                self.held()
            }

            fn commit(self) {
                drop(self.commit());
            }
        }
    };
}

both!(
    requeue::Queue<u64, O>,
    requeue::Handle<u64, O>,
    requeue,
    [requeue::Order<u64> + requeue::Unleased + Send + Sync + 'static],
    |queue| queue,
    requeue::Workers::builder,
    |queue: &requeue::Queue<u64, O>| {
        let letters = queue.dead_letters();
        let letter = |letter: requeue::DeadLetter<u64>| {
            (letter.item, letter.attempts, letter.error().map(String::from))
        };
        letters.map(letter).collect()
    }
);

/// A durable queue, in a directory of its own.
struct OnDisk<O: Order<u64>>(DurableQueue<u64, O>, Arc<TempDir>);

impl<O: Order<u64>> Clone for OnDisk<O> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), Arc::clone(&self.1))
    }
}

both!(
    OnDisk<O>,
    requeue_durable::Handle<u64, O>,
    requeue_durable,
    [Order<u64>],
    |queue| &queue.0,
    requeue_durable::Workers::builder,
    |queue: &DurableQueue<u64, O>| {
        let letters = queue.dead_letters().all().unwrap();
        let letter = |letter: requeue_durable::DeadLetter<u64>| {
            (letter.item, letter.attempts, letter.error)
        };
        letters.into_iter().map(letter).collect()
    }
);

fn on_disk<O: Order<u64>>(build: impl FnOnce(&Store) -> DurableQueue<u64, O>) -> OnDisk<O> {
    let directory = directory();
    let queue = build(&open(&directory));
    OnDisk(queue, Arc::new(directory))
}

/// Runs scenarios with queues of both crates, whose builders have the same settings.
macro_rules! scenarios {
    ($($name:ident: $scenario:ident($order:ty)$(.$setting:ident($($value:expr)?))*;)+) => {
        mod in_memory {
            use super::*;
            $(#[test]
            fn $name() {
                $scenario::<requeue::Queue<u64, $order>>(&requeue::Queue::builder()$(.$setting($($value)?))*.build());
            })+
        }

        mod on_disk {
            use super::*;
            $(#[test]
            fn $name() {
                $scenario::<OnDisk<$order>>(&on_disk(|store| {
                    store.builder("numbers")$(.$setting($($value)?))*.build().unwrap()
                }));
            })+
        }
    };
}

scenarios! {
    nothing_is_lost_or_doubled: conservation(Fifo);
    nothing_is_lost_or_doubled_in_a_bounded_queue: conservation(Fifo).capacity(8);
    nothing_is_lost_or_doubled_by_key: conservation(ByKey<u64, u64>).fair_by(|number: &u64| number % 7);
    nothing_is_lost_or_doubled_by_priority: conservation(ByPriority).by_priority();
    aborts_keep_the_order: abort_order(Fifo);
    aborts_keep_the_order_by_priority: abort_order(ByPriority).by_priority();
    a_closed_queue_takes_follow_ups_until_it_is_drained: follow_ups(Fifo);
    a_closed_queue_takes_follow_ups_by_key: follow_ups(ByKey<u64, u64>).fair_by(|number: &u64| number % 3);
    pushes_wait_for_room: waiting_for_room(Fifo).capacity(2);
    a_panic_aborts: panic_in_a_transaction(Fifo);
    workers_survive_panics: panics_of_workers(Fifo).max_attempts(3).backoff(requeue::Backoff::fixed(std::time::Duration::ZERO));
    keys_take_turns: turns(ByKey<u64, u64>).fair_by(|number: &u64| number / 100);
    a_serial_key_waits_for_its_item: serial(ByKey<u64, u64>).fair_by(|number: &u64| number / 100).serial();
    items_die_after_their_attempts: attempts(Fifo).max_attempts(2);
    as_many_are_held_as_may_be: held_at_most(Fifo).max_held(2);
}

fn push_all<Q: Both>(queue: &Q, numbers: impl IntoIterator<Item = u64>) {
    for number in numbers {
        assert_eq!(queue.push(number), Pushed::Done);
    }
}

fn pop_all<Q: Both>(queue: &Q) -> Vec<u64> {
    let pop = || match queue.pop() {
        Item(number) => Some(number),
        Empty | Closed => None,
    };
    std::iter::from_fn(pop).collect()
}

/// Threads push in transactions, and others take in transactions, of which each third aborts.
fn conservation<Q: Both>(queue: &Q) {
    const EACH: u64 = 60;
    let received = thread::scope(|scope| {
        let pushers: Vec<_> = (0..3_u64)
            .map(|thread| {
                let mut handle = queue.handle();
                scope.spawn(move || {
                    for number in (0..EACH).step_by(2) {
                        let abandoned = handle.begin();
                        assert_ne!(abandoned.push(1_000_000), Pushed::Refused);
                        drop(abandoned);
                        let tx = handle.begin();
                        for number in [number, number + 1] {
                            let pushed = tx.push_blocking(thread * EACH + number);
                            assert_eq!(pushed, Pushed::Done);
                        }
                        tx.commit();
                    }
                })
            })
            .collect();
        let takers: Vec<_> = (0..3)
            .map(|_| {
                let mut handle = queue.handle();
                scope.spawn(move || {
                    let (mut numbers, mut count) = (Vec::new(), 0);
                    loop {
                        let tx = handle.begin();
                        let mut taken = match tx.pop_blocking() {
                            Item(number) => vec![number],
                            Empty => unreachable!("it holds nothing"),
                            Closed => return numbers,
                        };
                        if let Item(number) = tx.pop() {
                            taken.push(number);
                        }
                        count += 1;
                        if count % 3 != 0 {
                            tx.commit();
                            numbers.append(&mut taken);
                        }
                    }
                })
            })
            .collect();
        for thread in pushers {
            thread.join().unwrap();
        }
        queue.close();
        let takers = takers.into_iter();
        takers
            .flat_map(|thread| thread.join().unwrap())
            .collect::<Vec<_>>()
    });
    assert_eq!(received.len(), 180);
    let all: HashSet<_> = received.into_iter().collect();
    assert_eq!(all, (0..180).collect());
}

fn abort_order<Q: Both>(queue: &Q) {
    push_all(queue, 0..6);
    let mut handle = queue.handle();
    let tx = handle.begin();
    assert_eq!([tx.pop(), tx.pop(), tx.pop()], [0, 1, 2].map(Item));
    assert_eq!(tx.held(), 3);
    assert_eq!(queue.len(), 3);
    assert_eq!(queue.pop(), Item(3));
    drop(tx);
    assert_eq!(pop_all(queue), [0, 1, 2, 4, 5]);
}

/// Workers push two smaller numbers for each, until the queue is drained.
fn follow_ups<Q: Both>(queue: &Q) {
    push_all(queue, [5]);
    queue.close();
    assert_eq!(queue.push(1), Pushed::Refused);
    let counts = thread::scope(|scope| {
        let worker = |_| {
            let mut handle = queue.handle();
            scope.spawn(move || {
                let mut count = 0;
                loop {
                    let tx = handle.begin();
                    match tx.pop_blocking() {
                        Item(0) => {}
                        Item(number) => {
                            assert_eq!(tx.push(number - 1), Pushed::Done);
                            assert_eq!(tx.push(number - 1), Pushed::Done);
                        }
                        Empty => unreachable!("it holds nothing"),
                        Closed => return count,
                    }
                    tx.commit();
                    count += 1;
                }
            })
        };
        let workers: Vec<_> = (0..3).map(worker).collect();
        let counts = workers.into_iter().map(|worker| worker.join().unwrap());
        counts.sum::<u64>()
    });
    assert_eq!(counts, 63);
    assert_eq!(queue.pop(), Closed);
}

fn waiting_for_room<Q: Both>(queue: &Q) {
    push_all(queue, [0, 1]);
    assert_eq!(queue.push(9), Pushed::Full);
    let mut handle = queue.handle();
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 2..40 {
                let tx = handle.begin();
                assert_eq!(tx.push_blocking(number), Pushed::Done);
                tx.commit();
            }
            queue.close();
        });
        let (mut taker, mut numbers) = (queue.handle(), Vec::new());
        loop {
            assert!(queue.len() <= 2);
            let tx = taker.begin();
            match tx.pop_blocking() {
                Item(number) => numbers.push(number),
                Empty => unreachable!("it holds nothing"),
                Closed => break,
            }
            tx.commit();
        }
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..40));
    });
}

fn panic_in_a_transaction<Q: Both>(queue: &Q) {
    push_all(queue, [1, 2]);
    let mut handle = queue.handle();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let tx = handle.begin();
        assert_eq!(tx.pop(), Item(1));
        assert_eq!(tx.push(3), Pushed::Done);
        panic!("bad luck");
    }));
    assert!(panicked.is_err());
    assert_eq!(pop_all(queue), [1, 2]);
    let tx = handle.begin();
    assert_eq!(tx.push(4), Pushed::Done);
    tx.commit();
    assert_eq!(pop_all(queue), [4]);
}

fn panics_of_workers<Q: Both>(queue: &Q) {
    push_all(queue, 0..30);
    queue.close();
    let (send, runs) = channel();
    let ended = queue.work(3, move |number, attempts| {
        send.send(number).unwrap();
        match (number % 10, attempts) {
            (1, _) => panic!("poison"),
            (2, 1) => panic!("bad luck"),
            (3, _) => Err("no good"),
            (4, 1 | 2) => Err("not yet"),
            _ => Ok(()),
        }
    });
    assert_eq!(ended, [24, 15, 12]);
    assert_eq!(runs.iter().count(), 51);
    let mut dead = queue.dead();
    dead.sort_unstable();
    let numbers: Vec<_> = dead.iter().map(|(number, ..)| *number).collect();
    assert_eq!(numbers, [1, 3, 11, 13, 21, 23]);
    for (number, attempts, error) in dead {
        assert_eq!(attempts, 3);
        let expected = if number % 10 == 1 {
            "poison"
        } else {
            "\"no good\""
        };
        assert_eq!(error.as_deref(), Some(expected));
    }
}

fn turns<Q: Both>(queue: &Q) {
    push_all(queue, [100, 101, 102, 200, 300, 301]);
    assert_eq!(queue.pop(), Item(100));
    let mut handle = queue.handle();
    let tx = handle.begin();
    assert_eq!(tx.pop(), Item(200));
    drop(tx);
    assert_eq!(pop_all(queue), [200, 300, 101, 301, 102]);
}

fn serial<Q: Both>(queue: &Q) {
    push_all(queue, [100, 101, 200]);
    let (mut first, mut second) = (queue.handle(), queue.handle());
    let (one, other) = (first.begin(), second.begin());
    assert_eq!(one.pop(), Item(100));
    assert_eq!([other.pop(), other.pop()], [Item(200), Empty]);
    one.commit();
    assert_eq!(other.pop(), Item(101));
}

fn attempts<Q: Both>(queue: &Q) {
    push_all(queue, [7, 8]);
    let mut handle = queue.handle();
    for _ in 0..2 {
        assert_eq!(handle.begin().pop(), Item(7));
    }
    assert_eq!(queue.dead(), [(7, 2, None)]);
    assert_eq!(pop_all(queue), [8]);
}

fn held_at_most<Q: Both>(queue: &Q) {
    push_all(queue, 0..4);
    let mut handle = queue.handle();
    let tx = handle.begin();
    assert_eq!([tx.pop(), tx.pop(), tx.pop()], [Item(0), Item(1), Empty]);
    assert_eq!(queue.pop(), Empty);
    tx.commit();
    assert_eq!(pop_all(queue), [2, 3]);
}
