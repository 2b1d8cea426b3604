//! The workers: each takes a job, does a step of it and leaves the next to whoever comes first.

use std::sync::Arc;

use requeue::{Handle, PushError, Transaction};

use super::jobs::{Failed, Job};
use super::tally::Tally;

/// Works until the queue is closed and drained. Until then another worker may give a job back.
pub(crate) async fn work(mut handle: Handle<Job>, tally: Arc<Tally>) {
    loop {
        let tx = handle.begin();
        let Ok(taken) = tx.pop_async().await else {
            return;
        };
        let (job, attempt) = (*taken, taken.attempts());
        match step(tx, job, attempt, &tally).await {
            Ok(Some(finished)) => tally.finish(finished.number),
            Ok(None) => {}
            Err(Failed) => tally.fail(),
        }
    }
}

/// Does a step in the transaction that took it, and commits. `Some` if it was the job's last.
///
/// A failure drops the transaction, which aborts it: the step goes back to the head of the queue. A closed
/// queue takes no next step; then it is done in the same transaction, and a failure takes both back.
async fn step(
    tx: Transaction<'_, Job>,
    mut job: Job,
    attempt: u32,
    tally: &Tally,
) -> Result<Option<Job>, Failed> {
    job.perform(attempt).await?;
    while let Some(next) = job.next() {
        match tx.push(next) {
            Ok(()) => {
                tx.commit();
                return Ok(None);
            }
            Err(PushError::Full(_)) => unreachable!("there is room for as many as are held"),
            Err(PushError::Closed(next)) => {
                next.perform(attempt).await?;
                tally.do_alone();
                job = next;
            }
        }
    }
    tx.commit();
    Ok(Some(job))
}
