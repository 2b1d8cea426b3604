//! Deliveries: items that a transaction takes, until they are handed out.
//!
//! If the queue counts deliveries over all processes, a delivery is written before the item is handed out: written, and not
//! synced, since a process that is killed does not take that back. A call that pops and commits hands nothing out before
//! the commit is on the disk, so its delivery needs no mark.

use crate::batch::{Batch, Change};
use crate::error::StoreError;
use crate::item::{Item, Items};
use crate::log::{Completion, Log};
use crate::order::{Engine, EntryOf, Order};
use crate::queue::shared::Shared;
use parking_lot::Mutex;
use std::future::poll_fn;
use std::iter;
use std::sync::Arc;
use std::task::{Poll, Waker};

/// An item that was taken in memory.
pub(crate) type RamItem<'t, T, O> = requeue::Item<'t, EntryOf<T, O>>;
/// A batch of them.
pub(crate) type RamItems<'t, T, O> = requeue::iter::Items<'t, EntryOf<T, O>, <O as Engine<T>>::Ram>;

impl<T: Send + 'static, O: Engine<T>> Shared<T, O> {
    /// The marks of deliveries, if there are to be any.
    fn marks(&self, deliveries: impl Iterator<Item = (u64, u32)>) -> Option<Batch> {
        self.max_attempts?;
        let mut batch = Batch::default();
        let marks = deliveries.map(|(id, attempts)| Change::Delivered(self.key(id), attempts));
        batch.others.extend(marks);
        Some(batch)
    }

    /// Writes down that items are delivered, and waits until that is written.
    #[inline]
    pub(crate) fn mark(
        &self,
        deliveries: impl Iterator<Item = (u64, u32)>,
    ) -> Result<(), StoreError> {
        match self.marks(deliveries) {
            Some(mut batch) => self.log().write(&mut batch),
            None => Ok(()),
        }
    }

    /// As [`mark`](Self::mark), in a task.
    pub(crate) async fn mark_async(
        &self,
        deliveries: impl Iterator<Item = (u64, u32)>,
    ) -> Result<(), StoreError> {
        match self.marks(deliveries) {
            Some(mut batch) => wait_for(|then| self.log().write_then(&mut batch, then)).await,
            None => Ok(()),
        }
    }
}

/// Waits in a task until everything that was added to the log is on the disk.
pub(crate) async fn flush(log: &Log) -> Result<(), StoreError> {
    wait_for(|then| log.commit_then(&mut Batch::default(), then)).await
}

/// Waits in a task until the log has called what `add` gives it.
async fn wait_for(
    add: impl FnOnce(Completion) -> Result<(), (StoreError, Completion)>,
) -> Result<(), StoreError> {
    let written = Arc::new(Written::default());
    let at_end = Arc::clone(&written);
    add(Box::new(move |result| at_end.end(result))).map_err(|(error, _)| error)?;
    poll_fn(|context| written.poll(context.waker())).await
}

/// Whether the log has written a batch, and who waits for it.
#[derive(Default)]
struct Written {
    state: Mutex<WrittenState>,
}

#[derive(Default)]
struct WrittenState {
    result: Option<Result<(), StoreError>>,
    waker: Option<Waker>,
}

impl Written {
    fn end(&self, result: Result<(), StoreError>) {
        let mut state = self.state.lock();
        state.result = Some(result);
        let waker = state.waker.take();
        drop(state);
        // Wakers are code of users, so not under the lock.
        waker.into_iter().for_each(Waker::wake);
    }

    fn poll(&self, waker: &Waker) -> Poll<Result<(), StoreError>> {
        let waker = waker.clone();
        let mut state = self.state.lock();
        let (result, unused) = match state.result.take() {
            Some(result) => (Poll::Ready(result), Some(waker)),
            None => (Poll::Pending, state.waker.replace(waker)),
        };
        drop(state);
        drop(unused);
        result
    }
}

