//! Pools of workers.

use super::{directory, open, options};
use futures::executor::block_on;
use requeue::backend::{Backend, Tx};
use requeue::{Backoff, ManualClock, Reason};
use requeue_durable::{
    Cause, Codec, CodecError, Durability, DurableQueue, Fifo, PushError, WorkerState, Workers,
    WorkersBuilder,
};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{channel, Receiver};
use std::thread;
use std::time::Duration;

#[test]
fn a_failed_run_is_delayed_and_what_it_pushed_is_dropped() {
    let directory = directory();
    let clock = ManualClock::new();
    let store = open(&directory);
    let queue = store
        .builder::<u32>("numbers")
        .clock(clock.clone())
        .build()
        .unwrap();
    let (send, failures) = channel();
    let workers = Workers::builder(&queue)
        .threads(1)
        .on_error(move |failure| send.send(failure.clone()).unwrap())
        .run(|number, tx| {
            tx.push(*number + 1).unwrap();
            match number.attempts() {
                1 => Err("first"),
                2 => panic!("second"),
                _ => Ok(()),
            }
        });
    queue.push(1).unwrap();
    let first = failures.recv().unwrap();
    assert_eq!((first.items, first.attempts, first.panicked), (1, 1, false));
    assert_eq!(queue.next_due(), Some(clock.now_after(10)));
    assert_eq!(queue.len(), 0);
    clock.advance(Duration::from_millis(10));
    let second = failures.recv().unwrap();
    assert_eq!((&*second.error, second.panicked), ("second", true));
    assert_eq!(queue.next_due(), Some(clock.now_after(20)));
    workers.stop();
}

trait After {
    fn now_after(&self, millis: u64) -> std::time::Instant;
}

impl After for ManualClock {
    fn now_after(&self, millis: u64) -> std::time::Instant {
        self.now() + Duration::from_millis(millis)
    }
}

#[test]
fn a_run_with_other_queues_is_one_commit() {
    let directory = directory();
    let store = open(&directory);
    let orders: DurableQueue<u32> = store.builder("orders").max_attempts(2).build().unwrap();
    let invoices: DurableQueue<String> = store.queue("invoices").unwrap();
    let log: DurableQueue<u64> = store.queue("log").unwrap();
    orders.push_batch(0..4).unwrap();
    orders.close().unwrap();
    let workers = Workers::builder(&orders).threads(2).run_with(
        (&invoices, &log),
        |order, _tx, (invoices, log)| {
            log.push(7).unwrap();
            invoices.push(format!("{}", *order)).unwrap();
            if *order == 2 {
                return Err("not this one");
            }
            Ok(())
        },
    );
    let report = workers.join();
    assert_eq!((report.done, report.failed), (3, 2));
    drop((orders, invoices, log, store));
    let store = open(&directory);
    let invoices: DurableQueue<String> = store.queue("invoices").unwrap();
    let mut all = invoices.pop_batch(9).unwrap();
    all.sort_unstable();
    assert_eq!(all, ["0", "1", "3"]);
    assert_eq!(store.queue::<u64>("log").unwrap().len(), 3);
    let orders: DurableQueue<u32> = store.queue("orders").unwrap();
    let letter = orders.dead_letters().oldest().unwrap().unwrap();
    assert_eq!(
        (letter.item, letter.error.as_deref()),
        (2, Some("\"not this one\""))
    );
}

#[test]
fn tasks_fail_panic_and_keep_their_transaction() {
    let directory = directory();
    let queue = open(&directory)
        .builder::<u32>("numbers")
        .max_attempts(1)
        .build()
        .unwrap();
    queue.push_batch(0..4).unwrap();
    queue.close().unwrap();
    let executor = futures::executor::ThreadPool::new().unwrap();
    let (keep, kept) = channel();
    let workers = Workers::builder(&queue).threads(1).run_on(
        move |task| executor.spawn_ok(task),
        move |number, tx| {
            let keep = keep.clone();
            async move {
                match *number {
                    0 => return Err("no good"),
                    1 => panic!("bad luck"),
                    2 => tx.fail(number, "never").unwrap(),
                    _ => keep.send(tx).unwrap(),
                }
                Ok(())
            }
        },
    );
    drop(kept.recv().unwrap());
    let report = workers.join();
    // The kept transaction may come back before the pool looks for it.
    let others = report.given_up + report.done + report.failed;
    assert_eq!((others, report.panicked), (3, 1));
    let letters = queue.dead_letters().all().unwrap();
    let errors: Vec<_> = letters
        .iter()
        .map(|letter| (letter.item, letter.reason, letter.error.as_deref()))
        .collect();
    let expected = [
        (0, Cause::Failed(Reason::Failed), Some("\"no good\"")),
        (1, Cause::Failed(Reason::Panicked), Some("bad luck")),
        (2, Cause::Failed(Reason::Failed), Some("never")),
    ];
    assert_eq!(errors[..3], expected);
}

