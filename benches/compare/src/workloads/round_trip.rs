//! An item makes a round trip through two queues: both sides wait on each trip.

use super::{current_thread, items, multi_thread, of_threads, one_each, Sizes};
use crate::measure::{Round, Subject, Workload};
use crate::peers::{Peer, Sender, TaskReceiver, WaitingReceiver};
use crate::tally::{Payload, Tally};
use crate::threads::Load;
use std::sync::Arc;
use std::thread;
use std::time::Instant;
use tokio::runtime::Runtime;

pub(super) fn workloads(sizes: Sizes) -> Vec<Workload> {
    let load = sizes.load_of(50);
    let threads = Workload::new(
        "round trip, 2 threads",
        move || each!(u64: threads(load) for Plain, Transactional, Direct, Crossbeam, Flume, Kanal, AsyncChannel, StdUnbounded),
    );
    let runtimes: [(_, fn() -> Runtime); 2] = [(1, current_thread), (2, multi_thread)];
    let tasks = runtimes.map(|(threads, runtime)| {
        let name = format!("round trip, 2 tasks on {}", of_threads(threads));
        Workload::new(name, move || {
            let runtime = Arc::new(runtime());
            each!(u64: tasks(&runtime, load) for Plain, Transactional, Direct, AsyncChannel, Flume, Kanal,
                TokioUnbounded)
        })
    });
    [threads].into_iter().chain(tasks).collect()
}

/// Between two threads. The first trip, which starts the other thread, is not measured.
fn threads<P: Peer<T>, T: Payload>(load: Load) -> Subject
where
    P::Receiver: WaitingReceiver<T>,
{
    let (mut there, mut arrivals) = one_each::<P, T>();
    let (mut back, mut returns) = one_each::<P, T>();
    Subject::of::<P, T>(move || {
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..=load.items {
                    back.push_retrying(arrivals.pop_waiting());
                }
            });
            let mut trip = |number| {
                there.push_retrying(T::of(number));
                returns.pop_waiting().number()
            };
            trip(0);
            let start = Instant::now();
            let received = items((0..load.items).map(trip));
            load.round(start.elapsed(), received)
        })
    })
}

/// Between two tasks.
fn tasks<P: Peer<T>, T: Payload>(runtime: &Arc<Runtime>, load: Load) -> Subject
where
    P::Receiver: TaskReceiver<T>,
{
    let runtime = Arc::clone(runtime);
    Subject::of::<P, T>(move || {
        let (mut there, mut arrivals) = one_each::<P, T>();
        let (mut back, mut returns) = one_each::<P, T>();
        let echo = runtime.spawn(async move {
            for _ in 0..=load.items {
                back.push_retrying(arrivals.pop_async().await);
            }
        });
        let travel = runtime.spawn(async move {
            there.push_retrying(T::of(0));
            returns.pop_async().await;
            let (start, mut received) = (Instant::now(), Tally::default());
            for number in 0..load.items {
                there.push_retrying(T::of(number));
                received.add(returns.pop_async().await.number());
            }
            load.round(start.elapsed(), received)
        });
        runtime.block_on(async {
            echo.await.expect("the echo ends");
            let round: Round = travel.await.expect("the last trip ends");
            round
        })
    })
}
