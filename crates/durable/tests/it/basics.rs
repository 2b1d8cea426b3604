//! What is committed is there again; what is not is not.

use super::{copy_of, directory, open, options};
use requeue_durable::{commit_all, Cause, Durability, DurableQueue, PopError, StoreError};
use std::time::Duration;

#[test]
fn pushes_survive_in_their_order() {
    let directory = directory();
    let store = open(&directory);
    let queue: DurableQueue<u32> = store.queue("numbers").unwrap();
    queue.push(0).unwrap();
    queue.push_batch(1..5).unwrap();
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.push(5).unwrap();
    tx.commit().unwrap();
    drop((handle, queue, store));

    let queue: DurableQueue<u32> = open(&directory).queue("numbers").unwrap();
    assert_eq!(queue.pop_batch(10).unwrap(), [0, 1, 2, 3, 4, 5]);
    assert!(queue.pop().unwrap_err().is_empty());
}

#[test]
fn pops_survive() {
    let directory = directory();
    let queue: DurableQueue<u32> = open(&directory).queue("numbers").unwrap();
    queue.push_batch(0..4).unwrap();
    assert_eq!(queue.pop().unwrap(), 0);
    let tx = queue.begin_owned();
    assert_eq!(*tx.pop().unwrap(), 1);
    assert_eq!(tx.commit().unwrap().next(), Some(1));
    drop(queue);

    let queue: DurableQueue<u32> = open(&directory).queue("numbers").unwrap();
    assert_eq!(queue.pop_batch(10).unwrap(), [2, 3]);
}

#[test]
fn items_of_an_ended_transaction_are_back_at_the_head() {
    let directory = directory();
    let queue: DurableQueue<String> = open(&directory).queue("jobs").unwrap();
    queue.push_batch(["a", "b", "c"].map(String::from)).unwrap();
    let tx = queue.begin_owned();
    assert_eq!(tx.pop_batch(2).unwrap().len(), 2);
    tx.push("d".into()).unwrap();
    tx.abort();
    assert_eq!(queue.len(), 3);
    let tx = queue.begin_owned();
    *tx.pop().unwrap() = "changed".into();
    tx.push("e".into()).unwrap();
    std::mem::forget(tx);
    queue.push("f".into()).unwrap();
    // The store cannot be dropped: a transaction was leaked. Another directory has what the disk has.
    let copy = copy_of(&directory);
    let queue: DurableQueue<String> = open(&copy).queue("jobs").unwrap();
    assert_eq!(queue.pop_batch(10).unwrap(), ["a", "b", "c", "f"]);
}

#[test]
fn several_queues_commit_as_one() {
    let directory = directory();
    let store = open(&directory);
    let orders: DurableQueue<u32> = store.queue("orders").unwrap();
    let invoices: DurableQueue<String> = store.queue("invoices").unwrap();
    orders.push(7).unwrap();
    let (mut from, mut to) = (orders.handle(), invoices.handle());
    let (order, invoice) = (from.begin(), to.begin());
    let number = *order.pop().unwrap();
    invoice.push(format!("invoice {number}")).unwrap();
    let (mut taken, _) = commit_all((order, invoice)).unwrap();
    assert_eq!(taken.next(), Some(7));
    drop(taken);
    drop((from, to, orders, invoices, store));

    let store = open(&directory);
    let orders: DurableQueue<u32> = store.queue("orders").unwrap();
    let invoices: DurableQueue<String> = store.queue("invoices").unwrap();
    assert!(orders.is_empty());
    assert_eq!(invoices.pop().unwrap(), "invoice 7");
}

#[test]
fn a_buffered_commit_is_visible_at_once_and_on_the_disk_when_the_store_closes() {
    let directory = directory();
    let buffered = Durability::Buffered {
        at_most: Duration::from_secs(3600),
    };
    let store = options()
        .durability(buffered)
        .open(directory.path())
        .unwrap();
    let queue: DurableQueue<u32> = store.queue("numbers").unwrap();
    queue.push_batch(0..100).unwrap();
    assert_eq!(queue.pop_batch(10).unwrap().len(), 10);
    drop((queue, store));
    let queue: DurableQueue<u32> = open(&directory).queue("numbers").unwrap();
    assert_eq!(queue.len(), 90);
    assert_eq!(queue.pop().unwrap(), 10);
}

