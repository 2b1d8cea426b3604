//! A handle as a stream of items, and as a sink for them: feature `stream`.

use crate::core::put::Put;
use crate::core::CellOf;
use crate::order::Order;
use crate::wait::WakeTarget;
use crate::{Fifo, Handle, PushError};
use futures_core::stream::{FusedStream, Stream};
use futures_sink::Sink;
use std::borrow::BorrowMut;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{ready, Context, Poll};

/// Feature `stream`.
impl<T, O: Order<T>> Handle<T, O> {
    /// The items of the queue as a stream, which ends when the queue is closed and drained. It borrows the handle;
    /// [`into_stream`](Self::into_stream) owns it.
    ///
    /// ```
    /// use futures::StreamExt;
    /// # futures::executor::block_on(async {
    /// let queue = requeue::Queue::unbounded();
    /// queue.handle().push_batch([1, 2])?;
    /// queue.close();
    /// assert_eq!(queue.handle().stream().collect::<Vec<_>>().await, [1, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub fn stream(&mut self) -> PopStream<T, O, &mut Self> {
        PopStream(Waiting::new(self))
    }

    /// As [`stream`](Self::stream), but owns the handle: the stream may be stored, sent, and moved into a task.
    ///
    /// ```
    /// use futures::stream::{BoxStream, StreamExt};
    /// # futures::executor::block_on(async {
    /// let queue = requeue::Queue::unbounded();
    /// queue.push("job")?;
    /// let mut jobs: BoxStream<'static, _> = queue.handle().into_stream().boxed();
    /// assert_eq!(jobs.next().await, Some("job"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub fn into_stream(self) -> PopStream<T, O> {
        PopStream(Waiting::new(self))
    }

    /// A sink that pushes its items, and waits for room. It borrows the handle; [`into_sink`](Self::into_sink) owns
    /// it.
    ///
    /// ```
    /// use futures::SinkExt;
    /// # futures::executor::block_on(async {
    /// let queue = requeue::Queue::bounded(2);
    /// queue.handle().sink().send("job").await?;
    /// assert_eq!(queue.pop()?, "job");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub fn sink(&mut self) -> PushSink<T, O, &mut Self> {
        PushSink(Waiting::new(self))
    }

    /// As [`sink`](Self::sink), but owns the handle: the sink may be stored, sent, and moved into a task.
    ///
    /// ```
    /// use futures::{SinkExt, StreamExt};
    /// # futures::executor::block_on(async {
    /// let queue = requeue::Queue::bounded(2);
    /// let jobs = futures::stream::iter(["a", "b"]).map(Ok);
    /// jobs.forward(queue.handle().into_sink()).await?;
    /// assert_eq!(queue.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub fn into_sink(self) -> PushSink<T, O> {
        PushSink(Waiting::new(self))
    }
}

/// The items of a queue as a stream, from [`Handle::stream`] or [`Handle::into_stream`].
///
/// Each item is popped, and the pop committed, when the stream yields it. It ends when the queue is closed and
/// drained. Cancel safe, as [`Handle::pop_async`] is.
#[must_use = "a stream does nothing unless it is polled"]
pub struct PopStream<T, O: Order<T> = Fifo, H: BorrowMut<Handle<T, O>> = Handle<T, O>>(
    Waiting<T, O, H>,
);

impl<T, O: Order<T>, H: BorrowMut<Handle<T, O>>> Stream for PopStream<T, O, H> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let local = self.0.cell().get_mut();
        let poll = local.poll_pop(&WakeTarget::task(context.waker()));
        self.0.flag |= matches!(poll, Poll::Ready(Err(_)));
        poll.map(Result::ok)
    }
}

impl<T, O: Order<T>, H: BorrowMut<Handle<T, O>>> FusedStream for PopStream<T, O, H> {
    fn is_terminated(&self) -> bool {
        self.0.flag
    }
}

/// A sink that pushes into a queue, from [`Handle::sink`] or [`Handle::into_sink`].
///
/// It is ready when it has a permit for an item, which it keeps until it pushes or is dropped, or when the queue is
/// closed; where items have [weights](crate::Builder::weigh), when one unit is free. Items are pushed, and ready for others, at once: there is nothing to flush. Closing the sink does not
/// close the queue.
///
/// Its errors are those of [`Handle::push`], which give the item back.
#[must_use = "a sink does nothing unless it is fed"]
pub struct PushSink<T, O: Order<T> = Fifo, H: BorrowMut<Handle<T, O>> = Handle<T, O>>(
    Waiting<T, O, H>,
);

impl<T, O: Order<T>, H: BorrowMut<Handle<T, O>>> Sink<T> for PushSink<T, O, H> {
    type Error = PushError<T>;

    fn poll_ready(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), PushError<T>>> {
        if !self.0.flag {
            let wake_target = WakeTarget::task(context.waker());
            ready!(self.0.cell().get_mut().poll_reserve(&wake_target));
            self.0.flag = true;
        }
        Poll::Ready(Ok(()))
    }

    /// It may find the queue full unless [`poll_ready`](Sink::poll_ready) was ready before. Even then, an item of a
    /// [`FairQueue`](crate::FairQueue) is refused if its key is at its [limit](crate::Builder::key_capacity), and one with a
    /// [weight](crate::Builder::weigh) if there is no room for that.
    fn start_send(mut self: Pin<&mut Self>, item: T) -> Result<(), PushError<T>> {
        self.0.flag = false;
        let local = self.0.cell().get_mut();
        local.put(item, Put::Publish, (Default::default(), ()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), PushError<T>>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), PushError<T>>> {
        Poll::Ready(Ok(()))
    }
}

/// A handle that waits until this is dropped.
struct Waiting<T, O: Order<T>, H: BorrowMut<Handle<T, O>>> {
    handle: H,
    /// Of a stream: it has ended. Of a sink: it has a permit.
    flag: bool,
    items: PhantomData<fn(T) -> (T, O)>,
}

impl<T, O: Order<T>, H: BorrowMut<Handle<T, O>>> Waiting<T, O, H> {
    fn new(mut handle: H) -> Self {
        handle.borrow_mut().cell().begin_waiting();
        let (flag, items) = (false, PhantomData);
        Self {
            handle,
            flag,
            items,
        }
    }

    fn cell(&mut self) -> &mut CellOf<T, O> {
        self.handle.borrow_mut().cell()
    }
}

/// Nothing in it is pinned.
impl<T, O: Order<T>, H: BorrowMut<Handle<T, O>>> Unpin for Waiting<T, O, H> {}

impl<T, O: Order<T>, H: BorrowMut<Handle<T, O>>> Drop for Waiting<T, O, H> {
    fn drop(&mut self) {
        self.cell().end_waiting();
    }
}

debug_struct!([T, O: Order<T>, H: BorrowMut<Handle<T, O>>] PopStream<T, O, H>);

debug_struct!([T, O: Order<T>, H: BorrowMut<Handle<T, O>>] PushSink<T, O, H>);
