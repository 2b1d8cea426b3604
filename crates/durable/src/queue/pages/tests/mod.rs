mod by_key;
mod by_priority;
mod gone;
mod kept;
mod scheduled;
mod unique;

use crate::format::{is_key, Row, ITEMS};
use crate::order::Order;
use crate::{Durability, DurableQueue, ManualClock, Store, StoreError, StoreOptions};
use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::{Duration, UNIX_EPOCH};

fn open(path: &Path) -> DurableQueue<u64> {
    let store = StoreOptions::new().memory(0).open(path).unwrap();
    store.queue("numbers").unwrap()
}

impl<O: Order<u64>> DurableQueue<u64, O> {
    /// How many items are in memory.
    fn hot(&self) -> usize {
        self.ram.len()
    }

    /// Whether the row at a place has items, and is no tombstone.
    fn is_chunk(&self, nth: usize) -> bool {
        let items = &self.shared.log().disk().tables[ITEMS];
        let row = items.range::<&[u8], _>(..).nth(nth).unwrap();
        is_key(&row.key().unwrap())
    }

    /// Changes a row, by its place, behind the back of the store.
    fn change_row(&self, nth: usize, value: impl FnOnce(&[u8]) -> Option<Vec<u8>>) {
        let items = &self.shared.log().disk().tables[ITEMS];
        let row = items.range::<&[u8], _>(..).nth(nth).unwrap();
        let (key, known) = row.into_inner().unwrap();
        match value(&known) {
            Some(value) => items.insert(key, value).unwrap(),
            None => items.remove(key).unwrap(),
        }
    }
}

#[test]
fn a_removal_that_is_not_written_yet_is_no_damage() {
    let files = tempfile::tempdir().unwrap();
    let at_most = Duration::from_secs(3600);
    let options = StoreOptions::new().memory(0);
    let options = options.durability(Durability::Buffered { at_most });
    let store = options.open(files.path()).unwrap();
    let numbers = store.queue::<u64>("numbers").unwrap();
    numbers.push_batch(0..20).unwrap(); // the cold part begins
    numbers.push_batch(20..40).unwrap();
    assert_eq!(numbers.pop_batch(25).unwrap().len(), 25);
    assert_eq!(numbers.retain(|number, _| *number < 39).unwrap(), 1);
    assert!(drain(&numbers, 8).into_iter().eq(25..39));
}

#[test]
fn memory_has_one_page() {
    let files = tempfile::tempdir().unwrap();
    let numbers = open(files.path());
    for number in 0..50 {
        numbers.push(number).unwrap();
        assert!(numbers.hot() <= 8);
    }
    for number in 0..20 {
        assert_eq!(numbers.pop().unwrap(), number);
        assert!((1..=8).contains(&numbers.hot()));
    }
    drop(numbers);
    let numbers = open(files.path());
    assert_eq!((numbers.hot(), numbers.len()), (8, 30));
    assert_eq!(numbers.pop_batch(20).unwrap().len(), 20);
    assert_eq!((numbers.hot(), numbers.len()), (4, 10)); // of three pages
}

#[test]
fn with_room_in_memory_nothing_is_read_again() {
    let files = tempfile::tempdir().unwrap();
    let store = Store::open(files.path()).unwrap();
    let numbers = store.builder("numbers").memory(1 << 20).build().unwrap();
    let before = numbers.pages.as_ref().unwrap().pages_read();
    numbers.push_batch(0..1_000_u64).unwrap();
    assert_eq!(
        (numbers.hot(), numbers.pop_batch(2_000).unwrap().len()),
        (1_000, 1_000)
    );
    assert_eq!(numbers.pages.as_ref().unwrap().pages_read(), before);
}

#[test]
fn a_backlog_leaves_room_for_queues_without_one() {
    let files = tempfile::tempdir().unwrap();
    let open = || StoreOptions::new().memory(1 << 20).open(files.path());
    let store = open().unwrap();
    let backlog = store.queue("backlog").unwrap();
    backlog.push_batch(0..5_000_u64).unwrap();
    drop((backlog, store));
    let store = open().unwrap();
    let [backlog, other] = ["backlog", "other"].map(|name| store.queue::<u64>(name).unwrap());
    assert!(backlog.hot() < 5_000);
    other.push_batch(0..50).unwrap();
    assert_eq!(other.hot(), 50);
    assert!(!other.pages.as_ref().unwrap().is_cold());
}

