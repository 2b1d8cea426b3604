//! A pool of worker threads.

use super::crew::{Crew, Shift};
use super::worker::Command;
use super::{Report, WorkerState, WorkerStatus, WorkersBuilder};
use crate::order::Order;
use crate::Queue;
use std::fmt;
use std::mem;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Threads that wait for the items of a queue, run a function on each, and commit if it succeeds.
///
/// A worker waits for an item, runs, and ends the transaction: `Ok` commits it, `Err` and a panic give
/// back what it held. The panic is caught, counted and reported to a hook, and the worker lives on. A
/// worker ends when it is told to, or when the queue is closed and drained. Runs may
/// [push follow-ups](Queue::close) after the close, and the pool ends when all is done.
///
/// # Failed runs
///
/// What a run held that failed or panicked is delivered again after 10 milliseconds, after its second delivery
/// after 20, and so on, up to a second; unless its queue has a [backoff](crate::Builder::backoff), which then
/// decides: `Backoff::fixed(Duration::ZERO)` retries at once, as a bare [`Transaction`](crate::Transaction)
/// does. It is retried without limit, unless the queue has one: see
/// [`max_attempts`](crate::Builder::max_attempts). A run that knows that its item will never do gives it up by
/// [`Transaction::fail`](crate::Transaction::fail).
///
/// [`on_error`](WorkersBuilder::on_error) is told what a run returned or panicked with; the
/// [dead letter](crate::DeadLetter::error) keeps it. Errors are formatted by their `Debug`, as `main` does, and
/// only when a run has failed. A run whose transaction was committed is done, also if a destructor of its
/// items panics then; that panic is caught.
///
/// # Stopping
///
/// Dropping the pool stops it, as [`stop`](Self::stop) does: it waits for the runs that have begun. A pool
/// must not be stopped, joined or dropped by one of its own workers, which would wait for itself.
///
/// ```
/// use requeue::{Queue, Workers};
/// use std::sync::mpsc::channel;
///
/// let queue = Queue::<u32>::unbounded();
/// let (send, done) = channel();
/// let workers = Workers::builder(&queue).threads(2).run(move |job, _tx| send.send(*job * 10));
/// queue.push(1)?;
/// queue.push(2)?;
/// assert_eq!(done.recv()? + done.recv()?, 30);
/// let report = workers.stop();
/// assert_eq!((report.done, report.panicked), (2, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "workers stop when they are dropped"]
pub struct Workers {
    crew: Arc<Crew>,
    /// None of them where a scope joins them.
    threads: Vec<JoinHandle<()>>,
    ended: bool,
}

impl Workers {
    /// Begins to make a pool of workers for a queue, given by reference or by value.
    ///
    /// ```
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// let builder = requeue::Workers::builder(&queue).threads(2);
    /// assert!(format!("{builder:?}").contains("worker"));
    /// ```
    pub fn builder<T, O: Order<T>>(queue: &Queue<T, O>) -> WorkersBuilder<T, O> {
        WorkersBuilder::new(queue.clone())
    }

    pub(super) fn new(crew: Arc<Crew>) -> Self {
        Self {
            crew,
            threads: Vec::new(),
            ended: false,
        }
    }

    pub(super) fn shifts(&self) -> impl Iterator<Item = Shift> {
        let crew = Arc::clone(&self.crew);
        (0..crew.len()).map(move |index| Shift::new(&crew, index))
    }

    pub(super) fn add(&mut self, thread: JoinHandle<()>) {
        self.threads.push(thread);
    }

    /// What each worker does now and has done so far, by their indices.
    ///
    /// ```
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// let workers = requeue::Workers::builder(&queue).threads(2).run(|_, _| Ok::<(), ()>(()));
    /// assert_eq!(workers.status()[1].done, 0);
    /// ```
    pub fn status(&self) -> Vec<WorkerStatus> {
        self.crew.status()
    }

