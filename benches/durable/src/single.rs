//! One thread with synced commits, next to bare appends of the same bytes: to a file that was written before, with one
//! `fdatasync` each. They take turns every few commits, so that noise affects all of them alike.

use crate::contestants::{Contestant, Jobs, ALL, DURABLE, FJALL};
use crate::options::Options;
use crate::results::{histogram, Results, Sample};
use crate::Failure;
use hdrhistogram::Histogram;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

/// How many items a commit pushes or pops.
pub(crate) const BATCHES: [usize; 2] = [1, 32];

pub(crate) const BARE: &str = "bare append";
pub(crate) const AGAIN: &str = "requeue-durable, opened again";
pub(crate) const NAMES: [&str; 4] = [DURABLE, AGAIN, FJALL, BARE];

/// How many commits a contestant does in its turn. A push and a pop are two.
const TURN: usize = 16;
/// Turns of each contestant before it is measured, in which those that were opened again get a new journal.
const WARM_UP: usize = 32;

/// The size of the file of bare appends, and of the pieces in which it is written first.
const SIZE: u64 = 32 << 20;
const PIECE: usize = 4 << 10;

pub(crate) fn name(batch: usize) -> String {
    format!("single 1x{batch}")
}

/// Does so many commits, and records how long each takes.
type Commits<'c> = Box<dyn FnMut(usize, &mut Histogram<u64>) -> Result<(), Failure> + 'c>;

pub(crate) fn round(options: &Options, results: &mut Results) -> Result<(), Failure> {
    for batch in BATCHES {
        if options.wants(&name(batch)) {
            let dir = options.dir.join("single");
            let _ = fs::remove_dir_all(&dir);
            run(options, batch, &dir, results)?;
            let _ = fs::remove_dir_all(&dir);
        }
    }
    Ok(())
}

fn run(options: &Options, batch: usize, dir: &Path, results: &mut Results) -> Result<(), Failure> {
    let find = |name| ALL.iter().find(|contestant| contestant.name == name);
    let (durable, fjall) = (find(DURABLE), find(FJALL));
    let (durable, fjall) = durable.zip(fjall).ok_or("no such contestant")?;
    let again = dir.join("again");
    let bytes = bytes_per_commit(durable, batch, &again)?;
    let tables = [
        (durable, dir.join("new")),
        (durable, again),
        (fjall, dir.join("fjall")),
    ];
    let opened = tables.map(|(contestant, dir)| (contestant.open)(&dir, true));
    let opened = opened.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut contestants: Vec<Commits<'_>> = Vec::new();
    for jobs in &opened {
        contestants.push(commits(&**jobs, batch));
    }
    contestants.push(bare(dir, bytes)?);
    let mut latencies = [(); NAMES.len()].map(|()| histogram());
    let (mut turn, mut start) = (0, Instant::now());
    while turn < 2 * WARM_UP || start.elapsed() < options.length {
        for (commits, latency) in contestants.iter_mut().zip(&mut latencies) {
            commits(TURN, latency)?;
        }
        turn += 1;
        if turn == WARM_UP {
            latencies.iter_mut().for_each(Histogram::reset);
            start = Instant::now();
        }
    }
    for (contestant, latency) in NAMES.into_iter().zip(latencies) {
        let median = latency.value_at_quantile(0.5) as f64;
        let sample = Sample {
            latency,
            bytes_per_item: bytes as f64,
            ..Sample::of_nanos(median)
        };
        results.add(name(batch), contestant, sample);
    }
    Ok(())
}

/// How many bytes a commit adds to the journal. Leaves a table that was used and closed.
fn bytes_per_commit(contestant: &Contestant, batch: usize, dir: &Path) -> Result<usize, Failure> {
    let jobs = (contestant.open)(dir, true)?;
    commits(&*jobs, batch)(TURN, &mut histogram())?;
    let before = journal(dir)?;
    commits(&*jobs, batch)(TURN, &mut histogram())?;
    Ok((journal(dir)? - before) / TURN)
}

/// How many bytes the journals have, without the zeros behind them.
fn journal(dir: &Path) -> Result<usize, Failure> {
    let mut all = 0;
    for entry in fs::read_dir(dir.join("db"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "jnl") {
            let bytes = fs::read(path)?;
            all += bytes
                .iter()
                .rposition(|byte| *byte != 0)
                .map_or(0, |at| at + 1);
        }
    }
    Ok(all)
}

fn commits(jobs: &dyn Jobs, batch: usize) -> Commits<'_> {
    let (mut user, mut next, mut popped) = (jobs.user(), 0, Vec::new());
    Box::new(move |count, latency| {
        for _ in 0..count / 2 {
            let pushed: Vec<_> = (next..next + batch as u64).collect();
            next += batch as u64;
            timed(latency, || user.push(&pushed))?;
            popped.clear();
            timed(latency, || user.pop(batch, &mut popped))?;
            if popped != pushed {
                return Err("other jobs were popped than were pushed".into());
            }
        }
        Ok(())
    })
}

fn bare(dir: &Path, bytes: usize) -> Result<Commits<'static>, Failure> {
    let file = File::create(dir.join("bare"))?;
    let mut pieces = (0..SIZE).step_by(PIECE);
    pieces.try_for_each(|at| file.write_all_at(&[0; PIECE], at))?;
    file.sync_all()?;
    let (bytes, mut at) = (vec![b'.'; bytes], 0);
    Ok(Box::new(move |count, latency| {
        for _ in 0..count {
            if at + bytes.len() as u64 > SIZE {
                at = 0;
            }
            timed(latency, || {
                file.write_all_at(&bytes, at)?;
                Ok(file.sync_data()?)
            })?;
            at += bytes.len() as u64;
        }
        Ok(())
    }))
}

fn timed(
    latency: &mut Histogram<u64>,
    commit: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let start = Instant::now();
    commit()?;
    Ok(latency.record(u64::try_from(start.elapsed().as_nanos())?)?)
}
