//! What is different where a discipline says which item is next.

use super::Shared;
use crate::order::{Discipline, Fit, Next};
use crate::raw::{Entry, Label};

impl<T> Shared<T> {
    #[inline]
    pub(crate) fn order(&self) -> Option<&dyn Discipline<T>> {
        self.order.as_deref()
    }

    /// Whether a discipline says which item is next.
    #[inline]
    pub(crate) fn is_ordered(&self) -> bool {
        self.order.is_some()
    }

    /// The roll of its discipline, if it is of this kind.
    pub(crate) fn roll<R: 'static>(&self) -> Option<&R> {
        self.order()?.roll().downcast_ref()
    }

    /// Whether items have labels.
    pub(crate) fn is_labelled(&self) -> bool {
        self.timed || self.is_ordered()
    }

    /// Whether the discipline has room for some items; asked before anything is taken for them, so that it
    /// need not be given back. May run user code.
    pub(crate) fn fit(&self, items: &[T]) -> Fit {
        let limited = self.order().filter(|order| order.is_limited());
        limited.map_or(Fit::Now, |order| order.fit(items))
    }

    /// The label of an item that is about to be pushed; `None`, if there is no room for one like it. May
    /// run user code.
    ///
    /// Whoever does not push it then [strikes](Shared::strike) it.
    pub(crate) fn label(&self, item: &T) -> Option<Label> {
        self.label_since(item, self.stamp())
    }

    /// As [`Shared::label`], with a time that was asked for before.
    pub(crate) fn label_since(&self, item: &T, since: u64) -> Option<Label> {
        let order = self.order().map_or(Some(0), |order| order.enrol(item))?;
        Some(Label { since, order })
    }

    /// The label of an item that had this one before, as [`Shared::label`].
    pub(crate) fn label_again(&self, item: &T, Label { since, order }: Label) -> Option<Label> {
        let order = self
            .order()
            .map_or(Some(0), |known| known.enrol_again(item, order))?;
        Some(Label { since, order })
    }

    /// Takes note that an item is gone for good that was held. May run the destructor of its key, whose
    /// panics are caught.
    pub(crate) fn leave(&self, order: u64) {
        if let Some(discipline) = self.order() {
            let ready = discipline.leave(order);
            self.tell_of_gone(ready);
        }
    }

    /// Wakes those who may wait for an item to be gone, by which others are `ready`.
    #[inline]
    fn tell_of_gone(&self, ready: usize) {
        if ready > 0 {
            // Others may have looked, after a close, when the item was gone and these not ready yet.
            self.ended(ready);
        }
        self.tell_of_room();
    }

    /// As [`Shared::leave`], of an item that was never given out, or not pushed after all.
    pub(crate) fn strike(&self, order: u64) {
        if let Some(discipline) = self.order() {
            discipline.strike(order);
            self.tell_of_room();
        }
    }

    /// Wakes those who may wait for room for an item like the one that is gone.
    #[inline]
    fn tell_of_room(&self) {
        if let Some(room) = self.room().filter(|room| room.is_selective) {
            room.wake_all();
        }
    }

    /// Takes the next item, to be held; the clock is the caller's business.
    #[inline]
    pub(crate) fn try_next(&self) -> Next<Entry<T>> {
        self.order().map_or(Next::Nothing, Discipline::take)
    }

    /// Pops the next item. May run the destructor of its key, whose panics are caught.
    #[inline]
    pub(crate) fn pop_next(&self) -> Option<T> {
        let discipline = self.order()?;
        loop {
            let (next, ready) = discipline.pop();
            match next {
                Next::Item(entry) => {
                    self.tell_of_gone(ready);
                    return Some(entry.item);
                }
                Next::Nothing => return None,
                Next::Due => self.release_due(),
            }
        }
    }

    /// Pops the next item without a handle.
    pub(super) fn pop_next_alone(&self) -> Option<T> {
        let item = self.pop_next()?;
        self.lanes.count_popped(1);
        Some(item)
    }

    /// Sees to what is owed for an item that was taken out of the discipline otherwise than by a pop.
    pub(crate) fn part_with(&self, Entry { item, tag }: Entry<T>) -> T {
        self.lanes.count_popped(1);
        self.give_back(1);
        self.strike(tag.order);
        // After the close it may have been what others wait for.
        self.ended(0);
        item
    }

    /// Whether a discipline has to know the time before anybody takes something.
    #[inline]
    pub(super) fn is_scheduled(&self) -> bool {
        self.order().is_some_and(Discipline::is_scheduled)
    }

    /// Has the discipline take in what was pushed, and put what is due before it.
    pub(super) fn arrange(&self, now: u64) {
        let ready = self.order().map_or(0, |order| order.arrange(now));
        if ready > 0 {
            self.ended(ready);
        }
    }

    /// Does what is due before anybody looks at what there is.
    pub(crate) fn bring_up_to_date(&self) {
        self.release_due();
        if self.order().is_some_and(Discipline::take_in) {
            self.release_due();
        }
    }

    /// Ready items, exact at rest, and never more than the queue takes: a walk over the lanes may see an
    /// item in one lane and in another one the item that took its room.
    pub(crate) fn ready_items(&self) -> u64 {
        let ordered = self.order().map_or(0, |order| order.counts().0);
        let seen = self.lanes.ready() + ordered as u64;
        let limit = self.room().and_then(|room| room.limit);
        limit.map_or(seen, |limit| seen.min(limit as u64))
    }

    /// Items that a discipline does not give out yet.
    pub(crate) fn waiting_items(&self) -> u64 {
        self.order().map_or(0, |order| order.counts().1 as u64)
    }

    /// The least time of the ready items, if times are kept.
    pub(crate) fn least_since(&self) -> Option<u64> {
        if !self.timed {
            return None;
        }
        let ordered = self.order().and_then(Discipline::oldest);
        self.lanes.oldest().into_iter().chain(ordered).min()
    }

    /// Whether nothing is ready, strictly.
    pub(crate) fn is_empty(&self) -> bool {
        match self.order() {
            Some(order) => order.is_empty(),
            None => self.lanes.is_empty(),
        }
    }
}
