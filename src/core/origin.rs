//! What the deliveries that one handle has begun have in common.

use super::shared::Shared;
use crate::order::{Order, StoredOf};
use crate::raw::Outstanding;
use std::sync::Arc;

/// Shared by a handle and its deliveries; whichever ends last drops it.
pub(crate) struct Origin<T, O: Order<T>> {
    pub(super) shared: Arc<Shared<T, O>>,
    pub(super) outstanding: Outstanding<StoredOf<T, O>>,
}

impl<T, O: Order<T>> Origin<T, O> {
    #[cold]
    pub(super) fn new(shared: &Arc<Shared<T, O>>) -> Arc<Self> {
        Arc::new(Self {
            shared: Arc::clone(shared),
            outstanding: Outstanding::new(shared.shards()),
        })
    }
}
