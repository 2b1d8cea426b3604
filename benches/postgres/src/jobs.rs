//! What is counted, and the loop of workers that take jobs by hand.

use crate::contestants::{User, Workers};
use crate::Failure;
use async_trait::async_trait;
use hdrhistogram::Histogram;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The payload.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Job {
    pub(crate) number: u64,
}

/// How many jobs are done.
#[derive(Clone, Debug, Default)]
pub(crate) struct Done(Arc<watch::Sender<u64>>);

impl Done {
    pub(crate) fn add(&self, count: u64) {
        self.0.send_modify(|done| *done += count);
    }

    pub(crate) fn count(&self) -> u64 {
        *self.0.borrow()
    }

    /// Waits until `count` jobs are done.
    pub(crate) async fn reach(&self, count: u64) {
        let mut done = self.0.subscribe();
        // The sender is in `self`.
        let _ = done.wait_for(|done| *done >= count).await;
    }
}

pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new(3).expect("three digits are possible")
}

/// Workers that are loops of a claim and a finish, with the latency of the claims that found jobs.
pub(crate) struct Loops {
    tasks: JoinSet<Result<Histogram<u64>, Failure>>,
    stop: watch::Sender<bool>,
}

impl Loops {
    pub(crate) fn start(users: Vec<Box<dyn User>>, batch: usize, done: &Done) -> Self {
        let stop = watch::Sender::new(false);
        let mut tasks = JoinSet::new();
        for user in users {
            tasks.spawn(work(user, batch, done.clone(), stop.subscribe()));
        }
        Self { tasks, stop }
    }

    pub(crate) async fn stop(mut self) -> Result<Histogram<u64>, Failure> {
        self.stop.send_replace(true);
        let mut latency = histogram();
        while let Some(task) = self.tasks.join_next().await {
            latency.add(task??)?;
        }
        Ok(latency)
    }
}

#[async_trait]
impl Workers for Loops {
    async fn stop(self: Box<Self>) -> Result<(), Failure> {
        (*self).stop().await.map(|_| ())
    }
}

async fn work(
    mut user: Box<dyn User>,
    batch: usize,
    done: Done,
    mut stop: watch::Receiver<bool>,
) -> Result<Histogram<u64>, Failure> {
    let mut latency = histogram();
    while !*stop.borrow() {
        let start = Instant::now();
        let claimed = user.claim(batch).await?;
        if claimed > 0 {
            latency.record(u64::try_from(start.elapsed().as_nanos())?)?;
            user.finish().await?;
            done.add(claimed as u64);
        } else {
            tokio::select! {
                () = user.wait() => (),
                _ = stop.changed() => (),
            }
        }
    }
    Ok(latency)
}
