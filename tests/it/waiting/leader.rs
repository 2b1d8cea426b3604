//! A leader that does not react delays the other waiters only briefly.

use std::sync::Arc;
use std::task::Waker;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::ends;
use crate::common::failing::{clocked_with, leased, put_off, SECOND};
use crate::common::futures::{poll_once, Task};
use crate::common::waits::{async_pops, blocking_pops};
use requeue::{Clock, ManualClock, Order, Pace, Queue};

/// Returns when this many waiters wait for an item.
fn until_waiting(queue: &Queue<u32>, count: u64) {
    while queue.stats().waiting < count {
        thread::yield_now();
    }
}

/// A queue with an item that is due in a second.
fn due() -> (ManualClock, Queue<u32>) {
    let (clock, queue) = clocked_with([7]);
    put_off(&queue, SECOND);
    (clock, queue)
}

#[test]
fn a_thread_gets_due_items_despite_an_unpolled_leader() {
    ends(|| {
        for (form, pop) in blocking_pops() {
            for count in 1..4 {
                for forgets in [true, false] {
                    let (clock, queue) = due();
                    let mut handles: Vec<_> = (0..count).map(|_| queue.handle()).collect();
                    let mut leaders = Vec::new();
                    for handle in &mut handles {
                        let leader = Task::waiting(handle.pop_async());
                        if forgets {
                            leader.forget();
                        } else {
                            leaders.push(leader);
                        }
                    }
                    thread::scope(|scope| {
                        let waiter = scope.spawn(|| pop(&mut queue.handle()));
                        until_waiting(&queue, count + 1);
                        clock.advance(SECOND);
                        clock.advance(SECOND);
                        assert_eq!(waiter.join().unwrap(), Ok(7), "{form}");
                    });
                }
            }
        }
    });
}

#[test]
fn a_task_gets_due_items_despite_an_unpolled_leader() {
    for pop in async_pops() {
        for forgets in [true, false] {
            let (clock, queue) = due();
            let (mut a, mut b) = (queue.handle(), queue.handle());
            let leader = Task::waiting(a.pop_async());
            let mut task = Task::waiting(pop(&mut b));
            let bell = if forgets {
                Ok(leader.forget())
            } else {
                Err(leader)
            };
            clock.advance(SECOND);
            let rings = bell.as_ref().map_or_else(Task::rings, |bell| bell.rings());
            assert_eq!((rings, task.rings()), (1, 0), "one keeps the time for all");
            clock.advance(SECOND);
            assert_eq!(task.rings(), 1);
            assert_eq!(task.output(), Ok(7));
        }
    }
}

/// While the leader is polled, no other waiter is woken.
#[test]
fn a_leader_that_reacts_wakes_no_other_waiter() {
    let (clock, queue) = due();
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let mut leader = Task::waiting(a.pop_async());
    let mut other = Task::waiting(b.pop_async());
    clock.advance(SECOND);
    assert_eq!(leader.output(), Ok(7));
    clock.advance(SECOND);
    assert_eq!(other.rings(), 0);
    other.assert_waits();
}

/// The plan is made while all sleep; the waiter that is woken for it is polled once more, and never again.
#[test]
fn the_leader_of_a_later_plan_may_fail_to_react_too() {
    ends(|| {
        for polls in [true, false] {
            let (clock, queue) = clocked_with([7]);
            let mut worker = queue.handle();
            let tx = worker.begin();
            let item = tx.pop().unwrap();
            let (mut a, mut b) = (queue.handle(), queue.handle());
            let mut leader = Task::waiting(a.pop_async());
            thread::scope(|scope| {
                let waiter = scope.spawn(|| b.pop_blocking());
                until_waiting(&queue, 2);
                tx.retry_after(item, SECOND).unwrap();
                if polls {
                    leader.assert_waits();
                }
                clock.advance(SECOND);
                clock.advance(SECOND);
                assert_eq!(waiter.join().unwrap(), Ok(7));
            });
        }
    });
}

/// A leader that leaves wakes a waiter that does not react.
#[test]
fn a_leader_may_hand_over_to_a_waiter_that_does_not_react() {
    let (clock, queue) = due();
    let mut handles: Vec<_> = (0..3).map(|_| queue.handle()).collect();
    let mut tasks = handles.iter_mut().map(|h| Task::waiting(h.pop_async()));
    let (leader, silent, mut task) = (tasks.next(), tasks.next(), tasks.next().unwrap());
    drop(leader);
    assert!(silent.unwrap().forget().rings() > 0);
    clock.advance(SECOND);
    clock.advance(SECOND);
    assert_eq!(task.output(), Ok(7));
}

