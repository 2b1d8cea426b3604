//! Which groups of keys have items.

use super::Rounds;
use std::collections::HashMap;

/// Apart from the keys, so that only queues that are asked for it pay for it.
pub(super) struct Groups<T> {
    /// Says the group of the key of an item.
    of: fn(&T) -> u16,
    /// The group of each key that has items.
    keys: HashMap<u32, u16>,
    /// How many of those each group has.
    counts: HashMap<u16, usize>,
    /// Groups whose last item has left since they were asked for.
    emptied: Vec<u16>,
}

impl<T> Groups<T> {
    fn new(of: fn(&T) -> u16) -> Self {
        Self {
            of,
            keys: HashMap::new(),
            counts: HashMap::new(),
            emptied: Vec::new(),
        }
    }

    /// A key has this item.
    fn add(&mut self, key: u32, item: &T) {
        let Self { of, counts, .. } = self;
        self.keys.entry(key).or_insert_with(|| {
            let group = of(item);
            *counts.entry(group).or_insert(0) += 1;
            group
        });
    }

    /// A key has no item.
    fn remove(&mut self, key: u32) {
        let Some(group) = self.keys.remove(&key) else {
            return;
        };
        let count = self.counts.get_mut(&group).filter(|count| **count > 1);
        if let Some(count) = count {
            *count -= 1;
        } else {
            self.counts.remove(&group);
            self.emptied.push(group);
        }
    }

    /// Adds to these groups those that were emptied since the last call, and removes those that have items.
    fn retain_empty(&mut self, groups: &mut Vec<u16>) {
        groups.append(&mut self.emptied);
        groups.retain(|group| !self.counts.contains_key(group));
    }
}

impl<T> Rounds<T> {
    /// Notes that a key has items.
    pub(super) fn note_group(&mut self, number: u32) {
        let (Some(groups), Some(key)) = (&mut self.groups, self.keys.get(number)) else {
            return;
        };
        if let Some(item) = self.items.peek(&key.items) {
            groups.add(number, item);
        }
    }

    /// Notes that a key has no items.
    #[inline]
    pub(super) fn end_group(&mut self, number: u32) {
        if let Some(groups) = &mut self.groups {
            groups.remove(number);
        }
    }

    /// See [`Sequence::retain_empty`](crate::order::Sequence::retain_empty).
    pub(super) fn retain_empty_groups(&mut self, group_of: fn(&T) -> u16, groups: &mut Vec<u16>) {
        if self.groups.is_none() {
            self.groups = Some(Box::new(Groups::new(group_of)));
            for number in 0..self.keys.end() {
                self.note_group(number);
            }
        }
        if let Some(of_keys) = &mut self.groups {
            of_keys.retain_empty(groups);
        }
    }
}
