//! Handles.

use crate::commit::PendingCommit;
use crate::order::Order;
use crate::transaction::Core;
use crate::{DurableQueue, Fifo, Transaction};
use std::sync::Arc;

/// One thread's or task's access to a queue: see [`requeue::Handle`].
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let store = requeue_durable::Store::open(directory.path())?;
/// let jobs = store.queue::<u32>("jobs")?;
/// let mut worker = jobs.handle();
/// worker.push(1)?;
/// assert_eq!(worker.pop()?, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A transaction that was leaked by [`std::mem::forget`] keeps its items until the process ends.
pub struct Handle<T: Send + 'static, O: Order<T> = Fifo> {
    pub(crate) queue: DurableQueue<T, O>,
    pub(crate) state: HandleState<T, O>,
    name: Option<Arc<str>>,
}

/// Where the state of a transaction is between transactions.
#[derive(Default)]
pub(crate) enum HandleState<T: Send + 'static, O: Order<T>> {
    /// There is none yet, or a transaction has it.
    #[default]
    Vacant,
    Rests(Core<T, O>),
    /// An asynchronous commit has it.
    Commits(PendingCommit<T, O>),
}

impl<T: Send + 'static, O: Order<T>> HandleState<T, O> {
    /// The state of the next transaction. Waits for an asynchronous commit.
    pub(crate) fn take(&mut self, make: impl FnOnce() -> Core<T, O>) -> Core<T, O> {
        match std::mem::take(self) {
            Self::Vacant => make(),
            Self::Rests(core) => core,
            Self::Commits(pending) => match pending.wait() {
                Ok((taken, local)) => Core {
                    ram: taken.begin_owned(),
                    local,
                },
                Err((_, mut core)) => {
                    core.rollback(None);
                    core
                }
            },
        }
    }
}

impl<T: Send + 'static, O: Order<T>> Handle<T, O> {
    pub(crate) fn new(queue: DurableQueue<T, O>, name: Option<Arc<str>>) -> Self {
        Self {
            queue,
            state: HandleState::Vacant,
            name,
        }
    }

    /// The queue.
    pub fn queue(&self) -> &DurableQueue<T, O> {
        &self.queue
    }

    /// The name, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Begins a transaction. Waits for an asynchronous commit of this handle that has not ended.
    #[inline]
    pub fn begin(&mut self) -> Transaction<'_, T, O> {
        let Self { queue, state, name } = self;
        let core = state.take(|| Core::new(queue, name.clone()));
        Transaction::of(core, Some(state))
    }

    pub(crate) fn with_tx<R>(&mut self, call: impl FnOnce(Transaction<'_, T, O>) -> R) -> R {
        call(self.begin())
    }

    /// Begins a transaction that owns this handle.
    pub fn begin_owned(mut self) -> Transaction<'static, T, O> {
        let core = self
            .state
            .take(|| Core::new(&self.queue, self.name.clone()));
        Transaction::of(core, None)
    }

    /// Runs `work` in a transaction: `Ok` commits and drops the held items, `Err` and a panic abort.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// use requeue_durable::{PopError, StoreError};
    ///
    /// #[derive(Debug)]
    /// enum Failure {
    ///     Store(StoreError),
    ///     Pop(PopError),
    /// }
    /// impl From<StoreError> for Failure {
    ///     fn from(error: StoreError) -> Self {
    ///         Self::Store(error)
    ///     }
    /// }
    ///
    /// let jobs = store.queue("jobs")?;
    /// jobs.push(6)?;
    /// let answer = jobs.handle().transact(|tx| tx.pop().map(|job| *job * 7).map_err(Failure::Pop));
    /// assert_eq!(answer.unwrap(), 42);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The error of `work`, or of the commit.
    pub fn transact<R, E: From<crate::StoreError>>(
        &mut self,
        work: impl FnOnce(&Transaction<'_, T, O>) -> Result<R, E>,
    ) -> Result<R, E> {
        let tx = self.begin();
        let result = work(&tx)?;
        tx.commit()?;
        Ok(result)
    }
}

impl<T: Send + 'static, O: Order<T>> Clone for Handle<T, O> {
    /// A new handle of the same queue, with the same name.
    fn clone(&self) -> Self {
        Self::new(self.queue.clone(), self.name.clone())
    }
}

requeue::debug_struct!([T: Send + 'static, O: Order<T>] Handle<T, O>, |it| queue: it.queue.name(), name: it.name);
