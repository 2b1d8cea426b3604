//! Room that is made when a lease expires: an item that was delivered too often dies, and gives its permit back.

use crate::common::ends;
use crate::common::failing::{INSTANT, NEARLY, SECOND};
use crate::common::futures::Task;
use requeue::{Builder, Clock, Handle, ManualClock, Order, Queue};
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::task::Waker;
use std::thread;
use std::time::{Duration, Instant};

/// A manual clock that counts its timers.
#[derive(Clone, Default)]
struct Timers {
    clock: ManualClock,
    set: Arc<AtomicUsize>,
}

impl Timers {
    fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    fn set(&self) -> usize {
        self.set.load(Ordering::SeqCst)
    }
}

impl Clock for Timers {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn wake_at(&self, at: Instant, waker: &Waker) {
        Clock::wake_at(&self.clock, at, waker);
        self.set.fetch_add(1, Ordering::SeqCst);
    }
}

/// A full queue. Its one item is held, for a second, by a transaction that never ends; then it dies.
struct Full<O: Order<u32>> {
    clock: Timers,
    queue: Queue<u32, O>,
    _holder: Handle<u32, O>,
}

impl<O: Order<u32>> Full<O> {
    fn new(clock: Timers, queue: Queue<u32, O>) -> Self {
        queue.push(1).unwrap();
        let mut holder = queue.handle();
        hold(&mut holder);
        Self {
            clock,
            queue,
            _holder: holder,
        }
    }
}

/// Takes the item in a transaction that is forgotten.
fn hold<O: Order<u32>>(handle: &mut Handle<u32, O>) {
    let tx = handle.begin();
    assert_eq!(tx.pop().as_deref(), Ok(&1));
    mem::forget(tx);
}

fn settings() -> (Timers, Builder<u32>) {
    let clock = Timers::default();
    let builder = Queue::builder().clock(clock.clone());
    (clock, builder.capacity(1).max_attempts(1))
}

/// Checks a full queue of each order.
macro_rules! in_each_order {
    ($check:ident) => {
        let (clock, builder) = settings();
        $check(|| Full::new(clock.clone(), builder.clone().leased(SECOND).build()));
        let (clock, builder) = settings();
        let builder = builder.by_priority();
        $check(|| Full::new(clock.clone(), builder.clone().leased(SECOND).build()));
        let (clock, builder) = settings();
        let builder = builder.fair_by(|item| *item);
        $check(|| Full::new(clock.clone(), builder.clone().leased(SECOND).build()));
    };
}

type Boxed<'h> = Pin<Box<dyn Future<Output = bool> + 'h>>;
type AsyncPush<'h, O> = fn(&'h Queue<u32, O>, &'h mut Handle<u32, O>) -> Boxed<'h>;
type Look<O> = fn(&Queue<u32, O>) -> bool;
type Push<O> = fn(&mut Handle<u32, O>) -> bool;

/// The pushes of 2 that wait as tasks, with or without a handle; whether they succeed.
fn async_pushes<'h, O: Order<u32>>() -> [AsyncPush<'h, O>; 6] {
    [
        |queue, _| Box::pin(async { queue.push_async(2).await.is_ok() }),
        |queue, _| Box::pin(async { queue.push_batch_async([2]).await.is_ok() }),
        |_, handle| Box::pin(async { handle.push_async(2).await.is_ok() }),
        |_, handle| Box::pin(async { handle.push_batch_async([2]).await.is_ok() }),
        |_, handle| {
            Box::pin(async {
                let tx = handle.begin();
                tx.push_async(2).await.is_ok() && tx.try_commit().is_ok()
            })
        },
        |_, handle| {
            Box::pin(async {
                let tx = handle.begin();
                tx.push_batch_async([2]).await.is_ok() && tx.try_commit().is_ok()
            })
        },
    ]
}

