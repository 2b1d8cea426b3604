//! One commit over several queues.

use crate::raw::commit_together;
use crate::{Taken, Transaction};

/// Commits several transactions as one, and returns what each of them held.
///
/// The pushes of all of them become visible at once: whoever has popped one of the items finds all
/// others in their queues. The transactions may be of the same queue, through different handles, and
/// may be named in any order. Dropping them instead, as a panic or an early return before this call
/// does, aborts them all.
///
/// Wait-free but for allocation, and for waking those who wait; a thread that stalls in it delays
/// nobody who does not wait. Works for 2 to 8
/// transactions, of the same or different item types.
///
/// ```
/// use requeue::{commit_all, Queue};
///
/// let (orders, invoices) = (Queue::unbounded(), Queue::unbounded());
/// orders.push(7)?;
/// let (mut from, mut to) = (orders.handle(), invoices.handle());
///
/// let (order, invoice) = (from.begin(), to.begin());
/// let number = *order.pop()?;
/// invoice.push(format!("invoice for order {number}"))?;
/// commit_all((order, invoice));
///
/// assert!(orders.is_empty());
/// assert_eq!(invoices.pop()?, "invoice for order 7");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn commit_all<C: Transactions>(transactions: C) -> C::Taken {
    transactions.commit_all()
}

/// A tuple of transactions for [`commit_all()`]. Sealed.
///
/// ```
/// fn both<C: requeue::Transactions>(transactions: C) -> C::Taken {
///     requeue::commit_all(transactions)
/// }
/// let (mut a, mut b) = (
///     requeue::Queue::<u8>::unbounded().handle(),
///     requeue::Queue::<char>::unbounded().handle(),
/// );
/// both((a.begin(), b.begin()));
/// ```
pub trait Transactions: sealed::CommitAll {}

mod sealed {
    pub trait CommitAll {
        /// A tuple of [`Taken`](crate::Taken), one for each transaction.
        type Taken;
        fn commit_all(self) -> Self::Taken;
    }
}

macro_rules! tuples {
    ($($item:ident $tx:ident $lifetime:lifetime),+) => {
        impl<$($lifetime,)+ $($item),+> sealed::CommitAll for ($(Transaction<$lifetime, $item>,)+) {
            type Taken = ($(Taken<$lifetime, $item>,)+);

            fn commit_all(self) -> Self::Taken {
                let ($(mut $tx,)+) = self;
                commit_together(&mut [$($tx.party()),+]);
                $(let $tx = $tx.into_taken();)+
                $($tx.0.wake_for($tx.1);)+
                ($($tx.0,)+)
            }
        }

        impl<$($lifetime,)+ $($item),+> Transactions for ($(Transaction<$lifetime, $item>,)+) {}
    };
}

tuples!(A a 'a, B b 'b);
tuples!(A a 'a, B b 'b, C c 'c);
tuples!(A a 'a, B b 'b, C c 'c, D d 'd);
tuples!(A a 'a, B b 'b, C c 'c, D d 'd, E e 'e);
tuples!(A a 'a, B b 'b, C c 'c, D d 'd, E e 'e, F f 'f);
tuples!(A a 'a, B b 'b, C c 'c, D d 'd, E e 'e, F f 'f, G g 'g);
tuples!(A a 'a, B b 'b, C c 'c, D d 'd, E e 'e, F f 'f, G g 'g, H h 'h);
