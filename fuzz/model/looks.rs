//! The operations at rest by name, and what may be seen and done without a transaction.

use super::item::{Mark, Tracked};
use super::open::{Left, Worker};
use super::ops::{Act, Label};
use super::queues::Kind;
use super::settings::{ticks, Ticks};
use super::waits::as_batch;
use super::world::World;
use requeue::Queue;
use std::mem;

impl<const PAD: usize, O: Kind> World<PAD, O> {
    pub(super) fn act(&mut self, act: &Act) {
        match *act {
            Act::Push(slot, way) => self.with(slot, |world, worker| world.push(worker, way)),
            Act::Pop(slot, way) => self.with(slot, |world, worker| world.pop(worker, way)),
            Act::PushBatch(slot, n, way) => {
                self.with(slot, |world, worker| world.push_batch(worker, n, way));
            }
            Act::PopBatch(slot, max, way) => {
                self.with(slot, |world, worker| world.pop_batch(worker, max, way));
            }
            Act::PushDirect(queue) => {
                let item = self.item(queue);
                let mark = item.mark();
                let said = self.queues[queue].push(item);
                self.pushed(queue, &[mark], as_batch(said));
            }
            Act::PopDirect(queue) => {
                self.orders[queue].release();
                self.receive(queue, self.queues[queue].pop());
            }
            Act::Own(verb) => self.do_own(verb),
            Act::Drain(queue, n) => self.drain(queue, n),
            Act::Close(None) => {}
            Act::Close(Some(queue)) => {
                let order = &mut self.orders[queue];
                assert_eq!(self.queues[queue].close(), !order.closed);
                if !mem::replace(&mut order.closed, true) {
                    order.poppers.check_all_woken();
                    order.pushers.check_all_woken();
                }
            }
            Act::Handle(slot, queue, label) => self.handle(slot, queue, label),
            Act::Drop(slot) => {
                if let Some(worker) = self.workers[slot].take() {
                    drop(worker.handle);
                    self.settle_left(worker.queue, worker.source, &worker.left);
                    self.orders[worker.queue].quit(worker.source);
                }
            }
            Act::Advance(by) => self.advance(by),
            Act::Peek(slot) => self.with(slot, World::peek),
            Act::Snapshot(queue) => {
                let mut marks = Vec::new();
                self.orders[queue].release();
                let queued: &Queue<_> = &self.queues[queue];
                let count = queued.peek_each(|item| marks.push(item.mark()));
                assert_eq!(count, marks.len());
                self.orders[queue].visit(&marks);
            }
            Act::Recover(queue, label, ago) => self.recover(queue, label, ago),
            Act::Letter(queue) => self.take_letter(queue),
            Act::Requeue(queue) => {
                let count = self.queues[queue].dead_letters().requeue_all();
                self.orders[queue].check_requeue(count);
                self.orders[queue].requeue(count);
            }
        }
    }

    /// Checks after an operation, unless what is due by it is to be found by the next one.
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
        let handle = O::handle(&self.queues[queue], label.name());
        assert_eq!(handle.name(), label.name());
        self.orders[queue].join(source, label.name());
        let left = Left::default();
        self.workers[slot] = Some(Worker {
            handle,
            queue,
            source,
            left,
        });
    }

    pub(super) fn advance(&mut self, by: Ticks) {
        self.clock.advance(ticks(by));
        for order in &mut self.orders {
            order.now += by;
            order.check_alarm();
        }
    }

    fn peek(&mut self, worker: &mut Worker<PAD, O>) {
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
        assert_eq!(self.queues[queue].recover(name, before), count);
    }

    fn take_letter(&mut self, queue: usize) {
        let order = &mut self.orders[queue];
        let mut letters = self.queues[queue].dead_letters();
        let (seen, expected) = (letters.next(), order.letters.pop_front());
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
