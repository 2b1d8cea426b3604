//! The other queues of a run.

use super::failure::drop_committed;
use crate::error::StoreError;
use crate::order::Order;
use crate::{commit_all, DurableQueue, Handle, Transaction};
use std::sync::Arc;

/// The other queues of [`WorkersBuilder::run_with`](crate::WorkersBuilder::run_with): a reference to one, or a tuple. Sealed.
pub trait Others: sealed::Sealed {
    /// The queues.
    #[doc(hidden)]
    type Queues: Send + Sync + 'static;
    #[doc(hidden)]
    type Handles;
    /// Their transactions: one, or a tuple.
    type Transactions<'h>;

    #[doc(hidden)]
    fn queues(self) -> Self::Queues;
    #[doc(hidden)]
    fn handles(queues: &Self::Queues, name: &Arc<str>) -> Self::Handles;
    #[doc(hidden)]
    fn begin(handles: &mut Self::Handles) -> Self::Transactions<'_>;
    #[doc(hidden)]
    fn commit<T: Send + 'static, O: Order<T>>(
        tx: Transaction<'_, T, O>,
        others: Self::Transactions<'_>,
    ) -> Result<(), StoreError>;
}

mod sealed {
    pub trait Sealed {}
}

impl<A: Send + 'static, P: Order<A>> sealed::Sealed for &DurableQueue<A, P> {}

impl<A: Send + 'static, P: Order<A>> Others for &DurableQueue<A, P> {
    type Queues = DurableQueue<A, P>;
    type Handles = Handle<A, P>;
    type Transactions<'h> = Transaction<'h, A, P>;

    fn queues(self) -> Self::Queues {
        self.clone()
    }

    fn handles(queue: &Self::Queues, name: &Arc<str>) -> Self::Handles {
        queue.named_handle(Arc::clone(name))
    }

    fn begin(handle: &mut Self::Handles) -> Self::Transactions<'_> {
        handle.begin()
    }

    fn commit<T: Send + 'static, O: Order<T>>(
        tx: Transaction<'_, T, O>,
        other: Self::Transactions<'_>,
    ) -> Result<(), StoreError> {
        commit_all((tx, other)).map(drop_committed)
    }
}

macro_rules! tuples {
    ($($T:ident $O:ident $queue:ident),+) => {
        impl<$($T: Send + 'static, $O: Order<$T>),+> sealed::Sealed for ($(&DurableQueue<$T, $O>,)+) {}

        impl<$($T: Send + 'static, $O: Order<$T>),+> Others for ($(&DurableQueue<$T, $O>,)+) {
            type Queues = ($(DurableQueue<$T, $O>,)+);
            type Handles = ($(Handle<$T, $O>,)+);
            type Transactions<'h> = ($(Transaction<'h, $T, $O>,)+);

            fn queues(self) -> Self::Queues {
                let ($($queue,)+) = self;
                ($($queue.clone(),)+)
            }

            fn handles(($($queue,)+): &Self::Queues, name: &Arc<str>) -> Self::Handles {
                ($($queue.named_handle(Arc::clone(name)),)+)
            }

            fn begin(($($queue,)+): &mut Self::Handles) -> Self::Transactions<'_> {
                ($($queue.begin(),)+)
            }

            fn commit<T: Send + 'static, O: Order<T>>(
                tx: Transaction<'_, T, O>,
                ($($queue,)+): Self::Transactions<'_>,
            ) -> Result<(), StoreError> {
                commit_all((tx, $($queue),+)).map(drop_committed)
            }
        }
    };
}

tuples!(A P a);
tuples!(A P a, B Q b);
tuples!(A P a, B Q b, C R c);
tuples!(A P a, B Q b, C R c, D S d);
