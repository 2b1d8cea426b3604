//! The methods of queues and handles, in all forms of waiting.

use std::time::Duration;

use futures::executor::block_on;
use requeue::{
    pop_any, pop_any_async, pop_any_timeout, Handle, Order, PopError, PriorityQueue, PushError,
    Queue,
};

const ZERO: Duration = Duration::ZERO;

/// Pushes and pops of a queue, or of the ends of its channel, by shared reference.
macro_rules! verbs {
    ($pusher:expr, $popper:expr) => {{
        let (pusher, popper) = ($pusher, $popper);
        let pushed: Result<(), PushError<u8>> = pusher.push(0);
        pushed.unwrap();
        pusher.push_blocking(1).unwrap();
        pusher.push_timeout(2, ZERO).unwrap();
        block_on(pusher.push_async(3)).unwrap();
        let pushed: Result<usize, PushError<Vec<u8>>> = pusher.push_batch([4, 5]);
        assert_eq!(pushed, Ok(2));
        pusher.push_batch_blocking([6]).unwrap();
        pusher.push_batch_timeout([7], ZERO).unwrap();
        block_on(pusher.push_batch_async([8])).unwrap();
        let popped: Result<u8, PopError> = popper.pop();
        popped.unwrap();
        popper.pop_blocking().unwrap();
        popper.pop_timeout(ZERO).unwrap();
        block_on(popper.pop_async()).unwrap();
        let mut items = Vec::new();
        assert_eq!(popper.pop_batch(1, &mut items), 1);
        assert_eq!(popper.pop_batch_blocking(1, 1, &mut items), 1);
        assert_eq!(popper.pop_batch_timeout(1, 2, &mut items, ZERO), 2);
        let popped: usize = block_on(popper.pop_batch_timeout_async(1, 0, &mut items, ZERO));
        assert_eq!(popped, 0);
        let popped: usize = block_on(popper.pop_batch_async(1, 8, &mut items));
        assert_eq!((popped, items.len()), (1, 5));
    }};
}

fn verbs_of<O: Order<u8>>(queue: &Queue<u8, O>) {
    verbs!(queue, queue);
    verbs!(&mut queue.handle(), &mut queue.handle());
}

#[test]
fn queues_and_handles_have_all_verbs() {
    verbs_of(&Queue::bounded(20));
    verbs_of(&Queue::builder().fair_by(|item| item % 2).build());
    verbs_of(&PriorityQueue::by_priority());
    verbs_of(&Queue::builder().leased(Duration::MAX).build());
    let (sender, receiver) = requeue::channel::bounded(20);
    verbs!(&sender, &receiver);
}

#[test]
fn handles_peek_and_transact() {
    let queue = Queue::unbounded();
    let mut handle: Handle<u8> = queue.named_handle("worker");
    handle.push(1).unwrap();
    assert_eq!(handle.peek_with(|item| *item), Ok(1));
    assert_eq!(handle.transact(|tx| tx.pop().map(|item| *item)), Ok(1));
    assert_eq!(handle.try_transact(|_| Ok::<_, requeue::Expired>(2)), Ok(2));
    assert_eq!(handle.clone().name(), Some("worker"));
    assert!(handle.queue().same_queue(&queue));
    drop(handle.begin());
}

#[cfg(feature = "stream")]
#[test]
fn handles_are_streams_and_sinks() {
    use futures::{SinkExt, StreamExt};
    use requeue::stream::{PopStream, PushSink};
    let queue: Queue<u8> = Queue::unbounded();
    let mut handle = queue.handle();
    block_on(async {
        let mut sink: PushSink<u8, requeue::Fifo, &mut Handle<u8>> = handle.sink();
        sink.send(1).await.unwrap();
        drop(sink);
        let mut stream: PopStream<u8, requeue::Fifo, &mut Handle<u8>> = handle.stream();
        assert_eq!(stream.next().await, Some(1));
        drop(stream);
        let mut sink: PushSink<u8> = queue.handle().into_sink();
        sink.send(2).await.unwrap();
        let mut stream: PopStream<u8> = handle.into_stream();
        assert_eq!(stream.next().await, Some(2));
    });
}

#[test]
fn the_first_of_several_queues_is_popped() {
    let queues = [Queue::unbounded(), Queue::unbounded()];
    queues[1].push_batch([1, 2, 3]).unwrap();
    let [mut a, mut b] = [queues[0].handle(), queues[1].handle()];
    let mut handles = [&mut a, &mut b];
    assert_eq!(pop_any(&mut handles), Ok((1, 1)));
    assert_eq!(pop_any_timeout(&mut handles, ZERO), Ok((1, 2)));
    assert_eq!(block_on(pop_any_async(&mut handles)), Ok((1, 3)));
}
