//! Items that are discarded by their tickets: what becomes of them where they are, and of what others wait for.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::common::failing::{clocked, SECOND};
use crate::common::rng::Rng;
use crate::common::{assert_at_rest, panics, Ledger};
use futures::executor::block_on;
use requeue::backend;
use requeue::Discarded::{Marked, Removed, Unknown};
use requeue::{
    Backoff, Builder, Delivery, Expired, ManualClock, OnDuplicate, Order, PopError, PushError,
    Queue, ReturnTo, Ticket, Wait, Workers,
};

/// Pushes an item, and returns its ticket.
fn push<T: Send, O: Order<T>>(queue: &Queue<T, O>, item: T) -> Ticket {
    queue.after(Duration::ZERO).push(item).ok().unwrap()
}

/// Calls `check` with a queue of each order, leased and not.
fn in_each_order(check: impl Fn(&ManualClock, &dyn Any)) {
    let (clock, builder) = tracked();
    check(&clock, &builder.build());
    let (clock, builder) = tracked();
    check(&clock, &builder.leased(SECOND).build());
    let (clock, builder) = tracked();
    check(&clock, &builder.lifo().build());
    let (clock, builder) = tracked();
    check(&clock, &builder.lifo().leased(SECOND).build());
    let (clock, builder) = tracked();
    check(&clock, &builder.by_priority().build());
    let (clock, builder) = tracked();
    check(&clock, &builder.by_priority().leased(SECOND).build());
    let (clock, builder) = tracked();
    check(&clock, &builder.fair_by(|item| *item % 2).build());
    let (clock, builder) = tracked();
    check(
        &clock,
        &builder.fair_by(|item| *item % 2).leased(SECOND).build(),
    );
}

fn tracked() -> (ManualClock, Builder<u32>) {
    let (clock, builder) = clocked();
    (clock, builder.tracked().capacity(3).unique_by(|item| *item))
}

/// What the checks use of a queue of any order.
trait Any {
    fn schedule(&self, item: u32, after: Duration) -> Ticket;
    fn discard(&self, ticket: Ticket) -> requeue::Discarded;
    /// Takes the next item, calls `meanwhile`, and ends the delivery.
    fn deliver(&self, how: How, meanwhile: &dyn Fn());
    /// Nothing is left: all room, keys and counts are as in the beginning.
    fn assert_empty(&self, committed: u64);
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum How {
    Ack,
    Drop,
    Nack,
    NackAfter,
    Tail,
    Release,
    Abort,
    Retry,
    RetryAfter,
}

const GIVES_UP: [How; 8] = [
    How::Drop,
    How::Nack,
    How::NackAfter,
    How::Tail,
    How::Release,
    How::Abort,
    How::Retry,
    How::RetryAfter,
];

impl<O: Order<u32> + 'static> Any for Queue<u32, O> {
    fn schedule(&self, item: u32, after: Duration) -> Ticket {
        self.after(after).push(item).unwrap()
    }

    fn discard(&self, ticket: Ticket) -> requeue::Discarded {
        Queue::discard(self, ticket)
    }

    fn deliver(&self, how: How, meanwhile: &dyn Fn()) {
        if how == How::Retry || how == How::RetryAfter {
            let tx = self.begin_owned();
            let item = tx.pop().unwrap();
            meanwhile();
            if how == How::Retry {
                tx.retry(item).unwrap();
            } else {
                tx.retry_after(item, SECOND).unwrap();
            }
            drop(tx.try_commit().unwrap());
            return;
        }
        let job = self.take().unwrap();
        meanwhile();
        match how {
            How::Ack => drop(job.try_ack().unwrap()),
            How::Nack => job.nack(),
            How::NackAfter => job.nack_after(SECOND),
            How::Tail => job.nack_to(ReturnTo::Tail),
            How::Release => job.release(),
            How::Abort => job.try_into_transaction().unwrap().abort(),
            _ => drop(job),
        }
    }

