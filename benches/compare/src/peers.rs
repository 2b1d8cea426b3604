//! The queues that are compared, and what the workloads need of them.

mod array_queue;
mod async_channel;
mod by_hand;
mod concurrent_queue;
#[cfg(feature = "cpp")]
mod cpp;
mod crossbeam_channel;
mod flume;
mod injector;
mod kanal;
mod locked;
mod orders;
mod requeue;
mod rtrb;
mod seg_queue;
mod skip_list;
mod std_mpsc;
mod thingbuf;
mod tokio_mpsc;

pub(crate) use self::array_queue::ArrayQueue;
pub(crate) use self::async_channel::AsyncChannel;
pub(crate) use self::by_hand::{CrossbeamWithMap, LockedWithMap, SegQueueWithMap};
pub(crate) use self::concurrent_queue::ConcurrentQueue;
#[cfg(feature = "cpp")]
pub(crate) use self::cpp::{Moodycamel, MoodycamelImplicit, Tbb};
pub(crate) use self::crossbeam_channel::Crossbeam;
pub(crate) use self::flume::Flume;
pub(crate) use self::injector::Injector;
pub(crate) use self::kanal::Kanal;
pub(crate) use self::locked::{Locked, LockedHeap, LockedKeys};
pub(crate) use self::orders::{priority, Fair, Paced, PacedWithinLimit, Priority};
pub(crate) use self::requeue::{
    Bulk, Deliveries, Direct, Plain, Sticky, Transactional, WithHandle,
};
pub(crate) use self::rtrb::Rtrb;
pub(crate) use self::seg_queue::SegQueue;
pub(crate) use self::skip_list::SkipList;
pub(crate) use self::std_mpsc::{StdBounded, StdUnbounded};
pub(crate) use self::thingbuf::ThingBuf;
pub(crate) use self::tokio_mpsc::{TokioBounded, TokioUnbounded};

use crate::tally::Payload;
use std::future::Future;
use std::thread;

/// How many threads may use each end of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    Mpmc,
    Mpsc,
    /// Shown, but not ranked.
    Spsc,
}

/// What a workload needs: the number of ends of each kind, and the capacity.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) senders: usize,
    pub(crate) receivers: usize,
    pub(crate) bound: Option<usize>,
    /// The number of items that a queue must have room for if the workload sets no bound.
    pub(crate) room: usize,
}

impl Plan {
    /// The capacity of a queue that cannot do without.
    fn capacity(&self) -> usize {
        self.bound.unwrap_or(self.room)
    }

    /// All ends of a queue whose ends can be cloned.
    fn clone_ends<S: Clone, R: Clone>(&self, (sender, receiver): (S, R)) -> (Vec<S>, Vec<R>) {
        (vec![sender; self.senders], vec![receiver; self.receivers])
    }

    /// All ends of a queue with a single receiver.
    fn clone_senders<S: Clone, R>(&self, (sender, receiver): (S, R)) -> (Vec<S>, Vec<R>) {
        assert_eq!(self.receivers, 1, "a single receiver");
        (vec![sender; self.senders], vec![receiver])
    }
}

/// A queue, and one way to use it.
pub(crate) trait Peer<T: Payload>: 'static {
    const NAME: &'static str;
    const ENDS: Ends = Ends::Mpmc;
    type Sender: Sender<T>;
    type Receiver: Receiver<T>;

    fn open(plan: Plan) -> (Vec<Self::Sender>, Vec<Self::Receiver>);
}

/// A peer that keeps a bound.
pub(crate) trait Bounded {}

pub(crate) trait Sender<T>: Send + 'static {
    /// Pushes an item, or returns it if the queue is full.
    fn push(&mut self, item: T) -> Result<(), T>;

    /// Pushes all items, in one call if the queue has one for that.
    fn push_batch(&mut self, items: impl Iterator<Item = T>) {
        items.for_each(|item| self.push_retrying(item));
    }

    fn push_retrying(&mut self, mut item: T) {
        while let Err(back) = self.push(item) {
            item = back;
            thread::yield_now();
        }
    }
}

pub(crate) trait Receiver<T>: Send + 'static {
    fn pop(&mut self) -> Option<T>;

    /// Pops up to `max` items, in one call if the queue has one for that, and returns their number.
    fn pop_batch(&mut self, max: usize, mut each: impl FnMut(T)) -> usize {
        (0..max).map_while(|_| self.pop().map(&mut each)).count()
    }
}

pub(crate) trait WaitingSender<T>: Sender<T> {
    /// Pushes an item; the thread waits for room.
    fn push_waiting(&mut self, item: T);
}

pub(crate) trait WaitingReceiver<T>: Receiver<T> {
    /// Pops an item; the thread waits for one.
    fn pop_waiting(&mut self) -> T;
}

pub(crate) trait TaskReceiver<T>: Receiver<T> {
    /// Pops an item; the task waits for one.
    fn pop_async(&mut self) -> impl Future<Output = T> + Send;
}

/// A receiver whose items can be given back.
pub(crate) trait Deliverer<T>: Send + 'static {
    /// Takes up to `max` items in one transaction, calls `each` for them, and commits, or gives them back if `abort` is
    /// set. Returns their number.
    fn deliver(&mut self, max: usize, abort: bool, each: impl FnMut(&T)) -> usize;
}

/// A peer with transactions, its own or written by hand.
pub(crate) trait Transactions<T: Payload>: 'static {
    const NAME: &'static str;
    type Sender: Sender<T>;
    type Deliverer: Deliverer<T>;

    fn open(plan: Plan) -> (Vec<Self::Sender>, Vec<Self::Deliverer>);
}

const OPEN: &str = "both ends are alive";
