//! The time from a push until a sleeping waiter returns.

use crate::kinds::{Kind, Receiver, Sender, TaskReceiver};
use crate::report::{median, nanoseconds, Contender};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{mpsc, Arc};
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// Longer than any queue spins before its waiters sleep.
const NAP: Duration = Duration::from_micros(500);

type Returns = mpsc::Sender<Instant>;

/// The waiter is a thread.
pub(crate) fn of_a_thread<K>(wakes: usize) -> Contender
where
    K: Kind,
    K::Receiver: Receiver,
{
    latency::<K>(wakes, move |receiver, returns| {
        for _ in 0..wakes {
            receiver.pop();
            returns.send(Instant::now()).expect("the pusher waits");
        }
    })
}

/// The waiter is a task, the only one on the single thread of `runtime`.
pub(crate) fn of_a_task<K>(runtime: &Arc<Runtime>, wakes: usize) -> Contender
where
    K: Kind,
    K::Receiver: TaskReceiver,
{
    let runtime = Arc::clone(runtime);
    latency::<K>(wakes, move |receiver, returns| {
        runtime.block_on(async {
            for _ in 0..wakes {
                receiver.pop_async().await;
                returns.send(Instant::now()).expect("the pusher waits");
            }
        });
    })
}

/// The median time from the start of a push to the return of its waiter.
fn latency<K: Kind>(
    wakes: usize,
    wait: impl Fn(&mut K::Receiver, &Returns) + Sync + 'static,
) -> Contender {
    let (mut sender, mut receiver) = K::unbounded();
    Contender::new(K::NAME, move || {
        let (returns, returned) = mpsc::channel();
        let (announce, name) = mpsc::channel();
        let (wait, receiver) = (&wait, &mut receiver);
        thread::scope(|scope| {
            scope.spawn(move || {
                announce.send(this_thread()).expect("the pusher waits");
                wait(receiver, &returns);
            });
            let waiter = name.recv().expect("the waiter starts");
            let wake = |_| {
                until_asleep(waiter.as_deref());
                let start = Instant::now();
                sender.push(0);
                nanoseconds(returned.recv().expect("the waiter returns") - start)
            };
            median((0..wakes).map(wake).collect())
        })
    })
}

/// The file with the state of this thread, if the system has one.
fn this_thread() -> Option<PathBuf> {
    let link = fs::read_link("/proc/thread-self").ok()?;
    Some(Path::new("/proc").join(link).join("stat"))
}

fn until_asleep(thread: Option<&Path>) {
    loop {
        thread::sleep(NAP);
        if thread.map_or(true, sleeps) {
            return;
        }
    }
}

/// The state follows the name, which is in parentheses.
fn sleeps(thread: &Path) -> bool {
    let stat = fs::read_to_string(thread).expect("the waiter is alive");
    let state = stat
        .rsplit(')')
        .next()
        .and_then(|rest| rest.trim().chars().next());
    state == Some('S')
}