#[test]
fn scoped_workers_borrow() {
    let directory = directory();
    let store = open(&directory);
    let numbers: DurableQueue<u32> = store.queue("numbers").unwrap();
    numbers.push_batch(1..=4).unwrap();
    numbers.close().unwrap();
    let sum = AtomicU32::new(0);
    let report = thread::scope(|scope| {
        let workers = Workers::builder(&numbers)
            .threads(2)
            .name("sum")
            .run_scoped(scope, |number, tx| {
                assert!(thread::current().name().unwrap().starts_with("sum-"));
                sum.fetch_add(*number, Ordering::Relaxed);
                if *number == 4 {
                    tx.push(10)?;
                }
                Ok::<_, PushError<u32>>(())
            });
        workers.join()
    });
    assert_eq!((report.done, sum.into_inner()), (5, 20));
    drop((numbers, store));
    assert!(open(&directory).queue::<u32>("numbers").unwrap().is_empty());
}

/// A worker that is blocked by its hook is stuck, one that is not polled waits no longer than others.
#[test]
fn a_finish_does_not_wait_for_hooks_and_tasks_that_are_not_polled() {
    let directory = directory();
    let numbers: DurableQueue<u32> = open(&directory).queue("numbers").unwrap();
    let (send, begun) = channel();
    let (release, released) = channel::<()>();
    let released = parking_lot::Mutex::new(released);
    let workers = Workers::builder(&numbers)
        .threads(1)
        .on_error(move |_| {
            send.send(()).unwrap();
            let _ = released.lock().recv();
        })
        .run(|_number, _tx| Err("no good"));
    numbers.push(7).unwrap();
    begun.recv().unwrap();
    let report = workers.finish(Duration::ZERO);
    assert_eq!((report.stuck.len(), report.left), (1, 1));
    assert!(matches!(report.stuck[0].state, WorkerState::Busy { .. }));
    drop(release);

    let (keep, kept) = channel();
    let workers = Workers::builder(&numbers).threads(1);
    let spawn = move |task| keep.send(task).unwrap();
    let workers = workers.run_on(spawn, |_number, _tx| async { Ok::<_, ()>(()) });
    let report = workers.finish(Duration::ZERO);
    assert_eq!((report.stuck.len(), report.left), (1, 1));
    drop(kept);
}

/// Panics once, when it decodes.
struct Panics(AtomicBool);

impl Codec<u8> for Panics {
    fn encode(&self, item: &u8, bytes: &mut Vec<u8>) -> Result<(), CodecError> {
        bytes.push(*item);
        Ok(())
    }

    fn decode(&self, bytes: &[u8]) -> Result<u8, CodecError> {
        assert!(self.0.swap(true, Ordering::Relaxed), "a bad codec");
        Ok(bytes[0])
    }
}

#[test]
fn a_codec_that_panics_ends_no_thread() {
    a_codec_panics(|workers| workers.run(|byte, _tx| check(*byte)));
}

#[test]
fn a_codec_that_panics_ends_no_task() {
    let executor = futures::executor::ThreadPool::new().unwrap();
    let spawn = move |task| executor.spawn_ok(task);
    a_codec_panics(|workers| workers.run_on(spawn, |byte, _tx| async move { check(*byte) }));
}

fn check(byte: u8) -> Result<(), u8> {
    (byte == 7).then_some(()).ok_or(byte)
}

fn a_codec_panics(run: impl FnOnce(WorkersBuilder<u8, Fifo>) -> Workers) {
    let directory = directory();
    let store = open(&directory);
    let bytes = store
        .builder("bytes")
        .memory(0)
        .weigh(|_| 1) // so it has no pages
        .codec(Panics(AtomicBool::new(false)));
    let bytes: DurableQueue<u8> = bytes
        .backoff(Backoff::fixed(Duration::ZERO))
        .build()
        .unwrap();
    bytes.push(7).unwrap();
    bytes.close().unwrap();
    let workers = run(Workers::builder(&bytes).threads(1));
    let report = workers.join();
    assert_eq!((report.done, report.panicked), (1, 1));
}

