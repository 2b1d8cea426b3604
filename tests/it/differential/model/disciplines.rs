//! The settings of fair and priority queues.

use super::item::{Mark, Tracked};
use super::settings::{ticks, Rule, Ticks};
use super::shapes::some;
use arbitrary::{Arbitrary, Result, Unstructured};
use requeue::{Builder, ByKey, ByPriority};

/// The key of an item.
pub(crate) type Key = Option<u8>;

/// Number of keys.
const KEYS: usize = 5;

/// The settings of a fair queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fairness {
    pub(crate) serial: bool,
    /// The weight of each key, if there are weights.
    weights: Option<[u32; KEYS]>,
    /// The maximal number of items per key.
    pub(crate) capacity: Option<usize>,
    /// The keys of items, by item number.
    keys: [u8; 16],
}

/// The settings of a priority queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Urgency {
    /// The waiting time after which an item counts as one of the next priority.
    pub(crate) age: Option<Ticks>,
}

impl<'a> Arbitrary<'a> for Fairness {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let mut weights = [0; KEYS];
        for weight in &mut weights {
            *weight = u.int_in_range(0..=3)?;
        }
        let mut keys: [u8; 16] = u.arbitrary()?;
        let spread = u.int_in_range(1..=5)?;
        for key in &mut keys {
            *key %= spread;
        }
        Ok(Self {
            serial: u.arbitrary()?,
            weights: u.arbitrary::<bool>()?.then_some(weights),
            capacity: some(u, 1..=4)?,
            keys,
        })
    }
}

impl<'a> Arbitrary<'a> for Urgency {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(Self {
            age: some(u, 1..=3)?,
        })
    }
}

impl Rule {
    /// Some queues are plain, so that transactions of different orders are committed together.
    pub(super) fn fair(u: &mut Unstructured) -> Result<Self> {
        if u.ratio(1, 4)? {
            return Ok(Self::Arrival);
        }
        u.arbitrary().map(Self::Fair)
    }

    pub(super) fn by_priority(u: &mut Unstructured) -> Result<Self> {
        u.arbitrary().map(Self::Priority)
    }
}

impl Fairness {
    pub(crate) fn key_of(&self, mark: Mark) -> Key {
        let number = usize::from(mark.number.to_le_bytes()[0]);
        self.keys[number % self.keys.len()].checked_sub(1)
    }

    /// The number of items of a key that are served per round.
    pub(crate) fn weight(&self, key: Key) -> u32 {
        self.weighed(key).max(1)
    }

    fn weighed(&self, key: Key) -> u32 {
        let place = key.map_or(0, |key| usize::from(key) + 1);
        self.weights.map_or(1, |weights| weights[place])
    }

    pub(super) fn fit<const PAD: usize>(
        self,
        mut builder: Builder<Tracked<PAD>, ByKey<Key, Tracked<PAD>>>,
    ) -> Builder<Tracked<PAD>, ByKey<Key, Tracked<PAD>>> {
        if self.serial {
            builder = builder.serial();
        }
        if self.weights.is_some() {
            builder = builder.weight(move |key| self.weighed(*key));
        }
        if let Some(capacity) = self.capacity {
            builder = builder.key_capacity(capacity);
        }
        builder
    }
}

impl Urgency {
    pub(super) fn fit<T: Send>(
        self,
        mut builder: Builder<T, ByPriority>,
    ) -> Builder<T, ByPriority> {
        if let Some(age) = self.age {
            builder = builder.age_after(ticks(age));
        }
        builder
    }
}
