//! The first item of several queues.

mod first;

use crate::core::CellOf;
use crate::order::Order;
use crate::{Handle, Item, PopError};
use first::{future_of, holding, popping, wait_for_first};
use std::borrow::BorrowMut;
use std::future::Future;

verb! {
    pop_any[<T, O: Order<T>, H: BorrowMut<Handle<T, O>>>](handles: &mut [H]) -> Result<(usize, T), PopError>,
        |wait| wait_for_first(&mut popping(handles, |cell| _ = cell.settled()), wait);
    blocking:
    /// Pops from the first of several queues that has an item, and waits until one has. Returns the index of the handle
    /// and the item; the pop is committed at once.
    ///
    /// If several have items, the first of them in the list is used. Closed and drained queues are skipped. To take the
    /// item in a transaction, see [`hold_any`]. For queues of different item types, or to wait for other events too,
    /// select among the futures of [`Handle::pop_async`], which can be dropped without losing items.
    ///
    /// ```
    /// use requeue::{pop_any, Queue};
    ///
    /// let (urgent, normal) = (Queue::unbounded(), Queue::unbounded());
    /// normal.push("sweep")?;
    /// urgent.push("put out the fire")?;
    ///
    /// let mut handles = [urgent.handle(), normal.handle()];
    /// assert_eq!(pop_any(&mut handles)?, (0, "put out the fire"));
    /// assert_eq!(pop_any(&mut handles)?, (1, "sweep"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PopError::Closed`] if all of the queues are closed and drained, or if there are none.
    timed: "Pops from the first of several queues that has an item", "one, by the clock of the first queue",
    /// use requeue::*;
    ///
    /// let (a, b) = (Queue::<u32>::unbounded(), Queue::unbounded());
    nothing = (&mut [a.handle(), b.handle()]);
    /// assert!(nothing.unwrap_err().is_empty());
    /// ```
    ///
    /// # Errors
    ///
    /// [`PopError::Empty`] on timeout, otherwise as for [`pop_any`].
}

/// A future that pops from the first of several queues that has an item; see [`pop_any`].
///
/// Cancel safe, as [`Handle::pop_async`] is.
///
/// ```
/// # futures::executor::block_on(async {
/// use requeue::{pop_any_async, Queue};
///
/// let (a, b) = (Queue::unbounded(), Queue::unbounded());
/// b.push("job")?;
/// let mut handles = [a.handle(), b.handle()];
/// assert_eq!(pop_any_async(&mut handles).await?, (1, "job"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
///
/// # Panics
///
/// If it is polled after completion.
pub fn pop_any_async<'h, T: 'h, O: Order<T> + 'h, H: BorrowMut<Handle<T, O>>>(
    handles: &'h mut [H],
) -> impl Future<Output = Result<(usize, T), PopError>> + 'h {
    future_of(popping(handles, CellOf::begin_waiting))
}

verb! {
    hold_any[<'t, 'h: 't, T: 'h, O: Order<T> + 'h>](transactions: impl IntoIterator<Item = impl sealed::Borrowed<'t, 'h, T, O>>) -> Result<(usize, Item<'t, T>), PopError>,
        |wait| wait_for_first(&mut holding(transactions), wait);
    blocking:
    /// Pops from the first of several queues that has an item, and holds it in its transaction, as
    /// [`Transaction::pop_blocking`](crate::Transaction::pop_blocking) does. Waits until one has an item. Returns the
    /// index of the transaction and the item.
    ///
    /// Takes borrowed transactions: `&transactions` of a `Vec` or an array, or `[&a, &b]`. If several queues have items,
    /// the first of them in the list is used; closed and drained queues are skipped. To pop without a transaction, see
    /// [`pop_any`]. For queues of different item types or orders, select among the futures of
    /// [`Transaction::pop_async`](crate::Transaction::pop_async).
    ///
    /// ```
    /// use requeue::{hold_any, Queue};
    ///
    /// let (urgent, normal) = (Queue::unbounded(), Queue::unbounded());
    /// let (mut from_urgent, mut from_normal) = (urgent.handle(), normal.handle());
    /// normal.push("sweep")?;
    ///
    /// let (first, second) = (from_urgent.begin(), from_normal.begin());
    /// let (which, job) = hold_any([&first, &second])?;
    /// assert_eq!((which, *job), (1, "sweep"));
    /// second.push("rinse")?; // a follow-up
    /// second.commit();
    /// assert_eq!(normal.pop()?, "rinse");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PopError::Closed`] if all of the queues are closed and drained, or if there are none. [`PopError::Empty`] if all
    /// are closed, nothing is ready or may be taken, and one of the transactions holds or has staged something: otherwise
    /// such transactions could wait for each other.
    ///
    /// # Panics
    ///
    /// If one of the transactions [is borrowed](crate::Transaction#borrowing) or listed twice.
    timed: "Pops from the first of several queues that has an item, and holds it", "one, by the clock of the first queue",
    /// use requeue::*;
    ///
    /// let (a, b) = (Queue::<u32>::unbounded(), Queue::unbounded());
    /// let (mut a, mut b) = (a.handle(), b.handle());
    /// let (first, second) = (a.begin(), b.begin());
    nothing = ([&first, &second]);
    /// assert!(nothing.unwrap_err().is_empty());
    /// ```
    ///
    /// # Errors
    ///
    /// [`PopError::Empty`] on timeout, otherwise as for [`hold_any`].
    ///
    /// # Panics
    ///
    /// As for [`hold_any`].
}

/// A future that pops from the first of several queues that has an item, and holds it; see [`hold_any`]. It borrows
/// the transactions until it is ready or dropped.
///
/// Cancel safe, as [`Transaction::pop_async`](crate::Transaction::pop_async) is.
///
/// ```
/// # futures::executor::block_on(async {
/// use requeue::{hold_any_async, Queue};
///
/// let (a, b) = (Queue::unbounded(), Queue::unbounded());
/// b.push("job")?;
/// let mut handles = [a.handle(), b.handle()];
/// let transactions: Vec<_> = handles.iter_mut().map(|handle| handle.begin()).collect();
/// let (which, job) = hold_any_async(&transactions).await?;
/// assert_eq!((which, *job), (1, "job"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
///
/// # Panics
///
/// As for [`hold_any`]; and if the future is polled after completion.
#[track_caller]
pub fn hold_any_async<'t, 'h: 't, T: 'h, O: Order<T> + 'h>(
    transactions: impl IntoIterator<Item = impl sealed::Borrowed<'t, 'h, T, O>>,
) -> impl Future<Output = Result<(usize, Item<'t, T>), PopError>> + 't {
    future_of(holding(transactions))
}

mod sealed {
    use crate::order::Order;
    use crate::Transaction;

    /// A borrowed transaction, from a list of transactions or of references.
    pub trait Borrowed<'t, 'h, T, O: Order<T>> {
        fn transaction(self) -> &'t Transaction<'h, T, O>;
    }

    impl<'t, 'h, T, O: Order<T>> Borrowed<'t, 'h, T, O> for &'t Transaction<'h, T, O> {
        fn transaction(self) -> &'t Transaction<'h, T, O> {
            self
        }
    }

    impl<'t, 'h, T, O: Order<T>> Borrowed<'t, 'h, T, O> for &&'t Transaction<'h, T, O> {
        fn transaction(self) -> &'t Transaction<'h, T, O> {
            self
        }
    }
}
