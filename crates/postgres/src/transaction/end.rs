//! The end of a transaction.

use super::link::Link;
use super::write::{Part, Writing};
use super::{Ending, PgTransaction, Staged, Taken};
use crate::claim::{leases, release, release_later, LeasedItems};
use crate::connect::Params;
use crate::error::{Error, Result};
use crate::item::Ticket;
use crate::queue::Core;
use crate::sql::{move_to_tail, Statement};
use requeue::{Limiter, OnDuplicate, Pace};
use std::mem;
use std::sync::Arc;

impl PgTransaction<'_> {
    /// Makes the pops final, the pushes visible, and commits the statements of the [client](Self::client). Returns the tickets
    /// of the pushes, in their order.
    ///
    /// Not cancel safe: if the future is dropped before it is ready, the transaction may have committed or aborted.
    ///
    /// Other processes are notified after the commit, in the background: they wait for no longer than a second if this process ends
    /// before that.
    ///
    /// # Errors
    ///
    /// The transaction was aborted, except that [`Error::InDoubt`] leaves open whether it has committed. [`Error::Expired`] if
    /// the lease of an item expired, [`Error::Duplicate`] if another item has taken the [key](crate::Builder::unique_by) of a pushed one,
    /// [`Error::Broken`] if an earlier call failed.
    pub async fn commit(mut self) -> Result<Vec<Ticket>> {
        self.commit_in_place().await
    }

    /// The same. If it fails, the transaction still has its items.
    pub(super) async fn commit_in_place(&mut self) -> Result<Vec<Ticket>> {
        self.enter()?;
        let written = self.write().await;
        let moves = written.as_ref().err().map(|_| self.moves());
        self.link.send_roll_back(&moves.unwrap_or_default()); // nothing, after a commit
        if matches!(written, Err(Error::Expired)) {
            self.link.shared.leases.expired();
        }
        let tickets = written?;
        if self.taken.iter().any(Taken::is_followed) {
            self.link.shared.start_promoter();
            self.link.shared.promoter.nudge(); // what follows may be ready
        }
        self.taken.drain(..).for_each(Taken::committed);
        Ok(tickets)
    }

    /// Gives the popped items back to their places, or to the [tail](crate::Builder::on_failure), and undoes all else. Dropping the
    /// transaction does the same in the background.
    ///
    /// # Errors
    ///
    /// [`Error::Database`] if the server could not be reached: it aborts when it notices.
    pub async fn abort(mut self) -> Result<()> {
        self.roll_back().await
    }

    pub(super) async fn roll_back(&mut self) -> Result<()> {
        self.staged.clear();
        let moves = self.moves();
        self.link.roll_back(&moves).await?;
        for (leased, statement) in self.releases() {
            if !leased.0.is_empty() {
                release(&self.link.shared, &leased, statement).await?;
            }
        }
        self.taken.clear();
        Ok(())
    }

    /// The leased items, with the statements that give them back.
    fn releases(&self) -> [(LeasedItems, Statement); 2] {
        let (to_tail, to_head) = self
            .taken
            .iter()
            .partition::<Vec<_>, _>(|taken| taken.fails_to_tail());
        [
            (leased(to_head), |sql| &sql.release),
            (leased(to_tail), |sql| &sql.release_to_tail),
        ]
    }

    /// The statement that moves locked items to the tail, after the rollback.
    pub(super) fn moves(&self) -> String {
        let moved = |taken: &&Taken| taken.claim.is_none() && taken.fails_to_tail();
        let moved = self.taken.iter().filter(moved);
        let ids: Vec<_> = moved.map(|taken| taken.record.id.to_string()).collect();
        if ids.is_empty() {
            return String::new();
        }
        self.link.shared.schema.sql(&move_to_tail(&ids))
    }

    /// Writes how the items end and what is pushed, and commits.
    pub(super) async fn write(&mut self) -> Result<Vec<Ticket>> {
        let (is_grouped, locks) = (self.is_grouped(), self.locks());
        let (part, shared) = (self.part(), self.shared());
        if is_grouped {
            return match self.late(&part) {
                Some(core) => core.complete_later(part.finished).await,
                None => shared.write_in_group(part).await,
            };
        }
        self.link.open().await?;
        for taken in &self.taken {
            taken.write_ending(&mut self.link).await?;
        }
        if locks {
            self.lock_uniques(&part).await?;
        }
        let (parts, is_within) = ([&part], self.link.is_within());
        // 0, so that this process is notified too, when the outer transaction commits.
        let process = if is_within {
            0
        } else {
            shared.process().await?
        };
        let writing = Writing::of(&parts, process);
        let (sql, params) = (writing.sql(&shared.sql), writing.params());
        let rows = self.link.run_and_commit(sql, &params).await?;
        let tickets = writing.tickets(&rows).pop();
        if !is_within {
            // Not before the commit, whose snapshot may be older than the counts.
            shared.forget_attempts(self.taken.iter().filter_map(Taken::forgotten).collect());
            let ready_again = |taken: &&Taken| matches!(taken.ending, Ending::Retry(..=0));
            for taken in self.taken.iter().filter(ready_again) {
                let queue = taken.core.id().await?; // known
                shared.hub.wake(queue, 1);
                shared.tell(vec![(queue, 1)]);
            }
            shared.tell(writing.listened(&rows));
        }
        shared.wake_for(&part);
        Ok(tickets.unwrap_or_default())
    }

    /// Whether unique keys are locked by the commit.
    fn locks(&self) -> bool {
        let replaces = self.staged.iter().any(Staged::replaces);
        replaces || self.taken.iter().any(Taken::keeps_key)
    }

    /// Whether the commit needs no connection of its own, and nobody can see whether it comes before or after another one.
    pub(super) fn ends_items_only(&self) -> bool {
        self.staged.is_empty() && self.is_grouped()
    }

    /// Whether the commit is a part of a statement that is written together with others, on no connection of its own.
    fn is_grouped(&self) -> bool {
        let alone = |taken: &Taken| taken.is_kept() || !taken.is_done();
        !self.link.begun && !self.locks() && !self.taken.iter().any(alone)
    }

    /// The queue of a worker, if nothing but the end of its item is to be written, for which nobody waits.
    fn late(&self, part: &Part) -> Option<&Arc<Core>> {
        let [taken] = &*self.taken else {
            return None;
        };
        let is_late = self.of_worker && taken.claim.is_some() && taken.core.completions.is_some();
        let alone = part.staged.is_empty() && !part.serial && !taken.is_followed();
        (is_late && alone).then_some(&taken.core)
    }

    /// Locks the unique keys of what is pushed or keeps its key, in their order.
    async fn lock_uniques(&mut self, part: &Part) -> Result<()> {
        let (mut queues, mut keys) = (Vec::new(), Vec::new());
        let (mut tickets, mut lasts) = (Vec::new(), Vec::new());
        let mut add = |queue, key, ticket, last| {
            queues.push(queue);
            keys.push(key);
            tickets.push(ticket);
            lasts.push(last);
        };
        for (queue, key) in part.staged.iter().filter_map(Staged::unique_key) {
            add(queue, key, 0, None);
        }
        for taken in self.taken.iter().filter(|taken| taken.keeps_key()) {
            let (core, key) = (&taken.core, taken.unique.as_deref().unwrap_or_default());
            let last = Some(core.rules.unique_for);
            add(core.id().await?, key, taken.record.ticket, last);
        }
        let (shared, params): (_, Params<'_>) =
            (self.shared(), &[&queues, &keys, &tickets, &lasts]);
        self.link.run(&shared.sql.lock_uniques, params).await?;
        Ok(())
    }

    /// What the transaction finishes and pushes.
    fn part(&mut self) -> Part {
        Part {
            finished: leased(self.taken.iter().filter(|taken| taken.is_done())),
            serial: self.taken.iter().any(|taken| taken.core.rules.is_serial()),
            staged: mem::take(&mut self.staged),
        }
    }
}

