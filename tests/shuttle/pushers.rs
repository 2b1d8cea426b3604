//! Producers that push in ways chosen at random.

use super::below;
use super::market::{poll_a_little, Kind, Market};
use super::work::Work;
use requeue::{Handle, Transaction};
use shuttle::future::block_on;

/// Pushes for some rounds, or until the queue is closed.
pub(super) fn push_some<O: Kind>(market: &Market<O>) {
    let mut handle = market.queue.handle();
    for _ in 0..4 {
        if below(4) == 0 {
            handle = market.queue.handle();
        }
        if !push_somehow(market, &mut handle) {
            break;
        }
    }
}

/// Pushes in some way: false if the queue is closed.
fn push_somehow<O: Kind>(market: &Market<O>, handle: &mut Handle<u32, O>) -> bool {
    let most = market.queue.capacity().unwrap_or(3).min(3);
    match below(9) {
        0 => market.push(|item| handle.push(item)),
        1 => market.push(|item| market.queue.push(item)),
        2 => push_a_little(market, handle),
        3 => batch_a_little(market, handle, most),
        4 => stage_some(market, handle),
        _ => push_for_certain(market, handle, most),
    }
}

/// Pushes in some way that waits for room: false if the queue is closed.
pub(super) fn push_for_certain<O: Kind>(
    market: &Market<O>,
    handle: &mut Handle<u32, O>,
    most: usize,
) -> bool {
    let count = 1 + below(most);
    match below(5) {
        0 => market.push(|item| block_on(handle.push_async(item))),
        1 => market.push_batch(count, |items| handle.push_batch_blocking(items)),
        2 => market.push_batch(count, |items| block_on(handle.push_batch_async(items))),
        3 => {
            let mut work = Work::new(market, handle);
            let open = work.stage(Transaction::push_blocking);
            work.commit();
            open
        }
        _ => market.push(|item| handle.push_blocking(item)),
    }
}

/// A push that may be cancelled.
fn push_a_little<O: Kind>(market: &Market<O>, handle: &mut Handle<u32, O>) -> bool {
    let item = market.ledger.item();
    match poll_a_little(handle.push_async(item)) {
        Some(Ok(())) => market.ledger.accepted(&[item]),
        Some(Err(refused)) => return market.refused(refused, &item),
        None => {}
    }
    true
}

fn batch_a_little<O: Kind>(market: &Market<O>, handle: &mut Handle<u32, O>, most: usize) -> bool {
    let items = market.ledger.items(1 + below(most));
    match poll_a_little(handle.push_batch_async(items.clone())) {
        Some(Ok(_)) => market.ledger.accepted(&items),
        Some(Err(refused)) => return market.refused(refused, &items),
        None => {}
    }
    true
}

/// Stages some items, the first one perhaps in a future that is cancelled.
fn stage_some<O: Kind>(market: &Market<O>, handle: &mut Handle<u32, O>) -> bool {
    let mut work = Work::new(market, handle);
    let mut open = true;
    for _ in 0..below(3) {
        open = open && work.stage(Transaction::push);
    }
    end_somehow(work);
    open
}

/// Commits in most cases.
pub(super) fn end_somehow<O: Kind>(work: Work<'_, O>) {
    match below(5) {
        0 => work.abort(),
        1 => work.forget(),
        _ => work.commit(),
    }
}
