//! Leased queues of any order: the order is unchanged, and its own methods are available.

use crate::common::failing::{clocked, SECOND};
use crate::common::{assert_at_rest, drain, ends};
use requeue::{
    try_commit_all, Expired, Handle, Leased, ManualClock, Order, Prioritized, PushError, Queue,
    Unleased, Workers,
};

/// Takes the next item and lets its lease expire: the item is ready again, and the transaction cannot commit.
fn loses_the_first<T: Clone + PartialEq + std::fmt::Debug, O: Order<T> + Unleased>(
    clock: &ManualClock,
    queue: &Queue<T, Leased<O>>,
) {
    let mut late = queue.named_handle("late");
    for early in [false, true] {
        let tx = late.begin();
        let first = tx.pop().unwrap().clone();
        let before = queue.len();
        if early {
            clock.advance(SECOND / 2);
            assert_eq!(queue.recover("late", queue.now()), 1);
        } else {
            clock.advance(SECOND);
        }
        assert_eq!(queue.len(), before + 1);
        assert_eq!(queue.pop().as_ref(), Ok(&first));
        assert_eq!(tx.try_commit().err(), Some(Expired));
        queue.push(first).unwrap();
    }
}

#[test]
fn a_leased_fair_queue_knows_its_keys() {
    let (clock, builder) = clocked();
    // Settings of fair queues are allowed before and after `leased`.
    let builder = builder.fair_by(|item: &u32| item % 10).key_capacity(2);
    let queue = builder.leased(SECOND).weight(|key| key + 1).build();
    queue.handle().push_batch([10, 20, 11, 21, 12]).unwrap();
    let keys = queue.keys();
    assert!(keys.iter().eq([(&0, 2), (&1, 2), (&2, 1)]));
    assert_eq!(queue.push(31), Err(PushError::Full(31)));
    assert_eq!(queue.key_at_limit(&31), Some(1));
    assert_eq!((queue.key_at_limit(&32), queue.key_of(&32)), (None, 2));
    assert_eq!(drain(&queue), [10, 11, 21, 12, 20]);
    queue.push(7).unwrap();
    loses_the_first(&clock, &queue);
    assert_at_rest(&queue, 1, 0);
}

#[test]
fn a_leased_serial_queue_gives_out_the_next_of_a_key_when_the_lease_is_over() {
    let (clock, builder) = clocked();
    let builder = builder.fair_by(|_: &u32| ()).leased(SECOND);
    let queue = builder.serial().build();
    queue.handle().push_batch([1, 2]).unwrap();
    let mut slow = queue.handle();
    let tx = slow.begin();
    assert_eq!(*tx.pop().unwrap(), 1);
    assert!(queue.pop().is_err());
    clock.advance(SECOND);
    assert_eq!(drain(&queue), [1, 2]);
    assert!(tx.try_commit().is_err());
}

/// All operations of a priority queue on an item, leased or not.
fn pushes_and_changes<O: Prioritized<u32>>(queue: &Queue<u32, O>, handle: &mut Handle<u32, O>) {
    let first = queue.priority(9).push(1).unwrap();
    let second = handle.priority(8).push(2).unwrap();
    let tx = handle.begin();
    tx.priority(7).push(3).unwrap();
    tx.at(queue.now() + SECOND).push(4).unwrap();
    assert!(tx.try_commit().is_ok());
    assert_eq!(queue.next_scheduled(), Some(queue.now() + SECOND));
    assert!(queue.reprioritize(first, 1));
    assert_eq!(queue.cancel(second), Some(2));
    assert_eq!(drain(queue), [1, 3]);
}

#[test]
fn a_leased_queue_by_priority_has_priorities_and_tickets() {
    let (clock, builder) = clocked();
    let builder = builder.by_priority();
    let plain = builder.clone().build();
    pushes_and_changes(&plain, &mut plain.handle());
    let queue = builder.leased(SECOND).build();
    pushes_and_changes(&queue, &mut queue.handle());
    clock.advance(SECOND);
    assert_eq!(drain(&queue), [4]);
    queue.push(5).unwrap();
    loses_the_first(&clock, &queue);
}

