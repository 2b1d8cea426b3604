//! Queues whose items have weights: who waits, what is refused, and user code that fails.

use crate::bounded::weights::weight;
use crate::common::failing::SECOND;
use crate::common::futures::Task;
use crate::common::{assert_at_rest, ends, panics};
use requeue::{commit_all, FairQueue, Handle, ManualClock, PushError, Queue, StorePlace};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// A queue of this capacity, whose items weigh their last digit to base 16.
fn weighed(limit: usize) -> Queue<u64> {
    Queue::builder().weigh(weight).capacity(limit).build()
}

#[test]
fn an_item_is_weighed_once() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let queue = Queue::builder()
        .weigh(move |_: &u64| 1 + counted.fetch_add(1, Ordering::Relaxed) % 2)
        .capacity(3)
        .max_attempts(2)
        .build();
    let mut handle = queue.handle();
    handle.push_batch([1, 2]).unwrap(); // of 1 and 2
    let mut waits = Task::waiting(queue.push_async(3)); // of 1
    assert!(queue.push(4).unwrap_err().is_full()); // of 2
    let tx = handle.begin();
    assert_eq!(*tx.pop().unwrap(), 1);
    tx.abort();
    assert_eq!(queue.weight(), 3);
    assert_eq!(queue.pop(), Ok(1));
    assert_eq!(waits.poll(), Poll::Ready(Ok(())));
    assert_eq!((queue.weight(), calls.load(Ordering::Relaxed)), (3, 4));
}

#[test]
fn what_is_too_heavy_is_refused_at_once() {
    let queue = weighed(3);
    let mut handle = queue.handle();
    queue.push(3).unwrap();
    let too_heavy = Err(PushError::TooHeavy(4));
    assert_eq!(queue.push(4), too_heavy);
    assert_eq!(
        ends({
            let queue = queue.clone();
            move || queue.push_blocking(4)
        }),
        too_heavy
    );
    assert_eq!(
        Task::new(queue.push_async(4)).poll(),
        Poll::Ready(too_heavy)
    );
    assert_eq!(
        Task::new(handle.push_async(4)).poll(),
        Poll::Ready(too_heavy)
    );
    let batch = Task::new(handle.push_batch_async([1, 4])).poll();
    assert_eq!(batch, Poll::Ready(Err(PushError::TooHeavy(vec![1, 4]))));
    assert_eq!(
        handle.after(SECOND).push(4).unwrap_err(),
        PushError::TooHeavy(4)
    );
    let tx = handle.begin();
    assert_eq!(tx.push_blocking(4), too_heavy);
    // Each of these fits alone.
    assert_eq!(
        tx.push_batch_blocking([2, 2]),
        Err(PushError::Full(vec![2, 2]))
    );
    drop(tx);
    assert!(queue.close());
    assert_eq!(queue.push(4), Err(PushError::Closed(4)));
    assert_at_rest(&queue, 1, 0);
}

#[test]
fn a_heavy_push_gathers_while_light_ones_wait_behind_it() {
    let queue = weighed(6);
    let mut handles = [(); 3].map(|()| queue.handle());
    queue.push_batch([2, 18, 34]).unwrap();
    let [first, second, third] = &mut handles;
    let mut heavy = Task::waiting(first.push_async(6));
    let mut light = Task::waiting(second.push_async(1));
    assert_eq!(queue.pop(), Ok(2));
    heavy.assert_waits(); // and has gathered 2
    assert!(queue.push(17).unwrap_err().is_full());
    light.assert_waits();
    assert_eq!(queue.pop(), Ok(18));
    heavy.assert_waits();
    // One of weight 0 needs no room.
    assert_eq!(Task::new(third.push_async(32)).poll(), Poll::Ready(Ok(())));
    assert_eq!(queue.pop(), Ok(34));
    assert_eq!(heavy.poll(), Poll::Ready(Ok(())));
    light.assert_waits();
    let mut items = Vec::new();
    while queue.pop_batch(9, &mut items) > 0 {}
    assert_eq!(light.poll(), Poll::Ready(Ok(())));
    assert_eq!(queue.weight(), 1);
}

/// One that was woken before it is the first has made no attempt.
#[test]
fn the_next_heavy_push_is_woken_when_the_first_has_what_it_needs() {
    let queue = weighed(6);
    let mut handle = queue.handle();
    queue.push_batch([2, 4]).unwrap();
    let mut first = Task::waiting(queue.push_async(18));
    let mut second = Task::waiting(handle.push_async(34));
    let mut third = Task::waiting(queue.push_async(50));
    let mut items = Vec::new();
    while queue.pop_batch(9, &mut items) > 0 {}
    second.assert_waits();
    third.assert_waits();
    let rings = (second.rings(), third.rings());
    assert_eq!(first.poll(), Poll::Ready(Ok(())));
    assert!(second.rings() > rings.0);
    assert_eq!(second.poll(), Poll::Ready(Ok(())));
    assert!(third.rings() > rings.1);
    assert_eq!(third.poll(), Poll::Ready(Ok(())));
    assert!(queue.is_full());
}

