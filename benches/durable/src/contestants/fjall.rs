//! fjall with a keyspace as the table: a commit is a batch and a sync of its own, since fjall has its journal locked
//! through the sync.

use super::{Jobs, User};
use crate::Failure;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

struct Table {
    database: Database,
    jobs: Keyspace,
    mode: PersistMode,
    /// The key of the next push. Locked through a commit, so that keys are in the order of the commits.
    next: Mutex<u64>,
    /// No key is less: a scan from there meets few removed ones. Locked through a commit, so that nothing is taken twice.
    first: Mutex<u64>,
}

pub(super) fn open(dir: &Path, synced: bool) -> Result<Box<dyn Jobs>, Failure> {
    let database = Database::builder(dir).manual_journal_persist(true).open()?;
    let jobs = database.keyspace("jobs", KeyspaceCreateOptions::default)?;
    let last = jobs.last_key_value().map(fjall::Guard::key).transpose()?;
    let next = last.map_or(Ok(0), |key| number(&key).map(|last| last + 1))?;
    let mode = if synced {
        PersistMode::SyncData
    } else {
        PersistMode::Buffer
    };
    Ok(Box::new(Table {
        database,
        jobs,
        mode,
        next: Mutex::new(next),
        first: Mutex::new(0),
    }))
}

fn number(bytes: &[u8]) -> Result<u64, Failure> {
    Ok(u64::from_be_bytes(bytes.try_into()?))
}

impl Jobs for Table {
    fn user(&self) -> Box<dyn User + '_> {
        Box::new(self)
    }

    fn flush(&self) -> Result<(), Failure> {
        Ok(self.database.persist(PersistMode::SyncData)?)
    }

    fn len(&self) -> Result<u64, Failure> {
        Ok(self.jobs.len()? as u64)
    }
}

impl User for &Table {
    fn push(&mut self, jobs: &[u64]) -> Result<(), Failure> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let mut batch = self.database.batch().durability(Some(self.mode));
        for job in jobs {
            batch.insert(&self.jobs, next.to_be_bytes(), job.to_be_bytes());
            *next += 1;
        }
        Ok(batch.commit()?)
    }

    fn pop(&mut self, max: usize, jobs: &mut Vec<u64>) -> Result<(), Failure> {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        let mut batch = self.database.batch().durability(Some(self.mode));
        for row in self.jobs.range(first.to_be_bytes()..).take(max) {
            let (key, job) = row.into_inner()?;
            jobs.push(number(&job)?);
            *first = number(&key)? + 1;
            batch.remove(&self.jobs, key);
        }
        Ok(batch.commit()?)
    }
}
