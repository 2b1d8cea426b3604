//! Items that were delivered too often, or given up.

use crate::core::shared::Shared;
use crate::policy::retry::Failed;
use crate::raw::Entry;
use crate::DeadLetter;
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
pub struct DeadLetters<T> {
    shared: Arc<Shared<T>>,
}

impl<T> DeadLetters<T> {
    pub(crate) fn new(shared: Arc<Shared<T>>) -> Self {
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
        let Some(letter) = Letter::take(&self.shared) else {
            return false;
        };
        let Entry { item, tag } = &letter.failed().entry;
        let Some(label) = self.shared.label_again(item, tag.label()) else {
            return false;
        };
        let failed = letter.open();
        let Entry { item, tag } = failed.entry;
        let mut admitted = false;
        let pushed = self.shared.push_as(item, |_| {
            admitted = true;
            Some(label)
        });
        let Err(refused) = pushed else {
            return true;
        };
        if !admitted {
            self.shared.strike(label.order);
        }
        let entry = Entry {
            item: refused.into_inner(),
            tag,
        };
        let letters = &self.shared.failures.letters;
        letters.put_back(Failed { entry, ..failed });
        false
    }
}

/// A letter that was taken out. It is put back when it is dropped, also because user code panics.
struct Letter<'s, T> {
    shared: &'s Shared<T>,
    failed: Option<Failed<T>>,
}

impl<'s, T> Letter<'s, T> {
    fn take(shared: &'s Shared<T>) -> Option<Self> {
        let failed = Some(shared.failures.letters.take()?);
        Some(Self { shared, failed })
    }

    fn failed(&self) -> &Failed<T> {
        self.failed.as_ref().expect("not opened yet")
    }

    fn open(mut self) -> Failed<T> {
        self.failed.take().expect("not opened yet")
    }
}

impl<T> Drop for Letter<'_, T> {
    fn drop(&mut self) {
        if let Some(failed) = self.failed.take() {
            self.shared.failures.letters.put_back(failed);
        }
    }
}

impl<T> Iterator for DeadLetters<T> {
    type Item = DeadLetter<T>;

    fn next(&mut self) -> Option<DeadLetter<T>> {
        let failed = self.shared.failures.letters.take()?;
        Some(DeadLetter::new(failed, &self.shared.time))
    }
}

/// As those of [`Queue`](crate::Queue).
impl<T> UnwindSafe for DeadLetters<T> {}
impl<T> RefUnwindSafe for DeadLetters<T> {}

impl<T> fmt::Debug for DeadLetters<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadLetters")
            .field("len", &self.len())
            .finish()
    }
}
