//! The time from a push until a sleeping waiter returns.

use super::{current_thread, items, one_each, Sizes};
use crate::measure::{Round, Subject, Workload};
use crate::peers::{Peer, Sender, TaskReceiver, WaitingReceiver};
use crate::tally::{Payload, Tally};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{mpsc, Arc};
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// Longer than any queue spins before its waiters sleep.
const NAP: Duration = Duration::from_micros(500);

/// When the waiter returned, and with which number.
type Returns = mpsc::Sender<(Instant, u64)>;

pub(super) fn workloads(sizes: Sizes) -> Vec<Workload> {
    let wakes = sizes.wakes;
    let thread = Workload::new(
        "wake a sleeping thread",
        move || each!(u64: thread(wakes) for Plain, Crossbeam, Flume, Kanal, AsyncChannel, StdUnbounded),
    );
    let task = Workload::new("wake a sleeping task", move || {
        let runtime = Arc::new(current_thread());
        each!(u64: task(&runtime, wakes) for Plain, AsyncChannel, Flume, Kanal, TokioUnbounded)
    });
    vec![thread, task]
}

/// The waiter is a thread.
fn thread<P: Peer<T>, T: Payload>(wakes: u64) -> Subject
where
    P::Receiver: WaitingReceiver<T>,
{
    wake::<P, T>(wakes, move |receiver, returns| {
        for _ in 0..wakes {
            let number = receiver.pop_waiting().number();
            let returned = returns.send((Instant::now(), number));
            returned.expect("the pusher waits");
        }
    })
}

/// The waiter is a task, the only one on the single thread of `runtime`.
fn task<P: Peer<T>, T: Payload>(runtime: &Arc<Runtime>, wakes: u64) -> Subject
where
    P::Receiver: TaskReceiver<T>,
{
    let runtime = Arc::clone(runtime);
    wake::<P, T>(wakes, move |receiver, returns| {
        runtime.block_on(async {
            for _ in 0..wakes {
                let number = receiver.pop_async().await.number();
                let returned = returns.send((Instant::now(), number));
                returned.expect("the pusher waits");
            }
        });
    })
}

/// The median time from the start of a push to the return of its waiter.
fn wake<P: Peer<T>, T: Payload>(
    wakes: u64,
    wait: impl Fn(&mut P::Receiver, &Returns) + Sync + 'static,
) -> Subject {
    let (mut sender, mut receiver) = one_each::<P, T>();
    Subject::of::<P, T>(move || {
        let (returns, returned) = mpsc::channel();
        let (announce, name) = mpsc::channel();
        let (wait, receiver) = (&wait, &mut receiver);
        thread::scope(|scope| {
            scope.spawn(move || {
                announce.send(this_thread()).expect("the pusher waits");
                wait(receiver, &returns);
            });
            let waiter = name.recv().expect("the waiter starts");
            let mut spans = Vec::new();
            let received = items((0..wakes).map(|number| {
                until_asleep(waiter.as_deref());
                let start = Instant::now();
                sender.push_retrying(T::of(number));
                let (end, number) = returned.recv().expect("the waiter returns");
                spans.push(end - start);
                number
            }));
            spans.sort_unstable();
            let value = spans[spans.len() / 2].as_secs_f64() * 1e9;
            Round::new(vec![value], Tally::of(0..wakes), received)
        })
    })
}

/// The file with the state of this thread, if the system has one.
pub(crate) fn this_thread() -> Option<PathBuf> {
    let link = fs::read_link("/proc/thread-self").ok()?;
    Some(Path::new("/proc").join(link).join("stat"))
}

fn until_asleep(thread: Option<&Path>) {
    loop {
        thread::sleep(NAP);
        if thread.is_none_or(sleeps) {
            return;
        }
    }
}

/// The state follows the name, which is in parentheses.
pub(crate) fn sleeps(thread: &Path) -> bool {
    let stat = fs::read_to_string(thread).expect("the waiter is alive");
    let state = stat
        .rsplit(')')
        .next()
        .and_then(|rest| rest.trim().chars().next());
    state == Some('S')
}
