//! The queues in memory as backends.

use super::{AbortCause, Backend, Committed, Holds, Settlement, Tx};
use crate::error::TransactionError;
use crate::order::Order;
use crate::policy::failed;
use crate::policy::telemetry::RunSpan;
use crate::raw::Lend;
use crate::wait::WakeTarget;
use crate::{Clock, Item, OwnedTransaction, PushError, Queue, Transaction, Wait};
use std::future::{poll_fn, ready, Future};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

impl<T: Send, O: Order<T>> Backend for Queue<T, O> {
    type Item = T;
    type Error = TransactionError<T>;
    type Tx = OwnedTransaction<T, O>;

    fn begin(&self, worker: Option<Arc<str>>) -> OwnedTransaction<T, O> {
        match worker {
            Some(name) => self.named_handle(name).begin_owned(),
            None => self.begin_owned(),
        }
    }

    fn close(&self) -> impl Future<Output = Result<bool, Self::Error>> + Send {
        self.shared().close();
        ready(Ok(true))
    }

    fn is_closed(&self) -> bool {
        self.shared().word().is_closed()
    }

    fn left(&self) -> impl Future<Output = Result<u64, Self::Error>> + Send {
        ready(Ok(self.shared().left()))
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.shared().time.clock()
    }

    fn instant(&self, since: u64) -> Instant {
        self.shared().time.happened(since)
    }
}

impl<T: Send, O: Order<T>> Holds for OwnedTransaction<T, O> {
    type Item = T;
    type Held<'t> = Item<'t, T>;
    type View = Transaction<'static, T, O>;

    #[inline]
    fn attempts(item: &Item<'_, T>) -> u32 {
        item.attempts()
    }

    #[cfg(feature = "broker")]
    fn last_error(&self, item: &Item<'_, T>) -> Option<Arc<str>> {
        Transaction::last_error(self, item)
    }

    #[inline]
    fn view(&self) -> &Self::View {
        self
    }

    fn lend(&mut self, lent: bool) {
        self.cell().lend(lent);
    }
}

impl<T: Send, O: Order<T>> Lend for OwnedTransaction<T, O> {}

impl<T: Send, O: Order<T>> Tx for OwnedTransaction<T, O> {
    type Error = TransactionError<T>;
    type Refused = PushError<()>;

    fn pop(
        &self,
        wait: Wait,
    ) -> impl Future<Output = Result<Option<Item<'_, T>>, Self::Error>> + Send {
        let popping = self.pop_batch_within(1, 1, wait);
        async move { Ok(popping.await.next()) }
    }

    fn pop_batch(
        &self,
        max: usize,
        wait: Wait,
    ) -> impl Future<Output = Result<Vec<Item<'_, T>>, Self::Error>> + Send {
        let popping = self.pop_batch_within(1, max, wait);
        async move { Ok(popping.await.collect()) }
    }

    #[inline(always)] // the pop of a worker
    fn try_pop(&self) -> Option<(Item<'_, T>, u64)> {
        // Not by the shortcut of `pop`, which the transactions of workers do not take: they are watched.
        let mut local = self.local();
        let item = local.pop().ok()?;
        Some((Item::new(item), local.deliveries().since()))
    }

    fn push(&self, item: T, wait: Wait) -> impl Future<Output = Result<(), Self::Error>> + Send {
        let time = self.local().shared().time.clone();
        let until = wait.end(&time);
        let mut pushing = self.push_async(item);
        poll_fn(move |context| {
            let polled = Pin::new(&mut pushing).poll(context);
            match until {
                Some(until) if polled.is_pending() => {
                    if time.now() < until {
                        WakeTarget::task(context.waker()).wake_at(&time, until);
                        return Poll::Pending;
                    }
                    let refused = pushing.end().map(PushError::Full);
                    Poll::Ready(
                        refused.map_or(Ok(()), |refused| Err(TransactionError::Push(refused))),
                    )
                }
                _ => polled.map_err(TransactionError::Push),
            }
        })
    }

    fn settle<'t>(
        &'t self,
        item: Item<'t, T>,
        settlement: Settlement,
    ) -> Result<(), PushError<()>> {
        match settlement {
            Settlement::Retry => self.retry(item),
            Settlement::RetryAfter(delay) => self.retry_after(item, delay),
            Settlement::Fail(error) => self.fail(item, error),
        }
    }

    #[inline(always)] // the commit of a worker
    fn commit(&mut self) -> impl Future<Output = Result<Committed, Self::Error>> + Send {
        let committed = self.commit_in_place();
        ready(
            committed
                .map(Committed::new)
                .map_err(TransactionError::Commit),
        )
    }

    fn abort(&mut self, cause: AbortCause) -> impl Future<Output = Result<(), Self::Error>> + Send {
        let AbortCause {
            reason,
            error,
            backoff,
        } = cause;
        self.abort_in_place(&failed::Cause {
            reason,
            error: Some(error),
            backoff: Some(backoff),
        });
        ready(Ok(()))
    }

    fn deliveries(&mut self) -> (usize, u32) {
        self.cell().deliveries()
    }

    #[inline]
    fn since(&self) -> u64 {
        self.local().deliveries().since()
    }

    #[inline]
    fn run_span(&self, worker: &str, attempts: u32) -> RunSpan {
        Transaction::run_span(self, worker, attempts)
    }
}
