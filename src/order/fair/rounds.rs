//! The keys that have something ready, in the order in which they are served, and their items.
//!
//! The keys stand in a ring. Whose visit is over goes to its back and belongs to the next round; so does
//! a key that joins. The keys at the front that belong to the present round are those that it still has to
//! visit. A key of weight 3 gets up to three turns in one visit. What comes back brings its key to the
//! front, into the present round, with the turn that it had.
//!
//! A key that has no item here is forgotten, but for a *serial* queue while one of its items is out: that
//! key stays out of the ring, its items wait, until the item comes back or is gone.
//!
//! An item that is shown to somebody leaves its place in the list of its key, and its key in the ring. Whoever
//! pops goes past it: then it comes to the front of its key again, and the key, if it has no other item, leaves
//! the ring until then. Of a serial queue nobody goes past it: while the first item of a key is shown, that key is
//! *held up*, and leaves the ring when its turn comes.

use super::lists::{KeyItems, ListEntry, Lists};
use super::meta::KeyMeta;
use super::pages::Pages;
use crate::order::{Dequeued, Sequence, Shown, Visit, GLANCE, PART};
use crate::raw::{Entry, Stored};

/// No key.
const NONE: u32 = u32::MAX;

/// The items of all keys.
pub(crate) struct Rounds<T> {
    items: Lists<Stored<T, KeyMeta>>,
    /// The keys in the ring and those that are out, by their numbers.
    keys: Pages<KeyState<T>>,
    /// The key at the front of the ring.
    front: u32,
    /// How many keys stand in the ring.
    ring: usize,
    /// The number of the present round. Keys in the ring belong to it or to the next one.
    round: u32,
    /// Whether no item of a key is given out while another is.
    serial: bool,
    /// Of how many items of a key that are gone the registry is told together.
    together: u32,
    /// Items that are shown, how many ever were, and how many of the keys in the ring are held up by one.
    shown: usize,
    names: u64,
    held_up: usize,
}

struct KeyState<T> {
    items: KeyItems<Stored<T, KeyMeta>>,
    /// The position of the first place in its list. An item keeps its position as long as it is there.
    base: i64,
    /// How many of its items are shown.
    shown: u32,
    /// Its neighbours in the ring. It is out of the ring while `after` is [`NONE`].
    before: u32,
    after: u32,
    /// To which round its place in the ring belongs.
    round: u32,
    /// How many turns are left of its visit; 0: none has begun.
    turns: u32,
    weight: u32,
    /// Items of it that were given out for good, and that the registry was not told of.
    gone: u32,
    /// Whether one of its items is held, of a serial queue.
    held: bool,
}

impl<T> Default for KeyState<T> {
    fn default() -> Self {
        Self {
            items: KeyItems::new(),
            base: 0,
            shown: 0,
            before: 0,
            after: 0,
            round: 0,
            turns: 0,
            weight: 0,
            gone: 0,
            held: false,
        }
    }
}

impl<T> KeyState<T> {
    /// Whether it is not in the ring: one of its items is held or shown.
    #[inline]
    fn is_out(&self) -> bool {
        self.after == NONE
    }

    /// Whether its first item is shown.
    fn is_held_up(&self) -> bool {
        self.items.front().is_some_and(ListEntry::is_shown)
    }

    /// The positions of its first items, up to so many.
    fn span(&self, most: usize) -> (i64, i64) {
        let count = i64::try_from(self.items.len().min(most)).unwrap_or(i64::MAX);
        (self.base, self.base + count)
    }

    /// Uses one turn of its visit, which begins if none has.
    #[inline]
    fn use_turn(&mut self) {
        if self.turns == 0 {
            self.turns = self.weight;
        }
        self.turns -= 1;
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RingEnd {
    Front,
    Back,
}

/// What a snapshot tells of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Its number.
    pub(crate) key: u32,
    pub(crate) items: usize,
    /// Whether the present round still has to visit it.
    pub(crate) in_round: bool,
}

impl<T> Rounds<T> {
    /// If not `serial`, the registry is told of `together` items of a key that are gone, or of fewer when the key
    /// has no more here.
    pub(crate) fn new(serial: bool, together: u32) -> Self {
        Self {
            items: Lists::new(),
            keys: Pages::new(),
            front: NONE,
            ring: 0,
            round: 0,
            serial,
            together,
            shown: 0,
            names: 0,
            held_up: 0,
        }
    }

