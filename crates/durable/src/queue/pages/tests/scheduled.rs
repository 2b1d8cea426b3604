//! Items with due times that are on the disk only.

use super::super::Scheduled;
use super::{drain, rows};
use crate::format::{due_rows, level::Level, MARKS};
use crate::order::DEFAULT_PRIORITY;
use crate::PushError;
use crate::{ByPriority, Durability, DurableQueue, PopError, StoreError, StoreOptions, Ticket};
use requeue::{DuplicateOf, ManualClock};
use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant, UNIX_EPOCH};
use tempfile::TempDir;

type Jobs = DurableQueue<u64, ByPriority>;

const SECOND: Duration = Duration::from_secs(1);

fn secs(seconds: u64) -> Duration {
    SECOND * u32::try_from(seconds).unwrap()
}

/// A directory, and the time, now and at the beginning.
struct Place(TempDir, ManualClock, Instant);

impl Place {
    fn new() -> Self {
        let clock = ManualClock::new();
        let start = clock.now();
        Self(tempfile::tempdir().unwrap(), clock, start)
    }

    fn options(&self) -> StoreOptions {
        let (clock, start) = (self.1.clone(), self.2);
        let began = UNIX_EPOCH + secs(1_000_000);
        StoreOptions::new().wall_clock(move || began + (clock.now() - start))
    }

    fn open_with(&self, options: StoreOptions) -> Result<Jobs, StoreError> {
        let store = options.open(self.0.path())?;
        let builder = store.builder("jobs").by_priority();
        builder.clock(self.1.clone()).build()
    }

    fn open(&self) -> Jobs {
        self.open_with(self.options().memory(0)).unwrap()
    }

    /// Commits are not written before the log is settled.
    fn open_buffered(&self) -> Jobs {
        let at_most = Duration::from_secs(3_600);
        let options = self.options().memory(0);
        let options = options.durability(Durability::Buffered { at_most });
        self.open_with(options).unwrap()
    }

    fn open_without_pages(&self) -> Jobs {
        self.open_with(self.options()).unwrap()
    }

    fn pass(&self, seconds: u64) {
        self.1.advance(secs(seconds));
    }
}

impl Jobs {
    /// Pushes items that are due after as many seconds.
    fn push_later(&self, items: impl IntoIterator<Item = u64>) -> Vec<Ticket> {
        let items = items.into_iter();
        items
            .map(|item| self.after(secs(item)).push(item).unwrap())
            .collect()
    }

    fn seen(&self) -> (usize, u64) {
        self.stats().check().unwrap();
        (self.len(), self.stats().delayed)
    }

    fn due_rows(&self) -> usize {
        self.shared.log().settle().unwrap();
        let marks = &self.shared.log().disk().tables[MARKS];
        let all = due_rows(self.shared.id, 0..=Level::MAX, (0, 0));
        marks.range(all).count()
    }
}

