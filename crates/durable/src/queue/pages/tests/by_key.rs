//! Pages of queues that are fair by key.

use super::drain;
use crate::format::level;
use crate::{ByKey, DurableQueue, StoreOptions};
use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::task::{Context, Waker};
use std::thread;

type Jobs = DurableQueue<u64, ByKey<u64, u64>>;

/// The key of a job is what it has besides thousands.
fn build(path: &Path, memory: usize, is_serial: bool) -> Jobs {
    let store = StoreOptions::new().memory(memory).open(path).unwrap();
    let jobs = store.builder("jobs").fair_by(|job: &u64| job % 1_000);
    let jobs = if is_serial { jobs.serial() } else { jobs };
    jobs.build().unwrap()
}

fn open(path: &Path) -> Jobs {
    build(path, 0, false)
}

/// How many items have entries in memory and are not held.
fn hot(jobs: &Jobs) -> usize {
    jobs.keys().iter().map(|(_, items)| items).sum()
}

/// Some jobs of a key.
fn jobs_of(key: u64, nths: std::ops::Range<u64>) -> impl Iterator<Item = u64> {
    nths.map(move |nth| nth * 1_000 + key)
}

/// Counts how often it is called.
fn waker() -> (Arc<AtomicUsize>, Waker) {
    let woken = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&woken);
    let calls = super::Calls(move || {
        count.fetch_add(1, Ordering::Relaxed);
    });
    (woken, Waker::from(Arc::new(calls)))
}

/// Whether those of a key are in their order.
fn are_in_order(jobs: &[u64]) -> bool {
    let mut last = HashMap::new();
    let in_order = |job: &u64| last.insert(job % 1_000, *job) < Some(*job);
    jobs.iter().all(in_order)
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
    // As many as three pages: each key has its share.
    jobs.push_batch(jobs_of(2, 20..100)).unwrap();
    jobs.push_batch(jobs_of(4, 10..100)).unwrap();
    let many = jobs.pop_batch(60).unwrap();
    for key in [1, 2, 4] {
        assert!(
            many.iter().filter(|job| *job % 1_000 == key).count() >= 15,
            "{key}"
        );
    }
    assert!(are_in_order(&drain(&jobs, 8 * 8)));
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
    assert!(are_in_order(&items));
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
    let rest = drain(&jobs, usize::MAX);
    assert!(rest.iter().filter(|job| *job % 1_000 == 1).is_sorted());
    let two: Vec<_> = rest.iter().filter(|job| *job % 1_000 == 2).collect();
    assert_eq!(two, [&100_002, &102_002]);
    drop(held);
    assert_eq!(rest.len() + drain(&jobs, usize::MAX).len(), 700 + 5);
    assert_eq!(super::rows(&jobs), 0);
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

#[test]
fn the_backlog_of_a_serial_queue_is_served_key_by_key() {
    let files = tempfile::tempdir().unwrap();
    let open = || build(files.path(), 0, true);
    let jobs = open();
    for key in 1..=3 {
        jobs.push_batch(jobs_of(key, 0..30)).unwrap();
    }
    drop(jobs);
    let jobs = open();
    for nth in 0..7 {
        let (one, other) = (jobs.begin_owned(), jobs.begin_owned());
        let three = [one.pop(), one.pop(), other.pop()].map(|job| *job.unwrap());
        let mut three = three.map(|job| (job % 1_000, job / 1_000));
        three.sort_unstable();
        assert_eq!(three, [(1, nth), (2, nth), (3, nth)]);
        assert!(other.pop().unwrap_err().is_empty());
        one.commit().unwrap();
        other.commit().unwrap();
        assert!(hot(&jobs) <= 2 * 3 * 8, "{} in memory", hot(&jobs));
    }
    // The last items of the pages are held: who waits gets the first one of the next pages.
    let held = jobs.begin_owned();
    let keys = held.pop_batch(3).unwrap().map(|job| *job % 1_000);
    assert_eq!(keys.count(), 3);
    let (woken, waker) = waker();
    let (mut pop, mut context) = (pin!(jobs.pop_async()), Context::from_waker(&waker));
    assert!(pop.as_mut().poll(&mut context).is_pending());
    held.commit().unwrap();
    assert_eq!(woken.load(Ordering::Relaxed), 1);
    futures::executor::block_on(pop).unwrap();
    assert_eq!(drain(&jobs, 3 * 8).len(), 90 - 21 - 4);
    assert_eq!(super::rows(&jobs), 0);
}

#[test]
fn threads_serve_the_keys_of_a_serial_queue_one_by_one() {
    let files = tempfile::tempdir().unwrap();
    let jobs = build(files.path(), 0, true);
    let next: Vec<_> = (0..5).map(|_| AtomicUsize::new(0)).collect();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut handle = jobs.handle();
                loop {
                    let tx = handle.begin();
                    let Ok(job) = tx.pop_blocking().map(|job| *job) else {
                        return;
                    };
                    let (key, nth) = (job % 1_000, job / 1_000);
                    let before = next[usize::try_from(key).unwrap()].fetch_add(1, Ordering::SeqCst);
                    assert_eq!(before as u64, nth, "of key {key}");
                    tx.commit().unwrap();
                }
            });
        }
        for first in (0..60).step_by(20) {
            for key in 0..5 {
                jobs.push_batch(jobs_of(key, first..first + 20)).unwrap();
            }
        }
        jobs.close().unwrap();
    });
    assert!(next.iter().all(|next| next.load(Ordering::SeqCst) == 60));
}

