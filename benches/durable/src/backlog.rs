//! A backlog: how many items a second can be pushed that nobody pops, and pushed and popped behind them. One thread, buffered.

use crate::contestants::{AT_MOST, DURABLE, FJALL};
use crate::machine::bytes_written;
use crate::options::Options;
use crate::results::{Results, Sample};
use crate::Failure;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use requeue_durable::{Durability, Handle, Store, StoreOptions};
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::time::Instant;

/// How many items a commit pushes or pops.
pub(crate) const BATCHES: [usize; 2] = [1, 32];

/// An item.
pub(crate) type Item = [u8; 24];

pub(crate) trait Table {
    fn push(&mut self, items: &[Item]) -> Result<(), Failure>;

    /// Takes up to `max`, in one commit.
    fn pop(&mut self, max: usize) -> Result<(), Failure>;

    /// Makes the commits durable.
    fn flush(&mut self) -> Result<(), Failure>;
}

type Open = fn(&Path) -> Result<Box<dyn Table>, Failure>;

pub(crate) const CONTESTANTS: [(&str, Open); 2] = [(DURABLE, requeue), (FJALL, fjall)];

/// The two cells of each batch: how the backlog grows, and pushes and pops while it is there.
pub(crate) fn cells() -> impl Iterator<Item = String> {
    let both = |batch| [grown(batch), steady(batch)];
    BATCHES.into_iter().flat_map(both)
}

fn grown(batch: usize) -> String {
    format!("backlog 1x{batch}, pushed")
}

fn steady(batch: usize) -> String {
    format!("backlog 1x{batch}, pushed and popped")
}

/// Runs all contestants.
pub(crate) fn round(options: &Options, round: usize, results: &mut Results) -> Result<(), Failure> {
    for batch in BATCHES {
        for turn in 0..CONTESTANTS.len() {
            let (contestant, open) = CONTESTANTS[(round + turn) % CONTESTANTS.len()];
            if options.wants(&format!("backlog 1x{batch} {contestant}")) {
                let dir = options.dir.join("backlog");
                let _ = fs::remove_dir_all(&dir);
                let mut table = open(&dir)?;
                let mut next = 0;
                for (cell, pops) in [(grown(batch), false), (steady(batch), true)] {
                    let end = next + options.items;
                    let sample = run(&mut *table, &dir, batch, next..end, pops)?;
                    results.add(cell, contestant, sample);
                    next = end;
                }
                drop(table);
                let _ = fs::remove_dir_all(&dir);
            }
        }
    }
    Ok(())
}

/// Pushes items, and pops as many after each commit.
fn run(
    table: &mut dyn Table,
    dir: &Path,
    batch: usize,
    mut items: Range<u64>,
    pops: bool,
) -> Result<Sample, Failure> {
    let total = (items.end - items.start) as f64;
    let before = bytes_written(dir);
    let start = Instant::now();
    let mut pushed = Vec::new();
    while !items.is_empty() {
        pushed.clear();
        pushed.extend(items.by_ref().take(batch).map(item));
        table.push(&pushed)?;
        if pops {
            table.pop(pushed.len())?;
        }
    }
    let called = start.elapsed();
    table.flush()?;
    let elapsed = start.elapsed();
    Ok(Sample {
        call_nanos: called.as_nanos() as f64 / total,
        bytes_per_item: (bytes_written(dir) - before) as f64 / total,
        ..Sample::of_nanos(elapsed.as_nanos() as f64 / total)
    })
}

fn item(number: u64) -> Item {
    let mut item = [b'.'; 24];
    item[..8].copy_from_slice(&number.to_be_bytes());
    item
}

struct Requeue(Store, Handle<Item>);

fn requeue(dir: &Path) -> Result<Box<dyn Table>, Failure> {
    let durability = Durability::Buffered { at_most: AT_MOST };
    let store = StoreOptions::new().durability(durability).open(dir)?;
    let handle = store.queue("jobs")?.handle();
    Ok(Box::new(Requeue(store, handle)))
}

impl Table for Requeue {
    fn push(&mut self, items: &[Item]) -> Result<(), Failure> {
        let tx = self.1.begin();
        tx.push_batch(items.iter().copied())?;
        tx.commit()?;
        Ok(())
    }

    fn pop(&mut self, max: usize) -> Result<(), Failure> {
        let tx = self.1.begin();
        tx.pop_batch(max)?;
        tx.commit()?;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.0.flush()?)
    }
}

struct Fjall {
    database: Database,
    jobs: Keyspace,
    next: u64,
    /// No key is less.
    first: u64,
}

fn fjall(dir: &Path) -> Result<Box<dyn Table>, Failure> {
    let database = Database::builder(dir).manual_journal_persist(true).open()?;
    let jobs = database.keyspace("jobs", KeyspaceCreateOptions::default)?;
    let (next, first) = (0, 0);
    Ok(Box::new(Fjall {
        database,
        jobs,
        next,
        first,
    }))
}

impl Table for Fjall {
    fn push(&mut self, items: &[Item]) -> Result<(), Failure> {
        let mut batch = self.database.batch().durability(Some(PersistMode::Buffer));
        for item in items {
            batch.insert(&self.jobs, self.next.to_be_bytes(), *item);
            self.next += 1;
        }
        Ok(batch.commit()?)
    }

    fn pop(&mut self, max: usize) -> Result<(), Failure> {
        let mut batch = self.database.batch().durability(Some(PersistMode::Buffer));
        for row in self.jobs.range(self.first.to_be_bytes()..).take(max) {
            let (key, _) = row.into_inner()?;
            self.first = u64::from_be_bytes((*key).try_into()?) + 1;
            batch.remove(&self.jobs, key);
        }
        Ok(batch.commit()?)
    }

    fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.database.persist(PersistMode::SyncData)?)
    }
}
