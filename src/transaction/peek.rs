//! Peeking at the next item.

use crate::core::wait::DONE;
use crate::core::Local;
use crate::order::Order;
use crate::raw::{Borrow, Peeked};
use crate::sync::{defer_with, step};
use crate::time::Wait;
use crate::wait::WakeTarget;
use crate::{Fifo, Item, PopError};
use std::future::{poll_fn, Future};
use std::sync::Arc;

/// The item that a pop would return, from [`Transaction::peek`](crate::Transaction::peek). Dropping it puts the item
/// back in its place.
///
/// If it is leaked by [`std::mem::forget`], the item is put back when the transaction ends.
///
/// ```
/// let queue = requeue::Queue::unbounded();
/// queue.push("job")?;
/// let mut handle = queue.handle();
/// let tx = handle.begin();
/// assert_eq!(*tx.peek()?, "job");
/// assert_eq!(tx.pop()?.attempts(), 1); // a peek is not a delivery
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a peek puts the item back when it is dropped"]
pub struct Peek<'t, T, O: Order<T> = Fifo> {
    /// `None` when the item is taken.
    peeked: Option<Peeked<'t, Local<T, O>>>,
}

impl<'t, T, O: Order<T>> Peek<'t, T, O> {
    /// Peeks when there is an item; without a timeout, waits forever.
    pub(super) fn waiting(
        mut local: Borrow<'t, Local<T, O>>,
        wait: Wait,
    ) -> Result<Self, PopError> {
        local.peek_waiting(wait)?;
        Ok(Self::of(local))
    }

    /// A future that peeks when there is an item.
    pub(super) fn future(
        local: Borrow<'t, Local<T, O>>,
    ) -> impl Future<Output = Result<Self, PopError>> + 't {
        let mut looking = defer_with(Some(local), |looking| {
            if let Some(local) = looking {
                local.stop_waiting();
            }
        });
        poll_fn(move |context| {
            let local = looking.as_mut().expect(DONE);
            let poll = local.poll_peek(&WakeTarget::task(context.waker()));
            poll.map(|looked| {
                let local = looking.take().expect(DONE);
                looked.map(|()| Self::of(local))
            })
        })
    }

    /// Peeks at the item that was taken for it.
    fn of(local: Borrow<'t, Local<T, O>>) -> Self {
        let peek = Self {
            peeked: Some(Peeked::new(local)),
        };
        let local = peek.peeked().local();
        if local.held() == 0 {
            local.deliveries().begin(local.shared()); // user code: a clock
        }
        peek
    }

    fn peeked(&self) -> &Peeked<'t, Local<T, O>> {
        self.peeked
            .as_ref()
            .expect("present until the peek is dropped")
    }

    /// How often the item was delivered before; the peek is no delivery.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push("job")?;
    /// let mut handle = queue.handle();
    /// drop(handle.begin().pop()?); // gives it back
    /// let tx = handle.begin();
    /// let peeked = tx.peek()?;
    /// assert_eq!(peeked.attempts(), 1);
    /// assert_eq!(peeked.take().attempts(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn attempts(&self) -> u32 {
        self.peeked().attempts()
    }

    /// Takes the item, as a pop instead of the peek would have done.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push(1)?;
    /// let mut handle = queue.handle();
    /// let tx = handle.begin();
    /// let mut item = tx.peek()?.take();
    /// *item += 1;
    /// assert_eq!(tx.commit().next(), Some(2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn take(mut self) -> Item<'t, T> {
        let Some(peeked) = self.peeked.take() else {
            unreachable!("the peek ends here or in `drop`");
        };
        Item::new(Borrow::hold_peeked(peeked))
    }
}

deref!([T, O: Order<T>] Peek<'_, T, O> => T, |peek| &peek.peeked().item().item);

/// Puts the item back, unless it was taken, and settles its tokens before the borrow of the transaction ends, since
/// its next use may change them. Waiters are notified after that.
impl<T, O: Order<T>> Drop for Peek<'_, T, O> {
    fn drop(&mut self) {
        let Some(peeked) = self.peeked.take() else {
            return;
        };
        let mut local = peeked.into_borrow();
        let shared = Arc::clone(local.shared());
        let is_back = local.end_peek();
        drop(local);
        if is_back {
            step!("peek.ends-unsaid", shared.notify_end(1));
        }
    }
}

debug_struct!([T, O: Order<T>] Peek<'_, T, O>);
