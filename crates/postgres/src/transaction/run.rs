//! The transaction of a worker's run.

use super::{Hold, PgTransaction};
use crate::error::Error;
use crate::item::{PgItem, Ticket};
use crate::queue::PgQueue;
use std::time::Duration;

const MARK: &str = "savepoint requeue_run";
const ROLL_BACK: &str = "rollback to savepoint requeue_run";

/// A transaction that holds the item of a run. If the run fails, all is undone that happened after the item was taken.
pub(crate) struct Run {
    pub(crate) tx: PgTransaction<'static>,
    /// The item is the last of that many.
    taken: usize,
}

/// Why a run failed.
pub(crate) struct Failed<'e> {
    pub(crate) error: &'e str,
    pub(crate) panicked: bool,
}

impl Run {
    /// Waits for an item, and marks the place to which a failed run is undone.
    pub(crate) async fn begin<T: 'static>(
        mut tx: PgTransaction<'static>,
        queue: &PgQueue<T>,
        timeout: Duration,
    ) -> Result<Option<(PgItem<T>, Self)>, Error> {
        let Some(item) = tx.pop_wait(queue, timeout).await? else {
            return Ok(None);
        };
        if tx.link.is_begun() {
            tx.link.send(MARK);
        }
        let taken = tx.taken.len();
        Ok(Some((item, Self { tx, taken })))
    }

    pub(crate) async fn commit(self) -> Result<Vec<Ticket>, Error> {
        self.tx.commit().await
    }

    /// Undoes the run, and has its item tried again after the backoff of its queue, or makes it a dead letter.
    pub(crate) async fn fail(mut self, failed: Failed<'_>) -> Result<(), Error> {
        let others = self.tx.taken.split_off(self.taken);
        let Some(item) = self.tx.taken.last_mut() else {
            return Err(Error::Ended);
        };
        let reason = if failed.panicked {
            "panicked"
        } else {
            "aborted"
        };
        let delay = item.core.rules.backoff.delay(item.record.deliveries());
        item.retry(delay, failed.error, reason);
        let leased = matches!(item.hold, Hold::Leased(_));
        self.tx.staged.clear();
        let mut undone = PgTransaction::new(&self.tx.link.shared);
        undone.taken = others; // released when it is dropped
        drop(undone);
        if leased {
            self.tx.link.send_roll_back(); // its connection may be dead
        } else {
            self.tx.link.open().await?.run_all(ROLL_BACK).await?;
        }
        self.tx.broken = false; // all that is unknown was undone
        self.tx.commit().await.map(drop)
    }
}
