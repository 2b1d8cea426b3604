//! What one handle has at its queue.

use super::debts::Owed;
use super::end::Outcome;
use super::permits::Permits;
use super::shared::Shared;
use super::wait;
use crate::order::{Order, StoredOf};
use crate::policy::retry::Failed;
use crate::policy::watch::Post;
use crate::raw::{Endpoint, LocalCell, Party, Record, Session, Tails, Unborrowed, Vacant};
use crate::wait::{Line, Place, Word};
use crate::Reason;
use std::sync::Arc;
use std::thread;

/// A handle's [`Local`], which lends itself to one user at a time.
pub(crate) type Port<T, O> = LocalCell<Local<T, O>>;

/// A place for an item whose delivery fails.
pub(super) type Envelope<T, O> = Vacant<Failed<StoredOf<T, O>>>;

/// What makes the end of a transaction a guarded one: that items are leased, that somebody listens, or that
/// an order has to know of it.
const ALWAYS: u8 = 1;
/// That it has tokens of a rate limit, or items that are counted.
pub(super) const INDEBTED: u8 = 1 << 1;

/// What one handle has at its queue.
pub(crate) struct Local<T, O: Order<T>> {
    pub(super) shared: Arc<Shared<T, O>>,
    /// The line of those who wait for an item: that of the queue, one step nearer.
    pub(super) ready: Arc<Line>,
    pub(super) endpoint: Endpoint<StoredOf<T, O>>,
    /// Whether the queue neither has a bound nor has to register items.
    pub(super) plain: bool,
    /// Whether there is more to the end of a transaction than the shards and the permits: 0 if not.
    pub(super) guarded: u8,
    /// Whether it is the waiter that knows when something will be due.
    pub(super) keeps_time: bool,
    pub(super) permits: Permits,
    /// Where it waits for an item, and where for room: at one of them at a time.
    pub(super) item_place: Place,
    pub(super) room_place: Place,
    /// For items whose delivery may fail.
    pub(super) envelopes: Vec<Envelope<T, O>>,
    /// The tokens of what the transaction has taken.
    pub(super) owed: Vec<Owed>,
    /// Items of the transaction that the gate counts as held.
    pub(super) counted: usize,
    /// Only of handles that are watched.
    pub(super) post: Option<Arc<Post<StoredOf<T, O>>>>,
    /// What the last commit over several queues did here.
    pub(super) concluded: Outcome,
}

impl<T, O: Order<T>> Local<T, O> {
    /// What a handle of this name, or of none, has.
    pub(crate) fn new(shared: Arc<Shared<T, O>>, name: Option<Arc<str>>) -> Self {
        let permits = Permits::new(shared.room());
        let listens = Shared::<T, O>::LEASES || shared.is_told_of();
        let is_watched = name.is_some() || shared.timed || listens;
        if is_watched {
            shared.ready().attend();
        }
        let guarded = listens || Shared::<T, O>::SORTS;
        let endpoint = Endpoint::new(Arc::clone(shared.shards()));
        let post = is_watched.then(|| shared.posts.add(endpoint.number(), name));
        Self {
            ready: Arc::clone(shared.ready()),
            plain: !permits.is_bounded() && !shared.registers(),
            guarded: if guarded { ALWAYS } else { 0 },
            shared,
            endpoint,
            keeps_time: false,
            permits,
            item_place: Place::default(),
            room_place: Place::default(),
            envelopes: Vec::new(),
            owed: Vec::new(),
            counted: 0,
            post,
            concluded: Outcome::default(),
        }
    }

    /// As [`Local::new`], in a cell.
    pub(crate) fn in_cell(shared: Arc<Shared<T, O>>, name: Option<Arc<str>>) -> Port<T, O> {
        LocalCell::new(Self::new(shared, name))
    }

    #[inline]
    pub(crate) fn shared(&self) -> &Arc<Shared<T, O>> {
        &self.shared
    }

    #[inline]
    pub(super) fn word(&self) -> Word {
        self.ready.word()
    }

    #[inline]
    pub(crate) fn staged(&self) -> usize {
        self.endpoint.staged()
    }

    #[inline]
    pub(crate) fn held(&self) -> usize {
        self.endpoint.held()
    }

    /// Whether a push may find no room: the queue has a bound, or keys have limits.
    pub(crate) fn may_find_full(&self) -> bool {
        self.permits.is_bounded() || self.shared.is_limited()
    }

    /// Whether there is more to a commit than the shards and the permits.
    #[inline]
    pub(crate) fn is_guarded(&self) -> bool {
        self.guarded != 0
    }

    /// See [`Shared::ended`].
    #[inline]
    pub(super) fn ended(&self, count: usize) {
        if self.ready.ended(count) {
            self.shared.tell_if_idle();
        }
    }

    /// Leaves the lines, and gives back what was gathered for a batch that will not be pushed.
    pub(crate) fn leave_lines(&mut self) {
        wait::leave_item_line(self);
        if let Some(room) = self.shared.room() {
            self.permits.give_back_gathered(room);
            self.room_place.leave(&room.line);
        }
    }
}

impl<T, O: Order<T>> Session for Local<T, O> {
    type Stored = StoredOf<T, O>;

    #[inline]
    fn endpoint(&mut self) -> &mut Endpoint<StoredOf<T, O>> {
        &mut self.endpoint
    }

    fn end_waiting(&mut self) {
        self.leave_lines();
        if self.endpoint.put_back() {
            self.shared.ended(1);
        }
    }

    fn settle(&mut self, unborrowed: &Unborrowed<'_>) {
        if self.endpoint.is_taken() {
            self.endpoint.drop_taken(unborrowed);
        }
        self.abort_for(&Reason::Forgotten.into(), unborrowed);
    }

    fn abort(&mut self, unborrowed: &Unborrowed<'_>) {
        let reason = if thread::panicking() {
            Reason::Panicked
        } else {
            Reason::Aborted
        };
        self.abort_for(&reason.into(), unborrowed);
    }
}

impl<T, O: Order<T>> Party for Port<T, O> {
    fn collect(&mut self, tails: &mut Tails) {
        self.get_mut().endpoint.collect(tails);
    }

    fn announce(&mut self, record: Record) {
        self.get_mut().endpoint.announce(record);
    }

    fn conclude(&mut self) {
        let (local, unborrowed) = self.whole();
        local.concluded = Outcome {
            published: local.staged(),
            freed: local.held(),
        };
        local.endpoint.conclude(&unborrowed);
    }
}

impl<T, O: Order<T>> Drop for Local<T, O> {
    fn drop(&mut self) {
        self.leave_lines();
        if let Some(post) = &self.post {
            self.shared.posts.remove(post.counters);
        }
        self.permits.leave(self.shared.room());
    }
}

/// Where an item is while it is held.
pub(super) fn address_of<T>(item: &T) -> usize {
    let item: *const T = item;
    item as usize
}
