//! The workers: each takes a job, does one step of it and pushes the next step for any worker.

use std::sync::Arc;

use requeue::{Handle, Transaction};

use super::jobs::{Failed, Job};
use super::tally::Tally;

/// Works until the queue is closed and drained. Before that, another worker may give a job back.
pub(crate) async fn work(mut handle: Handle<Job>, tally: Arc<Tally>) {
    loop {
        let tx = handle.begin();
        let Ok(taken) = tx.pop_async().await else {
            return;
        };
        let (job, attempt) = (*taken, taken.attempts());
        match step(tx, job, attempt).await {
            Ok(true) => tally.finish(job.number),
            Ok(false) => {}
            Err(Failed) => tally.fail(),
        }
    }
}

/// Does a step in the transaction that took it, and commits it with the next one: true if it was the last of its job.
///
/// A failure drops the transaction, which aborts it: the step goes back to the head of the queue. The next step is
/// accepted even after the close, since it follows from an accepted job.
async fn step(tx: Transaction<'_, Job>, job: Job, attempt: u32) -> Result<bool, Failed> {
    job.perform(attempt).await?;
    let next = job.next();
    if let Some(next) = next {
        tx.push(next).expect("it takes the place of this one");
    }
    tx.commit();
    Ok(next.is_none())
}
