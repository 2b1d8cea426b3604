//! A handle as a stream of items, and as a sink for them: feature `stream`.

use crate::error::{PopError, PushError, StoreError};
use crate::order::Order;
use crate::{Fifo, Handle};
use futures_core::stream::{FusedStream, Stream};
use futures_sink::Sink;
use std::borrow::BorrowMut;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::mem;
use std::pin::Pin;
use std::task::{ready, Context, Poll};

/// Feature `stream`.
impl<T: Send + 'static, O: Order<T>> Handle<T, O> {
    /// The items of the queue as a stream, which ends when the queue is closed and drained. It borrows the handle;
    /// [`into_stream`](Self::into_stream) owns it.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// use futures::TryStreamExt;
    ///
    /// # futures::executor::block_on(async {
    /// let jobs = store.queue("jobs")?;
    /// jobs.push_batch([1, 2])?;
    /// jobs.close()?;
    /// assert_eq!(jobs.handle().stream().try_collect::<Vec<_>>().await?, [1, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stream(&mut self) -> PopStream<'_, T, O, &mut Self> {
        PopStream::new(self)
    }

    /// As [`stream`](Self::stream), but owns the handle: the stream may be stored, sent, and moved into a task.
    pub fn into_stream(self) -> PopStream<'static, T, O> {
        PopStream::new(self)
    }

    /// A sink that pushes its items, and waits for room. It borrows the handle; [`into_sink`](Self::into_sink) owns it.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// use futures::SinkExt;
    ///
    /// # futures::executor::block_on(async {
    /// let jobs = store.queue("jobs")?;
    /// jobs.handle().sink().send(1).await?; // on the disk
    /// assert_eq!(jobs.pop()?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sink(&mut self) -> PushSink<'_, T, O, &mut Self> {
        PushSink::new(self)
    }

    /// As [`sink`](Self::sink), but owns the handle: the sink may be stored, sent, and moved into a task.
    pub fn into_sink(self) -> PushSink<'static, T, O> {
        PushSink::new(self)
    }
}

/// A call of a handle, which gives the handle back.
type Call<'h, H, R> = Pin<Box<dyn Future<Output = (H, R)> + Send + 'h>>;

/// A handle, or a call that has it.
enum State<'h, H, R> {
    Rests(H),
    Calls(Call<'h, H, R>),
    Ended,
}

impl<H, R> State<'_, H, R> {
    /// Ready with the result of the call that runs; `None` if none does.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<R>> {
        let Self::Calls(call) = self else {
            return Poll::Ready(None);
        };
        let (handle, result) = ready!(call.as_mut().poll(context));
        *self = Self::Rests(handle);
        Poll::Ready(Some(result))
    }

    /// Takes the handle, if no call has it.
    fn take(&mut self) -> Option<H> {
        match mem::replace(self, Self::Ended) {
            Self::Rests(handle) => Some(handle),
            other => {
                *self = other;
                None
            }
        }
    }
}

/// The items of a queue as a stream, from [`Handle::stream`] or [`Handle::into_stream`].
///
/// Each item is popped in a commit of its own, which is on the disk when the stream yields it; batches are faster. The stream
/// ends when the queue is closed and drained, and after an error. Dropping it while it waits gives an item back, or leaves its
/// commit to the log, as [`Handle::pop_async`] does.
#[must_use = "a stream does nothing unless it is polled"]
pub struct PopStream<'h, T, O: Order<T> = Fifo, H = Handle<T, O>>
where
    T: Send + 'static,
{
    state: State<'h, H, Result<T, PopError>>,
    order: PhantomData<fn() -> O>,
}

impl<T: Send + 'static, O: Order<T>, H> PopStream<'_, T, O, H> {
    fn new(handle: H) -> Self {
        Self {
            state: State::Rests(handle),
            order: PhantomData,
        }
    }
}