#[test]
fn a_commit_that_ends_when_later_rows_were_read_is_not_lost() {
    let files = tempfile::tempdir().unwrap();
    let numbers = open(files.path());
    numbers.push_batch(0..20).unwrap();
    let tx = numbers.begin_owned();
    tx.push(20).unwrap();
    numbers.push_batch(21..40).unwrap();
    assert_eq!(numbers.pop_batch(30).unwrap().len(), 30);
    tx.commit().unwrap();
    assert_eq!(numbers.len(), 10);
    let mut left = numbers.pop_batch(40).unwrap();
    left.sort_unstable();
    assert_eq!(left, [20, 31, 32, 33, 34, 35, 36, 37, 38, 39]);
    assert_eq!(numbers.len(), 0);
    numbers.stats().check().unwrap();
}

#[test]
fn a_backlog_whose_time_is_over_ends_at_once() {
    let (files, clock) = (tempfile::tempdir().unwrap(), ManualClock::new());
    let (wall, start) = (clock.clone(), clock.now());
    let options = StoreOptions::new().wall_clock(move || UNIX_EPOCH + (wall.now() - start));
    let store = options.memory(0).open(files.path()).unwrap();
    let numbers = store.builder::<u64>("numbers").ttl(Duration::from_secs(1));
    let numbers = numbers.clock(clock.clone()).build().unwrap();
    numbers.push_batch(0..50).unwrap();
    clock.advance(Duration::from_secs(1));
    numbers.push(50).unwrap();
    assert_eq!((numbers.len(), numbers.stats().timed_out), (1, 50));
    assert_eq!(numbers.hot(), 1);
    assert!(numbers.pages.as_ref().unwrap().lost.lock().is_empty());
}

#[test]
fn a_push_that_follows_one_in_memory_is_delivered_once() {
    let files = tempfile::tempdir().unwrap();
    let store = Store::open(files.path()).unwrap();
    let numbers = store.builder("numbers").memory(2_500).build().unwrap();
    let tx = numbers.begin_owned();
    tx.push(0_u64).unwrap();
    numbers.push_batch(1..40).unwrap();
    tx.push(40).unwrap();
    tx.commit().unwrap();
    numbers.push_batch(41..60).unwrap();
    let held = numbers.begin_owned();
    let mut all = Vec::new();
    while !all.contains(&40) {
        all.push(*held.pop().unwrap());
    }
    all.extend((all.len()..60).map(|_| numbers.pop().unwrap()));
    assert!(numbers.pop().unwrap_err().is_empty());
    held.commit().unwrap();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..60));
    numbers.stats().check().unwrap();
}

/// Pops all items, one by one.
fn drain<O: Order<u64>>(jobs: &DurableQueue<u64, O>, most_in_memory: usize) -> Vec<u64> {
    let mut items = Vec::new();
    while !jobs.is_empty() {
        items.push(jobs.pop().unwrap());
        let hot = jobs.ram.len();
        assert!(hot <= most_in_memory, "{hot} in memory");
    }
    assert!(jobs.pop().unwrap_err().is_empty());
    jobs.stats().check().unwrap();
    items
}

/// How many rows the items of a store take, without those that are only of items that are gone.
fn rows<O: Order<u64>>(numbers: &DurableQueue<u64, O>) -> usize {
    numbers.shared.log().settle().unwrap();
    let disk = numbers.shared.log().disk();
    let rows = disk.tables[ITEMS].range::<&[u8], _>(..);
    let is_left = |row: fjall::Guard| {
        let (key, value) = row.into_inner().unwrap();
        let row = Row::read(ITEMS, &key, &value).unwrap();
        let gone = disk.gone(row.queue()).unwrap();
        matches!(row, Row::Items(row) if !gone.contains_all(&row.ids()))
    };
    rows.map(is_left).filter(|is_left| *is_left).count()
}

