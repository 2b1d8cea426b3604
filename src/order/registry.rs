//! What an order knows of items that are not in its sequence.

/// What an order knows of items wherever they are, from before they are pushed until they are gone for
/// good. Many threads use it at once.
pub(crate) trait Registry<T, M>: Send + Sync {
    /// The metadata of an item that is about to be pushed; `None`, if there is no room for one like it.
    ///
    /// May run user code.
    fn register(&self, item: &T) -> Option<M>;

    /// As [`Registry::register`], of an item that had this metadata once.
    fn register_again(&self, item: &T, _meta: M) -> Option<M> {
        self.register(item)
    }

    /// Takes note that so many items with this metadata are gone for good, or were never pushed. May run
    /// destructors of user code, whose panics are caught.
    fn unregister(&self, _meta: M, _count: u32) {}

    /// Whether there may be no room for an item while the queue has room.
    fn is_limited(&self) -> bool {
        false
    }

    /// Whether there is room for these items. May run user code.
    fn fits(&self, _items: &[T]) -> bool {
        true
    }

    /// Whether items are somewhere that become ready by themselves, so that the order depends on the time.
    fn is_scheduled(&self) -> bool {
        false
    }
}
