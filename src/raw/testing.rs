//! Helpers for tests of endpoints without a cell.

use super::cell::Unborrowed;
use super::endpoint::Endpoint;
#[cfg(not(any(loom, shuttle)))]
use super::entry::DeliveryMeta;
#[cfg(not(any(loom, shuttle)))]
use super::hold::HeldPosition;

pub(super) const UNBORROWED: &Unborrowed<'_> = &Unborrowed::new();

impl<T> Endpoint<T> {
    pub(super) fn stage_one(&mut self, item: T) {
        self.begin_staging();
        self.stage(item);
    }
}

#[cfg(not(any(loom, shuttle)))]
impl<T> Endpoint<T> {
    pub(super) fn push_since(&mut self, item: T, since: u64) {
        self.note_time(since);
        self.push(item);
    }

    /// The held items with their delivery metadata.
    pub(super) fn held_items(&self) -> Vec<(T, DeliveryMeta)>
    where
        T: Clone,
    {
        let mut position = HeldPosition::default();
        let next = || self.next_held(&mut position, UNBORROWED);
        let held = std::iter::from_fn(next);
        held.map(|(item, delivery)| (item.clone(), delivery))
            .collect()
    }
}