    fn assert_empty(&self, committed: u64) {
        assert_at_rest(self, 0, 0);
        assert_eq!(self.stats().committed, committed);
        assert_eq!(self.stats().delayed, 0);
        assert!(self.wait_idle_timeout(Duration::ZERO));
        self.push_batch([1, 2, 3]).unwrap();
        assert_eq!(self.clear_all(), 3);
    }
}

#[test]
fn a_held_item_does_not_come_back() {
    for how in GIVES_UP {
        in_each_order(|_, queue| {
            let ticket = queue.schedule(1, Duration::ZERO);
            queue.deliver(how, &|| {
                assert_eq!(queue.discard(ticket), Marked);
                assert_eq!(queue.discard(ticket), Marked);
            });
            assert_eq!(queue.discard(ticket), Unknown, "{how:?}");
            queue.assert_empty(1);
        });
    }
}

#[test]
fn a_commit_is_not_affected() {
    in_each_order(|_, queue| {
        let ticket = queue.schedule(1, Duration::ZERO);
        queue.deliver(How::Ack, &|| assert_eq!(queue.discard(ticket), Marked));
        assert_eq!(queue.discard(ticket), Unknown);
        queue.assert_empty(1);
    });
}

#[test]
fn an_item_that_nobody_holds_is_removed_where_it_is() {
    in_each_order(|_, queue| {
        for (how, after) in [
            (None, Duration::ZERO),
            (None, SECOND),
            (Some(How::Nack), Duration::ZERO),
            (Some(How::NackAfter), Duration::ZERO),
            (Some(How::Tail), Duration::ZERO),
            (Some(How::Abort), Duration::ZERO),
        ] {
            let ticket = queue.schedule(1, after);
            if let Some(how) = how {
                queue.deliver(how, &|| ());
            }
            assert_eq!(queue.discard(ticket), Removed, "{how:?} {after:?}");
            assert_eq!(queue.discard(ticket), Unknown);
        }
        queue.assert_empty(6);
    });
}

#[test]
fn an_item_is_found_when_its_time_has_come() {
    in_each_order(|clock, queue| {
        let ticket = queue.schedule(1, SECOND);
        clock.advance(SECOND);
        assert_eq!(queue.discard(ticket), Removed);
        queue.assert_empty(1);
    });
}

