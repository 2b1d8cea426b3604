//! The items of a fair queue.

use super::disciplines::{Fairness, Key};
use super::item::Mark;
use super::stock::Card;
use std::collections::{BTreeMap, VecDeque};
use std::mem;

/// The keys in the order in which they are served, and their items.
#[derive(Debug)]
pub(crate) struct Rounds {
    rules: Fairness,
    /// The keys left in this round, and those that joined or were served.
    this: VecDeque<Key>,
    next: VecDeque<Key>,
    piles: BTreeMap<Key, Pile>,
}

/// The items of a key.
#[derive(Debug, Default)]
struct Pile {
    items: VecDeque<Mark>,
    /// Items left in the current visit to the key; 0: no visit has begun.
    turns: u32,
    /// Whether the key is not served, since one of its items is out.
    out: bool,
}

impl Rounds {
    pub(super) fn new(rules: Fairness) -> Self {
        Self {
            rules,
            this: VecDeque::new(),
            next: VecDeque::new(),
            piles: BTreeMap::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.piles.values().map(|pile| pile.items.len()).sum()
    }

    /// The items that may be taken next.
    pub(super) fn ready(&self) -> Vec<Mark> {
        let most = if self.rules.serial { 1 } else { usize::MAX };
        let piles = self.piles.values().filter(|pile| !pile.out);
        piles
            .flat_map(|pile| pile.items.iter().take(most))
            .copied()
            .collect()
    }

    /// The keys left in this round.
    pub(crate) fn round(&self) -> impl Iterator<Item = Key> + '_ {
        self.this.iter().copied()
    }

    /// All keys that will be served, in this order, with their items.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = (Key, usize)> + '_ {
        let keys = self.this.iter().chain(&self.next);
        keys.map(|key| (*key, self.piles[key].items.len()))
    }

    /// The keys that wait for an item that is out, with their items.
    pub(crate) fn out(&self) -> impl Iterator<Item = (Key, usize)> + '_ {
        let piles = self.piles.iter().filter(|(_, pile)| pile.out);
        let counts = piles.map(|(key, pile)| (*key, pile.items.len()));
        counts.filter(|(_, count)| *count > 0)
    }

    pub(super) fn arrive(&mut self, card: Card) {
        let next = &mut self.next;
        let pile = self.piles.entry(card.key).or_insert_with(|| {
            next.push_back(card.key);
            Pile::default()
        });
        pile.items.push_back(card.mark);
    }

    /// The key is the first again, with its remaining items per visit.
    pub(super) fn come_back(&mut self, card: Card) {
        let key = card.key;
        let is_yet_to_be_visited = self.this.contains(&key);
        let pile = self.piles.entry(key).or_default();
        pile.items.push_front(card.mark);
        pile.out = false;
        let has_all_turns = is_yet_to_be_visited && pile.turns == 0;
        if !has_all_turns {
            pile.turns = self.rules.weight(key).min(pile.turns + 1);
        }
        self.this.retain(|other| *other != key);
        self.next.retain(|other| *other != key);
        self.this.push_front(key);
    }

    pub(super) fn next(&mut self) -> Option<Mark> {
        if self.this.is_empty() {
            self.this = mem::take(&mut self.next);
        }
        let key = *self.this.front()?;
        let pile = self.piles.get_mut(&key).expect("a key in the round");
        let item = pile.items.pop_front();
        if pile.turns == 0 {
            pile.turns = self.rules.weight(key);
        }
        pile.turns -= 1;
        let stays = pile.turns > 0 && !pile.items.is_empty() && !self.rules.serial;
        if !stays {
            self.this.pop_front();
        }
        if self.rules.serial {
            pile.out = true;
        } else if pile.items.is_empty() {
            self.piles.remove(&key);
        } else if !stays {
            self.next.push_back(key);
        }
        item
    }

    /// An item is gone for good: its key is served again.
    pub(super) fn leave(&mut self, mark: Mark) {
        let key = self.rules.key_of(mark);
        let Some(pile) = self.piles.get_mut(&key).filter(|pile| pile.out) else {
            return;
        };
        pile.out = false;
        if pile.items.is_empty() {
            self.piles.remove(&key);
        } else if pile.turns > 0 {
            self.this.push_front(key);
        } else {
            self.next.push_back(key);
        }
    }
}
