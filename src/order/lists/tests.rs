//! Tests of lists.

use super::{List, Lists, Places, Position, Slot};
use crate::order::chunks::SLACK;
use crate::raw::{DeliveryMeta, Entry, Stored};
use std::mem;

/// How many places are added at once.
const ONE_STEP: usize = Places::<usize, ()>::STEP;
const ONE_CHUNK: usize = Places::<usize, ()>::LEN as usize;

fn entry<T>(item: T) -> Entry<Stored<T, ()>> {
    let (attempts, since) = (1, 0);
    let delivery = DeliveryMeta { attempts, since };
    let item = Stored { item, meta: () };
    Entry { item, delivery }
}

fn pop(lists: &mut Lists<usize, ()>, list: &mut List) -> Option<usize> {
    lists.pop_front(list).map(|entry| entry.item.item)
}

#[test]
fn places_are_reused() {
    let mut lists = Lists::new();
    let mut list = List::EMPTY;
    lists.push_back(&mut list, 1, entry(1));
    assert_eq!(pop(&mut lists, &mut list), Some(1));
    let mut other = List::EMPTY;
    lists.push_front(&mut other, 2, entry(2));
    assert_eq!((lists.places(), lists.len()), (ONE_CHUNK, 1));
}

/// Emptied in the middle of a chunk, a list begins anew: nothing of its old chunk is its end.
#[test]
fn a_list_that_was_emptied_is_filled_again() {
    let mut lists = Lists::new();
    let (mut list, mut number) = (List::EMPTY, 0);
    for count in 1..40 {
        for item in 0..count {
            number += 1;
            lists.push_back(&mut list, number, entry(item));
        }
        let popped = (0..count).map(|_| pop(&mut lists, &mut list));
        assert!(popped.eq((0..count).map(Some)));
        assert_eq!((pop(&mut lists, &mut list), lists.len()), (None, 0));
        assert!(list.is_empty() && lists.first(&list).is_none());
    }
}

#[test]
fn lists_grow_and_move_in_their_order() {
    let mut lists = Lists::new();
    let mut all: Vec<_> = (0..10).map(|_| List::EMPTY).collect();
    for (item, number) in (0..1000).zip(1..) {
        let list = &mut all[item % 10];
        if item % 3 == 0 {
            let first = pop(&mut lists, list);
            assert!(first.map_or(true, |first| first % 10 == item % 10));
            if let Some(first) = first {
                lists.push_front(list, -number, entry(first));
            }
        }
        lists.push_back(list, number, entry(item));
        if item % 100 == 0 {
            lists.sweep(all.iter_mut());
        }
    }
    for (key, list) in all.iter_mut().enumerate() {
        let items = std::iter::from_fn(|| pop(&mut lists, list));
        assert!(items.eq((key..1000).step_by(10)));
    }
    assert_eq!(lists.len(), 0);
}

#[test]
#[cfg_attr(miri, ignore = "too many steps for Miri")]
fn a_list_that_was_long_releases_its_places() {
    let mut lists = Lists::new();
    let mut list = List::EMPTY;
    for (item, number) in (0..10_000).zip(1..) {
        lists.push_back(&mut list, number, entry(item));
    }
    assert!(lists.places() <= 10_000 + ONE_STEP);
    for item in 0..10_000 {
        assert_eq!(pop(&mut lists, &mut list), Some(item));
        if lists.is_wasteful() {
            lists.sweep([&mut list].into_iter());
            assert!(lists.places() <= lists.len() + ONE_STEP);
        }
    }
    assert!(lists.places() <= SLACK);
}

#[test]
fn places_are_small() {
    assert_eq!(mem::size_of::<Slot<u64, ()>>(), 32);
}

#[test]
fn large_items_have_chunks_too() {
    let mut lists = Lists::new();
    let mut list = List::EMPTY;
    for item in 5..100 {
        lists.push_back(&mut list, item, entry([item; 100]));
    }
    for item in (0..5).rev() {
        lists.push_front(&mut list, item, entry([item; 100]));
    }
    for item in 0..100 {
        let popped = lists.pop_front(&mut list).map(|entry| entry.item.item[99]);
        assert_eq!(popped, Some(item));
    }
    assert!(list.is_empty());
}

#[test]
fn times_are_kept() {
    let mut lists = Lists::new();
    let mut list = List::EMPTY;
    let times = [0, 0, 7, 0, 9];
    for (since, number) in times.into_iter().zip(1..) {
        let mut entry = entry(1);
        entry.delivery.since = since;
        lists.push_back(&mut list, number, entry);
    }
    for since in times {
        let popped = lists.pop_front(&mut list).unwrap();
        assert_eq!(popped.delivery.since, since);
    }
}

/// The item after a position, and its own position.
fn after(lists: &Lists<i64, ()>, list: &List, number: i64, at: Position) -> Option<Position> {
    let next = lists.position_after(list, at);
    assert_eq!(next.map(|next| next.number), Some(number));
    next
}

#[test]
fn a_position_holds_while_its_item_or_gap_is_there() {
    let mut lists = Lists::new();
    let (mut list, mut other) = (List::EMPTY, List::EMPTY);
    let fill = |lists: &mut Lists<i64, ()>, list: &mut List, from: i64| {
        for number in from..from + 20 {
            lists.push_back(list, number, entry(number));
        }
    };
    fill(&mut lists, &mut list, 1);
    let start = Position::before(1);
    let first = after(&lists, &list, 1, start).unwrap();
    let second = after(&lists, &list, 2, first).unwrap();
    // Its gap keeps the position, and is filled again.
    assert_eq!(lists.take(second).map(|entry| entry.item.item), Some(2));
    assert!(lists.take(second).is_none() && lists.has_gaps());
    after(&lists, &list, 3, second);
    assert!(!lists.begins_with_gap(&list) && lists.is_first(&list, first));
    assert!(lists.put_back(second, entry(2)).is_ok());
    // Without the item the search begins at the first one.
    assert!(lists.take(second).is_some());
    lists.pop_front(&mut list);
    assert!(lists.begins_with_gap(&list) && lists.is_first(&list, second));
    lists.trim(&mut list);
    assert!(!lists.has_gaps() && lists.put_back(second, entry(2)).is_err());
    lists.push_front(&mut list, -1, entry(-1));
    after(&lists, &list, 3, second);
    // Another list has its place.
    while !list.is_empty() {
        assert!(lists.pop_front(&mut list).is_some());
    }
    fill(&mut lists, &mut other, 100);
    assert!(lists.position_after(&list, second).is_none());
    fill(&mut lists, &mut list, 200);
    after(&lists, &list, 200, second);
    assert_eq!(lists.len(), 40);
}

#[test]
fn sweeping_drops_gaps() {
    let mut lists = Lists::new();
    let mut all = [List::EMPTY; 2];
    for number in 1..=2000 {
        lists.push_back(&mut all[0], number, entry(number));
    }
    for place in 0..1500 {
        let (at, ..) = lists.item_at(place).unwrap();
        assert_eq!(lists.has_many_gaps(), place >= 1129);
        assert!(lists.take(at).is_some());
    }
    assert!(lists.has_many_gaps());
    lists.sweep(all.iter_mut());
    assert!(!lists.has_many_gaps() && !lists.has_gaps());
    assert_eq!((all[1].is_empty(), lists.len()), (true, 500));
    let items = std::iter::from_fn(|| lists.pop_front(&mut all[0]));
    assert!(items.map(|entry| entry.item.item).eq(1501..=2000));
}
