//! The metrics and events that queues with a name emit to the crates `metrics` and `tracing`.
//!
//! A separate process, with one test at a time: `tracing` checks once for each event whether there is a subscriber,
//! on the first thread that emits it. If that thread has none, subscribers of other threads miss the event.

#![cfg(all(feature = "metrics", feature = "tracing"))]

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use metrics::{CounterFn, GaugeFn, HistogramFn};
use requeue::{AfterTtl, Backoff, Builder, ManualClock, Queue, ReturnTo, Workers};
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tracing::field::{Field, Visit};
use tracing::{span, Event, Subscriber};

/// Serializes the tests.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All recorded values, by the names of the metric and of the queue.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<BTreeMap<String, Vec<f64>>>>);

impl Log {
    fn cell(&self, key: &Key) -> Arc<Cell> {
        let labels: Vec<_> = key.labels().map(metrics::Label::value).collect();
        let name = format!("{} {}", key.name(), labels.join(","));
        Arc::new(Cell {
            log: self.clone(),
            name,
        })
    }

    fn of(&self, name: &str) -> Vec<f64> {
        self.0
            .lock()
            .unwrap()
            .get(name)
            .cloned()
            .unwrap_or_default()
    }
}

struct Cell {
    log: Log,
    name: String,
}

impl Cell {
    fn add(&self, value: f64) {
        let mut log = self.log.0.lock().unwrap();
        log.entry(self.name.clone()).or_default().push(value);
    }
}

#[allow(clippy::cast_precision_loss)] // small numbers
impl CounterFn for Cell {
    fn increment(&self, value: u64) {
        self.add(value as f64);
    }

    fn absolute(&self, value: u64) {
        self.add(value as f64);
    }
}

impl GaugeFn for Cell {
    fn increment(&self, value: f64) {
        self.add(value);
    }

    fn decrement(&self, value: f64) {
        self.add(-value);
    }

    fn set(&self, value: f64) {
        self.add(value);
    }
}

impl HistogramFn for Cell {
    fn record(&self, value: f64) {
        self.add(value);
    }
}

impl Recorder for Log {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.cell(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.cell(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.cell(key))
    }
}

/// A queue with a name, whose items may fail twice, with a backoff of ten seconds.
fn queue(clock: &ManualClock) -> Queue<u32> {
    settings().clock(clock.clone()).build()
}

fn settings() -> Builder<u32> {
    Queue::builder()
        .name("mails")
        .timestamps()
        .max_attempts(2)
        .backoff(Backoff::fixed(Duration::from_secs(10)))
}

/// Fails to deliver an item twice, each three seconds after it became ready, holding it for a second.
fn fail_twice(queue: &Queue<u32>, clock: &ManualClock) {
    let mut worker = queue.named_handle("worker");
    queue.push(1).unwrap();
    for wait in [3, 9] {
        clock.advance(Duration::from_secs(wait));
        let tx = worker.begin();
        assert_eq!(*tx.pop().unwrap(), 1);
        clock.advance(Duration::from_secs(1));
        tx.abort();
        clock.advance(Duration::from_secs(1));
    }
}

#[test]
fn metrics_of_deliveries() {
    let _alone = alone();
    let (log, clock) = (Log::default(), ManualClock::new());
    metrics::with_local_recorder(&log, || {
        let queue = queue(&clock);
        fail_twice(&queue, &clock);
        queue.push(2).unwrap();
        clock.advance(Duration::from_secs(5));
        let mut worker = queue.handle();
        worker.begin().abort(); // it held nothing
        let tx = worker.begin();
        assert_eq!(*tx.pop().unwrap(), 2);
        clock.advance(Duration::from_secs(2));
        tx.commit();
        queue.stats();
    });
    assert_eq!(log.of("requeue_attempts mails"), [1.0, 2.0, 1.0]);
    assert_eq!(log.of("requeue_wait_seconds mails"), [3.0, 5.0]); // not that of a retry
    assert_eq!(log.of("requeue_age_seconds mails"), [3.0, 14.0, 5.0]);
    assert_eq!(log.of("requeue_hold_seconds mails"), [1.0, 1.0, 2.0]);
    assert_eq!(log.of("requeue_pushed_total mails"), [2.0]);
    assert_eq!(log.of("requeue_retries_total mails,aborted"), [1.0]);
    assert_eq!(log.of("requeue_dead_total mails,aborted"), [1.0]);
    assert_eq!(log.of("requeue_aborted_total mails"), [2.0]);
    assert_eq!(log.of("requeue_committed_total mails"), [1.0]);
    assert_eq!(log.of("requeue_ready mails"), [0.0]);
}

