//! Other queues that the workers of a pool commit to.

use crate::order::Order;
use crate::{Expired, Handle, Queue, Transaction};
use std::sync::Arc;

/// The other queues of [`run_with`](crate::WorkersBuilder::run_with): a reference to one, or a tuple of up to four. Sealed.
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
pub trait Others: sealed::Others {}

pub(super) mod sealed {
    use super::{Arc, Expired, Order, Transaction};

    pub trait Others {
        /// A worker's handles of these queues.
        type Handles: Send + 'static;
        /// A run's transactions of these queues.
        type Transactions<'h>;

        fn handles(&self, name: &Arc<str>) -> Self::Handles;
        fn begin(handles: &mut Self::Handles) -> Self::Transactions<'_>;
        /// Closes their lease tables: no item can be reclaimed any more. Returns whether the run has retried or failed an item
        /// of one of them.
        fn close_leases(others: &mut Self::Transactions<'_>) -> Result<bool, Expired>;
        /// Commits them together with another transaction, whose lease table is closed too.
        fn commit_with<T, O: Order<T>>(
            tx: Transaction<'_, T, O>,
            others: Self::Transactions<'_>,
        ) -> Result<(), Expired>;
    }
}

impl<U: Send + 'static, P: Order<U> + 'static> sealed::Others for &Queue<U, P> {
    type Handles = Handle<U, P>;
    type Transactions<'h> = Transaction<'h, U, P>;

    fn handles(&self, name: &Arc<str>) -> Self::Handles {
        self.named_handle(Arc::clone(name))
    }

    fn begin(handle: &mut Self::Handles) -> Self::Transactions<'_> {
        handle.begin()
    }

    fn close_leases(other: &mut Self::Transactions<'_>) -> Result<bool, Expired> {
        other.close_leases()?;
        Ok(other.has_given_up())
    }

    fn commit_with<T, O: Order<T>>(
        tx: Transaction<'_, T, O>,
        other: Self::Transactions<'_>,
    ) -> Result<(), Expired> {
        crate::try_commit_all((tx, other)).map(drop)
    }
}

impl<U: Send + 'static, P: Order<U> + 'static> Others for &Queue<U, P> {}

macro_rules! tuples {
    ($($item:ident $order:ident $queue:ident),+) => {
        impl<$($item: Send + 'static, $order: Order<$item> + 'static),+> sealed::Others
            for ($(&Queue<$item, $order>,)+)
        {
            type Handles = ($(Handle<$item, $order>,)+);
            type Transactions<'h> = ($(Transaction<'h, $item, $order>,)+);

            fn handles(&self, name: &Arc<str>) -> Self::Handles {
                let ($($queue,)+) = self;
                ($($queue.named_handle(Arc::clone(name)),)+)
            }

            fn begin(($($queue,)+): &mut Self::Handles) -> Self::Transactions<'_> {
                ($($queue.begin(),)+)
            }

            fn close_leases(($($queue,)+): &mut Self::Transactions<'_>) -> Result<bool, Expired> {
                $($queue.close_leases()?;)+
                Ok(false $(| $queue.has_given_up())+)
            }

            fn commit_with<T, O: Order<T>>(
                tx: Transaction<'_, T, O>,
                ($($queue,)+): Self::Transactions<'_>,
            ) -> Result<(), Expired> {
                crate::try_commit_all((tx, $($queue,)+)).map(drop)
            }
        }

        impl<$($item: Send + 'static, $order: Order<$item> + 'static),+> Others
            for ($(&Queue<$item, $order>,)+)
        {
        }
    };
}

tuples!(A AO a);
tuples!(A AO a, B BO b);
tuples!(A AO a, B BO b, C CO c);
tuples!(A AO a, B BO b, C CO c, D DO d);
