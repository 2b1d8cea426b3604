//! Queues of closures, and their outcomes.

use std::cell::Cell;
use std::panic::resume_unwind;
use std::sync::mpsc::channel;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::common::futures::{block_on, poll_once, Task};
use crate::common::{assert_at_rest, ends, panics};
use requeue::{Ended, Job, Outcome, PriorityQueue, PushError, Queue, Workers};

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
    is_send::<Ended<Cell<u8>>>();
    is_send::<Outcome<Cell<u8>>>();
    is_sync::<Outcome<Cell<u8>>>();
};

/// The ways to wait for an outcome.
const WAITS: [fn(Outcome<u32>) -> Ended<u32>; 3] = [
    Outcome::wait,
    |outcome| outcome.wait_timeout(Duration::MAX).unwrap(),
    |outcome| block_on(outcome),
];

fn waits_for(run: fn() -> u32, expected: fn(&Ended<u32>) -> bool) {
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
    waits_for(|| 42, |ended| matches!(ended, Ended::Done(42)));
}

/// What has run must not run again.
#[test]
fn a_job_that_panicked_is_committed() {
    waits_for(
        || panic!("out of paper"),
        |ended| match ended {
            Ended::Panicked(payload) => payload.downcast_ref() == Some(&"out of paper"),
            _ => false,
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
        assert!(panics(|| bad.wait().unwrap()));
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
            assert!(matches!(waiting.join().unwrap(), Ended::Dropped));
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
    assert_eq!(outcome.wait().done(), Some(5));
}

#[test]
fn a_job_runs_once() {
    let (mut job, outcome) = Job::new(|| 5);
    assert!(job.run());
    assert!(!job.run());
    assert_eq!(outcome.wait().done(), Some(5));
}

#[test]
fn a_wait_that_is_over_gives_the_outcome_back() {
    let (mut job, outcome) = Job::new(|| 5);
    let outcome = outcome.wait_timeout(Duration::from_millis(1)).unwrap_err();
    job.run();
    let ended = outcome.wait_timeout(Duration::ZERO).unwrap();
    assert_eq!(ended.done(), Some(5));
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
    assert_eq!(task.output().done(), Some(5));
    assert!(panics(|| task.poll()), "it is given out once");
}

/// Its destructor panics.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(thread::panicking(), "the destructor fails");
    }
}

#[test]
fn what_nobody_waits_for_may_panic_when_it_is_dropped() {
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
fn a_job_has_ended_also_when_its_outcome_was_given_out() {
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
    assert_eq!(task.output().done(), Some(5));
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
    assert_eq!(outcome.wait().done(), Some(8));
    queue.close();
    assert!(queue.submit(closure(&text)).unwrap_err().is_closed());
    assert_eq!(Arc::strong_count(&text), 1);
}

#[test]
fn a_wrapped_function_pushes_its_calls() {
    ends(|| {
        let (queue, workers) = pool(2);
        let length = queue.wrap(|text: String| text.len());
        let (other, text) = (length.clone(), String::from("four"));
        let outcomes = [length("a".into()).unwrap(), other(text).unwrap()];
        let lengths = outcomes.map(|outcome| outcome.wait().done());
        assert_eq!(lengths, [Some(1), Some(4)]);
        queue.close();
        let refused = length(String::from("late")).unwrap_err();
        assert!(refused.is_closed());
        assert_eq!(refused.into_inner(), "late");
        assert_eq!(workers.join().done, 2);
    });
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
        queue.push_with(1, None, job).unwrap();
        let workers = Workers::builder(&queue).threads(1).run_jobs();
        urgent.wait().unwrap();
        normal.wait().unwrap();
        workers.stop();
        assert!(order.try_iter().eq(["urgent", "normal"]));
    });
}
