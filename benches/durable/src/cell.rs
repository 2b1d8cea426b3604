//! A cell: a number of threads, a size of the batches, and a durability. Each thread pushes a batch and then takes one, which
//! are two commits.

use crate::contestants::{Contestant, Jobs, ALL};
use crate::machine::bytes_written;
use crate::options::Options;
use crate::results::{histogram, Results, Sample};
use crate::Failure;
use hdrhistogram::Histogram;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// What is in a table before a cell.
const BACKLOG: u64 = 1_024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) synced: bool,
    pub(crate) threads: usize,
    pub(crate) batch: usize,
}

impl Cell {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let sizes = |synced, threads| {
            [1, 8, 32].map(|batch| Self {
                synced,
                threads,
                batch,
            })
        };
        let threads = move |synced| [1, 4, 16].into_iter().flat_map(move |n| sizes(synced, n));
        [true, false].into_iter().flat_map(threads)
    }

    pub(crate) fn name(self) -> String {
        let durability = if self.synced { "synced" } else { "buffered" };
        format!("{durability} {}x{}", self.threads, self.batch)
    }
}

/// Runs all contestants in all cells.
pub(crate) fn round(options: &Options, round: usize, results: &mut Results) -> Result<(), Failure> {
    for cell in Cell::all() {
        for turn in 0..ALL.len() {
            let contestant = &ALL[(round + turn) % ALL.len()];
            let is_wanted = options.wants(&format!("{} {}", cell.name(), contestant.name));
            if is_wanted && (contestant.on_disk || !cell.synced) {
                let dir = options.dir.join("cell");
                let sample = run(contestant, cell, &dir, options.length)?;
                results.add(cell.name(), contestant.name, sample);
            }
        }
    }
    Ok(())
}

fn run(
    contestant: &Contestant,
    cell: Cell,
    dir: &Path,
    length: Duration,
) -> Result<Sample, Failure> {
    let _ = fs::remove_dir_all(dir);
    let jobs = (contestant.open)(dir, cell.synced)?;
    let backlog: Vec<_> = (0..BACKLOG).collect();
    jobs.user().push(&backlog)?;
    jobs.flush()?;
    let before = bytes_written(dir);
    let start = Instant::now();
    let threads = work(&*jobs, cell, length)?;
    let worked = start.elapsed();
    jobs.flush()?;
    let elapsed = start.elapsed();
    let bytes = bytes_written(dir) - before;

    let (mut total, mut latency) = (Balance::default(), histogram());
    for thread in &threads {
        total.pushed += thread.balance.pushed;
        total.sum = total.sum.wrapping_add(thread.balance.sum);
        latency.add(&thread.latency)?;
    }
    check(&*jobs, total.sum, contestant.name)?;
    drop(jobs);
    let _ = fs::remove_dir_all(dir);
    let commits = threads.iter().map(|thread| thread.commits).sum::<u64>() as f64;
    Ok(Sample {
        commits_per_second: commits / elapsed.as_secs_f64(),
        call_nanos: worked.as_nanos() as f64 / total.pushed as f64,
        nanos: elapsed.as_nanos() as f64 / total.pushed as f64,
        bytes_per_item: bytes as f64 / total.pushed as f64,
        latency,
    })
}

/// The number of pushed jobs; the sum of the pushed ones less that of the popped ones.
#[derive(Default)]
struct Balance {
    pushed: u64,
    sum: u64,
}

struct Worked {
    balance: Balance,
    commits: u64,
    latency: Histogram<u64>,
}

fn work(jobs: &dyn Jobs, cell: Cell, length: Duration) -> Result<Vec<Worked>, Failure> {
    let (stop, barrier) = (AtomicBool::new(false), Barrier::new(cell.threads + 1));
    thread::scope(|scope| {
        let (stop, barrier) = (&stop, &barrier);
        let start = |thread| scope.spawn(move || user(jobs, cell, thread, stop, barrier));
        let threads: Vec<_> = (0..cell.threads).map(start).collect();
        barrier.wait();
        thread::sleep(length);
        stop.store(true, Ordering::Relaxed);
        let join = |thread: thread::ScopedJoinHandle<'_, _>| thread.join().expect("no panic");
        threads.into_iter().map(join).collect()
    })
}

fn user(
    jobs: &dyn Jobs,
    cell: Cell,
    thread: usize,
    stop: &AtomicBool,
    barrier: &Barrier,
) -> Result<Worked, Failure> {
    let mut user = jobs.user();
    let mut next = (thread as u64 + 1) << 40;
    let mut worked = Worked {
        balance: Balance::default(),
        commits: 0,
        latency: histogram(),
    };
    let (mut pushed, mut popped) = (Vec::new(), Vec::new());
    barrier.wait();
    while !stop.load(Ordering::Relaxed) {
        pushed.clear();
        pushed.extend(next..next + cell.batch as u64);
        next += cell.batch as u64;
        timed(cell, &mut worked, || user.push(&pushed))?;
        popped.clear();
        while popped.len() < cell.batch {
            let missing = cell.batch - popped.len();
            timed(cell, &mut worked, || user.pop(missing, &mut popped))?;
        }
        worked.commits += 2;
        let balance = &mut worked.balance;
        balance.pushed += cell.batch as u64;
        balance.sum = pushed
            .iter()
            .fold(balance.sum, |sum, job| sum.wrapping_add(*job));
        balance.sum = popped
            .iter()
            .fold(balance.sum, |sum, job| sum.wrapping_sub(*job));
    }
    Ok(worked)
}

/// Measures synced calls; buffered ones are too short.
fn timed(
    cell: Cell,
    worked: &mut Worked,
    commit: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    if !cell.synced {
        return commit();
    }
    let start = Instant::now();
    commit()?;
    let nanos = u64::try_from(start.elapsed().as_nanos())?;
    worked.latency.record(nanos)?;
    Ok(())
}

/// What is left must be what was pushed and not popped.
fn check(jobs: &dyn Jobs, missing: u64, name: &str) -> Result<(), Failure> {
    let mut left = Vec::new();
    let mut user = jobs.user();
    loop {
        let before = left.len();
        user.pop(1_024, &mut left)?;
        if left.len() == before {
            break;
        }
    }
    let sum = left.iter().fold(0_u64, |sum, job| sum.wrapping_add(*job));
    let expected = missing.wrapping_add((0..BACKLOG).sum());
    if left.len() as u64 == BACKLOG && sum == expected {
        Ok(())
    } else {
        Err(format!(
            "{name} lost or doubled jobs: {} are left of {BACKLOG}",
            left.len()
        )
        .into())
    }
}
