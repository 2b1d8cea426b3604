//! Pools of worker threads.

use std::cell::Cell;
use std::convert::Infallible;
use std::fmt;
use std::panic::panic_any;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::failing::{clocked, put_off, CountingClock, SECOND};
use crate::common::{assert_at_rest, drain, ends, filled, panics, Ledger};
use requeue::{
    Backoff, Failure, ManualClock, Order, PopError, PriorityQueue, PushError, Queue, Reason,
    WorkerState, WorkerStatus, Workers, WorkersBuilder,
};

const _: () = {
    const fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<Workers>();
    is_send_and_sync::<WorkersBuilder<Cell<u8>>>();
};

const FINE: Result<(), Infallible> = Ok(());
const FAILED: Result<(), &str> = Err("failed");

/// Waits until a worker is in a state.
fn await_state(workers: &Workers, index: usize, state: impl Fn(WorkerState) -> bool) {
    while !state(workers.status()[index].state) {
        thread::yield_now();
    }
}

fn await_paused(workers: &Workers, index: usize) {
    await_state(workers, index, |state| state == WorkerState::Paused);
}

/// A pool whose runs signal their start, and end with the given result.
fn directed<O: Order<u32> + 'static>(
    builder: WorkersBuilder<u32, O>,
) -> (Workers, Receiver<u32>, Sender<Result<(), &'static str>>) {
    let (announce, begun) = channel();
    let (direct, directions) = channel();
    let directions = Mutex::new(directions);
    let workers = builder.run(move |job, _tx| {
        announce.send(*job).unwrap();
        let direction = directions.lock().unwrap().recv();
        direction.unwrap_or(Ok(()))
    });
    (workers, begun, direct)
}

#[test]
fn each_item_is_run_once_and_committed() {
    let queue = filled(0..1_000);
    queue.close();
    let sum = Mutex::new(0);
    let report = thread::scope(|scope| {
        let workers = Workers::builder(&queue).threads(4);
        let workers = workers.run_scoped(scope, |job, _tx| {
            *sum.lock().unwrap() += *job;
            FINE
        });
        workers.join()
    });
    assert_eq!((report.done, report.failed, report.panicked), (1_000, 0, 0));
    assert_eq!(sum.into_inner().unwrap(), (0..1_000).sum());
    assert_eq!(queue.pop(), Err(PopError::Closed));
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn an_error_gives_the_item_back_and_undoes_the_pushes() {
    ends(|| {
        let queue = filled([1]);
        let (announce, begun) = channel();
        let (direct, directions) = channel();
        let directions = Mutex::new(directions);
        let workers = Workers::builder(&queue).threads(1).run(move |job, tx| {
            if *job == 1 {
                tx.push(2).unwrap();
            }
            announce.send((*job, job.attempts())).unwrap();
            let direction: Result<(), &str> = directions.lock().unwrap().recv().unwrap();
            direction
        });
        assert_eq!(begun.recv(), Ok((1, 1)));
        direct.send(Err("not now")).unwrap();
        assert_eq!(begun.recv(), Ok((1, 2)));
        assert_at_rest(&queue, 0, 1);
        assert_eq!(workers.status()[0].failed, 1);
        direct.send(Ok(())).unwrap();
        assert_eq!(begun.recv(), Ok((2, 1)));
        direct.send(Ok(())).unwrap();
        queue.close();
        let report = workers.join();
        assert_eq!((report.done, report.failed), (2, 1));
    });
}

/// A queue that retries at once, whatever its workers do.
fn impatient<T>(items: impl IntoIterator<Item = T>) -> Queue<T> {
    let at_once = Backoff::fixed(Duration::ZERO);
    let queue = Queue::builder().backoff(at_once).build();
    queue.handle().push_batch(items).unwrap();
    queue
}

#[test]
fn a_worker_lives_on_after_a_panic() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            assert!(thread::panicking(), "the payload panics too");
        }
    }
    ends(|| {
        let queue = impatient([1, 2]);
        let (tell, told) = channel();
        let (send, done) = channel();
        let workers = Workers::builder(&queue)
            .threads(1)
            .name("unlucky")
            .on_panic(move |worker, payload| {
                tell.send((worker.to_owned(), payload.is::<Bomb>()))
                    .unwrap();
                panic!("the hook panics too");
            })
            .run(move |job, tx| {
                tx.push(*job + 10).unwrap();
                if job.attempts() == 1 && *job == 1 {
                    panic_any(Bomb);
                }
                send.send(*job).unwrap();
                FINE
            });
        assert_eq!(told.recv(), Ok(("unlucky-0".to_owned(), true)));
        let mut seen: Vec<_> = done.iter().take(3).collect();
        seen.sort_unstable();
        assert_eq!(seen, [1, 2, 11]);
        assert_eq!(workers.stop().panicked, 1);
        assert!(told.try_recv().is_err());
    });
}

