//! Tests of the lists of keys.

use super::{KeyItems, ListEntry, Lists, Mark, Places};
use crate::order::chunks::SLACK;
use crate::raw::{DeliveryMeta, Entry};
use std::mem;

/// How many places are added at once.
const ONE_STEP: usize = Places::<usize>::STEP;

fn entry(item: usize) -> Entry<usize> {
    let delivery = DeliveryMeta {
        attempts: 1,
        since: 0,
    };
    Entry { item, delivery }
}

/// The number of places.
fn places<T>(lists: &Lists<T>) -> usize {
    lists.chunks.places().len()
}

fn pop(lists: &mut Lists<usize>, list: &mut KeyItems) -> Option<usize> {
    lists.pop_front(list).map(|entry| entry.item)
}

#[test]
fn places_are_reused() {
    let mut lists = Lists::new();
    let mut list = KeyItems::default();
    lists.push_back(&mut list, entry(1));
    assert_eq!(pop(&mut lists, &mut list), Some(1));
    let mut other = KeyItems::default();
    lists.push_front(&mut other, entry(2));
    assert_eq!((places(&lists), lists.len()), (ONE_STEP, 1));
}

#[test]
fn lists_grow_and_move_in_their_order() {
    let mut lists = Lists::new();
    let mut all: Vec<_> = (0..10).map(|_| KeyItems::default()).collect();
    for item in 0..1000 {
        let list = &mut all[item % 10];
        if item % 3 == 0 {
            let first = pop(&mut lists, list);
            assert!(first.map_or(true, |first| first % 10 == item % 10));
            if let Some(first) = first {
                lists.push_front(list, entry(first));
            }
        }
        lists.push_back(list, entry(item));
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
    let mut list = KeyItems::default();
    (0..10_000).for_each(|item| lists.push_back(&mut list, entry(item)));
    assert!(places(&lists) <= 10_000 + ONE_STEP);
    for item in 0..10_000 {
        assert_eq!(pop(&mut lists, &mut list), Some(item));
        if lists.is_wasteful() {
            lists.sweep([&mut list].into_iter());
            assert!(places(&lists) <= lists.len() + ONE_STEP);
        }
    }
    assert!(places(&lists) <= SLACK);
}

#[test]
fn places_are_small() {
    assert_eq!(mem::size_of::<ListEntry<u64>>(), 16);
}

#[test]
fn large_items_have_chunks_too() {
    let mut lists = Lists::new();
    let mut list = KeyItems::default();
    let large = |item| Entry {
        item: [item; 100],
        delivery: entry(0).delivery,
    };
    (5..100).for_each(|item| lists.push_back(&mut list, large(item)));
    (0..5)
        .rev()
        .for_each(|item| lists.push_front(&mut list, large(item)));
    for item in 0..100 {
        let popped = lists.pop_front(&mut list).map(|entry| entry.item[99]);
        assert_eq!(popped, Some(item));
    }
    assert!(list.is_empty());
}

#[test]
fn times_are_kept_once_one_is_known() {
    let mut lists = Lists::new();
    let mut list = KeyItems::default();
    let times = [0, 0, 7, 0, 9];
    for since in times {
        let mut entry = entry(1);
        entry.delivery.since = since;
        lists.push_back(&mut list, entry);
    }
    for since in times {
        let popped = lists.pop_front(&mut list).unwrap();
        assert_eq!(popped.delivery.since, since);
    }
    lists.push_back(&mut list, entry(1));
    let popped = lists.pop_front(&mut list).unwrap();
    assert_eq!(popped.delivery.since, 0, "not that of the item before");
}

#[test]
fn a_mark_holds_while_its_chunk_does() {
    let mut lists = Lists::new();
    let (mut list, mut other) = (KeyItems::default(), KeyItems::default());
    (0..20).for_each(|item| lists.push_back(&mut list, entry(item)));
    let mut mark = Mark::default();
    let place = lists.place_at(&list, 0, 10, &mut mark);
    assert_eq!((mark.position, mark.place), (10, place));
    // Items come and go before it: its position is the same.
    for _ in 0..9 {
        lists.pop_front(&mut list);
    }
    let shown = lists.place_at(&list, 9, 11, &mut mark);
    assert_eq!(lists.show(shown, 1).map(|entry| entry.item), Some(11));
    assert!(lists.put_back(shown, 1, entry(11)).is_ok());
    // Another list has its chunk: the search begins at the first item.
    while pop(&mut lists, &mut list).is_some() {}
    (100..120).for_each(|item| lists.push_back(&mut other, entry(item)));
    (0..20).for_each(|item| lists.push_back(&mut list, entry(item)));
    let shown = lists.place_at(&list, 0, 12, &mut mark);
    assert_eq!(lists.show(shown, 2).map(|entry| entry.item), Some(12));
}
