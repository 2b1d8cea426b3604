//! Transactions, streams and sinks that own their handle, while they wait.

use std::thread;
use std::time::Duration;

use crate::common::futures::{block_on, Eager, Task};
use crate::common::{drain, ends, filled};
use requeue::{OwnedTransaction, PopError, PushError, Queue};

#[test]
fn an_owned_transaction_waits_in_a_task_of_its_own() {
    let queue = Queue::bounded(2);
    let own = queue.clone();
    let task = Eager::new(async move {
        let tx = own.begin_owned();
        let job = *tx.pop_async().await.unwrap();
        tx.push_async(job + 1).await.unwrap();
        tx.commit().collect::<Vec<u32>>()
    });
    assert_eq!(task.output(), None);
    thread::spawn({
        let queue = queue.clone();
        move || queue.push(1)
    })
    .join()
    .unwrap()
    .unwrap();
    assert_eq!(task.output(), Some(vec![1]));
    assert_eq!(drain(&queue), [2]);
}

#[test]
fn all_forms_of_waiting() {
    let short = Duration::from_nanos(1);
    let queue = filled(1..=3);
    let tx = queue.begin_owned();
    assert_eq!(tx.pop_blocking().as_deref(), Ok(&1));
    assert_eq!(tx.pop_timeout(Duration::MAX).as_deref(), Ok(&2));
    assert_eq!(block_on(tx.pop_async()).as_deref(), Ok(&3));
    assert_eq!(tx.pop_timeout(short).unwrap_err(), PopError::Empty);
    assert_eq!(tx.pop_batch_timeout(1, 2, short).len(), 0);
    tx.commit();
    let queue = Queue::bounded(3);
    let tx = queue.begin_owned();
    assert_eq!(tx.push_blocking(1), Ok(()));
    assert_eq!(tx.push_timeout(2, short), Ok(()));
    assert_eq!(block_on(tx.push_async(3)), Ok(()));
    assert_eq!(tx.push_timeout(4, short), Err(PushError::Full(4)));
    tx.commit();
    assert_eq!(drain(&queue), [1, 2, 3]);
}

#[test]
fn its_end_wakes_waiters() {
    let ways: [fn(OwnedTransaction<u32>); 3] = [
        |tx| drop(tx.commit()),
        OwnedTransaction::abort,
        |mut tx| tx.retry_all_after(Duration::ZERO).unwrap(),
    ];
    for (place, end) in ways.into_iter().enumerate() {
        let queue = Queue::bounded(1);
        queue.push(1).unwrap();
        let tx = queue.begin_owned();
        tx.pop().unwrap();
        let mut push = Task::waiting(queue.push_async(2));
        let mut pop = Task::waiting(queue.pop_async());
        end(tx);
        if place == 0 {
            assert_eq!((push.rings(), push.output()), (1, Ok(())));
        } else {
            assert_eq!((pop.rings(), pop.output()), (1, Ok(1)));
        }
    }
}

#[test]
fn a_pooled_handle_is_in_no_wait_queue() {
    let queue = Queue::unbounded();
    let tx = queue.begin_owned();
    let forgotten = Task::waiting(tx.pop_async()).forget();
    drop(tx);
    let mut waiting = Task::waiting(queue.pop_async());
    queue.push(1).unwrap();
    assert_eq!((forgotten.rings(), waiting.output()), (0, Ok(1)));
}

#[test]
fn a_waker_that_panics_at_the_commit_takes_nothing_with_it() {
    let queue = Queue::unbounded();
    let tx = queue.begin_owned();
    tx.push(1).unwrap();
    let waiting = Task::waiting_with_bomb(queue.pop_async());
    assert_eq!((tx.commit().len(), waiting.rings()), (0, 1));
    drop(waiting);
    let tx = queue.begin_owned();
    assert_eq!((tx.held(), tx.staged()), (0, 0));
    assert_eq!(tx.pop().as_deref(), Ok(&1));
}

