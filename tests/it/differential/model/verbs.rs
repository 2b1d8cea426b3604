//! Operations of priority queues only, and the order that queues report.

use super::disciplines::Key;
use super::item::{Mark, Tracked};
use super::open::{Open, Worker};
use super::ops::Verb;
use super::order::{Order, Wished};
use super::queues::{on, Any, Family, Kind};
use super::settings::{Rule, Ticks};
use super::sorted::Rack;
use super::stock::Stock;
use super::waits::as_batch;
use super::wishes::{Said, Time, Wish};
use super::world::{whole, World};
use requeue::{Keyed, PushError, Queue, Ticket, Transaction};

/// An item that was pushed with a ticket, and its queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticketed {
    queue: usize,
    mark: Mark,
    ticket: Ticket,
}

impl<const PAD: usize, F: Family<PAD>> World<PAD, F> {
    pub(super) fn do_own(&mut self, verb: Verb) {
        match verb {
            Verb::Push(slot, wish) => self.with(slot, |world, worker| {
                on!(worker, worker => world.push_so(worker, wish));
            }),
            Verb::PushDirect(queue, wish) => {
                let source = self.own_handle(queue);
                let item = self.item(source);
                let mark = item.mark();
                let call = wish.call(self.clock.now());
                let said = on!(&self.queues[queue], queue => Kind::push_direct(queue, call, item));
                self.pushed_so(queue, mark, wish, said);
            }
            Verb::Cancel(pick) => self.cancel(pick.into()),
            Verb::Reprioritize(pick, priority) => self.reprioritize(pick.into(), priority),
            Verb::Reschedule(pick, time) => self.reschedule(pick.into(), time),
        }
    }

    fn push_so<O: Kind<PAD>>(&mut self, worker: &mut Worker<PAD, O>, wish: Wish) {
        let item = self.item(worker.source);
        let mark = item.mark();
        let said = O::push(&mut worker.handle, wish.call(self.clock.now()), item);
        self.pushed_so(worker.queue, mark, wish, said);
    }

    fn pushed_so(&mut self, queue: usize, mark: Mark, wish: Wish, said: Said<PAD>) {
        let said = self.taken_note_of(queue, mark, wish, said);
        self.pushed(queue, &[mark], as_batch(said));
    }

    pub(super) fn stage_so<O: Kind<PAD>>(
        &mut self,
        tx: &Transaction<'_, Tracked<PAD>, O>,
        open: &mut Open,
        wish: Wish,
    ) {
        let item = self.item(open.source);
        let mark = item.mark();
        let said = O::stage(tx, wish.call(self.clock.now()), item);
        let said = self.taken_note_of(open.queue, mark, wish, said);
        self.staged(open, mark, said);
    }

    /// Keeps the ticket, and returns the result of the push.
    fn taken_note_of(
        &mut self,
        queue: usize,
        mark: Mark,
        wish: Wish,
        said: Said<PAD>,
    ) -> Result<(), PushError<Tracked<PAD>>> {
        let order = &mut self.orders[queue];
        order.make_with(mark, order.known(wish));
        self.tickets.extend(said?.map(|ticket| Ticketed {
            queue,
            mark,
            ticket,
        }));
        Ok(())
    }

    fn pick(&self, pick: usize) -> Option<Ticketed> {
        let pick = pick.checked_rem(self.tickets.len())?;
        Some(self.tickets[pick])
    }

    pub(super) fn cancel(&mut self, pick: usize) {
        let Some(Ticketed {
            queue,
            mark,
            ticket,
        }) = self.pick(pick)
        else {
            return;
        };
        let Any::Priority(by_priority) = &self.queues[queue] else {
            return;
        };
        let order = &mut self.orders[queue];
        order.release();
        let expected = order.cancel(mark);
        let item = by_priority.cancel(ticket);
        assert_eq!(item.is_some(), expected, "{mark:?} is cancelled");
        if let Some(item) = item {
            assert_eq!(item.mark(), mark);
            assert_eq!(item.times_held(), order.changes(mark));
            self.alive -= 1;
        }
    }

    fn reprioritize(&mut self, pick: usize, priority: u16) {
        let Some(Ticketed {
            queue,
            mark,
            ticket,
        }) = self.pick(pick)
        else {
            return;
        };
        let Any::Priority(by_priority) = &self.queues[queue] else {
            return;
        };
        let order = &mut self.orders[queue];
        order.release();
        let expected = order.reprioritize(mark, priority);
        assert_eq!(by_priority.reprioritize(ticket, priority), expected);
    }

