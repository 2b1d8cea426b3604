//! The queues.

mod apalis;
mod by_hand;
mod graphile;
mod requeue;

use crate::jobs::{Done, Loops};
use crate::server::Server;
use crate::Failure;
use async_trait::async_trait;
use futures::future::BoxFuture;
use requeue::Holding;
use std::time::Duration;

/// A queue in a database of its own.
#[async_trait]
pub(crate) trait Jobs: Send + Sync {
    /// Pushes `count` jobs in one commit.
    async fn push(&self, count: u64) -> Result<(), Failure>;

    /// How many jobs are neither done nor deleted.
    async fn len(&self) -> Result<u64, Failure>;

    /// Starts workers, as users of this queue would, that count the jobs they did: loops of a claim and a finish, if it has no others.
    async fn workers(
        &self,
        workers: usize,
        batch: usize,
        done: &Done,
    ) -> Result<Box<dyn Workers>, Failure> {
        let users = users(self, workers).await?;
        Ok(Box::new(Loops::start(users, batch, done)))
    }

    /// The number of jobs that these workers take ahead together, whatever the size of a batch.
    fn ahead(&self, _workers: usize) -> u64 {
        0
    }

    /// A connection that claims jobs, for the latency of a claim.
    async fn user(&self) -> Result<Box<dyn User>, Failure>;
}

pub(crate) async fn users<J: Jobs + ?Sized>(
    jobs: &J,
    count: usize,
) -> Result<Vec<Box<dyn User>>, Failure> {
    let mut users = Vec::new();
    for _ in 0..count {
        users.push(jobs.user().await?);
    }
    Ok(users)
}

#[async_trait]
pub(crate) trait Workers: Send {
    /// Waits for the jobs in work, and gives back those that were claimed and not begun.
    async fn stop(self: Box<Self>) -> Result<(), Failure>;
}

#[async_trait]
pub(crate) trait User: Send {
    /// Takes up to `max` jobs.
    async fn claim(&mut self, max: usize) -> Result<usize, Failure>;

    /// Ends the claimed jobs as done.
    async fn finish(&mut self) -> Result<(), Failure>;

    /// Waits after a claim that found no job.
    async fn wait(&mut self) {
        tokio::time::sleep(POLL).await;
    }
}

type Open = for<'a> fn(&'a Server, &'a str) -> BoxFuture<'a, Result<Box<dyn Jobs>, Failure>>;

pub(crate) struct Contestant {
    pub(crate) name: &'static str,
    /// Creates the tables in an empty database.
    pub(crate) open: Open,
}

/// How many jobs the pools take ahead, where they can.
const AHEAD: usize = 1_000;

/// First each one with batches of the size of the cell: loops of a claim and a finish, or the crate's own workers. Then the pools of
/// the crates as their documentation has them, with one setting each, which is not tuned to the cell. Those of requeue and
/// graphile_worker run as many jobs at a time as workers times batch, that of apalis has so many workers.
pub(crate) const ALL: [Contestant; 13] = [
    Contestant {
        name: "requeue, leased",
        open: |server, database| Box::pin(requeue::open(server, database, Holding::Leased)),
    },
    Contestant {
        name: "requeue, prefetched",
        open: |server, database| Box::pin(requeue::open(server, database, Holding::Prefetched)),
    },
    Contestant {
        name: "requeue, locked",
        open: |server, database| Box::pin(requeue::open(server, database, Holding::Locked)),
    },
    Contestant {
        name: "graphile_worker",
        open: |server, database| Box::pin(graphile::open(server, database, None)),
    },
    Contestant {
        name: "apalis-postgres",
        open: |server, database| Box::pin(apalis::open(server, database, None)),
    },
    Contestant {
        name: "SKIP LOCKED, locked",
        open: |server, database| Box::pin(by_hand::open(server, database, by_hand::LOCKED)),
    },
    Contestant {
        name: "SKIP LOCKED, marked",
        open: |server, database| Box::pin(by_hand::open(server, database, by_hand::MARKED)),
    },
    Contestant {
        name: "pool of requeue, leased",
        open: |server, database| Box::pin(requeue::open_pool(server, database, Holding::Leased)),
    },
    Contestant {
        name: "pool of requeue, prefetched",
        open: |server, database| {
            Box::pin(requeue::open_pool(server, database, Holding::Prefetched))
        },
    },
    Contestant {
        name: "pool of requeue, repeats_after_crash(1,000)",
        open: |server, database| Box::pin(requeue::open_pool(server, database, Holding::Late)),
    },
    Contestant {
        name: "pool of requeue, locked",
        open: |server, database| Box::pin(requeue::open_pool(server, database, Holding::Locked)),
    },
    Contestant {
        name: "pool of graphile_worker, local queue of 1,000",
        open: |server, database| Box::pin(graphile::open(server, database, Some(AHEAD))),
    },
    Contestant {
        name: "pool of apalis-postgres, batches of 1,000",
        open: |server, database| Box::pin(apalis::open(server, database, Some(AHEAD))),
    },
];

/// How often those that found nothing look again, besides the notifications that all of them wait for.
const POLL: Duration = Duration::from_millis(10);
