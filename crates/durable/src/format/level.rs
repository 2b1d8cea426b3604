//! Levels: in a queue by priority, or fair by key, that has pages, the number of an item has its level in its upper bits. So the rows of
//! a queue by priority are in the order in which their items are delivered, and those of a key are together.
//!
//! The level of a priority is one more; the last two priorities share one. The level of a key is derived from its hash, so a few keys
//! may share one. Items with level 0 have a due time, or were pushed while the queue had no pages. Numbers in FIFO queues have no level.

use crate::order::Place;
use crate::queue::windows::hash;
use std::hash::Hash;

/// The bits of a number that differ between the items of a store.
const BITS: u32 = 48;

pub(crate) type Level = u16;

/// The level of the items of a place.
pub(crate) fn of_place(place: Place) -> Level {
    match place.due {
        Some(_) => 0,
        None => place.priority.saturating_add(1),
    }
}

/// The level of the items of a key.
pub(crate) fn of_key(key: &impl Hash) -> Level {
    let level = 1 + hash(key) % u128::from(Level::MAX);
    Level::try_from(level).unwrap_or(Level::MAX)
}

/// The last priority of a level.
pub(crate) fn priority(level: Level) -> u16 {
    match level {
        Level::MAX => u16::MAX,
        _ => level.saturating_sub(1),
    }
}

/// The level in the number of an item.
pub(crate) fn of(id: u64) -> Level {
    Level::try_from(id >> BITS).unwrap_or(Level::MAX)
}

/// The number of an item without its level.
pub(crate) fn serial(id: u64) -> u64 {
    id & ((1 << BITS) - 1)
}

/// The last number with a level.
pub(crate) fn last(level: Level) -> u64 {
    u64::from(level) << BITS | serial(u64::MAX)
}

/// The number with a level.
///
/// # Panics
///
/// If there were 2⁴⁸ items before, which takes eight years of a million per second.
pub(crate) fn with_serial(level: Level, serial: u64) -> u64 {
    assert!(serial >> BITS == 0, "no number is left for an item");
    u64::from(level) << BITS | serial
}
