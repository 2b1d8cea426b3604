//! The queue of a pool without its types.

use super::pool::WorkerPool;
use super::step::{sleep, BACKOFF};
use super::Report;
use crate::backend::Backend;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

/// A future of the queue of a pool; its error is the text.
pub(super) type Asking<'a, R> = Pin<Box<dyn Future<Output = Result<R, Arc<str>>> + Send + 'a>>;

/// What a pool needs of its queue after its workers were started.
trait Pooled: Send + Sync {
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
pub struct AnyQueue<'q>(Arc<dyn Pooled + 'q>);

impl<'q> AnyQueue<'q> {
    pub(super) fn of<B: Backend + 'q>(queue: &B) -> Self {
        Self(Arc::new(queue.clone()))
    }

    /// Closes it. Returns whether the workers end by that.
    pub(super) fn close(&self) -> Asking<'_, bool> {
        self.0.close()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// The number of items that are ready, delayed or held.
    pub(super) fn left(&self) -> Asking<'_, u64> {
        self.0.left()
    }

    /// Waits until nothing is left, by asking from time to time.
    pub(super) async fn nothing_left(&self) {
        let mut asked = 0;
        while !matches!(self.left().await, Ok(0)) {
            asked += 1;
            sleep(BACKOFF.delay(asked)).await;
        }
    }

    /// The report of its pool, which has ended, with what is left.
    pub(super) async fn report(&self, pool: &WorkerPool) -> Report {
        self.0.pool_ended().await;
        let (left, error) = match self.left().await {
            Ok(left) => (left, None),
            Err(error) => (0, Some(error)),
        };
        let report = pool.report(self);
        let error = report.error.clone().or(error);
        Report {
            left,
            error,
            ..report
        }
    }

    pub(super) fn instant(&self, since: u64) -> Instant {
        self.0.instant(since)
    }

    /// Frees what the workers of the pool have left.
    #[cfg(feature = "tokio")]
    pub(super) fn pool_ended(&self) -> impl Future<Output = ()> + Send + '_ {
        self.0.pool_ended()
    }
}

impl fmt::Debug for AnyQueue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyQueue")
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}
