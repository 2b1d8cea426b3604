//! The begin and the end of transactions.

use super::item::Tracked;
use super::open::{commit_together, Left, Open};
use super::ops::{Close, End, Ending, Rest, Step};
use super::queues::{on, Any, AnyTransaction, AnyWorker, Family, Kind, Tx};
use super::world::World;
use requeue::{Expired, Reason, Taken, Transaction};
use std::mem;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

impl<const PAD: usize, F: Family<PAD>> World<PAD, F> {
    pub(super) fn begin(&mut self, slots: &[usize], steps: &[Step], end: &Ending) {
        let taken = slots
            .iter()
            .filter_map(|&slot| Some((slot, self.workers[slot].take()?)));
        let (slots, mut workers): (Vec<_>, Vec<_>) = taken.collect();
        for worker in &mut workers {
            self.settle_worker(worker);
        }
        let mut open: Vec<_> = workers
            .iter()
            .map(|worker| on!(worker, worker => Open::new(worker)))
            .collect();
        let txs: Vec<AnyTransaction<PAD, F>> = workers
            .iter_mut()
            .map(|worker| on!(worker, Same(worker) => Same(worker.handle.begin())))
            .collect();
        let borrowed: Vec<_> = txs.iter().map(Any::as_ref).collect();
        self.steps(&borrowed, &mut open, steps);
        let left: Vec<_> = match end {
            Ending::Joint(rest) => self.commit_jointly(txs, &open, rest),
            Ending::Each(ends) => {
                let txs = txs.into_iter().zip(open).zip(ends);
                txs.map(|((tx, open), end)| on!(tx, tx => self.end(tx, &open, end)))
                    .collect()
            }
        };
        for ((slot, mut worker), left) in slots.into_iter().zip(workers).zip(left) {
            on!(&mut worker, worker => worker.left = left);
            self.put(slot, worker);
        }
    }

    fn commit_jointly(
        &mut self,
        txs: Vec<AnyTransaction<'_, PAD, F>>,
        open: &[Open],
        rest: &Rest,
    ) -> Vec<Left> {
        let is_lost = open.iter().any(|open| self.has_lost(open));
        if let Ok(taken) = commit_together::<PAD, F>(txs) {
            assert!(!is_lost, "committed an item that was reclaimed");
            let taken = taken.into_iter().zip(open);
            return taken
                .map(|(taken, open)| on!(taken, taken => self.commit(taken, open, rest)))
                .collect();
        }
        assert!(is_lost, "no lease has expired");
        // Dropped like any tuple.
        for open in open {
            self.settle(open.queue, open.source, &open.left(), Reason::Aborted);
        }
        open.iter().map(|_| Left::default()).collect()
    }

    fn has_lost(&self, open: &Open) -> bool {
        self.orders[open.queue].has_lost(open.source)
    }

    pub(super) fn transact(
        &mut self,
        worker: &mut AnyWorker<PAD, F>,
        steps: &[Step],
        close: Close,
    ) {
        let mut open = [on!(&*worker, worker => Open::new(worker))];
        let mut commit = close == Close::Commit;
        let mut work = |tx: Tx<'_, '_, PAD, F>| {
            self.steps(&[tx], &mut open, steps);
            commit &= !self.has_lost(&open[0]);
            match close {
                Close::Panic => resume_unwind(Box::new(Close::Panic)),
                Close::Commit => Ok(()),
                Close::Abort => Err(Expired),
            }
        };
        let outcome = catch_unwind(AssertUnwindSafe(
            || on!(worker, Same(worker) => worker.handle.try_transact(|tx| work(Same(tx)))),
        ));
        let outcome = outcome.map_err(|panic| {
            // A panic of neither the model nor the queue.
            if !panic.is::<Close>() {
                resume_unwind(panic);
            }
        });
        assert_eq!(outcome == Ok(Ok(())), commit);
        let [open] = open;
        if commit {
            self.alive -= open.held.len();
            self.conclude(&open);
        } else {
            let reason = match close {
                Close::Panic => Reason::Panicked,
                _ => Reason::Aborted,
            };
            self.settle(open.queue, open.source, &open.left(), reason);
        }
    }

    fn end<O: Kind<PAD>>(
        &mut self,
        tx: Transaction<'_, Tracked<PAD>, O>,
        open: &Open,
        end: &End,
    ) -> Left {
        let left = open.left();
        match end {
            End::Commit(rest) => {
                let is_lost = self.has_lost(open);
                match tx.try_commit() {
                    Ok(taken) => {
                        assert!(!is_lost, "committed an item that was reclaimed");
                        return self.commit(taken, open, rest);
                    }
                    Err(Expired) => assert!(is_lost, "no lease has expired"),
                }
            }
            End::Abort => tx.abort(),
            End::Drop => drop(tx),
            End::Forget => {
                mem::forget(tx);
                return left;
            }
        }
        self.settle(open.queue, open.source, &left, Reason::Aborted);
        Left::default()
    }

    /// A commit: staged items are ready, held items are gone, and no future waits.
    fn conclude(&mut self, open: &Open) {
        self.leave(open.queue, open.lent.as_ref());
        let order = &mut self.orders[open.queue];
        let (_, copies) = order.end(open.source);
        let held: Vec<_> = open.held.iter().map(|held| held.mark).collect();
        order.commit(&held);
        order.publish(&open.staged);
        self.alive -= copies;
    }

    fn commit<O: Kind<PAD>>(
        &mut self,
        mut taken: Taken<'_, Tracked<PAD>, O>,
        open: &Open,
        rest: &Rest,
    ) -> Left {
        self.conclude(open);
        let held = &open.held;
        assert_eq!(taken.len(), held.len());
        for (item, held) in taken.by_ref().zip(held).take(rest.take) {
            assert_eq!(item.mark(), held.mark, "taken in the order of the pops");
            self.alive -= 1;
        }
        let doomed = held.len().saturating_sub(rest.take);
        assert_eq!(taken.len(), doomed);
        if rest.forget {
            mem::forget(taken);
            return Left {
                doomed,
                ..Left::default()
            };
        }
        drop(taken);
        self.alive -= doomed;
        Left::default()
    }
}
