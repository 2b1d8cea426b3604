//! The cost of waiters while no item arrives.

use super::{items, multi_thread, Sizes};
use crate::measure::{Round, Subject, Workload};
use crate::peers::{Peer, Plan, Sender, TaskReceiver, WaitingReceiver};
use crate::tally::{Payload, Tally};
use rustix::time::{clock_gettime, ClockId};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

const THREADS: usize = 32;
const TASKS: usize = 32;

pub(super) fn workloads(sizes: Sizes) -> Vec<Workload> {
    let Sizes {
        settle,
        rest,
        patience,
        ..
    } = sizes;
    let at_rest = Workload::new(
        "64 waiters at rest, processor time",
        move || each!(u64: at_rest(settle, rest, patience) for Plain, AsyncChannel, Flume, Kanal),
    );
    vec![at_rest.unit("ms").once()]
}

/// Threads and tasks wait for one queue: the CPU time of the whole process during `span`, in milliseconds. Then one item
/// for each of them ends the wait. A waiter that is not woken is left behind, and its item is reported as lost.
fn at_rest<P: Peer<T>, T: Payload>(settle: Duration, span: Duration, patience: Duration) -> Subject
where
    P::Receiver: WaitingReceiver<T> + TaskReceiver<T>,
{
    Subject::of::<P, T>(move || {
        let waiters = THREADS + TASKS;
        let (mut senders, mut receivers) = P::open(Plan {
            senders: 1,
            receivers: waiters,
            bound: None,
            room: waiters,
        });
        let runtime = multi_thread();
        let (returns, returned) = mpsc::channel();
        for mut receiver in receivers.split_off(TASKS) {
            let returns = returns.clone();
            thread::spawn(move || returns.send(receiver.pop_waiting().number()));
        }
        for mut receiver in receivers {
            let returns = returns.clone();
            runtime.spawn(async move { returns.send(receiver.pop_async().await.number()) });
        }

        thread::sleep(settle);
        let before = processor_time();
        thread::sleep(span);
        let spent = processor_time().saturating_sub(before);

        let numbers = 0..waiters as u64;
        numbers
            .clone()
            .for_each(|number| senders[0].push_retrying(T::of(number)));
        let received = numbers.clone();
        let received = items(received.map_while(|_| returned.recv_timeout(patience).ok()));
        runtime.shutdown_background();
        let value = spent.as_secs_f64() * 1e3;
        Round::new(vec![value], Tally::of(numbers), received)
    })
}

/// CPU time of all threads, user and system.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).expect("the clock began at zero")
}
