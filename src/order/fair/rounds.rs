//! The keys that have ready items, in round-robin order, and their items.
//!
//! The keys form a ring. A key moves to the back, and to the next round, when its service is over; a new key
//! also joins at the back. The keys at the front that belong to the current round are still to be
//! served in it. A key of weight 3 has up to three turns per round. A returned item brings its key to the
//! front, into the current round, and gives the turn back.
//!
//! A key without items is removed, except in a *serial* queue while one of its items is held: the
//! key is out of the ring, and its items wait, until the held item is returned or removed.
//!
//! An item that is being shown keeps its place in the list of its key, and the key its place in the ring. A
//! pop skips the item: then it is later put back at the front of its key, and the key, if it has no other item, leaves
//! the ring until then. In a serial queue shown items are not skipped: while the first item of a key is shown, the
//! key is *blocked*, and leaves the ring when its turn comes.

use super::lists::{KeyItems, Lists, Mark};
use super::meta::KeyMeta;
use super::pages::Pages;
use crate::order::{Dequeued, Sequence, Shown, PART, SCAN_STEP};
use crate::raw::{Entry, Stored};
use crate::sync::start;
use std::ops::Range;

/// No key.
const NO_KEY: u32 = u32::MAX;
/// The number of the first round.
#[allow(clippy::cast_possible_truncation)] // of 32 bits
const FIRST_ROUND: u32 = start(u32::BITS) as u32;

/// The items of all keys.
pub(crate) struct Rounds<T> {
    items: Lists<T>,
    /// The keys in the ring and those out of it, by their numbers.
    keys: Pages<KeyState>,
    /// The key at the front of the ring.
    front: u32,
    /// The number of keys in the ring.
    ring: usize,
    /// The number of the current round. Keys in the ring belong to it or to the next one.
    round: u32,
    /// Whether at most one item of a key is in flight.
    serial: bool,
    /// How many removed items of a key are unregistered at once.
    batch: u32,
    /// The number of items being shown, the number ever shown, and the number of blocked keys in the ring.
    shown: usize,
    names: u64,
    blocked: usize,
}

struct KeyState {
    items: KeyItems,
    /// The position of the first place in its list. An item keeps its position while it is in the list.
    base: i64,
    /// How many of its items are being shown.
    shown: u32,
    /// Its neighbours in the ring. The key is out of the ring while `after` is [`NO_KEY`].
    before: u32,
    after: u32,
    /// The round of its place in the ring.
    round: u32,
    /// How many turns are left in its current service; 0 if none has begun.
    turns: u32,
    weight: u32,
    /// The number of its items that were removed for good but not unregistered yet.
    gone: u32,
    /// Whether one of its items is held; only in a serial queue.
    held: bool,
}

/// Out of the ring.
impl Default for KeyState {
    fn default() -> Self {
        Self {
            items: KeyItems::default(),
            base: 0,
            shown: 0,
            before: NO_KEY,
            after: NO_KEY,
            round: 0,
            turns: 0,
            weight: 0,
            gone: 0,
            held: false,
        }
    }
}

impl KeyState {
    /// Whether it is out of the ring: one of its items is held or shown.
    #[inline]
    fn is_out(&self) -> bool {
        self.after == NO_KEY
    }

    /// Whether its first item is being shown.
    fn is_blocked<T>(&self, items: &Lists<T>) -> bool {
        items.is_first_shown(&self.items)
    }

    /// The positions of its first items, up to `most`.
    fn span(&self, most: usize) -> Range<i64> {
        let count = i64::try_from(self.items.len().min(most)).unwrap_or(i64::MAX);
        self.base..self.base + count
    }

    /// Uses one turn; a new service begins if none has.
    #[inline]
    fn use_turn(&mut self) {
        if self.turns == 0 {
            self.turns = self.weight;
        }
        self.turns -= 1;
    }
}

/// An item and the metadata that all items of its key have in common.
#[inline]
fn without_key<T>(entry: Entry<Stored<T, KeyMeta>>) -> (KeyMeta, Entry<T>) {
    let Entry { item, delivery } = entry;
    let Stored { item, meta } = item;
    (meta, Entry { item, delivery })
}

/// The reverse of [`without_key`].
#[inline]
fn with_key<T>(Entry { item, delivery }: Entry<T>, meta: KeyMeta) -> Entry<Stored<T, KeyMeta>> {
    let item = Stored { item, meta };
    Entry { item, delivery }
}

