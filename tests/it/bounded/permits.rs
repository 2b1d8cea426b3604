//! Sequences of operations on one queue, compared with a model that only counts.
//!
//! `REQUEUE_CASES` sets the number of random cases, and has all sequences of five operations tried, not of four.
//! `REQUEUE_SEED` runs only the random case named by a failure.

use crate::bounded::capacity::assert_room;
use crate::common::rng::Rng;
use crate::common::{assert_at_rest, panics};
use requeue::{Handle, PushError, Queue, Transaction};
use std::mem;

/// Maximal number of handles with an open transaction; one more handle has none.
const WORKERS: usize = 3;

#[derive(Clone, Copy, Debug)]
enum Op {
    /// Without a handle.
    Push,
    Pop,
    /// By the handle without a transaction.
    PushByHandle,
    PopByHandle,
    PushPair,
    PopPair,
    /// In the transaction of a worker.
    Stage(usize),
    Hold(usize),
    HoldPair(usize),
    Commit(usize),
    Abort(usize),
    Forget(usize),
}

/// The expected state of the queue.
#[derive(Debug)]
struct Counts {
    capacity: usize,
    ready: usize,
    /// Held and staged items of each worker.
    open: [(usize, usize); WORKERS],
}

impl Counts {
    fn new(capacity: usize) -> Self {
        let (ready, open) = (0, [(0, 0); WORKERS]);
        Self {
            capacity,
            ready,
            open,
        }
    }

    fn occupancy(&self) -> usize {
        let open = self.open.iter().map(|&(held, staged)| held.max(staged));
        self.ready + open.sum::<usize>()
    }

    fn room(&self) -> usize {
        self.capacity - self.occupancy()
    }

    fn push(&mut self, outcome: Result<usize, PushError<usize>>, wanted: usize) {
        if wanted <= self.room() {
            assert_eq!(outcome, Ok(wanted), "{self:?}");
            self.ready += wanted;
        } else {
            assert_eq!(outcome, Err(PushError::Full(wanted)), "{self:?}");
        }
    }

    fn pop(&mut self, popped: usize, most: usize) {
        assert_eq!(popped, most.min(self.ready), "{self:?}");
        self.ready -= popped;
    }

    fn stage(&mut self, worker: usize, outcome: Result<(), PushError<usize>>) {
        let (held, staged) = self.open[worker];
        if staged < held || self.room() > 0 {
            assert_eq!(outcome, Ok(()), "{self:?}");
            self.open[worker].1 += 1;
        } else {
            assert_eq!(outcome, Err(PushError::Full(1)), "{self:?}");
        }
    }

    fn hold(&mut self, worker: usize, held: usize, most: usize) {
        self.pop(held, most);
        self.open[worker].0 += held;
    }

    fn commit(&mut self, worker: usize) {
        self.ready += mem::take(&mut self.open[worker]).1;
    }

    fn abort(&mut self, worker: usize) {
        self.ready += mem::take(&mut self.open[worker]).0;
    }
}

/// Runs operations until the first that ends the transactions of all workers, or to the end.
fn play_round(
    queue: &Queue<usize>,
    [workers @ .., plain]: &mut [Handle<usize>; WORKERS + 1],
    ops: &mut impl Iterator<Item = Op>,
    counts: &mut Counts,
) -> bool {
    let mut txs: Vec<Option<Transaction<usize>>> = Vec::new();
    for (number, worker) in workers.iter_mut().enumerate() {
        txs.push(Some(worker.begin()));
        counts.abort(number); // of a forgotten transaction
    }
    while txs.iter().any(Option::is_some) {
        let Some(op) = ops.next() else { return false };
        step(queue, plain, &mut txs, op, counts);
        assert!(counts.occupancy() <= counts.capacity);
        assert_eq!(queue.len(), counts.ready, "{op:?}, {counts:?}");
    }
    true
}

