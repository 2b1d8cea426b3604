//! Transactions of both queues that are open at the same time.

use super::model::Death;
use super::open::{Expected, Open};
use super::orders::{weight, Tested};
use super::{Run, HOUR};
use crate::copy_of;
use requeue_durable::{commit_all_with, Durability, Handle, PushError, StoreError, Transaction};
use tempfile::TempDir;

/// Handles with the number of their side, and their own.
type Handles<O> = Vec<(usize, u64, Handle<u64, O>)>;

impl<O: Tested> Run<O> {
    /// Opens transactions, does something in each, and ends them, unless they are open in a restart or a crash.
    pub(super) fn round(&mut self) {
        let mut handles = self.take_handles();
        let mut open = Vec::new();
        for (side, number, handle) in &mut handles {
            if self.random.percent(40) {
                open.push(Open::new(*side, *number, true, handle.begin()));
            }
        }
        for _ in 0..self.random.below(3) {
            self.handles += 1;
            let side = self.random.below(2);
            let tx = self.sides[side].queue().begin_owned();
            open.push(Open::new(side, self.handles, false, tx));
        }
        for _ in 0..4 * open.len() {
            self.operation(&mut open);
        }
        match self.random.below(10) {
            0 => {
                self.sync();
                let copy = self.crash(open);
                drop(handles);
                self.close();
                self.directory = copy;
                self.restart();
            }
            1 => {
                self.abort_all(open);
                drop(handles);
                self.restart();
            }
            end => {
                if end < 5 {
                    self.commit_together(open);
                } else {
                    self.end_each(open);
                }
                for (side, number, handle) in handles {
                    self.sides[side].handles.push((number, handle));
                }
            }
        }
    }

    fn take_handles(&mut self) -> Handles<O> {
        let sides = self.sides.iter_mut().enumerate();
        let handles = sides.flat_map(|(index, side)| {
            let handles = side.handles.drain(..);
            handles.map(move |(number, handle)| (index, number, handle))
        });
        handles.collect()
    }

