//! What a queue has done so far.

/// Counts of items since the queue was made.
///
/// While others work the counts are read one after the other and may not add up. At rest, that is
/// when no call is under way, they are exact, and `pushed = ready + held + committed`.
///
/// ```
/// let queue = requeue::Queue::unbounded();
/// let mut handle = queue.handle();
/// handle.push_batch([1, 2, 3])?;
/// let tx = handle.begin();
/// let _job = tx.pop()?;
///
/// let stats = queue.stats();
/// assert_eq!((stats.pushed, stats.ready, stats.held), (3, 2, 1));
/// assert_eq!(stats.pushed, stats.ready + stats.held + stats.committed);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Items whose push was committed. What is staged does not count.
    pub pushed: u64,
    /// Items that a pop would find.
    pub ready: u64,
    /// Items held by open transactions, forgotten ones included.
    pub held: u64,
    /// Items whose pop was committed.
    pub committed: u64,
    /// Deliveries that were taken back: each abort counts every item that the transaction held.
    pub aborted: u64,
}
