//! Pops of queues with a pace.

use super::{Ending, PgTransaction, Taken};
use crate::error::Error;
use crate::item::PgItem;
use crate::pace::Start;
use crate::queue::PgQueue;
use std::time::Instant;

/// What a pop has taken.
pub(super) struct Popped<T> {
    pub(super) items: Vec<PgItem<T>>,
    /// When to try again, if the pace has refused a start.
    pub(super) again: Option<Instant>,
}

impl PgTransaction<'_> {
    /// Takes up to `max` items that are ready, as many as the pace of the queue permits.
    pub(super) async fn pop_at_pace<T: 'static>(
        &mut self,
        queue: &PgQueue<T>,
        max: usize,
    ) -> Result<Popped<T>, Error> {
        let pace = &queue.core.pace;
        if pace.is_unlimited() {
            let items = self.pop_ready(queue, max).await?;
            return Ok(Popped { items, again: None });
        }
        if !self.has_ready(queue).await? {
            let items = Vec::new();
            return Ok(Popped { items, again: None });
        }
        let (starts, again) = Start::take(pace, max);
        let before = self.taken.len();
        let items = self.pop_ready(queue, starts.len()).await?;
        self.keep(starts, before);
        Ok(Popped { items, again })
    }

    /// Whether a pop may find an item. A slot is taken only then.
    async fn has_ready<T>(&self, queue: &PgQueue<T>) -> Result<bool, Error> {
        let shared = &self.db.shared;
        if queue
            .core
            .buffer
            .as_ref()
            .is_some_and(|buffer| !buffer.is_empty())
        {
            return Ok(true);
        }
        let id = queue.core.id().await?;
        loop {
            let rows = shared.run(&shared.sql.has_ready, &[&id]).await?;
            if rows[0].get(0) {
                return Ok(true);
            }
            if !shared.promote_now().await? {
                return Ok(false);
            }
        }
    }

    /// Keeps the slots of the items taken after the first `before`, and cancels the others.
    fn keep(&mut self, starts: Vec<Start>, before: usize) {
        let mut starts = starts.into_iter();
        let taken = self.taken.iter_mut().skip(before);
        for taken in taken.filter(|taken| matches!(taken.ending, Ending::Done)) {
            taken.start = starts.next();
        }
        starts.for_each(Start::cancel);
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
