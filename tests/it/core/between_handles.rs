//! The order of items of several handles: best effort, and the closer the smaller the stickiness.

use requeue::{Builder, Handle, PopError, Queue};
use std::{iter, thread};

const ITEMS: usize = 10_000;

/// The items of a segment: a consumer cannot tell more exactly when they were pushed.
const SEGMENT: usize = 256;

/// A queue into which two handles push in turn.
fn pushed_in_turn(builder: Builder<usize>) -> Queue<usize> {
    let queue = builder.build();
    let mut handles = [queue.handle(), queue.handle()];
    for item in 0..ITEMS {
        handles[item % 2].push(item).unwrap();
    }
    queue
}

/// Checks that all items came once, and those of each handle in their order.
fn assert_complete(popped: &[usize]) {
    for handle in [0, 1] {
        let items = popped.iter().copied().filter(|item| item % 2 == handle);
        assert!(items.eq((handle..ITEMS).step_by(2)), "handle {handle}");
    }
}

/// By how many places an item was displaced at most.
fn displacement(popped: &[usize]) -> usize {
    let places = popped.iter().enumerate();
    let displaced = places.map(|(place, item)| item.abs_diff(place));
    displaced.max().unwrap()
}

fn pop_each(consumer: &mut Handle<usize>) -> Vec<usize> {
    iter::from_fn(|| consumer.pop().ok()).collect()
}

fn hold_each(consumer: &mut Handle<usize>) -> Vec<usize> {
    let tx = consumer.begin();
    while tx.pop().is_ok() {}
    tx.commit().collect()
}

fn in_batches(consumer: &mut Handle<usize>) -> Vec<usize> {
    let mut items = Vec::new();
    while consumer.pop_batch(300, &mut items) > 0 {}
    items
}

/// A way to pop all items.
type Pop = fn(&mut Handle<usize>) -> Vec<usize>;

/// Checks the displacement of items that two handles pushed in turn, for each way to pop them. A consumer of large batches
/// compares handles after four times as many items.
fn assert_displaced(builder: impl Fn() -> Builder<usize>, most: usize) {
    let in_batches: Pop = in_batches;
    let in_batches = (in_batches, SEGMENT.min(4 * most));
    for (pop, most) in [(pop_each as Pop, most), (hold_each, most), in_batches] {
        let popped = pop(&mut pushed_in_turn(builder()).handle());
        assert_complete(&popped);
        let displaced = displacement(&popped);
        assert!(displaced <= most, "{displaced} places, more than {most}");
    }
}

#[test]
fn items_are_displaced_by_no_more_than_the_stickiness() {
    for items in [1, 3, 16, 100] {
        assert_displaced(|| Queue::builder().stickiness(items), items as usize);
    }
}

#[test]
fn the_default_is_64() {
    assert_displaced(Queue::builder, 64);
}

#[test]
fn no_stickiness_displaces_items_by_more_than_a_segment() {
    assert_displaced(|| Queue::builder().stickiness(u32::MAX), SEGMENT);
}

/// A consumer that begins in the middle does not know which of both handles was served more.
#[test]
fn a_consumer_that_begins_in_the_middle_keeps_the_order_within_half_a_segment() {
    for begin in (1..2 * SEGMENT).step_by(37) {
        let queue = pushed_in_turn(Queue::builder());
        let mut first = queue.handle();
        let mut popped: Vec<_> = (0..begin).map(|_| first.pop().unwrap()).collect();
        popped.extend(pop_each(&mut queue.handle()));
        assert_complete(&popped);
        let displaced = displacement(&popped);
        assert!(displaced <= SEGMENT / 2 + 64, "{displaced} after {begin}");
    }
}

#[test]
fn an_earlier_push_of_one_handle_precedes_a_later_one_of_another() {
    let queue = Queue::unbounded();
    let (mut first, mut second) = (queue.handle(), queue.handle());
    first.push_batch(0..ITEMS / 2).unwrap();
    second.push_batch(ITEMS / 2..ITEMS).unwrap();
    let popped = pop_each(&mut queue.handle());
    let displaced = displacement(&popped);
    assert!(displaced <= SEGMENT, "{displaced} places");
}

#[test]
fn a_consumer_of_a_lone_handle_sees_another_one_after_four_times_the_stickiness() {
    let queue = Queue::builder().stickiness(10).build();
    let (mut lone, mut late) = (queue.handle(), queue.handle());
    let mut consumer = queue.handle();
    // In one segment, the first of its handle, so that the next one is not much newer.
    lone.push_batch(0..SEGMENT / 4).unwrap();
    assert_eq!(consumer.pop(), Ok(0));
    late.push(ITEMS).unwrap();
    let popped = pop_each(&mut consumer);
    assert_eq!(
        popped.iter().position(|&item| item == ITEMS),
        Some(4 * 10 - 1)
    );
}

#[test]
fn consumers_that_compare_after_each_item_share_all_items() {
    let queue = Queue::builder().stickiness(1).build();
    let push = |handle: usize| {
        let mut producer = queue.handle();
        let items = (handle..ITEMS).step_by(2);
        items.for_each(|item| producer.push(item).unwrap());
    };
    let pop = || {
        let mut consumer = queue.handle();
        let mut popped = Vec::new();
        loop {
            match consumer.pop() {
                Ok(item) => popped.push(item),
                Err(PopError::Empty) => thread::yield_now(),
                Err(PopError::Closed) => return popped,
            }
        }
    };
    let popped = thread::scope(|scope| {
        let consumers = [scope.spawn(pop), scope.spawn(pop)];
        let producers = [0, 1].map(|handle| scope.spawn(move || push(handle)));
        for producer in producers {
            producer.join().unwrap();
        }
        queue.close();
        consumers.map(|consumer| consumer.join().unwrap())
    });
    for popped in &popped {
        let of = |handle| popped.iter().filter(move |item| *item % 2 == handle);
        assert!([0, 1].into_iter().all(|handle| of(handle).is_sorted()));
    }
    let mut all = popped.concat();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..ITEMS));
}
