//! The key and the weight of an item are computed once by each push, in all forms that wait.

use crate::common::drain;
use crate::common::failing::SECOND;
use crate::common::futures::Task;
use futures::executor::block_on;
use requeue::DuplicateOf::Queued;
use requeue::{Builder, OnDuplicate, PushError, Queue};
use std::future::Future;
use std::hash::{Hash, Hasher};
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Items are equal that differ by a multiple of it.
const KEYS: u32 = 1_000;

/// Pushes an item, and returns whether that was possible.
type Form = fn(Queue<u32>, u32) -> bool;
type Async = fn(Queue<u32>, u32) -> Pin<Box<dyn Future<Output = bool> + Send>>;

/// Those in which a push may replace another item, or follow it.
const SINGLE: [Form; 3] = [
    |queue, item| queue.push_blocking(item).is_ok(),
    |queue, item| queue.push_timeout(item, Duration::MAX).is_ok(),
    |queue, item| queue.handle().push_blocking(item).is_ok(),
];
const OTHERS: [Form; 5] = [
    |queue, item| queue.push_batch_blocking([item]).is_ok(),
    |queue, item| queue.push_batch_timeout([item], Duration::MAX).is_ok(),
    |queue, item| queue.handle().push_batch_blocking([item]).is_ok(),
    |queue, item| queue.after(Duration::ZERO).push_blocking(item).is_ok(),
    |queue, item| {
        let mut handle = queue.handle();
        let tx = handle.begin();
        let pushed = tx.push_blocking(item).is_ok();
        drop(tx.commit());
        pushed
    },
];
const SINGLE_ASYNC: [Async; 3] = [
    |queue, item| Box::pin(async move { queue.push_async(item).await.is_ok() }),
    |queue, item| Box::pin(async move { queue.handle().push_async(item).await.is_ok() }),
    |queue, item| Box::pin(async move { queue.expires_in(SECOND).push_async(item).await.is_ok() }),
];
const OTHERS_ASYNC: [Async; 5] = [
    |queue, item| Box::pin(async move { queue.push_batch_async([item]).await.is_ok() }),
    |queue, item| Box::pin(async move { queue.handle().push_batch_async([item]).await.is_ok() }),
    |queue, item| {
        Box::pin(async move { queue.after(Duration::ZERO).push_async(item).await.is_ok() })
    },
    |queue, item| {
        Box::pin(async move {
            let mut handle = queue.handle();
            let tx = handle.begin();
            let pushed = tx.push_async(item).await.is_ok();
            drop(tx.commit());
            pushed
        })
    },
    |queue, item| {
        Box::pin(async move {
            let mut handle = queue.handle();
            let tx = handle.begin();
            let pushed = tx.push_batch_async([item]).await.is_ok();
            drop(tx.commit());
            pushed
        })
    },
];

/// How often functions were called.
#[derive(Default)]
struct Calls {
    keys: AtomicUsize,
    weights: AtomicUsize,
    /// How often keys were compared.
    comparisons: AtomicUsize,
}

impl Calls {
    /// Those for keys and for weights since the last time.
    fn take(&self) -> (usize, usize) {
        self.comparisons.store(0, Ordering::SeqCst);
        let take = |calls: &AtomicUsize| calls.swap(0, Ordering::SeqCst);
        (take(&self.keys), take(&self.weights))
    }

    /// Waits until keys were compared so often: then an attempt has found that another item has its key.
    fn until_compared(&self, times: usize) {
        while self.comparisons.load(Ordering::SeqCst) < times {
            thread::yield_now();
        }
    }
}

struct Key(u32, Arc<Calls>);

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.1.comparisons.fetch_add(1, Ordering::SeqCst);
        self.0 == other.0
    }
}

impl Eq for Key {}

/// A queue with room for two items.
fn counting() -> (Arc<Calls>, Builder<u32>) {
    let calls = Arc::<Calls>::default();
    let counted = Arc::clone(&calls);
    let builder = Queue::builder().capacity(2).max_ttl(Duration::MAX);
    let builder = builder.unique_by(move |item| {
        counted.keys.fetch_add(1, Ordering::SeqCst);
        Key(item % KEYS, Arc::clone(&counted))
    });
    (calls, builder)
}

