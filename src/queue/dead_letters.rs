//! Items that were delivered too often, or given up.

use crate::core::shared::Shared;
use crate::order::Order;
use crate::policy::retry::Failed;
use crate::raw::{Entry, Stored};
use crate::sync::defer_with;
use crate::{DeadLetter, Fifo};
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

/// The dead letters of a queue, from [`Queue::dead_letters`](crate::Queue::dead_letters): an iterator
/// that takes them out one by one, the oldest first.
///
/// It ends when there are none; more may come later. Those that it has not given out stay.
///
/// ```
/// use std::num::NonZeroU32;
///
/// let queue = requeue::Queue::builder().max_attempts(NonZeroU32::MIN).build();
/// let mut worker = queue.handle();
/// worker.push_batch([1, 2, 3])?;
/// let tx = worker.begin();
/// assert_eq!(tx.pop_batch(3).len(), 3);
/// tx.abort();
///
/// let mut letters = queue.dead_letters();
/// assert_eq!(letters.next().unwrap().item, 1);
/// assert_eq!(letters.len(), 2);
/// assert_eq!(letters.requeue_all(), 2);
/// assert_eq!(queue.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DeadLetters<T, O: Order<T> = Fifo> {
    shared: Arc<Shared<T, O>>,
}

impl<T, O: Order<T>> DeadLetters<T, O> {
    pub(crate) fn new(shared: Arc<Shared<T, O>>) -> Self {
        Self { shared }
    }

    /// How many dead letters there are. Approximate while others work, exact at rest.
    ///
    /// ```
    /// assert_eq!(requeue::Queue::<u32>::unbounded().dead_letters().len(), 0);
    /// ```
    pub fn len(&self) -> usize {
        self.shared.failures.letters.count()
    }

    /// Whether there are none.
    ///
    /// ```
    /// assert!(requeue::Queue::<u32>::unbounded().dead_letters().is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Pushes all dead letters there are now again, the oldest first, and says how many items that were.
    /// Their deliveries are counted anew; the time of their first push is kept.
    ///
    /// Ends early if the queue is full or closed; the rest stay dead letters. While items die beside it, one
    /// more than [`max_dead_letters`](crate::Builder::max_dead_letters) may stay.
    ///
    /// ```
    /// use std::num::NonZeroU32;
    ///
    /// let queue = requeue::Queue::builder().max_attempts(NonZeroU32::MIN).build();
    /// queue.push(1)?;
    /// let mut worker = queue.handle();
    /// drop(worker.begin().pop()?);
    /// assert_eq!(queue.dead_letters().requeue_all(), 1);
    /// assert_eq!(worker.begin().pop()?.attempts(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn requeue_all(&self) -> usize {
        (0..self.len()).take_while(|_| self.requeue()).count()
    }

    /// Pushes the oldest letter again.
    fn requeue(&self) -> bool {
        let letters = &self.shared.failures.letters;
        // Put back also if user code panics.
        let mut letter = defer_with(letters.take(), |letter| {
            if let Some(letter) = letter.take() {
                letters.put_back(letter);
            }
        });
        let register = |letter: &Failed<_>| self.shared.register_again(&letter.entry);
        let Some(known) = letter.as_ref().and_then(register) else {
            return false;
        };
        let Some(failed) = letter.take() else {
            return false;
        };
        let Entry { item, tag } = failed.entry;
        let Stored { item, meta } = item;
        let mut admitted = false;
        let pushed = self.shared.push_as(item, |_| {
            admitted = true;
            Some(known)
        });
        let Err(refused) = pushed else {
            return true;
        };
        if !admitted {
            self.shared.unregister(known.meta);
        }
        let item = Stored {
            item: refused.into_inner(),
            meta,
        };
        let entry = Entry { item, tag };
        letters.put_back(Failed { entry, ..failed });
        false
    }
}

impl<T, O: Order<T>> Iterator for DeadLetters<T, O> {
    type Item = DeadLetter<T>;

    fn next(&mut self) -> Option<DeadLetter<T>> {
        let failed = self.shared.failures.letters.take()?;
        Some(DeadLetter::new(failed, &self.shared.time))
    }
}

/// As those of [`Queue`](crate::Queue).
impl<T, O: Order<T>> UnwindSafe for DeadLetters<T, O> {}
impl<T, O: Order<T>> RefUnwindSafe for DeadLetters<T, O> {}

impl<T, O: Order<T>> fmt::Debug for DeadLetters<T, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadLetters")
            .field("len", &self.len())
            .finish()
    }
}
