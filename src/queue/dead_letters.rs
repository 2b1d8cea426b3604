//! The dead letters: items that failed too often, or were failed by their worker.

use crate::core::shared::Shared;
use crate::order::{Order, StoredOf};
use crate::policy::dead::ALL;
use crate::policy::failed::Failed;
use crate::policy::unique::{Stage, Staging};
use crate::raw::{Entry, Stored};
use crate::sync::defer_with;
use crate::{DeadLetter, Fifo, PushError};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

/// The dead letters of a queue, from [`Queue::dead_letters`](crate::Queue::dead_letters): a view to inspect, remove
/// or requeue them.
///
/// As an iterator, it removes and returns items that failed `max_attempts` times, oldest first. It ends when there
/// are none; more may come later. Letters it has not returned stay.
///
/// ```
/// let queue = requeue::Queue::builder().max_attempts(1).build();
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

    /// The number of dead letters. Approximate under concurrency, exact at rest: items whose leases have expired are taken
    /// back first.
    ///
    /// ```
    /// assert_eq!(requeue::Queue::<u32>::unbounded().dead_letters().len(), 0);
    /// ```
    pub fn len(&self) -> usize {
        self.shared.reclaim();
        self.shared.failures.letters.count()
    }

    /// Returns `true` if there are no dead letters.
    ///
    /// ```
    /// assert!(requeue::Queue::<u32>::unbounded().dead_letters().is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Visits all dead letters, oldest first, and returns their number. They stay.
    ///
    /// A letter that stays is visited once; those added or removed meanwhile may be missed. Each one is set aside for
    /// `visit`, without a lock: it counts in [`len`](Self::len), but other calls can neither remove nor visit it, and an
    /// [overflow](crate::Builder::on_dead_overflow) is handled afterwards. It is put back even if `visit` panics.
    ///
    /// ```
    /// let queue = requeue::Queue::builder().max_attempts(1).build();
    /// queue.push("poison")?;
    /// drop(queue.handle().begin().pop()?);
    /// let letters = queue.dead_letters();
    /// assert_eq!(letters.visit(|letter| println!("{}: {:?}", letter.id(), letter.item)), 1);
    /// assert_eq!(letters.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn visit(&self, mut visit: impl FnMut(&DeadLetter<T>)) -> usize {
        self.shared.reclaim();
        let letters = &self.shared.failures.letters;
        let (mut next, mut count, end) = (0, 0, letters.died());
        while let Some(failed) = letters.begin_visit(next..end) {
            next = failed.letter + 1;
            let (meta, delivery, due) = (failed.entry.item.meta, failed.entry.delivery, failed.due);
            let letter = Some(DeadLetter::new(failed, &self.shared.time));
            // Put back also if the visitor panics.
            let shown = defer_with(letter, |letter| {
                if let Some(letter) = letter.take() {
                    letters.end_visit(letter.into_failed(meta, delivery, due));
                }
                // Items may have failed meanwhile; their overflow was left to this call.
                letters.drop_excess(&self.shared.time);
            });
            shown.iter().for_each(&mut visit);
            count += 1;
        }
        count
    }

    /// Removes and returns the present dead letters, oldest first. It returns no more than there were at the call, so
    /// it ends even if items keep failing; letters it has not returned stay.
    ///
    /// ```
    /// let queue = requeue::Queue::builder().max_attempts(1).build();
    /// queue.push("poison")?;
    /// drop(queue.handle().begin().pop()?);
    /// let items: Vec<_> = queue.dead_letters().drain().map(|letter| letter.item).collect();
    /// assert_eq!(items, ["poison"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn drain(&self) -> impl Iterator<Item = DeadLetter<T>> + '_ {
        (0..self.len()).map_while(|_| self.take_oldest())
    }

    /// Removes the oldest letter.
    fn take_oldest(&self) -> Option<DeadLetter<T>> {
        self.shared.reclaim();
        let failed = self.shared.failures.letters.take(ALL)?;
        Some(DeadLetter::new(failed, &self.shared.time))
    }

    /// Hands the item of the letter with this [id](DeadLetter::id) to `take`, and removes the letter if that returns `Ok`. An item that it
    /// gives back stays a dead letter. Returns `true` if the letter was removed.
    ///
    /// ```
    /// let (queue, other) = (requeue::Queue::unbounded(), requeue::Queue::bounded(1));
    /// queue.push_batch(["moved", "refused"])?;
    /// queue.take()?.fail("no route");
    /// queue.take()?.fail("no route");
    /// let (letters, mut ids) = (queue.dead_letters(), Vec::new());
    /// letters.visit(|letter| ids.push(letter.id()));
    /// let to_other = |item| other.push(item).map_err(requeue::PushError::into_inner);
    /// assert!(letters.remove(ids[0], to_other));
    /// assert!(!letters.remove(ids[1], to_other)); // the other queue is full
    /// assert_eq!((other.pop()?, letters.len()), ("moved", 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn remove(&self, id: u64, take: impl FnOnce(T) -> Result<(), T>) -> bool {
        let letters = &self.shared.failures.letters;
        let Some(mut failed) = letters.take(id..id.saturating_add(1)) else {
            return false;
        };
        let refused = take(failed.entry.item.item).err();
        let is_removed = refused.is_none();
        if let Some(item) = refused {
            failed.entry.item.item = item;
            letters.put_back(failed);
        }
        is_removed
    }

    /// Pushes the letter with this [id](DeadLetter::id) again. Returns `true` if it existed and was pushed. Its
    /// delivery count restarts; the time of its first push is kept.
    ///
    /// In a fair queue it comes behind the other items of its key, and in a priority queue behind those of its priority,
    /// which it keeps. In a FIFO queue it has no order to the other ready items: a new handle may pop it first.
    ///
    /// Returns `false` if the letter is gone or is being [visited](Self::visit), if the queue is full or closed, or if
    /// another item has the same [unique key](crate::Builder::unique_by); then it stays a dead letter.
    ///
    /// ```
    /// let queue = requeue::Queue::builder().max_attempts(1).build();
    /// queue.push_batch(["poison", "fixed by now"])?;
    /// let mut worker = queue.handle();
    /// for _ in 0..2 {
    ///     drop(worker.begin().pop()?);
    /// }
    /// let letters = queue.dead_letters();
    /// let mut fixed = None;
    /// letters.visit(|letter| {
    ///     if letter.item == "fixed by now" {
    ///         fixed = Some(letter.id());
    ///     }
    /// });
    /// assert!(letters.requeue(fixed.unwrap()));
    /// assert!(!letters.requeue(fixed.unwrap())); // it is gone
    /// assert_eq!((queue.pop()?, letters.len()), ("fixed by now", 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn requeue(&self, id: u64) -> bool {
        let letter = self.shared.failures.letters.take(id..id.saturating_add(1));
        letter.is_some_and(|letter| self.push_again(letter).is_ok())
    }

    /// Pushes all present dead letters again, oldest first, and returns their number. Their delivery counts restart;
    /// the time of their first push is kept.
    ///
    /// Ends early if the queue is full or closed; the rest stay dead letters, and so do those whose [unique
    /// key](crate::Builder::unique_by) another item has. If items fail concurrently, more than
    /// [`max_dead_letters`](crate::Builder::max_dead_letters) may stay.
    ///
    /// ```
    /// let queue = requeue::Queue::builder().max_attempts(1).build();
    /// queue.push(1)?;
    /// let mut worker = queue.handle();
    /// drop(worker.begin().pop()?);
    /// assert_eq!(queue.dead_letters().requeue_all(), 1);
    /// assert_eq!(worker.begin().pop()?.attempts(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn requeue_all(&self) -> usize {
        self.shared.reclaim();
        let letters = &self.shared.failures.letters;
        let (mut next, mut pushed, end) = (0, 0, letters.died());
        while let Some(letter) = letters.take(next..end) {
            next = letter.letter + 1;
            match self.push_again(letter) {
                Ok(()) => pushed += 1,
                Err(refused) if refused.is_duplicate() => {}
                Err(_) => break,
            }
        }
        pushed
    }

    /// Pushes a removed letter to the queue again, or puts it back if the push is refused.
    fn push_again(&self, letter: Failed<StoredOf<T, O>>) -> Result<(), PushError<()>> {
        let (shared, letters) = (&self.shared, &self.shared.failures.letters);
        // Put back also if user code panics.
        let mut letter = defer_with(Some(letter), |letter| {
            if let Some(letter) = letter.take() {
                letters.put_back(letter);
            }
        });
        let staging = shared.unique().is_some().then(|| Arc::new(Staging::new()));
        let enter = |letter: &Failed<_>| shared.enter_again(&letter.entry, staging.as_ref());
        let known = letter.as_ref().map(enter).transpose()?;
        let Some((failed, known)) = letter.take().zip(known) else {
            return Ok(());
        };
        let Entry { item, delivery } = failed.entry;
        let Stored { item, meta } = item;
        // Before others can take the item.
        if let Some(staging) = &staging {
            staging.wake(Some(Stage::Committed));
        }
        let pushed = shared.push_as(item, known);
        pushed.map_err(|refused| {
            shared.withdraw(known);
            refused.map(|item| {
                let item = Stored { item, meta };
                let entry = Entry { item, delivery };
                letters.put_back(Failed { entry, ..failed });
            })
        })
    }
}

impl<T, O: Order<T>> Iterator for DeadLetters<T, O> {
    type Item = DeadLetter<T>;

    fn next(&mut self) -> Option<DeadLetter<T>> {
        self.take_oldest()
    }
}

/// As for [`Queue`](crate::Queue).
impl<T, O: Order<T>> UnwindSafe for DeadLetters<T, O> {}
impl<T, O: Order<T>> RefUnwindSafe for DeadLetters<T, O> {}

debug_struct!([T, O: Order<T>] DeadLetters<T, O>, |letters| len: letters.len());
