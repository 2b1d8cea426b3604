//! A pool of threads that run jobs at their times, with cancel and discard; beside one by hand, a heap under a lock.
//!
//! Run it with `cargo run --release --example timers`.

mod by_hand;
mod pool;
#[cfg(test)]
mod tests;

use pool::{AtDrop, Pool};
use requeue::SystemClock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::sync::Arc;
use std::time::{Duration, Instant};

const JOBS: u32 = 100_000;
const ROUNDS: usize = 7;
const THREADS: usize = 2;

/// The delay of a job: they are due in no order, the last ones after 10 milliseconds.
fn delay(nth: u32) -> Duration {
    Duration::from_micros((u64::from(nth) * 7_919) % 10_000)
}

/// Schedules all jobs, cancels every second one, and waits for the others; returns the time for each, in nanoseconds.
fn measure<P, S>(
    pool: P,
    schedule: impl Fn(&P, Duration, Box<dyn FnOnce() + Send>) -> S,
    cancel: impl Fn(&P, S),
) -> f64 {
    let ran = Arc::new(AtomicU32::new(0));
    let start = Instant::now();
    let hour = Duration::from_secs(3_600);
    for nth in 0..JOBS {
        let counted = Arc::clone(&ran);
        let job = move || {
            counted.fetch_add(1, Ordering::Relaxed);
        };
        schedule(&pool, delay(nth), Box::new(job));
        let cancelled = schedule(&pool, hour + delay(nth), Box::new(|| unreachable!()));
        cancel(&pool, cancelled);
    }
    drop(pool); // completes
    assert_eq!(ran.load(Ordering::Relaxed), JOBS);
    start.elapsed().as_secs_f64() * 1e9 / f64::from(JOBS)
}

fn of_queue() -> f64 {
    let pool = Pool::new(THREADS, AtDrop::Complete, SystemClock);
    measure(pool, Pool::execute_after, |pool, scheduled| {
        pool.cancel(&scheduled)
    })
}

fn of_heap() -> f64 {
    let pool = by_hand::Pool::new(THREADS);
    measure(pool, by_hand::Pool::execute_after, by_hand::Pool::cancel)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Jobs at once, repeated and late: the late one is discarded.
fn show() {
    let pool = Pool::new(THREADS, AtDrop::Discard, SystemClock);
    let (sender, receiver) = channel();
    let each = Duration::from_millis(10);
    let beat = pool.execute_every(each, each, move || {
        let _ = sender.send(());
    });
    pool.execute(|| println!("a job that runs at once"));
    pool.execute_after(Duration::from_secs(3_600), || println!("too late"));
    println!("beats: {}", receiver.iter().take(3).count());
    pool.cancel(&beat);
}

fn main() {
    //show();
    let rounds = (0..ROUNDS).map(|_| (of_queue(), of_heap()));
    let (queue, heap): (Vec<_>, Vec<_>) = rounds.unzip();
    let (queue, heap) = (median(queue), median(heap));
    println!("a job scheduled and run, and one scheduled and cancelled, {THREADS} threads, median of {ROUNDS} rounds:");
    println!(
        "queue {queue:.0} ns, locked heap {heap:.0} ns, ratio {:.2}",
        queue / heap
    );
}
