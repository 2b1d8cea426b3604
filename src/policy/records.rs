//! What a queue keeps beside each item, from its push until the item is gone for good.
//!
//! An item is found by the time stamp of its push, which no two items of such a queue have in common: shards, orders, holds and
//! dead letters keep that anyway.
//!
//! In a [tracked](crate::Builder::tracked) queue it is found by its ticket, too. Who has it decides with whoever discards it, under
//! the lock of a table:
//!
//! | who | does |
//! |---|---|
//! | a discard | marks the item as discarded, for good, and asks whether it is held |
//! | a take, when it has claimed the item | marks it as held; if it is discarded it drops it instead |
//! | a return, just before others can take the item | marks it as not held; if it is discarded it drops it instead |
//! | a commit, a death, a removal | forgets it, with its marks |
//!
//! So a return sees the mark on a held item, and no delivery begins of another one. That one is looked for by the discard, as by a
//! visit, and again if it is not found: a take may have claimed it, and a return may be about to show it. A visit by others,
//! which shows items without marking them as held, drops those that it finds discarded afterwards.

use super::dead::Overflow;
use super::unique::{Key, KeyOf, OnReserve, OnSupersede};
use crate::order::Ticket;
use crate::sync::{lock, Mutex};
use hashbrown::hash_table::{Entry, HashTable};
use std::sync::Arc;
#[cfg(feature = "broker")]
use {crate::sync::RandomState, std::collections::HashMap};

/// How many tables the records are in: pushes at different times seldom meet in one.
const TABLES: usize = 16;

/// What is kept beside an item.
pub(crate) struct Record {
    /// The time stamp of its push.
    pub(crate) pushed: u64,
    /// How many permits it has.
    pub(crate) weight: usize,
    /// Its key, if keys are unique.
    pub(crate) key: Option<Key>,
    /// Its ticket, if the queue is tracked.
    pub(crate) ticket: Option<Ticket>,
}

/// Calls a function, under a lock, with what is known of the item with a ticket. Made by [`tickets`] alone, so that nothing of it is
/// in a program whose queues are not tracked.
pub(crate) type Tickets = Box<dyn Fn(Ticket, &mut dyn FnMut(&mut Option<Tracked>)) + Send + Sync>;

/// Makes them, if the queue is tracked.
pub(crate) type MakeTickets = fn() -> Option<Tickets>;

#[cfg(feature = "broker")]
pub(crate) fn tickets() -> Tickets {
    let tables: [Mutex<HashMap<Ticket, Tracked, RandomState>>; TABLES] = Default::default();
    Box::new(move |ticket, call| {
        #[allow(clippy::cast_possible_truncation)] // the last bits
        let mut table = lock(&tables[ticket.number() as usize % TABLES]);
        let mut tracked = table.remove(&ticket);
        call(&mut tracked);
        if let Some(tracked) = tracked {
            table.insert(ticket, tracked);
        }
    })
}

/// The records of all items of a queue.
pub(crate) struct Records {
    tables: [Mutex<Table>; TABLES],
    /// By which items are found, if the queue is tracked.
    pub(crate) tickets: Option<Tickets>,
}

#[derive(Default)]
struct Table {
    records: HashTable<(u64, Record)>,
    /// The sum of all weights, which may wrap in between.
    weight: usize,
}

/// What is known of an item in a tracked queue.
#[derive(Default)]
pub(crate) struct Tracked {
    /// Its time stamp.
    pub(crate) since: u64,
    pub(crate) is_held: bool,
    pub(crate) is_discarded: bool,
    /// The last error of a failed delivery.
    pub(crate) error: Option<Arc<str>>,
}

/// Spreads time stamps, which nobody chooses exactly, over a table: by the golden ratio (Knuth, The Art of Computer Programming,
/// volume 3, section 6.4), with the best bits last, by which a table is searched.
#[inline]
fn hash(stamp: u64) -> u64 {
    stamp.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32)
}

impl Records {
    pub(crate) fn new(tickets: Option<Tickets>) -> Self {
        let tables = Default::default();
        Self { tables, tickets }
    }

