//! Visits to the items of one key: only a few items are set aside at a time.

use std::cell::Cell;
use std::future::Future;
use std::hash::{Hash, Hasher};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::thread;

use super::{filled, names, pull, pull_all, Names};
use crate::common::failing::SECOND;
use crate::common::futures::Task;
use crate::common::{assert_at_rest, drain, panics};
use requeue::{FairQueue, ManualClock, PopError, Queue};

/// More items than are set aside at a time.
const MANY: u32 = 100;

/// The items of one key, as a visit shows them.
#[track_caller]
fn items_of<K, T: Clone + Send>(queue: &FairQueue<K, T>, key: &K) -> Vec<T>
where
    K: Hash + Eq + Send + Sync,
{
    let mut items = Vec::new();
    let count = queue.items_of(key, |item: &T| items.push(item.clone()));
    assert_eq!(count, items.len());
    items
}

fn visit(queue: &Names, key: char) -> String {
    items_of(queue, &key).join(" ")
}

/// A queue of numbers; those that are equal modulo three have the same key.
fn numbers(serial: bool) -> FairQueue<u32, u32> {
    let builder = Queue::builder().fair_by(|number| number % 3);
    let builder = if serial { builder.serial() } else { builder };
    let queue = builder.build();
    queue.handle().push_batch(0..3 * MANY).unwrap();
    queue
}

fn of_key_1() -> Vec<u32> {
    (0..MANY).map(|item| 3 * item + 1).collect()
}

#[test]
fn the_items_of_one_key_are_seen_in_their_order() {
    let queue = filled(names(), "a1 b1 a2 c1 a3 b2");
    assert_eq!(visit(&queue, 'a'), "a1 a2 a3");
    assert_eq!(visit(&queue, 'b'), "b1 b2");
    assert_eq!(visit(&queue, 'x'), "");
    queue.push("a4").unwrap();
    pull(&queue, "a1 b1");
    assert_eq!(visit(&queue, 'a'), "a2 a3 a4");
    assert_eq!(queue.stats().held, 0);
    pull_all(&queue, "c1 a2 b2 a3 a4");
    assert_eq!(visit(&queue, 'a'), "");
}

#[test]
fn each_of_many_keys_is_found() {
    let queue = FairQueue::by(|number: &u32| *number);
    queue.handle().push_batch(0..10 * MANY).unwrap();
    for key in 0..10 * MANY {
        assert_eq!(items_of(&queue, &key), [key]);
    }
}

#[test]
fn held_staged_and_delayed_items_are_not_visited() {
    let clock = ManualClock::new();
    let queue = filled(names().clock(clock.clone()), "a1 a2 a3");
    let mut handle = queue.handle();
    let tx = handle.begin();
    let first = tx.pop().unwrap();
    assert_eq!(visit(&queue, 'a'), "a2 a3");
    tx.push("a4").unwrap();
    tx.retry_after(first, SECOND).unwrap();
    tx.pop().unwrap();
    assert_eq!(visit(&queue, 'a'), "a3");
    tx.abort();
    assert_eq!(visit(&queue, 'a'), "a2 a3");
    clock.advance(SECOND);
    assert_eq!(visit(&queue, 'a'), "a1 a2 a3");
}

#[test]
fn many_items_are_seen_in_parts_and_stay_where_they_are() {
    for serial in [false, true] {
        let queue = numbers(serial);
        let mut seen = 0;
        queue.items_of(&1, |_| {
            let held = queue.stats().held;
            assert!((1..=MANY.into()).contains(&(2 * held)), "{held} are held");
            seen += 1;
        });
        assert_eq!(seen, MANY);
        assert_eq!(items_of(&queue, &1), of_key_1());
        assert_at_rest(&queue, if serial { 3 } else { 3 * seen as usize }, 0);
        assert_eq!(drain(&queue), drain(&numbers(serial)));
    }
}

#[test]
fn other_consumers_pop_items_that_are_not_set_aside() {
    let queue = numbers(false);
    let (mut popped, mut seen) = (Vec::new(), Vec::new());
    let count = queue.items_of(&1, |item| {
        if seen.is_empty() {
            popped = drain(&queue);
        }
        seen.push(*item);
    });
    assert_eq!(count, seen.len());
    assert!(count < MANY as usize / 2, "the rest was popped");
    assert_eq!(seen, of_key_1()[..count]);
    assert!(!popped.iter().any(|item| seen.contains(item)));
    assert_eq!(popped.len() + count, 3 * MANY as usize);
    assert_eq!(drain(&queue), seen);
}

#[test]
fn two_visits_never_share_an_item() {
    for serial in [false, true] {
        let queue = numbers(serial);
        let mut seen = 0;
        queue.items_of(&1, |item| {
            seen += 1;
            if seen % MANY == 1 {
                let mut others = items_of(&queue, &1);
                assert!(!others.contains(item) && others.len() > MANY as usize / 2);
                queue.peek_each(|item| others.push(*item));
                assert!(!others.contains(item));
            }
        });
        assert_eq!(drain(&queue), drain(&numbers(serial)));
    }
}

/// The items are not `Sync`.
#[test]
fn visited_items_cannot_be_popped() {
    let queue = FairQueue::by(|_: &Cell<u32>| ());
    for item in 0..10 * MANY {
        queue.push(Cell::new(item)).unwrap();
    }
    let seen: u32 = thread::scope(|scope| {
        let visits = [(); 3]
            .map(|()| scope.spawn(|| queue.items_of(&(), |item| item.set(item.get() + 10 * MANY))));
        let popped = scope.spawn(|| (0..MANY).map_while(|_| queue.pop().ok()).count());
        let visits = visits.into_iter().map(|visit| visit.join().unwrap());
        let seen = u32::try_from(visits.sum::<usize>()).unwrap();
        assert_eq!(popped.join().unwrap(), MANY as usize);
        seen
    });
    let rest = drain(&queue).into_iter().map(Cell::into_inner);
    let changes: u32 = rest.map(|item| item / (10 * MANY)).sum();
    assert!(changes <= seen && seen > 0);
    queue.stats().check().unwrap();
}

