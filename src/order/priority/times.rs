//! The times at which the scheduled items of a priority queue are due, or were, if the queue keeps times of pushes: how long
//! an item has been ready, and its age as an urgency, count from there.
//!
//! They are sharded by thread, so that threads rarely contend for a table. A push without a time
//! accesses nothing here.

use super::meta::{PriorityMeta, PushOptions};
use crate::order::{Registry, Ticket};
use crate::raw::OnceBox;
use crate::sync::{lock, Mutex, SMALL};
use crossbeam_utils::CachePadded;
use std::collections::HashMap;
use std::sync::Arc;

/// The number of tables.
const TABLES: usize = if SMALL { 1 } else { 8 };

/// A table of up to this capacity is not shrunk.
const SMALL_TABLE: usize = 64;

/// The due times of all scheduled items, in nanoseconds since the creation of the queue.
pub(crate) struct DueTimes {
    /// Each is made for the first ticket in it.
    tables: [OnceBox<CachePadded<TimeTable>>; TABLES],
    /// Whether times are kept.
    keeps: bool,
}

type TimeTable = Mutex<HashMap<Ticket, u64>>;

impl DueTimes {
    pub(crate) fn new(keeps: bool) -> Self {
        Self {
            tables: std::array::from_fn(|_| OnceBox::default()),
            keeps,
        }
    }

    /// Sets the due time of an item that is about to be pushed or is being rescheduled.
    pub(super) fn note(&self, ticket: Ticket, due: u64) {
        lock(self.table(ticket)).insert(ticket, due);
    }

    /// The due time of the item with this metadata; 0 if it is not scheduled.
    pub(super) fn due(&self, meta: PriorityMeta) -> u64 {
        let Some(ticket) = meta.scheduled_ticket() else {
            return 0;
        };
        let table = lock(self.table(ticket));
        table.get(&ticket).copied().unwrap_or(0)
    }

    fn remove(&self, ticket: Ticket) {
        let mut table = lock(self.table(ticket));
        table.remove(&ticket);
        if table.capacity() > 4 * table.len() + SMALL_TABLE {
            table.shrink_to_fit();
        }
    }

    #[allow(clippy::cast_possible_truncation)] // of the number's lowest bits
    fn table(&self, ticket: Ticket) -> &TimeTable {
        self.tables[ticket.block() as usize & (TABLES - 1)].get_or_add(CachePadded::default)
    }
}

impl<T> Registry<T, PriorityMeta> for Arc<DueTimes> {
    type Place = PushOptions;

    #[inline]
    fn register(&self, _: &T, options: PushOptions) -> Option<PriorityMeta> {
        let priority = options.priority;
        Some(match (options.ticket, options.due) {
            (None, _) => PriorityMeta::plain(priority),
            (Some(ticket), Some(due)) if self.keeps => {
                self.note(ticket, due);
                PriorityMeta::scheduled(priority, ticket)
            }
            (Some(ticket), _) => PriorityMeta::ticketed(priority, ticket),
        })
    }

    /// A dead letter that is pushed again keeps its priority, but not its ticket.
    fn register_again(&self, _: &T, meta: PriorityMeta) -> Option<PriorityMeta> {
        Some(meta.without_ticket())
    }

    fn due_of(&self, meta: PriorityMeta) -> u64 {
        self.due(meta)
    }

    fn reschedule(&self, meta: PriorityMeta, due: u64) -> PriorityMeta {
        let Some(ticket) = meta.ticket().filter(|_| self.keeps) else {
            return meta;
        };
        self.note(ticket, due);
        meta.with_time()
    }

    fn unregister(&self, meta: PriorityMeta, _count: u32) {
        if let Some(ticket) = meta.scheduled_ticket() {
            self.remove(ticket);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
pub(super) mod tests {
    use super::super::DEFAULT_PRIORITY;
    use super::*;

    const SCHEDULED: u64 = 100_000;

    /// The number of due times, and the capacity of the tables.
    pub(crate) fn sizes(times: &DueTimes) -> (usize, usize) {
        let tables = times
            .tables
            .iter()
            .filter_map(OnceBox::get)
            .map(|table| lock(table));
        tables.fold((0, 0), |(len, capacity), table| {
            (len + table.len(), capacity + table.capacity())
        })
    }

    fn scheduled(times: &DueTimes, due: u64) -> PriorityMeta {
        let ticket = Ticket::new();
        times.note(ticket, due);
        PriorityMeta::scheduled(DEFAULT_PRIORITY, ticket)
    }

    fn leave(times: &Arc<DueTimes>, meta: PriorityMeta) {
        Registry::<(), _>::unregister(times, meta, 1);
    }

    #[test]
    fn times_are_kept_until_the_item_is_removed() {
        let times = Arc::new(DueTimes::new(true));
        let (now, never) = (scheduled(&times, 0), scheduled(&times, u64::MAX));
        let plain = PriorityMeta::ticketed(DEFAULT_PRIORITY, Ticket::new());
        assert_eq!(sizes(&times).0, 2);
        assert_eq!(times.due(never), u64::MAX);
        assert_eq!(times.due(plain), 0);
        let other = never.with(1);
        assert_eq!(times.due(other), u64::MAX);
        leave(&times, now);
        leave(&times, plain);
        assert_eq!(times.due(other), u64::MAX);
        leave(&times, other);
        assert_eq!(sizes(&times).0, 0);
    }

    #[test]
    fn a_push_without_a_priority_uses_no_table() {
        let times = Arc::new(DueTimes::new(true));
        let meta = times.register(&(), PushOptions::default()).unwrap();
        assert_eq!(meta, PriorityMeta::plain(DEFAULT_PRIORITY));
        assert_eq!(times.register_again(&(), meta), Some(meta));
        leave(&times, meta);
        assert_eq!(sizes(&times), (0, 0));
    }

    #[test]
    fn tables_release_their_memory() {
        let times = Arc::new(DueTimes::new(true));
        let metas: Vec<_> = (0..SCHEDULED).map(|due| scheduled(&times, due)).collect();
        for meta in metas {
            leave(&times, meta);
        }
        let (len, capacity) = sizes(&times);
        assert_eq!(len, 0);
        assert!(capacity <= TABLES * SMALL_TABLE);
    }
}
