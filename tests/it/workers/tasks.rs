//! Pools of tasks: feature `tokio`.

use std::cell::Cell;
use std::future::{pending, poll_fn, Future};
use std::sync::Barrier;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use crate::common::failing::{clocked, put_off, CountingClock, SECOND};
use crate::common::{assert_at_rest, drain, ends, filled, panics};
use requeue::{
    Backoff, PopError, PushError, Queue, TaskItem, TaskTransaction, Tasks, WorkerState, Workers,
};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::Semaphore;
use tokio::task::yield_now;
use tokio_util::sync::CancellationToken;

const HOUR: Duration = Duration::from_secs(3600);

const _: () = {
    const fn is_send<T: Send>() {}
    const fn is_sync<T: Sync>() {}
    is_send::<TaskItem<Cell<u8>>>();
    is_send::<TaskTransaction<Cell<u8>>>();
    is_send::<Tasks>();
    is_sync::<TaskItem<u8>>();
    is_sync::<TaskTransaction<Cell<u8>>>();
};

/// Runs a future to completion on runtimes of one thread and of several.
pub(crate) fn on_tokio<F: Future<Output = ()> + Send + 'static>(work: fn() -> F) {
    for mut builder in [Builder::new_current_thread(), Builder::new_multi_thread()] {
        ends(move || {
            let runtime: Runtime = builder.enable_time().build().unwrap();
            runtime.block_on(work());
        });
    }
}

async fn await_state(tasks: &Tasks, index: usize, state: impl Fn(WorkerState) -> bool) {
    while !state(tasks.status()[index].state) {
        yield_now().await;
    }
}

/// A part of a run, which has references to its item and its transaction across a wait.
async fn halve(job: &TaskItem<u32>, tx: &TaskTransaction<u32>) -> Result<(), PushError<u32>> {
    if **job > 1 {
        yield_now().await;
        tx.push_async(**job / 2).await?;
        yield_now().await;
    }
    Ok(())
}

#[test]
fn functions_take_the_item_and_the_transaction_by_reference() {
    on_tokio(|| async {
        let queue = filled([64]);
        queue.close();
        let tasks = Workers::builder(&queue).tasks(2);
        let tasks = tasks.run_async(|job, tx| async move { halve(&job, &tx).await });
        assert_eq!(tasks.join().await.done, 7);
        assert_at_rest(&queue, 0, 0);
    });
}

/// Calls of several threads exclude each other: one that finds another one under way panics and changes nothing.
#[test]
fn threads_share_a_transaction() {
    const CALLS: u32 = 8_000;
    on_tokio(|| async {
        let (queue, other) = (filled(0..CALLS), filled([]));
        let (send, mut counts) = unbounded_channel();
        let tasks = Workers::builder(&queue).tasks(1).on_panic(|_, _| {});
        let target = other.clone();
        let tasks = tasks.run_async(move |job, tx| {
            let (send, target) = (send.clone(), target.clone());
            async move {
                let begin = Barrier::new(2);
                let calls = || {
                    begin.wait();
                    let popped = |_: &u32| !panics(|| target.push(*tx.pop().unwrap()).unwrap());
                    (1..CALLS / 2).filter(popped).count()
                };
                let (mine, theirs) = thread::scope(|scope| {
                    let other = scope.spawn(calls);
                    (calls(), other.join().unwrap())
                });
                send.send((tx.held(), 1 + mine + theirs)).unwrap();
                drop(job);
                pending::<Result<(), ()>>().await
            }
        });
        let (held, popped) = counts.recv().await.unwrap();
        assert_eq!(held, popped);
        assert!(popped > 1);
        let mut seen = drain(&other);
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len() + 1, held); // each was delivered to one thread
        drop(tasks);
    });
}

