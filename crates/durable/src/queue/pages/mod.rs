//! Queues with a backlog beyond the memory: the next items are in memory, and the others are rows of the disk only, which are
//! read by pages. `docs/backlog.md` has the protocol.
//!
//! | file | contents |
//! |---|---|
//! | `due` | reads items when they are due |
//! | `due_rows` | the rows of their times, when a queue is opened |
//! | `index` | which rows are those of items that are not in memory |
//! | `fill` | reads pages |
//! | `keys` | finds the items that have unique keys |
//! | `scheduled` | which items with due times are not in memory |
//! | `rows` | visits the rows without bringing their items into memory |

mod due;
mod due_rows;
mod fill;
mod index;
mod keys;
mod rows;
mod scheduled;

pub(crate) use due_rows::DueRows;
pub(super) use index::Index;
pub(crate) use keys::KeyRows;
pub(super) use rows::Snapshot;
pub(super) use scheduled::Scheduled;

use super::shared::Shared;
use crate::batch::Run;
use crate::call::swallow_panic;
use crate::codec::OnUndecodable;
use crate::entry::Budget;
use crate::error::StoreError;
use crate::format::level::Level;
use crate::format::{DueRow, OrderTag, UniqueRow};
use crate::order::{Engine, EntryOf, RamQueue, RamTx};
use parking_lot::{Mutex, MutexGuard};
use requeue::DeferredWakes;
use std::collections::HashMap;
use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{fence, AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::Arc;

/// The most bytes of a page, and the fewest items, whatever the budget is.
const MOST_OF_PAGE: usize = 256 << 10;
const LEAST_ITEMS: usize = 8;
/// The fewest items of pages of all levels by key, unless each has one.
const LEAST_OF_ALL: usize = 512;

/// The most items that are lost before their destructors run.
const MOST_LOST: usize = if cfg!(test) { 2 } else { 1_000 };

/// What an item in memory takes besides its bytes.
pub(crate) const BESIDE: usize = 200;
/// What it takes besides that if its key is unique.
pub(crate) const BESIDE_KEY: usize = 500;

/// No time.
const NOT_PLANNED: u64 = u64::MAX;

/// No count of items, and less than any.
const UNKNOWN: i64 = i64::MIN / 2;

/// What a queue with pages has, besides what all queues have.
pub(crate) struct Pages<T: Send + 'static, O: Engine<T>> {
    shared: Arc<Shared<T, O>>,
    ram: RamQueue<T, O>,
    budget: Arc<Budget>,
    on_undecodable: OnUndecodable,
    /// Whether there may be items that are on the disk only. Then no push goes to memory.
    is_cold: AtomicBool,
    /// No more than this many items are taken by pops before one of them fills the memory: a lower bound of the ready items
    /// there, while there is a cold part.
    ready: AtomicI64,
    /// The next page is read when no more than this many are ready: the most that a pop has waited for, if that was more than 1.
    wanted: AtomicI64,
    /// How many pages were read.
    read: AtomicU64,
    state: Mutex<State<T, O>>,
    /// When what is due next is read, also if nobody looks for it but waiting pops.
    planned: AtomicU64,
    /// Whether memory is to be looked after: items have left it by themselves, or are due.
    is_untended: AtomicBool,
    /// Those that have left it.
    lost: Mutex<Vec<EntryOf<T, O>>>,
}

/// The pushes of a transaction that stay on the disk.
#[derive(Default)]
pub(crate) struct ColdPushes {
    pub(crate) runs: Vec<Run>,
    /// The rows of their unique keys.
    pub(crate) keys: Vec<UniqueRow>,
    /// Those of their due times.
    pub(crate) due: Vec<DueRow>,
}

/// What changes under a lock.
pub(crate) struct State<T: Send + 'static, O: Engine<T>> {
    index: Index,
    /// Seems to have staged something while there is a cold part, so that the queue in memory is neither idle nor drained.
    keeper: RamTx<T, O>,
}

