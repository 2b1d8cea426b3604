//! Jobs that fail, and what the next process knows of it.

use crate::{copy_of, directory, open, options};
use futures::executor::block_on;
use requeue::backend::{AbortCause, Backend, Delivery, Tx};
use requeue::{Backoff, ManualClock, Reason};
use requeue_durable::{Codec, CodecError, DurableQueue, Wait, Workers};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

/// A process after the other, with clocks that stand still.
struct Processes {
    directory: TempDir,
    wall: Arc<Mutex<SystemTime>>,
    clock: ManualClock,
}

impl Processes {
    fn new() -> Self {
        let start = UNIX_EPOCH + Duration::from_secs(1_000_000);
        Self {
            directory: directory(),
            wall: Arc::new(Mutex::new(start)),
            clock: ManualClock::new(),
        }
    }

    /// The queue in the next process.
    fn queue(&self, backoff: Option<Backoff>) -> DurableQueue<u32> {
        let wall = Arc::clone(&self.wall);
        let options = options().wall_clock(move || *wall.lock().unwrap());
        let store = options.open(self.directory.path()).unwrap();
        let builder = store.builder("jobs").clock(self.clock.clone());
        match backoff {
            Some(backoff) => builder.backoff(backoff).build().unwrap(),
            None => builder.build().unwrap(),
        }
    }

    /// While no process runs.
    fn pass(&self, seconds: u64) {
        *self.wall.lock().unwrap() += Duration::from_secs(seconds);
    }

    fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }
}

fn minutes() -> Backoff {
    Backoff::exponential(Duration::from_secs(60), Duration::from_secs(600))
}

#[test]
fn the_backoff_of_a_worker_goes_on_in_the_next_process() {
    let processes = Processes::new();
    let jobs = processes.queue(None);
    jobs.push(7).unwrap();
    let (send, failures) = channel();
    let workers = Workers::builder(&jobs)
        .threads(1)
        .backoff(minutes())
        .on_error(move |failure| send.send(failure.attempts).unwrap())
        .run(|_job, _tx| Err("not now"));
    assert_eq!(failures.recv().unwrap(), 1);
    processes.advance(60);
    assert_eq!(failures.recv().unwrap(), 2);
    workers.stop();
    drop(jobs);
    // It is delayed for 120 seconds.
    processes.pass(40);
    let jobs = processes.queue(None);
    processes.advance(79);
    assert!(jobs.pop().unwrap_err().is_empty());
    processes.advance(1);
    let tx = jobs.begin_owned();
    assert_eq!(tx.pop().unwrap().attempts(), 3);
}

#[test]
fn the_backoff_of_a_queue_goes_on_and_is_over_in_the_next_process() {
    let processes = Processes::new();
    let jobs = processes.queue(Some(minutes()));
    jobs.push_batch([1, 2, 3]).unwrap();
    let tx = jobs.begin_owned();
    tx.retry(tx.pop().unwrap()).unwrap();
    tx.pop().unwrap();
    tx.abort();
    drop(jobs);
    processes.pass(59);
    let jobs = processes.queue(Some(minutes()));
    assert_eq!(jobs.len(), 1);
    drop(jobs);
    processes.pass(1);
    let jobs = processes.queue(Some(minutes()));
    assert_eq!(jobs.pop_batch(9).unwrap(), [1, 2, 3]);
}

/// Numbers, but none that is odd.
struct Even;

impl Codec<u32> for Even {
    fn encode(&self, item: &u32, bytes: &mut Vec<u8>) -> Result<(), CodecError> {
        if *item % 2 == 1 {
            return Err(CodecError::new("it is odd"));
        }
        bytes.extend(item.to_le_bytes());
        Ok(())
    }

    fn decode(&self, bytes: &[u8]) -> Result<u32, CodecError> {
        let bytes = bytes.try_into().map_err(CodecError::new)?;
        Ok(u32::from_le_bytes(bytes))
    }
}

#[test]
fn a_letter_whose_item_cannot_be_encoded_is_as_it_was_pushed() {
    let directory = directory();
    let store = options().open(directory.path()).unwrap();
    let jobs = store.builder::<u32>("jobs").codec(Even).build().unwrap();
    jobs.push_batch([2, 4]).unwrap();
    let tx = jobs.begin_owned();
    for change in [1, 2] {
        let mut job = tx.pop().unwrap();
        *job += change;
        tx.fail(job, "no good").unwrap();
    }
    let letters = jobs.dead_letters().all().unwrap();
    let items: Vec<_> = letters.iter().map(|letter| letter.item).collect();
    assert_eq!(items, [2, 6]);
}

/// Panics while it encodes the number 13, after it has written some bytes.
struct Superstitious;

