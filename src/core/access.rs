//! A handle's access to its queue: the shards and permits by which it stores and takes items.

use super::mode::{Ready, DRAINED, SLOWS_PUSH};
use super::shared::Shared;
use super::staged::AtNeed;
use crate::bound::Permits;
use crate::order::{Order, PushMeta, PushMetaOf, StoredOf};
use crate::raw::{Endpoint, Entry, HeldPosition, Holder, Stager, Stored, Unborrowed};
use crate::sync::{defer_with, planted};
use crate::wait::WaitWord;
use crate::PushError;
use std::sync::Arc;

/// A handle's access to its queue.
#[allow(clippy::struct_excessive_bools)] // each is read by itself, by another call
pub(crate) struct Access<T, O: Order<T>> {
    pub(super) shared: Arc<Shared<T, O>>,
    /// The queue's wait queue for items, without the indirection through `shared`.
    pub(super) ready: Ready,
    pub(super) endpoint: Endpoint<StoredOf<T, O>>,
    pub(super) permits: Permits,
    /// Whether the queue is unbounded and does not register items.
    pub(super) plain: bool,
    /// Whether a push may be refused by an open queue: it is bounded, keys have limits or are unique, or
    /// items have weights.
    pub(super) may_refuse: bool,
    /// Whether the queue is bounded, and its items have weights.
    weighs: bool,
    /// Whether its transaction is that of an item which is out for delivery: that counts as held by it.
    vouched: bool,
    /// What few transactions need; made for the first of them.
    pub(super) at_need: Option<Box<AtNeed<T, O>>>,
}

/// When a pushed item becomes ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Put {
    /// At once.
    Publish,
    /// When the transaction commits.
    Stage,
}

impl<T, O: Order<T>> Access<T, O> {
    pub(super) fn new(shared: Arc<Shared<T, O>>) -> Self {
        let permits = Permits::new(shared.room());
        Self {
            ready: shared.ready().clone(),
            endpoint: Endpoint::new(Arc::clone(shared.shards())),
            plain: !permits.is_bounded() && !shared.registers(),
            may_refuse: permits.is_bounded() || shared.is_limited() || shared.refuses_some(),
            weighs: permits.is_bounded() && shared.weighs(),
            permits,
            vouched: false,
            at_need: None,
            shared,
        }
    }

    /// From now on its transactions are those of items that are out for delivery, and open as long.
    #[cfg(feature = "workers")]
    pub(crate) fn vouch(&mut self) {
        self.vouched = true;
    }

    /// Whether the queue is bounded, and its items have weights.
    #[inline]
    pub(super) fn weighs(&self) -> bool {
        cfg!(feature = "broker") && self.weighs
    }

    /// Whether nothing keeps the queue from being drained before the transaction has ended.
    fn holds_nothing(&self) -> bool {
        self.held() == 0 && !self.vouched
    }

    /// Whether the transaction holds or has staged any item.
    pub(crate) fn has_work(&self) -> bool {
        !self.holds_nothing() || self.staged() > 0
    }

    #[inline]
    pub(crate) fn shared(&self) -> &Arc<Shared<T, O>> {
        &self.shared
    }

    /// Whether keys are unique.
    #[inline]
    pub(super) fn is_unique(&self) -> bool {
        self.may_refuse && self.shared.unique().is_some()
    }

