//! A handle as a stream of items, and as a sink for them: feature `stream`.

use crate::core::put::Put;
use crate::core::shared::Shared;
use crate::core::{Local, Port};
use crate::order::Order;
use crate::wait::Waiter;
use crate::{Fifo, PushError};
use futures_core::stream::{FusedStream, Stream};
use futures_sink::Sink;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The items of a queue as a stream, from [`Handle::stream`](crate::Handle::stream).
///
/// Each item is popped, and the pop committed, when the stream gives it out. It ends when the queue is
/// closed and drained. Cancel safe, as [`Handle::pop_async`](crate::Handle::pop_async) is.
#[must_use = "a stream does nothing unless it is polled"]
pub struct PopStream<'h, T, O: Order<T> = Fifo> {
    port: &'h mut Port<T, O>,
    ended: bool,
}

impl<'h, T, O: Order<T>> PopStream<'h, T, O> {
    pub(crate) fn new(port: &'h mut Port<T, O>) -> Self {
        port.begin_waiting();
        Self { port, ended: false }
    }
}

impl<T, O: Order<T>> Stream for PopStream<'_, T, O> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let poll = self
            .port
            .get_mut()
            .poll_pop(&Waiter::task(context.waker()))
            .map(Result::ok);
        if let Poll::Ready(None) = poll {
            self.ended = true;
        }
        poll
    }
}

impl<T, O: Order<T>> FusedStream for PopStream<'_, T, O> {
    fn is_terminated(&self) -> bool {
        self.ended
    }
}

impl<T, O: Order<T>> Drop for PopStream<'_, T, O> {
    fn drop(&mut self) {
        self.port.end_waiting();
    }
}

/// A sink that pushes into a queue, from [`Handle::sink`](crate::Handle::sink).
///
/// It is ready when it has room for an item, which is its own until it pushes or is dropped, or when the
/// queue is closed. What it takes is pushed, and ready for others, at once: there is nothing to flush.
/// Closing the sink does not close the queue.
///
/// Its errors are those of [`Handle::push`](crate::Handle::push), and give the item back.
#[must_use = "a sink does nothing unless it is fed"]
pub struct PushSink<'h, T, O: Order<T> = Fifo> {
    port: &'h mut Port<T, O>,
    ready: bool,
}

impl<'h, T, O: Order<T>> PushSink<'h, T, O> {
    pub(crate) fn new(port: &'h mut Port<T, O>) -> Self {
        port.begin_waiting();
        Self { port, ready: false }
    }
}

impl<T, O: Order<T>> Sink<T> for PushSink<'_, T, O> {
    type Error = PushError<T>;

    fn poll_ready(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), PushError<T>>> {
        if !self.ready {
            let waiter = Waiter::task(context.waker());
            if Local::poll_reserve(&mut self.port.get_mut(), &waiter).is_pending() {
                return Poll::Pending;
            }
            self.ready = true;
        }
        Poll::Ready(Ok(()))
    }

    /// Without a [`poll_ready`](Sink::poll_ready) that was ready it may find the queue full. So may, after one, an
    /// item of a [`FairQueue`](crate::FairQueue) whose key is at its [limit](crate::Builder::key_capacity).
    fn start_send(mut self: Pin<&mut Self>, item: T) -> Result<(), PushError<T>> {
        self.ready = false;
        let local = self.port.get_mut();
        local.put(item, Put::Publish, Shared::register)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), PushError<T>>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), PushError<T>>> {
        Poll::Ready(Ok(()))
    }
}

impl<T, O: Order<T>> Drop for PushSink<'_, T, O> {
    fn drop(&mut self) {
        self.port.end_waiting();
    }
}

impl<T, O: Order<T>> fmt::Debug for PopStream<'_, T, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PopStream").finish_non_exhaustive()
    }
}

impl<T, O: Order<T>> fmt::Debug for PushSink<'_, T, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PushSink").finish_non_exhaustive()
    }
}
