//! Tests of the lists of keys.

use super::{KeyItems, ListEntry, Lists, SLACK};
use crate::order::fair::KeyMeta;
use crate::raw::{DeliveryMeta, Entry, Stored};
use std::mem;

fn entry(item: usize) -> Entry<usize> {
    let delivery = DeliveryMeta {
        attempts: 1,
        since: 0,
    };
    Entry { item, delivery }
}

/// The number of places.
fn places<T>(lists: &Lists<T>) -> usize {
    lists.places.len()
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
    lists.release(&list);
    let mut other = KeyItems::default();
    lists.push_front(&mut other, entry(2));
    assert_eq!((places(&lists), lists.len()), (1, 1));
}

#[test]
fn lists_grow_and_move_without_losing_their_order() {
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
fn a_list_that_was_long_releases_its_places() {
    let mut lists = Lists::new();
    let mut list = KeyItems::default();
    (0..10_000).for_each(|item| lists.push_back(&mut list, entry(item)));
    assert!(places(&lists) <= 4 * 10_000);
    for item in 0..10_000 {
        assert_eq!(pop(&mut lists, &mut list), Some(item));
        if lists.is_wasteful_for(lists.len()) {
            lists.sweep([&mut list].into_iter());
            assert!(places(&lists) <= 2 * lists.len());
        }
    }
    assert!(places(&lists) <= SLACK);
}

#[test]
fn places_are_small() {
    assert_eq!(mem::size_of::<ListEntry<Stored<u64, KeyMeta>>>(), 32);
}
