//! The queues of a web site, and their workers.

use std::error::Error;
use std::path::Path;
use std::thread;
use std::time::Duration;

use metrics::{counter, describe_counter, describe_gauge, gauge, Unit};
use requeue::{
    Backoff, ByKey, ByPriority, Fifo, Imbalance, Item, Leased, Order, Pace, PushError, Queue,
    WorkerState, Workers,
};

use crate::invoices::Invoices;

const MAILS: &str = "mails";
const REPORTS: &str = "reports";
const REMINDERS: &str = "reminders";
const UPLOADS: &str = "uploads";

/// How long a worker may keep a report.
const LEASE: Duration = Duration::from_millis(50);
/// A reminder is of no use later.
const TTL: Duration = Duration::from_millis(200);
/// How many bytes of uploads are kept.
const ROOM: usize = 1 << 20;

const TENANTS: [&str; 3] = ["red", "green", "blue"];

#[derive(Clone)]
struct Job {
    number: u32,
    tenant: &'static str,
    bytes: usize,
}

/// A queue with its workers.
struct Line<O: Order<Job>> {
    name: &'static str,
    queue: Queue<Job, O>,
    workers: Workers,
}

impl<O: Order<Job> + 'static> Line<O> {
    fn open(
        name: &'static str,
        queue: Queue<Job, O>,
        run: impl Fn(&Job, u32) -> Result<(), &'static str> + Send + Sync + 'static,
    ) -> Self {
        let workers = Workers::builder(&queue).threads(2).name(name);
        let workers = workers.run(move |job: Item<'_, Job>, _tx| run(&job, job.attempts()));
        Self {
            name,
            queue,
            workers,
        }
    }

    /// Counts a push if it was refused.
    fn pushed(&self, pushed: Result<(), PushError<Job>>) {
        let Err(refused) = pushed else {
            return;
        };
        let reason = match refused {
            PushError::Full(_) => "full",
            PushError::TooHeavy(_) => "too_heavy",
            PushError::Duplicate(..) => "duplicate",
            PushError::Closed(_) => "closed",
        };
        counter!("exporter_refused_total", "queue" => self.name, "reason" => reason).increment(1);
    }

    fn observe(&self) {
        self.queue.stats(); // emits the counts of the queue
        observe_workers(self.name, &self.workers, self.queue.dead_letters().len());
    }
}

/// Emits what a pool and its queue do not emit by themselves.
pub(crate) fn observe_workers(queue: &'static str, workers: &Workers, dead: usize) {
    let status = workers.status();
    let is_busy = |state| matches!(state, WorkerState::Busy { .. });
    let busy = status.iter().filter(|worker| is_busy(worker.state)).count();
    gauge!("exporter_dead_letters", "queue" => queue).set(count(dead));
    gauge!("exporter_workers", "queue" => queue).set(count(status.len()));
    gauge!("exporter_workers_busy", "queue" => queue).set(count(busy));
}

#[allow(clippy::cast_precision_loss)] // small numbers
fn count(of: usize) -> f64 {
    of as f64
}

/// The queues, each with options of its own.
pub(crate) struct Site {
    /// Fail now and then, are retried with a backoff, and are given up after three attempts. The last dead letters are kept.
    mails: Line<Fifo>,
    /// In turns by tenant. A worker that hangs loses its report to another one.
    reports: Line<Leased<ByKey<&'static str, Job>>>,
    /// Scheduled, with at most 50 started per second, and dropped when they are late.
    reminders: Line<ByPriority>,
    /// Their bytes are limited.
    uploads: Line<Fifo>,
    /// On disk.
    invoices: Invoices,
}