#[test]
fn nothing_is_lost_when_the_visitor_panics() {
    for serial in [false, true] {
        for at in [0, 31, 32, 99] {
            let queue = numbers(serial);
            let mut seen = 0;
            assert!(panics(|| queue.items_of(&1, |_| {
                assert!(seen != at, "the visitor fails");
                seen += 1;
            })));
            assert_eq!(queue.stats().held, 0);
            assert_eq!(drain(&queue), drain(&numbers(serial)));
        }
    }
}

#[test]
fn of_a_serial_key_those_are_seen_too_that_wait() {
    let queue = filled(names().serial(), "a1 a2 a3 b1");
    assert_eq!(visit(&queue, 'a'), "a1 a2 a3");
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.pop().unwrap();
    assert_eq!(visit(&queue, 'a'), "a2 a3");
    assert_eq!((queue.len(), queue.stats().delayed), (1, 2));
    tx.abort();
    assert_eq!(visit(&queue, 'a'), "a1 a2 a3");
    pull_all(&queue, "a1 b1 a2 a3");
}

#[test]
fn a_serial_key_continues_after_the_visit() {
    let queue = filled(names().serial(), "a1 a2 b1");
    let (mut handle, mut waiting) = (queue.handle(), queue.handle());
    let tx = handle.begin();
    assert_eq!(*tx.pop().unwrap(), "a1");
    pull(&queue, "b1");
    let mut task = Task::waiting(waiting.pop_async());
    let mut tx = Some(tx);
    queue.items_of(&'a', |item| {
        assert_eq!(*item, "a2");
        tx.take().unwrap().commit();
        assert_eq!(queue.pop(), Err(PopError::Empty));
        task.assert_waits();
    });
    assert!(task.was_woken());
    assert_eq!(task.output(), Ok("a2"));
}

#[test]
fn a_closed_queue_is_not_drained_during_a_visit() {
    let queue = filled(names(), "a1");
    queue.close();
    let mut handle = queue.handle();
    let mut task = Task::new(handle.pop_async());
    queue.items_of(&'a', |_| {
        assert_eq!(queue.pop(), Err(PopError::Empty));
        task.assert_waits();
    });
    assert_eq!(task.output(), Ok("a1"));
    assert_eq!(queue.pop(), Err(PopError::Closed));
}

/// A waker that calls a closure, once.
struct Hook(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl Wake for Hook {
    fn wake(self: Arc<Self>) {
        let hook = self.0.lock().unwrap().take();
        if let Some(hook) = hook {
            hook();
        }
    }
}

/// Visits the items of a key of a paused queue; `hook` is called when the first of them are returned. Returns the
/// items.
fn visit_with_hook<K>(
    queue: &FairQueue<K, u32>,
    key: &K,
    hook: impl FnOnce() + Send + 'static,
) -> Vec<u32>
where
    K: Hash + Eq + Send + Sync,
{
    let waker = Waker::from(Arc::new(Hook(Mutex::new(Some(Box::new(hook))))));
    let (mut task, mut seen) = (queue.pop_async(), Vec::new());
    queue.pause();
    queue.items_of(key, |item| {
        if seen.is_empty() {
            let poll = Pin::new(&mut task).poll(&mut Context::from_waker(&waker));
            assert!(poll.is_pending());
        }
        seen.push(*item);
    });
    seen
}

/// A waiter that is woken by returned items may pop all of them, and push so many others that one of these gets the
/// number of the key.
#[test]
fn a_key_that_is_removed_during_the_visit_is_not_confused_with_a_new_one() {
    const KEYS: u32 = 2000;
    let queue = FairQueue::by(|item: &u32| item / MANY);
    queue.handle().push_batch(0..MANY).unwrap();
    let others = queue.clone();
    let seen = visit_with_hook(&queue, &0, move || {
        others.resume();
        assert_eq!(drain(&others).len(), MANY as usize);
        others.handle().push_batch(MANY..KEYS * MANY).unwrap();
    });
    assert_eq!(
        queue.len(),
        ((KEYS - 1) * MANY) as usize,
        "the hook has run"
    );
    assert!(seen.len() < MANY as usize / 2);
    assert!(seen.into_iter().all(|item| item < MANY));
}

/// A key whose destructor can panic.
struct Key(Arc<AtomicBool>);

impl Drop for Key {
    fn drop(&mut self) {
        assert!(!self.0.load(Ordering::Relaxed), "the key fails");
    }
}

impl PartialEq for Key {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

#[test]
fn the_destructor_of_a_key_removed_during_the_visit_may_panic() {
    let fails = Arc::new(AtomicBool::new(false));
    let keys = Arc::clone(&fails);
    let queue = FairQueue::by(move |_: &u32| Key(Arc::clone(&keys)));
    queue.push(7).unwrap();
    let (others, fail) = (queue.clone(), Arc::clone(&fails));
    let seen = visit_with_hook(&queue, &Key(Arc::default()), move || {
        others.resume();
        fail.store(true, Ordering::Relaxed);
        assert_eq!(others.pop(), Ok(7));
    });
    assert!(fails.swap(false, Ordering::Relaxed));
    assert_eq!((seen, queue.pop()), (vec![7], Err(PopError::Empty)));
    queue.stats().check().unwrap();
}
