//! The time from when an item is due to be pushed until a waiting consumer has it, at a fixed rate. A push that comes late
//! counts from when it was due, so that a stall shows in all the items that it delays.

use super::{items, one_each, Sizes};
use crate::measure::{Round, Subject, Workload};
use crate::peers::{Peer, Sender, WaitingReceiver};
use crate::tally::{Payload, Tally};
use hdrhistogram::Histogram;
use std::hint;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

const COLUMNS: &[&str] = &["p50", "p99", "p99.9", "max"];

pub(super) fn workloads(sizes: Sizes) -> Vec<Workload> {
    let rates = [
        ("10,000", 10_000),
        ("100,000", 100_000),
        ("1,000,000", 1_000_000),
    ];
    let workload = |(name, rate)| {
        let latency = Workload::new(format!("latency at {name} a second"), move || {
            each!(u64: latency(rate, sizes.rated) for Plain, Transactional, Direct, Crossbeam, Flume, Kanal,
                AsyncChannel, StdUnbounded)
        });
        latency.columns(COLUMNS).unit("µs")
    };
    rates.map(workload).into()
}

/// The percentiles of `rate` items per second during `span`.
fn latency<P: Peer<T>, T: Payload>(rate: u64, span: Duration) -> Subject
where
    P::Receiver: WaitingReceiver<T>,
{
    let (mut sender, mut receiver) = one_each::<P, T>();
    let interval = 1_000_000_000 / rate;
    let count = nanoseconds(span) / interval;
    Subject::of::<P, T>(move || {
        let (clock, started) = (Clock::start(), Barrier::new(2));
        thread::scope(|scope| {
            let consumer = scope.spawn(|| {
                let (mut received, mut histogram) = (Tally::default(), empty());
                started.wait();
                for _ in 0..count {
                    let due = receiver.pop_waiting().number();
                    histogram.saturating_record(clock.now().saturating_sub(due));
                    received.add(due);
                }
                (received, histogram)
            });
            started.wait();
            let start = clock.now();
            let sent = items((1..=count).map(|number| {
                let due = start + number * interval;
                while clock.now() < due {
                    hint::spin_loop();
                }
                sender.push_retrying(T::of(due));
                due
            }));
            let (received, histogram) = consumer.join().expect("the consumer ends");
            Round::new(percentiles(&histogram), sent, received)
        })
    })
}

/// Nanoseconds since a start.
struct Clock(Instant);

impl Clock {
    fn start() -> Self {
        Self(Instant::now())
    }

    fn now(&self) -> u64 {
        nanoseconds(self.0.elapsed())
    }
}

/// In microseconds.
#[allow(clippy::cast_precision_loss)]
fn percentiles(histogram: &Histogram<u64>) -> Vec<f64> {
    let quantile = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e3;
    [0.5, 0.99, 0.999, 1.0].map(quantile).into()
}

/// From a nanosecond to a minute, with three significant digits.
fn empty() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("valid bounds")
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).expect("less than 500 years")
}
