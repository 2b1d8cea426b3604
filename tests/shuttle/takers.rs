//! Consumers that take in ways chosen at random.

use super::below;
use super::market::{poll_a_little, poll_until_tired, Kind, Market, POISON};
use super::pushers::end_somehow;
use super::work::Work;
use requeue::{Handle, PopError, Transaction};
use shuttle::future::block_on;

/// Tries to take for some rounds, and leaves. It never waits, so that waiters depend on the wake-ups that it causes.
pub(super) fn take_some<O: Kind>(market: &Market<O>) {
    let mut handle = market.queue.handle();
    for _ in 0..3 {
        if below(4) == 0 {
            handle = market.queue.handle();
        }
        take_somehow(market, &mut handle);
    }
}

fn take_somehow<O: Kind>(market: &Market<O>, handle: &mut Handle<u32, O>) {
    let given_up = Err(PopError::Empty);
    let _ = match below(7) {
        0 => market.pop(|| handle.pop()),
        1 => market.pop(|| market.queue.pop()),
        2 | 3 => market.pop(|| poll_a_little(handle.pop_async()).unwrap_or(given_up)),
        4 => {
            market.pop_batch(2, |items| handle.pop_batch(2, items));
            given_up
        }
        _ => {
            move_some(market, handle);
            given_up
        }
    };
}

/// Takes items and pushes follow-up items.
fn move_some<O: Kind>(market: &Market<O>, handle: &mut Handle<u32, O>) {
    let mut work = Work::new(market, handle);
    for _ in 0..=below(2) {
        let _ = work.hold(|tx| match below(3) {
            0 => poll_until_tired(tx.pop_async()).unwrap_or(Err(PopError::Empty)),
            _ => tx.pop(),
        });
    }
    for _ in 0..below(3) {
        work.stage(Transaction::push);
    }
    end_somehow(work);
}

/// Takes until the queue is closed, or a poison item arrives.
pub(super) fn take_all<O: Kind>(market: &Market<O>) {
    let mut handle = market.queue.handle();
    while take_for_certain(market, &mut handle) {}
    if market.queue.is_closed() {
        assert_eq!(handle.pop(), Err(PopError::Closed));
    }
}

/// Takes in some way that waits for an item: false if it was the last one.
fn take_for_certain<O: Kind>(market: &Market<O>, handle: &mut Handle<u32, O>) -> bool {
    match below(5) {
        0 => goes_on(market.pop(|| block_on(handle.pop_async()))),
        1 => take_batch(market, handle),
        2 => hold_one(market, handle),
        _ => goes_on(market.pop(|| handle.pop_blocking())),
    }
}

fn goes_on(popped: Result<u32, PopError>) -> bool {
    match popped {
        Ok(item) => item != POISON,
        Err(error) => {
            assert_eq!(error, PopError::Closed, "it waited for nothing");
            false
        }
    }
}

/// Keeps at most one poison item.
fn take_batch<O: Kind>(market: &Market<O>, handle: &mut Handle<u32, O>) -> bool {
    let max = 3;
    let pop = |items: &mut Vec<u32>| handle.pop_batch_blocking(1, max, items);
    let (count, poison) = market.pop_batch(max, pop);
    for _ in 1..poison {
        market.poison(handle);
    }
    count > 0 && poison == 0
}

fn hold_one<O: Kind>(market: &Market<O>, handle: &mut Handle<u32, O>) -> bool {
    let mut work = Work::new(market, handle);
    let held = work.hold(|tx| match below(2) {
        0 => block_on(tx.pop_async()),
        _ => tx.pop_blocking(),
    });
    if goes_on(held) {
        end_somehow(work);
        return true;
    }
    work.commit();
    false
}
