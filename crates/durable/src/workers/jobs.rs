//! Runs with results.

use super::failure::swallow_panic;
use super::guard::WorkerGuard;
use super::run::{commit, repeat, take};
use super::{Workers, WorkersBuilder};
use crate::error::PushError;
use crate::order::Order;
use crate::queue::verbs::Begin;
use crate::ticket::Ticket;
use crate::{DurableQueue, Fifo, Transaction};
use parking_lot::Mutex;
use requeue::{Job, Outcome, Wait};
use std::collections::HashMap;
use std::fmt::{self, Debug};
use std::future::Future;
use std::sync::{Arc, Weak};

/// Submits items whose runs have results, from [`WorkersBuilder::run_jobs`]. Clones submit to the same pool.
///
/// The item is on the disk, its [`Outcome`] in memory: if the process dies, the next pool of the queue runs the item, and nobody
/// waits for the result. The outcome ends with [`JobError::is_dropped`](requeue::JobError::is_dropped) when the item has become
/// a [dead letter](DurableQueue::dead_letters) of this pool, or when all workers of the pool have ended. Until then it waits, also
/// if something else took the item: a pop, [`cancel`](DurableQueue::cancel) or [`clear`](DurableQueue::clear).
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

    fn send(mut self, result: R) {
        *self.result.lock() = Some(result);
        self.job.run();
    }
}

/// A reply that is forgotten when this is dropped, unless its item was pushed.
struct Registered<'j, R> {
    replies: &'j Weak<Replies<R>>,
    id: u64,
    outcome: Option<Outcome<R>>,
}

impl<R> Registered<'_, R> {
    fn keep(mut self) -> Outcome<R> {
        self.outcome.take().expect("it is kept once")
    }
}

impl<R> Drop for Registered<'_, R> {
    fn drop(&mut self) {
        if self.outcome.is_some() {
            let replies = self.replies.upgrade();
            drop(replies.and_then(|replies| remove(&replies, self.id)));
        }
    }
}

/// Dropping a reply wakes who waits, which is code of users, so not under the lock.
fn remove<R>(replies: &Replies<R>, id: u64) -> Option<Reply<R>> {
    replies.lock().remove(&id)
}

impl<T: Send + 'static, R: Send + 'static, O: Order<T>> Jobs<T, R, O> {
    /// Pushes an item, and returns the outcome of its run. The item is durable when this returns, as after
    /// [`DurableQueue::push`].
    ///
    /// # Errors
    ///
    /// As [`DurableQueue::push`].
    pub fn submit(&self, item: T) -> Result<Outcome<R>, PushError<T>> {
        self.queue.run(
            |tx| {
                let Ticket(id) = tx.stage(item, None, Wait::Never)?;
                Ok(self.register(id))
            },
            |registered, _| registered.keep(),
        )
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
    #[allow(clippy::manual_async_fn)] // `Send` is part of the signature
    pub fn submit_async(
        &self,
        item: T,
    ) -> impl Future<Output = Result<Outcome<R>, PushError<T>>> + Send + '_ {
        async {
            let tx = self.queue.begin_owned();
            let staging = tx.stage_async(item, None);
            let Ticket(id) = staging.await?;
            let registered = self.register(id);
            tx.commit_async().await?;
            Ok(registered.keep())
        }
    }

    /// Registers a reply to an item that is not visible yet.
    fn register(&self, id: u64) -> Registered<'_, R> {
        let (reply, outcome) = Reply::new();
        if let Some(replies) = self.replies.upgrade() {
            replies.lock().insert(id, reply);
        }
        Registered {
            replies: &self.replies,
            id,
            outcome: Some(outcome),
        }
    }
}

impl<T: Send + 'static, O: Order<T>> WorkersBuilder<T, O> {
    /// Starts threads as [`run`](Self::run) does. The function returns a result; once its run is committed, the result goes to
    /// the caller that [submitted](Jobs::submit) the item.
    ///
    /// An item whose run failed runs again, as in every pool. Items that were pushed in another way, or by an earlier process,
    /// run too; their results are dropped.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// use requeue_durable::{PushError, Workers};
    ///
    /// let numbers = store.queue("numbers")?;
    /// let (_workers, jobs) = Workers::builder(&numbers)
    ///     .threads(2)
    ///     .run_jobs(|number: &u32, _tx| Ok::<_, PushError<u32>>(number * number));
    /// let (three, four) = (jobs.submit(3)?, jobs.submit(4)?);
    /// assert_eq!(three.wait()? + four.wait()?, 25);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the system refuses to start a thread.
    #[track_caller]
    pub fn run_jobs<R, E, F>(self, run: F) -> (Workers, Jobs<T, R, O>)
    where
        R: Send + 'static,
        E: Debug,
        F: for<'t> Fn(&'t T, &'t Transaction<'t, T, O>) -> Result<R, E>,
        F: Send + Sync + 'static,
    {
        let replies = Arc::new(Replies::default());
        let jobs = Jobs {
            queue: self.queue.clone(),
            replies: Arc::downgrade(&replies),
        };
        let queue = self.queue.clone();
        let workers = self.start(move |guard| reply_each(&guard, &queue, &replies, &run));
        (workers, jobs)
    }
}

fn reply_each<T: Send + 'static, R: Send + 'static, O: Order<T>, E: Debug>(
    guard: &WorkerGuard,
    queue: &DurableQueue<T, O>,
    replies: &Replies<R>,
    run: &impl for<'t> Fn(&'t T, &'t Transaction<'t, T, O>) -> Result<R, E>,
) {
    let mut handle = queue.named_handle(guard.name());
    repeat(|| {
        let (mut job, mut result, mut is_committed) = (None, None, false);
        let attempted = guard.attempt(handle.begin(), |tx| {
            let item = take(guard, tx)?;
            job = Some((item.ram.id, item.attempts()));
            guard.begin_run();
            Ok(run(&item, tx).map(|value| result = Some(value)))
        });
        let next = commit(guard, attempted, |tx| {
            let taken = tx.commit()?;
            is_committed = true;
            Ok(taken)
        });
        let Some((id, attempts)) = job else {
            return next;
        };
        let is_dead = |most| attempts >= most;
        if is_committed || queue.shared.max_attempts.is_some_and(is_dead) {
            let result = result.filter(|_| is_committed);
            // Results and wakers are code of users.
            swallow_panic(|| match (remove(replies, id), result) {
                (Some(reply), Some(result)) => reply.send(result),
                (reply, result) => drop((reply, result)),
            });
        }
        next
    });
}

impl<T: Send + 'static, R, O: Order<T>> Clone for Jobs<T, R, O> {
    fn clone(&self) -> Self {
        Self {
            queue: self.queue.clone(),
            replies: Weak::clone(&self.replies),
        }
    }
}

impl<T: Send + 'static, R, O: Order<T>> fmt::Debug for Jobs<T, R, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jobs")
            .field("queue", &self.queue.name())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use crate::{PushError, StoreError, StoreOptions, Workers};

    #[test]
    fn a_reply_is_forgotten_if_its_item_was_not_pushed() {
        let files = tempfile::tempdir().unwrap();
        let full = StoreOptions::new().reserve(u64::MAX);
        let numbers = full.open(files.path()).unwrap().queue::<u32>("numbers");
        let (_workers, jobs) = Workers::builder(&numbers.unwrap())
            .threads(1)
            .run_jobs(|number, _tx| Ok::<_, ()>(*number));
        let refused = jobs.submit(7).unwrap_err();
        assert!(matches!(refused, PushError::Store(StoreError::DiskFull)));
        assert!(jobs.replies.upgrade().unwrap().lock().is_empty());
    }
}