#[test]
fn a_destructor_that_panics_ends_no_worker() {
    struct Bomb(bool);
    impl Drop for Bomb {
        fn drop(&mut self) {
            assert!(!self.0 || thread::panicking(), "the item panics");
        }
    }
    let queue = Queue::unbounded();
    queue.push(Bomb(true)).unwrap();
    queue.push(Bomb(false)).unwrap();
    queue.close();
    let workers = Workers::builder(&queue).threads(1).run(|_, _| FINE);
    let report = ends(|| workers.join());
    assert_eq!((report.done, report.failed, report.panicked), (2, 0, 0));
    assert_eq!(queue.stats().committed, 2);
}

#[test]
fn stop_waits_for_current_runs_and_leaves_ready_items() {
    ends(|| {
        let queue = filled([1, 2, 3]);
        let (workers, begun, direct) = directed(Workers::builder(&queue).threads(2));
        begun.iter().take(2).for_each(drop);
        let stopped = thread::spawn(move || workers.stop());
        for _ in 0..3 {
            let _ = direct.send(Ok(())); // unless they have stopped
        }
        let report = stopped.join().unwrap();
        assert!(report.stuck.is_empty());
        assert!(report.done >= 2, "{report:?}");
        let left = drain(&queue).len() as u64;
        assert_eq!(report.done + left, 3);
        assert_at_rest(&queue, 0, 0);
    });
}

/// A stop while workers are about to wait.
#[test]
fn no_worker_sleeps_through_a_stop() {
    ends(|| {
        let queue = Queue::<u32>::unbounded();
        for round in 0..500 {
            let workers = Workers::builder(&queue).threads(2).run(|_, _| FINE);
            (0..round).for_each(|_| thread::yield_now());
            assert!(workers.stop().stuck.is_empty());
        }
    });
}

#[test]
fn a_shutdown_lists_late_workers_and_detaches_them() {
    ends(|| {
        let queue = filled([7, 8]);
        let (workers, begun, direct) = directed(Workers::builder(&queue).threads(1).name("w"));
        assert_eq!(begun.recv(), Ok(7));
        let before = Instant::now();
        let report = workers.shutdown(Duration::ZERO);
        let [late] = &report.stuck[..] else {
            panic!("{report:?}");
        };
        assert_eq!(&*late.name, "w-0");
        assert!(matches!(late.state, WorkerState::Busy { since } if since <= before));
        assert_eq!((queue.len(), queue.stats().held), (1, 1));
        direct.send(Ok(())).unwrap();
        while queue.stats().committed == 0 {
            thread::yield_now();
        }
        assert!(begun.recv().is_err(), "the late worker has ended");
        assert_eq!(drain(&queue), [8]);
    });
}