#[test]
fn a_letter_of_a_run_whose_commit_failed_has_the_error_of_the_commit() {
    let directory = directory();
    open(&directory)
        .queue::<u32>("jobs")
        .unwrap()
        .push(1)
        .unwrap();
    let full = options().reserve(u64::MAX).open(directory.path()).unwrap();
    let jobs = full.builder::<u32>("jobs").max_attempts(1).build().unwrap();
    let (send, failed) = channel();
    let workers = Workers::builder(&jobs)
        .threads(1)
        .on_error(move |failure| send.send(failure.error.clone()).unwrap())
        .run(|job, tx| tx.push(*job + 1));
    let error = failed.recv().unwrap();
    workers.stop();
    let letter = jobs.dead_letters().oldest().unwrap().unwrap();
    assert_eq!(letter.error.unwrap(), format!("the commit failed: {error}"));
    assert!(error.contains("full"), "{error}");
}

/// As in memory: whatever ends a transaction without a commit counts.
#[test]
fn an_item_whose_transaction_was_dropped_counts_as_delivered() {
    let directory = directory();
    let build = || {
        open(&directory)
            .builder::<u32>("jobs")
            .max_attempts(3)
            .build()
    };
    let jobs = build().unwrap();
    jobs.push(7).unwrap();
    jobs.begin_owned().pop().unwrap();
    drop(jobs);
    let jobs = build().unwrap();
    assert_eq!(jobs.begin_owned().pop().unwrap().attempts(), 2);
    assert_eq!(jobs.begin_owned().pop().unwrap().attempts(), 3);
    assert_eq!(jobs.dead_letters().len(), 1);
}

/// An item whose destructor waits until it may go on.
struct Waits(u8, Option<Receiver<()>>);

impl Drop for Waits {
    fn drop(&mut self) {
        if let Some(go) = &self.1 {
            let _ = go.recv();
        }
    }
}

struct OneByte;

impl Codec<Waits> for OneByte {
    fn encode(&self, item: &Waits, to: &mut Vec<u8>) -> Result<(), CodecError> {
        to.push(item.0);
        Ok(())
    }

    fn decode(&self, bytes: &[u8]) -> Result<Waits, CodecError> {
        Ok(Waits(bytes[0], None))
    }
}

/// The first commit waits in memory, after the disk has it.
#[test]
fn a_task_of_a_synced_store_goes_on_while_commits_are_under_way() {
    let directory = directory();
    let store = open(&directory);
    let jobs = store.builder::<Waits>("jobs").codec(OneByte);
    let jobs = jobs.memory(1 << 20).build().unwrap(); // no item is read from the disk
    let (go, wait) = channel();
    jobs.push(Waits(0, Some(wait))).unwrap();
    jobs.push_batch((1..300).map(|_| Waits(1, None))).unwrap();
    let (send, begun) = channel();
    let spawn = |worker| drop(thread::spawn(|| block_on(worker)));
    let builder = Workers::builder(&jobs).threads(1);
    let workers = builder.run_on(spawn, move |job, _| {
        send.send(job.0).unwrap();
        async { Ok::<(), ()>(()) }
    });
    assert_eq!(begun.iter().take(257).max(), Some(1));
    assert_eq!(workers.status()[0].done, 0);
    go.send(()).unwrap();
    jobs.close().unwrap();
    assert_eq!(workers.join().done, 300);
}

/// What several transactions push at the same time comes into memory in any order.
#[test]
fn a_task_waits_for_commits_of_runs_that_push() {
    let directory = directory();
    let jobs: DurableQueue<u32> = open(&directory).queue("jobs").unwrap();
    jobs.push(1).unwrap();
    let mut tx = jobs.begin_owned();
    tx.pop().unwrap();
    assert!(Tx::can_commit_in_flight(&mut tx));
    tx.push(2).unwrap();
    assert!(!Tx::can_commit_in_flight(&mut tx));
    tx.commit().unwrap();
    let buffered = Durability::Buffered {
        at_most: Duration::from_millis(1),
    };
    let second = super::directory();
    let store = options().durability(buffered).open(second.path()).unwrap();
    let waits = [jobs, store.queue("jobs").unwrap()].map(|jobs| jobs.commits_wait());
    assert_eq!(waits, [true, false]);
}
