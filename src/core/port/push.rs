//! Pushes without a transaction.

use super::Port;
use crate::core::shared::Shared;
use crate::core::side::{admitted, Admission, Closed, Side};
use crate::order::{Known, KnownOf, Order};
use crate::raw::Stored;
use crate::sync::planted;
use crate::wait::{Kind, Waiter};
use crate::PushError;
use std::task::Poll;
use std::time::Duration;

impl<T, O: Order<T>> Port<T, O> {
    #[inline(always)]
    #[allow(clippy::inline_always)] // the push
    pub(crate) fn push(&mut self, item: T) -> Result<(), PushError<T>> {
        if self.seat.is_unsettled() || self.side.word().hinders_push() {
            return self.push_hindered(item);
        }
        let meta = O::Meta::default();
        self.seat.push(Stored { item, meta });
        self.announce()
    }

    /// Pushes to a queue that is bounded, closed or keeps times, or after something was forgotten.
    #[inline(never)]
    fn push_hindered(&mut self, item: T) -> Result<(), PushError<T>> {
        self.settle();
        let admission = self.side.admit_item(&item);
        self.push_if(admission, item)
    }

    /// Pushes an item with what it is registered as, if there is room for it.
    pub(crate) fn push_as(
        &mut self,
        item: T,
        register: impl FnOnce(&Shared<T, O>) -> KnownOf<T, O>,
    ) -> Result<(), PushError<T>> {
        self.settle();
        let admission = self.side.admit_as(register);
        self.push_if(admission, item)
    }

    /// Pushes an item if it was admitted.
    #[inline]
    fn push_if(
        &mut self,
        admission: Admission<KnownOf<T, O>>,
        item: T,
    ) -> Result<(), PushError<T>> {
        let (Known { since, meta }, item) = admitted(admission, item)?;
        self.seat.push_since(Stored { item, meta }, since);
        self.announce()
    }

    /// Wakes for the item just pushed, if need be.
    #[inline]
    fn announce(&mut self) -> Result<(), PushError<T>> {
        if self.side.ready().is_quiet() {
            return Ok(());
        }
        self.tell()
    }

    /// Wakes for the item just pushed. If the queue was closed meanwhile, takes it back, unless
    /// somebody will find it.
    ///
    /// An item that is at the head may have come after the last pop; one behind another item has not,
    /// since that one is still to be popped. Whoever finds that one popped finds ours before it says Closed:
    /// see `raw/strict.rs`.
    #[cold]
    #[inline(never)]
    fn tell(&mut self) -> Result<(), PushError<T>> {
        if !self.side.ready().tell(1).is_closed() {
            return Ok(());
        }
        planted!("port.keeps-late-push", return Ok(()));
        let Some(entry) = self.seat.retract() else {
            return Ok(());
        };
        let Stored { item, meta } = entry.item;
        self.side.give_back(1);
        self.side.shared().unregister(meta);
        self.side.shared().ended(0);
        Err(PushError::Closed(item))
    }

    /// Pushes when there is room, as `admit` finds; without a timeout waits for ever.
    pub(crate) fn push_waiting(
        &mut self,
        item: T,
        timeout: Option<Duration>,
        admit: impl Fn(&Side<T, O>, &T) -> Admission<KnownOf<T, O>>,
    ) -> Result<(), PushError<T>> {
        self.settle();
        let side = &self.side;
        let admission = side.wait_for_room(Kind::One, timeout, || admit(side, &item));
        self.push_if(admission, item)
    }

    /// Polls for room for an item, as `admit` finds it.
    pub(crate) fn poll_admit_item(
        &mut self,
        waiter: &Waiter<'_>,
        admit: impl Fn(&Side<T, O>) -> Admission<KnownOf<T, O>>,
    ) -> Poll<Result<KnownOf<T, O>, Closed>> {
        let side = &self.side;
        side.poll_room(Kind::One, waiter, || admit(side))
    }

    /// Polls for room for an item that is not known yet.
    #[cfg(feature = "stream")]
    pub(crate) fn poll_admit(&mut self, waiter: &Waiter<'_>) -> Poll<Result<(), Closed>> {
        let side = &self.side;
        side.poll_room(Kind::One, waiter, || side.admit())
    }

    /// Pushes what a reservation was made for, or tries to without one.
    #[cfg(feature = "stream")]
    pub(crate) fn push_reserved(&mut self, item: T) -> Result<(), PushError<T>> {
        let admission = self.side.admit_item(&item);
        self.push_if(admission, item)
    }

    /// Pushes after [`Port::poll_admit_item`] was ready.
    pub(crate) fn push_admitted(
        &mut self,
        admitted: Result<KnownOf<T, O>, Closed>,
        item: T,
    ) -> Result<(), PushError<T>> {
        self.push_if(Some(admitted), item)
    }
}