#[test]
fn many_tasks_pass_their_deliveries_to_one_that_acknowledges() {
    const ITEMS: usize = 500;
    ends(|| {
        let queue = filled(0..ITEMS);
        queue.close();
        let (sender, receiver) = std::sync::mpsc::channel();
        let takers = [(); 3].map(|()| {
            let (queue, sender) = (queue.clone(), sender.clone());
            thread::spawn(move || {
                block_on(async move {
                    loop {
                        let tx = queue.begin_owned();
                        if tx.pop_async().await.is_err() {
                            return;
                        }
                        sender.send(tx).unwrap();
                    }
                });
            })
        });
        drop(sender);
        let mut acked = Vec::new();
        for (place, tx) in receiver.into_iter().enumerate() {
            if place % 3 != 0 {
                acked.extend(tx.commit());
            }
        }
        for taker in takers {
            taker.join().unwrap();
        }
        acked.sort_unstable();
        assert!(acked.into_iter().eq(0..ITEMS));
    });
}

#[cfg(feature = "stream")]
mod streams {
    use super::*;
    use crate::common::futures::Bell;
    use futures::{stream, FutureExt, SinkExt, Stream, StreamExt};
    use std::future::Future;
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};

    fn on_any_thread<S: Send + 'static>(what: S) -> S {
        what
    }

    #[test]
    fn an_owned_stream_may_be_moved_while_it_waits() {
        let queue = Queue::unbounded();
        let mut stream = on_any_thread(queue.handle().into_stream());
        let mut other = Task::waiting(queue.pop_async());
        let bell = Arc::<Bell>::default();
        let waker = Waker::from(Arc::clone(&bell));
        let context = &mut Context::from_waker(&waker);
        assert!(pin!(&mut stream).poll_next(context).is_pending());
        let mut moved = Box::new(stream);
        queue.handle().push_batch([1, 2]).unwrap();
        assert_eq!((other.output(), bell.rings()), (Ok(1), 1));
        assert_eq!(pin!(&mut *moved).poll_next(context), Poll::Ready(Some(2)));
        assert!(pin!(&mut *moved).poll_next(context).is_pending());
        queue.close();
        assert_eq!(pin!(&mut *moved).poll_next(context), Poll::Ready(None));
    }

    #[test]
    fn an_owned_stream_that_is_dropped_passes_its_wake_up_on() {
        let queue = Queue::unbounded();
        let mut stream = queue.handle().into_stream();
        drop(Task::waiting(stream.next()));
        let mut second = Task::waiting(queue.pop_async());
        queue.push(1).unwrap();
        assert!(!second.was_woken());
        drop(stream);
        assert_eq!((second.was_woken(), second.output()), (true, Ok(1)));
    }

    #[test]
    fn an_owned_sink_keeps_its_permit_until_it_is_dropped() {
        let queue = Queue::bounded(1);
        let mut sink = on_any_thread(queue.handle().into_sink());
        assert!(
            futures::future::poll_fn(|context| sink.poll_ready_unpin(context))
                .now_or_never()
                .is_some()
        );
        let mut sink = Box::new(sink);
        assert!(queue.push(1).unwrap_err().is_full());
        sink.start_send_unpin(2).unwrap();
        assert_eq!(queue.pop(), Ok(2));
        let mut waiting = Task::waiting(Box::pin(async {
            sink.send_all(&mut stream::iter([3, 4]).map(Ok)).await
        }));
        assert_eq!(queue.pop(), Ok(3));
        assert_eq!(waiting.output(), Ok(()));
        assert_eq!(drain(&queue), [4]);
    }

    #[test]
    fn the_handle_goes_with_its_stream_and_its_sink() {
        let queue = Queue::unbounded();
        queue.push(Arc::new(())).unwrap();
        let item = queue.pop().unwrap();
        let (mut sink, stream) = (queue.handle().into_sink(), queue.handle().into_stream());
        assert!(sink.send(Arc::clone(&item)).now_or_never().unwrap().is_ok());
        drop(queue);
        assert_eq!(Arc::strong_count(&item), 2);
        drop((sink, stream));
        assert_eq!(Arc::strong_count(&item), 1);
    }

    /// A future that owns its stream can be spawned on any executor.
    #[test]
    fn a_task_may_own_a_stream() {
        fn spawn(future: impl Future<Output = Vec<u32>> + Send + 'static) -> Vec<u32> {
            thread::spawn(move || block_on(future)).join().unwrap()
        }
        let queue = filled([1, 2]);
        queue.close();
        let stream = queue.handle().into_stream();
        assert_eq!(spawn(async move { stream.collect().await }), [1, 2]);
    }
}
