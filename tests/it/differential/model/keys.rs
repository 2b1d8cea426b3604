//! The limits of keys.

use super::disciplines::Key;
use super::item::Mark;
use super::order::Order;

impl Order {
    pub(super) fn keys_of(&self, marks: &[Mark]) -> Vec<Key> {
        marks
            .iter()
            .map(|&mark| self.settings.key_of(mark))
            .collect()
    }

    /// Whether there is room for items with these keys, as far as keys have limits.
    pub(super) fn admits_keys(&self, keys: &[Key]) -> bool {
        let capacity = self.settings.key_capacity();
        keys.iter().all(|key| {
            let more = keys.iter().filter(|other| *other == key).count();
            let count = self.keys.get(key).copied().unwrap_or(0);
            count + more <= capacity
        })
    }

    /// An item is in the queue from now on, in any state.
    pub(super) fn enrol(&mut self, mark: Mark) {
        *self.keys.entry(self.settings.key_of(mark)).or_default() += 1;
    }

    /// Staged items were dropped.
    pub(crate) fn unstage(&mut self, marks: &[Mark]) {
        for &mark in marks {
            self.strike(mark);
        }
    }

    /// An item is gone.
    pub(super) fn strike(&mut self, mark: Mark) {
        let count = self.keys.get_mut(&self.settings.key_of(mark));
        *count.expect("a key of the queue") -= 1;
    }
}
