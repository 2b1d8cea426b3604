//! One commit over several queues.

use crate::raw::commit_together;
use crate::{Expired, Unleased};

/// Commits several transactions as one, and returns what each of them held.
///
/// The pushes of all of them become visible at once: a thread that has popped one of the items can pop all others
/// from their queues. The transactions may belong to the same queue, through different handles, and may be given in
/// any order. Dropping them instead, as a panic or an early return before this call does, aborts them all.
///
/// Takes a tuple of up to 8 transactions, of the same or different item types and orders, borrowed or
/// [owned](crate::OwnedTransaction), or a `Vec` of any number of transactions of one type; returns a tuple or a `Vec`
/// of the items of [each](crate::Taken).
///
/// Lock-free if each of the [commits](crate::guide::performance#progress) is; then a thread that stalls in it delays no other. Its cost
/// grows with the number of transactions, and so does that of a pop that runs into it.
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
///
/// With any number of queues:
///
/// ```
/// use requeue::{commit_all, Queue};
///
/// let queues: Vec<_> = (0..12).map(|_| Queue::unbounded()).collect();
/// let mut handles: Vec<_> = queues.iter().map(Queue::handle).collect();
/// let transactions: Vec<_> = handles.iter_mut().map(|handle| handle.begin()).collect();
/// for tx in &transactions {
///     tx.push("news")?;
/// }
/// commit_all(transactions);
/// assert!(queues.iter().all(|queue| queue.len() == 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// If a queue [leases](crate::Builder::leased) its items use [`try_commit_all()`]:
///
/// ```compile_fail,E0277
/// use requeue::{commit_all, Queue};
/// use std::time::Duration;
///
/// let orders = Queue::builder().leased(Duration::from_secs(60)).build();
/// let invoices = Queue::<u32>::unbounded();
/// orders.push(7)?;
/// let (mut from, mut to) = (orders.handle(), invoices.handle());
/// commit_all((from.begin(), to.begin())); // `Leased<Fifo>` is not `Unleased`
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn commit_all<C>(transactions: C) -> C::Taken
where
    C: Transactions,
    C: Unleased,
{
    transactions.commit_all()
}

/// Commits several transactions as one, as [`commit_all()`] does, unless an item held by one of them was taken back.
///
/// ```
/// use requeue::{try_commit_all, Expired, ManualClock, Queue};
/// use std::time::Duration;
///
/// let (clock, term) = (ManualClock::new(), Duration::from_secs(1));
/// let orders = Queue::builder().leased(term).clock(clock.clone()).build();
/// let invoices = Queue::unbounded();
/// orders.push(7)?;
///
/// let (mut from, mut to) = (orders.handle(), invoices.handle());
/// let (order, invoice) = (from.begin(), to.begin());
/// invoice.push(*order.pop()?)?;
/// clock.advance(term);
/// assert_eq!(orders.pop()?, 7);
/// assert_eq!(try_commit_all((order, invoice)).unwrap_err(), Expired);
/// assert!(invoices.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`Expired`] if an item was taken back; then all are aborted.
pub fn try_commit_all<C: Transactions>(mut transactions: C) -> Result<C::Taken, Expired> {
    transactions.close_leases()?;
    Ok(transactions.commit_all())
}

/// A tuple of transactions for [`commit_all()`] and [`try_commit_all()`], or a `Vec` of them. Sealed.
///
/// ```
/// use requeue::{Expired, Transactions};
///
/// fn both<C: Transactions>(transactions: C) -> Result<C::Taken, Expired> {
///     requeue::try_commit_all(transactions)
/// }
/// let (mut a, mut b) = (
///     requeue::Queue::<u8>::unbounded().handle(),
///     requeue::Queue::<char>::unbounded().handle(),
/// );
/// assert!(both((a.begin(), b.begin())).is_ok());
/// ```
pub trait Transactions: sealed::CommitAll {}

pub(super) mod sealed {
    use crate::raw::Party;
    use crate::Expired;

    pub trait CommitAll {
        /// A tuple or a `Vec` of the taken items, one element for each transaction.
        type Taken;
        /// Ensures that nothing is taken back any more.
        fn close_leases(&mut self) -> Result<(), Expired>;
        /// Commits, after the lease tables, if any, were closed.
        fn commit_all(self) -> Self::Taken;
    }

    /// One of several transactions that commit together.
    pub trait Member {
        /// The items it held.
        type Taken;
        /// Ensures that nothing is taken back any more.
        fn close_leases(&mut self) -> Result<(), Expired>;
        fn party(&mut self) -> &mut dyn Party;
        /// Ends the transaction after [`Party::conclude`]. Nothing is aborted any more. Also returns the copies of leased items,
        /// whose destructors are user code.
        fn into_taken(self) -> (Self::Taken, impl Sized);
    }
}

use sealed::{CommitAll, Member};

/// Commits transactions whose lease tables were closed.
#[cfg(feature = "workers")]
pub(crate) fn commit_closed<C: Transactions>(transactions: C) -> C::Taken {
    transactions.commit_all()
}

impl<X: Unleased> Unleased for Vec<X> {}

impl<M: Member> CommitAll for Vec<M> {
    type Taken = Vec<M::Taken>;

    fn close_leases(&mut self) -> Result<(), Expired> {
        self.iter_mut().try_for_each(M::close_leases)
    }

    fn commit_all(mut self) -> Self::Taken {
        let mut parties: Vec<_> = self.iter_mut().map(M::party).collect();
        // Dropped last, as below.
        let _decided = commit_together(&mut parties);
        drop(parties);
        let (taken, copies): (_, Vec<_>) = self.into_iter().map(M::into_taken).unzip();
        drop(copies);
        taken
    }
}

impl<M: Member> Transactions for Vec<M> {}

macro_rules! tuples {
    ($($member:ident $tx:ident),+) => {
        impl<$($member: Unleased),+> Unleased for ($($member,)+) {}

        impl<$($member: Member),+> CommitAll for ($($member,)+) {
            type Taken = ($($member::Taken,)+);

            fn close_leases(&mut self) -> Result<(), Expired> {
                let ($($tx,)+) = self;
                $($tx.close_leases()?;)+
                Ok(())
            }

            fn commit_all(self) -> Self::Taken {
                let ($(mut $tx,)+) = self;
                // Dropped last: from here on nothing is aborted any more, even on panic.
                let _decided = commit_together(&mut [$($tx.party()),+]);
                $(let $tx = $tx.into_taken();)+
                drop(($($tx.1,)+));
                ($($tx.0,)+)
            }
        }

        impl<$($member: Member),+> Transactions for ($($member,)+) {}
    };
}

tuples!(A a);
tuples!(A a, B b);
tuples!(A a, B b, C c);
tuples!(A a, B b, C c, D d);
tuples!(A a, B b, C c, D d, E e);
tuples!(A a, B b, C c, D d, E e, F f);
tuples!(A a, B b, C c, D d, E e, F f, G g);
tuples!(A a, B b, C c, D d, E e, F f, G g, H h);
