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

/// What a pop in memory returns.
pub(crate) trait Popped {
    /// How many items it took.
    fn taken(&self) -> usize;
}

impl<R, E> Popped for Result<R, E> {
    fn taken(&self) -> usize {
        usize::from(self.is_ok())
    }
}

impl<E, R: requeue::Order<E>> Popped for requeue::iter::Items<'_, E, R> {
    fn taken(&self) -> usize {
        self.len()
    }
}

/// Pops in memory. Of a queue with pages a thread tries again while an attempt finds nothing, and pages were read since it began;
/// a task waits in memory until there is an item. What is read ahead is counted.
macro_rules! pop {
    ($caller:expr, $local:ident, $on:ident.[$waiting:ident $task:ident]($($argument:expr),*)) => {{
        $local.begin_pop(&[$($argument),*]);
        let popping = match $caller {
            Caller::Task => Call::Pends($on.$task($($argument),*)),
            Caller::Thread(wait) => Call::Ended(loop {
                let before = $local.pages_read();
                let popped = $on.$waiting($($argument,)* wait);
                if popped.taken() > 0 || !$local.has_more(before) {
                    break popped;
                }
            }),
        };
        async move {
            let popped = popping.end().await;
            $local.end_pop(popped.taken())?;
            Ok::<_, crate::StoreError>(popped)
        }
    }};
}

pub(crate) use pop;

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
