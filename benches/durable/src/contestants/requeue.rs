//! requeue-durable.

use super::{Jobs, User, AT_MOST};
use crate::Failure;
use requeue_durable::{Durability, DurableQueue, Handle, Store, StoreOptions};
use std::path::Path;

struct Table(Store, DurableQueue<u64>);

pub(super) fn open(dir: &Path, synced: bool) -> Result<Box<dyn Jobs>, Failure> {
    let durability = if synced {
        Durability::Synced
    } else {
        Durability::Buffered { at_most: AT_MOST }
    };
    let store = StoreOptions::new().durability(durability).open(dir)?;
    let queue = store.queue("jobs")?;
    Ok(Box::new(Table(store, queue)))
}

impl Jobs for Table {
    fn user(&self) -> Box<dyn User + '_> {
        Box::new(self.1.handle())
    }

    fn flush(&self) -> Result<(), Failure> {
        Ok(self.0.flush()?)
    }

    fn len(&self) -> Result<u64, Failure> {
        Ok(self.1.len() as u64)
    }
}

impl User for Handle<u64> {
    fn push(&mut self, jobs: &[u64]) -> Result<(), Failure> {
        let tx = self.begin();
        tx.push_batch(jobs.iter().copied())?;
        tx.commit()?;
        Ok(())
    }

    fn pop(&mut self, max: usize, jobs: &mut Vec<u64>) -> Result<(), Failure> {
        let tx = self.begin();
        tx.pop_batch(max)?;
        jobs.extend(tx.commit()?);
        Ok(())
    }
}
