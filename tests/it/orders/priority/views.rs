//! Views: pushes with a priority or a time.

use std::future::Future;
use std::mem;
use std::thread;
use std::time::Duration;

use super::clocked;
use crate::common::failing::{assert_room, SECOND};
use crate::common::futures::Task;
use crate::common::{assert_at_rest, drain, ends, panics};
use requeue::{ManualClock, PopError, PriorityQueue, PushError, Queue};

/// A queue with this capacity, and its clock.
fn bounded(capacity: usize) -> (ManualClock, PriorityQueue<u32>) {
    let clock = ManualClock::new();
    let builder = Queue::builder().by_priority().clock(clock.clone());
    (clock, builder.capacity(capacity).build())
}

#[test]
fn views_are_chained_in_any_order_and_the_last_setting_wins() {
    let (clock, queue) = clocked();
    let due = clock.now() + SECOND;
    let mut handle = queue.handle();
    queue.priority(5).after(SECOND).push(1).unwrap();
    handle.after(SECOND).priority(4).push(2).unwrap();
    let tx = handle.begin();
    tx.at(due).priority(9).priority(3).push(3).unwrap();
    tx.priority(2)
        .at(due + SECOND)
        .after(SECOND)
        .push(4)
        .unwrap();
    tx.after(Duration::ZERO)
        .at(due)
        .priority(1)
        .push(5)
        .unwrap();
    tx.commit();
    assert_eq!(queue.next_scheduled(), Some(due));
    assert_eq!(queue.stats().delayed, 5);
    clock.advance(SECOND);
    assert_eq!(drain(&queue), [5, 4, 3, 2, 1]);
}

#[test]
fn a_view_without_a_priority_has_the_default_one() {
    let queue = PriorityQueue::by_priority();
    let default = PriorityQueue::<u32>::DEFAULT_PRIORITY;
    queue.priority(default + 1).push(3).unwrap();
    queue.at(queue.now()).push(2).unwrap();
    queue.priority(default - 1).push(1).unwrap();
    assert_eq!(drain(&queue), [1, 2, 3]);
}

#[test]
fn a_view_is_used_again_and_counts_its_delay_from_each_push() {
    let (clock, queue) = clocked();
    let mut handle = queue.handle();
    let tx = handle.begin();
    let (soon, staged) = (queue.after(SECOND), tx.after(SECOND));
    soon.push(1).unwrap();
    staged.push(2).unwrap();
    clock.advance(SECOND);
    soon.push(3).unwrap();
    staged.push(4).unwrap();
    tx.commit();
    assert_eq!(drain(&queue), [1, 2]);
    clock.advance(SECOND);
    assert_eq!(drain(&queue), [3, 4]);
}

