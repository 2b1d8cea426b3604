//! Commits over two queues.

use super::market::{of_any_two_orders, Kind, Market, POISON};
use super::pushers::push_some;
use super::takers::{take_all, take_some};
use super::work::Work;
use super::{below, explore, join, start};
use requeue::{commit_all, PopError, Transaction};
use std::sync::Arc;

/// Two queues: pairs are pushed to both, or items are moved from the first to the second one.
type Both<A, B> = (Arc<Market<A>>, Arc<Market<B>>);

fn any_both<A: Kind, B: Kind>() -> Arc<Both<A, B>> {
    Arc::new((Market::any(), Market::any()))
}

/// Commits the work at both queues, in most cases.
fn end_both<A: Kind, B: Kind>(first: Work<'_, A>, second: Work<'_, B>) {
    match below(4) {
        0 => {
            second.abort();
            first.abort();
        }
        1 => {
            first.forget();
            second.forget();
        }
        _ => commit_both(first, second),
    }
}

fn commit_both<A: Kind, B: Kind>(first: Work<'_, A>, second: Work<'_, B>) {
    let ((first, first_end), (second, second_end)) = (first.into_end(), second.into_end());
    let (first, second) = commit_all((first, second));
    first_end.enter(first);
    second_end.enter(second);
}

fn push_pairs<A: Kind, B: Kind>((left, right): &Both<A, B>) {
    let mut handles = (left.queue.handle(), right.queue.handle());
    for _ in 0..3 {
        let mut first = Work::new(left, &mut handles.0);
        let mut second = Work::new(right, &mut handles.1);
        assert!(first.stage_for_certain());
        assert!(second.stage_for_certain());
        end_both(first, second);
    }
}

/// A consumer that has popped one half finds the other one.
fn take_pairs<A: Kind, B: Kind>((left, right): &Both<A, B>) {
    let mut handle = left.queue.handle();
    while left.pop(|| handle.pop_blocking()).is_ok() {
        assert!(right.pop(|| right.queue.pop()).is_ok());
    }
}

/// Holds halves for a while.
fn delay_pairs<A: Kind, B: Kind>((left, _): &Both<A, B>) {
    let mut handle = left.queue.handle();
    for _ in 0..2 {
        let mut work = Work::new(left, &mut handle);
        let _ = work.hold(Transaction::pop);
        work.abort();
    }
}

fn move_all<A: Kind, B: Kind>((from, to): &Both<A, B>) {
    let mut handles = (from.queue.handle(), to.queue.handle());
    loop {
        let mut first = Work::new(from, &mut handles.0);
        match first.hold(Transaction::pop_blocking) {
            Ok(item) => assert_ne!(item, POISON),
            Err(error) => return assert_eq!(error, PopError::Closed),
        }
        let mut second = Work::new(to, &mut handles.1);
        assert!(second.stage_for_certain());
        // Forgetting the second one would keep its room while it waits for the next item.
        match below(4) {
            0 => {
                second.abort();
                first.abort();
            }
            _ => commit_both(first, second),
        }
    }
}

#[test]
fn both_halves_of_a_pair_are_visible_at_once() {
    explore(|| of_any_two_orders!(push_and_take_pairs));
}

fn push_and_take_pairs<A: Kind, B: Kind>() {
    let both = any_both::<A, B>();
    let pushers = start(2, &both, push_pairs);
    let visitors = start(1, &both, delay_pairs);
    let taker = start(1, &both, take_pairs);
    join(pushers);
    join(visitors);
    both.0.ledger.settle();
    both.1.ledger.settle();
    assert!(both.0.queue.close());
    assert!(both.1.queue.close());
    join(taker);
    both.0.check_closed();
    both.1.check_closed();
}

#[test]
fn items_moved_between_queues_are_in_exactly_one() {
    explore(|| of_any_two_orders!(move_between_queues));
}

fn move_between_queues<A: Kind, B: Kind>() {
    let both = any_both::<A, B>();
    let pushers = start(1, &both.0, push_some);
    let movers = start(2, &both, move_all);
    let visitors = start(1, &both.1, take_some);
    let taker = start(1, &both.1, take_all);
    join(pushers);
    join(visitors);
    both.0.ledger.settle();
    both.0.queue.close();
    join(movers);
    both.1.ledger.settle();
    both.1.queue.close();
    join(taker);
    both.0.check_closed();
    both.1.check_closed();
}
