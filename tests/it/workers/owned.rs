//! Runs that own their item, and hooks of successful ones.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::failing::{clocked, SECOND};
use crate::common::{assert_at_rest, ends, filled};
use requeue::{Failure, Job, PushError, Queue, Success, Workers};

/// A value that is not `Clone`.
#[derive(Debug, PartialEq)]
struct Only(u32);

#[test]
fn runs_own_their_items() {
    ends(|| {
        let queue: Queue<Only> = (0..100).map(Only).collect();
        queue.close();
        let (send, done) = channel();
        let workers = Workers::builder(&queue).run_owned(move |item, _tx| send.send(item));
        assert_eq!(workers.join().done, 100);
        let mut items: Vec<Only> = done.iter().collect();
        items.sort_by_key(|item| item.0);
        assert!(items.into_iter().eq((0..100).map(Only)));
        assert_eq!(queue.stats().committed, 100);
        assert_at_rest(&queue, 0, 0);
    });
}

#[test]
fn a_run_that_fails_loses_its_item_alone() {
    ends(|| {
        let queue = filled([1, 2, 3]);
        queue.close();
        let (send, failures) = channel::<Failure>();
        let workers = Workers::builder(&queue)
            .threads(1)
            .on_error(move |failure| send.send(failure.clone()).unwrap())
            .run_owned(|item, tx| {
                tx.push(item * 10).unwrap();
                match item {
                    1 => Err("no"),
                    2 => panic!("never"),
                    10.. => panic!("pushed by {item}"),
                    _ => {
                        tx.pop().unwrap_err(); // and does not wait for itself
                        Ok(())
                    }
                }
            });
        let report = workers.join();
        assert_eq!((report.done, report.failed, report.panicked), (1, 1, 2));
        let failures: Vec<Failure> = failures.iter().collect();
        let told = |failure: &Failure| (failure.error.to_string(), failure.items);
        let texts = ["\"no\"", "never", "pushed by 30"].map(|text| (text.to_string(), 0));
        assert!(failures.iter().map(told).eq(texts));
        assert_at_rest(&queue, 0, 0);
    });
}

#[test]
fn follow_ups_of_an_owned_item_are_accepted_after_the_close() {
    ends(|| {
        let queue = filled([99]);
        queue.close();
        let workers = Workers::builder(&queue).threads(2).run_owned(|number, tx| {
            if number > 0 {
                tx.push(number - 1)?;
            }
            Ok::<_, PushError<u32>>(())
        });
        let report = workers.finish(Duration::MAX);
        assert_eq!((report.done, report.left), (100, 0));
        assert!(queue.push(1).unwrap_err().is_closed());
        assert!(queue.handle().begin().push(1).unwrap_err().is_closed());
    });
}

/// What a later run, or a closed queue, must not see before the end of the present one.
#[test]
fn an_owned_item_is_held_until_its_run_has_ended() {
    ends(|| {
        let queue = Queue::builder().fair_by(|_: &u32| ()).serial().build();
        queue.push_batch([1, 2]).unwrap();
        let (announce, begun) = channel();
        let (end, told) = channel();
        let told = Mutex::new(told);
        let workers = Workers::builder(&queue)
            .threads(2)
            .run_owned(move |item, _tx| {
                announce.send(item).unwrap();
                told.lock().unwrap().recv()
            });
        assert_eq!(begun.recv(), Ok(1));
        queue.close();
        assert_eq!((queue.stats().held, queue.len()), (1, 0));
        assert!(queue.pop().unwrap_err().is_empty());
        end.send(()).unwrap();
        assert_eq!(begun.recv(), Ok(2));
        assert_eq!(queue.stats().held, 1);
        end.send(()).unwrap();
        assert_eq!(workers.join().done, 2);
        assert_at_rest(&queue, 0, 0);
    });
}

#[test]
fn an_owned_item_comes_back_after_no_lease() {
    ends(|| {
        let (clock, builder) = clocked();
        let queue = builder.leased(SECOND).build();
        queue.push(1).unwrap();
        let clone = queue.clone();
        let workers = Workers::builder(&queue)
            .threads(1)
            .run_owned(move |item, _| {
                clock.advance(10 * SECOND);
                clone.recover("worker-0", clone.now());
                assert!(clone.is_empty());
                clone.close();
                if item == 1 {
                    Err("no")
                } else {
                    Ok(())
                }
            });
        let report = workers.join();
        assert_eq!((report.done, report.failed, report.left), (0, 1, 0));
    });
}

/// The items, the attempts and the times of successful runs.
type Told = Arc<Mutex<Vec<(usize, u32, Duration)>>>;