#[test]
fn a_serial_queue_finds_a_key_behind_those_that_are_held() {
    let files = tempfile::tempdir().unwrap();
    let jobs = build(files.path(), 0, true);
    let all = (0..20).flat_map(|nth| (1..=500).map(move |key| nth * 1_000 + key));
    jobs.push_batch(all).unwrap();
    let held = jobs.begin_owned();
    while held.pop_batch(1_000).unwrap().len() > 0 {}
    jobs.push(999).unwrap();
    assert_eq!(jobs.pop().unwrap(), 999);
}

#[test]
fn a_transaction_does_not_overtake_the_backlog_of_a_key() {
    let files = tempfile::tempdir().unwrap();
    let jobs = build(files.path(), 100_000, false);
    jobs.push_batch(jobs_of(1, 0..1_000)).unwrap();
    jobs.pop_batch(200).unwrap();
    let tx = jobs.begin_owned();
    tx.push(2).unwrap();
    tx.push(1_000_001).unwrap();
    tx.commit().unwrap();
    let all = drain(&jobs, usize::MAX);
    let ones = all.iter().filter(|job| *job % 1_000 == 1);
    assert!(ones.is_sorted() && all.contains(&2));
}

#[test]
fn no_page_is_read_for_a_key_that_is_held() {
    let files = tempfile::tempdir().unwrap();
    let jobs = build(files.path(), 20_000, true);
    jobs.push(1).unwrap();
    let held = jobs.begin_owned();
    assert_eq!(*held.pop().unwrap(), 1);
    for first in (1..4_000).step_by(100) {
        jobs.push_batch(jobs_of(1, first..first + 100)).unwrap();
    }
    for _ in 0..50 {
        assert!(jobs.pop().is_err());
    }
    assert!(hot(&jobs) < 400, "{} in memory", hot(&jobs));
}

#[test]
fn keys_may_be_others_than_in_the_process_before() {
    let files = tempfile::tempdir().unwrap();
    let jobs = open(files.path());
    for key in 0..10 {
        jobs.push_batch(jobs_of(key, 0..500)).unwrap();
    }
    drop(jobs);
    let store = StoreOptions::new().memory(0).open(files.path()).unwrap();
    let jobs = store.builder("jobs").fair_by(|_: &u64| 0_u64);
    let jobs = jobs.build().unwrap();
    for _ in 0..100 {
        jobs.pop().unwrap();
        assert!(jobs.ram.len() <= 10 * 8);
    }
}