#[test]
fn each_item_is_run_once_and_committed() {
    on_tokio(|| async {
        let queue = filled(0..500);
        queue.close();
        let (send, mut seen) = unbounded_channel();
        let tasks = Workers::builder(&queue).tasks(4);
        let tasks = tasks.run_async(move |job, _tx| {
            let send = send.clone();
            async move {
                yield_now().await;
                send.send(*job)
            }
        });
        let report = tasks.join().await;
        assert_eq!((report.done, report.failed, report.panicked), (500, 0, 0));
        let mut jobs = Vec::new();
        while let Some(job) = seen.recv().await {
            jobs.push(job);
        }
        jobs.sort_unstable();
        assert_eq!(jobs, (0..500).collect::<Vec<_>>());
        assert_eq!(queue.pop(), Err(PopError::Closed));
        assert_at_rest(&queue, 0, 0);
    });
}

#[test]
fn failed_and_panicked_runs_are_undone() {
    on_tokio(|| async {
        let queue = filled([1]);
        let (tell, mut told) = unbounded_channel();
        let (send, mut seen) = unbounded_channel();
        let tasks = Workers::builder(&queue)
            .tasks(2)
            .name("t")
            .on_panic(move |task, payload| {
                let message = payload.downcast_ref::<&str>().copied();
                tell.send((task.starts_with("t-"), message)).unwrap();
                panic!("the hook panics too");
            })
            .run_async(move |mut job, tx| {
                let send = send.clone();
                async move {
                    yield_now().await;
                    if *job > 100 {
                        send.send(*job).unwrap();
                        return Ok(());
                    }
                    *job += 10;
                    tx.push(*job + 100).unwrap();
                    yield_now().await;
                    match job.attempts() {
                        1 => Err("not now"),
                        2 => panic!("bad luck"),
                        _ => Ok(()),
                    }
                }
            });
        assert_eq!(seen.recv().await, Some(131));
        assert_eq!(told.recv().await, Some((true, Some("bad luck"))));
        let report = tasks.stop().await;
        assert_eq!((report.done, report.failed, report.panicked), (2, 1, 1));
        assert_at_rest(&queue, 0, 0);
    });
}

/// A panic before the first `.await`, or when the future is dropped, does not end a task.
#[test]
fn a_task_survives_panics_outside_of_its_future() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            assert!(std::thread::panicking(), "the future's destructor panics");
        }
    }
    on_tokio(|| async {
        let queue = filled([1]);
        queue.close();
        let tasks = Workers::builder(&queue).tasks(1).run_async(|job, _tx| {
            assert!(job.attempts() > 1, "no future at all");
            async move {
                let _bomb = (job.attempts() == 2).then(|| Bomb);
                Ok::<(), ()>(())
            }
        });
        let report = tasks.join().await;
        assert_eq!((report.done, report.panicked), (1, 2));
    });
}

#[test]
fn stop_waits_for_current_runs_and_leaves_ready_items() {
    on_tokio(|| async {
        static GATE: Semaphore = Semaphore::const_new(0);
        let queue = filled([1, 2, 3]);
        let tasks = Workers::builder(&queue)
            .tasks(2)
            .run_async(|_job, _| async {
                GATE.acquire().await.unwrap().forget();
                Ok::<(), ()>(())
            });
        while queue.stats().held < 2 {
            yield_now().await;
        }
        let token = CancellationToken::new();
        let stopping = tokio::spawn(tasks.stop_by(token.clone().cancelled_owned()).stop());
        GATE.add_permits(3);
        let report = stopping.await.unwrap();
        assert!(report.done >= 2 && report.stuck.is_empty(), "{report:?}");
        GATE.forget_permits(3);
        assert_eq!(report.done + drain(&queue).len() as u64, 3);
        assert!(!token.is_cancelled());
    });
}

#[test]
fn a_token_stops_tasks_that_wait() {
    on_tokio(|| async {
        let token = CancellationToken::new();
        let queue = Queue::<u32>::unbounded();
        let tasks = Workers::builder(&queue).tasks(3);
        let tasks = tasks.run_async(|_, _| async { Ok::<(), ()>(()) });
        let tasks = tasks
            .stop_by(pending::<()>())
            .stop_by(token.child_token().cancelled_owned());
        yield_now().await;
        token.cancel();
        assert!(tasks.join().await.stuck.is_empty());
        queue.push(1).unwrap();
        assert_eq!(drain(&queue), [1]);
    });
}

