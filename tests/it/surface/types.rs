//! The properties of the types: `Send`, `Sync`, `'static`, iterators, errors; and their modules.

use std::cell::Cell;
use std::error::Error;
use std::fmt::{Debug, Display};
use std::future::Future;
use std::iter::FusedIterator;
use std::rc::Rc;

use requeue::future::{PopBatchAsync, TakeBatchAsync};
use requeue::iter::{Drain, Items, Iter};
use requeue::{
    Builder, ByKey, ByPriority, DeadLetter, DeadLetters, DeliveryId, FairQueue, FairSnapshot, Fifo,
    Handle, Held, Item, Keyed, Leased, Order, OwnedTaken, OwnedTransaction, Peek, Prioritized,
    PriorityQueue, PushError, Queue, Stats, Taken, Transaction, Unleased,
};

/// Compiles only if the type has all the traits.
macro_rules! has {
    ($type:ty: $($bound:tt)+) => {
        const _: () = {
            const fn has<T: $($bound)+>() {}
            has::<$type>();
        };
    };
}

/// Compiles only if the type lacks the trait: with it, both implementations of `Lacks` would fit.
macro_rules! lacks {
    ($type:ty: $bound:ident) => {
        const _: () = {
            struct Has;
            trait Lacks<Which> {
                const PROOF: () = ();
            }
            impl<T> Lacks<()> for T {}
            impl<T: $bound> Lacks<Has> for T {}
            <$type as Lacks<_>>::PROOF
        };
    };
}

/// `Send`, but not `Sync`.
type Item1 = Cell<u8>;
type Fair = FairQueue<String, Item1>;
type Urgent = PriorityQueue<Item1>;
type Lent = Queue<Item1, Leased<Fifo>>;