/// The same on threads.
fn blocking_pushes<O: Order<u32>>() -> [Push<O>; 6] {
    [
        |handle| handle.push_timeout(2, Duration::MAX).is_ok(),
        |handle| handle.push_blocking(2).is_ok(),
        |handle| handle.push_batch_timeout([2], Duration::MAX).is_ok(),
        |handle| handle.push_batch_blocking([2]).is_ok(),
        |handle| {
            let tx = handle.begin();
            tx.push_timeout(2, Duration::MAX).is_ok() && tx.try_commit().is_ok()
        },
        |handle| {
            let tx = handle.begin();
            tx.push_batch_blocking([2]).is_ok() && tx.try_commit().is_ok()
        },
    ]
}

/// The pushes of 2 that do not wait.
fn pushes<O: Order<u32>>() -> [Push<O>; 4] {
    [
        |handle| handle.push(2).is_ok(),
        |handle| handle.push_batch([2]).is_ok(),
        |handle| {
            let tx = handle.begin();
            tx.push(2).is_ok() && tx.try_commit().is_ok()
        },
        |handle| {
            let tx = handle.begin();
            tx.push_batch([2]).is_ok() && tx.try_commit().is_ok()
        },
    ]
}

#[test]
fn a_task_that_waits_for_room_takes_back_an_expired_lease() {
    fn check<O: Order<u32>>(full: impl Fn() -> Full<O>) {
        for form in 0..6 {
            let Full { clock, queue, .. } = &full();
            let mut handle = queue.handle();
            let mut task = Task::new(async_pushes()[form](queue, &mut handle));
            task.assert_waits();
            clock.advance(NEARLY);
            assert!(!task.was_woken());
            clock.advance(INSTANT);
            assert_eq!((task.rings(), task.output()), (1, true), "form {form}");
            drop(task);
            assert_eq!((queue.pop(), queue.dead_letters().len()), (Ok(2), 1));
        }
    }
    in_each_order!(check);
}

#[test]
fn a_thread_that_waits_for_room_takes_back_an_expired_lease() {
    fn check<O: Order<u32>>(full: impl Fn() -> Full<O>) {
        for push in blocking_pushes() {
            let Full { clock, queue, .. } = &full();
            let mut handle = queue.handle();
            let before = clock.set();
            thread::scope(|scope| {
                let pusher = scope.spawn(move || push(&mut handle));
                while clock.set() == before {
                    thread::yield_now();
                }
                clock.advance(SECOND);
                assert!(pusher.join().unwrap());
            });
            assert_eq!((queue.pop(), queue.dead_letters().len()), (Ok(2), 1));
        }
    }
    ends(|| {
        in_each_order!(check);
    });
}

#[test]
fn a_push_that_does_not_wait_takes_back_an_expired_lease() {
    fn check<O: Order<u32>>(full: impl Fn() -> Full<O>) {
        for push in pushes() {
            let Full { clock, queue, .. } = &full();
            let mut handle = queue.handle();
            clock.advance(NEARLY);
            assert!(!push(&mut handle));
            clock.advance(INSTANT);
            assert!(push(&mut handle));
            assert_eq!((queue.pop(), queue.dead_letters().len()), (Ok(2), 1));
        }
    }
    in_each_order!(check);
}

#[test]
fn inspecting_a_full_queue_takes_back_an_expired_lease() {
    fn check<O: Order<u32>>(full: impl Fn() -> Full<O>) {
        let looks: [Look<O>; 5] = [
            |queue| !queue.is_full(),
            |queue| queue.dead_letters().len() == 1,
            |queue| !queue.dead_letters().is_empty(),
            |queue| queue.dead_letters().visit(|_| {}) == 1,
            |queue| queue.dead_letters().next().is_some(),
        ];
        for look in looks {
            let Full { clock, queue, .. } = &full();
            clock.advance(NEARLY);
            assert!(queue.is_full() && !look(queue));
            clock.advance(INSTANT);
            assert!(look(queue) && !queue.is_full());
        }
    }
    in_each_order!(check);
}

