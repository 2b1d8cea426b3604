//! Queues of closures, and their outcomes.

use std::any::Any;
use std::cell::Cell;
use std::error::Error;
use std::future::{poll_fn, ready, Future};
use std::mem;
use std::panic::resume_unwind;
use std::sync::mpsc::channel;
use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use crate::common::futures::{block_on, poll_once, Task};
use crate::common::{assert_at_rest, ends, panics};
use requeue::{FairQueue, Job, JobError, Order, Outcome, PriorityQueue, PushError, Queue, Workers};

type Pool = (Queue<Job>, Workers);

fn pool(threads: usize) -> Pool {
    let queue = Queue::unbounded();
    let workers = Workers::builder(&queue).threads(threads).run_jobs();
    (queue, workers)
}

const _: () = {
    const fn is_send<T: Send>() {}
    const fn is_sync<T: Sync>() {}
    is_send::<Job>();
    is_send::<JobError>();
    is_sync::<JobError>();
    is_send::<Outcome<Cell<u8>>>();
    is_sync::<Outcome<Cell<u8>>>();
};

type Ended = Result<u32, JobError>;

/// The ways to wait for an outcome.
const WAITS: [fn(Outcome<u32>) -> Ended; 3] = [
    Outcome::wait,
    |outcome| outcome.wait_timeout(Duration::MAX).unwrap(),
    |outcome| block_on(outcome),
];

fn waits_for(run: fn() -> u32, expected: fn(&Ended) -> bool) {
    ends(move || {
        for wait in WAITS {
            let (queue, workers) = pool(2);
            let ended = wait(queue.submit(run).unwrap());
            assert!(expected(&ended), "{ended:?}");
            workers.stop();
            assert_eq!(queue.stats().committed, 1);
            assert_at_rest(&queue, 0, 0);
        }
    });
}

#[test]
fn an_outcome_is_what_the_job_returned() {
    waits_for(|| 42, |ended| matches!(ended, Ok(42)));
}

/// A job that has run must not run again.
#[test]
fn a_job_that_panicked_is_committed() {
    waits_for(
        || panic!("out of paper"),
        |ended| {
            let error = ended.as_ref().unwrap_err();
            assert_eq!(error.to_string(), "job panicked: out of paper");
            error.is_panic() && !error.is_dropped()
        },
    );
}

#[test]
fn a_pool_counts_panics_and_lives_on() {
    ends(|| {
        let (queue, workers) = pool(1);
        let bad = queue.submit(|| panic!("bad")).unwrap();
        let good = queue.submit(|| 7).unwrap();
        assert_eq!(good.wait().unwrap(), 7);
        let payload: Box<dyn Any + Send> = bad.wait().unwrap_err().into_panic().unwrap();
        assert_eq!(payload.downcast_ref(), Some(&"bad"));
        let report = workers.stop();
        assert_eq!((report.done, report.panicked, report.failed), (1, 1, 0));
    });
}

#[test]
fn a_job_that_is_dropped_says_so() {
    ends(|| {
        for wait in WAITS {
            let queue = Queue::unbounded();
            let outcome = queue.submit(|| 1).unwrap();
            let waiting = thread::spawn(move || wait(outcome));
            drop(queue.pop().unwrap());
            let error = waiting.join().unwrap().unwrap_err();
            assert!(error.is_dropped());
            assert_eq!(error.to_string(), "job was dropped before it ended");
            assert!(error.into_panic().unwrap_err().is_dropped());
        }
    });
}

#[test]
fn a_job_that_was_not_run_goes_back_whole() {
    let queue = Queue::unbounded();
    let outcome = queue.submit(|| 5).unwrap();
    let mut handle = queue.handle();
    let tx = handle.begin();
    assert!(format!("{:?}", *tx.pop().unwrap()).contains("false"));
    tx.abort();
    assert!(!outcome.has_ended());
    assert!(queue.pop().unwrap().run());
    assert_eq!(outcome.wait().unwrap(), 5);
}

