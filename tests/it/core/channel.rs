//! Channels: when they are closed, and which items are left.

use std::thread;
use std::time::Duration;

use crate::common::futures::{block_on, Task};
use crate::common::{ends, Ledger};
use requeue::channel::{bounded, unbounded, Receiver, Sender};
use requeue::{ByKey, ByPriority, Leased, Lifo, ManualClock, Order, PopError, PushError, Queue};

#[test]
fn the_last_sender_closes() {
    let (sender, receiver) = unbounded();
    let other = sender.clone();
    drop(sender);
    other.push(1).unwrap();
    assert!(!receiver.queue().is_closed());
    drop(other);
    assert!(receiver.queue().is_closed());
    assert_eq!(receiver.pop(), Ok(1));
    assert_eq!(receiver.pop_blocking(), Err(PopError::Closed));
}

#[test]
fn the_last_receiver_closes() {
    let (sender, receiver) = unbounded();
    let other = receiver.clone();
    drop(receiver);
    sender.push(1).unwrap();
    assert_eq!(other.pop(), Ok(1));
    drop(other);
    assert_eq!(sender.push(2), Err(PushError::Closed(2)));
}

#[test]
fn nothing_else_keeps_it_open() {
    let (sender, receiver) = bounded(1);
    let (queue, mut handle) = (sender.queue(), sender.queue().handle());
    sender.push(1).unwrap();
    let mut push = Task::waiting(sender.push_async(2));
    drop(sender);
    assert!(push.was_woken());
    assert_eq!(push.output(), Err(PushError::Closed(2)));
    assert!(queue.is_closed() && queue.same_queue(&receiver.queue()));
    assert!(handle.push(3).is_err());
}

#[test]
fn a_waiter_is_woken_by_the_last_drop() {
    ends(|| {
        let (sender, receiver) = bounded::<u32>(1);
        let waiter = thread::spawn(move || receiver.iter().count());
        sender.push_blocking(1).unwrap();
        drop(sender);
        assert_eq!(waiter.join().unwrap(), 1);
        let (sender, receiver) = bounded(1);
        sender.push(1).unwrap();
        let waiter = thread::spawn(move || sender.push_blocking(2));
        drop(receiver);
        assert_eq!(waiter.join().unwrap(), Err(PushError::Closed(2)));
    });
}

#[test]
fn many_of_each() {
    const EACH: u64 = 1000;
    ends(|| {
        let (sender, receiver) = bounded(16);
        let senders: Vec<_> = (0..3).map(|_| sender.clone()).collect();
        drop(sender);
        let receivers: Vec<_> = (0..3).map(|_| receiver.clone()).collect();
        drop(receiver);
        let sum = thread::scope(|scope| {
            for sender in senders {
                scope.spawn(move || (0..EACH).for_each(|item| sender.push_blocking(item).unwrap()));
            }
            let sums = receivers
                .into_iter()
                .map(|receiver| scope.spawn(move || (&receiver).into_iter().sum::<u64>()));
            let sums: Vec<_> = sums.collect();
            sums.into_iter().map(|sum| sum.join().unwrap()).sum::<u64>()
        });
        assert_eq!(sum, 3 * EACH * (EACH - 1) / 2);
    });
}

#[test]
fn unreceived_items_are_dropped_with_the_last_side() {
    let ledger = Ledger::new(3);
    let (sender, receiver) = unbounded();
    sender
        .push_batch(ledger.items())
        .unwrap_or_else(|_| unreachable!());
    drop(receiver.pop());
    drop(receiver);
    assert_eq!(ledger.drops(), [1, 0, 0]);
    drop(sender);
    ledger.assert_each_dropped_once();
}

#[test]
fn all_forms_of_both_sides() {
    let (sender, receiver) = bounded(8);
    sender.push(0).unwrap();
    sender.push_blocking(1).unwrap();
    sender.push_timeout(2, Duration::ZERO).unwrap();
    block_on(sender.push_async(3)).unwrap();
    assert_eq!(receiver.pop(), Ok(0));
    assert_eq!(receiver.pop_blocking(), Ok(1));
    assert_eq!(receiver.pop_timeout(Duration::ZERO), Ok(2));
    assert_eq!(block_on(receiver.pop_async()), Ok(3));
    sender.push_batch([0, 1]).unwrap();
    sender.push_batch_blocking([2]).unwrap();
    block_on(sender.push_batch_async([3, 4])).unwrap();
    let mut items: Vec<_> = receiver.drain().take(1).collect();
    receiver.pop_batch(2, &mut items);
    receiver.pop_batch_blocking(2, 2, &mut items);
    items.sort_unstable();
    assert_eq!(items, [0, 1, 2, 3, 4]);
    assert!(format!("{sender:?}").starts_with("Sender"));
    assert!(format!("{receiver:?}").starts_with("Receiver"));
}

/// The items that a channel of three delivers after it is closed by its last sender.
fn delivered<O: Order<u32>>((sender, receiver): (Sender<u32, O>, Receiver<u32, O>)) -> Vec<u32> {
    assert!(sender.queue().same_queue(&receiver.queue()));
    sender.push_batch([2, 0, 1]).unwrap();
    assert!(sender.is_full() && receiver.is_full());
    assert_eq!(sender.clone().push(3), Err(PushError::Full(3)));
    drop(sender);
    assert!(receiver.is_closed());
    let mut items: Vec<_> = (&receiver).into_iter().take(1).collect();
    items.extend(receiver);
    items
}

#[test]
fn queues_of_all_orders_have_two_ends() {
    let builder = || Queue::builder().capacity(3);
    assert_eq!(delivered(builder().channel()), [2, 0, 1]);
    assert_eq!(delivered::<Lifo>(builder().lifo().channel()), [1, 0, 2]);
    let fair = builder().fair_by(|item| *item).channel();
    assert_eq!(delivered::<ByKey<u32, u32>>(fair), [2, 0, 1]);
    let leased = builder().leased(Duration::MAX).channel();
    assert_eq!(delivered::<Leased>(leased), [2, 0, 1]);
    let urgent: (Sender<_, ByPriority>, Receiver<_, ByPriority>) =
        builder().by_priority().channel();
    urgent.0.queue().priority(9).push(7).unwrap();
    assert_eq!(urgent.1.pop(), Ok(7));
    assert_eq!(delivered(urgent), [2, 0, 1]);
}

#[test]
fn a_channel_has_the_options_of_its_queue() {
    let clock = ManualClock::new();
    let builder = Queue::builder().clock(clock.clone()).name("orders");
    let (sender, receiver) = builder.max_attempts(1).paused().channel();
    sender.push(1).unwrap();
    assert_eq!(receiver.pop(), Err(PopError::Empty));
    receiver.queue().resume();
    receiver.queue().begin_owned().pop().unwrap();
    assert_eq!(receiver.queue().dead_letters().len(), 1);
    assert_eq!(receiver.queue().now(), clock.now());
    assert!(format!("{sender:?}").contains("orders"));
    assert!(format!("{:?}", receiver.into_iter()).contains("orders"));
}