/// The lease begins while the pusher waits: it is woken for that, and waits until the lease expires.
#[test]
fn a_pusher_learns_of_a_lease_that_begins_later() {
    for form in 0..6 {
        let (clock, builder) = settings();
        let queue = builder.leased(SECOND).build();
        queue.push(1).unwrap();
        let (mut holder, mut handle) = (queue.handle(), queue.handle());
        let mut task = Task::new(async_pushes()[form](&queue, &mut handle));
        task.assert_waits();
        hold(&mut holder);
        assert_eq!(task.rings(), 1);
        task.assert_waits();
        clock.advance(SECOND);
        assert_eq!((task.rings(), task.output()), (2, true), "form {form}");
    }
}

/// Something else is due earlier, for which no pusher was woken.
#[test]
fn a_pusher_learns_of_a_lease_behind_another_plan() {
    let (clock, builder) = settings();
    let queue = builder.capacity(2).by_priority().leased(SECOND).build();
    queue.push(1).unwrap();
    let ticket = queue.priority(9999).push(3).unwrap();
    let (mut holder, mut handle) = (queue.handle(), queue.handle());
    let mut task = Task::new(async_pushes()[0](&queue, &mut handle));
    task.assert_waits();
    assert!(queue.reschedule(ticket, queue.now() + SECOND / 2));
    assert_eq!(task.rings(), 0);
    hold(&mut holder);
    assert_eq!(task.rings(), 1);
    task.assert_waits();
    clock.advance(SECOND / 2);
    assert_eq!(task.rings(), 2);
    task.assert_waits();
    clock.advance(SECOND / 2);
    assert!(task.rings() > 2 && task.output());
}

/// How three pushers come to the room that is made after a second.
struct Line<'h> {
    clock: &'h Timers,
    tasks: Vec<Task<Boxed<'h>>>,
}

/// Three pushers of each of these forms wait, the first of them for the lease.
fn in_line(forms: impl IntoIterator<Item = usize>, check: impl Fn(Line<'_>)) {
    for form in forms {
        let (clock, builder) = settings();
        let Full { clock, queue, .. } = &Full::new(clock, builder.leased(SECOND).build());
        let mut handles = [(); 3].map(|()| queue.handle());
        let line = handles.iter_mut();
        let mut tasks: Vec<_> = line
            .map(|handle| Task::new(async_pushes()[form](queue, handle)))
            .collect();
        tasks.iter_mut().for_each(Task::assert_waits);
        check(Line { clock, tasks });
    }
}

fn rings(tasks: &[Task<Boxed<'_>>]) -> Vec<usize> {
    tasks.iter().map(Task::rings).collect()
}

/// Batches are left out: one that becomes the first is woken, since it has not looked before.
#[test]
fn one_pusher_keeps_the_time_for_all() {
    in_line([0, 2, 4], |Line { clock, mut tasks }| {
        clock.advance(SECOND);
        assert_eq!(rings(&tasks), [1, 0, 0]);
        assert!(tasks[0].output());
        assert_eq!(rings(&tasks)[1..], [0, 0]);
    });
}

#[test]
fn a_pusher_that_gives_up_hands_the_time_over() {
    in_line(0..6, |Line { clock, mut tasks }| {
        drop(tasks.remove(0));
        assert_eq!(rings(&tasks), [1, 0], "it looks at the time");
        tasks[0].assert_waits();
        clock.advance(SECOND);
        assert_eq!((rings(&tasks), tasks[0].output()), (vec![2, 0], true));
    });
}

/// A little later all are woken. Batches are left out: one behind another takes nothing.
#[test]
fn a_pusher_that_is_never_polled_delays_the_others_briefly() {
    in_line([0, 2, 4], |Line { clock, mut tasks }| {
        clock.advance(SECOND);
        assert_eq!(rings(&tasks), [1, 0, 0]);
        clock.advance(SECOND);
        assert!(tasks[1].was_woken());
        assert!(tasks[1].output());
    });
}