#[test]
fn a_paused_worker_takes_nothing() {
    ends(|| {
        let queue = Queue::unbounded();
        let (workers, begun, direct) = directed(Workers::builder(&queue).threads(2));
        workers.pause(0);
        await_paused(&workers, 0);
        queue.push(1).unwrap();
        assert_eq!(begun.recv(), Ok(1));
        assert!(matches!(
            workers.status()[1].state,
            WorkerState::Busy { .. }
        ));
        workers.pause(1);
        direct.send(Ok(())).unwrap();
        await_paused(&workers, 1);
        assert_eq!(workers.status()[1].done, 1);
        queue.push(2).unwrap();
        assert_eq!(queue.len(), 1);
        workers.resume(0);
        assert_eq!(begun.recv(), Ok(2));
        direct.send(Ok(())).unwrap();
        await_state(&workers, 0, |state| state == WorkerState::Idle);
        workers.pause_all();
        await_paused(&workers, 0);
        workers.resume_all();
        queue.push(3).unwrap();
        assert_eq!(begun.recv(), Ok(3));
        drop(direct);
        assert_eq!(workers.stop().done, 3);
    });
}

#[test]
fn a_paused_worker_stops() {
    ends(|| {
        let queue = filled([1]);
        let workers = Workers::builder(&queue).threads(1);
        let workers = workers.run(|_, _| FINE);
        workers.pause_all();
        await_paused(&workers, 0);
        assert!(workers.stop().stuck.is_empty());
    });
}

/// A command concurrent with a wake-up: whichever worker or thread is woken, no waiter sleeps while an item is ready.
#[test]
fn an_order_takes_no_wake_up_away() {
    ends(|| {
        let queue = Queue::unbounded();
        let (send, got) = channel();
        let mut others = Vec::new();
        for _ in 0..2 {
            let (mut handle, send) = (queue.handle(), send.clone());
            others.push(thread::spawn(move || {
                while let Ok(item) = handle.pop_blocking() {
                    send.send(item).unwrap();
                }
            }));
        }
        let workers = Workers::builder(&queue).threads(2);
        let workers = workers.run(move |item, _tx| send.send(*item));
        let barrier = Barrier::new(2);
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..2_000 {
                    barrier.wait();
                    workers.pause_all();
                    workers.resume_all();
                }
            });
            for round in 0..2_000 {
                barrier.wait();
                queue.push(round).unwrap();
                assert_eq!(got.recv(), Ok(round));
            }
        });
        queue.close();
        workers.join();
        for other in others {
            other.join().unwrap();
        }
    });
}

#[test]
fn workers_end_when_the_queue_is_closed_and_drained() {
    ends(|| {
        let queue = filled([1, 2]);
        let (workers, begun, direct) = directed(Workers::builder(&queue).threads(3));
        begun.iter().take(2).for_each(drop);
        queue.close();
        direct.send(Err("once more")).unwrap();
        begun.recv().unwrap();
        drop(direct);
        let report = workers.join();
        assert_eq!((report.done, report.failed), (2, 1));
    });
}

#[test]
fn dropping_workers_stops_them() {
    ends(|| {
        let queue = Queue::unbounded();
        let (send, got) = channel();
        let workers = Workers::builder(&queue).threads(2);
        let workers = workers.run(move |item, _tx| send.send(*item));
        queue.push(1).unwrap();
        assert_eq!(got.recv(), Ok(1));
        drop(workers);
        assert!(got.recv().is_err());
        queue.push(2).unwrap();
        assert_eq!(drain(&queue), [2]);
    });
}