impl Codec<u32> for Superstitious {
    fn encode(&self, item: &u32, bytes: &mut Vec<u8>) -> Result<(), CodecError> {
        bytes.extend(item.to_le_bytes());
        assert_ne!(*item, 13);
        Ok(())
    }

    fn decode(&self, bytes: &[u8]) -> Result<u32, CodecError> {
        let bytes = bytes.try_into().map_err(CodecError::new)?;
        Ok(u32::from_le_bytes(bytes))
    }
}

#[test]
fn a_codec_that_panics_leaves_nothing_of_its_batch() {
    let directory = directory();
    let open = || {
        let store = options().open(directory.path()).unwrap();
        store.builder("jobs").codec(Superstitious).build().unwrap()
    };
    let jobs = open();
    let tx = jobs.begin_owned();
    tx.push(1).unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(|| tx.push_batch([2, 13, 3])));
    assert!(panicked.is_err());
    assert_eq!(tx.staged(), 1);
    tx.push_batch([4, 5]).unwrap();
    tx.commit().unwrap();
    drop(jobs);
    assert_eq!(open().pop_batch(10).unwrap(), [1, 4, 5]);
}

/// Takes the next items, whose deliveries fail with this error.
fn fail_with(jobs: &DurableQueue<u32>, error: &str) {
    let mut tx = jobs.begin(None);
    let _ = tx.pop_batch(9).unwrap();
    let backoff = Backoff::fixed(Duration::ZERO);
    let cause = AbortCause::new(Reason::Failed, error, backoff);
    block_on(Tx::abort(&mut tx, cause)).unwrap();
}

/// What is known of the next item, and of its last delivery.
fn next(jobs: &DurableQueue<u32>) -> (u32, u32, Option<String>) {
    let job = block_on(Delivery::take(jobs, Wait::Never))
        .unwrap()
        .unwrap();
    let error = job.last_error().as_deref().map(str::to_owned);
    (*job, job.attempts(), error)
}

#[test]
fn the_last_error_is_known_in_the_next_process() {
    for memory in [0, usize::MAX] {
        let directory = directory();
        let build = |directory: &TempDir| {
            let jobs = open(directory).builder::<u32>("jobs");
            jobs.memory(memory).build().unwrap()
        };
        let jobs = build(&directory);
        jobs.push(7).unwrap();
        assert_eq!(next(&jobs), (7, 1, None));
        fail_with(&jobs, "first");
        assert_eq!(next(&jobs), (7, 3, Some("first".into())));
        fail_with(&jobs, "second");
        jobs.push(8).unwrap();
        let after = copy_of(&directory);
        assert_eq!(next(&jobs), (7, 5, Some("second".into())));
        // The deliveries that did not fail with an error do not count in the next process.
        let jobs = build(&after);
        assert_eq!(next(&jobs), (7, 5, Some("second".into())));
        let tx = jobs.begin_owned();
        let item = tx.pop().unwrap();
        assert_eq!(tx.last_error(&item).as_deref(), Some("second"));
        tx.retry_after(item, Duration::ZERO).unwrap();
        tx.commit().unwrap();
        drop(jobs);
        let jobs = build(&after);
        assert_eq!(next(&jobs), (7, 7, Some("second".into())));
        assert_eq!(jobs.pop_batch(9).unwrap(), [7, 8]);
        drop(jobs);
        assert!(build(&after).is_empty());
    }
}

#[test]
fn a_long_error_is_cut() {
    let directory = directory();
    let jobs = open(&directory).queue::<u32>("jobs").unwrap();
    jobs.push(7).unwrap();
    fail_with(&jobs, &format!("{}€€", "x".repeat(998)));
    let cut = Some("x".repeat(998));
    assert_eq!(next(&jobs).2, cut);
    drop(jobs);
    let jobs = open(&directory).queue::<u32>("jobs").unwrap();
    assert_eq!(next(&jobs).2, cut);
}

#[test]
fn a_letter_has_the_error_of_its_last_delivery() {
    let directory = directory();
    let build = || {
        let jobs = open(&directory).builder::<u32>("jobs").max_attempts(2);
        jobs.build().unwrap()
    };
    let jobs = build();
    jobs.push(7).unwrap();
    fail_with(&jobs, "first");
    drop(jobs);
    let jobs = build();
    fail_with(&jobs, "second");
    let letter = jobs.dead_letters().oldest().unwrap().unwrap();
    assert_eq!(
        (letter.attempts, letter.error.as_deref()),
        (2, Some("second"))
    );
    jobs.dead_letters().requeue_all().unwrap();
    assert_eq!(next(&jobs), (7, 1, None));
}