    /// The keys in the order in which they will be served, then those that wait for an item that is out.
    pub(crate) fn standings(&self) -> impl Iterator<Item = Standing> + '_ {
        let standing = |number, key: &KeyState<T>| Standing {
            key: number,
            items: key.items.len(),
            in_round: !key.is_out() && key.round == self.round,
        };
        let out = self
            .keys
            .iter()
            .filter(|(_, key)| key.is_out() && !key.items.is_empty());
        let ring = self
            .ring()
            .map(move |number| standing(number, &self.keys[number]));
        ring.chain(out.map(move |(number, key)| standing(number, key)))
    }

    /// The numbers of the keys in the ring.
    fn ring(&self) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(Some(self.front), |number| Some(self.keys[*number].after))
            .take(self.ring)
    }

    /// Leaves behind what is shown, until an item is here at the front of the ring.
    #[cold]
    fn pass_shown(&mut self) {
        while self.ring > 0 {
            let key = &mut self.keys[self.front];
            while !self.serial && key.is_held_up() {
                key.items.pop_front();
                key.base += 1;
            }
            if !key.items.is_empty() && !key.is_held_up() {
                return;
            }
            self.held_up -= usize::from(self.serial);
            self.quit(self.front);
        }
    }

    /// From which position to which one the ready items of a key are to be visited.
    fn span(&self, number: u32) -> (i64, i64) {
        let key = self.keys.get(number).filter(|key| !key.is_out());
        let most = if self.serial { 1 } else { usize::MAX };
        key.map_or((0, 0), |key| key.span(most))
    }

    /// Begins a visit to the items of one key, ready or not.
    pub(crate) fn begin_visit_of(&self, number: u32) -> Visit {
        let key = self.keys.get(number);
        let (from, to) = key.map_or((0, 0), |key| key.span(usize::MAX));
        Visit {
            number,
            numbers: number + 1,
            from,
            to,
        }
    }

    /// The next place to be visited: which one of which key. `None`: there is none, or it is far.
    fn next_place(&self, visit: &mut Visit) -> Option<(u32, usize)> {
        for _ in 0..GLANCE {
            if let Some(key) = self.keys.get(visit.number) {
                let at = visit.from.max(key.base);
                let index = usize::try_from(at - key.base).unwrap_or(usize::MAX);
                if at < visit.to && index < key.items.len() {
                    visit.from = at + 1;
                    return Some((visit.number, index));
                }
            }
            visit.number += 1;
            if visit.number >= visit.numbers {
                break;
            }
            (visit.from, visit.to) = self.span(visit.number);
        }
        None
    }

    /// Forgets a key that has no items, and says how many of them are gone that the registry was not told of.
    #[inline]
    fn forget(&mut self, number: u32) -> u32 {
        let key = self.keys.take(number);
        self.items.keep(key.items);
        key.gone
    }

    /// Puts a key that is not in the ring at its front, for this round, or at its back, for the next one.
    #[inline]
    fn join(&mut self, number: u32, end: RingEnd) {
        let (mut before, mut after) = (number, number);
        if self.ring > 0 {
            after = self.front;
            before = std::mem::replace(&mut self.keys[after].before, number);
            self.keys[before].after = number;
        }
        let late = u32::from(end == RingEnd::Back);
        let key = &mut self.keys[number];
        (key.before, key.after) = (before, after);
        key.round = self.round.wrapping_add(late);
        if end == RingEnd::Front || self.ring == 0 {
            self.front = number;
        }
        self.ring += 1;
    }

    /// Takes a key out of the ring.
    #[inline]
    fn quit(&mut self, number: u32) {
        let key = &mut self.keys[number];
        let (before, after) = (key.before, std::mem::replace(&mut key.after, NONE));
        self.ring -= 1;
        if self.ring > 0 {
            self.keys[before].after = after;
            self.keys[after].before = before;
        }
        if self.front == number {
            self.front = after;
        }
    }
}

impl<T> Sequence<T, KeyMeta> for Rounds<T> {
    #[inline]
    fn arrive(&mut self, entry: Entry<Stored<T, KeyMeta>>) {
        let meta = entry.item.meta;
        let (key, is_new) = self.keys.meet(meta.key);
        key.weight = meta.weight;
        self.items.push_back(&mut key.items, entry);
        if is_new || !self.serial && key.is_out() {
            self.join(meta.key, RingEnd::Back);
        }
    }

    /// Gives the key a turn back, unless all turns of this round lie before it anyway.
    fn come_back(&mut self, entry: Entry<Stored<T, KeyMeta>>) {
        let meta = entry.item.meta;
        let (key, is_new) = self.keys.meet(meta.key);
        key.weight = meta.weight;
        self.items.push_front(&mut key.items, entry);
        key.base -= 1;
        let in_ring = !is_new && !key.is_out();
        if key.turns > 0 || !in_ring || key.round != self.round {
            key.turns = key.weight.min(key.turns.saturating_add(1));
        }
        key.held = false;
        if in_ring {
            self.quit(meta.key);
        }
        self.join(meta.key, RingEnd::Front);
    }