/// Also for items that are not `'static`, in all orders.
fn borrows<'a>(
    text: &'a str,
) -> (
    Queue<&'a str>,
    FairQueue<usize, &'a str>,
    PriorityQueue<&'a str>,
) {
    let queues = (
        Queue::unbounded(),
        FairQueue::by(|word: &&'a str| word.len()),
        PriorityQueue::by_priority(),
    );
    queues.0.push(text).unwrap();
    queues.1.push(text).unwrap();
    queues.2.push(text).unwrap();
    queues
}

#[test]
fn items_may_borrow_in_all_orders() {
    let text = String::from("borrowed");
    let (plain, fair, urgent) = borrows(&text);
    assert_eq!((plain.len(), fair.len(), urgent.len()), (1, 1, 1));
}

has!(Queue<Item1>: Clone + Send + Sync + Debug + Default + FromIterator<Item1> + Extend<Item1> + 'static);
has!(Fair: Clone + Send + Sync + Debug + 'static);
has!(Urgent: Clone + Send + Sync + Debug + Default + 'static);
has!(Lent: Clone + Send + Sync + Debug + 'static);
lacks!(Queue<Rc<u8>>: Send);
lacks!(Queue<Rc<u8>>: Sync);

has!(Handle<Item1>: Send + Sync + Clone + Debug + 'static);
has!(Handle<Item1, ByKey<String, Item1>>: Send + Sync + Clone + Debug + 'static);
has!(Handle<Item1, ByPriority>: Send + Sync + Clone + Debug + 'static);
has!(Handle<Item1, Leased<ByPriority>>: Send + Sync + Clone + Debug + 'static);

has!(Transaction<'static, Item1>: Send + Debug);
has!(Transaction<'static, Item1, Leased<ByPriority>>: Send + Debug);
lacks!(Transaction<'static, u8>: Sync);
lacks!(Transaction<'static, Rc<u8>>: Send);

has!(OwnedTransaction<Item1>: Send + Debug + 'static);
has!(OwnedTransaction<Item1, Leased<ByPriority>>: Send + Debug + 'static);
lacks!(OwnedTransaction<u8>: Sync);
has!(OwnedTaken<Item1>: Send + ExactSizeIterator + FusedIterator + Debug + 'static);
has!(DeliveryId: Send + Sync + Copy + Ord + std::hash::Hash + Debug + Display + 'static);
has!(TakeBatchAsync<'static, Item1>: Send + Unpin + Future<Output = usize> + Debug);
has!(PopBatchAsync<'static, Item1>: Send + Unpin + Future<Output = Items<'static, Item1>> + Debug);

has!(Item<'static, Item1>: Send + Debug + std::ops::DerefMut<Target = Item1>);
has!(Item<'static, u8>: Display);
lacks!(Item<'static, Rc<u8>>: Send);
#[cfg(feature = "tokio")]
mod owned_by_runs {
    use super::*;
    use requeue::{TaskItem, TaskTransaction};

    has!(TaskItem<Item1>: Send + Debug + std::ops::DerefMut<Target = Item1> + 'static);
    has!(TaskItem<u8>: Sync + Display);
    has!(TaskItem<u8, Leased<ByPriority>>: Send);
    lacks!(TaskItem<std::cell::Cell<u8>>: Sync);
    has!(TaskTransaction<Item1>: Send + Debug + std::ops::Deref<Target = Transaction<'static, Item1>> + 'static);
    has!(TaskTransaction<std::cell::Cell<u8>>: Sync);
}
has!(Items<'static, Item1>: Send + ExactSizeIterator + FusedIterator + Debug);
has!(Peek<'static, u8>: Send + Debug + std::ops::Deref<Target = u8>);
has!(Taken<'static, Item1>: Send + ExactSizeIterator + FusedIterator + Debug);

has!(Iter<Item1>: Send + FusedIterator + Debug + 'static);
has!(Drain<Item1>: Send + Iterator + Debug + 'static);
has!(DeadLetters<Item1>: Send + Sync + Iterator + Debug + 'static);
has!(DeadLetter<Item1>: Send + Clone + Debug + 'static);
has!(FairSnapshot<String>: Send + Sync + Debug + Default + 'static);
has!(Held: Send + Sync + Clone + Debug + 'static);
has!(Stats: Send + Sync + Clone + Debug + 'static);
has!(Builder<Item1>: Send + Clone + Debug + Default);
has!(Builder<Item1, ByKey<String, Item1>>: Send + Clone + Debug);
has!(Builder<Item1, Leased<ByPriority>>: Send + Clone + Debug);

has!(Fifo: Order<Item1> + Unleased + Copy + Debug);
has!(ByKey<String, Item1>: Order<Item1> + Keyed<Item1> + Unleased + Copy + Debug);
has!(ByPriority: Order<Item1> + Prioritized<Item1> + Unleased + Copy + Debug);
has!(Leased<Fifo>: Order<Item1> + Copy + Debug);
has!(Leased<ByKey<String, Item1>>: Order<Item1> + Keyed<Item1> + Copy + Debug);
has!(Leased<ByPriority>: Order<Item1> + Prioritized<Item1> + Copy + Debug);
lacks!(Leased<Fifo>: Unleased);
lacks!(Transaction<'static, u8, Leased<Fifo>>: Unleased);
lacks!(OwnedTransaction<u8, Leased<Fifo>>: Unleased);
lacks!((Transaction<'static, u8>, Transaction<'static, u8, Leased<Fifo>>): Unleased);

has!(requeue::PopError: Error + Copy + PartialEq + Send + Sync + 'static);
has!(PushError<u8>: Error + Copy + PartialEq + Send + Sync + 'static);
has!(PushError<Rc<u8>>: Error);
has!(requeue::Expired: Error + Copy + PartialEq + Send + Sync + 'static);
has!(requeue::Imbalance: Error + Copy + PartialEq + Send + Sync + 'static);

/// The contents of the modules.
#[allow(unused_imports)]
mod modules {
    use requeue::channel::{bounded, unbounded, Receiver, Sender};
    use requeue::error::{Expired, PopError, PushError, Reason, TransactionError};
    use requeue::fair::{ByKey, FairQueue, FairSnapshot, Keyed};
    use requeue::future::{
        OwnedPop, OwnedPush, OwnedPushBatch, PopAsync, PopBatchAsync, PushAsync, PushBatchAsync,
        StageAsync, StageBatchAsync, TakeAsync, TakeBatchAsync, WaitIdle,
    };
    use requeue::priority::{
        ByPriority, Prioritized, PriorityQueue, PushTo, PushWith, PushWithAsync, Ticket,
    };
    #[cfg(feature = "stream")]
    use requeue::stream::{PopStream, PushSink};
    use requeue::time::{Backoff, Clock, ManualClock, SystemClock};
    use requeue::workers::{
        Failure, Job, JobError, Others, Outcome, Report, WorkerState, WorkerStatus, Workers,
        WorkersBuilder,
    };
    #[cfg(feature = "tokio")]
    use requeue::workers::{TaskItem, TaskTransaction, Tasks};
}