fn step(
    queue: &Queue<usize>,
    plain: &mut Handle<usize>,
    txs: &mut [Option<Transaction<usize>>],
    op: Op,
    counts: &mut Counts,
) {
    let pair = |error: PushError<Vec<usize>>| match error {
        PushError::Full(items) => PushError::Full(items.len()),
        PushError::Closed(items) => PushError::Closed(items.len()),
        refused => panic!("neither full nor closed: {refused:?}"),
    };
    match op {
        Op::Push => counts.push(queue.push(1).map(|()| 1), 1),
        Op::Pop => counts.pop(usize::from(queue.pop().is_ok()), 1),
        Op::PushByHandle => counts.push(plain.push(1).map(|()| 1), 1),
        Op::PopByHandle => counts.pop(usize::from(plain.pop().is_ok()), 1),
        Op::PushPair => counts.push(plain.push_batch([1, 1]).map_err(pair), 2),
        Op::PopPair => {
            let mut items = Vec::new();
            while items.len() < 2 && plain.pop_batch(2 - items.len(), &mut items) > 0 {}
            counts.pop(items.len(), 2);
        }
        Op::Stage(n) => {
            if let Some(tx) = &txs[n] {
                counts.stage(n, tx.push(1));
            }
        }
        Op::Hold(n) => {
            if let Some(tx) = &txs[n] {
                counts.hold(n, usize::from(tx.pop().is_ok()), 1);
            }
        }
        Op::HoldPair(n) => {
            if let Some(tx) = &txs[n] {
                let first = tx.pop_batch(2).len();
                let held = first + tx.pop_batch(2 - first).len();
                counts.hold(n, held, 2);
            }
        }
        Op::Commit(n) => {
            if let Some(tx) = txs[n].take() {
                drop(tx.commit());
                counts.commit(n);
            }
        }
        Op::Abort(n) => {
            if let Some(tx) = txs[n].take() {
                tx.abort();
                counts.abort(n);
            }
        }
        Op::Forget(n) => mem::forget(txs[n].take()),
    }
}

/// Runs a sequence, ends all transactions, and checks that all room is free.
fn play(capacity: usize, ops: impl IntoIterator<Item = Op>) {
    let queue = Queue::bounded(capacity);
    let mut counts = Counts::new(capacity);
    let mut handles = [(); WORKERS + 1].map(|()| queue.handle());
    let mut ops = ops.into_iter();
    while play_round(&queue, &mut handles, &mut ops, &mut counts) {}
    drop(handles);
    (0..WORKERS).for_each(|worker| counts.abort(worker));
    assert_at_rest(&queue, counts.ready, 0);
    assert_room(&queue, counts.room());
}

#[test]
fn every_short_sequence_agrees_with_the_counts() {
    const OPS: [Op; 8] = [
        Op::Push,
        Op::Pop,
        Op::PushPair,
        Op::Stage(0),
        Op::Stage(1),
        Op::Hold(0),
        Op::Commit(0),
        Op::Abort(0),
    ];
    let length = if std::env::var_os("REQUEUE_CASES").is_some() {
        5
    } else {
        4
    };
    for number in 0..OPS.len().pow(length) {
        let op = |place| OPS[number / OPS.len().pow(place) % OPS.len()];
        for capacity in 1..=2 {
            play(capacity, (0..length).map(op));
        }
    }
}

fn random(rng: &mut Rng) -> Op {
    let worker = rng.below(WORKERS);
    match rng.below(36) {
        0..=3 => Op::Push,
        4..=6 => Op::Pop,
        7..=10 => Op::PushByHandle,
        11..=13 => Op::PopByHandle,
        14 => Op::PushPair,
        15 => Op::PopPair,
        16..=22 => Op::Stage(worker),
        23..=28 => Op::Hold(worker),
        29..=30 => Op::HoldPair(worker),
        31..=32 => Op::Commit(worker),
        33..=34 => Op::Abort(worker),
        _ => Op::Forget(worker),
    }
}

#[test]
fn random_sequences_agree_with_the_counts() {
    let variable = |name| Some(std::env::var(name).ok()?.parse().expect("a number"));
    let seeds = match variable("REQUEUE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..variable("REQUEUE_CASES").unwrap_or(1_000),
    };
    for seed in seeds {
        let mut rng = Rng::new(seed);
        let capacity = rng.pick(&[1, 1, 2, 2, 3, 4, 7, 20, 100]);
        let ops: Vec<_> = (0..rng.below(200)).map(|_| random(&mut rng)).collect();
        let played = panics(|| play(capacity, ops));
        assert!(!played, "REQUEUE_SEED={seed} fails");
    }
}
