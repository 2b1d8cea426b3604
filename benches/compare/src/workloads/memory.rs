//! The memory of a queue that is full of items, and of one that was.

use super::{items, one_each_with_room, Sizes};
use crate::alloc;
use crate::measure::{Round, Subject, Workload};
use crate::peers::{Peer, Receiver, Sender};
use crate::tally::{Payload, Tally};
use crate::threads::Load;

const COLUMNS: &[&str] = &["per item", "after a drain"];

/// Pairs after the drain, during which reclamation that is deferred can happen.
const PAIRS: u64 = 1000;

pub(super) fn workloads(sizes: Sizes) -> Vec<Workload> {
    let load = sizes.load();
    let memory = Workload::new("memory", move || {
        each!(u64: memory(load) for Plain, Direct, SegQueue, ArrayQueue, Crossbeam, Injector, ConcurrentQueue, Flume,
            Kanal, AsyncChannel, StdUnbounded, TokioUnbounded, ThingBuf, Rtrb, Locked)
    });
    vec![memory.columns(COLUMNS).unit("bytes").once()]
}

/// The bytes per item while all items are in the queue, and all bytes once they are out of it.
fn memory<P: Peer<T>, T: Payload>(load: Load) -> Subject {
    Subject::of::<P, T>(move || {
        alloc::start();
        let room = usize::try_from(load.items).expect("64 bits");
        let (mut sender, mut receiver) = one_each_with_room::<P, T>(room);
        (0..load.items).for_each(|number| sender.push_retrying(T::of(number)));
        let full = bytes() / load.as_float();
        let received = items((0..load.items).map_while(|_| Some(receiver.pop()?.number())));
        for number in 0..PAIRS {
            sender.push_retrying(T::of(number));
            receiver.pop();
        }
        let values = vec![full, bytes()];
        alloc::stop();
        Round::new(values, Tally::of(0..load.items), received)
    })
}

#[allow(clippy::cast_precision_loss)]
pub(super) fn bytes() -> f64 {
    alloc::live() as f64
}
