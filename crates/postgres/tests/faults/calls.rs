//! Calls of a process whose connections go through a proxy.

use crate::base::{options, until, Db, Mode, LONG};
use crate::proxy::Proxy;
use requeue_postgres::{Error, PgQueue, Postgres, Ticket};
use std::future::Future;
use std::time::Duration;
use tokio::time::timeout;

/// The time of a statement here. One that does not hang may miss it too, on a busy machine: so each call is repeated.
pub(crate) const LIMIT: Duration = Duration::from_secs(2);

/// A process whose connections go through a proxy.
pub(crate) async fn behind(proxy: &Proxy, db: &Db) -> Postgres {
    let url = format!("{} application_name={}", proxy.url(), application(db));
    let options = options(&url, &db.schema).statement_timeout(LIMIT);
    options.connect().await.unwrap()
}

pub(crate) fn application(db: &Db) -> String {
    format!("{}_misses", db.schema)
}

/// A call of a process; each uses connections in another way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// The connection for short statements.
    Stats,
    /// A short statement that is a commit.
    Change(Change),
    /// A writer of commits.
    Push,
    /// A connection of the pool.
    Pop(Mode),
    /// A statement of the user, with an item that is held, and the commit.
    Work(Mode),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Cancel,
    Reprioritize,
    Recover,
    Drain,
    Requeue,
}

pub(crate) const CALLS: [Call; 13] = [
    Call::Stats,
    Call::Change(Change::Cancel),
    Call::Change(Change::Reprioritize),
    Call::Change(Change::Recover),
    Call::Change(Change::Drain),
    Call::Change(Change::Requeue),
    Call::Push,
    Call::Pop(Mode::Locked),
    Call::Pop(Mode::Leased),
    Call::Pop(Mode::Prefetched),
    Call::Work(Mode::Locked),
    Call::Work(Mode::Leased),
    Call::Work(Mode::Prefetched),
];

/// A process whose queues are known to it: its next statement is that of the call.
pub(crate) struct Warm {
    pub(crate) process: Postgres,
    pub(crate) jobs: PgQueue<i64>,
    pub(crate) results: PgQueue<i64>,
    pub(crate) call: Call,
}

impl Warm {
    pub(crate) async fn new(proxy: &Proxy, db: &Db, call: Call) -> Self {
        let warm = Self::of(behind(proxy, db).await, call);
        Mode::Locked.jobs(db).push_batch(0..100).await.unwrap();
        until(|| async { warm.run().await.is_ok() }).await; // its connections wait for their next use
        warm
    }

    pub(crate) fn of(process: Postgres, call: Call) -> Self {
        let mode = match call {
            Call::Pop(mode) | Call::Work(mode) => mode,
            _ => Mode::Locked,
        };
        Self {
            jobs: mode.jobs(&process),
            results: process.queue("results"),
            process,
            call,
        }
    }

    pub(crate) async fn run(&self) -> Result<(), Error> {
        match self.call {
            Call::Stats => self.results.stats().await.map(drop),
            Call::Change(change) => self.change(change).await,
            Call::Push => self.results.push(0).await.map(drop),
            Call::Pop(_) => {
                let mut tx = self.process.begin().await?;
                tx.pop(&self.jobs).await?;
                tx.abort().await
            }
            Call::Work(_) => {
                let mut tx = self.process.begin().await?;
                tx.pop(&self.jobs).await?;
                tx.client().query_one("select 1", &[]).await?;
                tx.push(&self.results, 0).await?;
                tx.commit().await.map(drop)
            }
        }
    }

    async fn change(&self, change: Change) -> Result<(), Error> {
        let (queue, nothing) = (&self.results, Ticket(-1));
        match change {
            Change::Cancel => queue.cancel(nothing).await.map(drop),
            Change::Reprioritize => queue.reprioritize(nothing, 1).await.map(drop),
            Change::Recover => queue.recover("nobody", LIMIT).await.map(drop),
            Change::Drain => queue.dead_letters().drain(1).await.map(drop),
            Change::Requeue => queue.dead_letters().requeue_all().await.map(drop),
        }
    }

    /// Whether this is the error of the call, if its first statement hangs.
    pub(crate) fn is_missed(&self, error: &Error) -> bool {
        match self.call {
            Call::Push | Call::Change(_) => is_in_doubt(error),
            _ => matches!(error, Error::TimedOut(LIMIT)) && error.is_retryable(),
        }
    }
}

pub(crate) fn is_in_doubt(error: &Error) -> bool {
    matches!(error, Error::InDoubt(why) if why.contains("did not answer"))
}

/// Repeats what may miss its time on a busy machine.
pub(crate) async fn succeed<T, F: Future<Output = Result<T, Error>>>(call: impl Fn() -> F) -> T {
    let succeeds = async {
        loop {
            if let Ok(done) = call().await {
                return done;
            }
        }
    };
    timeout(LONG, succeeds)
        .await
        .expect("it succeeds in the end")
}
