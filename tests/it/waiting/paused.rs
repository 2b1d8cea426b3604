//! Queues whose clock is that of a tokio runtime: feature `tokio`.

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};
use std::thread;
use std::time::Duration;

use requeue::{Backoff, Clock, PopError, Queue, TokioClock, Workers};
use tokio::runtime::Builder;
use tokio::task::yield_now;
use tokio::time::{advance, Instant};

const HOUR: Duration = Duration::from_secs(3600);
const SECOND: Duration = Duration::from_secs(1);

/// Notes its calls, by a name.
struct Note(&'static str, Arc<Mutex<Vec<&'static str>>>);

impl Wake for Note {
    fn wake(self: Arc<Self>) {
        self.1.lock().unwrap().push(self.0);
        assert!(self.0 != "panics");
    }
}

async fn others_run() {
    for _ in 0..10 {
        yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_delayed_item_wakes_its_waiter_when_time_is_advanced() {
    let queue = Queue::builder().clock(TokioClock::new()).build();
    queue.after(HOUR).push(7).unwrap();
    let popping = tokio::spawn(queue.pop_async());
    for _ in 0..6 {
        others_run().await;
        assert!(!popping.is_finished());
        assert_eq!(queue.pop(), Err(PopError::Empty));
        advance(HOUR / 6).await;
    }
    others_run().await;
    assert!(popping.is_finished());
    assert_eq!(popping.await.unwrap(), Ok(7));
}

#[tokio::test(start_paused = true)]
async fn an_earlier_item_wakes_its_waiter_before_a_later_one() {
    let queue = Queue::builder().clock(TokioClock::new()).build();
    queue.after(HOUR).push(2).unwrap();
    let popping = tokio::spawn(queue.pop_async());
    others_run().await;
    let start = Instant::now();
    queue.after(SECOND).push(1).unwrap();
    assert_eq!(popping.await.unwrap(), Ok(1));
    assert!(start.elapsed() < 2 * SECOND);
    assert_eq!(queue.pop_async().await, Ok(2));
    assert!(start.elapsed() >= HOUR && start.elapsed() < HOUR + SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_lease_ends_by_the_time_of_the_runtime() {
    let builder = Queue::builder().clock(TokioClock::new());
    let queue = builder.leased(HOUR).build();
    queue.push(7).unwrap();
    let (mut worker, mut other) = (queue.handle(), queue.handle());
    let tx = worker.begin();
    tx.pop().unwrap();
    let start = Instant::now();
    let again = other.begin();
    assert_eq!(*again.pop_async().await.unwrap(), 7);
    assert!(start.elapsed() >= HOUR && start.elapsed() < HOUR + SECOND);
    assert!(tx.try_commit().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_by_the_time_of_the_runtime() {
    let queue = Queue::<u32>::builder().clock(TokioClock::new()).build();
    let start = Instant::now();
    let mut items = Vec::new();
    let popped = queue.pop_batch_timeout_async(1, 1, &mut items, HOUR).await;
    assert_eq!((popped, items.len()), (0, 0));
    assert!(start.elapsed() >= HOUR && start.elapsed() < HOUR + SECOND);
}

#[tokio::test(start_paused = true)]
async fn workers_back_off_and_give_up_by_the_time_of_the_runtime() {
    let queue = Queue::builder().clock(TokioClock::new()).build();
    queue.push(7).unwrap();
    queue.close();
    let start = Instant::now();
    let builder = Workers::builder(&queue).tasks(2).run_timeout(HOUR);
    let tasks = builder.backoff(Backoff::fixed(HOUR));
    let tasks = tasks.run_async(|item, _tx| async move {
        match item.attempts() {
            1 => Err("not now"),
            2 => pending().await,
            _ => Ok(()),
        }
    });
    let report = tasks.join().await;
    assert_eq!((report.done, report.failed), (1, 2));
    assert!(start.elapsed() >= 3 * HOUR && start.elapsed() < 3 * HOUR + 3 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn timers_fire_in_the_order_of_their_times_whoever_sets_them() {
    let clock = TokioClock::new();
    let calls = Arc::default();
    let waker = |name| Waker::from(Arc::new(Note(name, Arc::clone(&calls))));
    let now = clock.now();
    assert_eq!(now, Instant::now().into_std());
    clock.wake_at(now + 3 * SECOND, &waker("third"));
    thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(clock.now(), now); // paused on all threads
            clock.wake_at(now + 2 * SECOND, &waker("panics"));
            clock.wake_at(now + SECOND, &waker("first"));
            clock.wake_at(now, &waker("now"));
        });
    });
    others_run().await;
    assert_eq!(*calls.lock().unwrap(), ["now"]);
    advance(SECOND + SECOND / 2).await;
    others_run().await;
    assert_eq!(*calls.lock().unwrap(), ["now", "first"]);
    tokio::time::sleep(2 * SECOND).await;
    others_run().await;
    assert_eq!(*calls.lock().unwrap(), ["now", "first", "panics", "third"]);
    assert!(format!("{clock:?}").contains("timers: 0"));
}

#[test]
fn timers_fire_when_the_runtime_is_gone() {
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    let calls = Arc::default();
    let waker = |name| Waker::from(Arc::new(Note(name, Arc::clone(&calls))));
    let clock = runtime.block_on(async {
        let clock = TokioClock::new();
        clock.wake_at(clock.now() + HOUR, &waker("early"));
        yield_now().await;
        clock
    });
    assert!(calls.lock().unwrap().is_empty());
    drop(runtime);
    assert_eq!(*calls.lock().unwrap(), ["early"]);
    clock.wake_at(clock.now() + HOUR, &waker("at once"));
    assert_eq!(*calls.lock().unwrap(), ["early", "at once"]);
}

#[test]
#[should_panic(expected = "no reactor running")]
fn a_clock_needs_a_runtime() {
    let _ = TokioClock::new();
}
