//! What a run of workers does with its own item.

use super::{json, OwnedTransaction};
use crate::error::Result;
use serde::Serialize;
use std::time::Duration;

impl<T: 'static> OwnedTransaction<T> {
    /// Gives the items of a run back with its commit, after a delay, and the delivery does not count as an attempt: see
    /// [`PgTransaction::snooze`](crate::PgTransaction::snooze). Those are the items that pops of this queue have taken; what the run has
    /// pushed or changed is committed.
    ///
    /// ```no_run
    /// # async fn example(mails: requeue_postgres::PgQueue<String>) {
    /// use std::time::Duration;
    ///
    /// let tasks = mails.workers().run_async(|mail, tx| async move {
    ///     if mail.ends_with("@down.example") {
    ///         return tx.snooze(Duration::from_secs(600)).await;
    ///     }
    ///     Ok::<_, requeue_postgres::Error>(())
    /// });
    /// # tasks.stop().await; }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Postgres::begin`](crate::Postgres::begin).
    pub async fn snooze(&self, delay: Duration) -> Result<()> {
        let mut bound = self.bound().await?;
        let own = bound.marks.marked;
        for taken in &mut bound.tx.taken[..own] {
            if taken.is_done() {
                taken.snooze(delay);
            }
        }
        bound.marks.given_up = true;
        Ok(())
    }

    /// Sets the result of the items of a run: see [`PgTransaction::set_result`](crate::PgTransaction::set_result).
    ///
    /// # Errors
    ///
    /// [`Error::Codec`](crate::Error::Codec), and as for [`Postgres::begin`](crate::Postgres::begin).
    pub async fn set_result(&self, result: &impl Serialize) -> Result<()> {
        let result = json(result)?;
        let mut bound = self.bound().await?;
        let own = bound.marks.marked;
        for taken in &mut bound.tx.taken[..own] {
            taken.result = Some(result.clone());
        }
        Ok(())
    }

    /// Whether the run that uses this transaction was [cancelled](crate::PgQueue::cancel_running), as far as its process was notified:
    /// for runs of threads. The futures of tasks are dropped.
    ///
    /// # Errors
    ///
    /// As for [`Postgres::begin`](crate::Postgres::begin).
    pub async fn is_cancelled(&self) -> Result<bool> {
        let bound = self.bound().await?;
        let cancellation = bound.marks.cancellation.as_ref();
        Ok(cancellation.is_some_and(|told| !told.subscribe().borrow().is_empty()))
    }
}