#[test]
fn a_heavy_push_that_gives_up_lets_light_ones_pass() {
    let queue = weighed(6);
    let mut handles = [(); 2].map(|()| queue.handle());
    queue.push_batch([2, 18, 34]).unwrap();
    let [first, second] = &mut handles;
    let mut heavy = Task::waiting(first.push_async(6));
    let mut light = Task::waiting(second.push_async(1));
    assert_eq!(queue.pop(), Ok(2));
    heavy.assert_waits();
    drop(heavy);
    assert_eq!(light.poll(), Poll::Ready(Ok(())));
    assert_eq!(queue.weight(), 5);
}

#[test]
fn a_heavy_push_waits_on_a_thread() {
    let queue = weighed(5);
    queue.push_batch([2, 3]).unwrap();
    let pusher = std::thread::spawn({
        let queue = queue.clone();
        move || queue.push_blocking(5)
    });
    let popper = queue.clone();
    let taken = ends(move || [(); 3].map(|()| popper.pop_blocking()));
    assert_eq!(taken, [Ok(2), Ok(3), Ok(5)]);
    assert_eq!(pusher.join().unwrap(), Ok(()));
}

/// A transaction has the permits of what it holds, or those of what it has staged.
#[test]
fn a_transaction_needs_the_larger_load() {
    let queue = weighed(10);
    let mut worker = queue.handle();
    queue.push_batch([4, 5]).unwrap();
    let tx = worker.begin();
    assert_eq!(*tx.pop().unwrap(), 4);
    tx.push(3).unwrap(); // of the held 4
    assert!(queue.push(2).unwrap_err().is_full());
    tx.push(18).unwrap(); // 5 are staged: one more than it holds
    assert!(queue.push(1).unwrap_err().is_full());
    assert!(tx.push(1).unwrap_err().is_full());
    assert_eq!(*tx.pop().unwrap(), 5); // 9 are held: the extra one is free
    queue.push(1).unwrap();
    tx.after(SECOND).push(20).unwrap(); // 9 are staged
    assert!(tx.push(1).unwrap_err().is_full());
    tx.commit();
    assert_eq!((queue.len(), queue.weight()), (3, 10));
    assert!(queue.is_full());
    assert_eq!(queue.clear_all(), 4);
    assert_eq!(queue.weight(), 0);
    queue.push(10).unwrap();
}

/// Items that leave a transaction take their permits with them.
#[test]
fn a_retried_item_needs_its_permits_beside_the_staged_ones() {
    let queue = weighed(6);
    let mut worker = queue.handle();
    queue.push_batch([4, 2]).unwrap();
    let tx = worker.begin();
    let item = tx.pop().unwrap();
    tx.push(19).unwrap(); // 3, of the held 4
    assert!(tx.retry(item).unwrap_err().is_full());
    assert_eq!(queue.pop(), Ok(2));
    queue.push(16).unwrap(); // of weight 0
    drop(tx);
    let tx = worker.begin();
    let item = tx.pop().unwrap();
    tx.push(18).unwrap(); // 2, of the held 4
    tx.retry(item).unwrap();
    assert!(queue.push(1).unwrap_err().is_full());
    tx.commit();
    assert_eq!(queue.weight(), 6);
}

#[test]
fn commits_over_several_queues_settle_the_permits_of_each() {
    let [from, to] = [weighed(5), weighed(5)];
    let (mut take, mut put) = (from.handle(), to.handle());
    from.push_batch([2, 3]).unwrap();
    let (taken, given) = (take.begin(), put.begin());
    assert_eq!(taken.pop_batch(2).len(), 2);
    taken.push(17).unwrap();
    given.push_batch([1, 4]).unwrap();
    assert!(to.is_full());
    let _ = commit_all((taken, given));
    assert_eq!((from.weight(), to.weight()), (1, 5));
    from.push(4).unwrap();
    assert!(from.is_full() && to.is_full());
    to.clear();
    to.push(5).unwrap();
}

/// Items of an earlier process are weighed, too.
#[test]
fn restored_items_have_weights() {
    let queue = weighed(5);
    let mut restore = queue.restore();
    restore.add(4, StorePlace::default(), 2, Duration::ZERO);
    restore.add(1, StorePlace::default(), 1, SECOND);
    assert!(!restore.add(17, StorePlace::default(), 0, Duration::ZERO));
    drop(restore);
    assert_eq!((queue.weight(), queue.pop()), (5, Ok(4)));
    queue.push(4).unwrap();
}