impl Site {
    /// Opens the queues, one of them in this store.
    pub(crate) fn open(store: &Path) -> Result<Self, Box<dyn Error>> {
        describe();
        let invoices = Invoices::open(store)?;
        let named = |name| Queue::builder().name(name).timestamps();
        let backoff = Backoff::fixed(Duration::from_millis(20));
        let mails = named(MAILS).max_attempts(3).backoff(backoff);
        let mails = mails.max_dead_letters(100).on_dead_overflow(drop);
        let reports = named(REPORTS).fair_by(|job: &Job| job.tenant);
        let reminders = named(REMINDERS).pace(Pace::rate(50, Duration::from_secs(1)).burst(5));
        let uploads = named(UPLOADS).weigh(|job: &Job| job.bytes).capacity(ROOM);
        Ok(Self {
            mails: Line::open(MAILS, mails.build(), send),
            reports: Line::open(REPORTS, reports.leased(LEASE).build(), |job, attempt| {
                write(job, attempt);
                Ok(())
            }),
            reminders: Line::open(
                REMINDERS,
                reminders.ttl(TTL).by_priority().build(),
                |_, _| Ok(()),
            ),
            uploads: Line::open(UPLOADS, uploads.build(), |_, _| {
                thread::sleep(Duration::from_millis(3));
                Ok(())
            }),
            invoices,
        })
    }

    /// Pushes a round of jobs, which is done in less than a second.
    pub(crate) fn load(&self) -> Result<(), Box<dyn Error>> {
        for number in 0..100 {
            let tenant = TENANTS[(number % 3) as usize];
            let bytes = if number == 0 { 2 * ROOM } else { ROOM / 10 };
            let job = Job {
                number,
                tenant,
                bytes,
            };
            let delay = Duration::from_millis(u64::from(number) * 4);
            self.mails.pushed(self.mails.queue.push(job.clone()));
            self.reports.pushed(self.reports.queue.push(job.clone()));
            let reminder = self.reminders.queue.after(delay).push(job.clone());
            self.reminders.pushed(reminder.map(drop));
            self.uploads.pushed(self.uploads.queue.push(job));
        }
        self.invoices.load()
    }

    /// Waits until all jobs are done.
    pub(crate) fn settle(&self) {
        self.mails.queue.wait_idle();
        self.reports.queue.wait_idle();
        self.reminders.queue.wait_idle();
        self.uploads.queue.wait_idle();
        self.invoices.settle();
    }

    /// Whether no job was lost. Exact if all are done.
    pub(crate) fn check(&self) -> Result<(), Imbalance> {
        self.mails.queue.stats().check()?;
        self.reports.queue.stats().check()?;
        self.reminders.queue.stats().check()?;
        self.uploads.queue.stats().check()?;
        self.invoices.check()
    }

    /// Emits the metrics that are read at a scrape.
    pub(crate) fn observe(&self) {
        self.mails.observe();
        self.reports.observe();
        self.reminders.observe();
        self.uploads.observe();
        self.invoices.observe();
        let weight = count(self.uploads.queue.weight());
        gauge!("exporter_weight_bytes", "queue" => UPLOADS).set(weight);
        gauge!("exporter_capacity_bytes", "queue" => UPLOADS).set(count(ROOM));
    }
}

/// The metrics of the program itself. The queues describe theirs.
fn describe() {
    let refused = "pushes that were refused, by reason";
    describe_counter!("exporter_refused_total", Unit::Count, refused);
    let gauges = [
        (
            "exporter_dead_letters",
            Unit::Count,
            "dead letters that are kept",
        ),
        ("exporter_workers", Unit::Count, "workers of the queue"),
        ("exporter_workers_busy", Unit::Count, "workers that run"),
        (
            "exporter_weight_bytes",
            Unit::Bytes,
            "bytes of the items of the queue",
        ),
        (
            "exporter_capacity_bytes",
            Unit::Bytes,
            "bytes that the queue may hold",
        ),
    ];
    for (name, unit, meaning) in gauges {
        describe_gauge!(name, unit, meaning);
    }
}

fn send(job: &Job, attempt: u32) -> Result<(), &'static str> {
    thread::sleep(Duration::from_millis(1));
    match (job.number % 25, attempt) {
        (0, _) => Err("no such address"),
        (1..=3, 1) => Err("connection reset"),
        _ => Ok(()),
    }
}

/// Hangs at the first attempt of one of them.
fn write(job: &Job, attempt: u32) {
    let hangs = (job.number, attempt) == (7, 1);
    thread::sleep(if hangs {
        2 * LEASE
    } else {
        Duration::from_millis(2)
    });
}
