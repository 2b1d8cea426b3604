//! Pages of queues that are fair by key.

use crate::{ByKey, DurableQueue, StoreOptions};
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

type Jobs = DurableQueue<u64, ByKey<u64, u64>>;

/// The key of a job is what it has besides thousands.
fn open(path: &Path) -> Jobs {
    let store = StoreOptions::new().memory(0).open(path).unwrap();
    let jobs = store.builder("jobs").fair_by(|job: &u64| job % 1_000);
    jobs.build().unwrap()
}

/// Some jobs of a key.
fn jobs_of(key: u64, nths: std::ops::Range<u64>) -> impl Iterator<Item = u64> {
    nths.map(move |nth| nth * 1_000 + key)
}

/// Pops all items, one by one. Those of a key come in their order.
fn drain(jobs: &Jobs, most_in_memory: usize) -> Vec<u64> {
    let (mut items, mut last) = (Vec::new(), HashMap::new());
    while !jobs.is_empty() {
        let job = jobs.pop().unwrap();
        let before = last.insert(job % 1_000, job);
        assert!(before < Some(job), "{job} after {before:?}");
        items.push(job);
        let hot = jobs.ram.len();
        assert!(hot <= most_in_memory, "{hot} in memory");
    }
    assert!(jobs.pop().unwrap_err().is_empty());
    jobs.stats().check().unwrap();
    items
}

#[test]
fn keys_take_turns_though_one_has_a_backlog() {
    let files = tempfile::tempdir().unwrap();
    let jobs = open(files.path());
    jobs.push_batch(jobs_of(1, 0..500)).unwrap();
    jobs.push_batch(jobs_of(2, 0..20)).unwrap();
    let turns = |jobs: &Jobs, most: u64| {
        let two: Vec<_> = (0..most).map(|_| jobs.pop().unwrap() % 1_000).collect();
        two.iter().filter(|key| **key == 2).count()
    };
    assert!(turns(&jobs, 20) >= 9);
    // A key that has nothing yet waits for a turn of the others.
    jobs.push(3).unwrap();
    assert!((0..3).any(|_| jobs.pop().unwrap() == 3));
    drop(jobs);
    let jobs = open(files.path());
    jobs.push_batch(jobs_of(4, 0..10)).unwrap();
    let served: Vec<_> = (0..30).map(|_| jobs.pop().unwrap() % 1_000).collect();
    for key in [1, 2, 4] {
        assert!(served.iter().filter(|it| **it == key).count() >= 9, "{key}");
    }
    let rest = drain(&jobs, 8 * 3);
    assert!(rest.iter().all(|job| job % 1_000 == 1));
}

#[test]
fn all_keys_are_served_in_rounds() {
    let files = tempfile::tempdir().unwrap();
    let jobs = open(files.path());
    let all = (0..3).flat_map(|nth| (0..1_000).map(move |key| nth * 1_000 + key));
    jobs.push_batch(all.clone()).unwrap();
    assert!(jobs.len() == 3_000 && jobs.ram.len() <= 16);
    drop(jobs);
    let jobs = open(files.path());
    assert_eq!(jobs.len(), 3_000);
    let mut items = drain(&jobs, 1_020);
    items.sort_unstable();
    assert!(items.into_iter().eq(all));
}

#[test]
fn a_batch_of_several_keys_has_rows_by_key() {
    let files = tempfile::tempdir().unwrap();
    let jobs = open(files.path());
    let all = || (0..300).flat_map(|nth| [nth * 1_000 + 1, nth * 1_000 + 2]);
    jobs.push_batch(all()).unwrap();
    assert!(super::rows(&jobs) < 20);
    assert_eq!(jobs.items_of(&2, |_| ()).unwrap(), 300);
    let mut ones = Vec::new();
    jobs.items_of(&1, |job| ones.push(*job)).unwrap();
    assert!(ones.into_iter().eq(jobs_of(1, 0..300)));
    assert_eq!(jobs.retain(|job, _| job % 1_000 == 1).unwrap(), 300);
    assert!(drain(&jobs, 9).into_iter().eq(jobs_of(1, 0..300)));
    assert_eq!(super::rows(&jobs), 0);
}

#[test]
fn what_an_abort_returns_keeps_its_level_in_memory() {
    let files = tempfile::tempdir().unwrap();
    let jobs = open(files.path());
    jobs.push_batch(jobs_of(1, 0..100)).unwrap();
    for _ in 0..100 {
        let tx = jobs.begin_owned();
        assert_eq!(*tx.pop().unwrap(), 1);
    }
    assert!(jobs.ram.len() <= 8);
    jobs.push_batch(jobs_of(1, 100..200)).unwrap();
    // Of a level with items in memory no page is read, however many are pushed.
    for nth in 0..50 {
        jobs.push_batch(jobs_of(2, nth * 10..nth * 10 + 10))
            .unwrap();
        assert_eq!(jobs.pop().unwrap() % 1_000, 1 + nth % 2);
    }
    assert!(jobs.ram.len() <= 16);
}

