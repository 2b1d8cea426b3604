//! Operations on all held items of a transaction.

use super::failed::{AtHead, NoRoom, Removed};
use super::local::{CellOf, Local};
use crate::order::{Order, StoredOf};
use crate::raw::{HeldItems, Holder, ItemRef};
use crate::sync::defer_with;
use std::sync::Arc;
use std::time::Duration;

impl<T, O: Order<T>> CellOf<T, O> {
    /// All held items.
    pub(crate) fn held_items(&mut self) -> HeldItems<'_, StoredOf<T, O>> {
        self.with_held().1
    }

    /// As [`Local::retry`], for all held items; if there is no room for one, it and the rest are still held.
    pub(crate) fn retry_all(&mut self, delay: Duration) -> Result<(), NoRoom> {
        self.for_each_held(|local, item, at_head| local.retry(item, Some(delay), Some(at_head)))
    }

    /// As [`Local::fail`], for all held items; if there is no room for one, it and the rest are still held.
    pub(crate) fn fail_all(&mut self, error: &Arc<str>) -> Result<(), NoRoom> {
        self.for_each_held(|local, item, at_head| {
            local.fail(item, Arc::clone(error), Some(at_head))
        })
    }

    /// Removes all held items, and then puts those at the head that are retried at once: together, in their order.
    fn for_each_held(
        &mut self,
        remove: impl Fn(
            &mut Local<T, O>,
            ItemRef<'_, T>,
            &mut AtHead<T, O>,
        ) -> Result<Removed<T>, NoRoom>,
    ) -> Result<(), NoRoom> {
        let (local, mut items) = self.with_held();
        // Also if a destructor panics.
        let mut removal = defer_with((local, Vec::new()), |(local, at_head)| {
            if !at_head.is_empty() {
                local.put_at_head(at_head.drain(..));
                local.shared.notify_end(0);
            }
        });
        let (local, at_head) = &mut *removal;
        while let Some(item) = items.next() {
            drop(remove(local, item.project(), at_head)?); // user code
        }
        Ok(())
    }
}

impl<T, O: Order<T>> Local<T, O> {
    /// What other threads can see of the transaction.
    pub(crate) fn holder(&self) -> Holder {
        self.endpoint.holder()
    }
}