/// The progress of a visit: the numbers of the keys that are left, the positions that are left in the list of the first
/// of them, and the place that was visited last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Visit {
    keys: Range<u32>,
    items: Range<i64>,
    mark: Mark,
}

/// The place of an item that is being shown, unless it was skipped: then the item of another name, or none, is there.
#[derive(Debug)]
pub(crate) struct Position {
    number: u32,
    at: i64,
    place: u32,
    name: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RingEnd {
    Front,
    Back,
}

/// The state of a key in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Its number.
    pub(crate) key: u32,
    pub(crate) items: usize,
    /// Whether it is still to be served in the current round.
    pub(crate) in_round: bool,
}

impl<T> Rounds<T> {
    /// Unless `serial`, removed items of a key are unregistered `batch` at once, or fewer when the key has no more
    /// items.
    pub(crate) fn new(serial: bool, batch: u32) -> Self {
        Self {
            items: Lists::new(),
            keys: Pages::default(),
            front: NO_KEY,
            ring: 0,
            round: FIRST_ROUND,
            serial,
            batch,
            shown: 0,
            names: 0,
            blocked: 0,
        }
    }

    /// The keys in the order in which they will be served, then those that wait for a held or shown item.
    pub(crate) fn standings(&self) -> impl Iterator<Item = Standing> + '_ {
        let standing = |number, key: &KeyState| Standing {
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

    /// Skips shown items, until the key at the front of the ring has an available one.
    #[cold]
    fn skip_shown(&mut self) {
        while self.ring > 0 {
            let key = &mut self.keys[self.front];
            while !self.serial && key.is_blocked(&self.items) {
                self.items.skip_front(&mut key.items);
                key.base += 1;
            }
            if !key.items.is_empty() && !key.is_blocked(&self.items) {
                return;
            }
            self.blocked -= usize::from(self.serial);
            self.leave_ring(self.front);
        }
    }

    /// The positions at which the ready items of a key are visited.
    fn span(&self, number: u32) -> Range<i64> {
        let key = self.keys.get(number).filter(|key| !key.is_out());
        let most = if self.serial { 1 } else { usize::MAX };
        key.map_or(0..0, |key| key.span(most))
    }

    /// Begins a visit to the items of one key, ready or not.
    pub(crate) fn begin_visit_of(&self, number: u32) -> Visit {
        let key = self.keys.get(number);
        Visit {
            keys: number..number + 1,
            items: key.map_or(0..0, |key| key.span(usize::MAX)),
            mark: Mark::default(),
        }
    }

    /// Advances a visit to the next place, [marked](Visit::mark) then, and returns its key. `None` if there is none, or
    /// none within [`SCAN_STEP`].
    fn next_place(&self, visit: &mut Visit) -> Option<u32> {
        for number in visit.keys.clone().take(SCAN_STEP) {
            if let Some(key) = self.keys.get(number) {
                let at = visit.items.start.max(key.base);
                if at < visit.items.end.min(key.span(usize::MAX).end) {
                    self.items
                        .place_at(&key.items, key.base, at, &mut visit.mark);
                    visit.items.start = at + 1;
                    return Some(number);
                }
            }
            visit.keys.start = number + 1;
            (visit.items, visit.mark) = (self.span(number + 1), Mark::default());
        }
        None
    }

    /// Removes a key without items, and returns how many of its items are still to be unregistered.
    #[inline]
    fn forget(&mut self, number: u32) -> u32 {
        self.keys.take(number).gone
    }

    /// Releases the memory of places that are not needed.
    #[cold]
    fn sweep(&mut self) {
        let lists = self.keys.places_mut().map(|key| &mut key.items);
        self.items.sweep(lists);
    }

    /// Inserts a key into the ring: at the front, for this round, or at the back, for the next one.
    #[inline(never)] // once per key that gets items; the arrival of each item has the registers
    fn join_ring(&mut self, number: u32, end: RingEnd) {
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

    /// Removes a key from the ring.
    #[inline]
    fn leave_ring(&mut self, number: u32) {
        let key = &mut self.keys[number];
        let (before, after) = (key.before, std::mem::replace(&mut key.after, NO_KEY));
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
    type Visit = Visit;
    type Position = Position;

    #[inline(always)] // by the intake, for each item
    fn arrive(&mut self, entry: Entry<Stored<T, KeyMeta>>) {
        let (meta, entry) = without_key(entry);
        let (key, is_new) = self.keys.get_or_insert(meta.key);
        key.weight = meta.weight;
        self.items.push_back(&mut key.items, entry);
        if is_new || key.is_out() && !self.serial {
            self.join_ring(meta.key, RingEnd::Back);
        }
    }

    /// Gives the key a turn back, unless its service in this round has not begun.
    fn come_back(&mut self, entry: Entry<Stored<T, KeyMeta>>) {
        let (meta, entry) = without_key(entry);
        let (key, is_new) = self.keys.get_or_insert(meta.key);
        key.weight = meta.weight;
        self.items.push_front(&mut key.items, entry);
        key.base -= 1;
        let in_ring = !is_new && !key.is_out();
        if key.turns > 0 || !in_ring || key.round != self.round {
            key.turns = key.weight.min(key.turns.saturating_add(1));
        }
        key.held = false;
        if in_ring {
            self.leave_ring(meta.key);
        }
        self.join_ring(meta.key, RingEnd::Front);
    }

    #[inline]
    fn next(&mut self, for_good: bool) -> Option<Dequeued<T, KeyMeta>> {
        if self.shown > 0 {
            self.skip_shown();
        }
        if self.ring == 0 {
            return None;
        }
        let number = self.front;
        let key = &mut self.keys[number];
        let entry = self.items.pop_front(&mut key.items)?;
        let meta = KeyMeta::new(number, key.weight);
        key.base += 1;
        key.use_turn();
        self.round = key.round;
        let mut gone = 0;
        if self.serial {
            key.held = true;
            self.leave_ring(number);
        } else {
            key.gone += u32::from(for_good);
            if key.gone >= self.batch {
                gone = std::mem::take(&mut key.gone);
            }
            if key.items.is_empty() {
                let is_gone = key.shown == 0;
                self.leave_ring(number);
                if is_gone {
                    gone += self.forget(number);
                }
            } else if key.turns == 0 {
                // Move to the back, into the next round.
                key.round = self.round.wrapping_add(1);
                self.front = key.after;
            }
        }
        if self.items.is_wasteful() && self.shown == 0 {
            self.sweep();
        }
        let entry = with_key(entry, meta);
        Some(Dequeued { entry, gone })
    }

    fn tracks_removal(&self) -> bool {
        self.serial
    }

    /// Continues the service of the key if it has turns left.
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
        let blocked = key.is_blocked(&self.items);
        let end = if key.turns > 0 {
            RingEnd::Front
        } else {
            RingEnd::Back
        };
        self.join_ring(number, end);
        self.blocked += usize::from(blocked);
        usize::from(!blocked)
    }

    fn ready(&self) -> usize {
        if self.serial {
            self.ring - self.blocked
        } else {
            self.items.len()
        }
    }

    fn waiting(&self) -> usize {
        self.items.len() - self.ready()
    }

    fn begin_visit(&mut self) -> Visit {
        Visit {
            keys: 0..self.keys.end(),
            items: self.span(0),
            mark: Mark::default(),
        }
    }

    fn show(&mut self, visit: &mut Visit, into: &mut Vec<Shown<T, KeyMeta, Position>>) -> bool {
        for _ in 0..PART {
            let Some(number) = self.next_place(visit) else {
                break;
            };
            let key = &mut self.keys[number];
            let name = self.names + 1;
            let Mark {
                place, position, ..
            } = visit.mark;
            let Some(entry) = self.items.show(place, name) else {
                continue;
            };
            key.shown += 1;
            self.names = name;
            self.shown += 1;
            let is_first = position == key.base;
            self.blocked += usize::from(self.serial && is_first && !key.is_out());
            into.push(Shown {
                entry: with_key(entry, KeyMeta::new(number, key.weight)),
                position: Position {
                    number,
                    at: position,
                    place,
                    name,
                },
            });
        }
        !visit.keys.is_empty()
    }

    fn put_back(&mut self, visit: &mut Visit, shown: Shown<T, KeyMeta, Position>) {
        let Position {
            number,
            at,
            place,
            name,
        } = shown.position;
        let (_, entry) = without_key(shown.entry);
        let key = &mut self.keys[number];
        let is_first = at == key.base;
        let put = self.items.put_back(place, name, entry);
        if let Err(entry) = put {
            if visit.keys.start == number {
                // It has been visited; its new position must not be visited again.
                visit.items.start = visit.items.start.max(key.base);
            }
            self.items.push_front(&mut key.items, entry);
            key.base -= 1;
        }
        key.shown -= 1;
        self.shown -= 1;
        if !key.is_out() {
            self.blocked -= usize::from(self.serial && is_first);
        } else if !self.serial || is_first && !key.held {
            self.join_ring(number, RingEnd::Front);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