/// A delivery that is written and may not take place: then it is taken back when this is dropped. Others take the item later,
/// unless its lease has expired.
pub(crate) struct Undelivered<'s, T: Send + 'static, O: Engine<T>> {
    shared: &'s Shared<T, O>,
    /// `None` if it has taken place.
    delivery: Option<(u64, u32)>,
}

impl<'s, T: Send + 'static, O: Engine<T>> Undelivered<'s, T, O> {
    /// `delivery`: the number of the item, and of the delivery.
    pub(crate) fn new(shared: &'s Shared<T, O>, delivery: (u64, u32)) -> Self {
        Self {
            shared,
            delivery: Some(delivery),
        }
    }

    pub(crate) async fn write(&self) -> Result<(), StoreError> {
        self.shared.mark_async(self.delivery.into_iter()).await
    }

    /// The item is handed out.
    pub(crate) fn take_place(mut self) {
        self.delivery = None;
    }
}

impl<T: Send + 'static, O: Engine<T>> Drop for Undelivered<'_, T, O> {
    fn drop(&mut self) {
        if let Some((id, attempts)) = self.delivery {
            let undone = Change::Undelivered(self.shared.key(id), attempts);
            self.shared.note(iter::once(undone));
        }
    }
}

impl<T: Send + 'static, O: Order<T>> Shared<T, O> {
    /// Hands out an item that a transaction holds.
    #[inline]
    pub(crate) fn deliver<'t>(&self, ram: RamItem<'t, T, O>) -> Result<Item<'t, T, O>, StoreError> {
        self.mark(iter::once((ram.id, ram.attempts())))?;
        self.hand_out(ram)
    }

    /// Hands out an item whose delivery is written.
    #[inline]
    pub(crate) fn hand_out<'t>(
        &self,
        mut ram: RamItem<'t, T, O>,
    ) -> Result<Item<'t, T, O>, StoreError> {
        self.load(&mut ram)?;
        Ok(Item { ram })
    }

    /// Hands out the items of a batch that a transaction holds.
    pub(crate) fn deliver_batch<'t>(
        &self,
        items: RamItems<'t, T, O>,
    ) -> Result<Items<'t, T, O>, StoreError> {
        match self.batch(items) {
            Ok(items) => Ok(items),
            Err((items, deliveries)) => {
                self.mark(deliveries.into_iter())?;
                self.hand_out_batch(items)
            }
        }
    }

    /// As [`deliver_batch`](Self::deliver_batch), in a task.
    pub(crate) async fn deliver_batch_async<'t>(
        &self,
        items: RamItems<'t, T, O>,
    ) -> Result<Items<'t, T, O>, StoreError> {
        match self.batch(items) {
            Ok(items) => Ok(items),
            Err((items, deliveries)) => {
                self.mark_async(deliveries.into_iter()).await?;
                self.hand_out_batch(items)
            }
        }
    }

    /// A batch that can be handed out at once, or its items and their deliveries.
    #[allow(clippy::type_complexity)] // of its only callers
    fn batch<'t>(
        &self,
        items: RamItems<'t, T, O>,
    ) -> Result<Items<'t, T, O>, (Vec<Item<'t, T, O>>, Vec<(u64, u32)>)> {
        if items.len() == 0 || self.budget.is_none() && self.max_attempts.is_none() {
            return Ok(Items::of_ram(items));
        }
        let items: Vec<_> = items.map(|ram| Item { ram }).collect();
        let deliveries = items.iter().map(|item| (item.ram.id, item.attempts()));
        let deliveries = deliveries.collect();
        Err((items, deliveries))
    }

    fn hand_out_batch<'t>(
        &self,
        mut items: Vec<Item<'t, T, O>>,
    ) -> Result<Items<'t, T, O>, StoreError> {
        for item in &mut items {
            self.load(&mut item.ram)?;
        }
        Ok(Items::received(items))
    }
}

#[cfg(test)]
mod tests;
