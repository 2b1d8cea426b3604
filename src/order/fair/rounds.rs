//! The keys that have ready items, in round-robin order, and their items.
//!
//! The keys form a ring. A key moves to the back, and to the next round, when its service is over; a new key
//! also joins at the back. The keys at the front that belong to the current round are still to be
//! served in it. A key of weight 3 has up to three turns per round. A returned item brings its key to the
//! front, into the current round, and gives the turn back.
//!
//! A key without items is removed, except in a *limited* queue while some of its items are held. While as many of them are
//! held as the limit says, the key is out of the ring, and its items wait, until a held item is returned or removed. If the
//! limit is 1 the queue is *serial*.
//!
//! An item that is being shown keeps its place in the list of its key, and the key its place in the ring. A
//! pop skips the item: then it is later put back at the front of its key, and the key, if it has no other item, leaves
//! the ring until then. In a serial queue shown items are not skipped: while the first item of a key is shown, the
//! key is *blocked*, and leaves the ring when its turn comes.

use super::ages::Ages;
use super::keys::UNLIMITED;
use super::meta::KeyMeta;
use super::pages::Pages;
use crate::order::lists::{List, Lists, Position};
use crate::order::{Dequeued, Sequence, Shown, PART};
use crate::raw::{Entry, Stored};
use crate::sync::start;

mod groups;
mod visit;

pub(crate) use visit::{KeyPosition, Visit};

/// No key.
const NO_KEY: u32 = u32::MAX;
/// The number of the first round.
#[allow(clippy::cast_possible_truncation)] // of 32 bits
const FIRST_ROUND: u32 = start(u32::BITS) as u32;

/// The items of all keys.
pub(crate) struct Rounds<T> {
    items: Lists<T, ()>,
    /// The keys in the ring and those out of it, by their numbers.
    keys: Pages<KeyState>,
    /// The key at the front of the ring.
    front: u32,
    /// The number of keys in the ring.
    ring: usize,
    /// The number of the current round. Keys in the ring belong to it or to the next one.
    round: u32,
    /// The most items of one key that are held.
    most_held: u32,
    /// How many removed items of a key are unregistered at once.
    batch: u32,
    /// The number of blocked keys in the ring.
    blocked: usize,
    /// The number of visits in progress. Meanwhile items stay in their places.
    visits: usize,
    /// When to look at which key for old items; made at the first [`Sequence::take_old`].
    ages: Option<Box<Ages>>,
    /// Made at the first [`Sequence::retain_empty`].
    groups: Option<Box<groups::Groups<T>>>,
    /// The numbers of items: increasing for pushed ones, decreasing for those at the front.
    last: i64,
    first: i64,
}

struct KeyState {
    items: List,
    /// How many items it has, those being shown included.
    len: u32,
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
    /// How many of its items are held; only in a limited queue.
    held: u32,
}

/// Out of the ring.
impl Default for KeyState {
    fn default() -> Self {
        Self {
            items: List::EMPTY,
            len: 0,
            before: NO_KEY,
            after: NO_KEY,
            round: 0,
            turns: 0,
            weight: 0,
            gone: 0,
            held: 0,
        }
    }
}

impl KeyState {
    /// Whether it is out of the ring: its items are shown, or too many are held.
    #[inline]
    fn is_out(&self) -> bool {
        self.after == NO_KEY
    }

    /// Uses one turn; a new service begins if none has.
    #[inline]
    fn use_turn(&mut self) {
        if self.turns == 0 {
            self.turns = self.weight;
        }
        self.turns -= 1;
    }

    #[cold] // once per batch, by a branch
    fn take_gone(&mut self) -> u32 {
        std::mem::take(&mut self.gone)
    }
}

