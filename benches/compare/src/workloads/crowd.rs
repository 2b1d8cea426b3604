//! Queues that have, or once had, many more ends than are busy.

use super::{items, Sizes};
use crate::measure::{Round, Subject, Workload};
use crate::peers::{Peer, Plan, Receiver, Sender};
use crate::tally::Payload;
use crate::threads::{flow, Load};
use std::time::Instant;

pub(super) fn workloads(sizes: Sizes) -> Vec<Workload> {
    let (room, load, tenth) = (sizes.room(), sizes.load(), sizes.load_of(10));
    let idle = Workload::new("2P2C beside idle handles", move || {
        each!(u64: idle_ends(sizes.handles, room, load) for Plain, Transactional, Direct, SegQueue, Crossbeam, Kanal;
            cpp Moodycamel)
    });
    let dropped = Workload::new("push, pop, Empty after dropped handles", move || {
        each!(u64: dropped_ends(sizes.dropped, room, tenth) for Plain, Transactional, Direct, SegQueue, Crossbeam, Kanal;
            cpp Moodycamel)
    });
    vec![
        idle.columns(&["4 handles", "10,000 handles"]),
        dropped.columns(&["1 handle", "2,000 handles"]),
    ]
}

/// Opens all ends, each of which is used once.
fn crowd<P: Peer<T>, T: Payload>(ends: usize, room: usize) -> (Vec<P::Sender>, Vec<P::Receiver>) {
    let (mut senders, mut receivers) = P::open(Plan {
        senders: ends,
        receivers: ends,
        bound: None,
        room,
    });
    for sender in &mut senders {
        sender.push_retrying(T::of(0));
    }
    for receiver in &mut receivers {
        while receiver.pop().is_some() {}
    }
    (senders, receivers)
}

/// Two senders and two receivers are busy: the times with these ends alone, and with `ends` in all.
fn idle_ends<P: Peer<T>, T: Payload>(ends: usize, room: usize, load: Load) -> Subject {
    let mut queues = [4, ends].map(|ends| crowd::<P, T>(ends / 2, room));
    Subject::of::<P, T>(move || {
        let rounds = queues.each_mut().map(|(senders, receivers)| {
            flow(
                load,
                &mut senders[..2],
                |sender, part| part.for_each(|number| sender.push_retrying(T::of(number))),
                &mut receivers[..2],
                |receiver, share| share.complete(|| receiver.pop()),
            )
        });
        both(rounds)
    })
}

/// One thread pushes, pops and finds nothing, again and again: the times of a queue with one end of each kind, and of
/// one whose other ends were dropped.
fn dropped_ends<P: Peer<T>, T: Payload>(ends: usize, room: usize, load: Load) -> Subject {
    let mut queues = [1, ends].map(|ends| {
        let (mut senders, mut receivers) = crowd::<P, T>(ends, room);
        senders.truncate(1);
        receivers.truncate(1);
        (senders.remove(0), receivers.remove(0))
    });
    Subject::of::<P, T>(move || both(queues.each_mut().map(|ends| push_pop_empty(ends, load))))
}

/// One thread pushes, pops and finds nothing, again and again.
pub(super) fn push_pop_empty<T: Payload>(
    (sender, receiver): &mut (impl Sender<T>, impl Receiver<T>),
    load: Load,
) -> Round {
    let start = Instant::now();
    let received = items((0..load.items).map_while(|number| {
        sender.push_retrying(T::of(number));
        let item = receiver.pop()?;
        receiver.pop().is_none().then_some(item.number())
    }));
    load.round(start.elapsed(), received)
}

/// Two rounds as one with two values.
pub(super) fn both([mut first, second]: [Round; 2]) -> Round {
    first.values.extend(second.values);
    first.sent += second.sent;
    first.received += second.received;
    first
}