#[test]
fn a_flush_and_a_synced_commit_write_the_buffered_commits_before_them() {
    let directory = directory();
    let store = open(&directory);
    let at_most = Duration::from_secs(3600);
    let queue: DurableQueue<u32> = store.queue("numbers").unwrap();
    let push = |number, durability| {
        let tx = queue.begin_owned();
        tx.push(number).unwrap();
        tx.commit_with(durability).unwrap();
    };
    let crashed = || {
        let copy = copy_of(&directory);
        let queue: DurableQueue<u32> = open(&copy).queue("numbers").unwrap();
        queue.pop_batch(10).unwrap()
    };
    push(1, Durability::Buffered { at_most });
    store.flush().unwrap();
    assert_eq!(crashed(), [1]);
    push(2, Durability::Buffered { at_most });
    push(3, Durability::Synced);
    assert_eq!(crashed(), [1, 2, 3]);
}

#[test]
fn asynchronous_commits() {
    let directory = directory();
    let store = open(&directory);
    let queue: DurableQueue<u32> = store.queue("numbers").unwrap();
    futures::executor::block_on(async {
        let mut handle = queue.handle();
        handle.push_async(1).await.unwrap();
        handle.push_async(2).await.unwrap();
        assert_eq!(handle.pop_async().await.unwrap(), 1);
        let tx = handle.begin();
        let item = tx.pop_async().await.unwrap();
        assert_eq!(*item, 2);
        tx.push_async(3).await.unwrap();
        assert_eq!(tx.commit_async().await.unwrap().collect::<Vec<_>>(), [2]);
        assert_eq!(handle.pop_batch_async(1, 5).await.unwrap(), [3]);
        queue.push_async(4).await.unwrap();
        assert_eq!(queue.pop_async().await.unwrap(), 4);
    });
}

#[test]
fn a_commit_whose_future_is_dropped_is_committed() {
    let directory = directory();
    let queue: DurableQueue<u32> = open(&directory).queue("numbers").unwrap();
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.push(1).unwrap();
    let mut commit = Box::pin(tx.commit_async());
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let _ = std::future::Future::poll(commit.as_mut(), &mut context);
    drop(commit);
    assert_eq!(handle.pop().unwrap(), 1);
    let tx = handle.begin();
    tx.push(2).unwrap();
    drop(tx.commit_async());
    assert!(handle.pop().unwrap_err().is_empty());
}

#[test]
fn priorities_tickets_and_keys() {
    let directory = directory();
    let store = open(&directory);
    let jobs = store
        .builder::<String>("jobs")
        .by_priority()
        .build()
        .unwrap();
    jobs.push("normal".into()).unwrap();
    let later = jobs.priority(u16::MAX).push("later".into()).unwrap();
    let never = jobs
        .after(Duration::from_secs(1_000_000))
        .push("never".into())
        .unwrap();
    jobs.priority(0).push("urgent".into()).unwrap();
    let fair = store
        .builder::<(u8, u32)>("fair")
        .fair_by(|item| item.0)
        .build()
        .unwrap();
    fair.push_batch([(1, 1), (1, 2), (2, 1)]).unwrap();
    drop((jobs, fair, store));

    let store = open(&directory);
    assert!(matches!(
        store.queue::<String>("jobs"),
        Err(StoreError::OtherOrder { .. })
    ));
    let jobs = store
        .builder::<String>("jobs")
        .by_priority()
        .build()
        .unwrap();
    assert!(jobs.reprioritize(later, 2).unwrap());
    assert_eq!(jobs.cancel(never).unwrap().as_deref(), Some("never"));
    assert_eq!(jobs.cancel(never).unwrap(), None);
    drop(jobs);
    let jobs = store
        .builder::<String>("jobs")
        .by_priority()
        .build()
        .unwrap();
    assert_eq!(jobs.pop_batch(9).unwrap(), ["urgent", "later", "normal"]);
    let fair = store
        .builder::<(u8, u32)>("fair")
        .fair_by(|item| item.0)
        .build()
        .unwrap();
    assert_eq!(fair.pop_batch(9).unwrap(), [(1, 1), (2, 1), (1, 2)]);
}

