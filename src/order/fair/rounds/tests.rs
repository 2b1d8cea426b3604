//! Tests of rounds, by example and against a simple model.

use super::{
    Dequeued, KeyMeta, KeyPosition, KeyState, Rounds, Sequence, Shown, Standing, Visit, PART,
};
use crate::order::fair::UNLIMITED;
use crate::order::tests::{oldest as oldest_of, remove_some, show_all};
use crate::order::SCAN_STEP;
use crate::raw::{DeliveryMeta, Entry, Stored};
use std::collections::{BTreeSet, VecDeque};

/// How many items are unregistered at once.
const BATCH: u32 = 3;

/// An item of a key of weight 1; the first letter of the name is the key.
fn entry(name: &str) -> Entry<Stored<String, KeyMeta>> {
    weighted(name, 1)
}

fn weighted(name: &str, weight: u32) -> Entry<Stored<String, KeyMeta>> {
    let key = u32::from(name.as_bytes()[0]);
    let item = Stored {
        item: name.to_owned(),
        meta: KeyMeta { key, weight },
    };
    let (attempts, since) = (1, 0);
    let delivery = DeliveryMeta { attempts, since };
    Entry { item, delivery }
}

fn arrive(rounds: &mut Rounds<String>, names: &str) {
    for name in names.split_whitespace() {
        rounds.arrive(entry(name));
    }
}

/// Asserts that the next items are those with these names.
#[track_caller]
fn expect(rounds: &mut Rounds<String>, names: &str) {
    for name in names.split_whitespace() {
        let item = rounds.next(false).map(|dequeued| dequeued.entry.item.item);
        assert_eq!(item.as_deref(), Some(name));
    }
}

#[track_caller]
fn expect_all(rounds: &mut Rounds<String>, names: &str) {
    expect(rounds, names);
    assert!(rounds.next(false).is_none());
    assert_eq!((rounds.ready(), rounds.keys.len()), (0, 0));
}

fn order(name: &str) -> KeyMeta {
    entry(name).item.meta
}

#[test]
fn each_round_serves_each_key_once() {
    let mut rounds = Rounds::new(UNLIMITED, BATCH);
    arrive(&mut rounds, "A1 B1 A2 A3 B2 C1 C2 C3 C4");
    expect_all(&mut rounds, "A1 B1 C1 A2 B2 C2 A3 C3 C4");
}

#[test]
fn a_key_that_joins_later_is_served_in_the_next_round() {
    let mut rounds = Rounds::new(UNLIMITED, BATCH);
    arrive(&mut rounds, "a1 b1 a2");
    expect(&mut rounds, "a1");
    arrive(&mut rounds, "a3 a4");
    expect(&mut rounds, "b1");
    arrive(&mut rounds, "b2");
    expect_all(&mut rounds, "a2 b2 a3 a4");
}

#[test]
fn a_returned_item_keeps_its_turn() {
    let mut rounds = Rounds::new(UNLIMITED, BATCH);
    arrive(&mut rounds, "a1 a2 b1 b2 c1");
    expect(&mut rounds, "a1 b1 c1 a2");
    for name in ["a2", "c1", "b1", "a1"] {
        rounds.come_back(entry(name));
    }
    expect_all(&mut rounds, "a1 b1 c1 a2 b2");
}

#[test]
fn a_key_has_as_many_turns_in_a_round_as_its_weight() {
    let mut rounds = Rounds::new(UNLIMITED, BATCH);
    for name in ["a1", "a2", "a3", "a4", "a5"] {
        rounds.arrive(weighted(name, 3));
    }
    arrive(&mut rounds, "b1 b2 b3");
    expect(&mut rounds, "a1 a2 a3 b1 a4");
    // The second service, of which one turn is used.
    rounds.arrive(weighted("a6", 3));
    rounds.arrive(weighted("a7", 3));
    expect_all(&mut rounds, "a5 a6 b2 a7 b3");
}

