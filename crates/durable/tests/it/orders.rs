//! Orders, and leases over them.

use super::{directory, open, options};
use requeue::{ManualClock, Pace};
use requeue_durable::StoreError;
use std::time::{Duration, UNIX_EPOCH};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_leased_queue_has_the_methods_of_its_order() {
    let directory = directory();
    let store = open(&directory);
    let clock = ManualClock::new();
    let fair = store.builder("fair").fair_by(|job: &u32| job % 10);
    let fair = fair.key_capacity(2).leased(SECOND).build().unwrap();
    fair.push_batch([11, 21, 12]).unwrap();
    assert!(fair.keys().iter().eq([(&1, 2), (&2, 1)]));
    assert_eq!(fair.key_at_limit(&31), Some(1));

    let by_priority = store.builder::<u32>("by priority").clock(clock.clone());
    let by_priority = by_priority.by_priority().leased(SECOND).build().unwrap();
    let ticket = by_priority.priority(2).push(7).unwrap();
    by_priority.priority(1).push(8).unwrap();
    assert!(by_priority.reprioritize(ticket, 3).unwrap());
    let mut stuck = by_priority.named_handle("stuck");
    let tx = stuck.begin();
    assert_eq!(*tx.pop().unwrap(), 8);
    assert_eq!(by_priority.recover("stuck", clock.now() + SECOND), 1);
    assert_eq!(by_priority.pop_batch(2).unwrap(), [8, 7]);
    assert!(matches!(tx.commit(), Err(StoreError::Expired)));
}

#[test]
fn scheduled_items_are_pushed_by_all_that_push() {
    let directory = directory();
    let clock = ManualClock::new();
    let (start, wall) = (clock.now(), clock.clone());
    let options = options().wall_clock(move || UNIX_EPOCH + (wall.now() - start));
    let store = options.open(directory.path()).unwrap();
    let jobs = store.builder::<u32>("jobs").clock(clock.clone());
    let jobs = jobs.by_priority().build().unwrap();
    let now = clock.now();
    assert_eq!(jobs.next_scheduled(), None);
    let mut handle = jobs.handle();
    handle.at(now + 3 * SECOND).push(3).unwrap();
    jobs.after(2 * SECOND).push(2).unwrap();
    let tx = handle.begin();
    tx.priority(1).at(now + SECOND).push(1).unwrap();
    tx.priority(1).push(0).unwrap();
    tx.commit().unwrap();
    assert_eq!(jobs.next_scheduled(), Some(now + SECOND));
    for number in 0..4 {
        assert_eq!(jobs.pop().unwrap(), number);
        assert!(jobs.pop().unwrap_err().is_empty());
        clock.advance(SECOND);
    }
}

#[test]
fn queues_share_a_pace() {
    let directory = directory();
    let store = open(&directory);
    let clock = ManualClock::new();
    let paced = store.builder::<u32>("paced").clock(clock.clone());
    let paced = paced.pace(Pace::every(SECOND)).build().unwrap();
    let other = store.builder::<u32>("other").clock(clock.clone());
    let other = other.pace(paced.pace()).build().unwrap();
    paced.push(1).unwrap();
    other.push(2).unwrap();
    assert_eq!(paced.pop().unwrap(), 1);
    assert!(other.pop().unwrap_err().is_empty());
    clock.advance(SECOND);
    assert_eq!(other.pop().unwrap(), 2);
}
