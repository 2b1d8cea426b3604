//! Dead letters: items that were delivered too often.

mod letter;

pub use letter::DeadLetter;

use super::retry::Failed;
use crate::raw::{Inbox, Stored, Vacant};
use crate::sync::{lock, swallow_panic, AtomicU64, AtomicUsize, Mutex, Ordering};
use crate::time::Time;
use std::collections::VecDeque;
use std::sync::Arc;

/// What to do with the oldest dead letter when there are too many.
pub(crate) type Overflow<T> = Arc<dyn Fn(DeadLetter<T>) + Send + Sync>;

/// The dead letters of one queue.
pub(crate) struct Letters<T, M> {
    inbox: Inbox<Failed<Stored<T, M>>>,
    list: Mutex<VecDeque<Failed<Stored<T, M>>>>,
    /// Letters in the inbox and in the list, and those on their way there.
    count: AtomicUsize,
    /// How many items ever died.
    died: AtomicU64,
    most: usize,
    overflow: Option<Overflow<T>>,
}

impl<T, M> Letters<T, M> {
    /// Takes `most` letters. Beyond that the oldest goes to `overflow`, or without that no more die.
    pub(crate) fn new(most: usize, overflow: Option<Overflow<T>>) -> Self {
        Self {
            inbox: Inbox::new(),
            list: Mutex::new(VecDeque::new()),
            count: AtomicUsize::new(0),
            died: AtomicU64::new(0),
            most,
            overflow,
        }
    }

    /// Takes a place for a letter: false if there is none.
    pub(crate) fn reserve(&self) -> bool {
        let most = match self.overflow {
            None => self.most,
            Some(_) => usize::MAX,
        };
        let more = |count| (count < most).then_some(count + 1);
        // ORDERING: Relaxed, both; a number of places, which hands nothing on.
        self.count
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .is_ok()
    }

    /// Gives a place back for which there is no letter after all.
    pub(crate) fn release(&self) {
        // ORDERING: Relaxed; as in `reserve`.
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    /// Takes a letter in for which a place was taken. Lock-free, and allocates nothing.
    pub(crate) fn put(&self, envelope: Vacant<Failed<Stored<T, M>>>, failed: Failed<Stored<T, M>>) {
        // ORDERING: Relaxed; statistics.
        self.died.fetch_add(1, Ordering::Relaxed);
        self.inbox.put(envelope, failed);
    }

    /// Takes the oldest letter out.
    pub(crate) fn take(&self) -> Option<Failed<Stored<T, M>>> {
        self.take_beyond(0)
    }

    /// Takes the oldest letter out if there are more than `most`.
    ///
    /// If there are not, it takes no lock: an abort comes here too.
    fn take_beyond(&self, most: usize) -> Option<Failed<Stored<T, M>>> {
        if self.count() <= most {
            return None;
        }
        let mut list = lock(&self.list);
        if self.count() <= most {
            return None;
        }
        if list.is_empty() {
            list.extend(self.inbox.take_all());
        }
        let letter = list.pop_front()?;
        // ORDERING: Relaxed; as in `reserve`.
        self.count.fetch_sub(1, Ordering::Relaxed);
        Some(letter)
    }

    /// Puts a letter that was taken out back, as the oldest, even if its place was taken meanwhile.
    pub(crate) fn put_back(&self, letter: Failed<Stored<T, M>>) {
        // ORDERING: Relaxed; as in `reserve`.
        self.count.fetch_add(1, Ordering::Relaxed);
        lock(&self.list).push_front(letter);
    }

    /// How many letters there are.
    pub(crate) fn count(&self) -> usize {
        // ORDERING: Relaxed; statistics.
        self.count.load(Ordering::Relaxed)
    }

    /// How many items ever died.
    pub(crate) fn died(&self) -> u64 {
        // ORDERING: Relaxed; statistics.
        self.died.load(Ordering::Relaxed)
    }

    /// Hands over what is too much. User code runs; its panics are caught.
    pub(crate) fn drop_excess(&self, time: &Time) {
        let Some(overflow) = &self.overflow else {
            return;
        };
        while let Some(oldest) = self.take_beyond(self.most) {
            swallow_panic(|| overflow(DeadLetter::new(oldest, time)));
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{lock, Letters};
    use crate::time::Time;
    use std::sync::Arc;

    #[test]
    fn nothing_is_locked_where_there_are_not_too_many() {
        let letters = Letters::<u32, ()>::new(1, Some(Arc::new(|_| ())));
        let _list = lock(&letters.list);
        letters.drop_excess(&Time::system()); // would wait for this thread
    }
}
