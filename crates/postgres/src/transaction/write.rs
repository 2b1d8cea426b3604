//! What commits write: the leases that they finish, and the items that they push.

use super::Staged;
use crate::claim::LeasedItems;
use crate::connect::Param;
use crate::item::Ticket;
use crate::queue::Due;
use crate::sql::{Statements, Written};
use std::collections::BTreeMap;
use tokio_postgres::Row;

/// Fails if the database transaction has failed.
const NOTHING: &str = "select 1";

/// What one transaction finishes and pushes.
#[derive(Debug)]
pub(crate) struct Part {
    pub(super) finished: LeasedItems,
    /// Some of the finished items belong to a serial queue.
    pub(super) serial: bool,
    pub(super) staged: Vec<Staged>,
}

impl Part {
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of items.
    pub(super) fn len(&self) -> usize {
        self.finished.0.len() + self.staged.len()
    }

    /// The bytes of the pushed items.
    pub(super) fn bytes(&self) -> usize {
        self.staged.iter().map(|item| item.payload.len()).sum()
    }

    /// Whether it changes the keys of a serial queue.
    pub(super) fn is_serial(&self) -> bool {
        self.serial || self.staged.iter().any(|item| item.serial)
    }
}

/// The statement that writes some parts.
pub(super) struct Writing<'p> {
    parts: &'p [&'p Part],
    written: Written,
    finished: LeasedItems,
    /// The columns of the pushed items.
    queues: Vec<i32>,
    priorities: Vec<i16>,
    keys: Vec<Option<&'p str>>,
    json: Vec<Option<&'p str>>,
    bytes: Vec<Option<&'p [u8]>>,
    after: Vec<Option<i64>>,
    at: Vec<Option<i64>>,
    /// The serial queues among them.
    serial: Vec<i32>,
    process: i64,
}

impl<'p> Writing<'p> {
    pub(super) fn of(parts: &'p [&'p Part], process: i64) -> Self {
        let finished = || parts.iter().map(|part| &part.finished);
        let staged = || parts.iter().flat_map(|part| &part.staged);
        let (json, bytes) = staged().map(|item| item.payload.columns()).unzip();
        let (after, at) = staged().map(|item| item.due.columns()).unzip();
        let serial = staged().filter(|item| item.serial);
        Self {
            parts,
            written: Written {
                finish: finished().any(|held| !held.0.is_empty()),
                push: staged().next().is_some(),
                delayed: staged().any(|item| item.due != Due::Now),
                serial: parts.iter().any(|part| part.is_serial()),
            },
            finished: (
                finished().flat_map(|held| &held.0).copied().collect(),
                finished().flat_map(|held| &held.1).copied().collect(),
            ),
            queues: staged().map(|item| item.queue).collect(),
            priorities: staged().map(|item| item.priority).collect(),
            keys: staged().map(|item| item.key.as_deref()).collect(),
            json,
            bytes,
            after,
            at,
            serial: serial.map(|item| item.queue).collect(),
            process,
        }
    }

    pub(super) fn sql<'s>(&self, sql: &'s Statements) -> &'s str {
        if self.written.push || self.written.finish {
            sql.claims.write(self.written)
        } else {
            NOTHING
        }
    }

    pub(super) fn params(&self) -> Vec<&dyn Param> {
        let mut params: Vec<&dyn Param> = Vec::new();
        if self.written.finish {
            params.extend([&self.finished.0 as &dyn Param, &self.finished.1]);
        }
        if self.written.push {
            params.extend([&self.queues as &dyn Param, &self.priorities, &self.keys]);
            params.extend([&self.json as &dyn Param, &self.bytes]);
            params.extend([&self.after as &dyn Param, &self.at, &self.process]);
            if self.written.serial {
                params.push(&self.serial);
            }
        }
        params
    }

    /// The tickets of the pushed items of each part.
    pub(super) fn tickets(&self, rows: &[Row]) -> Vec<Vec<Ticket>> {
        let mut tickets = rows.iter().map(|row| Ticket(row.get(0)));
        let of = |part: &&Part| tickets.by_ref().take(part.staged.len()).collect();
        self.parts.iter().map(of).collect()
    }

    /// The queues to whose new items other processes listen, with the numbers of those that are ready; 0 if that is unknown.
    pub(super) fn listened(&self, rows: &[Row]) -> Vec<(i32, i64)> {
        let mut counts = BTreeMap::new();
        let staged = self.parts.iter().flat_map(|part| &part.staged);
        for (row, item) in rows.iter().zip(staged) {
            if row.get(2) {
                *counts.entry(item.queue).or_default() += i64::from(item.due == Due::Now);
            }
        }
        counts.into_iter().collect()
    }
}