#[test]
fn items_that_are_pushed_together_are_one_row() {
    let files = tempfile::tempdir().unwrap();
    let numbers = open(files.path());
    numbers.push_batch(0..20).unwrap();
    assert_eq!(rows(&numbers), 1);
    let left: Vec<u64> = (0..20).filter(|number| number % 5 > 0).collect();
    assert_eq!(numbers.retain(|number, _| number % 5 > 0).unwrap(), 4);
    assert_eq!(rows(&numbers), 1); // these are ranges
    let held = numbers.begin_owned();
    assert_eq!(*held.pop().unwrap(), 1);
    assert_eq!(numbers.pop_batch(5).unwrap(), left[1..6]);
    assert_eq!(rows(&numbers), 1);
    held.commit().unwrap();
    drop(numbers);
    let numbers = open(files.path());
    assert_eq!(rows(&numbers), 1);
    assert_eq!(numbers.pop_batch(4).unwrap(), left[6..10]);
    drop(numbers);
    let numbers: DurableQueue<u64> = Store::open(files.path()).unwrap().queue("numbers").unwrap();
    assert_eq!(numbers.pop_batch(3).unwrap(), left[10..13]);
    numbers.push_batch(0..20).unwrap();
    assert_eq!(rows(&numbers), 4); // with two tombstones
    assert_eq!(numbers.pop_batch(5).unwrap(), [17, 18, 19, 0, 1]);
    assert_eq!(rows(&numbers), 2);
    drop(numbers);
    let numbers = open(files.path());
    assert_eq!(numbers.pop_batch(30).unwrap().len(), 18);
    assert_eq!(rows(&numbers), 0);
    drop(numbers);
    let checked = StoreOptions::new().memory(0).check().open(files.path());
    checked.unwrap();
}

#[test]
fn so_are_those_of_queues_without_pages() {
    fn check<O: Order<u64>>(build: impl Fn(&Store) -> DurableQueue<u64, O>) {
        let files = tempfile::tempdir().unwrap();
        let open = || build(&Store::open(files.path()).unwrap());
        let numbers = open();
        numbers.push_batch(0..20).unwrap();
        assert_eq!(rows(&numbers), 1);
        let held = numbers.begin_owned();
        assert_eq!(*held.pop().unwrap(), 0);
        assert_eq!(numbers.pop_batch(5).unwrap(), [1, 2, 3, 4, 5]);
        drop(held);
        drop(numbers);
        let numbers = open();
        assert_eq!(numbers.pop().unwrap(), 0);
        assert_eq!(numbers.retain(|number, _| number % 2 > 0).unwrap(), 7);
        drop(numbers);
        let numbers = open();
        let odd: Vec<u64> = (7..20).step_by(2).collect();
        assert_eq!(numbers.pop_batch(30).unwrap(), odd);
        assert_eq!(rows(&numbers), 0);
        drop(numbers);
        let checked = StoreOptions::new().check().open(files.path()).unwrap();
        assert!(build(&checked).is_empty());
    }
    check(|store| store.queue("numbers").unwrap());
    check(|store| store.builder("numbers").by_priority().build().unwrap());
    let fair = |store: &Store| store.builder("numbers").fair_by(|_| 0).build();
    check(|store| fair(store).unwrap());
}

/// If all have entries in memory, and not all items are there.
#[test]
fn items_that_are_read_one_by_one_have_rows_of_their_own() {
    let files = tempfile::tempdir().unwrap();
    let store = Store::open(files.path()).unwrap();
    let builder = store.builder::<u64>("numbers").memory(0);
    let numbers = builder.weigh(|_| 1).build().unwrap();
    assert!(!numbers.shared.has_pages);
    numbers.push_batch(0..20).unwrap();
    assert_eq!(rows(&numbers), 20);
    assert!(numbers.pop_batch(20).unwrap().into_iter().eq(0..20));
}

/// Items of a chunk are due at one time, if the queue has pages.
#[test]
fn a_store_forgets_chunks_whose_items_get_rows() {
    let files = tempfile::tempdir().unwrap();
    let store = Store::open(files.path()).unwrap();
    let numbers = || store.builder::<u64>("numbers").by_priority();
    let open = numbers().build().unwrap();
    let tx = open.begin_owned();
    tx.priority(5).push_batch(0..10).unwrap();
    tx.priority(9).push_batch(10..20).unwrap();
    tx.commit().unwrap();
    assert_eq!(open.pop_batch(3).unwrap(), [0, 1, 2]);
    assert_eq!(rows(&open), 2); // with a tombstone
    drop(open);
    let open = numbers().memory(0).build().unwrap();
    assert_eq!(rows(&open), 17);
    assert_eq!(open.pop_batch(3).unwrap(), [3, 4, 5]);
    assert_eq!(rows(&open), 14);
    drop(open);
    let open = numbers().build().unwrap();
    assert_eq!((open.len(), open.pop().unwrap()), (14, 6));
}

