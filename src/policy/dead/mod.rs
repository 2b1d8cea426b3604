//! Dead letters: items whose deliveries failed for good.

mod letter;

pub use letter::DeadLetter;

use super::failed::Failed;
use crate::raw::{Inbox, Stored, Vacant};
use crate::sync::{lock, swallow_panic, AtomicU64, AtomicUsize, Mutex, Ordering};
use crate::time::Time;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The function that receives the oldest dead letter when there are too many.
pub(crate) type Overflow<T> = Arc<dyn Fn(DeadLetter<T>) + Send + Sync>;

/// The numbers of all letters.
pub(crate) const ALL: Range<u64> = 0..u64::MAX;

/// The dead letters of one queue.
pub(crate) struct Letters<T, M> {
    inbox: Inbox<Failed<Stored<T, M>>>,
    list: Mutex<LetterList<T, M>>,
    /// The number of letters in the inbox and in the list, of reserved places, and of letters that are visited.
    count: AtomicUsize,
    /// How many items ever became dead letters: the number of the next letter.
    died: AtomicU64,
    most: usize,
    overflow: Option<Overflow<T>>,
}

/// The letters that have left the inbox.
struct LetterList<T, M> {
    /// By number: the oldest first.
    letters: BTreeMap<u64, Failed<Stored<T, M>>>,
    /// How many further letters are being visited.
    visited: usize,
}

impl<T, M> LetterList<T, M> {
    fn extend(&mut self, letters: impl IntoIterator<Item = Failed<Stored<T, M>>>) {
        let letters = letters.into_iter();
        self.letters
            .extend(letters.map(|letter| (letter.letter, letter)));
    }
}

impl<T, M> Letters<T, M> {
    /// Creates a store of at most `most` letters. Beyond that the oldest goes to `overflow`; without one, no more are
    /// accepted.
    pub(crate) fn new(most: usize, overflow: Option<Overflow<T>>) -> Self {
        Self {
            inbox: Inbox::new(),
            list: Mutex::new(LetterList {
                letters: BTreeMap::new(),
                visited: 0,
            }),
            count: AtomicUsize::new(0),
            died: AtomicU64::new(0),
            most,
            overflow,
        }
    }

    /// Reserves a place for a letter; returns false if there is none.
    pub(crate) fn reserve(&self) -> bool {
        let most = match self.overflow {
            None => self.most,
            Some(_) => usize::MAX,
        };
        let more = |count| (count < most).then_some(count + 1);
        // ORDERING: Relaxed, both; a number of places, which publishes nothing.
        self.count
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .is_ok()
    }

    /// Releases a reserved place that was not used.
    pub(crate) fn release(&self) {
        // ORDERING: Relaxed; as in `reserve`.
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    /// Adds a letter, whose place was reserved. Lock-free, and allocates nothing.
    pub(crate) fn put(
        &self,
        envelope: Vacant<Failed<Stored<T, M>>>,
        mut failed: Failed<Stored<T, M>>,
    ) {
        // ORDERING: Relaxed; statistics, and numbers that only have to differ.
        failed.letter = self.died.fetch_add(1, Ordering::Relaxed);
        self.inbox.put(envelope, failed);
    }

    /// Takes the first letter with one of these numbers out.
    pub(crate) fn take(&self, numbers: Range<u64>) -> Option<Failed<Stored<T, M>>> {
        self.take_beyond(0, numbers, |_| true)
    }

    /// Takes the first letter with one of these numbers out if there are more than `most`, and if `may` returns true.
    ///
    /// If there are not, takes no lock, since an abort calls this too.
    fn take_beyond(
        &self,
        most: usize,
        numbers: Range<u64>,
        may: impl FnOnce(&LetterList<T, M>) -> bool,
    ) -> Option<Failed<Stored<T, M>>> {
        if self.count() <= most {
            return None;
        }
        let mut list = lock(&self.list);
        if self.count() <= most || !may(&list) {
            return None;
        }
        let letter = self.remove(&mut list, numbers)?;
        // ORDERING: Relaxed; as in `reserve`.
        self.count.fetch_sub(1, Ordering::Relaxed);
        Some(letter)
    }

    fn remove(
        &self,
        list: &mut LetterList<T, M>,
        numbers: Range<u64>,
    ) -> Option<Failed<Stored<T, M>>> {
        list.extend(self.inbox.take_all());
        let (&number, _) = list.letters.range(numbers).next()?;
        list.letters.remove(&number)
    }

    /// Puts a letter that was taken out back to its position, even if its place was reserved meanwhile.
    pub(crate) fn put_back(&self, letter: Failed<Stored<T, M>>) {
        // ORDERING: Relaxed; as in `reserve`.
        self.count.fetch_add(1, Ordering::Relaxed);
        lock(&self.list).extend([letter]);
    }

    /// Takes out the first letter with one of these numbers for a visit. It keeps its place.
    pub(crate) fn begin_visit(&self, numbers: Range<u64>) -> Option<Failed<Stored<T, M>>> {
        let mut list = lock(&self.list);
        let letter = self.remove(&mut list, numbers)?;
        list.visited += 1;
        Some(letter)
    }

    /// Puts a letter back that was [taken out for a visit](Letters::begin_visit).
    pub(crate) fn end_visit(&self, letter: Failed<Stored<T, M>>) {
        let mut list = lock(&self.list);
        list.visited -= 1;
        list.extend([letter]);
    }

    /// The number of letters.
    pub(crate) fn count(&self) -> usize {
        // ORDERING: Relaxed; statistics.
        self.count.load(Ordering::Relaxed)
    }

    /// How many items ever became dead letters. Future letters have numbers from this one on.
    pub(crate) fn died(&self) -> u64 {
        // ORDERING: Relaxed; statistics.
        self.died.load(Ordering::Relaxed)
    }

    /// Hands the letters beyond the limit over to `overflow`, unless some are being visited: then the end of the visit
    /// does. `overflow` is user code; its panics are caught.
    pub(crate) fn drop_excess(&self, time: &Time) {
        let Some(overflow) = &self.overflow else {
            return;
        };
        while let Some(oldest) = self.take_beyond(self.most, ALL, |list| list.visited == 0) {
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
    fn drop_excess_takes_no_lock_below_the_limit() {
        let letters = Letters::<u32, ()>::new(1, Some(Arc::new(|_| ())));
        let _list = lock(&letters.list);
        letters.drop_excess(&Time::new(None)); // would wait for this thread
    }
}