#[test]
fn a_batch_is_one_transaction() {
    let queue = impatient(0..10);
    queue.close();
    let (send, sizes) = channel();
    let workers = Workers::builder(&queue)
        .threads(1)
        .run_batches(4, move |items, _tx| {
            send.send(items.len()).unwrap();
            let again = items[0].attempts() == 1 && *items[0] == 4;
            if again {
                Err("the second batch, once more")
            } else {
                Ok(())
            }
        });
    let report = ends(|| workers.join());
    assert_eq!(sizes.iter().collect::<Vec<_>>(), [4, 4, 4, 2]);
    assert_eq!((report.done, report.failed), (3, 1));
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn a_scoped_pool_that_is_dropped_lets_the_scope_end() {
    ends(|| {
        let queue = filled([1]);
        let runs = AtomicU32::new(0);
        thread::scope(|scope| {
            let builder = Workers::builder(&queue).threads(2);
            let _workers = builder.run_scoped(scope, |_, _| {
                runs.fetch_add(1, Ordering::Relaxed);
                FINE
            });
            while queue.stats().committed == 0 {
                thread::yield_now();
            }
        });
        assert_eq!(runs.into_inner(), 1);
    });
}

#[test]
fn threads_have_the_names_of_their_workers() {
    let queue = filled([(); 50]);
    queue.close();
    let names = Mutex::new(Vec::new());
    let statuses = thread::scope(|scope| {
        let builder = Workers::builder(&queue).threads(2).name("pool");
        let workers = builder.run_scoped(scope, |_, _| {
            let name = thread::current().name().map(str::to_owned);
            names.lock().unwrap().extend(name);
            FINE
        });
        let statuses = workers.status();
        workers.join();
        statuses
    });
    let names_of = |statuses: &[WorkerStatus]| -> Vec<String> {
        let names = statuses.iter().map(|status| status.name.to_string());
        names.collect()
    };
    assert_eq!(names_of(&statuses), ["pool-0", "pool-1"]);
    let names = names.into_inner().unwrap();
    assert_eq!(names.len(), 50);
    assert!(names
        .iter()
        .all(|name| name == "pool-0" || name == "pool-1"));
}

#[test]
fn a_run_whose_lease_is_over_has_failed() {
    ends(|| {
        let queue = Queue::builder().leased(Duration::MAX).build();
        queue.push(1).unwrap();
        let (workers, begun, direct) = directed(Workers::builder(&queue).threads(1).name("w"));
        assert_eq!(begun.recv(), Ok(1));
        workers.pause_all();
        while queue.recover("w-0", queue.now()) == 0 {}
        direct.send(Ok(())).unwrap();
        await_paused(&workers, 0);
        assert_eq!(
            (workers.status()[0].done, workers.status()[0].failed),
            (0, 1)
        );
        assert_eq!(drain(&queue), [1]);
    });
}

#[test]
fn a_run_may_put_its_item_off() {
    ends(|| {
        let clock = ManualClock::new();
        let queue = Queue::builder().clock(clock.clone()).build();
        queue.push(1).unwrap();
        let (send, seen) = channel();
        let workers = Workers::builder(&queue).threads(1);
        let workers = workers.run(move |job, tx| {
            send.send(job.attempts()).unwrap();
            match job.attempts() {
                1 => tx.retry_after(job, Duration::from_secs(1)),
                _ => Ok(()),
            }
        });
        assert_eq!(seen.recv(), Ok(1));
        while queue.next_due().is_none() {
            thread::yield_now();
        }
        clock.advance(Duration::from_secs(1));
        assert_eq!(seen.recv(), Ok(2));
        workers.stop();
        assert_at_rest(&queue, 0, 0);
    });
}

/// Waits until an item is delayed, and returns the remaining delay.
fn await_delay<T>(queue: &Queue<T>) -> Duration {
    loop {
        match queue.next_due() {
            Some(due) if due > queue.now() => return due - queue.now(),
            _ => thread::yield_now(),
        }
    }
}

/// Ten milliseconds, twice that after each failure, and a second at most; also for panics and batches.
#[test]
fn workers_back_off() {
    ends(|| {
        for panics in [false, true] {
            let (clock, builder) = clocked();
            let queue = builder.build();
            queue.push(1).unwrap();
            queue.close();
            let workers = Workers::builder(&queue).threads(1);
            let workers = workers.run_batches(3, move |items, _tx| match items[0].attempts() {
                10 => Ok(()),
                _ if panics => panic!("the worker fails"),
                _ => Err("not now"),
            });
            let doubled = (0..7).map(|failure| 10 << failure);
            for millis in doubled.chain([1_000, 1_000]) {
                let delay = Duration::from_millis(millis);
                assert_eq!(await_delay(&queue), delay);
                assert_eq!(queue.pop(), Err(PopError::Empty), "closed, and not drained");
                clock.advance(delay);
            }
            let report = workers.join();
            assert_eq!((report.done, report.failed + report.panicked), (1, 9));
            assert_at_rest(&queue, 0, 0);
            assert_eq!(queue.pop(), Err(PopError::Closed));
        }
    });
}

#[test]
fn a_backoff_of_the_queue_is_its_workers_too() {
    ends(|| {
        let (clock, builder) = clocked();
        let queue = builder.backoff(Backoff::fixed(SECOND)).build();
        queue.push(1).unwrap();
        queue.close();
        let workers = Workers::builder(&queue).threads(1);
        let workers = workers.run(|item, _tx| match item.attempts() {
            1 => Err("not now"),
            _ => Ok(()),
        });
        assert_eq!(await_delay(&queue), SECOND);
        clock.advance(SECOND);
        assert_eq!(workers.join().done, 1);
    });
}

/// A delayed item keeps its permit: the abort of a run needs no room, and no other push gets it.
#[test]
fn a_run_that_fails_keeps_its_room() {
    ends(|| {
        let (clock, builder) = clocked();
        let queue = builder.capacity(2).max_attempts(2).build();
        queue.handle().push_batch([1, 2]).unwrap();
        let workers = Workers::builder(&queue).threads(1);
        let workers = workers.run(|item, tx| {
            tx.push(*item + 10).unwrap();
            Err("never")
        });
        while queue.stats().delayed < 2 {
            thread::yield_now();
        }
        assert!(queue.push(3).unwrap_err().is_full());
        queue.close();
        clock.advance(SECOND);
        assert_eq!(workers.join().failed, 4);
        let dead = queue.dead_letters().map(|dead| (dead.item, dead.attempts));
        assert_eq!(dead.collect::<Vec<_>>(), [(1, 2), (2, 2)]);
        assert_eq!(queue.stats().check(), Ok(()));
    });
}

/// Runs push follow-up items after the close: all are done, and the pool ends by itself.
#[test]
fn follow_ups_are_run_after_the_close() {
    ends(|| {
        for queue in [Queue::unbounded(), Queue::bounded(512)] {
            queue.push(8).unwrap();
            queue.close();
            let workers = Workers::builder(&queue).threads(4);
            let workers = workers.run(|item, tx| {
                (0..*item).try_for_each(|child| tx.push(child))?;
                Ok::<_, PushError<u32>>(())
            });
            let report = workers.join();
            assert_eq!((report.done, report.failed), (256, 0));
            assert_eq!(queue.pop(), Err(PopError::Closed));
            assert_at_rest(&queue, 0, 0);
        }
    });
}

/// The error is passed to the hook and kept in the dead letter.
#[test]
fn the_error_of_a_run_is_kept() {
    let queue = Queue::builder().max_attempts(2).build();
    queue
        .handle()
        .push_batch(["fails", "panics", "says", "is given up"])
        .unwrap();
    queue.close();
    let (tell, told) = channel();
    let workers = Workers::builder(&queue)
        .threads(1)
        .name("pool")
        .on_error(move |failure| tell.send(failure.clone()).unwrap())
        .run(|item, tx| match *item {
            "fails" => Err("not now"),
            "panics" => panic!("bad luck"),
            "says" => panic!("bad luck {}", item.attempts()),
            _ => {
                tx.fail(item, format_args!("{} lives", 0)).unwrap();
                Err("after all")
            }
        });
    let report = ends(|| workers.join());
    assert_eq!((report.failed, report.panicked), (3, 4));
    let of = |failure: &Failure| {
        assert_eq!(&*failure.worker, "pool-0");
        let (items, attempts) = (failure.items, failure.attempts);
        (items, attempts, failure.error.to_string(), failure.panicked)
    };
    let mut failures: Vec<_> = told.iter().map(|failure| of(&failure)).collect();
    failures.sort();
    let expected = [
        (0, 0, "\"after all\"", false),
        (1, 1, "\"not now\"", false),
        (1, 1, "bad luck", true),
        (1, 1, "bad luck 1", true),
        (1, 2, "\"not now\"", false),
        (1, 2, "bad luck", true),
        (1, 2, "bad luck 2", true),
    ];
    let expected = expected
        .map(|(items, attempts, error, panicked)| (items, attempts, error.to_owned(), panicked));
    assert_eq!(failures, expected);
    let letters = queue.dead_letters();
    let mut letters: Vec<_> = letters
        .map(|dead| {
            (
                dead.item,
                dead.reason as u8,
                dead.error().map(str::to_owned),
            )
        })
        .collect();
    letters.sort();
    let expected = [
        ("fails", Reason::Failed, "\"not now\""),
        ("is given up", Reason::Failed, "0 lives"),
        ("panics", Reason::Panicked, "bad luck"),
        ("says", Reason::Panicked, "bad luck 2"),
    ];
    let expected =
        expected.map(|(item, reason, error)| (item, reason as u8, Some(error.to_owned())));
    assert_eq!(letters, expected);
}

/// User code that runs after a failed run: the items are already given back, whatever that code does.
#[test]
fn user_code_that_runs_after_a_failure_may_panic() {
    struct Wrong;
    impl fmt::Debug for Wrong {
        fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
            panic!("the error cannot be shown");
        }
    }
    impl Drop for Wrong {
        fn drop(&mut self) {
            panic!("the error cannot be dropped");
        }
    }
    let queue = filled(Ledger::new(2).items_with_bomb(1));
    queue.close();
    let (tell, told) = channel();
    let workers = Workers::builder(&queue)
        .threads(1)
        .on_error(move |failure| {
            tell.send(failure.error.to_string()).unwrap();
            panic!("the hook fails");
        })
        .run(move |item, _tx| match item.attempts() {
            1 => Err(Wrong),
            _ => Ok(()),
        });
    let report = ends(|| workers.join());
    assert_eq!((report.done, report.failed, report.panicked), (2, 2, 0));
    assert_eq!(queue.stats().check(), Ok(()));
    let told: Vec<_> = told.iter().collect();
    assert_eq!(told, ["an error whose `Debug` panics"; 2]);
}

