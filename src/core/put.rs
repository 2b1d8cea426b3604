//! Enqueuing: an item or a batch is admitted (`admit`), registered and stored, and waiters are notified.

use super::admit::{Load, Put, Register};
use super::local::{CellOf, Local};
use super::refusal::{Admission, Refusal};
use super::shared::Shared;
use super::wait;
use crate::order::{Order, PushMeta, PushMetaOf, StoredOf};
use crate::raw::Stored;
use crate::sync::planted;
use crate::time::Wait;
use crate::wait::{WaitKind, WakeTarget};
use crate::PushError;
use std::ops::DerefMut;
use std::slice;
use std::task::Poll;

/// The fast pushes of one item, each with its one slow function.
impl<T, O: Order<T>> CellOf<T, O> {
    #[inline(always)] // the push
    pub(crate) fn push(&mut self, item: T) -> Result<(), PushError<T>> {
        if Shared::<T, O>::SORTS || self.is_unsettled() || !self.get_mut().takes_push() {
            return self.push_slowly(item);
        }
        self.get_mut().publish(item)
    }

    #[inline(never)]
    pub(crate) fn push_slowly(&mut self, item: T) -> Result<(), PushError<T>> {
        self.settled().put(item, Put::Publish, Shared::register)
    }

    /// Stages an item if the queue is plain and nothing else has to be done: no barrier passed, no memory allocated.
    #[inline(always)] // the push of a transaction
    pub(crate) fn stage_at_once(&self, item: T) -> Result<(), T> {
        let meta = O::Meta::default();
        let staged = self.stage_next(
            Stored { item, meta },
            |local| local.plain,
            |local| local.ready.is_surely_open(),
        );
        staged.map_err(Stored::into_item)
    }

    /// Stages an item.
    #[inline(never)]
    #[track_caller]
    pub(crate) fn stage(&self, item: T) -> Result<(), PushError<T>> {
        let mut local = self.borrow();
        if !local.takes_staged() {
            return local.put(item, Put::Stage, Shared::register);
        }
        let meta = O::Meta::default();
        local.store_staged(Stored { item, meta })
    }
}

impl<T, O: Order<T>> Local<T, O> {
    /// Whether an item can be [published](Self::publish) at once; it has its permit then.
    #[inline(always)] // the push
    fn takes_push(&mut self) -> bool {
        let word = self.word();
        !word.slows_push() || word.is_only_bounded() && self.permits.take_ahead()
    }

    /// Pushes an item that has a permit and needs no registration.
    #[inline(always)] // the push
    fn publish(&mut self, item: T) -> Result<(), PushError<T>> {
        let meta = O::Meta::default();
        let hidden = self.endpoint.push_hidden(Stored { item, meta });
        self.announce(hidden)
    }

    /// Whether an item can be [staged](Self::store_staged) at once; the transaction has its permit then.
    #[inline]
    fn takes_staged(&mut self) -> bool {
        let (staged, held) = (self.staged(), self.held());
        self.plain || self.word().is_only_bounded() && self.permits.ensure_ahead(staged, held)
    }
}

/// Pushes of an item or a batch.
impl<T, O: Order<T>> Local<T, O> {
    /// Pushes if there is room.
    pub(crate) fn put<L: Load<T, O>>(
        &mut self,
        load: L,
        put: Put,
        register: impl Register<T, O>,
    ) -> Result<L::Pushed, PushError<L>> {
        let admission = self.admit(&load, put, &register);
        self.store_admitted(admission, load, put)
    }

    /// As [`Local::put`], when there is room.
    #[inline]
    pub(crate) fn put_waiting<C: DerefMut<Target = Self>, L: Load<T, O>>(
        user: &mut C,
        load: L,
        put: Put,
        wait: Wait,
        register: impl Register<T, O>,
    ) -> Result<L::Pushed, PushError<L>> {
        if wait.is_over(&user.shared.time) {
            return user.put(load, put, register);
        }
        let worth = user.is_worth_waiting(load.as_slice());
        let attempt =
            |user: &mut C| user.unless_waiting(|local| local.admit(&load, put, &register));
        let admission = wait::for_room(user, L::KIND, worth, wait, attempt);
        user.store_admitted(admission, load, put)
    }

    /// As [`Local::put`], unless waiting for room may help: then the load stays where it is.
    pub(crate) fn put_unless_full<L: Load<T, O>>(
        &mut self,
        load: &mut Option<L>,
        register: &impl Register<T, O>,
    ) -> Option<Result<L::Pushed, PushError<L>>> {
        let admission = self.admit(load.as_ref().expect(wait::DONE), Put::Publish, register)?;
        let load = load.take().expect(wait::DONE);
        Some(self.store_admitted(Some(admission), load, Put::Publish))
    }

