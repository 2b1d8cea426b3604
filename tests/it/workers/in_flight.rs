//! Commits of tasks that are under way while they run on the next items.

use super::remote::Remote;
use requeue::backend::Backend;
use requeue::{Report, Tasks, Workers};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;
use tokio::task::yield_now;

/// A pool of one task with items 0 to 9, whose commits wait for answers.
struct Pool {
    remote: Remote,
    answer: Arc<Semaphore>,
    tasks: Tasks,
    begun: Arc<AtomicU64>,
    errors: Arc<Mutex<Vec<String>>>,
}

impl Pool {
    fn new(remote: Remote, commits_in_flight: usize) -> Self {
        let answer = Arc::new(Semaphore::new(0));
        let remote = Remote {
            answer: Some(Arc::clone(&answer)),
            ..remote
        };
        let items = (0..10).map(|item| (item, 0));
        remote.stored.lock().unwrap().extend(items);
        let (begun, errors) = (Arc::new(AtomicU64::new(0)), Arc::<Mutex<Vec<_>>>::default());
        let (count, failed) = (Arc::clone(&begun), Arc::clone(&errors));
        let builder = Workers::builder(&remote).tasks(1);
        let builder = builder.on_error(move |failure| {
            failed.lock().unwrap().push(failure.error.to_string());
        });
        let builder = builder.commits_in_flight(commits_in_flight);
        let tasks = builder.run_async(move |_, _| {
            count.fetch_add(1, Ordering::Relaxed);
            async { Ok::<(), ()>(()) }
        });
        Self {
            remote,
            answer,
            tasks,
            begun,
            errors,
        }
    }

    /// Lets the task go on until it waits, and returns how many runs have begun, and how many are done.
    async fn progress(&self) -> (u64, u64) {
        for _ in 0..100 {
            yield_now().await;
        }
        let done = self.tasks.status()[0].done;
        (self.begun.load(Ordering::Relaxed), done)
    }
}

#[tokio::test]
async fn a_task_goes_on_while_commits_are_under_way_and_waits_if_they_are_many() {
    for in_flight in 0..5 {
        let pool = Pool::new(Remote::default(), in_flight);
        let begun = in_flight as u64 + 1;
        assert_eq!(pool.progress().await, (begun, 0));
        pool.answer.add_permits(2);
        assert_eq!(pool.progress().await, (begun + 2, 2));
        pool.answer.add_permits(8);
        assert_eq!(pool.progress().await, (10, 10));
    }
}

#[tokio::test]
async fn a_transaction_that_keeps_others_waiting_is_committed_before_the_next_run() {
    let alone = true;
    let pool = Pool::new(
        Remote {
            alone,
            ..Remote::default()
        },
        5,
    );
    assert_eq!(pool.progress().await, (1, 0));
}

/// The run of the second item fails with its commit, while the task runs on others; it is delivered again.
#[tokio::test]
async fn a_commit_that_fails_behind_another_run_is_a_failed_run() {
    let refused = Some(1);
    let pool = Pool::new(
        Remote {
            refused,
            ..Remote::default()
        },
        3,
    );
    assert_eq!(pool.progress().await, (4, 0));
    pool.answer.add_permits(2);
    assert_eq!(pool.progress().await, (6, 1));
    assert_eq!(pool.tasks.status()[0].failed, 1);
    let errors = pool.errors.lock().unwrap().clone();
    assert!(errors[0].contains("connection reset"), "{errors:?}");
    pool.answer.add_permits(9);
    assert_eq!(pool.progress().await, (11, 10));
    assert_eq!(pool.remote.left().await.unwrap(), 0);
}

#[tokio::test]
async fn a_pool_that_stops_waits_for_its_commits_and_begins_no_run() {
    for (in_flight, begun) in [(3, 4), (20, 10)] {
        let pool = Pool::new(Remote::default(), in_flight);
        assert_eq!(pool.progress().await, (begun, 0));
        let stop = tokio::spawn(pool.tasks.stop());
        for _ in 0..100 {
            yield_now().await;
            assert!(!stop.is_finished());
        }
        pool.answer.add_permits(10);
        let Report { done, left, .. } = stop.await.unwrap();
        assert_eq!((done, left), (begun, 10 - begun));
        assert_eq!(pool.begun.load(Ordering::Relaxed), begun);
    }
}

#[tokio::test]
async fn the_commits_of_a_pool_that_is_dropped_are_dropped() {
    let refused = Some(2);
    let pool = Pool::new(
        Remote {
            refused,
            ..Remote::default()
        },
        3,
    );
    assert_eq!(pool.progress().await, (4, 0));
    drop(pool.tasks);
    yield_now().await;
    // It was not committed, and is given back.
    assert_eq!(pool.remote.stored.lock().unwrap()[0].0, 2);
    assert_eq!(pool.answer.available_permits(), 0);
}

#[tokio::test]
async fn by_default_the_tasks_of_a_pool_have_so_many_commits_under_way_together() {
    for (tasks, begun) in [(1, 257), (8, 8 * 33), (256, 512), (257, 257)] {
        let remote = Remote {
            answer: Some(Arc::new(Semaphore::new(0))),
            ..Remote::default()
        };
        let items = (0..1000).map(|item| (item, 0));
        remote.stored.lock().unwrap().extend(items);
        let builder = Workers::builder(&remote).tasks(tasks);
        let tasks = builder.run_async(|_, _| async { Ok::<(), ()>(()) });
        for _ in 0..1000 {
            yield_now().await;
        }
        assert_eq!(remote.stored.lock().unwrap().len(), 1000 - begun);
        drop(tasks);
    }
}
