//! Items held by a transaction.

use crate::order::{Order, StoredOf};
use crate::raw::{HeldItems, ItemRef, Stored};
use crate::Fifo;
use std::iter::FusedIterator;

/// An item that a [`Transaction`](crate::Transaction) holds.
///
/// It is a reference: the transaction owns the item until it commits or aborts. Dropping the reference gives nothing
/// back; [`Transaction::commit`](crate::Transaction::commit) returns the values of all held items, and
/// [`Transaction::retry`](crate::Transaction::retry) gives a single one back.
///
/// ```
/// let queue = requeue::Queue::unbounded();
/// queue.push(String::from("job"))?;
/// let mut handle = queue.handle();
/// let tx = handle.begin();
/// let mut job = tx.pop()?;
/// job.push('!');
/// assert_eq!(*job, "job!");
/// drop(job); // no abort
/// assert!(tx.commit().eq(["job!"]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Item<'t, T> {
    pub(crate) reference: ItemRef<'t, T>,
}

impl<'t, T> Item<'t, T> {
    #[inline]
    pub(crate) fn new<M>(reference: ItemRef<'t, Stored<T, M>>) -> Self {
        let reference = reference.project();
        Self { reference }
    }

    /// The number of deliveries of the item, this one included: 1 at first. Each abort of a transaction that held it,
    /// for whatever reason, adds one.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push(1)?;
    /// let mut handle = queue.handle();
    /// assert_eq!(handle.begin().pop()?.attempts(), 1);
    /// assert_eq!(handle.begin().pop()?.attempts(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn attempts(&self) -> u32 {
        self.reference.attempts()
    }
}

deref!([T] Item<'_, T> => T, |item| &item.reference, &mut item.reference);

fmt_as_item!(Debug, [T] Item<'_, T> => T);
fmt_as_item!(Display, [T] Item<'_, T> => T);

/// The items of one [`Transaction::pop_batch`](crate::Transaction::pop_batch), or [all](crate::Transaction::items) of a
/// transaction. All of them are held, whether iterated or not.
///
/// They may be iterated on another thread while the transaction is in use.
///
/// ```
/// let queue = requeue::Queue::unbounded();
/// queue.push(1)?;
/// let mut handle = queue.handle();
/// let tx = handle.begin();
/// let items = tx.pop_batch(8);
/// assert_eq!(items.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Items<'t, T, O: Order<T> = Fifo> {
    held: HeldItems<'t, StoredOf<T, O>>,
}

impl<'t, T, O: Order<T>> Items<'t, T, O> {
    pub(crate) fn new(held: HeldItems<'t, StoredOf<T, O>>) -> Self {
        Self { held }
    }
}

impl<'t, T, O: Order<T>> Iterator for Items<'t, T, O> {
    type Item = Item<'t, T>;

    fn next(&mut self) -> Option<Item<'t, T>> {
        self.held.next().map(Item::new)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.held.len(), Some(self.held.len()))
    }

    #[inline]
    fn fold<B, F: FnMut(B, Item<'t, T>) -> B>(self, init: B, each: F) -> B {
        self.held.rest().map(Item::new).fold(init, each)
    }
}

impl<T, O: Order<T>> ExactSizeIterator for Items<'_, T, O> {}
impl<T, O: Order<T>> FusedIterator for Items<'_, T, O> {}

debug_struct!([T, O: Order<T>] Items<'_, T, O>, |items| len: items.len());
