//! Queues that deliver the newest item first.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Mutex;
use std::thread;

use crate::common::failing::{clocked, SECOND};
use crate::common::futures::Task;
use crate::common::rng::Rng;
use crate::common::{assert_at_rest, drain, ends};
use requeue::{
    commit_all, Builder, FairQueue, Handle, Leased, Lifo, ManualClock, PopError, Queue, Reason,
    Workers,
};

fn lifo() -> Builder<u32, Lifo> {
    Queue::builder().lifo()
}

/// A queue with the items 1, 2, 3, pushed by a handle.
fn filled() -> (Queue<u32, Lifo>, Handle<u32, Lifo>) {
    let queue = lifo().build();
    let mut handle = queue.handle();
    handle.push_batch([1, 2, 3]).unwrap();
    (queue, handle)
}

#[test]
fn the_last_of_a_handle_a_thread_or_a_batch_comes_first() {
    let (queue, mut handle) = filled();
    handle.push(4).unwrap();
    assert_eq!((handle.pop(), queue.pop()), (Ok(4), Ok(3)));
    queue.push(5).unwrap();
    queue.push(6).unwrap();
    assert_eq!(drain(&queue), [6, 5, 2, 1]);
}

#[test]
fn found_items_are_older_than_later_pushes_of_other_handles() {
    let (queue, mut handle) = filled();
    let mut other = queue.handle();
    assert_eq!(queue.pop(), Ok(3));
    other.push(4).unwrap();
    assert_eq!(queue.len(), 3); // finds it
    handle.push(5).unwrap();
    assert_eq!(drain(&queue), [5, 4, 2, 1]);
}

#[test]
fn an_owner_pops_its_last_item_behind_those_that_were_returned() {
    let (_, mut handle) = filled();
    let tx = handle.begin();
    assert_eq!((*tx.pop().unwrap(), *tx.pop().unwrap()), (3, 2));
    tx.abort();
    handle.push(4).unwrap();
    assert_eq!(handle.pop(), Ok(3));
    handle.push(5).unwrap();
    assert_eq!(handle.pop(), Ok(2));
    assert_eq!(handle.pop(), Ok(5));
    assert_eq!([handle.pop(), handle.pop()], [Ok(4), Ok(1)]);
}

#[test]
fn an_owner_pops_its_last_item_wherever_it_is() {
    let (queue, mut handle) = filled();
    assert_eq!(
        [handle.pop(), handle.pop(), handle.pop()],
        [Ok(3), Ok(2), Ok(1)]
    );
    for round in 0..2000 {
        let items = 0..=round % 3;
        items.clone().for_each(|item| handle.push(item).unwrap());
        items
            .rev()
            .for_each(|item| assert_eq!(handle.pop(), Ok(item)));
    }
    assert_at_rest(&queue, 0, 0);
    let stats = queue.stats();
    assert_eq!(stats.committed, stats.pushed);
}

