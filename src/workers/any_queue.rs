//! The queue of a pool, without its types.

use crate::core::shared::Shared;
use crate::order::Order;
use crate::Queue;
use std::fmt;
use std::sync::Arc;

/// What a pool does with its queue as a whole.
trait Pooled {
    fn close(&self);
    fn is_closed(&self) -> bool;
    fn left(&self) -> u64;
}

impl<T, O: Order<T>> Pooled for Shared<T, O> {
    fn close(&self) {
        Self::close(self);
    }

    fn is_closed(&self) -> bool {
        self.word().is_closed()
    }

    fn left(&self) -> u64 {
        Self::left(self)
    }
}

/// The queue of a [`Workers`](crate::Workers) pool, of any item type and order. What the items borrow lives for `'q`.
///
/// ```
/// use requeue::workers::AnyQueue;
/// use requeue::{Queue, Workers};
///
/// let names = vec![String::from("a"), String::from("b")];
/// let queue: Queue<&str> = names.iter().map(String::as_str).collect();
/// queue.close();
/// std::thread::scope(|scope| {
///     let workers: Workers<AnyQueue<'_>> =
///         Workers::builder(&queue).run_scoped(scope, |_name, _tx| Ok::<(), ()>(()));
///     assert_eq!(workers.join().done, 2);
/// });
/// ```
pub struct AnyQueue<'q>(Arc<dyn Pooled + Send + Sync + 'q>);

impl<'q> AnyQueue<'q> {
    pub(super) fn of<T: Send + 'q, O: Order<T> + 'q>(queue: &Queue<T, O>) -> Self {
        Self(Arc::<Shared<T, O>>::clone(queue.shared()))
    }

    pub(super) fn close(&self) {
        self.0.close();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// The number of items that are ready, delayed or held.
    pub(super) fn left(&self) -> u64 {
        self.0.left()
    }
}

impl fmt::Debug for AnyQueue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyQueue")
            .field("left", &self.left())
            .field("is_closed", &self.is_closed())
            .finish()
    }
}
