//! Calls of threads and of tasks, which are written once.

use requeue::Wait;
use std::future::Future;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Who makes a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Caller {
    /// A thread, which the call blocks while it waits.
    Thread(Wait),
    /// A task, whose future waits.
    Task,
}

/// A call of the queue in memory: of a thread it has ended, that of a task is a future.
pub(crate) enum Call<R, F> {
    Ended(R),
    Pends(F),
}

impl<R, F: Future<Output = R>> Call<R, F> {
    pub(crate) async fn end(self) -> R {
        match self {
            Self::Ended(result) => result,
            Self::Pends(future) => future.await,
        }
    }
}

/// Makes a call of the queue in memory by the form of its verb for the caller.
macro_rules! call {
    ($caller:expr, $on:ident.[$waiting:ident $task:ident]($($argument:expr),*)) => {
        match $caller {
            Caller::Thread(wait) => Call::Ended($on.$waiting($($argument,)* wait)),
            Caller::Task => Call::Pends($on.$task($($argument),*)),
        }
    };
}

pub(crate) use call;

/// The output of the future of a thread's call, which is ready when it is polled.
#[inline]
pub(crate) fn now<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("a call of a thread blocks it, and no future"),
    }
}

/// Runs code of users whose panics are ignored.
pub(crate) fn swallow_panic(call: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(call));
}