/// Staged items are dropped when a run fails; a panicking destructor changes nothing.
#[test]
fn a_destructor_of_a_follow_up_may_panic() {
    let ledger = Ledger::new(3);
    let mut items = ledger.items_with_bomb(1);
    let queue = filled(items.next());
    let follow_ups = Mutex::new(items);
    queue.close();
    let workers = Workers::builder(&queue).threads(1).run(move |item, tx| {
        if item.attempts() > 1 {
            return Ok(());
        }
        for follow_up in follow_ups.lock().unwrap().by_ref() {
            tx.push(follow_up).unwrap_or_else(|_| panic!("it holds"));
        }
        Err("not now")
    });
    let report = ends(|| workers.join());
    assert_eq!((report.done, report.failed, report.panicked), (1, 1, 0));
    assert_eq!(queue.stats().check(), Ok(()));
    ledger.assert_each_dropped_once();
}

#[test]
fn pools_of_no_workers_and_empty_batches_are_rejected() {
    let queue = Queue::<u32>::unbounded();
    assert!(panics(|| Workers::builder(&queue).threads(0)));
    assert!(panics(
        || Workers::builder(&queue).run_batches(0, |_, _| FINE)
    ));
    assert!(panics(|| Workers::builder(&queue)
        .threads(1)
        .run(|_, _| FINE)
        .pause(1)));
}

