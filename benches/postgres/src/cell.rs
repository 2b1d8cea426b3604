//! A cell: a number of workers, the size of their batches, and the backlog that a producer keeps up.

use crate::contestants::{users, Jobs};
use crate::jobs::{Done, Loops};
use crate::results::Sample;
use crate::Failure;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

/// A worker that has done nothing for so long will not.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The most that is pushed in one statement.
const PUSH: u64 = 5_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    /// 0 for the least that does not let the workers wait for the producer.
    pub(crate) backlog: u64,
    pub(crate) workers: usize,
    pub(crate) batch: usize,
}

impl Cell {
    pub(crate) fn all(backlog: u64) -> impl Iterator<Item = Self> {
        let sizes = |backlog, workers| {
            [1, 10, 100].map(|batch| Self {
                backlog,
                workers,
                batch,
            })
        };
        let workers = move |backlog| [1, 4, 16].into_iter().flat_map(move |n| sizes(backlog, n));
        [0, 1_000, backlog].into_iter().flat_map(workers)
    }

    pub(crate) fn name(self) -> String {
        let backlog = match self.backlog {
            0 => "empty".into(),
            backlog => format!("backlog {backlog}"),
        };
        format!("{backlog}, {}x{}", self.workers, self.batch)
    }

    /// The number of finished jobs after which the producer pushes.
    fn chunk(self) -> u64 {
        (self.workers * self.batch).max(50) as u64
    }

    /// How many jobs the workers may have done and not acknowledged when they stop.
    fn held(self) -> u64 {
        (4 * self.workers * self.batch) as u64
    }

    /// How many jobs there are before the workers start.
    fn target(self) -> u64 {
        self.backlog.max(2 * self.chunk())
    }

    pub(crate) async fn run(self, jobs: &dyn Jobs, length: Duration) -> Result<Sample, Failure> {
        self.level(jobs).await?;
        let before = jobs.len().await?;
        let done = Done::default();
        let workers = jobs.workers(self.workers, self.batch, &done).await?;
        let measured = self.measure(jobs, &done, length).await;
        workers.stop().await?; // its error is the cause of the other
        let (pushed, per_second) = measured?;
        let held = self.held() + jobs.ahead(self.workers).min(self.target()); // no more were there
        check(jobs, before + pushed - done.count(), held).await?;

        self.level(jobs).await?;
        let users = users(jobs, self.workers).await?;
        let before = jobs.len().await?;
        let done = Done::default();
        let workers = Loops::start(users, self.batch, &done);
        let measured = self.measure(jobs, &done, length).await;
        let claims = workers.stop().await?;
        let (pushed, _) = measured?;
        check(jobs, before + pushed - done.count(), 0).await?;
        Ok(Sample {
            jobs_per_second: per_second,
            latency: claims,
        })
    }

    /// Pushes or removes jobs, until there are as many as there should be.
    pub(crate) async fn level(self, jobs: &dyn Jobs) -> Result<(), Failure> {
        let target = self.target();
        fill(jobs, target).await?;
        let (mut len, mut user) = (jobs.len().await?, jobs.user().await?);
        while len > target {
            let count = usize::try_from(PUSH.min(len - target))?;
            len -= user.claim(count).await? as u64;
            user.finish().await?;
        }
        Ok(())
    }

    /// How many jobs were pushed meanwhile, and how many were done in a second.
    async fn measure(
        self,
        jobs: &dyn Jobs,
        done: &Done,
        length: Duration,
    ) -> Result<(u64, f64), Failure> {
        let (stop, stopped) = oneshot::channel();
        let measured = async move {
            let first = timeout(PATIENCE, done.reach(1)).await;
            first.map_err(|_| "no job was done for 30 s")?;
            let (start, before) = (Instant::now(), done.count());
            sleep(length).await;
            let per_second = (done.count() - before) as f64 / start.elapsed().as_secs_f64();
            drop(stop);
            Ok(per_second)
        };
        futures::future::try_join(self.produce(jobs, done, stopped), measured).await
    }

    /// Pushes as many jobs as are done, until it is stopped.
    async fn produce(
        self,
        jobs: &dyn Jobs,
        done: &Done,
        mut stopped: oneshot::Receiver<()>,
    ) -> Result<u64, Failure> {
        let mut pushed = 0;
        loop {
            tokio::select! {
                biased;
                _ = &mut stopped => return Ok(pushed),
                () = done.reach(pushed + self.chunk()) => (),
            }
            let count = PUSH.min(done.count() - pushed);
            jobs.push(count).await?;
            pushed += count;
        }
    }
}

/// Pushes jobs until there are as many as there should be.
pub(crate) async fn fill(jobs: &dyn Jobs, target: u64) -> Result<(), Failure> {
    let mut len = jobs.len().await?;
    while len < target {
        let count = PUSH.min(target - len);
        jobs.push(count).await?;
        len += count;
    }
    Ok(())
}

/// What is left must be what was pushed and is not done, and at most `repeated` jobs that are done and will be done again.
pub(crate) async fn check(jobs: &dyn Jobs, expected: u64, repeated: u64) -> Result<(), Failure> {
    let left = jobs.len().await?;
    if (expected..=expected + repeated).contains(&left) {
        return Ok(());
    }
    Err(format!("jobs were lost or doubled: {left} are left, not {expected}").into())
}
