//! The rows of the queues, by number and by name.

use crate::error::StoreError;
use crate::format::QueueRow;
use std::collections::HashMap;
#[cfg(test)]
use std::sync::atomic::{AtomicUsize, Ordering};

/// The rows of the queues. No call but [`all`](Self::all) takes longer if there are more of them.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    rows: HashMap<u32, QueueRow>,
    names: HashMap<String, u32>,
    /// The number of the next queue.
    next: u32,
    /// How many items they have.
    items: u64,
    /// How many rows were visited by [`all`](Self::all).
    #[cfg(test)]
    visited: AtomicUsize,
}

impl Queues {
    pub(crate) fn get(&self, queue: u32) -> Option<&QueueRow> {
        self.rows.get(&queue)
    }

    /// The queue with this name.
    pub(crate) fn find(&self, name: &str) -> Option<(u32, &QueueRow)> {
        let queue = *self.names.get(name)?;
        Some((queue, self.rows.get(&queue)?))
    }

    /// Adds a queue, and returns its number: the next one that is free.
    pub(crate) fn add(
        &mut self,
        row: QueueRow,
        mut is_free: impl FnMut(u32) -> Result<bool, StoreError>,
    ) -> Result<u32, StoreError> {
        while !is_free(self.next)? {
            self.next += 1;
        }
        let queue = self.next;
        self.insert(queue, row);
        Ok(queue)
    }

    /// Adds a queue that has a number.
    pub(super) fn insert(&mut self, queue: u32, row: QueueRow) {
        self.next = self.next.max(queue + 1);
        self.items = self.items.wrapping_add(row.counts.items.count);
        self.names.insert(row.name.clone(), queue);
        self.rows.insert(queue, row);
    }

    pub(super) fn remove(&mut self, queue: u32) {
        if let Some(row) = self.rows.remove(&queue) {
            self.items = self.items.wrapping_sub(row.counts.items.count);
            self.names.remove(&row.name);
        }
    }

    /// Changes the row of a queue, and returns it.
    pub(super) fn change(
        &mut self,
        queue: u32,
        change: impl FnOnce(&mut QueueRow),
    ) -> Option<&QueueRow> {
        let row = self.rows.get_mut(&queue)?;
        let before = row.counts.items.count;
        change(row);
        let more = row.counts.items.count.wrapping_sub(before);
        self.items = self.items.wrapping_add(more);
        Some(row)
    }

    /// How many items they have.
    pub(super) fn items(&self) -> u64 {
        self.items
    }

    /// All rows, with their numbers.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u32, &QueueRow)> {
        #[cfg(test)]
        self.visited.fetch_add(self.rows.len(), Ordering::Relaxed);
        self.rows.iter().map(|(queue, row)| (*queue, row))
    }

    #[cfg(test)]
    pub(crate) fn visited(&self) -> usize {
        self.visited.load(Ordering::Relaxed)
    }
}