#[test]
fn turns_come_back_one_by_one() {
    let mut rounds = Rounds::new(UNLIMITED, BATCH);
    for name in ["a1", "a2", "a3", "a4", "a5", "a6"] {
        rounds.arrive(weighted(name, 3));
    }
    arrive(&mut rounds, "b1 b2");
    expect(&mut rounds, "a1 a2 a3");
    rounds.come_back(weighted("a3", 3)); // the other two are removed
    expect(&mut rounds, "a3 b1 a4 a5");
    rounds.come_back(weighted("a5", 3));
    rounds.come_back(weighted("a4", 3));
    expect_all(&mut rounds, "a4 a5 a6 b2");
}

#[test]
fn a_service_that_has_not_begun_keeps_all_turns() {
    let mut rounds = Rounds::new(UNLIMITED, BATCH);
    rounds.arrive(weighted("a1", 2));
    expect(&mut rounds, "a1");
    arrive(&mut rounds, "b1");
    for name in ["a2", "a3", "a4"] {
        rounds.arrive(weighted(name, 2));
    }
    arrive(&mut rounds, "c1");
    expect(&mut rounds, "b1");
    rounds.come_back(weighted("a1", 2));
    expect_all(&mut rounds, "a1 a2 c1 a3 a4");
}

#[test]
fn an_item_returned_after_the_service_has_its_turn_in_the_same_round() {
    let mut rounds = Rounds::new(UNLIMITED, BATCH);
    for name in ["a1", "a2", "a3", "a4"] {
        rounds.arrive(weighted(name, 2));
    }
    arrive(&mut rounds, "b1 c1 b2 c2");
    expect(&mut rounds, "a1 a2 b1");
    rounds.come_back(weighted("a2", 2));
    expect_all(&mut rounds, "a2 c1 b2 a3 a4 c2");
}

#[test]
fn a_serial_key_waits_for_its_item() {
    let mut rounds = Rounds::new(1, BATCH);
    arrive(&mut rounds, "a1 a2 b1 a3");
    assert_eq!((rounds.ready(), rounds.waiting()), (2, 2));
    expect(&mut rounds, "a1 b1");
    assert!(rounds.next(false).is_none());
    assert_eq!((rounds.ready(), rounds.waiting()), (0, 2));
    arrive(&mut rounds, "b2");
    assert_eq!(rounds.leave(order("b1")), 1);
    assert_eq!(rounds.leave(order("a1")), 1);
    expect(&mut rounds, "b2 a2");
    assert_eq!(rounds.leave(order("b2")), 0);
    rounds.come_back(entry("a2"));
    assert_eq!((rounds.ready(), rounds.waiting()), (1, 1));
    expect(&mut rounds, "a2");
    assert_eq!(rounds.leave(order("a2")), 1);
    expect(&mut rounds, "a3");
    assert_eq!(rounds.leave(order("a3")), 0);
    expect_all(&mut rounds, "");
}

#[test]
fn a_serial_key_of_weight_continues_its_service() {
    let mut rounds = Rounds::new(1, BATCH);
    for name in ["a1", "a2", "a3"] {
        rounds.arrive(weighted(name, 2));
    }
    arrive(&mut rounds, "b1 b2");
    for name in ["a1", "a2", "b1", "a3", "b2"] {
        expect(&mut rounds, name);
        rounds.leave(order(name));
    }
    expect_all(&mut rounds, "");
}

#[test]
fn leaving_without_a_held_item_does_nothing() {
    let mut rounds = Rounds::new(UNLIMITED, BATCH);
    arrive(&mut rounds, "a1 a2");
    expect(&mut rounds, "a1");
    assert_eq!(rounds.leave(order("a1")), 0);
    assert_eq!(rounds.leave(order("z1")), 0);
    expect_all(&mut rounds, "a2");
}