    fn table(&self, since: u64) -> &Mutex<Table> {
        #[allow(clippy::cast_possible_truncation)] // the last bits
        &self.tables[since as usize % TABLES]
    }

    /// Keeps a record from now on. Returns the time stamp by which it is found: this one, or
    /// the last one before it that is free, so that nothing lives longer than it should.
    pub(crate) fn add(&self, stamp: u64, record: Record) -> u64 {
        let (mut since, ticket) = (stamp, record.ticket);
        loop {
            let Table { records, weight } = &mut *lock(self.table(since));
            let is_its = |stamped: &(u64, _)| stamped.0 == since;
            let place = records.entry(hash(since), is_its, |stamped| hash(stamped.0));
            if let Entry::Vacant(place) = place {
                *weight = weight.wrapping_add(record.weight);
                place.insert((since, record));
                break;
            }
            since -= 1;
        }
        if let Some((tickets, ticket)) = self.tickets.as_ref().zip(ticket) {
            tickets(ticket, &mut |item| {
                item.get_or_insert_with(Tracked::default).since = since;
            });
        }
        since
    }

    /// Reads the record of an item that is known.
    pub(crate) fn get<R>(&self, since: u64, read: impl FnOnce(&Record) -> R) -> Option<R> {
        let table = lock(self.table(since));
        let found = table
            .records
            .find(hash(since), |stamped| stamped.0 == since);
        found.map(|(_, record)| read(record))
    }

    /// Calls `call`, under a lock, with what is known of the item with this ticket.
    #[inline(never)] // most queues are not tracked
    pub(crate) fn tracked<R>(&self, of: Ticket, call: impl Fn(&mut Tracked) -> R) -> Option<R> {
        let mut called = None;
        self.tickets.as_ref()?(of, &mut |item| called = item.as_mut().map(&call));
        called
    }

    /// The key of an item, if keys are unique.
    pub(crate) fn key(&self, since: u64) -> Option<Key> {
        self.get(since, |record| record.key.clone())?
    }

    /// Removes the record of an item that is gone for good.
    #[inline]
    pub(crate) fn forget(&self, since: u64) -> Option<Record> {
        let record = self.remove(since)?;
        if let Some((tickets, ticket)) = self.tickets.as_ref().zip(record.ticket) {
            tickets(ticket, &mut |item| *item = None);
        }
        Some(record)
    }

    /// Removes the record with this time stamp.
    #[inline]
    pub(crate) fn remove(&self, since: u64) -> Option<Record> {
        let Table { records, weight } = &mut *lock(self.table(since));
        let found = records.find_entry(hash(since), |stamped| stamped.0 == since);
        let ((_, record), _) = found.ok()?.remove();
        *weight = weight.wrapping_sub(record.weight);
        Some(record)
    }

    /// The weight of all items; approximate while some come and go.
    pub(crate) fn weight(&self) -> usize {
        let weights = self.tables.iter().map(|table| lock(table).weight);
        weights.fold(0, usize::wrapping_add)
    }
}

/// Says how many permits an item has.
pub(crate) type Weigh<T> = Arc<dyn Fn(&T) -> usize + Send + Sync>;

/// Functions of the user that a queue calls.
pub(crate) struct Callbacks<T> {
    /// Gets dead letters beyond the limit.
    pub(crate) overflow: Option<Overflow<T>>,
    pub(crate) weigh: Option<Weigh<T>>,
    /// Says the key of an item, if keys are unique.
    pub(crate) key_of: Option<KeyOf<T>>,
    pub(crate) on_supersede: Option<OnSupersede<T>>,
    pub(crate) on_reserve: Option<OnReserve<T>>,
}

impl<T> Clone for Callbacks<T> {
    fn clone(&self) -> Self {
        Self {
            overflow: self.overflow.clone(),
            weigh: self.weigh.clone(),
            key_of: self.key_of.clone(),
            on_supersede: self.on_supersede.clone(),
            on_reserve: self.on_reserve.clone(),
        }
    }
}

derive_default!([T] Callbacks<T> { overflow, weigh, key_of, on_supersede, on_reserve });