#[test]
fn a_job_runs_once() {
    let (mut job, outcome) = Job::new(|| 5);
    assert!(job.run());
    assert!(!job.run());
    assert_eq!(outcome.wait().unwrap(), 5);
}

#[test]
fn a_wait_that_is_over_gives_the_outcome_back() {
    let (mut job, outcome) = Job::new(|| 5);
    let outcome = outcome.wait_timeout(Duration::from_millis(1)).unwrap_err();
    job.run();
    let ended = outcome.wait_timeout(Duration::ZERO).unwrap();
    assert_eq!(ended.unwrap(), 5);
}

#[test]
fn an_outcome_wakes_the_last_waker_that_polled_it() {
    let (mut job, outcome) = Job::new(|| 5);
    let mut task = Task::new(outcome);
    task.assert_waits();
    let first = task.renew_waker();
    task.assert_waits();
    job.run();
    assert_eq!((first.rings(), task.rings()), (0, 1));
    assert_eq!(task.output().unwrap(), 5);
    assert!(panics(|| task.poll()), "the result is returned once");
}

/// Its destructor panics.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(thread::panicking(), "the destructor fails");
    }
}

#[test]
fn a_result_without_a_waiter_may_panic_on_drop() {
    ends(|| {
        let queue = Queue::unbounded();
        drop(queue.submit(|| Bomb));
        drop(queue.submit(|| resume_unwind(Box::new(Bomb))));
        queue.close();
        let report = Workers::builder(&queue).threads(1).run_jobs().join();
        assert_eq!((report.done, report.failed, report.panicked), (1, 0, 1));
        let stats = queue.stats();
        assert_eq!((stats.committed, stats.aborted), (2, 0));
    });
}

#[test]
fn a_job_has_ended_even_after_its_result_was_returned() {
    let (mut job, mut outcome) = Job::new(|| 5);
    assert!(!outcome.has_ended());
    job.run();
    assert!(outcome.has_ended());
    assert!(poll_once(&mut outcome).is_ready());
    assert!(outcome.has_ended());
}

#[test]
fn a_waker_that_panics_harms_no_worker() {
    let (mut job, outcome) = Job::new(|| 5);
    let mut task = Task::waiting_with_bomb(outcome);
    assert!(job.run());
    assert_eq!(task.output().unwrap(), 5);
}

#[test]
fn a_refused_closure_comes_back() {
    let queue = Queue::bounded(1);
    let text = Arc::new(String::from("captured"));
    let closure = |text: &Arc<String>| {
        let text = Arc::clone(text);
        move || text.len()
    };
    let outcome = queue.submit(closure(&text)).unwrap();
    let Err(PushError::Full(again)) = queue.submit(closure(&text)) else {
        panic!("there is room for one");
    };
    assert_eq!(again(), 8);
    drop(again);
    assert!(queue.pop().unwrap().run());
    assert_eq!(outcome.wait().unwrap(), 8);
    queue.close();
    assert!(queue.submit(closure(&text)).unwrap_err().is_closed());
    assert_eq!(Arc::strong_count(&text), 1);
}

#[test]
fn jobs_submit_jobs() {
    ends(|| {
        let (queue, workers) = pool(1);
        let (send, got) = channel();
        let inner = queue.clone();
        let outer = queue.submit(move || inner.submit(move || send.send(1).unwrap()));
        let inner = outer.unwrap().wait().unwrap().unwrap();
        assert_eq!(got.recv(), Ok(1));
        inner.wait().unwrap();
        assert_eq!(workers.stop().done, 2);
    });
}

#[test]
fn jobs_have_priorities_where_the_queue_has() {
    ends(|| {
        let queue = PriorityQueue::by_priority();
        let (sender, order) = channel();
        let say = |word| {
            let sender = sender.clone();
            move || sender.send(word).unwrap()
        };
        let normal = queue.submit(say("normal")).unwrap();
        let (job, urgent) = Job::new(say("urgent"));
        queue.priority(1).push(job).unwrap();
        let workers = Workers::builder(&queue).threads(1).run_jobs();
        urgent.wait().unwrap();
        normal.wait().unwrap();
        workers.stop();
        assert!(order.try_iter().eq(["urgent", "normal"]));
    });
}

