//! The queues on disk, in all orders.

use requeue::backend::Settlement;
use requeue::{ByKey, ByPriority, Fifo, Leased, ManualClock};
use requeue_conformance::{
    bounded_suite, closed_now_suite, closing_suite, duplicates_suite, errors_suite, leased_suite,
    removed_suite, settled_at_once_suite, suite, tail_suite, threads_suite, ttl_suite,
    unique_at_once_suite, unique_suite, weighed_suite,
};
use requeue_conformance::{
    HeldOf, Letter, Removal, Removing, Settings, Subject, Superseding, Threaded, ViewOf, LONG,
};
use requeue_durable::{Builder, Cause, DurableQueue, Order, PushError, Store, StoreOptions};
use std::env;
use std::future::{ready, Future};
use std::time::Duration;
use tempfile::TempDir;

/// Queues in one order, in a store of their own, by a clock that is set.
struct Durable<O: Order<u32>> {
    order: fn(Builder<u32>, Settings) -> Builder<u32, O>,
    clock: ManualClock,
    store: Store,
    _directory: TempDir,
}

impl<O: Order<u32>> Durable<O> {
    fn new(order: fn(Builder<u32>, Settings) -> Builder<u32, O>) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let mut options = StoreOptions::new().memtable(1 << 20).reserve(0);
        // All queues that can have pages have them then.
        if let Ok(bytes) = env::var("DURABLE_MEMORY") {
            options = options.memory(bytes.parse().expect("a number"));
        }
        Self {
            order,
            clock: ManualClock::new(),
            store: options.open(directory.path()).expect("a store"),
            _directory: directory,
        }
    }
}

fn fifo() -> Durable<Fifo> {
    Durable::new(|builder, _| builder)
}

/// All items of a case have the same key.
fn fair() -> Durable<ByKey<u32, u32>> {
    Durable::new(|builder, _| builder.fair_by(|item| item / 10_000))
}

fn leased_priority() -> Durable<Leased<ByPriority>> {
    Durable::new(|builder, settings| builder.by_priority().leased(settings.lease.unwrap_or(LONG)))
}

impl<O: Order<u32> + 'static> Subject for Durable<O> {
    type Queue = DurableQueue<u32, O>;

    const SHORT: Duration = Duration::from_secs(8);
    const MANUAL: bool = true;
    const SETTLE: Duration = Duration::ZERO;

    async fn queue(&self, settings: Settings) -> DurableQueue<u32, O> {
        let builder = (self.order)(self.store.builder("numbers"), settings);
        let mut builder = builder.clock(self.clock.clone());
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
        builder
            .on_failure(settings.return_to)
            .build()
            .expect("a queue")
    }

    async fn letters(&self, queue: &DurableQueue<u32, O>) -> Vec<Letter> {
        let letters = queue.dead_letters().all().expect("letters");
        let letters = letters.into_iter().map(|letter| Letter {
            item: letter.item,
            attempts: letter.attempts,
            reason: name_of(letter.reason),
            error: letter.error,
        });
        letters.collect()
    }

    async fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }

    fn push_in(view: &ViewOf<Self>, item: u32) -> impl Future<Output = Result<(), String>> + Send {
        ready(
            view.push(item)
                .map(drop)
                .map_err(|refused| refused.to_string()),
        )
    }
}

impl<O: Order<u32> + 'static> Removing for Durable<O> {
    async fn remove(queue: &DurableQueue<u32, O>, what: Removal) -> usize {
        let removed = match what {
            Removal::Unless(keep) => queue.retain(|item, _| keep(*item)),
            Removal::All => queue.clear_all(),
            Removal::Later => queue.close_now(),
        };
        removed.expect("a removal")
    }
}

impl<O: Order<u32> + 'static> Superseding for Durable<O> {
    async fn push(queue: &DurableQueue<u32, O>, item: u32) -> bool {
        match queue.push(item) {
            Err(PushError::Duplicate(..)) => false,
            pushed => pushed.is_ok(),
        }
    }
}

impl<O: Order<u32> + 'static> Threaded for Durable<O> {
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

fn name_of(reason: Cause) -> String {
    match reason {
        Cause::Failed(reason) => format!("{reason:?}").to_lowercase(),
        other => format!("{other:?}").to_lowercase(),
    }
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

orders!(fifo, fair, leased_priority);
leased_suite!(leased_priority_expires, leased_priority());