#[test]
fn standings_contain_the_round_and_all_keys() {
    let list = |rounds: &Rounds<_>| -> Vec<_> {
        let standings = rounds.standings();
        standings
            .map(
                |Standing {
                     key,
                     items,
                     in_round,
                 }| (char::from_u32(key).unwrap(), items, in_round),
            )
            .collect()
    };
    let mut rounds = Rounds::new(1, BATCH);
    arrive(&mut rounds, "a1 b1 c1 a2 a3 c2");
    assert_eq!(
        list(&rounds),
        [('a', 3, false), ('b', 1, false), ('c', 2, false)]
    );
    expect(&mut rounds, "a1");
    assert_eq!(
        list(&rounds),
        [('b', 1, true), ('c', 2, true), ('a', 2, false)]
    );
    rounds.leave(order("a1"));
    arrive(&mut rounds, "d1");
    expect(&mut rounds, "b1");
    assert_eq!(
        list(&rounds),
        [('c', 2, true), ('a', 2, false), ('d', 1, false)]
    );
}

#[test]
fn the_oldest_is_the_least_known_timestamp() {
    let oldest = |most_held| {
        let mut rounds = Rounds::new(most_held, BATCH);
        for (name, since) in [("a1", 7), ("a2", 3), ("b1", 0), ("b2", 5)] {
            let mut entry = entry(name);
            entry.delivery.since = since;
            rounds.arrive(entry);
        }
        oldest_of(&mut rounds).0
    };
    assert_eq!((oldest(UNLIMITED), oldest(1)), (Some(3), Some(7)));
    let mut empty = Rounds::<String>::new(UNLIMITED, BATCH);
    assert_eq!(oldest_of(&mut empty), (None, 1));
}

/// With one key, and with as many keys as items.
#[test]
fn times_and_items_are_scanned_in_small_parts() {
    const ITEMS: usize = 10 * SCAN_STEP;
    for keys in [1, u32::try_from(ITEMS).unwrap()] {
        let mut rounds = Rounds::new(UNLIMITED, BATCH);
        for (item, since) in (0..ITEMS).zip(10..) {
            let key = u32::try_from(item).unwrap() % keys;
            let meta = KeyMeta { key, weight: 1 };
            let delivery = DeliveryMeta { attempts: 1, since };
            let item = Stored { item, meta };
            rounds.arrive(Entry { item, delivery });
        }
        let (oldest, parts) = oldest_of(&mut rounds);
        assert_eq!(oldest, Some(10));
        assert!(parts >= ITEMS / SCAN_STEP, "{parts}");
        let (items, parts) = show_all(&mut rounds);
        assert_eq!(shown_by(&rounds), 0);
        assert!(items.into_iter().eq(0..ITEMS));
        assert!(parts >= ITEMS / PART, "{parts}");
    }
}

/// How many items are being shown.
fn shown_by<T>(rounds: &Rounds<T>) -> usize {
    let all: u32 = rounds.keys.iter().map(|(_, key)| key.len).sum();
    all as usize - rounds.items.len()
}

/// Shows one part of a new visit.
fn show(rounds: &mut Rounds<String>) -> Vec<Shown<String, KeyMeta, KeyPosition>> {
    let mut shown = Vec::new();
    let mut visit = rounds.begin_visit(false);
    rounds.show(&mut visit, &mut shown);
    rounds.end_visit();
    shown
}

fn put_back(rounds: &mut Rounds<String>, mut shown: Vec<Shown<String, KeyMeta, KeyPosition>>) {
    while let Some(shown) = shown.pop() {
        let mut visit = rounds.begin_visit(false);
        rounds.put_back(&mut visit, shown);
    }
}

#[test]
fn a_pop_skips_shown_items() {
    let mut rounds = Rounds::new(UNLIMITED, BATCH);
    arrive(&mut rounds, "a1 b1 a2");
    let shown = show(&mut rounds);
    assert_eq!((shown.len(), rounds.ready(), shown_by(&rounds)), (3, 0, 3));
    arrive(&mut rounds, "a3 c1");
    expect(&mut rounds, "a3 c1");
    assert!(rounds.next(false).is_none());
    put_back(&mut rounds, shown);
    assert_eq!((rounds.ready(), shown_by(&rounds)), (3, 0));
    rounds.come_back(entry("a3"));
    expect_all(&mut rounds, "a3 b1 a1 a2");
}

