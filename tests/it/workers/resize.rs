//! Pools whose size changes while they run.

use std::convert::Infallible;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::common::{assert_at_rest, ends, filled, panics};
use requeue::{Queue, WorkerState, Workers};

const FINE: Result<(), Infallible> = Ok(());

/// A pool whose runs announce their item, and end when they are told to.
fn gated(queue: &Queue<u32>, count: usize) -> (Workers, Receiver<u32>, Sender<()>) {
    let (announce, begun) = channel();
    let (tell, told) = channel();
    let told = Mutex::new(told);
    let workers = Workers::builder(queue)
        .threads(count)
        .run(move |item, _tx| {
            announce.send(*item).unwrap();
            told.lock().unwrap().recv()
        });
    (workers, begun, tell)
}

fn names(workers: &Workers) -> Vec<String> {
    let status = workers.status();
    status
        .iter()
        .map(|worker| worker.name.to_string())
        .collect()
}

fn await_workers(workers: &Workers, count: usize) {
    while workers.status().len() != count {
        thread::yield_now();
    }
}

#[test]
fn a_pool_that_grows_runs_more_items_at_a_time() {
    ends(|| {
        let queue = filled(0..4);
        let (mut workers, begun, tell) = gated(&queue, 1);
        assert_eq!(begun.recv(), Ok(0));
        workers.resize(4);
        assert_eq!(workers.size(), 4);
        let mut others: Vec<u32> = begun.iter().take(3).collect();
        others.sort_unstable();
        assert_eq!(others, [1, 2, 3]);
        assert_eq!(
            names(&workers),
            ["worker-0", "worker-1", "worker-2", "worker-3"]
        );
        (0..4).for_each(|_| tell.send(()).unwrap());
        queue.close();
        let report = workers.join();
        assert_eq!((report.done, report.failed), (4, 0));
    });
}

#[test]
fn a_pool_that_shrinks_interrupts_no_run_and_forgets_none() {
    ends(|| {
        let queue = filled(0..3);
        let (mut workers, begun, tell) = gated(&queue, 3);
        begun.iter().take(3).for_each(drop);
        workers.resize(1);
        assert_eq!((workers.size(), workers.status().len()), (1, 3)); // two are leaving
        (0..3).for_each(|_| tell.send(()).unwrap());
        await_workers(&workers, 1);
        queue.push_batch([3, 4]).unwrap();
        assert_eq!(begun.recv(), Ok(3));
        assert!(begun.try_recv().is_err()); // one at a time
        workers.resize(2); // under a name that was free
        assert_eq!(begun.recv(), Ok(4));
        assert_eq!(names(&workers), ["worker-0", "worker-1"]);
        (0..2).for_each(|_| tell.send(()).unwrap());
        queue.close();
        assert_eq!(workers.join().done, 5);
        assert_at_rest(&queue, 0, 0);
    });
}

#[test]
fn a_pool_of_no_workers_is_paused() {
    ends(|| {
        let queue = filled([]);
        let mut workers = Workers::builder(&queue).threads(3).run(|_, _| FINE);
        workers.resize(0);
        assert_eq!(workers.size(), 0);
        await_workers(&workers, 1);
        while workers.status()[0].state != WorkerState::Paused {
            thread::yield_now();
        }
        queue.push(1).unwrap();
        assert_eq!(queue.len(), 1);
        workers.resize(0);
        workers.resize(2);
        queue.wait_idle();
        workers.resize(0);
        queue.push(2).unwrap();
        let report = workers.finish(Duration::MAX); // which resumes it
        assert_eq!((report.done, report.left), (2, 0));
    });
}

#[test]
fn what_leaves_late_is_waited_for_and_reported() {
    ends(|| {
        let queue = filled([1, 2]);
        let (mut workers, begun, tell) = gated(&queue, 2);
        begun.iter().take(2).for_each(drop);
        workers.resize(1);
        assert_eq!(workers.shutdown(Duration::ZERO).stuck.len(), 2);
        (0..2).for_each(|_| tell.send(()).unwrap());
        queue.wait_idle();

        queue.push_batch([1, 2]).unwrap();
        let (mut workers, begun, tell) = gated(&queue, 2);
        begun.iter().take(2).for_each(drop);
        workers.resize(1);
        (0..2).for_each(|_| tell.send(()).unwrap());
        assert_eq!(workers.stop().done, 2);
    });
}