#[test]
fn a_leased_queue_by_priority_ages() {
    let (clock, builder) = clocked();
    let builder = builder.by_priority().leased(100 * SECOND);
    let queue = builder.age_after(SECOND).build();
    queue.priority(5).push("old").unwrap();
    clock.advance(4 * SECOND);
    queue.priority(2).push("new").unwrap();
    assert_eq!(drain(&queue), ["old", "new"]);
}

#[test]
fn a_late_transact_says_so_and_commits_nothing() {
    let (clock, builder) = clocked();
    let queue = builder.leased(SECOND).build();
    queue.push(1).unwrap();
    let mut handle = queue.handle();
    let late = handle.try_transact(|tx| {
        tx.push(2).unwrap();
        assert!(tx.pop().is_ok());
        clock.advance(SECOND);
        assert_eq!(queue.len(), 1);
        Ok(())
    });
    assert_eq!(late, Err(Expired));
    assert_eq!(
        handle.try_transact(|tx| Ok::<_, Expired>(*tx.pop().unwrap())),
        Ok(1)
    );
    assert_at_rest(&queue, 0, 0);
}

/// An error of a worker.
#[derive(Debug, PartialEq)]
enum Failed {
    Work,
    Late,
}

impl From<Expired> for Failed {
    fn from(Expired: Expired) -> Self {
        Self::Late
    }
}

#[test]
fn a_transact_that_fails_aborts_whatever_the_order() {
    let (_, builder) = clocked::<u32>();
    let plain = builder.clone().build();
    let leased = builder.leased(SECOND).build();
    fails(&plain);
    fails(&leased);
}

fn fails<O: Order<u32>>(queue: &Queue<u32, O>) {
    queue.push(1).unwrap();
    let failed = queue.handle().try_transact(|tx| {
        assert!(tx.pop().is_ok());
        Err::<(), _>(Failed::Work)
    });
    assert_eq!(failed, Err(Failed::Work));
    assert_eq!(drain(queue), [1]);
}

#[test]
fn leased_queues_of_all_orders_commit_together_with_others() {
    let (clock, builder) = clocked();
    let leased = builder.clone().leased(SECOND).build();
    let fair = builder.clone().fair_by(|item: &u32| item % 2);
    let fair = fair.leased(SECOND).build();
    let urgent = builder.clone().by_priority().leased(SECOND).build();
    let plain = builder.build();
    for late in [true, false] {
        let pushed = [leased.push(1), fair.push(2), urgent.push(3)];
        assert_eq!(pushed, [Ok(()); 3]);
        let (mut a, mut b, mut c, mut d) = (
            leased.handle(),
            fair.handle(),
            urgent.handle(),
            plain.handle(),
        );
        let all = (a.begin(), b.begin(), c.begin(), d.begin());
        let sum = *all.0.pop().unwrap() + *all.1.pop().unwrap() + *all.2.pop().unwrap();
        all.3.push(sum).unwrap();
        if late {
            clock.advance(SECOND);
            assert_eq!(drain(&fair), [2]);
        }
        assert_eq!(try_commit_all(all).is_err(), late);
        assert_eq!(drain(&plain), if late { vec![] } else { vec![6] });
        assert_eq!(
            (leased.clear(), urgent.clear()),
            (usize::from(late), usize::from(late))
        );
    }
}

#[test]
fn workers_commit_leased_items() {
    ends(|| {
        let (_, builder) = clocked();
        works(&builder.clone().leased(SECOND).build());
        works(&builder.clone().by_priority().leased(SECOND).build());
        works(&builder.fair_by(|item| item % 3).leased(SECOND).build());
    });
}

fn works<O: Order<u32> + 'static>(queue: &Queue<u32, O>) {
    queue.handle().push_batch(0..9).unwrap();
    queue.close();
    let workers = Workers::builder(queue).threads(2);
    let workers = workers.run(|item, tx| {
        if *item > 5 {
            return tx.push(*item - 6).map_err(|_| "no room");
        }
        Ok(())
    });
    assert_eq!(workers.join().done, 12);
    assert_eq!(queue.stats().committed, 12);
}
