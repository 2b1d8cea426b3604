//! Handles as streams and sinks.

use std::borrow::BorrowMut;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::thread;

use crate::common::drain;
use crate::common::ends;
use crate::common::futures::{block_on, Task};
use futures::{future, stream, Sink, SinkExt, Stream, StreamExt};
use requeue::stream::{PopStream, PushSink};
use requeue::{Fifo, Handle, PopError, PushError, Queue};

const fn on_any_thread<T: Send + Unpin>() {}
type Cell = std::cell::Cell<u8>;
const _: () = on_any_thread::<PopStream<Cell>>();
const _: () = on_any_thread::<PushSink<Cell>>();
const _: () = on_any_thread::<PopStream<Cell, Fifo, &mut Handle<Cell>>>();
const _: () = on_any_thread::<PushSink<Cell, Fifo, &mut Handle<Cell>>>();

/// Polls a sink for a permit, once; `true` if it has one.
fn asks<H: BorrowMut<Handle<u32>>>(sink: &mut PushSink<u32, Fifo, H>) -> bool {
    let mut ready = Task::new(future::poll_fn(|context: &mut Context<'_>| {
        Pin::new(&mut *sink).poll_ready(context)
    }));
    ready.poll().is_ready()
}

#[test]
fn a_stream_yields_until_the_end() {
    let queue = Queue::unbounded();
    let mut handle = queue.handle();
    handle.push_batch(0..5).unwrap();
    queue.close();
    assert!(block_on(handle.stream().collect::<Vec<_>>())
        .into_iter()
        .eq(0..5));
    assert_eq!(block_on(handle.stream().next()), None);
}

#[test]
fn a_stream_that_has_nothing_waits() {
    let queue = Queue::unbounded();
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let mut stream = a.stream();
    let mut first = Task::waiting(stream.next());
    let second = Task::waiting(b.pop_async());
    queue.push(1).unwrap();
    assert_eq!((first.rings(), second.rings()), (1, 0));
    assert_eq!(first.output(), Some(1));
    drop(first);
    let mut next = Task::waiting(stream.next());
    queue.push(2).unwrap();
    assert_eq!((second.rings(), next.rings()), (1, 0));
    queue.close();
    queue.pop().unwrap();
    assert!(next.was_woken());
    assert_eq!(next.output(), None);
}

#[test]
fn a_stream_ends_with_the_last_transaction() {
    let queue = Queue::unbounded();
    queue.push(1).unwrap();
    let (mut holder, mut handle) = (queue.handle(), queue.handle());
    let tx = holder.begin();
    tx.pop().unwrap();
    queue.close();
    let mut stream = handle.stream();
    let mut next = Task::waiting(stream.next());
    tx.commit();
    assert!(next.was_woken());
    assert_eq!(next.output(), None);
}

#[test]
fn a_dropped_stream_passes_its_wake_up_on() {
    let queue = Queue::unbounded();
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let mut stream = a.stream();
    drop(Task::waiting(stream.next()));
    let mut second = Task::waiting(b.pop_async());
    queue.push(1).unwrap();
    drop(stream);
    assert_eq!((second.was_woken(), second.output()), (true, Ok(1)));
}

#[test]
fn a_sink_takes_what_fits() {
    let queue = Queue::bounded(2);
    let mut handle = queue.handle();
    let mut sink = handle.sink();
    for item in 0..2 {
        assert_eq!(Task::new(sink.send(item)).output(), Ok(()));
    }
    assert_eq!(queue.len(), 2);
    let mut waiting = Task::waiting(sink.send(2));
    assert_eq!(queue.pop(), Ok(0));
    assert_eq!((waiting.rings(), waiting.output()), (1, Ok(())));
    assert_eq!(drain(&queue), [1, 2]);
}

#[test]
fn a_sink_that_is_ready_has_room_whatever_others_do() {
    let queue = Queue::bounded(2);
    let mut handle = queue.handle();
    let mut sink = handle.sink();
    assert!(asks(&mut sink));
    assert!(asks(&mut sink), "it is the same permit");
    assert_eq!(queue.push(1), Ok(()));
    assert_eq!(queue.push(2), Err(PushError::Full(2)));
    assert_eq!(Pin::new(&mut sink).start_send(3), Ok(()));
    assert!(!asks(&mut sink));
    drop(sink);
    let mut left = drain(&queue);
    left.sort_unstable();
    assert_eq!(left, [1, 3]);
}