#[test]
fn the_pushes_of_a_commit_become_ready_together_and_the_last_comes_first() {
    let (queue, mut handle) = filled();
    let tx = handle.begin();
    assert_eq!(*tx.pop().unwrap(), 3);
    tx.push(4).unwrap();
    tx.push(5).unwrap();
    assert_eq!(queue.pop(), Ok(2));
    tx.commit();
    assert_eq!(drain(&queue), [5, 4, 1]);
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn one_commit_spans_queues_of_other_orders() {
    let (queue, mut handle) = filled();
    let fair = FairQueue::by(|item: &u32| item % 2);
    let mut to = fair.handle();
    let (from, into) = (handle.begin(), to.begin());
    into.push(*from.pop().unwrap()).unwrap();
    from.push(4).unwrap();
    commit_all((from, into));
    assert_eq!((drain(&fair), drain(&queue)), (vec![3], vec![4, 2, 1]));
}

#[test]
fn aborted_items_come_first_in_their_order() {
    let (queue, mut handle) = filled();
    let mut other = queue.handle();
    for looks in [false, true] {
        let (one, two) = (handle.begin(), other.begin());
        assert_eq!((*one.pop().unwrap(), *one.pop().unwrap()), (3, 2));
        assert_eq!(*two.pop().unwrap(), 1);
        one.push(7).unwrap();
        one.abort();
        // A call that finds them changes nothing.
        assert!(!looks || queue.len() == 2);
        two.abort();
        handle.push(4).unwrap();
        other.push(5).unwrap();
        assert_eq!(drain(&queue)[..3], [1, 3, 2], "looks: {looks}");
        handle.push_batch([1, 2, 3]).unwrap();
    }
}

#[test]
fn an_aborted_item_is_redelivered_before_its_successors_and_knows_its_attempts() {
    let (queue, mut handle) = filled();
    handle.begin().pop().unwrap(); // aborted
    handle.push(4).unwrap();
    let tx = handle.begin();
    let item = tx.pop().unwrap();
    assert_eq!((*item, item.attempts()), (3, 2));
    tx.abort();
    assert_eq!(drain(&queue), [3, 4, 2, 1]);
}

#[test]
fn retried_and_dead_items() {
    let (clock, builder) = clocked();
    let queue = builder.lifo().max_attempts(2).build();
    let mut handle = queue.handle();
    handle.push_batch([1, 2, 3]).unwrap();
    let tx = handle.begin();
    let item = tx.pop().unwrap();
    tx.retry_after(item, SECOND).unwrap();
    tx.commit();
    assert_eq!((queue.pop(), queue.stats().delayed), (Ok(2), 1));
    clock.advance(SECOND);
    handle.push(4).unwrap();
    let tx = handle.begin();
    assert_eq!(*tx.pop().unwrap(), 3);
    tx.abort(); // the second time
    let letter = queue.dead_letters().next().unwrap();
    assert_eq!((letter.item, letter.reason), (3, Reason::Aborted));
    assert_eq!(drain(&queue), [4, 1]);
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn a_dead_letter_that_is_requeued_is_the_newest_item() {
    let (queue, mut handle) = filled();
    let tx = handle.begin();
    tx.fail(tx.pop().unwrap(), "").unwrap();
    tx.commit();
    assert_eq!(queue.dead_letters().requeue_all(), 1);
    assert_eq!(drain(&queue), [3, 2, 1]);
}

#[test]
fn an_expired_lease_gives_its_item_to_the_next_pop() {
    let (clock, builder) = clocked();
    let queue: Queue<u32, Leased<Lifo>> = builder.lifo().leased(SECOND).build();
    let mut handle = queue.handle();
    handle.push_batch([1, 2, 3]).unwrap();
    let tx = handle.begin();
    assert_eq!(*tx.pop().unwrap(), 3);
    clock.advance(SECOND);
    queue.push(4).unwrap();
    assert_eq!((queue.pop(), queue.pop()), (Ok(3), Ok(4)));
    assert!(tx.try_commit().is_err());
    let tx = handle.begin();
    assert_eq!(*tx.pop().unwrap(), 2);
    tx.push(5).unwrap();
    tx.try_commit().unwrap();
    assert_eq!(drain(&queue), [5, 1]);
}

#[test]
fn a_full_queue_lets_a_job_push_its_successor() {
    let queue = lifo().capacity(2).build();
    let mut handle = queue.handle();
    handle.push_batch([1, 2]).unwrap();
    assert!(queue.push(3).unwrap_err().is_full());
    let tx = handle.begin();
    assert_eq!(*tx.pop().unwrap(), 2);
    tx.push(4).unwrap();
    assert!(tx.push(5).unwrap_err().is_full());
    tx.commit();
    assert_eq!(drain(&queue), [4, 1]);
}

#[test]
fn a_waiting_pop_is_woken_by_a_push_a_commit_and_an_abort() {
    let queue = lifo().build();
    let mut handle = queue.handle();
    let mut waiter = queue.handle();
    for end in ["push", "commit", "abort"] {
        if end == "abort" {
            queue.push(7).unwrap();
        }
        let tx = handle.begin();
        match end {
            "commit" => tx.push(7).unwrap(),
            "abort" => assert_eq!(*tx.pop().unwrap(), 7),
            _ => {}
        }
        let mut task = Task::new(waiter.pop_async());
        task.assert_waits();
        match end {
            "push" => queue.push(7).unwrap(),
            "commit" => drop(tx.commit()),
            _ => tx.abort(),
        }
        assert!(task.was_woken(), "{end}");
        assert_eq!(task.output(), Ok(7), "{end}");
    }
}

#[test]
fn a_closed_queue_delivers_what_is_left() {
    let (queue, mut handle) = filled();
    let tx = handle.begin();
    assert_eq!(*tx.pop().unwrap(), 3);
    queue.close();
    assert!(queue.push(4).unwrap_err().is_closed());
    assert_eq!((queue.pop(), queue.pop()), (Ok(2), Ok(1)));
    assert_eq!(queue.pop(), Err(PopError::Empty)); // 3 may come back
    tx.abort();
    assert_eq!(queue.pop(), Ok(3));
    assert_eq!(queue.pop(), Err(PopError::Closed));
}

#[test]
fn visits_see_the_next_items_first_and_leave_them_in_their_places() {
    let (queue, mut handle) = filled();
    handle.begin().pop().unwrap(); // aborted
    queue.push(4).unwrap();
    let mut seen = Vec::new();
    queue.peek_each(|item| {
        seen.push(*item);
        // All others are set aside.
        assert_eq!(handle.pop(), Err(PopError::Empty));
    });
    assert_eq!(seen, [3, 4, 2, 1]);
    assert_eq!(handle.peek_with(|item| *item), Ok(3));
    assert_eq!(drain(&queue), [3, 4, 2, 1]);
}

#[test]
fn the_oldest_item_is_known_if_timestamps_are_kept() {
    let (clock, builder) = clocked();
    let queue = builder.lifo().timestamps().build();
    for item in 0..100_u32 {
        queue.push(item).unwrap();
        clock.advance(SECOND);
    }
    assert_eq!(queue.stats().oldest, Some(100 * SECOND));
    assert_eq!(queue.pop(), Ok(99));
    assert!(drain(&queue).into_iter().eq((0..99).rev()));
}

/// The items of a queue that one handle uses: a stack of those given back, and one of the others, the next item last.
#[derive(Default)]
struct Model([Vec<u32>; 2]);

impl Model {
    fn pop(&mut self) -> Option<u32> {
        let [returned, pushed] = &mut self.0;
        returned.pop().or_else(|| pushed.pop())
    }

    fn all(&self) -> Vec<u32> {
        let stacks = self.0.iter();
        stacks
            .flat_map(|stack| stack.iter().rev().copied())
            .collect()
    }
}

#[test]
fn a_queue_behaves_like_its_model() {
    for seed in 0..50 {
        let mut rng = Rng::new(seed);
        let (queue, mut model) = (lifo().build(), Model::default());
        let (mut handle, mut next) = (queue.handle(), 0);
        for _ in 0..300 {
            let most = rng.pick(&[5, 5, 5, 5, 5, 500]);
            let count = rng.below(most);
            let numbers: Vec<_> = (next..).take(count).collect();
            match rng.below(6) {
                0 => {
                    handle.push_batch(numbers.iter().copied()).unwrap();
                    next += u32::try_from(count).unwrap();
                    model.0[1].extend(numbers);
                }
                1 => numbers
                    .iter()
                    .for_each(|_| assert_eq!(handle.pop().ok(), model.pop())),
                2 => {
                    let mut seen = Vec::new();
                    queue.peek_each(|item| seen.push(*item));
                    assert_eq!(seen, model.all());
                }
                _ => {
                    let tx = handle.begin();
                    let held: Vec<_> = tx.pop_batch(count).map(|item| *item).collect();
                    let expected = (0..count).map_while(|_| model.pop());
                    assert!(held.iter().copied().eq(expected));
                    if rng.percent(50) {
                        tx.push(next).unwrap();
                        tx.commit();
                        model.0[1].push(next);
                        next += 1;
                    } else {
                        tx.push(next).unwrap();
                        tx.abort();
                        model.0[0].extend(held.iter().rev());
                    }
                }
            }
            assert_eq!(queue.len(), model.all().len());
        }
        assert_eq!(drain(&queue), model.all());
        assert_at_rest(&queue, 0, 0);
    }
}

/// Pops during a visit take what is not set aside; visits see no item twice.
#[test]
fn a_visit_sees_each_item_that_stays_once() {
    for pops in [10, 50, 90] {
        let queue = lifo().build();
        queue.handle().push_batch(0..100).unwrap();
        let (mut seen, mut popped) = (Vec::new(), Vec::new());
        queue.peek_each(|item| {
            seen.push(*item);
            if seen.len() == 1 {
                popped.extend((0..pops).map_while(|_| queue.pop().ok()));
                queue.push(100).unwrap();
            }
        });
        let unique: HashSet<_> = seen.iter().chain(&popped).copied().collect();
        assert_eq!(unique.len(), seen.len() + popped.len(), "{pops}");
        assert!((0..100).all(|item| unique.contains(&item)), "{pops}");
        popped.extend(drain(&queue));
        popped.sort_unstable();
        assert!(popped.into_iter().eq(0..=100), "{pops}");
    }
}

/// Threads push, pop, commit, abort and visit; each item is committed once.
#[test]
fn several_threads_lose_nothing() {
    const THREADS: usize = 4;
    const ITEMS: u32 = 5_000;
    ends(|| {
        let queue = lifo().build();
        let (done, pushing) = (Mutex::new(Vec::new()), AtomicUsize::new(THREADS));
        thread::scope(|scope| {
            for (seed, first) in (0..THREADS).zip((0..).step_by(ITEMS as usize)) {
                let (queue, done, pushing) = (&queue, &done, &pushing);
                scope.spawn(move || {
                    let (mut handle, mut rng) = (queue.handle(), Rng::new(seed as u64));
                    let mut mine = Vec::new();
                    for item in first..first + ITEMS {
                        handle.push(item).unwrap();
                        let tx = handle.begin();
                        let held: Vec<_> = tx.pop_batch(rng.below(4)).map(|item| *item).collect();
                        if rng.percent(60) {
                            tx.commit();
                            mine.extend(held);
                        } else {
                            tx.abort();
                        }
                        if rng.percent(1) {
                            queue.peek_each(|_| ());
                        }
                    }
                    if pushing.fetch_sub(1, Ordering::SeqCst) == 1 {
                        queue.close();
                    }
                    mine.extend(std::iter::from_fn(|| handle.pop_blocking().ok()));
                    done.lock().unwrap().extend(mine);
                });
            }
        });
        let mut done = done.into_inner().unwrap();
        done.sort_unstable();
        assert!(done.into_iter().eq(0..ITEMS * 4));
        assert_at_rest(&queue, 0, 0);
    });
}

/// A clock that jumps takes items from open transactions; each item is committed once.
#[test]
fn leases_that_expire_lose_nothing() {
    const ITEMS: u32 = 3_000;
    ends(|| {
        let clock = ManualClock::new();
        let builder = lifo().clock(clock.clone());
        let queue = builder.leased(SECOND).build();
        queue.handle().push_batch(0..ITEMS).unwrap();
        queue.close();
        let (done, stop) = (Mutex::new(Vec::new()), AtomicBool::new(false));
        thread::scope(|scope| {
            let workers = [0, 1, 2].map(|seed| {
                let (queue, done) = (&queue, &done);
                scope.spawn(move || {
                    let (mut handle, mut rng) = (queue.handle(), Rng::new(seed));
                    loop {
                        let tx = handle.begin();
                        let Ok(item) = tx.pop_blocking().map(|item| *item) else {
                            break;
                        };
                        if rng.percent(20) {
                            thread::yield_now();
                        }
                        if tx.try_commit().is_ok() {
                            done.lock().unwrap().push(item);
                        }
                    }
                })
            });
            scope.spawn(|| {
                while !stop.load(Ordering::SeqCst) {
                    clock.advance(SECOND);
                    thread::yield_now();
                }
            });
            for worker in workers {
                worker.join().unwrap();
            }
            stop.store(true, Ordering::SeqCst);
        });
        let mut done = done.into_inner().unwrap();
        done.sort_unstable();
        assert!(done.into_iter().eq(0..ITEMS));
    });
}

/// A job of depth n pushes two of depth n - 1, so a single worker keeps at most one item of each depth, and one more.
#[test]
fn workers_go_depth_first() {
    const DEPTH: u32 = 12;
    ends(|| {
        let queue = lifo().build();
        let most = AtomicUsize::new(0);
        queue.push(DEPTH).unwrap();
        queue.close();
        let report = thread::scope(|scope| {
            let workers = Workers::builder(&queue).threads(1);
            let workers = workers.run_scoped(scope, |item, tx| {
                most.fetch_max(queue.len(), Ordering::SeqCst);
                if let Some(depth) = item.checked_sub(1) {
                    tx.push(depth).map_err(|_| "full")?;
                    tx.push(depth).map_err(|_| "full")?;
                }
                Ok::<_, &str>(())
            });
            workers.join()
        });
        assert_eq!(report.done, (1 << (DEPTH + 1)) - 1);
        assert!(most.into_inner() <= DEPTH as usize + 1);
    });
}
