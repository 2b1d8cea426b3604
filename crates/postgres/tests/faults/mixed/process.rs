//! A process: a producer, and for each queue transactions in a loop and a pool of workers.

use crate::base::options;
use crate::calls::LIMIT;
use crate::history::process::{Job, TERM};
use crate::history::record::{Record, Step};
use requeue_postgres::{Backoff, Error, PgQueue, PgTransaction, Postgres, ReturnTo};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_postgres::types::ToSql;

/// A producer waits while a queue has this number of items.
const BACKLOG: u64 = 50;
const PAUSE: Duration = Duration::from_millis(20);
const TASKS: usize = 2;

/// How a process reaches the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Direct,
    Proxied,
    Pooled,
    ProxiedToPooler,
}

impl Way {
    pub(crate) const ALL: [Self; 4] = [
        Self::Direct,
        Self::Proxied,
        Self::Pooled,
        Self::ProxiedToPooler,
    ];

    fn is_pooled(self) -> bool {
        matches!(self, Self::Pooled | Self::ProxiedToPooler)
    }

    /// The argument of the role: whether there is a pooler, and the record.
    pub(crate) fn argument(self, record: &Path) -> String {
        format!("{} {}", self.is_pooled(), record.display())
    }
}

/// A job goes from queue to queue: each hop is a commit that takes it and pushes it.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Hop {
    job: Job,
    left: u8,
}

/// The queues of a process.
pub(crate) struct Queues {
    db: Postgres,
    process: i64,
    /// Of each order and way of holding.
    jobs: Vec<PgQueue<Hop>>,
    /// For runs that may be repeated.
    repeated: PgQueue<Job>,
    insert_done: String,
    insert_ran: String,
}

impl Queues {
    pub(crate) fn new(db: &Postgres, schema: &str, process: i64) -> Self {
        let limited = |name| {
            let backoff = Backoff::exponential(PAUSE, 10 * PAUSE);
            db.builder(name).max_attempts(1_000_000).backoff(backoff)
        };
        let keyed = |name| limited(name).fair_by(|hop: &Hop| format!("key {}", hop.job.seq % 7));
        // Others have their commits under way while they go on.
        let builder = db.builder("repeated").leased(TERM);
        let repeated = match process % 2 {
            0 => builder.repeats_after_crash(50),
            _ => builder,
        };
        Self {
            db: db.clone(),
            process,
            jobs: vec![
                limited("locked").build(),
                limited("tail").on_failure(ReturnTo::Tail).build(),
                limited("uncounted").count_attempts(false).build(),
                limited("leased").leased(TERM).build(),
                limited("prefetched").leased(TERM).prefetch(8).build(),
                keyed("fair").build(),
                keyed("serial").serial().build(),
                keyed("serial leased").serial().leased(TERM).build(),
            ],
            repeated: repeated.build(),
            insert_done: format!(
                "insert into {schema}.done (producer, seq, process) values ($1, $2, {process})"
            ),
            insert_ran: format!("insert into {schema}.ran values ($1, $2) on conflict do nothing"),
        }
    }

    fn any(&self) -> &PgQueue<Hop> {
        &self.jobs[fastrand::usize(..self.jobs.len())]
    }

    /// Makes dead letters ready.
    pub(crate) async fn requeue_dead(&self) -> Result<(), Error> {
        for queue in &self.jobs {
            queue.dead_letters().requeue_all().await?;
        }
        Ok(())
    }

    /// Takes jobs in the ways of transactions and of workers, until the future is dropped.
    pub(crate) async fn consume(self: Arc<Self>, record: Option<Arc<Record>>) {
        let pools: Vec<_> = self.jobs.iter().map(|queue| self.work(queue)).collect();
        let repeats = self.repeat();
        let mut consumers = JoinSet::new();
        for queue in &self.jobs {
            let (queues, queue, record) = (Arc::clone(&self), queue.clone(), record.clone());
            consumers.spawn(async move {
                loop {
                    let _ = queues.consume_some(&queue, record.as_deref()).await;
                    // undone, or in doubt
                }
            });
        }
        consumers.join_all().await;
        drop((pools, repeats));
    }