/// The state under its lock.
pub(in crate::queue) struct Locked<'p, T: Send + 'static, O: Engine<T>> {
    /// `None` only while it is dropped.
    state: Option<MutexGuard<'p, State<T, O>>>,
    pages: &'p Pages<T, O>,
    /// Wakers, which may use the queue, are called when it is not locked.
    _wakes: DeferredWakes,
}

impl<T: Send + 'static, O: Engine<T>> Drop for Locked<'_, T, O> {
    fn drop(&mut self) {
        self.state = None;
        self.pages.tend();
    }
}

impl<T: Send + 'static, O: Engine<T>> Deref for Locked<'_, T, O> {
    type Target = State<T, O>;

    fn deref(&self) -> &State<T, O> {
        self.state.as_ref().expect("it is locked")
    }
}

impl<T: Send + 'static, O: Engine<T>> DerefMut for Locked<'_, T, O> {
    fn deref_mut(&mut self) -> &mut State<T, O> {
        self.state.as_mut().expect("it is locked")
    }
}

impl<T: Send + 'static, O: Engine<T>> Pages<T, O> {
    /// Whether the levels are those of keys, which take turns.
    const BY_KEY: bool = matches!(O::TAG, OrderTag::ByKey);

    /// Those of a queue that is opened, with its cold part.
    pub(in crate::queue) fn open(
        shared: &Arc<Shared<T, O>>,
        ram: &RamQueue<T, O>,
        index: Index,
        on_undecodable: OnUndecodable,
    ) -> Result<Arc<Self>, StoreError> {
        if !ram.take_room(index.count()) {
            return Err(StoreError::NoRoom);
        }
        let budget = shared.besides.budget.clone();
        let pages = Arc::new(Self {
            shared: Arc::clone(shared),
            ram: ram.clone(),
            budget: budget.expect("a queue with pages has a budget"),
            on_undecodable,
            is_cold: AtomicBool::new(false),
            ready: AtomicI64::new(UNKNOWN),
            wanted: AtomicI64::new(0),
            read: AtomicU64::new(0),
            state: Mutex::new(State {
                index,
                keeper: ram.begin_owned(),
            }),
            planned: AtomicU64::new(NOT_PLANNED),
            is_untended: AtomicBool::new(false),
            lost: Mutex::default(),
        });
        let _ = shared.pages.set(Arc::downgrade(&pages));
        let mut state = pages.state();
        // ORDERING: Relaxed; the queue is not in use yet.
        pages
            .is_cold
            .store(Self::keep(&mut state), Ordering::Relaxed);
        pages.fill(&mut state, 1);
        drop(state);
        pages.failure().map_or(Ok(pages), Err)
    }

    pub(in crate::queue) fn state(&self) -> Locked<'_, T, O> {
        let wakes = DeferredWakes::new();
        Locked {
            state: Some(self.state.lock()),
            pages: self,
            _wakes: wakes,
        }
    }

    /// Whether there is a cold part, as far as the caller can know.
    pub(crate) fn is_cold(&self) -> bool {
        // ORDERING: Acquire; pairs with the Release of `thaw`: the items that were last are in memory.
        self.is_cold.load(Ordering::Acquire)
    }

    /// How many items are on the disk only, and how many of these are not due. Of more than a thousand of a priority the others
    /// seem not to be, unless all are.
    pub(in crate::queue) fn counts(&self, state: &mut State<T, O>) -> (usize, usize) {
        let index = &mut state.index;
        let due = if index.scheduled.digest.count > 0 {
            self.count_due(index).unwrap_or(0) // whoever reads them has the error
        } else {
            0
        };
        let all = index.count();
        (all, index.count_scheduled().saturating_sub(due).min(all))
    }

    /// Why no more items can be read, if that is so.
    pub(crate) fn failure(&self) -> Option<StoreError> {
        self.state().index.failed.clone()
    }

    /// The memory does not seem to be drained from now on. Not if the queue is closed.
    fn keep(state: &mut State<T, O>) -> bool {
        state.keeper.stage_nothing()
    }

    /// Whether nothing is to be read of these levels, and there is room for so many bytes: a push of keys or of a priority without a
    /// backlog, which is a transaction of its own, goes to memory. One with a due time does not.
    pub(crate) fn have_read(&self, bytes: usize, mut levels: impl Iterator<Item = Level>) -> bool {
        if !self.shared.has_levels() || !self.is_cold() || !self.budget.has_room(bytes) {
            return false;
        }
        let state = self.state();
        levels.all(|level| level > 0 && !state.index.is_unread(level))
    }

    /// Adds the pushes of a transaction, which have their numbers and take so many bytes in memory, to the cold part, or returns
    /// `false`: they go to memory.
    pub(crate) fn admit(&self, bytes: usize) -> bool {
        // ORDERING: SeqCst; pairs with the fence of `freeze`: of a push and the beginning of a cold part either this one sees the
        // flag, or the other one a number after those of the push.
        fence(Ordering::SeqCst);
        // ORDERING: Relaxed; see the fence.
        if !self.is_cold.load(Ordering::Relaxed) && self.budget.has_room(bytes) {
            return false;
        }
        let mut state = self.state();
        let is_cold = self.freeze(&mut state);
        state.index.open += usize::from(is_cold);
        is_cold
    }

    /// Begins a cold part, unless there is one: no later push goes to memory. Returns `false` if the queue is closed.
    fn freeze(&self, state: &mut State<T, O>) -> bool {
        // ORDERING: Relaxed; it changes under the lock.
        if self.is_cold.load(Ordering::Relaxed) {
            return true;
        }
        if !Self::keep(state) {
            return false;
        }
        // ORDERING: Relaxed; nobody uses it before the flag is set.
        self.ready.store(UNKNOWN, Ordering::Relaxed);
        // ORDERING: Release; pairs with the loads of the flag: they find the number above.
        self.is_cold.store(true, Ordering::Release);
        // ORDERING: SeqCst; pairs with the fences of `admit` and `took`.
        fence(Ordering::SeqCst);
        let next_id = &self.shared.log().disk().next_id;
        // ORDERING: Relaxed; see the fence of `admit`.
        state.index.begin(next_id.load(Ordering::Relaxed));
        true
    }

    /// Ends the cold part: pushes go to memory again.
    fn thaw(&self, state: &mut State<T, O>) {
        // ORDERING: Release; pairs with `is_cold`.
        self.is_cold.store(false, Ordering::Release);
        state.index.keys = HashMap::new();
        state.keeper.rollback();
    }

    /// Has the rows of a commit skipped until it has ended.
    pub(crate) fn register(&self, runs: &[Run]) {
        self.state().index.skip(runs);
    }

    /// These items of a commit are in memory. A push that follows others of its transaction goes where these went, also if the cold
    /// part began between them: then its row is after those that are in memory. By key others go to memory too.
    pub(crate) fn mark(&self, runs: &[Run]) {
        // ORDERING: SeqCst; pairs with the fence of `freeze`, as in `admit`: or else the cold part begins after these numbers.
        fence(Ordering::SeqCst);
        if !runs.is_empty() && self.is_cold() {
            self.state().index.mark(runs);
        }
    }

    /// The rows of a commit are there.
    pub(crate) fn conclude(&self, pushed: &ColdPushes) {
        let mut state = self.state();
        state.index.conclude(&pushed.runs, &pushed.due);
        self.add_keys(&mut state, &pushed.keys);
        // ORDERING: Relaxed; it is counted anew.
        if self.ready.load(Ordering::Relaxed) <= self.wanted() {
            self.fill(&mut state, 1);
        } else {
            self.plan(&state.index);
        }
    }

    /// A transaction that was admitted was not committed.
    pub(crate) fn forget(&self, runs: &[Run]) {
        let mut state = self.state();
        state.index.forget(runs);
        self.fill(&mut state, 1);
    }

    /// How many pages were read: an `Empty` is one only if none was read since.
    pub(crate) fn pages_read(&self) -> u64 {
        // ORDERING: Acquire; pairs with the Release of `show`.
        self.read.load(Ordering::Acquire)
    }

    /// Counts items that a pop took. Reads the next page if none is left.
    pub(crate) fn took(&self, count: usize) {
        // ORDERING: SeqCst; pairs with the fence of `freeze`: a pop that does not see the flag is seen by the first count.
        fence(Ordering::SeqCst);
        // ORDERING: Acquire; pairs with the Release of `freeze`.
        if !self.is_cold.load(Ordering::Acquire) {
            return;
        }
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        // ORDERING: SeqCst; pairs with the update of `is_full`: a pop is counted there or here.
        let left = self.ready.fetch_sub(count, Ordering::SeqCst) - count;
        if left <= self.wanted() {
            self.fill(&mut self.state(), 1);
        }
    }

    /// An item whose time to live is over has left memory. Its destructor, which is user code, runs when the state is not locked.
    pub(in crate::queue) fn lose(&self, entry: EntryOf<T, O>) {
        // ORDERING: SeqCst; pairs with the update of `is_full`, as that of `took`.
        self.ready.fetch_sub(1, Ordering::SeqCst);
        self.lost.lock().push(entry);
        // ORDERING: Relaxed; see the fence of `tend`.
        self.is_untended.store(true, Ordering::Relaxed);
        self.tend();
    }

    /// It is time to read what is due, unless that changed.
    fn remind(&self) {
        // ORDERING: Relaxed; see `plan`.
        self.planned.store(NOT_PLANNED, Ordering::Relaxed);
        self.recount();
        // ORDERING: Relaxed; see the fence of `tend`.
        self.is_untended.store(true, Ordering::Relaxed);
        self.tend();
    }

    /// What is ready may be less than was counted: items have left memory that no pop took.
    fn recount(&self) {
        // ORDERING: SeqCst; pairs with the update of `is_full`, which counts anew after this one, or makes the result less.
        self.ready.store(UNKNOWN, Ordering::SeqCst);
    }

    /// An item has left memory, or is not ready any more, and no pop took it.
    pub(in crate::queue) fn changed(&self) {
        self.recount();
        if self.is_cold() {
            self.fill(&mut self.state(), 1);
        }
    }

    /// Reads the next page if none is left after items were lost, or are due. A thread that has locked the state does this when it
    /// unlocks it: it may be the caller.
    fn tend(&self) {
        loop {
            // ORDERING: SeqCst; pairs with itself: of a thread that has set the flag and finds the state locked, and the one that
            // unlocks it, the latter sees the flag.
            fence(Ordering::SeqCst);
            // ORDERING: Relaxed; see the fence.
            if !self.is_untended.load(Ordering::Relaxed) {
                return;
            }
            let wakes = DeferredWakes::new();
            let Some(mut state) = self.state.try_lock() else {
                return;
            };
            // ORDERING: Relaxed; whoever sets it again comes after the fill, or fails to lock the state.
            self.is_untended.store(false, Ordering::Relaxed);
            let lost = mem::take(&mut *self.lost.lock());
            // ORDERING: Relaxed; it is counted anew.
            if self.ready.load(Ordering::Relaxed) <= self.wanted() {
                self.fill(&mut state, 1);
            }
            drop(state);
            drop(wakes);
            swallow_panic(|| drop(lost));
        }
    }

    fn wanted(&self) -> i64 {
        // ORDERING: SeqCst; pairs with `stock`: a waiter is seen, or it sees what was filled.
        self.wanted.load(Ordering::SeqCst)
    }

    /// Before a pop that waits for `min` items, and takes up to `max`: brings that many into memory, as far as there are any. So each
    /// pop finds what is most urgent, also if it came since the last page.
    pub(crate) fn stock(&self, min: usize, max: usize) {
        if min > 1 {
            let min = i64::try_from(min).unwrap_or(i64::MAX);
            // ORDERING: SeqCst; see `wanted`.
            self.wanted.fetch_max(min, Ordering::SeqCst);
        }
        if self.is_cold() {
            self.fill(&mut self.state(), max);
        }
    }
}

/// What is left on the disk gives its room back, if other queues use it too.
impl<T: Send + 'static, O: Engine<T>> Drop for Pages<T, O> {
    fn drop(&mut self) {
        self.ram.give_room(self.state.get_mut().index.count());
        drop(self.shared.log().disk().kept(self.shared.id));
    }
}

#[cfg(test)]
mod tests;
