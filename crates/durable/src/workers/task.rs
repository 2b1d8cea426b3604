//! Workers that are tasks.

use super::failure::{drop_committed, swallow_panic};
use super::guard::{Failed, Missing, Next, Ran, WorkerGuard};
use super::{Workers, WorkersBuilder};
use crate::order::Order;
use crate::{DurableQueue, Fifo, OwnedTransaction};
use parking_lot::Mutex;
use std::fmt::{self, Debug};
use std::future::{poll_fn, Future};
use std::ops::{Deref, DerefMut};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::thread;

impl<T: Clone + Send + 'static, O: Order<T>> WorkersBuilder<T, O> {
    /// Starts tasks that run a future for each item, with a copy of the item and the transaction that holds it. The pool
    /// commits, without blocking, when the future is ready. `spawn` hands a task to an executor, such as
    /// `|task| drop(tokio::spawn(task))`; it is called as often as the pool has workers.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// use requeue_durable::{PushError, Workers};
    ///
    /// let executor = futures::executor::ThreadPool::new()?;
    /// let numbers = store.queue("numbers")?;
    /// numbers.push(3)?;
    /// numbers.close()?;
    /// let workers = Workers::builder(&numbers).threads(2).run_async(
    ///     move |task| executor.spawn_ok(task),
    ///     |number, tx| async move {
    ///         if number > 0 {
    ///             tx.push(number - 1)?;
    ///         }
    ///         Ok::<_, PushError<u32>>(())
    ///     },
    /// );
    /// assert_eq!(workers.join()?.done, 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Joining or stopping the pool blocks the thread.
    pub fn run_async<E, F, R>(
        self,
        spawn: impl Fn(Pin<Box<dyn Future<Output = ()> + Send>>),
        run: F,
    ) -> Workers
    where
        E: Debug + Send + 'static,
        F: Fn(T, RunTransaction<T, O>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), E>> + Send + 'static,
    {
        let (pool, run) = (self.pool(), Arc::new(run));
        let workers = Workers::new(Arc::clone(&pool), &self.queue);
        for guard in WorkerGuard::all(&pool, &self.queue.shared.store) {
            let (queue, run) = (self.queue.clone(), Arc::clone(&run));
            spawn(Box::pin(async move {
                while each(&guard, &queue, &*run).await == Next::Goes {}
            }));
        }
        workers
    }
}

async fn each<T, O, E, F, R>(guard: &WorkerGuard, queue: &DurableQueue<T, O>, run: &F) -> Next
where
    T: Clone + Send + 'static,
    O: Order<T>,
    E: Debug + Send + 'static,
    F: Fn(T, RunTransaction<T, O>) -> R + Sync,
    R: Future<Output = Result<(), E>> + Send,
{
    let tx = queue.begin_owned();
    let holding = tx.hold_async();
    let taking = async { Ok(T::clone(&*guard.take(holding).await?)) };
    let item = match watch(|| taking).await {
        Ok(Ok(item)) => item,
        Ok(Err(Missing::End)) => return Next::Ends,
        Ok(Err(Missing::Unread(error))) => return guard.fail_async(guard.unread(tx, error)).await,
        Err(payload) => {
            return end(guard, tx, Ran::<E>::Err(payload)).await;
        }
    };
    guard.begin_run();
    let kept = Arc::new(Mutex::new(None));
    let running = RunTransaction {
        tx: Some(tx),
        kept: Arc::clone(&kept),
    };
    let ran = watch(|| run(item, running)).await;
    let Some(tx) = kept.lock().take() else {
        let error = "the transaction of the run is kept after its end";
        return guard.fail_async(Failed::lost(error)).await;
    };
    end(guard, tx, ran).await
}

/// Ends the transaction of a run.
async fn end<T: Send + 'static, O: Order<T>, E: Debug>(
    guard: &WorkerGuard,
    tx: OwnedTransaction<T, O>,
    ran: Ran<E>,
) -> Next {
    let counted = match guard.judge(tx, ran) {
        Ok((tx, deliveries)) => {
            let committed = tx.commit_async().await;
            guard.count(committed.map(drop_committed), deliveries)
        }
        Err(failed) => Err(failed),
    };
    match counted {
        Ok(next) => next,
        Err(failed) => guard.fail_async(failed).await,
    }
}

/// Runs a future that has code of users, and catches its panics.
async fn watch<R: Future>(start: impl FnOnce() -> R) -> thread::Result<R::Output> {
    let future = catch_unwind(AssertUnwindSafe(start))?;
    let mut future = Some(Box::pin(future));
    poll_fn(move |context| {
        let Some(running) = &mut future else {
            unreachable!("it is not polled after its end");
        };
        let polled = catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(context)));
        let ran = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(result)) => Ok(result),
            Err(payload) => Err(payload),
        };
        swallow_panic(|| drop(future.take()));
        Poll::Ready(ran)
    })
    .await
}

/// The transaction of a run of [`WorkersBuilder::run_async`]. The pool ends it: dropping it does not abort.
///
/// It derefs to [`OwnedTransaction`]. To give the item of the run back, use
/// [`retry_all_after`](crate::Transaction::retry_all_after) or [`fail_all`](crate::Transaction::fail_all).
pub struct RunTransaction<T: Send + 'static, O: Order<T> = Fifo> {
    /// `None` only while it is dropped.
    tx: Option<OwnedTransaction<T, O>>,
    kept: Arc<Mutex<Option<OwnedTransaction<T, O>>>>,
}

const OPEN: &str = "the transaction is there until it is dropped";

impl<T: Send + 'static, O: Order<T>> Deref for RunTransaction<T, O> {
    type Target = OwnedTransaction<T, O>;

    fn deref(&self) -> &Self::Target {
        self.tx.as_ref().expect(OPEN)
    }
}

impl<T: Send + 'static, O: Order<T>> DerefMut for RunTransaction<T, O> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.tx.as_mut().expect(OPEN)
    }
}

impl<T: Send + 'static, O: Order<T>> Drop for RunTransaction<T, O> {
    fn drop(&mut self) {
        *self.kept.lock() = self.tx.take();
    }
}

impl<T: Send + 'static, O: Order<T>> fmt::Debug for RunTransaction<T, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
