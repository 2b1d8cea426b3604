//! Peeks, held items, and items that are retried early.

use super::item::Tracked;
use super::open::Open;
use super::ops::{Act, Look};
use super::queues::{on, Family, Kind, Tx};
use super::settings::{ticks, Ticks};
use super::waits::Waiter;
use super::work::Held;
use super::world::World;
use requeue::{Item, Transaction};
use std::mem;

/// A held item and the facts about it.
pub(crate) struct Grasp<'t, const PAD: usize> {
    item: Item<'t, Tracked<PAD>>,
    held: Held,
    attempt: u32,
    changes: u32,
}

impl<const PAD: usize> Grasp<'_, PAD> {
    /// A held item does not change, even if others have copies.
    pub(super) fn check(&self) {
        let Self { item, held, .. } = self;
        assert_eq!(item.mark(), held.mark);
        assert_eq!(item.attempts(), self.attempt);
        assert_eq!(item.times_held(), self.changes);
    }
}

impl<const PAD: usize, F: Family<PAD>> World<PAD, F> {
    /// A transaction holds one more item.
    pub(super) fn grasp<'t>(
        &mut self,
        open: &mut Open,
        mut item: Item<'t, Tracked<PAD>>,
        attempt: u32,
    ) -> Grasp<'t, PAD> {
        let order = &mut self.orders[open.queue];
        let held = order.hold_in(open.source, item.mark());
        let changes = order.changes(held.mark) + 1;
        self.alive += usize::from(order.settings.lease.is_some());
        open.held.push(held);
        item.hold();
        let grasp = Grasp {
            item,
            held,
            attempt,
            changes,
        };
        grasp.check();
        grasp
    }

    pub(super) fn peek_in<'t, O: Kind<PAD>>(
        &mut self,
        tx: &'t Transaction<'_, Tracked<PAD>, O>,
        open: &mut Open,
        meanwhile: &[Act],
        look: Look,
    ) -> Option<Grasp<'t, PAD>> {
        let (queue, source) = (open.queue, open.source);
        self.orders[queue].release();
        let peek = match tx.peek() {
            Ok(peek) => peek,
            Err(said) => {
                self.orders[queue].check_nothing(said);
                return None;
            }
        };
        let mark = peek.mark();
        assert_eq!(peek.times_held(), self.orders[queue].changes(mark));
        self.orders[queue].peek(source, mark);
        for act in meanwhile {
            self.act_and_check(act);
        }
        assert_eq!(peek.mark(), mark);
        match look {
            Look::Drop => {
                drop(peek);
                self.orders[queue].put_back(source);
            }
            Look::Take => {
                let attempt = self.orders[queue].hold_peeked(source);
                return Some(self.grasp(open, peek.take(), attempt));
            }
            Look::Forget => {
                mem::forget(peek);
                open.lent = Some(Waiter::default());
            }
        }
        None
    }

    /// Retries one of the held items early.
    pub(super) fn retry<'t>(
        &mut self,
        txs: &[Tx<'t, '_, PAD, F>],
        open: &mut [Open],
        items: &mut Vec<(usize, Grasp<'t, PAD>)>,
        pick: usize,
        delay: Option<Ticks>,
    ) {
        let Some(pick) = pick.checked_rem(items.len()) else {
            return;
        };
        if open[items[pick].0].lent.is_some() {
            return;
        }
        let (n, Grasp { item, held, .. }) = items.remove(pick);
        let (tx, open) = (txs[n], &mut open[n]);
        let said = on!(tx, tx => match delay {
            Some(delay) => tx.retry_after(item, ticks(delay)),
            None => tx.retry(item),
        });
        let order = &mut self.orders[open.queue];
        order.check_retry(open.source, held.mark, said);
        if said.is_ok() && order.retry_in(open.source, held, delay) {
            open.held.retain(|other| *other != held);
            // The copy is not needed any more.
            self.alive -= usize::from(order.settings.lease.is_some());
        }
    }
}