#[test]
fn without_a_backlog_nothing_is_noted() {
    let files = tempfile::tempdir().unwrap();
    let jobs = build(files.path(), 100_000, false);
    jobs.push_batch(jobs_of(1, 0..1_000)).unwrap();
    assert_eq!(drain(&jobs, usize::MAX).len(), 1_000);
    assert!(!jobs.pages.as_ref().unwrap().is_cold());
    for _ in 0..100 {
        jobs.push(7).unwrap();
        jobs.pop().unwrap();
    }
    let mut emptied = Vec::new();
    let level_of = |entry: &crate::entry::Entry<u64, u64>| level::of(entry.id);
    jobs.ram.retain_empty(level_of, &mut emptied);
    assert!(emptied.len() <= 2);
}

#[test]
fn the_next_page_of_a_key_comes_when_its_last_item_fails() {
    let files = tempfile::tempdir().unwrap();
    let jobs = build(files.path(), 0, true);
    jobs.push_batch(jobs_of(1, 0..30)).unwrap();
    for _ in 0..7 {
        jobs.pop().unwrap();
    }
    let mut held = jobs.begin_owned();
    assert_eq!(held.pop_batch(1).unwrap().len(), 1);
    let (woken, waker) = waker();
    let (mut pop, mut context) = (pin!(jobs.pop_async()), Context::from_waker(&waker));
    assert!(pop.as_mut().poll(&mut context).is_pending());
    held.fail_all("no good").unwrap();
    assert_eq!(woken.load(Ordering::Relaxed), 1);
    drop(held);
    assert_eq!(futures::executor::block_on(pop).unwrap(), 8_001);
}

#[test]
fn who_waits_for_a_key_that_is_held_gets_what_is_committed_later() {
    let files = tempfile::tempdir().unwrap();
    let jobs = build(files.path(), 0, true);
    jobs.push_batch(jobs_of(1, 0..20)).unwrap();
    let open = jobs.begin_owned();
    open.push(9).unwrap();
    assert!((0..16).all(|nth| jobs.pop().unwrap() == nth * 1_000 + 1));
    let held = jobs.begin_owned();
    assert_eq!(*held.pop().unwrap(), 16_001);
    let (woken, waker) = waker();
    let (mut pop, mut context) = (pin!(jobs.pop_async()), Context::from_waker(&waker));
    assert!(pop.as_mut().poll(&mut context).is_pending());
    open.commit().unwrap();
    assert_eq!(woken.load(Ordering::Relaxed), 1);
    assert_eq!(futures::executor::block_on(pop).unwrap(), 9);
}

#[test]
fn a_key_whose_items_leave_memory_again_gets_a_page_at_once() {
    let files = tempfile::tempdir().unwrap();
    let jobs = open(files.path());
    let all = (0..40).flat_map(|nth| (1..=100).map(move |key| nth * 1_000 + key));
    jobs.push_batch(all).unwrap();
    // The levels of pages that were read are looked at again behind all others.
    let mut items = Vec::new();
    for _ in 0..10 {
        items.append(&mut jobs.pop_batch(100).unwrap());
    }
    items.append(&mut drain(&jobs, usize::MAX));
    assert!(are_in_order(&items));
    for round in items.chunks(100).skip(1).take(30) {
        let keys: HashSet<_> = round.iter().map(|job| job % 1_000).collect();
        assert!(keys.len() > 90, "{} keys in a round", keys.len());
    }
}

#[test]
fn keys_may_share_a_level() {
    let mut levels = HashMap::new();
    let shared = (0..).find_map(|key: u64| Some((levels.insert(level::of_key(&key), key)?, key)));
    let (one, other) = shared.unwrap();
    let files = tempfile::tempdir().unwrap();
    let store = StoreOptions::new().memory(0).open(files.path()).unwrap();
    let jobs = store.builder("jobs").fair_by(|job: &u64| job / 100);
    let jobs = jobs.build().unwrap();
    let all = || (0..50).flat_map(|nth| [one * 100 + nth, other * 100 + nth]);
    jobs.push_batch(all()).unwrap();
    for key in [one, other] {
        let mut items = Vec::new();
        assert_eq!(jobs.items_of(&key, |job| items.push(*job)).unwrap(), 50);
        assert!(items.iter().all(|job| job / 100 == key));
    }
    let mut items = drain(&jobs, 8);
    items.sort_unstable();
    let mut all: Vec<_> = all().collect();
    all.sort_unstable();
    assert_eq!(items, all);
}