/// The destructor of the function is the sign that all threads have ended.
#[test]
fn a_pool_that_has_ended_keeps_nothing_and_does_not_grow() {
    ends(|| {
        let queue = filled([1]);
        let kept = Arc::new(());
        let weak = Arc::downgrade(&kept);
        let mut workers = Workers::builder(&queue).threads(2).run(move |_, _| {
            let _ = &kept;
            FINE
        });
        workers.resize(3);
        queue.close();
        while weak.strong_count() > 0 {
            thread::yield_now();
        }
        workers.resize(5);
        assert_eq!(workers.join().done, 1);
    });
}

#[test]
fn scoped_pools_and_those_with_other_queues_grow() {
    ends(|| {
        let (queue, others) = (filled(0..100), filled([]));
        let sum = Mutex::new(0);
        queue.close();
        thread::scope(|scope| {
            let builder = Workers::builder(&queue).threads(1);
            let mut workers = builder.run_scoped(scope, |item, _tx| {
                *sum.lock().unwrap() += *item;
                FINE
            });
            workers.resize(3);
            assert_eq!(workers.join().done, 100);
        });
        assert_eq!(sum.into_inner().unwrap(), (0..100).sum());

        let queue = filled(0..100);
        let builder = Workers::builder(&queue).threads(1);
        let mut workers = builder.run_with((&others,), |item, _tx, (out,)| out.push(*item));
        workers.resize(3);
        assert_eq!(workers.finish(Duration::MAX).done, 100);
        assert_eq!(others.len(), 100);
    });
}

#[test]
fn a_pool_of_futures_shrinks_only() {
    ends(|| {
        let queue = filled([1]);
        let spawn = |worker| drop(thread::spawn(|| futures::executor::block_on(worker)));
        let builder = Workers::builder(&queue).threads(2);
        let mut workers = builder.run_on(spawn, |_, _| async { FINE });
        workers.resize(0);
        workers.resize(1);
        queue.wait_idle();
        assert!(panics(|| workers.resize(2)));
        assert_eq!(workers.finish(Duration::MAX).done, 1);
    });
}

#[cfg(feature = "tokio")]
mod tasks {
    use super::FINE;
    use crate::common::filled;
    use crate::workers::tasks::on_tokio;
    use requeue::{Queue, Workers};
    use std::future::pending;
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::sync::Barrier;
    use tokio::task::yield_now;

    #[test]
    fn pools_of_tasks_grow_and_shrink() {
        on_tokio(|| async {
            let queue = filled(0..4);
            let all = Arc::new(Barrier::new(4));
            let mut tasks = Workers::builder(&queue).tasks(1).run_async(move |_, _| {
                let all = Arc::clone(&all);
                async move {
                    all.wait().await;
                    FINE
                }
            });
            tasks.resize(4); // or nobody passes
            queue.wait_idle_async().await;
            tasks.resize(1);
            while tasks.status().len() > 1 {
                yield_now().await;
            }
            tasks.resize(0);
            queue.close();
            tasks.resize(3);
            assert_eq!((tasks.size(), tasks.join().await.done), (3, 4));
        });
    }

    #[test]
    fn a_pool_of_tasks_that_was_stopped_does_not_grow() {
        on_tokio(|| async {
            let queue = Queue::<u32>::unbounded();
            let tasks = Workers::builder(&queue).tasks(1);
            let mut tasks = tasks.run_async(|_, _| async { FINE }).stop_by(async {});
            while !tasks.status()[0].state.eq(&requeue::WorkerState::Stopped) {
                yield_now().await;
            }
            tasks.resize(3);
            tasks.join().await; // the queue is open
        });
    }

    #[test]
    fn a_leaving_task_is_aborted_with_the_others() {
        on_tokio(|| async {
            let queue = filled([1, 2]);
            let tasks = Workers::builder(&queue).tasks(2);
            let mut tasks = tasks.run_async(|_, _| pending::<Result<(), ()>>());
            while queue.stats().held < 2 {
                yield_now().await;
            }
            tasks.resize(1);
            let report = tasks.shutdown(Duration::ZERO).await;
            assert_eq!((report.stuck.len(), queue.len()), (2, 2));
        });
    }
}