    fn reschedule(&mut self, pick: usize, time: Time) {
        let Some(Ticketed {
            queue,
            mark,
            ticket,
        }) = self.pick(pick)
        else {
            return;
        };
        let Any::Priority(by_priority) = &self.queues[queue] else {
            return;
        };
        let order = &mut self.orders[queue];
        order.release();
        let expected = order.reschedule(mark, time.due(order.now));
        let at = time.instant(self.clock.now());
        assert_eq!(by_priority.reschedule(ticket, at), expected, "{mark:?}");
        order.release();
    }

    /// Cancels items that would not be due during the case.
    pub(super) fn cancel_latest(&mut self) {
        for pick in 0..self.tickets.len() {
            let Ticketed { queue, mark, .. } = self.tickets[pick];
            if self.orders[queue].is_scheduled(mark) {
                self.cancel(pick);
            }
        }
    }

    /// Checks what a queue reports of its order.
    pub(super) fn check_order(&self, queue: usize) {
        let order = &self.orders[queue];
        let due = on!(&self.queues[queue], queue => queue.next_due());
        let due = due.map(|due| whole(due - self.start));
        match &self.queues[queue] {
            Any::Plain(_) => order.check_next_due(due),
            Any::Fair(queue) => {
                order.check_next_due(due);
                order.check_keys(queue);
            }
            Any::Priority(queue) => {
                order.check_next_due(due);
                let scheduled = queue.next_scheduled().map(|due| whole(due - self.start));
                assert_eq!(
                    scheduled,
                    order.next_scheduled(),
                    "when the next item is due"
                );
            }
        }
    }
}

impl Order {
    /// The facts about an item that is pushed with these arguments.
    fn known(&self, wish: Wish) -> Wished {
        match self.settings.rule {
            Rule::Priority(_) => wish.known(self.now),
            _ => Wished::default(),
        }
    }

    fn rack(&mut self) -> Option<&mut Rack> {
        match &mut self.stock {
            Stock::Sorted(sorted) => Some(&mut sorted.rack),
            Stock::Lines(_) => None,
        }
    }

    /// Removes an item that is not held: false if there is none with its ticket.
    fn cancel(&mut self, mark: Mark) -> bool {
        let has_ticket = self.wished(mark).ticket;
        let cancelled = match self.rack() {
            Some(Rack::Priority(priorities)) => has_ticket && priorities.cancel(mark),
            _ => false,
        };
        if cancelled {
            self.committed += 1;
            self.strike(mark);
        }
        cancelled
    }

    fn reprioritize(&mut self, mark: Mark, priority: u16) -> bool {
        let has_ticket = self.wished(mark).ticket;
        let found = match self.rack() {
            Some(Rack::Priority(priorities)) => {
                has_ticket && priorities.reprioritize(mark, priority)
            }
            _ => false,
        };
        if found {
            self.fact_mut(mark).wished.priority = priority;
        }
        found
    }

    fn reschedule(&mut self, mark: Mark, due: Ticks) -> bool {
        let has_ticket = self.wished(mark).ticket;
        let found = match self.rack() {
            Some(Rack::Priority(priorities)) => has_ticket && priorities.reschedule(mark, due),
            _ => false,
        };
        if found {
            self.fact_mut(mark).wished.due = Some(due);
        }
        found
    }

    fn wished(&self, mark: Mark) -> Wished {
        self.fact(mark).wished
    }

    fn is_scheduled(&self, mark: Mark) -> bool {
        self.wished(mark).due > Some(self.now)
    }

    fn next_scheduled(&self) -> Option<Ticks> {
        self.stock.next_due()
    }

    fn check_keys<T: Send, O: Keyed<T, Key = Key>>(&self, queue: &Queue<T, O>) {
        let Stock::Sorted(sorted) = &self.stock else {
            return;
        };
        let Rack::Fair(rounds) = &sorted.rack else {
            return;
        };
        let seen = queue.keys();
        assert!(
            seen.round().copied().eq(rounds.round()),
            "{seen:?}: {rounds:?}"
        );
        let keys: Vec<_> = seen.iter().map(|(key, items)| (*key, items)).collect();
        let in_order: Vec<_> = rounds.in_order().collect();
        let (served, mut out) = (&keys[..in_order.len()], keys[in_order.len()..].to_vec());
        assert_eq!(served, in_order, "{rounds:?}");
        out.sort_unstable();
        assert!(rounds.out().eq(out), "{seen:?}: {rounds:?}");
    }
}
