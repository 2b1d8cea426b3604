//! A walk over a directory tree by several threads, depth first; beside one with work-stealing deques.
//!
//! Run it with `cargo run --release --example walk -- [DIRECTORY]`.

mod by_deque;
#[cfg(test)]
mod tests;
mod walker;

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use walker::{walk, Then};

const THREADS: usize = 2;
const ROUNDS: usize = 7;

/// What a walk has counted.
#[derive(Default)]
struct Counts {
    entries: AtomicUsize,
    errors: AtomicUsize,
}

/// The time of a walk, in milliseconds.
fn timed(walk: impl FnOnce(&Counts)) -> (f64, Counts) {
    let (start, counts) = (Instant::now(), Counts::default());
    walk(&counts);
    (start.elapsed().as_secs_f64() * 1e3, counts)
}

fn by_queue(root: &Path) -> (f64, Counts) {
    timed(|counts| {
        walk(root, THREADS, |entry| {
            let (counter, then) = match entry {
                Ok(_) => (&counts.entries, Then::Continue),
                Err(_) => (&counts.errors, Then::Skip),
            };
            counter.fetch_add(1, Ordering::Relaxed);
            then
        });
    })
}

fn by_deque(root: &Path) -> f64 {
    let (time, _) = timed(|counts| {
        by_deque::walk(root, THREADS, |_| {
            counts.entries.fetch_add(1, Ordering::Relaxed);
        });
    });
    time
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() -> ExitCode {
    let root = env::args()
        .nth(1)
        .map_or_else(|| PathBuf::from("."), PathBuf::from);
    let (_, counts) = by_queue(&root);
    let (entries, errors) = (counts.entries.into_inner(), counts.errors.into_inner());
    println!("{}: {entries} entries, {errors} errors", root.display());
    if errors > 0 {
        return ExitCode::FAILURE;
    }
    let rounds = (0..ROUNDS).map(|_| (by_queue(&root).0, by_deque(&root)));
    let (queue, deque): (Vec<_>, Vec<_>) = rounds.unzip();
    let (queue, deque) = (median(queue), median(deque));
    println!("{THREADS} threads, median of {ROUNDS}: queue {queue:.1} ms, deques {deque:.1} ms, ratio {:.2}", queue / deque);
    ExitCode::SUCCESS
}
