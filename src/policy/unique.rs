//! Unique keys: of the items that are in a queue or held, at most one has a key.
//!
//! A key is *taken* while it has an entry here, which says by which item, and what that is:
//!
//! | state | from | until |
//! |---|---|---|
//! | staged | the item is registered by a transaction, or a batch | the transaction commits: queued; or aborts: free |
//! | queued | just before the item is published | it is taken: held; or removed: free |
//! | held | the item is taken | just before it is put back, or delayed: queued; just before its commit, or its death: recent, or free |
//! | recent | an item with a key is committed | its window is over |
//!
//! So nobody who knows that an item was committed finds its key taken by it. Only the owner of an item changes its state, and
//! that of an item that others may take is changed before they may.
//!
//! Items that are staged by one transaction share their [`Staging`], so that one step ends the state of all of them. Whoever waits
//! for its end adds a waker there, and then looks again whether the key is still taken by it: an item that is withdrawn
//! before the transaction ends leaves its entry first, and wakes them afterwards.
//!
//! Under the lock of a table runs only `Eq` of keys, before anything is changed.

use crate::sync::{lock, planted, step, swallow_panic, Mutex, RandomState, SMALL};
use crate::time::Time;
use crate::{DuplicateOf, PushError};
use hashbrown::hash_table::{Entry as Place, HashTable};
use std::any::Any;
use std::collections::VecDeque;
use std::hash::{BuildHasher, Hash};
use std::mem;
use std::slice;
use std::sync::Arc;
use std::task::Waker;

/// What becomes of a push whose item has the same [unique key](crate::Builder::unique_by) as another one: see
/// [`Builder::on_duplicate`](crate::Builder::on_duplicate).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
#[cfg_attr(not(feature = "broker"), allow(dead_code, unreachable_pub))]
pub enum OnDuplicate {
    /// It is refused.
    #[default]
    Refuse,
    /// If the other item is ready, delayed or scheduled, its value is replaced by the pushed one. Otherwise the push is refused.
    Replace,
    /// As [`Replace`](Self::Replace), and if the other item is held, the pushed one follows it: it is pushed when the held one is
    /// gone for good. Until then a further push replaces the value of the one that follows.
    Follow,
}

/// How many tables the keys are in: pushes of different keys seldom meet in one. In models, which must not depend on hashes, there
/// is one.
const TABLES: usize = if SMALL { 1 } else { 16 };

/// How many windows that are over end with one call.
const ENDED: usize = 2;

/// A key of any type. Its `Eq` and its destructor are user code.
#[derive(Clone)]
#[cfg_attr(not(feature = "broker"), allow(unreachable_pub))]
pub struct Key {
    hash: u64,
    /// That of the item, for crates that keep queues elsewhere too: by which it is replaced there.
    pub number: u64,
    value: Arc<dyn AnyKey>,
}

trait AnyKey: Send + Sync {
    fn as_any(&self) -> &dyn Any;
    fn is(&self, other: &dyn AnyKey) -> bool;
}

impl<K: Eq + Send + Sync + 'static> AnyKey for K {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn is(&self, other: &dyn AnyKey) -> bool {
        other.as_any().downcast_ref() == Some(self)
    }
}

debug_struct!([] Key);

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.value.is(&*other.value)
    }
}

/// The function that says the key of an item.
#[cfg_attr(not(feature = "broker"), allow(unreachable_pub))]
pub type KeyOf<T> = Arc<dyn Fn(&T) -> Key + Send + Sync>;

/// For crates that keep queues elsewhere too: called with an item that replaces the one with this number, or follows another one,
/// before others can take it. Under a lock.
#[cfg_attr(not(feature = "broker"), allow(unreachable_pub))]
pub type OnSupersede<T> = Arc<dyn Fn(Option<u64>, &mut T) + Send + Sync>;

/// For crates that keep queues elsewhere too: called without a lock with an item whose push has taken its key; an error refuses it, since
/// an item that is elsewhere has that key.
#[cfg_attr(not(feature = "broker"), allow(unreachable_pub))]
pub type OnReserve<T> = Arc<dyn Fn(&T) -> Result<(), PushError<()>> + Send + Sync>;

/// Makes one of a function of the user.
#[cfg_attr(not(feature = "broker"), allow(dead_code, unreachable_pub))]
pub fn key_of<T, K>(key: impl Fn(&T) -> K + Send + Sync + 'static) -> KeyOf<T>
where
    K: Hash + Eq + Send + Sync + 'static,
{
    let hashes = RandomState::new();
    Arc::new(move |item| {
        let key = key(item);
        Key {
            hash: hashes.hash_one(&key),
            number: 0,
            value: Arc::new(key),
        }
    })
}

/// What the keys that one transaction has staged have in common.
pub(crate) struct Staging(Mutex<(Stage, Vec<Waker>)>);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    Open,
    Committed,
    Aborted,
}

