//! Waiters that can be woken by one event only.

use super::market::{of_any_order, Kind, Market};
use super::pushers::push_for_certain;
use super::takers::{take_all, take_some};
use super::work::Work;
use super::{below, explore, join, one_of, start};
use requeue::{pop_any, Fifo, PopError, Transaction};
use shuttle::thread;
use std::sync::Arc;

#[test]
fn a_close_ends_waits_for_room() {
    explore(|| {
        let room = one_of(&[1, 2, 7]);
        let market = Arc::new(Market::<Fifo>::new(Some(room)));
        let threads = start(3, &market, |market| {
            let mut handle = market.queue.handle();
            let most = market.queue.capacity().unwrap().min(3);
            while push_for_certain(market, &mut handle, most) {}
        });
        for _ in 0..below(60) {
            thread::yield_now();
        }
        assert!(market.queue.close());
        join(threads);
        take_all(&market);
        market.check_closed();
    });
}

/// Only the end of the last transaction can wake the others.
#[test]
fn the_last_transaction_ends_waits_after_a_close() {
    explore(|| of_any_order!(end_the_last_transaction));
}

fn end_the_last_transaction<O: Kind>() {
    let market = Market::<O>::any();
    let (mut first, mut second) = (market.queue.handle(), market.queue.handle());
    assert!(market.push(|item| first.push(item)));
    let mut holds = Work::new(&market, &mut first);
    let mut stages = Work::new(&market, &mut second);
    holds.hold(Transaction::pop).unwrap();
    stages.stage(Transaction::push);
    let takers = start(3, &market, take_all);
    assert!(market.queue.close());
    for work in [holds, stages] {
        match below(3) {
            0 => work.abort(),
            _ => work.commit(),
        }
    }
    join(takers);
    market.check_closed();
}

/// Visitors hold the items that the takers wait for, and leave without another pop.
#[test]
fn an_abort_wakes_another_waiter() {
    explore(|| {
        let market = Arc::new(Market::<Fifo>::new(None));
        let mut handle = market.queue.handle();
        market.push_batch(2, |items| handle.push_batch(items));
        let visitors = start(2, &market, |market| {
            let mut handle = market.queue.handle();
            let mut work = Work::new(market, &mut handle);
            let _ = work.hold(Transaction::pop);
            match below(2) {
                0 => work.abort(),
                _ => work.forget(),
            }
        });
        let takers = start(2, &market, take_all);
        join(visitors);
        market.ledger.settle();
        market.queue.close();
        join(takers);
        market.check_closed();
    });
}

#[test]
fn a_wait_for_several_queues_misses_none() {
    explore(|| of_any_order!(wait_for_several_queues));
}

fn wait_for_several_queues<O: Kind>() {
    let markets = Arc::new([Market::<O>::any(), Market::<O>::any()]);
    let pushers = start(2, &markets, |markets| {
        for _ in 0..3 {
            let market = &markets[below(2)];
            market.push(|item| market.queue.handle().push_blocking(item));
        }
    });
    let visitors = start(1, &markets, |markets| take_some(&markets[below(2)]));
    let takers = start(2, &markets, |markets| take_any(&markets[..]));
    join(pushers);
    join(visitors);
    for market in markets.iter() {
        market.ledger.settle();
    }
    markets
        .iter()
        .for_each(|market| assert!(market.queue.close()));
    join(takers);
    for market in markets.iter() {
        market.check_closed();
    }
}

/// Takes from all queues until all are closed.
fn take_any<O: Kind>(markets: &[Arc<Market<O>>]) {
    let mut handles: Vec<_> = markets.iter().map(|market| market.queue.handle()).collect();
    loop {
        for market in markets {
            market.ledger.vacate(1);
        }
        let popped = pop_any(&mut handles);
        let from = popped.map_or(markets.len(), |(from, _)| from);
        for (index, market) in markets.iter().enumerate() {
            market.ledger.occupy(usize::from(index != from));
        }
        match popped {
            Ok((from, item)) => markets[from].ledger.received(&[item]),
            Err(error) => return assert_eq!(error, PopError::Closed),
        }
    }
}