/// The leased items among these.
fn leased<'t>(taken: impl IntoIterator<Item = &'t Taken>) -> LeasedItems {
    let held = |taken: &Taken| Some((taken.record.id, taken.claim?));
    leases(taken.into_iter().filter_map(held))
}

impl Taken {
    /// The transaction was committed.
    fn committed(self) {
        if let Some(buffer) = &self.core.buffer {
            buffer.ended();
        }
        if let (true, Some(queue)) = (self.is_done(), self.core.known_id()) {
            self.core.db.shared.note_finished(queue);
        }
        if let (Ending::Done | Ending::Dead(..), Some(mut start)) = (self.ending, self.start) {
            start.end(Pace::spend);
        }
    }

    /// Whether another item may follow it.
    fn is_followed(&self) -> bool {
        self.core.rules.on_duplicate == OnDuplicate::Follow
    }

    /// Whether it is kept after the commit.
    fn is_kept(&self) -> bool {
        self.is_done() && self.core.rules.keep_finished.is_some()
    }

    /// Whether its unique key stays taken after the commit.
    fn keeps_key(&self) -> bool {
        self.is_done() && self.unique.is_some()
    }

    /// The id, if the count of its deliveries is to be forgotten with the commit: there is no item with this id any more.
    fn forgotten(&self) -> Option<i64> {
        let is_counted = self.claim.is_none() && self.core.rules.is_counted() && !self.snoozed;
        let stays = match self.ending {
            Ending::Retry(0) => true,
            Ending::Retry(1..) => self.record.id == self.record.ticket, // the ticket is the id of a delayed item
            _ => false,
        };
        (is_counted && !stays).then_some(self.record.id)
    }