impl Staging {
    pub(crate) fn new() -> Self {
        Self(Mutex::new((Stage::Open, Vec::new())))
    }

    fn stage(&self) -> Stage {
        lock(&self.0).0
    }

    /// Adds a waker; returns false if there is nothing to wait for.
    fn add(&self, waker: &Waker) -> bool {
        let waker = waker.clone(); // user code: not under the lock
        let mut state = lock(&self.0);
        let is_open = state.0 == Stage::Open;
        if is_open && !state.1.iter().any(|known| known.will_wake(&waker)) {
            state.1.push(waker);
        }
        is_open
    }

    /// Wakes those that wait for it, for which an item was withdrawn, or all are when this is the end.
    pub(crate) fn wake(&self, end: Option<Stage>) {
        let mut state = lock(&self.0);
        state.0 = end.unwrap_or(state.0);
        let wakers = mem::take(&mut state.1);
        drop(state);
        for waker in wakers {
            step!("unique.ends-unsaid", {
                swallow_panic(|| waker.wake());
            });
        }
    }
}

enum State {
    Queued,
    Held,
    Staged(Arc<Staging>),
    /// Until this time.
    Recent(u64),
}

/// An item that is pushed when a held one with its key is gone for good. It was registered, and has a permit.
pub(crate) struct Next<T, M> {
    pub(crate) key: Key,
    pub(crate) since: u64,
    pub(crate) meta: M,
    pub(crate) item: T,
}

/// A key that is taken.
struct Taken<T, M> {
    key: Key,
    /// The time stamp of the item that has it.
    since: u64,
    state: State,
    /// What replaces the item when it is taken, if anything.
    value: Option<Box<T>>,
    next: Option<Box<Next<T, M>>>,
}

impl<T, M> Taken<T, M> {
    fn new(key: &Key, since: u64, state: State) -> Self {
        Self {
            key: key.clone(),
            since,
            state,
            value: None,
            next: None,
        }
    }

    /// What the item with the key is to a push of this transaction, if any; `None` if the key is free.
    fn is(&self, staging: Option<&Arc<Staging>>, now: u64) -> Option<DuplicateOf> {
        let is_own = |by: &Arc<_>| staging.is_some_and(|own| Arc::ptr_eq(own, by));
        match &self.state {
            State::Queued => Some(DuplicateOf::Queued),
            State::Held => Some(DuplicateOf::Held),
            State::Staged(by) => match by.stage() {
                Stage::Open if is_own(by) => Some(DuplicateOf::SameTransaction),
                Stage::Open => Some(DuplicateOf::Staged),
                Stage::Committed => Some(DuplicateOf::Queued),
                Stage::Aborted => None,
            },
            State::Recent(until) => (now < *until).then_some(DuplicateOf::Recent),
        }
    }
}

struct Table<T, M> {
    taken: HashTable<Taken<T, M>>,
    /// The ends of the windows of recent ones, in their order, and the hashes of the keys.
    windows: VecDeque<(u64, u64)>,
}

derive_default!([T, M] Table<T, M> { taken, windows });

/// What is left of entries: destructors of keys and items, whose panics are caught.
#[must_use = "dropped when no lock is held"]
pub(crate) struct Left<T, M>(Vec<Taken<T, M>>);

/// What is left of an item that has its key no longer, and what followed it, which is to be pushed now.
pub(crate) type Ended<T, M> = (Left<T, M>, Option<Next<T, M>>);

impl<T, M> Drop for Left<T, M> {
    fn drop(&mut self) {
        for taken in self.0.drain(..) {
            if let State::Staged(staging) = &taken.state {
                staging.wake(None);
            }
            swallow_panic(|| drop(taken));
        }
    }
}

impl<T, M> Table<T, M> {
    fn find(&mut self, key: &Key) -> Option<&mut Taken<T, M>> {
        self.taken.find_mut(key.hash, |taken| taken.key == *key)
    }

    /// Frees some keys whose windows are over.
    fn end_windows(&mut self, now: u64, left: &mut Left<T, M>) {
        for _ in 0..ENDED {
            let Some(&(until, hash)) = self.windows.front().filter(|(until, _)| *until <= now)
            else {
                return;
            };
            self.windows.pop_front();
            // Also if it is another key with this hash: its window is over, too.
            let is_over =
                |taken: &Taken<T, M>| matches!(taken.state, State::Recent(end) if end == until);
            if let Ok(entry) = self.taken.find_entry(hash, is_over) {
                left.0.push(entry.remove().0);
            }
        }
    }
}

