//! A handle as a stream of items, and as a sink for them: feature `stream`.

use crate::error::{yielded, PopError, PushError, StoreError};
use crate::order::Order;
use crate::{Fifo, Handle};
use futures_core::stream::{FusedStream, Stream};
use futures_sink::Sink;
use std::borrow::BorrowMut;
use std::future::Future;
use std::marker::PhantomData;
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
        PopStream(Calls::new(self))
    }

    /// As [`stream`](Self::stream), but owns the handle: the stream may be stored, sent, and moved into a task.
    pub fn into_stream(self) -> PopStream<'static, T, O> {
        PopStream(Calls::new(self))
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
        PushSink(Calls::new(self))
    }

    /// As [`sink`](Self::sink), but owns the handle: the sink may be stored, sent, and moved into a task.
    pub fn into_sink(self) -> PushSink<'static, T, O> {
        PushSink(Calls::new(self))
    }
}

type Call<'h, H, R> = Pin<Box<dyn Future<Output = (H, R)> + Send + 'h>>;

/// A handle, or a call that has it and gives it back; neither after the end.
struct Calls<'h, O, H, R> {
    handle: Option<H>,
    call: Option<Call<'h, H, R>>,
    order: PhantomData<fn() -> O>,
}

impl<O, H, R> Calls<'_, O, H, R> {
    fn new(handle: H) -> Self {
        Self {
            handle: Some(handle),
            call: None,
            order: PhantomData,
        }
    }

    /// Ready with the result of the call that runs; `None` if none does.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<R>> {
        let Some(call) = &mut self.call else {
            return Poll::Ready(None);
        };
        let (handle, result) = ready!(call.as_mut().poll(context));
        (self.handle, self.call) = (Some(handle), None);
        Poll::Ready(Some(result))
    }
}

/// Nothing in it is pinned.
impl<O, H, R> Unpin for Calls<'_, O, H, R> {}

/// The items of a queue as a stream, from [`Handle::stream`] or [`Handle::into_stream`].
///
/// Each item is popped in a commit of its own, which is on the disk when the stream yields it; batches are faster. The stream
/// ends when the queue is closed and drained, and after an error. Dropping it while it waits gives an item back, or leaves its
/// commit to the log, as [`Handle::pop_async`] does.
#[must_use = "a stream does nothing unless it is polled"]
pub struct PopStream<'h, T: Send + 'static, O: Order<T> = Fifo, H = Handle<T, O>>(
    Calls<'h, O, H, Result<T, PopError>>,
);

impl<'h, T: Send + 'static, O: Order<T>, H> Stream for PopStream<'h, T, O, H>
where
    H: BorrowMut<Handle<T, O>> + Send + 'h,
{
    type Item = Result<T, StoreError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let calls = &mut self.0;
        if let Some(mut handle) = calls.handle.take() {
            calls.call = Some(Box::pin(async move {
                let popped = handle.borrow_mut().pop_async().await;
                (handle, popped)
            }));
        }
        let popped = ready!(calls.poll(context));
        if !matches!(popped, Some(Ok(_))) {
            calls.handle = None;
        }
        Poll::Ready(popped.and_then(yielded))
    }
}

impl<'h, T: Send + 'static, O: Order<T>, H> FusedStream for PopStream<'h, T, O, H>
where
    H: BorrowMut<Handle<T, O>> + Send + 'h,
{
    fn is_terminated(&self) -> bool {
        self.0.handle.is_none() && self.0.call.is_none()
    }
}

requeue::debug_struct!([T: Send + 'static, O: Order<T>, H] PopStream<'_, T, O, H>);

/// A sink that pushes into a queue, from [`Handle::sink`] or [`Handle::into_sink`].
///
/// Each item is pushed in a commit of its own, and is on the disk when the sink is flushed; batches are faster. Closing the sink
/// does not close the queue. Its errors are those of [`Handle::push_async`], which give the item back; the sink can be used
/// after them. Dropping it before it is flushed drops the last item, or leaves its commit to the log.
#[must_use = "a sink does nothing unless it is fed"]
pub struct PushSink<'h, T: Send + 'static, O: Order<T> = Fifo, H = Handle<T, O>>(
    Calls<'h, O, H, Pushed<T>>,
);

type Pushed<T> = Result<(), PushError<T>>;

impl<'h, T: Send + 'static, O: Order<T>, H> Sink<T> for PushSink<'h, T, O, H>
where
    H: BorrowMut<Handle<T, O>> + Send + 'h,
{
    type Error = PushError<T>;

    fn poll_ready(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Pushed<T>> {
        self.poll_flush(context)
    }

    /// # Panics
    ///
    /// If [`poll_ready`](Sink::poll_ready) was not ready before.
    fn start_send(mut self: Pin<&mut Self>, item: T) -> Pushed<T> {
        let handle = self.0.handle.take();
        let mut handle = handle.expect("`start_send` before `poll_ready` was ready");
        self.0.call = Some(Box::pin(async move {
            let pushed = handle.borrow_mut().push_async(item).await;
            (handle, pushed)
        }));
        Ok(())
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Pushed<T>> {
        let pushed = ready!(self.0.poll(context));
        Poll::Ready(pushed.unwrap_or(Ok(())))
    }

    fn poll_close(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Pushed<T>> {
        self.poll_flush(context)
    }
}

requeue::debug_struct!([T: Send + 'static, O: Order<T>, H] PushSink<'_, T, O, H>);
