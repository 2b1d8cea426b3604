//! Which groups of keys have items.

use super::Rounds;
use std::collections::HashMap;

/// Apart from the keys, so that only queues that are asked for it pay for it.
pub(super) struct Groups<T> {
    /// Says the group of an item.
    of: fn(&T) -> u16,
    by_number: HashMap<u16, Group>,
    /// Those whose last item has left since they were asked for.
    emptied: Vec<u16>,
}

#[derive(Default)]
struct Group {
    items: usize,
    /// Whether it is among those that were emptied.
    is_listed: bool,
}

impl<T> Groups<T> {
    #[cold]
    fn add(&mut self, item: &T) {
        self.by_number.entry((self.of)(item)).or_default().items += 1;
    }

    #[cold]
    fn remove(&mut self, item: &T) {
        let number = (self.of)(item);
        let group = self.by_number.entry(number).or_default();
        group.items = group.items.saturating_sub(1);
        if group.items == 0 && !group.is_listed {
            group.is_listed = true;
            self.emptied.push(number);
        }
    }

    fn retain_empty(&mut self, numbers: &mut Vec<u16>) {
        for number in &self.emptied {
            let group = self.by_number.get_mut(number);
            if let Some(group) = group.filter(|group| group.items > 0) {
                group.is_listed = false;
            } else {
                self.by_number.remove(number);
            }
        }
        numbers.append(&mut self.emptied);
        numbers.retain(|number| !self.by_number.contains_key(number));
    }
}

impl<T> Rounds<T> {
    /// Notes that an item has come.
    #[inline]
    pub(super) fn note_came(&mut self, item: &T) {
        if let Some(groups) = &mut self.groups {
            groups.add(item);
        }
    }

    /// Notes that the last item of a key has arrived.
    #[cold]
    #[inline(never)] // the arrival of each item has the registers
    pub(super) fn note_arrived(&mut self, number: u32) {
        let item = self.keys.get(number);
        let item = item.and_then(|key| self.items.last(&key.items));
        if let (Some(groups), Some(item)) = (&mut self.groups, item) {
            groups.add(item);
        }
    }

    /// Notes that an item has left, perhaps for a time.
    #[inline]
    pub(super) fn note_left(&mut self, item: &T) {
        if let Some(groups) = &mut self.groups {
            groups.remove(item);
        }
    }

    /// See [`Sequence::retain_empty`](crate::order::Sequence::retain_empty).
    pub(super) fn retain_empty_groups(&mut self, of: fn(&T) -> u16, numbers: &mut Vec<u16>) {
        let Self {
            groups,
            keys,
            items,
            ..
        } = self;
        let groups = groups.get_or_insert_with(|| {
            let mut groups = Groups {
                of,
                by_number: HashMap::new(),
                emptied: Vec::new(),
            };
            let lists = keys.iter().map(|(_, key)| &key.items);
            lists
                .flat_map(|list| items.each(list))
                .for_each(|item| groups.add(item));
            Box::new(groups)
        });
        groups.retain_empty(numbers);
    }
}
