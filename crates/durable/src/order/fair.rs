//! Fair by key.

use super::staging::Plain;
use super::{Engine, EntryOf, RamBuilder};
use crate::format::OrderTag;
use requeue::{ByKey, Queue};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

/// The settings of a queue that is fair by key.
pub(crate) struct FairSettings<K, T> {
    pub(crate) by: Arc<dyn Fn(&T) -> K + Send + Sync>,
    pub(crate) weigh: Option<Arc<Weigh<K>>>,
    pub(crate) limit: Option<usize>,
    pub(crate) serial: bool,
}

/// The weight of a key.
type Weigh<K> = dyn Fn(&K) -> u32 + Send + Sync;

impl<K, T> Clone for FairSettings<K, T> {
    fn clone(&self) -> Self {
        Self {
            by: Arc::clone(&self.by),
            weigh: self.weigh.clone(),
            limit: self.limit,
            serial: self.serial,
        }
    }
}

impl<T, K> Engine<T> for ByKey<K, T>
where
    T: Send + 'static,
    K: Hash + Eq + Clone + Send + Sync + 'static,
{
    type Key = K;
    type Ram = ByKey<K, EntryOf<T, Self>>;
    type Staging = Plain;
    type Settings = FairSettings<K, T>;
    const TAG: OrderTag = OrderTag::ByKey;

    fn key(settings: &Self::Settings, item: &T) -> K {
        (settings.by)(item)
    }

    fn with_room<'k>(
        settings: &Self::Settings,
        keys: impl Iterator<Item = &'k K>,
    ) -> Self::Settings {
        let mut settings = settings.clone();
        if let Some(limit) = &mut settings.limit {
            let mut counts = HashMap::new();
            keys.for_each(|key| *counts.entry(key).or_insert(0) += 1);
            *limit = counts.into_values().fold(*limit, usize::max);
        }
        settings
    }

    fn builder(settings: &Self::Settings) -> RamBuilder<T, Self> {
        let key = |entry: &EntryOf<T, Self>| entry.key.clone();
        let mut builder = Queue::builder().fair_by(key);
        if let Some(weigh) = settings.weigh.clone() {
            builder = builder.weight(move |key| weigh(key));
        }
        if let Some(limit) = settings.limit {
            builder = builder.key_capacity(limit);
        }
        if settings.serial {
            builder = builder.serial();
        }
        builder
    }
}