/// After a late leader another waiter leads, whoever took the due item.
#[test]
fn later_due_items_are_in_time_again() {
    for passes_by in [true, false] {
        let (clock, queue) = due();
        queue.push(8).unwrap();
        put_off(&queue, 4 * SECOND);
        let (mut a, mut b) = (queue.handle(), queue.handle());
        Task::waiting(a.pop_async()).forget();
        let mut task = Task::waiting(b.pop_async());
        clock.advance(SECOND);
        if passes_by {
            assert_eq!(queue.pop(), Ok(7));
            task.assert_waits();
            clock.advance(SECOND);
        } else {
            clock.advance(SECOND);
            assert_eq!(task.output(), Ok(7));
            drop(task);
            task = Task::waiting(b.pop_async());
        }
        clock.advance(2 * SECOND);
        assert_eq!(task.output(), Ok(8));
    }
}

#[test]
fn leases_paces_and_schedules_are_in_time_too() {
    let (clock, leased) = leased([7]);
    let mut holder = leased.handle();
    let held = holder.begin();
    assert!(held.pop().is_ok());

    let builder = Queue::builder().clock(clock.clone());
    let paced = builder.pace(Pace::every(SECOND)).build();
    paced.push(0).unwrap();
    assert_eq!(paced.pop(), Ok(0));
    paced.push(7).unwrap();

    let scheduled = Queue::builder().by_priority().clock(clock.clone()).build();
    scheduled.after(SECOND).push(7).unwrap();

    comes_when_due(&clock, &leased);
    comes_when_due(&clock, &paced);
    comes_when_due(&clock, &scheduled);
}

/// One task is the leader and is not polled again; the other one gets the item when it is due.
fn comes_when_due<O: Order<u32>>(clock: &ManualClock, queue: &Queue<u32, O>) {
    let (mut a, mut b) = (queue.handle(), queue.handle());
    Task::waiting(a.pop_async()).forget();
    let mut task = Task::waiting(b.pop_async());
    let now = clock.now();
    clock.advance(SECOND);
    clock.advance(SECOND);
    assert_eq!(task.output(), Ok(7));
    clock.set(now);
}

/// A clock that cannot wait: it calls all wakers at once.
struct Hasty(ManualClock);

impl Clock for Hasty {
    fn now(&self) -> Instant {
        self.0.now()
    }

    fn wake_at(&self, _: Instant, waker: &Waker) {
        waker.wake_by_ref();
    }
}

#[test]
fn a_clock_that_calls_at_once_makes_tasks_poll_in_vain() {
    let clock = ManualClock::new();
    let queue = Queue::builder().clock(Hasty(clock.clone())).build();
    queue.push(7).unwrap();
    put_off(&queue, SECOND);
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let mut tasks = [&mut a, &mut b].map(|handle| Task::waiting(handle.pop_async()));
    tasks.iter_mut().for_each(Task::assert_waits);
    clock.advance(SECOND);
    let popped = tasks.iter_mut().map(|task| task.poll().is_ready());
    assert_eq!(popped.filter(|&popped| popped).count(), 1);
}

/// Wakers registered with the clock keep neither the queue nor its clock alive.
#[test]
fn a_queue_that_is_gone_leaves_nothing_to_its_clock() {
    struct Witness(ManualClock, #[allow(dead_code)] Arc<()>);
    impl Clock for Witness {
        fn now(&self) -> Instant {
            self.0.now()
        }

        fn wake_at(&self, at: Instant, waker: &Waker) {
            self.0.wake_at(at, waker);
        }
    }
    let (clock, alive) = (ManualClock::new(), Arc::new(()));
    let witness = Witness(clock.clone(), Arc::clone(&alive));
    let queue = Queue::builder().clock(witness).build();
    queue.push(7).unwrap();
    put_off(&queue, Duration::from_secs(60));
    assert!(poll_once(queue.handle().pop_async()).is_pending());
    drop(queue);
    assert_eq!(Arc::strong_count(&alive), 1);
    clock.advance(Duration::from_secs(120));
}
