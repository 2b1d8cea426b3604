//! The end of a transaction.

use super::write::{Part, Writing};
use super::{Ending, Hold, PgTransaction, Taken};
use crate::claim::{lease_number, release, release_later, Delivered, LeasedItems};
use crate::connect::Params;
use crate::error::Error;
use crate::item::Ticket;
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
    /// the lease of an item expired, [`Error::Broken`] if an earlier call failed.
    pub async fn commit(mut self) -> Result<Vec<Ticket>, Error> {
        self.enter()?;
        let written = self.write().await;
        if matches!(written, Err(Error::Expired)) {
            self.db.shared.leases.expired();
        }
        let tickets = written?;
        self.taken.drain(..).for_each(Taken::committed);
        Ok(tickets)
    }

    /// Gives the popped items back to their places, and undoes all else. Dropping the transaction does the same in the background.
    ///
    /// # Errors
    ///
    /// [`Error::Database`] if the server could not be reached: it aborts when it notices.
    pub async fn abort(mut self) -> Result<(), Error> {
        self.roll_back().await
    }

    pub(super) async fn roll_back(&mut self) -> Result<(), Error> {
        self.staged.clear();
        self.link.roll_back().await?;
        let leased = leases(&self.taken);
        if !leased.0.is_empty() {
            release(&self.db.shared, &leased, Delivered::Yes).await?;
        }
        self.taken.clear();
        Ok(())
    }

    /// Writes how the items end and what is pushed, and commits.
    pub(super) async fn write(&mut self) -> Result<Vec<Ticket>, Error> {
        let part = self.part();
        let shared = Arc::clone(&self.db.shared);
        let ends = |taken: &Taken| !matches!(taken.ending, Ending::Done);
        if !self.link.is_begun() && !self.taken.iter().any(ends) {
            return shared.write_in_group(part).await;
        }
        self.write_endings().await?;
        let is_within = self.link.is_within();
        let process = if is_within {
            0 // so that this process is notified too, when the outer transaction commits
        } else {
            shared.process().await?
        };
        let parts = [part];
        let writing = Writing::of(&parts, process);
        let rows = self
            .link
            .run_and_commit(writing.sql(&shared.sql), &writing.params())
            .await?;
        let tickets = writing.tickets(&rows);
        if !is_within {
            // Not before the commit, whose snapshot may be older than the counts.
            shared.forget_attempts(self.taken.iter().filter_map(Taken::forgotten).collect());
            shared.tell(writing.listened(&rows));
        }
        let [part] = &parts;
        shared.wake_for(part);
        Ok(tickets)
    }

    /// Writes the retries and the dead letters.
    async fn write_endings(&mut self) -> Result<(), Error> {
        let db = self.db.clone();
        self.link.open(&db).await?;
        let taken = mem::take(&mut self.taken);
        let mut written = Ok(());
        for taken in &taken {
            if written.is_ok() {
                written = self.write_ending(taken).await;
            }
        }
        self.taken = taken;
        written
    }

    async fn write_ending(&mut self, taken: &Taken) -> Result<(), Error> {
        let db = self.db.clone();
        let (sql, record) = (&db.shared.sql, &taken.record);
        let (json, bytes) = record.payload.columns();
        let queue = taken.core.id().await?;
        let item: Params<'_> = &[
            &record.id,
            &queue,
            &record.priority,
            &record.key,
            &record.attempts,
            &json,
            &bytes,
            &record.pushed,
        ];
        match (&taken.ending, taken.hold) {
            (Ending::Done, _) => return Ok(()),
            (Ending::Retry(delay), Hold::Leased(claim)) => {
                let params: Params<'_> = &[&record.id, &claim, delay];
                self.link.run(&db, &sql.retry_leased, params).await?
            }
            (Ending::Dead(error, reason), Hold::Leased(claim)) => {
                let params: Params<'_> = &[&record.id, &claim, &&**error, reason];
                self.link.run(&db, &sql.dead_leased, params).await?
            }
            (Ending::Retry(delay), Hold::Locked | Hold::Counted) => {
                self.link
                    .run(&db, &sql.retry_locked, &[item, &[delay]].concat())
                    .await?
            }
            (Ending::Dead(error, reason), Hold::Locked | Hold::Counted) => {
                self.link
                    .run(
                        &db,
                        &sql.dead_locked,
                        &[item, &[&&**error, reason]].concat(),
                    )
                    .await?
            }
        };
        Ok(())
    }

    /// What the transaction finishes and pushes.
    fn part(&mut self) -> Part {
        let done = |taken: &&Taken| matches!(taken.ending, Ending::Done);
        let serial = |taken: &Taken| taken.core.rules.serial;
        Part {
            finished: leases(self.taken.iter().filter(done)),
            serial: self.taken.iter().any(serial),
            staged: mem::take(&mut self.staged),
        }
    }
}

/// The ids and the leases of the leased items.
fn leases<'t>(taken: impl IntoIterator<Item = &'t Taken>) -> LeasedItems {
    let leased = taken.into_iter().filter_map(|taken| match taken.hold {
        Hold::Leased(claim) => {
            let id = taken.record.id;
            Some((id, lease_number(id, claim)))
        }
        Hold::Locked | Hold::Counted => None,
    });
    leased.unzip()
}

impl Taken {
    /// The id, if the count of its deliveries is to be forgotten with the commit.
    fn forgotten(&self) -> Option<i64> {
        let leaves = self.hold == Hold::Counted && !matches!(self.ending, Ending::Retry(_));
        leaves.then_some(self.record.id)
    }
}

impl Drop for PgTransaction<'_> {
    fn drop(&mut self) {
        self.link.send_roll_back();
        release_later(&self.db.shared, leases(&self.taken), Delivered::Yes);
    }
}