/// An item with other metadata: in its list it has none, since all items of a key have the same.
#[inline]
fn with_meta<T, M, N>(
    Entry { item, delivery }: Entry<Stored<T, M>>,
    meta: N,
) -> Entry<Stored<T, N>> {
    let Stored { item, .. } = item;
    let item = Stored { item, meta };
    Entry { item, delivery }
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
    /// Without a limit of held ones, removed items of a key are unregistered `batch` at once, or fewer when the key has no
    /// more items.
    pub(crate) fn new(most_held: u32, batch: u32) -> Self {
        Self {
            items: Lists::new(),
            keys: Pages::default(),
            front: NO_KEY,
            ring: 0,
            round: FIRST_ROUND,
            most_held,
            batch,
            blocked: 0,
            visits: 0,
            ages: None,
            groups: None,
            last: 0,
            first: 0,
        }
    }

    /// Whether the next item of a key waits for the one before.
    #[inline]
    fn is_serial(&self) -> bool {
        self.most_held == 1
    }

    /// The keys in the order in which they will be served, then those that wait for a held or shown item.
    pub(crate) fn standings(&self) -> impl Iterator<Item = Standing> + '_ {
        let standing = |number, key: &KeyState| Standing {
            key: number,
            items: key.len as usize,
            in_round: !key.is_out() && key.round == self.round,
        };
        let out = self
            .keys
            .iter()
            .filter(|(_, key)| key.is_out() && key.len > 0);
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
        let is_serial = self.is_serial();
        while self.ring > 0 {
            let key = &mut self.keys[self.front];
            if !is_serial {
                self.items.trim(&mut key.items);
            }
            if !key.items.is_empty() && !self.items.begins_with_gap(&key.items) {
                return;
            }
            self.blocked -= usize::from(is_serial);
            self.leave_ring(self.front);
        }
    }

    /// Removes a key without items, and returns how many of its items are still to be unregistered.
    #[inline]
    fn forget(&mut self, number: u32) -> u32 {
        self.keys.take(number).gone
    }

    /// Notes the time of the first item of a key, if there is one, unless an earlier one is noted.
    fn note_age(&mut self, number: u32) {
        let Some(ages) = &mut self.ages else {
            return;
        };
        let key = self.keys.get(number);
        if let Some((.., since)) = key.and_then(|key| self.items.first_item(&key.items)) {
            ages.note(number, since);
        }
    }

    /// Takes an item out of the list of its key, to be shown, or for good and without a turn.
    fn take_out(&mut self, number: u32, at: Position) -> Option<Shown<T, KeyMeta, KeyPosition>> {
        let (is_serial, key) = (self.is_serial(), &mut self.keys[number]);
        let entry = self.items.take(at)?;
        let is_first = self.items.is_first(&key.items, at);
        self.blocked += usize::from(is_serial && is_first && !key.is_out());
        let entry = with_meta(entry, KeyMeta::new(number, key.weight));
        self.note_left(&entry.item.item);
        let position = KeyPosition { key: number, at };
        Some(Shown { entry, position })
    }

    /// Releases the memory of places that are not needed, unless a visit needs them.
    #[cold]
    fn sweep(&mut self) {
        if self.visits > 0 {
            return;
        }
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
        self.note_age(number);
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

    /// Dequeues the next item. If there are `GAPS`, it removes those that it finds.
    #[inline(always)] // the pop of an order
    fn dequeue<const GAPS: bool>(&mut self, for_good: bool) -> Option<Dequeued<T, KeyMeta>> {
        if GAPS {
            self.skip_shown();
        }
        if self.ring == 0 {
            return None;
        }
        let number = self.front;
        let key = &mut self.keys[number];
        let entry = self.items.pop_front(&mut key.items)?;
        if GAPS {
            self.items.trim_gone(&mut key.items);
        }
        let meta = KeyMeta::new(number, key.weight);
        key.len -= 1;
        key.use_turn();
        self.round = key.round;
        let (mut gone, mut at_limit) = (0, false);
        if self.most_held == UNLIMITED {
            key.gone += u32::from(for_good);
            if key.gone >= self.batch {
                gone = key.take_gone();
            }
        } else {
            key.held += 1;
            at_limit = key.held == self.most_held;
        }
        if at_limit || key.items.is_empty() {
            let is_gone = key.len == 0 && key.held == 0;
            self.leave_ring(number);
            if is_gone {
                gone += self.forget(number);
            }
        } else if key.turns == 0 {
            // Move to the back, into the next round.
            key.round = self.round.wrapping_add(1);
            self.front = key.after;
        }
        if self.items.is_wasteful() {
            self.sweep();
        }
        let entry = with_meta(entry, meta);
        Some(Dequeued { entry, gone })
    }

    #[cold]
    #[inline(never)]
    fn dequeue_among_gaps(&mut self, for_good: bool) -> Option<Dequeued<T, KeyMeta>> {
        let dequeued = self.dequeue::<true>(for_good)?;
        self.note_left(&dequeued.entry.item.item);
        Some(dequeued)
    }
}

impl<T> Sequence<T, KeyMeta> for Rounds<T> {
    type Visit = Visit;
    type Position = KeyPosition;

    #[inline(always)] // by the intake, for each item
    fn arrive(&mut self, entry: Entry<Stored<T, KeyMeta>>) {
        let meta = entry.item.meta;
        let is_serial = self.is_serial();
        let (key, is_new) = self.keys.get_or_insert(meta.key);
        key.weight = meta.weight;
        key.len += 1;
        self.last += 1;
        self.items
            .push_back(&mut key.items, self.last, with_meta(entry, ()));
        if key.is_out() {
            if is_new || !is_serial && key.held < self.most_held {
                self.join_ring(meta.key, RingEnd::Back);
            } else {
                self.note_age(meta.key);
            }
        }
        if self.groups.is_some() {
            self.note_arrived(meta.key);
        }
    }