#[test]
fn workers_of_a_priority_queue_push_with_priorities() {
    ends(|| {
        let queue = PriorityQueue::by_priority();
        queue.push(0).unwrap();
        queue.close();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let workers = Workers::builder(&queue).threads(1).run({
            let seen = Arc::clone(&seen);
            move |item, tx| {
                seen.lock().unwrap().push(*item);
                if *item == 0 {
                    tx.priority(2).push(2).map_err(drop)?;
                    tx.priority(1).push(1).map_err(drop)?;
                }
                Ok::<(), ()>(())
            }
        });
        assert_eq!(workers.join().done, 3);
        assert_eq!(*seen.lock().unwrap(), [0, 1, 2]);
        assert_at_rest(&queue, 0, 0);
    });
}

/// A queue of a worker that lingers, its clock, and the batches that it runs on.
fn lingering() -> (Queue<u32>, CountingClock, Workers, Receiver<Vec<u32>>) {
    let clock = CountingClock::new();
    let queue = Queue::builder().clock(clock.clone()).build();
    let (send, batches) = channel();
    let builder = Workers::builder(&queue).threads(1).linger(SECOND);
    let workers = builder.run_batches(3, move |rows, _tx| {
        send.send(rows.iter().map(|row| **row).collect())
    });
    (queue, clock, workers, batches)
}

