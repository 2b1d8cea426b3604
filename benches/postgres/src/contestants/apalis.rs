//! apalis-postgres: a worker of apalis for each worker, with a `PostgresStorage` that fetches batches and listens.

use super::{Jobs, User, Workers, POLL};
use crate::jobs::{Done, Job};
use crate::server::Server;
use crate::Failure;
use apalis::prelude::{
    BackendExt, BoxDynError, Data, Status, Strategy, TaskBuilder, TaskResult, WorkerBuilder,
    WorkerContext, WorkerError,
};
use apalis_postgres::queries::{fetch_next, handle_results, push_tasks};
use apalis_postgres::{Config, PostgresStorage, Pubsub};
use async_trait::async_trait;
use sqlx::pool::PoolConnection;
use sqlx::postgres::PgPoolOptions;
use sqlx::{PgPool, Postgres};
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::watch;
use tokio::task::JoinSet;

const QUEUE: &str = "jobs";

/// Names of workers are not used again while the server remembers them.
static NAMES: AtomicU64 = AtomicU64::new(0);

fn name() -> String {
    format!("worker-{}", NAMES.fetch_add(1, Ordering::Relaxed))
}

async fn run(_: Job, done: Data<Done>) -> Result<(), BoxDynError> {
    done.add(1);
    Ok(())
}

struct Table {
    pool: PgPool,
    /// How many jobs a worker fetches at once, instead of the size of a batch.
    fetches: Option<usize>,
}

pub(super) async fn open(
    server: &Server,
    database: &str,
    fetches: Option<usize>,
) -> Result<Box<dyn Jobs>, Failure> {
    let pool = server.pool(database, 24).await?;
    PostgresStorage::setup(&pool).await?;
    Ok(Box::new(Table { pool, fetches }))
}

#[async_trait]
impl Jobs for Table {
    async fn push(&self, count: u64) -> Result<(), Failure> {
        let task = |number| Ok(TaskBuilder::new(serde_json::to_vec(&Job { number })?).build());
        let tasks = (1..=count).map(task).collect::<Result<_, Failure>>()?;
        let mut connection = self.pool.acquire().await?;
        Ok(push_tasks(&mut *connection, QUEUE, tasks).await?)
    }

    async fn len(&self) -> Result<u64, Failure> {
        let count = "select count(*) from apalis.jobs where status <> 'Done'";
        let count: i64 = sqlx::query_scalar(count).fetch_one(&self.pool).await?;
        Ok(u64::try_from(count)?)
    }

    async fn workers(
        &self,
        workers: usize,
        batch: usize,
        done: &Done,
    ) -> Result<Box<dyn Workers>, Failure> {
        // Each worker listens, fetches, acknowledges and shows that it is alive. A stop drops futures of sqlx, which may leave a
        // transaction open, so these connections are used for nothing else.
        let pool = PgPoolOptions::new()
            .max_connections(u32::try_from(4 * workers)?)
            .connect_with((*self.pool.connect_options()).clone())
            .await?;
        let (stop, _) = watch::channel(());
        let (mut tasks, mut names) = (JoinSet::new(), Vec::new());
        for _ in 0..workers {
            names.push(name());
            let looks = Strategy::new()
                .stream(Pubsub::new(pool.clone(), QUEUE.into()))
                .interval(POLL);
            let storage = PostgresStorage::new(&pool)
                .with_config(
                    Config::default()
                        .queue(QUEUE)
                        .batch_size(self.fetches.unwrap_or(batch)),
                )
                .poll_with_strategy(looks);
            let worker = WorkerBuilder::new(names[names.len() - 1].as_str())
                .backend(storage)
                .data(done.clone())
                .build(run);
            let mut stopped = stop.subscribe();
            tasks.spawn(worker.run_until(async move {
                let _ = stopped.changed().await;
                Ok::<(), WorkerError>(())
            }));
        }
        self.registered(&names, &mut tasks).await?;
        Ok(Box::new(Running {
            jobs: self.pool.clone(),
            pool,
            tasks,
            stop,
        }))
    }

    fn ahead(&self, workers: usize) -> u64 {
        (self.fetches.unwrap_or(0) * workers) as u64
    }

    async fn user(&self) -> Result<Box<dyn User>, Failure> {
        let context = WorkerContext::new(&name());
        sqlx::query("insert into apalis.workers (id, worker_type, storage_name, layers, last_seen) values ($1, $2, '', '', now())")
            .bind(context.name())
            .bind(QUEUE)
            .execute(&self.pool)
            .await?;
        Ok(Box::new(Claimer {
            connection: self.pool.acquire().await?,
            context,
            claimed: Vec::new(),
        }))
    }
}

impl Table {
    /// A worker that is stopped before it is registered fails.
    async fn registered(
        &self,
        names: &[String],
        tasks: &mut JoinSet<Result<(), WorkerError>>,
    ) -> Result<(), Failure> {
        let count = "select count(*) from apalis.workers where id = any($1)";
        for _ in 0..1_000 {
            let query = sqlx::query_scalar(count).bind(names);
            let count: i64 = query.fetch_one(&self.pool).await?;
            if usize::try_from(count)? == names.len() {
                return Ok(());
            }
            if let Some(ended) = tasks.try_join_next() {
                ended??;
            }
            tokio::time::sleep(POLL).await;
        }
        Err("apalis did not start its workers in 10 s".into())
    }
}

struct Running {
    jobs: PgPool,
    pool: PgPool,
    tasks: JoinSet<Result<(), WorkerError>>,
    stop: watch::Sender<()>,
}

#[async_trait]
impl Workers for Running {
    async fn stop(mut self: Box<Self>) -> Result<(), Failure> {
        self.stop.send_replace(());
        while let Some(task) = self.tasks.join_next().await {
            task??;
        }
        self.pool.close().await;
        // Other workers would do so once the heartbeats of these are missed.
        let sql = "update apalis.jobs set status = 'Pending', lock_by = null, lock_at = null \
            where status in ('Queued', 'Running')";
        sqlx::query(sql).execute(&self.jobs).await?;
        Ok(())
    }
}

/// The storage's own claim and acknowledgement.
struct Claimer {
    connection: PoolConnection<Postgres>,
    context: WorkerContext,
    claimed: Vec<TaskResult<serde_json::Value>>,
}

#[async_trait]
impl User for Claimer {
    async fn claim(&mut self, max: usize) -> Result<usize, Failure> {
        let config = Config::default().queue(QUEUE).batch_size(max);
        let tasks = fetch_next(&mut *self.connection, &config, &self.context).await?;
        for task in &tasks {
            self.claimed.push(TaskResult {
                task_id: task.task_id().ok_or("a job without an id")?.clone(),
                attempt: 1,
                status: Status::Done,
                result: Ok(serde_json::Value::Null),
            });
        }
        Ok(tasks.len())
    }

    async fn finish(&mut self) -> Result<(), Failure> {
        let results: Vec<_> = self.claimed.iter().collect();
        handle_results(&mut *self.connection, &results, self.context.name()).await?;
        self.claimed.clear();
        Ok(())
    }
}