    /// Gives the key a turn back, unless its service in this round has not begun.
    fn come_back(&mut self, entry: Entry<Stored<T, KeyMeta>>) {
        let meta = entry.item.meta;
        self.note_came(&entry.item.item);
        let (key, is_new) = self.keys.get_or_insert(meta.key);
        key.weight = meta.weight;
        key.len += 1;
        self.first -= 1;
        self.items
            .push_front(&mut key.items, self.first, with_meta(entry, ()));
        let in_ring = !is_new && !key.is_out();
        if key.turns > 0 || !in_ring || key.round != self.round {
            key.turns = key.weight.min(key.turns.saturating_add(1));
        }
        key.held = key.held.saturating_sub(1); // a restored one was not counted
        if in_ring {
            self.leave_ring(meta.key);
        }
        self.join_ring(meta.key, RingEnd::Front);
    }

    #[inline(always)] // the pop
    fn next(&mut self, for_good: bool) -> Option<Dequeued<T, KeyMeta>> {
        if self.items.has_gaps() || self.groups.is_some() {
            self.dequeue_among_gaps(for_good)
        } else {
            self.dequeue::<false>(for_good)
        }
    }

    fn tracks_removal(&self) -> bool {
        self.most_held != UNLIMITED
    }

    fn take_old(
        &mut self,
        until: u64,
        most: usize,
        into: &mut Vec<Dequeued<T, KeyMeta>>,
    ) -> Option<u64> {
        if self.ages.is_none() {
            self.ages = Some(Box::default());
            for number in 0..self.keys.end() {
                self.note_age(number);
            }
        }
        let next = loop {
            let ages = self.ages.as_mut()?;
            let Some((since, number)) = ages.first() else {
                break None;
            };
            if since > until || into.len() >= most {
                break Some(since);
            }
            ages.remove_first();
            let key = self.keys.get(number);
            let first = key.and_then(|key| self.items.first_item(&key.items));
            let old = first.filter(|(.., since)| *since <= until);
            if let Some(shown) = old.and_then(|(at, ..)| self.take_out(number, at)) {
                let gone = self.forget_shown(shown.position);
                let entry = shown.entry;
                into.push(Dequeued { entry, gone });
            }
            self.note_age(number); // not while its first item is shown
        };
        if self.items.is_wasteful() {
            self.sweep();
        }
        next
    }

    fn retain_empty(&mut self, group_of: fn(&T) -> u16, groups: &mut Vec<u16>) {
        self.retain_empty_groups(group_of, groups);
    }

    /// Continues the service of the key if it has turns left.
    fn leave(&mut self, meta: KeyMeta) -> usize {
        let number = meta.key;
        if self.keys.get(number).is_none() {
            return 0;
        }
        let key = &mut self.keys[number];
        key.held = key.held.saturating_sub(1);
        if key.len == 0 && key.held == 0 {
            self.forget(number);
            return 0;
        }
        if !key.is_out() || key.items.is_empty() {
            return 0;
        }
        let blocked = self.most_held == 1 && self.items.begins_with_gap(&key.items);
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
        if self.is_serial() {
            self.ring - self.blocked
        } else if self.ring == 0 {
            0
        } else {
            self.items.len()
        }
    }

    fn waiting(&self) -> usize {
        self.items.len() - self.ready()
    }

    fn begin_visit(&mut self, all: bool) -> Visit {
        self.visit(0..self.keys.end(), all)
    }

    fn show(&mut self, visit: &mut Visit, into: &mut Vec<Shown<T, KeyMeta, KeyPosition>>) -> bool {
        for _ in 0..PART {
            let Some(number) = self.next_place(visit) else {
                break;
            };
            into.extend(self.take_out(number, visit.at));
        }
        !visit.keys.is_empty()
    }

    fn put_back(&mut self, _: &mut Visit, shown: Shown<T, KeyMeta, KeyPosition>) {
        let KeyPosition { key: number, at } = shown.position;
        let is_serial = self.is_serial();
        self.note_came(&shown.entry.item.item);
        let key = &mut self.keys[number];
        let is_first = self.items.is_first(&key.items, at);
        let put = self.items.put_back(at, with_meta(shown.entry, ()));
        if let Err(entry) = put {
            self.first -= 1;
            self.items.push_front(&mut key.items, self.first, entry);
        }
        if !key.is_out() {
            self.blocked -= usize::from(is_serial && is_first);
        } else if key.held < self.most_held && (is_first || !is_serial) {
            self.join_ring(number, RingEnd::Front);
        }
        self.note_age(number);
    }

    fn remove_shown(&mut self, _: KeyMeta, position: KeyPosition) -> u32 {
        self.forget_shown(position)
    }

    fn end_visit(&mut self) {
        self.visits -= 1;
        if self.items.has_many_gaps() || self.items.is_wasteful() {
            self.sweep();
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