#[test]
fn a_queue_may_have_pages_or_none() {
    let files = tempfile::tempdir().unwrap();
    let memory = |path: &Path| {
        let store = crate::Store::open(path).unwrap();
        let jobs = store.builder("jobs").fair_by(|job: &u64| job % 1_000);
        jobs.build().unwrap()
    };
    let jobs = memory(files.path());
    jobs.push_batch(jobs_of(1, 0..50)).unwrap();
    drop(jobs);
    let jobs = open(files.path());
    jobs.push_batch(jobs_of(1, 50..100)).unwrap();
    drop(jobs);
    let jobs = memory(files.path());
    jobs.push_batch(jobs_of(1, 100..150)).unwrap();
    assert!((0..20).map(|_| jobs.pop().unwrap()).eq(jobs_of(1, 0..20)));
    drop(jobs);
    let jobs = memory(files.path());
    assert!(drain(&jobs, 150).into_iter().eq(jobs_of(1, 20..150)));
}

#[test]
fn what_a_key_without_a_backlog_gets_stays_in_memory() {
    let files = tempfile::tempdir().unwrap();
    let store = StoreOptions::new().memory(100_000).open(files.path());
    let jobs = store
        .unwrap()
        .builder("jobs")
        .fair_by(|job: &u64| job % 1_000);
    let jobs = jobs.build().unwrap();
    jobs.push_batch(jobs_of(1, 0..1_000)).unwrap();
    assert!(jobs.ram.len() < 500);
    assert_eq!(jobs.pop_batch(200).unwrap().len(), 200); // makes room
    let pages = jobs.pages.as_ref().unwrap();
    for nth in 0..100 {
        let (read, hot) = (pages.pages_read(), jobs.ram.len());
        jobs.push(nth * 1_000 + 2).unwrap();
        assert_eq!((pages.pages_read(), jobs.ram.len()), (read, hot + 1));
        let two = [jobs.pop().unwrap(), jobs.pop().unwrap()];
        assert!(two.contains(&(nth * 1_000 + 2)), "{two:?}");
    }
    // A commit that began before one of these, and ends while it is held.
    let tx = jobs.begin_owned();
    tx.push_batch([100_002, 1_500_001]).unwrap();
    jobs.push(101_002).unwrap();
    let held = jobs.begin_owned();
    let mut one = held.pop_batch(2).unwrap().map(|job| *job);
    assert!(one.any(|job| job == 101_002));
    tx.commit().unwrap();
    jobs.push(102_002).unwrap();
    jobs.push(1_501_001).unwrap();
    let rest = drain_in_any_order(&jobs);
    assert!(rest.iter().filter(|job| *job % 1_000 == 1).is_sorted());
    let two: Vec<_> = rest.iter().filter(|job| *job % 1_000 == 2).collect();
    assert_eq!(two, [&100_002, &102_002]);
    drop(held);
    assert_eq!(rest.len() + drain_in_any_order(&jobs).len(), 700 + 5);
    assert_eq!(super::rows(&jobs), 0);
}

fn drain_in_any_order(jobs: &Jobs) -> Vec<u64> {
    let mut all = Vec::new();
    while let Ok(job) = jobs.pop() {
        all.push(job);
    }
    jobs.stats().check().unwrap();
    all
}

/// What panics: nothing, the hash of a key, or the key function.
static PANICS: AtomicUsize = AtomicUsize::new(0);

#[derive(Clone, PartialEq, Eq)]
struct Key(u64);

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        assert_ne!(PANICS.load(Ordering::Relaxed), 1, "as it should");
        self.0.hash(state);
    }
}

#[test]
fn panics_of_keys_lose_nothing() {
    let files = tempfile::tempdir().unwrap();
    let open = || {
        let store = StoreOptions::new().memory(0).open(files.path()).unwrap();
        let jobs = store.builder("jobs").fair_by(move |job: &u64| {
            assert_ne!(PANICS.load(Ordering::Relaxed), 2, "as it should");
            Key(job % 10)
        });
        jobs.build().unwrap()
    };
    let jobs = open();
    jobs.push_batch(0..100).unwrap();
    let first = jobs.pop_batch(10).unwrap().len();
    let hot = jobs.ram.len();
    PANICS.store(1, Ordering::Relaxed);
    let in_memory = std::iter::from_fn(|| jobs.pop().ok()).count();
    assert!(
        in_memory >= hot
            && jobs
                .pop()
                .unwrap_err()
                .to_string()
                .contains("of a key panicked")
    );
    PANICS.store(0, Ordering::Relaxed);
    drop(jobs);
    let jobs = open();
    assert_eq!(jobs.len(), 100 - first - in_memory);
    PANICS.store(2, Ordering::Relaxed);
    let before = jobs.len();
    let in_memory = std::iter::from_fn(|| jobs.pop().ok()).count();
    assert_eq!(
        (in_memory + jobs.dead_letters().len(), jobs.len()),
        (before, 0)
    );
    PANICS.store(0, Ordering::Relaxed);
}
