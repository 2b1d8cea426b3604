//! A process of the history: a producer and some consumers.

use super::record::{Record, Step};
use crate::base::Mode;
use requeue_postgres::{Error, PgItem, PgQueue, Postgres};
use std::path::Path;
use std::time::Duration;

/// Living processes renew their leases soon after the clock has jumped.
pub(crate) const TERM: Duration = Duration::from_secs(3);
const CONSUMERS: usize = 2;
/// A producer waits for its own results if this many items are ready.
const BACKLOG: u64 = 200;

#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Job {
    pub(crate) producer: i64,
    pub(crate) seq: i64,
}

/// The record in the database: pushed by the transaction that took the job.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Done {
    pub(crate) job: Job,
    pub(crate) ticket: i64,
    pub(crate) attempts: u32,
}

impl Done {
    pub(crate) fn of(item: &PgItem<Job>) -> Self {
        Self {
            job: **item,
            ticket: item.ticket().0,
            attempts: item.attempts(),
        }
    }
}

pub(crate) fn jobs(db: &Postgres, mode: Mode) -> PgQueue<Job> {
    let builder = db.builder("jobs").max_attempts(10_000);
    match mode {
        Mode::Locked => builder.build(),
        Mode::Leased => builder.leased(TERM).build(),
        Mode::Prefetched => builder.leased(TERM).prefetch(8).build(),
    }
}

/// A role: produces and consumes until it is killed. The name of its record is its number.
pub(crate) async fn run(db: &Postgres, mode: Mode, path: &str) {
    let path = Path::new(path);
    let number = path
        .file_name()
        .and_then(|name| name.to_str()?.parse().ok());
    let record = Record::create(path);
    let jobs = jobs(db, mode);
    let consumers = (0..CONSUMERS).map(|consumer| consume(db, &jobs, consumer, &record));
    let mut consumers = consumers.map(Box::pin);
    let (one, two) = (
        consumers.next().expect("two"),
        consumers.next().expect("two"),
    );
    tokio::join!(produce(&jobs, number.expect("a number"), &record), one, two);
}

async fn produce(jobs: &PgQueue<Job>, producer: i64, record: &Record) {
    let mut first = 0;
    loop {
        if jobs.stats().await.is_ok_and(|stats| stats.ready > BACKLOG) {
            tokio::task::yield_now().await;
            continue;
        }
        let count = fastrand::i64(1..10);
        record.write(&Step::Push { first, count });
        let items = (first..first + count).map(|seq| Job { producer, seq });
        if jobs.push_batch(items).await.is_ok() {
            record.write(&Step::Pushed { first, count });
        }
        first += count; // those of a failed push may be there
    }
}

async fn consume(db: &Postgres, jobs: &PgQueue<Job>, consumer: usize, record: &Record) {
    let done: PgQueue<Done> = db.queue("done");
    loop {
        let _ = consume_one(db, jobs, &done, consumer, record).await; // undone, or in doubt
    }
}

/// One transaction: some items, which are done or, sometimes, given back.
async fn consume_one(
    db: &Postgres,
    jobs: &PgQueue<Job>,
    done: &PgQueue<Done>,
    consumer: usize,
    record: &Record,
) -> Result<(), Error> {
    let mut tx = db.begin().await?;
    let Some(first) = tx.pop_wait(jobs, Duration::from_secs(1)).await? else {
        return Ok(());
    };
    let mut items = vec![first];
    if fastrand::bool() {
        items.extend(tx.pop_batch(jobs, fastrand::usize(1..4)).await?);
    }
    for item in &items {
        let (Job { producer, seq }, attempts) = (**item, item.attempts());
        record.write(&Step::Popped {
            consumer,
            producer,
            seq,
            attempts,
        });
    }
    if fastrand::u8(..10) == 0 {
        return tx.abort().await;
    }
    if fastrand::bool() {
        tx.client().batch_execute("select 1").await?;
    }
    for item in &items {
        tx.push(done, Done::of(item)).await?;
    }
    tx.commit().await?;
    for item in &items {
        let Job { producer, seq } = **item;
        record.write(&Step::Committed { producer, seq });
    }
    Ok(())
}