#[test]
fn a_shutdown_gives_back_the_items_of_late_tasks() {
    on_tokio(|| async {
        let queue = filled([1, 2]);
        let builder = Workers::builder(&queue).tasks(1).name("t");
        let tasks = builder.run_async(|job, tx| async move {
            tx.push(*job + 10).unwrap();
            pending::<Result<(), ()>>().await
        });
        while queue.stats().held == 0 {
            yield_now().await;
        }
        let report = tasks.shutdown(Duration::from_millis(1)).await;
        assert_eq!(report.stuck.len(), 1);
        assert_eq!(&*report.stuck[0].name, "t-0");
        assert_eq!(drain(&queue), [1, 2]);
        assert_at_rest(&queue, 0, 0);
    });
}

#[test]
fn dropped_tasks_give_back_their_items() {
    on_tokio(|| async {
        let queue = filled([1]);
        let tasks = Workers::builder(&queue).tasks(1);
        let tasks = tasks.run_async(|_, _| pending::<Result<(), ()>>());
        while queue.stats().held == 0 {
            yield_now().await;
        }
        drop(tasks);
        while queue.stats().held > 0 {
            yield_now().await;
        }
        assert_eq!(drain(&queue), [1]);
    });
}

#[test]
fn a_paused_task_takes_nothing() {
    on_tokio(|| async {
        let queue = Queue::unbounded();
        let (send, mut seen) = unbounded_channel();
        let tasks = Workers::builder(&queue).tasks(2).run_async(move |job, _| {
            let send = send.clone();
            async move { send.send(*job) }
        });
        let paused = |state| state == WorkerState::Paused;
        tasks.pause(0);
        await_state(&tasks, 0, paused).await;
        queue.push(1).unwrap();
        assert_eq!(seen.recv().await, Some(1));
        await_state(&tasks, 1, |state| state == WorkerState::Idle).await;
        assert_eq!(tasks.status()[1].done, 1);
        tasks.pause(1);
        await_state(&tasks, 1, paused).await;
        queue.push(2).unwrap();
        yield_now().await;
        assert_eq!(queue.len(), 1);
        tasks.resume(0);
        assert_eq!(seen.recv().await, Some(2));
        tasks.pause_all();
        await_state(&tasks, 0, paused).await;
        tasks.resume_all();
        queue.push(3).unwrap();
        assert_eq!(seen.recv().await, Some(3));
        assert_eq!(tasks.stop().await.done, 3);
    });
}

/// Tasks that always find an item yield to others.
/// A command wakes a task that waits for an item. One that runs is not polled for it, even if it waited before.
#[test]
fn a_command_wakes_no_run() {
    let runtime = Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let queue = Queue::unbounded();
        let (announce, mut polled) = unbounded_channel();
        let tasks = Workers::builder(&queue).tasks(1);
        let tasks = tasks.run_async(move |_job, _tx| {
            let announce = announce.clone();
            poll_fn(move |_| {
                announce.send(()).unwrap();
                Poll::<Result<(), ()>>::Pending
            })
        });
        while queue.stats().waiting == 0 {
            yield_now().await;
        }
        queue.push(1).unwrap();
        assert_eq!(polled.recv().await, Some(()));
        tasks.pause(0);
        for _ in 0..100 {
            yield_now().await;
        }
        assert!(polled.try_recv().is_err());
        drop(tasks);
    });
}

#[test]
fn tasks_that_never_wait_starve_no_other_task() {
    on_tokio(|| async {
        let queue = filled([0]);
        let tasks = Workers::builder(&queue)
            .tasks(1)
            .run_async(|job, tx| async move { tx.push(*job) });
        while queue.stats().committed < 1_000 {
            yield_now().await;
        }
        tasks.stop().await;
        assert_eq!(drain(&queue), [0]);
    });
}

#[test]
fn tasks_are_spawned_in_a_runtime_only() {
    let queue = Queue::<u32>::unbounded();
    let builder = || Workers::builder(&queue);
    assert!(panics(|| builder().tasks(0)));
    assert!(panics(|| {
        builder().run_async(|_, _| async { Ok::<(), ()>(()) })
    }));
}