#[test]
fn dead_letters_and_attempts_survive() {
    let directory = directory();
    let store = open(&directory);
    let jobs = || {
        store
            .builder::<String>("jobs")
            .max_attempts(3)
            .build()
            .unwrap()
    };
    let queue = jobs();
    queue
        .push_batch(["poison", "bad"].map(String::from))
        .unwrap();
    queue.begin_owned().pop().map(drop).unwrap();
    queue.begin_owned().pop().map(drop).unwrap();
    drop(queue);
    let queue = jobs();
    let tx = queue.begin_owned();
    let item = tx.pop().unwrap();
    assert_eq!((item.as_str(), item.attempts()), ("poison", 3));
    let bad = tx.pop().unwrap();
    assert_eq!(bad.attempts(), 1);
    tx.fail(bad, "no good").unwrap();
    tx.abort();
    assert_eq!(queue.dead_letters().len(), 2);
    drop(queue);
    let queue = jobs();
    let letters = queue.dead_letters().all().unwrap();
    let seen: Vec<_> = letters
        .iter()
        .map(|letter| (letter.item.as_str(), letter.error.as_deref()))
        .collect();
    assert_eq!(seen, [("bad", Some("no good")), ("poison", None)]);
    assert_eq!(letters[1].reason, Cause::Failed(requeue::Reason::Aborted));
    assert!(queue.is_empty());
    assert_eq!(queue.dead_letters().requeue_all().unwrap(), 2);
    drop(queue);
    let queue = jobs();
    assert_eq!(queue.dead_letters().len(), 0);
    assert_eq!(queue.len(), 2);
}

#[test]
fn close_survives() {
    let directory = directory();
    let store = open(&directory);
    let queue: DurableQueue<u32> = store.queue("numbers").unwrap();
    queue.push(1).unwrap();
    assert!(queue.close().unwrap());
    drop(queue);
    let queue: DurableQueue<u32> = store.queue("numbers").unwrap();
    assert!(queue.push(2).unwrap_err().is_closed());
    assert_eq!(queue.pop().unwrap(), 1);
    assert!(matches!(queue.pop(), Err(PopError::Closed)));
    drop(queue);
    let queue = store.builder("numbers").reopened().build().unwrap();
    queue.push(2).unwrap();
}

#[test]
fn a_backlog_beyond_the_memory() {
    let directory = directory();
    let store = open(&directory);
    let queue = store
        .builder::<Vec<u8>>("pages")
        .memory(10_000)
        .build()
        .unwrap();
    for index in 0..100_u8 {
        queue.push(vec![index; 1_000]).unwrap();
    }
    for index in 0..50_u8 {
        assert_eq!(queue.pop().unwrap(), [index; 1_000]);
    }
    drop(queue);
    let queue = store
        .builder::<Vec<u8>>("pages")
        .memory(10_000)
        .build()
        .unwrap();
    for index in 50..100_u8 {
        assert_eq!(queue.pop().unwrap(), [index; 1_000]);
    }
}

#[test]
fn a_wait_ends_at_its_deadline() {
    let directory = directory();
    let clock = requeue::ManualClock::new();
    let queue = options()
        .open(directory.path())
        .unwrap()
        .builder::<u32>("numbers")
        .capacity(1)
        .clock(clock.clone())
        .build()
        .unwrap();
    let now = queue.now();
    let later = now + Duration::from_secs(1);
    assert!(queue.pop_deadline(now).unwrap_err().is_empty());
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| queue.handle().begin().pop_deadline(later).map(|item| *item));
        while queue.stats().waiting == 0 {
            std::thread::yield_now();
        }
        clock.advance(Duration::from_secs(1));
        assert!(waiter.join().unwrap().unwrap_err().is_empty());
    });
    assert!(queue.wait_idle_deadline(now));
    queue.push_deadline(7, later).unwrap();
    assert!(queue.push_deadline(8, later).unwrap_err().is_full());
    assert!(!queue.wait_idle_deadline(later));
    let pushed = queue.handle().push_batch_deadline([8], later);
    assert!(pushed.unwrap_err().is_full());
    let found = requeue_durable::pop_any_deadline(&mut [queue.handle()], now);
    assert_eq!(found.unwrap(), (0, 7));
    assert!(queue.pop_batch_deadline(1, 2, later).unwrap().is_empty());
}

