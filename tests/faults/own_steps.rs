//! The steps of a tour that only queues of some order can take.

use crate::common::failing::SECOND;
use crate::ledger::Fate;
use crate::plan::Call;
use crate::probes::{Probe, ProbeKey};
use crate::tour::{Step, Tour};
use requeue::{Handle, Keyed, Leased, Order, Prioritized, Unleased};

pub(crate) const TERM: std::time::Duration = SECOND.saturating_mul(10);

pub(crate) fn of_keys<O: Keyed<Probe, Key = ProbeKey>>() -> Vec<Step<O>> {
    vec![key_limits, keys, key_limits]
}

pub(crate) fn of_priorities<O: Prioritized<Probe>>() -> Vec<Step<O>> {
    vec![tickets, schedule, views, schedule]
}

pub(crate) fn of_leases<O: Order<Probe> + Unleased>() -> Vec<Step<Leased<O>>> {
    vec![expires, recovers, expires, recovers]
}

fn keys<O: Keyed<Probe, Key = ProbeKey>>(tour: &Tour<O>, worker: &mut Handle<Probe, O>) {
    (0..3).for_each(|_| _ = tour.ledger.push(|item| worker.push(item)));
    let item = tour.ledger.item();
    let key = tour.queue.key_of(&item);
    let visit = |_: &Probe| tour.plan.reach(Call::Visit);
    tour.queue.items_of(&key, visit);
    drop(tour.queue.key_at_limit(&item));
    assert!(tour.queue.keys().iter().len() <= 2);
}

/// More items of each key than its limit.
fn key_limits<O: Keyed<Probe, Key = ProbeKey>>(tour: &Tour<O>, worker: &mut Handle<Probe, O>) {
    for _ in 0..6 {
        tour.ledger.push(|item| worker.push(item));
        tour.ledger
            .push_batch((5, 5), |batch| worker.push_batch(batch));
    }
    tour.drain();
}

fn tickets<O: Prioritized<Probe>>(tour: &Tour<O>, worker: &mut Handle<Probe, O>) {
    let mut ticket = None;
    tour.ledger
        .push(|item| worker.priority(9).push(item).map(|it| ticket = Some(it)));
    if let Some(ticket) = ticket {
        tour.queue.reprioritize(ticket, 7);
        tour.queue.reschedule(ticket, tour.queue.now() + SECOND);
        tour.ledger.deliver(tour.queue.cancel(ticket));
    }
}

fn schedule<O: Prioritized<Probe>>(tour: &Tour<O>, worker: &mut Handle<Probe, O>) {
    let soon = tour.queue.now() + SECOND / 2;
    tour.ledger
        .push(|item| tour.queue.at(soon).push(item).map(drop));
    tour.ledger
        .push(|item| worker.after(2 * SECOND).push(item).map(drop));
    tour.clock.advance(SECOND);
    tour.queue.next_scheduled();
    tour.ledger.deliver(worker.pop());
    tour.clock.advance(SECOND);
    tour.drain();
}

fn views<O: Prioritized<Probe>>(tour: &Tour<O>, worker: &mut Handle<Probe, O>) {
    let later = tour.queue.now() + SECOND;
    tour.ledger.push_batch((3, 0), |batch| {
        let pushed = worker.priority(5).at(later).push_batch(batch);
        pushed.map(|tickets| tickets.len())
    });
    let tx = worker.begin();
    let item = tour.ledger.item();
    let id = item.id;
    let staged = tx.priority(1).push(item).map(|_| id).ok();
    drop(tx.pop());
    tour.commit(tx.held(), [staged], || tx.try_commit());
}

/// The first item is delivered to another worker.
fn expires<O: Order<Probe> + Unleased>(
    tour: &Tour<Leased<O>>,
    worker: &mut Handle<Probe, Leased<O>>,
) {
    tour.ledger.push(|item| tour.queue.push(item));
    tour.ledger.push(|item| tour.queue.push(item));
    let tx = worker.begin();
    drop(tx.pop_batch(2));
    let staged = tour.stage(&tx);
    tour.clock.advance(TERM);
    tour.ledger.deliver(tour.queue.pop());
    if let Ok(taken) = tx.try_commit() {
        tour.ledger.set(staged, Fate::Accepted);
        tour.ledger.deliver(taken);
    }
}

fn recovers<O: Order<Probe> + Unleased>(
    tour: &Tour<Leased<O>>,
    worker: &mut Handle<Probe, Leased<O>>,
) {
    tour.ledger.push(|item| worker.push(item));
    let tx = worker.begin();
    drop(tx.pop());
    tour.clock.advance(SECOND);
    assert!(tour.queue.recover("worker", tour.clock.now()) <= tx.held());
    tour.drain();
    tx.abort();
}
