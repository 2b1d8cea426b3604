//! The orders of queues, and their options.

use super::{set, Builder};
use crate::entry::Entry;
use crate::order::Unleased;
use requeue::{ByKey, ByPriority, Fifo, Leased};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

impl<T: Send + 'static, C> Builder<T, Fifo, C> {
    /// Makes the queue fair by key: keys take turns. The key of an item must not change, and the key of an item that is
    /// read from the disk is computed again.
    pub fn fair_by<K: Hash + Eq + Clone + Send + Sync + 'static>(
        self,
        key: impl Fn(&T) -> K + Send + Sync + 'static,
    ) -> Builder<T, ByKey<K, T>, C> {
        let of_entry = |entry: &Entry<T, K>| entry.key.clone();
        self.by(|_, ram| (Arc::new(key), ram.for_items().fair_by(of_entry)))
    }

    set! {
        /// See [`requeue::Builder::stickiness`].
        stickiness(items: u32);
    }

    /// Orders the items by priority and due time.
    pub fn by_priority(self) -> Builder<T, ByPriority, C> {
        self.by(|key_of, ram| (key_of, ram.by_priority()))
    }
}

impl<T: Send + 'static, K: Hash + Eq + Clone + Send + Sync + 'static, C>
    Builder<T, ByKey<K, T>, C>
{
    set! {
        /// See [`requeue::Builder::weight`].
        weight(weigh: impl Fn(&K) -> u32 + Send + Sync + 'static);
        /// See [`requeue::Builder::key_capacity`]. A key that has more items on the disk keeps them. All items have entries in memory
        /// then.
        ///
        /// # Panics
        ///
        /// If `limit` is 0.
        key_capacity(limit: usize), is_in_memory;
        /// See [`requeue::Builder::serial`].
        serial(), besides.is_serial;
    }
}

impl<T: Send + 'static, C> Builder<T, ByPriority, C> {
    /// See [`requeue::Builder::age_after`]. All items have entries in memory then.
    ///
    /// # Panics
    ///
    /// If `step` is zero.
    #[track_caller]
    pub fn age_after(mut self, step: Duration) -> Self {
        self.ram = self.ram.age_after(step);
        self.settings.is_in_memory = true;
        self
    }
}

impl<T: Clone + Send + 'static, O: Unleased<T>, C> Builder<T, O, C> {
    /// Leases items: a transaction holds an item for at most `term`; see [`requeue::Builder::leased`]. A commit after that
    /// fails with [`StoreError::Expired`](crate::StoreError::Expired).
    ///
    /// # Panics
    ///
    /// If `term` is zero.
    #[track_caller]
    pub fn leased(self, term: Duration) -> Builder<T, Leased<O>, C> {
        assert!(!term.is_zero(), "lease of zero: it would expire at once");
        self.by(|key_of, ram| (key_of, ram.leased(term)))
    }
}
