//! Methods of queues without a handle, and handles created from handles.

use std::iter;
use std::time::Duration;

use crate::common::failing::SECOND;
use crate::common::futures::block_on;
use crate::common::{assert_at_rest, drain, filled, panics, Ledger};
use requeue::{FairQueue, ManualClock, Order, Pace, PopError, PriorityQueue, PushError, Queue};

/// Runs a test on a queue of each order, bounded to eight items.
macro_rules! each_order {
    ($test:ident) => {
        $test(&Queue::bounded(8));
        $test(
            &Queue::builder()
                .fair_by(|item: &u32| item % 2)
                .capacity(8)
                .build(),
        );
        $test(&Queue::builder().by_priority().capacity(8).build());
    };
}

type Push<O> = fn(&Queue<u32, O>, u32) -> Result<(), PushError<u32>>;
type Pop<O> = fn(&Queue<u32, O>) -> Result<u32, PopError>;

/// All ways to push one item from anywhere.
fn pushes<O: Order<u32>>() -> [Push<O>; 4] {
    [
        Queue::push,
        Queue::push_blocking,
        |queue, item| queue.push_timeout(item, SECOND),
        |queue, item| block_on(queue.push_async(item)),
    ]
}

/// All ways to pop one item from anywhere.
fn pops<O: Order<u32>>() -> [Pop<O>; 6] {
    [
        Queue::pop,
        Queue::pop_blocking,
        |queue| queue.pop_timeout(SECOND),
        |queue| block_on(queue.pop_async()),
        |queue| {
            let mut items = Vec::new();
            queue.pop_batch(1, &mut items);
            items.pop().ok_or(PopError::Empty)
        },
        |queue| {
            let mut items = Vec::new();
            queue.pop_batch_timeout(1, 1, &mut items, SECOND);
            items.pop().ok_or(PopError::Empty)
        },
    ]
}