/// `?` works with the output of an outcome, where errors have to be `Send` and `Sync`.
#[test]
fn an_outcome_is_a_result() {
    fn sum(jobs: [Outcome<u32>; 2]) -> Result<u32, Box<dyn Error + Send + Sync>> {
        let [a, b] = jobs;
        Ok(a.wait()? + b.wait()?)
    }
    let (mut a, one) = Job::new(|| 1);
    let (mut b, two) = Job::new(|| 2);
    assert!(a.run() && b.run());
    assert_eq!(sum([one, two]).unwrap(), 3);
    let (mut a, one) = Job::new(|| 1);
    let (b, two) = Job::new(|| 2);
    assert!(a.run());
    drop(b);
    let error = sum([one, two]).unwrap_err();
    assert!(error.downcast_ref::<JobError>().unwrap().is_dropped());
}

/// Ready on the second poll.
fn later<R>(result: impl FnOnce() -> R) -> impl Future<Output = R> {
    let mut polled = false;
    let mut result = Some(result);
    poll_fn(move |context| {
        if mem::replace(&mut polled, true) {
            return Poll::Ready(result.take().unwrap()());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
}

#[test]
fn a_thread_runs_a_future() {
    ends(|| {
        let (queue, workers) = pool(1);
        let good = queue.submit_async(later(|| 5)).unwrap();
        let bad = queue
            .submit_async(later(|| -> u32 { panic!("out of paper") }))
            .unwrap();
        assert_eq!(good.wait().unwrap(), 5);
        assert!(bad.wait().unwrap_err().is_panic());
        let report = workers.stop();
        assert_eq!((report.done, report.panicked, report.failed), (1, 1, 0));
        assert_eq!(queue.stats().committed, 2);
    });
}

#[test]
fn a_future_that_was_not_begun_goes_back_whole() {
    let queue = Queue::unbounded();
    let outcome = queue.submit_async(later(|| 5)).unwrap();
    let mut handle = queue.handle();
    let tx = handle.begin();
    assert!(tx.pop().is_ok());
    tx.abort();
    assert!(queue.pop().unwrap().run());
    assert_eq!(outcome.wait().unwrap(), 5);
}

/// A started job cannot be run again.
#[test]
fn a_future_whose_run_is_dropped_was_dropped() {
    let (mut job, outcome) = Job::new_async(later(|| 5));
    assert!(poll_once(Box::pin(job.run_async())).is_pending());
    assert!(outcome.wait().unwrap_err().is_dropped());
    assert!(!job.run());
}

#[test]
fn a_refused_future_comes_back() {
    let queue = Queue::bounded(1);
    let outcome = queue.submit_async(ready(1)).unwrap();
    let Err(PushError::Full(again)) = queue.submit_async(ready(2)) else {
        panic!("there is room for one");
    };
    assert_eq!(block_on(again), 2);
    queue.close();
    assert!(queue.submit_async(ready(3)).unwrap_err().is_closed());
    assert!(queue.pop().unwrap().run());
    assert_eq!(outcome.wait().unwrap(), 1);
}

#[test]
fn every_order_takes_jobs() {
    fn works<O: Order<Job> + 'static>(queue: &Queue<Job, O>) {
        let _workers = Workers::builder(queue).threads(1).run_jobs();
        let outcomes = [
            queue.submit(|| 1).unwrap(),
            queue.submit_async(ready(2)).unwrap(),
        ];
        let results = outcomes.map(|outcome| outcome.wait().unwrap());
        assert_eq!(results, [1, 2]);
    }
    ends(|| {
        works(&Queue::unbounded());
        works(&PriorityQueue::by_priority());
        works(&FairQueue::by(|_: &Job| 0));
    });
}