    #[inline]
    pub(super) fn word(&self) -> WaitWord {
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

    /// What other threads can see of the transaction.
    pub(crate) fn holder(&self) -> Holder {
        self.endpoint.holder()
    }

    /// See [`Shared::notify_end`].
    #[inline]
    pub(super) fn notify_end(&self, count: usize) {
        if self.ready.notify_end(count) {
            self.shared.end_seen(count);
        }
    }

    /// Takes a permit for one more item; returns whether there was one.
    pub(super) fn take_permit(&mut self, put: Put) -> bool {
        let (staged, held) = (self.staged(), self.held());
        match put {
            Put::Publish => self.permits.take_gathered_or_one(),
            Put::Stage => self.permits.ensure_permit(staged, held),
        }
    }

    /// Releases the permits that the transaction no longer needs.
    #[inline]
    pub(super) fn release(&mut self) {
        if self.permits.has_extra() {
            let (staged, held) = self.loads();
            self.permits.release(staged, held);
        }
    }

    /// Whether the queue is closed to this push. A transaction may push while it holds something, unless all its items
    /// have been reclaimed since, and the queue is already drained.
    pub(super) fn is_refusing(&self, put: Put) -> bool {
        let word = self.word();
        word.is_closed() && (put == Put::Publish || self.holds_nothing() || word.has(DRAINED))
    }

    /// Whether the keys of some items have room for them, possibly since items were reclaimed.
    pub(super) fn fits(&self, items: &[T]) -> bool {
        self.shared.fits(items) || self.shared.reclaim() && self.shared.fits(items)
    }
}

/// Storing.
impl<T, O: Order<T>> Access<T, O> {
    /// Whether an item can be [published](Self::publish) at once; it has its permit then.
    #[inline(always)] // the push
    pub(super) fn takes_push(&mut self) -> bool {
        let word = self.word();
        !word.has(SLOWS_PUSH) || word.is_only_bounded() && self.permits.take_ahead()
    }

    /// Pushes an item that has a permit and needs no registration.
    #[inline(always)] // the push
    pub(super) fn publish(&mut self, item: T) -> Result<(), PushError<T>> {
        let meta = O::Meta::default();
        let hidden = self.endpoint.push_hidden(Stored { item, meta });
        self.announce(hidden)
    }

    /// Whether an item can be [staged](Self::store_staged) at once; the transaction has its permit then.
    #[inline]
    pub(super) fn takes_staged(&mut self) -> bool {
        let (staged, held) = (self.staged(), self.held());
        self.plain || self.word().is_only_bounded() && self.permits.ensure_ahead(staged, held)
    }

    /// As [`takes_staged`](Self::takes_staged), which has to follow if this is false, and runs no user code.
    #[inline(always)] // the push of a transaction
    pub(super) fn takes_staged_at_once(&mut self) -> bool {
        let (staged, held) = (self.staged(), self.held());
        self.plain || self.word().is_only_bounded() && self.permits.ensure_unsaid(staged, held)
    }

    /// Stages an item, unless the queue is closed and the transaction holds nothing.
    #[inline]
    pub(super) fn store_staged(&mut self, stored: StoredOf<T, O>) -> Result<(), PushError<T>> {
        self.endpoint.make_room_for_one();
        if self.begin_staging(Put::Stage) {
            self.endpoint.stage(stored);
            return Ok(());
        }
        self.shared.unregister(stored.meta);
        Err(self.refuse(stored.item))
    }

    /// Stores an item that was registered, and has its permit.
    #[inline(always)] // the push of an order
    pub(super) fn store_registered(
        &mut self,
        stored: StoredOf<T, O>,
        put: Put,
    ) -> Result<(), PushError<T>> {
        match put {
            Put::Publish => {
                let hidden = self.endpoint.push_hidden(stored);
                self.announce(hidden)
            }
            Put::Stage => self.store_staged(stored),
        }
    }

    /// As [`Access::store_registered`], for an item with a time stamp.
    #[inline(never)] // apart from the items without, which most queues have
    pub(super) fn store_timed(
        &mut self,
        stored: StoredOf<T, O>,
        since: u64,
        put: Put,
    ) -> Result<(), PushError<T>> {
        self.endpoint.note_time(since);
        let stored = self.store_registered(stored, put);
        if stored.is_err() {
            self.shared.forget(since);
            return stored;
        }
        if put == Put::Publish {
            self.shared.pushed(since);
        }
        Ok(())
    }

