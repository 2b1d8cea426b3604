//! Commits of a task that are under way while it runs on the next items.

use super::step::{unless_panicked, Left, QueueWorker};
use crate::backend::Backend;
use crate::sync::{lock, swallow_panic, Mutex};
use std::future::{poll_fn, Future};
use std::mem;
use std::pin::{pin, Pin};
use std::task::{Context, Poll};

/// A commit, and what follows from it.
type Commit<'w> = Pin<Box<dyn Future<Output = ()> + Send + 'w>>;

/// The commits of a task that have not ended. The task alone uses them, and polls them while it waits.
pub(super) struct InFlight<'w> {
    commits: Mutex<Vec<Commit<'w>>>,
    /// How many there may be.
    max: usize,
}

impl<'w> InFlight<'w> {
    pub(super) fn new(max: usize) -> Self {
        let commits = Mutex::default();
        Self { commits, max }
    }

    /// Whether there may be any.
    pub(super) fn takes(&self) -> bool {
        self.max > 0
    }

    /// Begins a commit, and waits while there are too many. The others are polled when one of them has woken the task.
    pub(super) async fn add(&self, commit: impl Future<Output = ()> + Send + 'w) {
        lock(&self.commits).push(Box::pin(commit));
        let mut from = lock(&self.commits).len() - 1;
        poll_fn(|context| self.poll(context, mem::take(&mut from), self.max)).await;
    }

    /// Polls the commits from this one on. Ready if no more than so many have not ended.
    fn poll(&self, context: &mut Context<'_>, from: usize, max: usize) -> Poll<()> {
        let (mut commits, mut place) = (lock(&self.commits), 0..);
        commits.retain_mut(|commit| {
            place.next() < Some(from) || commit.as_mut().poll(context).is_pending()
        });
        if commits.len() > max {
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    /// Waits until the work and all commits have ended. The commits are polled before the work, which may wait for them.
    pub(super) async fn drive(&self, work: impl Future<Output = ()> + Unpin) {
        let mut work = Some(work);
        poll_fn(|context| {
            let ended = self.poll(context, 0, 0);
            let Some(working) = &mut work else {
                return ended;
            };
            if Pin::new(working).poll(context).is_pending() {
                return Poll::Pending;
            }
            work = None;
            self.poll(context, 0, 0)
        })
        .await;
    }
}

impl<B: Backend> QueueWorker<B> {
    /// Waits for the commit of a run, and settles that, while the worker runs on other items.
    pub(super) async fn settle_in_flight(&self, commit: impl Future<Output = Left<B>>) {
        let (stepped, mut tx, span) = unless_panicked::<B>(pin!(commit)).await;
        self.settle(stepped, tx.as_mut(), span).await;
        swallow_panic(|| drop(tx));
    }
}
