//! Where a hash is: an open table of hashes and numbers, which runs no user code.

/// No number.
const NONE: u32 = u32::MAX;
/// How many slots there are at least.
pub(super) const LEAST: usize = 16;

/// A table of numbers by their hashes. Both may be there several times, but not a pair of them.
///
/// A number stands in the slot that its hash says, or in a later one without a free one between. At most
/// half of the slots have one.
pub(super) struct Index {
    /// A power of two.
    slots: Box<[Slot]>,
    len: usize,
}

#[derive(Clone, Copy)]
struct Slot {
    hash: u32,
    number: u32,
}

impl Slot {
    const FREE: Self = Self {
        hash: 0,
        number: NONE,
    };

    #[inline]
    fn is_free(self) -> bool {
        self.number == NONE
    }
}

impl Index {
    pub(super) fn new() -> Self {
        Self::with_slots(LEAST)
    }

    fn with_slots(slots: usize) -> Self {
        Self {
            slots: vec![Slot::FREE; slots].into_boxed_slice(),
            len: 0,
        }
    }

    /// After the last slot comes the first one: so of a hash, a place, or a distance.
    #[inline]
    fn wrap(&self, number: usize) -> usize {
        number & (self.slots.len() - 1)
    }

    /// The first slot from that of a hash which is free or of which `is` is true.
    #[inline]
    fn seek(&self, hash: u32, mut is: impl FnMut(Slot) -> bool) -> usize {
        let mut at = self.wrap(hash as usize);
        while !self.slots[at].is_free() && !is(self.slots[at]) {
            at = self.wrap(at + 1);
        }
        at
    }

    /// The number with a hash of which `is` is true.
    #[inline]
    pub(super) fn find(&self, hash: u32, mut is: impl FnMut(u32) -> bool) -> Option<u32> {
        let at = self.seek(hash, |slot| slot.hash == hash && is(slot.number));
        Some(self.slots[at].number).filter(|number| *number != NONE)
    }

    /// Adds a number, which is less than the greatest one.
    pub(super) fn add(&mut self, hash: u32, number: u32) {
        if 2 * self.len >= self.slots.len() {
            self.resize(2 * self.slots.len());
        }
        let at = self.seek(hash, |_| false);
        self.slots[at] = Slot { hash, number };
        self.len += 1;
    }

    /// Removes a number, which is there.
    pub(super) fn remove(&mut self, hash: u32, number: u32) {
        let mut gap = self.seek(hash, |slot| slot.number == number);
        let mut at = self.wrap(gap + 1);
        while !self.slots[at].is_free() {
            // Who stands as far from its own slot as from the gap, or farther, may move there.
            let home = self.slots[at].hash as usize;
            if self.wrap(at.wrapping_sub(home)) >= self.wrap(at.wrapping_sub(gap)) {
                self.slots[gap] = self.slots[at];
                gap = at;
            }
            at = self.wrap(at + 1);
        }
        self.slots[gap] = Slot::FREE;
        self.len -= 1;
        if 8 * self.len < self.slots.len() && self.slots.len() > LEAST {
            self.resize(self.slots.len() / 2);
        }
    }

    #[cold]
    fn resize(&mut self, slots: usize) {
        let former = std::mem::replace(self, Self::with_slots(slots));
        for slot in former.slots.iter().filter(|slot| !slot.is_free()) {
            self.add(slot.hash, slot.number);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
impl Index {
    /// How many slots there are.
    pub(super) fn room(&self) -> usize {
        self.slots.len()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