    /// Announces that items are staged; returns false if the queue refuses them. One that is closed does not if the
    /// transaction holds something: then no pop returns `Closed` before the transaction has ended, or has at least given
    /// all items back and shows that it stages.
    #[inline]
    pub(super) fn begin_staging(&mut self, put: Put) -> bool {
        let first = self.endpoint.begin_staging();
        !self.ready.fenced_word().is_closed() || self.stages_after_close(put, first)
    }

    #[cold]
    fn stages_after_close(&mut self, put: Put, first: bool) -> bool {
        let refuses = self.is_refusing(put);
        if refuses && first {
            self.endpoint.counters().abort_staging();
        }
        !refuses
    }

    /// Refuses items because the queue is closed. Another thread may have observed this transaction as open, although
    /// it had no work, and wait for its end.
    #[cold]
    pub(super) fn refuse<I>(&self, items: I) -> PushError<I> {
        self.shared.notify_end(0);
        PushError::Closed(items)
    }

    /// Shows the item just pushed if it is hidden, and wakes a waiter for it, if there is one.
    #[inline]
    pub(super) fn announce(&mut self, hidden: bool) -> Result<(), PushError<T>> {
        if !hidden && self.ready.needs_no_notify() {
            return Ok(());
        }
        self.notify(hidden)
    }

    /// Shows the item just pushed if it is hidden, and wakes a waiter for it.
    #[cold]
    #[inline(never)]
    fn notify(&mut self, hidden: bool) -> Result<(), PushError<T>> {
        if hidden {
            self.endpoint.show();
        }
        if self.ready.notify_slowly(1).is_closed() {
            return self.retract_if_late();
        }
        Ok(())
    }

    /// Retracts the item just pushed, since the queue was closed meanwhile, unless a pop is certain to find it. A pop that saw
    /// it may wait for what follows, so [`refuse`](Self::refuse) notifies an end.
    ///
    /// An item at the head may have been published after the last pop; one behind another item was not, since that
    /// one is still to be popped. A pop that finds that one gone finds ours before it returns `Closed`: see
    /// `raw/registry/strict.rs`.
    #[cold]
    #[inline(never)]
    fn retract_if_late(&mut self) -> Result<(), PushError<T>> {
        planted!("put.keeps-late-push", return Ok(()));
        let Some(Stored { item, meta }) = self.endpoint.retract() else {
            return Ok(());
        };
        if !self.weighs() {
            self.permits.give_back(1);
        }
        self.shared.unregister(meta);
        Err(self.refuse(item))
    }
}

/// Batches.
impl<T, O: Order<T>> Access<T, O> {
    /// Stages items with the metadata of their registration, and commits them if they are to be published.
    pub(super) fn store_all(
        &mut self,
        items: impl Iterator<Item = T>,
        put: Put,
        mut register: impl FnMut(&Shared<T, O>, &T) -> PushMetaOf<T, O>,
    ) -> Result<usize, PushError<Vec<T>>> {
        if !self.begin_staging(put) {
            let _: PushError<()> = self.refuse(());
            return Err(PushError::Closed(items.collect()));
        }
        let before = self.staged();
        // Without items, or if user code panics.
        let mut local = defer_with(&mut *self, |local| local.end_batch(before));
        if local.shared.registers() {
            for item in items {
                let meta = register(&local.shared, &item);
                local.stage_registered(item, meta);
            }
        } else {
            local.stage_all(items);
        }
        let count = local.staged() - before;
        if count == 0 {
            return Ok(0);
        }
        local.cancel();
        if put == Put::Publish {
            let published = self.endpoint.commit_staged();
            self.end_push(published);
            self.notify_end(published);
        }
        Ok(count)
    }

    /// Ends the staging of a batch of which nothing is staged, or which is not complete: what was staged `before` stays.
    fn end_batch(&mut self, before: usize) {
        if before == 0 {
            self.endpoint.counters().abort_staging();
            self.permits.end(0, 0);
            self.shared.notify_end(0);
        }
        self.drop_staged(before);
    }

