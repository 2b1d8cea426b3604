//! The numbers of items that are pushed together.

use crate::batch::Run;
use crate::format::level::{self, Level};
use crate::order::{Engine, Place};
use crate::queue::shared::Shared;
use crate::ticket::Tickets;
use std::collections::HashMap;
use std::ops::Range;

/// Consecutive ones, or in a queue with levels by key those of each level are. Items are written in the order of their serial numbers.
pub(super) struct Numbers {
    queue: u32,
    /// As if they were consecutive.
    range: Range<u64>,
    /// With levels by key: the number of each item.
    each: Vec<u64>,
}

impl Numbers {
    /// New ones. Runs the key function.
    #[inline]
    pub(super) fn new<T: Send + 'static, O: Engine<T>>(
        shared: &Shared<T, O>,
        items: &[T],
        place: Option<Place>,
    ) -> Self {
        let count = items.len();
        let (first, each) = match shared.levels_by_key(items) {
            None => (shared.new_items(count, place), Vec::new()),
            Some(levels) => {
                let first = shared.new_ids(count);
                (first, numbers(&levels, first))
            }
        };
        Self {
            queue: shared.id,
            range: first..first + count as u64,
            each,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// The number of an item.
    #[inline]
    pub(super) fn nth(&self, nth: usize) -> u64 {
        let consecutive = self.range.start + nth as u64;
        self.each.get(nth).copied().unwrap_or(consecutive)
    }

    /// The number of the first item.
    #[inline]
    pub(super) fn first(&self) -> u64 {
        self.nth(0)
    }

    /// How many items are written before this one.
    #[inline]
    pub(super) fn before(&self, nth: usize) -> usize {
        let serial = self.each.get(nth).map(|id| level::serial(*id));
        let before = serial.map(|serial| serial - self.range.start);
        before.map_or(nth, |before| usize::try_from(before).unwrap_or(nth))
    }

    /// The items in the order in which they are written.
    pub(super) fn sort<'i, T>(&self, items: &'i [T]) -> Vec<&'i T> {
        let mut sorted: Vec<_> = items.iter().zip(&self.each).collect();
        sorted.sort_unstable_by_key(|(_, id)| level::serial(**id));
        sorted.into_iter().map(|(item, _)| item).collect()
    }

    pub(super) fn are_consecutive(&self) -> bool {
        self.each.is_empty()
    }

    /// Their levels.
    pub(super) fn levels(&self) -> impl Iterator<Item = Level> + '_ {
        let first = self.are_consecutive().then_some(&self.range.start);
        self.each.iter().chain(first).map(|id| level::of(*id))
    }

    /// Adds them to these runs.
    #[inline]
    pub(super) fn add_to(&self, runs: &mut Vec<Run>) {
        if self.are_consecutive() {
            return Run::add_range(runs, self.queue, self.range.clone());
        }
        let mut each = self.each.clone();
        each.sort_unstable_by_key(|id| level::serial(*id));
        Run::add_each(runs, self.queue, each.into_iter());
    }

    /// Those of a queue without levels by key. The numbers are not used any more.
    #[inline]
    pub(super) fn take_tickets(&mut self) -> Tickets {
        self.each = Vec::new();
        Tickets(self.range.clone())
    }
}

/// The numbers of items with these levels, which are in the order of their first items.
fn numbers(levels: &[Level], first: u64) -> Vec<u64> {
    let mut firsts = HashMap::new();
    let first_of = |(nth, level)| *firsts.entry(level).or_insert(nth);
    let firsts: Vec<usize> = levels.iter().enumerate().map(first_of).collect();
    let mut order: Vec<_> = (0..levels.len()).collect();
    order.sort_by_key(|nth| firsts[*nth]);
    let mut numbers = vec![0; levels.len()];
    for (serial, nth) in (first..).zip(order) {
        numbers[nth] = level::with_serial(levels[nth], serial);
    }
    numbers
}
