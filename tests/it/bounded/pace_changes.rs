//! Changes of a queue's rate limit.

use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::failing::{INSTANT, NEARLY, SECOND};
use crate::common::futures::Task;
use crate::common::waits::{async_pops, blocking_pops};
use crate::common::{ends, panics};
use requeue::{Limiter, ManualClock, Pace, Queue, RateSlot};

const TEN: Duration = Duration::from_secs(10);

/// A queue with a rate limit and a hundred items.
fn paced(pace: Pace) -> (ManualClock, Queue<u32>) {
    let clock = ManualClock::new();
    (clock.clone(), queue_of(&clock, pace))
}

fn queue_of(clock: &ManualClock, pace: Pace) -> Queue<u32> {
    let queue = Queue::builder().clock(clock.clone()).pace(pace).build();
    queue.handle().push_batch(0..100).unwrap();
    queue
}

/// Number of items that can be started now.
fn started(queue: &Queue<u32>) -> u32 {
    let pops = std::iter::from_fn(|| queue.pop().ok());
    u32::try_from(pops.count()).unwrap()
}

/// Number of items that can be started with another pace.
fn started_at(queue: &Queue<u32>, pace: Pace) -> u32 {
    queue.set_pace(pace);
    started(queue)
}

/// Paces of one item per ten seconds, of all kinds, and their bursts.
const PACES: [(fn() -> Pace, u32); 5] = [
    (|| Pace::every(TEN), 1),
    (|| Pace::rate(6, 6 * TEN), 1),
    (|| Pace::every(TEN).burst(3), 3),
    (|| Pace::shared(Pace::every(TEN)), 1),
    (|| Pace::shared(Pace::every(TEN).burst(3)), 3),
];

#[test]
fn a_new_pace_accounts_for_the_starts_of_the_old_one() {
    for (old, first) in PACES {
        for (new, second) in PACES {
            let (clock, queue) = paced(old());
            assert_eq!(started(&queue), first);
            let total: u32 = (0..10).map(|_| started_at(&queue, new())).sum();
            assert_eq!(total, second.saturating_sub(first));
            clock.advance(TEN);
            let total: u32 = (0..10).map(|_| started_at(&queue, new())).sum();
            assert_eq!(total, 1);
        }
    }
}

#[test]
fn another_interval_counts_from_the_last_start_on() {
    let kinds: [fn(Duration) -> Pace; 2] =
        [Pace::every, |interval| Pace::shared(Pace::every(interval))];
    for pace in kinds {
        for (old, new) in [(10, 5), (5, 10), (1, 10), (10, 1)] {
            let (clock, queue) = paced(pace(SECOND * old));
            let start = clock.now();
            assert_eq!(started(&queue), 1);
            clock.advance(SECOND / 2);
            assert_eq!(started_at(&queue, pace(SECOND * new)), 0);
            clock.set(start + SECOND * (new - 1) + NEARLY);
            assert_eq!(started(&queue), 0);
            clock.advance(INSTANT);
            assert_eq!(started(&queue), 1);
        }
    }
}

#[test]
fn the_last_start_counts_also_when_it_is_paid_for() {
    let (clock, queue) = paced(Pace::every(SECOND));
    assert_eq!(started(&queue), 1);
    clock.advance(4 * SECOND);
    assert_eq!(started_at(&queue, Pace::every(TEN)), 0);
    clock.advance(6 * SECOND);
    assert_eq!(started(&queue), 1);
    clock.advance(100 * SECOND);
    assert_eq!(started_at(&queue, Pace::every(TEN)), 1, "long ago");
}

#[test]
fn a_queue_that_has_started_nothing_owes_nothing() {
    let shared = Pace::every(SECOND);
    let (clock, busy) = paced(shared.clone());
    let idle = queue_of(&clock, shared);
    assert_eq!(started(&busy), 1);
    assert_eq!(started_at(&idle, Pace::every(TEN)), 1);
    assert_eq!(started_at(&busy, Pace::every(TEN)), 0);
}

#[test]
fn a_shared_pace_accounts_for_the_starts_of_a_joining_queue() {
    let (clock, queue) = paced(Pace::every(SECOND));
    let shared = Pace::every(TEN);
    let other = queue_of(&clock, shared.clone());
    assert_eq!(started(&queue), 1);
    queue.set_pace(shared.clone());
    assert_eq!((started(&queue), started(&other)), (0, 0));
    clock.advance(TEN);
    assert_eq!((started(&other), started(&queue)), (1, 0));
    queue.set_pace(shared);
    clock.advance(TEN);
    assert_eq!((started(&queue), started(&other)), (1, 0));
}

