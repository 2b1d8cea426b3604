//! Handles as streams and sinks.

use super::{directory, open};
use futures::executor::block_on;
use futures::{join, FutureExt, SinkExt, StreamExt};
use requeue_durable::{DurableQueue, PushError};
use std::thread;

#[test]
fn a_stream_yields_what_is_off_the_disk_and_ends() {
    let directory = directory();
    let store = open(&directory);
    let numbers: DurableQueue<u32> = store.queue("numbers").unwrap();
    numbers.push_batch(0..3).unwrap();
    let mut two = numbers.handle().into_stream().take(2).boxed();
    assert_eq!(block_on(two.next()).unwrap().unwrap(), 0);
    assert_eq!(block_on(two.next()).unwrap().unwrap(), 1);
    drop((two, numbers, store));
    let store = open(&directory);
    let numbers: DurableQueue<u32> = store.queue("numbers").unwrap();
    numbers.close().unwrap();
    let mut handle = numbers.handle();
    let mut rest = handle.stream();
    assert_eq!(block_on(rest.next()).unwrap().unwrap(), 2);
    assert!(block_on(rest.next()).is_none());
    assert!(block_on(rest.next()).is_none());
}

#[test]
fn a_dropped_stream_loses_nothing() {
    let directory = directory();
    let numbers: DurableQueue<u32> = open(&directory).queue("numbers").unwrap();
    let mut handle = numbers.handle();
    let mut stream = handle.stream();
    assert!(stream.next().now_or_never().is_none());
    numbers.push(1).unwrap();
    drop(stream);
    assert_eq!(handle.pop().unwrap(), 1);
}

#[test]
fn a_sink_waits_for_room_and_gives_refused_items_back() {
    let directory = directory();
    let store = open(&directory);
    let numbers = store.builder::<u32>("numbers").capacity(1).build().unwrap();
    let mut sink = numbers.handle().into_sink();
    block_on(async {
        sink.send(1).await.unwrap();
        let (sent, popped) = join!(sink.send(2), numbers.pop_async());
        sent.unwrap();
        assert_eq!(popped.unwrap(), 1);
    });
    // What is sent is on the disk.
    drop((sink, numbers, store));
    let store = open(&directory);
    let numbers: DurableQueue<u32> = store.queue("numbers").unwrap();
    let mut handle = numbers.handle();
    let mut sink = handle.sink();
    numbers.close().unwrap();
    let refused = block_on(sink.send(3)).unwrap_err();
    assert!(matches!(refused, PushError::Closed(3)));
    assert!(block_on(sink.send(4)).is_err());
    drop(sink);
    assert_eq!(handle.pop().unwrap(), 2);
}

#[test]
fn a_stream_can_be_sent() {
    let directory = directory();
    let numbers: DurableQueue<u32> = open(&directory).queue("numbers").unwrap();
    let stream = numbers.handle().into_stream();
    let sum =
        thread::spawn(|| block_on(stream.fold(0, |sum, item| async move { sum + item.unwrap() })));
    let items = futures::stream::iter(1..=3).map(Ok);
    block_on(items.forward(numbers.handle().into_sink())).unwrap();
    numbers.close().unwrap();
    assert_eq!(sum.join().unwrap(), 6);
}