#[test]
fn they_come_into_memory_when_they_are_due() {
    let place = Place::new();
    let jobs = place.open();
    jobs.push_later((1..=50).rev());
    assert_eq!((jobs.seen(), jobs.ram.stats().delayed), ((0, 50), 0));
    assert_eq!((jobs.due_rows(), rows(&jobs)), (50, 50));
    assert_eq!(jobs.next_scheduled(), Some(place.1.now() + SECOND));
    assert!(jobs.pop().unwrap_err().is_empty());
    place.pass(20);
    assert_eq!(jobs.seen(), (20, 30));
    assert_eq!(jobs.peek_each(|job| assert!(*job <= 20)).unwrap(), 20);
    assert!(jobs.ram.len() <= 8);
    assert!(drain(&jobs, 8).into_iter().eq(1..=20));
    place.pass(1);
    assert_eq!(jobs.pop().unwrap(), 21);
    drop(jobs);
    let jobs = place.open();
    assert_eq!((jobs.seen(), jobs.due_rows()), ((0, 29), 29));
    place.pass(100);
    assert!(drain(&jobs, 8).into_iter().eq(22..=50));
    assert_eq!((jobs.seen(), jobs.due_rows()), ((0, 0), 0));
    assert_eq!((rows(&jobs), jobs.next_scheduled()), (0, None));
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_waiting_pop_gets_them_in_time() {
    let place = Place::new();
    let jobs = place.open();
    jobs.push_later([5, 9]);
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    for (passes, expected) in [(3, 3), (2, 5), (4, 9)] {
        let tx = jobs.begin_owned();
        {
            let mut pop = pin!(tx.pop_async());
            let mut poll = || pop.as_mut().poll(&mut Context::from_waker(&waker));
            assert!(poll().is_pending());
            if expected == 3 {
                jobs.push_later([3]); // earlier than all others, so it is woken to wait for that
                assert!(woken.0.load(Ordering::Relaxed) && poll().is_pending());
            }
            woken.0.store(false, Ordering::Relaxed);
            place.pass(passes);
            assert!(woken.0.load(Ordering::Relaxed));
            assert!(matches!(poll(), Poll::Ready(Ok(item)) if *item == expected));
        }
        tx.commit().unwrap();
    }
}

/// What was ready when it was counted may have left memory otherwise.
#[test]
fn a_waiting_pop_gets_them_though_others_were_removed() {
    for clears in [false, true] {
        let place = Place::new();
        let jobs = place.open();
        jobs.push_later([5]);
        let tx = jobs.begin_owned();
        tx.push(0).unwrap();
        tx.commit().unwrap();
        if clears {
            assert_eq!(jobs.clear().unwrap(), 1);
        } else {
            assert_eq!(jobs.retain(|job, _| *job > 0).unwrap(), 1);
        }
        let ticket = jobs.priority(1).push(1).unwrap();
        assert_eq!(jobs.cancel(ticket).unwrap(), Some(1));
        let (woken, tx) = (Arc::new(Woken::default()), jobs.begin_owned());
        let waker = Waker::from(Arc::clone(&woken));
        let mut pop = pin!(tx.pop_async());
        let mut poll = || pop.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(poll().is_pending());
        place.pass(5);
        assert!(woken.0.load(Ordering::Relaxed));
        assert!(matches!(poll(), Poll::Ready(Ok(item)) if *item == 5));
    }
}

#[test]
fn what_is_due_is_delivered_by_priority() {
    let place = Place::new();
    let jobs = place.open();
    for (priority, first) in [(7, 100), (0, 0), (u16::MAX, 200)] {
        let view = jobs.priority(priority).after(SECOND);
        view.push_batch(first..first + 30).unwrap();
    }
    jobs.priority(7).push_batch(130..160).unwrap();
    assert_eq!(jobs.pop().unwrap(), 130);
    place.pass(1);
    assert!(jobs.pop_batch(30).unwrap().into_iter().eq(0..30));
    // Pages of those of one priority that are due, and of the others, take turns.
    let next = jobs.pop_batch(30).unwrap();
    let due = next.iter().filter(|item| **item < 130).count();
    assert!((8..=22).contains(&due), "{next:?}");
    let rest: Vec<_> = drain(&jobs, 40);
    assert!(rest[29..].iter().copied().eq(200..230), "{rest:?}");
}

#[test]
fn others_stay_in_memory_beside_them() {
    let place = Place::new();
    let jobs = place.open_with(place.options().memory(100_000)).unwrap();
    jobs.push_later(1_000..1_200);
    assert!(jobs.ram.stats().delayed > 10); // of half of the budget
    assert_eq!(jobs.seen(), (0, 200));
    for item in 0..10 {
        jobs.push(item).unwrap();
        jobs.priority(1).push_batch([item + 10, item + 20]).unwrap();
        let _ = jobs.priority(1).after(secs(9_999)).push(99).unwrap();
        assert_eq!(jobs.ram.len(), 3); // the items are there
        assert_eq!(jobs.pop_batch(3).unwrap(), [item + 10, item + 20, item]);
    }
    drop(jobs);
    let jobs = place.open();
    assert_eq!(jobs.seen(), (0, 210));
    assert_eq!(rows(&jobs), 210);
}

#[test]
fn a_few_come_into_memory_early() {
    let place = Place::new();
    let jobs = place.open();
    jobs.push_later(1..=30);
    drop(jobs);
    let with_room = || place.options().memory(1_000_000);
    let jobs = place.open_with(with_room()).unwrap();
    assert_eq!((jobs.ram.stats().delayed, jobs.seen()), (30, (0, 30)));
    assert!(!jobs.pages.as_ref().unwrap().is_cold());
    let tx = jobs.begin_owned();
    tx.push_batch([0, 0]).unwrap();
    tx.commit().unwrap();
    assert_eq!(jobs.ram.len(), 2);
    place.pass(10);
    assert!(jobs.pop_batch(12).unwrap().into_iter().skip(2).eq(1..=10));
    jobs.push_batch(100..3_000).unwrap(); // more than there is room for
    place.pass(30);
    let mut all = drain(&jobs, 3_000);
    all.sort_unstable();
    assert!(all.into_iter().eq((11..=30).chain(100..3_000)));
    // As many as there is room for in half of the budget.
    let other = Place::new();
    let jobs = other.open_with(other.options().memory(40_000)).unwrap();
    jobs.push_later(1..=500);
    let early = jobs.ram.stats().delayed;
    assert!((10..=100).contains(&early), "{early}");
    assert_eq!(jobs.next_scheduled(), Some(other.1.now() + SECOND));
    assert_eq!(jobs.seen(), (0, 500));
    drop(jobs);
    let jobs = other.open_with(other.options().memory(1_000)).unwrap();
    assert!(jobs.ram.stats().delayed <= 2);
    other.pass(20);
    assert_eq!(jobs.seen(), (20, 480));
    assert_eq!(jobs.next_scheduled(), Some(other.1.now() + SECOND));
}

#[test]
fn close_now_reads_scheduled_items_only() {
    let place = Place::new();
    let store = place.options().memory(0).open(place.0.path()).unwrap();
    let numbers = store.queue::<u64>("numbers").unwrap();
    numbers.push_batch(0..30).unwrap();
    numbers.push_batch(30..60).unwrap();
    numbers.change_row(rows(&numbers) - 1, |_| Some(vec![0; 9]));
    assert_eq!(numbers.close_now().unwrap(), 0);
    // The queue is closed also if one of them cannot be read.
    let place = Place::new();
    let jobs = place.open();
    jobs.push_later(1..=9);
    jobs.shared.log().settle().unwrap();
    jobs.change_row(4, |_| Some(vec![0; 9]));
    assert!(jobs.close_now().is_err());
    assert!(jobs.shared.is_closed_on_disk());
}

/// Those of a transaction that began in memory are not in the tables when others are brought there.
#[test]
fn what_is_not_written_yet_is_not_forgotten() {
    let at_most = Duration::from_secs(3600);
    let place = Place::new();
    let options = place.options().memory(30_000);
    let options = options.durability(Durability::Buffered { at_most });
    let jobs = place.open_with(options).unwrap();
    let tx = jobs.begin_owned();
    tx.push(0).unwrap();
    let tickets = jobs.push_later(101..=300);
    assert_eq!(jobs.cancel(tickets[198]).unwrap(), Some(299));
    tx.after(secs(60)).push_batch(1..=20).unwrap();
    tx.commit().unwrap();
    for ticket in &tickets[190..198] {
        assert!(jobs.cancel(*ticket).unwrap().is_some());
    }
    place.pass(200); // so rows are read, and theirs passed before
    let mut due = jobs.pop_batch(999).unwrap();
    due.sort_unstable();
    assert!(due.into_iter().eq((0..=20).chain(101..=200)));
    assert_eq!(jobs.seen(), (0, 91));
}

#[test]
fn they_can_be_changed_where_they_are() {
    let place = Place::new();
    let jobs = place.open();
    let tickets = jobs.push_later(1..=40);
    assert_eq!(jobs.cancel(tickets[0]).unwrap(), Some(1));
    assert_eq!(jobs.cancel(tickets[0]).unwrap(), None);
    let at = |seconds| place.1.now() + secs(seconds);
    assert!(jobs.reschedule(tickets[38], at(1)).unwrap()); // 39
    assert!(jobs.reschedule(tickets[1], at(50)).unwrap()); // 2
    assert!(jobs.reprioritize(tickets[9], 1).unwrap()); // 10
    assert_eq!(jobs.seen(), (0, 39));
    place.pass(1);
    assert_eq!(jobs.pop().unwrap(), 39);
    drop(jobs);
    let jobs = place.open();
    assert_eq!(jobs.seen(), (0, 38));
    place.pass(11);
    assert_eq!(jobs.pop_batch(4).unwrap(), [10, 3, 4, 5]);
    for ticket in &tickets[20..35] {
        assert!(jobs.cancel(*ticket).unwrap().is_some());
    }
    place.pass(100);
    let left = drain(&jobs, 20);
    let expected = (6..=20).filter(|item| *item != 10);
    let expected: Vec<u64> = expected.chain([36, 37, 38, 40]).collect();
    let mut sorted = left.clone();
    sorted.retain(|item| *item != 2);
    assert_eq!((sorted, left.len()), (expected.clone(), expected.len() + 1));
    assert_eq!((jobs.due_rows(), rows(&jobs)), (0, 0));
}

#[test]
fn what_was_changed_is_not_read_again() {
    let place = Place::new();
    let jobs = place.open();
    let tickets = jobs.push_later(1..=30);
    assert!(jobs
        .reschedule(tickets[1], place.1.now() + secs(40))
        .unwrap());
    place.pass(5);
    assert_eq!(jobs.pop_batch(9).unwrap(), [1, 3, 4, 5]);
    for ticket in &tickets[10..] {
        assert!(jobs.cancel(*ticket).unwrap().is_some());
        let state = jobs.pages.as_ref().unwrap().state();
        assert!(state.index.scheduled.brought.len() <= 4);
    }
    place.pass(50);
    let mut left = drain(&jobs, 8);
    left.sort_unstable();
    assert_eq!(left, [2, 6, 7, 8, 9, 10]);
}

#[test]
fn they_are_not_delivered_early() {
    let place = Place::new();
    let jobs = place.open();
    let micros = Duration::from_micros(100);
    place.1.advance(4 * micros);
    jobs.after(10 * micros).push(1).unwrap();
    place.1.advance(9 * micros);
    assert!(jobs.pop().unwrap_err().is_empty());
    place.1.advance(7 * micros);
    assert_eq!(jobs.pop().unwrap(), 1);
}

/// Then a waiting pop looks for them more than once.
#[test]
fn the_wall_clock_may_be_slower_than_that_of_the_queue() {
    let place = Place::new();
    let (clock, start) = (place.1.clone(), place.2);
    let slow = move || UNIX_EPOCH + (clock.now() - start) / 2;
    let options = StoreOptions::new().memory(0).wall_clock(slow);
    let jobs = place.open_with(options).unwrap();
    jobs.push_later([10]);
    let (woken, tx) = (Arc::new(Woken::default()), jobs.begin_owned());
    let waker = Waker::from(Arc::clone(&woken));
    let mut pop = pin!(tx.pop_async());
    let mut poll = || pop.as_mut().poll(&mut Context::from_waker(&waker));
    for passes in [10, 5, 5] {
        assert!(poll().is_pending());
        woken.0.store(false, Ordering::Relaxed);
        place.pass(passes);
        assert!(woken.0.load(Ordering::Relaxed));
    }
    assert!(matches!(poll(), Poll::Ready(Ok(item)) if *item == 10));
}

#[test]
fn they_are_removed_where_they_are() {
    let place = Place::new();
    let jobs = place.open();
    jobs.push_later(1..=40);
    jobs.push_batch(100..120).unwrap();
    place.pass(10);
    assert_eq!(jobs.pop_batch(1).unwrap().len(), 1);
    assert_eq!(jobs.seen(), (29, 30));
    let removed = jobs.retain(|item, queued| {
        assert_eq!(queued.due.is_some(), (11..=40).contains(item));
        item % 2 == 0
    });
    assert!((24..=31).contains(&removed.unwrap()));
    let (ready, delayed) = jobs.seen();
    assert_eq!(delayed, 15);
    assert_eq!(jobs.clear().unwrap(), ready);
    assert_eq!((jobs.seen(), jobs.due_rows()), ((0, 15), 15));
    jobs.push_later([1]);
    place.pass(1);
    assert_eq!(jobs.close_now().unwrap(), 15);
    assert_eq!(jobs.pop_blocking().unwrap(), 1);
    assert!(jobs.pop_blocking().unwrap_err().is_closed());
    assert_eq!((jobs.due_rows(), rows(&jobs)), (0, 0));
}

#[test]
fn a_commit_may_end_when_its_items_are_due() {
    let place = Place::new();
    let jobs = place.open();
    jobs.push_later([2, 4, 30]);
    let [tx, aborted] = [(); 2].map(|()| jobs.begin_owned());
    tx.after(secs(1)).push_batch([1, 11]).unwrap();
    tx.after(secs(9)).push(9).unwrap();
    aborted.after(secs(1)).push(7).unwrap();
    place.pass(3);
    assert_eq!(jobs.pop().unwrap(), 2);
    tx.commit().unwrap();
    aborted.abort();
    place.pass(2);
    let mut due = jobs.pop_batch(9).unwrap();
    due.sort_unstable();
    assert_eq!((due, jobs.seen()), (vec![1, 4, 11], (0, 2)));
    place.pass(6);
    assert_eq!(jobs.pop().unwrap(), 9);
    // In memory, since its transaction began there.
    let other = place_of_its_own();
    let tx = other.1.begin_owned();
    tx.push(0).unwrap();
    other.1.push_later(100..200);
    tx.after(SECOND).push(1).unwrap();
    tx.commit().unwrap();
    other.0.pass(1);
    let mut first = other.1.pop_batch(9).unwrap();
    first.sort_unstable();
    assert_eq!(first, [0, 1]);
    other.0.pass(200);
    assert!(drain(&other.1, 80).into_iter().eq(100..200));
}

fn place_of_its_own() -> (Place, Jobs) {
    let place = Place::new();
    let jobs = place.open_with(place.options().memory(100_000)).unwrap();
    (place, jobs)
}

#[test]
fn a_queue_without_such_rows_gets_them() {
    let place = Place::new();
    let jobs = place.open_without_pages();
    jobs.push_later(1..=20);
    jobs.push_batch(100..120).unwrap();
    drop(jobs);
    let jobs = place.open();
    assert_eq!((jobs.due_rows(), jobs.seen()), (21, (20, 20)));
    drop(jobs);
    // Another process has none, and leaves those of others.
    let jobs = place.open_without_pages();
    assert_eq!(jobs.pop_batch(10).unwrap().len(), 10);
    jobs.push_later([30]);
    assert_eq!(jobs.due_rows(), 21);
    drop(jobs);
    let jobs = place.open();
    assert_eq!((jobs.due_rows(), jobs.seen()), (22, (10, 21)));
    place.pass(50);
    let mut left = drain(&jobs, 8);
    left.sort_unstable();
    assert!(left.into_iter().eq((1..=20).chain([30]).chain(110..120)));
    drop(jobs);
    let checked = place.options().memory(0).check();
    assert_eq!(place.open_with(checked).unwrap().seen(), (0, 0));
}

#[test]
fn items_that_are_due_together_are_one_row() {
    let place = Place::new();
    let jobs = place.open();
    let tickets = jobs.after(secs(20)).push_batch(0..40).unwrap();
    assert_eq!(jobs.due_rows(), 1);
    jobs.after(secs(10)).push_batch(40..50).unwrap();
    assert_eq!(jobs.due_rows(), 2);
    let tx = jobs.begin_owned();
    tx.after(secs(10)).push_batch(50..60).unwrap();
    tx.after(secs(30)).push_batch(60..70).unwrap();
    tx.priority(9).after(secs(30)).push(70).unwrap();
    tx.commit().unwrap();
    assert_eq!((jobs.due_rows(), rows(&jobs)), (5, 5));
    assert_eq!(jobs.cancel(tickets[7]).unwrap(), Some(7));
    assert_eq!(jobs.retain(|item, _| item % 10 != 5).unwrap(), 7);
    assert_eq!((jobs.due_rows(), jobs.seen()), (5, (0, 63)));
    place.pass(10);
    assert_eq!(jobs.seen(), (18, 45));
    let held = jobs.begin_owned();
    assert!(held.pop_batch(3).unwrap().map(|job| *job).eq(40..43));
    let others = (43_u64..60).filter(|item| item % 10 != 5);
    assert!(jobs.pop_batch(99).unwrap().into_iter().eq(others));
    assert_eq!(jobs.next_scheduled(), Some(place.1.now() + secs(10)));
    assert_eq!((jobs.due_rows(), jobs.seen()), (4, (0, 45)));
    drop((held, jobs));

    let checked = || place.options().memory(0).check();
    let jobs = place.open_with(checked()).unwrap();
    assert_eq!((jobs.due_rows(), jobs.seen()), (4, (3, 45)));
    place.pass(10);
    assert_eq!(jobs.seen(), (38, 10));
    let first = [40, 41, 42, 0, 1, 2, 3, 4, 6, 8, 9, 10, 11];
    assert_eq!(jobs.pop_batch(13).unwrap(), first);
    drop(jobs);
    let jobs = place.open_with(checked()).unwrap();
    place.pass(20);
    let left = drain(&jobs, 8);
    assert_eq!((left.len(), left[0], left[34]), (35, 70, 69));
    assert_eq!((jobs.due_rows(), rows(&jobs)), (0, 0));
    drop(jobs);
    assert_eq!(place.open_with(checked()).unwrap().seen(), (0, 0));
}

/// A level whose rows were read has others in the log only.
#[test]
fn what_is_not_written_yet_is_read_in_time() {
    let place = Place::new();
    let jobs = place.open_buffered();
    jobs.after(secs(10)).push_batch(0..20).unwrap();
    let next = jobs.next_scheduled(); // settles
    assert_eq!(next, Some(place.1.now() + secs(10)));
    place.pass(10);
    assert_eq!(jobs.pop().unwrap(), 0);
    jobs.after(secs(200)).push(21).unwrap();
    jobs.after(secs(100)).push(20).unwrap();
    assert!(!jobs.shared.log().is_written());
    assert!(jobs.pop_batch(99).unwrap().into_iter().eq(1..20));
    assert!(jobs.pop().unwrap_err().is_empty());
    assert_eq!(jobs.next_scheduled(), Some(place.1.now() + secs(100)));
    place.pass(100);
    assert_eq!(jobs.pop().unwrap(), 20);
    place.pass(100);
    assert_eq!(jobs.pop().unwrap(), 21);
}

#[test]
fn what_is_removed_and_still_written_does_not_come_back() {
    let place = Place::new();
    let jobs = place.open_buffered();
    // Begins the cold part.
    jobs.after(secs(20)).push(2_001).unwrap();
    // More than are read early.
    jobs.after(secs(10)).push_batch(0..2_000).unwrap();
    assert!(jobs.next_scheduled().is_some()); // settles
    assert_eq!(jobs.retain(|item, _| item % 5 > 0).unwrap(), 400);
    assert!(!jobs.shared.log().is_written());
    place.pass(10);
    let left = (0..2_000).filter(|item| item % 5 > 0);
    let popped = jobs.pop_batch(9_999).unwrap();
    assert_eq!(popped, left.collect::<Vec<u64>>());
    assert_eq!((jobs.due_rows(), jobs.seen()), (1, (0, 1)));
}

/// The group that removes an item may be in the tables in part, so that its other rows are still found.
#[test]
fn items_that_are_gone_are_forgotten_when_the_log_is_settled() {
    let mut scheduled = Scheduled::default();
    (1..=4).for_each(|id| scheduled.bring(id));
    let is_there = |id| Ok(id > 2);
    assert_eq!(
        scheduled.forget_gone(is_there, || Err("failed")),
        Err("failed")
    );
    assert_eq!(scheduled.brought.len(), 4);
    assert_eq!(
        scheduled.forget_gone(is_there, || Ok::<_, &str>(())),
        Ok(())
    );
    assert!(scheduled.brought.into_iter().eq([3, 4]));
}

/// The log knows it from before.
#[test]
fn a_chunk_in_memory_gets_such_a_row() {
    let place = Place::new();
    let store = place.options().open(place.0.path()).unwrap();
    let builder = || store.builder::<u64>("jobs").by_priority();
    let jobs: Jobs = builder().build().unwrap();
    jobs.push_batch(0..20).unwrap();
    drop(jobs);
    let jobs: Jobs = builder().memory(0).build().unwrap();
    assert_eq!((jobs.due_rows(), rows(&jobs)), (1, 1));
    assert!(jobs.pop_batch(20).unwrap().into_iter().eq(0..20));
    assert_eq!((jobs.due_rows(), rows(&jobs)), (0, 0));
}

#[test]
fn stores_of_earlier_versions_get_rows_of_single_items() {
    let place = Place::new();
    drop(place.open());
    let version = place.0.path().join("version");
    std::fs::write(&version, "requeue-durable, version 7\n").unwrap();
    let jobs = place.open();
    jobs.after(secs(10)).push_batch(0..20).unwrap();
    assert_eq!((jobs.due_rows(), rows(&jobs)), (20, 20));
    place.pass(10);
    assert!(drain(&jobs, 8).into_iter().eq(0..20));
}

/// Those that are left of a chunk are due at one time, and the first one was not.
#[test]
fn a_chunk_may_have_had_an_item_of_another_time() {
    let place = Place::new();
    let jobs = place.open_without_pages();
    let tx = jobs.begin_owned();
    tx.priority(5).push(0).unwrap();
    tx.priority(9).push_batch([1, 2, 3]).unwrap();
    tx.commit().unwrap();
    assert_eq!(jobs.pop().unwrap(), 0);
    drop(jobs);
    let jobs = place.open();
    assert_eq!((jobs.due_rows(), rows(&jobs)), (3, 3));
    assert_eq!(jobs.pop_batch(3).unwrap(), [1, 2, 3]);
    assert_eq!((jobs.due_rows(), rows(&jobs)), (0, 0));
    drop(jobs);
    let checked = place.options().memory(0).check();
    assert_eq!(place.open_with(checked).unwrap().seen(), (0, 0));
}

#[test]
fn their_keys_are_taken() {
    let place = Place::new();
    let options = place.options().memory(0);
    let store = options.open(place.0.path()).unwrap();
    let jobs = store.builder("jobs").by_priority().clock(place.1.clone());
    let jobs: Jobs = jobs.unique_by(|job: &u64| job % 100).build().unwrap();
    jobs.push_later(1..=30);
    let refused = jobs.push(107).unwrap_err();
    assert!(matches!(
        refused,
        PushError::Duplicate(107, DuplicateOf::Queued)
    ));
    place.pass(7);
    assert!(jobs.push(107).unwrap_err().is_duplicate());
    assert!(jobs.pop_batch(7).unwrap().into_iter().eq(1..=7));
    jobs.push(107).unwrap();
    assert_eq!(jobs.pop().unwrap(), 107);
}

#[test]
fn damage_of_their_rows_is_found() {
    for part in 0..3 {
        let place = Place::new();
        let jobs = place.open();
        jobs.push_later(1..=20);
        jobs.shared.log().settle().unwrap();
        let marks = &jobs.shared.log().disk().tables[MARKS];
        let all = due_rows(jobs.shared.id, 0..=Level::MAX, (0, 0));
        let row = marks.range(all).nth(9).unwrap();
        let (key, value) = row.into_inner().unwrap();
        match part {
            0 => marks.remove(key).unwrap(),
            1 => marks.insert(key, [1; 8]).unwrap(),
            _ => {
                let mut other = key.to_vec();
                other[11] ^= 1; // another time
                marks.insert(other, value).unwrap();
            }
        }
        place.pass(100);
        let error = (0..21).find_map(|_| jobs.pop().err()).unwrap();
        let is_damage = |error: &_| matches!(error, StoreError::Damaged(_));
        assert!(
            matches!(&error, PopError::Store(error) if is_damage(error)),
            "{error}"
        );
        drop(jobs);
        let checked = place.options().memory(0).check();
        assert!(place
            .open_with(checked)
            .is_err_and(|error| is_damage(&error)));
    }
}

#[test]
fn without_a_wall_clock_of_its_own_the_clock_of_the_queue_decides() {
    let files = tempfile::tempdir().unwrap();
    let clock = ManualClock::new();
    let open = |path: &Path| {
        let store = StoreOptions::new().memory(0).open(path).unwrap();
        let builder = store.builder("jobs").by_priority();
        builder.clock(clock.clone()).build().unwrap()
    };
    let jobs: Jobs = open(files.path());
    clock.advance(secs(50));
    jobs.priority(DEFAULT_PRIORITY)
        .after(SECOND)
        .push(1)
        .unwrap();
    assert_eq!(jobs.seen(), (0, 1));
    clock.advance(SECOND / 2);
    assert!(jobs.pop().is_err());
    clock.advance(SECOND);
    assert_eq!(jobs.pop().unwrap(), 1);
}
