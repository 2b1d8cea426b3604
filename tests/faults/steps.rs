//! The steps of a tour that every queue can take.

use std::mem;
use std::time::Duration;

use crate::bell::Bell;
use crate::common::failing::SECOND;
use crate::plan::{unless_planned, Call};
use crate::probes::{Probe, ProbeError};
use crate::tour::{limiter, Step, Tour, Worker};
use crate::waits;
use requeue::{try_commit_all, Expired, Order, PopError, Queue};

pub(crate) fn all<O: Order<Probe>>() -> Vec<Step<O>> {
    vec![
        pushes,
        pops,
        batches,
        pushes,
        abort,
        commit,
        pushes,
        retries,
        peeks,
        owned,
        pushes,
        forgotten,
        transact,
        inspection,
        new_pace,
        joint,
        waits::for_items,
        waits::for_due_items,
        waits::for_room,
        waits::in_transactions,
        waits::cancelled,
        abort,
        deaths,
        letters,
        pushes,
        retries,
        removals,
        clear,
    ]
}

fn pushes<O: Order<Probe>>(tour: &Tour<O>, worker: &mut Worker<O>) {
    let ledger = &tour.ledger;
    ledger.push(|item| tour.queue.push(item));
    ledger.push(|item| worker.push(item));
    ledger.push(|item| tour.queue.push_timeout(item, Duration::ZERO));
    ledger.push(|item| worker.push_timeout(item, Duration::ZERO));
    ledger.push_batch((3, 3), |batch| worker.push_batch(batch));
}

fn pops<O: Order<Probe>>(tour: &Tour<O>, worker: &mut Worker<O>) {
    let ledger = &tour.ledger;
    ledger.deliver(tour.queue.pop());
    ledger.deliver(worker.pop());
    ledger.deliver(worker.pop_timeout(Duration::ZERO));
    ledger.deliver(tour.queue.pop_timeout(Duration::ZERO));
    let visited = worker.peek_with(|_| tour.plan.reach(Call::Visit));
    assert!(visited.is_ok() || tour.queue.stats().ready == 0);
    let mut items = Vec::new();
    let popped = unless_planned(|| worker.pop_batch(2, &mut items));
    assert!(popped.is_none() || popped == Some(items.len()));
    ledger.deliver(items);
}

/// Batches whose iterators are wrong about their length.
fn batches<O: Order<Probe>>(tour: &Tour<O>, worker: &mut Worker<O>) {
    let ledger = &tour.ledger;
    for hints in [(3, 0), (0, 3), (2, 2), (1, 100), (4, 1)] {
        ledger.push_batch(hints, |batch| worker.push_batch(batch));
        ledger.push_batch(hints, |batch| {
            tour.queue.push_batch_timeout(batch, Duration::ZERO)
        });
        tour.drain();
    }
}

fn abort<O: Order<Probe>>(tour: &Tour<O>, worker: &mut Worker<O>) {
    let tx = worker.begin();
    tour.stage(&tx);
    drop(tx.pop_batch(2));
    tour.stage(&tx);
    drop(tx.pop());
    tx.abort();
}

fn commit<O: Order<Probe>>(tour: &Tour<O>, worker: &mut Worker<O>) {
    let tx = worker.begin();
    drop((tx.pop(), tx.pop_timeout(Duration::ZERO)));
    let staged = [tour.stage(&tx), tour.stage(&tx)];
    let _ = tx.renew();
    tour.commit(tx.held(), staged, || tx.try_commit());
}

fn retries<O: Order<Probe>>(tour: &Tour<O>, worker: &mut Worker<O>) {
    let tx = worker.begin();
    let staged = [tour.stage(&tx)];
    if let Ok(item) = tx.pop() {
        let _ = tx.retry(item);
    }
    if let Ok(item) = tx.pop() {
        let _ = tx.retry_after(item, SECOND);
    }
    if let Ok(item) = tx.pop() {
        let _ = tx.fail(item, ProbeError(tour.plan.clone()));
    }
    drop(tx.pop());
    tour.commit(tx.held(), staged, || tx.try_commit());
}

fn peeks<O: Order<Probe>>(tour: &Tour<O>, worker: &mut Worker<O>) {
    let tx = worker.begin();
    drop(tx.peek());
    drop(tx.peek_timeout(Duration::ZERO));
    drop(tx.peek().map(requeue::Peek::take));
    drop(tx.peek());
    tour.commit(tx.held(), [], || tx.try_commit());
}

