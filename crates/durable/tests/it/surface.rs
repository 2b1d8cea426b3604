//! What is more than the verbs: letters that overflow, peeks, selecting.

use super::{directory, open};
use requeue::ManualClock;
use requeue_durable::{
    hold_any, pop_any, pop_any_async, DurableQueue, PopError, PushError, StoreError,
};
use std::sync::mpsc::channel;
use std::time::Duration;

#[test]
fn letters_keep_their_schedule() {
    let directory = directory();
    let build = || {
        open(&directory)
            .builder::<u32>("numbers")
            .by_priority()
            .build()
            .unwrap()
    };
    let queue = build();
    queue.priority(3).push(3).unwrap();
    let moved = queue.priority(9).push(1).unwrap();
    assert!(queue.reprioritize(moved, 1).unwrap());
    let mut tx = queue.begin_owned();
    assert_eq!(tx.pop_batch(2).unwrap().len(), 2);
    tx.fail_all("no good").unwrap();
    drop(tx);
    drop(queue);
    let queue = build();
    queue.priority(2).push(2).unwrap();
    assert_eq!(queue.dead_letters().requeue_all().unwrap(), 2);
    assert_eq!(queue.pop_batch(9).unwrap(), [1, 2, 3]);
}

#[test]
fn letters_beyond_the_limit_are_handed_over_and_gone() {
    let directory = directory();
    let store = open(&directory);
    let (send, oldest) = channel();
    let build = |most| {
        let send = send.clone();
        store
            .builder::<u32>("numbers")
            .max_dead_letters(most, move |letter| send.send(letter.item).unwrap())
            .build()
            .unwrap()
    };
    let queue = build(2);
    queue.push_batch(0..5).unwrap();
    let mut tx = queue.begin_owned();
    tx.pop_batch(5).unwrap();
    tx.fail_all("no good").unwrap();
    drop(tx);
    assert_eq!(oldest.iter().take(3).collect::<Vec<_>>(), [0, 1, 2]);
    drop(queue);
    let queue = build(1);
    assert_eq!(oldest.recv(), Ok(3));
    assert_eq!(queue.dead_letters().len(), 1);
}

#[test]
fn peeks_beyond_the_memory() {
    let directory = directory();
    let queue = open(&directory)
        .builder::<String>("jobs")
        .memory(0)
        .max_attempts(9)
        .build()
        .unwrap();
    queue.push("job".into()).unwrap();
    let mut handle = queue.handle();
    assert_eq!(handle.peek_with(String::len).unwrap(), 3);
    let tx = handle.begin();
    assert_eq!(*tx.peek_blocking().unwrap(), "job");
    let item = tx.peek_timeout(Duration::ZERO).unwrap().take();
    assert_eq!((item.as_str(), item.attempts()), ("job", 1));
    assert!(tx.peek().unwrap_err().is_empty());
    assert_eq!(tx.commit().unwrap().next().as_deref(), Some("job"));
    queue.close().unwrap();
    let closed = futures::executor::block_on(async { handle.begin().peek_async().await.map(drop) });
    assert!(matches!(closed, Err(PopError::Closed)));
}

#[test]
fn the_first_item_of_several_queues() {
    let directory = directory();
    let store = open(&directory);
    let queues: Vec<DurableQueue<u32>> = ["a", "b", "c"]
        .map(|name| store.queue(name).unwrap())
        .into();
    let mut handles: Vec<_> = queues.iter().map(DurableQueue::handle).collect();
    queues[2].push(1).unwrap();
    assert_eq!(pop_any(&mut handles).unwrap(), (2, 1));
    queues[1].push(2).unwrap();
    let popped = futures::executor::block_on(pop_any_async(&mut handles));
    assert_eq!(popped.unwrap(), (1, 2));
    queues[0].push(3).unwrap();
    {
        let transactions: Vec<_> = handles.iter_mut().map(|handle| handle.begin()).collect();
        let (which, item) = hold_any(&transactions).unwrap();
        assert_eq!((which, *item), (0, 3));
    }
    assert_eq!(queues[0].len(), 1);
    queues[0].clear().unwrap();
    for queue in &queues {
        queue.close().unwrap();
    }
    assert!(matches!(pop_any(&mut handles), Err(PopError::Closed)));
}

