//! Threads that move tokens between queues, and a restart.

use super::random::{cases, Random};
use super::{directory, options};
use requeue_durable::{commit_all_with, Durability, DurableQueue, Handle, Store};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::thread;
use std::time::Duration;

const QUEUES: usize = 3;
const THREADS: u64 = 4;
const STEPS: usize = 150;

/// A token, the handle that pushed it last, and the number of that push.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Item {
    token: u64,
    handle: (u64, usize),
    number: u64,
}

/// The tokens that were pushed first, and those that were popped for good.
#[derive(Default)]
struct Ledger {
    pushed: BTreeSet<u64>,
    popped: BTreeSet<u64>,
}

struct Worker {
    random: Random,
    id: u64,
    handles: [Handle<Item>; QUEUES],
    count: u64,
    ledger: Ledger,
}

impl Worker {
    fn new(seed: u64, id: u64, queues: &[DurableQueue<Item>; QUEUES]) -> Self {
        Self {
            random: Random::new(seed * THREADS + id),
            id,
            handles: queues.each_ref().map(DurableQueue::handle),
            count: 0,
            ledger: Ledger::default(),
        }
    }

    /// An item to be pushed by the handle of a queue.
    fn item(&mut self, token: Option<u64>, queue: usize) -> Item {
        self.count += 1;
        Item {
            token: token.unwrap_or(self.count * THREADS + self.id),
            handle: (self.id, queue),
            number: self.count,
        }
    }

    fn durability(&mut self) -> Durability {
        let at_most = Duration::from_secs(3600);
        let buffered = Durability::Buffered { at_most };
        self.random.pick(&[Durability::Synced, buffered, buffered])
    }

    fn step(&mut self) {
        let [from, to] = [QUEUES, QUEUES - 1].map(|end| self.random.below(end));
        let to = (from + 1 + to) % QUEUES;
        match self.random.below(8) {
            0..=2 => self.push(from),
            3 => self.pop(from),
            _ => self.carry(from, to),
        }
    }

    fn push(&mut self, queue: usize) {
        let durability = self.durability();
        let items = [self.item(None, queue), self.item(None, queue)];
        let commits = !self.random.percent(20);
        let tx = self.handles[queue].begin();
        tx.push_batch(items).unwrap();
        if commits {
            tx.commit_with(durability).unwrap();
            let tokens = items.iter().map(|item| item.token);
            self.ledger.pushed.extend(tokens);
        }
    }

    fn pop(&mut self, queue: usize) {
        let (durability, commits) = (self.durability(), self.random.percent(60));
        let tx = self.handles[queue].begin();
        if tx.pop().is_ok() && commits {
            let popped = tx.commit_with(durability).unwrap();
            self.ledger.popped.extend(popped.map(|item| item.token));
        }
    }

    /// Moves some tokens to another queue, or aborts.
    fn carry(&mut self, from: usize, to: usize) {
        let (durability, commits) = (self.durability(), self.random.percent(70));
        let mut taking = self.handles[from].clone().begin_owned();
        drop(taking.pop_batch(1 + self.random.below(3)).unwrap());
        let tokens: Vec<_> = taking.items().map(|item| item.token).collect();
        let items = tokens.into_iter();
        let items: Vec<_> = items.map(|token| self.item(Some(token), to)).collect();
        let giving = self.handles[to].begin();
        giving.push_batch(items).unwrap();
        if commits {
            commit_all_with((taking, giving), durability).unwrap();
        }
    }
}

fn open(path: &Path) -> (Store, [DurableQueue<Item>; QUEUES]) {
    let store = options().open(path).unwrap();
    let queues = ["one", "two", "three"].map(|name| store.queue(name).unwrap());
    (store, queues)
}

/// Pops everything; each handle's items come in the order of their pushes.
fn drain(queue: &DurableQueue<Item>) -> Vec<u64> {
    let mut last = HashMap::new();
    let items = queue.drain().map(Result::unwrap).map(|item| {
        let before = last.insert(item.handle, item.number);
        assert!(before < Some(item.number), "{item:?} came after {before:?}");
        item.token
    });
    items.collect()
}

fn case(seed: u64) {
    let directory = directory();
    let (store, queues) = open(directory.path());
    let mut workers: Vec<_> = (0..THREADS)
        .map(|id| Worker::new(seed, id, &queues))
        .collect();
    thread::scope(|scope| {
        for worker in &mut workers {
            scope.spawn(|| (0..STEPS).for_each(|_| worker.step()));
        }
    });
    let mut expected = BTreeSet::<u64>::new();
    let ledgers: Vec<_> = workers.into_iter().map(|worker| worker.ledger).collect();
    for ledger in &ledgers {
        expected.extend(&ledger.pushed);
    }
    for token in ledgers.iter().flat_map(|ledger| &ledger.popped) {
        assert!(expected.remove(token), "{token} was popped twice");
    }
    drop((store, queues));

    let (_store, queues) = open(directory.path());
    let mut tokens = Vec::new();
    thread::scope(|scope| {
        // Two threads for each queue.
        let drains: Vec<_> = queues.iter().chain(&queues).collect();
        let drains = drains.into_iter().map(|queue| scope.spawn(|| drain(queue)));
        let drains: Vec<_> = drains.collect();
        for drain in drains {
            tokens.extend(drain.join().unwrap());
        }
    });
    tokens.sort_unstable();
    assert!(expected.into_iter().eq(tokens));
}

#[test]
fn tokens_that_threads_move_between_queues_are_there_once_after_a_restart() {
    cases(3, case);
}
