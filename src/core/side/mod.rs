//! A handle's side towards those who wait: its permits, and its places in the lines.
//!
//! All fields may be used by shared reference from any thread, because a future that waits for a
//! transaction may run on another thread than the transaction. Whoever uses them has them alone.

mod admission;
mod failures;
mod leases;
mod order;
mod passes;
mod permits;
mod pops;
mod waits;

use crate::bound::Purse;
use crate::core::shared::Shared;
use crate::order::{Order, StoredOf};
use crate::policy::retry::Failed;
use crate::policy::watch::Post;
use crate::raw::Vacant;
use crate::sync::{Count, Mutex};
use crate::wait::{Line, Place, Word};
use crate::PushError;
use passes::Owed;
use std::sync::Arc;

/// A push was refused because the queue is closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Closed;

/// An item cannot be delayed, because it has no place of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NoRoom;

/// Whether a push may go on. `None`: there is no room.
pub(crate) type Admission<L = ()> = Option<Result<L, Closed>>;

/// What is pushed, if it was admitted, or why not.
#[inline]
pub(crate) fn admitted<L, I>(admission: Admission<L>, items: I) -> Result<(L, I), PushError<I>> {
    match admission {
        Some(Ok(admitted)) => Ok((admitted, items)),
        Some(Err(Closed)) => Err(PushError::Closed(items)),
        None => Err(PushError::Full(items)),
    }
}

/// What makes the end of a transaction a guarded one: that items are leased, that somebody listens, or that
/// an order has to know of it.
const ALWAYS: usize = 1;
/// That it has turns, or items that are counted.
const INDEBTED: usize = 1 << 1;

/// A place for an item whose delivery fails.
type Envelope<T, O> = Vacant<Failed<StoredOf<T, O>>>;

/// What one handle has at a queue, its seat aside.
pub(crate) struct Side<T, O: Order<T>> {
    shared: Arc<Shared<T, O>>,
    /// The line of those who wait for an item: that of the queue, one step nearer.
    ready: Arc<Line>,
    /// Whether the queue neither has a bound nor has to register items.
    plain: bool,
    /// Whether there is more to the end of a transaction than the lanes and the permits: 0 if not.
    guarded: Count,
    /// Only of bounded queues.
    purse: Option<Purse>,
    /// Permits of the open transaction beyond those of the items that it holds.
    extra: Count,
    /// Permits that are kept for a push: those that a batch has so far while it waits for the others,
    /// or that of a sink that is ready.
    gathered: Count,
    /// Where it waits for an item, and where for room: at one of them at a time.
    item_place: Place,
    room_place: Place,
    /// Whether it is the waiter that knows when something will be due: 1 or 0.
    keeps_time: Count,
    /// For items whose delivery may fail.
    envelopes: Mutex<Vec<Envelope<T, O>>>,
    /// The turns of what the transaction has taken.
    turns: Mutex<Vec<Owed>>,
    /// Items of the transaction that the gate counts as held.
    counted: Count,
    /// Only of handles that are watched.
    post: Option<Arc<Post<StoredOf<T, O>>>>,
}

impl<T, O: Order<T>> Side<T, O> {
    /// The side of the handle that has this desk.
    pub(crate) fn new(shared: Arc<Shared<T, O>>, desk: usize, name: Option<Arc<str>>) -> Self {
        let purse = shared.room().map(|room| Purse::new(&room.capacity));
        let is_timed = shared.timed;
        let listens = shared.lease.is_some() || shared.is_told_of();
        let is_watched = name.is_some() || is_timed || listens;
        if is_watched {
            shared.ready().attend();
        }
        let plain = purse.is_none() && !shared.registers();
        let guarded = if listens || Shared::<T, O>::SORTS {
            ALWAYS
        } else {
            0
        };
        let post = is_watched.then(|| shared.posts.add(desk, name));
        Self {
            ready: Arc::clone(shared.ready()),
            shared,
            plain,
            guarded: Count::new(guarded),
            purse,
            extra: Count::default(),
            gathered: Count::default(),
            item_place: Place::default(),
            room_place: Place::default(),
            keeps_time: Count::default(),
            envelopes: Mutex::new(Vec::new()),
            turns: Mutex::new(Vec::new()),
            counted: Count::default(),
            post,
        }
    }

    #[inline]
    pub(crate) fn shared(&self) -> &Arc<Shared<T, O>> {
        &self.shared
    }

    #[inline]
    pub(crate) fn ready(&self) -> &Line {
        &self.ready
    }

    #[inline]
    pub(crate) fn word(&self) -> Word {
        self.ready.word()
    }

    /// Leaves the lines, and gives back what was gathered for a batch that will not be pushed.
    pub(crate) fn leave_lines(&self) {
        self.leave_item_line();
        if let Some(room) = self.shared.room() {
            self.give_back(self.gathered.take());
            self.room_place.leave(&room.line);
        }
    }
}

impl<T, O: Order<T>> Drop for Side<T, O> {
    fn drop(&mut self) {
        self.leave_lines();
        if let Some(post) = &self.post {
            self.shared.posts.remove(post.desk);
        }
        if let Some((purse, room)) = self.room() {
            let spread = purse.leave(&room.capacity);
            room.freed(spread);
        }
    }
}

/// Where an item is while it is held.
fn address_of<T>(item: &T) -> usize {
    let item: *const T = item;
    item as usize
}
