//! How each order is tested.

use super::model::MAX_ATTEMPTS;
use super::Side;
use crate::random::Random;
use requeue::{ByKey, ByPriority, Fifo, Leased, ManualClock};
use requeue_durable::{DurableQueue, Order, Store, Ticket, Transaction};
use std::ops::Range;
use std::time::{Duration, Instant};

pub(super) const KEYS: u64 = 4;
/// How long a leased item is held at most, in milliseconds.
const TERM: u64 = 20;

/// Where items were pushed to.
#[derive(Default)]
pub(super) struct Place {
    pub(super) class: u16,
    /// In milliseconds, until they are due.
    pub(super) delay: u64,
    pub(super) tickets: Vec<Ticket>,
}

/// The weight of an item, in queues where items have weights.
pub(super) fn weight(value: u64) -> usize {
    usize::try_from(value % 3).unwrap()
}

pub(super) trait Tested: Order<u64> {
    /// How long an item may be held, in milliseconds.
    const TERM: Option<u64> = None;

    fn build(
        store: &Store,
        name: &str,
        clock: ManualClock,
        memory: Option<usize>,
        keyed: bool,
    ) -> DurableQueue<u64, Self>;

    /// Pushes items to a random place.
    fn push(tx: &Transaction<'_, u64, Self>, _: &mut Random, values: Range<u64>) -> Place {
        if values.end - values.start == 1 {
            tx.push(values.start).unwrap();
        } else {
            tx.push_batch(values).unwrap();
        }
        Place::default()
    }

    /// Items with the same key, of the same handle, are in order.
    fn key(_value: u64) -> u64 {
        0
    }

    /// Uses the ticket of a random item.
    fn use_ticket(_: &mut Random, _: &mut Side<Self>) {}

    /// Takes items back from a worker, if they are leased.
    fn recover(_: &DurableQueue<u64, Self>, _worker: &str, _before: Instant) -> usize {
        0
    }
}

macro_rules! build {
    ($($setting:ident($($value:expr)?)),*) => {
        fn build(
            store: &Store,
            name: &str,
            clock: ManualClock,
            memory: Option<usize>,
            keyed: bool,
        ) -> DurableQueue<u64, Self> {
            let mut builder = store.builder(name)$(.$setting($($value)?))*;
            if keyed {
                builder = builder.unique_by(|value| *value).weigh(|value| weight(*value));
            }
            let builder = builder.max_attempts(MAX_ATTEMPTS).clock(clock).reopened();
            match memory {
                Some(bytes) => builder.memory(bytes).build(),
                None => builder.build(),
            }
            .unwrap()
        }
    };
}

macro_rules! leases {
    () => {
        const TERM: Option<u64> = Some(TERM);

        fn recover(queue: &DurableQueue<u64, Self>, worker: &str, before: Instant) -> usize {
            queue.recover(worker, before)
        }
    };
}

macro_rules! keys {
    () => {
        fn key(value: u64) -> u64 {
            value % KEYS
        }
    };
}

macro_rules! priorities {
    () => {
        fn push(tx: &Transaction<'_, u64, Self>, random: &mut Random, values: Range<u64>) -> Place {
            let class = random.pick(&[1, 2, 5_000]);
            let delay = random.pick(&[0, 0, 0, 7, 30]);
            let view = tx.priority(class);
            let view = match delay {
                0 => view,
                _ => view.after(Duration::from_millis(delay)),
            };
            let tickets = if values.end - values.start == 1 {
                vec![view.push(values.start).unwrap()]
            } else {
                view.push_batch(values).unwrap()
            };
            Place {
                class,
                delay,
                tickets,
            }
        }

        fn use_ticket(random: &mut Random, side: &mut Side<Self>) {
            if side.tickets.is_empty() {
                return;
            }
            let (value, ticket) = side.tickets[random.below(side.tickets.len())];
            if random.percent(50) {
                let cancelled = side.queue().cancel(ticket).unwrap();
                assert!(cancelled.is_none_or(|item| item == value));
                side.model.remove(value, cancelled.is_some());
            } else {
                let priority = random.pick(&[1, 3]);
                let moved = side.queue().reprioritize(ticket, priority).unwrap();
                side.model.reprioritize(value, priority, moved);
            }
        }
    };
}

impl Tested for Fifo {
    build!();
}

impl Tested for ByKey<u64, u64> {
    build!(fair_by(|value| value % KEYS));
    keys!();
}

impl Tested for ByPriority {
    build!(by_priority());
    priorities!();
}

impl Tested for Leased<Fifo> {
    build!(leased(Duration::from_millis(TERM)));
    leases!();
}

impl Tested for Leased<ByKey<u64, u64>> {
    build!(
        fair_by(|value| value % KEYS),
        leased(Duration::from_millis(TERM))
    );
    keys!();
    leases!();
}

impl Tested for Leased<ByPriority> {
    build!(by_priority(), leased(Duration::from_millis(TERM)));
    priorities!();
    leases!();
}
