//! Waiting until all work is done.

use super::Queue;
use crate::future::{WaitIdle, WaitingIdle};
use crate::order::Order;
use crate::time::Wait;
use crate::wait::block;

impl<T, O: Order<T>> Queue<T, O> {
    /// Waits until the queue is *idle*: nothing is ready, delayed or scheduled, and no transaction holds or has
    /// staged anything. [Dead letters](Queue::dead_letters) do not count.
    ///
    /// Linearizable as [`PopError::Empty`](crate::PopError::Empty) is: the queue really was idle at some point during
    /// the call. Others may push at any time, so it may not be idle any more when this returns, unless the producers
    /// are stopped first. [Closing](Queue::close) is not needed, and changes nothing. A queue that is
    /// [paused](Queue::pause) is idle only if nothing is ready. A pop counts as open while it looks for an item, also if it then
    /// finds none: so a form that does not wait can say of a queue that workers look at that it is not idle.
    ///
    /// An open transaction of the calling thread makes it wait forever, a forgotten one until its handle is used
    /// again or dropped.
    ///
    /// It costs other calls nothing until it is first called. Afterwards the end of each transaction, and each pop
    /// without one, reads one more word, and while there are waiters the shards and handles in use, up to the first
    /// one that is not idle.
    ///
    /// ```
    /// use requeue::{Queue, Workers};
    ///
    /// let queue = Queue::unbounded();
    /// let workers = Workers::builder(&queue).run(|number, tx| {
    ///     if *number > 0 {
    ///         tx.push(*number - 1)?; // ready when this run is committed
    ///     }
    ///     Ok::<_, requeue::PushError<u32>>(())
    /// });
    /// queue.push(3)?;
    /// queue.wait_idle();
    /// assert_eq!(queue.stats().committed, 4);
    /// # drop(workers);
    /// # Ok::<(), requeue::PushError<u32>>(())
    /// ```
    #[doc(alias = "join")]
    pub fn wait_idle(&self) {
        self.wait_until_idle(Wait::Forever);
    }

    verb! {
        wait_idle(&self) -> bool, |wait| self.wait_until_idle(wait);
        timed: "Returns whether the queue was [idle](Self::wait_idle)", "that",
        #[must_use = "the result tells whether the queue was idle"]
        /// let queue = requeue::Queue::unbounded();
        /// queue.push("job")?;
        is_idle = queue();
        /// assert!(!is_idle);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        async(&self) -> WaitIdle<T, O> { WaitIdle::new(WaitingIdle::new(self.shared())) }
        /// A future that waits until the queue is idle, as [`Queue::wait_idle`] does. It borrows nothing, so it can be
        /// spawned.
        ///
        /// Cancel safe: when it is dropped it leaves the wait queue.
        ///
        /// ```
        /// # futures::executor::block_on(async {
        /// let queue = requeue::Queue::unbounded();
        /// queue.push("job")?;
        /// let idle = queue.wait_idle_async();
        /// queue.pop()?;
        /// idle.await;
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// # }).unwrap();
        /// ```
    }

    fn wait_until_idle(&self, wait: Wait) -> bool {
        let shared = self.shared();
        if wait.is_over(&shared.time) {
            shared.release_due();
            return shared.is_idle();
        }
        // Leaves the wait queue also if a clock, which is user code, panics.
        let mut waiting = WaitingIdle::new(shared);
        let idle = block(wait, &shared.time, |wake_target| waiting.poll(wake_target));
        idle.is_some() || shared.is_idle()
    }
}
