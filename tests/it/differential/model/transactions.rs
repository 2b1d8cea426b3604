//! The operations on open transactions.

use super::item::Mark;
use super::item::Tracked;
use super::open::Open;
use super::ops::{Step, Way};
use super::queues::{on, Family, Kind, Tx};
use super::retries::Grasp;
use super::waits::{as_batch, Outcome};
use super::world::World;
use requeue::{Item, PushError, Transaction};
use std::time::Duration;

impl<const PAD: usize, F: Family<PAD>> World<PAD, F> {
    /// Runs steps inside and outside of the open transactions. The held items stay readable.
    pub(super) fn steps(&mut self, txs: &[Tx<'_, '_, PAD, F>], open: &mut [Open], steps: &[Step]) {
        let mut items = Vec::new();
        for step in steps {
            let n = match *step {
                Step::Stage(n, _)
                | Step::StageSo(n, _)
                | Step::Hold(n, _)
                | Step::HoldBatch(n, ..)
                | Step::Peek(n, ..)
                | Step::Renew(n) => n,
                Step::Retry(pick, delay) => {
                    self.retry(txs, open, &mut items, pick.into(), delay);
                    self.check_open(txs, open);
                    continue;
                }
                Step::Outside(ref act) => {
                    self.act_and_check(act);
                    continue;
                }
            };
            let Some(n) = usize::from(n).checked_rem(txs.len()) else {
                continue;
            };
            if open[n].lent.is_none() {
                let held = on!(txs[n], tx => self.step(tx, &mut open[n], step));
                items.extend(held.into_iter().map(|grasp| (n, grasp)));
            }
            self.check_open(txs, open);
        }
        for (_, grasp) in &items {
            grasp.check();
        }
    }

    fn step<'t, O: Kind<PAD>>(
        &mut self,
        tx: &'t Transaction<'_, Tracked<PAD>, O>,
        open: &mut Open,
        step: &Step,
    ) -> Vec<Grasp<'t, PAD>> {
        match *step {
            Step::Stage(_, way) => self.stage(tx, open, way),
            Step::StageSo(_, wish) => self.stage_so(tx, open, wish),
            Step::Hold(_, way) => return Vec::from_iter(self.hold(tx, open, way)),
            Step::HoldBatch(_, max, way) => return self.hold_batch(tx, open, max, way),
            Step::Peek(_, ref meanwhile, look) => {
                return Vec::from_iter(self.peek_in(tx, open, meanwhile, look));
            }
            Step::Renew(_) => {
                let renewed = self.orders[open.queue].renew(open.source);
                assert_eq!(tx.renew().is_ok(), renewed);
            }
            Step::Retry(..) | Step::Outside(_) => {}
        }
        Vec::new()
    }

    fn check_open(&mut self, txs: &[Tx<'_, '_, PAD, F>], open: &[Open]) {
        for (&tx, open) in txs.iter().zip(open) {
            if open.lent.is_none() {
                assert_eq!(
                    on!(tx, tx => (tx.staged(), tx.held())),
                    (open.staged.len(), open.held.len())
                );
            }
        }
        self.check();
    }

    fn stage<O: Kind<PAD>>(
        &mut self,
        tx: &Transaction<'_, Tracked<PAD>, O>,
        open: &mut Open,
        way: Way,
    ) {
        let item = self.item(open.source);
        let mark = item.mark();
        let outcome = match self.orders[open.queue].way_to_stage(way, open.source, mark) {
            Way::Try => Outcome::Answer(tx.push(item)),
            Way::Zero => Outcome::Answer(tx.push_timeout(item, Duration::ZERO)),
            Way::Block => Outcome::Answer(tx.push_blocking(item)),
            Way::Poll(then) => Outcome::of_new(tx.push_async(item), then),
        };
        let order = &mut self.orders[open.queue];
        match outcome {
            Outcome::Answer(said) => self.staged(open, mark, said),
            Outcome::Dropped => {
                order.check_stage_waits(open.source, mark);
                self.alive -= 1;
            }
            Outcome::Forgotten(waiter) => {
                order.check_stage_waits(open.source, mark);
                order.wait_to_push(&waiter, &[mark]);
                open.lent = Some(waiter);
                self.lose(&[mark]);
            }
        }
    }

    /// The result of a push of a transaction.
    pub(super) fn staged(
        &mut self,
        open: &mut Open,
        mark: Mark,
        said: Result<(), PushError<Tracked<PAD>>>,
    ) {
        let order = &mut self.orders[open.queue];
        let said = as_batch(said);
        order.check_stage(open.source, mark, &said);
        if said.is_ok() {
            order.stage_in(open.source, mark);
            open.staged.push(mark);
        }
        self.returned(&[mark], said.map_err(PushError::into_inner));
    }

    fn hold<'t, O: Kind<PAD>>(
        &mut self,
        tx: &'t Transaction<'_, Tracked<PAD>, O>,
        open: &mut Open,
        way: Way,
    ) -> Option<Grasp<'t, PAD>> {
        self.orders[open.queue].release();
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
                order.wait_to_pop(&waiter);
                open.lent = Some(waiter);
            }
        }
        None
    }

    fn hold_batch<'t, O: Kind<PAD>>(
        &mut self,
        tx: &'t Transaction<'_, Tracked<PAD>, O>,
        open: &mut Open,
        max: usize,
        way: Way,
    ) -> Vec<Grasp<'t, PAD>> {
        self.orders[open.queue].release();
        let order = &self.orders[open.queue];
        let min = max.min(order.ready());
        let batch = match order.way_to_hold(way, open.source) {
            Way::Zero => tx.pop_batch_timeout(max, max, Duration::ZERO),
            Way::Block => tx.pop_batch_blocking(min, max),
            _ => tx.pop_batch(max),
        };
        self.check_batch(open.queue, batch.len(), max);
        batch.map(|item| self.held(open, item)).collect()
    }

    fn held<'t>(&mut self, open: &mut Open, item: Item<'t, Tracked<PAD>>) -> Grasp<'t, PAD> {
        let attempt = self.orders[open.queue].hold(item.mark());
        self.grasp(open, item, attempt)
    }
}