    /// Stages items, where the queue registers none.
    fn stage_all(&mut self, items: impl Iterator<Item = T>) {
        let mut items = items.fuse();
        while let Some(first) = items.next() {
            Self::stage_some(first, &mut items, &mut self.endpoint.stager());
        }
    }

    /// Stages an item, and further ones while the segment has slots.
    #[inline]
    fn stage_some(
        first: T,
        items: &mut impl Iterator<Item = T>,
        stager: &mut Stager<'_, StoredOf<T, O>>,
    ) {
        let meta = O::Meta::default();
        stager.stage(Stored { item: first, meta });
        while stager.has_room() {
            let Some(item) = items.next() else {
                break;
            };
            stager.stage(Stored { item, meta });
        }
    }

    /// Stages an item with the metadata of its registration.
    pub(super) fn stage_registered(&mut self, item: T, PushMeta { since, meta }: PushMetaOf<T, O>) {
        if self.shared.timed {
            self.endpoint.note_time(since);
        }
        self.endpoint.stage(Stored { item, meta });
    }
}

/// Items that a store keeps elsewhere.
impl<T, O: Order<T>> Access<T, O> {
    /// Shows the transaction as one that has staged something, though it has not; returns whether the queue is open.
    pub(crate) fn stage_nothing(&mut self) -> bool {
        let is_open = self.begin_staging(Put::Stage);
        if !is_open {
            let _: PushError<()> = self.refuse(());
        }
        is_open
    }

    /// Drops the staged items, whose permits stay taken when the transaction commits.
    pub(crate) fn keep_room(&mut self) {
        let (staged, _) = self.loads();
        self.drop_staged(0);
        self.endpoint.counters().abort_staging();
        self.permits.keep(staged);
    }
}

/// The end of a transaction.
impl<T, O: Order<T>> Access<T, O> {
    /// Drops the staged items but the first ones, which are so many.
    #[inline]
    pub(super) fn drop_staged(&mut self, kept: usize) {
        if self.staged() > kept && (Shared::<T, O>::REGISTERS || self.shared.records().is_some()) {
            return self.withdraw_staged(kept);
        }
        self.endpoint.drop_staged(kept);
    }

    /// As [`drop_staged`](Self::drop_staged), where items are known.
    #[cold]
    #[inline(never)]
    fn withdraw_staged(&mut self, kept: usize) {
        // The destructor of an item may panic.
        let mut local = defer_with(self, |local| {
            if local.staged() > kept {
                local.withdraw_staged(kept);
            }
        });
        while let Some(entry) = local.endpoint.unstage(kept) {
            let Entry { item, delivery } = &entry;
            let (meta, since) = (item.meta, delivery.since);
            local.shared.withdraw(PushMeta { since, meta });
            drop(entry);
        }
    }

    /// Wakes waiters for the staged items that a commit `published`, and for the room of the held ones that it `freed`, except
    /// for that of the items that are to be scheduled `later`; `loads` are their permits, where they have weights.
    #[inline(always)] // the commit
    pub(super) fn wake_for(
        &mut self,
        (published, later, freed): (usize, usize, usize),
        loads: Option<(usize, usize)>,
    ) {
        let (needed, left) = loads.unwrap_or((published + later, freed));
        self.permits.end(left, needed);
        self.notify_end(published);
    }

    /// Records that the held items are gone for good.
    pub(super) fn retire_held(&mut self, unborrowed: &Unborrowed<'_>) {
        if Shared::<T, O>::REGISTERS || self.shared.records().is_some() {
            let mut position = HeldPosition::default();
            let held = |position: &mut _| self.endpoint.next_held(position, unborrowed);
            while let Some((stored, delivery)) = held(&mut position) {
                self.shared.forget(delivery.since);
                self.shared.retire(stored.meta);
            }
        }
    }
}