/// The keys of a queue.
pub(crate) struct Unique<T, M> {
    /// The key of an item. User code.
    pub(crate) key_of: KeyOf<T>,
    /// For how long a key stays taken after a commit; 0 if not at all.
    window: u64,
    pub(crate) rule: OnDuplicate,
    on_supersede: Option<OnSupersede<T>>,
    on_reserve: Option<OnReserve<T>>,
    tables: [Mutex<Table<T, M>>; TABLES],
}

impl<T, M> Unique<T, M> {
    pub(crate) fn new(
        key_of: KeyOf<T>,
        window: u64,
        rule: OnDuplicate,
        on_supersede: Option<OnSupersede<T>>,
        on_reserve: Option<OnReserve<T>>,
    ) -> Self {
        Self {
            key_of,
            window,
            rule,
            on_supersede,
            on_reserve,
            tables: Default::default(),
        }
    }

    fn superseding(&self, number: Option<u64>, item: &mut T) {
        if let Some(call) = &self.on_supersede {
            call(number, item);
        }
    }

    fn table(&self, key: &Key) -> &Mutex<Table<T, M>> {
        #[allow(clippy::cast_possible_truncation, clippy::modulo_one)] // one table in models
        &self.tables[(key.hash >> 32) as usize % TABLES]
    }

    /// The time, if there are windows: a clock is user code.
    pub(crate) fn now(&self, time: &Time) -> u64 {
        if self.window > 0 {
            time.now()
        } else {
            0
        }
    }

    /// When the window of an item that is committed now is over, if there is one. Without a time there is none.
    pub(crate) fn until(&self, time: &Time) -> Option<u64> {
        let mut until = None;
        if self.window > 0 {
            swallow_panic(|| until = Some(time.now().saturating_add(self.window)));
        }
        until
    }

    /// Takes a key for the item with this time stamp, which this transaction stages, or which is published otherwise.
    pub(crate) fn reserve(
        &self,
        key: &Key,
        since: u64,
        staging: Option<&Arc<Staging>>,
        now: u64,
    ) -> Result<(), DuplicateOf> {
        let state = staging.map_or(State::Queued, |by| State::Staged(Arc::clone(by)));
        let taken = Taken::new(key, since, state);
        let mut left = Left(Vec::new());
        let mut table = lock(self.table(key));
        let Table { taken: all, .. } = &mut *table;
        match all.entry(key.hash, |other| other.key == *key, |other| other.key.hash) {
            Place::Vacant(place) => {
                place.insert(taken);
            }
            Place::Occupied(mut place) => {
                if let Some(of) = place.get().is(staging, now) {
                    return Err(of);
                }
                left.0.push(mem::replace(place.get_mut(), taken));
            }
        }
        table.end_windows(now, &mut left);
        Ok(())
    }

    /// Follows [`reserve`](Self::reserve) without an error, by the same item: an item that is elsewhere may have its key.
    pub(crate) fn confirm(&self, item: &T, key: &Key, since: u64) -> Result<(), PushError<()>> {
        if let Some(refusal) = self.refusal(slice::from_ref(item)) {
            return Err(refusal);
        }
        // An item that came here meanwhile has taken it over.
        let is_own = || lock(self.table(key)).find(key).map(|taken| taken.since) == Some(since);
        if self.on_reserve.is_none() || is_own() {
            return Ok(());
        }
        Err(PushError::Duplicate((), DuplicateOf::Queued))
    }

    /// Why the push of these is refused, if an item that is elsewhere has the key of one of them.
    pub(crate) fn refusal(&self, items: &[T]) -> Option<PushError<()>> {
        let call = self.on_reserve.as_ref()?;
        items.iter().find_map(|item| call(item).err())
    }

    /// Takes a key for an item that was elsewhere, whatever has it. If an item followed that, it is to be pushed now.
    pub(crate) fn take_over(&self, key: &Key, since: u64) -> Ended<T, M> {
        let taken = Taken::new(key, since, State::Queued);
        let (mut left, mut next) = (Left(Vec::new()), None);
        let mut table = lock(self.table(key));
        let all = &mut table.taken;
        match all.entry(key.hash, |other| other.key == *key, |other| other.key.hash) {
            Place::Vacant(place) => drop(place.insert(taken)),
            Place::Occupied(mut place) => {
                let mut other = mem::replace(place.get_mut(), taken);
                next = other.next.take().map(|next| *next);
                left.0.push(other);
            }
        }
        drop(table);
        (left, next)
    }

    /// Whether an item may [follow](Self::follow) one with this key.
    pub(crate) fn is_followable(&self, key: &Key) -> bool {
        let mut table = lock(self.table(key));
        let is_there = |taken: &Taken<T, M>| matches!(taken.state, State::Held | State::Queued);
        let taken = table.find(key);
        taken.is_some_and(|taken| is_there(taken) && taken.next.is_none())
    }