#[test]
fn a_run_that_retries_commits_the_rest() {
    on_tokio(|| async {
        let queue = filled([1]);
        let tasks = Workers::builder(&queue)
            .tasks(1)
            .run_async(|item, tx| async move {
                yield_now().await;
                if item.attempts() > 1 {
                    return Ok(());
                }
                if *item == 1 {
                    tx.push(2).unwrap();
                }
                tx.retry(item)
            });
        while queue.stats().committed < 2 {
            yield_now().await;
        }
        let report = tasks.stop().await;
        assert_eq!((report.done, report.given_up, report.failed), (2, 2, 0));
        assert_eq!(queue.stats().aborted, 2);
        assert_at_rest(&queue, 0, 0);
    });
}

/// Runs push follow-up items after the close: all are done, and the pool ends by itself.
#[test]
fn follow_ups_are_run_after_the_close() {
    on_tokio(|| async {
        let queue = filled([8]);
        queue.close();
        let tasks = Workers::builder(&queue).tasks(4);
        let tasks = tasks.run_async(|job, tx| async move {
            for child in 0..*job {
                yield_now().await;
                tx.push(child)?;
            }
            Ok::<_, PushError<u32>>(())
        });
        let report = tasks.join().await;
        assert_eq!((report.done, report.failed), (256, 0));
        assert_eq!(queue.pop(), Err(PopError::Closed));
    });
}

/// Runs that fail, that panic before and after their first await, and whose future panics when it is dropped.
#[test]
fn the_error_of_a_run_is_kept_and_tasks_back_off() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    on_tokio(|| async {
        let queue = filled(["fails", "panics", "late", "dropped", "is given up"]);
        queue.close();
        let (tell, mut told) = unbounded_channel();
        let tasks = Workers::builder(&queue)
            .tasks(2)
            .on_error(move |failure| tell.send(failure.clone()).unwrap())
            .run_async(|job, tx| {
                assert!(*job != "panics" || job.attempts() > 1, "panics");
                async move {
                    let _bomb = (*job == "dropped" && job.attempts() == 1).then(|| Bomb);
                    yield_now().await;
                    match *job {
                        "is given up" => {
                            tx.fail(job, "is given up").unwrap();
                            Ok(())
                        }
                        _ if job.attempts() > 1 => Ok(()),
                        "fails" => Err(format_args!("fails").to_string()),
                        "late" => panic!("late"),
                        _ => Ok(()),
                    }
                }
            });
        let report = tasks.join().await;
        assert_eq!((report.done, report.given_up), (4, 1));
        assert_eq!((report.failed, report.panicked), (1, 3));
        let mut errors = Vec::new();
        while let Some(failure) = told.recv().await {
            assert_eq!((failure.items, failure.attempts), (1, 1));
            errors.push(failure.error.to_string());
        }
        errors.sort();
        assert_eq!(errors, ["\"fails\"", "dropped", "late", "panics"]);
        let letter = queue.dead_letters().next().unwrap();
        assert_eq!(
            (letter.item, letter.error()),
            ("is given up", Some("is given up"))
        );
        assert_at_rest(&queue, 0, 0);
    });
}

/// The future of the first run panics when it is dropped.
#[test]
fn a_run_that_takes_too_long_is_cancelled() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    on_tokio(|| async {
        let (clock, builder) = clocked();
        let queue = builder.build();
        queue.push_batch(["stuck", "quick"]).unwrap();
        queue.close();
        let (send, mut begun) = unbounded_channel();
        let (tell, mut told) = unbounded_channel();
        let tasks = Workers::builder(&queue)
            .tasks(1)
            .run_timeout(HOUR)
            .backoff(Backoff::fixed(Duration::ZERO))
            .on_error(move |failure| tell.send(failure.clone()).unwrap())
            .run_async(move |job, tx| {
                let send = send.clone();
                async move {
                    if *job == "stuck" && job.attempts() == 1 {
                        let _bomb = Bomb;
                        tx.push("undone").unwrap();
                        send.send(()).unwrap();
                        pending::<()>().await;
                    }
                    Ok::<(), ()>(())
                }
            });
        begun.recv().await.unwrap();
        clock.advance(HOUR / 2);
        yield_now().await;
        assert_eq!(tasks.status()[0].failed, 0);
        clock.advance(HOUR / 2);
        let report = tasks.join().await;
        assert_eq!((report.done, report.failed, report.panicked), (2, 1, 0));
        let failure = told.recv().await.unwrap();
        assert_eq!((failure.items, failure.panicked), (1, false));
        assert_eq!(&*failure.error, "the run took longer than 3600s");
        assert_at_rest(&queue, 0, 0);
    });
}

