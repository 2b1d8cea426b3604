//! SQLite with a write-ahead log. Its writers exclude each other, so they share one connection behind a lock, which is faster
//! than connections that poll for their turn.

use super::{Jobs, User};
use crate::Failure;
use rusqlite::{params, Connection, TransactionBehavior};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

struct Table(Mutex<Connection>);

pub(super) fn open(dir: &Path, synced: bool) -> Result<Box<dyn Jobs>, Failure> {
    std::fs::create_dir_all(dir)?;
    let connection = Connection::open(dir.join("jobs.sqlite"))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", if synced { "FULL" } else { "NORMAL" })?;
    connection.execute(
        "CREATE TABLE IF NOT EXISTS jobs (id INTEGER PRIMARY KEY AUTOINCREMENT, job INTEGER NOT NULL)",
        [],
    )?;
    Ok(Box::new(Table(Mutex::new(connection))))
}

impl Table {
    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Jobs for Table {
    fn user(&self) -> Box<dyn User + '_> {
        Box::new(self)
    }

    fn flush(&self) -> Result<(), Failure> {
        let connection = self.connection();
        Ok(connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?)
    }

    fn len(&self) -> Result<u64, Failure> {
        let count = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
        let count = self
            .connection()
            .query_row("SELECT count(*) FROM jobs", [], count)?;
        Ok(count.cast_unsigned())
    }
}

impl User for &Table {
    fn push(&mut self, jobs: &[u64]) -> Result<(), Failure> {
        let mut connection = self.connection();
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut insert = tx.prepare_cached("INSERT INTO jobs (job) VALUES (?1)")?;
        for job in jobs {
            insert.execute(params![job.cast_signed()])?;
        }
        drop(insert);
        Ok(tx.commit()?)
    }

    fn pop(&mut self, max: usize, jobs: &mut Vec<u64>) -> Result<(), Failure> {
        let mut connection = self.connection();
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut delete = tx.prepare_cached(
            "DELETE FROM jobs WHERE id IN (SELECT id FROM jobs ORDER BY id LIMIT ?1) RETURNING job",
        )?;
        let rows = delete.query_map(params![i64::try_from(max)?], |row| row.get::<_, i64>(0))?;
        for job in rows {
            jobs.push(job?.cast_unsigned());
        }
        drop(delete);
        Ok(tx.commit()?)
    }
}