    /// One transaction: some items, which are done, given back, delayed or made dead letters.
    async fn consume_some(
        &self,
        queue: &PgQueue<Hop>,
        record: Option<&Record>,
    ) -> Result<(), Error> {
        let mut tx = self.db.begin().await?;
        let Some(first) = tx.pop_wait(queue, Duration::from_secs(1)).await? else {
            return Ok(());
        };
        let mut items = vec![first];
        if fastrand::bool() {
            items.extend(tx.pop_batch(queue, fastrand::usize(1..8)).await?);
        }
        if fastrand::u8(..15) == 0 {
            return tx.abort().await;
        }
        let mut done = Vec::new();
        for item in items {
            match fastrand::u8(..40) {
                0 => tx.retry(item)?,
                1 => tx.retry_after(item, PAUSE)?,
                2 => tx.snooze(item, PAUSE)?,
                3 => tx.fail(item, "it is of no use")?,
                _ => done.extend(self.go_on(&mut tx, &item).await?),
            }
        }
        tx.commit().await?;
        for Job { producer, seq } in done {
            record.inspect(|record| record.write(&Step::Committed { producer, seq }));
        }
        Ok(())
    }

    /// Pushes a job to the next queue, or writes that it is done: then it is returned.
    async fn go_on(&self, tx: &mut PgTransaction<'_>, hop: &Hop) -> Result<Option<Job>, Error> {
        let job = hop.job;
        if let Some(left) = hop.left.checked_sub(1) {
            let next = Hop { job, left };
            match fastrand::u8(..10) {
                0 => tx.after(PAUSE).push(self.any(), next).await?,
                1 => {
                    tx.priority(fastrand::u16(..3))
                        .push(self.any(), next)
                        .await?;
                }
                _ => tx.push(self.any(), next).await?,
            }
            return Ok(None);
        }
        let id: [&(dyn ToSql + Sync); 2] = [&job.producer, &job.seq];
        tx.client().execute(&self.insert_done, &id).await?;
        tx.push(&self.repeated, job).await?;
        Ok(Some(job))
    }

    /// A pool, whose runs fail sometimes.
    fn work(self: &Arc<Self>, queue: &PgQueue<Hop>) -> requeue_postgres::Tasks {
        let queues = Arc::clone(self);
        queue.workers().tasks(TASKS).run_async(move |hop, tx| {
            let queues = Arc::clone(&queues);
            async move {
                if fastrand::u8(..20) == 0 {
                    return Err("it fails".to_string());
                }
                let mut tx = tx.lock().await.map_err(|error| error.to_string())?;
                let went = queues.go_on(&mut tx, &hop).await;
                went.map(drop).map_err(|error| error.to_string())
            }
        })
    }

    /// A pool whose runs may be repeated: each writes what it does by a transaction of its own.
    fn repeat(self: &Arc<Self>) -> requeue_postgres::Tasks {
        let queues = Arc::clone(self);
        self.repeated
            .workers()
            .tasks(TASKS)
            .run_async(move |job, _| {
                let queues = Arc::clone(&queues);
                async move {
                    let mut tx = queues.db.begin().await?;
                    let id: [&(dyn ToSql + Sync); 2] = [&job.producer, &job.seq];
                    tx.client().execute(&queues.insert_ran, &id).await?;
                    tx.commit().await.map(drop)
                }
            })
    }

    async fn produce(&self, record: &Record) {
        let mut first = 0;
        loop {
            let queue = self.any();
            if !queue.stats().await.is_ok_and(|stats| stats.ready < BACKLOG) {
                sleep(PAUSE).await;
                continue;
            }
            let count = fastrand::i64(1..10);
            record.write(&Step::Push { first, count });
            let producer = self.process;
            let jobs = (first..first + count).map(|seq| Job { producer, seq });
            let hops = jobs.map(|job| Hop {
                job,
                left: fastrand::u8(..3),
            });
            if queue.push_batch(hops).await.is_ok() {
                record.write(&Step::Pushed { first, count });
            }
            first += count; // those of a failed push may be there
        }
    }
}

/// Connects, as often as it takes.
async fn connect(url: &str, schema: &str, pooled: bool) -> Postgres {
    loop {
        let mut options = options(url, schema).statement_timeout(LIMIT);
        if pooled {
            options = options.transaction_pooling();
        }
        if let Ok(db) = options.connect().await {
            return db;
        }
        sleep(PAUSE).await;
    }
}

/// A role: produces and consumes until it is killed. The name of its record is its number.
pub(crate) async fn run(url: &str, schema: &str, argument: &str) {
    let (pooled, path) = argument.split_once(' ').expect("two");
    let path = PathBuf::from(path);
    let number = path
        .file_name()
        .and_then(|name| name.to_str()?.parse().ok());
    let db = connect(url, schema, pooled == "true").await;
    let queues = Arc::new(Queues::new(&db, schema, number.expect("a number")));
    let record = Arc::new(Record::create(&path));
    tokio::join!(
        queues.produce(&record),
        Arc::clone(&queues).consume(Some(Arc::clone(&record)))
    );
}