#[test]
fn keys_take_turns_after_a_restart() {
    let directory = directory();
    let build = || {
        let store = open(&directory);
        let builder = store
            .builder::<u32>("numbers")
            .fair_by(|number| number / 100);
        builder.key_capacity(3).build().unwrap()
    };
    let queue = build();
    queue.push_batch([100, 101, 102, 200, 300, 301]).unwrap();
    assert!(matches!(queue.push(103), Err(PushError::Full(103))));
    assert_eq!(queue.pop_batch(2).unwrap(), [100, 200]);
    drop(queue);
    let queue = build();
    let first = [(); 2].map(|()| queue.pop().unwrap() / 100);
    assert!(first == [1, 3] || first == [3, 1], "{first:?}");
    assert_eq!(queue.keys().iter().len(), 2);
    let mut numbers = queue.pop_batch(9).unwrap();
    numbers.sort_unstable();
    assert_eq!(numbers, [102, 301]);
}

#[test]
fn items_delivered_before_a_restart_come_first() {
    let directory = directory();
    let build = || {
        let store = open(&directory);
        store
            .builder::<u32>("numbers")
            .max_attempts(9)
            .build()
            .unwrap()
    };
    let queue = build();
    queue.push_batch(0..9).unwrap();
    queue.begin_owned().pop().map(drop).unwrap();
    drop(queue);
    let queue = build();
    let mut handle = queue.handle();
    let tx = handle.begin();
    assert_eq!(*tx.pop().unwrap(), 0);
    tx.fail(tx.pop().unwrap(), "no good").unwrap();
    tx.abort();
    let numbers: Vec<_> = (0..8).map(|_| handle.pop().unwrap()).collect();
    assert_eq!(numbers, [0, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn a_removed_queue_leaves_nothing_and_others_alone() {
    let directory = directory();
    let store = open(&directory);
    let build = |name: &str| {
        let builder = store.builder::<u32>(name).max_attempts(1);
        builder.build().unwrap()
    };
    let (old, other) = (build("old"), build("other"));
    old.push_batch([1, 2, 3]).unwrap();
    other.push(4).unwrap();
    old.begin_owned().pop().map(drop).unwrap();
    assert!(matches!(store.remove("old"), Err(StoreError::InUse(_))));
    drop(old);
    assert!(store.remove("old").unwrap());
    assert!(!store.remove("old").unwrap());
    drop(other);
    let old = build("old");
    assert_eq!((old.len(), old.dead_letters().len()), (0, 0));
    old.push(5).unwrap();
    drop((old, store));
    let store = open(&directory);
    assert_eq!(store.queues(), ["old", "other"]);
    assert_eq!(store.queue::<u32>("old").unwrap().pop().unwrap(), 5);
    assert_eq!(store.queue::<u32>("other").unwrap().pop().unwrap(), 4);
}

/// Every type of `requeue` that a method takes or returns has a name here.
#[test]
fn no_other_crate_is_needed_to_name_a_type() {
    use requeue_durable::{
        Backoff, Clock, DeliveryId, Held, Imbalance, Limiter, ManualClock, Pace, RateSlot, Stats,
        SystemClock, WeakPace,
    };
    fn clocks(_: &impl Clock) {}
    clocks(&SystemClock);
    let directory = directory();
    let builder = open(&directory).builder("jobs").clock(ManualClock::new());
    let builder = builder.backoff(Backoff::fixed(Duration::ZERO));
    let jobs: DurableQueue<u32> = builder.pace(Pace::unlimited()).build().unwrap();
    let _: Option<(WeakPace, RateSlot, Box<dyn Limiter>)> = None;
    jobs.push(7).unwrap();
    let tx = jobs.begin_owned();
    tx.pop().unwrap();
    let id: DeliveryId = tx.id();
    let held: Vec<Held> = jobs.held();
    assert_eq!(held[0].id, id);
    let stats: Stats = jobs.stats();
    let checked: Result<(), Imbalance> = stats.check();
    checked.unwrap();
}

#[test]
fn a_pause_ends_by_the_clock_of_the_queue() {
    let directory = directory();
    let clock = ManualClock::new();
    let queue = open(&directory).builder("numbers").clock(clock.clone());
    let queue = queue.build().unwrap();
    queue.push(1).unwrap();
    queue.pause_for(Duration::from_secs(1));
    assert!(queue.is_paused() && matches!(queue.pop(), Err(PopError::Empty)));
    clock.advance(Duration::from_secs(1));
    assert_eq!(queue.pop().unwrap(), 1);
}
