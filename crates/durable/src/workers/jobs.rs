//! Runs with results.

use crate::call::{now, swallow_panic, Caller};
use crate::error::PushError;
use crate::order::{One, Order};
use crate::ticket::Ticket;
use crate::{DurableQueue, Fifo, OwnedTransaction, Transaction, WorkersBuilder};
use parking_lot::Mutex;
use requeue::{Job, Outcome, Wait, Workers};
use std::collections::HashMap;
use std::fmt::Debug;
use std::future::Future;
use std::sync::{Arc, Weak};

/// Submits items whose runs have results, from [`Jobs::run`]. Clones submit to the same pool.
///
/// The item is on the disk, its [`Outcome`] in memory: if the process dies, the next pool of the queue runs the item, and nobody
/// waits for the result. The outcome ends with [`JobError::is_dropped`](requeue::JobError::is_dropped) when the item has become
/// a [dead letter](DurableQueue::dead_letters) of this pool, or when all workers of the pool have ended. Until then it waits, also
/// if something else took the item: a pop, [`cancel`](DurableQueue::cancel), [`clear`](DurableQueue::clear),
/// [`retain`](DurableQueue::retain), or the end of its [time to live](crate::Builder::ttl).
pub struct Jobs<T: Send + 'static, R, O: Order<T> = Fifo> {
    queue: DurableQueue<T, O>,
    /// The workers own it.
    replies: Weak<Replies<R>>,
}

/// The replies to items, by number.
type Replies<R> = Mutex<HashMap<u64, Reply<R>>>;

/// Sends the result of a run. If it is dropped before, so was the job.
struct Reply<R> {
    result: Arc<Mutex<Option<R>>>,
    job: Job,
}

impl<R: Send + 'static> Reply<R> {
    fn new() -> (Self, Outcome<R>) {
        let result = Arc::new(Mutex::new(None));
        let sent = Arc::clone(&result);
        let (job, outcome) = Job::new(move || sent.lock().take().expect("it was sent"));
        (Self { result, job }, outcome)
    }
}

/// Dropping a reply wakes who waits, which is code of users, so not under the lock.
fn remove<R>(replies: &Replies<R>, id: u64) -> Option<Reply<R>> {
    replies.lock().remove(&id)
}

impl<T: Send + 'static, R: Send + 'static, O: Order<T>> Jobs<T, R, O> {
    /// Starts threads as [`WorkersBuilder::run`] does. The function returns a result; once its run is committed, the result goes
    /// to the caller that [submitted](Jobs::submit) the item.
    ///
    /// An item whose run failed runs again, as in every pool. Items that were pushed in another way, or by an earlier process,
    /// run too; their results are dropped.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// use requeue_durable::{Jobs, PushError, Workers};
    ///
    /// let numbers = store.queue("numbers")?;
    /// let workers = Workers::builder(&numbers).threads(2);
    /// let (_workers, jobs) = Jobs::run(workers, |number: &u32, _tx| Ok::<_, PushError<u32>>(number * number));
    /// let (three, four) = (jobs.submit(3)?, jobs.submit(4)?);
    /// assert_eq!(three.wait()? + four.wait()?, 25);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the system refuses to start a thread.
    #[track_caller]
    pub fn run<E, F>(workers: WorkersBuilder<T, O>, run: F) -> (Workers, Self)
    where
        E: Debug,
        F: for<'t> Fn(&'t T, &'t OwnedTransaction<T, O>) -> Result<R, E> + Send + Sync + 'static,
    {
        let replies = Arc::new(Replies::default());
        let jobs = Self {
            queue: workers.queue().clone(),
            replies: Arc::downgrade(&replies),
        };
        let workers = workers.run(move |item, tx| {
            let id = item.ram.id;
            let is_last = |most| item.attempts() >= most;
            let is_dead = tx.shared().max_attempts.is_some_and(is_last);
            let known = Arc::clone(&replies);
            tx.at_end(move |is_committed| {
                let reply = (is_committed || is_dead)
                    .then(|| remove(&known, id))
                    .flatten();
                if let Some(mut reply) = reply.filter(|_| is_committed) {
                    reply.job.run();
                }
            });
            let result = run(&item, tx)?;
            let known = replies
                .lock()
                .get(&id)
                .map(|reply| Arc::clone(&reply.result));
            let unused = match known {
                Some(known) => known.lock().replace(result),
                None => Some(result),
            };
            swallow_panic(|| drop(unused));
            Ok::<_, E>(())
        });
        (workers, jobs)
    }

    /// Pushes an item, and returns the outcome of its run. The item is durable when this returns, as after
    /// [`DurableQueue::push`].
    ///
    /// # Errors
    ///
    /// As [`DurableQueue::push`].
    pub fn submit(&self, item: T) -> Result<Outcome<R>, PushError<T>> {
        self.queue
            .with_tx(|tx| now(self.submit_by(tx, item, Caller::Thread(Wait::Never))))
    }

    /// As [`submit`](Self::submit), in a task; waits for room.
    ///
    /// # Errors
    ///
    /// As [`DurableQueue::push_async`].
    ///
    /// # Cancel safety
    ///
    /// As [`DurableQueue::push_async`]; if the item is pushed nevertheless, nobody gets its result.
    pub fn submit_async(
        &self,
        item: T,
    ) -> impl Future<Output = Result<Outcome<R>, PushError<T>>> + Send + '_ {
        self.submit_by(self.queue.begin_owned(), item, Caller::Task)
    }

    async fn submit_by(
        &self,
        tx: Transaction<'_, T, O>,
        item: T,
        caller: Caller,
    ) -> Result<Outcome<R>, PushError<T>> {
        let staging = tx.stage::<One>(item, None, caller);
        let Ticket(id) = staging.await?.first();
        // Before it is visible.
        let (reply, outcome) = Reply::new();
        if let Some(replies) = self.replies.upgrade() {
            replies.lock().insert(id, reply);
        }
        let replies = Weak::clone(&self.replies);
        tx.at_end(move |is_committed| {
            let replies = replies.upgrade().filter(|_| !is_committed);
            drop(replies.and_then(|replies| remove(&replies, id)));
        });
        tx.commit_by(caller).await?;
        Ok(outcome)
    }
}

impl<T: Send + 'static, R, O: Order<T>> Clone for Jobs<T, R, O> {
    fn clone(&self) -> Self {
        Self {
            queue: self.queue.clone(),
            replies: Weak::clone(&self.replies),
        }
    }
}

requeue::debug_struct!([T: Send + 'static, R, O: Order<T>] Jobs<T, R, O>, |it| queue: it.queue.name());

#[cfg(test)]
mod tests {
    use crate::{Jobs, PushError, StoreError, StoreOptions, Workers};

    #[test]
    fn a_reply_is_forgotten_if_its_item_was_not_pushed() {
        let files = tempfile::tempdir().unwrap();
        let full = StoreOptions::new().reserve(u64::MAX);
        let numbers = full.open(files.path()).unwrap().queue::<u32>("numbers");
        let workers = Workers::builder(&numbers.unwrap()).threads(1);
        let (_workers, jobs) = Jobs::run(workers, |number, _tx| Ok::<_, ()>(*number));
        let refused = jobs.submit(7).unwrap_err();
        assert!(matches!(refused, PushError::Store(StoreError::DiskFull)));
        assert!(jobs.replies.upgrade().unwrap().lock().is_empty());
    }
}
