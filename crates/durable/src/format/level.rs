//! Levels: in a queue by priority with pages, the number of an item has its level in its upper bits. So the rows of the queue are in
//! the order in which their items are delivered.
//!
//! The level of a priority is one more; the last two priorities share one. Items with level 0 are in no page: those with a due time,
//! and those that were pushed while the queue had no pages. Numbers in other queues have no level.

use crate::order::Place;

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

/// The number with a level.
///
/// # Panics
///
/// If there were 2⁴⁸ items before, which takes eight years of a million per second.
pub(crate) fn with_serial(level: Level, serial: u64) -> u64 {
    assert!(serial >> BITS == 0, "no number is left for an item");
    u64::from(level) << BITS | serial
}
