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
    number: u64,
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
const ERRORS: [(&str, &str); 4] = [
    ("mails", "550 mailbox unavailable"),
    ("images", "unsupported colour space: CMYK"),
    (
        "webhooks",
        "503 Service Unavailable: connection to hooks.example timed out after 30 s",
    ),
    ("invoices", "no VAT number"),
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
    fn throw(&mut self, below: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// A queue whose failed jobs are retried, and its workers, of which each needs `millis` for a job and fails in `percent` of them.
fn work<O: Order<Job> + 'static>(
    builder: Builder<Job, O>,
    (name, threads): (&'static str, usize),
    (millis, percent): (u64, u64),
) -> (Queue<Job, O>, Workers)
where
    Queue<Job, O>: Send + Sync,
{
    let backoff = Backoff::exponential(Duration::from_secs(1), Duration::from_secs(20));
    let queue = builder
        .timestamps()
        .tracked()
        .max_attempts(3)
        .backoff(backoff)
        .build();
    let error = ERRORS
        .iter()
        .find(|error| error.0 == name)
        .map_or("", |error| error.1);
    let workers = Workers::builder(&queue)
        .threads(threads)
        .name(name)
        .run(move |job, _tx| {
            let mut dice = Dice(job.number ^ u64::from(job.attempts()) << 40);
            dice.throw(1);
            sleep(Duration::from_millis(millis / 2 + dice.throw(millis)));
            // Some jobs never succeed.
            let fails = dice.throw(100) < percent || job.number % 97 < percent / 8;
            if fails {
                Err(error)
            } else {
                Ok(())
            }
        });
    (queue, workers)
}

/// Starts the queues, and shows them.
pub(crate) fn start(board: Board) -> (Demo, Board) {
    let (mails, of_mails) = work(Queue::builder(), ("mails", 3), (60, 4));
    let by_customer = Queue::builder().fair_by(|job: &Job| job.customer);
    let (images, of_images) = work(by_customer, ("images", 4), (300, 12));
    let (webhooks, of_webhooks) = work(Queue::builder(), ("webhooks", 2), (80, 30));
    let (invoices, of_invoices) = work(Queue::builder(), ("invoices", 1), (40, 8));
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
        let (mut dice, mut number) = (Dice(7), 0);
        let mut job = |dice: &mut Dice, what| {
            number += 1;
            let customer = dice.throw(CUSTOMERS.len() as u64);
            Job {
                number,
                customer: CUSTOMERS[usize::try_from(customer).unwrap_or(0)],
                what,
            }
        };
        while !over.load(Ordering::Relaxed) {
            sleep(Duration::from_millis(50));
            let mut push = || -> Result<(), requeue::PushError<Job>> {
                for _ in 0..dice.throw(4) {
                    mails.push(job(&mut dice, "welcome mail"))?;
                }
                if dice.throw(100) < 60 {
                    images.push(job(&mut dice, "thumbnail of 640 pixels"))?;
                }
                if dice.throw(100) < 70 {
                    webhooks.push(job(&mut dice, "POST https://hooks.example/orders"))?;
                }
                if dice.throw(100) < 15 {
                    invoices
                        .after(Duration::from_secs(30))
                        .push(job(&mut dice, "invoice"))?;
                }
                Ok(())
            };
            if push().is_err() {
                return;
            }
        }
        for workers in [of_mails, of_images, of_webhooks, of_invoices] {
            workers.stop();
        }
    });
    let feeder = Some(feeder);
    (Demo { is_over, feeder }, board)
}
