//! Queues of all kinds, and their handles and transactions.

use super::disciplines::Key;
use super::item::Tracked;
use super::open::Worker;
use super::wishes::{Call, Pusher, Said};
use requeue::{
    ByPriority, FairQueue, Fifo, Handle, Order, PriorityQueue, Queue, Taken, Transaction,
};

/// Something of a queue of one of the kinds.
#[derive(Clone, Copy)]
pub(crate) enum Any<A, F, P> {
    Plain(A),
    Fair(F),
    Priority(P),
}

/// Does the same whatever the kind is. In the second form the result is of the same kind.
///
/// ```ignore
/// on!(queue, queue => queue.len())
/// on!(queue, Same(queue) => Same(queue.handle()))
/// ```
macro_rules! on {
    ($any:expr, $same:ident($it:ident) => $does:expr) => {
        match $any {
            $crate::model::queues::Any::Plain($it) => {
                use $crate::model::queues::Any::Plain as $same;
                $does
            }
            $crate::model::queues::Any::Fair($it) => {
                use $crate::model::queues::Any::Fair as $same;
                $does
            }
            $crate::model::queues::Any::Priority($it) => {
                use $crate::model::queues::Any::Priority as $same;
                $does
            }
        }
    };
    ($any:expr, $it:pat => $does:expr) => {
        match $any {
            $crate::model::queues::Any::Plain($it) => $does,
            $crate::model::queues::Any::Fair($it) => $does,
            $crate::model::queues::Any::Priority($it) => $does,
        }
    };
}
pub(super) use on;

impl<A, F, P> Any<A, F, P> {
    pub(super) fn as_ref(&self) -> Any<&A, &F, &P> {
        on!(self, Same(it) => Same(it))
    }
}

/// The order of fair queues.
type ByKey<const PAD: usize> = requeue::ByKey<Key, Tracked<PAD>>;

pub(crate) type AnyQueue<const PAD: usize> =
    Any<Queue<Tracked<PAD>>, FairQueue<Key, Tracked<PAD>>, PriorityQueue<Tracked<PAD>>>;

pub(crate) type AnyWorker<const PAD: usize> =
    Any<Worker<PAD, Fifo>, Worker<PAD, ByKey<PAD>>, Worker<PAD, ByPriority>>;

pub(crate) type AnyTransaction<'h, const PAD: usize> = Any<
    Transaction<'h, Tracked<PAD>>,
    Transaction<'h, Tracked<PAD>, ByKey<PAD>>,
    Transaction<'h, Tracked<PAD>, ByPriority>,
>;

/// A borrowed transaction.
pub(crate) type Tx<'t, 'h, const PAD: usize> = Any<
    &'t Transaction<'h, Tracked<PAD>>,
    &'t Transaction<'h, Tracked<PAD>, ByKey<PAD>>,
    &'t Transaction<'h, Tracked<PAD>, ByPriority>,
>;

pub(crate) type AnyTaken<'h, const PAD: usize> = Any<
    Taken<'h, Tracked<PAD>>,
    Taken<'h, Tracked<PAD>, ByKey<PAD>>,
    Taken<'h, Tracked<PAD>, ByPriority>,
>;

/// The order of a kind of queues, and how they push with a priority. Most know none.
pub(crate) trait Kind<const PAD: usize>: Order<Tracked<PAD>> {
    /// Pushes without a handle.
    fn push_direct(queue: &Queue<Tracked<PAD>, Self>, _: Call, item: Tracked<PAD>) -> Said<PAD> {
        Ok(queue.push(item).map(|()| None)?)
    }

    fn push(handle: &mut Handle<Tracked<PAD>, Self>, _: Call, item: Tracked<PAD>) -> Said<PAD> {
        Ok(handle.push(item).map(|()| None)?)
    }

    fn stage(tx: &Transaction<'_, Tracked<PAD>, Self>, _: Call, item: Tracked<PAD>) -> Said<PAD> {
        Ok(tx.push(item).map(|()| None)?)
    }
}

impl<const PAD: usize> Kind<PAD> for Fifo {}

impl<const PAD: usize> Kind<PAD> for ByKey<PAD> {}

impl<const PAD: usize> Kind<PAD> for ByPriority {
    fn push_direct(queue: &Queue<Tracked<PAD>, Self>, call: Call, item: Tracked<PAD>) -> Said<PAD> {
        queue.push_so(call, item)
    }

    fn push(handle: &mut Handle<Tracked<PAD>, Self>, call: Call, item: Tracked<PAD>) -> Said<PAD> {
        handle.push_so(call, item)
    }

    fn stage(
        tx: &Transaction<'_, Tracked<PAD>, Self>,
        call: Call,
        item: Tracked<PAD>,
    ) -> Said<PAD> {
        tx.push_so(call, item)
    }
}
