//! A message broker in the process: topics, consumer groups, redelivery, dead letters.
//!
//! Run it with `cargo run --release --example broker`.

#[cfg(test)]
mod tests;
mod topics;

use requeue::{PopError, SystemClock};
use std::iter;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use topics::{Broker, Consumer, Limits};

const ORDERS: usize = 1_000;

/// What the consumers did.
#[derive(Default)]
struct Counts {
    acknowledged: AtomicUsize,
    given_back: AtomicUsize,
}

/// Consumes the orders until the end, ten at a time if they are there.
fn consume(group: &str, consumer: &Consumer, counts: &Counts) {
    loop {
        let first = match consumer.receive(Duration::from_secs(1)) {
            Ok(order) => order,
            Err(PopError::Empty) => continue,
            Err(PopError::Closed) => return,
        };
        let rest = consumer.receive_batch(9);
        for order in iter::once(first).chain(rest) {
            // Every tenth is too much for the one who ships, the first time.
            if group == "ship" && order.attempts() == 1 && order.body.ends_with(b"0") {
                drop(order); // as a panic, an early return or a lost connection would
                counts.given_back.fetch_add(1, Ordering::Relaxed);
            } else if order.try_ack().is_ok() {
                counts.acknowledged.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let limits = Limits {
        max_bytes: 1_000,
        max_age: Duration::from_secs(60),
        ack_wait: Duration::from_secs(10),
        max_deliveries: 3,
    };
    let broker = Broker::new(limits, SystemClock);
    let consumers = ["bill", "ship", "ship"].map(|group| (group, broker.join("orders", group)));
    let counts = Counts::default();
    thread::scope(|scope| {
        for (group, consumer) in &consumers {
            scope.spawn(|| consume(group, consumer, &counts));
        }
        for number in 0..ORDERS {
            let order = format!("order {number}");
            while broker.publish("orders", order.as_str()).is_err() {
                thread::yield_now(); // the groups are slower
            }
        }
        broker.close();
    });
    let acknowledged = counts.acknowledged.into_inner();
    let twice = counts.given_back.into_inner();
    println!("{ORDERS} orders to 2 groups: {acknowledged} acknowledged, {twice} delivered twice");
    let dead = broker.dead_letters("orders", "ship").len();
    if (acknowledged, twice, dead) != (2 * ORDERS, ORDERS / 10, 0) {
        return Err(format!("orders are lost; {dead} are dead letters").into());
    }
    Ok(())
}
