//! The orders of queues, and their options.

use super::Builder;
use crate::order::fair::FairSettings;
use crate::order::leased::{LeaseSettings, Unleased};
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
        self.by(|_| FairSettings {
            by: Arc::new(key),
            weigh: None,
            limit: None,
            serial: false,
        })
    }

    /// See [`requeue::Builder::stickiness`].
    pub fn stickiness(mut self, items: u32) -> Self {
        self.order = Some(items);
        self
    }

    /// Orders the items by priority and due time.
    pub fn by_priority(self) -> Builder<T, ByPriority, C> {
        self.by(|_| None)
    }
}

impl<T: Send + 'static, K: Hash + Eq + Clone + Send + Sync + 'static, C>
    Builder<T, ByKey<K, T>, C>
{
    /// See [`requeue::Builder::weight`].
    pub fn weight(mut self, weigh: impl Fn(&K) -> u32 + Send + Sync + 'static) -> Self {
        self.order.weigh = Some(Arc::new(weigh));
        self
    }

    /// See [`requeue::Builder::key_capacity`]. A key that has more items on the disk keeps them.
    ///
    /// # Panics
    ///
    /// If `limit` is 0.
    #[track_caller]
    pub fn key_capacity(mut self, limit: usize) -> Self {
        assert!(limit > 0, "key_capacity is 0: no key could have an item");
        self.order.limit = Some(limit);
        self
    }

    /// See [`requeue::Builder::serial`].
    pub fn serial(mut self) -> Self {
        self.order.serial = true;
        self
    }
}

impl<T: Send + 'static, C> Builder<T, ByPriority, C> {
    /// See [`requeue::Builder::age_after`].
    ///
    /// # Panics
    ///
    /// If `step` is zero.
    #[track_caller]
    pub fn age_after(mut self, step: Duration) -> Self {
        assert!(
            !step.is_zero(),
            "step of ageing is zero: all items would be the most urgent at once"
        );
        self.order = Some(step);
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
        self.by(|inner| LeaseSettings { inner, term })
    }
}