    fn operation(&mut self, open: &mut [Open<'_, O>]) {
        let index = self.random.below(open.len());
        match self.random.below(16) {
            0 => {
                self.advance();
                self.expire(open);
            }
            1 => self.recover(open, index),
            2 => {
                let side = &mut self.sides[self.random.below(2)];
                O::use_ticket(&mut self.random, side);
            }
            3 if self.random.percent(30) => {
                let side = &mut self.sides[self.random.below(2)];
                side.retain(&mut self.random);
            }
            _ => {
                let open = &mut open[index];
                let side = &mut self.sides[open.expected.side];
                open.operation(&mut self.random, side, &mut self.last);
            }
        }
        self.compare();
        if self.keyed {
            self.push_again(open);
        }
        for Open { tx, expected } in open {
            if !expected.has_lost {
                let counts = (expected.held.len(), expected.staged.len());
                assert_eq!((tx.held(), tx.staged()), counts);
            }
        }
    }

    /// Pushes an item that was pushed before, and is a duplicate as long as that one is there. Compares the weights of all.
    fn push_again(&mut self, open: &[Open<'_, O>]) {
        let index = self.random.below(2);
        let (side, value) = (&self.sides[index], self.random.below(self.last + 1));
        let mut there: Vec<_> = side.model.values().collect();
        for Open { expected, .. } in open.iter().filter(|open| open.expected.side == index) {
            let items = expected.held.iter().chain(&expected.staged);
            there.extend(items.map(|item| item.value));
        }
        let weights = there.iter().map(|value| weight(*value));
        assert_eq!(side.queue().weight(), weights.sum::<usize>());
        match side.queue().begin_owned().push(value) {
            Ok(()) => assert!(!there.contains(&value), "{value} is there"),
            Err(PushError::Closed(_)) => assert!(side.model.closed),
            Err(error) => assert!(error.is_duplicate() && there.contains(&value)),
        }
    }

    /// The leases that are over end.
    fn expire(&mut self, open: &mut [Open<'_, O>]) {
        for Open { expected, .. } in open {
            let side = &mut self.sides[expected.side];
            let now = side.model.now;
            expected.lose(side, |item| item.until <= now);
        }
    }

    /// Takes items back from a worker, whose transaction this is. Owned ones have no worker.
    fn recover(&mut self, open: &mut [Open<'_, O>], index: usize) {
        let expected = &mut open[index].expected;
        let side = &mut self.sides[expected.side];
        let queue = side.queue().clone();
        let recovered = O::recover(&queue, &expected.handle.to_string(), queue.now());
        let now = side.model.now;
        let is_leased = O::TERM.is_some() && expected.is_worker;
        let ready = expected.lose(side, |item| is_leased && item.taken < now);
        assert_eq!(recovered, ready);
    }

    /// All commits are on the disk then: one that is synced syncs those before it.
    fn sync(&mut self) {
        let side = &mut self.sides[0];
        if self.random.percent(50) || side.model.closed {
            return self.store.as_ref().unwrap().flush().unwrap();
        }
        self.handles += 1;
        let mut open = Open::new(0, self.handles, false, side.queue().begin_owned());
        open.push(&mut self.random, side, &mut self.last);
        let Open { tx, expected } = open;
        let taken = commit(tx, Durability::Synced);
        expected.end(side, taken, false);
    }

    /// Copies the directory while transactions are open.
    fn crash(&mut self, open: Vec<Open<'_, O>>) -> TempDir {
        let copy = copy_of(&self.directory);
        for Open { tx, expected } in open {
            drop(tx);
            let model = &mut self.sides[expected.side].model;
            model.give_back(expected.held, Death::Crashed, false);
        }
        copy
    }

    fn abort_all(&mut self, mut open: Vec<Open<'_, O>>) {
        while !open.is_empty() {
            let index = self.random.below(open.len());
            let Open { tx, expected } = open.swap_remove(index);
            tx.abort();
            self.aborted(expected, &open);
        }
    }

    fn aborted(&mut self, expected: Expected, others: &[Open<'_, O>]) {
        let alone = is_alone(&expected, others);
        let model = &mut self.sides[expected.side].model;
        model.give_back(expected.held, Death::Aborted, alone);
    }

    fn commit_together(&mut self, open: Vec<Open<'_, O>>) {
        let (mut txs, mut expected) = (Vec::new(), Vec::new());
        for open in open {
            txs.push(open.tx);
            expected.push(open.expected);
        }
        let has_lost = expected.iter().any(|expected| expected.has_lost);
        let durability = self.random.pick(&[Durability::Synced, HOUR]);
        let taken = commit_together(txs, durability);
        assert_eq!(taken.is_err(), has_lost);
        for (index, expected) in expected.into_iter().enumerate() {
            let taken = taken.as_ref().map(|taken| taken[index].clone());
            let side = &mut self.sides[expected.side];
            expected.end(side, taken.map_err(Clone::clone), false);
        }
    }

    fn end_each(&mut self, mut open: Vec<Open<'_, O>>) {
        while !open.is_empty() {
            let index = self.random.below(open.len());
            let mut ended = open.swap_remove(index);
            let side = &mut self.sides[ended.expected.side];
            if !ended.expected.has_lost && self.random.percent(10) {
                ended.fail_all(&mut self.random, side);
            }
            let Open { tx, expected } = ended;
            if self.random.percent(40) {
                tx.abort();
                self.aborted(expected, &open);
            } else {
                let has_lost = expected.has_lost;
                let taken = match self.random.below(4) {
                    0 => futures::executor::block_on(tx.commit_async()).map(Iterator::collect),
                    1 => commit(tx, HOUR),
                    _ => commit(tx, Durability::Synced),
                };
                assert_eq!(taken.is_err(), has_lost);
                let alone = is_alone(&expected, &open);
                expected.end(side, taken, alone);
            }
            self.compare();
        }
    }
}

/// Whether no other transaction of its queue holds any items.
fn is_alone<O: Tested>(expected: &Expected, others: &[Open<'_, O>]) -> bool {
    let mut others = others.iter().map(|open| &open.expected);
    others.all(|other| other.side != expected.side || other.held.is_empty())
}

fn commit<O: Tested>(
    tx: Transaction<'_, u64, O>,
    durability: Durability,
) -> Result<Vec<u64>, StoreError> {
    tx.commit_with(durability).map(Iterator::collect)
}

/// Commits two transactions as a tuple, others as a vector.
fn commit_together<O: Tested>(
    txs: Vec<Transaction<'_, u64, O>>,
    durability: Durability,
) -> Result<Vec<Vec<u64>>, StoreError> {
    match <[_; 2]>::try_from(txs) {
        Ok([one, other]) => {
            let (one, other) = commit_all_with((one, other), durability)?;
            Ok(vec![one.collect(), other.collect()])
        }
        Err(txs) => {
            let taken = commit_all_with(txs, durability)?.into_iter();
            Ok(taken.map(Iterator::collect).collect())
        }
    }
}
