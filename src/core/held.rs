//! Operations on all held items of a transaction.

use super::failed::{NoRoom, Removed};
use super::local::{CellOf, Local};
use crate::order::{Order, StoredOf};
use crate::raw::{HeldItems, Holder, ItemRef};
use std::sync::Arc;
use std::time::Duration;

impl<T, O: Order<T>> CellOf<T, O> {
    /// All held items.
    pub(crate) fn held_items(&mut self) -> HeldItems<'_, StoredOf<T, O>> {
        self.with_held().1
    }

    /// As [`Local::retry`], for all held items; if there is no room for one, it and the rest are still held.
    pub(crate) fn retry_all(&mut self, delay: Duration) -> Result<(), NoRoom> {
        self.for_each_held(|local, item| local.retry(item, Some(delay)))
    }

    /// As [`Local::fail`], for all held items; if there is no room for one, it and the rest are still held.
    pub(crate) fn fail_all(&mut self, error: &Arc<str>) -> Result<(), NoRoom> {
        self.for_each_held(|local, item| local.fail(item, Arc::clone(error)))
    }

    fn for_each_held(
        &mut self,
        remove: impl Fn(&mut Local<T, O>, ItemRef<'_, T>) -> Result<Removed<T>, NoRoom>,
    ) -> Result<(), NoRoom> {
        let (local, mut items) = self.with_held();
        while let Some(item) = items.next() {
            drop(remove(local, item.project())?); // user code
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
