//! Items that are removed where they are: in memory, and on the disk.

use crate::{copy_of, directory, open};
use requeue::{ByKey, ByPriority, Fifo, Leased};
use requeue_durable::{Builder, DurableQueue, Order};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::time::Duration;
use tempfile::TempDir;

const HOUR: Duration = Duration::from_secs(3600);

/// Adds an order to a builder, and builds.
type Build<O> = fn(Builder<u32>) -> DurableQueue<u32, O>;

macro_rules! in_all_orders {
    ($check:ident) => {
        $check::<Fifo>(|it| it.build().unwrap());
        $check::<ByKey<u32, u32>>(|it| it.fair_by(|item| item % 3).build().unwrap());
        $check::<ByPriority>(|it| it.by_priority().build().unwrap());
        $check::<Leased<Fifo>>(|it| it.leased(HOUR).build().unwrap());
        $check::<Fifo>(|it| it.memory(0).max_attempts(9).build().unwrap());
    };
}

fn queue<O: Order<u32>>(directory: &TempDir, build: Build<O>) -> DurableQueue<u32, O> {
    build(open(directory).builder("numbers"))
}

/// A queue with 100 numbers, every tenth of which is delayed.
fn filled<O: Order<u32>>(directory: &TempDir, build: Build<O>) -> DurableQueue<u32, O> {
    let numbers = queue(directory, build);
    numbers.push_batch(0..100).unwrap();
    let tx = numbers.begin_owned();
    let mut later = Vec::new();
    for number in tx.pop_batch(100).unwrap() {
        if *number % 10 == 0 {
            later.push(number);
        }
    }
    for number in later {
        tx.retry_after(number, HOUR).unwrap();
    }
    tx.abort();
    numbers
}

/// All items, ready or delayed, which are removed.
fn all<O: Order<u32>>(numbers: &DurableQueue<u32, O>) -> Vec<u32> {
    let mut all = Vec::new();
    let count = numbers.retain(|number, _| {
        all.push(*number);
        false
    });
    assert_eq!(count.unwrap(), all.len());
    numbers.stats().check().unwrap();
    all.sort_unstable();
    all
}

#[test]
fn what_was_removed_is_gone_after_a_crash() {
    fn check<O: Order<u32>>(build: Build<O>) {
        let directory = directory();
        let numbers = filled(&directory, build);
        let removed = numbers.retain(|number, queued| {
            assert_eq!(queued.attempts, 1);
            assert_eq!(queued.due.is_some(), number % 10 == 0);
            number % 4 > 0
        });
        assert_eq!(removed.unwrap(), 25);
        let stats = numbers.stats();
        assert_eq!((stats.ready, stats.delayed, stats.committed), (70, 5, 25));
        let copy = copy_of(&directory);
        let left: Vec<_> = (0..100).filter(|number| number % 4 > 0).collect();
        assert_eq!(all(&queue(&copy, build)), left);
        assert_eq!(all(&numbers), left);
        assert!(all(&numbers).is_empty());
    }
    in_all_orders!(check);
}

#[test]
fn only_what_is_held_is_there_after_a_clear_and_a_crash() {
    fn check<O: Order<u32>>(build: Build<O>) {
        let directory = directory();
        let numbers = filled(&directory, build);
        let tx = numbers.begin_owned();
        let mut held: Vec<u32> = tx.pop_batch(7).unwrap().map(|number| *number).collect();
        held.sort_unstable();
        tx.push(200).unwrap();
        assert_eq!(numbers.clear_all().unwrap(), 93);
        let copy = copy_of(&directory);
        assert_eq!(all(&queue(&copy, build)), held);
        tx.abort();
        assert_eq!(numbers.clear_all().unwrap(), 7);
        assert_eq!(numbers.clear_all().unwrap(), 0);
        drop(numbers);
        assert!(all(&queue(&directory, build)).is_empty());
    }
    in_all_orders!(check);
}

#[test]
fn a_queue_that_is_closed_now_stays_so() {
    fn check<O: Order<u32>>(build: Build<O>) {
        let directory = directory();
        let numbers = filled(&directory, build);
        assert_eq!(numbers.close_now().unwrap(), 10);
        assert!(numbers.push(1).unwrap_err().is_closed());
        let copy = copy_of(&directory);
        let again = queue(&copy, build);
        assert!(again.is_closed() && again.push(1).unwrap_err().is_closed());
        assert_eq!((again.len(), again.stats().delayed), (90, 0));
        assert_eq!(numbers.pop_batch(100).unwrap().len(), 90);
        assert!(numbers.pop_blocking().unwrap_err().is_closed());
        assert_eq!(numbers.close_now().unwrap(), 0);
    }
    in_all_orders!(check);
}

#[test]
fn after_a_panic_memory_and_disk_have_the_same_items() {
    fn check<O: Order<u32>>(build: Build<O>) {
        let directory = directory();
        let numbers = filled(&directory, build);
        let mut visited = 0;
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            numbers.retain(|number, _| {
                visited += 1;
                assert!(visited < 50);
                number % 2 > 0
            })
        }));
        assert!(panicked.is_err());
        assert_eq!(visited, 50);
        let copy = copy_of(&directory);
        let left = all(&numbers);
        assert!((60..95).contains(&left.len()), "{}", left.len());
        assert_eq!(all(&queue(&copy, build)), left);
    }
    in_all_orders!(check);
}

std::thread_local! {
    static ARMED: Cell<bool> = const { Cell::new(false) };
}

/// Panics when it is dropped, if it is armed.
#[derive(Serialize, Deserialize)]
struct Bomb(u32);

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(!ARMED.get() || self.0 != 40);
    }
}

#[test]
fn after_a_panic_of_a_destructor_too() {
    let directory = directory();
    let bombs = open(&directory).builder("bombs").weigh(|_| 1); // so it has no pages
    let bombs: DurableQueue<Bomb> = bombs.build().unwrap();
    bombs.push_batch((0..100).map(Bomb)).unwrap();
    ARMED.set(true);
    let panicked = catch_unwind(AssertUnwindSafe(|| bombs.clear_all()));
    ARMED.set(false);
    assert!(panicked.is_err());
    bombs.stats().check().unwrap();
    let copy = copy_of(&directory);
    let left = bombs.len();
    assert!((28..60).contains(&left), "{left}");
    let again: DurableQueue<Bomb> = open(&copy).queue("bombs").unwrap();
    assert_eq!(again.len(), left);
    assert!(again.peek_each(|bomb| assert!(bomb.0 > 40)).is_ok());
}

#[test]
fn what_was_removed_makes_room() {
    let directory = directory();
    let numbers = open(&directory).builder("numbers").capacity(2);
    let numbers = numbers.build().unwrap();
    numbers.push_batch([1, 2]).unwrap();
    assert!(numbers.push(3).unwrap_err().is_full());
    assert_eq!(numbers.retain(|number, _| *number == 1).unwrap(), 1);
    numbers.push(3).unwrap();
    assert_eq!(numbers.pop_batch(9).unwrap(), [1, 3]);
}
