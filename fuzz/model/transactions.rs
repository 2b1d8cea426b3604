//! The operations on open transactions.

use super::item::{Mark, Tracked};
use super::open::{commit_together, Left, Open, Worker};
use super::ops::{End, Ending, Rest, Step};
use super::world::World;
use requeue::{Item, Taken, Transaction};
use std::{mem, slice};

impl<const PAD: usize> World<PAD> {
    pub(super) fn begin(&mut self, slots: &[usize], steps: &[Step], end: &Ending) {
        let taken = slots
            .iter()
            .filter_map(|&slot| Some((slot, self.workers[slot].take()?)));
        let (slots, mut workers): (Vec<_>, Vec<_>) = taken.collect();
        for worker in &mut workers {
            self.settle(worker.queue, &mem::take(&mut worker.left));
        }
        let mut open: Vec<_> = workers.iter().map(Open::new).collect();
        let txs: Vec<_> = workers
            .iter_mut()
            .map(|worker| worker.handle.begin())
            .collect();
        self.steps(&txs, &mut open, steps);
        let left: Vec<_> = match end {
            Ending::Joint(rest) => {
                let taken = commit_together(txs).into_iter();
                taken
                    .zip(open)
                    .map(|(taken, open)| self.commit(taken, open, rest))
                    .collect()
            }
            Ending::Each(ends) => {
                let txs = txs.into_iter().zip(open).zip(ends);
                txs.map(|((tx, open), end)| self.end(tx, open, end))
                    .collect()
            }
        };
        for ((slot, worker), left) in slots.into_iter().zip(workers).zip(left) {
            self.workers[slot] = Some(Worker { left, ..worker });
        }
    }

    pub(super) fn transact(&mut self, slot: usize, steps: &[Step], commit: bool) {
        self.with(slot, |world, worker| {
            let mut open = [Open::new(worker)];
            let outcome = worker.handle.transact(|tx| {
                world.steps(slice::from_ref(tx), &mut open, steps);
                if commit {
                    Ok(())
                } else {
                    Err(())
                }
            });
            assert_eq!(outcome.is_ok(), commit);
            let [Open {
                queue,
                staged,
                held,
                ..
            }] = open;
            if commit {
                world.orders[queue].commit(&held);
                world.orders[queue].push(&staged);
                world.alive -= held.len();
            } else {
                world.settle(
                    queue,
                    &Left {
                        held,
                        doomed: staged.len(),
                    },
                );
            }
        });
    }

    /// Runs steps inside and beside the open transactions. What they hold stays readable.
    fn steps(&mut self, txs: &[Transaction<'_, Tracked<PAD>>], open: &mut [Open], steps: &[Step]) {
        let mut items = Vec::new();
        let which = |n: u8| usize::from(n).checked_rem(txs.len());
        for step in steps {
            match *step {
                Step::Outside(ref act) => self.act(act),
                Step::Stage(n) => {
                    let Some(n) = which(n) else { continue };
                    let item = self.item(open[n].source);
                    open[n].staged.push(item.mark());
                    txs[n].push(item).unwrap();
                }
                Step::Hold(n) => {
                    let Some(n) = which(n) else { continue };
                    match txs[n].pop() {
                        Ok(item) => items.push(self.hold(&mut open[n], item)),
                        Err(_) => self.check_batch(open[n].queue, 0, 1),
                    }
                }
                Step::HoldBatch(n, max) => {
                    let Some(n) = which(n) else { continue };
                    let batch = txs[n].pop_batch(max);
                    self.check_batch(open[n].queue, batch.len(), max);
                    items.extend(batch.map(|item| self.hold(&mut open[n], item)));
                }
            }
            for (tx, open) in txs.iter().zip(&*open) {
                assert_eq!(
                    (tx.staged(), tx.held()),
                    (open.staged.len(), open.held.len())
                );
            }
            self.check();
        }
        for (item, mark) in &items {
            assert_eq!((item.mark(), item.times_held()), (*mark, item.attempts()));
        }
    }

    fn hold<'t>(
        &mut self,
        open: &mut Open,
        mut item: Item<'t, Tracked<PAD>>,
    ) -> (Item<'t, Tracked<PAD>>, Mark) {
        let mark = item.mark();
        open.held.push(mark);
        assert_eq!(item.attempts(), self.orders[open.queue].hold(mark));
        item.hold();
        assert_eq!(
            item.times_held(),
            item.attempts(),
            "changes made while held stay"
        );
        (item, mark)
    }

    fn end(&mut self, tx: Transaction<'_, Tracked<PAD>>, open: Open, end: &End) -> Left {
        let left = Left {
            doomed: open.staged.len(),
            held: open.held.clone(),
        };
        match end {
            End::Commit(rest) => return self.commit(tx.commit(), open, rest),
            End::Abort => tx.abort(),
            End::Drop => drop(tx),
            End::Forget => {
                mem::forget(tx);
                return left;
            }
        }
        self.settle(open.queue, &left);
        Left::default()
    }

    fn commit(&mut self, mut taken: Taken<'_, Tracked<PAD>>, open: Open, rest: &Rest) -> Left {
        let Open {
            queue,
            staged,
            held,
            ..
        } = open;
        self.orders[queue].commit(&held);
        self.orders[queue].push(&staged);
        assert_eq!(taken.len(), held.len());
        for (item, mark) in taken.by_ref().zip(&held).take(rest.take) {
            assert_eq!(item.mark(), *mark, "taken in the order of the pops");
            self.alive -= 1;
        }
        let doomed = held.len().saturating_sub(rest.take);
        assert_eq!(taken.len(), doomed);
        if rest.forget {
            mem::forget(taken);
            return Left {
                doomed,
                held: Vec::new(),
            };
        }
        drop(taken);
        self.alive -= doomed;
        Left::default()
    }
}