#[test]
fn a_dropped_sink_gives_its_permit_back() {
    let queue = Queue::bounded(1);
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let mut sink = a.sink();
    assert!(asks(&mut sink));
    let mut other = Task::waiting(b.push_async(1));
    drop(sink);
    assert_eq!((other.rings(), other.output()), (1, Ok(())));
}

#[test]
fn a_forgotten_sink_gives_its_permit_back_when_its_handle_is_used() {
    let uses: [fn(requeue::Handle<u32>); 2] = [drop, |mut handle| drop(handle.begin())];
    for use_again in uses {
        let queue = Queue::bounded(1);
        let mut handle = queue.handle();
        let mut sink = handle.sink();
        assert!(asks(&mut sink));
        std::mem::forget(sink);
        assert_eq!(queue.push(1), Err(PushError::Full(1)));
        use_again(handle);
        assert_eq!(queue.push(1), Ok(()));
    }
}

#[test]
fn a_dropped_sink_passes_its_wake_up_on() {
    let queue = Queue::bounded(1);
    queue.push(0).unwrap();
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let mut sink = a.sink();
    assert!(!asks(&mut sink));
    let mut other = Task::waiting(b.push_async(1));
    queue.pop().unwrap();
    drop(sink);
    assert_eq!((other.was_woken(), other.output()), (true, Ok(())));
}

#[test]
fn a_sink_of_a_closed_queue_gives_the_item_back() {
    let queue = Queue::bounded(1);
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let mut ready = a.sink();
    assert!(asks(&mut ready));
    let mut late = b.sink();
    let mut waiting = Task::waiting(late.send(1));
    queue.close();
    assert!(waiting.was_woken());
    assert_eq!(waiting.output(), Err(PushError::Closed(1)));
    let refused = Pin::new(&mut ready).start_send(2);
    assert_eq!(refused, Err(PushError::Closed(2)));
    drop((waiting, ready));
    assert_eq!(queue.pop(), Err(PopError::Closed));
}

#[test]
fn from_sinks_to_streams() {
    for capacity in [1, 2, 8] {
        ends(move || {
            let queue = Queue::bounded(capacity);
            let mut received = thread::scope(|scope| {
                let producers = [0, 1].map(|number| {
                    let mut handle = queue.handle();
                    scope.spawn(move || {
                        let numbers = number * 300..(number + 1) * 300;
                        let mut items = stream::iter(numbers).map(Ok);
                        block_on(handle.sink().send_all(&mut items)).unwrap();
                    })
                });
                let consumers = [(); 2].map(|()| {
                    let mut handle = queue.handle();
                    scope.spawn(move || block_on(handle.stream().collect::<Vec<u32>>()))
                });
                for producer in producers {
                    producer.join().unwrap();
                }
                queue.close();
                consumers.map(|consumer| consumer.join().unwrap()).concat()
            });
            received.sort_unstable();
            assert!(received.into_iter().eq(0..600));
        });
    }
}

/// Both traits, called directly.
#[test]
fn the_traits_themselves() {
    let queue = Queue::bounded(4);
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let (mut sink, mut stream) = (a.sink(), b.stream());
    let waker = Waker::from(std::sync::Arc::new(Nobody));
    let context = &mut Context::from_waker(&waker);
    assert!(Pin::new(&mut stream).poll_next(context).is_pending());
    assert_eq!(Pin::new(&mut sink).poll_ready(context), Poll::Ready(Ok(())));
    assert_eq!(Pin::new(&mut sink).start_send(1), Ok(()));
    assert_eq!(Pin::new(&mut sink).poll_flush(context), Poll::Ready(Ok(())));
    assert_eq!(
        Pin::new(&mut stream).poll_next(context),
        Poll::Ready(Some(1))
    );
}

struct Nobody;

impl std::task::Wake for Nobody {
    fn wake(self: std::sync::Arc<Self>) {}
}