    /// What the other item is that has this key, if any. A held one that a push could follow counts only if nothing follows it yet.
    pub(crate) fn duplicate_of(
        &self,
        key: &Key,
        follows: bool,
        staging: Option<&Arc<Staging>>,
        now: u64,
    ) -> Option<DuplicateOf> {
        let follows = follows && self.rule == OnDuplicate::Follow;
        let mut table = lock(self.table(key));
        let taken = table.find(key)?;
        let may_follow = follows && taken.next.is_none();
        let of = taken.is(staging, now)?;
        (!may_follow || of != DuplicateOf::Held).then_some(of)
    }

    /// Adds a waker to a transaction that has staged an item with this key; returns false if there is none. Runs user code.
    pub(crate) fn await_staged(&self, key: &Key, waker: &Waker) -> bool {
        let staging = || match &lock(self.table(key)).find(key)?.state {
            State::Staged(staging) => Some(Arc::clone(staging)),
            _ => None,
        };
        let Some(by) = staging().filter(|staging| staging.add(waker)) else {
            return false;
        };
        planted!("unique.looks-once") || staging().is_some_and(|staging| Arc::ptr_eq(&staging, &by))
    }

    /// An item with a key was taken, or will be put back. Returns what replaces it.
    pub(crate) fn set_held(&self, key: &Key, since: u64, is_held: bool) -> Option<T> {
        let mut table = lock(self.table(key));
        let taken = table.find(key).filter(|taken| taken.since == since)?;
        taken.state = if is_held { State::Held } else { State::Queued };
        if is_held {
            taken.value.take().map(|value| *value)
        } else {
            None
        }
    }

    /// The time stamp of the item with a key has changed.
    pub(crate) fn restamp(&self, key: &Key, since: u64, again: u64) {
        let mut table = lock(self.table(key));
        if let Some(taken) = table.find(key).filter(|taken| taken.since == since) {
            taken.since = again;
        }
    }

    /// Replaces the last one of the items that have this key, unless it is held, by this one. Returns this one with what has the key if
    /// that is not possible. Runs user code.
    pub(crate) fn replace(
        &self,
        key: &Key,
        mut item: T,
        now: u64,
    ) -> Option<(T, Option<DuplicateOf>)> {
        let mut table = lock(self.table(key));
        let Some(taken) = table.find(key) else {
            return Some((item, None));
        };
        let old = match (taken.is(None, now), &mut taken.next) {
            (Some(_), Some(next)) => {
                self.superseding(Some(next.key.number), &mut item);
                Some(mem::replace(&mut next.item, item))
            }
            (Some(DuplicateOf::Queued), None) => {
                self.superseding(Some(taken.key.number), &mut item);
                let old = taken.value.replace(Box::new(item));
                old.map(|old| *old)
            }
            (of, _) => return Some((item, of)),
        };
        drop(table);
        swallow_panic(|| drop(old));
        None
    }

    /// Adds the next item to a held one, or to one that was held in an earlier process; returns it if there is no such one.
    pub(crate) fn follow(&self, mut next: Next<T, M>) -> Option<Next<T, M>> {
        let mut table = lock(self.table(&next.key));
        let held = |taken: &&mut Taken<T, M>| matches!(taken.state, State::Held | State::Queued);
        match table.find(&next.key).filter(held) {
            Some(taken) if taken.next.is_none() => {
                self.superseding(None, &mut next.item);
                taken.next = Some(Box::new(next));
                None
            }
            _ => Some(next),
        }
    }

    /// Frees a key, or at once after a commit keeps it `until` then. If there is a next item that has it then, and is to be
    /// pushed now.
    pub(crate) fn free(&self, key: &Key, since: u64, until: Option<u64>) -> Ended<T, M> {
        let (mut left, mut next) = (Left(Vec::new()), None);
        let mut table = lock(self.table(key));
        let Table { taken, windows } = &mut *table;
        let is_it = |taken: &Taken<T, M>| {
            taken.since == since && !matches!(taken.state, State::Recent(_)) && taken.key == *key
        };
        if let Ok(mut entry) = taken.find_entry(key.hash, is_it) {
            let taken = entry.get_mut();
            next = taken.next.take().map(|next| *next);
            if let Some(next) = &next {
                (taken.since, taken.state) = (next.since, State::Queued);
                taken.key = next.key.clone(); // the caller has the other one
            } else if let Some(until) = until {
                taken.state = State::Recent(until);
                windows.push_back((until, key.hash));
            } else {
                left.0.push(entry.remove().0);
            }
        }
        drop(table);
        (left, next)
    }
}
