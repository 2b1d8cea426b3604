//! Many threads at one queue: producers, visitors, and consumers until the end.

use super::market::{of_any_order, Kind, Market};
use super::pushers::push_some;
use super::takers::{take_all, take_some};
use super::{below, explore, join, start};
use shuttle::thread;
use std::sync::Arc;

/// Runs the threads until all items have been taken, and returns the number of waiters left.
fn trade<O: Kind>(market: &Arc<Market<O>>) -> Vec<thread::JoinHandle<()>> {
    let pushers = start(1 + below(2), market, push_some);
    let visitors = start(1 + below(2), market, take_some);
    let takers = start(1 + below(2), market, take_all);
    join(pushers);
    join(visitors);
    market.ledger.settle();
    takers
}

#[test]
fn all_that_is_pushed_is_taken_before_a_close() {
    explore(|| of_any_order!(take_all_before_a_close));
}

fn take_all_before_a_close<O: Kind>() {
    let market = Market::<O>::any();
    let takers = trade(&market);
    assert!(market.queue.close());
    join(takers);
    market.check_closed();
}

#[test]
fn no_room_is_lost() {
    explore(|| of_any_order!(lose_no_room));
}

fn lose_no_room<O: Kind>() {
    let market = Market::<O>::any();
    let takers = trade(&market);
    let mut handle = market.queue.handle();
    for _ in &takers {
        market.poison(&mut handle);
    }
    join(takers);
    market.check_room();
}

#[test]
fn a_close_in_the_midst_ends_all() {
    explore(|| of_any_order!(close_in_the_midst));
}

fn close_in_the_midst<O: Kind>() {
    let market = Market::<O>::any();
    let mut threads = start(2, &market, push_some);
    threads.extend(start(2, &market, take_some));
    threads.extend(start(1 + below(2), &market, take_all));
    for _ in 0..below(40) {
        thread::yield_now();
    }
    assert!(market.queue.close());
    assert!(!market.queue.close());
    join(threads);
    market.check_closed();
}
