//! Items, and keys, that hold a queue of their own kind: a job that schedules its successor.

use crate::common::drain;
use requeue::{ByKey, ByPriority, FairQueue, Leased, Order, PopError, PriorityQueue, Queue};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::thread;
use std::time::Duration;

const TERM: Duration = Duration::from_secs(60);

/// Runs the jobs of a queue on another thread until it is closed and drained, and returns how many.
///
/// Generic, so it also shows that a queue of any order may be sent where its items may.
fn run<T: Send + 'static, O: Order<T> + 'static>(queue: &Queue<T, O>, step: fn(T)) -> usize {
    let queue = queue.clone();
    let worker = thread::spawn(move || {
        let mut count = 0;
        let mut handle = queue.handle();
        while let Ok(job) = handle.pop() {
            step(job);
            count += 1;
        }
        assert_eq!(handle.pop().err(), Some(PopError::Empty));
        count
    });
    worker.join().unwrap()
}

/// A job that pushes its successor, until none is left.
struct Prioritized {
    again: PriorityQueue<Prioritized>,
    left: u16,
}

#[test]
fn an_item_holds_its_priority_queue() {
    let queue = PriorityQueue::by_priority();
    let again = queue.clone();
    let first = Prioritized { again, left: 3 };
    assert!(queue.priority(1).push(first).is_ok());
    let step = |Prioritized { again, left }: Prioritized| {
        if let Some(left) = left.checked_sub(1) {
            let next = again.clone();
            assert!(again
                .priority(left + 1)
                .push(Prioritized { again: next, left })
                .is_ok());
        }
    };
    assert_eq!(run(&queue, step), 4);
}

/// As [`Prioritized`], for leased items.
#[derive(Clone)]
struct LeasedJob {
    again: Queue<LeasedJob, Leased<ByPriority>>,
    left: u16,
}

#[test]
fn a_leased_item_holds_its_priority_queue() {
    let queue = Queue::builder().by_priority().leased(TERM).build();
    let again = queue.clone();
    assert!(queue.push(LeasedJob { again, left: 3 }).is_ok());
    let step = |LeasedJob { again, left }: LeasedJob| {
        if let Some(left) = left.checked_sub(1) {
            let next = again.clone();
            assert!(again
                .priority(left + 1)
                .push(LeasedJob { again: next, left })
                .is_ok());
        }
    };
    assert_eq!(run(&queue, step), 4);
}

/// A queue does not own itself by a weak reference in an item: nothing leaks if an item is left in it.
struct Weakly {
    again: Weak<PriorityQueue<Weakly>>,
    left: u32,
    _alive: Arc<()>,
}

#[test]
fn an_item_holds_its_priority_queue_weakly() {
    let (queue, alive) = (Arc::new(PriorityQueue::by_priority()), Arc::new(()));
    let first = || Weakly {
        again: Arc::downgrade(&queue),
        left: 3,
        _alive: Arc::clone(&alive),
    };
    assert!(queue.push(first()).is_ok());
    let step = |job: Weakly| {
        if let Some(left) = job.left.checked_sub(1) {
            let queue = job.again.upgrade().unwrap();
            assert!(queue.push(Weakly { left, ..job }).is_ok());
        }
    };
    assert_eq!(run(&queue, step), 4);
    assert!(queue.push(first()).is_ok());
    drop(queue);
    assert_eq!(Arc::strong_count(&alive), 1);
}

/// As [`Prioritized`], in a queue that is fair by `left`.
struct Fair {
    again: FairQueue<u32, Fair>,
    left: u32,
}

#[test]
fn an_item_holds_its_fair_queue() {
    let queue = FairQueue::by(|job: &Fair| job.left);
    let again = queue.clone();
    assert!(queue.push(Fair { again, left: 3 }).is_ok());
    let step = |Fair { again, left }: Fair| {
        if let Some(left) = left.checked_sub(1) {
            let next = again.clone();
            assert!(again.push(Fair { again: next, left }).is_ok());
        }
    };
    assert_eq!(run(&queue, step), 4);
}

/// As [`Fair`], for leased items.
#[derive(Clone)]
struct LeasedFair {
    again: Queue<LeasedFair, Leased<ByKey<u32, LeasedFair>>>,
    left: u32,
}

#[test]
fn a_leased_item_holds_its_fair_queue() {
    let builder = Queue::builder().fair_by(|job: &LeasedFair| job.left);
    let queue = builder.leased(TERM).build();
    let again = queue.clone();
    assert!(queue.push(LeasedFair { again, left: 3 }).is_ok());
    let step = |LeasedFair { again, left }: LeasedFair| {
        if let Some(left) = left.checked_sub(1) {
            let next = again.clone();
            assert!(again.push(LeasedFair { again: next, left }).is_ok());
        }
    };
    assert_eq!(run(&queue, step), 4);
}

/// A key that holds the queue which is fair by it.
struct Tenant {
    name: u32,
    queue: OnceLock<FairQueue<Tenant, u32>>,
    seen: Arc<Mutex<Vec<u32>>>,
}

impl PartialEq for Tenant {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Tenant {}

impl Hash for Tenant {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

#[test]
fn a_key_holds_its_fair_queue() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let of = Arc::clone(&seen);
    let tenant = move |name| Tenant {
        name,
        queue: OnceLock::new(),
        seen: Arc::clone(&of),
    };
    let key_of = tenant.clone();
    let queue = FairQueue::by(move |job: &u32| key_of(job % 2));
    (0..6).for_each(|job| queue.push(job).unwrap());
    assert!(queue.keys().iter().all(|(_, items)| items == 3));
    let key = queue.key_of(&7);
    assert!(key.queue.set(queue.clone()).is_ok());
    // The key may be sent with its queue.
    let sent = thread::spawn(move || {
        let jobs = drain(key.queue.get().unwrap());
        key.seen.lock().unwrap().extend(jobs);
    });
    sent.join().unwrap();
    assert_eq!(*seen.lock().unwrap(), [0, 1, 2, 3, 4, 5]);
    assert_eq!(run(&queue, drop), 0);
}
