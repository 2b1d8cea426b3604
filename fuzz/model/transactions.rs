//! The operations on open transactions.

use super::item::{Mark, Tracked};
use super::open::{commit_together, Left, Open, Worker};
use super::ops::{End, Ending, Rest, Step, Way};
use super::waits::{as_batch, Outcome};
use super::world::World;
use requeue::{Item, PushError, Taken, Transaction};
use std::time::Duration;
use std::{mem, slice};

impl<const PAD: usize> World<PAD> {
    pub(super) fn begin(&mut self, slots: &[usize], steps: &[Step], end: &Ending) {
        let taken = slots
            .iter()
            .filter_map(|&slot| Some((slot, self.workers[slot].take()?)));
        let (slots, mut workers): (Vec<_>, Vec<_>) = taken.collect();
        for worker in &mut workers {
            self.settle(worker.queue, worker.source, &mem::take(&mut worker.left));
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
                    .map(|(taken, open)| self.commit(taken, &open, rest))
                    .collect()
            }
            Ending::Each(ends) => {
                let txs = txs.into_iter().zip(open).zip(ends);
                txs.map(|((tx, open), end)| self.end(tx, &open, end))
                    .collect()
            }
        };
        for ((slot, worker), left) in slots.into_iter().zip(workers).zip(left) {
            self.put(slot, Worker { left, ..worker });
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
            let [open] = open;
            if commit {
                world.alive -= open.held.len();
                world.conclude(&open);
            } else {
                world.settle(open.queue, open.source, &open.left());
            }
        });
    }

    /// Runs steps inside and beside the open transactions. What they hold stays readable.
    fn steps(&mut self, txs: &[Transaction<'_, Tracked<PAD>>], open: &mut [Open], steps: &[Step]) {
        let mut items = Vec::new();
        for step in steps {
            let n = match *step {
                Step::Stage(n, _) | Step::Hold(n, _) | Step::HoldBatch(n, ..) => n,
                Step::Outside(ref act) => {
                    self.act(act);
                    self.check();
                    continue;
                }
            };
            let Some(n) = usize::from(n).checked_rem(txs.len()) else {
                continue;
            };
            let (tx, work) = (&txs[n], &mut open[n]);
            match *step {
                _ if work.lent.is_some() => {}
                Step::Stage(_, way) => self.stage(tx, work, way),
                Step::Hold(_, way) => items.extend(self.hold(tx, work, way)),
                Step::HoldBatch(_, max, way) => {
                    items.extend(self.hold_batch(tx, work, max, way));
                }
                Step::Outside(_) => {}
            }
            for (tx, open) in txs.iter().zip(&*open) {
                if open.lent.is_some() {
                    continue;
                }
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

    fn stage(&mut self, tx: &Transaction<'_, Tracked<PAD>>, open: &mut Open, way: Way) {
        let item = self.item(open.source);
        let mark = item.mark();
        let outcome = match self.orders[open.queue].way_to_stage(way, open.source) {
            Way::Try => Outcome::Answer(tx.push(item)),
            Way::Zero => Outcome::Answer(tx.push_timeout(item, Duration::ZERO)),
            Way::Block => Outcome::Answer(tx.push_blocking(item)),
            Way::Poll(then) => Outcome::of_new(tx.push_async(item), then),
        };
        let order = &mut self.orders[open.queue];
        match outcome.map(as_batch) {
            Outcome::Answer(said) => {
                order.check_stage(open.source, &said);
                if said.is_ok() {
                    order.stage_in(open.source);
                    open.staged.push(mark);
                }
                self.returned(&[mark], said.map_err(PushError::into_inner));
            }
            Outcome::Dropped => {
                order.check_stage_waits(open.source);
                self.alive -= 1;
            }
            Outcome::Forgotten(waiter) => {
                order.check_stage_waits(open.source);
                order.pushers.join(&waiter, 1);
                open.lent = Some(waiter);
                self.lose(&[mark]);
            }
        }
    }

    fn hold<'t>(
        &mut self,
        tx: &'t Transaction<'_, Tracked<PAD>>,
        open: &mut Open,
        way: Way,
    ) -> Option<(Item<'t, Tracked<PAD>>, Mark)> {
        let outcome = match self.orders[open.queue].way_to_hold(way, open.source) {
            Way::Try => Outcome::Answer(tx.pop()),
            Way::Zero => Outcome::Answer(tx.pop_timeout(Duration::ZERO)),
            Way::Block => Outcome::Answer(tx.pop_blocking()),
            Way::Poll(then) => Outcome::of_new(tx.pop_async(), then),
        };
        let order = &mut self.orders[open.queue];
        match outcome {
            Outcome::Answer(Ok(item)) => return Some(self.held(open, item)),
            Outcome::Answer(Err(said)) => order.check_nothing(said),
            Outcome::Dropped => order.check_pop_waits(Some(open.source)),
            Outcome::Forgotten(waiter) => {
                order.check_pop_waits(Some(open.source));
                order.poppers.join(&waiter, 1);
                open.lent = Some(waiter);
            }
        }
        None
    }

    fn hold_batch<'t>(
        &mut self,
        tx: &'t Transaction<'_, Tracked<PAD>>,
        open: &mut Open,
        max: usize,
        way: Way,
    ) -> Vec<(Item<'t, Tracked<PAD>>, Mark)> {
        let order = &self.orders[open.queue];
        let min = max.min(order.ready());
        let batch = match order.way_to_hold(way, open.source) {
            Way::Zero => tx.pop_batch_blocking(max, max, Duration::ZERO),
            Way::Block => tx.pop_batch_blocking(min, max, Duration::MAX),
            _ => tx.pop_batch(max),
        };
        self.check_batch(open.queue, batch.len(), max);
        batch.map(|item| self.held(open, item)).collect()
    }

    fn held<'t>(
        &mut self,
        open: &mut Open,
        mut item: Item<'t, Tracked<PAD>>,
    ) -> (Item<'t, Tracked<PAD>>, Mark) {
        let mark = item.mark();
        open.held.push(mark);
        assert_eq!(item.attempts(), self.orders[open.queue].hold(mark));
        self.orders[open.queue].hold_in(open.source);
        item.hold();
        assert_eq!(
            item.times_held(),
            item.attempts(),
            "changes made while held stay"
        );
        (item, mark)
    }

    fn end(&mut self, tx: Transaction<'_, Tracked<PAD>>, open: &Open, end: &End) -> Left {
        let left = open.left();
        match end {
            End::Commit(rest) => return self.commit(tx.commit(), open, rest),
            End::Abort => tx.abort(),
            End::Drop => drop(tx),
            End::Forget => {
                mem::forget(tx);
                return left;
            }
        }
        self.settle(open.queue, open.source, &left);
        Left::default()
    }

    /// A commit: what is staged is ready, what is held is gone, and nobody waits.
    fn conclude(&mut self, open: &Open) {
        self.leave(open.queue, open.lent.as_ref());
        let order = &mut self.orders[open.queue];
        order.end(open.source);
        order.commit(&open.held);
        order.push(&open.staged);
    }

    fn commit(&mut self, mut taken: Taken<'_, Tracked<PAD>>, open: &Open, rest: &Rest) -> Left {
        self.conclude(open);
        let held = &open.held;
        assert_eq!(taken.len(), held.len());
        for (item, mark) in taken.by_ref().zip(held).take(rest.take) {
            assert_eq!(item.mark(), *mark, "taken in the order of the pops");
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
