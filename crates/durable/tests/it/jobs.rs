//! Runs with results.

use super::{directory, open};
use requeue::Backoff;
use requeue_durable::{DurableQueue, Jobs, PushError, Workers};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

#[test]
fn a_job_runs_until_it_has_a_result() {
    let directory = directory();
    let store = open(&directory);
    let numbers = store.builder::<u32>("numbers");
    let numbers = numbers
        .backoff(Backoff::fixed(Duration::ZERO))
        .max_attempts(3)
        .build()
        .unwrap();
    let (fails, (send, failures)) = (AtomicU32::new(0), channel());
    let workers = Workers::builder(&numbers)
        .threads(1)
        .on_error(move |failure| send.send(failure.attempts).unwrap());
    let (workers, jobs) = Jobs::run(workers, move |number, _tx| {
        if *number == 2 && fails.fetch_add(1, Ordering::Relaxed) < 2 {
            return Err("not yet");
        }
        Ok(number * 2)
    });
    let (one, two) = (jobs.submit(1).unwrap(), jobs.submit(2).unwrap());
    assert_eq!((one.wait().unwrap(), two.wait().unwrap()), (2, 4));
    assert_eq!(workers.stop().done, 2);
    assert_eq!(failures.iter().collect::<Vec<_>>(), [1, 2]);
    drop((jobs, numbers, store));
    assert!(open(&directory).queue::<u32>("numbers").unwrap().is_empty());
}

#[test]
fn the_outcome_of_a_dead_letter_is_dropped() {
    let directory = directory();
    let store = open(&directory);
    let numbers: DurableQueue<u32> = store.builder("numbers").max_attempts(1).build().unwrap();
    let (workers, jobs) = Jobs::run(Workers::builder(&numbers).threads(1), |number, _tx| {
        if *number == 7 {
            panic!("bad luck")
        } else {
            Ok::<_, ()>(())
        }
    });
    let outcome = jobs.submit(7).unwrap();
    assert!(outcome.wait().unwrap_err().is_dropped());
    jobs.submit(8).unwrap().wait().unwrap();
    workers.stop();
    assert_eq!(numbers.dead_letters().len(), 1);
}

#[test]
fn the_outcome_of_an_item_that_no_worker_took_is_dropped_and_the_item_stays() {
    let directory = directory();
    let store = open(&directory);
    let numbers: DurableQueue<u32> = store.builder("numbers").paused().build().unwrap();
    let pool = || {
        let builder = Workers::builder(&numbers).threads(2);
        Jobs::run(builder, |number, _tx| Ok::<_, ()>(number + 1))
    };
    let (workers, jobs) = pool();
    let before = jobs.submit(1).unwrap();
    workers.stop();
    assert!(before.wait().unwrap_err().is_dropped());
    let after = jobs.clone().submit(2).unwrap();
    assert!(after.wait().unwrap_err().is_dropped());
    numbers.resume();
    let (workers, jobs) = pool();
    numbers.push(3).unwrap(); // in another way: nobody waits for the result
    assert_eq!(jobs.submit(4).unwrap().wait().unwrap(), 5);
    numbers.close().unwrap();
    assert_eq!(workers.join().done, 4);
    assert_eq!(jobs.submit(5).unwrap_err().into_inner(), Some(5));
}

#[test]
fn tasks_submit_jobs_and_await_their_results() {
    let directory = directory();
    let store = open(&directory);
    let numbers: DurableQueue<u32> = store.builder("numbers").capacity(1).build().unwrap();
    let (_workers, jobs) = Jobs::run(Workers::builder(&numbers).threads(1), |number, _tx| {
        Ok::<_, PushError<u32>>(number + 1)
    });
    futures::executor::block_on(async {
        for number in 0..3 {
            let outcome = jobs.submit_async(number).await.unwrap();
            assert_eq!(outcome.await.unwrap(), number + 1);
        }
    });
}

/// A result whose destructor panics.
struct Panics;

impl Drop for Panics {
    fn drop(&mut self) {
        panic!("a bad destructor");
    }
}

#[test]
fn a_result_that_nobody_waits_for_ends_no_worker() {
    let directory = directory();
    let numbers: DurableQueue<u32> = open(&directory).queue("numbers").unwrap();
    let (workers, jobs) = Jobs::run(Workers::builder(&numbers).threads(1), |number, _tx| {
        Ok::<_, ()>((*number == 1).then(|| Panics))
    });
    numbers.push(1).unwrap();
    assert!(jobs.submit(2).unwrap().wait().unwrap().is_none());
    assert_eq!(workers.stop().done, 2);
}
