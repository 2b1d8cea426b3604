//! Other queues that the runs of a pool commit to.

use crate::backend::Backend;
use crate::error::TransactionError;
use crate::order::Order;
use crate::transaction::commit_closed;
use crate::{Handle, Queue, Transaction};
use std::sync::Arc;

/// The other queues of [`run_with`](crate::WorkersBuilder::run_with): a reference to one, or a tuple of up to four.
///
/// ```
/// use requeue::workers::Others;
/// use requeue::Queue;
///
/// fn takes(_: impl Others) {}
/// let (texts, numbers) = (Queue::<String>::unbounded(), Queue::<u32>::unbounded());
/// takes(&texts);
/// takes((&texts, &numbers));
/// ```
pub trait Others {
    /// A worker's handles of these queues.
    type Handles: Send + 'static;
    /// A run's transactions of these queues.
    type Transactions<'h>;

    /// Makes the handles of a worker of this name, also after the references are gone.
    fn handles(&self) -> impl Fn(&Arc<str>) -> Self::Handles + Send + Sync + 'static;

    /// Begins the transactions of a run.
    fn begin(handles: &mut Self::Handles) -> Self::Transactions<'_>;
}

/// [`Others`] whose transactions can be committed together with those of a queue.
pub trait CommitWith<B: Backend>: Others {
    /// Commits all of them or none, and begins the next transaction in `tx`. Returns whether one of them has given up an
    /// item.
    ///
    /// # Errors
    ///
    /// If they cannot be committed. Then `tx` still holds its items.
    fn commit_with(tx: &mut B::Tx, others: Self::Transactions<'_>) -> Result<bool, B::Error>;
}

impl<U: Send + 'static, P: Order<U> + 'static> Others for &Queue<U, P> {
    type Handles = Handle<U, P>;
    type Transactions<'h> = Transaction<'h, U, P>;

    fn handles(&self) -> impl Fn(&Arc<str>) -> Self::Handles + Send + Sync + 'static {
        let queue = Queue::clone(self);
        move |worker| queue.named_handle(Arc::clone(worker))
    }

    fn begin(handle: &mut Self::Handles) -> Self::Transactions<'_> {
        handle.begin()
    }
}

impl<T: Send, O: Order<T>, U: Send + 'static, P: Order<U> + 'static> CommitWith<Queue<T, O>>
    for &Queue<U, P>
{
    fn commit_with(
        tx: &mut <Queue<T, O> as Backend>::Tx,
        other: Self::Transactions<'_>,
    ) -> Result<bool, TransactionError<T>> {
        <(Self,)>::commit_with(tx, (other,))
    }
}

macro_rules! tuples {
    ($($others:ident $item:ident $order:ident $queue:ident),+) => {
        impl<$($others: Others),+> Others for ($($others,)+) {
            type Handles = ($($others::Handles,)+);
            type Transactions<'h> = ($($others::Transactions<'h>,)+);

            fn handles(&self) -> impl Fn(&Arc<str>) -> Self::Handles + Send + Sync + 'static {
                let ($($queue,)+) = self;
                $(let $queue = $queue.handles();)+
                move |worker| ($($queue(worker),)+)
            }

            fn begin(($($queue,)+): &mut Self::Handles) -> Self::Transactions<'_> {
                ($($others::begin($queue),)+)
            }
        }

        impl<T: Send, O: Order<T>, $($item: Send + 'static, $order: Order<$item> + 'static),+>
            CommitWith<Queue<T, O>> for ($(&Queue<$item, $order>,)+)
        {
            fn commit_with(
                tx: &mut <Queue<T, O> as Backend>::Tx,
                others: Self::Transactions<'_>,
            ) -> Result<bool, TransactionError<T>> {
                let ($(mut $queue,)+) = others;
                tx.prepare()$(.and_then(|()| $queue.close_leases()))+
                    .map_err(TransactionError::Commit)?;
                let given_up = tx.has_given_up() $(| $queue.has_given_up())+;
                tx.commit_by(|tx| commit_closed((tx, $($queue,)+)).0);
                Ok(given_up)
            }
        }
    };
}

tuples!(A X AO a);
tuples!(A X AO a, B Y BO b);
tuples!(A X AO a, B Y BO b, C Z CO c);
tuples!(A X AO a, B Y BO b, C Z CO c, D W DO d);
