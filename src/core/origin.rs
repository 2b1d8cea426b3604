//! What the deliveries that one handle has begun have in common.

use super::shared::Shared;
use crate::order::{Order, StoredOf};
use crate::policy::lease::WatchOf;
use crate::policy::Policies;
use crate::raw::Outstanding;
use std::sync::Arc;

/// Shared by a handle and its deliveries; whichever ends last drops it.
pub(crate) struct Origin<T, O: Order<T>> {
    pub(super) shared: Arc<Shared<T, O>>,
    pub(super) outstanding: Outstanding<StoredOf<T, O>>,
    /// The leases of the deliveries, if the items of the queue are leased.
    pub(super) watch: Option<Arc<WatchOf<T, O>>>,
}

impl<T, O: Order<T>> Origin<T, O> {
    #[cold]
    pub(super) fn new(shared: &Arc<Shared<T, O>>) -> Arc<Self> {
        let outstanding = Outstanding::new(shared.shards());
        let add_watch = || shared.watches.add(outstanding.number(), None);
        Arc::new(Self {
            shared: Arc::clone(shared),
            watch: Policies::<T, O>::RECLAIMS.then(add_watch),
            outstanding,
        })
    }
}

impl<T, O: Order<T>> Drop for Origin<T, O> {
    /// The counters, whose number the watch has, are released afterwards.
    fn drop(&mut self) {
        if let Some(watch) = &self.watch {
            self.shared.watches.remove(watch.counters);
        }
    }
}
