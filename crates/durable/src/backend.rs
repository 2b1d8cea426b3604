//! The queue as a backend of generic code, such as the worker pools of `requeue`.

use crate::batch::{Batch, Change};
use crate::call::{now, swallow_panic, Caller};
use crate::commit::{begin_commit, write, Member};
use crate::error::{PushError, StoreError};
use crate::item::Item;
use crate::log::Urgency;
use crate::order::{One, Order};
use crate::transaction::Core;
use crate::{Durability, DurableQueue, OwnedTransaction};
use requeue::backend::{AbortCause, Backend, Committed, Holds, RunSpan, Settlement, Tx};
use requeue::{Clock, Wait};
use std::future::{poll_fn, Future};
use std::mem;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

impl<T: Send + 'static, O: Order<T>> Backend for DurableQueue<T, O> {
    type Item = T;
    type Error = PushError<T>;
    type Tx = OwnedTransaction<T, O>;

    fn begin(&self, worker: Option<Arc<str>>) -> Self::Tx {
        match worker {
            Some(name) => self.named_handle(name).begin_owned(),
            None => self.begin_owned(),
        }
    }

    async fn close(&self) -> Result<bool, PushError<T>> {
        if self.ram.close() {
            let mut batch = Batch::of([Change::Close(self.shared.id, true)]);
            self.shared
                .log()
                .add_async(&mut batch, Urgency::Sync)
                .await?;
        }
        Ok(true)
    }

    fn is_closed(&self) -> bool {
        self.ram.is_closed()
    }

    async fn left(&self) -> Result<u64, PushError<T>> {
        let stats = self.counts();
        Ok(stats.ready + stats.delayed + stats.held)
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.shared.times.clock)
    }

    fn instant(&self, since: u64) -> Instant {
        Backend::instant(&self.ram, since)
    }

    fn commits_wait(&self) -> bool {
        self.shared.store.durability == Durability::Synced
    }

    fn is_fatal(error: &PushError<T>) -> bool {
        matches!(error, PushError::Store(StoreError::Poisoned(_)))
    }
}

impl<T: Send + 'static, O: Order<T>> Holds for OwnedTransaction<T, O> {
    type Item = T;
    type Held<'t> = Item<'t, T, O>;
    type View = Self;

    fn attempts(item: &Item<'_, T, O>) -> u32 {
        item.attempts()
    }

    fn last_error(&self, item: &Item<'_, T, O>) -> Option<Arc<str>> {
        item.ram.error()
    }

    fn view(&self) -> &Self {
        self
    }

    fn lend(&mut self, lent: bool) {
        Holds::lend(&mut self.core_mut().ram, lent);
    }
}

