//! One commit over several queues of a store.

use super::{write, Member};
use crate::error::StoreError;
use crate::log::Durability;
use crate::order::{Order, RamTx};
use crate::{Taken, Transaction};

/// A tuple of up to eight transactions of one store, or a `Vec` of them, for [`commit_all`]. Sealed.
#[allow(private_bounds)] // sealed
pub trait Transactions: sealed::CommitAll {}

impl<C: sealed::CommitAll> Transactions for C {}

mod sealed {
    use crate::{Durability, StoreError};

    pub trait CommitAll {
        type Taken;
        /// Without a durability: that of the store.
        fn commit_all(self, durability: Option<Durability>) -> Result<Self::Taken, StoreError>;
    }
}

use sealed::CommitAll;

/// Commits transactions of several queues of one store as one: in one write, and visible at one instant. Waits as the
/// durability of the store asks.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let store = requeue_durable::Store::open(directory.path())?;
/// use requeue_durable::commit_all;
///
/// let (orders, invoices) = (store.queue("orders")?, store.queue("invoices")?);
/// orders.push(7)?;
/// let (mut from, mut to) = (orders.handle(), invoices.handle());
/// let (order, invoice) = (from.begin(), to.begin());
/// let number = *order.pop()?;
/// invoice.push(format!("invoice for order {number}"))?;
/// commit_all((order, invoice))?;
/// assert_eq!((orders.len(), invoices.len()), (0, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// As for [`Transaction::commit`]; all were aborted.
///
/// # Panics
///
/// If the queues are of different stores, which have no common log.
pub fn commit_all<C: Transactions>(transactions: C) -> Result<C::Taken, StoreError> {
    transactions.commit_all(None)
}

/// Commits as [`commit_all`] does, with a durability of its own.
///
/// # Errors
///
/// As for [`commit_all`].
///
/// # Panics
///
/// As for [`commit_all`].
pub fn commit_all_with<C: Transactions>(
    transactions: C,
    durability: Durability,
) -> Result<C::Taken, StoreError> {
    transactions.commit_all(Some(durability))
}

/// Commits in memory what was prepared.
pub(crate) fn conclude_all<C: requeue::Transactions>(prepared: C) -> C::Taken {
    let taken = requeue::try_commit_all(prepared);
    taken.unwrap_or_else(|_| unreachable!("the transactions were prepared"))
}

impl<'h, T: Send + 'static, O: Order<T>> CommitAll for Vec<Transaction<'h, T, O>> {
    type Taken = Vec<Taken<'h, T, O>>;

    fn commit_all(mut self, durability: Option<Durability>) -> Result<Self::Taken, StoreError> {
        let members = self.iter_mut().map(|tx| tx.core_mut() as &mut dyn Member);
        write(&mut members.collect::<Vec<_>>(), durability)?;
        let (rams, homes): (Vec<RamTx<T, O>>, Vec<_>) =
            self.into_iter().map(Transaction::split).unzip();
        let taken = conclude_all(rams).into_iter().zip(homes);
        Ok(taken.map(|(ram, home)| Taken::new(ram, home)).collect())
    }
}

macro_rules! tuples {
    ($($T:ident $O:ident $tx:ident $taken:ident),+) => {
        impl<'h, $($T: Send + 'static, $O: Order<$T>),+> CommitAll for ($(Transaction<'h, $T, $O>,)+) {
            type Taken = ($(Taken<'h, $T, $O>,)+);

            fn commit_all(self, durability: Option<Durability>) -> Result<Self::Taken, StoreError> {
                let ($(mut $tx,)+) = self;
                write(&mut [$($tx.core_mut()),+], durability)?;
                $(let $tx = $tx.split();)+
                let ($($taken,)+) = conclude_all(($($tx.0,)+));
                Ok(($(Taken::new($taken, $tx.1),)+))
            }
        }
    };
}

tuples!(A P a at);
tuples!(A P a at, B Q b bt);
tuples!(A P a at, B Q b bt, C R c ct);
tuples!(A P a at, B Q b bt, C R c ct, D S d dt);
tuples!(A P a at, B Q b bt, C R c ct, D S d dt, E U e et);
tuples!(A P a at, B Q b bt, C R c ct, D S d dt, E U e et, F V f ft);
tuples!(A P a at, B Q b bt, C R c ct, D S d dt, E U e et, F V f ft, G W g gt);
tuples!(A P a at, B Q b bt, C R c ct, D S d dt, E U e et, F V f ft, G W g gt, H X h ht);
