//! Enqueuing: an item is admitted (`admit`), registered and stored, and waiters are notified.

use super::admit::{admitted, Admission, Refusal};
use super::local::{CellOf, Local};
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

/// When a pushed item becomes ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Put {
    /// At once.
    Publish,
    /// When the transaction commits.
    Stage,
}

/// Registers an item, and returns its metadata; `None`: there is no room for it.
pub(crate) trait Register<T, O: Order<T>>:
    Fn(&Shared<T, O>, &T) -> Option<PushMetaOf<T, O>>
{
}

impl<T, O: Order<T>, F: Fn(&Shared<T, O>, &T) -> Option<PushMetaOf<T, O>>> Register<T, O> for F {}

/// Pushes of one item.
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
        let local = self.settled();
        if Shared::<T, O>::SORTS || !local.word().is_only_bounded() {
            return local.put(item, Put::Publish, Shared::register);
        }
        if !local.take_permit(Put::Publish) {
            return Err(PushError::Full(item));
        }
        local.publish(item)
    }
}

/// Pushes of a transaction.
impl<T, O: Order<T>> CellOf<T, O> {
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
        self.borrow().stage(item)
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

    #[inline]
    fn stage(&mut self, item: T) -> Result<(), PushError<T>> {
        if !self.takes_staged() {
            return self.stage_slowly(item);
        }
        let meta = O::Meta::default();
        self.store_staged(Stored { item, meta })
    }

    /// Whether an item can be [staged](Self::store_staged) at once; the transaction has its permit then.
    #[inline]
    fn takes_staged(&mut self) -> bool {
        let (staged, held) = (self.staged(), self.held());
        self.plain || self.word().is_only_bounded() && self.permits.ensure_ahead(staged, held)
    }

    #[inline(never)]
    fn stage_slowly(&mut self, item: T) -> Result<(), PushError<T>> {
        if !self.word().is_only_bounded() {
            return self.put(item, Put::Stage, Shared::register);
        }
        if !self.take_permit(Put::Stage) {
            return Err(PushError::Full(item));
        }
        let meta = O::Meta::default();
        self.store_staged(Stored { item, meta })
    }

    /// Pushes an item with the metadata of its registration, if there is room for it.
    pub(crate) fn put(
        &mut self,
        item: T,
        put: Put,
        register: impl Register<T, O>,
    ) -> Result<(), PushError<T>> {
        let admission = self.admit(&item, put, &register);
        self.store(admission, item, put)
    }

    /// As [`Local::put`], when there is room for the item.
    #[inline]
    pub(crate) fn put_waiting<C: DerefMut<Target = Self>>(
        user: &mut C,
        item: T,
        put: Put,
        wait: Wait,
        register: impl Register<T, O>,
    ) -> Result<(), PushError<T>> {
        if wait.is_over(&user.shared.time) {
            return user.put(item, put, register);
        }
        let worth = user.is_worth_waiting(slice::from_ref(&item));
        let attempt =
            |user: &mut C| user.unless_waiting(|local| local.admit(&item, put, &register));
        let admission = wait::for_room(user, WaitKind::One, worth, wait, attempt);
        user.store(admission, item, put)
    }

    /// Pushes an item, which it takes then, unless waiting for room may help.
    pub(crate) fn put_unless_full(
        &mut self,
        item: &mut Option<T>,
        register: &impl Register<T, O>,
    ) -> Admission {
        match self.admit(item.as_ref()?, Put::Publish, register)? {
            Err(refusal) => Some(Err(refusal)),
            Ok(meta) => {
                let pushed = self.store(Some(Ok(meta)), item.take()?, Put::Publish);
                Some(pushed.map_err(|refused| {
                    *item = Some(refused.into_inner());
                    Refusal::Closed
                }))
            }
        }
    }

    /// Polls for room, and then takes the item and pushes it.
    #[track_caller]
    pub(crate) fn poll_put<C: DerefMut<Target = Self>>(
        user: &mut C,
        item: &mut Option<T>,
        put: Put,
        wake_target: &WakeTarget<'_>,
        register: impl Register<T, O>,
    ) -> Poll<Result<(), PushError<T>>> {
        let waiting = item.as_ref().expect(wait::DONE);
        let worth = user.is_worth_waiting(slice::from_ref(waiting));
        let attempt =
            |user: &mut C| user.unless_waiting(|local| local.admit(waiting, put, &register));
        let poll = wait::poll_room(user, WaitKind::One, worth, wake_target, attempt);
        poll.map(|admission| {
            let item = item.take().expect(wait::DONE);
            user.store(Some(admission), item, put)
        })
    }

    /// Polls for room for an item that is yet unknown, and keeps the permit for [`Local::put`].
    #[cfg(feature = "stream")]
    pub(crate) fn poll_reserve<C: DerefMut<Target = Self>>(
        user: &mut C,
        wake_target: &WakeTarget<'_>,
    ) -> Poll<()> {
        let poll = wait::poll_room(user, WaitKind::One, true, wake_target, |user: &mut C| {
            if !user.word().is_closed() {
                let local = &mut **user;
                if !local.take_permit(Put::Publish) {
                    return None;
                }
                local.permits.gather_one();
            }
            Some(Ok(()))
        });
        poll.map(drop)
    }
}

/// Storing admitted items.
impl<T, O: Order<T>> Local<T, O> {
    /// Stores an item if it was admitted.
    #[inline]
    pub(super) fn store(
        &mut self,
        admission: Admission<PushMetaOf<T, O>>,
        item: T,
        put: Put,
    ) -> Result<(), PushError<T>> {
        let (PushMeta { since, meta }, item) = admitted(admission, item)?;
        if self.shared.timed {
            self.endpoint.note_time(since);
        }
        let stored = Stored { item, meta };
        match put {
            Put::Publish => {
                let hidden = self.endpoint.push_hidden(stored);
                self.announce(hidden)
            }
            Put::Stage => {
                let staged = self.store_staged(stored);
                staged.map_err(|refused| {
                    self.shared.unregister(meta);
                    refused
                })
            }
        }
    }

    /// Stages an item, unless the queue is closed and the transaction holds nothing.
    #[inline]
    fn store_staged(&mut self, stored: StoredOf<T, O>) -> Result<(), PushError<T>> {
        self.endpoint.make_room_for_one();
        let first = self.endpoint.begin_staging();
        if self.ready.fenced_word().is_closed() {
            self.stage_after_close(stored, first)
        } else {
            self.endpoint.stage(stored);
            Ok(())
        }
    }

    /// Stages an item although the queue is closed, if the transaction holds something: then no pop returns `Closed`
    /// before the transaction has ended, or has at least given all items back and shows that it stages.
    #[cold]
    fn stage_after_close(
        &mut self,
        stored: StoredOf<T, O>,
        first: bool,
    ) -> Result<(), PushError<T>> {
        if !self.is_refusing(Put::Stage) {
            self.endpoint.stage(stored);
            return Ok(());
        }
        if first {
            self.endpoint.end_staging();
        }
        Err(self.refuse(stored.item))
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
        self.give_back(1);
        self.shared.unregister(meta);
        Err(self.refuse(item))
    }
}