/// Nothing in it is pinned.
impl<T: Send + 'static, O: Order<T>, H> Unpin for PopStream<'_, T, O, H> {}

impl<'h, T, O, H> Stream for PopStream<'h, T, O, H>
where
    T: Send + 'static,
    O: Order<T>,
    H: BorrowMut<Handle<T, O>> + Send + 'h,
{
    type Item = Result<T, StoreError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(mut handle) = self.state.take() {
            self.state = State::Calls(Box::pin(async move {
                let popped = handle.borrow_mut().pop_async().await;
                (handle, popped)
            }));
        }
        let popped = match ready!(self.state.poll(context)) {
            Some(Ok(item)) => return Poll::Ready(Some(Ok(item))),
            popped => popped,
        };
        self.state = State::Ended;
        Poll::Ready(match popped {
            Some(Err(PopError::Store(error))) => Some(Err(error)),
            _ => None,
        })
    }
}

impl<'h, T, O, H> FusedStream for PopStream<'h, T, O, H>
where
    T: Send + 'static,
    O: Order<T>,
    H: BorrowMut<Handle<T, O>> + Send + 'h,
{
    fn is_terminated(&self) -> bool {
        matches!(self.state, State::Ended)
    }
}

impl<T: Send + 'static, O: Order<T>, H> fmt::Debug for PopStream<'_, T, O, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PopStream").finish_non_exhaustive()
    }
}

/// A sink that pushes into a queue, from [`Handle::sink`] or [`Handle::into_sink`].
///
/// Each item is pushed in a commit of its own, and is on the disk when the sink is flushed; batches are faster. Closing the sink
/// does not close the queue. Its errors are those of [`Handle::push_async`], which give the item back; the sink can be used
/// after them. Dropping it before it is flushed drops the last item, or leaves its commit to the log.
#[must_use = "a sink does nothing unless it is fed"]
pub struct PushSink<'h, T, O: Order<T> = Fifo, H = Handle<T, O>>
where
    T: Send + 'static,
{
    state: State<'h, H, Result<(), PushError<T>>>,
    order: PhantomData<fn() -> O>,
}

impl<T: Send + 'static, O: Order<T>, H> PushSink<'_, T, O, H> {
    fn new(handle: H) -> Self {
        Self {
            state: State::Rests(handle),
            order: PhantomData,
        }
    }

    /// Ready when the last item is pushed.
    fn poll_push(&mut self, context: &mut Context<'_>) -> Poll<Result<(), PushError<T>>> {
        let pushed = ready!(self.state.poll(context));
        Poll::Ready(pushed.unwrap_or(Ok(())))
    }
}

/// Nothing in it is pinned.
impl<T: Send + 'static, O: Order<T>, H> Unpin for PushSink<'_, T, O, H> {}

impl<'h, T, O, H> Sink<T> for PushSink<'h, T, O, H>
where
    T: Send + 'static,
    O: Order<T>,
    H: BorrowMut<Handle<T, O>> + Send + 'h,
{
    type Error = PushError<T>;

    fn poll_ready(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), PushError<T>>> {
        self.poll_push(context)
    }

    /// # Panics
    ///
    /// If [`poll_ready`](Sink::poll_ready) was not ready before.
    fn start_send(mut self: Pin<&mut Self>, item: T) -> Result<(), PushError<T>> {
        let handle = self.state.take();
        let mut handle = handle.expect("`start_send` before `poll_ready` was ready");
        self.state = State::Calls(Box::pin(async move {
            let pushed = handle.borrow_mut().push_async(item).await;
            (handle, pushed)
        }));
        Ok(())
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), PushError<T>>> {
        self.poll_push(context)
    }

    fn poll_close(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), PushError<T>>> {
        self.poll_push(context)
    }
}

impl<T: Send + 'static, O: Order<T>, H> fmt::Debug for PushSink<'_, T, O, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PushSink").finish_non_exhaustive()
    }
}