    /// Writes that the item is done and kept, is tried again, or is a dead letter.
    async fn write_ending(&self, link: &mut Link<'_>) -> Result<()> {
        let (shared, record) = (Arc::clone(&link.shared), &self.record);
        let (json, bytes) = record.payload.columns();
        let queue = self.core.id().await?;
        let ticket = (record.ticket != record.id).then_some(record.ticket);
        let item: Params<'_> = &[
            &record.id,
            &queue,
            &record.priority,
            &record.key,
            &record.attempts,
            &json,
            &bytes,
            &record.pushed,
            &record.expires,
            &ticket,
            &self.snoozed,
        ];
        let leased: Params<'_> = &[&record.id, &self.claim, &record.attempts];
        let (sql, item): (_, Params<'_>) = match &self.claim {
            Some(_) => (&shared.sql.settle_leased, leased),
            None => (&shared.sql.settle_locked, item),
        };
        let (delay, error, reason) = match &self.ending {
            Ending::Done => return self.write_kept(link, queue).await,
            Ending::Retry(delay) => (Some(*delay), record.error.as_deref(), None),
            Ending::Dead(error, reason) => (None, Some(&**error), Some(*reason)),
        };
        let end: Params<'_> = &[&delay, &error, &reason];
        link.run(sql, &[end, item].concat()).await.map(drop)
    }

    /// Writes that the item is done, if it is kept.
    async fn write_kept(&self, link: &mut Link<'_>, queue: i32) -> Result<()> {
        let Some(time) = self.core.rules.keep_finished else {
            return Ok(());
        };
        let (shared, record) = (Arc::clone(&link.shared), &self.record);
        let (json, bytes) = record.payload.columns();
        let item: Params<'_> = &[
            &record.ticket,
            &queue,
            &record.priority,
            &record.key,
            &record.attempts,
            &json,
            &bytes,
            &record.pushed,
            &time,
            &self.result,
        ];
        link.run(&shared.sql.keep, item).await.map(drop)
    }
}

impl Drop for PgTransaction<'_> {
    fn drop(&mut self) {
        let moves = self.moves();
        self.link.send_roll_back(&moves);
        for (leased, statement) in self.releases() {
            release_later(&self.link.shared, leased, statement);
        }
    }
}