#[test]
fn a_pace_that_is_set_again_has_not_forgotten() {
    let (_, queue) = paced(Pace::every(TEN));
    let (first, second) = (queue.pace(), Pace::every(TEN).burst(2));
    assert_eq!(started(&queue), 1);
    assert_eq!(started_at(&queue, second.clone()), 1);
    for pace in [&first, &second, &first, &first, &second] {
        assert_eq!(started_at(&queue, pace.clone()), 0);
    }
}

#[test]
fn starts_without_a_pace_are_not_known() {
    let (_, queue) = paced(Pace::unlimited());
    assert!(queue.pop().is_ok());
    assert_eq!(started_at(&queue, Pace::every(TEN)), 1);
    queue.set_pace(Pace::unlimited());
    assert!(queue.pop().is_ok());
    assert_eq!(started_at(&queue, Pace::every(TEN)), 0, "that of before is");
}

#[test]
fn a_peeked_item_is_not_a_start() {
    let (_, queue) = paced(Pace::every(TEN));
    let mut handle = queue.handle();
    let tx = handle.begin();
    drop(tx.peek().unwrap());
    assert_eq!(started_at(&queue, Pace::every(TEN)), 1);
    assert!(tx.peek().is_err());
    assert_eq!(started_at(&queue, Pace::every(TEN)), 0);
}

#[test]
fn an_aborted_item_is_a_start() {
    let (clock, queue) = paced(Pace::every(TEN));
    let mut handle = queue.handle();
    let tx = handle.begin();
    assert!(tx.pop().is_ok());
    tx.abort();
    assert_eq!(started_at(&queue, Pace::every(SECOND)), 0);
    clock.advance(SECOND);
    assert_eq!(started(&queue), 1);
}

/// A limiter that is changed during a call of `start`, and then grants a slot.
struct Late {
    queue: Arc<Mutex<Option<Queue<u32>>>>,
    cancelled: Arc<Mutex<u32>>,
}

impl Limiter for Late {
    fn start(&self, now: Instant) -> Result<RateSlot, Instant> {
        if let Some(queue) = self.queue.lock().unwrap().take() {
            queue.set_pace(Pace::every(TEN));
            assert!(queue.pop().is_ok());
        }
        Ok(RateSlot::new(now, 0))
    }

    fn cancel(&self, _: RateSlot, _: Instant) {
        *self.cancelled.lock().unwrap() += 1;
    }
}

#[test]
fn a_slot_of_a_replaced_pace_is_not_used() {
    let (home, cancelled) = (Arc::default(), Arc::default());
    let late = Late {
        queue: Arc::clone(&home),
        cancelled: Arc::clone(&cancelled),
    };
    let (clock, queue) = paced(Pace::shared(late));
    *home.lock().unwrap() = Some(queue.clone());
    assert_eq!(started(&queue), 0);
    assert_eq!((*cancelled.lock().unwrap(), queue.len()), (1, 99));
    clock.advance(TEN);
    assert_eq!(started(&queue), 1);
}

/// Records the times of its calls, and grants five slots.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<Instant>>>);

impl Limiter for Diary {
    fn start(&self, now: Instant) -> Result<RateSlot, Instant> {
        let mut times = self.0.lock().unwrap();
        if times.len() == 5 {
            return Err(now + SECOND);
        }
        times.push(now);
        Ok(RateSlot::new(now, 0))
    }
}

#[test]
fn a_limiter_is_asked_for_slots_of_earlier_starts() {
    for (burst, expected) in [(1, 1), (4, 4), (9, 5)] {
        let diary = Diary::default();
        let (clock, queue) = paced(Pace::every(TEN).burst(burst));
        assert_eq!(started(&queue), burst);
        let last = clock.now();
        clock.advance(SECOND);
        queue.set_pace(Pace::shared(diary.clone()));
        assert_eq!(*diary.0.lock().unwrap(), vec![last; expected]);
    }
}

#[test]
fn a_panicking_limiter_is_not_set() {
    struct Broken;
    impl Limiter for Broken {
        fn start(&self, _: Instant) -> Result<RateSlot, Instant> {
            panic!("the limiter fails");
        }
    }
    let (clock, queue) = paced(Pace::every(TEN));
    assert_eq!(started(&queue), 1);
    assert!(panics(|| queue.set_pace(Pace::shared(Broken))));
    clock.advance(TEN);
    assert_eq!(started(&queue), 1);
}

