//! The queues in memory, in all orders.

use requeue::backend::Settlement;
use requeue::{
    Builder, ByKey, ByPriority, Fifo, Leased, ManualClock, Order, PushError, Queue, Reason,
};
use requeue_conformance::{
    bounded_suite, closed_now_suite, closing_suite, duplicates_suite, errors_suite, leased_suite,
    removed_suite, settled_at_once_suite, suite, tail_suite, threads_suite, ttl_suite,
    unique_at_once_suite, unique_suite, weighed_suite,
};
use requeue_conformance::{
    HeldOf, Letter, Removal, Removing, Settings, Subject, Superseding, Threaded, ViewOf, LONG,
};
use std::future::{ready, Future};
use std::time::Duration;

/// Queues in one order, by a clock that is set.
struct Memory<O: Order<u32>> {
    order: fn(Builder<u32>, Settings) -> Builder<u32, O>,
    clock: ManualClock,
}

impl<O: Order<u32>> Memory<O> {
    fn new(order: fn(Builder<u32>, Settings) -> Builder<u32, O>) -> Self {
        let clock = ManualClock::new();
        Self { order, clock }
    }
}

fn fifo() -> Memory<Fifo> {
    Memory::new(|builder, _| builder)
}

/// All items of a case have the same key.
fn fair() -> Memory<ByKey<u32, u32>> {
    Memory::new(|builder, _| builder.fair_by(|item| item / 10_000))
}

fn priority() -> Memory<ByPriority> {
    Memory::new(|builder, _| builder.by_priority())
}

fn lease(settings: Settings) -> Duration {
    settings.lease.unwrap_or(LONG)
}

fn leased_fifo() -> Memory<Leased<Fifo>> {
    Memory::new(|builder, settings| builder.leased(lease(settings)))
}

fn leased_fair() -> Memory<Leased<ByKey<u32, u32>>> {
    Memory::new(|builder, settings| (fair().order)(builder, settings).leased(lease(settings)))
}

fn leased_priority() -> Memory<Leased<ByPriority>> {
    Memory::new(|builder, settings| builder.by_priority().leased(lease(settings)))
}

impl<O: Order<u32> + 'static> Subject for Memory<O> {
    type Queue = Queue<u32, O>;

    const SHORT: Duration = Duration::from_secs(8);
    const MANUAL: bool = true;
    const SETTLE: Duration = Duration::ZERO;

    async fn queue(&self, settings: Settings) -> Queue<u32, O> {
        let mut builder = (self.order)(Queue::builder(), settings).clock(self.clock.clone());
        if let Some(capacity) = settings.capacity {
            builder = builder.capacity(capacity);
        }
        if let Some(attempts) = settings.max_attempts {
            builder = builder.max_attempts(attempts);
        }
        if let Some(backoff) = settings.backoff {
            builder = builder.backoff(backoff);
        }
        if let Some(ttl) = settings.ttl {
            builder = builder.ttl(ttl).on_expired(settings.after_ttl);
        }
        if let Some(key) = settings.unique_by {
            builder = builder
                .unique_by(move |item| key(*item))
                .on_duplicate(settings.on_duplicate)
                .unique_for(settings.unique_for);
        }
        if let Some(weigh) = settings.weigh {
            builder = builder.weigh(move |item| weigh(*item));
        }
        if settings.tracked {
            builder = builder.tracked();
        }
        builder.on_failure(settings.return_to).build()
    }

    async fn letters(&self, queue: &Queue<u32, O>) -> Vec<Letter> {
        let mut letters = Vec::new();
        queue.dead_letters().visit(|letter| {
            letters.push(Letter {
                item: letter.item,
                attempts: letter.attempts,
                error: letter.error().map(str::to_owned),
                reason: name_of(letter.reason),
            });
        });
        letters
    }

    async fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }

    fn push_in(view: &ViewOf<Self>, item: u32) -> impl Future<Output = Result<(), String>> + Send {
        ready(view.push(item).map_err(|refused| refused.to_string()))
    }
}

impl<O: Order<u32> + 'static> Removing for Memory<O> {
    async fn remove(queue: &Queue<u32, O>, what: Removal) -> usize {
        match what {
            Removal::Unless(keep) => queue.retain(|item, _| keep(*item)),
            Removal::All => queue.clear_all(),
            Removal::Later => queue.close_now(),
        }
    }
}

impl<O: Order<u32> + 'static> Superseding for Memory<O> {
    async fn push(queue: &Queue<u32, O>, item: u32) -> bool {
        match queue.push(item) {
            Err(PushError::Duplicate(..)) => false,
            pushed => pushed.is_ok(),
        }
    }
}

impl<O: Order<u32> + 'static> Threaded for Memory<O> {
    fn settle_in<'t>(
        view: &'t ViewOf<Self>,
        item: HeldOf<'t, Self>,
        settlement: Settlement,
    ) -> Result<(), String> {
        let settled = match settlement {
            Settlement::RetryAfter(delay) => view.retry_after(item, delay),
            Settlement::Fail(error) => view.fail(item, error),
            _ => view.retry(item),
        };
        settled.map_err(|refused| refused.to_string())
    }
}

fn name_of(reason: Reason) -> String {
    format!("{reason:?}").to_lowercase()
}

macro_rules! orders {
    ($($order:ident),*) => {$(
        mod $order {
            use super::*;

            suite!(all, super::$order());
            settled_at_once_suite!(settles, super::$order());
            closing_suite!(closes, super::$order());
            bounded_suite!(bounds, super::$order());
            threads_suite!(runs, super::$order());
            ttl_suite!(lives, super::$order());
            tail_suite!(returns, super::$order());
            removed_suite!(removes, super::$order());
            closed_now_suite!(closes_now, super::$order());
            unique_suite!(has_keys, super::$order());
            unique_at_once_suite!(has_keys_at_once, super::$order());
            duplicates_suite!(has_duplicates, super::$order());
            weighed_suite!(weighs, super::$order());
            errors_suite!(keeps_errors, super::$order());
        }
    )*};
}

orders!(
    fifo,
    fair,
    priority,
    leased_fifo,
    leased_fair,
    leased_priority
);
leased_suite!(leased_fifo_expires, leased_fifo());
leased_suite!(leased_fair_expires, leased_fair());
leased_suite!(leased_priority_expires, leased_priority());
