//! Latencies: of a round trip, and of claims around an old snapshot.

use crate::cell::{check, Cell, PATIENCE};
use crate::contestants::{Jobs, User};
use crate::jobs::{histogram, Done};
use crate::results::Sample;
use crate::Failure;
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};
use tokio_postgres::Client;

/// From the start of a push, and from its end, until a worker that waited has done the job. The job of a pool is done when its run
/// begins.
pub(crate) const ROUND_TRIP: [&str; 2] = ["round trip", "round trip after the push"];

pub(crate) async fn round_trip(jobs: &dyn Jobs, length: Duration) -> Result<[Sample; 2], Failure> {
    let (done, mut latencies) = (Done::default(), [histogram(), histogram()]);
    let left = jobs.len().await?;
    let workers = jobs.workers(1, 1, &done).await?;
    let drained = timeout(PATIENCE, done.reach(left)).await;
    drained.map_err(|_| "the worker did not empty the queue in 30 s")?;
    let start = Instant::now();
    let mut count = left;
    while start.elapsed() < length || latencies[0].is_empty() {
        sleep(Duration::from_millis(5)).await; // the worker waits again
        count += 1;
        let times = one(jobs, &done, count).await?;
        for (latency, time) in latencies.iter_mut().zip(times) {
            latency.record(u64::try_from(time.as_nanos())?)?;
        }
    }
    let jobs_per_second = latencies[0].len() as f64 / start.elapsed().as_secs_f64();
    workers.stop().await?;
    check(jobs, 0, 0).await?;
    Ok(latencies.map(|latency| Sample {
        jobs_per_second,
        latency,
    }))
}

/// How long a job took, and how long after its push.
async fn one(jobs: &dyn Jobs, done: &Done, count: u64) -> Result<[Duration; 2], Failure> {
    let start = Instant::now();
    let pushed = async {
        jobs.push(1).await?;
        Ok::<_, Failure>(Instant::now())
    };
    let woken = async {
        let woken = timeout(PATIENCE, done.reach(count)).await;
        woken.map_err(|_| "a waiting worker was not woken in 30 s")?;
        Ok(Instant::now())
    };
    let (pushed, woken) = futures::future::try_join(pushed, woken).await?;
    Ok([woken - start, woken.saturating_duration_since(pushed)])
}

/// Jobs that are done while an old snapshot is open.
const UNDER_SNAPSHOT: u64 = 50_000;
/// Claims that are measured, before, under and after an old snapshot.
const CLAIMS: usize = 300;

/// What an old snapshot costs: while it is open, the server cannot remove the rows of jobs that are done.
pub(crate) const SNAPSHOT: [&str; 3] = [
    "before the snapshot",
    "under it, after 50000 jobs",
    "after it and a vacuum",
];

/// The latencies of claims before, under and after an old snapshot. `other` is a session of the same database.
pub(crate) async fn old_snapshot(jobs: &dyn Jobs, other: &Client) -> Result<[Sample; 3], Failure> {
    let cell = Cell {
        backlog: UNDER_SNAPSHOT + 5_000,
        workers: 1,
        batch: 1,
    };
    cell.level(jobs).await?;
    let mut user = jobs.user().await?;
    other.batch_execute("vacuum analyze").await?;
    let before = claims(&mut *user).await?;
    let snapshot = "begin isolation level repeatable read; select count(*) from pg_class";
    other.batch_execute(snapshot).await?;
    let mut done = 0;
    while done < UNDER_SNAPSHOT {
        done += user.claim(100).await? as u64;
        user.finish().await?;
    }
    let under = claims(&mut *user).await?;
    other.batch_execute("commit").await?;
    other.batch_execute("vacuum").await?;
    let after = claims(&mut *user).await?;
    Ok([before, under, after])
}

async fn claims(user: &mut dyn User) -> Result<Sample, Failure> {
    let (mut latency, start) = (histogram(), Instant::now());
    for _ in 0..CLAIMS {
        let claim = Instant::now();
        if user.claim(1).await? == 0 {
            return Err("a claim found no job".into());
        }
        latency.record(u64::try_from(claim.elapsed().as_nanos())?)?;
        user.finish().await?;
    }
    Ok(Sample {
        jobs_per_second: CLAIMS as f64 / start.elapsed().as_secs_f64(),
        latency,
    })
}
