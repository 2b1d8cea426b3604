//! Producers push as fast as they can, and consumers pop.

use crate::kinds::{Bounded, Endpoint, Kind, Receiver, Requeue, Sender};
use crate::report::{nanoseconds, Contender};
use requeue::Queue;
use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// One producer, and one consumer that waits.
pub(crate) fn one_to_one<K>(items: u32) -> Contender
where
    K: Kind,
    K::Receiver: Receiver,
{
    let (sender, receiver) = K::unbounded();
    waiting(K::NAME, vec![sender], vec![receiver], items)
}

/// Two producers and two consumers that wait for each other.
pub(crate) fn bounded<K>(capacity: usize, items: u32) -> Contender
where
    K: Bounded,
    K::Receiver: Receiver + Clone,
{
    two_to_two(K::NAME, K::bounded(capacity), items)
}

/// The same with requeue, where only the consumers have to wait.
pub(crate) fn unbounded(name: &'static str, items: u32) -> Contender {
    two_to_two(name, Requeue::unbounded(), items)
}

fn two_to_two<S, R>(name: &'static str, (sender, receiver): (S, R), items: u32) -> Contender
where
    S: Sender,
    R: Receiver + Clone,
{
    let senders = vec![sender.clone(), sender];
    let receivers = vec![receiver.clone(), receiver];
    waiting(name, senders, receivers, items)
}

/// Two producers and two consumers of requeue that retry when the queue is full or empty.
pub(crate) fn trying(name: &'static str, queue: &Queue<u64>, items: u32) -> Contender {
    let ports = || vec![Endpoint::new(queue.clone()), Endpoint::new(queue.clone())];
    let push = |port: &mut Endpoint, item| until(|| port.try_push(item).then_some(()));
    let pop = |port: &mut Endpoint| until(|| port.try_pop());
    flow(name, ports(), push, ports(), pop, items)
}

pub(crate) fn until<R>(mut attempt: impl FnMut() -> Option<R>) -> R {
    loop {
        if let Some(result) = attempt() {
            return result;
        }
        thread::yield_now();
    }
}

fn waiting<S: Sender, R: Receiver>(
    name: &'static str,
    senders: Vec<S>,
    receivers: Vec<R>,
    items: u32,
) -> Contender {
    flow(name, senders, S::push, receivers, R::pop, items)
}

/// Passes `items` items, shared evenly by the senders and by the receivers. The time per item.
pub(crate) fn flow<S, R>(
    name: &'static str,
    mut senders: Vec<S>,
    push: impl Fn(&mut S, u64) + Sync + 'static,
    mut receivers: Vec<R>,
    pop: impl Fn(&mut R) -> u64 + Sync + 'static,
    items: u32,
) -> Contender
where
    S: Send + 'static,
    R: Send + 'static,
{
    let shares = [senders.len(), receivers.len()].map(|threads| share(items, threads));
    Contender::new(name, move || {
        let [pushes, pops] = shares;
        let span = together(
            &mut senders,
            |sender| (0..pushes).for_each(|item| push(sender, item.into())),
            &mut receivers,
            |receiver| {
                (0..pops).for_each(|_| {
                    black_box(pop(receiver));
                });
            },
        );
        nanoseconds(span) / f64::from(items)
    })
}

fn share(items: u32, threads: usize) -> u32 {
    let threads = u32::try_from(threads).expect("few threads");
    assert_eq!(items % threads, 0, "the items are shared evenly");
    items / threads
}

/// Runs each end on its own thread and measures from the first start to the last end.
fn together<S: Send, R: Send>(
    senders: &mut [S],
    push: impl Fn(&mut S) + Sync,
    receivers: &mut [R],
    pop: impl Fn(&mut R) + Sync,
) -> Duration {
    let barrier = &Barrier::new(senders.len() + receivers.len());
    let (push, pop) = (&push, &pop);
    thread::scope(|scope| {
        let senders = senders.iter_mut();
        let senders = senders.map(|sender| scope.spawn(move || timed(barrier, || push(sender))));
        let receivers = receivers.iter_mut();
        let receivers =
            receivers.map(|receiver| scope.spawn(move || timed(barrier, || pop(receiver))));
        let threads: Vec<_> = senders.chain(receivers).collect();
        let spans = threads
            .into_iter()
            .map(|thread| thread.join().expect("no end panics"));
        let (starts, ends): (Vec<_>, Vec<_>) = spans.unzip();
        *ends.iter().max().expect("an end") - *starts.iter().min().expect("a start")
    })
}

/// The start and end of some work that begins together with the others'.
fn timed(barrier: &Barrier, work: impl FnOnce()) -> (Instant, Instant) {
    barrier.wait();
    let start = Instant::now();
    work();
    (start, Instant::now())
}