#[test]
fn an_interval_changes_for_all_queues_that_share_it() {
    for pop in async_pops() {
        let pace = Pace::every(3600 * SECOND);
        let (clock, left) = paced(pace.clone());
        let right = queue_of(&clock, Pace::unlimited());
        right.set_pace(pace.clone());
        assert_eq!(started(&left), 1);
        let (mut a, mut b) = (left.handle(), right.handle());
        let mut tasks = [Task::waiting(pop(&mut a)), Task::waiting(pop(&mut b))];
        pace.set_interval(SECOND);
        for task in &mut tasks {
            assert!(task.was_woken());
            task.assert_waits();
        }
        clock.advance(NEARLY);
        assert!(tasks.iter_mut().all(|task| task.poll().is_pending()));
        clock.advance(INSTANT);
        assert!(tasks[0].poll().is_ready() && tasks[1].poll().is_pending());
        clock.advance(SECOND);
        assert_eq!(tasks[1].output(), Ok(0));
    }
}

#[test]
fn a_longer_interval_delays_waiters() {
    for pop in async_pops() {
        let pace = Pace::rate(1, SECOND);
        let (clock, queue) = paced(pace.clone());
        assert_eq!(started(&queue), 1);
        let mut handle = queue.handle();
        let mut task = Task::waiting(pop(&mut handle));
        pace.set_rate(1, TEN);
        task.assert_waits();
        clock.advance(SECOND * 9 + NEARLY);
        task.assert_waits();
        clock.advance(INSTANT);
        assert_eq!(task.output(), Ok(1));
    }
}

#[test]
fn threads_that_wait_learn_of_another_interval() {
    for (name, pop) in blocking_pops() {
        ends(move || {
            let pace = Pace::every(3600 * SECOND);
            let (clock, queue) = paced(pace.clone());
            assert_eq!(started(&queue), 1);
            clock.advance(SECOND);
            let begin = Barrier::new(2);
            thread::scope(|scope| {
                let waiter = scope.spawn(|| {
                    let mut handle = queue.handle();
                    begin.wait();
                    pop(&mut handle)
                });
                begin.wait();
                while queue.stats().waiting == 0 {
                    thread::yield_now();
                }
                pace.set_interval(SECOND);
                assert_eq!(waiter.join().unwrap(), Ok(1), "{name}");
            });
        });
    }
}

#[test]
fn a_queue_that_has_another_pace_by_now_is_left_alone() {
    let (old, new) = (Pace::every(TEN), Pace::every(TEN));
    let (_, queue) = paced(old.clone());
    assert_eq!(started(&queue), 1);
    queue.set_pace(old.clone());
    queue.set_pace(new.clone());
    let mut handle = queue.handle();
    let mut task = Task::waiting(handle.pop_async());
    old.set_interval(SECOND);
    assert!(!task.was_woken());
    new.set_interval(SECOND);
    assert!(task.was_woken());
    task.assert_waits();
}

/// A limiter that delegates to a pace.
struct Made(Pace);

impl Limiter for Made {
    fn start(&self, now: Instant) -> Result<RateSlot, Instant> {
        self.0.start(now)
    }
}

#[test]
fn a_changed_limiter_wakes_the_waiters_of_its_queues() {
    let inner = Pace::every(3600 * SECOND);
    let outer = Pace::shared(Made(inner.clone()));
    let (clock, queue) = paced(outer.clone());
    assert_eq!(started(&queue), 1);
    clock.advance(SECOND);
    let mut handle = queue.handle();
    let mut task = Task::waiting(handle.pop_async());
    inner.set_interval(SECOND);
    assert!(!task.was_woken(), "it does not know of the outer one");
    outer.wake_waiters();
    assert!(task.was_woken());
    assert_eq!(task.output(), Ok(1));
}

#[test]
fn an_interval_of_zero_is_a_short_one() {
    let pace = Pace::every(TEN);
    let (clock, queue) = paced(pace.clone());
    assert_eq!(started(&queue), 1);
    pace.set_interval(Duration::ZERO);
    assert_eq!(started(&queue), 0);
    clock.advance(INSTANT);
    assert_eq!(started(&queue), 1);
    pace.set_interval(Duration::MAX);
    clock.advance(1_000_000 * TEN);
    assert_eq!(started(&queue), 0);
}

#[test]
fn a_pace_without_an_interval_cannot_be_changed() {
    for pace in [Pace::unlimited(), Pace::shared(Made(Pace::every(TEN)))] {
        assert!(panics(|| pace.set_interval(SECOND)));
        assert!(panics(|| pace.set_rate(1, SECOND)));
        pace.wake_waiters();
    }
    assert!(panics(|| Pace::every(TEN).set_rate(0, SECOND)));
}
