//! The dead letters that a queue keeps.

use super::{Cause, DeadLetter};
use crate::batch::{Batch, Change};
use crate::error::StoreError;
use crate::format::LetterRow;
use crate::order::{Engine, EntryOf};
use crate::queue::shared::{Shared, TicketChanges};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

/// The dead letters of a queue, by number.
pub(crate) struct Letters<T> {
    pub(crate) rows: Mutex<BTreeMap<u64, LetterRow>>,
    limit: Option<Limit<T>>,
}

/// How many letters a queue keeps, and who gets the ones beyond.
pub(crate) struct Limit<T> {
    pub(crate) most: usize,
    pub(crate) overflow: Arc<dyn Fn(DeadLetter<T>) + Send + Sync>,
}

impl<T> Letters<T> {
    pub(crate) fn new(rows: BTreeMap<u64, LetterRow>, limit: Option<Limit<T>>) -> Self {
        let rows = Mutex::new(rows);
        Self { rows, limit }
    }
}

impl<T: Send + 'static, O: Engine<T>> Shared<T, O> {
    /// Adds dead letters, which are written without a wait. The oldest ones beyond the limit are removed.
    pub(crate) fn add_letters(self: &Arc<Self>, new: Vec<(u64, LetterRow)>) {
        let mut batch = Batch::default();
        // Until they are in the log: a removal is later there.
        let mut rows = self.letters.rows.lock();
        let bury = |(id, row): &(u64, LetterRow)| Change::Bury(self.key(*id), row.clone());
        batch.others.extend(new.iter().map(bury));
        rows.extend(new);
        let Some(limit) = &self.letters.limit else {
            return self.log().note(batch);
        };
        let mut excess = Vec::new();
        while rows.len() > limit.most {
            excess.extend(rows.pop_first());
        }
        if excess.is_empty() {
            return self.log().note(batch);
        }
        let unbury = |(id, _): &(u64, LetterRow)| Change::Unbury(self.key(*id));
        batch.others.extend(excess.iter().map(unbury));
        let (shared, overflow) = (Arc::clone(self), Arc::clone(&limit.overflow));
        let then = move |written: Result<(), StoreError>| {
            if written.is_ok() {
                let rows = excess.into_iter();
                let letters: Vec<_> = rows
                    .filter_map(|(id, row)| shared.letter(id, row).ok())
                    .collect();
                // Who is told may open the queue again.
                drop(shared);
                for letter in letters {
                    overflow(letter);
                }
            }
        };
        // On an error nothing was removed, and nothing is written any more.
        let _ = self.log().commit_then(&mut batch, Box::new(then));
    }

    /// Writes an item that became a dead letter, without a wait.
    pub(in crate::queue) fn bury(self: &Arc<Self>, letter: requeue::DeadLetter<EntryOf<T, O>>) {
        let error = letter.error().map(str::to_owned);
        let entry = letter.item;
        let item = entry.item.map_or_else(|| self.read(entry.id), Ok);
        let mut item_bytes = Vec::new();
        let encoded = item.and_then(|item| Ok(self.codec.encode(&item, &mut item_bytes)?));
        if encoded.is_err() {
            // The item is as it was on the disk, and comes back when the queue is opened again.
            return;
        }
        let row = LetterRow {
            item: entry.id,
            attempts: letter.attempts,
            reason: Cause::Failed(letter.reason).to_byte(),
            error,
            died: self.store.wall_time(),
            schedule: self.schedule_of(entry.id).ok().flatten(),
            item_bytes,
        };
        self.exchange_tickets(TicketChanges::removal(entry.id));
        self.add_letters(vec![(self.new_ids(1), row)]);
    }

    pub(super) fn letter(&self, id: u64, row: LetterRow) -> Result<DeadLetter<T>, StoreError> {
        Ok(DeadLetter {
            item: self.codec.decode(&row.item_bytes)?,
            attempts: row.attempts,
            reason: Cause::from_byte(row.reason),
            error: row.error,
            died_at: UNIX_EPOCH + Duration::from_millis(row.died),
            id,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::Store;

    #[test]
    fn a_dead_letter_has_no_ticket() {
        let files = tempfile::tempdir().unwrap();
        let store = Store::open(files.path()).unwrap();
        let jobs = store.builder::<u32>("jobs").by_priority().max_attempts(1);
        let jobs = jobs.build().unwrap();
        jobs.push_batch([1, 2]).unwrap();
        jobs.begin_owned().pop().unwrap();
        assert_eq!(jobs.dead_letters().len(), 1);
        assert_eq!(jobs.shared.tickets.as_ref().unwrap().lock().len(), 1);
    }
}