/// The sums of the retries and of the dead letters with this reason.
fn failures(log: &Log, reason: &str) -> Vec<f64> {
    let sum = |name| log.of(&format!("{name} mails,{reason}")).iter().sum();
    ["requeue_retries_total", "requeue_dead_total"]
        .map(sum)
        .to_vec()
}

/// Whatever becomes of the item of a failed delivery: it returns to the head or to the tail, or it is delayed.
#[test]
fn each_failed_delivery_counts_by_its_reason() {
    let _alone = alone();
    let log = Log::default();
    metrics::with_local_recorder(&log, || {
        let queue = Queue::builder().name("mails").max_attempts(4).build();
        queue.handle().push_batch([1, 2, 3]).unwrap();
        let mut worker = queue.handle();
        assert_eq!(worker.begin().pop_batch(2).len(), 2); // aborted
        let panics = catch_unwind(AssertUnwindSafe(|| {
            let tx = worker.begin();
            let _item = tx.pop();
            panic!("no paper");
        }));
        assert!(panics.is_err());
        let tx = worker.begin();
        tx.retry(tx.pop().unwrap()).unwrap();
        tx.put_back(tx.pop().unwrap()).unwrap(); // no failure
        tx.fail(tx.pop().unwrap(), "no ink").unwrap();
        tx.commit();
        assert_eq!(queue.dead_letters().drain().count(), 1);
        queue.take().unwrap().release(); // no failure
        queue.take().unwrap().nack();
        queue.take().unwrap().nack_to(ReturnTo::Tail);
        queue.take().unwrap().nack_after(Duration::from_secs(1000));
        queue.stats().check().unwrap();
    });
    assert_eq!(failures(&log, "aborted"), [2.0, 0.0]);
    assert_eq!(failures(&log, "panicked"), [1.0, 0.0]);
    assert_eq!(failures(&log, "failed"), [0.0, 1.0]);
    assert_eq!(failures(&log, "retried"), [4.0, 0.0]);
    let written = log.0.lock().unwrap();
    let with_reason = written.keys().filter(|name| name.contains(','));
    assert_eq!(with_reason.count(), 4, "{written:?}");
}

#[test]
fn an_expired_lease_is_a_retry_or_a_dead_letter() {
    let _alone = alone();
    let (log, clock) = (Log::default(), ManualClock::new());
    metrics::with_local_recorder(&log, || {
        let term = Duration::from_secs(1);
        let queue = settings().leased(term).clock(clock.clone()).build();
        queue.push(1).unwrap();
        for _ in 0..2 {
            let mut worker = queue.handle();
            let tx = worker.begin();
            assert!(tx.pop().is_ok());
            clock.advance(term);
            queue.stats();
            assert!(tx.try_commit().is_err());
        }
    });
    assert_eq!(failures(&log, "expired"), [1.0, 1.0]);
    assert_eq!(log.of("requeue_expired_total mails"), [1.0, 2.0]);
}

#[test]
fn an_item_whose_time_to_live_is_over_dies_by_that() {
    let _alone = alone();
    let (log, clock) = (Log::default(), ManualClock::new());
    metrics::with_local_recorder(&log, || {
        let queue = settings().clock(clock.clone()).ttl(Duration::from_secs(1));
        let queue = queue.on_expired(AfterTtl::DeadLetter).build();
        queue.push(1).unwrap();
        clock.advance(Duration::from_secs(2));
        assert!(queue.pop().is_err());
        queue.stats();
    });
    assert_eq!(failures(&log, "timed_out"), [0.0, 1.0]);
    assert_eq!(log.of("requeue_timed_out_total mails"), [0.0]);
}

#[test]
fn metrics_of_items_that_are_taken() {
    let _alone = alone();
    let log = Log::default();
    metrics::with_local_recorder(&log, || {
        let queue = Queue::builder().name("mails").build();
        queue.push(1).unwrap();
        queue.take().unwrap().nack();
        queue.take().unwrap().ack();
    });
    assert_eq!(log.of("requeue_attempts mails"), [1.0, 2.0]);
}

