//! The named operations at rest, and inspection without a transaction.

use super::item::{Mark, Tracked};
use super::open::{Left, Worker};
use super::ops::{Act, Label};
use super::queues::{on, Family, Kind};
use super::settings::{ticks, Ticks};
use super::waits::as_batch;
use super::world::World;
use std::mem;

impl<const PAD: usize, F: Family<PAD>> World<PAD, F> {
    pub(super) fn act(&mut self, act: &Act) {
        match *act {
            Act::Push(slot, way) => self.with(slot, |world, worker| {
                on!(worker, worker => world.push(worker, way));
            }),
            Act::Pop(slot, way) => self.with(slot, |world, worker| {
                on!(worker, worker => world.pop(worker, way));
            }),
            Act::PushBatch(slot, n, way) => self.with(slot, |world, worker| {
                on!(worker, worker => world.push_batch(worker, n, way));
            }),
            Act::PopBatch(slot, max, way) => self.with(slot, |world, worker| {
                on!(worker, worker => world.pop_batch(worker, max, way));
            }),
            Act::PushDirect(queue) => {
                let source = self.own_handle(queue);
                let item = self.item(source);
                let mark = item.mark();
                let said = on!(&self.queues[queue], queue => queue.push(item));
                self.pushed(queue, &[mark], as_batch(said));
            }
            Act::PopDirect(queue) => {
                self.own_handle(queue);
                self.orders[queue].release();
                let said = on!(&self.queues[queue], queue => queue.pop());
                self.receive(queue, said);
            }
            Act::Own(verb) => self.do_own(verb),
            Act::Drain(queue, n) => self.drain(queue, n),
            Act::Close(None) => {}
            Act::Close(Some(queue)) => {
                let order = &mut self.orders[queue];
                let closes = on!(&self.queues[queue], queue => queue.close());
                assert_eq!(closes, !order.closed);
                if !mem::replace(&mut order.closed, true) {
                    order.poppers.check_all_woken();
                    order.pushers.check_all_woken();
                }
            }
            Act::Handle(slot, queue, label) => self.handle(slot, queue, label),
            Act::Drop(slot) => {
                if let Some(worker) = self.workers[slot].take() {
                    on!(worker, worker => {
                        drop(worker.handle);
                        self.settle_left(worker.queue, worker.source, &worker.left);
                        self.orders[worker.queue].quit(worker.source);
                    });
                }
            }
            Act::Advance(by) => self.advance(by),
            Act::Peek(slot) => self.with(slot, |world, worker| {
                on!(worker, worker => world.peek(worker));
            }),
            Act::Snapshot(queue) => {
                let mut marks = Vec::new();
                self.orders[queue].release();
                let visit = |item: &Tracked<PAD>| marks.push(item.mark());
                let count = on!(&self.queues[queue], queue => queue.peek_each(visit));
                assert_eq!(count, marks.len());
                self.orders[queue].visit(&marks);
            }
            Act::Recover(queue, label, ago) => self.recover(queue, label, ago),
            Act::Letter(queue) => self.take_letter(queue),
            Act::Requeue(queue) => {
                let count = on!(&self.queues[queue], queue => queue.dead_letters().requeue_all());
                self.orders[queue].check_requeue(count);
                self.orders[queue].requeue(count);
            }
        }
    }

    /// Checks after an operation, unless the next operation is to release the due items.
    pub(super) fn act_and_check(&mut self, act: &Act) {
        self.act(act);
        if !matches!(act, Act::Advance(_)) {
            self.check();
        }
    }

    fn handle(&mut self, slot: usize, queue: usize, label: Label) {
        self.act(&Act::Drop(slot));
        let source = self.sources;
        self.sources += 1;
        self.workers[slot] = Some(on!(&self.queues[queue], Same(queued) => {
            let handle = match label.name() {
                Some(name) => queued.named_handle(name),
                None => queued.handle(),
            };
            assert_eq!(handle.name(), label.name());
            let left = Left::default();
            Same(Worker { handle, queue, source, left })
        }));
        self.orders[queue].join(source, label.name());
    }

    pub(super) fn advance(&mut self, by: Ticks) {
        self.clock.advance(ticks(by));
        for order in &mut self.orders {
            order.now += by;
            order.check_timer();
        }
    }

    fn peek<O: Kind<PAD>>(&mut self, worker: &mut Worker<PAD, O>) {
        let order = &mut self.orders[worker.queue];
        order.release();
        let seen = |item: &Tracked<PAD>| (item.mark(), item.times_held());
        match worker.handle.peek_with(seen) {
            Ok((mark, changes)) => {
                assert_eq!(changes, order.changes(mark));
                order.peek(worker.source, mark);
                order.put_back(worker.source);
            }
            Err(said) => order.check_nothing(said),
        }
    }

    fn recover(&mut self, queue: usize, label: Label, ago: Ticks) {
        let Some(name) = label.name() else { return };
        let order = &mut self.orders[queue];
        if order.settings.lease.is_none() {
            return;
        }
        let taken = order.now.saturating_sub(ago);
        let before = self.start + ticks(taken);
        order.release();
        let count = order.recover(name, taken);
        let recovered = on!(&self.queues[queue], queue => Kind::recover(queue, name, before));
        assert_eq!(recovered, count);
    }

    fn take_letter(&mut self, queue: usize) {
        let order = &mut self.orders[queue];
        let seen = on!(&self.queues[queue], queue => queue.dead_letters().next());
        let expected = order.letters.pop_front();
        assert_eq!(seen.is_some(), expected.is_some(), "{expected:?}");
        let Some((seen, expected)) = seen.zip(expected) else {
            return;
        };
        let mark: Mark = seen.item.mark();
        assert_eq!(mark, expected.mark);
        assert_eq!(seen.attempts, expected.attempts);
        assert_eq!(seen.reason, expected.reason);
        assert_eq!(seen.item.times_held(), order.changes(mark));
        let since = order.pushed_at(mark).map(|since| self.start + ticks(since));
        assert_eq!(seen.pushed_at, since);
        self.alive -= 1;
    }
}