/// Waits until the worker lingers for the rest of a batch.
fn await_timer(clock: &CountingClock, before: usize) {
    while clock.timers() == before {
        thread::yield_now();
    }
}

#[test]
fn a_worker_lingers_for_a_batch() {
    ends(|| {
        let (queue, clock, workers, batches) = lingering();
        queue.push(1).unwrap();
        await_timer(&clock, 0);
        queue.push(2).unwrap();
        clock.advance(SECOND);
        assert_eq!(batches.recv().unwrap(), [1, 2]);
        queue.push_batch(3..=6).unwrap();
        assert_eq!(batches.recv().unwrap(), [3, 4, 5]); // full
        queue.push(7).unwrap();
        queue.close();
        assert_eq!(batches.recv().unwrap(), [6, 7]);
        assert_eq!(workers.join().done, 3);
        assert_at_rest(&queue, 0, 0);
    });
}

#[test]
fn a_worker_that_is_interrupted_runs_on_what_it_holds() {
    ends(|| {
        let (queue, clock, workers, batches) = lingering();
        queue.push(1).unwrap();
        await_timer(&clock, 0);
        workers.pause(0);
        assert_eq!(batches.recv().unwrap(), [1]);
        await_paused(&workers, 0);
        queue.push(2).unwrap();
        let timers = clock.timers();
        workers.resume(0);
        await_timer(&clock, timers);
        assert_eq!(workers.stop().done, 2);
        assert_eq!(batches.recv().unwrap(), [2]);
    });
}

/// A shutdown takes no more items, a finish does all that was accepted.
#[test]
fn a_finish_does_what_is_left() {
    ends(|| {
        let queue = filled(0..100);
        let workers = Workers::builder(&queue).threads(2).run(|_, _| FINE);
        workers.pause_all();
        let done = workers.shutdown(Duration::MAX);
        assert_eq!((done.done + done.left, done.stuck.len()), (100, 0));
        assert!(queue.push(100).is_ok());

        let workers = Workers::builder(&queue).threads(2).run(|number, tx| {
            if number.attempts() == 1 && *number == 99 {
                return tx.retry_after(number, Duration::from_millis(1));
            }
            if *number == 100 {
                tx.push(101).unwrap();
            }
            Ok(())
        });
        workers.pause(0);
        let report = workers.finish(Duration::MAX);
        assert_eq!((report.left, report.stuck.len()), (0, 0));
        assert!(queue.push(1).unwrap_err().is_closed());
        assert_eq!(queue.stats().committed, 102);
        assert_at_rest(&queue, 0, 0);
    });
}

/// A worker in a run is stuck at the deadline, one that waits for an item is not.
#[test]
fn a_finish_that_is_over_says_what_is_left() {
    ends(|| {
        let queue = filled([1]);
        let (workers, begun, direct) = directed(Workers::builder(&queue).threads(3));
        begun.recv().unwrap();
        let report = workers.finish(Duration::ZERO);
        assert_eq!((report.stuck.len(), report.left), (1, 1));
        assert!(matches!(report.stuck[0].state, WorkerState::Busy { .. }));
        direct.send(FAILED).unwrap();

        let workers = Workers::builder(&queue).threads(2).run(|_, _| FINE);
        let report = workers.finish(Duration::MAX);
        assert_eq!((report.done, report.left), (1, 0));
    });
}

