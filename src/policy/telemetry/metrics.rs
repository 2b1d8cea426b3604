//! Events as metrics: gauges of current counts, counters of totals, histograms of durations and attempts.

use super::Event;
use crate::{Reason, Stats};
use metrics::{
    counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram, Unit,
};
use std::sync::Arc;

/// The label that holds a queue's name.
const QUEUE: &str = "queue";

/// The label that holds why deliveries failed.
const REASON: &str = "reason";

const DEAD: &str = "requeue_dead_total";
const RETRIES: &str = "requeue_retries_total";

/// The name of a count, its meaning, and its value.
type Count = (&'static str, &'static str, fn(&Stats) -> u64);

const COUNTERS: [Count; 5] = [
    ("requeue_pushed_total", "items pushed", |stats| stats.pushed),
    (
        "requeue_committed_total",
        "items delivered by a committed pop",
        |stats| stats.committed,
    ),
    ("requeue_aborted_total", "failed deliveries", |stats| {
        stats.aborted
    }),
    (
        "requeue_expired_total",
        "deliveries whose lease expired",
        |stats| stats.expired,
    ),
    (
        "requeue_timed_out_total",
        "items dropped since their time to live was over",
        |stats| stats.timed_out,
    ),
];

const GAUGES: [Count; 4] = [
    ("requeue_ready", "items ready to be popped", |stats| {
        stats.ready
    }),
    ("requeue_held", "items in flight", |stats| stats.held),
    ("requeue_delayed", "items that are ready later", |stats| {
        stats.delayed
    }),
    ("requeue_waiting", "waiting pops", |stats| stats.waiting),
];

/// Tells the recorder what the metrics mean, with their units.
pub(super) fn describe() {
    for (name, meaning, _) in COUNTERS {
        describe_counter!(name, Unit::Count, meaning);
    }
    let dead = "items moved to the dead letters, by the reason of their last failure";
    describe_counter!(DEAD, Unit::Count, dead);
    let retries = "failed deliveries whose items are retried, by reason";
    describe_counter!(RETRIES, Unit::Count, retries);
    for (name, meaning, _) in GAUGES {
        describe_gauge!(name, Unit::Count, meaning);
    }
    let oldest = "time since the first push of the oldest ready item";
    describe_gauge!("requeue_oldest_seconds", Unit::Seconds, oldest);
    let attempts = "deliveries of an item so far, at each delivery";
    describe_histogram!("requeue_attempts", Unit::Count, attempts);
    let age = "time from the first push of an item to its delivery";
    describe_histogram!("requeue_age_seconds", Unit::Seconds, age);
    let waited = "for how long an item was ready before its first delivery";
    describe_histogram!("requeue_wait_seconds", Unit::Seconds, waited);
    let held = "for how long a transaction held items";
    describe_histogram!("requeue_hold_seconds", Unit::Seconds, held);
}

pub(super) fn record(queue: &Arc<str>, event: Event<'_>) {
    let queue = || queue.to_string();
    match event {
        Event::Delivered {
            attempts,
            age,
            waited,
        } => {
            histogram!("requeue_attempts", QUEUE => queue()).record(f64::from(attempts));
            if let Some(age) = age {
                histogram!("requeue_age_seconds", QUEUE => queue()).record(age);
            }
            if let Some(waited) = waited {
                histogram!("requeue_wait_seconds", QUEUE => queue()).record(waited);
            }
        }
        Event::Released { held } => {
            histogram!("requeue_hold_seconds", QUEUE => queue()).record(held);
        }
        Event::Counted(stats) => count(&queue(), stats),
        Event::Retried { reason, items } => failed(RETRIES, queue(), reason, items as u64),
        Event::Delayed { reason, .. } => failed(RETRIES, queue(), reason, 1),
        Event::Died { reason, .. } => failed(DEAD, queue(), reason, 1),
        Event::Expired { .. } | Event::TimedOut { .. } | Event::Closed => {}
    }
}

/// Counts failed deliveries.
fn failed(name: &'static str, queue: String, reason: Reason, items: u64) {
    let reason = match reason {
        Reason::Aborted => "aborted",
        Reason::Panicked => "panicked",
        Reason::Retried => "retried",
        Reason::Forgotten => "forgotten",
        Reason::Failed => "failed",
        Reason::Expired => "expired",
        Reason::TimedOut => "timed_out",
    };
    counter!(name, QUEUE => queue, REASON => reason).increment(items);
}

fn count(queue: &str, stats: &Stats) {
    for (name, _, value) in COUNTERS {
        counter!(name, QUEUE => queue.to_owned()).absolute(value(stats));
    }
    for (name, _, value) in GAUGES {
        #[allow(clippy::cast_precision_loss)] // exact up to 2^53 items
        gauge!(name, QUEUE => queue.to_owned()).set(value(stats) as f64);
    }
    let oldest = stats.oldest.unwrap_or_default();
    gauge!("requeue_oldest_seconds", QUEUE => queue.to_owned()).set(oldest);
}
