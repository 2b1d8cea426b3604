//! redb. Its transactions that write exclude each other. Buffered: without durability, but one that is synced in time.

use super::{Jobs, User, AT_MOST};
use crate::Failure;
use redb::{Database, Durability, ReadableDatabase, ReadableTableMetadata, TableDefinition};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

const JOBS: TableDefinition<'_, u64, u64> = TableDefinition::new("jobs");

struct Table {
    database: Database,
    synced: bool,
    last_sync: Mutex<Instant>,
}

pub(super) fn open(dir: &Path, synced: bool) -> Result<Box<dyn Jobs>, Failure> {
    std::fs::create_dir_all(dir)?;
    let database = Database::create(dir.join("jobs.redb"))?;
    let table = Table {
        database,
        synced,
        last_sync: Mutex::new(Instant::now()),
    };
    table.write(true, |_| Ok(()))?;
    Ok(Box::new(table))
}

impl Table {
    fn write(
        &self,
        sync: bool,
        work: impl FnOnce(&mut redb::Table<'_, u64, u64>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut tx = self.database.begin_write()?;
        tx.set_durability(if sync {
            Durability::Immediate
        } else {
            Durability::None
        })?;
        work(&mut tx.open_table(JOBS)?)?;
        Ok(tx.commit()?)
    }

    fn is_due(&self) -> bool {
        let mut last = self
            .last_sync
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let is_due = last.elapsed() >= AT_MOST;
        if is_due {
            *last = Instant::now();
        }
        is_due
    }
}

impl Jobs for Table {
    fn user(&self) -> Box<dyn User + '_> {
        Box::new(self)
    }

    fn flush(&self) -> Result<(), Failure> {
        self.write(true, |_| Ok(()))
    }

    fn len(&self) -> Result<u64, Failure> {
        Ok(self.database.begin_read()?.open_table(JOBS)?.len()?)
    }
}

impl User for &Table {
    fn push(&mut self, jobs: &[u64]) -> Result<(), Failure> {
        self.write(self.synced || self.is_due(), |table| {
            let next = redb::ReadableTable::last(table)?.map_or(0, |(key, _)| key.value() + 1);
            for (key, job) in (next..).zip(jobs) {
                table.insert(key, job)?;
            }
            Ok(())
        })
    }

    fn pop(&mut self, max: usize, jobs: &mut Vec<u64>) -> Result<(), Failure> {
        self.write(self.synced || self.is_due(), |table| {
            for _ in 0..max {
                let Some((_, job)) = table.pop_first()? else {
                    break;
                };
                jobs.push(job.value());
            }
            Ok(())
        })
    }
}