/// A hook waits for the thread that is in `finish`.
#[test]
fn a_finish_does_not_wait_for_a_hook() {
    ends(|| {
        let queue = filled([1]);
        let (announce, called) = channel();
        let (go_on, waits) = channel::<()>();
        let waits = Mutex::new(waits);
        let workers = Workers::builder(&queue)
            .threads(1)
            .on_error(move |_| {
                announce.send(()).unwrap();
                let _ = waits.lock().unwrap().recv();
            })
            .run(|_, _| FAILED);
        called.recv().unwrap();
        let report = workers.finish(Duration::ZERO);
        assert_eq!((report.failed, report.stuck.len()), (1, 1));
        drop(go_on);
    });
}

/// An item whose copies, made for its lease, wait for a message.
struct SlowToClone(Arc<Mutex<Receiver<()>>>, Sender<()>);

impl Clone for SlowToClone {
    fn clone(&self) -> Self {
        self.1.send(()).unwrap();
        let _ = self.0.lock().unwrap().recv();
        Self(Arc::clone(&self.0), self.1.clone())
    }
}

/// User code that runs while a worker takes an item waits for the thread that is in `finish`.
#[test]
fn a_finish_does_not_wait_for_a_worker_that_is_blocked_without_a_run() {
    ends(|| {
        let (go_on, waits) = channel::<()>();
        let (announce, called) = channel();
        let queue = Queue::builder().leased(SECOND).build();
        let item = SlowToClone(Arc::new(Mutex::new(waits)), announce);
        assert!(queue.push(item).is_ok());
        let workers = Workers::builder(&queue).threads(1).run(|_, _| FINE);
        called.recv().unwrap();
        let report = workers.finish(Duration::ZERO);
        assert_eq!(report.stuck.len(), 1);
        drop(go_on);
    });
}

#[test]
fn a_finish_leaves_what_is_delayed_beyond_its_time() {
    ends(|| {
        let name = String::from("borrowed");
        let (_clock, builder) = clocked();
        let queue = builder.build();
        queue.push(&*name).unwrap();
        put_off(&queue, SECOND);
        queue.push("ready").unwrap();
        thread::scope(|scope| {
            let workers = Workers::builder(&queue).threads(2);
            let workers = workers.run_scoped(scope, |_, _| FINE);
            await_commit(&queue);
            let report = workers.finish(Duration::ZERO);
            assert_eq!((report.done, report.left), (1, 1));
            assert_eq!(report.stuck, []);
        });
        assert!(queue.is_closed());
        assert_at_rest(&queue, 0, 0);
    });
}

/// The counts of a pool are disjoint, and each run is in one of them.
#[test]
fn each_run_counts_once() {
    ends(|| {
        let queue = filled(0..5);
        queue.close();
        let workers = Workers::builder(&queue).threads(1).run(|job, tx| {
            match (*job, job.attempts()) {
                (0, 1) => tx.retry_after(job, Duration::from_millis(1)).unwrap(),
                (1, 1) => {
                    tx.retry(job).unwrap(); // the error is what counts
                    return Err("failed");
                }
                (2, 1) => panic!("panicked"),
                (3, _) => tx.fail(job, "never").unwrap(),
                _ => {}
            }
            Ok(())
        });
        let report = workers.join();
        assert_eq!((report.done, report.given_up), (4, 2), "{report:?}");
        assert_eq!((report.failed, report.panicked), (1, 1));
        assert_eq!(report.left, 0);
    });
}

/// Waits until an item is committed.
fn await_commit<T>(queue: &Queue<T>) {
    while queue.stats().committed == 0 {
        thread::yield_now();
    }
}