/// An item that is scheduled is ready when it is due, and an item in time is not late.
#[test]
fn the_wait_of_a_scheduled_item_begins_when_it_is_due() {
    let _alone = alone();
    let (log, clock) = (Log::default(), ManualClock::new());
    metrics::with_local_recorder(&log, || {
        let queue = settings().clock(clock.clone()).by_priority().build();
        let later = Duration::from_secs(100);
        queue.after(later).push(1).unwrap();
        queue.push(2).unwrap();
        clock.advance(Duration::from_secs(4));
        let mut worker = queue.handle();
        let tx = worker.begin();
        assert_eq!(*tx.pop().unwrap(), 2);
        clock.advance(Duration::from_secs(103));
        assert_eq!(*tx.pop().unwrap(), 1);
        tx.commit();
    });
    assert_eq!(log.of("requeue_wait_seconds mails"), [4.0, 7.0]);
    assert_eq!(log.of("requeue_age_seconds mails"), [4.0, 107.0]);
}

#[test]
fn a_queue_without_a_name_emits_nothing() {
    let _alone = alone();
    let (log, clock) = (Log::default(), ManualClock::new());
    metrics::with_local_recorder(&log, || {
        let queue = Queue::builder().timestamps().clock(clock.clone()).build();
        queue.push(1).unwrap();
        let mut worker = queue.handle();
        let tx = worker.begin();
        assert!(tx.pop().is_ok());
        tx.commit();
        queue.stats();
    });
    assert!(log.0.lock().unwrap().is_empty());
}

#[test]
fn a_recorder_that_panics_loses_nothing() {
    struct Broken;
    impl Recorder for Broken {
        fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
            panic!("no counters")
        }
        fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
            panic!("no gauges")
        }
        fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
            panic!("no histograms")
        }
    }
    let _alone = alone();
    let clock = ManualClock::new();
    metrics::with_local_recorder(&Broken, || {
        let queue = queue(&clock);
        fail_twice(&queue, &clock);
        assert_eq!(queue.dead_letters().len(), 1);
        queue.stats().check().unwrap();
    });
}

/// The messages and fields of the events.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, "{field}={value:?} ").unwrap();
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "requeue" && *metadata.level() <= tracing::Level::DEBUG
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        let mut line = Line(String::from("span: "));
        span.record(&mut line);
        self.0.lock().unwrap().push(line.0);
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {
        self.0.lock().unwrap().push("enter".into());
    }

    fn exit(&self, _: &span::Id) {
        self.0.lock().unwrap().push("exit".into());
    }
}

#[test]
fn events_of_failures() {
    let _alone = alone();
    let (lines, clock) = (Lines::default(), ManualClock::new());
    tracing::subscriber::with_default(lines.clone(), || {
        let queue = queue(&clock);
        fail_twice(&queue, &clock);
        queue.close();
    });
    let lines = lines.0.lock().unwrap();
    let expected = ["to be retried", "dead letter", "was closed"];
    assert_eq!(lines.len(), expected.len(), "{lines:?}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(
            line.contains(expected) && line.contains("queue=\"mails\""),
            "{line}"
        );
    }
    assert!(
        lines[0].contains("reason=Aborted delay=10s"),
        "{}",
        lines[0]
    );
    assert!(
        lines[1].contains("attempts=2 reason=Aborted"),
        "{}",
        lines[1]
    );
}

#[test]
fn events_of_leases() {
    let _alone = alone();
    let (lines, clock) = (Lines::default(), ManualClock::new());
    tracing::subscriber::with_default(lines.clone(), || {
        let term = Duration::from_secs(1);
        let queue = Queue::builder()
            .name("mails")
            .leased(term)
            .clock(clock.clone())
            .build();
        queue.push(1).unwrap();
        let mut worker = queue.named_handle("slow");
        let tx = worker.begin();
        assert!(tx.pop().is_ok());
        clock.advance(term);
        assert_eq!(queue.pop(), Ok(1));
        assert!(tx.try_commit().is_err());
    });
    let lines = lines.0.lock().unwrap();
    assert!(lines[0].contains("worker=\"slow\" items=1"), "{lines:?}");
}