#[test]
fn items_are_removed_from_chunks_that_no_page_has_read() {
    let files = tempfile::tempdir().unwrap();
    let numbers = open(files.path());
    for first in [0, 20, 40] {
        numbers.push_batch(first..first + 20).unwrap();
    }
    assert_eq!(numbers.hot(), 8);
    assert_eq!(numbers.retain(|number, _| number % 20 < 19).unwrap(), 3);
    assert_eq!(rows(&numbers), 3);
    assert_eq!(numbers.retain(|number, _| *number < 40).unwrap(), 19);
    assert_eq!(rows(&numbers), 2);
    drop(numbers);
    let numbers = open(files.path());
    let left: Vec<u64> = (0..40).filter(|number| number % 20 < 19).collect();
    assert_eq!(numbers.pop_batch(60).unwrap(), left);
    assert_eq!(rows(&numbers), 0);
}

#[test]
fn accepted_damage_brings_no_removed_item_back() {
    let files = tempfile::tempdir().unwrap();
    let numbers = open(files.path());
    numbers.push_batch(0..20).unwrap();
    numbers.push_batch(20..40).unwrap();
    assert_eq!(numbers.pop_batch(3).unwrap(), [0, 1, 2]);
    assert_eq!(numbers.retain(|number, _| number % 5 > 0).unwrap(), 7);
    let left: Vec<u64> = (3..20).filter(|number| number % 5 > 0).collect();
    let last = (0..rows(&numbers)).rev().find(|nth| numbers.is_chunk(*nth));
    numbers.change_row(last.unwrap(), |_| None);
    drop(numbers);
    let options = StoreOptions::new().memory(0).accept_damage();
    let store = options.open(files.path()).unwrap();
    assert!(store.salvaged().is_some());
    let numbers: DurableQueue<u64> = store.queue("numbers").unwrap();
    assert_eq!(
        (rows(&numbers), numbers.pop_batch(60).unwrap()),
        (left.len(), left)
    );
}

fn damage(numbers: &DurableQueue<u64>) -> StoreError {
    loop {
        match numbers.pop() {
            Ok(_) => {}
            Err(crate::PopError::Store(error)) => return error,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn damage_is_found_when_it_is_read() {
    type Change = fn(&[u8]) -> Option<Vec<u8>>;
    let changes: [Change; 2] = [
        |_| None,
        |value| Some(value.iter().map(|byte| byte ^ 1).collect()),
    ];
    for change in changes {
        let files = tempfile::tempdir().unwrap();
        let numbers = open(files.path());
        for first in [0, 10, 20, 30, 40] {
            numbers.push_batch(first..first + 10).unwrap();
        }
        numbers.change_row(4, change);
        drop(numbers);
        let numbers = open(files.path());
        let visited = numbers.peek_each(|_| {});
        assert!(matches!(visited, Err(StoreError::Damaged(_))));
        let error = damage(&numbers);
        assert!(matches!(error, StoreError::Damaged(_)), "{error}");
        assert!(numbers.pop_blocking().is_err());
        drop(numbers);
        let checked = StoreOptions::new().memory(0).check().open(files.path());
        assert!(matches!(checked, Err(StoreError::Damaged(_))));
    }
}

/// Calls when it is woken.
struct Calls<F>(F);

impl<F: Fn() + Send + Sync> Wake for Calls<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

#[test]
fn a_waker_may_use_the_queue() {
    let files = tempfile::tempdir().unwrap();
    let numbers = open(files.path());
    let (queue, woken) = (numbers.clone(), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&woken);
    let waker = Waker::from(Arc::new(Calls(move || {
        count.fetch_add(queue.len(), Ordering::Relaxed);
    })));
    let mut pop = pin!(numbers.pop_async());
    let mut context = Context::from_waker(&waker);
    assert!(pop.as_mut().poll(&mut context).is_pending());
    numbers.push_batch(0..20).unwrap();
    assert_eq!(woken.load(Ordering::Relaxed), 20);
    assert_eq!(futures::executor::block_on(pop).unwrap(), 0);
}
