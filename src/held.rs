//! What open transactions hold.

use crate::shared::Shared;
use std::sync::Arc;
use std::thread::ThreadId;
use std::time::Instant;

/// What one open transaction holds, from [`Queue::held`](crate::Queue::held).
///
/// Who holds it, and since when, is known of handles with a [name](crate::Queue::named_handle), and of
/// all handles of a queue that keeps [times](crate::Builder::timestamps) or
/// [leases](crate::Builder::leased) its items.
///
/// ```
/// let queue = requeue::Queue::unbounded();
/// queue.push("job")?;
/// let mut worker = queue.named_handle("worker-1");
/// let tx = worker.begin();
/// let _job = tx.pop()?;
///
/// let held = queue.held();
/// assert_eq!(held[0].worker.as_deref(), Some("worker-1"));
/// assert_eq!(held[0].items, 1);
/// assert_eq!(held[0].thread, Some(std::thread::current().id()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Held {
    /// The name of the handle.
    pub worker: Option<Arc<str>>,
    /// How many items it holds.
    pub items: usize,
    /// When it took the first of them, or of those before that have left it since.
    pub since: Option<Instant>,
    /// The thread that took the first of them.
    pub thread: Option<ThreadId>,
}

impl<T> Shared<T> {
    /// What each open transaction holds.
    pub(crate) fn held(&self) -> Vec<Held> {
        let holders = self.lanes().holders();
        let held = holders.map(|(desk, items)| {
            let post = self.posts.get(desk);
            let post = post.as_ref();
            Held {
                worker: post.and_then(|post| post.name().cloned()),
                items: usize::try_from(items).unwrap_or(usize::MAX),
                since: post.and_then(|post| self.time.stamped(post.since())),
                thread: post.and_then(|post| post.thread()),
            }
        });
        held.collect()
    }
}