fn owned<O: Order<Probe>>(tour: &Tour<O>, _: &mut Worker<O>) {
    let error = || ProbeError(tour.plan.clone());
    let mut tx = tour.queue.begin_owned();
    drop(tx.pop_batch(2));
    assert!(tx.items().len() <= 2);
    let _ = tx.retry_all_after(SECOND);
    drop(tx.pop());
    let _ = tx.fail_all(error());
    drop(tx.pop());
    let staged = [tour.stage(&tx)];
    let _ = tx.prepare();
    tour.commit(tx.held(), staged, || tx.try_commit());
    let mut tx = tour.queue.begin_owned();
    drop(tx.pop());
    tour.stage(&tx);
    tx.rollback();
    drop(tx.pop());
    tx.abort();
}

fn forgotten<O: Order<Probe>>(tour: &Tour<O>, worker: &mut Worker<O>) {
    let tx = worker.begin();
    drop(tx.pop_batch(2));
    tour.stage(&tx);
    mem::forget(tx);
    drop(worker.begin());
}

fn transact<O: Order<Probe>>(tour: &Tour<O>, worker: &mut Worker<O>) {
    let refused = worker.try_transact(|tx| {
        drop(tx.pop());
        tour.stage(tx);
        tour.plan.reach(Call::Body);
        Err::<(), _>(Expired)
    });
    assert_eq!(refused, Err(Expired));
}

fn inspection<O: Order<Probe>>(tour: &Tour<O>, worker: &mut Worker<O>) {
    let tx = worker.begin();
    drop(tx.pop());
    assert!(tour.queue.held().len() <= 1);
    tour.queue.peek_each(|_| tour.plan.reach(Call::Visit));
    let letters = tour.queue.dead_letters();
    letters.visit(|_| tour.plan.reach(Call::Visit));
    tour.queue.stats().check().unwrap();
    tour.queue.next_due();
    let _ = tour.queue.wait_idle_timeout(Duration::ZERO);
    let mut idle = tour.queue.wait_idle_async();
    let _ = Bell::new(&tour.plan).poll(&mut idle);
}

fn new_pace<O: Order<Probe>>(tour: &Tour<O>, worker: &mut Worker<O>) {
    let tx = worker.begin();
    drop(tx.pop());
    tour.queue.pause_for(Duration::from_nanos(1));
    drop(tx.pop());
    tour.queue.pause();
    tour.queue.set_pace(limiter(&tour.plan));
    tour.queue.resume();
    drop(tx.pop());
}

fn joint<O: Order<Probe>>(tour: &Tour<O>, _: &mut Worker<O>) {
    let other = Queue::unbounded();
    let (tx, moved) = (tour.queue.begin_owned(), other.begin_owned());
    drop(tx.pop());
    let staged = tour.stage(&tx);
    let item = tour.ledger.item();
    let staged = staged.into_iter().chain([item.id]);
    let _ = moved.push(item);
    tour.commit(tx.held(), staged.map(Some), || {
        let (taken, _) = try_commit_all((tx, moved))?;
        Ok(taken.chain(other.drain()).collect::<Vec<_>>())
    });
    tour.ledger.deliver(other.drain());
}

/// More dead letters than the queue keeps.
fn deaths<O: Order<Probe>>(tour: &Tour<O>, worker: &mut Worker<O>) {
    for _ in 0..3 {
        tour.ledger.push(|item| tour.queue.push(item));
        let tx = worker.begin();
        if let Ok(item) = tx.pop() {
            let _ = tx.fail(item, ProbeError(tour.plan.clone()));
        }
        tour.commit(tx.held(), [], || tx.try_commit());
    }
}

fn letters<O: Order<Probe>>(tour: &Tour<O>, _: &mut Worker<O>) {
    let mut letters = tour.queue.dead_letters();
    let mut id = None;
    letters.visit(|letter| id = Some(letter.id()));
    id.map(|id| letters.requeue(id));
    tour.ledger
        .deliver(letters.next().map(|letter| letter.item));
    letters.requeue_all();
}

fn removals<O: Order<Probe>>(tour: &Tour<O>, _: &mut Worker<O>) {
    let mut removed = Vec::new();
    let count = unless_planned(|| {
        tour.queue.retain(|item, _| {
            tour.plan.reach(Call::Visit);
            let keep = item.id % 3 > 0;
            removed.extend((!keep).then_some(item.id));
            keep
        })
    });
    assert!(count.map_or(true, |count| count == removed.len()));
    tour.ledger.remove(removed, count.is_some());
}

fn clear<O: Order<Probe>>(tour: &Tour<O>, worker: &mut Worker<O>) {
    pushes(tour, worker);
    let some = tour.queue.drain().take(2);
    some.for_each(|item| tour.ledger.deliver([item]));
    assert_ne!(
        worker.pop().map(|item| tour.ledger.deliver([item])),
        Err(PopError::Closed)
    );
}
