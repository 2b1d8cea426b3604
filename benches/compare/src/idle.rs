//! The cost of waiters while no item arrives.

use crate::kinds::{Kind, Receiver, Sender, TaskReceiver};
use crate::report::{milliseconds, Contender};
use crate::scenarios::multi_thread;
use rustix::time::{clock_gettime, ClockId};
use std::thread;
use std::time::Duration;

const THREADS: usize = 32;
const TASKS: usize = 32;

/// Threads and tasks wait for one queue: the CPU time of the whole process during `span`. Then one item for each of
/// them ends the wait.
pub(crate) fn idle<K>(settle: Duration, span: Duration) -> Contender
where
    K: Kind,
    K::Receiver: Receiver + TaskReceiver + Clone,
{
    Contender::new(K::NAME, move || {
        let (mut sender, receiver) = K::unbounded();
        let runtime = multi_thread();
        let threads = (0..THREADS).map(|_| {
            let mut receiver = receiver.clone();
            thread::spawn(move || receiver.pop())
        });
        let tasks = (0..TASKS).map(|_| {
            let mut receiver = receiver.clone();
            runtime.spawn(async move { receiver.pop_async().await })
        });
        let (threads, tasks): (Vec<_>, Vec<_>) = (threads.collect(), tasks.collect());

        thread::sleep(settle);
        let before = processor_time();
        thread::sleep(span);
        let spent = processor_time().saturating_sub(before);

        (0..THREADS + TASKS).for_each(|_| sender.push(0));
        for thread in threads {
            thread.join().expect("the thread is woken");
        }
        for task in tasks {
            runtime.block_on(task).expect("the task is woken");
        }
        milliseconds(spent)
    })
}

/// CPU time of all threads, user and system.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).expect("the clock began at zero")
}
