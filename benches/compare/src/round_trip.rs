//! An item makes a round trip through two queues: both sides wait on each trip.

use crate::kinds::{Kind, Receiver, Sender, TaskReceiver};
use crate::report::{nanoseconds, Contender};
use std::hint::black_box;
use std::sync::Arc;
use std::thread;
use std::time::Instant;
use tokio::runtime::Runtime;

/// Between two threads. The time per trip, without the first one, which starts the other thread.
pub(crate) fn threads<K>(trips: u32) -> Contender
where
    K: Kind,
    K::Receiver: Receiver,
{
    let (mut there, mut arrivals) = K::unbounded();
    let (mut back, mut returns) = K::unbounded();
    Contender::new(K::NAME, move || {
        thread::scope(|scope| {
            scope.spawn(|| (0..=trips).for_each(|_| back.push(arrivals.pop())));
            let mut trip = |item| {
                there.push(item);
                black_box(returns.pop());
            };
            trip(0);
            let start = Instant::now();
            (0..trips).for_each(|item| trip(item.into()));
            nanoseconds(start.elapsed()) / f64::from(trips)
        })
    })
}

/// Between two tasks of `runtime`.
pub(crate) fn tasks<K>(runtime: &Arc<Runtime>, trips: u32) -> Contender
where
    K: Kind,
    K::Receiver: TaskReceiver,
{
    let runtime = Arc::clone(runtime);
    Contender::new(K::NAME, move || {
        let (mut there, mut arrivals) = K::unbounded();
        let (mut back, mut returns) = K::unbounded();
        let echo = runtime.spawn(async move {
            for _ in 0..=trips {
                back.push(arrivals.pop_async().await);
            }
        });
        let travel = runtime.spawn(async move {
            there.push(0);
            returns.pop_async().await;
            let start = Instant::now();
            for item in 0..trips {
                there.push(item.into());
                black_box(returns.pop_async().await);
            }
            nanoseconds(start.elapsed()) / f64::from(trips)
        });
        runtime.block_on(async {
            echo.await.expect("the echo ends");
            travel.await.expect("the last trip ends")
        })
    })
}