#[test]
fn jobs_may_take_as_long_as_they_like() {
    on_tokio(|| async {
        let (clock, builder) = clocked();
        let queue = builder.build();
        let pool = Workers::builder(&queue).tasks(1).run_timeout(HOUR);
        let _tasks = pool.run_jobs_async();
        let (tell, begun) = tokio::sync::oneshot::channel();
        let (go, told) = tokio::sync::oneshot::channel();
        let job = async {
            tell.send(()).unwrap();
            told.await.unwrap()
        };
        let outcome = queue.submit_async(job).unwrap();
        begun.await.unwrap();
        clock.advance(HOUR);
        for _ in 0..10 {
            yield_now().await;
        }
        go.send(7).unwrap();
        assert_eq!(outcome.await.unwrap(), 7);
    });
}

/// Any future stops a pool, whatever its output; a panicking one does not.
#[test]
fn any_future_stops_tasks() {
    on_tokio(|| async {
        let queue = Queue::<u32>::unbounded();
        let (stop, stopped) = tokio::sync::oneshot::channel::<u32>();
        let builder = Workers::builder(&queue).tasks(2);
        let tasks = builder
            .run_async(|_, _| async { Ok::<(), ()>(()) })
            .stop_by(async { panic!("no reason to stop") })
            .stop_by(stopped);
        queue.push(1).unwrap();
        queue.wait_idle_async().await;
        stop.send(7).unwrap();
        assert_eq!(tasks.join().await.done, 1);
    });
}

#[test]
fn tasks_run_jobs_at_the_same_time() {
    on_tokio(|| async {
        let queue = Queue::unbounded();
        let tasks = Workers::builder(&queue).tasks(2).run_jobs_async();
        let (here, there) = tokio::sync::oneshot::channel();
        // Each needs the other one to run.
        let first = queue.submit_async(there).unwrap();
        let second = queue.submit_async(async { here.send(5) }).unwrap();
        let bad = queue
            .submit_async(async { panic!("out of paper") })
            .unwrap();
        let closure = queue.submit(|| 7).unwrap();
        assert_eq!(first.await.unwrap(), Ok(5));
        assert_eq!(second.await.unwrap(), Ok(()));
        assert_eq!(closure.await.unwrap(), 7);
        let error = bad.await.unwrap_err();
        assert_eq!(error.to_string(), "job panicked: out of paper");
        let report = tasks.stop().await;
        assert_eq!((report.done, report.panicked, report.failed), (3, 1, 0));
        assert_at_rest(&queue, 0, 0);
    });
}

/// The job was given back, but it cannot be run again.
#[test]
fn a_job_whose_task_is_aborted_says_that_it_was_dropped() {
    on_tokio(|| async {
        let queue = Queue::unbounded();
        let tasks = Workers::builder(&queue).tasks(1).run_jobs_async();
        let (tell, begun) = tokio::sync::oneshot::channel();
        let outcome = queue
            .submit_async(async {
                tell.send(()).unwrap();
                pending::<()>().await;
            })
            .unwrap();
        begun.await.unwrap();
        let report = tasks.shutdown(Duration::ZERO).await;
        assert_eq!(report.stuck.len(), 1);
        assert!(outcome.await.unwrap_err().is_dropped());
        assert!(!queue.pop().unwrap().run());
    });
}

