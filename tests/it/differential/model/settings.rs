//! The settings of a queue.

use super::disciplines::{Fairness, Key, Urgency};
use super::item::{overflow, Mark, Tracked};
use super::queues::{Any, AnyQueue, Family, Kind};
use super::shapes::some;
use arbitrary::{Arbitrary, Result, Unstructured};
use requeue::{Backoff, Builder, ManualClock, Queue};
use std::time::Duration;

/// The unit of time of the model.
pub(crate) type Ticks = u64;

/// Converts ticks to a duration.
pub(crate) fn ticks(count: Ticks) -> Duration {
    Duration::from_millis(count)
}

/// The settings of one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) capacity: Option<usize>,
    pub(crate) max_attempts: Option<u32>,
    /// Maximal number of dead letters, and whether the oldest is discarded for more.
    pub(crate) letters: Option<usize>,
    pub(crate) overflow: bool,
    /// The first delay, which doubles up to the second value.
    pub(crate) backoff: Option<(Ticks, Ticks)>,
    /// The lease duration.
    pub(crate) lease: Option<Ticks>,
    pub(crate) timed: bool,
    pub(crate) rule: Rule,
}

/// Which item is next.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Rule {
    #[default]
    Arrival,
    Fair(Fairness),
    Priority(Urgency),
}

impl<'a> Arbitrary<'a> for Settings {
    /// A third of all queues has a capacity at most.
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let plain = Self {
            capacity: *u.choose(&CAPACITIES)?,
            ..Self::default()
        };
        if u.ratio(1, 3)? {
            return Ok(plain);
        }
        Ok(Self {
            max_attempts: some(u, 1..=3)?,
            letters: some(u, 0..=3)?,
            overflow: u.arbitrary()?,
            backoff: *u.choose(&BACKOFFS)?,
            lease: some(u, 1..=4)?,
            timed: u.arbitrary()?,
            ..plain
        })
    }
}

/// The possible capacities.
const CAPACITIES: [Option<usize>; 8] = [
    None,
    None,
    None,
    Some(1),
    Some(2),
    Some(3),
    Some(7),
    Some(40),
];

const BACKOFFS: [Option<(Ticks, Ticks)>; 6] = [
    None,
    None,
    Some((0, 0)),
    Some((2, 2)),
    Some((1, 4)),
    Some((5, 3)),
];

/// Longer than any case lasts.
const FOREVER: Ticks = 1 << 40;

impl Settings {
    /// Makes them settings of a leased queue, or not.
    pub(crate) fn set_leased(&mut self, leases: bool) {
        self.lease = leases.then(|| self.lease.unwrap_or(FOREVER));
    }

    pub(crate) fn build<const PAD: usize, F: Family<PAD>>(
        &self,
        clock: &ManualClock,
    ) -> AnyQueue<PAD, F> {
        match self.rule {
            Rule::Arrival => {
                Any::Plain(F::plain(self.fit(Queue::builder(), clock), self.lease).build())
            }
            Rule::Fair(rules) => {
                let builder =
                    Queue::builder().fair_by(move |item: &Tracked<PAD>| rules.key_of(item.mark()));
                let builder = rules.fit(self.fit(builder, clock));
                Any::Fair(F::fair(builder, self.lease).build())
            }
            Rule::Priority(rules) => {
                let builder = self.fit(Queue::builder().by_priority(), clock);
                Any::Priority(F::by_priority(rules.fit(builder), self.lease).build())
            }
        }
    }

    /// Applies the settings that any queue can have.
    fn fit<const PAD: usize, O: Kind<PAD>>(
        &self,
        builder: Builder<Tracked<PAD>, O>,
        clock: &ManualClock,
    ) -> Builder<Tracked<PAD>, O> {
        let mut builder = builder.clock(clock.clone());
        if self.timed {
            builder = builder.timestamps();
        }
        if let Some(capacity) = self.capacity {
            builder = builder.capacity(capacity);
        }
        if let Some(attempts) = self.max_attempts {
            builder = builder.max_attempts(attempts);
        }
        if let Some(most) = self.letters {
            builder = builder.max_dead_letters(most);
        }
        if self.overflow {
            builder = builder.on_dead_overflow(|letter| overflow(&letter.item));
        }
        if let Some((first, cap)) = self.backoff {
            let backoff = if first == cap {
                Backoff::fixed(ticks(first))
            } else {
                Backoff::exponential(ticks(first), ticks(cap))
            };
            builder = builder.backoff(backoff);
        }
        builder
    }

    /// Whether pops check for returned items, from the beginning.
    pub(crate) fn checks_returned(&self) -> bool {
        let rules = self.max_attempts.is_some() || self.backoff.is_some();
        rules || self.timed || self.lease.is_some()
    }

    /// Whether push times are kept.
    pub(crate) fn is_timed(&self) -> bool {
        let ages = matches!(self.rule, Rule::Priority(Urgency { age: Some(_), .. }));
        self.timed || ages
    }

    /// The key of an item; all items have the same key except in fair queues.
    pub(crate) fn key_of(&self, mark: Mark) -> Key {
        match self.rule {
            Rule::Fair(rules) => rules.key_of(mark),
            _ => Key::default(),
        }
    }

    /// The maximal number of items per key.
    pub(crate) fn key_capacity(&self) -> usize {
        match self.rule {
            Rule::Fair(rules) => rules.capacity.unwrap_or(usize::MAX),
            _ => usize::MAX,
        }
    }

    /// The delay of an item after this many failures.
    pub(crate) fn delay(&self, failures: u32) -> Ticks {
        let (first, cap) = self.backoff.unwrap_or((0, 0));
        let doubled = (1..failures).fold(first, |delay, _| delay.saturating_mul(2));
        doubled.min(cap)
    }
}
