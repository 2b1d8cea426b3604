//! The items of a committed transaction.

use crate::core::pool::CheckedOut;
use crate::core::CellOf;
use crate::order::Order;
use crate::{Fifo, OwnedTransaction};
use std::iter::FusedIterator;

/// The committed items that remain in a cell, which is borrowed or owned.
macro_rules! taken {
    ($(#[$on:meta])* $taken:ident<$($lifetime:lifetime,)? T, O>, $cell:ty) => {
        $(#[$on])*
        pub struct $taken<$($lifetime,)? T, O: Order<T> = Fifo> {
            cell: $cell,
            len: usize,
        }

        impl<$($lifetime,)? T, O: Order<T>> $taken<$($lifetime,)? T, O> {
            #[inline]
            pub(super) fn new(cell: $cell, len: usize) -> Self {
                Self { cell, len }
            }
        }

        impl<$($lifetime,)? T, O: Order<T>> Iterator for $taken<$($lifetime,)? T, O> {
            type Item = T;

            #[inline]
            fn next(&mut self) -> Option<T> {
                let item = self.cell.take_out()?;
                self.len -= 1;
                Some(item)
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                (self.len, Some(self.len))
            }
        }

        impl<$($lifetime,)? T, O: Order<T>> Drop for $taken<$($lifetime,)? T, O> {
            #[inline]
            fn drop(&mut self) {
                if self.len > 0 {
                    self.cell.drop_taken();
                }
            }
        }

        impl<$($lifetime,)? T, O: Order<T>> ExactSizeIterator for $taken<$($lifetime,)? T, O> {}
        impl<$($lifetime,)? T, O: Order<T>> FusedIterator for $taken<$($lifetime,)? T, O> {}

        debug_struct!([$($lifetime,)? T, O: Order<T>] $taken<$($lifetime,)? T, O>, |taken| len: taken.len());
    };
}

taken! {
    /// The items that a committed transaction held, by value, in the order of the pops.
    ///
    /// It borrows the handle, where the items are stored. Dropping it drops the remaining items; after a `mem::forget`
    /// they are dropped when the handle is used again or dropped. Nothing goes back to the queue.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// let mut handle = queue.handle();
    /// handle.push_batch([1, 2])?;
    /// let tx = handle.begin();
    /// tx.pop_batch(2);
    /// let taken = tx.commit();
    /// assert_eq!(taken.len(), 2);
    /// assert_eq!(taken.collect::<Vec<_>>(), [1, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    Taken<'h, T, O>, &'h mut CellOf<T, O>
}

taken! {
    /// The items that a committed [`OwnedTransaction`] held, by value, in the order of the pops.
    ///
    /// It owns the handle of the transaction, and gives it back when it is dropped with the remaining items. After a
    /// `mem::forget` neither they nor the handle are ever dropped.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push("job")?;
    /// let delivery = queue.begin_owned();
    /// delivery.pop()?;
    /// let mut taken = delivery.commit();
    /// assert_eq!(taken.next(), Some("job"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    OwnedTaken<T, O>, CheckedOut<T, O>
}

impl<T, O: Order<T>> OwnedTaken<T, O> {
    /// Drops the remaining items, and begins the next transaction with the same handle.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// let delivery = queue.begin_owned();
    /// delivery.push(1)?;
    /// let delivery = delivery.commit().begin_owned();
    /// assert_eq!(*delivery.pop()?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn begin_owned(mut self) -> OwnedTransaction<T, O> {
        self.by_ref().for_each(drop);
        OwnedTransaction::begin(self.cell.take())
    }
}