#[test]
fn the_items_of_a_batch_have_a_ticket_each() {
    let (clock, queue) = clocked();
    let mut handle = queue.handle();
    let mut tickets = queue.priority(3).push_batch([0, 1, 2]).unwrap();
    tickets.extend(handle.priority(2).after(SECOND).push_batch([3, 4]).unwrap());
    let tx = handle.begin();
    tickets.extend(tx.priority(1).push_batch([5, 6, 7]).unwrap());
    assert_eq!((tx.staged(), queue.cancel(tickets[5])), (3, None));
    tx.commit();
    assert_eq!((queue.len(), queue.stats().delayed), (6, 2));
    assert_eq!(queue.cancel(tickets[1]), Some(1));
    assert_eq!(queue.cancel(tickets[3]), Some(3));
    assert!(queue.reprioritize(tickets[6], 9));
    assert!(queue.reschedule(tickets[0], clock.now() + SECOND));
    assert_eq!(drain(&queue), [5, 7, 2, 6]);
    clock.advance(SECOND);
    assert_eq!(drain(&queue), [4, 0]);
    assert_eq!(queue.priority(1).push_batch([]).unwrap(), []);
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn a_batch_is_pushed_as_a_whole_or_comes_back() {
    let (_, queue) = bounded(4);
    queue.priority(1).push_batch([0, 1]).unwrap();
    let mut handle = queue.handle();
    let full = Err(PushError::Full(vec![2, 3, 4]));
    assert_eq!(queue.priority(1).push_batch([2, 3, 4]), full);
    assert_eq!(handle.priority(1).push_batch([2, 3, 4]), full);
    let tx = handle.begin();
    assert_eq!(tx.after(SECOND).push_batch([2, 3, 4]), full);
    assert_eq!(tx.staged(), 0);
    // The held items make room for as many.
    assert_eq!(*tx.pop().unwrap(), 0);
    tx.priority(1).push_batch([2, 3, 4]).unwrap();
    assert_eq!(tx.staged(), 3);
    assert_eq!(
        tx.priority(1).push_batch([5]),
        Err(PushError::Full(vec![5]))
    );
    tx.abort();
    assert_room(&queue);
    assert_eq!(queue.next_scheduled(), None);
}

#[test]
fn a_batch_that_can_never_fit_is_refused_at_once() {
    let (_, queue) = bounded(2);
    let full = Err(PushError::Full(vec![1, 2, 3]));
    let mut handle = queue.handle();
    assert_eq!(queue.priority(1).push_batch_blocking([1, 2, 3]), full);
    assert_eq!(handle.priority(1).push_batch_blocking([1, 2, 3]), full);
    assert_eq!(
        Task::new(handle.priority(1).push_batch_async([1, 2, 3])).output(),
        full
    );
    let tx = handle.begin();
    tx.push(0).unwrap();
    let full = Err(PushError::Full(vec![1, 2]));
    assert_eq!(tx.priority(1).push_batch_blocking([1, 2]), full);
    assert_eq!(
        Task::new(tx.priority(1).push_batch_async([1, 2])).output(),
        full
    );
    assert_eq!(tx.staged(), 1);
    tx.abort();
    assert_room(&queue);
}

#[test]
fn batches_wait_until_there_is_room_for_all() {
    let (clock, queue) = bounded(3);
    let due = clock.now() + SECOND;
    queue.push(0).unwrap();
    queue.push(1).unwrap();
    let (mut one, mut other) = (queue.handle(), queue.handle());
    let tx = other.begin();
    let mut tasks = [
        Task::waiting(queue.priority(2).at(due).push_batch_async([2, 3])),
        Task::waiting(queue.priority(2).at(due).push_batch_async([4, 5])),
    ];
    let mut handles = Task::waiting(one.priority(1).push_batch_async([6, 7]));
    let mut staged = Task::waiting(tx.priority(1).push_batch_async([8, 9]));
    assert_eq!(queue.pop(), Ok(0));
    let tickets = tasks[0].output().unwrap();
    assert_eq!(queue.next_scheduled(), Some(due));
    tasks[1].assert_waits();
    assert_eq!(queue.cancel(tickets[0]), Some(2));
    assert_eq!(queue.cancel(tickets[1]), Some(3));
    assert_eq!(tasks[1].output().unwrap().len(), 2);
    assert_eq!(queue.pop(), Ok(1));
    handles.assert_waits();
    clock.advance(SECOND);
    assert_eq!(drain(&queue), [4, 5]);
    handles.output().unwrap();
    staged.assert_waits();
    assert_eq!(queue.pop(), Ok(6));
    let tickets = staged.output().unwrap();
    drop(staged);
    tx.commit();
    assert_eq!(queue.cancel(tickets[1]), Some(9));
    assert_eq!(drain(&queue), [7, 8]);
    assert_room(&queue);
}

#[test]
fn a_batch_that_is_called_off_leaves_nothing() {
    let (_, queue) = bounded(3);
    queue.push_batch([0, 1]).unwrap();
    let mut handles = [queue.handle(), queue.handle(), queue.handle()];
    let [one, other, forgetful] = &mut handles;
    drop(Task::waiting(queue.after(SECOND).push_batch_async([2, 3])));
    drop(Task::waiting(one.after(SECOND).push_batch_async([2, 3])));
    let tx = other.begin();
    drop(Task::waiting(tx.after(SECOND).push_batch_async([2, 3])));
    tx.commit();
    let tx = forgetful.begin();
    // It has gathered the available items.
    let task = Task::waiting(tx.after(SECOND).push_batch_async([2, 3]));
    assert!(queue.push(4).unwrap_err().is_full());
    drop(task);
    queue.push(4).unwrap();
    assert!(panics(|| {
        let _task = Task::waiting(tx.after(SECOND).push_batch_async([2, 3]));
        panic!("the task fails");
    }));
    mem::forget(tx);
    drop(handles);
    assert_eq!(queue.len(), 3);
    assert_eq!(drain(&queue).len(), 3);
    assert_eq!((queue.next_scheduled(), queue.stats().delayed), (None, 0));
    assert_room(&queue);
}

#[test]
fn threads_wait_for_room_for_batches() {
    ends(|| {
        let (_, queue) = bounded(2);
        queue.push_batch([0, 1]).unwrap();
        let (mut one, mut other) = (queue.handle(), queue.handle());
        let mut items = thread::scope(|scope| {
            scope.spawn(|| queue.priority(1).push_batch_blocking([2, 3]).unwrap());
            scope.spawn(|| one.priority(1).push_batch_blocking([4, 5]).unwrap());
            scope.spawn(|| {
                let tx = other.begin();
                tx.priority(1)
                    .push_batch_timeout([6, 7], 1000 * SECOND)
                    .unwrap();
                tx.commit();
            });
            [(); 8].map(|()| queue.pop_blocking().unwrap())
        });
        items.sort_unstable();
        assert_eq!(items, [0, 1, 2, 3, 4, 5, 6, 7]);
    });
}

#[test]
fn a_holder_of_an_item_pushes_batches_after_the_close() {
    let (_, queue) = bounded(3);
    queue.push_batch([0, 1]).unwrap();
    let (mut handle, mut other) = (queue.handle(), queue.handle());
    let (tx, idle) = (handle.begin(), other.begin());
    assert_eq!(*tx.pop().unwrap(), 0);
    queue.close();
    let closed = Err(PushError::Closed(vec![7, 8]));
    assert_eq!(queue.priority(1).push_batch([7, 8]), closed);
    assert_eq!(idle.priority(1).push_batch([7, 8]), closed);
    drop(idle);
    tx.priority(2).push_batch([2, 3]).unwrap();
    // Only holders of items can make more room.
    assert_eq!(
        tx.priority(1).push_batch_blocking([4]),
        Err(PushError::Full(vec![4]))
    );
    let mut task = Task::new(tx.priority(1).push_batch_async([4]));
    assert_eq!(task.output(), Err(PushError::Full(vec![4])));
    drop(task);
    tx.commit();
    assert_eq!(drain(&queue), [2, 3, 1]);
    assert_eq!(queue.pop(), Err(PopError::Closed));
}

#[test]
fn a_waiting_batch_fails_on_close() {
    let (_, queue) = bounded(1);
    queue.push(0).unwrap();
    let mut handle = queue.handle();
    let tx = handle.begin();
    let closed = Err(PushError::Closed(vec![1]));
    let mut waiting = Task::waiting(queue.after(SECOND).push_batch_async([1]));
    let mut staged = Task::waiting(tx.after(SECOND).push_batch_async([1]));
    queue.close();
    assert_eq!(
        (waiting.output(), staged.output()),
        (closed.clone(), closed)
    );
    assert_eq!(queue.next_scheduled(), None);
}

#[test]
fn an_iterator_that_panics_pushes_nothing() {
    let queue = PriorityQueue::by_priority();
    let mut handle = queue.handle();
    let items = || (0..3).inspect(|item| assert!(*item < 2, "the iterator fails"));
    assert!(panics(|| queue.priority(1).push_batch(items())));
    assert!(panics(|| handle.priority(1).push_batch(items())));
    let tx = handle.begin();
    assert!(panics(|| tx.priority(1).push_batch(items())));
    assert_eq!(tx.staged(), 0);
    tx.commit();
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn the_future_of_a_queue_owns_what_it_needs() {
    fn is_free<F: Future + Send + 'static>(future: F) -> F {
        future
    }
    let queue = PriorityQueue::by_priority();
    let mut one = Task::new(is_free(queue.priority(2).push_async(1)));
    let mut batch = Task::new(is_free(queue.priority(1).push_batch_async([2])));
    let other = queue.clone();
    drop(queue);
    assert!(one.output().is_ok() && batch.output().is_ok());
    assert_eq!(drain(&other), [2, 1]);
}
