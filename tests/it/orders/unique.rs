//! Items that are unique by key, in queues of all orders.

use crate::common::failing::{INSTANT, NEARLY, SECOND};
use crate::common::futures::Task;
use crate::common::rng::Rng;
use crate::common::{drain, ends, panics, Ledger, Tracked};
use requeue::DuplicateOf::{Held, Queued, Recent, SameTransaction, Staged};
use requeue::{
    AfterTtl, Backoff, Builder, DuplicateOf, Handle, ManualClock, OnDuplicate, Order, PopError,
    PushError, Queue,
};
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Items are equal that differ by a multiple of it.
const KEYS: u32 = 1_000;

/// A key that is counted as long as it lives.
struct Key(u32, #[allow(dead_code)] Arc<()>);

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Key {}

/// The clock of a queue, and the keys that it keeps.
struct Beside {
    clock: ManualClock,
    keys: Arc<()>,
}

impl Beside {
    /// The number of keys that are kept: that of the function is not.
    fn keys(&self) -> usize {
        Arc::strong_count(&self.keys) - 2
    }
}

fn builder() -> (Beside, Builder<u32>) {
    let (clock, keys) = (ManualClock::new(), Arc::new(()));
    let counted = Arc::clone(&keys);
    let builder = Queue::builder()
        .clock(clock.clone())
        .max_attempts(3)
        .backoff(Backoff::fixed(SECOND))
        .unique_by(move |item| Key(item % KEYS, Arc::clone(&counted)));
    (Beside { clock, keys }, builder)
}

/// Runs a check with a queue of each order, leased or not, with these settings. At the end no key may be kept, but for so
/// many.
macro_rules! in_all_orders {
    ($check:ident, |$builder:ident| $with:expr) => {{
        in_all_orders!($check, $builder, $with, it => it);
        in_all_orders!($check, $builder, $with, it => it.lifo());
        in_all_orders!($check, $builder, $with, it => it.fair_by(|item: &u32| item % 3));
        in_all_orders!($check, $builder, $with, it => it.fair_by(|item: &u32| *item).serial());
        in_all_orders!($check, $builder, $with, it => it.by_priority());
        in_all_orders!($check, $builder, $with, it => it.by_priority().age_after(SECOND));
        in_all_orders!($check, $builder, $with, it => it.capacity(8));
    }};
    ($check:ident, $builder:ident, $with:expr, $it:ident => $order:expr) => {{
        let (beside, $builder) = builder();
        let $it = $with;
        $check(&beside, &$order.build());
        assert_eq!(beside.keys_after(), 0);
        let (beside, $builder) = builder();
        let $it = $with;
        $check(&beside, &$order.leased(SECOND * 5).build());
        assert_eq!(beside.keys_after(), 0);
    }};
}

impl Beside {
    /// As [`keys`](Self::keys), after the queue and its function were dropped.
    fn keys_after(&self) -> usize {
        Arc::strong_count(&self.keys) - 1
    }
}

/// Pushes a duplicate, which is refused because of an item in this state; returns that.
#[track_caller]
fn refused<O: Order<u32>>(queue: &Queue<u32, O>, key: u32) -> DuplicateOf {
    let item = key + 7 * KEYS;
    let Err(PushError::Duplicate(back, of)) = queue.push(item) else {
        panic!("{key} was pushed");
    };
    assert_eq!(back, item);
    let batch = queue.push_batch([KEYS - 1, item]);
    assert_eq!(batch, Err(PushError::Duplicate(vec![KEYS - 1, item], of)));
    of
}

/// Pushes an item whose key is free, and removes it again.
#[track_caller]
fn assert_free<O: Order<u32>>(queue: &Queue<u32, O>, key: u32) {
    queue.push(key).unwrap();
    assert_eq!(queue.retain(|item, _| *item != key), 1);
}

#[test]
fn an_item_has_its_key_until_it_is_gone() {
    fn check<O: Order<u32>>(beside: &Beside, queue: &Queue<u32, O>) {
        queue.push(1).unwrap();
        assert_eq!(refused(queue, 1), Queued);
        let mut worker = queue.handle();
        let tx = worker.begin();
        assert_eq!(*tx.pop().unwrap(), 1);
        assert_eq!(
            (refused(queue, 1), tx.push(1)),
            (Held, Err(PushError::Duplicate(1, Held)))
        );
        tx.abort();
        assert_eq!(refused(queue, 1), Queued); // delayed
        beside.clock.advance(SECOND);

        let tx = worker.begin();
        let peek = tx.peek().unwrap();
        assert_eq!(refused(queue, 1), Held);
        drop(peek);
        assert_eq!(refused(queue, 1), Queued);
        let item = tx.pop().unwrap();
        assert_eq!(refused(queue, 1), Held);
        tx.retry_after(item, SECOND).unwrap();
        assert_eq!(refused(queue, 1), Queued);
        tx.abort();
        beside.clock.advance(SECOND);

        let job = queue.take().unwrap();
        assert_eq!(refused(queue, 1), Held);
        job.release();
        assert_eq!((refused(queue, 1), beside.keys()), (Queued, 1));
        let tx = worker.begin();
        tx.pop().unwrap();
        tx.try_commit().unwrap();
        assert_eq!(beside.keys(), 0);
        assert_free(queue, 1);

        queue.push(1).unwrap();
        queue.take().unwrap().try_ack().unwrap();
        queue.push(1).unwrap();
        assert_eq!(queue.pop(), Ok(1));
        queue.push_batch([1, 2, 3]).unwrap();
        assert_eq!(queue.pop_batch(9, &mut Vec::new()), 3);
        assert_eq!(beside.keys(), 0);
    }
    in_all_orders!(check, |it| it);
}

#[test]
fn staged_items_have_their_keys() {
    fn check<O: Order<u32>>(beside: &Beside, queue: &Queue<u32, O>) {
        let (mut one, mut other) = (queue.handle(), queue.handle());
        let tx = one.begin();
        tx.push(1).unwrap();
        assert_eq!(
            tx.push(1 + KEYS),
            Err(PushError::Duplicate(1 + KEYS, SameTransaction))
        );
        assert_eq!(refused(queue, 1), Staged);
        let second = other.begin();
        assert_eq!(second.push(1), Err(PushError::Duplicate(1, Staged)));
        second.push(2).unwrap();
        tx.push_batch([3, 4]).unwrap();
        assert_eq!(
            tx.push_batch([5, 2]).unwrap_err(),
            PushError::Duplicate(vec![5, 2], Staged)
        );
        assert_eq!(queue.push(5).map(|()| queue.pop()), Ok(Ok(5)));
        tx.abort();
        assert_eq!(beside.keys(), 1);
        for key in [1, 3, 4] {
            assert_free(queue, key);
        }
        second.push(1).unwrap();
        assert!(second.try_commit().is_ok());
        assert_eq!((refused(queue, 1), refused(queue, 2)), (Queued, Queued));
        // Once more, since the state of a handle is used again.
        let tx = one.begin();
        tx.push(3).unwrap();
        assert_eq!(refused(queue, 3), Staged);
        drop(tx);
        assert_free(queue, 3);
        assert_eq!((drain(queue).len(), beside.keys()), (2, 0));
    }
    in_all_orders!(check, |it| it);
}

#[test]
fn a_batch_is_refused_as_a_whole() {
    fn check<O: Order<u32>>(beside: &Beside, queue: &Queue<u32, O>) {
        let twice = vec![1, 2, 1 + KEYS];
        let of = |batch: &Vec<u32>, of| Err(PushError::Duplicate(batch.clone(), of));
        assert_eq!(queue.push_batch(twice.clone()), of(&twice, SameTransaction));
        let mut handle = queue.handle();
        let waits = handle.push_batch_timeout(twice.clone(), Duration::MAX);
        assert_eq!(waits, of(&twice, SameTransaction));
        let tx = handle.begin();
        assert_eq!(tx.push_batch(twice.clone()), of(&twice, SameTransaction));
        assert_eq!((tx.staged(), beside.keys()), (0, 0));
        tx.push_batch([1, 2]).unwrap();
        drop(tx);
        queue.push(2).unwrap();
        let batch = vec![1, 2, 3];
        assert_eq!(queue.push_batch(batch.clone()), of(&batch, Queued));
        assert_eq!((queue.len(), beside.keys()), (1, 1));
        queue.push_batch([1, 3, 4]).unwrap();
        assert_eq!((drain(queue).len(), beside.keys()), (4, 0));
    }
    in_all_orders!(check, |it| it);
}

#[test]
fn removed_items_free_their_keys() {
    fn check<O: Order<u32>>(beside: &Beside, queue: &Queue<u32, O>) {
        queue.push_batch([1, 2]).unwrap();
        assert_eq!(queue.retain(|item, _| *item == 1), 1);
        assert_free(queue, 2);
        assert_eq!(queue.clear_all(), 1);
        let ticket = queue.after(SECOND).push(1).unwrap();
        assert_eq!(refused(queue, 1), Queued);
        assert_eq!(queue.cancel(ticket), Some(1));
        queue.after(SECOND).push(1).unwrap();
        let again = queue.after(SECOND).push(1);
        assert_eq!(again.unwrap_err(), PushError::Duplicate(1, Queued));
        assert_eq!((queue.clear_all(), beside.keys()), (1, 0));
        let mut handle = queue.handle();
        let tx = handle.begin();
        tx.after(SECOND).push(1).unwrap();
        assert_eq!(refused(queue, 1), Staged);
        assert!(tx.try_commit().is_ok());
        assert_eq!(refused(queue, 1), Queued);
        beside.clock.advance(SECOND);
        assert_eq!((queue.pop(), beside.keys()), (Ok(1), 0));
        queue.push(1).unwrap();
        let tx = handle.begin();
        tx.push(2).unwrap();
        queue.close();
        assert_eq!(queue.push(1), Err(PushError::Closed(1)));
        drop(tx);
        queue.close_now();
        drain(queue);
        assert_eq!(beside.keys(), 0);
    }
    in_all_orders!(check, |it| it);
}

#[test]
fn a_dead_letter_has_no_key() {
    fn check<O: Order<u32>>(beside: &Beside, queue: &Queue<u32, O>) {
        let fail = |key: u32| {
            queue.push(key).unwrap();
            let job = queue.take().unwrap();
            assert_eq!(*job, key);
            job.fail("it is broken");
        };
        fail(1);
        fail(2);
        fail(1 + KEYS);
        assert_eq!(beside.keys(), 0);
        queue.push(1).unwrap();
        let letters = queue.dead_letters();
        let mut ids = Vec::new();
        letters.visit(|letter| ids.push(letter.id()));
        assert!(!letters.requeue(ids[0]));
        assert_eq!((letters.len(), letters.requeue_all()), (3, 1));
        assert_eq!((letters.len(), refused(queue, 2)), (2, Queued));
        assert_eq!((drain(queue).len(), beside.keys()), (2, 0));
        assert!(letters.requeue(ids[0]));
        assert_eq!((refused(queue, 1), letters.requeue_all()), (Queued, 0));
        assert_eq!((drain(queue), beside.keys()), (vec![1], 0));
    }
    in_all_orders!(check, |it| it);
}

#[test]
fn items_that_time_out_free_their_keys() {
    fn check<O: Order<u32>>(beside: &Beside, queue: &Queue<u32, O>) {
        queue.push_batch([1, 2]).unwrap();
        beside.clock.advance(SECOND * 2);
        assert_free(queue, 1);
        assert_eq!((queue.pop().is_err(), beside.keys()), (true, 0));
    }
    in_all_orders!(check, |it| it.ttl(SECOND));
}

#[test]
fn an_item_whose_lease_expires_keeps_its_key() {
    fn check<O: Order<u32>>(beside: &Beside, queue: &Queue<u32, O>) {
        queue.push(1).unwrap();
        let mut late = queue.handle();
        let tx = late.begin();
        tx.pop().unwrap();
        let delivery = || queue.take().unwrap();
        beside.clock.advance(SECOND * 5);
        let second = delivery();
        assert_eq!(refused(queue, 1), Held);
        assert!(tx.try_commit().is_err());
        assert_eq!(refused(queue, 1), Held);
        beside.clock.advance(SECOND * 5);
        assert_eq!(queue.len(), 1);
        assert_eq!(refused(queue, 1), Queued);
        assert!(second.try_ack().is_err());
        delivery().try_ack().unwrap();
        assert_eq!(beside.keys(), 0);
        assert_free(queue, 1);
    }
    let (beside, it) = builder();
    check(&beside, &it.leased(SECOND * 5).build());
    let (beside, it) = builder();
    check(
        &beside,
        &it.fair_by(|item| *item).leased(SECOND * 5).build(),
    );
    let (beside, it) = builder();
    check(&beside, &it.by_priority().leased(SECOND * 5).build());
}

#[test]
fn a_key_function_that_panics_pushes_nothing() {
    let beside = Arc::new(());
    let counted = Arc::clone(&beside);
    let queue = Queue::builder()
        .unique_by(move |&item: &u32| {
            assert_ne!(item, 13, "no key");
            Key(item, Arc::clone(&counted))
        })
        .build();
    let mut handle = queue.handle();
    assert!(panics(|| queue.push(13)));
    assert!(panics(|| handle.push_batch([1, 13])));
    assert!(panics(|| handle.push_blocking(13)));
    assert!(panics(|| handle.begin().push(13)));
    assert!(panics(|| handle.begin().push_batch([1, 13])));
    assert!(panics(|| queue.after(SECOND).push(13)));
    assert_eq!(Arc::strong_count(&beside), 2);
    queue.push(1).unwrap();
    queue.stats().check().unwrap();
    assert_eq!(drain(&queue), [1]);
}

#[test]
fn a_push_waits_for_the_end_of_what_is_staged() {
    fn check<O: Order<u32>>(beside: &Beside, queue: &Queue<u32, O>) {
        let (mut staging, mut one, mut two) = (queue.handle(), queue.handle(), queue.handle());
        let tx = staging.begin();
        tx.push_batch([1, 2]).unwrap();
        let mut tasks = (
            Task::waiting(queue.push_async(1)),
            Task::waiting(one.push_async(1)),
            Task::waiting(two.push_batch_async([3, 2])),
        );
        tx.abort();
        assert!(tasks.0.was_woken() && tasks.1.was_woken() && tasks.2.was_woken());
        assert_eq!(tasks.0.output(), Ok(()));
        assert_eq!(tasks.1.output(), Err(PushError::Duplicate(1, Queued)));
        assert_eq!(tasks.2.output(), Ok(2));
        assert_eq!((drain(queue).len(), beside.keys()), (3, 0));
        drop(tasks);

        let (tx, waiting) = (staging.begin(), one.begin());
        tx.push(1).unwrap();
        let mut task = Task::waiting(waiting.push_async(1));
        let mut forgotten = Task::waiting(queue.push_async(1));
        forgotten.assert_waits();
        drop(forgotten);
        assert!(tx.try_commit().is_ok());
        assert!(task.was_woken());
        assert_eq!(task.output(), Err(PushError::Duplicate(1, Queued)));
        drop(task);
        // What has staged something does not wait.
        waiting.push(3).unwrap();
        let tx = staging.begin();
        tx.push(2).unwrap();
        let refused = waiting.push_timeout(2, Duration::MAX);
        assert_eq!(refused, Err(PushError::Duplicate(2, Staged)));
        assert_eq!(
            queue.push_timeout(2, Duration::ZERO),
            Err(PushError::Duplicate(2, Staged))
        );
        let now = beside.clock.now();
        assert_eq!(
            queue.push_deadline(2, now),
            Err(PushError::Duplicate(2, Staged))
        );
        drop((tx, waiting));
        assert_eq!((drain(queue).len(), beside.keys()), (1, 0));
    }
    in_all_orders!(check, |it| it);
}

#[test]
fn threads_wait_for_the_end_of_what_is_staged() {
    let (_, builder) = builder();
    let queue = builder.build();
    let (mut handle, waits) = (queue.handle(), queue.clone());
    let tx = handle.begin();
    tx.push(1).unwrap();
    let timed = queue.clone();
    let clock = queue.clone();
    let timed = ends(move || {
        let now = clock.now();
        (timed.push_deadline(1, now), timed.push(2))
    });
    assert_eq!(timed, (Err(PushError::Duplicate(1, Staged)), Ok(())));
    let waits = thread::spawn(move || waits.push_blocking(1 + KEYS));
    tx.abort();
    assert_eq!(ends(move || waits.join().unwrap()), Ok(()));
    assert_eq!(drain(&queue).len(), 2);
}

#[test]
fn a_duplicate_needs_no_room() {
    let (beside, builder) = builder();
    let queue = builder.capacity(2).build();
    queue.push_batch([1, 2]).unwrap();
    assert_eq!(queue.push(3), Err(PushError::Full(3)));
    assert_eq!(refused(&queue, 1), Queued);
    assert_eq!(
        queue.push_timeout(1, Duration::MAX),
        Err(PushError::Duplicate(1, Queued))
    );
    let mut full = Task::waiting(queue.push_async(3));
    assert_eq!(queue.pop(), Ok(1));
    assert_eq!((full.output(), beside.keys()), (Ok(()), 2));
    // It waits for the key, and then for room.
    let mut handle = queue.handle();
    assert_eq!(queue.pop(), Ok(2));
    let tx = handle.begin();
    tx.push(4).unwrap();
    let mut waits = Task::waiting(queue.push_async(4));
    assert!(tx.try_commit().is_ok());
    assert_eq!(waits.output(), Err(PushError::Duplicate(4, Queued)));
    assert_eq!(drain(&queue).len(), 2);
}

#[test]
fn a_key_stays_taken_for_its_window() {
    fn check<O: Order<u32>>(beside: &Beside, queue: &Queue<u32, O>) {
        let mut handle = queue.handle();
        let ends: [&mut dyn FnMut(); 3] = [
            &mut || assert_eq!(queue.pop(), Ok(1)),
            &mut || assert_eq!(queue.take().unwrap().try_ack().ok(), Some(1)),
            &mut || {
                let tx = handle.begin();
                tx.pop().unwrap();
                drop(tx.try_commit().unwrap());
            },
        ];
        for end in ends {
            queue.push(1).unwrap();
            end();
            assert_eq!(refused(queue, 1), Recent);
            let waits = queue.push_timeout(1, Duration::MAX);
            assert_eq!(waits, Err(PushError::Duplicate(1, Recent)));
            beside.clock.advance(NEARLY);
            assert_eq!(refused(queue, 1), Recent);
            beside.clock.advance(INSTANT);
            assert_free(queue, 1);
        }
        // What is removed has no window, nor has a dead letter.
        queue.push(1).unwrap();
        assert_eq!(queue.clear_all(), 1);
        queue.push(1).unwrap();
        queue.take().unwrap().fail("broken");
        queue.push(1).unwrap();
        assert_eq!(queue.pop(), Ok(1));
        beside.clock.advance(SECOND);
        // Pushes of other keys free the keys whose windows are over, in the tables where they are.
        for item in 2..500 {
            queue.push(item).unwrap();
            queue.pop().unwrap();
            beside.clock.advance(SECOND);
        }
        assert!(beside.keys() <= 3 * 16, "{} are kept", beside.keys());
    }
    in_all_orders!(check, |it| it.unique_for(SECOND));
}

#[test]
fn a_value_is_replaced_in_its_place() {
    fn check<O: Order<u32>>(beside: &Beside, queue: &Queue<u32, O>) {
        queue.push(1).unwrap();
        let mut worker = queue.handle();
        worker.push(1 + KEYS).unwrap();
        queue.push_blocking(1 + 2 * KEYS).unwrap();
        let mut task = Task::new(queue.push_async(1 + 3 * KEYS));
        assert_eq!(task.output(), Ok(()));
        assert_eq!((queue.len(), beside.keys()), (1, 1));
        // Batches, transactions and pushes with a time are refused.
        assert_eq!(
            queue.push_batch([1]),
            Err(PushError::Duplicate(vec![1], Queued))
        );
        let late = queue.after(SECOND).push(1);
        assert_eq!(late.unwrap_err(), PushError::Duplicate(1, Queued));
        let tx = worker.begin();
        assert_eq!(tx.push(1), Err(PushError::Duplicate(1, Queued)));
        // What holds it has the new value, and a lease has too.
        assert_eq!(*tx.pop().unwrap(), 1 + 3 * KEYS);
        assert_eq!(queue.push(1), Err(PushError::Duplicate(1, Held)));
        tx.abort();
        queue.push(1 + 4 * KEYS).unwrap(); // of a delayed one, which keeps its time
        assert!(queue.pop().is_err());
        beside.clock.advance(SECOND);
        let job = queue.take().unwrap();
        assert_eq!((*job, job.attempts()), (1 + 4 * KEYS, 2));
        job.try_ack().unwrap();
        let ticket = queue.after(SECOND).push(1).unwrap();
        queue.push(1 + KEYS).unwrap();
        assert!(queue.pop().is_err());
        assert_eq!((queue.cancel(ticket), beside.keys()), (Some(1 + KEYS), 0));
        // A peek sees it, and a visit the old one.
        queue.push(1).unwrap();
        queue.push(1 + KEYS).unwrap();
        let mut seen = Vec::new();
        queue.peek_each(|item| seen.push(*item));
        let tx = worker.begin();
        let peek = tx.peek().unwrap();
        assert_eq!((&*seen, *peek), (&[1][..], 1 + KEYS));
        drop(peek);
        queue.push(1 + 2 * KEYS).unwrap();
        assert_eq!(*tx.pop().unwrap(), 1 + 2 * KEYS);
        assert!(tx.try_commit().is_ok());
        queue.push(1).unwrap();
        queue.push(1 + KEYS).unwrap();
        assert_eq!((queue.clear_all(), beside.keys()), (1, 0));
        queue.stats().check().unwrap();
    }
    in_all_orders!(check, |it| it.on_duplicate(OnDuplicate::Replace));
}

#[test]
fn a_replaced_value_keeps_its_place() {
    let queue = replacing(OnDuplicate::Replace).capacity(3).build();
    queue.push_batch([1, 2, 3]).unwrap();
    queue.push(2 + KEYS).unwrap(); // without room
    queue.push(1 + KEYS).unwrap();
    assert_eq!(drain(&queue), [1 + KEYS, 2 + KEYS, 3]);
    let queue = replacing(OnDuplicate::Replace).by_priority().build();
    queue.priority(1).push(1).unwrap();
    queue.priority(2).push(2).unwrap();
    queue.priority(3).push(1 + KEYS).unwrap();
    assert_eq!(drain(&queue), [1 + KEYS, 2]);
}

fn replacing(rule: OnDuplicate) -> Builder<u32> {
    builder().1.on_duplicate(rule)
}

#[test]
fn what_times_out_is_the_new_value() {
    let (beside, it) = builder();
    let queue = it
        .on_duplicate(OnDuplicate::Replace)
        .ttl(SECOND)
        .on_expired(AfterTtl::DeadLetter)
        .build();
    queue.push(1).unwrap();
    queue.push(1 + KEYS).unwrap();
    beside.clock.advance(SECOND * 2);
    assert_eq!(queue.pop(), Err(PopError::Empty));
    let letters: Vec<_> = queue.dead_letters().map(|letter| letter.item).collect();
    assert_eq!((letters, beside.keys()), (vec![1 + KEYS], 0));
}

/// Takes an item and ends it for good.
type End<O> = fn(&Queue<u32, O>, &mut Handle<u32, O>);

#[test]
fn a_push_follows_a_held_item() {
    fn check<O: Order<u32>>(beside: &Beside, queue: &Queue<u32, O>) {
        let mut worker = queue.handle();
        let ends: [End<O>; 4] = [
            |queue, _| assert!(queue.take().unwrap().try_ack().is_ok()),
            |queue, _| queue.take().unwrap().fail("broken"),
            |_, worker| {
                let tx = worker.begin();
                tx.pop().unwrap();
                drop(tx.try_commit().unwrap());
            },
            |_, worker| {
                let tx = worker.begin();
                let item = tx.pop().unwrap();
                tx.fail(item, "broken").unwrap();
                drop(tx.try_commit().unwrap());
            },
        ];
        for end in ends {
            queue.push(1).unwrap();
            let job = queue.take().unwrap();
            queue.push(1 + KEYS).unwrap();
            assert_eq!((queue.stats().delayed, beside.keys()), (1, 2));
            queue.push(1 + 2 * KEYS).unwrap();
            assert_eq!(
                queue.push_batch([1]),
                Err(PushError::Duplicate(vec![1], Held))
            );
            assert_eq!((queue.stats().delayed, beside.keys()), (1, 2));
            assert!(queue.pop().is_err());
            job.release();
            assert_eq!((queue.len(), queue.stats().delayed), (1, 1));
            end(queue, &mut worker);
            assert_eq!((queue.len(), queue.stats().delayed), (1, 0));
            queue.push(1 + 3 * KEYS).unwrap();
            assert_eq!((queue.pop(), beside.keys()), (Ok(1 + 3 * KEYS), 0));
            queue.stats().check().unwrap();
        }
        // A closed queue is not drained before it.
        queue.push(1).unwrap();
        let job = queue.take().unwrap();
        queue.push(1 + KEYS).unwrap();
        queue.close();
        let mut task = Task::waiting(worker.pop_async());
        assert_eq!(queue.push(1), Err(PushError::Closed(1)));
        job.try_ack().unwrap();
        assert_eq!(
            (task.output(), queue.pop()),
            (Ok(1 + KEYS), Err(PopError::Closed))
        );
    }
    in_all_orders!(check, |it| it.on_duplicate(OnDuplicate::Follow));
}

#[test]
fn what_follows_needs_room() {
    let queue = replacing(OnDuplicate::Follow).capacity(2).build();
    queue.push_batch([1, 2]).unwrap();
    let (one, two) = (queue.take().unwrap(), queue.take().unwrap());
    assert_eq!(queue.push(1 + KEYS), Err(PushError::Full(1 + KEYS)));
    let mut waits = Task::waiting(queue.push_async(1 + KEYS));
    two.ack();
    assert_eq!(waits.output(), Ok(()));
    assert_eq!(queue.push(3), Err(PushError::Full(3)));
    queue.push(1 + 2 * KEYS).unwrap(); // instead of it
    one.ack();
    queue.push(3).unwrap();
    assert_eq!(queue.push(4), Err(PushError::Full(4)));
    assert_eq!(drain(&queue).len(), 2);
    queue.push_batch([1, 2]).unwrap();
    assert_eq!(drain(&queue).len(), 2);
    queue.stats().check().unwrap();
}

#[test]
fn values_are_dropped_once() {
    let ledger = Ledger::new(6);
    let queue = Queue::builder()
        .unique_by(|_: &Tracked| ())
        .on_duplicate(OnDuplicate::Follow)
        .build();
    let mut items = ledger.items_with_bomb(1);
    let mut push = || assert!(queue.push(items.next().unwrap()).is_ok());
    push();
    push();
    push(); // drops one that panics
    let job = queue.take().unwrap();
    assert_eq!((job.id, ledger.drops()), (2, vec![1, 1, 0, 0, 0, 0]));
    push();
    push();
    assert_eq!(ledger.drops(), [1, 1, 0, 1, 0, 0]);
    drop(job.ack());
    push();
    drop(queue);
    ledger.assert_each_dropped_once();
}

/// Threads push, abort and take items with few keys. Of each key at most one item is held, and none is lost.
#[test]
fn at_most_one_item_of_a_key_is_held() {
    const THREADS: usize = 4;
    const STEPS: u32 = 1_000;
    for rule in [
        OnDuplicate::Refuse,
        OnDuplicate::Replace,
        OnDuplicate::Follow,
    ] {
        let builder = Queue::builder().unique_by(|item| item % KEYS);
        let queue = builder.on_duplicate(rule).build();
        let held: [AtomicBool; 4] = Default::default();
        let work = |seed: usize| {
            let (mut rng, mut handle) = (Rng::new(seed as u64), queue.handle());
            let (mut pushed, mut committed) = (0_u64, 0_u64);
            for step in 0..STEPS {
                let item = u32::try_from(rng.below(4)).unwrap() + KEYS * step;
                match rng.below(4) {
                    0 => pushed += u64::from(handle.push_blocking(item).is_ok()),
                    1 => {
                        let tx = handle.begin();
                        let staged = u64::from(tx.push(item).is_ok());
                        if rng.percent(50) {
                            drop(tx.commit());
                            pushed += staged;
                        }
                    }
                    _ => {
                        let tx = handle.begin();
                        let Ok(item) = tx.pop() else { continue };
                        let is_held = &held[(*item % KEYS) as usize];
                        assert!(!is_held.swap(true, Ordering::SeqCst));
                        thread::yield_now();
                        is_held.store(false, Ordering::SeqCst);
                        if rng.percent(70) {
                            drop(tx.commit());
                            committed += 1;
                        }
                    }
                }
            }
            (pushed, committed)
        };
        let counts: Vec<_> = thread::scope(|scope| {
            let work = &work;
            let threads: Vec<_> = (0..THREADS)
                .map(|seed| scope.spawn(move || work(seed)))
                .collect();
            threads.into_iter().map(|it| it.join().unwrap()).collect()
        });
        let left = drain(&queue).len() as u64;
        let sum = |of: fn(&(u64, u64)) -> u64| counts.iter().map(of).sum::<u64>();
        let (pushed, committed) = (sum(|it| it.0), sum(|it| it.1));
        assert!(left <= 4 && pushed >= committed + left);
        if rule == OnDuplicate::Refuse {
            assert_eq!(pushed, committed + left);
        }
        queue.stats().check().unwrap();
    }
}

/// All that is kept beside an item, at once.
#[test]
fn a_queue_may_have_weights_and_times_to_live_too() {
    let clock = ManualClock::new();
    let queue = Queue::builder()
        .unique_by(|item: &u32| item % 10)
        .weigh(|item: &u32| *item as usize % 10)
        .capacity(10)
        .max_ttl(SECOND * 10)
        .clock(clock.clone())
        .build();
    queue.expires_in(SECOND).push(4).unwrap();
    queue.push(5).unwrap();
    assert!(queue.push(12).unwrap_err().is_full());
    assert!(queue.push(14).unwrap_err().is_duplicate());
    assert_eq!(queue.weight(), 9);
    clock.advance(SECOND);
    queue.push_batch([11, 14]).unwrap();
    assert_eq!((queue.weight(), queue.len()), (10, 3));
    assert!(queue.push_batch([22, 32]).is_err());
    let delivery = queue.take().unwrap();
    assert_eq!(queue.weight(), 10);
    assert_eq!(delivery.ack(), 5);
    let tx = queue.begin_owned();
    tx.push(25).unwrap();
    assert!(queue.push(35).unwrap_err().is_duplicate());
    tx.abort();
    queue.push(35).unwrap();
    clock.advance(SECOND * 10);
    assert_eq!((queue.len(), queue.weight()), (0, 0));
    assert_eq!(queue.stats().timed_out, 4);
    for key in 0..10 {
        queue.push(key).map(|()| queue.pop().unwrap()).unwrap();
    }
}

#[test]
#[should_panic(expected = "duplicates cannot replace items that have weights")]
fn items_with_weights_are_not_replaced() {
    let builder = replacing(OnDuplicate::Replace).weigh(|item: &u32| *item as usize);
    let _ = builder.build();
}
