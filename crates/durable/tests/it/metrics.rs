//! What a store tells the crate `metrics`. A group is written by the thread that waits for it, so its recorder sees that.

use crate::recorder::Log;
use crate::{directory, options};
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use requeue::{AfterTtl, ManualClock};
use requeue_durable::{Durability, DurableQueue, Store};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const HOUR: Duration = Duration::from_secs(3600);

/// A store whose last part of the path is `work`.
fn work(directory: &Path) -> Store {
    options().open(directory.join("work")).unwrap()
}

/// The values of a metric of that store.
fn values(log: &Log, name: &str) -> Vec<f64> {
    log.of(&format!("requeue_disk_{name} work"))
}

fn last(log: &Log, name: &str) -> f64 {
    *values(log, name).last().expect(name)
}

fn push_buffered(jobs: &DurableQueue<u32>, item: u32) {
    let at_most = HOUR;
    let tx = jobs.begin_owned();
    tx.push(item).unwrap();
    tx.commit_with(Durability::Buffered { at_most }).unwrap();
}

/// The items of a queue. Those of two handles are in no order.
fn sorted(jobs: &DurableQueue<u32>) -> Vec<u32> {
    let mut items = jobs.pop_batch(9).unwrap();
    items.sort_unstable();
    items
}

#[test]
fn metrics_of_groups() {
    let (directory, log) = (directory(), Log::default());
    metrics::with_local_recorder(&log, || {
        let store = work(directory.path());
        let jobs = store.builder("jobs").max_attempts(3).build().unwrap();
        jobs.push(1).unwrap(); // synced
        push_buffered(&jobs, 2);
        push_buffered(&jobs, 3);
        store.flush().unwrap(); // both, synced
        let tx = jobs.begin_owned();
        tx.pop().unwrap(); // the delivery is written, and not synced
        let (writes, syncs) = (values(&log, "write_seconds"), values(&log, "sync_seconds"));
        assert_eq!((writes.len(), syncs.len()), (1, 2));
        assert!(writes.iter().chain(&syncs).all(|took| *took > 0.0));
    });
    assert_eq!(values(&log, "group_commits"), [1.0, 2.0, 1.0]);
}

#[test]
fn metrics_of_files() {
    let (directory, log) = (directory(), Log::default());
    metrics::with_local_recorder(&log, || {
        let store = work(directory.path());
        let opened = [
            "journal_bytes",
            "journals",
            "unwritten_bytes",
            "sealed_memtables",
            "free_bytes",
            "unsynced_seconds",
            "poisoned",
        ];
        for name in opened {
            assert_eq!(values(&log, name).len(), 1, "{name}");
        }
        let empty = last(&log, "unwritten_bytes");
        let jobs: DurableQueue<Vec<u8>> = store.queue("jobs").unwrap();
        jobs.push(vec![0; 10_000]).unwrap();
        assert!(last(&log, "unwritten_bytes") >= empty + 10_000.0);
    });
    assert!(last(&log, "journal_bytes") >= 10_000.0);
    assert!(last(&log, "journals") >= 1.0);
    assert!(last(&log, "sealed_memtables") >= 0.0);
    assert!(last(&log, "free_bytes") > 0.0);
    assert_eq!(values(&log, "poisoned"), [0.0, 0.0]);
}

#[test]
fn metrics_of_syncs() {
    let (directory, log) = (directory(), Log::default());
    let since = || {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs_f64()
    };
    metrics::with_local_recorder(&log, || {
        let store = work(directory.path());
        let jobs: DurableQueue<u32> = store.queue("jobs").unwrap();
        assert!(values(&log, "synced_timestamp_seconds").is_empty());
        push_buffered(&jobs, 1);
        jobs.stats();
        let first = last(&log, "unsynced_seconds");
        jobs.stats();
        assert!(0.0 < first && first < last(&log, "unsynced_seconds"));
        let before = since();
        store.flush().unwrap();
        assert_eq!(values(&log, "unsynced_seconds").last(), Some(&0.0));
        let synced = last(&log, "synced_timestamp_seconds");
        assert!(before - 0.001 <= synced && synced <= since());
    });
}

/// Panics whatever it is asked for.
struct Broken;

impl Recorder for Broken {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {
        panic!("no counters")
    }
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {
        panic!("no gauges")
    }
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {
        panic!("no histograms")
    }
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

#[test]
fn a_recorder_that_panics_loses_nothing() {
    let directory = directory();
    metrics::with_local_recorder(&Broken, || {
        let store = work(directory.path());
        let jobs: DurableQueue<u32> = store.queue("jobs").unwrap();
        jobs.push_batch([1, 2, 3]).unwrap();
        push_buffered(&jobs, 4);
        store.flush().unwrap();
        jobs.push(5).unwrap();
        jobs.stats().check().unwrap();
        assert!(store.failure().is_none());
    });
    let jobs: DurableQueue<u32> = work(directory.path()).queue("jobs").unwrap();
    assert_eq!(sorted(&jobs), [1, 2, 3, 4, 5]);
}

/// A recorder that commits finds no lock held.
#[test]
fn a_recorder_may_use_the_store() {
    struct Commits(DurableQueue<u32>, std::cell::Cell<bool>);
    impl Recorder for Commits {
        fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
            Counter::noop()
        }
        fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
            Gauge::noop()
        }
        fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
            if !self.1.replace(true) {
                self.0.push(2).unwrap();
            }
            Histogram::noop()
        }
    }
    let directory = directory();
    let jobs: DurableQueue<u32> = work(directory.path()).queue("jobs").unwrap();
    let commits = Commits(jobs.clone(), std::cell::Cell::new(false));
    metrics::with_local_recorder(&commits, || jobs.push(1).unwrap());
    assert_eq!(sorted(&jobs), [1, 2]);
}

/// In memory an item is a dead letter when its time to live is over; here it is one only if the queue keeps it.
#[test]
fn items_that_time_out_count_once() {
    for (after, expected) in [
        (AfterTtl::Drop, [1.0, 0.0]),
        (AfterTtl::DeadLetter, [0.0, 1.0]),
    ] {
        let (directory, log, clock) = (directory(), Log::default(), ManualClock::new());
        metrics::with_local_recorder(&log, || {
            let store = work(directory.path());
            let builder = store.builder("jobs").ttl(HOUR).on_expired(after);
            let jobs = builder.clock(clock.clone()).build().unwrap();
            jobs.push(1).unwrap();
            clock.advance(HOUR);
            assert!(jobs.pop().unwrap_err().is_empty());
            jobs.stats();
        });
        let names = [
            "requeue_timed_out_total jobs",
            "requeue_dead_total jobs timed_out",
        ];
        let counts = names.map(|name| log.of(name).last().copied().unwrap_or_default());
        assert_eq!(counts.to_vec(), expected, "{after:?}");
    }
}
