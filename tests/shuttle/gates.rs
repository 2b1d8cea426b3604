//! Queues that are paused, or have a rate or concurrency limit. No queue is closed, since the close would wake a
//! forgotten waiter.

use super::{below, explore, join, one_of, start};
use requeue::{Handle, ManualClock, Pace, Queue};
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::thread;
use std::sync::Arc;
use std::time::Duration;

const NANO: Duration = Duration::from_nanos(1);
const TAKERS: usize = 3;
/// Number of items that each taker takes.
const EACH: usize = 2;

struct Scene {
    queue: Queue<usize>,
    /// Number of held items, if it is limited.
    held: AtomicUsize,
    most: usize,
    /// Number of takers that have all their items.
    done: AtomicUsize,
}

impl Scene {
    fn new(queue: Queue<usize>, most: usize) -> Arc<Self> {
        Arc::new(Self {
            queue,
            held: AtomicUsize::new(0),
            most,
            done: AtomicUsize::new(0),
        })
    }

    fn push(&self) {
        let mut handle = self.queue.handle();
        for item in 0..TAKERS * EACH {
            if below(2) == 0 {
                self.queue.push(item).unwrap();
            } else {
                handle.push(item).unwrap();
            }
        }
    }

    /// Takes some items, and aborts others before.
    fn take(&self) {
        let mut handle = self.queue.handle();
        let mut left = EACH;
        while left > 0 {
            left -= match below(4) {
                0 => usize::from(handle.pop().is_ok()),
                1 => usize::from(handle.pop_blocking().is_ok()),
                2 => handle.pop_batch(left, &mut Vec::new()),
                _ => self.hold(&mut handle),
            };
        }
        // ORDERING: SeqCst, all of this file; shuttle knows no other.
        self.done.fetch_add(1, Ordering::SeqCst);
    }

    fn hold(&self, handle: &mut Handle<usize>) -> usize {
        let tx = handle.begin();
        if below(4) == 0 {
            let _ = tx.peek();
        }
        tx.pop_blocking().unwrap();
        let held = self.held.fetch_add(1, Ordering::SeqCst) + 1;
        assert!(held <= self.most);
        thread::yield_now();
        self.held.fetch_sub(1, Ordering::SeqCst);
        match below(3) {
            0 => tx.abort(),
            _ => return tx.commit().count(),
        }
        0
    }

    fn is_done(&self) -> bool {
        self.done.load(Ordering::SeqCst) == TAKERS
    }
}

#[test]
fn releasing_an_item_wakes_a_waiter() {
    explore(|| {
        let most = one_of(&[1, 2]);
        let scene = Scene::new(Queue::builder().max_held(most).build(), most);
        let takers = start(TAKERS, &scene, Scene::take);
        scene.push();
        join(takers);
    });
}

#[test]
fn no_waiter_misses_a_resume() {
    explore(|| {
        let scene = Scene::new(Queue::unbounded(), usize::MAX);
        let takers = start(TAKERS, &scene, Scene::take);
        scene.queue.pause();
        scene.push();
        for _ in 0..2 {
            scene.queue.resume();
            thread::yield_now();
            scene.queue.pause();
        }
        scene.queue.resume();
        join(takers);
    });
}

#[test]
fn each_start_sees_to_the_next() {
    explore(|| {
        let clock = ManualClock::new();
        let pace = Pace::every(NANO).burst(one_of(&[1, 2]));
        let builder = Queue::builder().clock(clock.clone()).pace(pace);
        let scene = match one_of(&[1, usize::MAX]) {
            1 => Scene::new(builder.max_held(1).build(), 1),
            most => Scene::new(builder.build(), most),
        };
        let takers = start(TAKERS, &scene, Scene::take);
        scene.push();
        while !scene.is_done() {
            clock.advance(NANO);
            thread::yield_now();
        }
        join(takers);
    });
}

#[test]
fn no_waiter_misses_a_change_of_pace() {
    explore(|| {
        let slow = Pace::every(Duration::from_secs(1));
        let queue = Queue::builder().clock(ManualClock::new()).pace(slow);
        let scene = Scene::new(queue.build(), usize::MAX);
        let takers = start(TAKERS, &scene, Scene::take);
        scene.push();
        scene.queue.set_pace(Pace::unlimited());
        join(takers);
    });
}
