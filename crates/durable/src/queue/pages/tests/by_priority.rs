//! Pages of queues by priority.

use super::drain;
use crate::{ByPriority, DurableQueue, StoreOptions};
use std::path::Path;
use std::time::Duration;

type Jobs = DurableQueue<u64, ByPriority>;

fn open(path: &Path) -> Jobs {
    let store = StoreOptions::new().memory(0).open(path).unwrap();
    store.builder("jobs").by_priority().build().unwrap()
}

fn push(jobs: &Jobs, priority: u16, items: impl Iterator<Item = u64>) {
    jobs.priority(priority).push_batch(items).unwrap();
}

/// The most items in memory: a page of each of two priorities.
const MOST: usize = 17;

#[test]
fn items_are_delivered_by_priority() {
    let files = tempfile::tempdir().unwrap();
    let jobs = open(files.path());
    push(&jobs, 5, 100..150);
    push(&jobs, u16::MAX, 300..320);
    push(&jobs, 7, 200..250);
    push(&jobs, 0, 0..50);
    assert_eq!(jobs.pop().unwrap(), 0);
    push(&jobs, 5, 150..160);
    assert_eq!(
        jobs.pop_batch(60).unwrap(),
        (1..50).chain(100..111).collect::<Vec<_>>()
    );
    drop(jobs);
    let jobs = open(files.path());
    push(&jobs, 0, 50..60);
    assert_eq!(jobs.len(), 49 + 20 + 50 + 10);
    let mut seen = 0;
    jobs.peek_each(|_| seen += 1).unwrap();
    assert_eq!(seen, jobs.len());
    let expected = (50..60).chain(111..160).chain(200..250).chain(300..320);
    assert!(drain(&jobs, MOST).into_iter().eq(expected));
}

#[test]
fn what_is_more_urgent_than_all_in_memory_is_read_at_once() {
    let files = tempfile::tempdir().unwrap();
    let jobs = open(files.path());
    for priority in (0..20).rev() {
        push(
            &jobs,
            priority,
            (0..20).map(|nth| u64::from(priority) * 20 + nth),
        );
        assert_eq!(jobs.pop().unwrap(), u64::from(priority) * 20);
        let tx = jobs.begin_owned();
        assert_eq!(*tx.pop().unwrap(), u64::from(priority) * 20 + 1); // and is returned
    }
    assert!(jobs.ram.len() <= 20 * 9);
    let rest = (0..400).filter(|item| item % 20 > 0);
    let mut items = Vec::new();
    while let Ok(item) = jobs.pop() {
        items.push(item);
    }
    assert!(items.into_iter().eq(rest));
}

#[test]
fn aborts_read_no_more_pages() {
    let files = tempfile::tempdir().unwrap();
    let jobs = open(files.path());
    push(&jobs, 3, 0..100);
    push(&jobs, 2, 100..200);
    for _ in 0..100 {
        let tx = jobs.begin_owned();
        assert_eq!(*tx.pop().unwrap(), 100);
    }
    assert!(jobs.ram.len() <= 17);
}

#[test]
fn scheduled_items_are_in_memory_without_their_contents() {
    let files = tempfile::tempdir().unwrap();
    let jobs = open(files.path());
    push(&jobs, 1, 0..50);
    jobs.after(Duration::from_secs(3600))
        .priority(0)
        .push_batch(50..100)
        .unwrap();
    let tx = jobs.begin_owned();
    tx.priority(2).push_batch(100..120).unwrap();
    let later = tx.after(Duration::from_secs(3600));
    later.push_batch([120, 123]).unwrap();
    tx.commit().unwrap();
    assert_eq!((jobs.len(), jobs.stats().delayed), (70, 52));
    assert_eq!(jobs.retain(|job, _| *job != 123).unwrap(), 1);
    let tx = jobs.begin_owned();
    tx.after(Duration::from_secs(3600)).push(121).unwrap();
    tx.push(122).unwrap();
    let hot = jobs.ram.len();
    tx.commit().unwrap();
    assert_eq!((jobs.len(), jobs.ram.len()), (71, hot));
    assert_eq!(jobs.retain(|job, _| *job < 121).unwrap(), 2);
    drop(jobs);
    let jobs = open(files.path());
    assert_eq!((jobs.len(), jobs.stats().delayed), (70, 51));
    assert!(jobs.next_scheduled().is_some());
    assert!(drain(&jobs, MOST).into_iter().eq((0..50).chain(100..120)));
    assert_eq!(jobs.clear_all().unwrap(), 51);
    assert_eq!(super::rows(&jobs), 0);
    push(&jobs, 1, 0..50);
    let tx = jobs.begin_owned();
    tx.push(50).unwrap();
    tx.after(Duration::from_secs(3600))
        .push_batch([51, 52])
        .unwrap();
    tx.commit().unwrap();
    assert_eq!(jobs.clear_all().unwrap(), 53);
    assert_eq!(super::rows(&jobs), 0);
}

