//! What it costs to count deliveries over all processes: jobs that are popped in a transaction and committed, by threads, with
//! [`max_attempts`](requeue_durable::Builder::max_attempts) and without; and by a pool of one task, whose commits are under way while
//! it goes on.
//!
//! `cargo run --release -p requeue-durable --example durable_deliveries [directory] [jobs]`

use futures::executor::block_on;
use requeue_durable::{Durability, DurableQueue, Store, Workers};
use std::error::Error;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The fastest counts: other programs only add.
const ROUNDS: u32 = 7;

const BUFFERED: Durability = Durability::Buffered {
    at_most: Duration::from_millis(100),
};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next();
    let jobs: u32 = arguments.next().map_or(Ok(500), |jobs| jobs.parse())?;
    println!("microseconds per job       not counted    counted");
    for durability in [Durability::Synced, BUFFERED] {
        for threads in [1, 4, 16] {
            let files = folder(directory.as_deref())?;
            let store = Store::open(files.path())?;
            let plain = store.queue("plain")?;
            let counted = store.builder("counted").max_attempts(3).build()?;
            let (mut least, queues) = ([f64::MAX; 2], [plain, counted]);
            for _ in 0..ROUNDS {
                for (queue, least) in queues.iter().zip(&mut least) {
                    let took = work(queue, durability, threads, jobs);
                    *least = least.min(took.as_secs_f64() * 1e6 / f64::from(jobs));
                }
            }
            let [plain, counted] = least;
            let kind = match durability {
                Durability::Synced => "synced",
                Durability::Buffered { .. } => "buffered",
            };
            println!("{kind:<9} {threads:>2} threads {plain:>16.1} {counted:>10.1}");
        }
    }
    for under_way in [0, 256] {
        let files = folder(directory.as_deref())?;
        let store = Store::open(files.path())?;
        let [plain, counted] = [
            store.queue("plain")?,
            store.builder("counted").max_attempts(3).build()?,
        ]
        .map(|queue| {
            let took = (0..ROUNDS).map(|_| pool(&queue, under_way, jobs));
            let least = took.min().unwrap_or_default();
            least.as_secs_f64() * 1e6 / f64::from(jobs)
        });
        println!("a task, {under_way:>3} under way {plain:>11.1} {counted:>10.1}");
    }
    Ok(())
}

fn folder(within: Option<&str>) -> std::io::Result<TempDir> {
    within.map_or_else(TempDir::new, TempDir::new_in)
}

/// Pushes jobs, and has a pool of one task do them, with synced commits.
fn pool(queue: &DurableQueue<u32>, under_way: usize, jobs: u32) -> Duration {
    queue.push_batch(0..jobs).expect("a push");
    let left = AtomicU32::new(jobs);
    let (send, done) = channel();
    let begin = Instant::now();
    let builder = Workers::builder(queue).threads(1).on_success(move |_| {
        if left.fetch_sub(1, Ordering::Relaxed) == 1 {
            send.send(begin.elapsed()).expect("somebody waits");
        }
    });
    let spawn = |task| drop(thread::spawn(|| block_on(task)));
    let builder = builder.commits_in_flight(under_way);
    let workers = builder.run_on(spawn, |_, _| async { Ok::<(), ()>(()) });
    let took = done.recv().expect("all are done");
    drop(workers.stop());
    took
}

/// Pushes jobs, and pops them by threads, each in a transaction of its own.
fn work(queue: &DurableQueue<u32>, durability: Durability, threads: u32, jobs: u32) -> Duration {
    queue.push_batch(0..jobs).expect("a push");
    let begin = Instant::now();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut handle = queue.handle();
                loop {
                    let tx = handle.begin();
                    if tx.pop().is_err() {
                        break;
                    }
                    tx.commit_with(durability).expect("a commit");
                }
            });
        }
    });
    begin.elapsed()
}
