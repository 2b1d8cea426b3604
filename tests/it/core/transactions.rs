//! Transactions: visibility, hold, commit and abort.

use std::error::Error;

use crate::common::{assert_at_rest, drain, filled, panics};
use requeue::{Handle, PopError, PushError, Queue};

#[test]
fn staged_pushes_appear_at_commit_all_at_once() {
    let queue = Queue::unbounded();
    let mut handle = queue.handle();
    let tx = handle.begin();
    (0..100).for_each(|item| tx.push(item).unwrap());
    assert_eq!(tx.staged(), 100);
    assert_eq!(queue.pop(), Err(PopError::Empty));
    assert_at_rest(&queue, 0, 0);
    tx.commit();
    assert_at_rest(&queue, 100, 0);
    assert_eq!(drain(&queue), (0..100).collect::<Vec<_>>());
}

#[test]
fn staged_pushes_vanish_at_abort() {
    let queue = filled([1]);
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.push(2).unwrap();
    tx.abort();
    handle.push(3).unwrap();
    assert_at_rest(&queue, 2, 0);
    let mut left = drain(&queue);
    left.sort_unstable();
    assert_eq!(left, [1, 3]);
}

#[test]
fn held_items_are_hidden_from_everyone() {
    let queue = filled([1, 2, 3]);
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let tx = a.begin();
    let first = tx.pop().unwrap();
    let second = tx.pop().unwrap();
    assert_eq!((*first, *second), (1, 2));
    assert_eq!(tx.held(), 2);
    assert_at_rest(&queue, 1, 2);
    assert_eq!(b.pop(), Ok(3));
    assert_eq!(b.pop(), Err(PopError::Empty));
    assert_eq!(queue.pop(), Err(PopError::Empty));
    tx.commit();
    assert_eq!(b.pop(), Err(PopError::Empty));
}

#[test]
fn abort_keeps_the_order_and_comes_before_the_rest() {
    let queue = filled(0..1000);
    let mut handle = queue.handle();
    for held in [1, 2, 37, 500, 1000] {
        let tx = handle.begin();
        for expected in 0..held {
            assert_eq!(tx.pop().as_deref(), Ok(&expected));
        }
        tx.abort();
        let all: Vec<_> = (0..held).map(|_| handle.pop().unwrap()).collect();
        assert!(all.iter().copied().eq(0..held));
        let rest = drain(&queue);
        assert!(rest.iter().copied().eq(held..1000));
        handle.push_batch(0..1000).unwrap();
    }
}

#[test]
fn changes_to_held_items_survive_an_abort() {
    let queue = filled([String::from("a"), String::from("b")]);
    let mut handle = queue.handle();
    let tx = handle.begin();
    for mut item in tx.pop_batch(2) {
        item.push('!');
    }
    tx.abort();
    assert_eq!(drain(&queue), ["a!", "b!"]);
}

#[test]
fn changes_to_held_items_reach_taken() {
    let queue = filled([1, 2]);
    let mut handle = queue.handle();
    let tx = handle.begin();
    *tx.pop().unwrap() += 10;
    *tx.pop().unwrap() += 20;
    assert_eq!(tx.commit().collect::<Vec<_>>(), [11, 22]);
}

#[test]
fn several_items_are_held_and_changed_side_by_side() {
    let queue = filled([1, 2, 3]);
    let mut handle = queue.handle();
    let tx = handle.begin();
    let mut items: Vec<_> = tx.pop_batch(2).collect();
    items.push(tx.pop().unwrap());
    let (head, tail) = items.split_at_mut(1);
    std::mem::swap(&mut *head[0], &mut *tail[1]);
    let values: Vec<_> = items.iter().map(|item| **item).collect();
    assert_eq!(values, [3, 2, 1]);
    assert_eq!(tx.commit().collect::<Vec<_>>(), [3, 2, 1]);
}

#[test]
fn held_items_keep_their_place_while_more_are_popped() {
    let queue = filled(0..10_000);
    let mut handle = queue.handle();
    let tx = handle.begin();
    let first = tx.pop().unwrap();
    let rest: Vec<_> = tx.pop_batch(9_999).collect();
    assert_eq!(*first, 0);
    assert!(rest.iter().map(|item| **item).eq(1..10_000));
}

struct Job {
    children: Vec<Job>,
}

fn expand(worker: &mut Handle<Job>) -> Result<usize, Box<dyn Error>> {
    let tx = worker.begin();
    let job = tx.pop()?;
    for child in &job.children {
        let children = Vec::with_capacity(child.children.len());
        tx.push(Job { children })?;
    }
    let pushed = job.children.len();
    tx.commit();
    Ok(pushed)
}

#[test]
fn a_job_is_read_while_its_children_are_pushed() {
    let child = || Job { children: vec![] };
    let queue = filled([Job {
        children: vec![child(), child(), child()],
    }]);
    let mut worker = queue.handle();
    assert_eq!(expand(&mut worker).unwrap(), 3);
    for _ in 0..3 {
        assert_eq!(expand(&mut worker).unwrap(), 0);
    }
    let error = expand(&mut worker).unwrap_err();
    assert_eq!(error.downcast_ref(), Some(&PopError::Empty));
}

#[test]
fn an_early_return_aborts() {
    fn parse_sum(worker: &mut Handle<&str>) -> Result<i32, std::num::ParseIntError> {
        let tx = worker.begin();
        tx.push("staged").unwrap();
        let mut sum = 0;
        for text in tx.pop_batch(3) {
            sum += text.parse::<i32>()?;
        }
        tx.commit();
        Ok(sum)
    }
    let queue = filled(["1", "two", "3"]);
    assert!(parse_sum(&mut queue.handle()).is_err());
    assert_eq!(drain(&queue), ["1", "two", "3"]);

    let queue = filled(["1", "2", "3"]);
    assert_eq!(parse_sum(&mut queue.handle()), Ok(6));
    assert_eq!(drain(&queue), ["staged"]);
}