#[test]
fn items_on_the_disk_can_be_changed() {
    let files = tempfile::tempdir().unwrap();
    let jobs = open(files.path());
    push(&jobs, 0, 50..70);
    let tickets = jobs.priority(9).push_batch(0..50).unwrap();
    assert_eq!(jobs.pop_batch(20).unwrap().len(), 20);
    assert_eq!(jobs.cancel(tickets[40]).unwrap(), Some(40));
    assert_eq!(jobs.cancel(tickets[40]).unwrap(), None);
    assert!(jobs.reprioritize(tickets[41], 1).unwrap());
    assert!(jobs.reprioritize(tickets[3], 10).unwrap());
    let held = jobs.begin_owned();
    assert_eq!(*held.pop().unwrap(), 41);
    let rest = jobs.begin_owned();
    let items: Vec<u64> = rest.pop_batch(100).unwrap().map(|item| *item).collect();
    let others = (0..50).filter(|item| ![3, 40, 41].contains(item));
    assert!(items.into_iter().eq(others.chain([3]))); // 41 is not read again
    rest.abort();
    held.abort();
    let later = jobs.now() + Duration::from_secs(3600);
    assert!(jobs.reschedule(tickets[42], later).unwrap());
    assert!(!jobs.reprioritize(tickets[40], 1).unwrap());
    assert_eq!((jobs.len(), jobs.stats().delayed), (48, 1));
    jobs.stats().check().unwrap();
    drop(jobs);
    let jobs = open(files.path());
    assert_eq!((jobs.len(), jobs.stats().delayed), (48, 1));
    let others = (0..50).filter(|item| ![3, 40, 41, 42].contains(item));
    let mut items = Vec::new();
    while let Ok(item) = jobs.pop() {
        items.push(item);
    }
    assert!(items
        .into_iter()
        .eq([41].into_iter().chain(others).chain([3])));
    assert_eq!(jobs.cancel(tickets[42]).unwrap(), Some(42));
    assert_eq!(super::rows(&jobs), 0);
}

#[test]
fn a_queue_may_have_pages_or_none() {
    let files = tempfile::tempdir().unwrap();
    let none = |path| {
        let store = StoreOptions::new().open(path).unwrap();
        store.builder("jobs").by_priority().build().unwrap()
    };
    let jobs: Jobs = none(files.path());
    push(&jobs, 4, 0..20);
    drop(jobs);
    let jobs = open(files.path());
    assert_eq!(jobs.ram.len(), 8); // their numbers have no levels
    push(&jobs, 3, 20..40);
    push(&jobs, 4, 40..60);
    drop(jobs);
    let jobs: Jobs = none(files.path());
    push(&jobs, 3, 60..80);
    assert_eq!(
        jobs.pop_batch(30).unwrap(),
        (20..40).chain(60..70).collect::<Vec<_>>()
    );
    drop(jobs);
    let jobs = open(files.path());
    let rest = (70..80).chain(0..20).chain(40..60);
    assert_eq!(jobs.pop_batch(60).unwrap(), rest.collect::<Vec<_>>());
}

#[test]
fn items_are_removed_wherever_they_are() {
    let files = tempfile::tempdir().unwrap();
    let jobs = open(files.path());
    for priority in [3, 1, 2] {
        push(
            &jobs,
            priority,
            (0..40).map(|nth| u64::from(priority) * 100 + nth),
        );
    }
    assert_eq!(jobs.retain(|job, _| job % 4 == 0).unwrap(), 90);
    assert_eq!(jobs.len(), 30);
    let left: Vec<u64> = (100..400)
        .filter(|job| job % 100 < 40 && job % 4 == 0)
        .collect();
    drop(jobs);
    let jobs = open(files.path());
    assert_eq!(drain(&jobs, MOST), left);
    assert_eq!(super::rows(&jobs), 0);
}

/// More than there are ranges of what is gone, from chunks that no page has read.
#[test]
fn items_that_are_cancelled_on_the_disk_do_not_come_back() {
    let files = tempfile::tempdir().unwrap();
    let jobs = open(files.path());
    let push = |first| jobs.priority(5).push_batch(first..first + 20).unwrap();
    let tickets: Vec<_> = (0..200).step_by(20).flat_map(push).collect();
    for item in (50..200).step_by(20) {
        let cancelled = jobs.cancel(tickets[usize::try_from(item).unwrap()]);
        assert_eq!(cancelled.unwrap(), Some(item));
    }
    drop(jobs);
    let jobs = open(files.path());
    let left = (0..200).filter(|item| *item < 50 || item % 20 != 10);
    assert!(jobs.pop_batch(200).unwrap().into_iter().eq(left));
}
