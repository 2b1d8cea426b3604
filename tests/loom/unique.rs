//! Unique keys: of concurrent pushes of a key at most one is accepted, and nobody waits for one that has been freed.

use super::{model, warm};
use loom::sync::Mutex;
use loom::thread;
use requeue::DuplicateOf::{Held, Queued};
use requeue::{DuplicateOf, Handle, OnDuplicate, PopError, PushError, Queue, StorePlace};
use std::sync::Arc;
use std::time::Duration;

/// Items with the same last digit are equal.
fn unique(rule: OnDuplicate) -> (Queue<u32>, [Handle<u32>; 2]) {
    let builder = Queue::builder().unique_by(|item| item % 10);
    let queue = builder.on_duplicate(rule).build();
    let handles = [warm(&queue), warm(&queue)];
    (queue, handles)
}

/// That of a push that is refused.
fn duplicate(item: u32, of: DuplicateOf) -> Result<(), PushError<u32>> {
    Err(PushError::Duplicate(item, of))
}

#[test]
fn two_pushes_of_a_key() {
    model(|| {
        let (queue, [mut one, mut two]) = unique(OnDuplicate::Refuse);
        let other = thread::spawn(move || (one.push(1), one));
        let pushed = two.push(11);
        let (other, one) = other.join().unwrap();
        match (pushed, other) {
            (Ok(()), refused) => assert_eq!(refused, duplicate(1, Queued)),
            (refused, Ok(())) => assert_eq!(refused, duplicate(11, Queued)),
            both => panic!("{both:?}"),
        }
        assert_eq!(queue.len(), 1);
        drop((one, two));
    });
}

#[test]
fn a_push_against_a_pop() {
    model(|| {
        let (queue, [mut one, mut two]) = unique(OnDuplicate::Refuse);
        queue.push(1).unwrap();
        let other = thread::spawn(move || (one.pop(), one));
        let pushed = two.push(11);
        let (popped, one) = other.join().unwrap();
        assert_eq!(popped, Ok(1));
        match pushed {
            Ok(()) => assert_eq!(queue.pop(), Ok(11)),
            refused => assert!([Held, Queued]
                .map(|of| duplicate(11, of))
                .contains(&refused)),
        }
        two.push(21).unwrap();
        drop((one, two));
    });
}

/// As that of a store whose items are on the disk only, until they come into memory.
#[test]
fn a_push_against_an_item_that_comes_from_elsewhere() {
    model(|| {
        let is_elsewhere = Arc::new(Mutex::new(false));
        let looked = Arc::clone(&is_elsewhere);
        let builder = Queue::builder().unique_by(|item: &u32| item % 10);
        let builder = builder.on_reserve(Arc::new(move |_| match *looked.lock().unwrap() {
            true => Err(PushError::Duplicate((), Queued)),
            false => Ok(()),
        }));
        let queue = builder.build();
        let mut one = warm(&queue);
        *is_elsewhere.lock().unwrap() = true;
        let to = queue.clone();
        let other = thread::spawn(move || {
            let mut is_elsewhere = is_elsewhere.lock().unwrap();
            let mut restore = to.restore();
            assert!(restore.add(1, StorePlace::default(), 0, Duration::ZERO));
            drop(restore);
            *is_elsewhere = false;
        });
        let pushed = one.push(11);
        other.join().unwrap();
        assert_eq!(pushed, duplicate(11, Queued));
        assert_eq!((queue.len(), queue.pop()), (1, Ok(1)));
        one.push(21).unwrap();
    });
}

/// Waits for a transaction that ends like this.
fn waits(commits: bool) {
    let (queue, [mut one, mut two]) = unique(OnDuplicate::Refuse);
    let tx = one.begin();
    tx.push(1).unwrap();
    let waiter = thread::spawn(move || (two.push_blocking(11), two));
    if commits {
        drop(tx.commit());
    } else {
        tx.abort();
    }
    let (pushed, two) = waiter.join().unwrap();
    let refused = duplicate(11, Queued);
    assert_eq!(pushed, if commits { refused } else { Ok(()) });
    assert_eq!(queue.len(), 1);
    drop((one, two));
}

#[test]
fn a_sleeper_against_the_commit_of_its_key() {
    model(|| waits(true));
}

#[test]
fn a_sleeper_against_the_abort_of_its_key() {
    model(|| waits(false));
}

/// The batch takes a key, and gives it back.
#[test]
fn a_sleeper_against_a_batch_that_is_refused() {
    model(|| {
        let (queue, [mut one, mut two]) = unique(OnDuplicate::Refuse);
        queue.push(2).unwrap();
        let waiter = thread::spawn(move || (two.push_blocking(11), two));
        let tx = one.begin();
        assert!(tx.push_batch([1, 2]).is_err());
        let (pushed, two) = waiter.join().unwrap();
        assert_eq!(pushed, Ok(()));
        drop(tx);
        drop((one, two));
    });
}