fn weighing() -> (Arc<Calls>, Queue<u32>) {
    let (calls, builder) = counting();
    let counted = Arc::clone(&calls);
    let builder = builder.weigh(move |_| {
        counted.weights.fetch_add(1, Ordering::SeqCst);
        1
    });
    (calls, builder.build())
}

/// Another item is staged that has its key.
fn waits_for_a_key(push: impl FnOnce(Queue<u32>, u32) -> bool + Send) {
    let (calls, queue) = weighing();
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.push(1).unwrap();
    assert_eq!(calls.take(), (1, 1));
    thread::scope(|scope| {
        let pushes = scope.spawn(|| push(queue.clone(), 1));
        calls.until_compared(2);
        tx.abort();
        assert!(pushes.join().unwrap());
    });
    assert_eq!(calls.take(), (1, 1));
    assert_eq!(drain(&queue), [1]);
}

#[test]
fn a_push_that_waits_for_a_key_computes_it_once() {
    SINGLE.into_iter().chain(OTHERS).for_each(waits_for_a_key);
    for form in SINGLE_ASYNC.into_iter().chain(OTHERS_ASYNC) {
        waits_for_a_key(|queue, item| block_on(form(queue, item)));
    }
}

#[test]
fn a_push_that_waits_for_room_computes_its_key_and_its_weight_once() {
    for form in SINGLE_ASYNC.into_iter().chain(OTHERS_ASYNC) {
        let (calls, queue) = weighing();
        queue.push_batch([2, 3]).unwrap();
        assert_eq!(calls.take(), (2, 2));
        let mut task = Task::waiting(form(queue.clone(), 1));
        task.assert_waits();
        assert_eq!(queue.pop(), Ok(2));
        assert!(task.output());
        assert_eq!(calls.take(), (1, 1));
    }
}

/// It waits for room first.
fn follows(push: impl Fn(Queue<u32>, u32) -> bool + Sync) {
    let (calls, builder) = counting();
    let queue = builder.on_duplicate(OnDuplicate::Follow).build();
    queue.push_batch([1, 2]).unwrap();
    let held = queue.take().unwrap();
    assert_eq!(calls.take(), (2, 0));
    thread::scope(|scope| {
        let pushes = scope.spawn(|| push(queue.clone(), 1 + KEYS));
        calls.until_compared(1);
        assert_eq!(queue.pop(), Ok(2));
        assert!(pushes.join().unwrap());
    });
    assert!(push(queue.clone(), 1 + 2 * KEYS)); // replaces it
    assert_eq!(calls.take(), (2, 0));
    assert_eq!(held.ack(), 1);
    assert_eq!(drain(&queue), [1 + 2 * KEYS]);
}

#[test]
fn a_push_that_follows_another_item_computes_its_key_once() {
    SINGLE.into_iter().for_each(follows);
    for form in SINGLE_ASYNC {
        follows(|queue, item| block_on(form(queue, item)));
    }
}

/// A key whose destructor panics.
#[derive(PartialEq, Eq, Hash)]
struct Bomb(u32);

impl Drop for Bomb {
    fn drop(&mut self) {
        resume_unwind(Box::new("a key fails"));
    }
}

/// It panics when the push has decided what becomes of the item.
#[test]
fn a_key_whose_destructor_panics_loses_no_item() {
    let queue = Queue::builder().capacity(4).unique_by(|item| Bomb(*item));
    let queue = queue.build();
    assert_eq!(queue.push_batch([1, 2]), Ok(2));
    let refused = Err(PushError::Duplicate(1, Queued));
    assert_eq!(queue.push(1), refused);
    assert_eq!(queue.push_blocking(1), refused);
    assert_eq!(block_on(queue.push_async(1)), refused);
    let refused = PushError::Duplicate(vec![2, 1], Queued);
    assert_eq!(queue.push_batch([2, 1]), Err(refused));
    assert_eq!(drain(&queue), [1, 2]);
}
