//! A worker's wait, poll by poll.

use super::failure::Hooks;
use super::pool::WorkerPool;
use super::step::unless_interrupted;
use super::worker::{Command, Worker};
use crate::Queue;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

/// Counts how often it is woken.
#[derive(Default)]
pub(super) struct Bell(AtomicUsize);

impl Bell {
    pub(super) fn new() -> (Arc<Self>, Waker) {
        let bell = Arc::new(Self::default());
        let waker = Waker::from(Arc::clone(&bell));
        (bell, waker)
    }

    pub(super) fn rings(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_stop_is_for_new_workers_too() {
    let pool = WorkerPool::new("worker".into(), Hooks::default());
    assert_eq!(pool.resize(1).len(), 1);
    pool.command_all(Command::Stop);
    let workers = pool.resize(3);
    assert_eq!(workers.len(), 2);
    assert!(workers.iter().all(|worker| worker.is_interrupted()));
}

#[test]
fn a_worker_takes_what_it_is_woken_for() {
    let queue = Queue::unbounded();
    let worker = Worker::new("worker".into());
    let (bell, waker) = Bell::new();
    let mut handle = queue.handle();
    let tx = handle.begin();
    let mut pop = Box::pin(unless_interrupted(&worker, tx.pop_async()));
    let mut own = Context::from_waker(&waker);
    assert!(pop.as_mut().poll(&mut own).is_pending());
    queue.push(7).unwrap();
    assert_eq!(bell.rings(), 1);
    let popped = pop.as_mut().poll(&mut own);
    assert!(matches!(popped, Poll::Ready(Some(Ok(item))) if *item == 7));
}

/// A worker that is woken for an item, and interrupted before it takes it, passes the wake-up to the next waiter.
#[test]
fn a_worker_that_is_interrupted_passes_its_wake_up_on() {
    let queue = Queue::unbounded();
    let worker = Worker::new("worker".into());
    let (first, waker) = Bell::new();
    let (mut handle, mut other) = (queue.handle(), queue.handle());
    let tx = handle.begin();
    let mut pop = Box::pin(unless_interrupted(&worker, tx.pop_async()));
    let mut own = Context::from_waker(&waker);
    assert!(pop.as_mut().poll(&mut own).is_pending());
    let mut next = other.pop_async();
    let (second, other_waker) = Bell::new();
    let mut context = Context::from_waker(&other_waker);
    assert!(Pin::new(&mut next).poll(&mut context).is_pending());

    queue.push(7).unwrap();
    assert_eq!((first.rings(), second.rings()), (1, 0));
    worker.command(Command::Pause);
    assert!(matches!(pop.as_mut().poll(&mut own), Poll::Ready(None)));
    drop(pop);
    assert_eq!(second.rings(), 1);
    assert_eq!(Pin::new(&mut next).poll(&mut context), Poll::Ready(Ok(7)));
}
