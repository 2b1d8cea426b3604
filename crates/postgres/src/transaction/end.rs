//! The end of a transaction.

use super::{Ending, Hold, PgTransaction, Staged, Taken};
use crate::claim::{release, release_later};
use crate::connect::{query_alone, Params};
use crate::error::Error;
use crate::item::Ticket;
use crate::queue::Delay;
use crate::sql::Written;
use std::mem;
use tokio_postgres::types::ToSql;
use tokio_postgres::Row;

/// Fails if the database transaction has failed.
const NOTHING: &str = "select 1";

impl PgTransaction<'_> {
    /// Makes the pops final, the pushes visible, and commits the statements of the [client](Self::client). Returns the tickets
    /// of the pushes, in their order.
    ///
    /// Not cancel safe: if the future is dropped before it is ready, the transaction may have committed or aborted.
    ///
    /// # Errors
    ///
    /// The transaction was aborted, except that [`Error::InDoubt`] leaves open whether it has committed. [`Error::Expired`] if
    /// the lease of an item expired, [`Error::Broken`] if an earlier call failed.
    pub async fn commit(mut self) -> Result<Vec<Ticket>, Error> {
        self.enter()?;
        let written = self.write().await;
        if matches!(written, Err(Error::Expired)) {
            self.db.shared.leases.expired().await;
        }
        let tickets = written?;
        self.taken.drain(..).for_each(Taken::committed);
        self.notify();
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
            release(&self.db, &leased).await?;
        }
        self.taken.clear();
        Ok(())
    }

    /// Writes how the items end and what is pushed, and commits.
    pub(super) async fn write(&mut self) -> Result<Vec<Ticket>, Error> {
        let finished = self
            .taken
            .iter()
            .filter(|taken| matches!(taken.ending, Ending::Done));
        let finished = leases(finished);
        let counted: Vec<i64> = self.taken.iter().filter_map(Taken::forgotten).collect();
        let ended = self
            .taken
            .iter()
            .any(|taken| !matches!(taken.ending, Ending::Done));
        let written = self.written(&finished);
        let alone = !self.link.is_begun() && !ended && counted.is_empty();
        if alone && !(written.push || written.finish) {
            return Ok(Vec::new());
        }
        if !alone {
            self.write_endings(&counted).await?;
        }
        let columns = Columns::of(&self.staged);
        let process = if self.link.is_within() {
            0 // so that this process is notified too, when the outer transaction commits
        } else {
            self.db.shared.process().await?
        };
        let mut params: Vec<&(dyn ToSql + Sync)> = Vec::new();
        if written.finish {
            params.extend([&finished.0 as &(dyn ToSql + Sync), &finished.1]);
        }
        if written.push {
            columns.add_to(&mut params);
            params.push(&process);
            if written.serial {
                params.push(&columns.serial);
            }
        }
        let sql = if written.push || written.finish {
            self.db.shared.sql.claims.write(written)
        } else {
            NOTHING
        };
        let rows = if alone {
            Self::run_alone(&self.db, sql, &params).await?
        } else {
            self.link.run_and_commit(sql, &params).await?
        };
        let new = rows.iter().filter(|_| written.push);
        Ok(new.map(|row| Ticket(row.get(0))).collect())
    }

    /// Runs the only statement of a transaction.
    async fn run_alone(
        db: &crate::Postgres,
        sql: &str,
        params: Params<'_>,
    ) -> Result<Vec<Row>, Error> {
        let client = db.shared.connection().await?;
        query_alone(&client, sql, params)
            .await
            .map_err(|error| match error {
                Error::Database(error) if error.as_db_error().is_none() => Error::InDoubt(error),
                error => error,
            })
    }

    /// Writes the retries and the dead letters, and forgets the attempts of items that leave their queue.
    async fn write_endings(&mut self, counted: &[i64]) -> Result<(), Error> {
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
        written?;
        if !counted.is_empty() {
            self.link
                .run(&db, &db.shared.sql.forget_attempts, &[&counted])
                .await?;
        }
        Ok(())
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

    fn written(&self, finished: &(Vec<i64>, Vec<i64>)) -> Written {
        let serial = |taken: &Taken| taken.core.rules.serial;
        Written {
            finish: !finished.0.is_empty(),
            push: !self.staged.is_empty(),
            delayed: self.staged.iter().any(|staged| staged.due.is_some()),
            serial: self.staged.iter().any(|staged| staged.serial) || self.taken.iter().any(serial),
        }
    }

    /// Wakes the waiters of this process for what the commit has pushed.
    fn notify(&mut self) {
        let shared = &self.db.shared;
        if self.staged.iter().any(|staged| staged.due.is_some()) {
            shared.promoter.nudge();
        }
        for staged in self.staged.drain(..).filter(|staged| staged.due.is_none()) {
            shared.hub.wake(staged.queue, 1);
        }
    }
}

/// The ids and the claims of the leased items.
fn leases<'t>(taken: impl IntoIterator<Item = &'t Taken>) -> (Vec<i64>, Vec<i64>) {
    let leased = taken.into_iter().filter_map(|taken| match taken.hold {
        Hold::Leased(claim) => Some((taken.record.id, claim)),
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
        release_later(&self.db, leases(&self.taken));
    }
}

/// The columns of the pushed items.
struct Columns<'s> {
    queues: Vec<i32>,
    priorities: Vec<i16>,
    keys: Vec<Option<&'s str>>,
    json: Vec<Option<&'s str>>,
    bytes: Vec<Option<&'s [u8]>>,
    after: Vec<Option<i64>>,
    at: Vec<Option<i64>>,
    /// The serial queues among them.
    serial: Vec<i32>,
}

impl<'s> Columns<'s> {
    fn of(staged: &'s [Staged]) -> Self {
        let payloads = || staged.iter().map(|item| item.payload.columns());
        let serial = staged.iter().filter(|item| item.serial);
        Self {
            queues: staged.iter().map(|item| item.queue).collect(),
            priorities: staged.iter().map(|item| item.priority).collect(),
            keys: staged.iter().map(|item| item.key.as_deref()).collect(),
            json: payloads().map(|(json, _)| json).collect(),
            bytes: payloads().map(|(_, bytes)| bytes).collect(),
            after: staged
                .iter()
                .map(|item| item.due.and_then(Delay::after))
                .collect(),
            at: staged
                .iter()
                .map(|item| item.due.and_then(Delay::at))
                .collect(),
            serial: serial.map(|item| item.queue).collect(),
        }
    }

    fn add_to<'p>(&'p self, params: &mut Vec<&'p (dyn ToSql + Sync)>) {
        params.extend([
            &self.queues as &(dyn ToSql + Sync),
            &self.priorities,
            &self.keys,
            &self.json,
            &self.bytes,
            &self.after,
            &self.at,
        ]);
    }
}