#[test]
fn single_pushes_of_all_forms_share_one_order() {
    let queue = Queue::unbounded();
    for (item, push) in (0..100).zip(pushes().into_iter().cycle()) {
        push(&queue, item).unwrap();
    }
    for (item, pop) in (0..100).zip(pops().into_iter().cycle()) {
        assert_eq!(pop(&queue), Ok(item));
    }
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn every_push_meets_every_pop() {
    fn test<O: Order<u32>>(queue: &Queue<u32, O>) {
        for push in pushes() {
            for pop in pops() {
                push(queue, 7).unwrap();
                assert_eq!(pop(queue), Ok(7));
                assert_at_rest(queue, 0, 0);
            }
        }
    }
    each_order!(test);
}

#[test]
fn room_is_given_back_by_all_forms() {
    fn test<O: Order<u32>>(queue: &Queue<u32, O>) {
        for (push, pop) in pushes().into_iter().cycle().zip(pops()) {
            (0..8).for_each(|item| push(queue, item).unwrap());
            assert!(queue.is_full());
            assert_eq!(queue.push(8), Err(PushError::Full(8)));
            let instant = Duration::from_nanos(1);
            assert_eq!(queue.push_timeout(8, instant), Err(PushError::Full(8)));
            assert_eq!(queue.push_batch([8]), Err(PushError::Full(vec![8])));
            for _ in 0..8 {
                pop(queue).unwrap();
            }
            assert!(!queue.is_full() && queue.is_empty());
        }
        let too_many = queue.push_batch_blocking(0..9).unwrap_err();
        assert_eq!(too_many, PushError::Full((0..9).collect()));
        let too_many = block_on(queue.push_batch_async(0..9)).unwrap_err();
        assert_eq!(too_many, PushError::Full((0..9).collect()));
        assert_eq!(queue.push_batch(0..3), Ok(3));
        assert_eq!(queue.push_batch_blocking(3..6), Ok(3));
        assert_eq!(block_on(queue.push_batch_async(6..8)), Ok(2));
        assert!(queue.is_full());
        let mut items = Vec::new();
        assert_eq!(queue.pop_batch(3, &mut items), 3);
        assert_eq!(queue.pop_batch_blocking(5, 9, &mut items), 5);
        items.sort_unstable();
        assert!(items.into_iter().eq(0..8));
        assert_at_rest(queue, 0, 0);
    }
    each_order!(test);
}

#[test]
fn a_batch_leaves_in_its_order() {
    let queue = Queue::unbounded();
    queue.push_batch(0..500).unwrap();
    let mut items = Vec::new();
    while queue.pop_batch(7, &mut items) > 0 {}
    assert!(items.into_iter().eq(0..500));
}

#[test]
fn closed_for_all_forms() {
    fn test<O: Order<u32>>(queue: &Queue<u32, O>) {
        queue.close();
        for push in pushes() {
            assert_eq!(push(queue, 1), Err(PushError::Closed(1)));
        }
        assert_eq!(queue.push_batch([1]), Err(PushError::Closed(vec![1])));
        let refused = Err(PushError::Closed(vec![1]));
        assert_eq!(queue.push_batch_blocking([1]), refused);
        assert_eq!(block_on(queue.push_batch_async([1])), refused);
        assert_eq!(queue.pop_blocking(), Err(PopError::Closed));
        assert_eq!(queue.pop_timeout(SECOND), Err(PopError::Closed));
        assert_eq!(block_on(queue.pop_async()), Err(PopError::Closed));
        let none = queue.pop_batch_blocking(1, 1, &mut Vec::new());
        assert_eq!(none, 0);
        assert_eq!(queue.iter().next(), None);
    }
    each_order!(test);
}

#[test]
fn a_timeout_says_empty() {
    let queue = Queue::<u32>::unbounded();
    for timeout in [Duration::ZERO, Duration::from_millis(1)] {
        assert_eq!(queue.pop_timeout(timeout), Err(PopError::Empty));
    }
}

#[test]
fn full_only_where_there_is_a_bound() {
    let queue = Queue::unbounded();
    queue.push(1).unwrap();
    assert!(!queue.is_full());
    let keyed = FairQueue::by(|item: &u32| *item);
    keyed.push(1).unwrap();
    assert!(!keyed.is_full());
    let limited = Queue::builder()
        .fair_by(|item: &u32| *item)
        .key_capacity(1)
        .build();
    limited.push(1).unwrap();
    assert!(limited.push(1).is_err() && !limited.is_full());
}

#[test]
fn held_items_count_as_full() {
    let queue = Queue::bounded(1);
    queue.push(1).unwrap();
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.pop().unwrap();
    assert!(queue.is_full());
    tx.commit();
    assert!(!queue.is_full());
}

#[test]
fn clones_are_the_same_queue() {
    let (queue, other) = (Queue::<u32>::unbounded(), Queue::unbounded());
    assert!(queue.same_queue(&queue.clone()) && queue.clone().same_queue(&queue));
    assert!(!queue.same_queue(&other));
    assert!(queue.handle().queue().same_queue(&queue));
}

#[test]
fn a_clone_of_a_handle_has_its_name_and_nothing_else() {
    let queue = PriorityQueue::by_priority();
    let mut handle = queue.named_handle("mailer");
    let tx = handle.begin();
    tx.push(1).unwrap();
    std::mem::forget(tx);
    let mut clone = handle.clone();
    assert_eq!(clone.name(), Some("mailer"));
    assert_eq!(queue.handle().clone().name(), None);
    clone.push(2).unwrap();
    assert_eq!(drain(&queue), [2]);
    let tx = clone.begin();
    tx.push(3).unwrap();
    drop(handle); // and its staged items
    tx.commit();
    assert_eq!(drain(&queue), [3]);
    assert!(clone.queue().same_queue(&queue));
}

#[test]
fn a_clear_drops_ready_items() {
    let ledger = Ledger::new(5);
    let queue = filled(ledger.items());
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.pop().unwrap_or_else(|_| unreachable!());
    assert_eq!(queue.clear(), 4);
    assert_eq!(ledger.drops(), [0, 1, 1, 1, 1]);
    assert_at_rest(&queue, 0, 1);
    tx.abort();
    assert_eq!((queue.clear(), queue.clear()), (1, 0));
    ledger.assert_each_dropped_once();
}

#[test]
fn a_clear_whose_item_panics_leaves_the_rest() {
    let ledger = Ledger::new(3);
    let queue = filled(ledger.items_with_bomb(1));
    assert!(panics(|| queue.clear()));
    assert_at_rest(&queue, 1, 0);
    assert_eq!(queue.clear(), 1);
    ledger.assert_each_dropped_once();
}

#[test]
fn a_clear_ends_while_an_item_makes_another_one() {
    struct Hydra(Queue<Hydra>);
    impl Drop for Hydra {
        fn drop(&mut self) {
            if !self.0.is_closed() {
                let _ = self.0.push(Hydra(self.0.clone()));
            }
        }
    }
    let queue = Queue::unbounded();
    queue
        .push(Hydra(queue.clone()))
        .unwrap_or_else(|_| unreachable!());
    assert_eq!(queue.clear(), 1);
    assert_eq!(queue.len(), 1);
    queue.close();
    assert_eq!(queue.clear(), 1);
}

#[test]
fn a_drain_takes_ready_items_and_does_not_wait() {
    fn test<O: Order<u32>>(queue: &Queue<u32, O>) {
        queue.push_batch(0..4).unwrap();
        queue.pause();
        assert_eq!((queue.drain().next(), queue.clear()), (None, 0));
        queue.resume();
        assert_eq!(queue.drain().take(3).count(), 3);
        assert_eq!(queue.len(), 1);
        let mut rest = queue.drain();
        assert!(rest.next().is_some());
        assert_eq!(rest.next(), None);
        queue.push(9).unwrap();
        assert_eq!(rest.next(), Some(9));
        assert!(!queue.is_closed());
    }
    each_order!(test);
}

#[test]
fn a_drain_keeps_the_pace() {
    let clock = ManualClock::new();
    let builder = Queue::builder().pace(Pace::every(SECOND));
    let queue = builder.clock(clock.clone()).build();
    queue.push_batch(0..3).unwrap();
    assert_eq!(queue.drain().count(), 1);
    clock.advance(SECOND);
    assert_eq!(queue.clear(), 1);
}

#[test]
fn a_loop_over_a_queue_ends_when_it_is_drained() {
    fn test<O: Order<u32>>(queue: &Queue<u32, O>) {
        queue.push_batch([0, 2, 4]).unwrap();
        queue.close();
        let mut sum = 0;
        for item in queue {
            sum += item;
        }
        assert_eq!(sum, 6);
    }
    each_order!(test);
}

#[test]
fn a_queue_of_an_iterator() {
    let mut queue: Queue<_> = (0..3).collect();
    assert_eq!(queue.capacity(), None);
    queue.extend(3..5);
    queue.push(5).unwrap();
    queue.extend([6]);
    assert!(drain(&queue).into_iter().eq(0..7), "one FIFO with pushes");
}

#[test]
fn an_extend_that_panics_keeps_what_it_has_pushed() {
    let mut queue = Queue::bounded(2);
    assert!(panics(|| queue.extend([1, 2, 3])));
    assert_eq!(drain(&queue), [1, 2]);
    let broken = iter::once_with(|| 4).chain(iter::once_with(|| panic!("no more")));
    assert!(panics(|| queue.extend(broken)));
    assert_eq!(drain(&queue), [4]);
}

#[test]
fn a_queue_that_is_built_paused() {
    let clock = ManualClock::new();
    let builder = Queue::builder().clock(clock).paused();
    for queue in [builder.clone().build(), builder.capacity(3).build()] {
        queue.push(1).unwrap();
        assert!(queue.is_paused());
        assert_eq!(queue.pop(), Err(PopError::Empty));
        assert_eq!(queue.handle().pop(), Err(PopError::Empty));
        queue.resume();
        assert_eq!(queue.pop(), Ok(1));
    }
    let queue = Queue::<u32>::builder().paused().by_priority().build();
    assert!(queue.is_paused());
    assert!(!Queue::<u32>::builder().build().is_paused());
}

#[test]
fn an_item_shows_itself() {
    let queue = filled([String::from("a\"b")]);
    let mut handle = queue.handle();
    let tx = handle.begin();
    let item = tx.pop().unwrap();
    assert_eq!(
        format!("{item}|{item:?}|{item:>5}"),
        "a\"b|\"a\\\"b\"|  a\"b"
    );
}

#[test]
fn all_pushes_of_a_thread_without_a_handle_are_in_one_order() {
    type Pushes = fn(&Queue<u32>, u32);
    let pushes: [Pushes; 8] = [
        |queue, item| queue.push(item).unwrap(),
        |queue, item| queue.push_blocking(item).unwrap(),
        |queue, item| queue.push_timeout(item, SECOND).unwrap(),
        |queue, item| block_on(queue.push_async(item)).unwrap(),
        |queue, item| assert_eq!(queue.push_batch([item]), Ok(1)),
        |queue, item| assert_eq!(queue.push_batch_blocking([item]), Ok(1)),
        |queue, item| assert_eq!(queue.push_batch_timeout([item], SECOND), Ok(1)),
        |queue, item| assert_eq!(block_on(queue.push_batch_async([item])), Ok(1)),
    ];
    for queue in [Queue::unbounded(), Queue::bounded(1000)] {
        for item in 0..400 {
            // Each kind after each other one.
            pushes[(item * (item / 8 + 1)) as usize % pushes.len()](&queue, item);
        }
        assert!(queue.drain().eq(0..400));
    }
}