    /// Polls for room, and then takes the load and pushes it.
    #[track_caller]
    pub(crate) fn poll_put<C: DerefMut<Target = Self>, L: Load<T, O>>(
        user: &mut C,
        load: &mut Option<L>,
        put: Put,
        wake_target: &WakeTarget<'_>,
        register: impl Register<T, O>,
    ) -> Poll<Result<L::Pushed, PushError<L>>> {
        let waiting = load.as_ref().expect(wait::DONE);
        let attempt =
            |user: &mut C| user.unless_waiting(|local| local.admit(waiting, put, &register));
        let poll = if user.is_worth_waiting(waiting.as_slice()) {
            wait::poll_room(user, L::KIND, wake_target, attempt).map(Some)
        } else {
            Poll::Ready(attempt(user))
        };
        poll.map(|admission| {
            let load = load.take().expect(wait::DONE);
            user.store_admitted(admission, load, put)
        })
    }

    /// Polls for room for an item that is yet unknown, and keeps the permit for [`Local::put`].
    #[cfg(feature = "stream")]
    pub(crate) fn poll_reserve<C: DerefMut<Target = Self>>(
        user: &mut C,
        wake_target: &WakeTarget<'_>,
    ) -> Poll<()> {
        if !user.permits.is_bounded() {
            return Poll::Ready(());
        }
        let attempt = |user: &mut C| {
            let local = &mut **user;
            if !local.word().is_closed() {
                let takes = |local: &mut Self| local.take_permit(Put::Publish);
                if !takes(local) && !(local.shared.reclaim() && takes(local)) {
                    return None;
                }
                local.permits.gather_one();
            }
            Some(Ok::<_, Refusal>(()))
        };
        wait::poll_room(user, WaitKind::One, wake_target, attempt).map(drop)
    }

    /// Stores what was admitted.
    #[inline]
    fn store_admitted<L: Load<T, O>>(
        &mut self,
        admission: Admission<L::Metas>,
        load: L,
        put: Put,
    ) -> Result<L::Pushed, PushError<L>> {
        match admission.unwrap_or(Err(Refusal::Full)) {
            Ok(metas) => load.store(self, metas, put),
            Err(refusal) => Err(refusal.of(load)),
        }
    }
}

impl<T, O: Order<T>> Load<T, O> for T {
    type Metas = PushMetaOf<T, O>;
    type Pushed = ();
    const KIND: WaitKind = WaitKind::One;

    fn as_slice(&self) -> &[T] {
        slice::from_ref(self)
    }

    #[inline]
    fn take_permits(&self, local: &mut Local<T, O>, put: Put) -> bool {
        local.take_permit(put)
    }

    fn return_permits(local: &mut Local<T, O>, put: Put) {
        match put {
            Put::Publish => local.permits.give_back(1),
            Put::Stage => local.release(),
        }
    }

    #[inline]
    fn register(
        &self,
        shared: &Shared<T, O>,
        register: &impl Register<T, O>,
    ) -> Option<PushMetaOf<T, O>> {
        let since = shared.stamp();
        let meta = register(shared, 0, self)?;
        Some(PushMeta { since, meta })
    }

    #[inline]
    fn store(
        self,
        local: &mut Local<T, O>,
        PushMeta { since, meta }: PushMetaOf<T, O>,
        put: Put,
    ) -> Result<(), PushError<T>> {
        if local.shared.timed {
            local.endpoint.note_time(since);
        }
        let stored = Stored { item: self, meta };
        match put {
            Put::Publish => {
                let hidden = local.endpoint.push_hidden(stored);
                local.announce(hidden)
            }
            Put::Stage => local.store_staged(stored),
        }
    }
}

/// Storing.
impl<T, O: Order<T>> Local<T, O> {
    /// Stages an item, unless the queue is closed and the transaction holds nothing.
    #[inline]
    fn store_staged(&mut self, stored: StoredOf<T, O>) -> Result<(), PushError<T>> {
        self.endpoint.make_room_for_one();
        if self.begin_staging(Put::Stage) {
            self.endpoint.stage(stored);
            return Ok(());
        }
        self.shared.unregister(stored.meta);
        Err(self.refuse(stored.item))
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
            self.endpoint.end_staging();
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
    fn announce(&mut self, hidden: bool) -> Result<(), PushError<T>> {
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

    /// Retracts the item just pushed, since the queue was closed meanwhile, unless a pop is certain to find it.
    ///
    /// An item at the head may have been published after the last pop; one behind another item was not, since that
    /// one is still to be popped. A pop that finds that one gone finds ours before it returns `Closed`: see
    /// `raw/registry/strict.rs`.
    #[cold]
    #[inline(never)]
    fn retract_if_late(&mut self) -> Result<(), PushError<T>> {
        planted!("put.keeps-late-push", return Ok(()));
        let Some(entry) = self.endpoint.retract() else {
            return Ok(());
        };
        let Stored { item, meta } = entry.item;
        self.permits.give_back(1);
        self.shared.unregister(meta);
        Err(self.refuse(item))
    }
}
