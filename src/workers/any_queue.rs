//! The queue of a pool without its types.

use super::worker::Worker;
use crate::backend::Backend;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

/// A future of the queue of a pool; its error is the text.
pub(super) type Asking<'a, R> = Pin<Box<dyn Future<Output = Result<R, Arc<str>>> + Send + 'a>>;

/// What a pool needs of its queue after its workers were started; as in [`Backend`].
pub(super) trait Pooled: Send + Sync {
    fn close(&self) -> Asking<'_, bool>;
    fn is_closed(&self) -> bool;
    fn left(&self) -> Asking<'_, u64>;
    fn instant(&self, since: u64) -> Instant;
    fn pool_ended(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

impl<B: Backend> Pooled for B {
    fn close(&self) -> Asking<'_, bool> {
        let closing = Backend::close(self);
        Box::pin(async { closing.await.map_err(|error| error.to_string().into()) })
    }

    fn is_closed(&self) -> bool {
        Backend::is_closed(self)
    }

    fn left(&self) -> Asking<'_, u64> {
        let counting = Backend::left(self);
        Box::pin(async { counting.await.map_err(|error| error.to_string().into()) })
    }

    fn instant(&self, since: u64) -> Instant {
        Backend::instant(self, since)
    }

    fn pool_ended(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(Backend::pool_ended(self))
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
pub struct AnyQueue<'q>(
    pub(super) Arc<dyn Pooled + 'q>,
    /// Starts threads, if workers are that.
    pub(super) Option<Start<'q>>,
);

/// A thread that the pool joins, and its worker.
pub(super) type Thread = (Arc<Worker>, JoinHandle<()>);
/// Starts the threads of these workers.
pub(super) type Start<'q> =
    Box<dyn Fn(Vec<Arc<Worker>>, &mut Vec<Thread>) -> io::Result<()> + Send + Sync + 'q>;

impl<'q> AnyQueue<'q> {
    pub(super) fn of<B: Backend + 'q>(queue: &B) -> Self {
        Self(Arc::new(queue.clone()), None)
    }
}

debug_struct!([] AnyQueue<'_>, |queue| is_closed: queue.0.is_closed());
