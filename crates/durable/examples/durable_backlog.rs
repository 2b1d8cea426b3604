//! What a backlog beyond the memory costs: how long a store takes to open after its process was killed and how much memory then, and
//! the throughput with the backlog and without.
//!
//! `cargo run --release -p requeue-durable --example durable_backlog -- DIRECTORY`, with `BACKLOG_ITEMS` (1,000,000) items of 100
//! bytes, `BACKLOG_MEMORY` (16 MiB; `none`: no pages) and `BACKLOG_MEMTABLE` (64 MiB).

use requeue_durable::{Durability, DurableQueue, Store, StoreError, StoreOptions};
use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{abort, Command};
use std::time::{Duration, Instant};

const FILL: &str = "BACKLOG_FILL";
const BATCH: usize = 32;

type Job = Vec<u8>;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = env::args().nth(1).ok_or("a directory for the store")?;
    let directory = Path::new(&directory).join("backlog.db");
    let items = number("BACKLOG_ITEMS", 1_000_000);
    if env::var_os(FILL).is_some() {
        return fill(&directory, items);
    }
    let _ = fs::remove_dir_all(&directory);
    let mut child = Command::new(env::current_exe()?);
    child.args(env::args_os().skip(1)).env(FILL, "1").status()?;

    let before = resident()?;
    let start = Instant::now();
    let store = open(&directory)?;
    let opened = start.elapsed();
    let jobs: DurableQueue<Job> = store.queue("jobs")?;
    let first = jobs.pop()?;
    let (elapsed, after) = (start.elapsed(), resident()?);
    assert_eq!((first, jobs.len()), (job(0), items - 1));
    println!(
        "store {opened:.3?}, first job {elapsed:.3?}; {before} MiB resident before, {after} then"
    );

    let with = throughput(&jobs)?;
    println!(
        "{with:.0} items/s pushed and popped with the backlog; {} MiB",
        resident()?
    );
    let none: DurableQueue<Job> = store.queue("none")?;
    let without = throughput(&none)?;
    println!("{without:.0} items/s without: {:.2}", with / without);
    drop((jobs, none, store));
    fs::remove_dir_all(&directory)?;
    Ok(())
}

fn number(variable: &str, default: usize) -> usize {
    let value = env::var(variable).ok().and_then(|value| value.parse().ok());
    value.unwrap_or(default)
}

fn open(directory: &Path) -> Result<Store, StoreError> {
    let at_most = Duration::from_millis(50);
    let mut options = StoreOptions::new().durability(Durability::Buffered { at_most });
    options = options.memtable(number("BACKLOG_MEMTABLE", 64 << 20) as u64);
    if env::var("BACKLOG_MEMORY").as_deref() != Ok("none") {
        options = options.memory(number("BACKLOG_MEMORY", 16 << 20));
    }
    options.open(directory)
}

fn job(number: usize) -> Job {
    let mut job = vec![7; 100];
    job[..8].copy_from_slice(&number.to_le_bytes());
    job
}

/// Fills the store, and dies.
fn fill(directory: &Path, items: usize) -> Result<(), Box<dyn Error>> {
    let store = open(directory)?;
    let jobs = store.queue("jobs")?;
    let mut handle = jobs.handle();
    for first in (0..items).step_by(1_000) {
        handle.push_batch((first..items.min(first + 1_000)).map(job))?;
    }
    store.flush()?;
    println!("filled; {} MiB resident", resident()?);
    abort()
}

/// Pushes and pops for two seconds.
fn throughput(jobs: &DurableQueue<Job>) -> Result<f64, Box<dyn Error>> {
    let mut handle = jobs.handle();
    let (start, mut count) = (Instant::now(), 0_u32);
    while start.elapsed() < Duration::from_secs(2) {
        handle.push_batch((0..BATCH).map(job))?;
        count += u32::try_from(handle.pop_batch(BATCH)?.len())?;
    }
    Ok(f64::from(count) / start.elapsed().as_secs_f64())
}

/// The resident memory of this process, in MiB.
fn resident() -> Result<usize, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1));
    Ok(kib.ok_or("no VmRSS")?.parse::<usize>()? / 1024)
}