/// The README's example of failing workers, for each kind of failure.
#[test]
fn items_of_a_worker_are_given_back_with_its_transaction() {
    fn early(handle: &mut Handle<u32>) -> Option<()> {
        let tx = handle.begin();
        tx.pop().ok().filter(|item| **item == 0)?;
        tx.commit();
        Some(())
    }
    let workers: [fn(&mut Handle<u32>); 3] = [
        |handle| assert_eq!(early(handle), None),
        |handle| {
            let tx = handle.begin();
            let _item = tx.pop().unwrap();
            drop(tx);
        },
        |handle| {
            assert!(panics(|| {
                let tx = handle.begin();
                let item = tx.pop().unwrap();
                assert_eq!(*item, 0, "the worker fails");
                tx.commit();
            }));
        },
    ];
    for work in workers {
        let queue = filled([1, 2]);
        work(&mut queue.handle());
        assert_at_rest(&queue, 2, 0);
        assert_eq!(drain(&queue), [1, 2]);
    }
}

#[test]
fn an_item_that_is_dropped_is_held_all_the_same() {
    let queue = filled([1, 2]);
    let mut handle = queue.handle();
    let tx = handle.begin();
    {
        let mut item = tx.pop().unwrap();
        *item = 7;
    }
    assert_at_rest(&queue, 1, 1);
    assert!(tx.commit().eq([7]));
    assert_at_rest(&queue, 1, 0);
}

#[test]
fn transact_commits_on_ok_and_aborts_on_err() {
    let queue = filled([1, 2]);
    let mut handle = queue.handle();
    let failed = handle.transact(|tx| {
        let item = *tx.pop().unwrap();
        tx.push(100).unwrap();
        Err::<(), _>(item)
    });
    assert_eq!(failed, Err(1));
    assert_at_rest(&queue, 2, 0);

    let worked = handle.transact(|tx| {
        let item = *tx.pop()?;
        tx.push(100).unwrap();
        Ok::<_, PopError>(item)
    });
    assert_eq!(worked, Ok(1));
    let mut left = drain(&queue);
    left.sort_unstable();
    assert_eq!(left, [2, 100]);
}

#[test]
fn items_know_their_exact_number() {
    let queue = filled(0..5);
    let mut handle = queue.handle();
    let tx = handle.begin();
    let mut items = tx.pop_batch(3);
    assert_eq!((items.len(), tx.held()), (3, 3));
    items.next();
    assert_eq!((items.len(), items.size_hint()), (2, (2, Some(2))));
    assert_eq!(items.count(), 2);
    assert_eq!(tx.pop_batch(0).len(), 0);
    assert_eq!(tx.pop_batch(100).len(), 2);
    assert_eq!(tx.pop_batch(100).len(), 0);
    assert_eq!(tx.held(), 5);
}

#[test]
fn items_that_were_not_read_are_held_too() {
    let queue = filled(0..5);
    let mut handle = queue.handle();
    let tx = handle.begin();
    assert_eq!(tx.pop_batch(3).len(), 3);
    assert_eq!(tx.held(), 3);
    assert_eq!(tx.pop().as_deref(), Ok(&3));
    assert_eq!(tx.commit().collect::<Vec<_>>(), [0, 1, 2, 3]);
}

#[test]
fn taken_hands_the_items_over_by_value() {
    let queue = filled([String::from("a"), String::from("b"), String::from("c")]);
    let mut handle = queue.handle();
    let tx = handle.begin();
    assert_eq!(tx.pop_batch(3).len(), 3);
    let mut taken = tx.commit();
    assert_eq!((taken.len(), taken.size_hint()), (3, (3, Some(3))));
    let first: String = taken.next().unwrap();
    assert_eq!((first.as_str(), taken.len()), ("a", 2));
    assert_eq!(taken.collect::<String>(), "bc");
    assert_eq!(handle.begin().commit().len(), 0);
}

#[test]
fn batch_is_one_transaction() {
    let queue = Queue::unbounded();
    let mut handle = queue.handle();
    let batch = (0..3).inspect(|_| assert!(queue.is_empty()));
    assert_eq!(handle.push_batch(batch), Ok::<_, PushError<Vec<i32>>>(3));
    assert_eq!(handle.push_batch([]), Ok(0));
    let mut items = vec![-1];
    assert_eq!(handle.pop_batch(2, &mut items), 2);
    assert_eq!(handle.pop_batch(0, &mut items), 0);
    assert_eq!(handle.pop_batch(2, &mut items), 1);
    assert_eq!(handle.pop_batch(2, &mut items), 0);
    assert_eq!(items, [-1, 0, 1, 2]);
}

#[test]
fn a_batch_takes_ready_items_of_all_shards() {
    let queue = Queue::unbounded();
    let mut handles: Vec<_> = (0..3).map(|_| queue.handle()).collect();
    for (handle, first) in handles.iter_mut().zip([0, 10, 20]) {
        handle.push_batch(first..first + 10).unwrap();
    }
    handles[0].begin().pop().unwrap();
    (30..35).for_each(|item| queue.push(item).unwrap());
    let mut items = Vec::new();
    assert_eq!(handles[1].pop_batch(100, &mut items), 35);
    items.sort_unstable();
    assert!(items.into_iter().eq(0..35));
}