    #[inline]
    fn next(&mut self, for_good: bool) -> Option<Dequeued<T, KeyMeta>> {
        if self.shown > 0 {
            self.pass_shown();
        }
        if self.ring == 0 {
            return None;
        }
        let number = self.front;
        let key = &mut self.keys[number];
        let entry = self.items.pop_front(&mut key.items)?;
        key.base += 1;
        key.use_turn();
        key.gone += u32::from(for_good);
        let mut gone = 0;
        if key.gone >= self.together {
            gone = std::mem::take(&mut key.gone);
        }
        self.round = key.round;
        if self.serial {
            key.held = true;
            self.quit(number);
        } else if key.items.is_empty() {
            let is_gone = key.shown == 0;
            self.quit(number);
            if is_gone {
                gone += self.forget(number);
            }
        } else if key.turns == 0 {
            // To the back, into the next round.
            key.round = self.round.wrapping_add(1);
            self.front = key.after;
        }
        Some(Dequeued { entry, gone })
    }

    fn minds_leaving(&self) -> bool {
        self.serial
    }

    /// Goes on with the visit of the key, if it has turns left.
    fn leave(&mut self, meta: KeyMeta) -> usize {
        let number = meta.key;
        let Some(key) = self.keys.get_mut(number).filter(|key| key.is_out()) else {
            return 0;
        };
        key.held = false;
        if key.items.is_empty() {
            self.forget(number);
            return 0;
        }
        let held_up = key.is_held_up();
        let end = if key.turns > 0 {
            RingEnd::Front
        } else {
            RingEnd::Back
        };
        self.join(number, end);
        self.held_up += usize::from(held_up);
        usize::from(!held_up)
    }

    fn ready(&self) -> usize {
        if self.serial {
            self.ring - self.held_up
        } else {
            self.items.len()
        }
    }

    fn waiting(&self) -> usize {
        self.items.len() - self.ready()
    }

    /// By the numbers of the keys, and the positions of their items.
    fn begin_visit(&mut self) -> Visit {
        let (from, to) = self.span(0);
        let (number, numbers) = (0, self.keys.end());
        Visit {
            number,
            numbers,
            from,
            to,
        }
    }

    fn show(&mut self, visit: &mut Visit, into: &mut Vec<Shown<T, KeyMeta>>) -> bool {
        for _ in 0..PART {
            let Some((number, index)) = self.next_place(visit) else {
                break;
            };
            let key = &mut self.keys[number];
            let name = self.names + 1;
            let Some(entry) = self.items.show(&mut key.items[index], name) else {
                continue;
            };
            key.shown += 1;
            self.names = name;
            self.shown += 1;
            self.held_up += usize::from(self.serial && index == 0 && !key.is_out());
            into.push(Shown {
                entry,
                number,
                position: visit.from - 1,
                name,
            });
        }
        visit.number < visit.numbers
    }

    fn put_back(&mut self, visit: &mut Visit, shown: Shown<T, KeyMeta>) {
        let Shown { entry, number, .. } = shown;
        let key = &mut self.keys[number];
        let index = usize::try_from(shown.position - key.base).ok();
        let cell = index.and_then(|index| key.items.get_mut(index));
        let left =
            cell.filter(|cell| matches!(cell, ListEntry::Shown(name) if *name == shown.name));
        if let Some(cell) = left {
            self.items.put_back(cell, entry);
        } else {
            if visit.number == number {
                // It was visited, and will be before this position.
                visit.from = visit.from.max(key.base);
            }
            self.items.push_front(&mut key.items, entry);
            key.base -= 1;
        }
        key.shown -= 1;
        self.shown -= 1;
        let is_first = index == Some(0);
        if !key.is_out() {
            self.held_up -= usize::from(self.serial && is_first);
        } else if !self.serial || is_first && !key.held {
            self.join(number, RingEnd::Front);
        }
    }

    fn shown(&self) -> usize {
        self.shown
    }

    fn look_at_times(&self, visit: &mut Visit, least: &mut Option<u64>) -> bool {
        for _ in 0..GLANCE {
            let Some((number, index)) = self.next_place(visit) else {
                break;
            };
            let since = self.keys[number].items[index].since();
            *least = least.iter().copied().chain(since).min();
        }
        visit.number < visit.numbers
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