#[test]
fn delays_survive() {
    use std::sync::{Arc, Mutex};
    use std::time::{SystemTime, UNIX_EPOCH};
    let directory = directory();
    let wall = Arc::new(Mutex::new(UNIX_EPOCH + Duration::from_secs(1_000_000)));
    let clock = requeue::ManualClock::new();
    let build = || {
        let time = Arc::clone(&wall);
        let store = options()
            .wall_clock(move || -> SystemTime { *time.lock().unwrap() })
            .open(directory.path())
            .unwrap();
        store
            .builder::<u32>("numbers")
            .clock(clock.clone())
            .build()
            .unwrap()
    };
    let queue = build();
    queue.push_batch([1, 2]).unwrap();
    let tx = queue.begin_owned();
    tx.retry_after(tx.pop().unwrap(), Duration::from_secs(100))
        .unwrap();
    drop(tx);
    drop(queue);
    *wall.lock().unwrap() += Duration::from_secs(40);
    let queue = build();
    assert_eq!(queue.pop().unwrap(), 2);
    assert!(queue.pop().unwrap_err().is_empty());
    clock.advance(Duration::from_secs(59));
    assert!(queue.pop().unwrap_err().is_empty());
    clock.advance(Duration::from_secs(1));
    let tx = queue.begin_owned();
    let item = tx.pop().unwrap();
    assert_eq!((*item, item.attempts()), (1, 2));
}

#[test]
fn a_directory_is_open_once_and_must_be_a_store() {
    let directory = directory();
    let store = open(&directory);
    assert!(matches!(
        options().open(directory.path()),
        Err(StoreError::Locked(_))
    ));
    let queue: DurableQueue<u32> = store.queue("q").unwrap();
    assert!(matches!(store.queue::<u32>("q"), Err(StoreError::InUse(_))));
    drop((store, queue));
    std::fs::write(
        directory.path().join("version"),
        "requeue-durable, version 99\n",
    )
    .unwrap();
    assert!(matches!(
        options().open(directory.path()),
        Err(StoreError::Version { found: 99, .. })
    ));
    let other = super::directory();
    std::fs::write(other.path().join("photo.jpg"), "...").unwrap();
    assert!(matches!(
        options().open(other.path()),
        Err(StoreError::NotAStore(_))
    ));
}

/// The death of an item is written without a wait, so it is in one group with what follows at once.
#[test]
fn a_letter_that_is_requeued_in_the_group_of_its_death() {
    let directory = directory();
    let store = open(&directory);
    let jobs = || {
        store
            .builder::<u32>("jobs")
            .max_attempts(1)
            .build()
            .unwrap()
    };
    let queue = jobs();
    for number in 0..50 {
        queue.push(number).unwrap();
        let tx = queue.begin_owned();
        tx.pop().unwrap();
        tx.abort();
        let letter = queue.dead_letters().oldest().unwrap().unwrap();
        assert_eq!(letter.item, number);
        assert!(queue.dead_letters().requeue(letter.id()).unwrap());
        assert_eq!(queue.pop().unwrap(), number);
    }
    drop(queue);
    let queue = jobs();
    assert_eq!((queue.len(), queue.dead_letters().len()), (0, 0));
}

#[test]
fn a_batch_without_room_comes_back_whole() {
    let directory = directory();
    let store = open(&directory);
    let queue = store.builder::<u32>("numbers").capacity(3).build().unwrap();
    queue.push_batch([1, 2]).unwrap();
    let refused = queue.push_batch([3, 4]).unwrap_err();
    assert_eq!(refused.into_inner(), Some(vec![3, 4]));
    let tx = queue.begin_owned();
    tx.push(3).unwrap();
    assert!(tx.push_batch([4, 5]).unwrap_err().is_full());
    tx.commit().unwrap();
    drop((queue, store));
    let queue: DurableQueue<u32> = open(&directory).queue("numbers").unwrap();
    let mut items = queue.pop_batch(9).unwrap();
    items.sort_unstable();
    assert_eq!(items, [1, 2, 3]);
}
