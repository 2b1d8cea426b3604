//! Pools of workers.

use std::future::ready;
use std::thread;
use std::time::Duration;

use requeue::workers::AnyQueue;
use requeue::{Job, JobError, Order, Outcome, Queue, Report, Success, Workers, WorkersBuilder};

fn pool<O: Order<u8>>(queue: &Queue<u8, O>) -> WorkersBuilder<u8, O> {
    Workers::builder(queue)
        .threads(1)
        .name("worker")
        .run_timeout(Duration::MAX)
        .on_panic(|_, _| ())
        .on_error(|failure| drop(failure.error.clone()))
}

fn closed() -> Queue<u8> {
    let queue: Queue<u8> = (0..4).collect();
    queue.close();
    queue
}

#[test]
fn threads_run_items_and_batches() {
    let workers = pool(&closed()).run(|item, tx| match item.attempts() {
        1 => tx.retry(item),
        _ => Ok(()),
    });
    let _ = workers.status();
    workers.pause(0);
    workers.resume(0);
    workers.pause_all();
    workers.resume_all();
    let report: Report = workers.join();
    assert!(report.done > 0 && report.failed == 0 && report.panicked == 0);
    let workers = pool(&closed()).linger(Duration::ZERO);
    let workers = workers.run_batches(2, |items, _tx| {
        assert!(items.len() <= 2);
        Ok::<(), ()>(())
    });
    workers.shutdown(Duration::MAX);
    thread::scope(|scope| {
        let queue = closed();
        let workers: Workers<AnyQueue<'_>> =
            pool(&queue).run_scoped(scope, |_, _| Ok::<(), ()>(()));
        workers.join();
    });
    pool(&closed()).run(|_, _| Ok::<(), ()>(())).stop();
    let workers = pool(&closed()).run(|_, _| Ok::<(), ()>(()));
    assert_eq!(workers.finish(Duration::MAX).left, 0);
}

#[test]
fn jobs_have_outcomes() {
    let queue: Queue<Job> = Queue::unbounded();
    let outcome: Outcome<u8> = queue.submit(|| 1).unwrap();
    let (job, direct) = Job::new(|| 3);
    queue.push(job).unwrap();
    let future: Outcome<u8> = queue.submit_async(ready(4)).unwrap();
    queue.close();
    Workers::builder(&queue).threads(1).run_jobs().join();
    let ended: Result<u8, JobError> = outcome.wait();
    assert_eq!(ended.unwrap(), 1);
    assert_eq!(future.wait().unwrap(), 4);
    assert!(direct.has_ended());
    assert_eq!(direct.wait().unwrap(), 3);
}

#[test]
fn work_is_waited_for_and_goes_to_other_queues() {
    let (from, to, log) = (Queue::unbounded(), Queue::unbounded(), Queue::unbounded());
    let workers = pool(&from).run_with((&to, &log), |item, _tx, (to, log)| {
        log.push("moved").unwrap();
        to.push(*item)
    });
    from.push(1).unwrap();
    from.wait_idle();
    assert!(from.wait_idle_timeout(Duration::MAX));
    assert_eq!((to.len(), log.len()), (1, 1));
    let idle: requeue::future::WaitIdle<u8> = from.wait_idle_async();
    drop((idle, workers));
}

#[cfg(feature = "tokio")]
#[test]
fn tasks_run_futures() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    runtime.unwrap().block_on(async {
        let tasks: requeue::Tasks = Workers::builder(&closed())
            .tasks(2)
            .run_async(|_, _| async { Ok::<(), ()>(()) })
            .stop_by(std::future::pending::<()>());
        assert_eq!(tasks.join().await.done, 4);
        let tasks: requeue::Tasks = Workers::builder(&closed())
            .tasks(2)
            .run_batches_async(2, |_, _| async { Ok::<(), ()>(()) });
        assert!(tasks.finish(Duration::MAX).await.done >= 2);
    });
}

/// Jobs of both kinds, and a future that stops the pool.
#[cfg(feature = "tokio")]
#[test]
fn tasks_run_jobs_until_a_future_is_ready() {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(async {
        let queue: Queue<Job> = Queue::unbounded();
        let (stop, stopped) = futures::channel::oneshot::channel::<()>();
        let builder = Workers::builder(&queue).tasks(2);
        let tasks: requeue::Tasks = builder.run_jobs_async().stop_by(stopped);
        let future: Outcome<u8> = queue.submit_async(async { 1 }).unwrap();
        let (job, made) = Job::new_async(async { 3 });
        queue.push(job).unwrap();
        let outcomes = (future.await, made.await);
        assert!(matches!(outcomes, (Ok(1), Ok(3))));
        stop.send(()).unwrap();
        assert_eq!(tasks.join().await.done, 2);
    });
}

#[test]
fn runs_own_items_and_succeed() {
    let workers = pool(&closed()).on_success(|success: &Success| {
        assert_eq!((success.items, success.attempts), (1, 1));
        let _ = (&success.worker, success.took);
    });
    let mut workers = workers.run_owned(|item: u8, _tx| Err::<(), u8>(item).or(Ok::<(), u8>(())));
    workers.resize(2);
    assert_eq!(workers.size(), 2);
    assert_eq!(workers.join().done, 4);
}

#[cfg(feature = "tokio")]
#[test]
fn tasks_own_items_by_the_clock_of_their_runtime() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let clock = requeue::TokioClock::new();
        let queue: Queue<u8> = Queue::builder().clock(clock).build();
        let builder = Workers::builder(&queue).tasks(1);
        let mut tasks = builder.run_owned_async(|_item: u8, _tx| ready(Ok::<(), ()>(())));
        tasks.resize(2);
        assert_eq!(tasks.size(), 2);
        tasks.stop().await;
    });
}
