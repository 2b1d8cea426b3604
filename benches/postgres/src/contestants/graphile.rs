//! graphile_worker: one `Worker` with as many jobs at a time as there are workers. Batches are its local queues, one for
//! each worker, and its batched completions.

use super::{Jobs, User, Workers, POLL};
use crate::jobs::{Done, Job};
use crate::server::Server;
use crate::Failure;
use async_trait::async_trait;
use graphile_worker::sql::batch_get_jobs::batch_get_jobs;
use graphile_worker::sql::task_identifiers::{get_tasks_details, TaskDetails};
use graphile_worker::{
    Database, IntoTaskHandlerResult, JobSpec, LocalQueueConfig, RawJobSpec, TaskHandler, Worker,
    WorkerContext, WorkerOptions, WorkerUtils,
};
use sqlx::PgPool;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

const SCHEMA: &str = "graphile_worker";

/// Completions wait so long for others. The crate recommends 1 to 5 ms.
const COMPLETION_DELAY: Duration = Duration::from_millis(5);

impl TaskHandler for Job {
    const IDENTIFIER: &'static str = "job";

    async fn run(self, context: WorkerContext) -> impl IntoTaskHandlerResult {
        if let Some(done) = context.get_ext::<Done>() {
            done.add(1);
        }
        Ok::<(), String>(())
    }
}

struct Table {
    pool: PgPool,
    utils: WorkerUtils,
    /// The size of one local queue; otherwise there is one of the size of a batch for each worker.
    local_queue: Option<usize>,
}

pub(super) async fn open(
    server: &Server,
    database: &str,
    local_queue: Option<usize>,
) -> Result<Box<dyn Jobs>, Failure> {
    let pool = server.pool(database, 24).await?;
    let utils = WorkerUtils::new(pool.clone(), SCHEMA);
    utils.migrate().await?;
    Ok(Box::new(Table {
        pool,
        utils,
        local_queue,
    }))
}

#[async_trait]
impl Jobs for Table {
    async fn push(&self, count: u64) -> Result<(), Failure> {
        let job = |number| {
            Ok(RawJobSpec {
                identifier: Job::IDENTIFIER.into(),
                payload: serde_json::to_value(Job { number })?,
                spec: JobSpec::default(),
            })
        };
        let jobs = (1..=count).map(job).collect::<Result<Vec<_>, Failure>>()?;
        self.utils.add_raw_jobs(&jobs).await?;
        Ok(())
    }

    async fn len(&self) -> Result<u64, Failure> {
        let count = "select count(*) from graphile_worker._private_jobs";
        let count: i64 = sqlx::query_scalar(count).fetch_one(&self.pool).await?;
        Ok(u64::try_from(count)?)
    }

    async fn workers(
        &self,
        workers: usize,
        batch: usize,
        done: &Done,
    ) -> Result<Box<dyn Workers>, Failure> {
        let mut options = WorkerOptions::default()
            .pg_pool(self.pool.clone())
            .schema(SCHEMA)
            .concurrency(match self.local_queue {
                Some(_) => workers * batch,
                None => workers,
            })
            .poll_interval(POLL)
            .listen_os_shutdown_signals(false)
            .add_extension(done.clone())
            .define_job::<Job>();
        let size = self.local_queue.unwrap_or(batch);
        if size > 1 {
            let queues = LocalQueueConfig::default().with_size(size);
            let count = if self.local_queue.is_some() {
                1
            } else {
                workers
            };
            options = options
                .local_queue(queues.with_queue_count(count))
                .complete_job_batch_delay(COMPLETION_DELAY);
        }
        let worker = Arc::new(options.init().await?);
        let task = tokio::spawn({
            let worker = worker.clone();
            async move { worker.run().await.map_err(Failure::from) }
        });
        Ok(Box::new(Running { worker, task }))
    }

    fn ahead(&self, _: usize) -> u64 {
        self.local_queue.unwrap_or(0) as u64
    }

    async fn user(&self) -> Result<Box<dyn User>, Failure> {
        let database = Database::from(self.pool.clone());
        let tasks = vec![Job::IDENTIFIER.to_string()];
        Ok(Box::new(Claimer {
            details: get_tasks_details(&database, SCHEMA, tasks).await?,
            database,
            pool: self.pool.clone(),
            claimed: Vec::new(),
        }))
    }
}

struct Running {
    worker: Arc<Worker>,
    task: JoinHandle<Result<(), Failure>>,
}

#[async_trait]
impl Workers for Running {
    async fn stop(self: Box<Self>) -> Result<(), Failure> {
        self.worker.request_shutdown();
        self.task.await?
    }
}

/// The claim of the local queues. They delete done jobs by the same statement.
struct Claimer {
    database: Database,
    pool: PgPool,
    details: TaskDetails,
    claimed: Vec<i64>,
}

#[async_trait]
impl User for Claimer {
    async fn claim(&mut self, max: usize) -> Result<usize, Failure> {
        let max = i32::try_from(max)?;
        let jobs = batch_get_jobs(
            &self.database,
            &self.details,
            SCHEMA,
            "bench",
            &[],
            max,
            None,
        );
        self.claimed.extend(jobs.await?.iter().map(|job| *job.id()));
        Ok(self.claimed.len())
    }

    async fn finish(&mut self) -> Result<(), Failure> {
        sqlx::query("delete from graphile_worker._private_jobs where id = any($1::bigint[])")
            .bind(std::mem::take(&mut self.claimed))
            .execute(&self.pool)
            .await?;
        Ok(())
    }
}
