//! Pops of queues with a pace.

use super::{Ending, PgTransaction, Taken};
use crate::error::Error;
use crate::item::PgItem;
use crate::pace::Start;
use crate::queue::{Core, PgQueue};
use std::time::Instant;

/// What a pop has taken, and when to try again, if the pace has refused a start.
type Popped<T> = (Vec<PgItem<T>>, Option<Instant>);

impl PgTransaction<'_> {
    /// Takes up to `max` items that are ready, as many as the pace of the queue permits.
    pub(super) async fn pop_at_pace<T: 'static>(
        &mut self,
        queue: &PgQueue<T>,
        max: usize,
    ) -> Result<Popped<T>, Error> {
        let pace = &queue.core.pace;
        if pace.is_unlimited() {
            return Ok((self.pop_ready(queue, max).await?, None));
        }
        if !has_ready(&queue.core).await? {
            return Ok((Vec::new(), None));
        }
        let (starts, again) = Start::take(pace, max);
        let before = self.taken.len();
        let items = self.pop_ready(queue, starts.len()).await?;
        self.keep(starts, before);
        Ok((items, again))
    }

    /// Keeps the slots of the items taken after the first `before`, and cancels the others.
    fn keep(&mut self, starts: Vec<Start>, before: usize) {
        let mut starts = starts.into_iter();
        let taken = self.taken.iter_mut().skip(before);
        for taken in taken.filter(|taken| taken.is_done()) {
            taken.start = starts.next();
        }
        starts.for_each(Start::cancel);
    }
}

/// Whether a pop may find an item. A slot is taken only then.
async fn has_ready(core: &Core) -> Result<bool, Error> {
    let mut buffer = core.buffer.iter();
    if buffer.any(|buffer| !buffer.is_empty()) {
        return Ok(true);
    }
    loop {
        let rows = core.run(|sql| &sql.has_ready, &[]).await?;
        if rows[0].get(0) || !core.db.shared.promote_now().await? {
            return Ok(rows[0].get(0));
        }
    }
}

impl Taken {
    /// The transaction was committed.
    pub(super) fn committed(self) {
        if let (Ending::Done | Ending::Dead(..), Some(start)) = (self.ending, self.start) {
            start.spend();
        }
    }
}
