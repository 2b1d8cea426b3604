//! Queues in memory that work and fail.

use requeue::{Backoff, Builder, Order, Queue, Workers};
use requeue_board::{Board, InMemory};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{sleep, spawn, JoinHandle};
use std::time::Duration;

/// A job of the demo.
#[derive(Clone, Debug)]
#[allow(dead_code)] // the board shows them
struct Job {
    number: usize,
    customer: &'static str,
    what: &'static str,
}

const CUSTOMERS: [&str; 5] = [
    "acme",
    "globex",
    "initech",
    "umbrella",
    "<script>alert(1)</script>",
];
/// The jobs, and in how many of a hundred rounds there is one.
const JOBS: [(usize, &str); 5] = [
    (90, "welcome mail"),
    (90, "news"),
    (55, "thumbnail"),
    (70, "order hook"),
    (15, "invoice"),
];

/// The queues, until they are dropped.
pub(crate) struct Demo {
    is_over: Arc<AtomicBool>,
    feeder: Option<JoinHandle<()>>,
}

impl Drop for Demo {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.feeder.take().map(JoinHandle::join);
    }
}

/// Numbers that look random.
struct Dice(u64);

impl Dice {
    #[allow(clippy::cast_possible_truncation)] // of 31 bits
    fn throw(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below
    }
}

/// A queue with this name whose failed jobs are retried, and workers, which need `millis` for a job and fail in `percent` of them.
fn work<O: Order<Job> + 'static>(
    builder: Builder<Job, O>,
    (name, threads, error): (&'static str, usize, &'static str),
    (millis, percent): (usize, usize),
) -> (Queue<Job, O>, Workers)
where
    Queue<Job, O>: Send + Sync,
{
    let backoff = Backoff::exponential(Duration::from_secs(1), Duration::from_secs(20));
    let builder = builder.timestamps().tracked().max_attempts(3);
    let queue = builder.backoff(backoff).build();
    let workers = Workers::builder(&queue).threads(threads).name(name);
    let workers = workers.run(move |job, _tx| {
        let mut dice = Dice(job.number as u64 * 8 + u64::from(job.attempts()));
        dice.throw(1);
        sleep(Duration::from_millis(
            (millis / 2 + dice.throw(millis)) as u64,
        ));
        // Some jobs never succeed.
        let fails = dice.throw(100) < percent || job.number % 97 < percent / 8;
        (!fails).then_some(()).ok_or(error)
    });
    (queue, workers)
}

/// Starts the queues, and shows them.
pub(crate) fn start(board: Board) -> (Demo, Board) {
    let (mails, of_mails) = work(
        Queue::builder(),
        ("mails", 3, "550 mailbox unavailable"),
        (60, 4),
    );
    let by_customer = Queue::builder().fair_by(|job: &Job| job.customer);
    let (images, of_images) = work(
        by_customer,
        ("images", 4, "unsupported colour space: CMYK"),
        (300, 12),
    );
    let (webhooks, of_webhooks) = work(
        Queue::builder(),
        ("webhooks", 2, "503: no answer of hooks.example in 30 s"),
        (80, 30),
    );
    let (invoices, of_invoices) = work(Queue::builder(), ("invoices", 1, "no VAT number"), (40, 8));
    let parked = Queue::<Job>::builder().timestamps().tracked().build();
    parked.pause();
    let board = board
        .queue("mails", InMemory::new(&mails))
        .queue("images", InMemory::new(&images))
        .queue("webhooks", InMemory::new(&webhooks))
        .queue("invoices", InMemory::new(&invoices))
        .queue("parked", InMemory::new(&parked));
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    let feeder = spawn(move || {
        let in_time = invoices.after(Duration::from_secs(30));
        feed(&over, |job| match job.what {
            "thumbnail" => images.push(job).is_ok(),
            "order hook" => webhooks.push(job).is_ok(),
            "invoice" => in_time.push(job).is_ok(),
            _ => mails.push(job).is_ok(),
        });
        drop([of_mails, of_images, of_webhooks, of_invoices]);
    });
    let feeder = Some(feeder);
    (Demo { is_over, feeder }, board)
}

/// Makes jobs until it is over.
fn feed(over: &AtomicBool, push: impl Fn(Job) -> bool) {
    let (mut dice, mut number) = (Dice(7), 0);
    while !over.load(Ordering::Relaxed) {
        sleep(Duration::from_millis(50));
        for (percent, what) in JOBS {
            if dice.throw(100) < percent {
                let customer = CUSTOMERS[dice.throw(CUSTOMERS.len())];
                number += 1;
                push(Job {
                    number,
                    customer,
                    what,
                });
            }
        }
    }
}