    /// Lets a worker finish its run and take no more until it is resumed. One that is about to take an
    /// item may still do so; [`WorkerState::Paused`] says that it takes none.
    ///
    /// A paused worker does not notice that the queue is closed.
    ///
    /// ```
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// let workers = requeue::Workers::builder(&queue).threads(1).run(|_, _| Ok::<(), ()>(()));
    /// workers.pause(0);
    /// workers.resume(0);
    /// ```
    ///
    /// # Panics
    ///
    /// If there is no worker of that index.
    #[track_caller]
    pub fn pause(&self, index: usize) {
        self.crew.worker(index).tell(Command::Pause);
    }

    /// Lets a paused worker go on.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push(1)?;
    /// queue.close();
    /// let workers = requeue::Workers::builder(&queue).threads(1).run(|_, _| Ok::<(), ()>(()));
    /// workers.pause(0);
    /// workers.resume(0);
    /// assert_eq!(workers.join().done, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If there is no worker of that index.
    #[track_caller]
    pub fn resume(&self, index: usize) {
        self.crew.worker(index).tell(Command::Work);
    }

    /// [`pause`](Self::pause) for all workers.
    ///
    /// ```
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// let workers = requeue::Workers::builder(&queue).run(|_, _| Ok::<(), ()>(()));
    /// workers.pause_all();
    /// workers.resume_all();
    /// ```
    pub fn pause_all(&self) {
        self.crew.tell_all(Command::Pause);
    }

    /// [`resume`](Self::resume) for all workers.
    ///
    /// ```
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// let workers = requeue::Workers::builder(&queue).run(|_, _| Ok::<(), ()>(()));
    /// workers.pause_all();
    /// workers.resume_all();
    /// ```
    pub fn resume_all(&self) {
        self.crew.tell_all(Command::Work);
    }

    /// Waits until the workers have ended by themselves, because the queue is closed and drained.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// let workers = requeue::Workers::builder(&queue).run(|_, _| Ok::<(), ()>(()));
    /// queue.push("last")?;
    /// queue.close();
    /// assert_eq!(workers.join().done, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn join(mut self) -> Report {
        self.end(Duration::MAX)
    }

    /// Tells all workers to stop, and waits until they have finished what they hold. What is ready stays
    /// in the queue.
    ///
    /// ```
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// let workers = requeue::Workers::builder(&queue).run(|_, _| Ok::<(), ()>(()));
    /// assert!(workers.stop().stuck.is_empty());
    /// ```
    pub fn stop(self) -> Report {
        self.shutdown(Duration::MAX)
    }

    /// Tells all workers to stop, and waits for them, but no longer than `timeout`.
    ///
    /// Nobody can take a run away from its thread: workers that have not ended in time are named in
    /// [`Report::stuck`] and left alone. They hold what they hold until their run ends, and end then;
    /// their queue lives so long. From a queue that leases its items, [`Queue::recover`] takes it back.
    /// Those of [`run_scoped`](WorkersBuilder::run_scoped) are joined by their scope even so.
    ///
    /// ```
    /// use requeue::{Queue, Workers};
    /// use std::sync::mpsc::channel;
    /// use std::time::Duration;
    ///
    /// let queue = Queue::unbounded();
    /// let (send, begun) = channel();
    /// let workers = Workers::builder(&queue).threads(1).run(move |_job, _tx| -> Result<(), ()> {
    ///     send.send(()).unwrap();
    ///     loop {
    ///         std::thread::park(); // hangs
    ///     }
    /// });
    /// queue.push("job")?;
    /// begun.recv()?;
    /// assert_eq!(workers.shutdown(Duration::ZERO).stuck.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shutdown(mut self, timeout: Duration) -> Report {
        self.crew.tell_all(Command::Stop);
        self.end(timeout)
    }

    /// Waits for the workers' end, and detaches those that are late.
    fn end(&mut self, timeout: Duration) -> Report {
        self.ended = true;
        self.crew.wait(timeout);
        let report = self.crew.report();
        for (index, thread) in mem::take(&mut self.threads).into_iter().enumerate() {
            if self.crew.worker(index).status().state == WorkerState::Stopped {
                // What its runs panic with was caught; a destructor of the function ends its thread only.
                let _ = thread.join();
            }
        }
        report
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        if !self.ended {
            self.crew.tell_all(Command::Stop);
            self.end(Duration::MAX);
        }
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers")
            .field("status", &self.status())
            .finish()
    }
}
