//! A pool of threads that run jobs at their times.

use requeue::{Clock, Queue, Ticket};
use std::mem;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

type Job = Box<dyn FnOnce() + Send>;

/// What becomes of the jobs that are not due when the pool is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AtDrop {
    /// They run at their times; repeated jobs end. The drop waits for them.
    Complete,
    /// They are dropped.
    Discard,
}

/// Threads that run jobs. A job that panics ends alone.
pub(crate) struct Pool {
    queue: Queue<Job>,
    threads: Vec<JoinHandle<()>>,
    at_drop: AtDrop,
}

impl Pool {
    pub(crate) fn new(threads: usize, at_drop: AtDrop, clock: impl Clock) -> Self {
        let queue: Queue<Job> = Queue::builder().clock(clock).build();
        let start = |_| {
            let queue = queue.clone();
            thread::spawn(move || {
                let mut handle = queue.handle();
                while let Ok(job) = handle.pop_blocking() {
                    // A job is gone once it has begun: to run it twice would be worse than not to run it.
                    let _ = panic::catch_unwind(AssertUnwindSafe(job));
                }
            })
        };
        Self {
            threads: (0..threads).map(start).collect(),
            queue,
            at_drop,
        }
    }

    /// Runs a job as soon as a thread is free.
    pub(crate) fn execute(&self, job: impl FnOnce() + Send + 'static) {
        self.queue.push(Box::new(job)).expect("the pool is open");
    }

    /// Runs a job after this time.
    pub(crate) fn execute_after(
        &self,
        delay: Duration,
        job: impl FnOnce() + Send + 'static,
    ) -> Scheduled {
        let ticket = self.queue.after(delay).push(Box::new(job));
        Scheduled::Once(ticket.expect("the pool is open"))
    }

    /// Runs a job after this time, and again each `interval` after that.
    pub(crate) fn execute_every(
        &self,
        delay: Duration,
        interval: Duration,
        job: impl FnMut() + Send + 'static,
    ) -> Scheduled {
        let repeated = Arc::new(Repeated {
            queue: self.queue.clone(),
            next: Mutex::new(Next::Running),
        });
        repeated.plan(self.queue.now() + delay, interval, job);
        Scheduled::Repeated(repeated)
    }

    /// Drops a job, with what it captures, unless it is running; then it is not repeated.
    pub(crate) fn cancel(&self, job: &Scheduled) {
        let ticket = match job {
            Scheduled::Once(ticket) => Some(*ticket),
            Scheduled::Repeated(repeated) => repeated.cancel(),
        };
        drop(ticket.and_then(|ticket| self.queue.cancel(ticket)));
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if self.at_drop == AtDrop::Discard {
            self.queue.close_now();
        } else {
            self.queue.close();
        }
        for thread in self.threads.drain(..) {
            thread.join().expect("the panics of jobs are caught");
        }
    }
}

/// A job that can be cancelled.
pub(crate) enum Scheduled {
    Once(Ticket),
    Repeated(Arc<Repeated>),
}

pub(crate) struct Repeated {
    queue: Queue<Job>,
    next: Mutex<Next>,
}

/// The next run of a repeated job.
enum Next {
    At(Ticket),
    Running,
    Cancelled,
}

impl Repeated {
    fn cancel(&self) -> Option<Ticket> {
        match mem::replace(&mut *self.next.lock().unwrap(), Next::Cancelled) {
            Next::At(ticket) => Some(ticket),
            Next::Running | Next::Cancelled => None,
        }
    }

    /// Plans the next run, unless it was cancelled.
    fn plan(
        self: &Arc<Self>,
        at: Instant,
        interval: Duration,
        mut job: impl FnMut() + Send + 'static,
    ) {
        let this = Arc::clone(self);
        let run = Box::new(move || {
            job();
            this.plan(at + interval, interval, job);
        });
        // The run may begin before the lock is released: it does not take it before it has ended.
        let mut next = self.next.lock().unwrap();
        if let Next::Cancelled = *next {
            return;
        }
        if let Ok(ticket) = self.queue.at(at).push(run) {
            *next = Next::At(ticket); // otherwise the pool was dropped
        }
    }
}