#[test]
fn a_dead_letter_has_no_weight_until_it_is_pushed_again() {
    let queue = Queue::builder()
        .weigh(weight)
        .capacity(4)
        .max_attempts(1)
        .build();
    let mut worker = queue.handle();
    queue.push(3).unwrap();
    let tx = worker.begin();
    tx.pop().unwrap();
    tx.abort();
    queue.push(2).unwrap();
    let letters = queue.dead_letters();
    assert_eq!((letters.requeue_all(), queue.weight()), (0, 2));
    assert_eq!(queue.pop(), Ok(2));
    assert_eq!((letters.requeue_all(), queue.weight()), (1, 3));
    assert!(queue.push(2).unwrap_err().is_full());
    assert_eq!(queue.pop(), Ok(3));
    queue.push(4).unwrap();
}

#[test]
fn a_weightless_item_that_dies_is_handed_over() {
    let (send, oldest) = channel();
    let queue = Queue::builder()
        .weigh(weight)
        .max_attempts(1)
        .max_dead_letters(0)
        .on_dead_overflow(move |letter| send.send(letter.item).unwrap())
        .build();
    queue.push(16).unwrap(); // of 0
    let tx = queue.begin_owned();
    tx.pop().unwrap();
    drop(tx);
    assert_eq!(oldest.try_recv(), Ok(16));
    assert!(queue.dead_letters().is_empty());
}

#[test]
fn a_closed_queue_refuses_and_keeps_no_permits() {
    let clock = ManualClock::new();
    let queue = Queue::builder()
        .weigh(weight)
        .capacity(4)
        .clock(clock)
        .build();
    let mut handles = [(); 2].map(|()| queue.handle());
    let [one, other] = &mut handles;
    queue.push(4).unwrap();
    let mut waits = Task::waiting(one.push_async(2));
    let tx = other.begin();
    assert_eq!(*tx.pop().unwrap(), 4);
    queue.close();
    assert_eq!(waits.poll(), Poll::Ready(Err(PushError::Closed(2))));
    tx.push(20).unwrap();
    assert!(tx.push(1).unwrap_err().is_full());
    tx.commit();
    assert_eq!((queue.weight(), queue.pop()), (4, Ok(20)));
    assert!(queue.pop().unwrap_err().is_closed());
}

#[test]
fn a_function_that_panics_pushes_nothing() {
    #[allow(clippy::trivially_copy_pass_by_ref)] // as `weigh` calls it
    fn picky(item: &u64) -> usize {
        assert!(*item != 7, "weigh fails");
        1
    }
    let queue = Queue::builder().weigh(picky).capacity(2).build();
    let mut handle = queue.handle();
    assert!(panics(|| queue.push(7)));
    assert!(panics(|| handle.push_batch([1, 7])));
    assert!(panics(|| drop(handle.push_async(7))));
    assert!(panics(|| drop(queue.push_async(7))));
    let tx = handle.begin();
    tx.push(1).unwrap();
    assert!(panics(|| tx.push(7)));
    assert!(panics(|| drop(tx.push_async(7))));
    tx.commit();
    assert_at_rest(&queue, 1, 0);
    queue.push(2).unwrap();
    assert!(queue.push(3).unwrap_err().is_full());
}

#[test]
fn items_of_unbounded_queues_have_weights_too() {
    let queue = Queue::builder().weigh(|item: &usize| *item).build();
    queue.push_batch([usize::MAX, 5]).unwrap();
    let mut worker = queue.handle();
    let tx = worker.begin();
    assert_eq!(tx.pop_batch(2).len(), 2);
    tx.push(3).unwrap();
    assert!(!queue.is_full());
    tx.commit();
    assert_eq!((queue.len(), queue.weight()), (1, 3));
    let counted = FairQueue::by(|item: &u64| item % 2);
    counted.push(1).unwrap();
    counted.push(2).unwrap();
    assert_eq!(counted.weight(), 2);
}

/// A sink does not know its item before: it waits for one unit, and may then be refused.
#[cfg(feature = "stream")]
#[test]
fn a_sink_reserves_one_unit() {
    use futures::{FutureExt, SinkExt};

    let queue = weighed(3);
    let mut handle: Handle<u64> = queue.handle();
    let mut sink = handle.sink();
    assert_eq!(sink.feed(2).now_or_never(), Some(Ok(())));
    assert_eq!(sink.feed(18).now_or_never(), Some(Err(PushError::Full(18))));
    assert_eq!(sink.feed(1).now_or_never(), Some(Ok(())));
    assert_eq!(sink.feed(1).now_or_never(), None);
    drop(sink);
    assert_eq!(queue.weight(), 3);
}
