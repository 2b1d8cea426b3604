//! The steps of a tour that wait.

use std::task::Poll;

use crate::bell::Bell;
use crate::common::failing::SECOND;
use crate::ledger::Fate;
use crate::probes::Probe;
use crate::tour::{Tour, Worker};
use requeue::Order;

pub(crate) fn for_items<O: Order<Probe>>(tour: &Tour<O>, worker: &mut Worker<O>) {
    tour.drain();
    let bell = Bell::new(&tour.plan);
    let mut pop = worker.pop_async();
    if let Poll::Ready(popped) = bell.poll(&mut pop) {
        return tour.ledger.deliver(popped);
    }
    tour.ledger.push(|item| tour.queue.push(item));
    if let Poll::Ready(popped) = bell.poll(&mut pop) {
        tour.ledger.deliver(popped);
    }
}

pub(crate) fn for_due_items<O: Order<Probe>>(tour: &Tour<O>, worker: &mut Worker<O>) {
    tour.drain();
    tour.ledger.push(|item| worker.push(item));
    let tx = worker.begin();
    if let Ok(item) = tx.pop() {
        let _ = tx.retry_after(item, SECOND);
    }
    tour.commit(tx.held(), [], || tx.try_commit());
    let bell = Bell::new(&tour.plan);
    let mut pop = worker.pop_async();
    let mut popped = bell.poll(&mut pop);
    if popped.is_pending() {
        tour.clock.advance(SECOND);
        popped = bell.poll(&mut pop);
    }
    if let Poll::Ready(popped) = popped {
        tour.ledger.deliver(popped);
    }
}

/// A queue that is full, also of items that are delayed.
pub(crate) fn for_room<O: Order<Probe>>(tour: &Tour<O>, worker: &mut Worker<O>) {
    while !tour.queue.is_full() {
        tour.ledger.push(|item| tour.queue.push(item));
    }
    let bell = Bell::new(&tour.plan);
    let (item, ledger) = (tour.ledger.item(), &tour.ledger);
    let id = [item.id];
    let mut push = worker.push_async(item);
    ledger.set(id, Fate::Doubtful);
    let mut pushed = bell.poll(&mut push);
    if pushed.is_pending() {
        ledger.deliver(tour.queue.pop());
        pushed = bell.poll(&mut push);
    }
    match pushed {
        Poll::Ready(Ok(())) => ledger.set(id, Fate::Accepted),
        _ => ledger.set(id, Fate::Refused),
    }
    drop(push);
    tour.drain();
}

pub(crate) fn in_transactions<O: Order<Probe>>(tour: &Tour<O>, worker: &mut Worker<O>) {
    tour.drain();
    let bell = Bell::new(&tour.plan);
    let tx = worker.begin();
    let mut pop = tx.pop_async();
    let is_pending = bell.poll(&mut pop).is_pending();
    tour.ledger.push(|item| tour.queue.push(item));
    if is_pending {
        drop(bell.poll(&mut pop));
    }
    drop(pop);
    let mut batch = tx.pop_batch_async(3, 3);
    let _ = bell.poll(&mut batch);
    tour.ledger.push(|item| tour.queue.push(item));
    drop(batch);
    tour.commit(tx.held(), [], || tx.try_commit());
}

/// Of two waiters the first is woken and leaves: the second gets the item.
pub(crate) fn cancelled<O: Order<Probe>>(tour: &Tour<O>, worker: &mut Worker<O>) {
    tour.drain();
    let bells = [(); 2].map(|()| Bell::new(&tour.plan));
    let mut first = worker.pop_async();
    let mut second = tour.queue.pop_async();
    let _ = bells[0]
        .poll(&mut first)
        .map(|popped| tour.ledger.deliver(popped));
    let is_pending = bells[1].poll(&mut second).is_pending();
    tour.ledger.push(|item| tour.queue.push(item));
    drop(first);
    if is_pending {
        if let Poll::Ready(popped) = bells[1].poll(&mut second) {
            tour.ledger.deliver(popped);
        }
    }
}