#[test]
fn an_item_whose_lease_ends_does_not_come_back() {
    let (clock, builder) = tracked();
    let queue = builder.leased(SECOND).build();
    let ticket = push(&queue, 1);
    let slow = queue.take().unwrap();
    assert_eq!(queue.discard(ticket), Marked);
    clock.advance(SECOND);
    assert_eq!(queue.len(), 0);
    assert_eq!(slow.try_ack(), Err(Expired));
    assert_eq!(queue.discard(ticket), Unknown);
    Any::assert_empty(&queue, 1);

    // The same by a transaction, and by a recovery.
    let mut worker = queue.named_handle("slow");
    let ticket = push(&queue, 7);
    let tx = worker.begin();
    assert_eq!(tx.ticket(&tx.pop().unwrap()), Some(ticket));
    assert_eq!(queue.discard(ticket), Marked);
    assert_eq!(queue.recover("slow", queue.now() + SECOND), 0);
    assert_eq!(tx.try_commit().unwrap_err(), Expired);
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn only_the_marked_items_of_a_transaction_are_dropped() {
    for backoff in [None, Some(Backoff::fixed(SECOND))] {
        let (clock, mut builder) = clocked();
        if let Some(backoff) = backoff {
            builder = builder.backoff(backoff);
        }
        let queue = builder
            .tracked()
            .weigh(|item: &usize| *item)
            .capacity(55)
            .build();
        let tickets: Vec<_> = (1..=10).map(|item| push(&queue, item)).collect();
        let mut handle = queue.handle();
        let tx = handle.begin();
        assert_eq!(tx.pop_batch(10).len(), 10);
        for ticket in tickets.iter().step_by(2) {
            assert_eq!(queue.discard(*ticket), Marked);
        }
        tx.abort();
        clock.advance(SECOND);
        assert_eq!(queue.weight(), 30);
        queue.push(25).unwrap();
        assert_eq!(queue.push(1), Err(PushError::Full(1)));
        let mut left: Vec<_> = queue.drain().collect();
        left.sort_unstable();
        assert_eq!(left, [2, 4, 6, 8, 10, 25]);
        assert_eq!(queue.stats().committed, 11);
        assert_at_rest(&queue, 0, 0);
    }
}

#[test]
fn the_last_item_is_told_those_that_wait() {
    let queue = Queue::builder().tracked().build();
    let ticket = push(&queue, 1);
    let job = queue.take().unwrap();
    queue.close();
    assert_eq!(queue.discard(ticket), Marked);
    std::thread::scope(|scope| {
        let popped = scope.spawn(|| queue.pop_blocking());
        let idle = scope.spawn(|| queue.wait_idle());
        job.nack();
        assert_eq!(popped.join().unwrap(), Err(PopError::Closed));
        idle.join().unwrap();
    });
}

#[test]
fn a_dead_letter_is_kept_and_known_no_more() {
    let queue = Queue::builder().tracked().max_attempts(1).build();
    for how in ["fail", "nack"] {
        let ticket = push(&queue, how);
        let job = queue.take().unwrap();
        assert_eq!(queue.discard(ticket), Marked);
        match how {
            "fail" => job.fail("error"),
            _ => job.nack(),
        }
        assert_eq!(queue.discard(ticket), Unknown);
        let letters = queue.dead_letters();
        assert_eq!(letters.requeue_all(), 1);
        let again = queue.take().unwrap();
        assert_ne!(again.ticket(), Some(ticket));
        assert_eq!(again.ack(), how);
    }
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn what_is_scheduled_keeps_its_ticket_when_its_time_to_live_begins() {
    let (clock, builder) = clocked();
    let queue = builder.tracked().ttl(10 * SECOND).build();
    let tickets = queue.after(SECOND).push_batch([1, 2, 3]).unwrap();
    clock.advance(SECOND);
    assert_eq!(queue.len(), 3);
    let job = queue.take().unwrap();
    assert_eq!(job.ticket(), Some(tickets[0]));
    assert_eq!(queue.discard(tickets[0]), Marked);
    assert_eq!(queue.discard(tickets[1]), Removed);
    drop(job);
    assert_eq!(queue.pop(), Ok(3));
    assert_at_rest(&queue, 0, 0);
    // Those whose time is over are forgotten.
    let ticket = push(&queue, 4);
    clock.advance(10 * SECOND);
    assert_eq!(queue.discard(ticket), Unknown);
    assert_eq!(queue.stats().timed_out, 1);
}

#[test]
fn a_visit_knows_the_tickets_and_drops_what_is_discarded_meanwhile() {
    let queue = Queue::builder().tracked().build();
    queue.push_batch([1, 2, 3]).unwrap();
    let mut tickets = Vec::new();
    queue.retain(|_, queued| {
        tickets.push(queued.ticket.unwrap());
        true
    });
    let removed = queue.retain(|item, queued| {
        if *item == 2 {
            // This visit has it.
            assert_eq!(queue.discard(queued.ticket.unwrap()), Marked);
        }
        true
    });
    assert_eq!(removed, 0);
    assert_eq!(queue.discard(tickets[1]), Unknown);
    assert_eq!(queue.discard(tickets[2]), Removed);
    assert!(queue.drain().eq([1]));
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn a_peeked_item_is_not_delivered() {
    let queue = Queue::builder().tracked().build();
    let ticket = push(&queue, 1);
    let mut handle = queue.handle();
    let tx = handle.begin();
    let peek = tx.peek().unwrap();
    assert_eq!(queue.discard(ticket), Marked);
    drop(peek);
    assert_eq!(queue.pop(), Err(PopError::Empty));
    assert_at_rest(&queue, 0, 0);
    let ticket = push(&queue, 2);
    let held = tx.peek().unwrap().take();
    assert_eq!((*held, queue.discard(ticket)), (2, Marked));
    tx.abort();
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn a_staged_item_is_not_delivered() {
    let queue = Queue::builder().tracked().build();
    let mut handle = queue.handle();
    let tx = handle.begin();
    let ticket = tx.after(Duration::ZERO).push(1).unwrap();
    assert_eq!(queue.discard(ticket), Marked);
    drop(tx.commit());
    assert_eq!(queue.pop(), Err(PopError::Empty));
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn a_follower_comes_when_the_item_before_it_is_discarded() {
    let builder = Queue::builder().unique_by(|item| *item % 10);
    let queue = builder.on_duplicate(OnDuplicate::Follow).tracked().build();
    let ticket = push(&queue, 1);
    let job = queue.take().unwrap();
    queue.push(11).unwrap();
    assert_eq!(queue.discard(ticket), Marked);
    job.nack();
    assert_eq!(queue.pop(), Ok(11));
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn without_tracking_it_is_a_cancel() {
    let queue = Queue::builder().by_priority().build();
    let ticket = queue.priority(1).push(1).unwrap();
    assert_eq!(queue.discard(ticket), Removed);
    let ticket = queue.priority(1).push(1).unwrap();
    let job = queue.take().unwrap();
    assert_eq!((queue.discard(ticket), job.ticket()), (Unknown, None));
    job.nack();
    assert_eq!(queue.take().unwrap().last_error(), None);
}

#[test]
fn each_discarded_item_is_dropped_once_and_after_what_others_wait_for() {
    struct Waits(Queue<Option<Waits>>);
    impl Drop for Waits {
        fn drop(&mut self) {
            assert!(self.0.wait_idle_timeout(Duration::ZERO));
            self.0.push(None).unwrap();
            assert_eq!(self.0.clear(), 1);
        }
    }
    let queue = Queue::builder().tracked().build();
    let ends: [fn(Delivery<Option<Waits>>); 4] = [
        drop,
        |job| job.nack_after(SECOND),
        |job| job.nack_to(ReturnTo::Tail),
        |job| job.into_transaction().abort(),
    ];
    for end in ends {
        let ticket = push(&queue, Some(Waits(queue.clone())));
        let job = queue.take().unwrap();
        assert_eq!(queue.discard(ticket), Marked);
        end(job);
        assert_at_rest(&queue, 0, 0);
    }
    let ledger = Ledger::new(4);
    let bombs = Queue::builder().tracked().build();
    let tickets: Vec<_> = ledger
        .items_with_bomb(2)
        .map(|item| push(&bombs, item))
        .collect();
    let jobs = bombs.take_batch(3);
    assert!(tickets[..3]
        .iter()
        .all(|ticket| bombs.discard(*ticket) == Marked));
    drop(jobs);
    assert_eq!(bombs.discard(tickets[3]), Removed);
    assert_at_rest(&bombs, 0, 0);
    ledger.assert_each_dropped_once();
}

#[test]
fn the_last_error_travels_with_the_item() {
    let (clock, builder) = clocked();
    let queue = builder.tracked().max_dead_letters(0).build();
    queue.push(1).unwrap();
    let job = queue.take().unwrap();
    assert_eq!(job.last_error(), None);
    job.fail("first");
    let job = queue.take().unwrap();
    assert_eq!(
        (job.attempts(), job.last_error().as_deref()),
        (2, Some("first"))
    );
    job.nack_after(SECOND); // says nothing of it
    clock.advance(SECOND);
    let tx = queue.begin_owned();
    let item = tx.pop().unwrap();
    assert_eq!(tx.last_error(&item).as_deref(), Some("first"));
    tx.fail(item, "second").unwrap();
    tx.commit();
    let job = queue.take().unwrap();
    assert_eq!(job.last_error().as_deref(), Some("second"));
    job.ack();

    queue.push(3).unwrap();
    let by_face = || backend::Delivery::take(&queue, Wait::Never);
    let job = block_on(by_face()).unwrap().unwrap();
    assert_eq!(job.last_error(), None);
    block_on(job.fail("by any queue")).unwrap();
    let job = block_on(by_face()).unwrap().unwrap();
    assert_eq!(job.last_error().as_deref(), Some("by any queue"));
    block_on(job.ack()).unwrap();

    // By the clock of the system, by which the pool tries again.
    let queue = Queue::builder().tracked().build();
    queue.push(2).unwrap();
    queue.close();
    let pool = Workers::builder(&queue)
        .threads(1)
        .run(|job, tx| match tx.last_error(&job) {
            None => Err("run"),
            Some(error) => {
                assert_eq!(&*error, "\"run\"");
                Ok(())
            }
        });
    assert_eq!(pool.join().done, 1);
}

#[test]
fn a_foreign_item_has_no_ticket_here() {
    let queue = Queue::builder().tracked().build();
    queue.push_batch([1, 2]).unwrap();
    let (mut one, mut other) = (queue.handle(), queue.handle());
    let (tx, stranger) = (one.begin(), other.begin());
    let item = tx.pop().unwrap();
    assert!(tx.ticket(&item).is_some());
    assert!(panics(|| stranger.ticket(&item)));
}

/// What the model knows of an item.
#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    Queued,
    Held { marked: bool },
    Gone,
}

/// Does random things with a queue, and compares it with a model of one state for each item.
fn against_a_model<O: Order<u32>>(seed: u64, builder: Builder<u32, O>, clock: &ManualClock) {
    let mut rng = Rng::new(seed);
    let queue = builder.tracked().build();
    let mut model: BTreeMap<u32, (Ticket, State)> = BTreeMap::new();
    let mut held = Vec::new();
    for step in 0..400 {
        match rng.below(8) {
            0 | 1 => {
                let after = SECOND * u32::from(rng.below(4) == 0);
                let ticket = queue.after(after).push(step).unwrap();
                model.insert(step, (ticket, State::Queued));
            }
            2 | 3 => {
                if let Ok(job) = queue.take() {
                    let (ticket, state) = model.get_mut(&*job).unwrap();
                    assert_eq!((*state, job.ticket()), (State::Queued, Some(*ticket)));
                    *state = State::Held { marked: false };
                    held.push(job);
                }
            }
            4 if !held.is_empty() => {
                let job = held.swap_remove(rng.below(held.len()));
                let (_, state) = model.get_mut(&*job).unwrap();
                let is_done = rng.below(4) == 0;
                *state = match *state {
                    State::Held { marked: false } if !is_done => State::Queued,
                    _ => State::Gone,
                };
                match rng.below(5) {
                    _ if is_done => drop(job.try_ack().unwrap()),
                    0 => job.nack(),
                    1 => job.nack_after(SECOND),
                    2 => job.nack_to(ReturnTo::Tail),
                    3 => job.release(),
                    _ => job.try_into_transaction().unwrap().abort(),
                }
            }
            5 | 6 if !model.is_empty() => {
                let nth = rng.below(model.len());
                let (ticket, state) = model.values_mut().nth(nth).unwrap();
                let (expected, next) = match *state {
                    State::Queued => (Removed, State::Gone),
                    State::Held { .. } => (Marked, State::Held { marked: true }),
                    State::Gone => (Unknown, State::Gone),
                };
                assert_eq!(queue.discard(*ticket), expected, "{state:?}");
                *state = next;
            }
            _ => clock.advance(SECOND / 4),
        }
        let count = |of: fn(State) -> bool| model.values().filter(|(_, it)| of(*it)).count() as u64;
        let stats = queue.stats();
        stats.check().unwrap();
        assert_eq!(stats.ready + stats.delayed, count(|it| it == State::Queued));
        assert_eq!(stats.held, held.len() as u64);
        assert_eq!(stats.committed, count(|it| it == State::Gone));
    }
}

#[test]
fn random_calls_do_what_a_model_says() {
    for seed in 0..20 {
        let (clock, builder) = clocked();
        against_a_model(seed, builder, &clock);
        let (clock, builder) = clocked();
        against_a_model(seed, builder.leased(1000 * SECOND), &clock);
        let (clock, builder) = clocked();
        against_a_model(seed, builder.lifo(), &clock);
        let (clock, builder) = clocked();
        against_a_model(seed, builder.by_priority(), &clock);
        let (clock, builder) = clocked();
        against_a_model(
            seed,
            builder.fair_by(|item| *item % 3).unique_by(|it| *it),
            &clock,
        );
    }
}