impl<T: Send + 'static, O: Order<T>> Tx for OwnedTransaction<T, O> {
    type Error = PushError<T>;
    type Refused = StoreError;

    fn may_block(&mut self) {
        self.core_mut().local.blocks = true;
    }

    fn pop(
        &self,
        wait: Wait,
    ) -> impl Future<Output = Result<Option<Item<'_, T, O>>, PushError<T>>> + Send {
        let popping = Tx::pop_batch(self, 1, wait);
        async { Ok(popping.await?.pop()) }
    }

    fn pop_batch(
        &self,
        max: usize,
        wait: Wait,
    ) -> impl Future<Output = Result<Vec<Item<'_, T, O>>, PushError<T>>> + Send {
        let (shared, Core { ram, local }) = (self.shared(), self.core());
        // If a task waits until a delivery is written, the item is looked at meanwhile: then nothing is held if the future is
        // dropped. So it takes one.
        let takes_batch = local.blocks || shared.max_attempts.is_none();
        let most = if takes_batch { max } else { 1 };
        local.begin_pop(&[1, most]);
        let begun = if takes_batch {
            Ok(Tx::pop_batch(ram, max, wait))
        } else {
            Err(within(&*shared.times.clock, wait, ram.peek_async()))
        };
        async move {
            match begun {
                Ok(popping) => {
                    let popped = popping.await.unwrap_or_default();
                    local.end_pop(popped.len())?;
                    Ok(now(shared.deliver_batch(popped, BLOCKS))?.collect())
                }
                Err(peeking) => {
                    let peeked = peeking.await.and_then(Result::ok);
                    local.end_pop(usize::from(peeked.is_some()))?;
                    let Some(peek) = peeked else {
                        return Ok(Vec::new());
                    };
                    let delivery = (peek.id, peek.attempts() + 1);
                    shared.mark_one(delivery, Caller::Task).await?;
                    Ok(vec![shared.hand_out(peek.take())?])
                }
            }
        }
    }

    fn try_pop(&self) -> Option<(Item<'_, T, O>, u64)> {
        let (shared, ram) = (self.shared(), &self.core().ram);
        if shared.max_attempts.is_some() || shared.besides.budget.is_some() {
            return None; // it may have to be written, or read
        }
        let (ram, since) = ram.try_pop()?;
        Some((Item { ram }, since))
    }

    fn push(&self, item: T, wait: Wait) -> impl Future<Output = Result<(), PushError<T>>> + Send {
        let caller = match wait {
            Wait::Forever if !self.core().local.blocks => Caller::Task,
            wait => Caller::Thread(wait),
        };
        let staging = self.stage::<One>(item, None, caller);
        async { staging.await.map(drop) }
    }

    fn settle<'t>(
        &'t self,
        item: Item<'t, T, O>,
        settlement: Settlement,
    ) -> Result<(), StoreError> {
        let settled = match settlement {
            Settlement::RetryAfter(delay) => self.retry_after(item, delay),
            Settlement::Fail(error) => self.fail(item, error),
            _ => self.retry(item),
        };
        settled.map_err(|_| StoreError::NoRoom)
    }

    async fn commit(&mut self) -> Result<Committed, PushError<T>> {
        let core = self.core_mut();
        core.local.failed = true; // until it is committed
        if core.local.blocks {
            write(&mut [core], None)?;
            return Ok(core.commit());
        }
        if !core.prepare()? {
            return Ok(core.commit());
        }
        // The log has it meanwhile, so that a dropped future undoes nothing.
        let committing = begin_commit(self.take_core(), |mut core| (core.commit(), core));
        let (committed, core) = match committing.receive().await {
            Ok((committed, core)) => (Ok(committed), core),
            Err((error, core)) => (Err(error.into()), core),
        };
        self.put_core(core);
        committed
    }

    /// What is pushed at the same time by several transactions comes into memory in any order.
    fn can_commit_in_flight(&mut self) -> bool {
        self.core().ram.staged() == 0
    }

    async fn abort(&mut self, mut cause: AbortCause) -> Result<(), PushError<T>> {
        let core = self.core_mut();
        if mem::take(&mut core.local.failed) {
            cause.error = format!("the commit failed: {}", cause.error).into();
        }
        let makes_letters = core.makes_letters();
        swallow_panic(|| core.rollback(Some(cause)));
        if makes_letters {
            let Core { ram, local } = core;
            local.shared.await_letters(ram.died());
            // An error is one of the next commit too.
            let log = local.shared.log();
            let _ = if local.blocks {
                log.reach(Urgency::Sync)
            } else {
                log.add_async(&mut Batch::default(), Urgency::Sync).await
            };
        }
        Ok(())
    }

    fn deliveries(&mut self) -> (usize, u32) {
        self.core_mut().ram.deliveries()
    }

    fn since(&self) -> u64 {
        self.core().ram.since()
    }

    fn run_span(&self, worker: &str, attempts: u32) -> RunSpan {
        Tx::run_span(&self.core().ram, worker, attempts)
    }
}

/// For a future that waits for nothing but the disk.
const BLOCKS: Caller = Caller::Thread(Wait::Forever);

/// Waits no longer than this, in a task.
async fn within<F: Future>(clock: &dyn Clock, wait: Wait, future: F) -> Option<F::Output> {
    let deadline = wait.deadline(clock.now());
    let mut future = pin!(future);
    poll_fn(|context| match (future.as_mut().poll(context), deadline) {
        (Poll::Ready(output), _) => Poll::Ready(Some(output)),
        (Poll::Pending, Some(deadline)) if clock.now() >= deadline => Poll::Ready(None),
        (Poll::Pending, deadline) => {
            if let Some(deadline) = deadline {
                clock.wake_at(deadline, context.waker());
            }
            Poll::Pending
        }
    })
    .await
}