#[test]
fn a_replacing_push_against_a_pop() {
    model(|| {
        let (queue, [mut one, mut two]) = unique(OnDuplicate::Replace);
        queue.push(1).unwrap();
        let other = thread::spawn(move || (one.pop(), one));
        let pushed = two.push(11);
        let (popped, one) = other.join().unwrap();
        match (pushed, popped) {
            (Ok(()), Ok(11)) => assert!(queue.is_empty()),
            (Ok(()), Ok(1)) => assert_eq!(queue.pop(), Ok(11)),
            (refused, Ok(1)) => assert_eq!(refused, duplicate(11, Held)),
            other => panic!("{other:?}"),
        }
        drop((one, two));
    });
}

#[test]
fn a_replacing_push_against_a_return() {
    model(|| {
        let (queue, [mut one, mut two]) = unique(OnDuplicate::Replace);
        one.push(1).unwrap();
        let tx = one.begin();
        assert_eq!(tx.pop().map(|item| *item), Ok(1));
        let other = thread::spawn(move || (two.push(11), two));
        tx.abort();
        let (pushed, two) = other.join().unwrap();
        assert!([Ok(()), duplicate(11, Held)].contains(&pushed));
        assert_eq!(queue.peek_each(|item| assert_eq!(*item, 1)), 1);
        queue.push(21).unwrap();
        assert_eq!((queue.pop(), queue.pop().is_err()), (Ok(21), true));
        drop((one, two));
    });
}

/// It is pushed by the commit, or afterwards, also if the queue is closed meanwhile.
#[test]
fn a_push_that_follows_against_a_commit() {
    model(|| {
        let (queue, [mut one, mut two]) = unique(OnDuplicate::Follow);
        one.push(1).unwrap();
        let tx = one.begin();
        assert_eq!(tx.pop().map(|item| *item), Ok(1));
        let other = thread::spawn(move || (two.push(11), two));
        drop(tx.commit());
        let (pushed, two) = other.join().unwrap();
        assert_eq!((pushed, queue.pop()), (Ok(()), Ok(11)));
        assert!(queue.is_empty());
        queue.stats().check().unwrap();
        drop((one, two));
    });
}

#[test]
fn a_pop_of_what_follows_after_the_close() {
    model(|| {
        let (queue, [mut one, mut two]) = unique(OnDuplicate::Follow);
        one.push(1).unwrap();
        let tx = one.begin();
        assert_eq!(tx.pop().map(|item| *item), Ok(1));
        queue.push(11).unwrap();
        queue.close();
        let other = thread::spawn(move || (two.pop_blocking(), two));
        drop(tx.commit());
        let (popped, two) = other.join().unwrap();
        assert_eq!(popped, Ok(11));
        drop((one, two));
    });
}

/// Whoever knows that nothing is left of a transaction can push an item with its key.
fn frees(queue: &Queue<u32>, mut handle: Handle<u32>, end: impl FnOnce()) {
    let idle = queue.clone();
    let other = thread::spawn(move || {
        idle.wait_idle();
        (handle.push(11), handle)
    });
    end();
    let (pushed, handle) = other.join().unwrap();
    assert_eq!(pushed, Ok(()));
    drop(handle);
}

#[test]
fn a_wait_for_idle_against_a_commit() {
    model(|| {
        let (queue, [mut one, two]) = unique(OnDuplicate::Refuse);
        one.push(1).unwrap();
        let tx = one.begin();
        drop(tx.pop().unwrap());
        frees(&queue, two, || drop(tx.commit()));
        drop(one);
    });
}

#[test]
fn a_wait_for_idle_against_an_abort() {
    model(|| {
        let (queue, [mut one, two]) = unique(OnDuplicate::Refuse);
        let tx = one.begin();
        tx.push(1).unwrap();
        frees(&queue, two, || tx.abort());
        drop(one);
    });
}

/// What is accepted is popped before the queue is drained.
#[test]
fn a_push_that_follows_against_a_close() {
    model(|| {
        let (queue, [mut one, mut two]) = unique(OnDuplicate::Follow);
        one.push(1).unwrap();
        let tx = one.begin();
        drop(tx.pop().unwrap());
        let other = thread::spawn(move || (two.push(11), two));
        queue.close();
        drop(tx.commit());
        let popped = queue.pop();
        let (pushed, two) = other.join().unwrap();
        let late = queue.pop();
        assert!(popped != Err(PopError::Closed) || late.is_err());
        match pushed {
            Ok(()) => assert!([popped, late].contains(&Ok(11))),
            refused => assert!(refused.unwrap_err().is_closed() && late.is_err()),
        }
        drop((one, two));
    });
}
