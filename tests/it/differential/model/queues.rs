//! Queues of all kinds, and their handles and transactions.

use super::disciplines::Key;
use super::item::Tracked;
use super::open::Worker;
use super::settings::{ticks, Ticks};
use super::wishes::{Call, Pusher, Said};
use requeue::{
    Builder, ByPriority, Fifo, Handle, Keyed, Leased, Order, Prioritized, Queue, Taken, Transaction,
};
use std::time::Instant;

/// A value of one of the kinds of queue.
#[derive(Clone, Copy)]
pub(crate) enum Any<A, F, P> {
    Plain(A),
    Fair(F),
    Priority(P),
}

/// Runs the same code for each kind. In the second form the result is of the same kind.
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

/// The orders of the queues of a case: either all lease their items, or none does.
pub(crate) trait Family<const PAD: usize>: Sized {
    type Plain: Kind<PAD>;
    type Fair: Kind<PAD> + Keyed<Tracked<PAD>, Key = Key>;
    type Priority: Kind<PAD> + Prioritized<Tracked<PAD>>;

    fn plain(
        builder: Builder<Tracked<PAD>>,
        lease: Option<Ticks>,
    ) -> Builder<Tracked<PAD>, Self::Plain>;

    fn fair(
        builder: Builder<Tracked<PAD>, ByKey<PAD>>,
        lease: Option<Ticks>,
    ) -> Builder<Tracked<PAD>, Self::Fair>;

    fn by_priority(
        builder: Builder<Tracked<PAD>, ByPriority>,
        lease: Option<Ticks>,
    ) -> Builder<Tracked<PAD>, Self::Priority>;
}

/// Queues without leases.
#[derive(Debug)]
pub(crate) struct Kept;

/// Queues that lease their items.
#[derive(Debug)]
pub(crate) struct Lent;

macro_rules! families {
    ($($family:ident: $plain:ty, $fair:ty, $priority:ty, $builder:ident, $lease:pat => $leased:expr;)+) => {$(
        impl<const PAD: usize> Family<PAD> for $family {
            type Plain = $plain;
            type Fair = $fair;
            type Priority = $priority;

            fn plain($builder: Builder<Tracked<PAD>>, $lease: Option<Ticks>) -> Builder<Tracked<PAD>, $plain> {
                $leased
            }

            fn fair($builder: Builder<Tracked<PAD>, ByKey<PAD>>, $lease: Option<Ticks>) -> Builder<Tracked<PAD>, $fair> {
                $leased
            }

            fn by_priority($builder: Builder<Tracked<PAD>, ByPriority>, $lease: Option<Ticks>) -> Builder<Tracked<PAD>, $priority> {
                $leased
            }
        }
    )+};
}

families! {
    Kept: Fifo, ByKey<PAD>, ByPriority, builder, _ => builder;
    Lent: Leased<Fifo>, Leased<ByKey<PAD>>, Leased<ByPriority>,
        builder, lease => builder.leased(ticks(lease.expect("a lease")));
}

pub(crate) type AnyQueue<const PAD: usize, F> = Any<
    Queue<Tracked<PAD>, <F as Family<PAD>>::Plain>,
    Queue<Tracked<PAD>, <F as Family<PAD>>::Fair>,
    Queue<Tracked<PAD>, <F as Family<PAD>>::Priority>,
>;

pub(crate) type AnyWorker<const PAD: usize, F> = Any<
    Worker<PAD, <F as Family<PAD>>::Plain>,
    Worker<PAD, <F as Family<PAD>>::Fair>,
    Worker<PAD, <F as Family<PAD>>::Priority>,
>;

pub(crate) type AnyTransaction<'h, const PAD: usize, F> = Any<
    Transaction<'h, Tracked<PAD>, <F as Family<PAD>>::Plain>,
    Transaction<'h, Tracked<PAD>, <F as Family<PAD>>::Fair>,
    Transaction<'h, Tracked<PAD>, <F as Family<PAD>>::Priority>,
>;

/// A borrowed transaction.
pub(crate) type Tx<'t, 'h, const PAD: usize, F> = Any<
    &'t Transaction<'h, Tracked<PAD>, <F as Family<PAD>>::Plain>,
    &'t Transaction<'h, Tracked<PAD>, <F as Family<PAD>>::Fair>,
    &'t Transaction<'h, Tracked<PAD>, <F as Family<PAD>>::Priority>,
>;

pub(crate) type AnyTaken<'h, const PAD: usize, F> = Any<
    Taken<'h, Tracked<PAD>, <F as Family<PAD>>::Plain>,
    Taken<'h, Tracked<PAD>, <F as Family<PAD>>::Fair>,
    Taken<'h, Tracked<PAD>, <F as Family<PAD>>::Priority>,
>;

/// The order of a kind of queue, its pushes with a priority, which most kinds lack, and its recovery of items.
pub(crate) trait Kind<const PAD: usize>: Order<Tracked<PAD>> {
    /// Pushes without a handle.
    fn push_direct(queue: &Queue<Tracked<PAD>, Self>, _: Call, item: Tracked<PAD>) -> Said<PAD> {
        queue.push(item).map(|()| None)
    }

    fn push(handle: &mut Handle<Tracked<PAD>, Self>, _: Call, item: Tracked<PAD>) -> Said<PAD> {
        handle.push(item).map(|()| None)
    }

    fn stage(tx: &Transaction<'_, Tracked<PAD>, Self>, _: Call, item: Tracked<PAD>) -> Said<PAD> {
        tx.push(item).map(|()| None)
    }

    fn recover(_: &Queue<Tracked<PAD>, Self>, _: &str, _: Instant) -> usize {
        unreachable!("nothing is leased")
    }
}

impl<const PAD: usize> Kind<PAD> for Fifo {}

impl<const PAD: usize> Kind<PAD> for ByKey<PAD> {}

macro_rules! by_priority {
    ($($order:ty { $($recover:item)? })+) => {$(
        impl<const PAD: usize> Kind<PAD> for $order {
            fn push_direct(queue: &Queue<Tracked<PAD>, Self>, call: Call, item: Tracked<PAD>) -> Said<PAD> {
                queue.push_so(call, item)
            }

            fn push(handle: &mut Handle<Tracked<PAD>, Self>, call: Call, item: Tracked<PAD>) -> Said<PAD> {
                handle.push_so(call, item)
            }

            fn stage(tx: &Transaction<'_, Tracked<PAD>, Self>, call: Call, item: Tracked<PAD>) -> Said<PAD> {
                tx.push_so(call, item)
            }

            $($recover)?
        }
    )+};
}

by_priority! {
    ByPriority {}
    Leased<ByPriority> {
        fn recover(queue: &Queue<Tracked<PAD>, Self>, worker: &str, before: Instant) -> usize {
            queue.recover(worker, before)
        }
    }
}

impl<const PAD: usize> Kind<PAD> for Leased<Fifo> {
    fn recover(queue: &Queue<Tracked<PAD>, Self>, worker: &str, before: Instant) -> usize {
        queue.recover(worker, before)
    }
}

impl<const PAD: usize> Kind<PAD> for Leased<ByKey<PAD>> {
    fn recover(queue: &Queue<Tracked<PAD>, Self>, worker: &str, before: Instant) -> usize {
        queue.recover(worker, before)
    }
}
