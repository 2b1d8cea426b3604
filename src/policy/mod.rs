//! The options of a queue, each in a module of its own.
//!
//! A queue has its [`Policies`], made from its [`Settings`](settings::Settings); a handle has its [`Deliveries`], what these
//! keep of the items of its transaction. The core tells them each step of a delivery.
//!
//! Failed deliveries, [`failed`]: [`retry`] has the rules, [`delay`] the delayed items, [`dead`] the dead letters. The state of a
//! transaction that is visible to others, and the items that can be taken away from it: [`mod@watch`] and [`lease`].
//! When an item may be started: [`limit`], and until when: [`mod@ttl`]. What is kept of each held item is found by its position,
//! and of each item by its
//! time: [`tracking`], [`records`]. Events: [`telemetry`].

mod ascending;
pub(crate) mod dead;
pub(crate) mod delay;
mod deliveries;
mod due_heap;
pub(crate) mod failed;
pub(crate) mod lease;
pub(crate) mod limit;
pub(crate) mod records;
pub(crate) mod retry;
pub(crate) mod settings;
pub(crate) mod telemetry;
pub(crate) mod tracking;
#[cfg_attr(not(feature = "broker"), allow(unreachable_pub))]
pub(crate) mod ttl;
pub(crate) mod unique;
pub(crate) mod watch;

use self::failed::Failed;
use self::lease::LeaseTable;
use self::retry::Failures;
use self::telemetry::{Event, Telemetry};
use self::tracking::Decided;
use self::watch::WatchTable;
use crate::order::{Order, Registry, Source, StoredOf};
use crate::rate::Gate;
use crate::raw::DeliveryMeta;
use crate::sync::{step, swallow_panic, Mutex};
use crate::time::{later, Time};
use crate::wait::{DueTimer, WaitQueue};
use crate::Reason;
pub(crate) use deliveries::{Deliveries, Envelope, Remains};
pub(crate) use lease::WatchOf;
use std::sync::Arc;
use std::time::Duration;

/// The options of a queue, and its times.
pub(crate) struct Policies<T, O: Order<T>> {
    pub(crate) time: Time,
    pub(crate) due_timer: Arc<DueTimer>,
    /// Checked before items are dequeued.
    pub(crate) gate: Gate,
    pub(crate) failures: Failures<T, O::Meta>,
    pub(crate) watches: WatchTable<Mutex<LeaseTable<StoredOf<T, O>>>>,
    /// The term of leases in nanoseconds, if items are leased.
    pub(crate) lease: u64,
    /// Whether the time of each push is kept.
    pub(crate) timed: bool,
    tracking: Decided<T, O>,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) telemetry: Option<Telemetry>,
}

impl<T, O: Order<T>> Policies<T, O> {
    /// The wait queue for items.
    fn ready(&self) -> &WaitQueue {
        self.due_timer.wait_queue()
    }

    /// Delays an item. Its holder counts it as aborted afterwards.
    pub(crate) fn delay(
        &self,
        envelope: Envelope<T, O>,
        mut failed: Failed<StoredOf<T, O>>,
        now: u64,
        delay: Duration,
    ) {
        let (due, attempts) = (later(now, delay), failed.entry.delivery.attempts);
        let reason = failed.reason;
        let error = self.observed_error(&failed);
        failed.due = due;
        self.failures.delayed.put(envelope, failed);
        self.due_timer.plan(due);
        self.due_timer.call_backup();
        step!("due.delays-unsaid", self.ready().notify(1));
        self.emit(|| Event::Delayed {
            attempts,
            reason,
            delay,
            error: error.as_deref(),
        });
    }

    /// Makes an item a dead letter; its place among them was reserved before.
    pub(crate) fn dead_letter(&self, envelope: Envelope<T, O>, mut failed: Failed<StoredOf<T, O>>) {
        // A clock is user code: it may panic, but an abort must not.
        swallow_panic(|| failed.due = self.time.now());
        let (attempts, reason) = (failed.entry.delivery.attempts, failed.reason);
        let error = self.observed_error(&failed);
        self.failures.letters.put(envelope, failed);
        let drops = || self.lives().is_some_and(|lives| lives.ttl.drops_letters);
        if reason != Reason::TimedOut || !drops() {
            self.emit(|| Event::Died {
                attempts,
                reason,
                error: error.as_deref(),
            });
        }
    }

    /// The error of a failed delivery, if events are observed.
    fn observed_error(&self, failed: &Failed<StoredOf<T, O>>) -> Option<Arc<str>> {
        failed.error.clone().filter(|_| self.is_observed())
    }

    /// Drops what is discarded, and hands the dead letters beyond the limit over to the overflow function.
    pub(crate) fn drop_excess_letters(&self) {
        if let Some(discarded) = self.discarded() {
            for item in discarded.take_all() {
                swallow_panic(|| drop(item));
            }
        }
        self.failures.letters.drop_excess(&self.time);
    }

    /// Whether events are observed.
    pub(crate) fn is_observed(&self) -> bool {
        self.telemetry.is_some()
    }

    /// Emits an event if events are observed. A panic of a clock in `event` is caught.
    #[inline]
    pub(crate) fn emit<'e>(&self, event: impl FnOnce() -> Event<'e>) {
        if let Some(telemetry) = &self.telemetry {
            swallow_panic(|| telemetry.emit(event()));
        }
    }

    /// Emits the event of failed deliveries whose items are ready again.
    #[inline]
    pub(crate) fn emit_retried(&self, reason: Reason, items: usize) {
        if items > 0 {
            self.emit(|| Event::Retried { reason, items });
        }
    }

    /// Emits the event of the end of a transaction that held something.
    #[inline(never)]
    fn emit_released(&self, watch: &WatchOf<T, O>) {
        self.emit(|| Event::Released {
            held: self.time.age(watch.since()),
        });
    }

    /// Emits the event of a delivery.
    #[inline(never)]
    pub(crate) fn emit_delivered(
        &self,
        source: &O::Source,
        stored: &StoredOf<T, O>,
        DeliveryMeta { attempts, since }: DeliveryMeta,
    ) {
        self.emit(|| {
            let pushed = Some(self.pushed_at(since)).filter(|since| *since > 0);
            // Nothing keeps when an item became ready again.
            let ready = pushed.filter(|_| attempts == 1);
            let due = || source.registry().due_of(stored.meta).saturating_add(1);
            Event::Delivered {
                attempts,
                age: pushed.map(|since| self.time.age(since)),
                waited: ready.map(|since| self.time.age(since.max(due()))),
            }
        });
    }
}
