//! requeue-postgres: a transaction for each batch, or its pool of workers. Leased, leased ahead, with late completions, or locked.

use super::{Jobs, User, Workers, AHEAD, POLL};
use crate::jobs::{Done, Job};
use crate::server::Server;
use crate::Failure;
use async_trait::async_trait;
use requeue_postgres::{Error, PgQueue, PgTransaction, Postgres, Tasks};
use std::time::Duration;

const TERM: Duration = Duration::from_secs(30);

/// How a worker holds its jobs.
#[derive(Clone, Copy)]
pub(crate) enum Holding {
    Leased,
    Prefetched,
    /// Leased, with completions that are written later.
    Late,
    Locked,
}

struct Table(PgQueue<Job>);

pub(super) async fn open(
    server: &Server,
    database: &str,
    holding: Holding,
) -> Result<Box<dyn Jobs>, Failure> {
    Ok(Box::new(table(server, database, holding).await?))
}

/// The same queue with its pool of workers: a transaction for each job.
pub(super) async fn open_pool(
    server: &Server,
    database: &str,
    holding: Holding,
) -> Result<Box<dyn Jobs>, Failure> {
    Ok(Box::new(Pool(table(server, database, holding).await?)))
}

async fn table(server: &Server, database: &str, holding: Holding) -> Result<Table, Failure> {
    let url = format!(
        "host='{}' user=postgres dbname={database}",
        server.dir().display()
    );
    let db = Postgres::options(&url)
        .max_connections(24)
        .connect()
        .await?;
    db.install().await?;
    let builder = db.builder("jobs");
    let builder = match holding {
        Holding::Leased => builder.leased(TERM),
        Holding::Prefetched => builder.leased(TERM).prefetch(AHEAD),
        Holding::Late => builder.leased(TERM).repeats_after_crash(AHEAD),
        Holding::Locked => builder,
    };
    Ok(Table(builder.build()))
}

#[async_trait]
impl Jobs for Table {
    async fn push(&self, count: u64) -> Result<(), Failure> {
        self.0
            .push_batch((1..=count).map(|number| Job { number }))
            .await?;
        Ok(())
    }

    async fn len(&self) -> Result<u64, Failure> {
        let stats = self.0.stats().await?;
        Ok(stats.ready + stats.held)
    }

    async fn user(&self) -> Result<Box<dyn User>, Failure> {
        Ok(Box::new(Worker {
            queue: self.0.clone(),
            open: None,
        }))
    }
}

struct Pool(Table);

#[async_trait]
impl Jobs for Pool {
    async fn push(&self, count: u64) -> Result<(), Failure> {
        self.0.push(count).await
    }

    async fn len(&self) -> Result<u64, Failure> {
        self.0.len().await
    }

    async fn workers(
        &self,
        workers: usize,
        batch: usize,
        done: &Done,
    ) -> Result<Box<dyn Workers>, Failure> {
        let done = done.clone();
        let Table(queue) = &self.0;
        let tasks = queue
            .workers()
            .tasks(workers * batch)
            .run_async(move |_, _| {
                done.add(1);
                async { Ok::<_, Error>(()) }
            });
        Ok(Box::new(Running(tasks)))
    }

    async fn user(&self) -> Result<Box<dyn User>, Failure> {
        self.0.user().await
    }
}

struct Running(Tasks);

#[async_trait]
impl Workers for Running {
    async fn stop(self: Box<Self>) -> Result<(), Failure> {
        let report = self.0.stop().await;
        match report.failed {
            0 => Ok(()),
            failed => Err(format!("{failed} runs failed").into()),
        }
    }
}

struct Worker {
    queue: PgQueue<Job>,
    /// With the jobs that it holds.
    open: Option<PgTransaction<'static>>,
}

#[async_trait]
impl User for Worker {
    async fn claim(&mut self, max: usize) -> Result<usize, Failure> {
        let mut tx = match self.open.take() {
            Some(tx) => tx,
            None => self.queue.database().begin().await?,
        };
        let more = max - tx.held();
        if more > 0 {
            tx.pop_batch(&self.queue, more).await?;
        }
        let held = tx.held();
        self.open = (held > 0).then_some(tx);
        Ok(held)
    }

    async fn finish(&mut self) -> Result<(), Failure> {
        if let Some(tx) = self.open.take() {
            tx.commit().await?;
        }
        Ok(())
    }

    /// The next claim has the job that was waited for.
    async fn wait(&mut self) {
        if let Ok(mut tx) = self.queue.database().begin().await {
            if let Ok(Some(_)) = tx.pop_wait(&self.queue, POLL).await {
                self.open = Some(tx);
            }
        }
    }
}
