//! The metadata of an item of a priority queue: a word.
//!
//! ```text
//!  63        48      47       46           0
//! ┌────────────┬───────────┬────────────────┐
//! │  priority  │ scheduled │ ticket number  │
//! └────────────┴───────────┴────────────────┘
//! ```
//!
//! The number 0 means that the item has no ticket, because it was pushed without a priority. The time at which a
//! scheduled item was due, if it is kept, is found in [`DueTimes`](super::times::DueTimes) by its ticket.

use crate::order::{Place, StorePlace, Ticket};

const NUMBER: u64 = (1 << Ticket::BITS) - 1;
const SCHEDULED: u64 = 1 << Ticket::BITS;
const PRIORITY_SHIFT: u32 = Ticket::BITS + 1;

/// The priority of items that are pushed without one. The first one is 0.
pub(crate) const DEFAULT_PRIORITY: u16 = 5000;

/// The place of a pushed item: its priority, its due time in nanoseconds since the queue was made, and its ticket; without
/// that it is not scheduled. The tickets of a batch are consecutive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PushOptions {
    pub(crate) priority: u16,
    pub(crate) due: Option<u64>,
    pub(crate) ticket: Option<Ticket>,
}

impl Default for PushOptions {
    fn default() -> Self {
        Self {
            priority: DEFAULT_PRIORITY,
            due: None,
            ticket: None,
        }
    }
}

impl Place for PushOptions {
    #[inline]
    fn nth(self, nth: usize) -> Self {
        let ticket = self.ticket.map(|first| first.nth(nth));
        Self { ticket, ..self }
    }

    fn of_store(place: StorePlace, due: Option<u64>) -> Self {
        Self {
            priority: place.priority,
            due,
            ticket: Some(Ticket::of_store(place.number)),
        }
    }
}

/// The metadata of an item.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct PriorityMeta(u64);

impl PriorityMeta {
    /// The metadata of an item without a ticket.
    pub(super) fn plain(priority: u16) -> Self {
        Self(u64::from(priority) << PRIORITY_SHIFT)
    }

    pub(crate) fn ticketed(priority: u16, ticket: Ticket) -> Self {
        Self(Self::plain(priority).0 | ticket.number())
    }

    pub(crate) fn scheduled(priority: u16, ticket: Ticket) -> Self {
        Self(Self::ticketed(priority, ticket).0 | SCHEDULED)
    }

    /// The metadata without the ticket and the schedule.
    pub(super) fn without_ticket(self) -> Self {
        Self(self.0 & !(SCHEDULED | NUMBER))
    }

    #[allow(clippy::cast_possible_truncation)] // of fewer bits
    pub(super) fn priority(self) -> u16 {
        (self.0 >> PRIORITY_SHIFT) as u16
    }

    /// The metadata with another priority.
    pub(super) fn with(self, priority: u16) -> Self {
        Self(self.0 & (SCHEDULED | NUMBER) | Self::plain(priority).0)
    }

    /// The metadata of an item with a ticket that becomes scheduled.
    pub(super) fn with_time(self) -> Self {
        Self(self.0 | SCHEDULED)
    }

    pub(super) fn ticket(self) -> Option<Ticket> {
        Ticket::numbered(self.0 & NUMBER)
    }

    /// The ticket of a scheduled item whose time is kept.
    pub(super) fn scheduled_ticket(self) -> Option<Ticket> {
        self.ticket().filter(|_| self.0 & SCHEDULED != 0)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn metadata_contains_its_parts() {
        for priority in [0, 1, 5000, u16::MAX] {
            for ticket in [1, 2, NUMBER].map(|number| Ticket::numbered(number).unwrap()) {
                let metas = [
                    (PriorityMeta::plain(priority), None, false),
                    (
                        PriorityMeta::ticketed(priority, ticket),
                        Some(ticket),
                        false,
                    ),
                    (
                        PriorityMeta::scheduled(priority, ticket),
                        Some(ticket),
                        true,
                    ),
                ];
                for (meta, its_ticket, scheduled) in metas {
                    let again = meta;
                    assert_eq!(again.priority(), priority);
                    assert_eq!(again.ticket(), its_ticket);
                    assert_eq!(again.scheduled_ticket().is_some(), scheduled);
                    let other = again.with(!priority);
                    assert_eq!((other.priority(), other.ticket()), (!priority, its_ticket));
                    assert_eq!(other.scheduled_ticket().is_some(), scheduled);
                }
            }
        }
    }
}
