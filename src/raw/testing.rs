//! What tests of this room do with seats that have no cell.

use super::cell::Unborrowed;
#[cfg(not(any(loom, shuttle)))]
use super::hold::Spot;
use super::seat::Seat;
#[cfg(not(any(loom, shuttle)))]
use super::tag::Tag;

pub(super) const UNBORROWED: &Unborrowed<'_> = &Unborrowed::new();

impl<T> Seat<T> {
    pub(super) fn stage_one(&mut self, item: T) {
        self.begin_staging();
        self.stage(item);
    }
}

#[cfg(not(any(loom, shuttle)))]
impl<T> Seat<T> {
    pub(super) fn push_since(&mut self, item: T, since: u64) {
        self.note_time(since);
        self.push(item);
    }

    /// What is held, and its tags.
    pub(super) fn held_items(&self) -> Vec<(T, Tag)>
    where
        T: Clone,
    {
        let mut spot = Spot::default();
        let next = || self.next_held(&mut spot, UNBORROWED);
        let held = std::iter::from_fn(next);
        held.map(|(item, tag)| (item.clone(), tag)).collect()
    }
}
