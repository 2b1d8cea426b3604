//! What it costs to count deliveries over all processes: jobs that are popped in a transaction and committed, by threads, with
//! [`max_attempts`](requeue_durable::Builder::max_attempts) and without.
//!
//! `cargo run --release -p requeue-durable --example durable_deliveries [directory] [jobs]`

use requeue_durable::{Durability, DurableQueue, Store};
use std::error::Error;
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
            let files = match &directory {
                Some(directory) => TempDir::new_in(directory)?,
                None => TempDir::new()?,
            };
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
    Ok(())
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