#[test]
fn tasks_run_batches_of_items_that_they_own() {
    on_tokio(|| async {
        let clock = CountingClock::new();
        let queue: Queue<u32> = Queue::builder().clock(clock.clone()).build();
        let (send, mut batches) = unbounded_channel();
        let builder = Workers::builder(&queue).tasks(1).linger(SECOND);
        let tasks = builder.run_batches_async(3, move |mut rows, tx| {
            let send = send.clone();
            async move {
                yield_now().await;
                for row in &mut rows {
                    **row *= 10;
                }
                let failed = rows[0].attempts() == 1 && *rows[0] == 10;
                if *rows[0] == 60 {
                    tx.fail(rows.remove(0), "spoiled").unwrap();
                }
                send.send(rows.iter().map(|row| **row).collect::<Vec<_>>())
                    .unwrap();
                if failed {
                    Err("again")
                } else {
                    Ok(())
                }
            }
        });
        queue.push(1).unwrap();
        await_timer(&clock, 0).await;
        queue.push(2).unwrap();
        clock.advance(SECOND); // the run fails: its changes stay, its items are delayed
        assert_eq!(batches.recv().await.unwrap(), [10, 20]);
        while queue.stats().delayed < 2 {
            yield_now().await;
        }
        clock.advance(SECOND);
        queue.push(5).unwrap(); // full
        let mut batch = batches.recv().await.unwrap();
        batch.sort_unstable();
        assert_eq!(batch, [50, 100, 200]);
        let timers = clock.timers();
        queue.push(6).unwrap();
        await_timer(&clock, timers).await;
        tasks.pause(0);
        assert_eq!(batches.recv().await.unwrap(), [0; 0]); // it has failed the only one
        tasks.resume(0);
        queue.push(7).unwrap();
        queue.close();
        assert_eq!(batches.recv().await.unwrap(), [70]);
        let report = tasks.join().await;
        assert_eq!((report.done, report.given_up), (2, 1));
        assert_eq!((report.failed, queue.dead_letters().len()), (1, 1));
        assert_at_rest(&queue, 0, 0);
    });
}

#[test]
fn a_batch_that_is_kept_fails_the_run() {
    on_tokio(|| async {
        let queue = filled([1, 2, 3]);
        queue.close();
        let (send, mut kept) = unbounded_channel();
        let builder = Workers::builder(&queue).tasks(1);
        let tasks = builder.run_batches_async(3, move |mut rows, _tx| {
            if rows[0].attempts() == 1 {
                send.send(rows.pop().unwrap()).ok();
            }
            async { Ok::<(), ()>(()) }
        });
        let row = kept.recv().await.unwrap();
        assert_eq!(*row, 3);
        while tasks.status()[0].failed == 0 {
            yield_now().await;
        }
        assert_eq!(queue.stats().held, 3);
        drop(row);
        assert_eq!(tasks.join().await.failed, 1);
        assert_eq!(queue.stats().committed, 3);
    });
}

/// Waits until a worker lingers for the rest of a batch.
async fn await_timer(clock: &CountingClock, before: usize) {
    while clock.timers() == before {
        yield_now().await;
    }
}

#[test]
fn a_finish_does_what_is_left() {
    on_tokio(|| async {
        let queue = filled(0..100);
        let tasks = Workers::builder(&queue)
            .tasks(3)
            .run_async(|job, tx| async move {
                yield_now().await;
                if *job == 99 {
                    tx.push(100)?;
                }
                Ok::<_, PushError<u32>>(())
            });
        tasks.pause_all();
        let report = tasks.finish(Duration::MAX).await;
        assert_eq!((report.done, report.left), (101, 0));
        assert!(report.stuck.is_empty() && queue.is_closed());
        assert_at_rest(&queue, 0, 0);
    });
}

/// A task in a run is stuck at the deadline, and its item is given back. One that waits for an item is not.
#[test]
fn a_finish_that_is_over_says_what_is_left() {
    on_tokio(|| async {
        let (_clock, builder) = clocked();
        let queue = builder.build();
        queue.push(1).unwrap();
        put_off(&queue, SECOND);
        queue.push(2).unwrap();
        let (send, mut begun) = unbounded_channel();
        let tasks = Workers::builder(&queue).tasks(3).run_async(move |_, _| {
            send.send(()).unwrap();
            pending::<Result<(), ()>>()
        });
        begun.recv().await.unwrap();
        let report = tasks.finish(Duration::ZERO).await;
        assert_eq!((report.done, report.left, report.stuck.len()), (0, 2, 1));
        assert_eq!(queue.stats().held, 0);
        assert_eq!(queue.len(), 1);
        assert!(queue.push(3).unwrap_err().is_closed());
    });
}
