//! Futures that a test polls by hand, so that tests do not depend on a scheduler.

use std::fmt::Debug;
use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// The target of a waker; it counts wake-ups.
#[derive(Default)]
pub(crate) struct Bell {
    rings: AtomicUsize,
    /// Whether each wake-up panics after it was counted.
    breaks: bool,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rings.fetch_add(1, Ordering::SeqCst);
        if self.breaks {
            resume_unwind(Box::new("the waker fails"));
        }
    }
}

/// A future with the bell of its waker.
pub(crate) struct Task<F> {
    future: F,
    bell: Arc<Bell>,
}

impl<F: Future + Unpin> Task<F> {
    pub(crate) fn new(future: F) -> Self {
        let bell = Arc::default();
        Self { future, bell }
    }

    /// A task that has been polled once and is pending.
    pub(crate) fn waiting(future: F) -> Self
    where
        F::Output: Debug,
    {
        let mut task = Self::new(future);
        task.assert_waits();
        task
    }

    /// A pending task with a waker that panics.
    pub(crate) fn waiting_with_bomb(future: F) -> Self
    where
        F::Output: Debug,
    {
        let mut task = Self::new(future);
        task.break_bell();
        task.assert_waits();
        task
    }

    /// From now on the future is polled with a waker that panics.
    pub(crate) fn break_bell(&mut self) {
        self.bell = Arc::new(Bell {
            breaks: true,
            ..Bell::default()
        });
    }

    pub(crate) fn poll(&mut self) -> Poll<F::Output> {
        let waker = Waker::from(Arc::clone(&self.bell));
        Pin::new(&mut self.future).poll(&mut Context::from_waker(&waker))
    }

    /// Polls the future, which must not be ready.
    #[track_caller]
    pub(crate) fn assert_waits(&mut self)
    where
        F::Output: Debug,
    {
        if let Poll::Ready(output) = self.poll() {
            panic!("ready with {output:?}");
        }
    }

    /// Polls the future, which must be ready.
    #[track_caller]
    pub(crate) fn output(&mut self) -> F::Output {
        match self.poll() {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("not ready after {} rings", self.rings()),
        }
    }

    /// Number of wake-ups of the task.
    pub(crate) fn rings(&self) -> usize {
        self.bell.rings.load(Ordering::SeqCst)
    }

    pub(crate) fn was_woken(&self) -> bool {
        self.rings() > 0
    }

    /// Resets the count, with a new waker; the future gets it at the next poll.
    pub(crate) fn renew_waker(&mut self) -> Arc<Bell> {
        std::mem::take(&mut self.bell)
    }

    /// Leaks the future, and nothing else.
    pub(crate) fn forget(self) -> Arc<Bell> {
        std::mem::forget(self.future);
        self.bell
    }
}

impl Bell {
    pub(crate) fn rings(&self) -> usize {
        self.rings.load(Ordering::SeqCst)
    }
}

/// Polls a future once.
pub(crate) fn poll_once<F: Future + Unpin>(future: F) -> Poll<F::Output> {
    Task::new(future).poll()
}

/// The indices of the tasks that were woken.
pub(crate) fn woken<F: Future + Unpin>(tasks: &[Task<F>]) -> Vec<usize> {
    let places = 0..tasks.len();
    places.filter(|&place| tasks[place].was_woken()).collect()
}

/// Number of wake-ups of all tasks.
pub(crate) fn all_rings<F: Future + Unpin>(tasks: &[Task<F>]) -> usize {
    tasks.iter().map(Task::rings).sum()
}

struct Parker(Thread);

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// A single-task executor: the thread sleeps until the task is woken.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = Box::pin(future);
    let waker = Waker::from(Arc::new(Parker(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        thread::park();
    }
}

/// A task that is polled at once, on the thread that wakes it.
pub(crate) struct Eager<R> {
    output: Mutex<Option<R>>,
    future: Mutex<Pin<Box<dyn Future<Output = R> + Send>>>,
}

impl<R: Clone + Send + 'static> Eager<R> {
    /// Creates such a task, and polls it once.
    pub(crate) fn new(future: impl Future<Output = R> + Send + 'static) -> Arc<Self> {
        let eager = Arc::new(Self {
            output: Mutex::new(None),
            future: Mutex::new(Box::pin(future)),
        });
        Arc::clone(&eager).wake();
        eager
    }

    /// The output if the task is ready.
    pub(crate) fn output(&self) -> Option<R> {
        self.output.lock().unwrap().clone()
    }
}

impl<R: Clone + Send + 'static> Wake for Eager<R> {
    fn wake(self: Arc<Self>) {
        if self.output().is_some() {
            return;
        }
        let waker = Waker::from(Arc::clone(&self));
        let mut future = self.future.lock().unwrap();
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            *self.output.lock().unwrap() = Some(output);
        }
    }
}