#[test]
fn two_visits_share_nothing() {
    let mut rounds = Rounds::new(UNLIMITED, BATCH);
    let names: Vec<_> = (0..3 * PART).map(|item| format!("a{item}")).collect();
    for name in &names {
        rounds.arrive(entry(name));
    }
    let one = show(&mut rounds);
    let other = show(&mut rounds);
    let shown = |part: &[Shown<String, KeyMeta, KeyPosition>]| {
        part.iter()
            .map(|at| at.entry.item.item.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!((one.len(), shown(&one)), (PART, names[..PART].to_vec()));
    assert!(other.is_empty(), "the part is shown by the other visit");
    expect(&mut rounds, &names[PART]);
    let last = show(&mut rounds);
    assert_eq!(shown(&last), names[PART + 1..=2 * PART]);
    put_back(&mut rounds, one);
    put_back(&mut rounds, last);
    rounds.come_back(entry(&names[PART]));
    expect(&mut rounds, &names[PART]);
    let rest = [&names[..PART], &names[PART + 1..]].concat();
    expect_all(&mut rounds, &rest.join(" "));
}

#[test]
fn a_visit_continues_behind_items_that_a_pop_skipped() {
    let mut rounds = Rounds::new(UNLIMITED, BATCH);
    let names: Vec<_> = (0..2 * PART).map(|item| format!("a{item}")).collect();
    for name in &names {
        rounds.arrive(entry(name));
    }
    let (mut visit, mut shown) = (rounds.begin_visit(false), Vec::new());
    rounds.show(&mut visit, &mut shown);
    expect(&mut rounds, &names[PART]);
    while rounds.show(&mut visit, &mut shown) {}
    rounds.end_visit();
    let shown = shown.into_iter().map(|at| at.entry.item.item);
    assert!(shown.eq([&names[..PART], &names[PART + 1..]].concat()));
}

#[test]
fn a_shown_item_blocks_a_serial_key() {
    let mut rounds = Rounds::new(1, BATCH);
    arrive(&mut rounds, "b1 b2 a1 a2");
    expect(&mut rounds, "b1");
    let shown = show(&mut rounds);
    assert_eq!((shown.len(), rounds.ready(), rounds.waiting()), (1, 0, 2));
    assert!(rounds.next(false).is_none());
    arrive(&mut rounds, "a3");
    assert_eq!(rounds.ready(), 0);
    assert_eq!(rounds.leave(order("b1")), 1);
    expect(&mut rounds, "b2");
    put_back(&mut rounds, shown);
    assert_eq!((rounds.ready(), rounds.waiting()), (1, 2));
    expect(&mut rounds, "a1");
    assert!(rounds.next(false).is_none());
}

#[test]
#[cfg_attr(miri, ignore = "too many steps for Miri")]
fn a_million_keys_leave_no_memory() {
    let mut rounds = Rounds::new(UNLIMITED, BATCH);
    for key in 0..1_000_000 {
        let (attempts, since) = (1, 0);
        let delivery = DeliveryMeta { attempts, since };
        let meta = KeyMeta { key, weight: 1 };
        let item = Stored { item: key, meta };
        rounds.arrive(Entry { item, delivery });
    }
    for key in 0..1_000_000 {
        assert_eq!(
            rounds.next(false).map(|dequeued| dequeued.entry.item.item),
            Some(key)
        );
    }
    assert!(rounds.next(false).is_none());
    assert_eq!((rounds.items.len(), rounds.keys.len()), (0, 0));
}

/// Shows the items of one key, ready or not.
fn show_of(rounds: &mut Rounds<String>, key: &str) -> Vec<Shown<String, KeyMeta, KeyPosition>> {
    let mut shown = Vec::new();
    let mut visit = rounds.begin_visit_of(order(key).key);
    assert!(!rounds.show(&mut visit, &mut shown));
    shown
}

#[test]
fn a_serial_key_continues_when_its_first_item_is_put_back() {
    let mut rounds = Rounds::new(1, BATCH);
    arrive(&mut rounds, "a1 b1 a2 a3");
    expect(&mut rounds, "a1");
    let shown = show_of(&mut rounds, "a");
    assert_eq!((shown.len(), rounds.ready(), rounds.waiting()), (2, 1, 0));
    assert_eq!(rounds.leave(order("a1")), 0, "the next item is shown");
    expect(&mut rounds, "b1");
    assert!(rounds.next(false).is_none());
    put_back(&mut rounds, shown);
    assert_eq!((rounds.ready(), rounds.waiting()), (1, 1));
    expect(&mut rounds, "a2");
    let shown = show_of(&mut rounds, "a");
    rounds.come_back(entry("a2"));
    expect(&mut rounds, "a2");
    put_back(&mut rounds, shown);
    assert_eq!(rounds.ready(), 0, "a2 is held again");
    assert_eq!(rounds.leave(order("a2")), 1);
    expect(&mut rounds, "a3");
    assert!(show_of(&mut rounds, "c").is_empty());
}

#[test]
fn removals_release_their_memory() {
    for most_held in [UNLIMITED, 1] {
        let mut rounds = Rounds::new(most_held, BATCH);
        arrive(&mut rounds, "a");
        for _ in 0..10 {
            for item in 0..1000 {
                rounds.arrive(entry(&format!("a{item}")));
            }
            let visit = rounds.begin_visit(true);
            let removed = remove_some(&mut rounds, visit, |name| name == "a" || name == "a999");
            assert_eq!(removed.len(), 999);
            assert!(rounds.items.places() < 2000);
        }
        let visit = rounds.begin_visit(true);
        assert_eq!(remove_some(&mut rounds, visit, |_| false).len(), 11);
        assert_eq!((rounds.ready(), rounds.waiting(), rounds.ring), (0, 0, 0));
        assert_eq!(rounds.keys.iter().count(), 0);
    }
}

/// Serial keys keep the order of their items while some of them are shown.
#[test]
#[cfg_attr(miri, ignore = "too many steps for Miri")]
fn visits_to_serial_keys_change_nothing() {
    let mut state = 11_u64;
    let mut number = |limit: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % limit
    };
    let mut rounds = Rounds::new(1, BATCH);
    let (mut arrived, mut held) = ([0; KEYS], Vec::new());
    let mut inside: [BTreeSet<usize>; KEYS] = Default::default();
    let mut visits: Vec<(Visit, Vec<_>)> = Vec::new();
    for _ in 0..100_000 {
        match number(8) {
            0..=1 => {
                let k = number(KEYS);
                let (key, weight) = (u32::try_from(k).unwrap(), 1);
                let meta = KeyMeta { key, weight };
                let (attempts, since) = (1, 0);
                let delivery = DeliveryMeta { attempts, since };
                let item = arrived[k];
                rounds.arrive(Entry {
                    item: Stored { item, meta },
                    delivery,
                });
                inside[k].insert(item);
                arrived[k] += 1;
            }
            2..=3 => held.extend(rounds.next(false).map(|dequeued| {
                let Stored { item, meta } = &dequeued.entry.item;
                let first = inside[meta.key as usize].pop_first();
                assert_eq!(Some(*item), first, "in order, one at a time");
                dequeued.entry
            })),
            4 if !held.is_empty() => {
                let entry = held.swap_remove(number(held.len()));
                inside[entry.item.meta.key as usize].insert(entry.item.item);
                rounds.come_back(entry);
            }
            5 if !held.is_empty() => {
                rounds.leave(held.swap_remove(number(held.len())).item.meta);
            }
            6 if visits.len() < 3 => {
                let mut visit = match number(KEYS + 2) {
                    KEYS => rounds.begin_visit(false),
                    key if key > KEYS => rounds.begin_visit(true),
                    key => rounds.begin_visit_of(u32::try_from(key).unwrap()),
                };
                let mut shown = Vec::new();
                rounds.show(&mut visit, &mut shown);
                visits.push((visit, shown));
            }
            _ if !visits.is_empty() => {
                let (mut visit, shown) = visits.swap_remove(number(visits.len()));
                let (back, removed): (Vec<_>, Vec<_>) =
                    shown.into_iter().partition(|_| number(3) > 0);
                for shown in back.into_iter().rev() {
                    rounds.put_back(&mut visit, shown);
                }
                for Shown { entry, position } in removed {
                    let Stored { item, meta } = entry.item;
                    assert!(inside[meta.key as usize].remove(&item));
                    assert_eq!(rounds.remove_shown(meta, position), 1);
                }
                rounds.end_visit();
            }
            _ => {}
        }
        let blocked = rounds
            .ring()
            .filter(|key| rounds.items.begins_with_gap(&rounds.keys[*key].items));
        assert_eq!(rounds.blocked, blocked.count());
        let count: usize = inside.iter().map(BTreeSet::len).sum();
        let shown: usize = visits.iter().map(|(_, shown)| shown.len()).sum();
        assert_eq!(rounds.ready() + rounds.waiting() + shown, count);
        if visits.is_empty() {
            let has_ready = |k: &usize| {
                let is_held =
                    |entry: &Entry<Stored<_, KeyMeta>>| entry.item.meta.key as usize == *k;
                !inside[*k].is_empty() && !held.iter().any(is_held)
            };
            assert_eq!(rounds.ready(), (0..KEYS).filter(has_ready).count());
        }
    }
}

/// The model: two lists of keys, and the items of each key.
#[derive(Default)]
struct Plain {
    present: VecDeque<u32>,
    next: VecDeque<u32>,
    items: [VecDeque<u32>; KEYS],
    turns: [u32; KEYS],
    held: [u32; KEYS],
    most_held: u32,
}

const KEYS: usize = 5;

fn weight(key: u32) -> u32 {
    1 + key % 3
}

impl Plain {
    fn arrive(&mut self, key: u32, item: u32) {
        let k = key as usize;
        self.items[k].push_back(item);
        let is_in = self.present.contains(&key) || self.next.contains(&key);
        if self.held[k] < self.most_held && !is_in {
            self.next.push_back(key);
            if self.held[k] == 0 {
                self.turns[k] = 0;
            }
        }
    }

    fn come_back(&mut self, key: u32, item: u32) {
        let k = key as usize;
        self.items[k].push_front(item);
        self.held[k] = self.held[k].saturating_sub(1);
        let lies_ahead = self.turns[k] == 0 && self.present.contains(&key);
        self.present.retain(|other| *other != key);
        self.next.retain(|other| *other != key);
        self.present.push_front(key);
        if !lies_ahead {
            self.turns[k] = weight(key).min(self.turns[k] + 1);
        }
    }

    fn next(&mut self) -> Option<(u32, u32)> {
        if self.present.is_empty() {
            self.present.append(&mut self.next);
        }
        let key = self.present.pop_front()?;
        let k = key as usize;
        let item = self.items[k].pop_front().unwrap();
        let turns = if self.turns[k] == 0 {
            weight(key)
        } else {
            self.turns[k]
        };
        self.turns[k] = turns - 1;
        if self.most_held < UNLIMITED {
            self.held[k] += 1;
        }
        if self.held[k] == self.most_held {
            return Some((key, item));
        }
        if self.items[k].is_empty() {
            if self.held[k] == 0 {
                self.turns[k] = 0;
            }
        } else if turns > 1 {
            self.present.push_front(key);
        } else {
            self.next.push_back(key);
        }
        Some((key, item))
    }

    fn leave(&mut self, key: u32) -> usize {
        let k = key as usize;
        let was_full = self.held[k] == self.most_held;
        self.held[k] = self.held[k].saturating_sub(1);
        if self.items[k].is_empty() {
            if self.held[k] == 0 {
                self.turns[k] = 0;
            }
            return 0;
        }
        if !was_full {
            return 0;
        }
        if self.turns[k] > 0 {
            self.present.push_front(key);
        } else {
            self.next.push_back(key);
        }
        1
    }

    fn remove(&mut self, key: u32, item: u32) {
        let k = key as usize;
        self.items[k].retain(|other| *other != item);
        if self.items[k].is_empty() && self.held[k] < self.most_held {
            self.present.retain(|other| *other != key);
            self.next.retain(|other| *other != key);
            if self.held[k] == 0 {
                self.turns[k] = 0;
            }
        }
    }
}

fn is_like_the_model(most_held: u32) {
    const STEPS: u32 = if cfg!(miri) { 300 } else { 100_000 };
    let mut state = 7_u64;
    let mut number = |limit: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % limit
    };
    let mut rounds = Rounds::new(most_held, BATCH);
    let mut plain = Plain {
        most_held,
        ..Plain::default()
    };
    let mut out: Vec<Entry<Stored<u32, KeyMeta>>> = Vec::new();
    let mut pending = [0; KEYS];
    for step in 0..STEPS {
        if number(50) == 0 {
            let ready = rounds.ready();
            let shown = show_all(&mut rounds).0.len();
            assert!(if [1, UNLIMITED].contains(&most_held) {
                shown == ready
            } else {
                shown <= ready && (shown == 0) == (ready == 0)
            });
        }
        if number(50) == 0 {
            let visit = rounds.begin_visit(true);
            for (entry, gone) in remove_some(&mut rounds, visit, |_| number(4) > 0) {
                let key = entry.item.meta.key;
                plain.remove(key, entry.item.item);
                let is_last = plain.items[key as usize].is_empty() && plain.held[key as usize] == 0;
                let uncounted = std::mem::take(&mut pending[key as usize]);
                let expected = if is_last { uncounted } else { 0 };
                pending[key as usize] = uncounted - expected;
                assert_eq!(gone, 1 + expected);
            }
        }
        match number(8) {
            0..=2 => {
                let key = u32::try_from(number(KEYS)).unwrap();
                let weight = weight(key);
                let item = Stored {
                    item: step,
                    meta: KeyMeta { key, weight },
                };
                let (attempts, since) = (1, 0);
                let delivery = DeliveryMeta { attempts, since };
                rounds.arrive(Entry { item, delivery });
                plain.arrive(key, step);
            }
            3..=5 => {
                let for_good = most_held == UNLIMITED && number(2) == 0;
                let dequeued = rounds.next(for_good);
                let taken = dequeued.map(|Dequeued { entry, gone }| {
                    let key = entry.item.meta.key;
                    let k = key as usize;
                    pending[k] += u32::from(for_good);
                    pending[k] -= gone;
                    let is_late = pending[k] >= BATCH;
                    let is_missed = pending[k] > 0 && plain.items[k].len() == 1;
                    assert!(!is_late && !is_missed);
                    let item = entry.item.item;
                    if !for_good {
                        out.push(entry);
                    }
                    (key, item)
                });
                assert_eq!(taken, plain.next());
            }
            6 if !out.is_empty() => {
                let entry = out.swap_remove(number(out.len()));
                plain.come_back(entry.item.meta.key, entry.item.item);
                rounds.come_back(entry);
            }
            _ if !out.is_empty() => {
                let entry = out.swap_remove(number(out.len()));
                let ready = rounds.leave(entry.item.meta);
                assert_eq!(ready, plain.leave(entry.item.meta.key));
            }
            _ => {}
        }
        let queued: usize = plain.items.iter().map(VecDeque::len).sum();
        assert_eq!(rounds.ready() + rounds.waiting(), queued);
    }
}

#[test]
fn rounds_are_like_the_model() {
    is_like_the_model(UNLIMITED);
}

#[test]
fn serial_rounds_are_like_the_model() {
    is_like_the_model(1);
}

#[test]
fn limited_rounds_are_like_the_model() {
    is_like_the_model(2);
    is_like_the_model(3);
}

#[test]
fn a_new_key_is_out_of_the_ring() {
    assert!(KeyState::default().is_out());
}