#[test]
fn events_name_the_error() {
    let _alone = alone();
    let (lines, clock) = (Lines::default(), ManualClock::new());
    tracing::subscriber::with_default(lines.clone(), || {
        let queue = queue(&clock);
        queue.push(1).unwrap();
        let mut worker = queue.handle();
        let tx = worker.begin();
        tx.fail(tx.pop().unwrap(), "out of paper").unwrap();
        tx.commit();
    });
    let lines = lines.0.lock().unwrap();
    assert!(lines[0].contains("reason=Failed"), "{lines:?}");
    assert!(lines[0].contains("error=\"out of paper\""), "{lines:?}");
}

/// What a run that fails, and its successful repetition, emit after the opening of the first span.
const RUNS: [&str; 10] = [
    "enter",
    "in the run",
    "exit",
    "enter",
    "to be retried",
    "exit",
    "span: ",
    "enter",
    "in the run",
    "exit",
];

/// A queue whose items are retried a millisecond later.
fn retrying() -> Queue<u32> {
    let backoff = Backoff::fixed(Duration::from_millis(1));
    Queue::builder().name("mails").backoff(backoff).build()
}

/// Fails at the first attempts.
fn run(attempt: u32, attempts: u32) -> Result<(), u32> {
    tracing::info!(target: "requeue", "in the run");
    if attempt < attempts {
        return Err(attempt);
    }
    Ok(())
}

fn assert_runs(lines: &Lines, attempts: [u32; 2]) {
    let lines = lines.0.lock().unwrap();
    let begin = lines.iter().position(|line| line.starts_with("span: "));
    let mut lines = lines[begin.expect("a span")..].to_vec();
    while let Some(empty) = lines.windows(2).position(|pair| pair == ["enter", "exit"]) {
        lines.drain(empty..empty + 2);
    }
    assert_eq!(lines.len(), 1 + RUNS.len(), "{lines:?}");
    for (line, expected) in lines[1..].iter().zip(RUNS) {
        assert!(line.contains(expected), "{lines:?}");
    }
    let spans = lines.iter().filter(|line| line.starts_with("span: "));
    for (span, attempt) in spans.zip(attempts) {
        for field in [
            "queue=\"mails\"",
            "worker=\"worker-0\"",
            "id=",
            &format!("attempt={attempt} "),
        ] {
            assert!(span.contains(field), "{lines:?}");
        }
    }
}

#[test]
fn each_run_of_a_thread_has_a_span() {
    let _alone = alone();
    let lines = Lines::default();
    let queue = retrying();
    queue.push(1).unwrap();
    queue.close();
    let subscriber = lines.clone();
    let report = Workers::builder(&queue).threads(1).run(move |item, _| {
        if item.attempts() == 1 {
            // For the rest of this thread.
            std::mem::forget(tracing::subscriber::set_default(subscriber.clone()));
            return Err(0);
        }
        run(item.attempts(), 3)
    });
    assert_eq!(report.join().failed, 2);
    assert_runs(&lines, [2, 3]);
}

#[cfg(feature = "tokio")]
#[test]
fn each_run_of_a_task_has_a_span() {
    let _alone = alone();
    let lines = Lines::default();
    let _subscriber = tracing::subscriber::set_default(lines.clone());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(async {
        let queue = retrying();
        queue.push(1).unwrap();
        queue.close();
        let tasks = Workers::builder(&queue).tasks(1);
        let tasks = tasks.run_async(|item, _| async move { run(item.attempts(), 2) });
        assert_eq!(tasks.join().await.failed, 1);
    });
    assert_runs(&lines, [1, 2]);
}

/// In debug builds: a pool that nobody closes says what it waits for.
#[cfg(debug_assertions)]
#[test]
fn a_join_says_that_nobody_has_closed_the_queue() {
    let _alone = alone();
    let lines = Lines::default();
    let queue = Queue::<u32>::unbounded();
    let workers = Workers::builder(&queue).threads(2).name("mail");
    let workers = workers.run(|_, _| Ok::<(), ()>(()));
    let subscriber = lines.clone();
    let joins = std::thread::spawn(move || {
        tracing::subscriber::with_default(subscriber, || workers.join())
    });
    while lines.0.lock().unwrap().is_empty() {
        std::thread::yield_now();
    }
    queue.close();
    assert_eq!(joins.join().unwrap().done, 0);
    let lines = lines.0.lock().unwrap();
    assert_eq!(lines.len(), 1);
    for part in ["2 idle workers", "`mail-0`", "nobody has called `close`"] {
        assert!(lines[0].contains(part), "{lines:?}");
    }
}