/// A hook that notes the successes of a pool.
fn hook() -> (impl Fn(&Success) + Send + Sync + 'static, Told) {
    let told = Arc::default();
    let hook = {
        let told = Arc::clone(&told);
        move |success: &Success| {
            assert_eq!(&*success.worker, "worker-0");
            let told: &Mutex<Vec<_>> = &told;
            let mut told = told.lock().unwrap();
            told.push((success.items, success.attempts, success.took));
            drop(told);
            panic!("the hook panics too");
        }
    };
    (hook, told)
}

#[test]
fn a_hook_is_told_of_each_success() {
    ends(|| {
        let (clock, builder) = clocked();
        let queue = builder.build();
        queue.push_batch([1, 2, 3]).unwrap();
        queue.close();
        let (hook, told) = hook();
        let at_once = requeue::Backoff::fixed(Duration::ZERO);
        let builder = Workers::builder(&queue).threads(1).backoff(at_once);
        let workers = builder.on_success(hook).run(move |item, tx| {
            clock.advance(*item * SECOND);
            match (*item, item.attempts()) {
                (1, 1) => Err("later"),
                (2, _) => tx.fail(item, "never").map_err(|_| "no room"),
                _ => Ok(()),
            }
        });
        let report = workers.join();
        assert_eq!((report.done, report.given_up, report.failed), (2, 1, 1));
        let told = told.lock().unwrap().clone();
        assert_eq!(told, [(1, 2, SECOND), (1, 1, 3 * SECOND)]);
    });
}

#[test]
fn batches_and_owned_items_succeed_too() {
    ends(|| {
        let queue = filled([1, 2, 3]);
        queue.close();
        let (batches, told) = hook();
        let builder = Workers::builder(&queue).threads(1);
        let workers = builder
            .on_success(batches)
            .run_batches(3, |_, _| Ok::<(), ()>(()));
        assert_eq!(workers.join().done, 1);
        assert_eq!(told.lock().unwrap()[0].0, 3);

        let (queue, others) = (filled([1]), filled([]));
        queue.close();
        let (owned, told) = hook();
        let builder = Workers::builder(&queue).threads(1).on_success(owned);
        assert_eq!(builder.run_owned(|_, _| Ok::<(), ()>(())).join().done, 1);
        assert_eq!(told.lock().unwrap()[0].0, 1);

        let queue = filled([1]);
        queue.close();
        let (with, told) = hook();
        let builder = Workers::builder(&queue).threads(1).on_success(with);
        let workers = builder.run_with(&others, |item, _, out| out.push(*item));
        assert_eq!(workers.join().done, 1);
        assert_eq!(told.lock().unwrap()[0].0, 1);
    });
}

#[test]
fn a_job_that_panics_is_no_success() {
    ends(|| {
        let queue: Queue<Job> = Queue::unbounded();
        let (hook, told) = hook();
        let workers = Workers::builder(&queue)
            .threads(1)
            .on_success(hook)
            .run_jobs();
        queue.submit(|| panic!("no")).unwrap().wait().unwrap_err();
        queue.submit(|| ()).unwrap().wait().unwrap();
        queue.close();
        assert_eq!(workers.join().done, 1);
        assert_eq!(told.lock().unwrap().len(), 1);
    });
}

#[cfg(feature = "tokio")]
mod tasks {
    use super::{hook, Only};
    use crate::common::{assert_at_rest, filled};
    use crate::workers::tasks::on_tokio;
    use requeue::{PushError, Queue, Workers};
    use std::future::pending;
    use std::time::Duration;
    use tokio::sync::mpsc::unbounded_channel;

    #[test]
    fn runs_of_tasks_own_their_items() {
        on_tokio(|| async {
            let queue: Queue<Only> = (0..10).map(Only).collect();
            queue.close();
            let (hook, told) = hook();
            let builder = Workers::builder(&queue).tasks(1).on_success(hook);
            let tasks = builder.run_owned_async(|Only(number), tx| async move {
                if number == 9 {
                    tx.push(Only(100)).map_err(|_| "full")?;
                }
                match number {
                    0 => Err("no"),
                    1 => panic!("never"),
                    _ => Ok(()),
                }
            });
            let report = tasks.join().await;
            assert_eq!((report.done, report.failed, report.panicked), (9, 1, 1));
            assert_eq!(told.lock().unwrap().len(), 9);
            assert_at_rest(&queue, 0, 0);
        });
    }

    #[test]
    fn a_task_that_is_aborted_loses_its_item() {
        on_tokio(|| async {
            let queue = filled([1]);
            let (announce, mut begun) = unbounded_channel();
            let tasks = Workers::builder(&queue).tasks(1);
            let tasks = tasks.run_owned_async(move |item, _tx| {
                announce.send(item).unwrap();
                pending::<Result<(), PushError<u32>>>()
            });
            assert_eq!(begun.recv().await, Some(1));
            assert_eq!(tasks.shutdown(Duration::ZERO).await.stuck.len(), 1);
            assert_at_rest(&queue, 0, 0);
        });
    }
}
